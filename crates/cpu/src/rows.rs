//! Orders and scans of rows: rows side by side where there are enough of them, else parts of a row. Serves sorts with places, top-k of rows, and scans of
//! all dtypes. A key and its place are one u64, which makes sorting stable and NaN the greatest. Scans carry float32 sums in float64. A row is cut into a
//! fixed number of parts, never by threads, so sums keep their bits.

#[cfg(not(target_arch = "wasm32"))]
use rayon::prelude::*;

use super::fault::Fault;
use super::floats::Floats;
use super::native::{Call, Operation, SCANS_PAY, Work, exactly};
use super::prefix;
use crate::backend::native::{Combination, Number, ScanShape, SortShape};
use crate::spmd::{Limits, Stopped};
use crate::threads;
use cantus_base::listed::Listed;

/// Elements below which a row is not worth more than one thread.
const PART: usize = 1 << 16;
/// Elements below which one thread is enough to sort.
const SORTS_PAY: usize = 1 << 12;
/// Parts of a stretch that are scanned at once, and elements of one that are worth it.
const CHAINS: usize = 8;
const SHORTEST: usize = 8;
/// Elements of rows that are scanned side by side, at least, where the parts of one could be.
const PAGES: usize = 2048;
/// Fewer long rows are scanned one after the other, each in [`PARTS`] parts.
const FEW_ROWS: usize = 8;
const PARTS: usize = 16;
/// Elements from which sorting by digits beats sorting by comparisons.
const DIGITS_PAY: usize = 192;

impl Operation for SortShape {
    fn serves(&self) -> bool {
        // Places are words of 32 bits.
        self.number.bytes() == 4 && self.keep <= self.length && u32::try_from(self.length).is_ok()
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let kept = self.rows.checked_mul(self.keep)?.checked_mul(2)?;
        Some(vec![self.rows.checked_mul(self.length)?, kept])
    }

    fn work(&self) -> Work {
        Work { size: self.rows.saturating_mul(self.length), pays: SORTS_PAY }
    }

    fn runs_anywhere(&self) -> bool {
        // Otherwise rayon shares each row among threads.
        self.rows >= threads::count() || self.length < PART
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = exactly(bindings)?;
        Ok(sort(self, x, y, call.limits)?)
    }
}

impl Operation for ScanShape {
    fn serves(&self) -> bool {
        let is_complex = matches!(self.number, Number::Complex64 | Number::Complex128);
        !is_complex || matches!(self.by, Combination::Sum | Combination::Product)
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let all = self.rows.checked_mul(self.length)?.checked_mul(self.number.bytes() / 4)?;
        Some(vec![all, all])
    }

    fn work(&self) -> Work {
        Work { size: self.rows.saturating_mul(self.length), pays: SCANS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = aligned(exactly(bindings)?, self.number)?;
        Ok(scan(self, x, y, call.limits)?)
    }
}

/// Returns bindings of which elements are read and written whole.
pub(super) fn aligned(bindings: [Floats; 2], number: Number) -> Result<[Floats; 2], Fault> {
    let is_so = |binding: &Floats| number.bytes() == 4 || binding.start().cast::<u64>().is_aligned();
    if bindings.iter().all(is_so) {
        Ok(bindings)
    } else {
        Err("numbers of 64 bits begin at no multiple of 8 bytes".into())
    }
}

/// A number as a u32 of the same order.
fn key(bits: u32, number: Number) -> u32 {
    const SIGN: u32 = 1 << 31;
    match number {
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
        // Wider ones are not served.
        _ => bits,
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

/// Elements that are looked at together.
const TOGETHER: usize = 32;
/// The number of a row's elements that are kept beside the search. Elements no better than the last of them are skipped, several at a time.
const FEW: usize = 32;

/// The first elements of a row in their order.
fn best(values: &[f32], shape: &SortShape) -> Vec<u64> {
    let turned = if shape.descending { u32::MAX } else { 0 };
    let mut kept: Vec<u64> = Vec::with_capacity(shape.keep + 1);
    let mut last = u32::MAX;
    for (number, line) in values.chunks(TOGETHER).enumerate() {
        let mut keys = [u32::MAX; TOGETHER];
        for (key, &value) in keys.iter_mut().zip(line) {
            *key = self::key(value.to_bits(), shape.number) ^ turned;
        }
        let is_full = kept.len() == shape.keep;
        if is_full && keys.iter().all(|&key| key >= last) {
            continue;
        }
        for (place, &key) in keys[..line.len()].iter().enumerate() {
            // Of equal elements the earlier ones are kept.
            if kept.len() < shape.keep || key < last {
                let pair = u64::from(key) << 32 | (number * TOGETHER + place) as u64;
                kept.truncate(shape.keep - 1);
                let at = kept.partition_point(|&other| other < pair);
                kept.insert(at, pair);
                last = kept.last().map_or(u32::MAX, |&pair| (pair >> 32) as u32);
            }
        }
    }
    kept
}

/// The first `keep` elements of each row in their order.
fn sort(shape: &SortShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
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
    #[cfg(not(target_arch = "wasm32"))]
    if !shape.runs_anywhere() {
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
            let values = unsafe { x.stretch(row, length) };
            if keep <= FEW && length >= DIGITS_PAY {
                write(row, &best(values, shape));
                continue;
            }
            fill(&mut pairs, values, 0, shape);
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

/// The value that is carried from element to element: sums and products of floats of 32 bits are wider than the elements.
trait Carried<E>: Copy + Send + Sync {
    fn of(element: E) -> Self;
    fn element(self) -> E;
}

macro_rules! carried {
    ($($ty:ty, of $element:ty: |$from:ident| $of:expr, |$value:ident| $back:expr;)*) => {$(
        impl Carried<$element> for $ty {
            #[inline(always)]
            fn of($from: $element) -> Self {
                $of
            }
            #[inline(always)]
            fn element(self) -> $element {
                let $value = self;
                $back
            }
        }
    )*};
}
carried! {
    f32, of f32: |element| element, |value| value;
    f64, of f32: |element| element.into(), |value| value as f32;
    f64, of f64: |element| element, |value| value;
    u32, of u32: |element| element, |value| value;
    i32, of i32: |element| element, |value| value;
    u64, of u64: |element| element, |value| value;
    i64, of i64: |element| element, |value| value;
    [f64; 2], of [f32; 2]: |element| [element[0].into(), element[1].into()], |value| [value[0] as f32, value[1] as f32];
    [f64; 2], of [f64; 2]: |element| element, |value| value;
}

/// NaN, once it was met.
#[inline(always)]
fn greatest<T: PartialOrd + Copy>(a: T, b: T) -> T {
    if is_nan(a) || a > b { a } else { b }
}

#[inline(always)]
fn least<T: PartialOrd + Copy>(a: T, b: T) -> T {
    if is_nan(a) || a < b { a } else { b }
}

#[inline(always)]
fn is_nan<T: PartialOrd>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
}

fn complex_sum([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a + c, b + d]
}

fn complex_product([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c - b * d, a * d + b * c]
}

/// Each element combined with those before it.
fn scan(shape: &ScanShape, x: Floats, y: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    use Combination::{Greatest, Least, Product, Sum};
    let all = (shape, x, y, limits);
    match (shape.number, shape.by) {
        (Number::F32, Sum) => scan_by::<f32, f64>(all, (0.0, Way::Vectors(prefix::sums)), |a, b| a + b),
        (Number::F32, Product) => scan_by::<f32, f64>(all, (1.0, Way::Chain), |a, b| a * b),
        (Number::F32, Greatest) => scan_by::<f32, f32>(all, (f32::NEG_INFINITY, Way::Chains), greatest),
        (Number::F32, Least) => scan_by::<f32, f32>(all, (f32::INFINITY, Way::Chains), least),
        (Number::F64, Sum) => scan_by::<f64, f64>(all, (0.0, Way::Chains), |a, b| a + b),
        (Number::F64, Product) => scan_by::<f64, f64>(all, (1.0, Way::Chain), |a, b| a * b),
        (Number::F64, Greatest) => scan_by::<f64, f64>(all, (f64::NEG_INFINITY, Way::Chains), greatest),
        (Number::F64, Least) => scan_by::<f64, f64>(all, (f64::INFINITY, Way::Chains), least),
        // Signed numbers wrap to the same bits as unsigned ones.
        (Number::I32 | Number::U32, Sum) => scan_by(all, (0, Way::Chains), u32::wrapping_add),
        (Number::I32 | Number::U32, Product) => scan_by(all, (1, Way::Chains), u32::wrapping_mul),
        (Number::U32, Greatest) => scan_by(all, (0, Way::Chains), u32::max),
        (Number::U32, Least) => scan_by(all, (u32::MAX, Way::Chains), u32::min),
        (Number::I32, Greatest) => scan_by(all, (i32::MIN, Way::Chains), i32::max),
        (Number::I32, Least) => scan_by(all, (i32::MAX, Way::Chains), i32::min),
        (Number::I64 | Number::U64, Sum) => scan_by(all, (0, Way::Vectors(prefix::whole_sums)), u64::wrapping_add),
        (Number::I64 | Number::U64, Product) => scan_by(all, (1, Way::Chains), u64::wrapping_mul),
        (Number::U64, Greatest) => scan_by(all, (0, Way::Chains), u64::max),
        (Number::U64, Least) => scan_by(all, (u64::MAX, Way::Chains), u64::min),
        (Number::I64, Greatest) => scan_by(all, (i64::MIN, Way::Chains), i64::max),
        (Number::I64, Least) => scan_by(all, (i64::MAX, Way::Chains), i64::min),
        (Number::Complex64, Product) => scan_by::<[f32; 2], _>(all, ([1.0, 0.0], Way::Chain), complex_product),
        (Number::Complex128, Product) => scan_by::<[f64; 2], _>(all, ([1.0, 0.0], Way::Chain), complex_product),
        (Number::Complex64, _) => scan_by::<[f32; 2], _>(all, ([0.0; 2], Way::Chains), complex_sum),
        (Number::Complex128, _) => scan_by::<[f64; 2], _>(all, ([0.0; 2], Way::Chains), complex_sum),
    }
}

/// How a stretch of a row is scanned.
#[derive(Clone, Copy)]
enum Way<E, T> {
    /// Element by element: a part's own product may be infinite where the product before it is 0.
    Chain,
    /// In several parts at once.
    Chains,
    /// By this function, from the result before the values: it writes as many to an address.
    Vectors(unsafe fn(T, &[E], *mut E) -> T),
}

fn scan_by<E: Copy + Sync, T: Carried<E>>(
    (shape, x, y, limits): (&ScanShape, Floats, Floats, &Limits<'_>),
    (neutral, way): (T, Way<E, T>),
    combine: impl Fn(T, T) -> T + Sync,
) -> Result<(), Stopped> {
    let ScanShape { rows, length, .. } = *shape;
    if rows == 0 || length == 0 {
        return Ok(());
    }
    let scan = Scan { y, length, neutral, way, combine };
    // SAFETY: nothing writes the input while the operation runs.
    let values = |row: usize| unsafe { x.stretch_of::<E>(row, length) };
    if rows < FEW_ROWS && length >= PART && !matches!(way, Way::Chain) {
        for row in 0..rows {
            limits.begin().check()?;
            scan.row_by_parts(row, values(row));
        }
        return Ok(());
    }
    let together = (PART / length / 4).max(1);
    let together = if rows >= CHAINS * threads::count() { together.next_multiple_of(CHAINS) } else { together };
    threads::try_each(rows.div_ceil(together), |task| {
        let mut row = task * together;
        let end = rows.min(row + together);
        while row < end {
            limits.begin().check()?;
            let alone = match way {
                Way::Chain => false,
                // Rows of a page or more share sets of the first cache.
                Way::Chains => length < PAGES,
                Way::Vectors(_) => true,
            };
            if alone || end - row < CHAINS {
                scan.stretch(neutral, row * length, values(row));
                row += 1;
            } else {
                scan.rows_as_chains(row, std::array::from_fn(|chain| values(row + chain)));
                row += CHAINS;
            }
        }
        Ok(())
    })
}

/// A scan into `y`, whose sizes `run` checked.
struct Scan<E, T, F> {
    y: Floats,
    length: usize,
    neutral: T,
    way: Way<E, T>,
    combine: F,
}

impl<E: Copy + Sync, T: Carried<E>, F: Fn(T, T) -> T + Sync> Scan<E, T, F> {
    /// The address of an element of the result.
    ///
    /// # Safety
    /// There is such an element.
    unsafe fn at(&self, place: usize) -> *mut E {
        // SAFETY: there is such an element (this function's contract).
        unsafe { self.y.start().cast::<E>().add(place) }
    }

    fn fold(&self, values: &[E]) -> T {
        let mut totals = [self.neutral; CHAINS];
        let (lines, rest) = values.as_chunks::<CHAINS>();
        for line in lines {
            for (total, &value) in totals.iter_mut().zip(line) {
                *total = (self.combine)(*total, T::of(value));
            }
        }
        let all = totals.into_iter().fold(self.neutral, &self.combine);
        rest.iter().fold(all, |carried, &value| (self.combine)(carried, T::of(value)))
    }

    /// Scans a stretch that begins at that element. One chain of sums takes as long as its additions wait for each other: a stretch is run through
    /// in several parts at once, each from the sum of those before it.
    fn stretch(&self, start: T, at: usize, values: &[E]) {
        if let Way::Vectors(scan) = self.way {
            // SAFETY: `run` checked the sizes, and the stretches are distinct.
            unsafe { scan(start, values, self.at(at)) };
            return;
        }
        let part = values.len() / CHAINS;
        let (mut carried, mut whole) = (start, 0);
        if part >= SHORTEST && matches!(self.way, Way::Chains) {
            let parts: [&[E]; CHAINS] = std::array::from_fn(|chain| &values[chain * part..(chain + 1) * part]);
            let mut starts = [start; CHAINS];
            for chain in 1..CHAINS {
                starts[chain] = (self.combine)(starts[chain - 1], self.fold(parts[chain - 1]));
            }
            carried = self.chains(starts, parts, |chain| at + chain * part);
            whole = part * CHAINS;
        }
        for (i, &value) in values.iter().enumerate().skip(whole) {
            carried = (self.combine)(carried, T::of(value));
            // SAFETY: `run` checked the sizes, and stretches are distinct.
            unsafe { self.at(at + i).write(carried.element()) };
        }
    }

    /// Scans chains of one length side by side, which begin at those elements. Returns the last one's result.
    #[inline(always)]
    fn chains(&self, mut carried: [T; CHAINS], chains: [&[E]; CHAINS], at: impl Fn(usize) -> usize) -> T {
        let length = chains[0].len();
        let chains: [&[E]; CHAINS] = std::array::from_fn(|chain| &chains[chain][..length]);
        (0..length).for_each(|i| {
            for (chain, carried) in carried.iter_mut().enumerate() {
                *carried = (self.combine)(*carried, T::of(chains[chain][i]));
                // SAFETY: `run` checked the sizes, and chains are distinct.
                unsafe { self.at(at(chain) + i).write(carried.element()) };
            }
        });
        carried[CHAINS - 1]
    }

    /// Scans rows from that one on, which are chains, and need no sums before them.
    fn rows_as_chains(&self, row: usize, rows: [&[E]; CHAINS]) {
        self.chains([self.neutral; CHAINS], rows, |chain| (row + chain) * self.length);
    }

    /// Scans a row in parts, on all threads. Their number is always the same, and with it the bits of sums.
    fn row_by_parts(&self, row: usize, values: &[E]) {
        let part = self.length.div_ceil(PARTS);
        let parts: Vec<&[E]> = values.chunks(part).listed();
        let mut before = vec![self.neutral; parts.len()];
        threads::each_chunk(&mut before, 1, |number, total| total[0] = self.fold(parts[number]));
        before
            .iter_mut()
            .fold(self.neutral, |carried, total| (self.combine)(carried, std::mem::replace(total, carried)));
        threads::each(parts.len(), |number| {
            self.stretch(before[number], row * self.length + number * part, parts[number]);
        });
    }
}
