//! Inverse trigonometric functions.

use super::{Isa, SIGN, at_least, at_most, flip_sign, horner, select, sign_of};
use core::f32::consts::{FRAC_PI_2, PI};

/// The difference between pi/2 and FRAC_PI_2.
const FRAC_PI_2_LOW: f32 = -4.371_138_83e-8;

/// `atan(a)` for `a` in [0, 1].
#[inline(always)]
fn atan_unit<I: Isa>(a: f32) -> f32 {
    let s = a * a;
    let p = horner!(
        I,
        s,
        -0.333_331_525,
        0.199_937_671,
        -0.142_110_02,
        0.106_657_691,
        -7.551_661_13e-2,
        4.320_476_58e-2,
        -1.636_324_08e-2,
        2.919_445_28e-3
    );
    I::mul_add(s * a, p, a)
}

/// Arc tangent, within 2.2 ULP.
#[inline(always)]
pub fn atan<I: Isa>(x: f32) -> f32 {
    let magnitude = x.abs();
    let a = at_most(magnitude, 1.0) / at_least(magnitude, 1.0);
    let r = atan_unit::<I>(a);
    let steep = magnitude > 1.0;
    flip_sign(select(steep, FRAC_PI_2 - r, r), sign_of(x))
}

/// The angle of the point (`x`, `y`) in [-pi, pi], within 3 ULP, with IEEE's values at all signs, zeros and infinities.
#[inline(always)]
pub fn atan2<I: Isa>(y: f32, x: f32) -> f32 {
    let (ax, ay) = (x.abs(), y.abs());
    let steep = ay > ax;
    let (small, large) = (select(steep, ax, ay), select(steep, ay, ax));
    // 0/0 counts as 0 and infinity/infinity as 1.
    let a = select(ax == ay, select(ax > 0.0, 1.0, 0.0), small / large);
    let r = flip_sign(atan_unit::<I>(a), sign_of(x) ^ if steep { SIGN } else { 0 });
    let base = select(steep, FRAC_PI_2, select(x.is_sign_negative(), PI, 0.0));
    flip_sign(base + r, sign_of(y))
}

/// `asin` of the square root of `z`, given that root: for `z` in [0, 1/4].
#[inline(always)]
fn asin_small<I: Isa>(root: f32, z: f32) -> f32 {
    let p = horner!(I, z, 0.166_667_521, 7.495_309_41e-2, 4.546_915_37e-2, 2.418_474_11e-2, 4.215_839_88e-2);
    I::mul_add(root * z, p, root)
}

/// `(magnitude above one half?, asin of the magnitude, or of sqrt((1 - magnitude) / 2) if so)`.
#[inline(always)]
fn asin_folded<I: Isa>(magnitude: f32) -> (bool, f32) {
    let far = magnitude > 0.5;
    let z = select(far, 0.5 - 0.5 * magnitude, magnitude * magnitude);
    let root = select(far, z.sqrt(), magnitude);
    (far, asin_small::<I>(root, z))
}

/// Arc sine, within 3 ULP; NaN outside [-1, 1].
#[inline(always)]
pub fn asin<I: Isa>(x: f32) -> f32 {
    let (far, r) = asin_folded::<I>(x.abs());
    flip_sign(select(far, FRAC_PI_2 - (2.0 * r - FRAC_PI_2_LOW), r), sign_of(x))
}

/// Arc cosine in [0, pi], within 2 ULP; NaN outside [-1, 1].
#[inline(always)]
pub fn acos<I: Isa>(x: f32) -> f32 {
    let (far, r) = asin_folded::<I>(x.abs());
    let near_one = flip_sign(2.0 * r, sign_of(x));
    let base = select(x.is_sign_negative(), PI, 0.0);
    let middle = FRAC_PI_2 - (flip_sign(r, sign_of(x)) - FRAC_PI_2_LOW);
    select(far, base + near_one, middle)
}
