//! Lane loops on f32 (and on f16, which computes as f32).

use super::isa::Lanes;
use super::machine::Machine;
use crate::spmd::math;
use crate::spmd::program::{Compare, Float, Float2, Instr, Op};

/// # Safety
/// `i` is of a checked program.
#[inline(always)]
pub(crate) unsafe fn float<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    let Op::Float(op) = i.op else { return };
    macro_rules! map {
        ($f:expr) => {
            // SAFETY: the caller's promise; one-word operands.
            unsafe { machine.map::<f32, f32>(i, $f) }
        };
    }
    macro_rules! lanes {
        ($f:path) => {{
            let n = machine.count(i);
            // SAFETY: both registers hold `n` lanes.
            unsafe {
                let (d, a) = (machine.target::<f32>(i.d, n), machine.source::<f32>(i.a, n));
                $f(d.as_mut_ptr(), a.as_ptr(), n)
            }
        }};
    }
    match op {
        Float::Neg => map!(|a| -a),
        Float::Abs => map!(f32::abs),
        Float::Sign => map!(|a| if a > 0.0 {
            1.0
        } else if a < 0.0 {
            -1.0
        } else {
            0.0
        }),
        Float::Sqrt => map!(math::sqrt::<I>),
        Float::InverseSqrt => map!(math::inverse_sqrt::<I>),
        Float::Floor => map!(math::floor::<I>),
        Float::Ceil => map!(math::ceil::<I>),
        Float::Trunc => map!(math::trunc::<I>),
        Float::Round => map!(math::round_even::<I>),
        Float::Fract => map!(math::fract::<I>),
        Float::Exp => map!(math::exp::<I>),
        Float::Exp2 => map!(math::exp2::<I>),
        Float::Log => map!(math::log::<I>),
        Float::Log2 => map!(math::log2::<I>),
        Float::Sin => lanes!(math::sin_lanes::<I>),
        Float::Cos => lanes!(math::cos_lanes::<I>),
        Float::Tan => lanes!(math::tan_lanes::<I>),
        Float::Asin => map!(math::asin::<I>),
        Float::Acos => map!(math::acos::<I>),
        Float::Atan => map!(math::atan::<I>),
        Float::Sinh => map!(math::sinh::<I>),
        Float::Cosh => map!(math::cosh::<I>),
        Float::Tanh => map!(math::tanh::<I>),
        Float::Asinh => map!(math::asinh::<I>),
        Float::Acosh => map!(math::acosh::<I>),
        Float::Atanh => map!(math::atanh::<I>),
        Float::RoundHalf => map!(math::round_f16),
        Float::Fraction => map!(|a| split(a).0),
        // SAFETY: as above.
        Float::Exponent => unsafe { machine.map::<f32, i32>(i, |a| split(a).1) },
    }
}

/// Fraction in 0.5..1 and exponent; zero, infinity and NaN are their own fraction, with exponent 0.
#[inline(always)]
fn split(x: f32) -> (f32, i32) {
    let subnormal = x.abs() < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * 16_777_216.0 } else { x };
    let bits = scaled.to_bits();
    let exponent = ((bits >> 23) & 0xff) as i32 - 126 - if subnormal { 24 } else { 0 };
    let fraction = f32::from_bits((bits & 0x807f_ffff) | 0x3f00_0000);
    let special = x == 0.0 || x.to_bits() & 0x7f80_0000 == 0x7f80_0000;
    if special { (x, 0) } else { (fraction, exponent) }
}

/// # Safety
/// `i` is of a checked program.
#[inline(always)]
pub(crate) unsafe fn float2<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    macro_rules! zip {
        ($f:expr) => {
            // SAFETY: the caller's promise; one-word operands.
            unsafe { machine.zip::<f32, f32, f32>(i, $f) }
        };
    }
    macro_rules! compare {
        ($f:expr) => {
            // SAFETY: the caller's promise; one-word operands.
            unsafe { machine.zip::<f32, f32, u32>(i, |a: f32, b: f32| truth($f(&a, &b))) }
        };
    }
    match i.op {
        Op::Float2(Float2::Add) => zip!(|a, b| a + b),
        Op::Float2(Float2::Sub) => zip!(|a, b| a - b),
        Op::Float2(Float2::Mul) => zip!(|a, b| a * b),
        Op::Float2(Float2::Div) => zip!(|a, b| a / b),
        Op::Float2(Float2::Rem) => zip!(|a, b| a % b),
        Op::Float2(Float2::Min) => zip!(|a, b| if a < b { a } else { b }),
        Op::Float2(Float2::Max) => zip!(|a, b| if a > b { a } else { b }),
        Op::Float2(Float2::Pow) => zip!(math::pow::<I>),
        Op::Float2(Float2::Atan2) => zip!(math::atan2::<I>),
        // SAFETY: as above.
        Op::Float2(Float2::Ldexp) => unsafe { machine.zip::<f32, i32, f32>(i, scale) },
        Op::FloatCompare(Compare::Equal) => compare!(f32::eq),
        Op::FloatCompare(Compare::NotEqual) => compare!(f32::ne),
        Op::FloatCompare(Compare::Less) => compare!(f32::lt),
        Op::FloatCompare(Compare::LessEqual) => compare!(f32::le),
        Op::FloatCompare(Compare::Greater) => compare!(f32::gt),
        Op::FloatCompare(Compare::GreaterEqual) => compare!(f32::ge),
        // SAFETY: as above.
        Op::Fma => unsafe {
            machine.zip3::<f32, f32, f32, f32>(i, |a, b, c| if I::FMA { I::mul_add(a, b, c) } else { fused(a, b, c) });
        },
        _ => {}
    }
}

/// Rounded once, also where there is no fused instruction: the product is exact in f64, and the sum is rounded to odd
/// before it is rounded to f32.
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let addend = f64::from(c);
    let sum = product + addend;
    // Knuth's two-sum gives the rounding error of the sum.
    let part = sum - product;
    let error = (product - (sum - part)) + (addend - part);
    let bits = sum.to_bits();
    let inexact = error != 0.0 && sum.is_finite();
    let away = (error > 0.0) == (sum > 0.0);
    // Round to odd: truncate towards zero, then set the last bit.
    let truncated = if inexact && !away { bits.wrapping_sub(1) } else { bits };
    f64::from_bits(if inexact { truncated | 1 } else { bits }) as f32
}

/// `x * 2^exponent`, rounded once.
#[inline(always)]
fn scale(x: f32, exponent: i32) -> f32 {
    // The product is exact in f64: the conversion back is the only rounding.
    let exponent = exponent.clamp(-400, 400);
    let factor = f64::from_bits(((exponent + 1023) as u64) << 52);
    (f64::from(x) * factor) as f32
}

/// A bool of a register.
#[inline(always)]
pub(crate) fn truth(condition: bool) -> u32 {
    (condition as u32).wrapping_neg()
}
