// The functions of elementwise operations, one float32 to one. WGSL lets a device assume that there is no NaN and no infinity, so both are told
// by their bits; -0 is kept where the device keeps it.





fn float_exp(x: f32) -> f32 {
    return select(select(accurate_exp(x), float_infinity(), x > 88.72283), x, float_unordered(x));
}



fn float_log(x: f32) -> f32 {
    return float_log_edges(x, accurate_log(x));
}



fn float_sin(x: f32) -> f32 {
    if abs(x) <= 10000.0 { return select(accurate_sin(x), x, abs(x) < 1e-4); }
    return float_sin_far(x, 0u);
}



fn float_cos(x: f32) -> f32 {
    if abs(x) <= 10000.0 { return select(accurate_cos(x), 1.0, abs(x) < 1e-4); }
    return float_sin_far(abs(x), 0x40000000u);
}

// 32 bits of 1 / pi from one on, after a word of zeros.
fn per_pi_bits(first: u32) -> u32 {
    let shift = first % 32u;
    return (per_pi_word(first / 32u) << shift) | ((per_pi_word(first / 32u + 1u) >> 1u) >> (31u - shift));
}

fn per_pi_word(place: u32) -> u32 {
    switch place {
        case 1u: { return 0x517cc1b7u; }
        case 2u: { return 0x27220a94u; }
        case 3u: { return 0xfe13abe8u; }
        case 4u: { return 0xfa9a6ee0u; }
        case 5u: { return 0x6db14accu; }
        case 6u: { return 0x9e21c820u; }
        case 7u: { return 0xff28b1d5u; }
        default: { return 0u; }
    }
}

// The sine of x + quarters pi / 2^31, for finite |x| from 2^-10 on; NaN beyond. Payne & Hanek's reduction: |x| is a whole number times 2^e, and of
// the bits of 1 / pi those count whose product with it is below two half turns and still seen in what is left.
fn float_sin_far(x: f32, quarters: u32) -> f32 {
    let magnitude = float_magnitude(x);
    if magnitude >= 0x7f800000u { return float_nan(); }
    let whole = (magnitude & 0x7fffffu) | 0x800000u;
    // The first bit that counts, at e + 31.
    let first = (magnitude >> 23u) - 119u;
    // The product in half turns: one bit before the point, 63 after it.
    let middle = wide_product(whole, per_pi_bits(first + 32u));
    let rest = middle.x + wide_product(whole, per_pi_bits(first + 64u)).y;
    let turns = whole * per_pi_bits(first) + middle.y + select(0u, 1u, rest < middle.x) + quarters;
    // The nearest whole number of half turns, and the signed rest of 64 bits.
    let high = (turns << 1u) | (rest >> 31u);
    let below = rest << 1u;
    let negative = (high >> 31u) != 0u;
    let odd = ((turns >> 31u) != 0u) != negative;
    let left = select(vec2u(high, below), vec2u(~high + select(0u, 1u, below == 0u), ~below + 1u), negative);
    let r = (f32(left.x) * 2.3283064e-10 + f32(left.y) * 5.421011e-20) * 3.1415927;
    let s = r * r;
    let sine = r + r * s * (((2.60606748e-6 * s - 1.9809806e-4) * s + 8.33306275e-3) * s - 0.166666582);
    return select(sine, -sine, (odd != negative) != (x < 0.0));
}

// Small arguments by the series, so that nothing cancels.


fn float_tanh(x: f32) -> f32 {
    let s = x * x;
    let series = x + x * s * ((((s * 2.1869488e-2 - 5.3968254e-2) * s + 0.13333333) * s) - 0.33333333);
    let e = float_exp(-2.0 * abs(x));
    let quotient = (1.0 - e) / (1.0 + e);
    return select(select(select(quotient, -quotient, x < 0.0), series, abs(x) < 0.25), x, abs(x) < 1e-4);
}

// a^b; for a < 0 a number where b is whole, and NaN elsewhere. The error grows with |b log a|: 1e-5 relative at the ends of the range.


fn float_power(a: f32, b: f32) -> f32 {
    let zero = select(0.0, float_infinity(), b < 0.0);
    // 0 times an infinity has no value, but these powers do.
    let magnitude = select(select(float_exp(b * float_log(abs(a))), zero, a == 0.0), 1.0, abs(a) == 1.0);
    return power_sign(a, b, magnitude);
}

fn power_sign(a: f32, b: f32, magnitude: f32) -> f32 {
    if b == 0.0 || a == 1.0 { return 1.0; }
    if float_unordered(a) || float_unordered(b) { return float_nan(); }
    if (bitcast<u32>(a) >> 31u) == 0u { return magnitude; }
    if floor(b) != b { return select(float_nan(), magnitude, a == 0.0 || float_is_infinite(a) != 0u); }
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
    return select(select(min(a, b), b, float_unordered(b)), a, float_unordered(a));
}

fn float_max(a: f32, b: f32) -> f32 {
    return select(select(max(a, b), b, float_unordered(b)), a, float_unordered(a));
}

fn float_clamp(x: f32, low: f32, high: f32) -> f32 {
    return select(select(select(x, high, x > high), low, x < low), x, float_unordered(x));
}

fn float_relu(x: f32) -> f32 {
    return select(select(x, 0.0, x < 0.0), x, float_unordered(x));
}

fn float_sigmoid(x: f32) -> f32 {
    let e = float_exp(-abs(x));
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
    return select(select(select(far, -far, x < 0.0), near, abs(x) < 1.0), x, float_unordered(x));
}

// x times the normal distribution's share below x. The share is 1/2 + x P(x^2) / Q(x^2) within 2e-7 up to 5.55 (least squares, weighted anew until the
// errors are even), and 0 or 1 beyond.
fn float_gelu(x: f32) -> f32 {
    let s = min(x * x, 30.8025);
    var p = ((2.261096e-8 * s + 6.2942277e-6) * s + 1.6668333e-4) * s + 4.663944e-3;
    p = (p * s + 3.3688165e-2) * s + 0.39894226;
    var q = ((1.1891499e-6 * s + 7.27294e-5) * s + 1.8726641e-3) * s + 2.8543234e-2;
    q = (q * s + 0.25111008) * s + 1.0;
    let share = select(select(0.5 + x * (p / q), 1.0, x > 5.55), 0.0, x < -5.55);
    return select(x * share, x, float_unordered(x));
}

// The form by tanh (Hendrycks and Gimpel, 2016).
fn float_gelu_tanh(x: f32) -> f32 {
    return 0.5 * x * (1.0 + float_tanh(0.79788456 * (x + 0.044715 * x * x * x)));
}

// The magnitude's bits; 0x7f800000 is infinity, more is NaN.
fn float_magnitude(x: f32) -> u32 {
    return bitcast<u32>(x) & 0x7fffffffu;
}

fn float_with_sign(magnitude: f32, sign: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(magnitude) & 0x7fffffffu) | (bitcast<u32>(sign) & 0x80000000u));
}

// Whether it is NaN. WGSL lets compilers assume that nothing is, and some of GPUs' do: they drop comparisons of a number with itself.


fn float_unordered(x: f32) -> bool {
    return float_magnitude(x) > 0x7f800000u;
}

// Comparisons, false with NaN: where compilers may assume that there is none, one is as good to them as the opposite of its opposite.


fn float_equal(x: f32, y: f32) -> u32 {
    return select(select(0u, 1u, x == y), 0u, float_unordered(x) || float_unordered(y));
}



fn float_less(x: f32, y: f32) -> u32 {
    return select(select(0u, 1u, x < y), 0u, float_unordered(x) || float_unordered(y));
}



fn float_less_equal(x: f32, y: f32) -> u32 {
    return select(select(0u, 1u, x <= y), 0u, float_unordered(x) || float_unordered(y));
}

fn float_is_nan(x: f32) -> u32 {
    return select(0u, 1u, float_magnitude(x) > 0x7f800000u);
}

fn float_is_infinite(x: f32) -> u32 {
    return select(0u, 1u, float_magnitude(x) == 0x7f800000u);
}

fn float_is_finite(x: f32) -> u32 {
    return select(0u, 1u, float_magnitude(x) < 0x7f800000u);
}

// x 2^n for n from -252 to 254, by two factors that are powers of two.
fn float_scaled(x: f32, n: i32) -> f32 {
    let half = n / 2;
    return x * bitcast<f32>(u32(half + 127) << 23u) * bitcast<f32>(u32(n - half + 127) << 23u);
}

fn float_sign(x: f32) -> f32 {
    return select(select(x, 1.0, x > 0.0), -1.0, x < 0.0);
}

// Two steps of Halley's method from a third of the exponent, on a number whose cube and its double are finite and normal.
fn float_cbrt(x: f32) -> f32 {
    let magnitude = abs(x);
    let small = magnitude < 1e-30;
    let scale = select(select(1.0, 0.001953125, magnitude > 1e30), 134217728.0, small);
    let a = magnitude * scale;
    var t = bitcast<f32>(bitcast<u32>(a) / 3u + 0x2a514067u);
    for (var i = 0; i < 2; i++) {
        let cube = t * t * t;
        t *= (cube + 2.0 * a) / (2.0 * cube + a);
    }
    let root = t * select(select(1.0, 8.0, magnitude > 1e30), 0.001953125, small);
    return select(x, float_with_sign(root, x), magnitude > 0.0 && float_magnitude(x) < 0x7f800000u);
}

// 2^x: whole numbers are exact.
fn float_exp2(x: f32) -> f32 {
    let v = clamp(x, -200.0, 200.0);
    let n = round(v);
    let scaled = float_scaled(accurate_exp((v - n) * 0.69314718), i32(n));
    return select(scaled, x, float_unordered(x));
}

// The exponent n and log((x / 2^n)), with x / 2^n in [1/sqrt 2, sqrt 2): powers of two have the logarithm 0.
fn float_log_parts(x: f32) -> vec2f {
    let tiny = x < 1.17549435e-38;
    let bits = bitcast<u32>(select(x, x * 16777216.0, tiny));
    let e = (bits - 0x3f3504f3u) & 0xff800000u;
    let n = f32(bitcast<i32>(e) >> 23u) - select(0.0, 24.0, tiny);
    return vec2f(n, accurate_log(bitcast<f32>(bits - e)));
}

// What a logarithm gives beyond the positive finite numbers.
fn float_log_edges(x: f32, logarithm: f32) -> f32 {
    let edge = select(select(x, -float_infinity(), x == 0.0), float_nan(), x < 0.0);
    return select(edge, logarithm, x > 0.0 && float_magnitude(x) < 0x7f800000u);
}

fn float_log2(x: f32) -> f32 {
    let parts = float_log_parts(x);
    return float_log_edges(x, parts.x + parts.y * 1.4426950);
}

// log10 2 in 12 bits, then the rest.
fn float_log10(x: f32) -> f32 {
    let parts = float_log_parts(x);
    return float_log_edges(x, parts.x * 0.301025390625 + (parts.x * 4.6050390e-6 + parts.y * 0.43429448));
}

// log(1 + x) near 0 as 2 atanh(x / (2 + x)), so that nothing cancels.
fn float_log1p(x: f32) -> f32 {
    let q = x / (2.0 + x);
    let s = q * q;
    var p = ((6.6666667e-2 * s + 7.6923077e-2) * s + 9.0909091e-2) * s + 0.11111111;
    p = ((p * s + 0.14285714) * s + 0.2) * s + 0.33333333;
    let near = 2.0 * q + 2.0 * q * s * p;
    return select(float_log(1.0 + x), select(near, x, x == 0.0), abs(x) < 0.5);
}

// e^x - 1, near 0 by the series.
fn float_expm1(x: f32) -> f32 {
    var p = ((2.7557319e-6 * x + 2.4801587e-5) * x + 1.9841270e-4) * x + 1.3888889e-3;
    p = ((p * x + 8.3333333e-3) * x + 4.1666667e-2) * x + 0.16666667;
    let near = x + x * x * (p * x + 0.5);
    return select(float_exp(x) - 1.0, select(near, x, x == 0.0), abs(x) < 0.5);
}

fn float_sinh(x: f32) -> f32 {
    let s = x * x;
    let near = x + x * s * (((2.7557319e-6 * s + 1.9841270e-4) * s + 8.3333333e-3) * s + 0.16666667);
    let a = abs(x);
    // e^(a/2) twice, since e^a overflows before the hyperbolic sine does.
    let root = float_exp(0.5 * a);
    let e = float_exp(a);
    let far = select(0.5 * (e - 1.0 / e), 0.5 * root * root, a > 80.0);
    return select(float_with_sign(far, x), near, a < 1.0);
}

fn float_cosh(x: f32) -> f32 {
    let a = abs(x);
    let root = float_exp(0.5 * a);
    let e = float_exp(a);
    return select(0.5 * (e + 1.0 / e), 0.5 * root * root, a > 80.0);
}



fn float_tan(x: f32) -> f32 {
    return select(float_sin(x) / float_cos(x), x, abs(x) < 1e-4);
}

fn float_atan(x: f32) -> f32 {
    return select(accurate_atan2(x, 1.0), x, abs(x) < 1e-4 || float_unordered(x));
}

fn float_asin(x: f32) -> f32 {
    let angle = accurate_atan2(x, sqrt(max((1.0 - x) * (1.0 + x), 0.0)));
    return select(select(angle, x, abs(x) < 1e-4), float_nan(), abs(x) > 1.0 || float_unordered(x));
}

fn float_acos(x: f32) -> f32 {
    let angle = accurate_atan2(sqrt(max((1.0 - x) * (1.0 + x), 0.0)), x);
    return select(angle, float_nan(), abs(x) > 1.0 || float_unordered(x));
}

fn float_atan2(y: f32, x: f32) -> f32 {
    // Infinities by the angles of the corners; otherwise the quotient of two of them would be NaN.
    let corner = vec2f(select(0.0, 1.0, float_is_infinite(y) != 0u), select(0.0, 1.0, float_is_infinite(x) != 0u));
    let far = corner.x + corner.y > 0.0;
    let point = select(vec2f(abs(y), abs(x)), corner, far);
    let angle = accurate_atan2(point.x, float_with_sign(point.y, x));
    // A negative zero on the right is on the right, on the left it is below the axis.
    let left = (bitcast<u32>(x) & 0x80000000u) != 0u;
    let whole = select(angle, select(0.0, 3.1415927, left), point.x == 0.0);
    return select(float_with_sign(whole, y), float_nan(), float_unordered(x) || float_unordered(y));
}

fn float_asinh(x: f32) -> f32 {
    let a = abs(x);
    let b = min(a, 1e4);
    let near = float_log1p(b + b * b / (1.0 + sqrt(b * b + 1.0)));
    return select(float_with_sign(select(near, float_log(a) + 0.69314718, a > 1e4), x), x, a < 1e-4 || float_unordered(x));
}

fn float_acosh(x: f32) -> f32 {
    let t = clamp(x, 1.0, 1e4) - 1.0;
    let near = float_log1p(t + sqrt(t * (t + 2.0)));
    let far = float_log(x) + 0.69314718;
    return select(select(near, far, x > 1e4), float_nan(), x < 1.0 || float_unordered(x));
}

fn float_atanh(x: f32) -> f32 {
    let a = min(abs(x), 0.99999994);
    let near = 0.5 * float_log1p(2.0 * a / (1.0 - a));
    let whole = select(near, float_infinity(), abs(x) == 1.0);
    return select(select(float_with_sign(whole, x), x, abs(x) < 1e-4), float_nan(), abs(x) > 1.0 || float_unordered(x));
}

// 1 - erf(x) without the cancellation: t R(t) e^(-x^2) above 1, with the square in two parts (coefficients found by Chebyshev interpolation
// of erfc(x) e^(x^2) / t up to 10.3, beyond which the result is no normal number).
fn float_erfc(x: f32) -> f32 {
    let a = clamp(abs(x), 1.0, 10.3);
    let t = 1.0 / (1.0 + 0.5 * a);
    var r = ((-4.24764e-2 * t + 0.23375532) * t - 0.42351595) * t + 0.23642416;
    r = ((r * t - 1.17918589e-2) * t + 0.20008546) * t + 0.24320126;
    r = (r * t + 0.2824057) * t + 0.28208339;
    let high = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let tail = r * t * accurate_exp(-high * high) * accurate_exp((high - a) * (high + a));
    let far = select(tail, 2.0 - tail, x < 0.0);
    return select(select(far, 1.0 - float_erf(x), abs(x) < 1.0), x, float_unordered(x));
}

// sin(pi x), exact where x is whole or half of a whole number.
fn float_sin_pi(x: f32) -> f32 {
    let n = round(x);
    let sine = accurate_sin((x - n) * 3.1415927);
    return select(sine, -sine, n - 2.0 * floor(0.5 * n) != 0.0);
}

// log |gamma(x)|: Stirling's series above 8, and below it after as many steps of gamma(x + 1) = x gamma(x) as lead there; below 1/2 by
// reflection.
fn float_lgamma(x: f32) -> f32 {
    let reflected = x < 0.5;
    var z = select(x, 1.0 - x, reflected);
    var product = 1.0;
    for (var i = 0; i < 8; i++) {
        if z < 8.0 {
            product *= z;
            z += 1.0;
        }
    }
    let w = 1.0 / z;
    let s = w * w;
    let series = w * (((-5.9523810e-4 * s + 7.9365079e-4) * s - 2.7777778e-3) * s + 8.3333333e-2);
    let value = (z - 0.5) * (accurate_log(z) - 1.0) + (0.41893853 + series) - accurate_log(product);
    let sine = abs(float_sin_pi(x));
    let other = 1.1447299 - accurate_log(sine) - value;
    let pole = reflected && (floor(x) == x);
    let huge = float_magnitude(x) >= 0x7f800000u;
    return select(select(select(value, other, reflected), float_infinity(), pole), select(abs(x), x, float_unordered(x)), huge);
}

// The derivative of log gamma(x): its asymptotic series above 8, steps of psi(x + 1) = psi(x) + 1 / x below, reflection below 1/2.
fn float_digamma(x: f32) -> f32 {
    let reflected = x < 0.5;
    var z = select(x, 1.0 - x, reflected);
    var sum = 0.0;
    for (var i = 0; i < 8; i++) {
        if z < 8.0 {
            sum += 1.0 / z;
            z += 1.0;
        }
    }
    let w = 1.0 / z;
    let s = w * w;
    let series = s * ((3.9682540e-3 * s - 8.3333333e-3) * s + 8.3333333e-2);
    let value = accurate_log(z) - 0.5 * w - series - sum;
    let near = x - round(x);
    let other = value - 3.1415927 * accurate_cos(3.1415927 * near) / accurate_sin(3.1415927 * near);
    let pole = reflected && floor(x) == x;
    let edge = select(select(x, float_nan(), x < 0.0), x, float_unordered(x));
    let finite = select(select(value, other, reflected), float_nan(), pole);
    return select(finite, edge, float_magnitude(x) >= 0x7f800000u);
}

// Subnormal numbers are computed 2^25 times as large: their quotient has too few digits.
fn float_hypot(x: f32, y: f32) -> f32 {
    let scale = select(1.0, 33554432.0, max(abs(x), abs(y)) < 1.17549435e-38);
    let larger = max(abs(x), abs(y)) * scale;
    let smaller = min(abs(x), abs(y)) * scale;
    let quotient = smaller / max(larger, 1.17549435e-38);
    let length = larger * sqrt(1.0 + quotient * quotient) / scale;
    let infinite = (float_is_infinite(x) | float_is_infinite(y)) != 0u;
    return select(select(length, float_nan(), float_unordered(x) || float_unordered(y)), float_infinity(), infinite);
}

fn float_next_after(x: f32, y: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let away = (y > x) == (x > 0.0);
    let next = bitcast<f32>(select(bits - 1u, bits + 1u, away));
    let first = bitcast<f32>((bitcast<u32>(y) & 0x80000000u) | 1u);
    let moved = select(next, first, float_magnitude(x) == 0u);
    return select(select(moved, y, x == y), float_nan(), (float_is_nan(x) | float_is_nan(y)) != 0u);
}

// The same in 16 bits, of which both arguments are numbers.
fn step_of_bits(bits: u32, x: f32, y: f32) -> u32 {
    let away = (y > x) == (x > 0.0);
    let first = ((bitcast<u32>(y) >> 16u) & 0x8000u) | 1u;
    return select(select(bits - 1u, bits + 1u, away), first, (bits & 0x7fffu) == 0u);
}

fn half_next_after(x: f32, y: f32) -> f32 {
    let moved = unpack2x16float(step_of_bits(pack2x16float(vec2f(x, 0.0)), x, y)).x;
    return select(select(moved, y, x == y), float_nan(), (float_is_nan(x) | float_is_nan(y)) != 0u);
}

fn bfloat_next_after(x: f32, y: f32) -> f32 {
    let moved = bitcast<f32>(step_of_bits(bitcast<u32>(x) >> 16u, x, y) << 16u);
    return select(select(moved, y, x == y), float_nan(), (float_is_nan(x) | float_is_nan(y)) != 0u);
}

// The exact rest of a division that rounds towards zero, by whole numbers: the mantissa of x, 8 bits further in each step, modulo that of y.
fn float_rest(x: f32, y: f32) -> f32 {
    let a = float_magnitude(x);
    let b = float_magnitude(y);
    if a > 0x7f800000u || b > 0x7f800000u || a == 0x7f800000u || b == 0u { return float_nan(); }
    if a < b { return x; }
    let divisor = select((b & 0x7fffffu) | 0x800000u, b, b < 0x800000u);
    let start = max(a >> 23u, 1u);
    let end = max(b >> 23u, 1u);
    var rest = select((a & 0x7fffffu) | 0x800000u, a, a < 0x800000u) % divisor;
    var steps = start - end;
    for (var i = 0; i < 32; i++) {
        if steps == 0u { break; }
        let by = min(steps, 8u);
        rest = (rest << by) % divisor;
        steps -= by;
    }
    return float_with_sign(float_scaled(f32(rest), i32(end) - 150), x);
}

fn float_remainder(x: f32, y: f32) -> f32 {
    let rest = float_rest(x, y);
    let turned = rest != 0.0 && (rest < 0.0) != (y < 0.0);
    return select(select(rest, float_with_sign(rest, y), rest == 0.0), rest + y, turned);
}

fn float_floor_divide(x: f32, y: f32) -> f32 {
    let rest = float_rest(x, y);
    let turned = rest != 0.0 && (rest < 0.0) != (y < 0.0);
    let quotient = round((x - rest) / y) - select(0.0, 1.0, turned);
    return select(select(quotient, float_with_sign(quotient, x / y), quotient == 0.0), x / y, y == 0.0);
}

// By the quotient: some drivers' own rest of negative numbers has the other sign.
fn int_rest(x: i32, y: i32) -> i32 {
    let divisor = select(y, 1, y == 0);
    return x - x / divisor * divisor;
}

fn int_remainder(x: i32, y: i32) -> i32 {
    let rest = int_rest(x, y);
    return rest + select(0, y, rest != 0 && (rest < 0) != (y < 0));
}

fn int_floor_divide(x: i32, y: i32) -> i32 {
    let rest = int_rest(x, y);
    return x / select(y, 1, y == 0) - select(0, 1, rest != 0 && (rest < 0) != (y < 0));
}

fn int_shift_left(x: i32, y: i32) -> i32 {
    return select(x << (u32(y) & 31u), 0, u32(y) > 31u);
}

fn int_shift_right(x: i32, y: i32) -> i32 {
    return x >> min(u32(y), 31u);
}

fn uint_shift_left(x: u32, y: u32) -> u32 {
    return select(x << (y & 31u), 0u, y > 31u);
}

fn uint_shift_right(x: u32, y: u32) -> u32 {
    return select(x >> (y & 31u), 0u, y > 31u);
}

// log(e^x + e^y); equal infinities have no difference.
fn float_log_add_exp(x: f32, y: f32) -> f32 {
    let larger = float_max(x, y);
    let distance = select(abs(x - y), 0.0, x == y);
    let sum = larger + float_log1p(accurate_exp(-distance));
    return select(larger, sum, float_magnitude(larger) < 0x7f800000u);
}

// log(1 + e^x)
fn float_softplus(x: f32) -> f32 {
    return float_log_add_exp(x, 0.0);
}

fn float_mish(x: f32) -> f32 {
    return x * float_tanh(float_softplus(x));
}

fn float_hard_sigmoid(x: f32) -> f32 {
    return float_clamp(x / 6.0 + 0.5, 0.0, 1.0);
}

// a (e^x - 1) below 0, x above.
fn float_elu(x: f32, a: f32) -> f32 {
    return select(x, a * float_expm1(x), x < 0.0);
}

fn float_leaky_relu(x: f32, slope: f32) -> f32 {
    return select(x, x * slope, x < 0.0);
}

// With the constants of Klambauer et al., 2017, for which mean 0 and variance 1 are kept.
fn float_selu(x: f32) -> f32 {
    return 1.0507010 * float_elu(x, 1.6732632);
}

// Ten rounds of Philox 4x32 (Salmon et al., 2011): 128 bits from a counter and a key.
fn random_block(counter: u32, key: vec2u) -> vec4u {
    var state = vec4u(counter, 0u, 0u, 0u);
    var round_key = key;
    for (var i = 0u; i < 10u; i++) {
        let a = wide_product(0xD2511F53u, state.x);
        let b = wide_product(0xCD9E8D57u, state.z);
        state = vec4u(b.y ^ state.y ^ round_key.x, b.x, a.y ^ state.w ^ round_key.y, a.x);
        round_key += vec2u(0x9E3779B9u, 0xBB67AE85u);
    }
    return state;
}

// Low and high word of a product, by parts of 16 bits.
fn wide_product(a: u32, b: u32) -> vec2u {
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
    let radius = sqrt(-2.0 * accurate_log((f32(block.x >> 8u) + 0.5) * 5.9604645e-8));
    let angle = 6.2831853 * (f32(block.y >> 8u) * 5.9604645e-8);
    return radius * select(accurate_cos(angle), accurate_sin(angle), (i & 1u) != 0u);
}

// A number in whose order floats are sorted: -0 as 0, NaN after all others.
fn float_order(x: f32) -> u32 {
    let magnitude = float_magnitude(x);
    let below = bitcast<u32>(x) != magnitude && magnitude != 0u;
    return select(select(magnitude | 0x80000000u, 0x7fffffffu - magnitude, below), 0xffffffffu, magnitude > 0x7f800000u);
}

fn int_order(x: i32) -> u32 {
    return bitcast<u32>(x) ^ 0x80000000u;
}

fn uint_order(x: u32) -> u32 {
    return x;
}

// lib/math.wgsl
const PI: f32 = 3.141592653589793;
const HALF_PI: f32 = 1.5707963267948966;
const PER_PI: f32 = 0.3183098861837907;
const PI_1: f32 = 3.140625;
const PI_2: f32 = 9.67502593994140625e-4;
const PI_3: f32 = 1.5099580252808664e-7;
fn sin_half_turns(t: f32, n: f32, odd: bool) -> f32 {
    let r = (t - n * PI_2) - n * PI_3;
    let s = r * r;
    let p = ((2.60606748e-6 * s - 1.9809806e-4) * s + 8.33306275e-3) * s - 0.166666582;
    let sine = s * r * p + r;
    return select(sine, -sine, odd);
}
fn accurate_sin(x: f32) -> f32 {
    let n = round(x * PER_PI);
    let t = clamp(x - n * PI_1, -8.0, 8.0);
    return sin_half_turns(t, n, (i32(n) & 1) != 0);
}
fn accurate_cos(x: f32) -> f32 {
    // cos x = sin(x + pi/2), reduced by odd multiples of pi/2.
    let m = round(x * PER_PI + 0.5);
    let n = m - 0.5;
    let t = clamp(x - n * PI_1, -8.0, 8.0);
    return sin_half_turns(t, n, (i32(m) & 1) != 0);
}
fn accurate_exp(x: f32) -> f32 {
    let v = clamp(x, -87.33, 88.72283);
    let n = round(v * 1.442695);
    // log 2 in 16 bits, then the rest.
    let t = clamp(v - n * 0.693145751953125, -0.5, 0.5);
    let r = t - n * 1.42860677e-6;
    var p = (8.28980375e-3 * r + 4.18986715e-2) * r + 0.166676491;
    p = (p * r + 0.499991447) * r + 0.999999702;
    p = p * r + 1.0;
    let scaled = bitcast<f32>(bitcast<i32>(p) + (i32(n) << 23u));
    return select(scaled, 0.0, x < -87.33);
}
fn accurate_log(x: f32) -> f32 {
    // x = (1 + f) 2^n with 1 + f in [2/3, 4/3): 0x3f2aaaab is 2/3.
    let bits = bitcast<u32>(max(x, 1.17549435e-38));
    let e = (bits - 0x3f2aaaabu) & 0xff800000u;
    let f = bitcast<f32>(bits - e) - 1.0;
    let n = f32(bitcast<i32>(e) >> 23u);
    var p = (-0.128802091 * f + 0.139845937) * f - 0.121874474;
    p = ((p * f + 0.14005734) * f - 0.166801974) * f + 0.200104266;
    p = ((p * f - 0.249998063) * f + 0.333332151) * f - 0.5;
    return n * 0.693145751953125 + (n * 1.42860677e-6 + (f * f * p + f));
}
fn accurate_atan2(y: f32, x: f32) -> f32 {
    let ax = abs(x);
    let ay = abs(y);
    let a = min(ax, ay) / max(max(ax, ay), 1.17549435e-38);
    let s = a * a;
    var p = (2.91944528e-3 * s - 1.63632408e-2) * s + 4.32047658e-2;
    p = ((p * s - 7.55166113e-2) * s + 0.106657691) * s - 0.14211002;
    p = (p * s + 0.199937671) * s - 0.333331525;
    let octant = s * a * p + a;
    let quadrant = select(octant, HALF_PI - octant, ay > ax);
    let half_plane = select(quadrant, PI - quadrant, x < 0.0);
    return select(half_plane, -half_plane, y < 0.0);
}
