//! Products of bf16 by AVX512-BF16 and of signed bytes by AVX512-VNNI: two or four terms lie in a word, and their products are added to sums of 32
//! bits. The right operand becomes such words where it is packed; the left one before, unless its terms lie side by side already.

use std::arch::x86_64::{
    __m512i, _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi8, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_sub_epi32,
};
use std::ops::Range;

use super::product::{Columns, How, product_by, with_scratch};
use super::registers::{Pairs, Quads};
use super::tiles::{Matrix, Tiles};
use crate::threads;
use cantus_base::instructions::InstructionSet;

/// Bits of an element.
///
/// # Safety
/// The processor has the set of the tiles where it serves.
pub(super) unsafe trait Part: Copy + Default + Into<u32> {
    /// Terms of a word.
    const TERMS: usize = 4 / size_of::<Self>();
    /// The tiles that multiply words.
    type By: Tiles;

    /// Returns whether the processor has the instructions, and its widest set is requested.
    fn serves() -> bool;
}

// SAFETY: it asks for AVX512-BF16.
unsafe impl Part for u16 {
    type By = Pairs;

    fn serves() -> bool {
        InstructionSet::best() == InstructionSet::Avx512 && is_x86_feature_detected!("avx512bf16")
    }
}

// SAFETY: it asks for AVX512-VNNI.
unsafe impl Part for u8 {
    type By = Quads;

    fn serves() -> bool {
        InstructionSet::best() == InstructionSet::Avx512 && is_x86_feature_detected!("avx512vnni")
    }
}

/// Lines of an operand (rows of the left one, columns of the right one) by terms, in steps of elements.
#[derive(Clone, Copy)]
pub(super) struct Lines<T> {
    pub(super) start: *const T,
    pub(super) count: usize,
    pub(super) terms: usize,
    pub(super) line: usize,
    pub(super) term: usize,
}

// SAFETY: `T` is a number. The code that makes one promises that its elements may be read.
unsafe impl<T> Send for Lines<T> {}
// SAFETY: nothing writes to the elements while they are shared.
unsafe impl<T> Sync for Lines<T> {}

impl<T: Part> Lines<T> {
    /// Some of the lines.
    pub(super) fn part(self, lines: Range<usize>) -> Self {
        Self { start: self.start.wrapping_add(lines.start * self.line), count: lines.len(), ..self }
    }

    /// Words of a line.
    fn words(&self) -> usize {
        self.terms.div_ceil(T::TERMS)
    }

    /// Returns whether terms are in words already.
    fn are_words(&self) -> bool {
        self.term == 1
            && self.terms.is_multiple_of(T::TERMS)
            && (self.line.is_multiple_of(T::TERMS) || self.count == 1)
            && self.start.cast::<f32>().is_aligned()
    }

    /// The number of words to pack: 0 where the operand already consists of words.
    fn room(&self) -> usize {
        if self.are_words() { 0 } else { self.count * self.words() }
    }

    /// Word number `word` of a line.
    ///
    /// # Safety
    /// There is such a word, and its elements may be read.
    #[inline(always)]
    unsafe fn word(&self, line: usize, word: usize) -> f32 {
        let first = word * T::TERMS;
        // SAFETY: the word exists and its elements may be read (this function's contract).
        unsafe {
            self::word(self.start.wrapping_add(line * self.line + first * self.term), self.terms - first, self.term)
        }
    }

    /// A left operand's words.
    ///
    /// # Safety
    /// The processor has the set, every element may be read, and there is room.
    unsafe fn rows(self, to: &mut [f32], parallel: bool) -> Matrix<*const f32> {
        if self.are_words() {
            return Matrix { start: self.start.cast(), row: self.line / T::TERMS, column: 1 };
        }
        let words = self.words();
        let start = to.as_ptr();
        // Along what lies side by side: the terms of a line, or a term of all lines.
        let (length, [row, column]) = if self.term == 1 { (words, [words, 1]) } else { (self.count, [1, self.count]) };
        let fill = |place: usize, to: &mut [f32]| {
            for (at, to) in to.iter_mut().enumerate() {
                let (line, word) = if self.term == 1 { (place, at) } else { (at, place) };
                // SAFETY: line and word are below their counts, and every element may be read (this function's contract).
                *to = unsafe { self.word(line, word) };
            }
        };
        if parallel {
            threads::each_chunk(to, length, fill);
        } else {
            to.chunks_exact_mut(length).enumerate().for_each(|(place, to)| fill(place, to));
        }
        Matrix { start, row, column }
    }
}

/// Packs terms, `step` elements apart, into one word. Only the first `there` terms exist; the others are zero.
///
/// # Safety
/// The existing ones may be read.
#[inline(always)]
unsafe fn word<T: Part>(from: *const T, there: usize, step: usize) -> f32 {
    let mut bits = 0_u32;
    let mut at = 0;
    while at < T::TERMS && at < there {
        // SAFETY: `at < there`, and the existing terms may be read (this function's contract).
        bits |= unsafe { from.wrapping_add(at * step).read() }.into() << (32 / T::TERMS * at);
        at += 1;
    }
    f32::from_bits(bits)
}

/// Columns of a tile, and lanes of a vector.
const WIDE: usize = 32;
const LANES: usize = 16;

// SAFETY: a panel is packed as it says.
unsafe impl<T: Part> Columns for Lines<T> {
    const BEGINS: bool = T::TERMS == 4;
    // Processors with these instructions usually have a first cache of 48 KiB. With 256 words, a sum of up to 1024 bytes is read and written once.
    const TERMS: usize = 256;

    fn there(&self) -> Option<Matrix<*const f32>> {
        None
    }

    fn place(&self) -> [usize; 3] {
        [self.start.addr(), self.line, self.term]
    }

    unsafe fn pack<B: Tiles>(&self, columns: Range<usize>, words: Range<usize>, to: *mut f32) {
        const { assert!(T::By::TILE[1] == WIDE) };
        let lines = self.part(columns);
        // SAFETY: the elements may be read, there is room, and the processor has the set (this function's contract).
        unsafe {
            if !Self::BEGINS {
                return zip(&lines, words, to);
            }
            let count = words.len();
            zip(&lines, words, to.add(WIDE));
            less(count, to);
        }
    }
}

/// Words of a tile's columns, those of one place side by side; zeros where there are fewer columns.
///
/// # Safety
/// The processor has the set, the elements may be read, and there is room.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn zip<T: Part>(lines: &Lines<T>, words: Range<usize>, to: *mut f32) {
    let count = words.len();
    // SAFETY: the elements may be read, and `to` has `WIDE` words for each of `words` (this function's contract).
    unsafe {
        if lines.count == WIDE && lines.are_words() {
            let start = lines.start.cast::<f32>().add(words.start);
            return T::By::pack_columns(start, [lines.line / T::TERMS, 1], WIDE, count, to);
        }
        for (place, word) in words.enumerate() {
            let to = &mut *to.add(place * WIDE).cast::<[f32; WIDE]>();
            let from = lines.start.wrapping_add(word * T::TERMS * lines.term);
            if lines.count == WIDE && lines.line == 1 && (word + 1) * T::TERMS <= lines.terms {
                for (at, to) in to.iter_mut().enumerate() {
                    *to = self::word(from.wrapping_add(at), T::TERMS, lines.term);
                }
            } else {
                for (at, to) in to.iter_mut().enumerate() {
                    *to = if at < lines.count { lines.word(at, word) } else { 0.0 };
                }
            }
        }
    }
}

/// Writes the values that the sums of a panel of signed bytes begin with, because the left ones are counted 128 too high: -128 times its columns' sums.
///
/// # Safety
/// The processor has the set. `words` words of each column follow the line.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
unsafe fn less(words: usize, line: *mut f32) {
    for first in [0, LANES] {
        let line = line.wrapping_add(first).cast::<__m512i>();
        let mut sums = _mm512_setzero_si512();
        for word in 1..=words {
            // SAFETY: `words` lines of `WIDE` words follow the first (this function's contract).
            let bytes = unsafe { _mm512_loadu_si512(line.wrapping_add(word * WIDE / LANES)) };
            sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(-128), bytes);
        }
        // SAFETY: the first line has `WIDE` words, which may be written (this function's contract).
        unsafe { _mm512_storeu_si512(line, _mm512_sub_epi32(_mm512_setzero_si512(), sums)) };
    }
}

/// Runs `work` with a left operand's words.
///
/// # Safety
/// [`Part::serves`], and every element may be read.
pub(super) unsafe fn with_words<T: Part, R>(
    a: Lines<T>,
    parallel: bool,
    work: impl FnOnce(Matrix<*const f32>) -> R,
) -> R {
    // SAFETY: `Part::serves`, so the processor has the set, and every element may be read (this function's contract).
    with_scratch([a.room(), 0], |[words, _]| work(unsafe { a.rows(words, parallel) }))
}

/// As [`super::product::product`], of a left operand's words: bf16 give float32, bytes i32, which wrap.
///
/// # Safety
/// As there, and [`Part::serves`].
pub(super) unsafe fn product<T: Part>(m: usize, c: Matrix<*mut f32>, a: Matrix<*const f32>, b: Lines<T>, how: How<'_>) {
    // SAFETY: every element is valid, and `Part::serves`, so the processor has the set of `T::By` (this function's contract).
    unsafe { product_by::<T::By, _>([m, b.count, b.words()], c, a, b, how) }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    /// Checks products of sizes around the tiles', in every layout, against `value`, within `tolerance` for each term.
    fn products<T: Part>(value: fn(T) -> f64, number: fn(u32) -> T, result: fn(f32) -> f64, tolerance: f64) {
        if !T::serves() {
            return cantus_skips::not_run("products of words", "the processor has no such instructions");
        }
        let mut state = 7_u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            number(state >> 8)
        };
        for [m, n, k] in [[1, 1, 1], [2, 3, 1], [13, 33, 7], [12, 32, 64], [50, 70, 401], [131, 150, 192]] {
            for (a_turned, b_turned) in [(false, false), (true, false), (false, true), (true, true)] {
                for (pad, parallel) in [(0, false), (1, true), (2, false), (4, true)] {
                    let a_steps = if a_turned { [1, m + pad] } else { [k + pad, 1] };
                    let b_steps = if b_turned { [1, k + pad] } else { [n + pad, 1] };
                    let a: Vec<T> = (0..(m + pad) * (k + pad)).map(|_| number()).collect();
                    let b: Vec<T> = (0..(k + pad) * (n + pad)).map(|_| number()).collect();
                    let mut c = vec![9.0_f32; m * n];
                    let lines = |of: &[T], count, line, term| Lines { start: of.as_ptr(), count, terms: k, line, term };
                    let (left, right) = (lines(&a, m, a_steps[0], a_steps[1]), lines(&b, n, b_steps[1], b_steps[0]));
                    let to = Matrix { start: c.as_mut_ptr(), row: n, column: 1 };
                    // SAFETY: the vectors hold what the sizes and steps reach, and the processor has the set.
                    unsafe {
                        let how = How { parallel, ..How::default() };
                        with_words(left, parallel, |a| product::<T>(m, to, a, right, how));
                    }
                    for (at, &sum) in c.iter().enumerate() {
                        let (row, column) = (at / n, at % n);
                        let terms = |term: usize| {
                            value(a[row * a_steps[0] + term * a_steps[1]])
                                * value(b[term * b_steps[0] + column * b_steps[1]])
                        };
                        let expected: f64 = (0..k).map(terms).sum();
                        let error = (result(sum) - expected).abs();
                        assert!(
                            error <= tolerance * k as f64,
                            "{m} x {n} x {k}, {row}, {column}: {}, not {expected}",
                            result(sum)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn products_of_pairs_are_those_of_float64() {
        let number = |bits: u32| bf16::from_f32(bits as f32 / 8_388_608.0 - 1.0).to_bits();
        products::<u16>(|bits| bf16::from_bits(bits).to_f64(), number, f64::from, 1e-6);
    }

    #[test]
    fn products_of_bytes_are_whole() {
        // The least and the largest often: what saturates shows there.
        let number = |bits: u32| match bits & 3 {
            0 => 0x80,
            1 => 0x7f,
            _ => (bits >> 8) as u8,
        };
        products::<u8>(|bits| f64::from(bits as i8), number, |sum| f64::from(sum.to_bits() as i32), 0.0);
    }
}
