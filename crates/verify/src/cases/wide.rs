//! 64-bit types: i64, u64 and f64, where the device has them. The conformance suite and `cantus verify` run them where a device has 64-bit types; elsewhere
//! they count as not run, with the reason. WGSL has no float64, so its accuracy is ours: a few units in the last place.

use super::integer::{COMPARE, compare};
use crate::case::{Case, Values};
use crate::check::Near;
use crate::inputs::{Random, pairs_u64};

pub fn cases() -> Vec<Case> {
    let mut cases = signed();
    cases.extend(unsigned());
    cases.extend(conversions());
    cases.extend(composites());
    cases.extend(doubles());
    cases.extend(atomics());
    cases
}

fn signed() -> Vec<Case> {
    type Oracle = fn(i64, i64) -> i64;
    let table: [(&str, &str, Oracle); 14] = [
        ("add", "a[i] + b[i]", i64::wrapping_add),
        ("sub", "a[i] - b[i]", i64::wrapping_sub),
        ("mul", "a[i] * b[i]", i64::wrapping_mul),
        ("div", "a[i] / b[i]", |a, b| if b == 0 { a } else { a.wrapping_div(b) }),
        ("rem", "a[i] % b[i]", |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        ("and_or_xor", "(a[i] & b[i]) - ((a[i] | b[i]) ^ b[i])", |a, b| (a & b).wrapping_sub((a | b) ^ b)),
        ("shl", "a[i] << u32(b[i])", |a, b| a.wrapping_shl(b as u32)),
        ("shr", "a[i] >> u32(b[i])", |a, b| a.wrapping_shr(b as u32)),
        ("min", "min(a[i], b[i])", i64::min),
        ("max", "max(a[i], b[i])", i64::max),
        ("neg_not", "-a[i] ^ ~b[i]", |a, b| a.wrapping_neg() ^ !b),
        ("abs_sign", "abs(a[i]) + sign(b[i])", |a, b| a.wrapping_abs().wrapping_add(b.signum())),
        ("clamp", "clamp(a[i], -5000000000li, 7li) + b[i]", |a, b| a.clamp(-5_000_000_000, 7).wrapping_add(b)),
        ("select", "select(a[i], b[i], a[i] > b[i])", i64::min),
    ];
    let (a, b) = pairs_u64(200);
    let (a, b) = (signed64(&a), signed64(&b));
    let mut cases: Vec<Case> =
        table.map(|(n, e, oracle)| Case::map2(format!("wide.{n}_i64"), e, (&a, &b), oracle)).into();
    cases.push(Case::map2("wide.compare_i64", COMPARE, (&a, &b), compare::<i64>));
    cases
}

fn signed64(v: &[u64]) -> Vec<i64> {
    v.iter().map(|&x| x as i64).collect()
}

fn unsigned() -> Vec<Case> {
    type Oracle = fn(u64, u64) -> u64;
    let table: [(&str, &str, Oracle); 9] = [
        ("add", "a[i] + b[i]", u64::wrapping_add),
        ("sub", "a[i] - b[i]", u64::wrapping_sub),
        ("mul", "a[i] * b[i]", u64::wrapping_mul),
        ("div", "a[i] / b[i]", |a, b| a.checked_div(b).unwrap_or(a)),
        ("rem", "a[i] % b[i]", |a, b| a.checked_rem(b).unwrap_or(0)),
        ("shl", "a[i] << u32(b[i])", |a, b| a.wrapping_shl(b as u32)),
        ("shr", "a[i] >> u32(b[i])", |a, b| a.wrapping_shr(b as u32)),
        ("min_max", "min(a[i], b[i]) ^ (max(a[i], b[i]) * 3lu)", |a, b| a.min(b) ^ a.max(b).wrapping_mul(3)),
        ("hash", "((a[i] ^ (a[i] >> 30u)) * 0xBF58476D1CE4E5B9lu) + (b[i] & 0xFFFFFFFF00lu)", |a, b| {
            (a ^ a >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9).wrapping_add(b & 0xFF_FFFF_FF00)
        }),
    ];
    let (a, b) = pairs_u64(201);
    let mut cases: Vec<Case> =
        table.map(|(n, e, oracle)| Case::map2(format!("wide.{n}_u64"), e, (&a, &b), oracle)).into();
    cases.push(Case::map2("wide.compare_u64", COMPARE, (&a, &b), compare::<u64>));
    cases
}

fn conversions() -> Vec<Case> {
    let (a, _) = pairs_u64(202);
    let narrow: Vec<u32> = a.iter().map(|&x| x as u32).collect();
    let narrow_signed = crate::inputs::signed(&narrow);
    vec![
        Case::map1("wide.u64_to_u32", "u32(a[i])", &a, |a| a as u32),
        Case::map1("wide.u64_to_i32", "i32(a[i])", &a, |a| a as i32),
        Case::map1("wide.i64_to_i32", "i32(a[i])", &signed64(&a), |a| a as i32),
        Case::map1("wide.u32_to_u64", "u64(a[i]) * 4294967297lu", &narrow, |a| {
            u64::from(a).wrapping_mul(4_294_967_297)
        }),
        Case::map1("wide.i32_to_i64", "i64(a[i]) * 3li", &narrow_signed, |a| i64::from(a) * 3),
        Case::map1("wide.i32_to_u64", "u64(a[i])", &narrow_signed, |a| i64::from(a) as u64),
        Case::map1("wide.i64_to_u64", "u64(a[i]) >> 1u", &signed64(&a), |a| a as u64 >> 1),
        Case::map1("wide.u64_to_bool", "select(1u, 2u, bool(a[i]))", &a, |a| if a == 0 { 1_u32 } else { 2 }),
        Case::each("wide.i64_to_f32", "f32(a[i])")
            .read("a", signed64(&a))
            .write_near("out", Near::ulp(signed64(&a).iter().map(|&x| x as f64), 1.0))
            .invocations(a.len()),
        Case::map1("wide.f32_to_i64", "i64(a[i])", &crate::inputs::spread(203, 256, -5.0, 60.0), |x| x as i64),
        Case::map1("wide.u32_to_i64", "i64(a[i])", &narrow, i64::from),
        Case::map1("wide.bitcast", "bitcast<i64>(a[i]) >> 3u", &a, |a| a as i64 >> 3),
    ]
}

fn composites() -> Vec<Case> {
    let (a, b) = pairs_u64(204);
    let structure = "struct T { a: u32, b: i64, c: vec3<u64>, d: u32, e: array<i64, 2> }";
    // Offsets 0, 8, 32, 56, 64; alignment 32, so 96 bytes in all.
    let words: Vec<u32> = (1..=24).map(|k| k * 0x0101_0101).collect();
    let long = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
    let members = vec![u64::from(words[0]), long(2), long(8), long(12), u64::from(words[14]), long(16), long(18)];
    vec![
        Case::each("wide.vec2_add", "a[i] + b[i] * 2lu")
            .read("a: array<vec2<u64>>", &a)
            .read("b: array<vec2<u64>>", &b)
            .write("out: array<vec2<u64>>", a.iter().zip(&b).map(|(a, b)| a.wrapping_add(b.wrapping_mul(2))).collect::<Vec<u64>>())
            .invocations(a.len() / 2),
        Case::new("wide.layout_read", format!("{structure}\n@compute @workgroup_size(1) fn main() {{ out = array<u64, 7>(u64(a.a), u64(a.b), a.c.x, a.c.z, u64(a.d), u64(a.e[0]), u64(a.e[1])); }}"))
            .read("a: T", &words)
            .write("out: array<u64, 7>", members),
        Case::each_with("wide.private_array", "fn f(x: u64) -> u64 { var t: array<u64, 5>; for (var k = 0u; k < 20u; k++) { t[k % 5u] += x >> k; } return t[u32(x % 5lu)]; }", "f(a[i])")
            .read("a", &a)
            .write("out", a.iter().map(|&x| {
                let mut t = [0_u64; 5];
                (0..20).for_each(|k| t[k % 5] = t[k % 5].wrapping_add(x >> k));
                t[(x % 5) as usize]
            }).collect::<Vec<u64>>())
            .invocations(a.len()),
        Case::new(
            "wide.workgroup_sum",
            "var<workgroup> t: array<i64, 64>;\n@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {\n \
             t[i] = a[i]; workgroupBarrier(); for (var s = 32u; s > 0u; s /= 2u) { if i < s { t[i] += t[i + s]; } workgroupBarrier(); } out[i] = t[0] - i64(i); }",
        )
        .read("a", signed64(&a[..64]))
        .write("out", {
            let sum = a[..64].iter().fold(0_i64, |s, &x| s.wrapping_add(x as i64));
            (0..64).map(|i| sum.wrapping_sub(i)).collect::<Vec<i64>>()
        }),
    ]
}

fn doubles() -> Vec<Case> {
    let mut random = Random::new(205);
    let mut column =
        |low: f64, high: f64| -> Vec<f64> { (0..256).map(|_| low + (high - low) * random.unit()).collect() };
    let (a, b, positive) = (column(-1e3, 1e3), column(-1e3, 1e3), column(1e-3, 1e6));
    type Oracle = fn(f64, f64) -> f64;
    let table: [(&str, &str, Oracle); 6] = [
        ("add", "a[i] + b[i]", |a, b| a + b),
        ("mul", "a[i] * b[i]", |a, b| a * b),
        ("div", "a[i] / b[i]", |a, b| a / b),
        ("min_max", "min(a[i], b[i]) - 2.0lf * max(a[i], b[i])", |a, b| a.min(b) - 2.0 * a.max(b)),
        ("floor_abs", "floor(a[i]) + abs(b[i])", |a, b| a.floor() + b.abs()),
        ("select", "select(a[i], b[i], a[i] < b[i])", f64::max),
    ];
    let mut cases: Vec<Case> = table
        .map(|(name, expression, oracle)| {
            // WGSL has no f64, and so no accuracy for it: a few units in the last place.
            let expected = a.iter().zip(&b).map(|(&a, &b)| (oracle(a, b), 4.0 * f64::EPSILON * oracle(a, b).abs()));
            Case::each(format!("wide.{name}_f64"), expression)
                .read("a", &a)
                .read("b", &b)
                .write_near_f64("out", Near::each("4 ULP (f64)", expected))
                .invocations(256)
        })
        .into();
    let relative = |e: f64| (e, 4.0 * f64::EPSILON * e.abs());
    cases.push(
        Case::each("wide.sqrt_f64", "sqrt(a[i])")
            .read("a", &positive)
            .write_near_f64("out", Near::each("4 ULP (f64)", positive.iter().map(|x| relative(x.sqrt()))))
            .invocations(256),
    );
    cases.push(Case::map1(
        "wide.f64_to_f32_and_back",
        "f64(f32(a[i]) * 0.5)",
        &a.iter().map(|&x| f64::from(x as f32)).collect::<Vec<f64>>(),
        |x| x / 2.0,
    ));
    cases.push(Case::map1("wide.f64_to_i32", "i32(a[i]) + i32(a[i] < 0.0lf)", &a, |x| x as i32 + i32::from(x < 0.0)));
    cases.push(Case::map1(
        "wide.i32_to_f64",
        "f64(a[i]) * 0.25lf",
        &crate::inputs::signed(&crate::inputs::words(206, 256)),
        |x| f64::from(x) / 4.0,
    ));
    let sums: Vec<f64> = a.chunks(4).map(|v| v[0].trunc() * 2.0 + v[3].trunc()).collect();
    cases.push(
        Case::each("wide.vec4_f64", "dot(trunc(a[i]), vec4<f64>(2.0lf, 0.0lf, 0.0lf, 1.0lf))")
            .read("a: array<vec4<f64>>", &a)
            .write("out", sums)
            .invocations(64),
    );
    cases
}

fn atomics() -> Vec<Case> {
    let (a, _) = pairs_u64(207);
    let total = |op: &str, expected: u64| {
        Case::new(
            format!("wide.atomic_{}", op.to_lowercase()),
            format!("@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{ atomic{op}(&out, a[id.x]); }}"),
        )
        .read("a", &a[..256])
        .update("out: atomic<u64>", vec![5_u64], vec![expected])
        .workgroups(4, 1, 1)
        .needs(|n| n.int64_atomics = true)
    };
    let a256 = || a[..256].iter().copied();
    vec![
        total("Add", a256().fold(5, u64::wrapping_add)),
        total("Max", a256().fold(5, u64::max)),
        total("Min", a256().fold(5, u64::min)),
        total("Or", a256().fold(5, |x, y| x | y)),
        Case::new(
            "wide.atomic_add_f32",
            "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { atomicAdd(&out, a[id.x]); }",
        )
        .read("a", (0..256).map(|i| (i % 50) as f32 - 10.0).collect::<Vec<f32>>())
        .update("out: atomic<f32>", Values::F32(vec![0.5]), Values::F32(vec![0.5 + (0..256).map(|i| (i % 50) as f32 - 10.0).sum::<f32>()]))
        .workgroups(4, 1, 1)
        .needs(|n| n.float_atomics = true),
    ]
}
