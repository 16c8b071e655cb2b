//! Exponentials: reduction by powers of two, polynomial, scaling in two steps.

use super::{Isa, ROUNDER, at_least, at_most, horner};

const LOG2_E: f32 = 1.442_695_02;
/// ln 2 in two parts; the first has 16 bits, so that its product with an exponent is exact.
const LN_2_HIGH: f32 = 0.693_145_751_953_125;
const LN_2_LOW: f32 = 1.428_606_77e-6;

/// `e^x`, within 2.3 ULP; gradual underflow to 0, infinity above 88.72, NaN for NaN.
#[inline(always)]
pub fn exp<I: Isa>(x: f32) -> f32 {
    let (p, k) = exp_parts::<I>(at_least(at_most(x, 89.0), -104.0));
    scale(p, k)
}

/// `2^x`, within 1.1 ULP; exact for integers; gradual underflow to 0, infinity from 128 on, NaN for NaN.
#[inline(always)]
pub fn exp2<I: Isa>(x: f32) -> f32 {
    let x = at_least(at_most(x, 129.0), -151.0);
    let k = x + ROUNDER;
    scale(exp2_fraction::<I>(x - (k - ROUNDER)), k)
}

/// `(p, k)` with `e^x = p 2^n`, `p` in [0.7, 1.42] and `n` the integer in the low bits of `k`; `|x|` to 150.
#[inline(always)]
pub(super) fn exp_parts<I: Isa>(x: f32) -> (f32, f32) {
    let k = I::mul_add(x, LOG2_E, ROUNDER);
    let n = k - ROUNDER;
    let r = I::mul_add(n, -LN_2_LOW, I::mul_add(n, -LN_2_HIGH, x));
    let p = horner!(I, r, 0.999_999_702, 0.499_991_447, 0.166_676_491, 4.189_867_15e-2, 8.289_803_75e-3);
    (I::mul_add(p, r, 1.0), k)
}

/// `2^r` for `|r|` up to one half, exact at 0.
#[inline(always)]
pub(super) fn exp2_fraction<I: Isa>(r: f32) -> f32 {
    let p =
        horner!(I, r, 0.693_147_182, 0.240_226_477, 5.550_359_56e-2, 9.618_505_84e-3, 1.339_102_4e-3, 1.532_679_6e-4);
    I::mul_add(p, r, 1.0)
}

/// `p 2^n` for `p` in (0.5, 2) and `n`, the low bits of `k`, in -151..=130: rounds once if the result is subnormal and
/// gives infinity if it overflows.
///
/// The first factor is `n` moved 64 towards zero (exact), the second takes that back.
#[inline(always)]
pub(super) fn scale(p: f32, k: f32) -> f32 {
    scale_down(p, k, 0)
}

/// `p 2^(n - down)`, otherwise as [`scale`].
#[inline(always)]
pub(super) fn scale_down(p: f32, k: f32, down: u32) -> f32 {
    // ROUNDER's own low bits are zero, so that the shift leaves n alone in the exponent field.
    let exponent = k.to_bits() << 23;
    let towards_zero: u32 = if k < ROUNDER { (127 + 64) << 23 } else { (127 - 64) << 23 };
    let near = f32::from_bits(exponent.wrapping_add(towards_zero).wrapping_sub(down << 23));
    let back = f32::from_bits((254_u32 << 23) - towards_zero);
    p * near * back
}
