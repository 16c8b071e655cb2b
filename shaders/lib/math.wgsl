// Elementary functions whose error does not depend on the driver, and the constants of the field family.
//
// WGSL promises 2^-11 for sin, and only between -pi and pi; exp and log lose digits with the argument. Where the
// device's own functions are known to be good, the feature `native_math` links to them instead.
//
// Method: Cody & Waite's reduction, then a minimax polynomial (coefficients found for the least relative error, and
// rounded to f32 one after another). A compiler may fuse a * b + c and may reorder sums. Hence the first word of each
// reduction constant is so short that its product with n is exact, fused or not; and a clamp that never bites stands
// after the first difference, because it cannot be reordered across.
//
// Arguments are finite: no function here makes or understands NaN or an infinity.

const PHI: f32 = 1.618033988749895;
const LAMBDA: f32 = 0.618033988749895;
// PHI^PHI
const PHI_PHI: f32 = 2.1784575679375995;

const PI: f32 = 3.141592653589793;
const HALF_PI: f32 = 1.5707963267948966;
const PER_PI: f32 = 0.3183098861837907;

// pi = PI_1 + PI_2 + PI_3, of 8, 11 and 24 bits.
const PI_1: f32 = 3.140625;
const PI_2: f32 = 9.67502593994140625e-4;
const PI_3: f32 = 1.5099580252808664e-7;

// (-1)^n sin(t - n (pi - PI_1)), given t = x - n PI_1; the difference lies in [-pi/2, pi/2].
fn sin_half_turns(t: f32, n: f32, odd: bool) -> f32 {
    let r = (t - n * PI_2) - n * PI_3;
    let s = r * r;
    let p = ((2.60606748e-6 * s - 1.9809806e-4) * s + 8.33306275e-3) * s - 0.166666582;
    let sine = s * r * p + r;
    return select(sine, -sine, odd);
}

// Sine for |x| up to 10,000; absolute error below 2e-7.
@if(native_math)
fn accurate_sin(x: f32) -> f32 {
    return sin(x);
}
@else
fn accurate_sin(x: f32) -> f32 {
    let n = round(x * PER_PI);
    let t = clamp(x - n * PI_1, -8.0, 8.0);
    return sin_half_turns(t, n, (i32(n) & 1) != 0);
}

// Cosine for |x| up to 10,000; absolute error below 2e-7.
@if(native_math)
fn accurate_cos(x: f32) -> f32 {
    return cos(x);
}
@else
fn accurate_cos(x: f32) -> f32 {
    // cos x = sin(x + pi/2), reduced by odd multiples of pi/2.
    let m = round(x * PER_PI + 0.5);
    let n = m - 0.5;
    let t = clamp(x - n * PI_1, -8.0, 8.0);
    return sin_half_turns(t, n, (i32(m) & 1) != 0);
}

// sin((k.x + k.y) r + phase), without the rounding of the product, which costs 4e-6 near 64.
// k.x has 12 significant bits and k.y is the rest; |phase| is at most 50, the whole argument at most 10,000.
@if(native_math)
fn accurate_sin_product(k: vec2f, r: f32, phase: f32) -> f32 {
    return sin((k.x + k.y) * r + phase);
}
@else
fn accurate_sin_product(k: vec2f, r: f32, phase: f32) -> f32 {
    let r_high = bitcast<f32>(bitcast<u32>(r) & 0xfffff000u);
    let product = k.x * r_high;
    let rest = k.x * (r - r_high) + k.y * r + phase;
    let n = round((product + rest) * PER_PI);
    let t = clamp(product - n * PI_1, -64.0, 64.0);
    return sin_half_turns(t + rest, n, (i32(n) & 1) != 0);
}

// e^x within 3 ULP; 0 where the result would be below the smallest normal number, and at most e^88.72283.
@if(native_math)
fn accurate_exp(x: f32) -> f32 {
    return exp(x);
}
@else
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

// log x within 3 ULP for positive normal numbers; a smaller x counts as the smallest of them.
@if(native_math)
fn accurate_log(x: f32) -> f32 {
    return log(x);
}
@else
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

// The angle of the point (x, y) in [-pi, pi], within 4 ULP plus the division's error; 0 at the origin, pi at y = 0 and
// x < 0 (a negative zero counts as zero).
@if(native_math)
fn accurate_atan2(y: f32, x: f32) -> f32 {
    return atan2(y, x);
}
@else
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
