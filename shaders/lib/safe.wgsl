// Arithmetic with one answer where WGSL has several, or none that helps: WGSL lets a device assume that there is no NaN and no infinity, so both are
// told by their bits; integers saturate.

import package::functions::{float_is_nan, float_is_finite, float_min, float_max};

// Whether x is NaN, whatever the device assumes.
fn is_nan(x: f32) -> bool {
    return float_is_nan(x) != 0u;
}

// Whether x is neither NaN nor infinite.
fn is_finite(x: f32) -> bool {
    return float_is_finite(x) != 0u;
}

// The lesser of two, NaN if either is.
fn minimum(a: f32, b: f32) -> f32 {
    return float_min(a, b);
}

// The greater of two, NaN if either is.
fn maximum(a: f32, b: f32) -> f32 {
    return float_max(a, b);
}

// a / b, or `otherwise` where b is 0.
fn divide(a: f32, b: f32, otherwise: f32) -> f32 {
    return select(a / select(b, 1.0, b == 0.0), otherwise, b == 0.0);
}

// The root of x, 0 for what is below 0: rounding leaves such.
fn root(x: f32) -> f32 {
    return sqrt(max(x, 0.0));
}

// A vector of length 1, or zeros where v has none.
fn unit(v: vec3f) -> vec3f {
    let largest = max(max(abs(v.x), abs(v.y)), abs(v.z));
    let scaled = v / select(largest, 1.0, largest == 0.0);
    return scaled / select(sqrt(dot(scaled, scaled)), 1.0, largest == 0.0);
}

// a + b, at most 2^32 - 1.
fn add(a: u32, b: u32) -> u32 {
    return select(a + b, 4294967295u, a > 4294967295u - b);
}

// a - b, at least 0.
fn subtract(a: u32, b: u32) -> u32 {
    return select(a - b, 0u, b > a);
}

// a * b, at most 2^32 - 1.
fn multiply(a: u32, b: u32) -> u32 {
    return select(a * b, 4294967295u, b != 0u && a > 4294967295u / max(b, 1u));
}

// The quotient rounded up; 0 where the divisor is 0.
fn divide_up(a: u32, b: u32) -> u32 {
    return select(a / max(b, 1u) + select(0u, 1u, a % max(b, 1u) != 0u), 0u, b == 0u);
}
