// The functions of elementwise operations, one float32 to one. What an operation promises of NaN, infinity and -0 holds where the device
// keeps them; WGSL lets it assume that there are none.

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

fn float_tanh(x: f32) -> f32 {
    let s = x * x;
    let series = x + x * s * ((((s * 0.021869488 - 0.053968254) * s + 0.13333333) * s) - 0.33333333);
    let e = accurate_exp(-2.0 * abs(x));
    let quotient = (1.0 - e) / (1.0 + e);
    return select(select(quotient, -quotient, x < 0.0), series, abs(x) < 0.25);
}

fn float_power(a: f32, b: f32) -> f32 {
    let zero = select(0.0, float_infinity(), b < 0.0);
    let magnitude = select(accurate_exp(b * accurate_log(abs(a))), zero, a == 0.0);
    return power_sign(a, b, magnitude);
}

fn power_sign(a: f32, b: f32, magnitude: f32) -> f32 {
    if b == 0.0 {
        return 1.0;
    }
    if a >= 0.0 {
        return magnitude;
    }
    if floor(b) != b {
        return float_nan();
    }
    let odd = (abs(b) < 16777216.0) && (i32(b) & 1) != 0;
    return select(magnitude, -magnitude, odd);
}

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

fn float_erf(x: f32) -> f32 {
    let s = x * x;
    var p = (7.88249745e-5 * s - 0.0008018855) * s + 0.0051893121;
    p = ((p * s - 0.026854329) * s + 0.112835974) * s - 0.37612626;
    let near = x * (p * s + 1.1283791);
    let a = min(abs(x), 4.2);
    let t = 1.0 / (1.0 + 0.5 * a);
    var q = (0.056283649 * t - 0.102870852) * t - 0.090677008;
    q = ((q * t + 0.194218338) * t + 0.118083134) * t + 0.263343036;
    q = (q * t + 0.279614955) * t + 0.282250375;
    let far = 1.0 - q * t * accurate_exp(-a * a);
    return select(select(far, -far, x < 0.0), near, abs(x) < 1.0);
}

fn float_gelu(x: f32) -> f32 {
    return 0.5 * x * (1.0 + float_erf(x * 0.70710678));
}

fn float_gelu_tanh(x: f32) -> f32 {
    return 0.5 * x * (1.0 + float_tanh(0.79788456 * (x + 0.044715 * x * x * x)));
}

fn random_block(counter: u32, key: vec2u) -> vec4u {
    var state = vec4u(counter, 0u, 0u, 0u);
    var round_key = key;
    for (var i = 0u; i < 10u; i++) {
        let a = random_product(3528531795u, state.x);
        let b = random_product(3449720151u, state.z);
        state = vec4u(b.y ^ state.y ^ round_key.x, b.x, a.y ^ state.w ^ round_key.y, a.x);
        round_key += vec2u(2654435769u, 3144134277u);
    }
    return state;
}

fn random_product(a: u32, b: u32) -> vec2u {
    let low = (a & 65535u) * (b & 65535u);
    let cross = (a >> 16u) * (b & 65535u) + (low >> 16u);
    let middle = (a & 65535u) * (b >> 16u) + (cross & 65535u);
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

fn float_random_normal(i: u32, key: vec2u) -> f32 {
    let block = random_block(i / 2u, key);
    let radius = sqrt(-2.0 * float_log((f32(block.x >> 8u) + 0.5) * 5.9604645e-8));
    let angle = 6.2831853 * (f32(block.y >> 8u) * 5.9604645e-8);
    return radius * select(float_cos(angle), float_sin(angle), (i & 1u) != 0u);
}

const PER_PI: f32 = 0.3183098861837907;

const PI_1: f32 = 3.140625;

const PI_2: f32 = 0.0009675025939941406;

const PI_3: f32 = 1.5099580252808664e-7;

fn sin_half_turns(t: f32, n: f32, odd: bool) -> f32 {
    let r = (t - n * PI_2) - n * PI_3;
    let s = r * r;
    let p = ((2.60606748e-6 * s - 0.00019809806) * s + 0.00833306275) * s - 0.166666582;
    let sine = s * r * p + r;
    return select(sine, -sine, odd);
}

fn accurate_sin(x: f32) -> f32 {
    let n = round(x * PER_PI);
    let t = clamp(x - n * PI_1, -8.0, 8.0);
    return sin_half_turns(t, n, (i32(n) & 1) != 0);
}

fn accurate_cos(x: f32) -> f32 {
    let m = round(x * PER_PI + 0.5);
    let n = m - 0.5;
    let t = clamp(x - n * PI_1, -8.0, 8.0);
    return sin_half_turns(t, n, (i32(m) & 1) != 0);
}

fn accurate_exp(x: f32) -> f32 {
    let v = clamp(x, -87.33, 88.72283);
    let n = round(v * 1.442695);
    let t = clamp(v - n * 0.693145751953125, -0.5, 0.5);
    let r = t - n * 1.42860677e-6;
    var p = (0.00828980375 * r + 0.0418986715) * r + 0.166676491;
    p = (p * r + 0.499991447) * r + 0.999999702;
    p = p * r + 1.0;
    let scaled = bitcast<f32>(bitcast<i32>(p) + (i32(n) << 23u));
    return select(scaled, 0.0, x < -87.33);
}

fn accurate_log(x: f32) -> f32 {
    let bits = bitcast<u32>(max(x, 1.17549435e-38));
    let e = (bits - 1059760811u) & 4286578688u;
    let f = bitcast<f32>(bits - e) - 1.0;
    let n = f32(bitcast<i32>(e) >> 23u);
    var p = (-0.128802091 * f + 0.139845937) * f - 0.121874474;
    p = ((p * f + 0.14005734) * f - 0.166801974) * f + 0.200104266;
    p = ((p * f - 0.249998063) * f + 0.333332151) * f - 0.5;
    return n * 0.693145751953125 + (n * 1.42860677e-6 + (f * f * p + f));
}
