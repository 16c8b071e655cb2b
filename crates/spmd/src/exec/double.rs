//! Lane loops on f64. The transcendental functions are the standard library's, one lane at a time.

use super::isa::Lanes;
use super::machine::Machine;
use crate::bytecode::{Compare, Float, Float2, Instr, Op};
use crate::math::lane;

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn double<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    let Op::Double(op) = i.op else { return };
    macro_rules! map {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and both operands have two words.
            unsafe { machine.map::<f64, f64>(i, $f) }
        };
    }
    match op {
        Float::Neg => map!(|a| -a),
        Float::Abs => map!(f64::abs),
        Float::Sign => map!(lane::sign_f64),
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
        Float::RoundHalf => map!(|a| f64::from(lane::f64_to_half(a))),
        Float::Fraction => map!(|a| lane::split_f64(a).0),
        // SAFETY: `i` is checked (this function's contract); the exponent has one word, the operand two.
        Float::Exponent => unsafe { machine.map::<f64, i32>(i, |a| lane::split_f64(a).1) },
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn double2<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    macro_rules! zip {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and all operands of these operations have two words.
            unsafe { machine.zip::<f64, f64, f64>(i, $f) }
        };
    }
    macro_rules! compare {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract); what is compared has two words, the result one.
            unsafe { machine.zip::<f64, f64, u32>(i, |a: f64, b: f64| lane::truth($f(&a, &b))) }
        };
    }
    match i.op {
        Op::Double2(Float2::Add) => zip!(|a, b| a + b),
        Op::Double2(Float2::Sub) => zip!(|a, b| a - b),
        Op::Double2(Float2::Mul) => zip!(|a, b| a * b),
        Op::Double2(Float2::Div) => zip!(|a, b| a / b),
        Op::Double2(Float2::Rem) => zip!(|a, b| a % b),
        Op::Double2(Float2::Min) => zip!(lane::min_f64),
        Op::Double2(Float2::Max) => zip!(lane::max_f64),
        Op::Double2(Float2::Pow) => zip!(f64::powf),
        Op::Double2(Float2::Atan2) => zip!(f64::atan2),
        // SAFETY: `i` is checked (this function's contract); the exponent has one word, the others two.
        Op::Double2(Float2::Ldexp) => unsafe { machine.zip::<f64, i32, f64>(i, lane::ldexp_f64) },
        Op::DoubleCompare(Compare::Equal) => compare!(f64::eq),
        Op::DoubleCompare(Compare::NotEqual) => compare!(f64::ne),
        Op::DoubleCompare(Compare::Less) => compare!(f64::lt),
        Op::DoubleCompare(Compare::LessEqual) => compare!(f64::le),
        Op::DoubleCompare(Compare::Greater) => compare!(f64::gt),
        Op::DoubleCompare(Compare::GreaterEqual) => compare!(f64::ge),
        // SAFETY: `i` is checked (this function's contract), and all its operands have two words.
        Op::Fma64 => unsafe { machine.zip3::<f64, f64, f64, f64>(i, f64::mul_add) },
        _ => {}
    }
}
