//! Hyperbolic functions and their inverses.

use super::exp::{exp_parts, scale_down};
use super::log::{log_of_parts, mantissa_exponent};
use super::{Isa, ROUNDER, at_most, flip_sign, horner, select, sign_of};

/// `e^x / 2` for `x` from 0 to 90 (the infinities of sinh and cosh begin at 89.4, later than those of exp).
#[inline(always)]
fn half_exp<I: Isa>(x: f32) -> f32 {
    let (p, k) = exp_parts::<I>(at_most(x, 90.0));
    scale_down(p, k, 1)
}

/// Hyperbolic sine, within 3 ULP.
#[inline(always)]
pub fn sinh<I: Isa>(x: f32) -> f32 {
    let magnitude = x.abs();
    let s = x * x;
    let p = horner!(I, s, 0.166_667_163, 8.330_270_65e-3, 2.037_334_05e-4);
    let small = I::mul_add(s * x, p, x);
    let e = half_exp::<I>(magnitude);
    select(magnitude < 1.0, small, flip_sign(e - 0.25 / e, sign_of(x)))
}

/// Hyperbolic cosine, within 3 ULP.
#[inline(always)]
pub fn cosh<I: Isa>(x: f32) -> f32 {
    let e = half_exp::<I>(x.abs());
    e + 0.25 / e
}

/// Hyperbolic tangent, within 3 ULP.
#[inline(always)]
pub fn tanh<I: Isa>(x: f32) -> f32 {
    let magnitude = x.abs();
    let s = x * x;
    let p = horner!(I, s, -0.333_332_807, 0.133_314_058, -5.373_651_53e-2, 2.062_816_73e-2, -5.692_296_66e-3);
    let small = I::mul_add(s * magnitude, p, magnitude);
    // 1 - 2 / (e^2x + 1), which is 1 from 9.1 on: no need to scale in two steps.
    let (e, k) = exp_parts::<I>(2.0 * at_most(magnitude, 10.0));
    let e = e * f32::from_bits((k.to_bits() << 23).wrapping_add(0x3f80_0000));
    let large = 1.0 - 2.0 / (e + 1.0);
    flip_sign(select(magnitude < 0.625, small, large), sign_of(x))
}

/// `log(1 + z)` for `z` from 0 to infinity.
#[inline(always)]
fn log1p<I: Isa>(z: f32) -> f32 {
    let u = 1.0 + z;
    // What the sum rounded away, small against u, joins the mantissa.
    let lost = select(z < 1.0, z - (u - 1.0), 1.0 - (u - z));
    let (m, e) = mantissa_exponent(u);
    let f = I::mul_add(lost, m / u, m - 1.0);
    select(z < f32::INFINITY, log_of_parts::<I>(f, e), z)
}

/// The value from which `x²` may replace `x² + 1`, long before `x²` overflows.
const HUGE: f32 = 1.0e9;

/// Inverse hyperbolic sine, within 4 ULP.
#[inline(always)]
pub fn asinh<I: Isa>(x: f32) -> f32 {
    let magnitude = x.abs();
    let huge = magnitude > HUGE;
    let square = magnitude * magnitude;
    let z = magnitude + square / (1.0 + I::mul_add(magnitude, magnitude, 1.0).sqrt());
    let r = log1p::<I>(select(huge, magnitude, z)) + select(huge, core::f32::consts::LN_2, 0.0);
    flip_sign(r, sign_of(x))
}

/// Inverse hyperbolic cosine, within 4 ULP; NaN below 1.
#[inline(always)]
pub fn acosh<I: Isa>(x: f32) -> f32 {
    let huge = x > HUGE;
    let t = x - 1.0;
    let z = t + (t * (t + 2.0)).sqrt();
    let r = log1p::<I>(select(huge, x, z)) + select(huge, core::f32::consts::LN_2, 0.0);
    select(x < 1.0, f32::NAN, r)
}

/// Inverse hyperbolic tangent, within 4 ULP; infinite at ±1, NaN outside.
#[inline(always)]
pub fn atanh<I: Isa>(x: f32) -> f32 {
    let magnitude = x.abs();
    let z = (magnitude + magnitude) / (1.0 - magnitude);
    let r = select(magnitude > 1.0, f32::NAN, 0.5 * log1p::<I>(z));
    flip_sign(r, sign_of(x))
}

const _: () = assert!(ROUNDER.to_bits() << 23 == 0, "exponents are read from the low bits");
