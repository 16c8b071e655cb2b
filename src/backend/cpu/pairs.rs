//! Products of bf16 by AVX512-BF16: two terms lie in a word, and their products are added to float32 sums. Operands are made such words once;
//! where two terms lie side by side already they are read as they are.

use super::lanes::Pairs;
use super::product::{product_by, with_scratch};
use super::tiles::Matrix;
use crate::threads;

/// Whether the processor has the instructions, and its widest set is asked for.
pub(super) fn serves() -> bool {
    crate::spmd::instruction_set() == "avx512" && is_x86_feature_detected!("avx512bf16")
}

/// Lines of an operand (rows of the left one, columns of the right one) by terms, in steps of bf16.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    pub(super) start: *const u16,
    pub(super) count: usize,
    pub(super) line: usize,
    pub(super) term: usize,
}

// SAFETY: whoever makes one promises that its elements may be read.
unsafe impl Send for Lines {}
// SAFETY: as above.
unsafe impl Sync for Lines {}

impl Lines {
    /// A method, so that closures capture the whole, which may go to other threads.
    fn start(&self) -> *const u16 {
        self.start
    }

    /// Whether pairs lie in words as they are.
    fn are_words(&self, terms: usize) -> bool {
        self.term == 1
            && terms.is_multiple_of(2)
            && (self.line.is_multiple_of(2) || self.count == 1)
            && self.start.cast::<f32>().is_aligned()
    }

    /// Words to be made: none where there are some.
    fn room(&self, terms: usize) -> usize {
        if self.are_words(terms) { 0 } else { self.count * terms.div_ceil(2) }
    }

    /// The words: their start, and the steps from one line to the next and from one pair of terms to the next.
    ///
    /// # Safety
    /// The processor has the set, every element may be read, and there is room.
    unsafe fn words(self, terms: usize, to: &mut [f32], parallel: bool) -> (*const f32, [usize; 2]) {
        if self.are_words(terms) {
            return (self.start.cast(), [self.line / 2, 1]);
        }
        let pairs = terms.div_ceil(2);
        let start = to.as_ptr();
        // Along what lies side by side: the terms of a line, or a term of all lines.
        let (length, steps) = if self.term == 1 { (pairs, [pairs, 1]) } else { (self.count, [1, self.count]) };
        let fill = |place: usize, to: &mut [f32]| {
            // SAFETY: the caller's promise.
            unsafe {
                if self.term == 1 {
                    side_by_side(self.start().add(place * self.line), terms, to);
                } else {
                    let first = self.start().add(2 * place * self.term);
                    let second = (2 * place + 1 < terms).then(|| first.add(self.term));
                    zip(first, second, self.line, to);
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

/// Pairs of terms that lie side by side; a zero beside the last one where their number is odd.
///
/// # Safety
/// So many may be read.
unsafe fn side_by_side(from: *const u16, terms: usize, to: &mut [f32]) {
    for (pair, to) in to.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let [low, high] = unsafe {
            let high = 2 * pair + 1;
            [*from.add(2 * pair), if high < terms { *from.add(high) } else { 0 }]
        };
        *to = f32::from_bits(u32::from(low) | u32::from(high) << 16);
    }
}

/// Pairs of a term and the next one, of all lines; zeros where there is no next one.
///
/// # Safety
/// The processor has the set, and as many elements of each as there are words may be read, by the step.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn zip(first: *const u16, second: Option<*const u16>, step: usize, to: &mut [f32]) {
    // SAFETY: the caller's promise.
    unsafe {
        match (second, step) {
            (Some(second), 1) => {
                let lows = std::slice::from_raw_parts(first, to.len());
                let highs = std::slice::from_raw_parts(second, to.len());
                for ((to, &low), &high) in to.iter_mut().zip(lows).zip(highs) {
                    *to = f32::from_bits(u32::from(low) | u32::from(high) << 16);
                }
            }
            (second, _) => {
                for (line, to) in to.iter_mut().enumerate() {
                    let high = second.map_or(0, |second| *second.add(line * step));
                    *to = f32::from_bits(u32::from(*first.add(line * step)) | u32::from(high) << 16);
                }
            }
        }
    }
}

/// Runs `work` with both operands as words, and the number of pairs.
///
/// # Safety
/// [`serves`], and every element may be read.
pub(super) unsafe fn with_words<R>(
    [a, b]: [Lines; 2],
    terms: usize,
    parallel: bool,
    work: impl FnOnce(Matrix<*const f32>, Matrix<*const f32>, usize) -> R,
) -> R {
    with_scratch([a.room(terms), b.room(terms)], |[left, right]| {
        // SAFETY: the caller's promise.
        let ((left, [row, column]), (right, [beside, along])) =
            unsafe { (a.words(terms, left, parallel), b.words(terms, right, parallel)) };
        let left = Matrix { start: left, row, column };
        work(left, Matrix { start: right, row: along, column: beside }, terms.div_ceil(2))
    })
}

/// As [`super::product::product`], of words.
///
/// # Safety
/// As there, and [`serves`].
pub(super) unsafe fn product(
    size: [usize; 3],
    c: Matrix<*mut f32>,
    a: Matrix<*const f32>,
    b: Matrix<*const f32>,
    parallel: bool,
) {
    // SAFETY: the caller's promise.
    unsafe { product_by::<Pairs>(size, c, a, b, parallel) }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn products_of_pairs_are_those_of_float64() {
        if !serves() {
            return println!("not run: the processor has no AVX512-BF16");
        }
        let mut state = 7_u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bf16::from_f32((state >> 8) as f32 / 8_388_608.0 - 1.0)
        };
        for [m, n, k] in [[1, 1, 1], [2, 3, 1], [13, 33, 7], [12, 32, 64], [50, 70, 401], [131, 150, 192]] {
            for (a_turned, b_turned) in [(false, false), (true, false), (false, true), (true, true)] {
                for (pad, parallel) in [(0, false), (1, true), (2, false)] {
                    let a_steps = if a_turned { [1, m + pad] } else { [k + pad, 1] };
                    let b_steps = if b_turned { [1, k + pad] } else { [n + pad, 1] };
                    let a: Vec<bf16> = (0..(m + pad) * (k + pad)).map(|_| number()).collect();
                    let b: Vec<bf16> = (0..(k + pad) * (n + pad)).map(|_| number()).collect();
                    let mut c = vec![9.0_f32; m * n];
                    let lines = |of: &[bf16], count, line, term| Lines { start: of.as_ptr().cast(), count, line, term };
                    let (left, right) = (lines(&a, m, a_steps[0], a_steps[1]), lines(&b, n, b_steps[1], b_steps[0]));
                    let to = Matrix { start: c.as_mut_ptr(), row: n, column: 1 };
                    // SAFETY: the vectors hold what the sizes and steps reach, and the processor has the set.
                    unsafe {
                        with_words([left, right], k, parallel, |a, b, pairs| {
                            product([m, n, pairs], to, a, b, parallel)
                        });
                    }
                    for (at, &value) in c.iter().enumerate() {
                        let (row, column) = (at / n, at % n);
                        let terms = |term: usize| {
                            a[row * a_steps[0] + term * a_steps[1]].to_f64()
                                * b[term * b_steps[0] + column * b_steps[1]].to_f64()
                        };
                        let expected: f64 = (0..k).map(terms).sum();
                        let error = (f64::from(value) - expected).abs();
                        assert!(error <= 1e-6 * k as f64, "{m} x {n} x {k}, {row}, {column}: {value}, not {expected}");
                    }
                }
            }
        }
    }
}
