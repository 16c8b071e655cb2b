//! 32-bit integer and bool arithmetic: every operator, with wrap-around, division by zero and shift rules. The conformance suite and `cantus verify` run
//! them on every device. The rules for overflow, division by zero and shifts are WGSL's, bit for bit; a divisor is also tested as a uniform, because
//! compilers take another way then.

use crate::case::Case;
use crate::inputs::{pairs_i32, pairs_u32, words};

pub fn cases() -> Vec<Case> {
    let mut cases = signed();
    cases.extend(unsigned());
    cases.extend(vectors());
    cases.extend(bools());
    cases.extend(conversions());
    cases
}

/// WGSL: x / 0 = x, MIN / -1 = MIN.
pub fn div_i32(a: i32, b: i32) -> i32 {
    if b == 0 { a } else { a.wrapping_div(b) }
}

/// WGSL: x % 0 = 0, MIN % -1 = 0.
pub fn rem_i32(a: i32, b: i32) -> i32 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

/// WGSL: x / 0 = x.
pub fn div_u32(a: u32, b: u32) -> u32 {
    a.checked_div(b).unwrap_or(a)
}

/// WGSL: x % 0 = 0.
pub fn rem_u32(a: u32, b: u32) -> u32 {
    a.checked_rem(b).unwrap_or(0)
}

/// The bits `<`, `<=`, `>`, `>=`, `==`, `!=`, from bit 0 on.
pub fn compare<T: PartialOrd>(a: T, b: T) -> u32 {
    let bits = [a < b, a <= b, a > b, a >= b, a == b, a != b];
    (0..).zip(bits).map(|(i, bit)| u32::from(bit) << i).sum()
}

/// The same in WGSL.
pub const COMPARE: &str = "u32(a[i] < b[i]) | (u32(a[i] <= b[i]) << 1u) | (u32(a[i] > b[i]) << 2u) | \
                           (u32(a[i] >= b[i]) << 3u) | (u32(a[i] == b[i]) << 4u) | (u32(a[i] != b[i]) << 5u)";

fn signed() -> Vec<Case> {
    type Oracle = fn(i32, i32) -> i32;
    let table: [(&str, &str, Oracle); 16] = [
        ("add_i32", "a[i] + b[i]", i32::wrapping_add),
        ("sub_i32", "a[i] - b[i]", i32::wrapping_sub),
        ("mul_i32", "a[i] * b[i]", i32::wrapping_mul),
        ("div_i32", "a[i] / b[i]", div_i32),
        ("rem_i32", "a[i] % b[i]", rem_i32),
        ("and_i32", "a[i] & b[i]", |a, b| a & b),
        ("or_i32", "a[i] | b[i]", |a, b| a | b),
        ("xor_i32", "a[i] ^ b[i]", |a, b| a ^ b),
        ("shl_i32", "a[i] << u32(b[i])", |a, b| a.wrapping_shl(b as u32)),
        ("shr_i32", "a[i] >> u32(b[i])", |a, b| a.wrapping_shr(b as u32)),
        ("min_i32", "min(a[i], b[i])", i32::min),
        ("max_i32", "max(a[i], b[i])", i32::max),
        ("neg_not_i32", "-a[i] ^ ~b[i]", |a, b| a.wrapping_neg() ^ !b),
        ("clamp_i32", "clamp(a[i], min(b[i], 100), max(b[i], 100))", |a, b| a.clamp(b.min(100), b.max(100))),
        ("abs_sign_i32", "abs(a[i]) + 3 * sign(b[i])", |a, b| a.wrapping_abs().wrapping_add(3 * b.signum())),
        ("select_i32", "select(a[i], b[i], a[i] < b[i])", i32::max),
    ];
    let (a, b) = pairs_i32(1);
    let mut cases: Vec<Case> =
        table.map(|(n, e, oracle)| Case::map2(format!("integer.{n}"), e, (&a, &b), oracle)).into();
    cases.push(Case::map2("integer.compare_i32", COMPARE, (&a, &b), compare::<i32>));
    cases
}

fn unsigned() -> Vec<Case> {
    type Oracle = fn(u32, u32) -> u32;
    let table: [(&str, &str, Oracle); 18] = [
        ("add_u32", "a[i] + b[i]", u32::wrapping_add),
        ("sub_u32", "a[i] - b[i]", u32::wrapping_sub),
        ("mul_u32", "a[i] * b[i]", u32::wrapping_mul),
        ("div_u32", "a[i] / b[i]", div_u32),
        ("rem_u32", "a[i] % b[i]", rem_u32),
        ("and_u32", "a[i] & b[i]", |a, b| a & b),
        ("or_u32", "a[i] | b[i]", |a, b| a | b),
        ("xor_u32", "a[i] ^ b[i]", |a, b| a ^ b),
        ("shl_u32", "a[i] << b[i]", u32::wrapping_shl),
        ("shr_u32", "a[i] >> b[i]", u32::wrapping_shr),
        ("min_u32", "min(a[i], b[i])", u32::min),
        ("max_u32", "max(a[i], b[i])", u32::max),
        ("compare_u32", COMPARE, |a, b| compare(a, b)),
        ("clamp_u32", "clamp(a[i], min(b[i], 100u), max(b[i], 100u))", |a, b| a.clamp(b.min(100), b.max(100))),
        ("abs_u32", "abs(a[i]) ^ ~b[i]", |a, b| a ^ !b),
        // A divisor that is the same for all invocations may take another path than one that is not.
        ("div_by_constant", "a[i] / 7u + b[i] / 641u", |a, b| (a / 7).wrapping_add(b / 641)),
        ("rem_by_constant", "(a[i] % 10u) * 1000u + b[i] % 641u", |a, b| (a % 10) * 1000 + b % 641),
        ("mixed_expression", "(((a[i] + b[i]) * (a[i] - b[i])) >> 3u) ^ (a[i] << (b[i] % 32u))", |a, b| {
            (a.wrapping_add(b).wrapping_mul(a.wrapping_sub(b)) >> 3) ^ (a << (b % 32))
        }),
    ];
    let (a, b) = pairs_u32(2);
    table.map(|(n, e, oracle)| Case::map2(format!("integer.{n}"), e, (&a, &b), oracle)).into()
}

/// Componentwise operators on vectors, and between a vector and a scalar.
fn vectors() -> Vec<Case> {
    type Oracle = fn(u32, u32) -> u32;
    let table: [(&str, &str, &str, Oracle); 8] = [
        ("vec2u", "add", "a[i] + b[i]", u32::wrapping_add),
        ("vec2u", "shl", "a[i] << b[i]", u32::wrapping_shl),
        ("vec4u", "mul", "a[i] * b[i]", u32::wrapping_mul),
        ("vec4u", "div", "a[i] / b[i]", div_u32),
        ("vec2i", "div", "a[i] / b[i]", |a, b| div_i32(a as i32, b as i32) as u32),
        ("vec4i", "rem", "a[i] % b[i]", |a, b| rem_i32(a as i32, b as i32) as u32),
        ("vec4i", "max", "max(a[i], b[i])", |a, b| (a as i32).max(b as i32) as u32),
        ("vec4u", "select", "select(a[i], b[i], a[i] < b[i])", u32::max),
    ];
    let (a, b) = pairs_u32(3);
    let mut cases: Vec<Case> = table
        .map(|(ty, name, expression, oracle)| {
            let expected: Vec<u32> = a.iter().zip(&b).map(|(&a, &b)| oracle(a, b)).collect();
            Case::each(format!("integer.{name}_{ty}"), expression)
                .read(&format!("a: array<{ty}>"), &a)
                .read(&format!("b: array<{ty}>"), &b)
                .write(&format!("out: array<{ty}>"), expected)
                .invocations(a.len() / 2)
        })
        .into();
    // A vec3 fills 12 of its 16 bytes; the store must leave the rest alone.
    let sum = a.iter().zip(&b).enumerate().map(|(i, (&a, &b))| if i % 4 == 3 { 0 } else { a.wrapping_sub(b) });
    cases.push(
        Case::each("integer.sub_vec3u", "a[i] - b[i]")
            .read("a: array<vec3u>", &a)
            .read("b: array<vec3u>", &b)
            .write("out: array<vec3u>", sum.collect::<Vec<u32>>())
            .invocations(a.len() / 4),
    );
    let scaled = a.iter().map(|&a| (a.wrapping_mul(3).wrapping_add(5)) % 1000);
    cases.push(
        Case::each("integer.vector_with_scalar", "(a[i] * 3u + 5u) % 1000u")
            .read("a: array<vec4u>", &a)
            .write("out: array<vec4u>", scaled.collect::<Vec<u32>>())
            .invocations(a.len() / 4),
    );
    let dots = a
        .chunks(4)
        .zip(b.chunks(4))
        .map(|(a, b)| a.iter().zip(b).fold(0_i32, |sum, (&a, &b)| sum.wrapping_add((a as i32).wrapping_mul(b as i32))));
    cases.push(
        Case::each("integer.dot_vec4i", "dot(a[i], b[i])")
            .read("a: array<vec4i>", &a)
            .read("b: array<vec4i>", &b)
            .write("out", dots.collect::<Vec<i32>>())
            .invocations(a.len() / 4),
    );
    let swizzled = a.chunks(4).flat_map(|v| [v[3], v[1], v[1], v[0].wrapping_add(v[2])]);
    cases.push(
        Case::each("integer.swizzle", "vec4u(a[i].wyy, a[i].x + a[i].b)")
            .read("a: array<vec4u>", &a)
            .write("out: array<vec4u>", swizzled.collect::<Vec<u32>>())
            .invocations(a.len() / 4),
    );
    cases
}

fn bools() -> Vec<Case> {
    let (a, b) = pairs_u32(4);
    let logic = "let p = a[i] > b[i]; let q = (a[i] & 1u) == 1u;";
    let body = |expression: &str| {
        format!(
            "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{\n let i = id.x;\n \
             if i >= arrayLength(&out) {{ return; }}\n {logic}\n out[i] = {expression};\n}}"
        )
    };
    type Oracle = fn(bool, bool) -> u32;
    let table: [(&str, &str, Oracle); 5] = [
        ("bool_and_or", "u32(p & q) | (u32(p | q) << 1u)", |p, q| u32::from(p & q) | u32::from(p | q) << 1),
        ("bool_short_circuit", "u32(p && q) + 2u * u32(p || q)", |p, q| u32::from(p && q) + 2 * u32::from(p || q)),
        ("bool_not_equal", "u32(!p) + 2u * u32(p == q) + 4u * u32(p != q)", |p, q| {
            u32::from(!p) + 2 * u32::from(p == q) + 4 * u32::from(p != q)
        }),
        ("bool_all_any", "u32(all(vec3(p, q, true))) + 2u * u32(any(vec2(p, q)))", |p, q| {
            u32::from(p && q) + 2 * u32::from(p || q)
        }),
        (
            "bool_vector_select",
            "dot(select(vec3(1u, 10u, 100u), vec3(2u, 20u, 200u), vec3(p, q, !p)), vec3(1u))",
            |p, q| (if p { 2 + 100 } else { 1 + 200 }) + if q { 20 } else { 10 },
        ),
    ];
    table
        .map(|(name, expression, oracle)| {
            let expected: Vec<u32> = a.iter().zip(&b).map(|(&a, &b)| oracle(a > b, a & 1 == 1)).collect();
            Case::new(format!("integer.{name}"), body(expression))
                .read("a", &a)
                .read("b", &b)
                .write("out", expected)
                .invocations(a.len())
        })
        .into()
}

fn conversions() -> Vec<Case> {
    let (a, _) = pairs_u32(5);
    // Exponents between 1 and 127 only: a device may flush subnormal numbers.
    let normal: Vec<u32> = words(6, 256).iter().map(|a| (a | 0x0080_0000) & 0xBFFF_FFFF).collect();
    vec![
        Case::map1("integer.u32_to_i32", "i32(a[i])", &a, |a| a as i32),
        Case::map1("integer.i32_to_u32", "u32(a[i])", &crate::inputs::signed(&a), |a| a as u32),
        Case::map1("integer.bitcast_f32", "bitcast<u32>(-bitcast<f32>(a[i]))", &normal, |a| a ^ 0x8000_0000),
        Case::map1("integer.bitcast_i32", "bitcast<i32>(a[i]) >> 4u", &a, |a| a as i32 >> 4),
        Case::map1("integer.bool_conversions", "u32(bool(a[i])) + 2u * u32(bool(i32(a[i] >> 1u)))", &a, |a| {
            u32::from(a != 0) + 2 * u32::from(a >> 1 != 0)
        }),
    ]
}
