//! Products of matrices of float64, by tiles that stay in registers, and of matrices and vectors. How sums are cut depends on sizes alone, so the number
//! of threads changes no bit.

use super::floats::Floats;
use super::forms::forms;
use crate::backend::native::MatmulShape;
use crate::spmd::math::Baseline;
#[cfg(target_arch = "x86_64")]
use crate::spmd::math::{Fma, Fma512};
use crate::spmd::{Limits, Stopped};
use crate::threads;
use cantus_base::listed::Listed;

/// Terms that are packed at a time, and columns and rows: the columns lie in the second cache, the rows in front of them.
const TERMS: usize = 256;
const COLUMNS: usize = 512;
const ROWS: usize = 96;
/// Multiplications of a task, at least.
const TASK: usize = 1 << 17;
/// Terms of a part, where a small result has many; and parts, at most.
const PART: usize = 256;
const PARTS: usize = 16;
/// Results that are small.
const SMALL: usize = 128 * 128;
/// Rows and columns of the largest tile.
const MOST_ROWS: usize = 12;
const MOST_COLUMNS: usize = 16;

/// A matrix in memory.
#[derive(Clone, Copy)]
struct Strided {
    start: *const f64,
    row: usize,
    column: usize,
}

// SAFETY: tasks read it only.
unsafe impl Send for Strided {}
// SAFETY: tasks read it only.
unsafe impl Sync for Strided {}

impl Strided {
    /// The matrix from an element on.
    ///
    /// # Safety
    /// There is such an element.
    unsafe fn part(self, row: usize, column: usize) -> Self {
        // SAFETY: there is such an element (this function's contract).
        Self { start: unsafe { self.start.add(row * self.row + column * self.column) }, ..self }
    }
}

/// A result that tasks write, each a part of it.
#[derive(Clone, Copy)]
struct Target(*mut f64);

// SAFETY: each element is written by one task.
unsafe impl Send for Target {}
// SAFETY: each element is written by one task.
unsafe impl Sync for Target {}

impl Target {
    /// # Safety
    /// There is such an element.
    unsafe fn at(&self, place: usize) -> *mut f64 {
        // SAFETY: there is such an element (this function's contract).
        unsafe { self.0.add(place) }
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
        Strided { start: unsafe { of.start().cast::<f64>().add(first) }, row, column }
    };
    let left = |batch: usize| matrix(a, shape.a.offsets[batch], shape.a.row, shape.a.column);
    let right = |batch: usize| matrix(b, shape.b.offsets[batch], shape.b.row, shape.b.column);
    let (c, batches) = (Target(c.start().cast()), shape.a.offsets.len());
    if m == 1 || n == 1 {
        for batch in 0..batches {
            let (a, b) = (left(batch), right(batch));
            // SAFETY: the elements lie within the bindings (this function's contract). A row times a matrix is the matrix, turned, times the row.
            unsafe {
                if n == 1 {
                    vector([m, k], a, (b.start, b.row), c.at(batch * m), limits)?;
                } else {
                    let turned = Strided { row: b.column, column: b.row, ..b };
                    vector([n, k], turned, (a.start, a.column), c.at(batch * n), limits)?;
                }
            }
        }
        return Ok(());
    }
    if batches == 1 && m * n <= SMALL && k >= 2 * PART {
        // SAFETY: the elements lie within the bindings (this function's contract).
        return unsafe { by_parts([m, n, k], left(0), right(0), c, limits) };
    }
    let each = (TASK / (n * k)).max(m.div_ceil(2 * threads::count())).next_multiple_of(MOST_ROWS).min(m);
    let tasks = m.div_ceil(each);
    let together =
        if tasks == 1 { (TASK / (m * n * k).max(1)).clamp(1, batches.div_ceil(2 * threads::count())) } else { 1 };
    threads::try_each((batches * tasks).div_ceil(together), |number| {
        for number in number * together..(batches * tasks).min((number + 1) * together) {
            let (batch, first) = (number / tasks, number % tasks * each);
            let rows = each.min(m - first);
            // SAFETY: the elements lie within the bindings (this function's contract); each row is written by one task.
            unsafe {
                let to = c.at((batch * m + first) * n);
                multiply([rows, n, k], left(batch).part(first, 0), right(batch), to, limits)?;
            }
        }
        Ok(())
    })
}

/// A product of few rows and columns and many terms, parts of which are tasks.
///
/// # Safety
/// As [`products`].
unsafe fn by_parts(
    [m, n, k]: [usize; 3],
    a: Strided,
    b: Strided,
    c: Target,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let part = PART.max(k.div_ceil(PARTS));
    let parts = k.div_ceil(part);
    let mut sums = vec![0.0; parts * m * n];
    let to = Target(sums.as_mut_ptr());
    threads::try_each(parts, |number| {
        let terms = part.min(k - number * part);
        // SAFETY: the elements lie within the bindings (this function's contract); each part has room for its sums.
        unsafe {
            let (a, b) = (a.part(0, number * part), b.part(number * part, 0));
            multiply([m, n, terms], a, b, to.at(number * m * n), limits)
        }
    })?;
    // SAFETY: the result has as many elements, which nothing else touches (this function's contract).
    let c = unsafe { std::slice::from_raw_parts_mut(c.0, m * n) };
    add_parts(c, &sums);
    Ok(())
}

/// Adds parts in their order.
fn add_parts(to: &mut [f64], parts: &[f64]) {
    to.fill(0.0);
    for part in parts.chunks_exact(to.len().max(1)) {
        to.iter_mut().zip(part).for_each(|(to, part)| *to += part);
    }
}

/// Multiplies on this thread.
///
/// # Safety
/// The matrices have these sizes; the result is contiguous, and nothing else touches it.
unsafe fn multiply(
    [m, n, k]: [usize; 3],
    a: Strided,
    b: Strided,
    c: *mut f64,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let columns = n.min(COLUMNS).next_multiple_of(MOST_COLUMNS);
    let rows = m.min(ROWS).next_multiple_of(MOST_ROWS);
    let terms = k.min(TERMS);
    let (mut of_a, mut of_b) = (vec![0.0; rows * terms], vec![0.0; columns * terms]);
    for column in (0..n).step_by(COLUMNS) {
        for term in (0..k).step_by(TERMS) {
            limits.begin().check()?;
            let (count, terms) = (COLUMNS.min(n - column), TERMS.min(k - term));
            // SAFETY: the parts lie within the matrices (this function's contract).
            unsafe {
                block(
                    [m, count, terms],
                    a.part(0, term),
                    b.part(term, column),
                    (c.add(column), n, term > 0),
                    [&mut of_a, &mut of_b],
                );
            }
        }
    }
    Ok(())
}

forms! {
    /// Multiplies up to [`TERMS`] terms of up to [`COLUMNS`] columns; adds to the result, or writes it.
    ///
    /// # Safety
    /// The matrices have these sizes, and rows of the result begin as many elements apart; there is room for what is packed.
    unsafe fn block(sizes: [usize; 3], a: Strided, b: Strided, c: (*mut f64, usize, bool), packed: [&mut [f64]; 2]) = block_by
}

/// Vectors of float64.
///
/// # Safety
/// As `registers::Lanes`: code that may use the set calls it, and all of it is inlined there; vectors may be read or written at the addresses.
trait Doubles {
    type Vector: Copy;
    const LANES: usize;
    /// Rows of a tile, of two vectors each.
    const ROWS: usize;
    unsafe fn zero() -> Self::Vector;
    unsafe fn splat(value: f64) -> Self::Vector;
    unsafe fn load(at: *const f64) -> Self::Vector;
    unsafe fn store(at: *mut f64, value: Self::Vector);
    /// Fewer elements than a vector has, and zeros: others are not read.
    unsafe fn load_some(at: *const f64, count: usize) -> Self::Vector;
    /// The sum of each vector, of which there are as many as lanes.
    unsafe fn sums(of: &[Self::Vector]) -> Self::Vector;
    /// [`lot_of`] of as many rows as lanes.
    unsafe fn lot(rows: Strided, count: usize, v: &[f64], y: *mut f64);
    /// a b + c
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// The product of a strip of rows and one of columns.
    unsafe fn tile(terms: usize, a: *const f64, b: *const f64, to: &mut [f64; MOST_ROWS * MOST_COLUMNS]);
}

#[cfg(target_arch = "x86_64")]
macro_rules! x86 {
    ($isa:ident, $lanes:literal, $rows:literal, $vector:ident: $zero:ident $splat:ident $load:ident $store:ident $fma:ident $some:ident $sums:ident) => {
        impl Doubles for $isa {
            type Vector = std::arch::x86_64::$vector;
            const LANES: usize = $lanes;
            const ROWS: usize = $rows;

            #[inline(always)]
            unsafe fn zero() -> Self::Vector {
                // SAFETY: the caller's code may use these instructions (the contract of `Doubles`).
                unsafe { std::arch::x86_64::$zero() }
            }

            #[inline(always)]
            unsafe fn splat(value: f64) -> Self::Vector {
                // SAFETY: the caller's code may use these instructions (the contract of `Doubles`).
                unsafe { std::arch::x86_64::$splat(value) }
            }

            #[inline(always)]
            unsafe fn load(at: *const f64) -> Self::Vector {
                // SAFETY: a vector can be read there, by code that may use these instructions (the contract of `Doubles`).
                unsafe { std::arch::x86_64::$load(at) }
            }

            #[inline(always)]
            unsafe fn store(at: *mut f64, value: Self::Vector) {
                // SAFETY: a vector can be written there, by code that may use these instructions (the contract of `Doubles`).
                unsafe { std::arch::x86_64::$store(at, value) }
            }

            #[inline(always)]
            unsafe fn load_some(at: *const f64, count: usize) -> Self::Vector {
                // SAFETY: so many can be read there, by code that may use these instructions (the contract of `Doubles`).
                unsafe { $some(at, count) }
            }

            #[inline(always)]
            unsafe fn sums(of: &[Self::Vector]) -> Self::Vector {
                // SAFETY: the caller's code may use these instructions (the contract of `Doubles`).
                unsafe { $sums(of) }
            }

            #[inline(always)]
            unsafe fn lot(rows: Strided, count: usize, v: &[f64], y: *mut f64) {
                // SAFETY: as this function's own contract.
                unsafe { lot_of::<Self, $lanes>(rows, count, v, y) }
            }

            #[inline(always)]
            unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
                // SAFETY: the caller's code may use these instructions (the contract of `Doubles`).
                unsafe { std::arch::x86_64::$fma(a, b, c) }
            }

            #[inline(always)]
            unsafe fn tile(terms: usize, a: *const f64, b: *const f64, to: &mut [f64; MOST_ROWS * MOST_COLUMNS]) {
                // SAFETY: as this function's own contract.
                unsafe { tile_of::<Self, $rows>(terms, a, b, to) }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
x86!(Fma, 4, 6, __m256d: _mm256_setzero_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_fmadd_pd some4 sums4);
#[cfg(target_arch = "x86_64")]
x86!(Fma512, 8, 12, __m512d: _mm512_setzero_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_fmadd_pd some8 sums8);

/// # Safety
/// As [`Doubles::load_some`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn some4(at: *const f64, count: usize) -> std::arch::x86_64::__m256d {
    use std::arch::x86_64::*;
    // SAFETY: what the mask leaves out is not read; this code may use the instructions (this function's contract).
    unsafe {
        let mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3));
        _mm256_maskload_pd(at, mask)
    }
}

/// # Safety
/// As [`Doubles::sums`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn sums4(of: &[std::arch::x86_64::__m256d]) -> std::arch::x86_64::__m256d {
    use std::arch::x86_64::*;
    // SAFETY: this code may use the instructions (this function's contract).
    unsafe {
        let [a, b, c, d] = *of else { return _mm256_setzero_pd() };
        let (ab, cd) = (_mm256_hadd_pd(a, b), _mm256_hadd_pd(c, d));
        _mm256_add_pd(_mm256_permute2f128_pd::<0x20>(ab, cd), _mm256_permute2f128_pd::<0x31>(ab, cd))
    }
}

/// # Safety
/// As [`Doubles::load_some`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn some8(at: *const f64, count: usize) -> std::arch::x86_64::__m512d {
    // SAFETY: what the mask leaves out is not read; this code may use the instructions (this function's contract).
    unsafe { std::arch::x86_64::_mm512_maskz_loadu_pd(((1_u32 << count) - 1) as u8, at) }
}

/// # Safety
/// As [`Doubles::sums`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn sums8(of: &[std::arch::x86_64::__m512d]) -> std::arch::x86_64::__m512d {
    use std::arch::x86_64::*;
    // SAFETY: this code may use the instructions (this function's contract).
    unsafe {
        let [a, b, c, d, e, f, g, h] = *of else { return _mm512_setzero_pd() };
        // Pairs of lanes, then blocks of two lanes, twice.
        let pairs = |a, b| _mm512_add_pd(_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
        let halves = |a, b| {
            let even = _mm512_shuffle_f64x2::<0b10_00_10_00>(a, b);
            _mm512_add_pd(even, _mm512_shuffle_f64x2::<0b11_01_11_01>(a, b))
        };
        halves(halves(pairs(a, b), pairs(c, d)), halves(pairs(e, f), pairs(g, h)))
    }
}

/// Two float64, which become a vector wherever the target has some.
impl Doubles for Baseline {
    type Vector = [f64; 2];
    const LANES: usize = 2;
    const ROWS: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self::Vector {
        [0.0; 2]
    }

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self::Vector {
        [value; 2]
    }

    #[inline(always)]
    unsafe fn load(at: *const f64) -> Self::Vector {
        // SAFETY: two numbers can be read there (the contract of `Doubles`).
        unsafe { *at.cast() }
    }

    #[inline(always)]
    unsafe fn store(at: *mut f64, value: Self::Vector) {
        // SAFETY: two numbers can be written there (the contract of `Doubles`).
        unsafe { *at.cast() = value }
    }

    #[inline(always)]
    unsafe fn load_some(at: *const f64, count: usize) -> Self::Vector {
        // SAFETY: so many can be read there (the contract of `Doubles`).
        [if count > 0 { unsafe { at.read() } } else { 0.0 }, 0.0]
    }

    #[inline(always)]
    unsafe fn sums(of: &[Self::Vector]) -> Self::Vector {
        if let [a, b] = *of { [a[0] + a[1], b[0] + b[1]] } else { [0.0; 2] }
    }

    #[inline(always)]
    unsafe fn lot(rows: Strided, count: usize, v: &[f64], y: *mut f64) {
        // SAFETY: as this function's own contract.
        unsafe { lot_of::<Self, 2>(rows, count, v, y) }
    }

    #[inline(always)]
    unsafe fn multiply_add([a, b]: Self::Vector, x: Self::Vector, sum: Self::Vector) -> Self::Vector {
        [a * x[0] + sum[0], b * x[1] + sum[1]]
    }

    #[inline(always)]
    unsafe fn tile(terms: usize, a: *const f64, b: *const f64, to: &mut [f64; MOST_ROWS * MOST_COLUMNS]) {
        // SAFETY: as this function's own contract.
        unsafe { tile_of::<Self, 4>(terms, a, b, to) }
    }
}

/// The product of a strip of `R` rows and one of two vectors of columns.
///
/// # Safety
/// The strips have as many terms; this code may use the set.
#[inline(always)]
unsafe fn tile_of<I: Doubles, const R: usize>(
    terms: usize,
    a: *const f64,
    b: *const f64,
    to: &mut [f64; MOST_ROWS * MOST_COLUMNS],
) {
    // SAFETY: the strips have as many terms, by code that may use the set (this function's contract); the tile has room for `R` rows of two vectors.
    unsafe {
        let mut sums = [[I::zero(); 2]; R];
        for term in 0..terms {
            let right = b.add(term * 2 * I::LANES);
            let (first, second) = (I::load(right), I::load(right.add(I::LANES)));
            let left = a.add(term * R);
            for (row, sums) in sums.iter_mut().enumerate() {
                let factor = I::splat(left.add(row).read());
                sums[0] = I::multiply_add(factor, first, sums[0]);
                sums[1] = I::multiply_add(factor, second, sums[1]);
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            let to = to.as_mut_ptr().add(row * 2 * I::LANES);
            I::store(to, sums[0]);
            I::store(to.add(I::LANES), sums[1]);
        }
    }
}

/// Packs strips: for each term as many elements of a strip side by side, and zeros where there are no more.
///
/// # Safety
/// The matrix has `count` lines `line` apart, of `terms` elements `term` apart; there is room for them.
#[inline(always)]
unsafe fn pack(from: *const f64, [count, line]: [usize; 2], [terms, term]: [usize; 2], wide: usize, to: &mut [f64]) {
    for (strip, to) in to.chunks_exact_mut(wide * terms).take(count.div_ceil(wide)).enumerate() {
        let first = strip * wide;
        let taken = wide.min(count - first);
        for (place, to) in to.chunks_exact_mut(wide).enumerate() {
            let (lines, rest) = to.split_at_mut(taken);
            // SAFETY: the elements lie there (this function's contract).
            let from = unsafe { from.add(first * line + place * term) };
            if line == 1 && taken == wide {
                // SAFETY: `wide` elements lie side by side there (this function's contract).
                lines.copy_from_slice(unsafe { std::slice::from_raw_parts(from, wide) });
                continue;
            }
            for (number, to) in lines.iter_mut().enumerate() {
                // SAFETY: `lines` has as many lines as lie behind `from` (this function's contract).
                *to = unsafe { from.add(number * line).read() };
            }
            rest.fill(0.0);
        }
    }
}

/// # Safety
/// As [`block`], in code that may use the set of `I`.
#[inline(always)]
unsafe fn block_by<I: Doubles>(
    [m, n, k]: [usize; 3],
    a: Strided,
    b: Strided,
    (c, to_next, adds): (*mut f64, usize, bool),
    [of_a, of_b]: [&mut [f64]; 2],
) {
    let wide = 2 * I::LANES;
    // SAFETY: the matrices have these sizes, and there is room (this function's contract).
    unsafe { pack(b.start, [n, b.column], [k, b.row], wide, of_b) };
    let mut tile = [0.0; MOST_ROWS * MOST_COLUMNS];
    for first in (0..m).step_by(ROWS) {
        let rows = ROWS.min(m - first);
        // SAFETY: `rows` rows from `first` on lie in a, and `of_a` has room for them (this function's contract).
        unsafe { pack(a.start.add(first * a.row), [rows, a.row], [k, a.column], I::ROWS, of_a) };
        for column in (0..n).step_by(wide) {
            let columns = wide.min(n - column);
            for row in (0..rows).step_by(I::ROWS) {
                // SAFETY: the strips were packed, and the result has these rows and columns (this function's contract).
                unsafe {
                    I::tile(k, of_a.as_ptr().add(row * k), of_b.as_ptr().add(column * k), &mut tile);
                    for (number, tile) in tile.chunks_exact(wide).take(I::ROWS.min(rows - row)).enumerate() {
                        let to = c.add((first + row + number) * to_next + column);
                        let to = std::slice::from_raw_parts_mut(to, columns);
                        match (adds, columns == wide) {
                            (true, _) => to.iter_mut().zip(tile).for_each(|(to, sum)| *to += sum),
                            // As many as the compiler knows: no call.
                            (false, true) => to.as_mut_ptr().copy_from_nonoverlapping(tile.as_ptr(), wide),
                            (false, false) => to.copy_from_slice(&tile[..columns]),
                        }
                    }
                }
            }
        }
    }
}

/// y = M v, the vector's elements `step` apart.
///
/// # Safety
/// The matrix has as many rows and terms, and the vector as many terms; nothing else touches the result.
unsafe fn vector(
    [rows, terms]: [usize; 2],
    m: Strided,
    (from, step): (*const f64, usize),
    y: *mut f64,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    // SAFETY: the vector has as many elements (this function's contract).
    let v = (0..terms).map(|term| unsafe { from.add(term * step).read() }).listed();
    let y = Target(y);
    if m.row < m.column && terms >= 2 {
        // Columns are contiguous: parts of the terms are tasks.
        let part = PART.max(terms.div_ceil(PARTS)).min(terms);
        let parts = terms.div_ceil(part);
        let mut sums = vec![0.0; parts * rows];
        limits.begin().check()?;
        threads::each_chunk(&mut sums, rows, |number, sums| {
            let v = &v[number * part..terms.min((number + 1) * part)];
            // SAFETY: the matrix has these terms (this function's contract).
            unsafe { add_columns(sums, m.part(0, number * part), v) };
        });
        // SAFETY: the result has as many elements, which nothing else touches (this function's contract).
        add_parts(unsafe { std::slice::from_raw_parts_mut(y.0, rows) }, &sums);
        return limits.begin().check();
    }
    let together = (TASK / 4 / terms.max(1)).max(1);
    threads::try_each(rows.div_ceil(together), |task| {
        limits.begin().check()?;
        let first = task * together;
        // SAFETY: the matrix has these rows, and one task writes their results (this function's contract).
        unsafe {
            let y = std::slice::from_raw_parts_mut(y.at(first), together.min(rows - first));
            dots(m.part(first, 0), &v, y);
        }
        Ok(())
    })
}

forms! {
    /// Multiplies rows.
    ///
    /// # Safety
    /// There is a row for each result, of as many elements as the vector.
    unsafe fn dots(rows: Strided, v: &[f64], y: &mut [f64]) = dots_by
}
forms! {
    /// Adds columns times their factors.
    ///
    /// # Safety
    /// There is a column for each factor, of as many elements as there are sums.
    unsafe fn add_columns(sums: &mut [f64], columns: Strided, factors: &[f64]) = add_columns_by
}

/// Rows that are multiplied side by side.
const TOGETHER: usize = 4;
/// Rows of fewer elements than this are multiplied as many at a time as a vector has lanes: their sums become a vector at once.
const SHORT: usize = 256;

/// # Safety
/// As [`dots`].
#[inline(always)]
unsafe fn dots_by<I: Doubles>(rows: Strided, v: &[f64], y: &mut [f64]) {
    // SAFETY: there is a row for each result, of as many elements as the vector (this function's contract), in code that may use the set.
    unsafe {
        if rows.column != 1 {
            for (row, y) in y.iter_mut().enumerate() {
                let row = rows.part(row, 0).start;
                *y = v.iter().enumerate().fold(0.0, |sum, (term, v)| sum + row.add(term * rows.column).read() * v);
            }
            return;
        }
        if v.len() < SHORT {
            for (number, y) in y.chunks_mut(I::LANES).enumerate() {
                I::lot(rows.part(number * I::LANES, 0), y.len(), v, y.as_mut_ptr());
            }
            return;
        }
        let (lots, rest) = y.as_chunks_mut::<TOGETHER>();
        for (lot, y) in lots.iter_mut().enumerate() {
            *y = dots_of::<I, TOGETHER>(rows.part(lot * TOGETHER, 0), v);
        }
        for (row, y) in rest.iter_mut().enumerate() {
            [*y] = dots_of::<I, 1>(rows.part(lots.len() * TOGETHER + row, 0), v);
        }
    }
}

/// The products of rows whose elements lie side by side, in sums of two vectors each; those of what is left are added at the end.
///
/// # Safety
/// As [`dots`], of `R` rows, in code that may use the set of `I`.
#[inline(always)]
unsafe fn dots_of<I: Doubles, const R: usize>(rows: Strided, v: &[f64]) -> [f64; R] {
    let (pair, whole) = (2 * I::LANES, v.len() - v.len() % (2 * I::LANES));
    // SAFETY: the rows have as many elements as the vector, by code that may use the set (this function's contract).
    unsafe {
        let mut sums = [[I::zero(); 2]; R];
        for at in (0..whole).step_by(pair) {
            let right = v.as_ptr().add(at);
            let (first, second) = (I::load(right), I::load(right.add(I::LANES)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let left = rows.start.add(row * rows.row + at);
                sums[0] = I::multiply_add(I::load(left), first, sums[0]);
                sums[1] = I::multiply_add(I::load(left.add(I::LANES)), second, sums[1]);
            }
        }
        let mut totals = [0.0; R];
        for (row, (total, sums)) in totals.iter_mut().zip(sums).enumerate() {
            let mut lanes = [0.0; MOST_COLUMNS / 2];
            I::store(lanes.as_mut_ptr(), I::multiply_add(sums[0], I::splat(1.0), sums[1]));
            let mut half = I::LANES / 2;
            while half > 0 {
                (0..half).for_each(|lane| lanes[lane] += lanes[lane + half]);
                half /= 2;
            }
            let left = rows.start.add(row * rows.row);
            *total = (whole..v.len()).fold(lanes[0], |sum, at| sum + left.add(at).read() * v[at]);
        }
        totals
    }
}

/// The products of as many rows as there are lanes, or of `count` of them, whose elements lie side by side.
///
/// # Safety
/// There are `count` rows, at least one, of as many elements as `v` has, and as many results, in code that may use the set of `I`.
#[inline(always)]
unsafe fn lot_of<I: Doubles, const R: usize>(rows: Strided, count: usize, v: &[f64], y: *mut f64) {
    let whole = v.len() - v.len() % I::LANES;
    let left = v.len() - whole;
    // SAFETY: the rows have as many elements as the vector, by code that may use the set (this function's contract).
    unsafe {
        // Rows that are not there are the last one again.
        let starts: [*const f64; R] = std::array::from_fn(|row| rows.start.add(row.min(count - 1) * rows.row));
        let mut sums = [I::zero(); R];
        for at in (0..whole).step_by(I::LANES) {
            let right = I::load(v.as_ptr().add(at));
            for (row, sum) in starts.iter().zip(&mut sums) {
                *sum = I::multiply_add(I::load(row.add(at)), right, *sum);
            }
        }
        if left > 0 {
            let right = I::load_some(v.as_ptr().add(whole), left);
            for (row, sum) in starts.iter().zip(&mut sums) {
                *sum = I::multiply_add(I::load_some(row.add(whole), left), right, *sum);
            }
        }
        let sums = I::sums(&sums);
        if count == R {
            return I::store(y, sums);
        }
        let mut lanes = [0.0; MOST_COLUMNS / 2];
        I::store(lanes.as_mut_ptr(), sums);
        std::slice::from_raw_parts_mut(y, count).copy_from_slice(&lanes[..count]);
    }
}

/// # Safety
/// As [`add_columns`].
#[inline(always)]
unsafe fn add_columns_by<I>(sums: &mut [f64], columns: Strided, factors: &[f64]) {
    for (term, &factor) in factors.iter().enumerate() {
        // SAFETY: the columns have these elements (this function's contract).
        unsafe {
            let column = columns.start.add(term * columns.column);
            if columns.row == 1 {
                let column = std::slice::from_raw_parts(column, sums.len());
                for (sum, element) in sums.iter_mut().zip(column) {
                    *sum += element * factor;
                }
            } else {
                for (place, sum) in sums.iter_mut().enumerate() {
                    *sum += column.add(place * columns.row).read() * factor;
                }
            }
        }
    }
}
