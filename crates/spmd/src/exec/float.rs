//! Lane loops on f32 (and on f16, which computes as f32).

use super::isa::Lanes;
use super::machine::Machine;
use crate::bytecode::{Compare, Float, Float2, Instr, Op};
use crate::math::{self, lane};

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn float<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    let Op::Float(op) = i.op else { return };
    macro_rules! map {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and both operands have one word.
            unsafe { machine.map::<f32, f32>(i, $f) }
        };
    }
    macro_rules! lanes {
        ($f:path) => {{
            let [first, n] = machine.span(i);
            // SAFETY: both registers hold `n` lanes, of which `first` is one or their end.
            unsafe {
                let (d, a) = (machine.target::<f32>(i.d, n), machine.source::<f32>(i.a, n));
                $f(d.as_mut_ptr().add(first), a.as_ptr().add(first), n - first)
            }
        }};
    }
    match op {
        Float::Neg => map!(|a| -a),
        Float::Abs => map!(f32::abs),
        Float::Sign => map!(lane::sign),
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
        Float::Fraction => map!(|a| lane::split(a).0),
        // SAFETY: `i` is checked (this function's contract), and both operands have one word.
        Float::Exponent => unsafe { machine.map::<f32, i32>(i, |a| lane::split(a).1) },
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn float2<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    macro_rules! zip {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
            unsafe { machine.zip::<f32, f32, f32>(i, $f) }
        };
    }
    macro_rules! compare {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
            unsafe { machine.zip::<f32, f32, u32>(i, |a: f32, b: f32| lane::truth($f(&a, &b))) }
        };
    }
    match i.op {
        Op::Float2(Float2::Add) => zip!(|a, b| a + b),
        Op::Float2(Float2::Sub) => zip!(|a, b| a - b),
        Op::Float2(Float2::Mul) => zip!(|a, b| a * b),
        Op::Float2(Float2::Div) => zip!(|a, b| a / b),
        Op::Float2(Float2::Rem) => zip!(|a, b| a % b),
        Op::Float2(Float2::Min) => zip!(lane::min),
        Op::Float2(Float2::Max) => zip!(lane::max),
        Op::Float2(Float2::Pow) => zip!(math::pow::<I>),
        Op::Float2(Float2::Atan2) => zip!(math::atan2::<I>),
        // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
        Op::Float2(Float2::Ldexp) => unsafe { machine.zip::<f32, i32, f32>(i, lane::ldexp) },
        Op::FloatCompare(Compare::Equal) => compare!(f32::eq),
        Op::FloatCompare(Compare::NotEqual) => compare!(f32::ne),
        Op::FloatCompare(Compare::Less) => compare!(f32::lt),
        Op::FloatCompare(Compare::LessEqual) => compare!(f32::le),
        Op::FloatCompare(Compare::Greater) => compare!(f32::gt),
        Op::FloatCompare(Compare::GreaterEqual) => compare!(f32::ge),
        // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
        Op::Fma => unsafe { machine.zip3::<f32, f32, f32, f32>(i, lane::fma::<I>) },
        // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
        Op::MulAdd => unsafe { machine.zip_spread(i, |a, b, c| a * b + c) },
        // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
        Op::MulSub => unsafe { machine.zip_spread(i, |a, b, c| a * b - c) },
        _ => {}
    }
}
