// The functions of elementwise operations, one float32 to one. What an operation promises of NaN, infinity and -0 holds where the device
// keeps them; WGSL lets it assume that there are none.

import package::lib::math::{accurate_exp, accurate_log, accurate_sin, accurate_cos};

fn float_exp(x: f32) -> f32 {
    return accurate_exp(x);
}

fn float_log(x: f32) -> f32 {
    return accurate_log(x);
}

fn float_sin(x: f32) -> f32 {
    return accurate_sin(x);
}

fn float_cos(x: f32) -> f32 {
    return accurate_cos(x);
}

// Small arguments by the series, so that nothing cancels.
@if(native_math)
fn float_tanh(x: f32) -> f32 {
    return tanh(x);
}
@else
fn float_tanh(x: f32) -> f32 {
    let s = x * x;
    let series = x + x * s * ((((s * 2.1869488e-2 - 5.3968254e-2) * s + 0.13333333) * s) - 0.33333333);
    let e = accurate_exp(-2.0 * abs(x));
    let quotient = (1.0 - e) / (1.0 + e);
    return select(select(quotient, -quotient, x < 0.0), series, abs(x) < 0.25);
}

// a^b; for a < 0 a number where b is whole, and NaN elsewhere. The error grows with |b log a|: 1e-5 relative at the ends of the range.
@if(native_math)
fn float_power(a: f32, b: f32) -> f32 {
    let magnitude = pow(abs(a), b);
    return power_sign(a, b, magnitude);
}
@else
fn float_power(a: f32, b: f32) -> f32 {
    // At 0 the logarithm's smallest argument is not small enough.
    let zero = select(0.0, float_infinity(), b < 0.0);
    let magnitude = select(accurate_exp(b * accurate_log(abs(a))), zero, a == 0.0);
    return power_sign(a, b, magnitude);
}

fn power_sign(a: f32, b: f32, magnitude: f32) -> f32 {
    if b == 0.0 { return 1.0; }
    if a >= 0.0 { return magnitude; }
    if floor(b) != b { return float_nan(); }
    // Beyond 2^24 every float is even.
    let odd = (abs(b) < 16777216.0) && (i32(b) & 1) != 0;
    return select(magnitude, -magnitude, odd);
}

// Read from memory or computed, so that no compiler folds it: constants of infinity and NaN are errors in WGSL.
fn float_infinity() -> f32 {
    return bitcast<f32>(hidden(2139095040u));
}

fn float_nan() -> f32 {
    return bitcast<f32>(hidden(2143289344u));
}

fn hidden(bits: u32) -> u32 {
    var value = bits;
    return value;
}

// NaN if either is, as NumPy has it.
fn float_min(a: f32, b: f32) -> f32 {
    return select(select(min(a, b), b, b != b), a, a != a);
}

fn float_max(a: f32, b: f32) -> f32 {
    return select(select(max(a, b), b, b != b), a, a != a);
}

fn float_clamp(x: f32, low: f32, high: f32) -> f32 {
    return select(select(x, high, x > high), low, x < low);
}

fn float_relu(x: f32) -> f32 {
    return select(x, 0.0, x < 0.0);
}

fn float_sigmoid(x: f32) -> f32 {
    let e = accurate_exp(-abs(x));
    return select(1.0, e, x < 0.0) / (1.0 + e);
}

fn float_silu(x: f32) -> f32 {
    return x * float_sigmoid(x);
}

// The error function within 1.5e-7: x P(x^2) below 1, and 1 - t Q(t) e^(-x^2) with t = 1 / (1 + x/2) above (coefficients found by Chebyshev
// interpolation of erf(x)/x and of erfc(x) e^(x^2) / t).
fn float_erf(x: f32) -> f32 {
    let s = x * x;
    var p = (7.88249745e-5 * s - 8.018855e-4) * s + 5.1893121e-3;
    p = ((p * s - 2.6854329e-2) * s + 0.112835974) * s - 0.37612626;
    let near = x * (p * s + 1.1283791);
    let a = min(abs(x), 4.2);
    let t = 1.0 / (1.0 + 0.5 * a);
    var q = (5.6283649e-2 * t - 0.102870852) * t - 9.0677008e-2;
    q = ((q * t + 0.194218338) * t + 0.118083134) * t + 0.263343036;
    q = (q * t + 0.279614955) * t + 0.282250375;
    let far = 1.0 - q * t * accurate_exp(-a * a);
    return select(select(far, -far, x < 0.0), near, abs(x) < 1.0);
}

// x times the normal distribution's value at x.
fn float_gelu(x: f32) -> f32 {
    return 0.5 * x * (1.0 + float_erf(x * 0.70710678));
}

// The form by tanh (Hendrycks and Gimpel, 2016).
fn float_gelu_tanh(x: f32) -> f32 {
    return 0.5 * x * (1.0 + float_tanh(0.79788456 * (x + 0.044715 * x * x * x)));
}

// Ten rounds of Philox 4x32 (Salmon et al., 2011): 128 bits from a counter and a key.
fn random_block(counter: u32, key: vec2u) -> vec4u {
    var state = vec4u(counter, 0u, 0u, 0u);
    var round_key = key;
    for (var i = 0u; i < 10u; i++) {
        let a = random_product(0xD2511F53u, state.x);
        let b = random_product(0xCD9E8D57u, state.z);
        state = vec4u(b.y ^ state.y ^ round_key.x, b.x, a.y ^ state.w ^ round_key.y, a.x);
        round_key += vec2u(0x9E3779B9u, 0xBB67AE85u);
    }
    return state;
}

// Low and high word of a product, by parts of 16 bits.
fn random_product(a: u32, b: u32) -> vec2u {
    let low = (a & 0xFFFFu) * (b & 0xFFFFu);
    let cross = (a >> 16u) * (b & 0xFFFFu) + (low >> 16u);
    let middle = (a & 0xFFFFu) * (b >> 16u) + (cross & 0xFFFFu);
    return vec2u(a * b, (a >> 16u) * (b >> 16u) + (cross >> 16u) + (middle >> 16u));
}

fn random_bits(i: u32, key: vec2u) -> u32 {
    let block = random_block(i / 4u, key);
    let low = select(block.x, block.y, (i & 1u) != 0u);
    let high = select(block.z, block.w, (i & 1u) != 0u);
    return select(low, high, (i & 2u) != 0u);
}

fn float_random_uniform(i: u32, key: vec2u) -> f32 {
    return f32(random_bits(i, key) >> 8u) * 5.9604645e-8;
}

// The two numbers of a pair come from one block: radius and angle.
fn float_random_normal(i: u32, key: vec2u) -> f32 {
    let block = random_block(i / 2u, key);
    let radius = sqrt(-2.0 * float_log((f32(block.x >> 8u) + 0.5) * 5.9604645e-8));
    let angle = 6.2831853 * (f32(block.y >> 8u) * 5.9604645e-8);
    return radius * select(float_cos(angle), float_sin(angle), (i & 1u) != 0u);
}
