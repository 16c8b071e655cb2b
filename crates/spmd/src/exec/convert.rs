//! Lane loops for conversions. Floats to integers saturate at the largest float below the bound, as naga's back ends
//! do (f32 to i32: 2147483520); NaN gives 0.

use super::isa::Lanes;
use super::machine::Machine;
use crate::bytecode::{Convert, Instr, Op};
use crate::math::{self, lane};

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn convert<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    let Op::Convert(op) = i.op else { return };
    macro_rules! map {
        ($a:ty, $d:ty, $f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and its operands have these types' widths (see `Op::shape`).
            unsafe { machine.map::<$a, $d>(i, $f) }
        };
    }
    match op {
        Convert::F32ToI32 => map!(f32, i32, lane::f32_to_i32),
        Convert::F32ToU32 => map!(f32, u32, lane::f32_to_u32),
        Convert::I32ToF32 => map!(i32, f32, |x| x as f32),
        Convert::U32ToF32 => map!(u32, f32, |x| x as f32),
        Convert::F32ToI64 => map!(f32, i64, lane::f32_to_i64),
        Convert::F32ToU64 => map!(f32, u64, lane::f32_to_u64),
        Convert::I64ToF32 => map!(i64, f32, |x| x as f32),
        Convert::U64ToF32 => map!(u64, f32, |x| x as f32),
        Convert::F64ToI32 => map!(f64, i32, lane::f64_to_i32),
        Convert::F64ToU32 => map!(f64, u32, lane::f64_to_u32),
        Convert::I32ToF64 => map!(i32, f64, f64::from),
        Convert::U32ToF64 => map!(u32, f64, f64::from),
        Convert::F64ToI64 => map!(f64, i64, lane::f64_to_i64),
        Convert::F64ToU64 => map!(f64, u64, lane::f64_to_u64),
        Convert::I64ToF64 => map!(i64, f64, |x| x as f64),
        Convert::U64ToF64 => map!(u64, f64, |x| x as f64),
        Convert::F32ToF64 => map!(f32, f64, f64::from),
        Convert::F64ToF32 => map!(f64, f32, |x| x as f32),
        Convert::F64ToHalf => map!(f64, f32, lane::f64_to_half),
        Convert::I32ToI64 => map!(i32, i64, i64::from),
        Convert::U32ToU64 => map!(u32, u64, u64::from),
        Convert::I64ToI32 => map!(u64, u32, |x| x as u32),
        Convert::HighWord => map!(u64, u32, |x| (x >> 32) as u32),
        Convert::SignExtend16 => map!(u32, i32, |x| i32::from(x as i16)),
        Convert::ZeroExtend16 => map!(u32, u32, |x| x & 0xffff),
        Convert::F32ToHalfBits => map!(f32, u32, |x| u32::from(math::f32_to_f16(x))),
        Convert::HalfBitsToF32 => map!(u32, f32, |x| math::f16_to_f32(x as u16)),
        Convert::WideIsNonZero => map!(u64, u32, |x| lane::truth(x != 0)),
        Convert::Unorm8(0) => map!(u32, f32, lane::unorm8::<I, 0>),
        Convert::Unorm8(1) => map!(u32, f32, lane::unorm8::<I, 1>),
        Convert::Unorm8(2) => map!(u32, f32, lane::unorm8::<I, 2>),
        Convert::Unorm8(_) => map!(u32, f32, lane::unorm8::<I, 3>),
        Convert::ToUnorm8(byte) => map!(f32, u32, |x| lane::to_unorm8(x, byte)),
        Convert::DoubleIsNonZero => map!(f64, u32, |x| lane::truth(x != 0.0)),
    }
}
