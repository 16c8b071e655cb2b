//! Products of complex64, by real ones: a row of complex numbers is a row of twice as many float32, and a number of the right operand a square of four,
//! which panels are packed with. Sums are in float32.

use std::ops::Range;

use super::floats::Floats;
use super::forms::forms;
use super::gemv::{self, Rows};
use super::product::{self, Columns, How, with_turned};
use super::slabs::{THREADS_PAY, by_slabs};
use super::tiles::{Matrix, Tiles};
use crate::backend::native::{MatmulShape, Operand};
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Numbers of a task that copies rows.
const TASK: usize = 1 << 13;
/// Rows that are copied side by side, where columns lie so.
const BESIDE: usize = 16;
/// Results of products that are too small to be cut: both halves are tasks.
const SMALL: usize = 64 * 64;
/// Results of a task where columns lie side by side, at least; and terms whose sum is taken before it goes to the total.
const COLUMN: usize = 64;
const LONG: usize = 1 << 10;
const STRETCH: usize = 64;

/// A right operand of complex numbers, by its strides in float32.
#[derive(Clone, Copy)]
struct Squares(Matrix<*const f32>);

// SAFETY: a panel has a tile's columns for each term, two of either for a number.
unsafe impl Columns for Squares {
    const BEGINS: bool = false;
    const TERMS: usize = <Matrix<*const f32> as Columns>::TERMS;

    fn there(&self) -> Option<Matrix<*const f32>> {
        None
    }

    fn place(&self) -> [usize; 3] {
        [self.0.start.addr(), self.0.row, self.0.column]
    }

    unsafe fn pack<T: Tiles>(&self, columns: Range<usize>, terms: Range<usize>, to: *mut f32) {
        let wide = T::TILE[1];
        for term in 0..terms.len() / 2 {
            // SAFETY: the numbers may be read, and there is room for a tile's columns for each term (this function's contract).
            unsafe {
                let from = self.0.at(terms.start / 2 + term, columns.start / 2);
                let to = to.add(2 * term * wide);
                let (first, second) =
                    (std::slice::from_raw_parts_mut(to, wide), std::slice::from_raw_parts_mut(to.add(wide), wide));
                let pairs = first.as_chunks_mut::<2>().0.iter_mut().zip(second.as_chunks_mut::<2>().0);
                if self.0.column == 2 && columns.len() == wide {
                    for ((one, other), &[re, im]) in
                        pairs.zip(std::slice::from_raw_parts(from.cast::<[f32; 2]>(), wide / 2))
                    {
                        (*one, *other) = ([re, im], [-im, re]);
                    }
                    continue;
                }
                for (column, (one, other)) in pairs.enumerate() {
                    let [re, im] = if 2 * column < columns.len() {
                        from.add(column * self.0.column).cast::<[f32; 2]>().read()
                    } else {
                        [0.0; 2]
                    };
                    (*one, *other) = ([re, im], [-im, re]);
                }
            }
        }
    }
}

/// A matrix of an operand, by its strides in float32.
///
/// # Safety
/// The batch's first element lies within the binding.
unsafe fn matrix(of: Floats, operand: &Operand, batch: usize) -> Matrix<*const f32> {
    // SAFETY: it lies within the binding (this function's contract).
    let start = unsafe { of.at(2 * operand.offsets[batch]).cast_const() };
    Matrix { start, row: 2 * operand.row, column: 2 * operand.column }
}

/// Runs `work` with the rows of a matrix, each contiguous: a copy where they are not.
///
/// # Safety
/// The matrix has the size.
unsafe fn with_rows(
    a: Matrix<*const f32>,
    [m, k]: [usize; 2],
    work: impl FnOnce(Matrix<*const f32>) -> Result<(), Stopped>,
) -> Result<(), Stopped> {
    if a.column == 2 {
        return work(Matrix { column: 1, ..a });
    }
    with_turned(2 * m * k, |rows| {
        let band = BESIDE.min(m);
        let along = (TASK / band).max(1);
        let to = Floats(rows, 2 * m * k);
        threads::each(m.div_ceil(band) * k.div_ceil(along), |task| {
            let (row, term) = (task % m.div_ceil(band) * band, task / m.div_ceil(band) * along);
            for term in term..k.min(term + along) {
                for row in row..m.min(row + band) {
                    // SAFETY: the matrix has the number (this function's contract), and there is room for it, which one task writes.
                    unsafe {
                        let number = a.at(row, term).cast::<[f32; 2]>().read();
                        to.at(2 * (row * k + term)).cast::<[f32; 2]>().write(number);
                    }
                }
            }
        });
        work(Matrix { start: rows.cast_const(), row: 2 * k, column: 1 })
    })
}

/// Multiplies each batch.
///
/// # Safety
/// Every element that the shape's sizes and strides reach lies within the bindings; nothing else touches the result.
pub(super) unsafe fn products(shape: &MatmulShape, [a, b, c]: [Floats; 3], limits: &Limits<'_>) -> Result<(), Stopped> {
    let (m, n, k) = (shape.m, shape.n, shape.k);
    let batches = shape.a.offsets.len();
    let one = |batch: usize, parallel: bool| {
        // SAFETY: every element lies within the bindings, and nothing else touches the result (this function's contract).
        unsafe {
            let (a, b) = (matrix(a, &shape.a, batch), matrix(b, &shape.b, batch));
            let c = c.at(2 * batch * m * n);
            if n == 1 {
                return vector(a, [m, k], (b.start, b.row), c, limits);
            }
            if m == 1 {
                let turned = Matrix { row: b.column, column: b.row, ..b };
                return vector(turned, [n, k], (a.start, a.column), c, limits);
            }
            if a.column != 2 && b.column == 2 {
                return by_halves([m, n, k], a, b, c, (parallel, limits));
            }
            with_rows(a, [m, k], |a| {
                by_slabs([m, 2 * n, 2 * k], limits, |rows, columns| {
                    let to = Matrix { start: c.add(rows.start * 2 * n + columns.start), row: 2 * n, column: 1 };
                    let a = Matrix { start: a.at(rows.start, 0), ..a };
                    let right = |term: usize| Squares(Matrix { start: b.at(term / 2, columns.start / 2), ..b });
                    let size = [rows.len(), columns.len(), 2 * k];
                    product::product_with(size, to, a, right, How { parallel, keeper: None });
                })
            })
        }
    };
    if batches >= threads::count() && batches > 1 {
        return threads::try_each(batches, |batch| threads::alone(|| one(batch, false)));
    }
    let parallel = m.saturating_mul(n).saturating_mul(k) >= THREADS_PAY / 4 && threads::count() > 1;
    (0..batches).try_for_each(|batch| one(batch, parallel))
}

/// The product of a matrix whose rows do not lie side by side with one whose rows do: the real and the imaginary parts of the first are strided real
/// matrices, which tiles pack as they lie, and rows of the second are twice as many real numbers.
///
/// # Safety
/// Every element lies within the bindings; the result is contiguous, and nothing else touches it.
unsafe fn by_halves(
    [m, n, k]: [usize; 3],
    a: Matrix<*const f32>,
    b: Matrix<*const f32>,
    c: *mut f32,
    (parallel, limits): (bool, &Limits<'_>),
) -> Result<(), Stopped> {
    let mut turned = vec![0.0_f32; 2 * m * n];
    let results = [Floats(c, 2 * m * n), Floats(turned.as_mut_ptr(), 2 * m * n)];
    let (a, b) = (Part(a), Part(b));
    let half = |part: usize, parallel: bool| {
        by_slabs([m, 2 * n, k], limits, |rows, columns| {
            // SAFETY: every element lies within the bindings, and nothing else touches the results (this function's contract).
            unsafe {
                let left = a.from(rows.start, 0);
                let left = Matrix { start: left.start.add(part), ..left };
                let right = b.from(0, 0);
                let right = Matrix { start: right.start.add(columns.start), column: 1, ..right };
                let to = results[part].at(rows.start * 2 * n + columns.start);
                let to = Matrix { start: to, row: 2 * n, column: 1 };
                product::product([rows.len(), columns.len(), k], to, left, right, How { parallel, keeper: None });
            }
        })
    };
    if parallel && m * n <= SMALL {
        threads::try_each(2, |part| threads::alone(|| half(part, false)))?;
    } else {
        (0..2).try_for_each(|part| half(part, parallel))?;
    }
    // i (x + i y) = -y + i x
    // SAFETY: the result has as many numbers, which nothing else touches (this function's contract).
    let c = unsafe { std::slice::from_raw_parts_mut(c.cast::<[f32; 2]>(), m * n) };
    let turned = turned.as_chunks::<2>().0;
    threads::each_chunk(c, TASK, |number, c| {
        for (sum, &[x, y]) in c.iter_mut().zip(&turned[number * TASK..]) {
            *sum = [sum[0] - y, sum[1] + x];
        }
    });
    Ok(())
}

/// A matrix that tasks read.
struct Part(Matrix<*const f32>);

// SAFETY: tasks read it only.
unsafe impl Sync for Part {}

impl Part {
    /// The matrix from an element on.
    ///
    /// # Safety
    /// There is such an element.
    unsafe fn from(&self, row: usize, column: usize) -> Matrix<*const f32> {
        // SAFETY: there is such an element (this function's contract).
        Matrix { start: unsafe { self.0.at(row, column) }, ..self.0 }
    }
}

forms! {
    /// Adds four columns of numbers, each times its factor.
    ///
    /// # Safety
    /// There are as many numbers in each column.
    unsafe fn add_columns(sums: &mut [[f32; 2]], columns: [*const [f32; 2]; 4], factors: [[f32; 2]; 4]) = add_columns_by
}

/// # Safety
/// As [`add_columns`].
#[inline(always)]
unsafe fn add_columns_by<I>(sums: &mut [[f32; 2]], columns: [*const [f32; 2]; 4], factors: [[f32; 2]; 4]) {
    // SAFETY: they have as many numbers (this function's contract).
    let columns = columns.map(|column| unsafe { std::slice::from_raw_parts(column, sums.len()) });
    let [[p, q], [r, s], [t, u], [v, w]] = factors;
    let [first, second, third, fourth] = columns;
    for ((((sum, a), b), c), d) in sums.iter_mut().zip(first).zip(second).zip(third).zip(fourth) {
        let re = (a[0] * p - a[1] * q) + (b[0] * r - b[1] * s);
        let im = (a[0] * q + a[1] * p) + (b[0] * s + b[1] * r);
        sum[0] += re + ((c[0] * t - c[1] * u) + (d[0] * v - d[1] * w));
        sum[1] += im + ((c[0] * u + c[1] * t) + (d[0] * w + d[1] * v));
    }
}

/// y = M v, of a matrix whose columns lie side by side, each in one pass.
///
/// # Safety
/// As [`vector`].
unsafe fn turned(
    matrix: Matrix<*const f32>,
    rows: usize,
    v: &[[f32; 2]],
    y: *mut f32,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let (matrix, y) = (Part(matrix), Floats(y, 2 * rows));
    let together = threads::share(rows, LONG);
    threads::try_each(rows.div_ceil(together), |task| {
        limits.begin().check()?;
        let first = task * together;
        let count = together.min(rows - first);
        // SAFETY: the matrix and the result have these rows (this function's contract), which one task writes.
        let sums = unsafe { std::slice::from_raw_parts_mut(y.at(2 * first).cast::<[f32; 2]>(), count) };
        sums.fill([0.0; 2]);
        let mut some = vec![[0.0; 2]; if v.len() > STRETCH { count } else { 0 }];
        for (number, stretch) in v.chunks(STRETCH).enumerate() {
            let to = if number == 0 { &mut *sums } else { &mut some[..] };
            to.fill([0.0; 2]);
            for (four, factors) in stretch.chunks(4).enumerate() {
                let term = number * STRETCH + 4 * four;
                // SAFETY: the matrix has these rows and terms (this function's contract).
                unsafe {
                    let column = |at: usize| matrix.from(first, term + at).start.cast::<[f32; 2]>();
                    if let Ok(factors) = factors.try_into() {
                        add_columns(to, std::array::from_fn(column), factors);
                    } else {
                        let alone = factors.iter().enumerate();
                        alone.for_each(|(at, &factor)| add_column(to, column(at), factor));
                    }
                }
            }
            if number > 0 {
                sums.iter_mut().zip(&some).for_each(|(sum, some)| *sum = [sum[0] + some[0], sum[1] + some[1]]);
            }
        }
        Ok(())
    })
}

/// Adds a column of numbers times a factor.
///
/// # Safety
/// There are as many numbers in the column.
unsafe fn add_column(sums: &mut [[f32; 2]], column: *const [f32; 2], [p, q]: [f32; 2]) {
    // SAFETY: it has as many numbers (this function's contract).
    let column = unsafe { std::slice::from_raw_parts(column, sums.len()) };
    for (sum, &[a, b]) in sums.iter_mut().zip(column) {
        *sum = [sum[0] + (a * p - b * q), sum[1] + (a * q + b * p)];
    }
}

/// y = M v, of numbers that lie `step` float32 apart, from two real products.
///
/// # Safety
/// The matrix and the vector have as many elements; nothing else touches the result.
unsafe fn vector(
    matrix: Matrix<*const f32>,
    [rows, terms]: [usize; 2],
    (v, step): (*const f32, usize),
    y: *mut f32,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    // SAFETY: the vector has as many elements (this function's contract).
    let numbers = (0..terms).map(|term| unsafe { v.add(term * step).cast::<[f32; 2]>().read() });
    if matrix.row != 2 || matrix.column == 2 {
        let mut vectors = [Vec::with_capacity(2 * terms), Vec::with_capacity(2 * terms)];
        for [re, im] in numbers {
            vectors[0].extend([re, -im]);
            vectors[1].extend([im, re]);
        }
        let [re, im] = &vectors;
        // SAFETY: the matrix has the size, its rows of real numbers twice as many terms, and the result as many numbers (this function's contract).
        return unsafe {
            with_rows(matrix, [rows, terms], |m| {
                let (all, y) = (Floats(m.start.cast_mut(), usize::MAX / 8), Floats(y, 2 * rows));
                let shape = Rows { first: 0, rows, terms: 2 * terms, row: m.row, term: 1 };
                gemv::products_with_two(all, shape, [re, im], y, limits)
            })
        };
    }
    if rows >= COLUMN {
        let v: Vec<[f32; 2]> = numbers.collect();
        // SAFETY: as this function's own contract.
        return unsafe { turned(matrix, rows, &v, y, limits) };
    }
    // Real and imaginary parts of the columns are rows of their own.
    let (first, second): (Vec<f32>, Vec<f32>) = numbers.map(|[re, im]| (re, im)).unzip();
    let floats = |all: &[f32]| Floats(all.as_ptr().cast_mut(), all.len());
    let mut sums = [vec![0.0_f32; 2 * rows], vec![0.0_f32; 2 * rows]];
    let shape = Rows { first: 0, rows: 2 * rows, terms, row: 1, term: matrix.column };
    for (v, y) in [&first, &second].into_iter().zip(&mut sums) {
        let (m, to) = (Floats(matrix.start.cast_mut(), usize::MAX / 8), Floats(y.as_mut_ptr(), y.len()));
        // SAFETY: the matrix has these rows of real numbers, and the vector and the result as many (this function's contract).
        unsafe { gemv::product(m, shape, floats(v), (0, 1), (to, 0), limits)? };
    }
    let [one, other] = &sums;
    for row in 0..rows {
        let number = [one[2 * row] - other[2 * row + 1], one[2 * row + 1] + other[2 * row]];
        // SAFETY: the result has as many numbers (this function's contract).
        unsafe { y.add(2 * row).cast::<[f32; 2]>().write(number) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::products;
    use crate::backend::native::{MatmulShape, Operand};
    use crate::floats::Floats;
    use crate::spmd::Limits;
    use crate::tensor::DType;

    #[test]
    fn products_of_complex_numbers_are_those_of_float64() {
        let mut state = 7_u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        let sizes = [
            [1, 1, 1],
            [1, 7, 30],
            [9, 1, 5],
            [300, 1, 40],
            [1, 130, 700],
            [3, 5, 2],
            [13, 17, 33],
            [64, 50, 70],
            [7, 9, 9000],
            [144, 144, 54],
            [5, 3, 4100],
            [1200, 1, 67],
            [1, 70, 3],
        ];
        for [m, n, k] in sizes {
            for batches in [1, 3] {
                for (turned_a, turned_b, pad) in
                    [(false, false, 0), (true, false, 2), (false, true, 1), (true, true, 0)]
                {
                    let (high, wide, deep) = (m + pad, n + pad, k + pad);
                    let a: Vec<f32> = (0..2 * batches * high * deep).map(|_| number()).collect();
                    let b: Vec<f32> = (0..2 * batches * deep * wide).map(|_| number()).collect();
                    let operand = |turned: bool, across: usize, along: usize| Operand {
                        offsets: (0..batches).map(|batch| batch * across * along).collect(),
                        row: if turned { 1 } else { along },
                        column: if turned { across } else { 1 },
                    };
                    let (of_a, of_b) = (operand(turned_a, high, deep), operand(turned_b, deep, wide));
                    let mut c = vec![9.0_f32; 2 * batches * m * n];
                    let floats = |of: &[f32]| Floats(of.as_ptr().cast_mut(), of.len());
                    let shape = MatmulShape { m, n, k, a: of_a.clone(), b: of_b.clone(), dtype: DType::Complex64 };
                    let to = Floats(c.as_mut_ptr(), c.len());
                    // SAFETY: the vectors hold what the sizes and steps reach.
                    unsafe { products(&shape, [floats(&a), floats(&b), to], &Limits::default()) }.unwrap();
                    for (at, found) in c.chunks_exact(2).enumerate() {
                        let (batch, row, column) = (at / (m * n), at % (m * n) / n, at % n);
                        let mut expected = [0.0_f64; 2];
                        for term in 0..k {
                            let x = 2 * (of_a.offsets[batch] + row * of_a.row + term * of_a.column);
                            let y = 2 * (of_b.offsets[batch] + term * of_b.row + column * of_b.column);
                            let [p, q, r, s] = [a[x], a[x + 1], b[y], b[y + 1]].map(f64::from);
                            expected = [expected[0] + p * r - q * s, expected[1] + p * s + q * r];
                        }
                        for part in 0..2 {
                            let error = (f64::from(found[part]) - expected[part]).abs();
                            assert!(
                                error <= 2e-6 * (k as f64).max(4.0),
                                "{m} x {n} x {k}, {turned_a}, {turned_b}, {batch}, {row}, {column}: {found:?}, not {expected:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}
