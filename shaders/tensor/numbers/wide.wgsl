// Functions of f64, i64 and u64, for devices that have them.

fn double_bits(x: f64) -> u64 {
    return bitcast<u64>(x) & 0x7ffffffffffffffflu;
}

fn double_with_sign(magnitude: f64, sign: f64) -> f64 {
    return bitcast<f64>(double_bits(magnitude) | (bitcast<u64>(sign) & 0x8000000000000000lu));
}

fn double_is_nan(x: f64) -> u32 {
    return select(0u, 1u, double_bits(x) > 0x7ff0000000000000lu);
}

fn double_unordered(x: f64) -> bool {
    return double_bits(x) > 0x7ff0000000000000lu;
}

fn double_is_infinite(x: f64) -> u32 {
    return select(0u, 1u, double_bits(x) == 0x7ff0000000000000lu);
}

fn double_is_finite(x: f64) -> u32 {
    return select(0u, 1u, double_bits(x) < 0x7ff0000000000000lu);
}

fn double_infinity() -> f64 {
    return f64(float_infinity());
}

fn double_nan() -> f64 {
    return f64(float_nan());
}

fn double_sign(x: f64) -> f64 {
    return select(select(x, 1.0lf, x > 0.0lf), -1.0lf, x < 0.0lf);
}

fn double_relu(x: f64) -> f64 {
    return select(x, 0.0lf, x < 0.0lf);
}

fn double_leaky_relu(x: f64, slope: f64) -> f64 {
    return select(x, x * slope, x < 0.0lf);
}

fn double_clamp(x: f64, low: f64, high: f64) -> f64 {
    return select(select(x, high, x > high), low, x < low);
}

// NaN if either is, as NumPy has it.
fn double_min(a: f64, b: f64) -> f64 {
    return select(select(min(a, b), b, double_unordered(b)), a, double_unordered(a));
}

fn double_max(a: f64, b: f64) -> f64 {
    return select(select(max(a, b), b, double_unordered(b)), a, double_unordered(a));
}

// Subnormal numbers are computed 2^54 times as large: their quotient has too few digits.
fn double_hypot(x: f64, y: f64) -> f64 {
    let least = bitcast<f64>(0x0010000000000000lu);
    let subnormal = max(abs(x), abs(y)) < least;
    let scale = bitcast<f64>(select(0x3ff0000000000000lu, 0x4350000000000000lu, subnormal));
    let larger = max(abs(x), abs(y)) * scale;
    let smaller = min(abs(x), abs(y)) * scale;
    let quotient = smaller / max(larger, least);
    let length = larger * sqrt(1.0lf + quotient * quotient) / scale;
    let infinite = (double_is_infinite(x) | double_is_infinite(y)) != 0u;
    return select(select(length, double_nan(), double_unordered(x) || double_unordered(y)), double_infinity(), infinite);
}

// 2^n for n of normal numbers.
fn double_power_of_two(n: i32) -> f64 {
    return bitcast<f64>(u64(u32(n + 1023)) << 52u);
}

// x 2^n for n from -2098 to 2046, by three factors that are powers of two.
fn double_scaled(x: f64, n: i32) -> f64 {
    let third = n / 3;
    return x * double_power_of_two(third) * double_power_of_two(third) * double_power_of_two(n - 2 * third);
}

// The exact rest of a division that rounds towards zero, as of float32: 11 bits further in each step.
fn double_rest(x: f64, y: f64) -> f64 {
    let a = double_bits(x);
    let b = double_bits(y);
    let infinity = 0x7ff0000000000000lu;
    if a >= infinity || b > infinity || b == 0lu { return double_nan(); }
    if a < b { return x; }
    let hidden_bit = 0x0010000000000000lu;
    let fraction = 0x000ffffffffffffflu;
    let divisor = select((b & fraction) | hidden_bit, b, b < hidden_bit);
    let start = max(u32(a >> 52u), 1u);
    let end = max(u32(b >> 52u), 1u);
    var rest = select((a & fraction) | hidden_bit, a, a < hidden_bit) % divisor;
    var steps = start - end;
    for (var i = 0; i < 188; i++) {
        if steps == 0u { break; }
        let by = min(steps, 11u);
        rest = (rest << by) % divisor;
        steps -= by;
    }
    return double_with_sign(double_scaled(f64(rest), i32(end) - 1075), x);
}

fn double_remainder(x: f64, y: f64) -> f64 {
    let rest = double_rest(x, y);
    let turned = rest != 0.0lf && (rest < 0.0lf) != (y < 0.0lf);
    return select(select(rest, double_with_sign(rest, y), rest == 0.0lf), rest + y, turned);
}

fn double_floor_divide(x: f64, y: f64) -> f64 {
    let rest = double_rest(x, y);
    let turned = rest != 0.0lf && (rest < 0.0lf) != (y < 0.0lf);
    let quotient = round((x - rest) / y) - select(0.0lf, 1.0lf, turned);
    return select(select(quotient, double_with_sign(quotient, x / y), quotient == 0.0lf), x / y, y == 0.0lf);
}

fn long_rest(x: i64, y: i64) -> i64 {
    let divisor = select(y, 1li, y == 0li);
    return x - x / divisor * divisor;
}

fn long_remainder(x: i64, y: i64) -> i64 {
    let rest = long_rest(x, y);
    return rest + select(0li, y, rest != 0li && (rest < 0li) != (y < 0li));
}

fn long_floor_divide(x: i64, y: i64) -> i64 {
    let rest = long_rest(x, y);
    return x / select(y, 1li, y == 0li) - select(0li, 1li, rest != 0li && (rest < 0li) != (y < 0li));
}

fn long_shift_left(x: i64, y: i64) -> i64 {
    return select(x << (u32(y) & 63u), 0li, u64(y) > 63lu);
}

fn long_shift_right(x: i64, y: i64) -> i64 {
    return x >> u32(min(u64(y), 63lu));
}

fn ulong_shift_left(x: u64, y: u64) -> u64 {
    return select(x << (u32(y) & 63u), 0lu, y > 63lu);
}

fn ulong_shift_right(x: u64, y: u64) -> u64 {
    return select(x >> (u32(y) & 63u), 0lu, y > 63lu);
}

fn ulong_count_ones(x: u64) -> u64 {
    return u64(countOneBits(u32(x & 0xfffffffflu)) + countOneBits(u32(x >> 32u)));
}

fn long_count_ones(x: i64) -> i64 {
    return i64(ulong_count_ones(u64(x)));
}
