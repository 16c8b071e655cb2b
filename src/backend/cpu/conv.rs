//! Convolutions with steps of one, without laying out what each weight meets: in images with their zeros around them, the pixels that a weight
//! meets lie side by side, as far from the results as the weight is from the first one. So a product's tile runs over the images themselves.
//! Between rows a few results too many are computed, and not stored.

use super::floats::Floats;
use super::product::{self, EMPTY, Line, TILE};
use crate::backend::native::Conv2dShape;
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Terms that are summed at a time: this many pixels and weights stay in the first cache.
const TERMS: usize = 320;
/// Floats of padded images, and of packed weights, that are held at a time.
const ROOM: usize = 1 << 22;
/// Tiles of results that a task computes.
const TILES: usize = 8;

/// How the padded images lie in memory.
struct Panels {
    /// Floats of a padded row, and of a channel.
    pitch: usize,
    plane: usize,
    /// From the first result to behind the last one.
    reach: usize,
    /// Channels of a group: inputs and outputs.
    channels: [usize; 2],
}

impl Panels {
    /// Where it pays: steps of one, tiles that are filled, and few results between rows.
    fn of(shape: &Conv2dShape) -> Option<Self> {
        let channels = shape.channels.map(|channels| channels / shape.groups);
        let [height, width] = [0, 1].map(|axis| shape.input[axis] + 2 * shape.padding[axis]);
        let depth = channels[0] * shape.kernel[0] * shape.kernel[1];
        let reach = (shape.output[0].checked_sub(1)?) * width + shape.output[1];
        let pays = shape.stride == [1, 1] && width * 4 <= shape.output[1] * 5;
        let layout = Self { pitch: width, plane: height * width, reach, channels };
        let fits =
            shape.channels[0] * layout.plane <= ROOM && (shape.channels[1] + TILE[0] * shape.groups) * depth <= ROOM;
        (pays && fits && product::serves([channels[1], reach, depth])).then_some(layout)
    }
}

/// Computes a convolution whose sizes were checked, or says that it is not one of these.
///
/// # Errors
/// What stopped it.
pub(super) fn direct(
    shape: &Conv2dShape,
    x: Floats,
    w: Floats,
    y: Floats,
    limits: &Limits<'_>,
) -> Result<bool, Stopped> {
    let Some(layout) = Panels::of(shape) else { return Ok(false) };
    let [inputs, outputs] = layout.channels;
    let area = shape.kernel[0] * shape.kernel[1];
    let depth = inputs * area;
    let offsets: Vec<usize> = (0..depth)
        .map(|term| {
            let (channel, at) = (term / area, term % area);
            let [i, j] = [at / shape.kernel[1] * shape.dilation[0], at % shape.kernel[1] * shape.dilation[1]];
            channel * layout.plane + i * layout.pitch + j
        })
        .collect();
    let terms = depth.div_ceil(depth.div_ceil(TERMS));
    let strips = outputs.div_ceil(TILE[0]);
    let together = shape.images.min(ROOM / (shape.channels[0] * layout.plane)).max(1);
    // The last tile reads on behind the last plane.
    let padded = together * shape.channels[0] * layout.plane + TILE[1];
    product::with_scratch([padded, shape.groups * strips * TILE[0] * depth], |[images, weights]| {
        threads::each_chunk(weights, TILE[0] * depth, |at, to| {
            let (group, row) = (at / strips, at % strips * TILE[0]);
            let rows = TILE[0].min(outputs - row);
            // SAFETY: the weights of `rows` outputs of a group, of which the check of sizes found enough.
            unsafe { product::pack_rows(w.at((group * outputs + row) * depth), depth, rows, to) };
        });
        let weights = &*weights;
        let tiles = layout.reach.div_ceil(TILE[1]);
        let bands = tiles.div_ceil(TILES);
        for first_image in (0..shape.images).step_by(together) {
            let count = together.min(shape.images - first_image);
            let planes = count * shape.channels[0];
            let rest = planes * layout.plane;
            threads::each_chunk(&mut images[..rest], layout.plane, |plane, to| {
                // SAFETY: an operation's inputs are written by nothing while it runs.
                pad(
                    shape,
                    &layout,
                    unsafe { x.stretch(first_image * shape.channels[0] + plane, shape.input[0] * shape.input[1]) },
                    to,
                );
            });
            images[rest..rest + TILE[1]].fill(0.0);
            let images = &*images;
            threads::try_each(count * shape.groups * bands, |task| {
                limits.begin().check()?;
                let (of, band) = (task / bands, task % bands);
                let (image, group) = (of / shape.groups, of % shape.groups);
                let images = &images[(image * shape.channels[0] + group * inputs) * layout.plane..];
                let weights = &weights[group * strips * TILE[0] * depth..][..strips * TILE[0] * depth];
                let results =
                    ((first_image + image) * shape.channels[1] + group * outputs) * shape.output[0] * shape.output[1];
                for first in (0..depth).step_by(terms) {
                    let offsets = &offsets[first..depth.min(first + terms)];
                    for tile in band * TILES..tiles.min(band * TILES + TILES) {
                        let at = tile * TILE[1];
                        let mut panel = [EMPTY; TERMS];
                        for (Line(line), offset) in panel.iter_mut().zip(offsets) {
                            line.copy_from_slice(&images[at + offset..][..TILE[1]]);
                        }
                        for (strip, weights) in weights.chunks_exact(TILE[0] * depth).enumerate() {
                            let weights = &weights[first * TILE[0]..][..offsets.len() * TILE[0]];
                            let mut sums = [EMPTY; TILE[0]];
                            // SAFETY: `serves` said that the processor has what it takes.
                            unsafe { product::tile_of_panels(weights, &panel[..offsets.len()], &mut sums) };
                            // SAFETY: tasks store distinct results.
                            unsafe { store(shape, &layout, y.at(results), &sums, [strip * TILE[0], at], first > 0) };
                        }
                    }
                }
                Ok::<(), Stopped>(())
            })?;
        }
        Ok(true)
    })
}

/// Puts zeros around an image's channel.
fn pad(shape: &Conv2dShape, layout: &Panels, plane: &[f32], to: &mut [f32]) {
    let ([width, pitch], [above, before]) = ([shape.input[1], layout.pitch], shape.padding);
    to[..above * pitch].fill(0.0);
    for (row, to) in plane.chunks_exact(width).zip(to[above * pitch..].chunks_exact_mut(pitch)) {
        to[..before].fill(0.0);
        to[before..before + width].copy_from_slice(row);
        to[before + width..].fill(0.0);
    }
    to[(above + shape.input[0]) * pitch..].fill(0.0);
}

/// Stores a tile: rows are outputs from `row` on, columns places from `at` on, of which those between the rows are left out.
///
/// # Safety
/// `y` is the first result of a group, whose results nothing else touches.
unsafe fn store(
    shape: &Conv2dShape,
    layout: &Panels,
    y: *mut f32,
    sums: &[Line; TILE[0]],
    [row, at]: [usize; 2],
    add: bool,
) {
    let [height, width] = shape.output;
    let end = layout.reach.min(at + TILE[1]);
    let mut from = at;
    while from < end {
        let (line, column) = (from / layout.pitch, from % layout.pitch);
        let next = end.min((line + 1) * layout.pitch);
        let count = (next - from).min(width.saturating_sub(column));
        for (output, Line(sums)) in (row..layout.channels[1]).zip(sums) {
            let sums = &sums[from - at..][..count];
            // SAFETY: the caller's promise; `count` results of a line.
            let to = unsafe {
                std::slice::from_raw_parts_mut(y.add((output * height + line) * width + column.min(width)), count)
            };
            if add {
                to.iter_mut().zip(sums).for_each(|(to, sum)| *to += sum);
            } else {
                to.copy_from_slice(sums);
            }
        }
        from = next;
    }
}
