//! Convolutions of images as products. The pixels that each weight multiplies are laid out in panels for tiles. If every channel has its own weights
//! (depthwise), planes are added up in place. Images are padded with zeros first, and the columns of each step of the window are put side by side, so
//! every weight multiplies contiguous runs of an image.

use std::any::TypeId;
use std::ops::Range;
use std::sync::Arc;

use super::fault::Fault;
use super::floats::Floats;
use super::memory::Keeper;
use super::multiply::matmul;
use super::native::{self, Operation, Work, exactly};
use super::patches::{BEHIND, Patches, Run, TOGETHER};
use super::product::{self, Line};
use super::slabs::THREADS_PAY;
use super::tiles::{Begin, Matrix, Planes, with_tiles};
use crate::backend::native::{Conv2dShape, MatmulShape, Operand};
use crate::spmd::{Limits, Stopped};
use crate::tensor::DType;
use crate::threads;
use cantus_base::listed::Listed;

/// Panels that are laid out at a time, and floats of each: it stays in the first cache while the weights come from the second.
const PANELS: usize = 4;
const LAID_OUT: usize = 6144;
/// With up to this many outputs of a group, planes are added up in place. More outputs make panels pay.
const FEW_OUTPUTS: usize = 8;
/// From this many panels on, weights are packed. With fewer, each weight is read as often as packing would read it.
const PACKING_PAYS: usize = 5;
/// Floats that an image with its zeros may always take, and how many times the image's own.
const PADDED: [usize; 2] = [1 << 22, 8];

/// An image with its zeros: rows, each as a line for every column of the window's step.
struct Padded {
    patches: Patches,
    /// Columns of a line.
    line: usize,
    /// A weight applies to the row, or to the line.
    rows: Vec<bool>,
    lines: Vec<bool>,
}

/// How far an axis of the result reaches over the image.
fn reach(shape: &Conv2dShape, axis: usize) -> Option<usize> {
    let steps = (shape.output[axis] - 1).checked_mul(shape.stride[axis])?;
    steps.checked_add((shape.kernel[axis] - 1).checked_mul(shape.dilation[axis])?)?.checked_add(1)
}

/// Floats of a plane with its zeros, and of a line of it.
fn padded_sizes(shape: &Conv2dShape) -> Option<[usize; 2]> {
    let within = (shape.kernel[1] - 1).checked_mul(shape.dilation[1])? / shape.stride[1];
    let line = shape.output[1].checked_add(within)?;
    let plane = reach(shape, 0)?.checked_mul(line.checked_mul(shape.stride[1])?)?;
    Some([plane, line])
}

impl Padded {
    fn new(shape: &Conv2dShape) -> Option<Self> {
        let [plane, line] = padded_sizes(shape)?;
        let ([kh, kw], [stride_y, stride_x], [step_y, step_x]) = (shape.kernel, shape.stride, shape.dilation);
        let row = line * stride_x;
        let offset = |i: usize, j: usize| {
            let across = j * step_x;
            i * step_y * row + across % stride_x * line + across / stride_x
        };
        let offsets = (0..kh).flat_map(|i| (0..kw).map(move |j| offset(i, j))).listed();
        let mut rows = vec![false; reach(shape, 0)?];
        for i in 0..kh {
            rows.iter_mut().skip(i * step_y).step_by(stride_y).take(shape.output[0]).for_each(|row| *row = true);
        }
        let lines = (0..stride_x).map(|line| (0..kw).any(|j| j * step_x % stride_x == line)).listed();
        let planes = shape.channels[0] / shape.groups;
        let patches = Patches { offsets, planes, plane, row: stride_y * row, size: shape.output };
        Some(Self { patches, line, rows, lines })
    }

    /// Copies a plane with the zeros around it. Floats that no weight multiplies are left as they are.
    fn fill(&self, shape: &Conv2dShape, plane: &[f32], to: &mut [f32]) {
        let ([height, width], step) = (shape.input, shape.stride[1]);
        let rows = to.chunks_exact_mut(self.line * step).zip(&self.rows).enumerate();
        for (row, (to, _)) in rows.filter(|(_, (_, is_met))| **is_met) {
            let from = row.checked_sub(shape.padding[0]).filter(|&row| row < height);
            for (first, to) in to.chunks_exact_mut(self.line).enumerate().filter(|(line, _)| self.lines[*line]) {
                let Some(from) = from else {
                    to.fill(0.0);
                    continue;
                };
                // Column x of the line is column x step + first - padding of the image.
                let before = shape.padding[1].saturating_sub(first).div_ceil(step).min(to.len());
                let start = (before * step + first).saturating_sub(shape.padding[1]).min(width);
                let there = (width - start).div_ceil(step).min(to.len() - before);
                let from = &from_row(plane, from, width)[start..];
                let (zeros, rest) = to.split_at_mut(before);
                let (values, end) = rest.split_at_mut(there);
                zeros.fill(0.0);
                end.fill(0.0);
                match step {
                    1 => values.copy_from_slice(&from[..there]),
                    2 => {
                        // Pairs become vectors.
                        for (value, pair) in values.iter_mut().zip(from.chunks_exact(2)) {
                            *value = pair[0];
                        }
                        if let (Some(value), Some(last)) = (values.last_mut(), from.get(2 * there.saturating_sub(1))) {
                            *value = *last;
                        }
                    }
                    _ => {
                        values.iter_mut().zip(from.iter().step_by(step)).for_each(|(value, from)| *value = *from);
                    }
                }
            }
        }
    }
}

fn from_row(plane: &[f32], row: usize, width: usize) -> &[f32] {
    &plane[row * width..][..width]
}

/// The runs of a panel's pixels.
fn runs(patches: &Patches, first: usize, count: usize) -> Vec<Run> {
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < count {
        let (y, x) = ((first + at) / patches.size[1], (first + at) % patches.size[1]);
        let length = (patches.size[1] - x).min(count - at);
        runs.push(Run { from: y * patches.row + x, at, length });
        at += length;
    }
    runs
}

/// Calls `work` for each task, on all threads or on this one.
fn spread(parallel: bool, tasks: usize, work: impl Fn(usize) -> Result<(), Stopped> + Sync) -> Result<(), Stopped> {
    if parallel { threads::try_each(tasks, work) } else { (0..tasks).try_for_each(work) }
}

impl Operation for Conv2dShape {
    fn serves(&self) -> bool {
        // The sizes fit together, and the zeros take no more memory than they should.
        let Conv2dShape { images, channels, input, kernel, output, stride, padding, dilation, groups } = self;
        let sizes = [&channels[..], input, kernel, output, stride, dilation, &[*images, *groups]];
        if sizes.concat().contains(&0) || channels.iter().any(|channels| channels % groups != 0) {
            return false;
        }
        let within = |axis: usize| {
            let whole = padding[axis].checked_mul(2)?.checked_add(input[axis])?;
            reach(self, axis).filter(|&reach| reach <= whole)
        };
        let padded = padded_sizes(self).and_then(|[plane, _]| plane.checked_mul(channels[0]));
        let own = channels[0].saturating_mul(input[0]).saturating_mul(input[1]);
        within(0).is_some()
            && within(1).is_some()
            && padded.is_some_and(|padded| padded <= PADDED[0].max(own.saturating_mul(PADDED[1])))
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let product = |sizes: &[usize]| sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
        let [c, o] = self.channels;
        Some(vec![
            product(&[self.images, c, self.input[0], self.input[1]])?,
            product(&[o, c / self.groups, self.kernel[0], self.kernel[1]])?,
            product(&[self.images, o, self.output[0], self.output[1]])?,
        ])
    }

    fn work(&self) -> Work {
        Work { size: self.flops() as usize / 2, pays: THREADS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &native::Call<'_>) -> Result<(), Fault> {
        let bindings = exactly(bindings)?;
        Ok(convolve(self, bindings, call)?)
    }
}

/// Convolves the bindings, whose sizes were checked against the shape. Asks for the weights' keeper if keeping pays.
fn convolve(shape: &Conv2dShape, [x, w, y]: [Floats; 3], outer: &native::Call<'_>) -> Result<(), Stopped> {
    let [inputs, outputs] = shape.channels.map(|channels| channels / shape.groups);
    let (plane, pixels) = (shape.input[0] * shape.input[1], shape.output[0] * shape.output[1]);
    if shape.kernel == [1, 1] && shape.stride == [1, 1] && shape.padding == [0, 0] {
        let at = |step: usize, of: usize| (0..shape.images * shape.groups).map(move |batch| batch % of * step).listed();
        let a = Operand { offsets: at(outputs * inputs, shape.groups), row: inputs, column: 1 };
        let b = Operand { offsets: at(inputs * plane, usize::MAX), row: plane, column: 1 };
        let shape = MatmulShape { m: outputs, n: pixels, k: inputs, a, b, dtype: DType::F32 };
        return matmul(&shape, [w, x, y], &|| None, outer.limits);
    }
    let Some(padded) = Padded::new(shape) else { return Ok(()) };
    let call = Call { shape, padded: &padded, x, w, y, limits: outer.limits };
    with_tiles!(T => if inputs == 1 || outputs <= FEW_OUTPUTS {
        call.planes::<T>()
    } else {
        call.products::<T>((outer.keeper)(1))
    })
}

struct Call<'a> {
    shape: &'a Conv2dShape,
    padded: &'a Padded,
    x: Floats,
    w: Floats,
    y: Floats,
    limits: &'a Limits<'a>,
}

impl Call<'_> {
    /// A plane of an image's channel.
    fn channel(&self, image: usize, channel: usize) -> &[f32] {
        let plane = self.shape.input[0] * self.shape.input[1];
        // SAFETY: nothing writes to the input.
        unsafe { self.x.stretch(image * self.shape.channels[0] + channel, plane) }
    }

    /// Some planes of a group's result are added up at a time.
    fn planes<T: Planes>(&self) -> Result<(), Stopped> {
        let (shape, patches) = (self.shape, &self.padded.patches);
        let (outputs, depth) = (shape.channels[1] / shape.groups, patches.planes * patches.offsets.len());
        let pixels = patches.size[0] * patches.size[1];
        threads::try_each(shape.images * shape.groups, |task| {
            self.limits.begin().check()?;
            let (image, group) = (task / shape.groups, task % shape.groups);
            let floats = patches.planes * patches.plane;
            product::with_scratch([floats + BEHIND, 0], |[planes, _]| {
                for (channel, to) in planes[..floats].chunks_exact_mut(patches.plane).enumerate() {
                    self.padded.fill(shape, self.channel(image, group * patches.planes + channel), to);
                }
                for first in (0..outputs).step_by(TOGETHER) {
                    let output = group * outputs + first;
                    // SAFETY: the bindings hold the planes and weights; a task has planes of its own.
                    unsafe {
                        let weights = self.w.at(output * depth).cast_const();
                        let to = self.y.at((image * shape.channels[1] + output) * pixels);
                        T::planes(planes.as_ptr(), patches, weights, to, TOGETHER.min(outputs - first));
                    }
                }
            });
            Ok(())
        })
    }

    /// Products with what the weights meet.
    fn products<T: Planes>(&self, keeper: Option<&Arc<Keeper>>) -> Result<(), Stopped> {
        let (shape, patches) = (self.shape, &self.padded.patches);
        let (outputs, depth) = (shape.channels[1] / shape.groups, patches.planes * patches.offsets.len());
        let panels = (patches.size[0] * patches.size[1]).div_ceil(T::TILE[1]);
        let (strip, all) = (product::strip_floats::<T>(depth) / 16, outputs.div_ceil(T::TILE[0]));
        // Rows a power of two apart would share a set of the first cache.
        let pack = panels * shape.images >= PACKING_PAYS || depth.is_multiple_of(1024);
        let whole = shape.groups * all * strip;
        let fill = |left: &mut [Line]| {
            threads::each_chunk(left, strip, |place, to| {
                let (group, place) = (place / all, place % all);
                // SAFETY: the binding holds the weights of all groups.
                unsafe { product::pack_strip::<T>(self.weights(group), [outputs, depth], place, to) };
            });
        };
        let multiplied = |left: Option<&[Line]>| {
            let apart = shape.images >= threads::count();
            spread(apart, shape.images, |image| {
                let channels = shape.channels[0];
                product::with_scratch([channels * patches.plane + BEHIND, 0], |[planes, _]| {
                    let whole = &mut planes[..channels * patches.plane];
                    if apart {
                        let planes = whole.chunks_exact_mut(patches.plane).enumerate();
                        planes.for_each(|(channel, to)| self.padded.fill(shape, self.channel(image, channel), to));
                    } else {
                        threads::each_chunk(whole, patches.plane, |channel, to| {
                            self.padded.fill(shape, self.channel(image, channel), to);
                        });
                    }
                    // Some tasks of equal size for each thread, by rows where there are few panels.
                    let wanted = if apart { 1 } else { (4 * threads::count()).div_ceil(shape.groups) };
                    let blocks = panels.div_ceil(PANELS).max(wanted.min(panels));
                    let each = panels.div_ceil(blocks);
                    let parts = wanted.div_ceil(blocks).min(all);
                    let rows = all.div_ceil(parts);
                    spread(!apart, shape.groups * blocks * parts, |task| {
                        let (group, rest) = (task / (blocks * parts), task % (blocks * parts));
                        let (block, part) = (rest / parts, rest % parts);
                        let strips = (part * rows).min(all)..(part * rows + rows).min(all);
                        let panels = (block * each).min(panels)..(block * each + each).min(panels);
                        let packed = left.map(|left| &left[group * all * strip..]);
                        self.multiply::<T>([image, group], planes, (packed, strip), strips, panels)
                    })
                })
            })
        };
        if let Some(keeper) = keeper {
            let form = ("strips", TypeId::of::<T>(), [outputs, depth, shape.groups], [self.w.start().addr(), 0, 0]);
            if let Some(kept) = product::kept(keeper, form, whole, fill) {
                return multiplied(Some(&kept));
            }
        }
        if !pack {
            return multiplied(None);
        }
        product::with_left(whole * 16, |left| {
            fill(left);
            multiplied(Some(left))
        })
    }

    /// The weights of a group as they lie.
    fn weights(&self, group: usize) -> Matrix<*const f32> {
        let depth = self.padded.patches.planes * self.padded.patches.offsets.len();
        let outputs = self.shape.channels[1] / self.shape.groups;
        // SAFETY: the binding holds the weights of all groups.
        let start = unsafe { self.w.at(group * outputs * depth).cast_const() };
        Matrix { start, row: depth, column: 1 }
    }

    /// Some strips of a group's outputs at some panels of pixels.
    fn multiply<T: Planes>(
        &self,
        [image, group]: [usize; 2],
        planes: &[f32],
        (packed, strip_lines): (Option<&[Line]>, usize),
        strips: Range<usize>,
        panels: Range<usize>,
    ) -> Result<(), Stopped> {
        let (shape, patches, [tall, wide]) = (self.shape, &self.padded.patches, T::TILE);
        let (outputs, depth) = (shape.channels[1] / shape.groups, patches.planes * patches.offsets.len());
        let pixels = patches.size[0] * patches.size[1];
        let image_at = planes[group * patches.planes * patches.plane..].as_ptr();
        let weights = self.weights(group);
        let most = LAID_OUT / wide;
        product::with_right(PANELS * most * wide, |lines| {
            let laid_out: *mut f32 = lines.as_mut_ptr().cast();
            for first in panels.clone().step_by(PANELS) {
                self.limits.begin().check()?;
                let here = first..(first + PANELS).min(panels.end);
                let mut runs_of: [Vec<Run>; PANELS] = [const { Vec::new() }; PANELS];
                for (panel, to) in here.clone().zip(&mut runs_of) {
                    *to = runs(patches, panel * wide, wide.min(pixels - panel * wide));
                }
                for term in (0..depth).step_by(most) {
                    let terms = most.min(depth - term);
                    // SAFETY: the scratch holds the planes and what is read behind them; the panels have room for the terms; a strip has all
                    // terms; each task has rows and columns of the result to itself.
                    unsafe {
                        for (place, runs) in runs_of.iter().enumerate().take(here.len()) {
                            T::lay_out(image_at, patches, term..term + terms, runs, laid_out.add(place * most * wide));
                        }
                        for (place, panel) in here.clone().enumerate() {
                            let column = panel * wide;
                            let b = (laid_out.add(place * most * wide).cast_const(), wide);
                            for strip in strips.clone() {
                                let row = strip * tall;
                                let a = packed.map_or_else(
                                    || Matrix { start: weights.start.add(row * depth + term), ..weights },
                                    |lines| {
                                        let start = lines[strip * strip_lines..].as_ptr().cast::<f32>();
                                        Matrix { start: start.add(term * tall), row: 1, column: tall }
                                    },
                                );
                                let plane = image * shape.channels[1] + group * outputs + row;
                                let c = (self.y.at(plane * pixels + column), pixels);
                                let size = [tall.min(outputs - row), wide.min(pixels - column)];
                                T::tile(terms, a, b, c, size, Begin { line: None, add: term > 0 });
                            }
                        }
                    }
                }
            }
            Ok(())
        })
    }
}
