// Conversions between the types that elements are computed in. Floats to integers go towards zero and saturate; NaN becomes 0.

// Nothing is left to the devices' own conversions beyond the range: some wrap.
fn float_to_int(x: f32) -> i32 {
    return select(i32(clamp(select(x, 0.0, float_unordered(x)), -2147483648.0, 2147483520.0)), 2147483647, x >= 2147483648.0);
}

fn float_to_uint(x: f32) -> u32 {
    return select(u32(clamp(select(x, 0.0, float_unordered(x)), 0.0, 4294967040.0)), 4294967295u, x >= 4294967296.0);
}

fn float_to_long(x: f32) -> i64 {
    return select(i64(clamp(select(x, 0.0, float_unordered(x)), -9223372036854775808.0, 9223371487098961920.0)), 9223372036854775807li, x >= 9223372036854775808.0);
}

fn float_to_ulong(x: f32) -> u64 {
    return select(u64(clamp(select(x, 0.0, float_unordered(x)), 0.0, 18446742974197923840.0)), 18446744073709551615lu, x >= 18446744073709551616.0);
}

fn double_to_int(x: f64) -> i32 {
    return i32(clamp(select(x, 0.0lf, double_unordered(x)), -2147483648.0lf, 2147483647.0lf));
}

fn double_to_uint(x: f64) -> u32 {
    return u32(clamp(select(x, 0.0lf, double_unordered(x)), 0.0lf, 4294967295.0lf));
}

fn double_to_long(x: f64) -> i64 {
    return select(i64(clamp(select(x, 0.0lf, double_unordered(x)), -9223372036854775808.0lf, 9223372036854774784.0lf)), 9223372036854775807li, x >= 9223372036854775808.0lf);
}

fn double_to_ulong(x: f64) -> u64 {
    return select(u64(clamp(select(x, 0.0lf, double_unordered(x)), 0.0lf, 18446744073709549568.0lf)), 18446744073709551615lu, x >= 18446744073709551616.0lf);
}

// The upper half of a float's bits, rounded to nearest even; NaN stays one.
fn bfloat_bits(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
    return select(rounded, (bits >> 16u) | 64u, (bits & 0x7fffffffu) > 0x7f800000u);
}
