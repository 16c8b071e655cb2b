//! Complex numbers in chains. In memory the real and the imaginary part alternate; a chain computes with each in a lane of its own. These functions split
//! a block on load and interleave it on store.

use crate::forms::forms;

forms! {
    /// # Safety
    /// Every second float from the address on can be read, as many as `to` has.
    pub(super) unsafe fn every_second_word(from: *const f32, to: &mut [f32]) = words_by
}
forms! {
    /// # Safety
    /// Every second float from the address on can be read, as many as `to` has.
    pub(super) unsafe fn every_second_double(from: *const f64, to: &mut [f64]) = doubles_by
}
forms! {
    pub(super) fn interleaved_words(parts: [&[f32]; 2], to: &mut [f32]) = interleaved_words_by
}
forms! {
    pub(super) fn interleaved_doubles(parts: [&[f64]; 2], to: &mut [f64]) = interleaved_doubles_by
}

/// # Safety
/// As [`every_second`].
#[inline(always)]
unsafe fn words_by<I>(from: *const f32, to: &mut [f32]) {
    // SAFETY: they lie there (this function's contract).
    unsafe { every_second(from, to) }
}

/// # Safety
/// As [`every_second`].
#[inline(always)]
unsafe fn doubles_by<I>(from: *const f64, to: &mut [f64]) {
    // SAFETY: they lie there (this function's contract).
    unsafe { every_second(from, to) }
}

#[inline(always)]
fn interleaved_words_by<I>(parts: [&[f32]; 2], to: &mut [f32]) {
    interleaved(parts, to);
}

#[inline(always)]
fn interleaved_doubles_by<I>(parts: [&[f64]; 2], to: &mut [f64]) {
    interleaved(parts, to);
}

/// Every second element from an address on, by the widest registers where elements fill words.
///
/// # Safety
/// They lie there.
pub(crate) unsafe fn every_second_of<T: Copy>(from: *const T, to: &mut [T]) {
    // SAFETY: they lie there (this function's contract); numbers of the same size take any bits.
    unsafe {
        match size_of::<T>() {
            4 => every_second_word(from.cast(), std::slice::from_raw_parts_mut(to.as_mut_ptr().cast(), to.len())),
            8 => every_second_double(from.cast(), std::slice::from_raw_parts_mut(to.as_mut_ptr().cast(), to.len())),
            _ => every_second(from, to),
        }
    }
}

/// Every second element from an address on.
///
/// # Safety
/// They lie there.
#[inline(always)]
pub(super) unsafe fn every_second<T: Copy>(from: *const T, to: &mut [T]) {
    for (place, to) in to.iter_mut().enumerate() {
        // SAFETY: it lies there (this function's contract).
        *to = unsafe { from.add(2 * place).read() };
    }
}

/// Elements of both by turns.
#[inline(always)]
pub(super) fn interleaved<T: Copy>([a, b]: [&[T]; 2], to: &mut [T]) {
    for ((pair, &a), &b) in to.as_chunks_mut::<2>().0.iter_mut().zip(a).zip(b) {
        *pair = [a, b];
    }
}

forms! {
    pub(super) fn products_of_words(factors: [&[f32]; 2], to: &mut [f32]) = products_of_words_by
}
forms! {
    pub(super) fn products_of_doubles(factors: [&[f64]; 2], to: &mut [f64]) = products_of_doubles_by
}

#[inline(always)]
fn products_of_words_by<I>([x, y]: [&[f32]; 2], to: &mut [f32]) {
    let (x, y) = (x.as_chunks::<2>().0, y.as_chunks::<2>().0);
    for ((to, &[a, b]), &[c, d]) in to.as_chunks_mut::<2>().0.iter_mut().zip(x).zip(y) {
        *to = [a * c - b * d, a * d + b * c];
    }
}

#[inline(always)]
fn products_of_doubles_by<I>([x, y]: [&[f64]; 2], to: &mut [f64]) {
    let (x, y) = (x.as_chunks::<2>().0, y.as_chunks::<2>().0);
    for ((to, &[a, b]), &[c, d]) in to.as_chunks_mut::<2>().0.iter_mut().zip(x).zip(y) {
        *to = [a * c - b * d, a * d + b * c];
    }
}

forms! {
    pub(super) fn sums_of_words(terms: [&[f32]; 2], to: &mut [f32]) = sums_of_words_by
}

#[inline(always)]
fn sums_of_words_by<I>([x, y]: [&[f32]; 2], to: &mut [f32]) {
    for ((to, &x), &y) in to.iter_mut().zip(x).zip(y) {
        *to = x + y;
    }
}

forms! {
    pub(super) fn sums_of_doubles(terms: [&[f64]; 2], to: &mut [f64]) = sums_of_doubles_by
}

#[inline(always)]
fn sums_of_doubles_by<I>([x, y]: [&[f64]; 2], to: &mut [f64]) {
    for ((to, &x), &y) in to.iter_mut().zip(x).zip(y) {
        *to = x + y;
    }
}

forms! {
    pub(super) fn differences_of_words(terms: [&[f32]; 2], to: &mut [f32]) = differences_of_words_by
}

#[inline(always)]
fn differences_of_words_by<I>([x, y]: [&[f32]; 2], to: &mut [f32]) {
    for ((to, &x), &y) in to.iter_mut().zip(x).zip(y) {
        *to = x - y;
    }
}

forms! {
    pub(super) fn differences_of_doubles(terms: [&[f64]; 2], to: &mut [f64]) = differences_of_doubles_by
}

#[inline(always)]
fn differences_of_doubles_by<I>([x, y]: [&[f64]; 2], to: &mut [f64]) {
    for ((to, &x), &y) in to.iter_mut().zip(x).zip(y) {
        *to = x - y;
    }
}
