//! One lane's part of each operation that is not a single expression: shared by the executor's lane loops and by the
//! Rust that is generated ahead, so that both give the same bits.

use super::{Isa, f16_to_f32, f32_to_f16};

/// A bool of a register.
#[inline(always)]
pub fn truth(condition: bool) -> u32 {
    (condition as u32).wrapping_neg()
}

/// The sign of `a`: -1, 0 or 1; 0 for NaN.
#[inline(always)]
pub fn sign(a: f32) -> f32 {
    if a > 0.0 {
        1.0
    } else if a < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// As [`sign`].
#[inline(always)]
pub fn sign_f64(a: f64) -> f64 {
    if a > 0.0 {
        1.0
    } else if a < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// The smaller; `b` where one is NaN.
#[inline(always)]
pub fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The larger; `b` where one is NaN.
#[inline(always)]
pub fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// As [`min`].
#[inline(always)]
pub fn min_f64(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// As [`max`].
#[inline(always)]
pub fn max_f64(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Byte number `BYTE` of a word, over 255, rounded to the nearest: v / 255 is v / 256 and 1/255 of it, with a fused instruction or without.
#[inline(always)]
pub fn unorm8<I: Isa, const BYTE: u32>(word: u32) -> f32 {
    // v / 256 by way of the mantissa of 1 + v / 256.
    let shifted = if BYTE < 2 { word << (15 - 8 * BYTE) } else { word >> (8 * BYTE - 15) };
    let part = f32::from_bits(shifted & 0x007f_8000 | 0x3f80_0000) - 1.0;
    if I::FMA { I::mul_add(part, 1.0 / 255.0, part) } else { part + part * (1.0 / 255.0) }
}

/// A number between 0 and 1 in steps of 1/255, to the nearest, as byte number `byte` of a word; 0 for NaN.
#[inline(always)]
pub fn to_unorm8(value: f32, byte: u8) -> u32 {
    let bounded = min(max(value, 0.0), 1.0) * 255.0 + 0.5;
    // SAFETY: at most 255.5, and no NaN: `max` gives 0 for one.
    let whole = unsafe { bounded.to_int_unchecked::<i32>() };
    (whole as u32) << (8 * (byte & 3))
}

/// `a * b + c`, rounded once on every instruction set.
#[inline(always)]
pub fn fma<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    if I::FMA { I::mul_add(a, b, c) } else { fused(a, b, c) }
}

/// Rounded once, also where there is no fused instruction: the product is exact in f64, and the sum is rounded to odd
/// before it is rounded to f32.
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let addend = f64::from(c);
    let sum = product + addend;
    // Knuth's two-sum gives the rounding error of the sum.
    let part = sum - product;
    let error = (product - (sum - part)) + (addend - part);
    let bits = sum.to_bits();
    let inexact = error != 0.0 && sum.is_finite();
    let away = (error > 0.0) == (sum > 0.0);
    // Round to odd: truncate towards zero, then set the last bit.
    let truncated = if inexact && !away { bits.wrapping_sub(1) } else { bits };
    f64::from_bits(if inexact { truncated | 1 } else { bits }) as f32
}

/// `x * 2^exponent`, rounded once.
#[inline(always)]
pub fn ldexp(x: f32, exponent: i32) -> f32 {
    // The product is exact in f64: the conversion back is the only rounding.
    let exponent = exponent.clamp(-400, 400);
    let factor = f64::from_bits(((exponent + 1023) as u64) << 52);
    (f64::from(x) * factor) as f32
}

/// Fraction in 0.5..1 and exponent; zero, infinity and NaN are their own fraction, with exponent 0.
#[inline(always)]
pub fn split(x: f32) -> (f32, i32) {
    let subnormal = x.abs() < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * 16_777_216.0 } else { x };
    let bits = scaled.to_bits();
    let exponent = ((bits >> 23) & 0xff) as i32 - 126 - if subnormal { 24 } else { 0 };
    let fraction = f32::from_bits((bits & 0x807f_ffff) | 0x3f00_0000);
    let special = x == 0.0 || x.to_bits() & 0x7f80_0000 == 0x7f80_0000;
    if special { (x, 0) } else { (fraction, exponent) }
}

/// `x * 2^exponent` in three steps, so that no factor overflows.
#[inline(always)]
pub fn ldexp_f64(x: f64, exponent: i32) -> f64 {
    let exponent = exponent.clamp(-2200, 2200);
    let third = exponent / 3;
    let power = |e: i32| f64::from_bits(((e + 1023) as u64) << 52);
    x * power(third) * power(third) * power(exponent - 2 * third)
}

/// Fraction in 0.5..1 and exponent; zero, infinity and NaN are their own fraction, with exponent 0.
#[inline(always)]
pub fn split_f64(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let subnormal = x.abs() < f64::MIN_POSITIVE;
    let scaled = if subnormal { x * 18_014_398_509_481_984.0 } else { x };
    let bits = scaled.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1022 - if subnormal { 54 } else { 0 };
    (f64::from_bits((bits & 0x800f_ffff_ffff_ffff) | 0x3fe0_0000_0000_0000), exponent)
}

/// Clamps into a range that the target holds, with NaN as 0.
macro_rules! saturating {
    ($($name:ident: $from:ty => $to:ty, $low:expr, $high:expr;)*) => {$(
        /// Saturating conversion as the name says.
        #[inline(always)]
        pub fn $name(x: $from) -> $to {
            let x = if x.is_nan() { 0.0 } else { x };
            let x = if x < $low { $low } else { x };
            let x = if x > $high { $high } else { x };
            // SAFETY: within the target's range, and no NaN.
            unsafe { x.to_int_unchecked::<$to>() }
        }
    )*};
}
saturating! {
    f32_to_i32: f32 => i32, -2_147_483_648.0, 2_147_483_520.0;
    f32_to_u32: f32 => u32, 0.0, 4_294_967_040.0;
    f32_to_i64: f32 => i64, -9_223_372_036_854_775_808.0, 9_223_371_487_098_961_920.0;
    f32_to_u64: f32 => u64, 0.0, 18_446_742_974_197_923_840.0;
    f64_to_i32: f64 => i32, -2_147_483_648.0, 2_147_483_647.0;
    f64_to_u32: f64 => u32, 0.0, 4_294_967_295.0;
    f64_to_i64: f64 => i64, -9_223_372_036_854_775_808.0, 9_223_372_036_854_774_784.0;
    f64_to_u64: f64 => u64, 0.0, 18_446_744_073_709_549_568.0;
}

/// Shifts that bring a bit field to the top and down again; right is 32 for an empty field.
#[inline(always)]
fn field(offset: u32, count: u32) -> (u32, u32) {
    let offset = offset.min(32);
    let count = count.min(32 - offset);
    ((32 - offset - count) & 31, 32 - count)
}

/// WGSL's signed quotient: truncated, `a` where `b` is 0 or the quotient overflows. An f64 division vectorises where an
/// integer one does not, and is exact: the quotient of two 32-bit integers never rounds across an integer.
#[inline(always)]
pub fn div_signed(a: i32, b: i32) -> i32 {
    let b = if b == 0 || (b == -1 && a == i32::MIN) { 1 } else { b };
    // SAFETY: |quotient| is at most 2^31, and 2^31 itself was excluded.
    unsafe { (f64::from(a) / f64::from(b)).to_int_unchecked::<i32>() }
}

/// WGSL's signed remainder: 0 where `b` is 0 or the quotient overflows.
#[inline(always)]
pub fn rem_signed(a: i32, b: i32) -> i32 {
    let rest = a.wrapping_sub(div_signed(a, b).wrapping_mul(b));
    if b == 0 { 0 } else { rest }
}

/// Unsigned quotient; `a` where `b` is 0.
#[inline(always)]
pub fn div(a: u32, b: u32) -> u32 {
    // SAFETY: the quotient is at most 2^32 - 1, and exact, see `div_signed`.
    unsafe { (f64::from(a) / f64::from(b.max(1))).to_int_unchecked::<u32>() }
}

/// Unsigned remainder; 0 where `b` is 0.
#[inline(always)]
pub fn rem(a: u32, b: u32) -> u32 {
    a.wrapping_sub(div(a, b).wrapping_mul(b.max(1)))
}

/// A divisor that many lanes share, as a multiplication (Granlund and Montgomery 1994, as in Warren's Hacker's Delight,
/// 10-9: a 33-bit factor, of which the top bit is an addition).
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    divisor: u32,
    factor: u32,
    shift: u32,
}

impl Divisor {
    /// Division by `b`, or by 1 where that is 0.
    #[inline(always)]
    pub fn new(b: u32) -> Self {
        let b = b.max(1);
        let bits = 32 - (b - 1).leading_zeros();
        let factor = ((((1_u64 << bits) - u64::from(b)) << 32) / u64::from(b) + 1) as u32;
        Divisor { divisor: b, factor, shift: bits.saturating_sub(1) & 31 }
    }

    /// The quotient, for divisors above 1.
    #[inline(always)]
    pub fn quotient_above_one(self, a: u32) -> u32 {
        let high = ((u64::from(a) * u64::from(self.factor)) >> 32) as u32;
        (((a - high) >> 1) + high) >> self.shift
    }

    /// The quotient.
    #[inline(always)]
    pub fn quotient(self, a: u32) -> u32 {
        let quotient = self.quotient_above_one(a);
        if self.divisor == 1 { a } else { quotient }
    }

    /// The remainder.
    #[inline(always)]
    pub fn remainder(self, a: u32) -> u32 {
        a.wrapping_sub(self.quotient(a).wrapping_mul(self.divisor))
    }
}

/// Bits `offset ..offset + count` of `a`, sign-extended.
#[inline(always)]
pub fn extract_signed(a: u32, offset: u32, count: u32) -> u32 {
    let (left, right) = field(offset, count);
    if right == 32 { 0 } else { ((a << left) as i32 >> right) as u32 }
}

/// Bits `offset ..offset + count` of `a`.
#[inline(always)]
pub fn extract_unsigned(a: u32, offset: u32, count: u32) -> u32 {
    let (left, right) = field(offset, count);
    if right == 32 { 0 } else { (a << left) >> right }
}

/// Magnitude of a signed integer; the least one is its own.
#[inline(always)]
pub fn abs(a: u32) -> u32 {
    (a as i32).wrapping_abs() as u32
}

/// Sign of a signed integer.
#[inline(always)]
pub fn signum(a: u32) -> u32 {
    (a as i32).signum() as u32
}

/// Place of the first bit from the top that differs from the sign.
#[inline(always)]
pub fn first_leading_signed(a: u32) -> u32 {
    31_u32.wrapping_sub((a ^ ((a as i32) >> 31) as u32).leading_zeros())
}

/// Place of the first bit from the top.
#[inline(always)]
pub fn first_leading_unsigned(a: u32) -> u32 {
    31_u32.wrapping_sub(a.leading_zeros())
}

/// Place of the first bit from the bottom.
#[inline(always)]
pub fn first_trailing(a: u32) -> u32 {
    if a == 0 { u32::MAX } else { a.trailing_zeros() }
}

/// As [`first_leading_signed`].
#[inline(always)]
pub fn first_leading_i64(a: u64) -> u64 {
    63_u64.wrapping_sub(u64::from((a ^ ((a as i64) >> 63) as u64).leading_zeros()))
}

/// As [`first_leading_unsigned`].
#[inline(always)]
pub fn first_leading_u64(a: u64) -> u64 {
    63_u64.wrapping_sub(u64::from(a.leading_zeros()))
}

/// As [`first_trailing`].
#[inline(always)]
pub fn first_trailing_u64(a: u64) -> u64 {
    if a == 0 { u64::MAX } else { u64::from(a.trailing_zeros()) }
}

/// Divides. By zero: the dividend; MIN / -1: MIN.
#[inline(always)]
pub fn div_i64(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { a.wrapping_div(b) }
}

/// Returns the remainder. By zero: 0; MIN / -1: 0.
#[inline(always)]
pub fn rem_i64(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

/// The f16 nearest to `x`, as an f32: rounded to odd on the way through f32, so that nothing is rounded twice.
#[inline(always)]
pub fn f64_to_half(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    // Towards zero, then odd where something was lost.
    let bits = near.to_bits();
    let truncated = if back.abs() > x.abs() { bits.wrapping_sub(1) } else { bits };
    let odd = if back == x || x.is_nan() { bits } else { truncated | 1 };
    f16_to_f32(f32_to_f16(f32::from_bits(odd)))
}
