//! Powers and roots.

use super::exp::{exp2_fraction, scale};
use super::log::mantissa_exponent;
use super::{Isa, ROUNDER, select};

/// As [`ROUNDER`], for `f64`.
const ROUNDER_F64: f64 = 6_755_399_441_055_744.0;

/// Square root, correctly rounded; NaN below 0.
#[inline(always)]
pub fn sqrt<I: Isa>(x: f32) -> f32 {
    x.sqrt()
}

/// `1 / sqrt(x)`, within 1 ULP; infinity at 0, NaN below.
#[inline(always)]
pub fn inverse_sqrt<I: Isa>(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// `x^y` as `2^(y log2 x)`, within 2 ULP wherever the result is finite and normal; 1 if `y` is 0 or `x` is 1.
///
/// WGSL leaves a negative `x` open: it gives NaN, whatever `y`, except 0. The sign of a zero `x` is ignored.
#[inline(always)]
pub fn pow<I: Isa>(x: f32, y: f32) -> f32 {
    let (m, e) = mantissa_exponent(x);
    // log2 x is 0 or infinite or NaN through its exponent where x is none of the positive finite numbers.
    let e = select(x > 0.0, e, select(x == 0.0, f32::NEG_INFINITY, f32::NAN));
    let e = select(x < f32::INFINITY, e, x);
    // f64 for the logarithm alone: y multiplies its error.
    let (m, e) = (f64::from(m), f64::from(e));
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = {
        let c = [
            2.885_390_081_836_054_5,
            0.961_796_621_718_622_5,
            0.577_092_353_541_793,
            0.411_205_731_480_394_63,
            0.348_403_351_881_598_93,
        ];
        let high = I::mul_add_f64(I::mul_add_f64(c[4], z, c[3]), z, c[2]);
        I::mul_add_f64(I::mul_add_f64(high, z, c[1]), z, c[0])
    };
    let t = f64::from(y) * I::mul_add_f64(p, s, e);
    let t = if t > 129.0 { 129.0 } else { t };
    let t = if t < -151.0 { -151.0 } else { t };
    let n = (t + ROUNDER_F64) - ROUNDER_F64;
    let fraction = exp2_fraction::<I>((t - n) as f32);
    let power = scale(fraction, n as f32 + ROUNDER);
    select((y == 0.0) | (x == 1.0), 1.0, power)
}
