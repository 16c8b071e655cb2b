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
    /// # Safety
    /// Every second byte from the address on can be read, as many as `to` has.
    unsafe fn every_second_byte(from: *const u8, to: &mut [u8]) = bytes_by
}
forms! {
    /// # Safety
    /// Every second half from the address on can be read, as many as `to` has.
    unsafe fn every_second_half(from: *const u16, to: &mut [u16]) = halves_by
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

/// Bytes by pairs, of which the first one stays: what is narrowed is a whole register. The last one may have none behind it.
///
/// # Safety
/// As [`every_second`].
#[inline(always)]
unsafe fn bytes_by<I>(from: *const u8, to: &mut [u8]) {
    // SAFETY: they lie there (this function's contract), and so does the byte between two of them.
    unsafe {
        let [to @ .., last] = to else { return };
        *last = from.add(2 * to.len()).read();
        let pairs = from.cast::<u16>();
        (0_usize..).zip(to).for_each(|(place, to)| *to = pairs.add(place).read_unaligned().to_ne_bytes()[0]);
    }
}

/// As [`bytes_by`], of halves.
///
/// # Safety
/// As [`every_second`].
#[inline(always)]
unsafe fn halves_by<I>(from: *const u16, to: &mut [u16]) {
    // SAFETY: they lie there (this function's contract), and so does the half between two of them.
    unsafe {
        let [to @ .., last] = to else { return };
        *last = from.add(2 * to.len()).read();
        let pairs = from.cast::<u32>();
        (0_usize..).zip(to).for_each(|(place, to)| {
            let [a, b, ..] = pairs.add(place).read_unaligned().to_ne_bytes();
            *to = u16::from_ne_bytes([a, b]);
        });
    }
}

#[inline(always)]
fn interleaved_words_by<I>(parts: [&[f32]; 2], to: &mut [f32]) {
    interleaved(parts, to);
}

#[inline(always)]
fn interleaved_doubles_by<I>(parts: [&[f64]; 2], to: &mut [f64]) {
    interleaved(parts, to);
}

/// Every second element from an address on, by the widest registers where elements have up to eight bytes.
///
/// # Safety
/// They lie there.
pub(crate) unsafe fn every_second_of<T: Copy>(from: *const T, to: &mut [T]) {
    // SAFETY: they lie there (this function's contract); numbers of the same size take any bits.
    unsafe {
        match size_of::<T>() {
            1 => every_second_byte(from.cast(), std::slice::from_raw_parts_mut(to.as_mut_ptr().cast(), to.len())),
            2 => every_second_half(from.cast(), std::slice::from_raw_parts_mut(to.as_mut_ptr().cast(), to.len())),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Copy + PartialEq + std::fmt::Debug + Default>(number: impl Fn(usize) -> T) {
        for length in (0..70).chain([255, 256, 1001]) {
            let from: Vec<T> = (0..2 * length).map(&number).collect();
            // Nothing lies behind the last one.
            let from = &from[..from.len().saturating_sub(1)];
            let mut to = vec![T::default(); length];
            // SAFETY: every second one is there.
            unsafe { every_second_of(from.as_ptr(), &mut to) };
            assert_eq!(to, from.iter().copied().step_by(2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_second_element_is_taken() {
        of(|at| at as u8);
        of(|at| (at * 2503) as u16);
        of(|at| at as u32);
        of(|at| at as u64);
        of(|at| [at as u64, 7]);
    }
}
