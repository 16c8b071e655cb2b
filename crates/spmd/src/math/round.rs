//! Rounding to whole numbers. SSE2 has no instruction for it, and `f32::floor` would be a call there, once per lane:
//! the baseline adds and subtracts 2^23 instead.

use super::{Isa, SIGN, select};

/// The value from which every float is whole.
const WHOLE: f32 = 8_388_608.0;

#[inline(always)]
fn with_sign_of(magnitude: f32, x: f32) -> f32 {
    f32::from_bits((magnitude.to_bits() & !SIGN) | (x.to_bits() & SIGN))
}

/// Rounds to the nearest integer, ties to even; keeps the sign of zero.
#[inline(always)]
pub fn round_even<I: Isa>(x: f32) -> f32 {
    if I::ROUND {
        return x.round_ties_even();
    }
    let magnitude = x.abs();
    let whole = (magnitude + WHOLE) - WHOLE;
    select(magnitude < WHOLE, with_sign_of(whole, x), x)
}

/// Rounds down to an integer; keeps the sign of zero.
#[inline(always)]
pub fn floor<I: Isa>(x: f32) -> f32 {
    if I::ROUND {
        return x.floor();
    }
    let near = round_even::<I>(x);
    with_sign_of_zero(near - select(near > x, 1.0, 0.0), x)
}

/// Rounds up to an integer; keeps the sign of zero.
#[inline(always)]
pub fn ceil<I: Isa>(x: f32) -> f32 {
    if I::ROUND {
        return x.ceil();
    }
    let near = round_even::<I>(x);
    with_sign_of_zero(near + select(near < x, 1.0, 0.0), x)
}

/// Rounds to an integer towards zero; keeps the sign of zero.
#[inline(always)]
pub fn trunc<I: Isa>(x: f32) -> f32 {
    if I::ROUND {
        return x.trunc();
    }
    let magnitude = x.abs();
    let near = (magnitude + WHOLE) - WHOLE;
    let whole = near - select(near > magnitude, 1.0, 0.0);
    select(magnitude < WHOLE, with_sign_of(whole, x), x)
}

/// `x - floor(x)`: in [0, 1], and 1 only by rounding.
#[inline(always)]
pub fn fract<I: Isa>(x: f32) -> f32 {
    x - floor::<I>(x)
}

/// `whole`, which has the sign of `x` or is zero.
#[inline(always)]
fn with_sign_of_zero(whole: f32, x: f32) -> f32 {
    select(whole == 0.0, with_sign_of(0.0, x), whole)
}
