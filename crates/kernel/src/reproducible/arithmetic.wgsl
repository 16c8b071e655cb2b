// What the reproducible form of a kernel calls in place of operators and builtins whose rounding WGSL leaves to the device. These functions are
// rewritten like the kernel's own; those that begin with `raw_` stay as they are. Numbers are zero or normal here, and zero has no sign.

// The quotient of two whole numbers, in [1, 2), in units of 2^-24: off by at most 7, whatever the device makes of it.
fn raw_quotient(x: u32, y: u32) -> u32 {
    return u32(f32(x) / f32(y) * 16777216.0);
}

// The square root of a whole number below 2^26, in units of 2^-12: off by at most 11.
fn raw_root(x: u32) -> u32 {
    return u32(sqrt(f32(x)) * 4096.0);
}

fn quiet_nan() -> f32 {
    return bitcast<f32>(hidden(0x7fc00000u));
}

fn mantissa(magnitude: u32) -> u32 {
    return (magnitude & 0x7fffffu) | 0x800000u;
}

// The number with an exponent (biased) and 25 bits of a quotient or root: to nearest, ties to even. `exact`: nothing is left behind the bits.
fn rounded(exponent: i32, bits: u32, exact: bool) -> u32 {
    let kept = bits >> 1u;
    let up = (bits & 1u) & select(1u, kept, exact);
    let number = (u32(exponent) << 23u) + (kept - 0x800000u) + up;
    return select(select(number, 0x7f800000u, exponent > 254), 0u, exponent < 1);
}

// By whole numbers: the device's own quotient is an estimate, and the rest says by how much it is off.
fn divide(x: f32, y: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let b = bitcast<u32>(y) & 0x7fffffffu;
    let sign = (bitcast<u32>(x) ^ bitcast<u32>(y)) & 0x80000000u;
    let q = mantissa(b);
    let less = select(0u, 1u, mantissa(a) < q);
    let p = mantissa(a) << less;
    let low = raw_quotient(p, q) - 8u;
    let rest = (p << 24u) - low * q;
    let more = rest / q;
    let exponent = i32(a >> 23u) - i32(b >> 23u) - i32(less) + 127;
    let bits = rounded(exponent, low + more, rest == more * q);
    let finite = select(select(bits, 0u, a == 0u || b == 0x7f800000u), 0x7f800000u, a == 0x7f800000u || b == 0u);
    let undefined = a > 0x7f800000u || b > 0x7f800000u || (a == b && (a == 0u || a == 0x7f800000u));
    return bitcast<f32>(select(finite | sign, 0x7fc00000u, undefined));
}

// By whole numbers, as the quotient.
fn square_root(x: f32) -> f32 {
    let a = bitcast<u32>(x);
    let odd = 1u - ((a >> 23u) & 1u);
    let p = mantissa(a) << odd;
    let low = raw_root(p << 1u) - 12u;
    let rest = (p << 25u) - low * low;
    let guess = rest / (low << 1u);
    // The square of the guess was left out, which makes it one too many at most.
    let left = i32(rest - guess * (2u * low + guess));
    let bits = low + guess - select(0u, 1u, left < 0);
    // An odd number of 25 bits is no exact root: its square has an odd bit where the argument has none.
    let exponent = ((i32(a >> 23u) - 127 - i32(odd)) >> 1u) + 127;
    let root = rounded(exponent, bits, false);
    let number = select(select(root, a, a >= 0x7f800000u), 0u, a << 1u == 0u);
    return bitcast<f32>(select(number, 0x7fc00000u, a > 0x80000000u));
}

fn inverse_square_root(x: f32) -> f32 {
    return 1.0 / square_root(x);
}

// The whole number towards zero, and the nearest float that i32 holds where it does not fit; NaN gives 0.
fn to_i32(x: f32) -> i32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let negative = x < 0.0;
    let whole = i32(whole_part(a));
    let large = select(2147483520, -2147483648, negative);
    let number = select(select(whole, -whole, negative), large, a >= 0x4f000000u);
    return select(number, 0, a > 0x7f800000u);
}

fn to_u32(x: f32) -> u32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let number = select(whole_part(a), 4294967040u, a >= 0x4f800000u);
    return select(number, 0u, x < 0.0 || a > 0x7f800000u);
}

// Of a magnitude below 2^32.
fn whole_part(a: u32) -> u32 {
    let exponent = a >> 23u;
    let left = mantissa(a) << ((exponent - 150u) & 31u);
    let right = mantissa(a) >> ((150u - exponent) & 31u);
    return select(select(right, left, exponent > 150u), 0u, exponent < 127u);
}

// float32 to the bits of a half: to nearest, ties to even; denormal halves are kept.
fn half_bits(x: f32) -> u32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let sign = (bitcast<u32>(x) >> 16u) & 0x8000u;
    let excess = a - 0x38000000u;
    let normal = (excess + 0xfffu + ((excess >> 13u) & 1u)) >> 13u;
    let shift = min(126u - min(a >> 23u, 113u), 25u);
    let kept = mantissa(a) >> shift;
    let rest = mantissa(a) & ((1u << shift) - 1u);
    let halfway = 1u << (shift - 1u);
    let small = kept + select(0u, 1u, rest > halfway || (rest == halfway && (kept & 1u) != 0u));
    let number = select(select(small, normal, a >= 0x38800000u), 0x7c00u, a >= 0x477ff000u);
    return sign | select(number, 0x7e00u, a > 0x7f800000u);
}

fn from_half(word: u32) -> f32 {
    let exponent = (word >> 10u) & 31u;
    let digits = word & 0x3ffu;
    let small = bitcast<u32>(f32(digits) * 5.9604644775390625e-8);
    let normal = ((exponent + 112u) << 23u) | (digits << 13u);
    let special = select(0x7f800000u, 0x7fc00000u, digits != 0u);
    let number = select(select(normal, small, exponent == 0u), special, exponent == 31u);
    return bitcast<f32>(number | ((word & 0x8000u) << 16u));
}

fn quantize(x: f32) -> f32 {
    return from_half(half_bits(x));
}

fn snorm8(x: f32) -> u32 {
    return u32(i32(floor(0.5 + 127.0 * clamp(x, -1.0, 1.0)))) & 0xffu;
}

fn unorm8(x: f32) -> u32 {
    return u32(floor(0.5 + 255.0 * clamp(x, 0.0, 1.0)));
}

fn snorm16(x: f32) -> u32 {
    return u32(i32(floor(0.5 + 32767.0 * clamp(x, -1.0, 1.0)))) & 0xffffu;
}

fn unorm16(x: f32) -> u32 {
    return u32(floor(0.5 + 65535.0 * clamp(x, 0.0, 1.0)));
}

fn from_snorm8(word: u32) -> f32 {
    return max(f32(bitcast<i32>(word << 24u) >> 24u) / 127.0, -1.0);
}

fn from_unorm8(word: u32) -> f32 {
    return f32(word & 0xffu) / 255.0;
}

fn from_snorm16(word: u32) -> f32 {
    return max(f32(bitcast<i32>(word << 16u) >> 16u) / 32767.0, -1.0);
}

fn from_unorm16(word: u32) -> f32 {
    return f32(word & 0xffffu) / 65535.0;
}

fn fraction(x: f32) -> f32 {
    return x - floor(x);
}

fn modf_fraction(x: f32) -> f32 {
    return x - trunc(x);
}

fn modf_whole(x: f32) -> f32 {
    return trunc(x);
}

fn frexp_fraction(x: f32) -> f32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    let number = bitcast<f32>((bitcast<u32>(x) & 0x807fffffu) | 0x3f000000u);
    return select(number, x, a == 0u || a >= 0x7f800000u);
}

fn frexp_exponent(x: f32) -> i32 {
    let a = bitcast<u32>(x) & 0x7fffffffu;
    return select(i32(a >> 23u) - 126, 0, a == 0u || a >= 0x7f800000u);
}

fn scale(x: f32, n: i32) -> f32 {
    return float_scaled(x, clamp(n, -252, 254));
}

fn to_degrees(x: f32) -> f32 {
    return x * 57.29577951308232;
}

fn to_radians(x: f32) -> f32 {
    return x * 0.017453292519943295;
}

fn fused(x: f32, y: f32, z: f32) -> f32 {
    return x * y + z;
}

fn blend(x: f32, y: f32, share: f32) -> f32 {
    return x * (1.0 - share) + y * share;
}

fn edge_step(edge: f32, x: f32) -> f32 {
    return select(0.0, 1.0, edge <= x);
}

fn smooth_edge(low: f32, high: f32, x: f32) -> f32 {
    let t = clamp((x - low) / (high - low), 0.0, 1.0);
    return t * t * (3.0 - 2.0 * t);
}
