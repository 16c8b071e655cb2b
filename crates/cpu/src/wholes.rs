//! Products of matrices of 64-bit integers, which wrap, so signs make no difference. Sums run along rows of the result, four terms for each time that they
//! are read and written; of few columns each result is a sum of its own.

use super::floats::Floats;
use super::forms::forms;
use crate::backend::native::MatmulShape;
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Multiplications of a task, at least.
const TASK: usize = 1 << 15;
/// Columns whose sums stay in the first cache.
const COLUMNS: usize = 2048;
/// Results of fewer columns are sums of their own.
const FEW: usize = 8;

/// A matrix in memory, which tasks read.
#[derive(Clone, Copy)]
struct Strided {
    start: *const u64,
    row: usize,
    column: usize,
}

// SAFETY: tasks read it only.
unsafe impl Send for Strided {}
// SAFETY: tasks read it only.
unsafe impl Sync for Strided {}

impl Strided {
    /// # Safety
    /// There is such an element.
    unsafe fn at(&self, row: usize, column: usize) -> *const u64 {
        // SAFETY: there is such an element (this function's contract).
        unsafe { self.start.add(row * self.row + column * self.column) }
    }

    /// Its lines, each of `length` elements side by side: a copy where they lie otherwise.
    ///
    /// # Safety
    /// It has the size, and lives as long as what is returned is used.
    unsafe fn lines(self, [lines, length]: [usize; 2], copy: &mut Vec<u64>) -> Self {
        if self.column == 1 {
            return self;
        }
        // SAFETY: it has the size (this function's contract).
        copy.extend((0..lines).flat_map(|line| (0..length).map(move |at| unsafe { self.at(line, at).read() })));
        Self { start: copy.as_ptr(), row: length, column: 1 }
    }
}

/// Multiplies each batch.
///
/// # Safety
/// Every element that the shape's sizes and strides reach lies within the bindings, at a multiple of 8 bytes; nothing else touches the result.
pub(super) unsafe fn products(shape: &MatmulShape, [a, b, c]: [Floats; 3], limits: &Limits<'_>) -> Result<(), Stopped> {
    let (m, n, k) = (shape.m, shape.n, shape.k);
    let matrix = |of: Floats, first: usize, row: usize, column: usize| {
        // SAFETY: the first element lies within the binding (this function's contract).
        Strided { start: unsafe { of.start().cast::<u64>().add(first) }, row, column }
    };
    for batch in 0..shape.a.offsets.len() {
        let left = matrix(a, shape.a.offsets[batch], shape.a.row, shape.a.column);
        let right = matrix(b, shape.b.offsets[batch], shape.b.row, shape.b.column);
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        let is_narrow = n < FEW;
        // SAFETY: the elements lie within the bindings (this function's contract).
        let (left, right) = unsafe {
            if is_narrow {
                let columns = Strided { row: right.column, column: right.row, ..right };
                (left.lines([m, k], &mut of_a), columns.lines([n, k], &mut of_b))
            } else {
                (left, right.lines([k, n], &mut of_b))
            }
        };
        let together = threads::share(m, (TASK / (n * k).max(1)).max(1));
        threads::try_each(m.div_ceil(together), |task| {
            for row in task * together..m.min((task + 1) * together) {
                limits.begin().check()?;
                // SAFETY: the elements lie within the bindings, and one task writes a row of the result (this function's contract).
                unsafe {
                    let to = c.start().cast::<u64>().add((batch * m + row) * n);
                    let to = std::slice::from_raw_parts_mut(to, n);
                    if is_narrow {
                        let line = std::slice::from_raw_parts(left.at(row, 0), k);
                        for (column, to) in to.iter_mut().enumerate() {
                            *to = dot(line, std::slice::from_raw_parts(right.at(column, 0), k));
                        }
                    } else {
                        multiply_row(to, row, left, right, k);
                    }
                }
            }
            Ok::<(), Stopped>(())
        })?;
    }
    Ok(())
}

/// A row of the result: the rows of `b`, each times an element of a row of `a`.
///
/// # Safety
/// `a` has the row and `k` columns, `b` has `k` rows, as long as `to`, whose elements lie side by side.
unsafe fn multiply_row(to: &mut [u64], row: usize, a: Strided, b: Strided, k: usize) {
    for (number, to) in to.chunks_mut(COLUMNS).enumerate() {
        to.fill(0);
        for term in (0..k).step_by(4) {
            // SAFETY: the elements lie there (this function's contract). A term that is not there is the last one, times zero.
            unsafe {
                let lines = std::array::from_fn(|at| b.at((term + at).min(k - 1), number * COLUMNS));
                let factors = std::array::from_fn(|at| if term + at < k { a.at(row, term + at).read() } else { 0 });
                add_rows(to, lines, factors);
            }
        }
    }
}

forms! {
    /// Adds four rows, each times its factor.
    ///
    /// # Safety
    /// There are as many elements in each row.
    unsafe fn add_rows(sums: &mut [u64], rows: [*const u64; 4], factors: [u64; 4]) = add_rows_by
}
forms! {
    /// The sum of the products of two rows of one length.
    fn dot(a: &[u64], b: &[u64]) -> u64 = dot_by
}

/// # Safety
/// As [`add_rows`].
#[inline(always)]
unsafe fn add_rows_by<I>(sums: &mut [u64], rows: [*const u64; 4], factors: [u64; 4]) {
    // SAFETY: they have as many elements (this function's contract).
    let [a, b, c, d] = rows.map(|row| unsafe { std::slice::from_raw_parts(row, sums.len()) });
    let [p, q, r, s] = factors;
    for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        let first = a.wrapping_mul(p).wrapping_add(b.wrapping_mul(q));
        *sum = sum.wrapping_add(first).wrapping_add(c.wrapping_mul(r).wrapping_add(d.wrapping_mul(s)));
    }
}

#[inline(always)]
fn dot_by<I>(a: &[u64], b: &[u64]) -> u64 {
    a.iter().zip(b).fold(0, |sum: u64, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)))
}

#[cfg(test)]
mod tests {
    use super::products;
    use crate::backend::native::{MatmulShape, Operand};
    use crate::floats::Floats;
    use crate::spmd::Limits;
    use crate::tensor::DType;

    #[test]
    fn products_wrap_as_those_of_128_bits() {
        let mut state = 5_u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        for [m, n, k] in [[1, 1, 1], [3, 5, 7], [20, 1, 300], [1, 30, 9], [17, 9, 33], [2, 2050, 6], [40, 7, 5]] {
            for (turned_a, turned_b) in [(false, false), (true, false), (false, true), (true, true)] {
                let batches = 2;
                let a: Vec<u64> = (0..batches * m * k).map(|_| number()).collect();
                let b: Vec<u64> = (0..batches * k * n).map(|_| number()).collect();
                let operand = |turned: bool, across: usize, along: usize| Operand {
                    offsets: (0..batches).map(|batch| batch * across * along).collect(),
                    row: if turned { 1 } else { along },
                    column: if turned { across } else { 1 },
                };
                let (of_a, of_b) = (operand(turned_a, m, k), operand(turned_b, k, n));
                let mut c = vec![9_u64; batches * m * n];
                let floats = |of: &[u64]| Floats(of.as_ptr().cast_mut().cast(), 2 * of.len());
                let shape = MatmulShape { m, n, k, a: of_a.clone(), b: of_b.clone(), dtype: DType::I64 };
                let to = Floats(c.as_mut_ptr().cast(), 2 * c.len());
                // SAFETY: the vectors hold what the sizes and steps reach.
                unsafe { products(&shape, [floats(&a), floats(&b), to], &Limits::default()) }.unwrap();
                for (at, &found) in c.iter().enumerate() {
                    let (batch, row, column) = (at / (m * n), at % (m * n) / n, at % n);
                    let expected = (0..k).fold(0_u64, |sum, term| {
                        let x = a[of_a.offsets[batch] + row * of_a.row + term * of_a.column];
                        let y = b[of_b.offsets[batch] + term * of_b.row + column * of_b.column];
                        (u128::from(sum) + u128::from(x) * u128::from(y)) as u64
                    });
                    assert_eq!(found, expected, "{m} x {n} x {k}, {turned_a}, {turned_b}: {batch}, {row}, {column}");
                }
            }
        }
    }
}
