//! Lane loops on f64. The transcendental functions are the standard library's, one lane at a time.

use super::float::truth;
use super::isa::Lanes;
use super::machine::Machine;
use crate::spmd::program::{Compare, Float, Float2, Instr, Op};

/// # Safety
/// `i` is of a checked program.
#[inline(always)]
pub(crate) unsafe fn double<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    let Op::Double(op) = i.op else { return };
    macro_rules! map {
        ($f:expr) => {
            // SAFETY: the caller's promise; two-word operands.
            unsafe { machine.map::<f64, f64>(i, $f) }
        };
    }
    match op {
        Float::Neg => map!(|a| -a),
        Float::Abs => map!(f64::abs),
        Float::Sign => map!(|a| if a > 0.0 {
            1.0
        } else if a < 0.0 {
            -1.0
        } else {
            0.0
        }),
        Float::Sqrt => map!(f64::sqrt),
        Float::InverseSqrt => map!(|a| 1.0 / a.sqrt()),
        Float::Floor => map!(f64::floor),
        Float::Ceil => map!(f64::ceil),
        Float::Trunc => map!(f64::trunc),
        Float::Round => map!(f64::round_ties_even),
        Float::Fract => map!(|a| a - a.floor()),
        Float::Exp => map!(f64::exp),
        Float::Exp2 => map!(f64::exp2),
        Float::Log => map!(f64::ln),
        Float::Log2 => map!(f64::log2),
        Float::Sin => map!(f64::sin),
        Float::Cos => map!(f64::cos),
        Float::Tan => map!(f64::tan),
        Float::Asin => map!(f64::asin),
        Float::Acos => map!(f64::acos),
        Float::Atan => map!(f64::atan),
        Float::Sinh => map!(f64::sinh),
        Float::Cosh => map!(f64::cosh),
        Float::Tanh => map!(f64::tanh),
        Float::Asinh => map!(f64::asinh),
        Float::Acosh => map!(f64::acosh),
        Float::Atanh => map!(f64::atanh),
        Float::RoundHalf => map!(|a| f64::from(half::f16::from_f64(a).to_f32())),
        Float::Fraction => map!(|a| split(a).0),
        // SAFETY: as above; the exponent is one word.
        Float::Exponent => unsafe { machine.map::<f64, i32>(i, |a| split(a).1) },
    }
}

/// Fraction in 0.5..1 and exponent; zero, infinity and NaN are their own fraction, with exponent 0.
#[inline(always)]
fn split(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let subnormal = x.abs() < f64::MIN_POSITIVE;
    let scaled = if subnormal { x * 18_014_398_509_481_984.0 } else { x };
    let bits = scaled.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1022 - if subnormal { 54 } else { 0 };
    (f64::from_bits((bits & 0x800f_ffff_ffff_ffff) | 0x3fe0_0000_0000_0000), exponent)
}

/// # Safety
/// `i` is of a checked program.
#[inline(always)]
pub(crate) unsafe fn double2<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    macro_rules! zip {
        ($f:expr) => {
            // SAFETY: the caller's promise; two-word operands.
            unsafe { machine.zip::<f64, f64, f64>(i, $f) }
        };
    }
    macro_rules! compare {
        ($f:expr) => {
            // SAFETY: the caller's promise; two-word operands.
            unsafe { machine.zip::<f64, f64, u32>(i, |a: f64, b: f64| truth($f(&a, &b))) }
        };
    }
    match i.op {
        Op::Double2(Float2::Add) => zip!(|a, b| a + b),
        Op::Double2(Float2::Sub) => zip!(|a, b| a - b),
        Op::Double2(Float2::Mul) => zip!(|a, b| a * b),
        Op::Double2(Float2::Div) => zip!(|a, b| a / b),
        Op::Double2(Float2::Rem) => zip!(|a, b| a % b),
        Op::Double2(Float2::Min) => zip!(|a, b| if a < b { a } else { b }),
        Op::Double2(Float2::Max) => zip!(|a, b| if a > b { a } else { b }),
        Op::Double2(Float2::Pow) => zip!(f64::powf),
        Op::Double2(Float2::Atan2) => zip!(f64::atan2),
        // SAFETY: as above; the exponent is one word.
        Op::Double2(Float2::Ldexp) => unsafe { machine.zip::<f64, i32, f64>(i, scale) },
        Op::DoubleCompare(Compare::Equal) => compare!(f64::eq),
        Op::DoubleCompare(Compare::NotEqual) => compare!(f64::ne),
        Op::DoubleCompare(Compare::Less) => compare!(f64::lt),
        Op::DoubleCompare(Compare::LessEqual) => compare!(f64::le),
        Op::DoubleCompare(Compare::Greater) => compare!(f64::gt),
        Op::DoubleCompare(Compare::GreaterEqual) => compare!(f64::ge),
        // SAFETY: as above.
        Op::Fma64 => unsafe { machine.zip3::<f64, f64, f64, f64>(i, f64::mul_add) },
        _ => {}
    }
}

/// `x * 2^exponent` in three steps, so that no factor overflows.
#[inline(always)]
fn scale(x: f64, exponent: i32) -> f64 {
    let exponent = exponent.clamp(-2200, 2200);
    let third = exponent / 3;
    let power = |e: i32| f64::from_bits(((e + 1023) as u64) << 52);
    x * power(third) * power(third) * power(exponent - 2 * third)
}
