//! Conversions between `f32` and the bits of IEEE binary16, without branches and without F16C.

use super::{SIGN, select};

/// The float of binary16 `bits`; exact. A NaN stays one, with its payload.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let magnitude = (bits & 0x7fff) << 13;
    // 2^112 moves the exponent to f32's bias; a subnormal becomes normal by the same product.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = if magnitude >= 0x0f80_0000 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled | special | ((bits & 0x8000) << 16))
}

/// The binary16 nearest to `x`, ties to even; infinity from 65520 on; subnormals kept; NaN stays NaN.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let sign = x.to_bits() & SIGN;
    let bits = x.to_bits() ^ sign;
    // Below 2^-14 the sum with one half has the result's last place: the addition rounds.
    let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
    // Else rebias, add just under half of the last place, or half if the place is odd, and cut.
    let odd = (bits >> 13) & 1;
    let normal = bits.wrapping_sub(112 << 23).wrapping_add(0xfff).wrapping_add(odd) >> 13;
    let finite = if bits < 0x3880_0000 { subnormal } else { normal };
    let special = if bits > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let half = if bits >= 0x4780_0000 { special } else { finite };
    (half | (sign >> 16)) as u16
}

/// `x` rounded to binary16 and back.
#[inline(always)]
pub fn round_f16(x: f32) -> f32 {
    let sign = x.to_bits() & SIGN;
    let bits = x.to_bits() ^ sign;
    let subnormal = (f32::from_bits(bits) + 0.5) - 0.5;
    let odd = (bits >> 13) & 1;
    let normal = f32::from_bits(bits.wrapping_add(0xfff).wrapping_add(odd) & !0x1fff);
    let finite = select(bits < 0x3880_0000, subnormal, normal);
    let limited = select(finite >= 65_536.0, f32::INFINITY, finite);
    let magnitude = select(bits > 0x7f80_0000, f32::from_bits(bits), limited);
    f32::from_bits(magnitude.to_bits() | sign)
}
