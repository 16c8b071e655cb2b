//! `argmax` and `argmin` along rows. A row is compared a line at a time, in the widest registers; only a line that holds a new best element is searched
//! for its place. NaN is the best of all, and of equal elements the first counts, as in NumPy.

use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{COPIES_PAY, Call, Operation, Work, exactly};
use super::rows::aligned;
use crate::backend::native::{FindShape, Number};
use crate::spmd::math::Isa;
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Elements of a task.
const TASK: usize = 1 << 14;
/// Elements of long rows that are looked at side by side, and of shorter ones.
const TOGETHER: usize = 64;
const FEW: usize = 8;
/// Elements that are compared with the best one before it is asked which one is as good.
const LINE: usize = 32;

impl Operation for FindShape {
    fn serves(&self) -> bool {
        let is_ordered = !matches!(self.number, Number::Complex64 | Number::Complex128);
        is_ordered && self.length > 0 && u32::try_from(self.length).is_ok()
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let words = self.rows.checked_mul(self.length)?.checked_mul(self.number.bytes() / 4)?;
        Some(vec![words, self.rows])
    }

    fn work(&self) -> Work {
        Work { size: self.rows.saturating_mul(self.length), pays: COPIES_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = aligned(exactly(bindings)?, self.number)?;
        Ok(match self.number {
            Number::F32 => find(self, x, y, places_of_f32, call.limits),
            Number::F64 => find(self, x, y, places_of_f64, call.limits),
            Number::U32 => find(self, x, y, places_of_u32, call.limits),
            Number::I32 => find(self, x, y, places_of_i32, call.limits),
            Number::I64 => find(self, x, y, places_of_i64, call.limits),
            // Complex numbers are not served.
            _ => find(self, x, y, places_of_u64, call.limits),
        }?)
    }
}

/// Writes the place of the best element of each row of a length; the least one is the best if so asked.
type Places<T> = fn(&[T], usize, bool, &mut [u32]);

fn find<T: Copy + Sync>(
    shape: &FindShape,
    x: Floats,
    y: Floats,
    places: Places<T>,
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let FindShape { rows, length, least, .. } = *shape;
    let together = threads::share(rows, (TASK / length).max(1));
    threads::try_each(rows.div_ceil(together), |task| {
        limits.begin().check()?;
        let (first, count) = (task * together, together.min(rows - task * together));
        // SAFETY: `sizes` counted the elements, which nothing writes while the operation runs, and a place for each row, which one task writes.
        unsafe {
            let values = std::slice::from_raw_parts(x.start().cast::<T>().add(first * length), count * length);
            places(values, length, least, std::slice::from_raw_parts_mut(y.at(first).cast(), count));
        }
        Ok(())
    })
}

macro_rules! places {
    ($($name:ident: $element:ty;)*) => {$(
        forms! {
            fn $name(values: &[$element], length: usize, least: bool, to: &mut [u32]) = places_by
        }
    )*};
}
places! {
    places_of_f32: f32;
    places_of_f64: f64;
    places_of_u32: u32;
    places_of_i32: i32;
    places_of_u64: u64;
    places_of_i64: i64;
}

#[inline(always)]
fn places_by<I: Isa>(values: &[impl Copy + PartialOrd], length: usize, least: bool, to: &mut [u32]) {
    places_of(values, length, least, to);
}

#[inline(always)]
fn places_of<T: Copy + PartialOrd>(values: &[T], length: usize, least: bool, to: &mut [u32]) {
    for (row, to) in values.chunks_exact(length).zip(to) {
        *to = match (least, length) {
            (false, ..16) => one_by_one::<T, false>(row),
            (true, ..16) => one_by_one::<T, true>(row),
            (false, ..TOGETHER) => place_of(row, best_of_few::<T, false>(row)),
            (true, ..TOGETHER) => place_of(row, best_of_few::<T, true>(row)),
            (false, _) => place_of(row, best_of_many::<T, false>(row)),
            (true, _) => place_of(row, best_of_many::<T, true>(row)),
        };
    }
}

#[inline(always)]
fn is_nan<T: PartialOrd>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
}

/// Returns the better of two, the second one of equal ones: NaN, once it was met.
#[inline(always)]
fn better<T: PartialOrd + Copy, const LEAST: bool>(a: T, b: T) -> T {
    if is_nan(a) | (if LEAST { a < b } else { a > b }) { a } else { b }
}

/// Looks at one element after the other.
#[inline(always)]
fn one_by_one<T: PartialOrd + Copy, const LEAST: bool>(row: &[T]) -> u32 {
    let [first, rest @ ..] = row else { return 0 };
    let (mut best, mut place) = (*first, 0);
    for (at, &value) in (1_u32..).zip(rest) {
        let wins = if LEAST { value < best } else { value > best } || is_nan(value) && !is_nan(best);
        best = if wins { value } else { best };
        place = if wins { at } else { place };
    }
    place
}

/// The best of a row of at least [`FEW`] elements, by lines, of which the last one reaches back into the one before.
#[inline(always)]
fn best_of_few<T: PartialOrd + Copy, const LEAST: bool>(row: &[T]) -> Option<T> {
    let mut all = *row.last_chunk::<FEW>()?;
    for line in row.as_chunks::<FEW>().0 {
        all = std::array::from_fn(|at| better::<T, LEAST>(all[at], line[at]));
    }
    all.into_iter().reduce(better::<T, LEAST>)
}

/// The best of a row of at least [`TOGETHER`] elements: more than the compiler keeps in registers, so it takes whole vectors of them.
#[inline(always)]
fn best_of_many<T: PartialOrd + Copy, const LEAST: bool>(row: &[T]) -> Option<T> {
    let mut all = *row.first_chunk::<TOGETHER>()?;
    for line in row[TOGETHER..].chunks(TOGETHER) {
        for (best, &value) in all.iter_mut().zip(line) {
            *best = better::<T, LEAST>(*best, value);
        }
    }
    let mut half = TOGETHER / 2;
    while half > 0 {
        let (first, second) = all.split_at_mut(half);
        for (best, &value) in first.iter_mut().zip(&*second) {
            *best = better::<T, LEAST>(*best, value);
        }
        half /= 2;
    }
    Some(all[0])
}

/// The place of the first element that is as good as the best one.
#[inline(always)]
fn place_of<T: PartialOrd + Copy>(row: &[T], best: Option<T>) -> u32 {
    let Some(best) = best else { return 0 };
    if is_nan(best) {
        return row.iter().position(|&value| is_nan(value)).unwrap_or(0) as u32;
    }
    // As words: LLVM 22 cannot compile this many bools to WebAssembly.
    let has_best = |line: &[T; LINE]| line.iter().fold(0, |found, &value| found | u32::from(value == best)) != 0;
    let before = row.as_chunks::<LINE>().0.iter().take_while(|line| !has_best(line)).count() * LINE;
    (before + row[before..].iter().position(|&value| value == best).unwrap_or(0)) as u32
}

#[cfg(test)]
mod tests {
    use super::{places_of_f32, places_of_f64, places_of_i64, places_of_u32};

    #[test]
    fn the_first_best_element_of_each_row_is_found() {
        let mut state = 7_u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 24
        };
        for length in [1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 300, 1023] {
            let rows = 9;
            for nan in [0, 3] {
                let values: Vec<f64> = (0..rows * length)
                    .map(|_| match number() {
                        which if which < nan => f64::NAN,
                        which => f64::from(which / 3) - 40.0,
                    })
                    .collect();
                for least in [false, true] {
                    // In plain Rust: NaN first, then the best, then the first place.
                    let expected: Vec<u32> = values
                        .chunks(length)
                        .map(|row| {
                            let better = |a: f64, b: f64| if least { a < b } else { a > b };
                            let place = row.iter().position(|value| value.is_nan());
                            let place =
                                place.or_else(|| row.iter().position(|&one| !row.iter().any(|&b| better(b, one))));
                            place.unwrap_or(usize::MAX) as u32
                        })
                        .collect();
                    let mut found = vec![u32::MAX; rows];
                    places_of_f64(&values, length, least, &mut found);
                    assert_eq!(found, expected, "float64, rows of {length}, least: {least}");
                    let narrow: Vec<f32> = values.iter().map(|&value| value as f32).collect();
                    places_of_f32(&narrow, length, least, &mut found);
                    assert_eq!(found, expected, "float32, rows of {length}, least: {least}");
                    if nan == 0 {
                        let whole: Vec<i64> = values.iter().map(|&value| value as i64).collect();
                        places_of_i64(&whole, length, least, &mut found);
                        assert_eq!(found, expected, "int64, rows of {length}, least: {least}");
                        let whole: Vec<u32> = values.iter().map(|&value| (value + 40.0) as u32 * 50_000_000).collect();
                        places_of_u32(&whole, length, least, &mut found);
                        assert_eq!(found, expected, "uint32, rows of {length}, least: {least}");
                    }
                }
            }
        }
    }
}
