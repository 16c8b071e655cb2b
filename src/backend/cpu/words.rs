//! Products of bf16 by AVX512-BF16 and of signed bytes by AVX512-VNNI: two or four terms lie in a word, and their products are added to sums of 32
//! bits. Operands are made such words once; where terms lie side by side already they are read as they are.

use super::lanes::{Pairs, Quads};
use super::product::{product_by, with_scratch};
use super::tiles::{Matrix, Tiles};
use crate::threads;

/// Bits of an element.
///
/// # Safety
/// The processor has the set of the tiles where it serves.
pub(super) unsafe trait Part: Copy + Default + Into<u32> {
    /// Terms of a word.
    const TERMS: usize = 4 / size_of::<Self>();
    /// What multiplies words.
    type By: Tiles;

    /// Whether the processor has the instructions, and its widest set is asked for.
    fn serves() -> bool;
}

// SAFETY: it asks for AVX512-BF16.
unsafe impl Part for u16 {
    type By = Pairs;

    fn serves() -> bool {
        crate::spmd::instruction_set() == "avx512" && is_x86_feature_detected!("avx512bf16")
    }
}

// SAFETY: it asks for AVX512-VNNI.
unsafe impl Part for u8 {
    type By = Quads;

    fn serves() -> bool {
        crate::spmd::instruction_set() == "avx512" && is_x86_feature_detected!("avx512vnni")
    }
}

/// Lines of an operand (rows of the left one, columns of the right one) by terms, in steps of elements.
#[derive(Clone, Copy)]
pub(super) struct Lines<T> {
    pub(super) start: *const T,
    pub(super) count: usize,
    pub(super) line: usize,
    pub(super) term: usize,
}

// SAFETY: whoever makes one promises that its elements may be read.
unsafe impl<T> Send for Lines<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Lines<T> {}

impl<T: Part> Lines<T> {
    /// A method, so that closures capture the whole, which may go to other threads.
    fn start(&self) -> *const T {
        self.start
    }

    /// Whether terms lie in words as they are.
    fn are_words(&self, terms: usize) -> bool {
        self.term == 1
            && terms.is_multiple_of(T::TERMS)
            && (self.line.is_multiple_of(T::TERMS) || self.count == 1)
            && self.start.cast::<f32>().is_aligned()
    }

    /// Words to be made: none where there are some.
    fn room(&self, terms: usize) -> usize {
        if self.are_words(terms) { 0 } else { self.count * terms.div_ceil(T::TERMS) }
    }

    /// The words: their start, and the steps from one line to the next and from one word to the next.
    ///
    /// # Safety
    /// The processor has the set, every element may be read, and there is room.
    unsafe fn words(self, terms: usize, to: &mut [f32], parallel: bool) -> (*const f32, [usize; 2]) {
        if self.are_words(terms) {
            return (self.start.cast(), [self.line / T::TERMS, 1]);
        }
        let words = terms.div_ceil(T::TERMS);
        let start = to.as_ptr();
        // Along what lies side by side: the terms of a line, or a term of all lines.
        let (length, steps) = if self.term == 1 { (words, [words, 1]) } else { (self.count, [1, self.count]) };
        let fill = |place: usize, to: &mut [f32]| {
            // SAFETY: the caller's promise.
            unsafe {
                if self.term == 1 {
                    side_by_side(self.start().add(place * self.line), terms, to);
                } else {
                    let first = place * T::TERMS;
                    let there = T::TERMS.min(terms - first);
                    zip(self.start().add(first * self.term), [there, self.term], self.line, to);
                }
            }
        };
        if parallel {
            threads::each_chunk(to, length, fill);
        } else {
            to.chunks_exact_mut(length).enumerate().for_each(|(place, to)| fill(place, to));
        }
        (start, steps)
    }
}

/// A word of terms, `step` apart, of which so many are there: zeros in place of the others.
///
/// # Safety
/// Those that are there may be read.
#[inline(always)]
unsafe fn word<T: Part>(from: *const T, there: usize, step: usize) -> f32 {
    let mut bits = 0_u32;
    let mut at = 0;
    while at < T::TERMS && at < there {
        // SAFETY: the caller's promise.
        bits |= unsafe { from.wrapping_add(at * step).read() }.into() << (32 / T::TERMS * at);
        at += 1;
    }
    f32::from_bits(bits)
}

/// Words of terms that lie side by side; zeros beside the last one.
///
/// # Safety
/// So many may be read.
unsafe fn side_by_side<T: Part>(from: *const T, terms: usize, to: &mut [f32]) {
    for (at, to) in to.iter_mut().enumerate() {
        let first = at * T::TERMS;
        // SAFETY: the caller's promise.
        *to = unsafe { word(from.wrapping_add(first), terms - first, 1) };
    }
}

/// Words of some terms, `term` apart, of all lines, `line` apart; zeros where there are fewer than a word's.
///
/// # Safety
/// The processor has the set, and as many elements of each as there are words may be read.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn zip<T: Part>(from: *const T, [there, term]: [usize; 2], line: usize, to: &mut [f32]) {
    // SAFETY: the caller's promise.
    unsafe {
        if line == 1 && there == T::TERMS {
            for (at, to) in to.iter_mut().enumerate() {
                *to = word(from.wrapping_add(at), T::TERMS, term);
            }
        } else {
            for (at, to) in to.iter_mut().enumerate() {
                *to = word(from.wrapping_add(at * line), there, term);
            }
        }
    }
}

/// Runs `work` with both operands as words, and the number of words.
///
/// # Safety
/// [`Part::serves`], and every element may be read.
pub(super) unsafe fn with_words<T: Part, R>(
    [a, b]: [Lines<T>; 2],
    terms: usize,
    parallel: bool,
    work: impl FnOnce(Matrix<*const f32>, Matrix<*const f32>, usize) -> R,
) -> R {
    with_scratch([a.room(terms), b.room(terms)], |[left, right]| {
        // SAFETY: the caller's promise.
        let ((left, [row, column]), (right, [beside, along])) =
            unsafe { (a.words(terms, left, parallel), b.words(terms, right, parallel)) };
        let left = Matrix { start: left, row, column };
        work(left, Matrix { start: right, row: along, column: beside }, terms.div_ceil(T::TERMS))
    })
}

/// As [`super::product::product`], of words: bf16 give float32, bytes i32, which wrap.
///
/// # Safety
/// As there, and [`Part::serves`].
pub(super) unsafe fn product<T: Part>(
    [m, n, words]: [usize; 3],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    b: Matrix<*const f32>,
    parallel: bool,
) {
    // SAFETY: the caller's promise; rows of the result are written by one task each.
    unsafe {
        let is_offset = T::TERMS == 4;
        if is_offset {
            // The left ones count 128 more than they are: the sums begin with as much less.
            let mut begin = vec![0; n];
            let part = if parallel { n.div_ceil(threads::count()).next_multiple_of(16) } else { n };
            let fill = |place: usize, to: &mut [i32]| {
                less(Matrix { start: b.at(0, place * part), ..b }, words, to);
            };
            if parallel {
                threads::each_chunk(&mut begin, part, fill);
            } else {
                fill(0, &mut begin);
            }
            for row in 0..m {
                begin.as_ptr().cast::<f32>().copy_to_nonoverlapping(c.at(row, 0), n);
            }
        }
        product_by::<T::By>([m, n, words], c, a, b, (parallel, is_offset));
    }
}

/// 128 times the sums of columns of words of signed bytes, negated.
///
/// # Safety
/// The processor has the set, and the words may be read.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn less(b: Matrix<*const f32>, words: usize, to: &mut [i32]) {
    #[inline(always)]
    fn sum(word: i32) -> i32 {
        (word << 24 >> 24) + (word << 16 >> 24) + (word << 8 >> 24) + (word >> 24)
    }
    // SAFETY: the caller's promise.
    unsafe {
        if b.column == 1 {
            for row in 0..words {
                let from = std::slice::from_raw_parts(b.at(row, 0).cast::<i32>(), to.len());
                to.iter_mut().zip(from).for_each(|(to, &word)| *to = to.wrapping_add(sum(word)));
            }
        } else {
            for (column, to) in to.iter_mut().enumerate() {
                for row in 0..words {
                    *to = to.wrapping_add(sum(b.at(row, column).cast::<i32>().read()));
                }
            }
        }
    }
    to.iter_mut().for_each(|to| *to = to.wrapping_mul(-128));
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    /// Products at sizes on both sides of the tiles, in every layout: what `value` says, within so much for each term.
    fn products<T: Part>(value: fn(T) -> f64, number: fn(u32) -> T, result: fn(f32) -> f64, tolerance: f64) {
        if !T::serves() {
            return println!("not run: the processor has no such instructions");
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
                    let lines = |of: &[T], count, line, term| Lines { start: of.as_ptr(), count, line, term };
                    let (left, right) = (lines(&a, m, a_steps[0], a_steps[1]), lines(&b, n, b_steps[1], b_steps[0]));
                    let to = Matrix { start: c.as_mut_ptr(), row: n, column: 1 };
                    // SAFETY: the vectors hold what the sizes and steps reach, and the processor has the set.
                    unsafe {
                        with_words([left, right], k, parallel, |a, b, words| {
                            product::<T>([m, n, words], to, a, b, parallel)
                        });
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
