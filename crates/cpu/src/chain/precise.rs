//! Functions of float64 in lanes, within about one unit in the last place. Methods are those of fdlibm (Sun Microsystems, 1993) without its branches:
//! every lane takes the same path, and the compiler makes vectors of it.

// A coefficient is written with the digits that name its f64; some start like a well-known constant.
#![allow(clippy::excessive_precision, clippy::approx_constant, reason = "they are those of fdlibm")]

use crate::spmd::math::Isa;

/// ln 2 in two parts; the first has 32 bits, so that a whole number times it is exact.
const LN2: [f64; 2] = [6.931_471_803_691_238_164_90e-01, 1.908_214_929_270_587_700_02e-10];
/// Adding and subtracting it rounds to a whole number of up to 51 bits, which the low bits of the sum hold.
const TO_WHOLE: f64 = 6_755_399_441_055_744.0;
/// Arguments beyond are reduced by more digits of π than two steps have.
pub(super) const FAR: f64 = 1e5;

/// The polynomial of these coefficients, from the constant one on.
#[inline(always)]
fn polynomial<I: Isa, const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut value = 0.0;
    let mut place = N;
    while place > 0 {
        place -= 1;
        value = I::mul_add_f64(value, x, coefficients[place]);
    }
    value
}

/// 2^k for k from -1022 to 1023.
#[inline(always)]
fn power_of_two(k: i64) -> f64 {
    f64::from_bits(((k + 1023) << 52).cast_unsigned())
}

/// x as k ln 2 + r, with r in two parts of at most half of ln 2.
#[inline(always)]
fn reduced<I: Isa>(x: f64) -> (i64, f64, f64) {
    let sum = I::mul_add_f64(x, std::f64::consts::LOG2_E, TO_WHOLE);
    let k = sum - TO_WHOLE;
    let whole = sum.to_bits().wrapping_sub(TO_WHOLE.to_bits()).cast_signed();
    (whole, x - k * LN2[0], k * LN2[1])
}

/// e^r - 1 for r = high - low, as the sum of its two parts: the second one is r, less its own error.
#[inline(always)]
fn small<I: Isa>(high: f64, low: f64) -> (f64, f64) {
    let r = high - low;
    let lost = (high - r) - low;
    let rest = polynomial::<I, 12>(
        r,
        [
            0.5,
            1.0 / 6.0,
            1.0 / 24.0,
            1.0 / 120.0,
            1.0 / 720.0,
            1.0 / 5_040.0,
            1.0 / 40_320.0,
            1.0 / 362_880.0,
            1.0 / 3_628_800.0,
            1.0 / 39_916_800.0,
            1.0 / 479_001_600.0,
            1.0 / 6_227_020_800.0,
        ],
    );
    (I::mul_add_f64(r * r, rest, lost), r)
}

/// e^x
#[inline(always)]
pub(super) fn exp<I: Isa>(x: f64) -> f64 {
    // What is beyond has the same result as the bounds, 0 or infinity.
    let bounded = if x < -800.0 { -800.0 } else { x };
    let bounded = if bounded > 800.0 { 800.0 } else { bounded };
    let (k, high, low) = reduced::<I>(bounded);
    let (rest, r) = small::<I>(high, low);
    // In two steps, of which neither leaves the range before the result does.
    let half = k >> 1;
    (1.0 + (r + rest)) * power_of_two(half) * power_of_two(k - half)
}

/// e^x - 1
#[inline(always)]
pub(super) fn expm1<I: Isa>(x: f64) -> f64 {
    let bounded = if x < -60.0 { -60.0 } else { x };
    let bounded = if bounded > 709.0 { 709.0 } else { bounded };
    let (k, high, low) = reduced::<I>(bounded);
    let (rest, r) = small::<I>(high, low);
    let scale = power_of_two(k);
    let value = (scale - 1.0) + scale * (r + rest);
    let value = if x > 709.0 { exp::<I>(x) } else { value };
    // -0 stays.
    if x == 0.0 { x } else { value }
}

/// The exponent k and f of x = 2^k (1 + f), 1 + f being from √½ to √2.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    const ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
    let is_small = x < f64::MIN_POSITIVE;
    let bits = (if is_small { x * 18_014_398_509_481_984.0 } else { x }).to_bits();
    let above = bits.wrapping_sub(ROOT);
    // A whole number between -1,100 and 1,100 as a float64, without a conversion that few processors have in lanes.
    let exponent = above.cast_signed() >> 52;
    let k = f64::from_bits((exponent + TO_WHOLE.to_bits().cast_signed()).cast_unsigned()) - TO_WHOLE;
    let k = if is_small { k - 54.0 } else { k };
    (k, f64::from_bits((above & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT)) - 1.0)
}

/// log(1 + f) + k ln 2; `lost` is what 1 + f has lost.
#[inline(always)]
fn logarithm<I: Isa>(k: f64, f: f64, lost: f64) -> f64 {
    let half = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let rest = z * polynomial::<I, 7>(
        z,
        [
            6.666_666_666_666_735_130e-01,
            3.999_999_999_940_941_908e-01,
            2.857_142_874_366_239_149e-01,
            2.222_219_843_214_978_396e-01,
            1.818_357_216_161_805_012e-01,
            1.531_383_769_920_937_332e-01,
            1.479_819_860_511_658_591e-01,
        ],
    );
    k * LN2[0] - ((half - (s * (half + rest) + (k * LN2[1] + lost))) - f)
}

/// The natural logarithm.
#[inline(always)]
pub(super) fn log<I: Isa>(x: f64) -> f64 {
    let (k, f) = split(x);
    let value = logarithm::<I>(k, f, 0.0);
    let value = if x == f64::INFINITY { x } else { value };
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    if x < 0.0 || x.is_nan() { f64::NAN } else { value }
}

/// log(1 + x)
#[inline(always)]
pub(super) fn log1p<I: Isa>(x: f64) -> f64 {
    let sum = 1.0 + x;
    let (k, f) = split(sum);
    // What the sum has lost, as far as it shows.
    let lost = if x > 1.0 { 1.0 - (sum - x) } else { x - (sum - 1.0) };
    let value = logarithm::<I>(k, f, lost / sum);
    let value = if x == f64::INFINITY { x } else { value };
    let value = if x == -1.0 { f64::NEG_INFINITY } else { value };
    let value = if x.abs() < 1e-17 { x } else { value };
    if x < -1.0 || x.is_nan() { f64::NAN } else { value }
}

/// π / 2 in three parts, of which the first two have 33 bits.
const QUARTER: [f64; 4] = [
    1.570_796_326_734_125_614_17e+00,
    6.077_100_506_303_965_976_60e-11,
    2.022_266_248_711_166_455_80e-21,
    8.478_427_660_368_899_569_97e-32,
];

/// The sine of x + `quarters` π / 2, for |x| up to [`FAR`].
#[inline(always)]
pub(super) fn sine<I: Isa>(x: f64, quarters: u64) -> f64 {
    let sum = x * std::f64::consts::FRAC_2_PI + TO_WHOLE;
    let n = sum - TO_WHOLE;
    let quarters = sum.to_bits().wrapping_add(quarters);
    // x - n π / 2 in two parts: n has up to 17 bits, so n times the first part is exact.
    let first = x - n * QUARTER[0];
    let by_second = n * QUARTER[1];
    let second = first - by_second;
    let lost = (first - second) - by_second;
    let by_third = n * QUARTER[2];
    let y = second - (by_third - lost);
    let rest = ((second - y) - (by_third - lost)) - n * QUARTER[3];
    let z = y * y;
    let of_sine = polynomial::<I, 5>(
        z,
        [
            8.333_333_333_322_489_461_24e-03,
            -1.984_126_982_985_794_931_34e-04,
            2.755_731_370_707_006_767_89e-06,
            -2.505_076_025_340_686_341_95e-08,
            1.589_690_995_211_550_102_21e-10,
        ],
    );
    let cube = z * y;
    let sine = y - ((z * (0.5 * rest - cube * of_sine) - rest) - cube * -1.666_666_666_666_663_243_48e-01);
    let of_cosine = z * polynomial::<I, 6>(
        z,
        [
            4.166_666_666_666_660_190_37e-02,
            -1.388_888_888_887_410_957_49e-03,
            2.480_158_728_947_672_941_78e-05,
            -2.755_731_435_139_066_330_35e-07,
            2.087_572_321_298_174_827_90e-09,
            -1.135_964_755_778_819_482_65e-11,
        ],
    );
    let half = 0.5 * z;
    let near = 1.0 - half;
    let cosine = near + (((1.0 - near) - half) + (z * of_cosine - y * rest));
    let value = if quarters & 1 == 0 { sine } else { cosine };
    f64::from_bits(value.to_bits() ^ (quarters & 2) << 62)
}

/// The hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh<I: Isa>(x: f64) -> f64 {
    let magnitude = if x.abs() > 22.0 { 22.0 } else { x.abs() };
    // (e^2x - 1) / (e^2x + 1)
    let grown = expm1::<I>(2.0 * magnitude);
    let value = grown / (grown + 2.0);
    let value = if x.abs() < 1e-8 { x.abs() } else { value };
    let signed = f64::from_bits(value.to_bits() | x.to_bits() & 1 << 63);
    if x.is_nan() { x } else { signed }
}

/// 1 / (1 + e^-x)
#[inline(always)]
pub(super) fn sigmoid<I: Isa>(x: f64) -> f64 {
    let e = exp::<I>(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}
