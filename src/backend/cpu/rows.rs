//! Orders and scans of rows: rows side by side where there are enough of them, else parts of a row.

use std::ops::{Add, Mul};

use rayon::prelude::*;

use super::floats::Floats;
use crate::backend::native::{Number, ScanShape, SortShape};
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Elements below which a row is not worth more than one thread.
const PART: usize = 1 << 16;
/// Parts of a stretch that are scanned at once, and elements of one that are worth it.
const CHAINS: usize = 8;
const SHORTEST: usize = 8;
/// Elements from which sorting by digits beats sorting by comparisons.
const DIGITS_PAY: usize = 192;

/// Elements that a sort reads and writes.
pub(super) fn sort_sizes(shape: &SortShape) -> Option<[usize; 2]> {
    let kept = shape.rows.checked_mul(shape.keep)?.checked_mul(2)?;
    Some([shape.rows.checked_mul(shape.length)?, kept])
}

/// Elements that a scan reads and writes.
pub(super) fn scan_sizes(shape: &ScanShape) -> Option<[usize; 2]> {
    let all = shape.rows.checked_mul(shape.length)?;
    Some([all, all])
}

/// A number as a u32 of the same order.
fn key(bits: u32, number: Number) -> u32 {
    const SIGN: u32 = 1 << 31;
    match number {
        Number::U32 => bits,
        Number::I32 => bits ^ SIGN,
        Number::F32 => {
            let magnitude = bits & !SIGN;
            if magnitude > f32::INFINITY.to_bits() {
                u32::MAX
            } else if bits & SIGN == 0 || magnitude == 0 {
                magnitude | SIGN
            } else {
                !bits
            }
        }
    }
}

/// Key and place in one number, so that equal keys stay in the order of their places.
fn fill(pairs: &mut [u64], row: &[f32], first: usize, shape: &SortShape) {
    let turned = if shape.descending { u32::MAX } else { 0 };
    for ((pair, &value), place) in pairs.iter_mut().zip(row).zip(first as u64..) {
        *pair = u64::from(key(value.to_bits(), shape.number) ^ turned) << 32 | place;
    }
}

/// Sorts by the upper halves, by digits of eight bits from the last to the first. Digits that are alike everywhere cost no pass.
fn sort_by_digits(pairs: &mut Vec<u64>, spare: &mut Vec<u64>) {
    let digit = |pair: u64, at: usize| (pair >> (32 + 8 * at)) as usize & 0xff;
    let mut counts = [[0_u32; 256]; 4];
    for &pair in pairs.iter() {
        for (at, counts) in counts.iter_mut().enumerate() {
            counts[digit(pair, at)] += 1;
        }
    }
    for (at, counts) in counts.iter_mut().enumerate() {
        if counts.iter().any(|&count| count as usize == pairs.len()) {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for &pair in pairs.iter() {
            let next = &mut counts[digit(pair, at)];
            spare[*next as usize] = pair;
            *next += 1;
        }
        std::mem::swap(pairs, spare);
    }
}

/// Whether the threads share each row, by rayon's own means.
pub(super) fn is_split(shape: &SortShape) -> bool {
    shape.rows < threads::count() && shape.length >= PART
}

/// The first `keep` elements of each row in their order.
pub(super) fn sort(shape: &SortShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let SortShape { rows, length, keep, .. } = *shape;
    if rows == 0 || keep == 0 {
        return Ok(());
    }
    let write = |row: usize, pairs: &[u64]| {
        for (i, &pair) in pairs.iter().take(keep).enumerate() {
            // SAFETY: `run` checked that there are `rows * keep` pairs of words, and rows are distinct.
            unsafe {
                let at = y.at(2 * (row * keep + i)).cast::<u32>();
                at.write((pair >> 32) as u32);
                at.add(1).write(pair as u32);
            }
        }
    };
    if is_split(shape) {
        let mut pairs = vec![0; length];
        for row in 0..rows {
            limits.begin().check()?;
            // SAFETY: nothing writes the input while the operation runs.
            let values = unsafe { x.stretch(row, length) };
            let parts = pairs.par_chunks_mut(PART).zip(values.par_chunks(PART)).enumerate();
            parts.for_each(|(part, (pairs, values))| fill(pairs, values, part * PART, shape));
            if keep < length {
                pairs.select_nth_unstable(keep);
                pairs[..keep].par_sort_unstable();
            } else {
                pairs.par_sort_unstable();
            }
            write(row, &pairs);
        }
        return Ok(());
    }
    // Several rows for each task, which share its memory.
    let together = rows.div_ceil(8 * threads::count()).max(PART / 8 / length.max(1)).max(1);
    threads::try_each(rows.div_ceil(together), |task| {
        let (mut pairs, mut spare) = (vec![0; length], vec![0; if length >= DIGITS_PAY { length } else { 0 }]);
        for row in task * together..rows.min((task + 1) * together) {
            limits.begin().check()?;
            // SAFETY: nothing writes the input while the operation runs.
            fill(&mut pairs, unsafe { x.stretch(row, length) }, 0, shape);
            if keep < length / 4 {
                pairs.select_nth_unstable(keep);
                pairs[..keep].sort_unstable();
            } else if length >= DIGITS_PAY {
                sort_by_digits(&mut pairs, &mut spare);
            } else {
                pairs.sort_unstable();
            }
            write(row, &pairs);
        }
        Ok(())
    })
}

/// What is carried from element to element: wider than the elements where they are floats.
trait Carried: Copy + Send + Sync {
    const ZERO: Self;
    const ONE: Self;
    fn of(bits: f32) -> Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// The bits of the element.
    fn bits(self) -> f32;
}

impl Carried for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    #[inline(always)]
    fn of(bits: f32) -> Self {
        bits.into()
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Add::add(self, other)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Mul::mul(self, other)
    }
    #[inline(always)]
    fn bits(self) -> f32 {
        self as f32
    }
}

/// Signed numbers wrap to the same bits as unsigned ones.
impl Carried for u32 {
    const ZERO: Self = 0;
    const ONE: Self = 1;
    #[inline(always)]
    fn of(bits: f32) -> Self {
        bits.to_bits()
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn bits(self) -> f32 {
        f32::from_bits(self)
    }
}

/// Each element combined with those before it.
pub(super) fn scan(shape: &ScanShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    match (shape.number, shape.product) {
        (Number::F32, false) => scan_by(shape, x, y, limits, f64::ZERO, Carried::add),
        (Number::F32, true) => scan_by(shape, x, y, limits, f64::ONE, Carried::mul),
        (Number::I32 | Number::U32, false) => scan_by(shape, x, y, limits, u32::ZERO, Carried::add),
        (Number::I32 | Number::U32, true) => scan_by(shape, x, y, limits, u32::ONE, Carried::mul),
    }
}

fn scan_by<T: Carried>(
    shape: &ScanShape,
    x: Floats,
    y: Floats,
    limits: &Limits<'_>,
    neutral: T,
    combine: impl Fn(T, T) -> T + Sync,
) -> Result<(), Stopped> {
    let ScanShape { rows, length, .. } = *shape;
    if rows == 0 || length == 0 {
        return Ok(());
    }
    let fold = |values: &[f32]| {
        let mut totals = [neutral; CHAINS];
        let (lines, rest) = values.as_chunks::<CHAINS>();
        for line in lines {
            for (total, &value) in totals.iter_mut().zip(line) {
                *total = combine(*total, T::of(value));
            }
        }
        let all = totals.into_iter().fold(neutral, &combine);
        rest.iter().fold(all, |carried, &value| combine(carried, T::of(value)))
    };
    // One chain of sums takes as long as its additions wait for each other: a stretch is run through in several parts at once, each from the sum
    // of those before it.
    let scanned = |start: T, at: usize, values: &[f32]| {
        let part = values.len() / CHAINS;
        let (mut carried, mut whole) = ([start; CHAINS], 0);
        if part >= SHORTEST {
            for chain in 1..CHAINS {
                carried[chain] = combine(carried[chain - 1], fold(&values[(chain - 1) * part..chain * part]));
            }
            let parts: [&[f32]; CHAINS] = std::array::from_fn(|chain| &values[chain * part..(chain + 1) * part]);
            (0..part).for_each(|i| {
                for (chain, carried) in carried.iter_mut().enumerate() {
                    *carried = combine(*carried, T::of(parts[chain][i]));
                    // SAFETY: `run` checked the sizes, and the stretches are distinct.
                    unsafe { y.at(at + chain * part + i).write(carried.bits()) };
                }
            });
            (carried[0], whole) = (carried[CHAINS - 1], part * CHAINS);
        }
        let mut carried = carried[0];
        for (i, &value) in values.iter().enumerate().skip(whole) {
            carried = combine(carried, T::of(value));
            // SAFETY: as above.
            unsafe { y.at(at + i).write(carried.bits()) };
        }
    };
    let threads = threads::count();
    if rows < threads && length >= PART {
        for row in 0..rows {
            limits.begin().check()?;
            // SAFETY: nothing writes the input while the operation runs.
            let values = unsafe { x.stretch(row, length) };
            let part = length.div_ceil(threads);
            let parts: Vec<&[f32]> = values.chunks(part).collect();
            let mut before = vec![neutral; parts.len()];
            threads::each_chunk(&mut before, 1, |number, total| total[0] = fold(parts[number]));
            before.iter_mut().fold(neutral, |carried, total| combine(carried, std::mem::replace(total, carried)));
            threads::each(parts.len(), |number| {
                scanned(before[number], row * length + number * part, parts[number]);
            });
        }
        return Ok(());
    }
    let together = (PART / length / 4).max(1);
    threads::try_each(rows.div_ceil(together), |task| {
        for row in task * together..rows.min((task + 1) * together) {
            limits.begin().check()?;
            // SAFETY: nothing writes the input while the operation runs.
            scanned(neutral, row * length, unsafe { x.stretch(row, length) });
        }
        Ok(())
    })
}
