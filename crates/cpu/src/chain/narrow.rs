//! Last steps that write numbers of fewer bytes than lanes have: comparisons to truths, numbers to bytes, float64 to float32, words to their halves.

use crate::backend::native::{One, Step, Two};
use crate::forms::forms;

/// Returns whether a step of 32-bit lanes has a form that writes numbers of these bytes.
pub(super) fn has(step: &Step, bytes: usize) -> bool {
    bytes == 1 && (compares(step) || matches!(step, Step::One(One::SaturatedToByte | One::LowByte, _)))
}

/// Returns whether a step of 64-bit lanes has such a form.
pub(super) fn has_wide(step: &Step, bytes: usize) -> bool {
    has(step, bytes) || bytes == 4 && matches!(step, Step::One(op, _) if writes_words(*op))
}

/// Returns whether a function of wide words gives one of 4 bytes.
fn writes_words(op: One) -> bool {
    matches!(op, One::ToSingle | One::SignedToSingle | One::UnsignedToSingle | One::LowWord)
}

fn compares(step: &Step) -> bool {
    matches!(
        step,
        Step::Two(
            Two::Eq
                | Two::Ne
                | Two::Lt
                | Two::Le
                | Two::Gt
                | Two::Ge
                | Two::WordEq
                | Two::WordNe
                | Two::SignedLt
                | Two::SignedLe
                | Two::UnsignedLt
                | Two::UnsignedLe,
            ..
        )
    )
}

forms! {
    /// # Safety
    /// `count` lanes of what the step reads lie where `at` says, and there is room for as many numbers.
    pub(super) unsafe fn of_words(step: &Step, at: &[*mut f32], count: usize, to: *mut u8) = of_words_by
}
forms! {
    /// # Safety
    /// As [`of_words`].
    pub(super) unsafe fn of_doubles(step: &Step, at: &[*mut f64], count: usize, to: *mut u8) = of_doubles_by
}

/// # Safety
/// As [`of_words`].
#[inline(always)]
unsafe fn of_words_by<I>(step: &Step, at: &[*mut f32], count: usize, to: *mut u8) {
    // SAFETY: the lanes lie there, and there is room for the numbers (this function's contract).
    let (read, to) = unsafe {
        let read = |number: u16| std::slice::from_raw_parts(at[usize::from(number)].cast_const(), count);
        (read, std::slice::from_raw_parts_mut(to, count))
    };
    match *step {
        Step::One(One::LowByte, x) => each(read(x), to, |x| x.to_bits() as u8),
        Step::One(_, x) => each(read(x), to, |x| {
            let within = if x > 0.0 { x } else { 0.0 };
            // SAFETY: NaN and what is less became 0, and what is greater 255.
            unsafe { (if within < 255.0 { within } else { 255.0 }).to_int_unchecked::<i32>() as u8 }
        }),
        Step::Two(op, x, y) => compare(op, [read(x), read(y)], to, f32::to_bits, |x| x.to_bits().cast_signed()),
        _ => {}
    }
}

/// # Safety
/// As [`of_words`].
#[inline(always)]
unsafe fn of_doubles_by<I>(step: &Step, at: &[*mut f64], count: usize, to: *mut u8) {
    // SAFETY: the lanes lie there, and there is room for the numbers (this function's contract).
    let (read, words, to) = unsafe {
        let read = |number: u16| std::slice::from_raw_parts(at[usize::from(number)].cast_const(), count);
        // Only steps to 4 bytes write words.
        let words = |to: *mut u8| std::slice::from_raw_parts_mut(to.cast::<u32>(), count);
        (read, words, to)
    };
    // SAFETY: there is room for `count` numbers of a byte (this function's contract); words and bytes are not both made.
    let bytes = || unsafe { std::slice::from_raw_parts_mut(to, count) };
    match *step {
        Step::One(One::ToSingle, x) => each(read(x), words(to), |x| (x as f32).to_bits()),
        Step::One(One::SignedToSingle, x) => {
            each(read(x), words(to), |x| (x.to_bits().cast_signed() as f32).to_bits());
        }
        Step::One(One::UnsignedToSingle, x) => each(read(x), words(to), |x| (x.to_bits() as f32).to_bits()),
        Step::One(One::LowWord, x) => each(read(x), words(to), |x| x.to_bits() as u32),
        Step::One(One::LowByte, x) => each(read(x), bytes(), |x| x.to_bits() as u8),
        Step::One(_, x) => each(read(x), bytes(), |x| {
            let within = if x > 0.0 { x } else { 0.0 };
            // SAFETY: NaN and what is less became 0, and what is greater 255.
            unsafe { (if within < 255.0 { within } else { 255.0 }).to_int_unchecked::<i32>() as u8 }
        }),
        Step::Two(op, x, y) => compare(op, [read(x), read(y)], bytes(), f64::to_bits, |x| x.to_bits().cast_signed()),
        _ => {}
    }
}

#[inline(always)]
fn each<T: Copy, U>(x: &[T], to: &mut [U], of: impl Fn(T) -> U) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = of(x);
    }
}

#[inline(always)]
fn both<T: Copy>([x, y]: [&[T]; 2], to: &mut [u8], of: impl Fn(T, T) -> bool) {
    for ((to, &x), &y) in to.iter_mut().zip(x).zip(y) {
        *to = u8::from(of(x, y));
    }
}

/// Compares lanes as numbers, or their words.
#[inline(always)]
fn compare<T: Copy + PartialOrd, U: Ord, S: Ord>(
    op: Two,
    xs: [&[T]; 2],
    to: &mut [u8],
    word: impl Fn(T) -> U,
    signed: impl Fn(T) -> S,
) {
    match op {
        Two::Eq => both(xs, to, |x, y| x == y),
        Two::Ne => both(xs, to, |x, y| x != y),
        Two::Lt => both(xs, to, |x, y| x < y),
        Two::Le => both(xs, to, |x, y| x <= y),
        Two::Gt => both(xs, to, |x, y| x > y),
        Two::Ge => both(xs, to, |x, y| x >= y),
        Two::WordEq => both(xs, to, |x, y| word(x) == word(y)),
        Two::WordNe => both(xs, to, |x, y| word(x) != word(y)),
        Two::SignedLt => both(xs, to, |x, y| signed(x) < signed(y)),
        Two::SignedLe => both(xs, to, |x, y| signed(x) <= signed(y)),
        Two::UnsignedLt => both(xs, to, |x, y| word(x) < word(y)),
        Two::UnsignedLe => both(xs, to, |x, y| word(x) <= word(y)),
        // None is served.
        _ => {}
    }
}
