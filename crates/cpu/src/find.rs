//! `argmax` and `argmin` along rows. The best element of a row is found a line at a time, in the widest registers, and then its place. NaN is the best of
//! all, and of equal elements the first counts, as in NumPy.

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
/// Elements compared side by side, by the length of the row; a row of fewer than [`FEW`] is searched element by element.
const LINE: usize = 64;
const SHORT: usize = 32;
const FEW: usize = 16;

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

/// Writes the index of the best element of each row. Arguments: the elements, the length of a row, whether the least is best, the indices.
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
fn places_by<I: Isa>(values: &[impl Element], length: usize, least: bool, to: &mut [u32]) {
    if least { places_of::<_, true>(values, length, to) } else { places_of::<_, false>(values, length, to) }
}

#[inline(always)]
fn places_of<T: Element, const LEAST: bool>(values: &[T], length: usize, to: &mut [u32]) {
    for (row, to) in values.chunks_exact(length).zip(to) {
        *to = if length < FEW {
            one_by_one::<T, LEAST>(row)
        } else if length < SHORT {
            place_in_two::<T, FEW, LEAST>(row)
        } else if length < LINE {
            place_in_two::<T, SHORT, LEAST>(row)
        } else {
            place_in_many::<T, LEAST>(row)
        };
    }
}

/// An element. NaN is the best of all.
trait Element: Copy {
    /// As wide as the element, so that lanes of both lie alike.
    type Seen: Copy + Default + PartialEq + std::ops::BitOr<Output = Self::Seen>;

    /// The better of two elements, the first of equal ones; if one is NaN, either.
    fn better<const LEAST: bool>(self, other: Self) -> Self;
    /// All bits if it is NaN, else none.
    fn nan(self) -> Self::Seen;
    fn equals(self, other: Self) -> bool;
}

macro_rules! elements {
    ($($name:ty: $seen:ty, |$x:ident| $is_nan:expr;)*) => {$(
        impl Element for $name {
            type Seen = $seen;

            #[inline(always)]
            fn better<const LEAST: bool>(self, other: Self) -> Self {
                let is_better = if LEAST { other < self } else { other > self };
                if is_better { other } else { self }
            }

            #[inline(always)]
            fn nan(self) -> $seen {
                let $x = self;
                if $is_nan { !0 } else { 0 }
            }

            #[inline(always)]
            fn equals(self, other: Self) -> bool {
                self == other
            }
        }
    )*};
}
elements! {
    i32: u32, |_x| false;
    u32: u32, |_x| false;
    i64: u64, |_x| false;
    u64: u64, |_x| false;
    f32: u32, |x| x.is_nan();
    f64: u64, |x| x.is_nan();
}

/// Looks at one element after the other.
#[inline(always)]
fn one_by_one<T: Element, const LEAST: bool>(row: &[T]) -> u32 {
    let [first, ..] = *row else { return 0 };
    let best = row.iter().fold(first, |best, &value| best.better::<LEAST>(value));
    let is_nan = |value: &T| value.nan() != T::Seen::default();
    let place = row.iter().position(is_nan).or_else(|| row.iter().position(|value| value.equals(best)));
    place.map_or(0, |place| place as u32)
}

/// The best elements of lines, lane by lane.
struct Best<T: Element, const N: usize> {
    all: [T; N],
    seen: [T::Seen; N],
}

impl<T: Element, const N: usize> Best<T, N> {
    #[inline(always)]
    fn new(line: &[T; N]) -> Self {
        Self { all: *line, seen: line.map(T::nan) }
    }

    #[inline(always)]
    fn meet<const LEAST: bool>(&mut self, line: &[T; N]) {
        for ((best, seen), &value) in self.all.iter_mut().zip(&mut self.seen).zip(line) {
            *best = best.better::<LEAST>(value);
            *seen = *seen | value.nan();
        }
    }

    /// The best of all lanes, and whether one was NaN.
    #[inline(always)]
    fn of_all<const LEAST: bool>(mut self) -> (T, bool) {
        let mut half = N / 2;
        while half > 0 {
            let (first, second) = self.all.split_at_mut(half);
            for (best, &other) in first.iter_mut().zip(&*second) {
                *best = best.better::<LEAST>(other);
            }
            let (first, second) = self.seen.split_at_mut(half);
            for (seen, &other) in first.iter_mut().zip(&*second) {
                *seen = *seen | other;
            }
            half /= 2;
        }
        (self.all[0], self.seen[0] != T::Seen::default())
    }
}

/// The places of the best elements of a line, as bits.
#[inline(always)]
fn places_in<T: Element, const N: usize>(line: &[T; N], (best, has_nan): (T, bool)) -> u64 {
    let mut found = 0;
    if has_nan {
        for (at, value) in line.iter().enumerate() {
            found |= u64::from(value.nan() != T::Seen::default()) << at;
        }
    } else {
        for (at, value) in line.iter().enumerate() {
            found |= u64::from(value.equals(best)) << at;
        }
    }
    found
}

/// The place of the best element of a row of `N` elements to twice as many, by its first and its last ones.
#[inline(always)]
fn place_in_two<T: Element, const N: usize, const LEAST: bool>(row: &[T]) -> u32 {
    let (Some(first), Some(last)) = (row.first_chunk::<N>(), row.last_chunk::<N>()) else { return 0 };
    let mut best = Best::new(first);
    best.meet::<LEAST>(last);
    let best = best.of_all::<LEAST>();
    match places_in(first, best) {
        0 => (row.len() - N) as u32 + places_in(last, best).trailing_zeros(),
        found => found.trailing_zeros(),
    }
}

/// The place of the best element of a row of at least [`LINE`] elements. The last line reaches back into the one before.
#[inline(always)]
fn place_in_many<T: Element, const LEAST: bool>(row: &[T]) -> u32 {
    let (lines, Some(last)) = (row.as_chunks::<LINE>().0, row.last_chunk::<LINE>()) else { return 0 };
    let mut best = Best::new(last);
    for line in lines {
        best.meet::<LEAST>(line);
    }
    let best = best.of_all::<LEAST>();
    for (number, line) in lines.iter().enumerate() {
        let found = places_in(line, best);
        if found != 0 {
            return (number * LINE) as u32 + found.trailing_zeros();
        }
    }
    (row.len() - LINE) as u32 + places_in(last, best).trailing_zeros()
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
        for length in [1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 50, 63, 64, 65, 100, 127, 128, 300, 1023] {
            let rows = 9;
            // Without NaN, with some, and of zeros alone.
            for nan in [0, 3, 256] {
                let values: Vec<f64> = (0..rows * length)
                    .map(|_| match number() {
                        which if nan == 256 => [0.0, -0.0][which as usize & 1],
                        which if which < nan => f64::NAN,
                        which if which % 7 == 0 => -0.0,
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
                    if nan != 3 {
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
