//! Conversions of contiguous float32 to halves, and of halves to float32.

use half::f16;
use half::slice::HalfFloatSliceExt as _;

use super::fault::Fault;
use super::floats::Floats;
use super::forms::forms;
use super::native::{COPIES_PAY, Call, Operation, Work, exactly};
use crate::backend::native::ConvertShape;
use crate::spmd::math::Isa;
use crate::spmd::{Limits, Stopped};
use crate::tensor::DType;
use crate::threads;

/// Elements of a task: an even number, so that no two write to one word.
const TASK: usize = 1 << 14;

impl Operation for ConvertShape {
    fn serves(&self) -> bool {
        matches!((self.from, self.to), (DType::F32, DType::F16 | DType::BF16) | (DType::F16 | DType::BF16, DType::F32))
    }

    fn sizes(&self) -> Option<Vec<usize>> {
        Some([self.from, self.to].map(|dtype| self.count.div_ceil(4 / dtype.bytes())).to_vec())
    }

    fn work(&self) -> Work {
        Work { size: self.count, pays: COPIES_PAY }
    }

    fn run(&self, bindings: &[Floats], call: &Call<'_>) -> Result<(), Fault> {
        let [x, y] = exactly(bindings)?;
        Ok(convert(self, x, y, call.limits)?)
    }
}

/// Converts; the sizes were checked.
fn convert(shape: &ConvertShape, from: Floats, to: Floats, limits: &Limits<'_>) -> Result<(), Stopped> {
    let (half, narrows) = if shape.from == DType::F32 { (shape.to, true) } else { (shape.from, false) };
    let share = threads::share(shape.count, TASK).next_multiple_of(64);
    threads::try_each(shape.count.div_ceil(share), |task| {
        limits.begin().check()?;
        let first = task * share;
        let count = share.min(shape.count - first);
        let (wide, narrow) = if narrows { (from, to) } else { (to, from) };
        // SAFETY: both bindings hold the elements; tasks write distinct ones.
        unsafe {
            let (wide, narrow) = (wide.start().add(first), narrow.start().cast::<u16>().add(first));
            match (narrows, half == DType::BF16) {
                (true, true) => {
                    narrowed(std::slice::from_raw_parts(wide, count), std::slice::from_raw_parts_mut(narrow, count))
                }
                (false, true) => {
                    widened(std::slice::from_raw_parts(narrow, count), std::slice::from_raw_parts_mut(wide, count))
                }
                (true, false) => std::slice::from_raw_parts_mut(narrow.cast::<f16>(), count)
                    .convert_from_f32_slice(std::slice::from_raw_parts(wide, count)),
                (false, false) => std::slice::from_raw_parts(narrow.cast::<f16>(), count)
                    .convert_to_f32_slice(std::slice::from_raw_parts_mut(wide, count)),
            }
        }
        Ok(())
    })
}

forms! {
    /// To bf16, to the nearest, ties to even.
    fn narrowed(from: &[f32], to: &mut [u16]) = narrowed_by
}

forms! {
    /// From bf16.
    fn widened(from: &[u16], to: &mut [f32]) = widened_by
}

#[inline(always)]
fn narrowed_by<I: Isa>(from: &[f32], to: &mut [u16]) {
    for (to, from) in to.iter_mut().zip(from) {
        let bits = from.to_bits();
        let near = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
        // Rounding could carry a NaN into the sign.
        *to = ((if from.is_nan() { bits | 0x40_0000 } else { near }) >> 16) as u16;
    }
}

#[inline(always)]
fn widened_by<I: Isa>(from: &[u16], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = f32::from_bits(u32::from(*from) << 16);
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn bf16_is_rounded_to_the_nearest() {
        let bits = (0..1 << 20).map(|at: u32| at.wrapping_mul(0x9e37_79b9));
        let edges = [0x7f80_0001, 0xffff_ffff, 0x7f80_0000, 0x7f7f_ffff, 0x8000_0000, 1];
        let from: Vec<f32> = bits.chain(edges).map(f32::from_bits).collect();
        let (mut to, mut back) = (vec![0; from.len()], vec![0.0; from.len()]);
        narrowed(&from, &mut to);
        widened(&to, &mut back);
        for ((value, &bits), back) in from.iter().zip(&to).zip(back) {
            let half = bf16::from_f32(*value);
            assert_eq!(bits, half.to_bits(), "{value:e} {:x}", value.to_bits());
            assert_eq!(back.to_bits(), half.to_f32().to_bits(), "{bits:x}");
        }
    }
}
