//! Products of a matrix and a vector: bound by memory, so rows are read once, side by side or down columns as they lie.

use super::floats::Floats;
use super::forms::forms;
use super::lanes::Total;
use crate::spmd::math::Isa;
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Elements of a matrix that a task takes at least.
const TASK: usize = 1 << 15;
/// Results of a task, at least.
const LANES: usize = 32;
/// Rows that are multiplied side by side, and columns that are added so.
const ROWS: usize = 4;
const COLUMNS: usize = 8;

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
    // SAFETY: the caller's promise.
    let vector = unsafe {
        if step == 1 {
            std::slice::from_raw_parts(v.at(start).cast_const(), terms)
        } else {
            gathered = (0..terms).map(|at| v.at(start + at * step).read()).collect();
            &gathered
        }
    };
    let (y, to) = y;
    let together = (TASK / terms.max(1)).max(LANES);
    threads::try_each(rows.div_ceil(together), |task| {
        limits.begin().check()?;
        let from = task * together;
        let count = together.min(rows - from);
        // SAFETY: the caller's promise; tasks write distinct parts.
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
                y.fill(0.0);
                let column = |at: usize| std::slice::from_raw_parts(m.at(first + from + at * term).cast_const(), count);
                let (several, rest) = vector.as_chunks::<COLUMNS>();
                let whole = several.len() * COLUMNS;
                for (at, factors) in several.iter().enumerate() {
                    let mut columns: [&[f32]; COLUMNS] = [&[]; COLUMNS];
                    for (beside, to) in columns.iter_mut().enumerate() {
                        *to = column(at * COLUMNS + beside);
                    }
                    add_several(y, columns, factors);
                }
                rest.iter().enumerate().for_each(|(at, &factor)| add(y, column(whole + at), factor));
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
    fn add(y: &mut [f32], x: &[f32], factor: f32) = add_by
}
forms! {
    /// Adds several columns one after the other, while the sums are in registers.
    fn add_several(y: &mut [f32], columns: [&[f32]; COLUMNS], factors: &[f32; COLUMNS]) = add_several_by
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

#[inline(always)]
fn add_by<I: Isa>(y: &mut [f32], x: &[f32], factor: f32) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = I::mul_add(*x, factor, *y);
    }
}

#[inline(always)]
fn add_several_by<I: Isa>(y: &mut [f32], columns: [&[f32]; COLUMNS], factors: &[f32; COLUMNS]) {
    let count = y.len();
    // As long as the sums: no bound is looked at in the loop.
    let [a, b, c, d, e, f, g, h] = columns.map(|column| &column[..count]);
    for (at, y) in y.iter_mut().enumerate() {
        let mut sum = I::mul_add(a[at], factors[0], *y);
        sum = I::mul_add(b[at], factors[1], sum);
        sum = I::mul_add(c[at], factors[2], sum);
        sum = I::mul_add(d[at], factors[3], sum);
        sum = I::mul_add(e[at], factors[4], sum);
        sum = I::mul_add(f[at], factors[5], sum);
        sum = I::mul_add(g[at], factors[6], sum);
        *y = I::mul_add(h[at], factors[7], sum);
    }
}
