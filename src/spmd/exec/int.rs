//! Lane loops on i32 and u32 (and on i16 and u16, which compute as these).

use super::float::truth;
use super::isa::Lanes;
use super::machine::Machine;
use crate::spmd::program::{B_UNIFORM, D_UNIFORM, Instr, Int, Int2, IntCompare, Op};

/// # Safety
/// `i` is of a checked program.
#[inline(always)]
pub(crate) unsafe fn int<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    macro_rules! map {
        ($f:expr) => {
            // SAFETY: the caller's promise; one-word operands.
            unsafe { machine.map::<u32, u32>(i, $f) }
        };
    }
    match i.op {
        Op::Int(Int::Neg) => map!(u32::wrapping_neg),
        Op::Int(Int::Not) => map!(|a| !a),
        Op::Int(Int::Abs) => map!(|a| (a as i32).wrapping_abs() as u32),
        Op::Int(Int::Sign) => map!(|a| (a as i32).signum() as u32),
        Op::Int(Int::LeadingZeros) => map!(u32::leading_zeros),
        Op::Int(Int::TrailingZeros) => map!(u32::trailing_zeros),
        Op::Int(Int::OneBits) => map!(u32::count_ones),
        Op::Int(Int::Reverse) => map!(u32::reverse_bits),
        Op::Int(Int::FirstLeadingSigned) => {
            map!(|a| 31_u32.wrapping_sub((a ^ ((a as i32) >> 31) as u32).leading_zeros()))
        }
        Op::Int(Int::FirstLeadingUnsigned) => map!(|a| 31_u32.wrapping_sub(a.leading_zeros())),
        Op::Int(Int::FirstTrailing) => map!(|a| if a == 0 { u32::MAX } else { a.trailing_zeros() }),
        // SAFETY: as above.
        Op::ExtractSigned => unsafe {
            machine.zip3::<u32, u32, u32, u32>(i, |a, offset, count| {
                let (left, right) = field(offset, count);
                if right == 32 { 0 } else { ((a << left) as i32 >> right) as u32 }
            });
        },
        // SAFETY: as above.
        Op::ExtractUnsigned => unsafe {
            machine.zip3::<u32, u32, u32, u32>(i, |a, offset, count| {
                let (left, right) = field(offset, count);
                if right == 32 { 0 } else { (a << left) >> right }
            });
        },
        _ => {}
    }
}

/// Shifts that bring a bit field to the top and down again; right is 32 for an empty field.
#[inline(always)]
fn field(offset: u32, count: u32) -> (u32, u32) {
    let offset = offset.min(32);
    let count = count.min(32 - offset);
    ((32 - offset - count) & 31, 32 - count)
}

/// # Safety
/// `i` is of a checked program.
#[inline(always)]
pub(crate) unsafe fn int2<I: Lanes>(machine: &Machine<'_>, i: &Instr) {
    macro_rules! zip {
        ($f:expr) => {
            // SAFETY: the caller's promise; one-word operands.
            unsafe { machine.zip::<u32, u32, u32>(i, $f) }
        };
    }
    macro_rules! signed {
        ($f:expr) => {
            // SAFETY: the caller's promise; one-word operands.
            unsafe { machine.zip::<i32, i32, i32>(i, $f) }
        };
    }
    macro_rules! compare {
        ($t:ty, $f:expr) => {
            // SAFETY: the caller's promise; one-word operands.
            unsafe { machine.zip::<$t, $t, u32>(i, |a: $t, b: $t| truth($f(&a, &b))) }
        };
    }
    match i.op {
        Op::Int2(Int2::Add) => zip!(u32::wrapping_add),
        Op::Int2(Int2::Sub) => zip!(u32::wrapping_sub),
        Op::Int2(Int2::Mul) => zip!(u32::wrapping_mul),
        Op::Int2(Int2::DivSigned) => signed!(quotient),
        Op::Int2(Int2::RemSigned) => signed!(remainder),
        // SAFETY: as above.
        Op::Int2(Int2::DivUnsigned) => unsafe { divide(machine, i, |_, _, quotient| quotient) },
        // SAFETY: as above.
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

/// WGSL's signed quotient: truncated, `a` where `b` is 0 or the quotient overflows. An f64 division vectorises where an
/// integer one does not, and is exact: the quotient of two 32-bit integers never rounds across an integer.
#[inline(always)]
fn quotient(a: i32, b: i32) -> i32 {
    let b = if b == 0 || (b == -1 && a == i32::MIN) { 1 } else { b };
    // SAFETY: |quotient| is at most 2^31, and 2^31 itself was excluded.
    unsafe { (f64::from(a) / f64::from(b)).to_int_unchecked::<i32>() }
}

/// WGSL's signed remainder: 0 where `b` is 0 or the quotient overflows.
#[inline(always)]
fn remainder(a: i32, b: i32) -> i32 {
    let rest = a.wrapping_sub(quotient(a, b).wrapping_mul(b));
    if b == 0 { 0 } else { rest }
}

/// Unsigned division; by a uniform divisor as a multiplication (Granlund and Montgomery 1994, as in Warren's Hacker's
/// Delight, 10-9: a 33-bit factor, of which the top bit is an addition).
///
/// # Safety
/// `i` is of a checked program, its operands one word wide.
#[inline(always)]
unsafe fn divide(machine: &Machine<'_>, i: &Instr, f: impl Fn(u32, u32, u32) -> u32) {
    if i.form & (B_UNIFORM | D_UNIFORM) == B_UNIFORM {
        // SAFETY: the caller's promise.
        let b = unsafe { machine.scalar::<u32>(i.b) }.max(1);
        if b == 1 {
            // SAFETY: the caller's promise.
            return unsafe { machine.zip::<u32, u32, u32>(i, |a, _| f(a, b, a)) };
        }
        let bits = 32 - (b - 1).leading_zeros();
        let factor = ((((1_u64 << bits) - u64::from(b)) << 32) / u64::from(b) + 1) as u32;
        let shift = bits - 1;
        // SAFETY: the caller's promise.
        unsafe {
            machine.zip::<u32, u32, u32>(i, |a, _| {
                let high = ((u64::from(a) * u64::from(factor)) >> 32) as u32;
                f(a, b, (((a - high) >> 1) + high) >> (shift & 31))
            });
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        machine.zip::<u32, u32, u32>(i, |a, b| {
            let divisor = b.max(1);
            // The quotient is at most 2^32 - 1, and exact, see `quotient`.
            f(a, b, (f64::from(a) / f64::from(divisor)).to_int_unchecked::<u32>())
        });
    }
}
