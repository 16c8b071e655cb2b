//! Values written to places that another tensor names: rows side by side, or parts of one, each in the order of the values.

use std::ops::Range;

use super::floats::Floats;
use crate::backend::native::{Combination, Number, ScatterShape};
use crate::spmd::{Limits, Stopped};
use crate::threads;

/// Values and elements that a task takes at least.
const TASK: usize = 1 << 13;
/// Elements of a row that is cut: in shorter ones, which the caches hold, passing over the places of others takes longer than writing to them.
const LONG: usize = 1 << 17;
/// Values that are written between two looks at the limits.
const BLOCK: usize = 1 << 16;

/// Elements, places, values, and elements of the result.
pub(super) fn sizes(shape: &ScatterShape) -> Option<[usize; 4]> {
    let all = shape.rows.checked_mul(shape.length)?;
    let values = shape.rows.checked_mul(shape.count)?;
    Some([all, if shape.shared { shape.count } else { values }, values, all])
}

/// Scatters; the sizes were checked.
pub(super) fn scatter(
    shape: &ScatterShape,
    [x, places, values, y]: [Floats; 4],
    limits: &Limits<'_>,
) -> Result<(), Stopped> {
    let (length, count) = (shape.length, shape.count);
    // A row of few is cut for the threads: each reads all places and writes to its own.
    let parts = if length < LONG { 1 } else { threads::count().div_ceil(shape.rows.max(1)) };
    let part = length.div_ceil(parts);
    let together = (TASK / (length + count)).max(1);
    let write = writer(shape.number, shape.by);
    threads::try_each((shape.rows * parts).div_ceil(together), |task| {
        for piece in task * together..((task + 1) * together).min(shape.rows * parts) {
            let (row, within) = (piece / parts, piece % parts);
            let own = (within * part).min(length)..((within + 1) * part).min(length);
            // SAFETY: within the bindings, as was checked; each piece writes its own part of the result, and nothing the others.
            let (from, to) = unsafe {
                let at = row * length + own.start;
                let from = std::slice::from_raw_parts(x.at(at).cast::<u32>().cast_const(), own.len());
                (from, std::slice::from_raw_parts_mut(y.at(at).cast::<u32>(), own.len()))
            };
            to.copy_from_slice(from);
            // SAFETY: as above.
            let (places, values) =
                unsafe { (places.stretch(if shape.shared { 0 } else { row }, count), values.stretch(row, count)) };
            let (places, values) = (bytemuck::cast_slice(places), bytemuck::cast_slice(values));
            for start in (0..count).step_by(BLOCK) {
                limits.begin().check()?;
                let block = start..(start + BLOCK).min(count);
                write(to, own.clone(), &places[block.clone()], &values[block]);
            }
        }
        Ok(())
    })
}

/// Writes values to the places of a range that is the target.
type Writer = fn(&mut [u32], Range<usize>, &[u32], &[u32]);

fn writer(number: Number, by: Option<Combination>) -> Writer {
    use Combination::{Greatest, Least, Product, Sum};
    fn float(of: impl Fn(f32, f32) -> f32) -> impl Fn(u32, u32) -> u32 {
        move |a, b| of(f32::from_bits(a), f32::from_bits(b)).to_bits()
    }
    fn signed(of: impl Fn(i32, i32) -> i32) -> impl Fn(u32, u32) -> u32 {
        move |a, b| of(a as i32, b as i32) as u32
    }
    fn greatest(a: f32, b: f32) -> f32 {
        if a.is_nan() || a >= b { a } else { b }
    }
    fn least(a: f32, b: f32) -> f32 {
        if a.is_nan() || a <= b { a } else { b }
    }
    match (by, number) {
        (None, _) => |to, own, places, values| write(to, own, places, values, |_, b| b),
        (Some(Sum), Number::F32) => |to, own, places, values| write(to, own, places, values, float(|a, b| a + b)),
        (Some(Product), Number::F32) => |to, own, places, values| write(to, own, places, values, float(|a, b| a * b)),
        (Some(Greatest), Number::F32) => |to, own, places, values| write(to, own, places, values, float(greatest)),
        (Some(Least), Number::F32) => |to, own, places, values| write(to, own, places, values, float(least)),
        (Some(Sum), _) => |to, own, places, values| write(to, own, places, values, u32::wrapping_add),
        (Some(Product), _) => |to, own, places, values| write(to, own, places, values, u32::wrapping_mul),
        (Some(Greatest), Number::I32) => |to, own, places, values| write(to, own, places, values, signed(i32::max)),
        (Some(Least), Number::I32) => |to, own, places, values| write(to, own, places, values, signed(i32::min)),
        (Some(Greatest), Number::U32) => |to, own, places, values| write(to, own, places, values, u32::max),
        (Some(Least), Number::U32) => |to, own, places, values| write(to, own, places, values, u32::min),
    }
}

#[inline(always)]
fn write(to: &mut [u32], own: Range<usize>, places: &[u32], values: &[u32], by: impl Fn(u32, u32) -> u32) {
    for (&place, &value) in places.iter().zip(values) {
        // What is before the range is far beyond it.
        if let Some(element) = to.get_mut((place as usize).wrapping_sub(own.start)) {
            *element = by(*element, value);
        }
    }
}
