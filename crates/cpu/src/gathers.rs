//! Elements at places that another tensor names. Serves gathers along an axis, and the greatest of indices, by which the engine reports what is out of
//! range. Here such an index is only moved to the last element (`place`): results are defined, and the error comes from the check.

use std::sync::atomic::{AtomicU32, Ordering};

use super::copies;
use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{COPIES_PAY, Call, GATHERS_PAY, Operation, Work, exactly};
use crate::backend::native::{GatherShape, GreatestShape};
use crate::spmd::math::Isa;
use crate::spmd::{Limits, Stopped};
use crate::threads;
use cantus_base::memory;

/// Elements that are looked up together.
const LANES: usize = 64;
/// Bytes of a run that is copied without a call.
const FEW: usize = 128;
/// Elements that a task gathers at least.
const TASK: usize = 1 << 13;

impl Operation for GatherShape {
    fn serves(&self) -> bool {
        self.places.bytes == 4 && matches!(self.from.bytes, 1 | 2 | 4 | 8 | 16)
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        if self.from.sides != self.places.sides || self.length == 0 || i32::try_from(self.length).is_err() {
            return None;
        }
        let [reach, count] = copies::sizes(&self.from)?;
        let reach = reach.checked_add(self.step.checked_mul(self.length - 1)?)?;
        let words = |elements| copies::words(&self.from, elements);
        Some(vec![words(reach)?, copies::sizes(&self.places)?[0], words(count)?])
    }

    fn work(&self) -> Work {
        Work { size: copies::sizes(&self.places).map_or(0, |[_, count]| count), pays: GATHERS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let bindings = exactly(bindings)?;
        Ok(gather(self, bindings, call.limits)?)
    }
}

impl Operation for GreatestShape {
    fn sizes(&self) -> Option<Vec<usize>> {
        Some(vec![self.count, 1])
    }

    fn work(&self) -> Work {
        Work { size: self.count, pays: COPIES_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = exactly(bindings)?;
        Ok(greatest(self, x, y, call.limits)?)
    }
}

/// An axis: its length, and its steps in what is read and in the places.
#[derive(Clone, Copy)]
struct Axis {
    side: usize,
    from: usize,
    places: usize,
}

/// The greatest of words; the sizes were checked.
fn greatest(shape: &GreatestShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let found = AtomicU32::new(0);
    let together = 8 * TASK;
    threads::try_each::<Stopped>(shape.count.div_ceil(together), |task| {
        limits.begin().check()?;
        let first = task * together;
        // SAFETY: the binding has these words, and nothing writes to it.
        let words = unsafe {
            std::slice::from_raw_parts(x.start().cast::<u32>().add(first), together.min(shape.count - first))
        };
        found.fetch_max(greatest_of(words, shape.more), Ordering::Relaxed);
        Ok::<(), Stopped>(())
    })?;
    // SAFETY: the binding has one word, and nothing else writes to it.
    unsafe { y.start().cast::<u32>().write(found.into_inner()) };
    Ok(())
}

forms! {
    /// The greatest of words, with `more` added to each.
    fn greatest_of(words: &[u32], more: u32) -> u32 = greatest_by
}

#[inline(always)]
fn greatest_by<S: Isa>(words: &[u32], more: u32) -> u32 {
    words.iter().fold(0, |greatest, word| greatest.max(word.wrapping_add(more)))
}

/// Gathers; the sizes were checked.
fn gather(shape: &GatherShape, bindings: [Floats; 3], limits: &Limits<'_>) -> Result<(), Stopped> {
    match shape.from.bytes {
        1 => gather_of(shape, bindings, limits, pick_bytes),
        2 => gather_of(shape, bindings, limits, pick_halves),
        8 => gather_of(shape, bindings, limits, pick_pairs),
        16 => gather_of(shape, bindings, limits, pick_fours),
        _ => gather_of(shape, bindings, limits, pick_words),
    }
}

/// Elements that words name.
type Pick<T> = unsafe fn(&mut [T], (*const u32, usize), *const T, [usize; 2], usize, bool);

fn gather_of<T: Copy>(
    shape: &GatherShape,
    [x, places, y]: [Floats; 3],
    limits: &Limits<'_>,
    pick: Pick<T>,
) -> Result<(), Stopped> {
    // From the innermost axis out. Axes that are contiguous in both are joined.
    let mut axes: Vec<Axis> = Vec::new();
    for (axis, &side) in shape.from.sides.iter().enumerate().rev() {
        let (from, places) = (shape.from.strides[axis], shape.places.strides[axis]);
        match axes.last_mut() {
            _ if side == 1 => {}
            Some(inner) if from == inner.from * inner.side && places == inner.places * inner.side => inner.side *= side,
            _ => axes.push(Axis { side, from, places }),
        }
    }
    let (inner, outer) =
        axes.split_first().map_or((Axis { side: 1, from: 0, places: 0 }, &[][..]), |(inner, outer)| (*inner, outer));
    let rows: usize = outer.iter().map(|axis| axis.side).product();
    let pieces = inner.side.div_ceil(TASK);
    let together = threads::share(rows * pieces, (TASK / inner.side).max(1));
    let (step, length, signed) = (shape.step, shape.length, shape.signed);
    threads::try_each((rows * pieces).div_ceil(together), |task| {
        limits.begin().check()?;
        let (first, end) = (task * together, (rows * pieces).min((task + 1) * together));
        if let ([axis], (1, 0), 1) = (outer, (inner.from, inner.places), pieces) {
            // SAFETY: `sizes` found every element within the bindings, whatever the places are; rows are distinct parts of the result.
            unsafe {
                let mut to = y.start().cast::<T>().add(first * inner.side);
                let bytes = inner.side * size_of::<T>();
                for row in first..end {
                    let word = places.at(shape.places.offset + row * axis.places).cast::<u32>().cast_const().read();
                    let from = shape.from.offset + row * axis.from + place(word, length, signed) * step;
                    let x = x.start().cast::<T>().cast_const().add(from);
                    if bytes <= FEW {
                        copy_few(x.cast(), to.cast(), bytes);
                    } else {
                        memory::copy(x, to, inner.side);
                    }
                    to = to.add(inner.side);
                }
            }
            return Ok(());
        }
        for row in first..end {
            let (mut rest, first) = (row / pieces, row % pieces * TASK);
            let count = TASK.min(inner.side - first);
            let (mut from, mut at) =
                (shape.from.offset + first * inner.from, shape.places.offset + first * inner.places);
            for axis in outer {
                (from, at) = (from + rest % axis.side * axis.from, at + rest % axis.side * axis.places);
                rest /= axis.side;
            }
            // SAFETY: `sizes` found every element within the bindings, whatever the places are; rows are distinct parts of the result.
            unsafe {
                let x = x.start().cast::<T>().cast_const();
                let to = y.start().cast::<T>().add(row / pieces * inner.side + first);
                let to = std::slice::from_raw_parts_mut(to, count);
                let words = places.at(at).cast::<u32>().cast_const();
                match (inner.from, inner.places) {
                    (1, 0) => {
                        let place = place(words.read(), length, signed) * step;
                        memory::copy(x.add(from + place), to.as_mut_ptr(), count);
                    }
                    (beside, apart @ (1 | 2)) => pick(to, (words, apart), x.add(from), [beside, step], length, signed),
                    (beside, apart) => {
                        for (i, to) in to.iter_mut().enumerate() {
                            let place = place(words.add(i * apart).read(), length, signed);
                            *to = x.add(from + i * beside + place * step).read();
                        }
                    }
                }
            }
        }
        Ok(())
    })
}

/// Copies up to [`FEW`] bytes, the last ones of a width together with some of those before.
///
/// # Safety
/// They lie there on both sides, which do not overlap.
#[inline(always)]
unsafe fn copy_few(from: *const u8, to: *mut u8, bytes: usize) {
    /// # Safety
    /// As [`copy_few`]; there are at least as many bytes as `W` has.
    #[inline(always)]
    unsafe fn by<W: Copy>(from: *const u8, to: *mut u8, bytes: usize) {
        let (mut at, last) = (0, bytes - size_of::<W>());
        // SAFETY: `at` and `last` leave room for a `W` (this function's contract).
        unsafe {
            while at < last {
                to.add(at).cast::<W>().write_unaligned(from.add(at).cast::<W>().read_unaligned());
                at += size_of::<W>();
            }
            to.add(last).cast::<W>().write_unaligned(from.add(last).cast::<W>().read_unaligned());
        }
    }
    // SAFETY: the bytes lie there (this function's contract), at least as many as the width has.
    unsafe {
        match bytes {
            16.. => by::<[u64; 2]>(from, to, bytes),
            8.. => by::<u64>(from, to, bytes),
            4.. => by::<u32>(from, to, bytes),
            2.. => by::<u16>(from, to, bytes),
            1 => by::<u8>(from, to, bytes),
            0 => {}
        }
    }
}

/// The index that a word stands for. A negative one counts from the end; any that is out of range is held within the axis. Unsigned words have no negative
/// ones: a large word is the last element.
#[inline(always)]
fn place(word: u32, length: usize, signed: bool) -> usize {
    let last = (length - 1) as i32;
    if signed {
        let place = word.cast_signed();
        let place = if place < 0 { place.saturating_add(last + 1) } else { place };
        return place.clamp(0, last) as usize;
    }
    word.min(last as u32) as usize
}

/// Defines functions that read one element for each word, in a form for each instruction set. `x` is the first element, a word is one index or the low half of
/// one, and `steps` are the distances between elements and between indices.
macro_rules! picks {
    ($($name:ident $body:ident $element:ty),*) => {$(
        forms! {
            /// Reads an element for each word.
            ///
            /// # Safety
            /// There is a word for each element of `to`, and every place has its element: the one at `beside` times the word's number plus `step` times the place (`steps`), counted from `x`.
            unsafe fn $name(
                to: &mut [$element],
                words: (*const u32, usize),
                x: *const $element,
                steps: [usize; 2],
                length: usize,
                signed: bool,
            ) = $body
        }

        /// # Safety
        /// As the form that calls it.
        #[inline(always)]
        unsafe fn $body<I>(
            to: &mut [$element],
            words: (*const u32, usize),
            x: *const $element,
            steps: [usize; 2],
            length: usize,
            signed: bool,
        ) {
            // SAFETY: the words lie there, and every place has its element (this function's contract).
            unsafe { pick(to, words, x, steps, length, signed) }
        }
    )*};
}

picks!(
    pick_bytes bytes_by u8, pick_halves halves_by u16, pick_words words_by u32, pick_pairs pairs_by u64,
    pick_fours fours_by [u64; 2]
);

/// Computes places first, then reads elements, so that several reads are in flight at once.
///
/// # Safety
/// As the forms of `picks!`.
#[inline(always)]
unsafe fn pick<T: Copy>(
    to: &mut [T],
    (words, apart): (*const u32, usize),
    x: *const T,
    [beside, step]: [usize; 2],
    length: usize,
    signed: bool,
) {
    for (line, to) in to.chunks_mut(LANES).enumerate() {
        let mut offsets = [0; LANES];
        // SAFETY: there is a word for each element (this function's contract).
        let word = |lane: usize, apart: usize| unsafe { words.add((line * LANES + lane) * apart).read() };
        let offset = |lane: usize, word: u32| (line * LANES + lane) * beside + place(word, length, signed) * step;
        let offsets = &mut offsets[..to.len()];
        if apart == 1 {
            offsets.iter_mut().enumerate().for_each(|(lane, at)| *at = offset(lane, word(lane, 1)));
        } else {
            offsets.iter_mut().enumerate().for_each(|(lane, at)| *at = offset(lane, word(lane, 2)));
        }
        for (to, &offset) in to.iter_mut().zip(&*offsets) {
            // SAFETY: every place has its element (this function's contract).
            *to = unsafe { x.add(offset).read() };
        }
    }
}
