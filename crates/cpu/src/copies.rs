//! Copies of views: elements of 1, 2, 4 or 8 bytes in another order, into contiguous memory.

use super::floats::Floats;
use crate::backend::native::{AssembleShape, CopyShape};
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Sides of a block that is turned in the first cache: a line in memory each way.
const SIDE: usize = 16;
/// Elements that a task copies at least.
const TASK: usize = 1 << 14;

/// Elements that a task copies of a run.
const RUN: usize = 1 << 14;

/// Returns the number of words that hold this number of elements.
pub(super) fn words(shape: &CopyShape, elements: usize) -> Option<usize> {
    Some(elements.checked_mul(shape.bytes)?.div_ceil(4))
}

/// Words of the source that are reached, and of the copy.
pub(super) fn word_sizes(shape: &CopyShape) -> Option<[usize; 2]> {
    let [reach, count] = sizes(shape)?;
    Some([words(shape, reach)?, words(shape, count)?])
}

/// Elements of the source that are reached, and of the copy.
pub(super) fn sizes(shape: &CopyShape) -> Option<[usize; 2]> {
    let count = shape.sides.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))?;
    if shape.sides.len() != shape.strides.len() || count == 0 {
        return None;
    }
    let reach = shape
        .sides
        .iter()
        .zip(&shape.strides)
        .try_fold(shape.offset, |reach, (&side, &stride)| reach.checked_add((side - 1).checked_mul(stride)?))?;
    Some([reach.checked_add(1)?, count])
}

/// Words of each part's source that are reached, and of the whole.
pub(super) fn whole_sizes(shape: &AssembleShape) -> Option<Vec<usize>> {
    let count = shape.sides.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))?;
    let reach = |(part, at): &(CopyShape, Vec<usize>)| {
        let alike = part.sides.len() == shape.sides.len() && at.len() == shape.sides.len();
        let mut axes = part.sides.iter().zip(at).zip(&shape.sides);
        let within = alike && axes.all(|((side, at), &whole)| at.checked_add(*side).is_some_and(|end| end <= whole));
        let bytes = shape.parts.first().map(|(first, _)| first.bytes);
        word_sizes(part).filter(|_| within && bytes == Some(part.bytes)).map(|[reach, _]| reach)
    };
    let whole = match shape.parts.first() {
        Some((part, _)) => words(part, count),
        None => Some(count),
    };
    shape.parts.iter().map(reach).chain([whole]).collect()
}

/// Steps of contiguous axes.
fn contiguous(sides: &[usize]) -> Vec<usize> {
    let mut steps = vec![1; sides.len()];
    for axis in (1..sides.len()).rev() {
        steps[axis - 1] = steps[axis] * sides[axis];
    }
    steps
}

/// Axes of a copy: their lengths, steps in the source, and steps in the copy.
#[derive(Clone, Copy)]
struct Axis {
    side: usize,
    from: usize,
    to: usize,
}

/// The axes from the innermost on, those joined that lie one behind the other in both.
fn axes(shape: &CopyShape, steps: &[usize]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for ((&side, &from), &to) in shape.sides.iter().zip(&shape.strides).zip(steps).rev() {
        match axes.last_mut() {
            _ if side == 1 => {}
            Some(inner) if from == inner.from * inner.side && to == inner.to * inner.side => inner.side *= side,
            _ => axes.push(Axis { side, from, to }),
        }
    }
    if axes.is_empty() {
        axes.push(Axis { side: 1, from: 1, to: 1 });
    }
    axes
}

/// Copies; the sizes were checked.
pub(super) fn copy(shape: &CopyShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    copy_any(shape, x, (y, 0, &contiguous(&shape.sides)), limits)
}

/// Copies parts to their places; the sizes were checked.
pub(super) fn assemble(shape: &AssembleShape, bindings: &[Floats], limits: &Limits<'_>) -> Result<(), Stopped> {
    let [parts @ .., whole] = bindings else { return Ok(()) };
    let steps = contiguous(&shape.sides);
    for ((part, at), x) in shape.parts.iter().zip(parts) {
        let to = at.iter().zip(&steps).map(|(at, step)| at * step).sum();
        copy_any(part, *x, (*whole, to, &steps), limits)?;
    }
    Ok(())
}

/// Copies to elements from `start` on, so far apart along each axis.
fn copy_any(shape: &CopyShape, x: Floats, to: (Floats, usize, &[usize]), limits: &Limits<'_>) -> Result<(), Stopped> {
    match shape.bytes {
        1 => copy_to::<u8>(shape, x, to, limits),
        2 => copy_to::<u16>(shape, x, to, limits),
        8 => copy_to::<u64>(shape, x, to, limits),
        _ => copy_to::<u32>(shape, x, to, limits),
    }
}

fn copy_to<T: Copy + Default>(
    shape: &CopyShape,
    x: Floats,
    (y, start, steps): (Floats, usize, &[usize]),
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let mut outer = axes(shape, steps);
    let inner = outer.remove(0);
    // The axis whose elements lie side by side in the source, where that is not the innermost.
    let turned = outer.iter().position(|axis| axis.from == 1).filter(|_| inner.from > 1 && inner.to == 1);
    let across = turned.map_or(Axis { side: 1, from: 0, to: 0 }, |at| outer.remove(at));
    // A long run is copied in pieces.
    let is_run = inner.from == 1 && inner.to == 1;
    let pieces = if is_run { inner.side.div_ceil(RUN) } else { across.side.div_ceil(SIDE) };
    let rows = outer.iter().map(|axis| axis.side).product::<usize>() * pieces;
    let elements = if is_run { inner.side.min(RUN) } else { inner.side * across.side.min(SIDE) };
    let together = (TASK / elements.max(1)).max(1);
    threads::try_each(rows.div_ceil(together), |task| {
        limits.begin().check()?;
        for row in task * together..rows.min((task + 1) * together) {
            let (mut rest, piece) = (row / pieces, row % pieces);
            let (mut from, mut to) = (shape.offset, start);
            for axis in &outer {
                let at = rest % axis.side;
                rest /= axis.side;
                (from, to) = (from + at * axis.from, to + at * axis.to);
            }
            // SAFETY: `sizes` found every element within the bindings; rows are distinct parts of the copy.
            unsafe {
                let (x, y) = (x.start().cast::<T>().add(from), y.start().cast::<T>().add(to));
                if is_run {
                    let first = piece * RUN;
                    x.add(first).copy_to_nonoverlapping(y.add(first), RUN.min(inner.side - first));
                } else if turned.is_some() {
                    let first = piece * SIDE;
                    let across = Axis { side: SIDE.min(across.side - first), ..across };
                    turn(x.add(first * across.from), y.add(first * across.to), inner, across);
                } else {
                    for at in 0..inner.side {
                        y.add(at * inner.to).write(x.add(at * inner.from).read());
                    }
                }
            }
        }
        Ok(())
    })
}

/// Copies a band of at most [`SIDE`] elements that lie side by side in the source, and as many rows of the copy. Through a small block: every line of
/// memory is met once, also where the steps are powers of two and lines would drive each other out of the cache.
///
/// # Safety
/// The axes lie within the source and the copy.
unsafe fn turn<T: Copy + Default>(x: *const T, y: *mut T, inner: Axis, across: Axis) {
    let mut block = [[T::default(); SIDE]; SIDE];
    for first in (0..inner.side).step_by(SIDE) {
        let count = SIDE.min(inner.side - first);
        // SAFETY: the caller's promise.
        unsafe {
            if count == SIDE && across.side == SIDE {
                for (at, line) in block.iter_mut().enumerate() {
                    let from = x.add((first + at) * inner.from);
                    *line = from.cast::<[T; SIDE]>().read_unaligned();
                }
                (0..SIDE).for_each(|at| {
                    let line: [T; SIDE] = std::array::from_fn(|place| block[place][at]);
                    y.add(at * across.to + first).cast::<[T; SIDE]>().write_unaligned(line);
                });
            } else {
                for at in 0..across.side {
                    for place in first..first + count {
                        y.add(at * across.to + place).write(x.add(place * inner.from + at).read());
                    }
                }
            }
        }
    }
}
