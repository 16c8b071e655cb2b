//! Lane loops on i32 and u32 (and on i16 and u16, which compute as these).

use super::isa::Lanes;
use super::machine::Machine;
use crate::bytecode::{B_UNIFORM, D_UNIFORM, Instr, Int, Int2, IntCompare, Op};
use crate::math::lane;

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn int<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    macro_rules! map {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
            unsafe { machine.map::<u32, u32>(i, $f) }
        };
    }
    match i.op {
        Op::Int(Int::Neg) => map!(u32::wrapping_neg),
        Op::Int(Int::Not) => map!(|a| !a),
        Op::Int(Int::Abs) => map!(lane::abs),
        Op::Int(Int::Sign) => map!(lane::signum),
        Op::Int(Int::LeadingZeros) => map!(u32::leading_zeros),
        Op::Int(Int::TrailingZeros) => map!(u32::trailing_zeros),
        Op::Int(Int::OneBits) => map!(u32::count_ones),
        Op::Int(Int::Reverse) => map!(u32::reverse_bits),
        Op::Int(Int::FirstLeadingSigned) => {
            map!(lane::first_leading_signed)
        }
        Op::Int(Int::FirstLeadingUnsigned) => map!(lane::first_leading_unsigned),
        Op::Int(Int::FirstTrailing) => map!(lane::first_trailing),
        // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
        Op::ExtractSigned => unsafe { machine.zip3::<u32, u32, u32, u32>(i, lane::extract_signed) },
        // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
        Op::ExtractUnsigned => unsafe { machine.zip3::<u32, u32, u32, u32>(i, lane::extract_unsigned) },
        _ => {}
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn int2<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    macro_rules! zip {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
            unsafe { machine.zip::<u32, u32, u32>(i, $f) }
        };
    }
    macro_rules! signed {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
            unsafe { machine.zip::<i32, i32, i32>(i, $f) }
        };
    }
    macro_rules! compare {
        ($t:ty, $f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
            unsafe { machine.zip::<$t, $t, u32>(i, |a: $t, b: $t| lane::truth($f(&a, &b))) }
        };
    }
    match i.op {
        Op::Int2(Int2::Add) => zip!(u32::wrapping_add),
        Op::Int2(Int2::Sub) => zip!(u32::wrapping_sub),
        Op::Int2(Int2::Mul) => zip!(u32::wrapping_mul),
        Op::Int2(Int2::DivSigned) => signed!(lane::div_signed),
        Op::Int2(Int2::RemSigned) => signed!(lane::rem_signed),
        // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
        Op::Int2(Int2::DivUnsigned) => unsafe { divide(machine, i, |_, _, quotient| quotient) },
        // SAFETY: `i` is checked (this function's contract), and all its operands have one word.
        Op::Int2(Int2::RemUnsigned) => unsafe {
            divide(machine, i, |a, b, quotient| a.wrapping_sub(quotient.wrapping_mul(b.max(1))));
        },
        Op::Int2(Int2::And) => zip!(|a, b| a & b),
        Op::Int2(Int2::Or) => zip!(|a, b| a | b),
        Op::Int2(Int2::Xor) => zip!(|a, b| a ^ b),
        Op::Int2(Int2::ShiftLeft) => zip!(u32::wrapping_shl),
        Op::Int2(Int2::ShiftRightSigned) => signed!(|a, b| a.wrapping_shr(b as u32)),
        Op::Int2(Int2::ShiftRightUnsigned) => zip!(u32::wrapping_shr),
        Op::Int2(Int2::MinSigned) => signed!(i32::min),
        Op::Int2(Int2::MaxSigned) => signed!(i32::max),
        Op::Int2(Int2::MinUnsigned) => zip!(u32::min),
        Op::Int2(Int2::MaxUnsigned) => zip!(u32::max),
        Op::IntCompare(IntCompare::Equal) => compare!(u32, u32::eq),
        Op::IntCompare(IntCompare::NotEqual) => compare!(u32, u32::ne),
        Op::IntCompare(IntCompare::LessSigned) => compare!(i32, i32::lt),
        Op::IntCompare(IntCompare::LessEqualSigned) => compare!(i32, i32::le),
        Op::IntCompare(IntCompare::LessUnsigned) => compare!(u32, u32::lt),
        Op::IntCompare(IntCompare::LessEqualUnsigned) => compare!(u32, u32::le),
        _ => {}
    }
}

/// Unsigned division; a uniform divisor is prepared once.
///
/// # Safety
/// `i` is of the checked program that the machine runs, its operands one word wide.
#[inline(always)]
unsafe fn divide(machine: &Machine<'_>, i: &Instr, f: impl Fn(u32, u32, u32) -> u32) {
    if i.form & (B_UNIFORM | D_UNIFORM) == B_UNIFORM {
        // SAFETY: `b` is a uniform register of one word: its form says so.
        let b = unsafe { machine.scalar::<u32>(i.b) }.max(1);
        if b == 1 {
            // SAFETY: `i` is checked and its operands have one word (this function's contract).
            return unsafe { machine.zip::<u32, u32, u32>(i, |a, _| f(a, b, a)) };
        }
        let divisor = lane::Divisor::new(b);
        // SAFETY: `i` is checked and its operands have one word (this function's contract).
        return unsafe { machine.zip::<u32, u32, u32>(i, |a, _| f(a, b, divisor.quotient_above_one(a))) };
    }
    // SAFETY: `i` is checked and its operands have one word (this function's contract).
    unsafe { machine.zip::<u32, u32, u32>(i, |a, b| f(a, b, lane::div(a, b))) }
}
