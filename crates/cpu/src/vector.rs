//! Products of a matrix and a vector: bound by memory, so rows are read once, side by side or down columns as they lie.

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

forms! {
    fn dots(rows: [&[f32]; ROWS], b: &[f32]) -> [f32; ROWS] = dots_by
}
forms! {
    fn dot(a: &[f32], b: &[f32]) -> f32 = dot_by
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
        let mut totals = [0.0; R];
        for ((total, sums), row) in totals.iter_mut().zip(sums).zip(rows) {
            let sum = I::total(sums.into_iter().reduce(|a, b| I::add(a, b)).unwrap_or(I::zero()));
            let rest = row[whole..length].iter().zip(&b[whole..length]);
            *total = rest.fold(sum, |sum, (a, b)| I::mul_add(*a, *b, sum));
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
                strip::<I, 8>(y.as_mut_ptr().add(at), columns.add(at), step, factors);
                at += 8 * I::LANES;
            }
            while at + 2 * I::LANES <= y.len() {
                strip::<I, 2>(y.as_mut_ptr().add(at), columns.add(at), step, factors);
                at += 2 * I::LANES;
            }
            for (at, y) in y.iter_mut().enumerate().skip(at) {
                let terms = factors.iter().enumerate();
                *y = terms.fold(*y, |sum, (term, factor)| I::mul_add(*columns.add(term * step + at), *factor, sum));
            }
        }
    }
}

/// Adds columns to `V` vectors of lanes, which stay in registers.
///
/// # Safety
/// As [`add_columns_by`].
#[inline(always)]
unsafe fn strip<I: Lanes, const V: usize>(y: *mut f32, columns: *const f32, step: usize, factors: &[f32]) {
    // SAFETY: `V` vectors of `y` and of each column may be accessed, by code that may use the set (this function's contract).
    unsafe {
        let mut sums = [I::zero(); V];
        for (place, sum) in sums.iter_mut().enumerate() {
            *sum = I::load(y.add(place * I::LANES));
        }
        for (term, factor) in factors.iter().enumerate() {
            let factor = I::splat(factor);
            let column = columns.add(term * step);
            for (place, sum) in sums.iter_mut().enumerate() {
                *sum = I::multiply_add(I::load(column.add(place * I::LANES)), factor, *sum);
            }
        }
        for (place, sum) in sums.into_iter().enumerate() {
            I::store(y.add(place * I::LANES), sum);
        }
    }
}
