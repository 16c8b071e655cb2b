//! Logarithms: exponent and mantissa apart, `log1p` of the mantissa by a polynomial.

use super::{Isa, horner, select};

const LN_2_HIGH: f32 = 0.693_145_751_953_125;
const LN_2_LOW: f32 = 1.428_606_77e-6;
const LOG2_E_HIGH: f32 = 1.442_695_02;
const LOG2_E_LOW: f32 = 1.925_963_03e-8;

/// Natural logarithm, within 1 ULP; -infinity at 0, NaN below.
#[inline(always)]
pub fn log<I: Isa>(x: f32) -> f32 {
    let (m, e) = mantissa_exponent(x);
    outside(x, log_of_parts::<I>(m - 1.0, e))
}

/// Logarithm to base 2, within 2.5 ULP and exact for powers of two; -infinity at 0, NaN below.
#[inline(always)]
pub fn log2<I: Isa>(x: f32) -> f32 {
    let (m, e) = mantissa_exponent(x);
    let l = log1p_small::<I>(m - 1.0);
    // The product with log2(e) in two parts keeps the rounding of that constant out of the result.
    let low = I::mul_add(l, LOG2_E_LOW, 0.0);
    outside(x, I::mul_add(l, LOG2_E_HIGH, low) + e)
}

/// `(m, e)` with `x = m 2^e` and `m` in [2/3, 4/3), for positive finite `x`, subnormals included.
#[inline(always)]
pub(super) fn mantissa_exponent(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let bits = select(tiny, x * 8_388_608.0, x).to_bits();
    // 0x3f2aaaab is 2/3: the difference's exponent field counts the doublings from there.
    let e = bits.wrapping_sub(0x3f2a_aaab) & 0xff80_0000;
    let exponent = (e as i32 >> 23) as f32;
    (f32::from_bits(bits.wrapping_sub(e)), exponent - select(tiny, 23.0, 0.0))
}

/// `log(1 + f) + e log(2)` for `f` in [-1/3, 1/3].
#[inline(always)]
pub(super) fn log_of_parts<I: Isa>(f: f32, e: f32) -> f32 {
    let l = log1p_small::<I>(f);
    if I::FMA { I::mul_add(e, core::f32::consts::LN_2, l) } else { e * LN_2_HIGH + (e * LN_2_LOW + l) }
}

/// `log(1 + f)` for `f` in [-1/3, 1/3]: `f - f²/2` and a polynomial from the cube on.
#[inline(always)]
fn log1p_small<I: Isa>(f: f32) -> f32 {
    let p = horner!(
        I,
        f,
        -0.5,
        0.333_332_151,
        -0.249_998_063,
        0.200_104_266,
        -0.166_801_974,
        0.140_057_34,
        -0.121_874_474,
        0.139_845_937,
        -0.128_802_091
    );
    I::mul_add(f * f, p, f)
}

/// `result` for positive finite `x`, and what a logarithm is elsewhere.
#[inline(always)]
fn outside(x: f32, result: f32) -> f32 {
    let result = select(x > 0.0, result, select(x == 0.0, f32::NEG_INFINITY, f32::NAN));
    select(x < f32::INFINITY, result, x)
}
