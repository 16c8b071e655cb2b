//! Products of a matrix and a vector: bound by memory, so rows are read once, side by side or down columns as they lie. `multiply` and `complexes` call it
//! when one operand is a vector. Sums have the same bits for any number of threads: parts are cut by sizes alone (`few_results`). Nothing is packed, since
//! each element of the matrix is used once.

use super::floats::Floats;
use super::forms::forms;
use super::registers::{Lanes, Total};
use crate::spmd::math::Isa;
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Elements of a matrix that a task takes at least.
const TASK: usize = 1 << 15;
/// Results of a task, at least; where columns are added, enough for whole cache lines side by side.
const LANES: usize = 32;
const WIDE: usize = 128;
/// Fewer results are computed in parts of this many terms at least, where there are as many; and in no more parts than these.
const FEW_RESULTS: usize = 1024;
const PART: usize = 512;
const MOST_PARTS: usize = 32;
/// Rows that are multiplied side by side.
const ROWS: usize = 4;
/// Columns that are added to a wide result at a time: it is read and written once for all of them.
const COLUMNS: usize = 16;

/// A matrix of `rows` by `terms` elements by its steps.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) terms: usize,
    pub(super) row: usize,
    pub(super) term: usize,
}

/// y = M v, the vector's elements `step` apart from `start` on.
///
/// # Safety
/// Every element that the sizes and steps reach lies within the bindings; nothing else touches the result.
pub(super) unsafe fn product(
    m: Floats,
    shape: Rows,
    v: Floats,
    (start, step): (usize, usize),
    y: (Floats, usize),
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let Rows { first, rows, terms, row, term } = shape;
    let gathered: Vec<f32>;
    // SAFETY: the vector's `terms` elements lie within the binding (this function's contract).
    let vector = unsafe {
        if step == 1 {
            std::slice::from_raw_parts(v.at(start).cast_const(), terms)
        } else {
            gathered = (0..terms).map(|at| v.at(start + at * step).read()).collect();
            &gathered
        }
    };
    let (y, to) = y;
    if row == 1 && term != 1 && rows < FEW_RESULTS && terms >= 2 * PART {
        // SAFETY: matrix and result have these rows (this function's contract).
        return unsafe { few_results(m, shape, vector, y.at(to), limits) };
    }
    let together = (TASK / terms.max(1)).max(if row == 1 && term != 1 { WIDE } else { LANES });
    threads::try_each(rows.div_ceil(together), |task| {
        limits.begin().check()?;
        let from = task * together;
        let count = together.min(rows - from);
        // SAFETY: matrix and result have these rows (this function's contract); tasks write distinct parts of the result.
        unsafe {
            let y = std::slice::from_raw_parts_mut(y.at(to + from), count);
            if term == 1 {
                let line = |at: usize| std::slice::from_raw_parts(m.at(first + (from + at) * row).cast_const(), terms);
                let (fours, rest) = y.as_chunks_mut::<ROWS>();
                let whole = fours.len() * ROWS;
                for (at, y) in fours.iter_mut().enumerate() {
                    *y = dots([0, 1, 2, 3].map(|beside| line(at * ROWS + beside)), vector);
                }
                rest.iter_mut().enumerate().for_each(|(at, y)| *y = dot(line(whole + at), vector));
            } else if row == 1 {
                add_columns(y, m.at(first + from).cast_const(), term, vector);
            } else {
                for (at, y) in y.iter_mut().enumerate() {
                    let element = |place: usize| m.at(first + (from + at) * row + place * term).read();
                    *y = vector.iter().enumerate().fold(0.0, |sum, (place, v)| sum + element(place) * v);
                }
            }
        }
        Ok(())
    })
}

/// The products of a matrix, whose rows are contiguous, and two vectors of `terms` elements, beside each other.
///
/// # Safety
/// As [`product`]; the result has two elements for each row.
pub(super) unsafe fn products_with_two(
    m: Floats,
    shape: Rows,
    vectors: [&[f32]; 2],
    y: Floats,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let Rows { first, rows, terms, row, .. } = shape;
    let together = (TASK / terms.max(1)).max(LANES);
    threads::try_each(rows.div_ceil(together), |task| {
        limits.begin().check()?;
        let (from, end) = (task * together, rows.min((task + 1) * together));
        // SAFETY: matrix and result have these rows (this function's contract); tasks write distinct parts of the result.
        unsafe {
            let line = |at: usize| std::slice::from_raw_parts(m.at(first + at * row).cast_const(), terms);
            let y = std::slice::from_raw_parts_mut(y.at(2 * from).cast::<[f32; 2]>(), end - from);
            let (fours, rest) = y.as_chunks_mut::<ROWS>();
            let whole = from + fours.len() * ROWS;
            for (at, y) in fours.iter_mut().enumerate() {
                *y = dots_with_two([0, 1, 2, 3].map(|beside| line(from + at * ROWS + beside)), vectors);
            }
            rest.iter_mut().enumerate().for_each(|(at, y)| *y = dot_with_two(line(whole + at), vectors));
        }
        Ok(())
    })
}

/// The same with few results of many terms: parts of the terms are tasks, of one size for any number of threads, and with it of the same bits.
///
/// # Safety
/// As [`product`]; a result's elements lie `term` apart.
unsafe fn few_results(m: Floats, shape: Rows, vector: &[f32], y: *mut f32, limits: &Limits<'_>) -> Result<(), Stopped> {
    let part = PART.max(shape.terms.div_ceil(MOST_PARTS));
    let mut sums = vec![0.0; shape.rows * shape.terms.div_ceil(part)];
    limits.begin().check()?;
    threads::each_chunk(&mut sums, shape.rows, |number, sums| {
        let factors = &vector[number * part..shape.terms.min((number + 1) * part)];
        // SAFETY: the matrix has these terms of each row (this function's contract).
        unsafe { add_columns(sums, m.at(shape.first + number * part * shape.term).cast_const(), shape.term, factors) };
    });
    limits.begin().check()?;
    // SAFETY: nothing else touches the result (this function's contract).
    let y = unsafe { std::slice::from_raw_parts_mut(y, shape.rows) };
    y.fill(0.0);
    for sums in sums.chunks_exact(shape.rows) {
        y.iter_mut().zip(sums).for_each(|(y, sum)| *y += sum);
    }
    Ok(())
}

forms! {
    fn dots(rows: [&[f32]; ROWS], b: &[f32]) -> [f32; ROWS] = dots_by
}
forms! {
    fn dot(a: &[f32], b: &[f32]) -> f32 = dot_by
}
forms! {
    fn dots_with_two(rows: [&[f32]; ROWS], b: [&[f32]; 2]) -> [[f32; 2]; ROWS] = dots_with_two_by
}
forms! {
    fn dot_with_two(a: &[f32], b: [&[f32]; 2]) -> [f32; 2] = dot_with_two_by
}
forms! {
    /// y = the sum of columns times their factors, one after the other. A column begins `step` floats behind the one before.
    ///
    /// # Safety
    /// There is a column for each factor, with as many elements as `y`, which may be read.
    unsafe fn add_columns(y: &mut [f32], columns: *const f32, step: usize, factors: &[f32]) = add_columns_by
}

#[inline(always)]
fn dot_by<I: Total + Isa>(a: &[f32], b: &[f32]) -> f32 {
    let [sum] = dots_of::<I, 1, 4>([a], b);
    sum
}

#[inline(always)]
fn dots_by<I: Total + Isa>(rows: [&[f32]; ROWS], b: &[f32]) -> [f32; ROWS] {
    dots_of::<I, ROWS, 2>(rows, b)
}

#[inline(always)]
fn dot_with_two_by<I: Total + Isa>(a: &[f32], b: [&[f32]; 2]) -> [f32; 2] {
    let [sums] = products_of::<I, 1>([a], b);
    sums
}

#[inline(always)]
fn dots_with_two_by<I: Total + Isa>(rows: [&[f32]; ROWS], b: [&[f32]; 2]) -> [[f32; 2]; ROWS] {
    products_of::<I, ROWS>(rows, b)
}

/// Returns the products of several rows and two vectors.
#[inline(always)]
fn products_of<I: Total + Isa, const R: usize>(rows: [&[f32]; R], [b, c]: [&[f32]; 2]) -> [[f32; 2]; R] {
    let length = rows.iter().fold(b.len().min(c.len()), |length, row| length.min(row.len()));
    let whole = length - length % I::LANES;
    // SAFETY: the form runs on processors that have its set; what is read lies before `length`.
    unsafe {
        let mut sums = [[I::zero(); 2]; R];
        for at in (0..length).step_by(I::LANES) {
            let rest = length - at;
            let (b, c) =
                (part::<I>(b.as_ptr().add(at), at < whole, rest), part::<I>(c.as_ptr().add(at), at < whole, rest));
            for (row, sums) in rows.iter().zip(&mut sums) {
                let left = part::<I>(row.as_ptr().add(at), at < whole, rest);
                sums[0] = I::multiply_add(left, b, sums[0]);
                sums[1] = I::multiply_add(left, c, sums[1]);
            }
        }
        let mut totals = [[0.0; 2]; R];
        for (totals, sums) in totals.iter_mut().zip(sums) {
            *totals = [I::total(sums[0]), I::total(sums[1])];
        }
        totals
    }
}

/// Returns the products of several rows and a vector, taking `V` vectors of lanes at a time.
#[inline(always)]
fn dots_of<I: Total + Isa, const R: usize, const V: usize>(rows: [&[f32]; R], b: &[f32]) -> [f32; R] {
    let length = rows.iter().fold(b.len(), |length, row| length.min(row.len()));
    let step = V * I::LANES;
    let whole = length - length % step;
    // SAFETY: the form runs on processors that have its set; what is read lies before `whole`.
    unsafe {
        let mut sums = [[I::zero(); V]; R];
        let mut at = 0;
        while at < whole {
            for place in 0..V {
                let right = I::load(b.as_ptr().add(at + place * I::LANES));
                for (row, sums) in rows.iter().zip(&mut sums) {
                    let left = I::load(row.as_ptr().add(at + place * I::LANES));
                    sums[place] = I::multiply_add(left, right, sums[place]);
                }
            }
            at += step;
        }
        while at < length {
            let count = I::LANES.min(length - at);
            let right = I::load_first(b.as_ptr().add(at), count);
            for (row, sums) in rows.iter().zip(&mut sums) {
                sums[0] = I::multiply_add(I::load_first(row.as_ptr().add(at), count), right, sums[0]);
            }
            at += count;
        }
        let mut totals = [0.0; R];
        for (total, sums) in totals.iter_mut().zip(sums) {
            *total = I::total(sums.into_iter().reduce(|a, b| I::add(a, b)).unwrap_or(I::zero()));
        }
        totals
    }
}

/// # Safety
/// As [`add_columns`], in code that may use the set of `I`.
#[inline(always)]
unsafe fn add_columns_by<I: Lanes + Isa>(y: &mut [f32], columns: *const f32, step: usize, factors: &[f32]) {
    y.fill(0.0);
    let together = if y.len() <= WIDE { factors.len() } else { COLUMNS };
    for (lot, factors) in factors.chunks(together.max(1)).enumerate() {
        // SAFETY: columns have as many elements as `y` (this function's contract); strips lie side by side within it; this code may use the set.
        unsafe {
            let columns = columns.add(lot * together * step);
            let mut at = 0;
            while at + 8 * I::LANES <= y.len() {
                strip::<I, 8>(y.as_mut_ptr().add(at), columns.add(at), step, factors, I::LANES);
                at += 8 * I::LANES;
            }
            while at < y.len() {
                let rest = y.len() - at;
                let vectors = rest.div_ceil(I::LANES).min(4);
                let last = (rest - (vectors - 1) * I::LANES).min(I::LANES);
                let (y, columns) = (y.as_mut_ptr().add(at), columns.add(at));
                match vectors {
                    1 => strip::<I, 1>(y, columns, step, factors, last),
                    2 => strip::<I, 2>(y, columns, step, factors, last),
                    3 => strip::<I, 3>(y, columns, step, factors, last),
                    _ => strip::<I, 4>(y, columns, step, factors, last),
                }
                at += (vectors - 1) * I::LANES + last;
            }
        }
    }
}

/// Adds columns to `V` vectors of lanes, which stay in registers. The last vector has `last` lanes.
///
/// # Safety
/// As [`add_columns_by`].
#[inline(always)]
unsafe fn strip<I: Lanes, const V: usize>(y: *mut f32, columns: *const f32, step: usize, factors: &[f32], last: usize) {
    // SAFETY: the lanes of `y` and of each column may be accessed, by code that may use the set (this function's contract).
    unsafe {
        if last == I::LANES {
            added::<I, V, true>(y, columns, step, factors, last);
        } else {
            added::<I, V, false>(y, columns, step, factors, last);
        }
    }
}

/// The same; whether the last vector is whole is known.
///
/// # Safety
/// As [`strip`].
#[inline(always)]
unsafe fn added<I: Lanes, const V: usize, const WHOLE: bool>(
    y: *mut f32,
    columns: *const f32,
    step: usize,
    factors: &[f32],
    last: usize,
) {
    // SAFETY: the lanes of `y` and of each column may be accessed, by code that may use the set (this function's contract).
    unsafe {
        let mut sums = [I::zero(); V];
        for (place, sum) in sums.iter_mut().enumerate() {
            *sum = part::<I>(y.add(place * I::LANES), WHOLE || place + 1 < V, last);
        }
        for (term, factor) in factors.iter().enumerate() {
            let factor = I::splat(factor);
            let column = columns.add(term * step);
            for (place, sum) in sums.iter_mut().enumerate() {
                let elements = part::<I>(column.add(place * I::LANES), WHOLE || place + 1 < V, last);
                *sum = I::multiply_add(elements, factor, *sum);
            }
        }
        for (place, sum) in sums.into_iter().enumerate() {
            if WHOLE || place + 1 < V {
                I::store(y.add(place * I::LANES), sum);
            } else {
                I::store_first(y.add(place * I::LANES), sum, last);
            }
        }
    }
}

/// A vector, or its first lanes.
///
/// # Safety
/// As [`Lanes::load`], of the lanes that are read.
#[inline(always)]
unsafe fn part<I: Lanes>(at: *const f32, whole: bool, count: usize) -> I::Vector {
    // SAFETY: the lanes may be read, by code that may use the set (this function's contract).
    unsafe { if whole { I::load(at) } else { I::load_first(at, count) } }
}
