// Functions of complex numbers, the real part first. The library reads this text once more for parts of f64.

fn complex_abs(z: vec2f) -> f32 {
    return float_hypot(z.x, z.y);
}

fn complex_angle(z: vec2f) -> f32 {
    return float_atan2(z.y, z.x);
}

fn complex_mul(a: vec2f, b: vec2f) -> vec2f {
    return vec2f(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// By the larger part of the divisor, so that no square leaves the range (Smith, 1962).
fn complex_div(a: vec2f, b: vec2f) -> vec2f {
    let turned = abs(b.x) < abs(b.y);
    let larger = select(b.x, b.y, turned);
    let smaller = select(b.y, b.x, turned);
    let ratio = smaller / larger;
    let scale = larger + smaller * ratio;
    let parts = select(vec2f(a.x + a.y * ratio, a.y - a.x * ratio), vec2f(a.x * ratio + a.y, a.y * ratio - a.x), turned);
    return vec2f(parts.x / scale, parts.y / scale);
}

// A real number stays real.
fn complex_exp(z: vec2f) -> vec2f {
    let length = float_exp(z.x);
    return vec2f(length * float_cos(z.y), select(length * float_sin(z.y), z.y, z.y == f32(0)));
}

fn complex_log(z: vec2f) -> vec2f {
    return vec2f(float_log(complex_abs(z)), complex_angle(z));
}

// The root to the right of the imaginary axis: of the part that does not cancel.
fn complex_sqrt(z: vec2f) -> vec2f {
    if z.x == f32(0) && z.y == f32(0) { return vec2f(f32(0), z.y); }
    // Half of an infinity is it. The other part may be NaN, and the greater of both then anything.
    if z.y * f32(0.5) == z.y && z.y != f32(0) { return vec2f(abs(z.y), z.y); }
    if z.x * f32(0.5) == z.x && z.x != f32(0) {
        let rest = select(f32(0), z.y, float_unordered(z.y));
        let root = abs(z.x);
        return select(vec2f(rest, float_with_sign(root, z.y)), vec2f(root, float_with_sign(rest, z.y)), z.x > f32(0));
    }
    let size = max(abs(z.x), abs(z.y));
    let part = vec2f(z.x / size, z.y / size);
    let t = sqrt(f32(0.5) * (abs(part.x) + complex_abs(part)));
    let other = f32(0.5) * abs(part.y) / t;
    let root = select(vec2f(other, t), vec2f(t, other), z.x >= f32(0));
    let scale = sqrt(size);
    return vec2f(scale * root.x, float_with_sign(scale * root.y, z.y));
}
