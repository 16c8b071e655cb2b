//! The part of an image that a convolution's weights apply to: laid out for a tile, or added up in place.

use std::ops::Range;

use super::registers::Lanes;

/// Whole vectors are read: up to this many floats behind the last used one must be readable.
pub(super) const BEHIND: usize = 32;
/// Planes of the result that are added up together.
pub(super) const TOGETHER: usize = 4;

/// The places of an image, with its zeros, that one group's weights apply to.
pub(super) struct Patches {
    /// The distance of each weight of a plane from the first.
    pub(super) offsets: Vec<usize>,
    /// Planes that a group reads.
    pub(super) planes: usize,
    /// The distance from one plane to the next.
    pub(super) plane: usize,
    /// The distance from one row of the result to the next.
    pub(super) row: usize,
    /// Rows and columns of the result.
    pub(super) size: [usize; 2],
}

/// Pixels of the result that lie side by side: from where the first weight is at the first of them, to its place in a panel.
pub(super) struct Run {
    pub(super) from: usize,
    pub(super) at: usize,
    pub(super) length: usize,
}

/// Copies the pixels that some of a group's weights are multiplied with to a panel, `W` floats for each weight.
///
/// # Safety
/// The processor has the set. `image` is a group's first plane; whatever runs and patches reach may be read, and [`BEHIND`] floats more. `to` has room.
#[inline(always)]
pub(super) unsafe fn lay_out<I: Lanes, const W: usize>(
    image: *const f32,
    patches: &Patches,
    weights: Range<usize>,
    runs: &[Run],
    to: *mut f32,
) {
    let count = patches.offsets.len();
    let (mut plane, mut place) = (weights.start / count, weights.start % count);
    // SAFETY: what runs and patches reach may be read, and `to` has room (this function's contract). What is copied beyond a run is written
    // again by the next one, or the next weight's; the last weight's are copied by themselves.
    unsafe {
        for at in 0..weights.len() {
            let from = image.add(plane * patches.plane + *patches.offsets.get_unchecked(place));
            let to = to.add(at * W);
            if at + 1 == weights.len() {
                for run in runs {
                    from.add(run.from).copy_to_nonoverlapping(to.add(run.at), run.length);
                }
                return;
            }
            for run in runs {
                let (from, to) = (from.add(run.from), to.add(run.at));
                let mut at = 0;
                while at < run.length {
                    I::store(to.add(at), I::load(from.add(at)));
                    at += I::LANES;
                }
            }
            place += 1;
            if place == count {
                (plane, place) = (plane + 1, 0);
            }
        }
    }
}

/// `R` planes of the result, from a group's planes as they lie.
///
/// # Safety
/// The processor has the set. Whatever the patches reach from `image` may be read, and [`BEHIND`] floats more; there are weights for all planes, and `to` is
/// the whole of them.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined would take registers to memory")]
pub(super) unsafe fn planes<I: Lanes, const R: usize>(
    image: *const f32,
    patches: &Patches,
    weights: *const f32,
    to: *mut f32,
) {
    let [rows, columns] = patches.size;
    let count = patches.offsets.len();
    let depth = patches.planes * count;
    let offsets = patches.offsets.as_ptr();
    // SAFETY: what patches reach may be read, and `to` has all planes (this function's contract). What is stored beyond a row is stored
    // again with the next; at a plane's end only what is part of it.
    unsafe {
        for row in 0..rows {
            let mut at = 0;
            while at < columns {
                let mut sums = [[I::zero(); 2]; R];
                // A `while` loop for the same reason as in the tiles of a product: see `tiles`.
                let mut plane = 0;
                while plane < patches.planes {
                    let from = image.wrapping_add(plane * patches.plane + row * patches.row + at);
                    let mut place = 0;
                    while place < count {
                        let from = from.wrapping_add(*offsets.add(place));
                        let values = [I::load(from), I::load(from.wrapping_add(I::LANES))];
                        let mut output = 0;
                        while output < R {
                            let weight = I::splat(weights.wrapping_add(output * depth + plane * count + place));
                            sums[output][0] = I::multiply_add(weight, values[0], sums[output][0]);
                            sums[output][1] = I::multiply_add(weight, values[1], sums[output][1]);
                            output += 1;
                        }
                        place += 1;
                    }
                    plane += 1;
                }
                for half in 0..2 {
                    let left = (rows - row) * columns - at.min(columns);
                    for output in 0..R {
                        let to = to.add((output * rows + row) * columns + at);
                        if at >= columns {
                            break;
                        } else if left >= I::LANES {
                            I::store(to, sums[output][half]);
                        } else {
                            let mut lanes = [0.0_f32; 16];
                            I::store(lanes.as_mut_ptr(), sums[output][half]);
                            lanes.as_ptr().copy_to_nonoverlapping(to, left);
                        }
                    }
                    at += I::LANES;
                }
            }
        }
    }
}
