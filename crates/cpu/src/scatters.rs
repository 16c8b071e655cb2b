//! Values written to places that another tensor names: rows side by side, or parts of one, each in the order of the values. Serves `scatter` and `put`. The
//! order of the values is kept for each place, so results have the same bits on any number of threads: a task owns a part of the result and passes over
//! values for others. Indices out of range write nothing; the engine's check reports them.

use std::ops::Range;

use super::fault::Fault;
use super::floats::Floats;
use super::native::{Call, GATHERS_PAY, Operation, Work, exactly};
use crate::backend::native::{Combination, ScatterShape};
use crate::spmd::{Limits, Stopped};
use crate::tensor::DType;
use crate::threads;

/// Values and elements that a task takes at least.
const TASK: usize = 1 << 13;
/// Elements of a row that is cut: in shorter ones, which the caches hold, passing over the places of others takes longer than writing to them.
const LONG: usize = 1 << 17;
/// Values that are written between two looks at the limits.
const BLOCK: usize = 1 << 16;

impl Operation for ScatterShape {
    fn serves(&self) -> bool {
        let dtypes = [DType::F32, DType::I32, DType::U32, DType::F64, DType::I64, DType::U64];
        let reaches = !self.signed || i32::try_from(self.length).is_ok();
        self.length > 0 && self.count > 0 && reaches && dtypes.contains(&self.dtype)
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        let each = self.dtype.bytes() / 4;
        let all = self.rows.checked_mul(self.length)?.checked_mul(each)?;
        let values = self.rows.checked_mul(self.count)?;
        Some(vec![all, if self.shared { self.count } else { values }, values.checked_mul(each)?, all])
    }

    fn work(&self) -> Work {
        Work { size: self.rows.saturating_mul(self.count.max(self.length)), pays: GATHERS_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let bindings = exactly(bindings)?;
        Ok(scatter(self, bindings, call.limits)?)
    }
}

/// Scatters; the sizes were checked.
fn scatter(shape: &ScatterShape, bindings: [Floats; 4], limits: &Limits<'_>) -> Result<(), Stopped> {
    match shape.dtype {
        DType::F32 => scatter_of::<f32>(shape, bindings, limits),
        DType::F64 => scatter_of::<f64>(shape, bindings, limits),
        DType::I32 => scatter_of::<i32>(shape, bindings, limits),
        DType::I64 => scatter_of::<i64>(shape, bindings, limits),
        DType::U64 => scatter_of::<u64>(shape, bindings, limits),
        _ => scatter_of::<u32>(shape, bindings, limits),
    }
}

fn scatter_of<T: Element>(
    shape: &ScatterShape,
    [x, places, values, y]: [Floats; 4],
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let write = writer::<T>(shape.by);
    // Indices that are out of range even then are ignored.
    let from_end = if shape.signed { shape.length as u32 } else { 0 };
    let (length, count) = (shape.length, shape.count);
    // A row of few is cut for the threads: each reads all places and writes to its own.
    let parts = if length < LONG { 1 } else { threads::count().div_ceil(shape.rows.max(1)) };
    let part = length.div_ceil(parts);
    let together = (TASK / (length + count)).max(1);
    threads::try_each((shape.rows * parts).div_ceil(together), |task| {
        for piece in task * together..((task + 1) * together).min(shape.rows * parts) {
            let (row, within) = (piece / parts, piece % parts);
            let own = (within * part).min(length)..((within + 1) * part).min(length);
            // SAFETY: within the bindings, as was checked; each piece writes its own part of the result, and nothing the others.
            let (from, to) = unsafe {
                let at = row * length + own.start;
                let from = std::slice::from_raw_parts(x.start().cast::<T>().add(at).cast_const(), own.len());
                (from, std::slice::from_raw_parts_mut(y.start().cast::<T>().add(at), own.len()))
            };
            to.copy_from_slice(from);
            // SAFETY: `sizes` found every place and value within the bindings, and nothing writes to them while the operation runs.
            let (places, values) = unsafe {
                let line = if shape.shared { 0 } else { row * count };
                let places = std::slice::from_raw_parts(places.start().cast::<u32>().add(line).cast_const(), count);
                let values = values.start().cast::<T>().add(row * count).cast_const();
                (places, std::slice::from_raw_parts(values, count))
            };
            for start in (0..count).step_by(BLOCK) {
                limits.begin().check()?;
                let block = start..(start + BLOCK).min(count);
                write(to, (own.clone(), from_end), &places[block.clone()], &values[block]);
            }
        }
        Ok(())
    })
}

/// Writes values to the places of a range, which is the target. The number is added to places that are negative as signed integers.
type Writer<T> = fn(&mut [T], (Range<usize>, u32), &[u32], &[T]);

/// An element that can be combined with others.
trait Element: Copy + Send + Sync {
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn greatest(self, other: Self) -> Self;
    fn least(self, other: Self) -> Self;
}

macro_rules! elements {
    ($($float:ty),*; $($whole:ty),*) => {
        $(impl Element for $float {
            fn sum(self, other: Self) -> Self {
                self + other
            }
            fn product(self, other: Self) -> Self {
                self * other
            }
            fn greatest(self, other: Self) -> Self {
                if self.is_nan() || self >= other { self } else { other }
            }
            fn least(self, other: Self) -> Self {
                if self.is_nan() || self <= other { self } else { other }
            }
        })*
        $(impl Element for $whole {
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn greatest(self, other: Self) -> Self {
                self.max(other)
            }
            fn least(self, other: Self) -> Self {
                self.min(other)
            }
        })*
    };
}

elements!(f32, f64; i32, u32, i64, u64);

fn writer<T: Element>(by: Option<Combination>) -> Writer<T> {
    match by {
        None => |to, own, places, values| write(to, own, places, values, |_, b| b),
        Some(Combination::Sum) => |to, own, places, values| write(to, own, places, values, T::sum),
        Some(Combination::Product) => |to, own, places, values| write(to, own, places, values, T::product),
        Some(Combination::Greatest) => |to, own, places, values| write(to, own, places, values, T::greatest),
        Some(Combination::Least) => |to, own, places, values| write(to, own, places, values, T::least),
    }
}

#[inline(always)]
fn write<T: Copy>(
    to: &mut [T],
    (own, from_end): (Range<usize>, u32),
    places: &[u32],
    values: &[T],
    by: impl Fn(T, T) -> T,
) {
    for (&place, &value) in places.iter().zip(values) {
        let place = if place.cast_signed() < 0 { place.wrapping_add(from_end) } else { place };
        // Indices before the range wrap to values far beyond it.
        if let Some(element) = to.get_mut((place as usize).wrapping_sub(own.start)) {
            *element = by(*element, value);
        }
    }
}
