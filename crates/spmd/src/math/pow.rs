//! Powers and roots.

use super::exp::{exp2_fraction, scale};
use super::log::mantissa_exponent;
use super::{Isa, ROUNDER, at_least, at_most, horner, select};

/// As [`ROUNDER`], for `f64`.
const ROUNDER_F64: f64 = 6_755_399_441_055_744.0;

/// Square root, correctly rounded; NaN below 0.
#[inline(always)]
pub fn sqrt<I: Isa>(x: f32) -> f32 {
    x.sqrt()
}

/// `1 / sqrt(x)`, within 2 ULP; infinity at 0, NaN below.
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
    // log2 x is infinite or NaN through its exponent where x is not one of the positive finite numbers.
    let e = select(x > 0.0, e, select(x == 0.0, f32::NEG_INFINITY, f32::NAN));
    let e = select(x < f32::INFINITY, e, x);
    // y multiplies the logarithm's error, so that needs more digits than an f32 has. With fused multiply-add, pairs of
    // f32 have twice the lanes of f64 and cost less; without, splitting every product would cost more.
    let (n, r) = if I::FMA { exponent_in_pairs::<I>(m, e, y) } else { exponent_in_f64::<I>(m, e, y) };
    let power = scale(exp2_fraction::<I>(r), n + ROUNDER);
    select((y == 0.0) | (x == 1.0), 1.0, power)
}

/// `y log2(m 2^e)` as a whole number and a rest of at most one half; limited to where 2 to it is 0 or infinite.
///
/// `log2 m = 2 / log(2) (s + s³/3 + ..)` with `s = (m - 1) / (m + 1)`, in unevaluated sums of two floats (Dekker 1971).
#[inline(always)]
fn exponent_in_pairs<I: Isa>(m: f32, e: f32, y: f32) -> (f32, f32) {
    const SCALE_HIGH: f32 = 2.885_390_04;
    const SCALE_LOW: f32 = 3.851_926_07e-8;
    let f = m - 1.0;
    let u = m + 1.0;
    let u_low = m - (u - 1.0);
    let inverse = 1.0 / u;
    let s = f * inverse;
    let rest = I::mul_add(-s, u_low, I::mul_add(-s, u, f));
    let s_low = rest * inverse;

    let z = s * s;
    let cubic = horner!(I, z, 0.961_796_622, 0.577_092_354, 0.411_205_731, 0.348_403_352);
    let l = s * SCALE_HIGH;
    let l_low = I::mul_add(s_low, SCALE_HIGH, I::mul_add(s, SCALE_LOW, I::mul_add(s, SCALE_HIGH, -l)));
    let l_low = I::mul_add(cubic, z * s, l_low);

    // Where e is not 0 it is larger than l, so the difference recovers what the sum rounded away.
    let high = e + l;
    let low = l - (high - e) + l_low;
    let t = y * high;
    let t_low = I::mul_add(y, low, I::mul_add(y, high, -t));
    // The low part is no rounding error yet (it holds the cubic): one more exact sum. Not where t overflowed.
    let finite = t.abs() < 200.0;
    let sum = select(finite, t + t_low, t);
    let rest = select(finite, (t - sum) + t_low, 0.0);
    let sum = at_least(at_most(sum, 129.0), -151.0);
    let n = (sum + ROUNDER) - ROUNDER;
    (n, (sum - n) + rest)
}

/// As [`exponent_in_pairs`].
#[inline(always)]
fn exponent_in_f64<I: Isa>(m: f32, e: f32, y: f32) -> (f32, f32) {
    let (m, e) = (f64::from(m), f64::from(e));
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let high =
        I::mul_add_f64(I::mul_add_f64(0.348_403_351_881_598_93, z, 0.411_205_731_480_394_63), z, 0.577_092_353_541_793);
    let p = I::mul_add_f64(I::mul_add_f64(high, z, 0.961_796_621_718_622_5), z, 2.885_390_081_836_054_5);
    let t = f64::from(y) * I::mul_add_f64(p, s, e);
    let t = if t > 129.0 { 129.0 } else { t };
    let t = if t < -151.0 { -151.0 } else { t };
    let n = (t + ROUNDER_F64) - ROUNDER_F64;
    (n as f32, (t - n) as f32)
}
