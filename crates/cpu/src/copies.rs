//! Copies of views: elements of 1, 2, 4, 8 or 16 bytes in another order, into contiguous memory. Serves views that must become contiguous, concatenations
//! (`AssembleShape`) and transposes before chains. Contiguous axes are joined first, so a whole copy becomes runs. Where the innermost axis of the copy is
//! far apart in the source, blocks of 16 by 16 or so are turned in the first cache.

use super::chain::pairs::every_second_of;
use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{COPIES_PAY, Call, Operation, Work, exactly, unlike};
use crate::backend::native::{AssembleShape, CopyShape};
use crate::spmd::{Limits, Stopped};
use crate::threads;
use cantus_base::memory;

/// Rows that are few, of every second element.
const FEW: usize = 16;
/// Elements of a piece that is transposed, across and along: it is read from few pages at a time, whose addresses the processor keeps.
const WIDE: usize = 64;
const LONG: usize = 1 << 9;
/// Elements that a task copies at least; of runs, words.
const TASK: usize = 1 << 14;

/// Words that a task copies of a run.
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

impl Operation for CopyShape {
    fn serves(&self) -> bool {
        matches!(self.bytes, 1 | 2 | 4 | 8 | 16)
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        word_sizes(self).map(Vec::from)
    }

    fn work(&self) -> Work {
        Work { size: sizes(self).map_or(0, |[_, count]| count), pays: COPIES_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = exactly(bindings)?;
        Ok(copy_all(&[Part::new(self, x, 0, &contiguous(&self.sides))], self.bytes, y, call.limits)?)
    }
}

impl Operation for AssembleShape {
    fn serves(&self) -> bool {
        self.parts.iter().all(|(part, _)| part.serves())
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        // Words of each part's source that are reached, and of the whole.
        let count = self.sides.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))?;
        let reach = |(part, at): &(CopyShape, Vec<usize>)| {
            let alike = part.sides.len() == self.sides.len() && at.len() == self.sides.len();
            let mut axes = part.sides.iter().zip(at).zip(&self.sides);
            let within =
                alike && axes.all(|((side, at), &whole)| at.checked_add(*side).is_some_and(|end| end <= whole));
            let bytes = self.parts.first().map(|(first, _)| first.bytes);
            word_sizes(part).filter(|_| within && bytes == Some(part.bytes)).map(|[reach, _]| reach)
        };
        let whole = match self.parts.first() {
            Some((part, _)) => words(part, count),
            None => Some(count),
        };
        self.parts.iter().map(reach).chain([whole]).collect()
    }

    fn work(&self) -> Work {
        Work { size: self.sizes().and_then(|sizes| sizes.last().copied()).unwrap_or(0), pays: COPIES_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [parts @ .., whole] = bindings else { return Err(unlike()) };
        let steps = contiguous(&self.sides);
        let parts = self.parts.iter().zip(parts).map(|((part, at), x)| {
            let to = at.iter().zip(&steps).map(|(at, step)| at * step).sum();
            Part::new(part, *x, to, &steps)
        });
        let bytes = self.parts.first().map_or(4, |(part, _)| part.bytes);
        Ok(copy_all(&parts.collect::<Vec<_>>(), bytes, *whole, call.limits)?)
    }
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

/// The axes from the innermost out. Axes that are contiguous in both are joined.
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

/// A copy of a view to elements from one on, so far apart along each axis.
struct Part {
    x: Floats,
    /// The first element of the source, and of the copy.
    from: usize,
    to: usize,
    inner: Axis,
    /// The axis whose elements lie side by side in the source, where that is not the innermost.
    across: Option<Axis>,
    outer: Vec<Axis>,
    is_run: bool,
    /// Pieces that a row is copied in, those of them along the innermost axis, rows of pieces, and those that a task copies.
    pieces: usize,
    along: usize,
    rows: usize,
    together: usize,
}

impl Part {
    fn new(shape: &CopyShape, x: Floats, to: usize, steps: &[usize]) -> Self {
        let mut outer = axes(shape, steps);
        let inner = outer.remove(0);
        let turned = outer.iter().position(|axis| axis.from == 1).filter(|_| inner.from > 1 && inner.to == 1);
        let across = turned.map(|at| outer.remove(at));
        // A long run is copied in pieces.
        let is_run = inner.from == 1 && inner.to == 1;
        let (task, run) = if is_run { (TASK * 4 / shape.bytes, RUN * 4 / shape.bytes) } else { (TASK, RUN) };
        let side = across.map_or(1, |across| across.side);
        let along = if across.is_some() { inner.side.div_ceil(LONG) } else { 1 };
        let pieces = if is_run { inner.side.div_ceil(run) } else { side.div_ceil(WIDE) * along };
        let rows = outer.iter().map(|axis| axis.side).product::<usize>() * pieces;
        let elements = if is_run { inner.side.min(run) } else { inner.side.min(LONG) * side.min(WIDE) };
        let together = (task / elements.max(1)).max(1);
        Self { x, from: shape.offset, to, inner, across, outer, is_run, pieces, along, rows, together }
    }

    fn tasks(&self) -> usize {
        self.rows.div_ceil(self.together)
    }

    /// Copies the rows of a task.
    ///
    /// # Safety
    /// Every element lies within the source and the copy, and nobody else touches those of the copy.
    unsafe fn copy<T: Copy>(&self, task: usize, y: Floats) {
        let Self { inner, pieces, along, .. } = *self;
        let run = RUN * 4 / size_of::<T>();
        let rows = task * self.together..self.rows.min((task + 1) * self.together);
        if let ([axis], true) = (&*self.outer, pieces == 1 && !self.is_run && self.across.is_none() && inner.side < FEW)
        {
            for row in rows {
                // SAFETY: every element of the task's rows lies within both, and nothing else touches those of the copy (this function's contract).
                unsafe {
                    let x = self.x.start().cast::<T>().add(self.from + row * axis.from);
                    let y = y.start().cast::<T>().add(self.to + row * axis.to);
                    (0..inner.side).for_each(|at| y.add(at * inner.to).write(x.add(at * inner.from).read()));
                }
            }
            return;
        }
        for row in rows {
            let (mut rest, piece) = if pieces == 1 { (row, 0) } else { (row / pieces, row % pieces) };
            let (mut from, mut to) = (self.from, self.to);
            let last = self.outer.len().saturating_sub(1);
            for (place, axis) in self.outer.iter().enumerate() {
                // What is left is within the last axis.
                let at = if place == last { rest } else { rest % axis.side };
                rest = if place == last { 0 } else { rest / axis.side };
                (from, to) = (from + at * axis.from, to + at * axis.to);
            }
            // SAFETY: every element of the task's rows lies within both, and nothing else touches those of the copy (this function's contract).
            unsafe {
                let (x, y) = (self.x.start().cast::<T>().add(from), y.start().cast::<T>().add(to));
                if self.is_run {
                    let first = piece * run;
                    memory::copy(x.add(first), y.add(first), run.min(inner.side - first));
                } else if let Some(across) = self.across {
                    let (first, begin) = (piece / along * WIDE, piece % along * LONG);
                    let side = WIDE.min(across.side - first);
                    let part = Axis { side: LONG.min(inner.side - begin), ..inner };
                    let x = x.add(first * across.from + begin * inner.from);
                    turn(x, y.add(first * across.to + begin), part, Axis { side, ..across });
                } else if (inner.from, inner.to) == (2, 1) && inner.side >= FEW {
                    every_second_of(x, std::slice::from_raw_parts_mut(y, inner.side));
                } else {
                    for at in 0..inner.side {
                        y.add(at * inner.to).write(x.add(at * inner.from).read());
                    }
                }
            }
        }
    }
}

/// Copies parts of one size of elements, all at once.
fn copy_all(parts: &[Part], bytes: usize, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    match bytes {
        1 => copy_to::<u8>(parts, y, limits),
        2 => copy_to::<u16>(parts, y, limits),
        8 => copy_to::<u64>(parts, y, limits),
        16 => copy_to::<[u64; 2]>(parts, y, limits),
        _ => copy_to::<u32>(parts, y, limits),
    }
}

fn copy_to<T: Copy>(parts: &[Part], y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    threads::try_each(parts.iter().map(Part::tasks).sum(), |mut task| {
        limits.begin().check()?;
        for part in parts {
            if task < part.tasks() {
                // SAFETY: `sizes` found every element within the bindings; parts and rows are distinct parts of the copy.
                unsafe { part.copy::<T>(task, y) };
                break;
            }
            task -= part.tasks();
        }
        Ok(())
    })
}

/// Transposes a piece whose elements lie side by side across in the source and along in the copy.
///
/// # Safety
/// The axes lie within the source and the copy.
unsafe fn turn<T: Copy>(x: *const T, y: *mut T, along: Axis, across: Axis) {
    // SAFETY: the axes lie within both (this function's contract); numbers of the same size take any bits.
    unsafe {
        match size_of::<T>() {
            4 => turn_words(x.cast(), y.cast(), along, across),
            8 => turn_pairs(x.cast(), y.cast(), along, across),
            1 | 2 => turn_blocks::<T, 16, 16>(x, y, along, across),
            _ => turn_blocks::<T, 8, 4>(x, y, along, across),
        }
    }
}

forms! {
    /// # Safety
    /// As [`turn`].
    unsafe fn turn_words(x: *const u32, y: *mut u32, along: Axis, across: Axis) = words_by
}
forms! {
    /// # Safety
    /// As [`turn`].
    unsafe fn turn_pairs(x: *const u64, y: *mut u64, along: Axis, across: Axis) = pairs_by
}

/// # Safety
/// As [`turn`].
#[inline(always)]
unsafe fn words_by<I>(x: *const u32, y: *mut u32, along: Axis, across: Axis) {
    // SAFETY: as this function's own contract.
    unsafe { turn_blocks::<u32, 8, 4>(x, y, along, across) }
}

/// # Safety
/// As [`turn`].
#[inline(always)]
unsafe fn pairs_by<I>(x: *const u64, y: *mut u64, along: Axis, across: Axis) {
    // SAFETY: as this function's own contract.
    unsafe { turn_blocks::<u64, 8, 4>(x, y, along, across) }
}

/// Transposes blocks of `H` rows of `W` elements in registers, and what is left element by element.
///
/// # Safety
/// As [`turn`].
#[inline(always)]
unsafe fn turn_blocks<T: Copy, const H: usize, const W: usize>(x: *const T, y: *mut T, along: Axis, across: Axis) {
    let (high, wide) = (along.side - along.side % H, across.side - across.side % W);
    // SAFETY: both axes lie within source and copy (this function's contract).
    unsafe {
        let one = |row: usize, column: usize| {
            y.add(column * across.to + row).write(x.add(row * along.from + column).read());
        };
        for row in (0..high).step_by(H) {
            for column in (0..wide).step_by(W) {
                let block: [[T; W]; H] = std::array::from_fn(|line| {
                    x.add((row + line) * along.from + column).cast::<[T; W]>().read_unaligned()
                });
                (0..W).for_each(|at| {
                    let line: [T; H] = std::array::from_fn(|place| block[place][at]);
                    y.add((column + at) * across.to + row).cast::<[T; H]>().write_unaligned(line);
                });
            }
            (wide..across.side).for_each(|column| (row..row + H).for_each(|row| one(row, column)));
        }
        (0..across.side).for_each(|column| (high..along.side).for_each(|row| one(row, column)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_other_sizes_are_refused() {
        let of = |bytes| CopyShape::new(&[4], &[1], 0).of_bytes(bytes);
        assert!([1, 2, 4, 8, 16].map(of).iter().all(CopyShape::serves));
        assert!(![0, 3, 6, 32].map(of).iter().any(CopyShape::serves));
    }
}
