//! Lane loops on i64 and u64.

use super::isa::Lanes;
use super::machine::Machine;
use crate::bytecode::{Instr, Int, Int2, IntCompare, Op};
use crate::math::lane;

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn wide<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    let Op::Wide(op) = i.op else { return };
    macro_rules! map {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and both operands have two words.
            unsafe { machine.map::<u64, u64>(i, $f) }
        };
    }
    match op {
        Int::Neg => map!(u64::wrapping_neg),
        Int::Not => map!(|a| !a),
        Int::Abs => map!(|a| (a as i64).wrapping_abs() as u64),
        Int::Sign => map!(|a| (a as i64).signum() as u64),
        Int::LeadingZeros => map!(|a| u64::from(a.leading_zeros())),
        Int::TrailingZeros => map!(|a| u64::from(a.trailing_zeros())),
        Int::OneBits => map!(|a| u64::from(a.count_ones())),
        Int::Reverse => map!(u64::reverse_bits),
        Int::FirstLeadingSigned => {
            map!(lane::first_leading_i64)
        }
        Int::FirstLeadingUnsigned => map!(lane::first_leading_u64),
        Int::FirstTrailing => map!(lane::first_trailing_u64),
    }
}

/// # Safety
/// `i` is of the checked program that the machine runs.
#[inline(always)]
pub(crate) unsafe fn wide2<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    macro_rules! zip {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and all operands of these operations have two words.
            unsafe { machine.zip::<u64, u64, u64>(i, $f) }
        };
    }
    macro_rules! signed {
        ($f:expr) => {
            // SAFETY: `i` is checked (this function's contract), and all operands of these operations have two words.
            unsafe { machine.zip::<i64, i64, i64>(i, $f) }
        };
    }
    macro_rules! compare {
        ($t:ty, $f:expr) => {
            // SAFETY: `i` is checked (this function's contract); what is compared has two words, the result one.
            unsafe { machine.zip::<$t, $t, u32>(i, |a: $t, b: $t| lane::truth($f(&a, &b))) }
        };
    }
    match i.op {
        Op::Wide2(Int2::Add) => zip!(u64::wrapping_add),
        Op::Wide2(Int2::Sub) => zip!(u64::wrapping_sub),
        Op::Wide2(Int2::Mul) => zip!(u64::wrapping_mul),
        // By zero: the dividend; MIN / -1: MIN.
        Op::Wide2(Int2::DivSigned) => signed!(lane::div_i64),
        Op::Wide2(Int2::RemSigned) => signed!(lane::rem_i64),
        Op::Wide2(Int2::DivUnsigned) => zip!(|a, b| a / b.max(1)),
        Op::Wide2(Int2::RemUnsigned) => zip!(|a, b| a % b.max(1)),
        Op::Wide2(Int2::And) => zip!(|a, b| a & b),
        Op::Wide2(Int2::Or) => zip!(|a, b| a | b),
        Op::Wide2(Int2::Xor) => zip!(|a, b| a ^ b),
        // SAFETY: `i` is checked (this function's contract); the amount of a shift has one word, the others two.
        Op::Wide2(Int2::ShiftLeft) => unsafe { machine.zip::<u64, u32, u64>(i, u64::wrapping_shl) },
        // SAFETY: `i` is checked (this function's contract); the amount of a shift has one word, the others two.
        Op::Wide2(Int2::ShiftRightSigned) => unsafe { machine.zip::<i64, u32, i64>(i, i64::wrapping_shr) },
        // SAFETY: `i` is checked (this function's contract); the amount of a shift has one word, the others two.
        Op::Wide2(Int2::ShiftRightUnsigned) => unsafe { machine.zip::<u64, u32, u64>(i, u64::wrapping_shr) },
        Op::Wide2(Int2::MinSigned) => signed!(|a, b| a.min(b)),
        Op::Wide2(Int2::MaxSigned) => signed!(|a, b| a.max(b)),
        Op::Wide2(Int2::MinUnsigned) => zip!(|a, b| a.min(b)),
        Op::Wide2(Int2::MaxUnsigned) => zip!(|a, b| a.max(b)),
        Op::WideCompare(IntCompare::Equal) => compare!(u64, u64::eq),
        Op::WideCompare(IntCompare::NotEqual) => compare!(u64, u64::ne),
        Op::WideCompare(IntCompare::LessSigned) => compare!(i64, i64::lt),
        Op::WideCompare(IntCompare::LessEqualSigned) => compare!(i64, i64::le),
        Op::WideCompare(IntCompare::LessUnsigned) => compare!(u64, u64::lt),
        Op::WideCompare(IntCompare::LessEqualUnsigned) => compare!(u64, u64::le),
        _ => {}
    }
}
