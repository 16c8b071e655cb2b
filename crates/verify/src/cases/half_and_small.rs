//! float16, and the 16-bit integers that naga adds to WGSL. Results are compared with float64 within a step or so of
//! float16; where every step is exact, to the bit.

use half::f16;

use crate::case::{Case, Values};
use crate::check::{Near, ulp16};
use crate::inputs::{Random, floats, words};

pub fn cases() -> Vec<Case> {
    let mut cases = arithmetic();
    cases.extend(builtins());
    cases.extend(conversions());
    cases.extend(composites());
    cases.extend(small_integers());
    cases
}

fn halves(seed: u64, n: usize, low: f64, high: f64) -> Vec<f16> {
    floats(seed, n, low, high).into_iter().map(f16::from_f32).collect()
}

fn wide(x: f16) -> f64 {
    x.to_f64()
}

fn near2(name: &str, expression: &str, (a, b): (&[f16], &[f16]), expected: Near) -> Case {
    Case::each(format!("half.{name}"), expression)
        .read("a", a)
        .read("b", b)
        .write_near_f16("out", expected)
        .invocations(a.len())
}

fn arithmetic() -> Vec<Case> {
    let a = halves(180, 256, -60.0, 60.0);
    let b: Vec<f16> =
        halves(181, 256, 0.5, 30.0).iter().enumerate().map(|(i, &x)| if i % 2 == 0 { -x } else { x }).collect();
    type Oracle = fn(f64, f64) -> f64;
    let table: [(&str, &str, f64, Oracle); 6] = [
        ("add", "a[i] + b[i]", 1.0, |a, b| a + b),
        ("sub", "a[i] - b[i]", 1.0, |a, b| a - b),
        ("mul", "a[i] * b[i]", 1.0, |a, b| a * b),
        ("div", "a[i] / b[i]", 2.5, |a, b| a / b),
        ("min_max", "min(a[i], b[i]) + 0.0h * max(a[i], b[i])", 1.0, f64::min),
        ("fma", "fma(a[i], b[i], -a[i])", 0.0, |a, b| a * b - a),
    ];
    let mut cases: Vec<Case> = table
        .map(|(name, expression, n, oracle)| {
            let pairs = a.iter().zip(&b).map(|(&a, &b)| {
                let (a, b) = (wide(a), wide(b));
                // fma is inherited from x y + z: two roundings.
                let error = if n == 0.0 { ulp16(a * b) + ulp16(a * b - a) } else { n * ulp16(oracle(a, b)) };
                (oracle(a, b), error)
            });
            near2(name, expression, (&a, &b), Near::each("float16", pairs))
        })
        .into();
    // Whole numbers below 2048 in all: nothing is rounded.
    let (p, q): (Vec<f16>, Vec<f16>) = words(182, 256)
        .iter()
        .map(|w| (f16::from_f32((w % 41) as f32 - 20.0), f16::from_f32((w >> 8) as f32 % 31.0 + 1.0)))
        .unzip();
    let exact = |name: &str, expression: &str, oracle: fn(f32, f32) -> f32| {
        Case::map2(format!("half.{name}"), expression, (&p, &q), |a: f16, b: f16| {
            f16::from_f32(oracle(a.to_f32(), b.to_f32()))
        })
    };
    cases.push(exact("exact_integers", "a[i] * b[i] - 3.0h * b[i]", |a, b| a * b - 3.0 * b));
    // Halves by whole numbers: no quotient is whole, where one that is off by an ULP would leave all of `b`.
    let odd_halves: Vec<f16> = p.iter().map(|&a| a + f16::from_f32(0.5)).collect();
    cases.push(Case::map2("half.rem", "a[i] % b[i]", (&odd_halves, &q), |a: f16, b: f16| {
        f16::from_f32(a.to_f32() % b.to_f32())
    }));
    cases.push(exact("negate_abs_sign", "-a[i] + 100h * sign(a[i]) + abs(a[i] - b[i])", |a, b| {
        -a + 100.0 * (if a == 0.0 { 0.0 } else { a.signum() }) + (a - b).abs()
    }));
    cases.push(exact(
        "compare_select",
        "select(a[i], b[i] + 0.5h, (a[i] < b[i] && a[i] != 3.0h) || a[i] >= 15h)",
        |a, b| {
            if a < b && a != 3.0 || a >= 15.0 { b + 0.5 } else { a }
        },
    ));
    // A sum that float32 would carry further: each step must round to float16.
    let steps = "fn f(x: f16, y: f16) -> f16 { var s = x; for (var k = 0; k < 3; k++) { s = s + y; s = s * 1024.0h; s = s / 1024.0h; } return s; }";
    let stepped = p.iter().zip(&q).map(|(&x, &y)| (0..3).fold(wide(x), |s, _| s + wide(y)));
    cases.push(
        Case::each_with("half.steps_stay_small", steps, "f(a[i] / 4.0h, b[i] / 4.0h)")
            .read("a", &p)
            .read("b", &q)
            .write_near_f16("out", Near::each("exact quarters", stepped.map(|s| (s / 4.0, 0.0))))
            .invocations(256),
    );
    // From 2048 on the gaps of float16 are 2: an odd sum cannot be.
    let odd: Vec<f16> = (0..64).map(|k| f16::from_f32(k as f32 * 2.0 + 1.0)).collect();
    cases.push(
        Case::each("half.rounds_before_conversion", "u32(a[i] + 2048.0h)")
            .read("a", odd)
            .check("out", vec![0_u32; 64], |finals| {
                let off = (0_u32..).zip(finals[1].u32s()).find(|(k, x)| *x % 2 == 1 || x.abs_diff(2 * k + 2049) > 1);
                off.map_or(Ok(()), |(k, x)| Err(format!("[{k}]: {x} is not an even neighbour of {}", 2 * k + 2049)))
            })
            .invocations(64),
    );
    cases
}

fn builtins() -> Vec<Case> {
    let a = halves(183, 256, -3.0, 3.0);
    let positive = halves(184, 256, 0.01, 200.0);
    type Oracle = fn(f64) -> f64;
    type Error = fn(f64, f64) -> f64;
    let exact: [(&str, Oracle); 6] = [
        ("floor", f64::floor),
        ("ceil", f64::ceil),
        ("trunc", f64::trunc),
        ("round", f64::round_ties_even),
        ("abs", f64::abs),
        ("saturate", |x| x.clamp(0.0, 1.0)),
    ];
    let near: [(&str, &str, bool, Oracle, Error); 12] =
        [
            ("exp", "exp(a[i])", false, f64::exp, |x, r| (1.0 + 2.0 * x.abs()) * ulp16(r)),
            ("exp2", "exp2(a[i])", false, f64::exp2, |x, r| (1.0 + 2.0 * x.abs()) * ulp16(r)),
            ("log", "log(a[i])", true, f64::ln, |x, r| {
                if (0.5..=2.0).contains(&x) { 2.0_f64.powi(-7) } else { 3.0 * ulp16(r) }
            }),
            ("log2", "log2(a[i])", true, f64::log2, |x, r| {
                if (0.5..=2.0).contains(&x) { 2.0_f64.powi(-7) } else { 3.0 * ulp16(r) }
            }),
            ("sqrt", "sqrt(a[i])", true, f64::sqrt, |_, r| 5.0 * ulp16(r)),
            ("inverse_sqrt", "inverseSqrt(a[i])", true, |x| 1.0 / x.sqrt(), |_, r| 2.0 * ulp16(r)),
            ("sin", "sin(a[i])", false, f64::sin, |_, _| 2.0_f64.powi(-7)),
            ("cos", "cos(a[i])", false, f64::cos, |_, _| 2.0_f64.powi(-7)),
            ("atan", "atan(a[i])", false, f64::atan, |_, r| 5.0 * ulp16(r)),
            ("tanh", "tanh(a[i])", false, f64::tanh, |_, _| 0.03),
            ("fract", "fract(a[i])", false, |x| x - x.floor(), |_, _| ulp16(0.9)),
            (
                "mix_step",
                "mix(a[i], 2.0h, 0.25h) + step(0.5h, a[i])",
                false,
                |x| x * 0.75 + 0.5 + if x >= 0.5 { 1.0 } else { 0.0 },
                |_, _| 3.0 * ulp16(4.0),
            ),
        ];
    let mut cases: Vec<Case> = near
        .map(|(name, expression, of_positive, oracle, error)| {
            let a = if of_positive { &positive } else { &a };
            let expected = a.iter().map(|&x| (oracle(wide(x)), error(wide(x), oracle(wide(x)))));
            Case::each(format!("half.{name}"), expression)
                .read("a", a)
                .write_near_f16("out", Near::each("WGSL's table (float16)", expected))
                .invocations(256)
        })
        .into();
    for (name, oracle) in exact {
        let expected: Vec<f16> = a.iter().map(|&x| f16::from_f64(oracle(wide(x)))).collect();
        cases.push(
            Case::each(format!("half.{name}"), &format!("{name}(a[i])"))
                .read("a", &a)
                .write("out", expected)
                .invocations(256),
        );
    }
    cases
}

fn conversions() -> Vec<Case> {
    let mut values = vec![0.0, 0.5, 1.0, 1.5, 2.5, 100.75, 2047.0, 60000.0, 65504.0];
    let mut random = Random::new(185);
    values.extend((0..55).map(|_| (random.unit() * 500.0) as f32));
    let a: Vec<f16> = values.iter().flat_map(|&x| [f16::from_f32(x), f16::from_f32(-x)]).collect();
    let f = floats(186, 256, -3000.0, 3000.0);
    let small: Vec<i32> = (-128..128).map(|i| i * 16).collect();
    // Normal numbers below 2: exponents 1 to 15.
    let bits: Vec<u32> = words(187, 128).iter().map(|w| (w | 0x0400_0400) & 0xBFFF_BFFF).collect();
    vec![
        Case::map1("half.to_f32", "f32(a[i]) * 1.0", &a, f16::to_f32),
        Case::map1("half.to_i32", "i32(a[i])", &a, |x| x.to_f32() as i32),
        Case::map1("half.to_u32", "u32(a[i])", &a, |x| x.to_f32() as u32),
        Case::map1("half.to_bool", "select(1u, 2u, bool(a[i]))", &a, |x| if x == f16::ZERO { 1_u32 } else { 2 }),
        Case::map1("half.from_i32", "f16(a[i])", &small, |x| f16::from_f32(x as f32)),
        Case::each("half.from_f32", "f16(a[i])")
            .read("a", &f)
            .write_near_f16("out", Near::ulp16(f.iter().map(|&x| f64::from(x)), 1.0))
            .invocations(256),
        Case::map1(
            "half.from_f32_exact",
            "f16(a[i])",
            &a.iter().map(|x| x.to_f32()).collect::<Vec<f32>>(),
            f16::from_f32,
        ),
        Case::map1("half.bitcast_swap", "bitcast<u32>(bitcast<vec2<f16>>(a[i]).yx)", &bits, |w| w.rotate_left(16))
            .needs(|n| n.f16 = true),
    ]
}

fn bytes_of(fields: &[(usize, &[u8])], len: usize) -> Values {
    let mut bytes = vec![0; len];
    fields.iter().for_each(|(at, field)| bytes[*at..at + field.len()].copy_from_slice(field));
    Values::U32(bytemuck::pod_collect_to_vec(&bytes))
}

fn h(x: f32) -> [u8; 2] {
    f16::from_f32(x).to_le_bytes()
}

fn composites() -> Vec<Case> {
    let a = halves(188, 256, -4.0, 4.0);
    let b = halves(189, 256, -4.0, 4.0);
    let components = |step: usize| a.chunks(step).zip(b.chunks(step));
    let dot =
        components(4).map(|(a, b)| (a.iter().zip(b).map(|(&a, &b)| wide(a) * wide(b)).sum::<f64>(), 8.0 * ulp16(40.0)));
    let swapped: Vec<f16> = a.chunks(4).flat_map(|v| [v[2], v[0], v[3], v[3]]).collect();
    let structure = "struct T { a: f16, v: vec3<f16>, b: f16, c: f32, m: array<f16, 3>, d: f16 }\n";
    let fields = |f: [f32; 8]| {
        bytes_of(
            &[
                (0, &h(f[0])),
                (8, &h(f[1])),
                (10, &h(f[2])),
                (12, &h(f[3])),
                (14, &h(f[4])),
                (16, &f[5].to_le_bytes()),
                (22, &h(f[6])),
                (26, &h(f[7])),
            ],
            32,
        )
    };
    let matrix: Vec<f16> = [1.0, 2.0, -3.0, 4.0, 0.5, 6.0].map(f16::from_f32).to_vec();
    vec![
        Case::each("half.vec4_mul", "a[i] * b[i]")
            .read("a: array<vec4<f16>>", &a)
            .read("b: array<vec4<f16>>", &b)
            .write_near_f16("out: array<vec4<f16>>", Near::ulp16(a.iter().zip(&b).map(|(&a, &b)| wide(a) * wide(b)), 1.0))
            .invocations(64),
        Case::each("half.vec3_sub", "a[i] - b[i]")
            .read("a: array<vec3<f16>>", &a)
            .read("b: array<vec3<f16>>", &b)
            .write_near_f16(
                "out: array<vec3<f16>>",
                Near::ulp16(a.iter().zip(&b).enumerate().map(|(i, (&a, &b))| if i % 4 == 3 { 0.0 } else { wide(a) - wide(b) }), 1.0),
            )
            .invocations(64),
        Case::each("half.dot", "dot(a[i], b[i])")
            .read("a: array<vec4<f16>>", &a)
            .read("b: array<vec4<f16>>", &b)
            .write_near_f16("out", Near::each("sum of products", dot))
            .invocations(64),
        Case::each("half.swizzle", "a[i].zxww").read("a: array<vec4<f16>>", &a).write("out: array<vec4<f16>>", swapped).invocations(64),
        Case::new("half.layout_read", format!("{structure}@compute @workgroup_size(1) fn main() {{ out = array<f32, 8>(f32(a.a), f32(a.v.x), f32(a.v.y), f32(a.v.z), f32(a.b), a.c, f32(a.m[1]), f32(a.d)); }}"))
            .read("a: T", fields([1.0, 2.0, 3.5, -4.0, 5.0, 6.25, 7.0, -8.5]))
            .write("out: array<f32, 8>", [1.0_f32, 2.0, 3.5, -4.0, 5.0, 6.25, 7.0, -8.5])
            .needs(|n| n.f16 = true),
        Case::new("half.layout_write", format!("{structure}@compute @workgroup_size(1) fn main() {{ a.a = 2h; a.v.x += 1h; a.v.z = 9h; a.b = a.v.y; a.c *= 2.0; a.m[1] = 0.5h; a.d = -a.d; }}"))
            .update("a: T", fields([1.0, 2.0, 3.5, -4.0, 5.0, 6.25, 7.0, -8.5]), fields([2.0, 3.0, 3.5, 9.0, 3.5, 12.5, 0.5, 8.5]))
            .needs(|n| n.f16 = true),
        Case::new("half.matrix", "@compute @workgroup_size(1) fn main() { out = a * vec3<f16>(2.0h, 1.0h, -1.0h); }")
            .read("a: mat3x2<f16>", &matrix)
            .write("out: vec2<f16>", [-1.5_f32, 2.0].map(f16::from_f32)),
        Case::new(
            "half.workgroup_memory",
            "var<workgroup> t: array<f16, 64>;\n@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {\n \
             t[i] = f16(i) * 0.5h; workgroupBarrier(); for (var s = 32u; s > 0u; s /= 2u) { if i < s { t[i] = max(t[i], t[i + s]); } workgroupBarrier(); } out[i] = t[0] - f16(i); }",
        )
        .write("out", (0..64).map(|i| f16::from_f32(31.5 - i as f32)).collect::<Vec<f16>>()),
    ]
}

/// 16-bit integers: naga's `wgpu_int16`.
fn small_integers() -> Vec<Case> {
    let a: Vec<i16> = words(190, 256).iter().map(|&w| w as i16).collect();
    let b: Vec<i16> = words(191, 256).iter().map(|&w| w as i16).collect();
    let ua: Vec<u16> = a.iter().map(|&x| x as u16).collect();
    let ub: Vec<u16> = b.iter().map(|&x| x as u16).collect();
    // Too large for 16 bits, and for 32.
    let doubles = [0.0, -1.5, 32767.9, 32768.0, 70000.0, 1e10, -32769.0, -70000.0, -1e300, 1e300];
    vec![
        Case::map1("half.f64_to_i16", "i16(a[i])", &doubles, |a: f64| a as i16),
        Case::map1("half.f64_to_u16", "u16(a[i])", &doubles, |a: f64| a as u16),
        Case::map2("half.i16_add_mul", "a[i] * b[i] + a[i]", (&a, &b), |a: i16, b: i16| {
            a.wrapping_mul(b).wrapping_add(a)
        }),
        Case::map2("half.u16_sub_xor", "(a[i] - b[i]) ^ b[i]", (&ua, &ub), |a: u16, b: u16| a.wrapping_sub(b) ^ b),
        Case::map2("half.i16_compare", "u32(a[i] < b[i]) + 2u * u32(a[i] == b[i])", (&a, &b), |a: i16, b: i16| {
            u32::from(a < b) + 2 * u32::from(a == b)
        }),
        Case::map1("half.i16_to_i32", "i32(a[i]) * 3", &a, |a: i16| i32::from(a) * 3),
        Case::map1("half.i16_to_u32", "u32(a[i])", &a, |a: i16| i32::from(a) as u32),
        Case::map1("half.i32_to_i16", "i16(a[i])", &crate::inputs::signed(&words(192, 128)), |a| a as i16),
        Case::map1("half.u32_to_u16", "u16(a[i] >> 3u)", &words(193, 128), |a| (a >> 3) as u16),
    ]
}
