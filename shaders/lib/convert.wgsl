// Conversions that WGSL leaves open or lacks. Floats to integers go towards zero and saturate, and NaN becomes 0.

import package::functions::float_unordered;

// To i32: saturated, and 0 for NaN.
fn to_i32(x: f32) -> i32 {
    return select(i32(clamp(select(x, 0.0, float_unordered(x)), -2147483648.0, 2147483520.0)), 2147483647, x >= 2147483648.0);
}

// To u32: saturated, and 0 for NaN.
fn to_u32(x: f32) -> u32 {
    return select(u32(clamp(select(x, 0.0, float_unordered(x)), 0.0, 4294967040.0)), 4294967295u, x >= 4294967296.0);
}

// The bits of a bfloat16 in the lower half, rounded to nearest even; NaN stays one.
fn to_bf16(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
    return select(rounded, (bits >> 16u) | 64u, (bits & 0x7fffffffu) > 0x7f800000u);
}

// The value of a bfloat16 whose bits are the lower half of a word.
fn from_bf16(bits: u32) -> f32 {
    return bitcast<f32>(bits << 16u);
}

// Two bfloat16 of a word, the lower half first.
fn unpack_bf16(word: u32) -> vec2f {
    return vec2f(from_bf16(word), bitcast<f32>(word & 0xffff0000u));
}

// Two numbers as bfloat16 in a word, the first in the lower half.
fn pack_bf16(values: vec2f) -> u32 {
    return to_bf16(values.x) | (to_bf16(values.y) << 16u);
}

// The byte at a place, 0 to 3, of a word.
fn byte(word: u32, place: u32) -> u32 {
    return (word >> (8u * (place & 3u))) & 255u;
}

// The signed byte at a place, 0 to 3, of a word.
fn signed_byte(word: u32, place: u32) -> i32 {
    return bitcast<i32>(word << (24u - 8u * (place & 3u))) >> 24u;
}

// A linear intensity in [0, 1] in sRGB's encoding.
fn to_srgb(linear: f32) -> f32 {
    return select(1.055 * pow(max(linear, 0.0031308), 1.0 / 2.4) - 0.055, 12.92 * linear, linear <= 0.0031308);
}

// The linear intensity of a value in sRGB's encoding.
fn from_srgb(encoded: f32) -> f32 {
    return select(pow((max(encoded, 0.04045) + 0.055) / 1.055, 2.4), encoded / 12.92, encoded <= 0.04045);
}
