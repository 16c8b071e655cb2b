//! Products of a matrix and a vector: bound by memory, so rows are read once, side by side or down columns as they lie.

use super::floats::Floats;
use super::forms::forms;
use crate::spmd::math::Isa;
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Elements of a matrix that a task takes at least.
const TASK: usize = 1 << 15;
/// Sums that are carried side by side.
const LANES: usize = 32;

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
                for (at, y) in y.iter_mut().enumerate() {
                    *y = dot(std::slice::from_raw_parts(m.at(first + (from + at) * row).cast_const(), terms), vector);
                }
            } else if row == 1 {
                y.fill(0.0);
                for (at, &factor) in vector.iter().enumerate() {
                    let column = std::slice::from_raw_parts(m.at(first + from + at * term).cast_const(), count);
                    add(y, column, factor);
                }
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
    fn dot(a: &[f32], b: &[f32]) -> f32 = dot_by
}
forms! {
    fn add(y: &mut [f32], x: &[f32], factor: f32) = add_by
}

#[inline(always)]
fn dot_by<I: Isa>(a: &[f32], b: &[f32]) -> f32 {
    let (a_lines, a_rest) = a.as_chunks::<LANES>();
    let (b_lines, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a_lines.iter().zip(b_lines) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum = I::mul_add(*a, *b, *sum);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        let (low, high) = sums.split_at_mut(width);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
        width /= 2;
    }
    a_rest.iter().zip(b_rest).fold(sums[0], |sum, (a, b)| I::mul_add(*a, *b, sum))
}

#[inline(always)]
fn add_by<I: Isa>(y: &mut [f32], x: &[f32], factor: f32) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = I::mul_add(*x, factor, *y);
    }
}
