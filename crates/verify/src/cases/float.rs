//! float32: operators, comparisons, conversions, rounding, and the parts of a number. Tolerances are those of WGSL's
//! accuracy table: "correctly rounded" there means either neighbour, so one unit in the last place.

use super::integer::{COMPARE, compare};
use crate::case::Case;
use crate::check::{Near, ulp32};
use crate::inputs::{Random, floats, spread};

pub fn cases() -> Vec<Case> {
    let mut cases = operators();
    cases.extend(rounding());
    cases.extend(parts());
    cases.extend(conversions());
    cases.extend(vectors());
    cases
}

pub fn wide(x: f32) -> f64 {
    f64::from(x)
}

/// `out[i] = expression` of `a[i]`, within `n` ULP of `oracle`.
pub fn ulp1(name: &str, expression: &str, a: &[f32], n: f64, oracle: impl Fn(f64) -> f64) -> Case {
    near1(name, expression, a, Near::ulp(a.iter().map(|&a| oracle(wide(a))), n))
}

/// `out[i] = expression` of `a[i]`, near `expected`.
pub fn near1(name: &str, expression: &str, a: &[f32], expected: Near) -> Case {
    Case::each(name, expression).read("a", a).write_near("out", expected).invocations(a.len())
}

/// `out[i] = expression` of `a[i]` and `b[i]`, near `expected`.
pub fn near2(name: &str, expression: &str, (a, b): (&[f32], &[f32]), expected: Near) -> Case {
    Case::each(name, expression).read("a", a).read("b", b).write_near("out", expected).invocations(a.len())
}

fn operators() -> Vec<Case> {
    let a = spread(31, 512, -30.0, 30.0);
    let b = spread(32, 512, -30.0, 30.0);
    type Oracle = fn(f64, f64) -> f64;
    let table: [(&str, &str, f64, Oracle); 6] = [
        ("add", "a[i] + b[i]", 1.0, |a, b| a + b),
        ("sub", "a[i] - b[i]", 1.0, |a, b| a - b),
        ("mul", "a[i] * b[i]", 1.0, |a, b| a * b),
        ("div", "a[i] / b[i]", 2.5, |a, b| a / b),
        ("min", "min(a[i], b[i])", 0.0, f64::min),
        ("max", "max(a[i], b[i])", 0.0, f64::max),
    ];
    let pairs = || a.iter().zip(&b).map(|(&a, &b)| (wide(a), wide(b)));
    let mut cases: Vec<Case> = table
        .map(|(name, expression, n, oracle)| {
            let expected = Near::ulp(pairs().map(|(a, b)| oracle(a, b)), n);
            near2(&format!("float.{name}"), expression, (&a, &b), expected)
        })
        .into();
    // x - y * trunc(x / y): a quotient off by 2.5 ULP may come out one whole number apart only near an integer; numbers
    // whose quotient is far from one and small enough are compared.
    let b_rem: Vec<f32> = (0..512).map(|i| (a[i].abs() / (1.5 + (i % 40) as f32)).copysign(b[i])).collect();
    let rem = a.iter().zip(&b_rem).map(|(&a, &b)| (wide(a) % wide(b), 4.0 * ulp32(wide(a))));
    cases.push(near2("float.rem", "a[i] % b[i]", (&a, &b_rem), Near::each("inherited from x - y * trunc(x / y)", rem)));
    let small = floats(33, 512, -8.0, 8.0);
    let mut equalish = floats(34, 512, -8.0, 8.0);
    equalish[..200].copy_from_slice(&small[..200]);
    cases.push(Case::map2("float.compare", COMPARE, (&small, &equalish), compare::<f32>));
    cases.push(Case::map1("float.negate", "-a[i]", &a, |a| -a));
    cases.push(Case::map2("float.select", "select(a[i], b[i], a[i] < b[i])", (&small, &equalish), f32::max));
    // Products and sums of small integers are exact, contracted or not.
    let whole: Vec<f32> = floats(35, 512, -1000.0, 1000.0).iter().map(|x| x.trunc()).collect();
    let more: Vec<f32> = floats(36, 512, -1000.0, 1000.0).iter().map(|x| x.trunc()).collect();
    cases.push(Case::map2("float.exact_integers", "(a[i] * b[i] + a[i]) - 3.0 * b[i]", (&whole, &more), |a, b| {
        a * b + a - 3.0 * b
    }));
    cases.push(Case::map2("float.fma_exact", "fma(a[i], b[i], a[i])", (&whole, &more), |a, b| a * b + a));
    let compound = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n \
                    var x = a[id.x]; x += 2.0; x *= b[id.x]; x -= a[id.x]; x /= 4.0; out[id.x] = x;\n}";
    cases.push(
        Case::new("float.compound_assignment", compound)
            .read("a", &whole)
            .read("b", &more)
            .write("out", whole.iter().zip(&more).map(|(&a, &b)| ((a + 2.0) * b - a) / 4.0).collect::<Vec<f32>>())
            .invocations(512),
    );
    cases
}

/// Halves, quarters and large numbers of both signs.
fn awkward() -> Vec<f32> {
    let mut values: Vec<f32> = (-40..40).map(|i| i as f32 / 4.0).collect();
    values.extend([0.499_999_97, -0.499_999_97, 8_388_607.5, -8_388_607.5, 8_388_609.0, 1e10, -1e10, 16_777_216.0]);
    values.extend(floats(37, 168, -100.0, 100.0));
    values
}

fn rounding() -> Vec<Case> {
    type Oracle = fn(f32) -> f32;
    let table: [(&str, &str, Oracle); 8] = [
        ("floor", "floor(a[i])", f32::floor),
        ("ceil", "ceil(a[i])", f32::ceil),
        ("trunc", "trunc(a[i])", f32::trunc),
        ("round_ties_to_even", "round(a[i])", f32::round_ties_even),
        ("abs", "abs(a[i])", f32::abs),
        ("sign", "sign(a[i])", |x| if x == 0.0 { 0.0 } else { x.signum() }),
        ("saturate", "saturate(a[i])", |x| x.clamp(0.0, 1.0)),
        ("step", "step(2.25, a[i])", |x| if 2.25 <= x { 1.0 } else { 0.0 }),
    ];
    let a = awkward();
    let mut cases: Vec<Case> = table.map(|(name, e, oracle)| Case::map1(format!("float.{name}"), e, &a, oracle)).into();
    cases.push(ulp1("float.fract", "fract(a[i])", &a, 1.0, |x| x - x.floor()));
    cases.push(Case::map1("float.clamp", "clamp(a[i], -3.5, 7.25)", &a, |x| x.clamp(-3.5, 7.25)));
    cases
}

fn parts() -> Vec<Case> {
    let a = [awkward(), spread(38, 256, -100.0, 100.0)].concat();
    let frexp = |x: f32| -> (f32, i32) {
        if x == 0.0 {
            return (0.0, 0);
        }
        let exponent = ((x.to_bits() >> 23) & 0xFF) as i32 - 126;
        (f32::from_bits(x.to_bits() & 0x807F_FFFF | 126 << 23), exponent)
    };
    let exponents: Vec<i32> = (0..a.len() as i32).map(|i| i % 41 - 20).collect();
    let scaled = a.iter().zip(&exponents).map(|(&a, &e)| (f64::from(a) * 2.0_f64.powi(e)) as f32);
    let whole = a.len() / 2 * 2;
    vec![
        Case::map1("float.modf_fract", "modf(a[i]).fract", &a, |x| x - x.trunc()),
        Case::map1("float.modf_whole", "modf(a[i]).whole", &a, f32::trunc),
        Case::map1("float.frexp_fract", "frexp(a[i]).fract", &a, |x| frexp(x).0),
        Case::map1("float.frexp_exp", "frexp(a[i]).exp", &a, |x| frexp(x).1),
        Case::each("float.frexp_modf_vec2", "vec2f(vec2f(frexp(a[i]).exp)) + modf(a[i]).whole")
            .read("a: array<vec2f>", &a[..whole])
            .write_near(
                "out: array<vec2f>",
                Near::ulp(a[..whole].iter().map(|&x| f64::from(frexp(x).1) + f64::from(x.trunc())), 1.0),
            )
            .invocations(whole / 2),
        Case::each("float.ldexp", "ldexp(a[i], e[i])")
            .read("a", &a)
            .read("e", &exponents)
            .write("out", scaled.collect::<Vec<f32>>())
            .invocations(a.len()),
        Case::map1("float.ldexp_of_frexp", "ldexp(frexp(a[i]).fract, frexp(a[i]).exp)", &a, |x| x),
        // Either neighbour: the direction of rounding is open.
        near1(
            "float.quantize_to_f16",
            "quantizeToF16(a[i])",
            &floats(39, 256, -60000.0, 60000.0),
            Near::each(
                "either float16 neighbour",
                floats(39, 256, -60000.0, 60000.0).iter().map(|&x| (wide(x), crate::check::ulp16(wide(x)))),
            ),
        ),
        Case::map1(
            "float.quantize_exact",
            "quantizeToF16(a[i])",
            &(-100..100).map(|i| i as f32 / 8.0).collect::<Vec<_>>(),
            |x| x,
        ),
    ]
}

fn conversions() -> Vec<Case> {
    let mut random = Random::new(40);
    let mut a = vec![
        0.0,
        0.5,
        0.99,
        1.0,
        1.5,
        255.9,
        16_777_217.0,
        2_147_483_520.0,
        2_147_483_648.0,
        3e9,
        4_294_967_040.0,
        4_294_967_296.0,
        1e20,
        f32::MAX,
    ];
    a.extend((0..100).map(|_| (random.unit() * 1e5) as f32));
    let a: Vec<f32> = a.iter().flat_map(|&x| [x, -x]).collect();
    let i: Vec<i32> = crate::inputs::signed(&crate::inputs::words(41, 200));
    vec![
        // The largest float32 below 2^31 and 2^32 is where the conversion stops.
        Case::map1("float.to_i32_saturates", "i32(a[i])", &a, |x| (x as i32).min(2_147_483_520)),
        Case::map1("float.to_u32_saturates", "u32(a[i])", &a, |x| (x as u32).min(4_294_967_040)),
        Case::map1("float.to_bool", "select(2.0, 3.0, bool(a[i]))", &a, |x| if x == 0.0 { 2.0_f32 } else { 3.0 }),
        Case::each("float.from_i32", "f32(a[i])")
            .read("a", &i)
            .write_near("out", Near::ulp(i.iter().map(|&i| f64::from(i)), 1.0))
            .invocations(200),
        Case::each("float.from_u32", "f32(a[i])")
            .read("a", i.iter().map(|&i| i as u32).collect::<Vec<u32>>())
            .write_near("out", Near::ulp(i.iter().map(|&i| f64::from(i as u32)), 1.0))
            .invocations(200),
        Case::map1("float.from_small_i32", "f32(a[i] >> 8u)", &i, |i| (i >> 8) as f32),
        Case::map1("float.from_bool", "f32(a[i] > 0) + 0.5", &i, |i| if i > 0 { 1.5_f32 } else { 0.5 }),
        Case::each("float.vector_conversion", "vec4i(a[i])")
            .read("a: array<vec4f>", &a[..a.len() / 4 * 4])
            .write(
                "out: array<vec4i>",
                a[..a.len() / 4 * 4].iter().map(|&x| (x as i32).min(2_147_483_520)).collect::<Vec<_>>(),
            )
            .invocations(a.len() / 4),
    ]
}

fn vectors() -> Vec<Case> {
    let a = floats(42, 512, -4.0, 4.0);
    let b = floats(43, 512, 0.5, 4.0);
    type Oracle = fn(f64, f64) -> f64;
    let table: [(&str, &str, &str, f64, Oracle); 5] = [
        ("vec2f", "add", "a[i] + b[i]", 1.0, |a, b| a + b),
        ("vec4f", "mul", "a[i] * b[i]", 1.0, |a, b| a * b),
        ("vec4f", "div", "a[i] / b[i]", 2.5, |a, b| a / b),
        ("vec2f", "max", "max(a[i], b[i])", 0.0, f64::max),
        ("vec4f", "scalar_operand", "2.0 * a[i] - b[i] * 0.5", 2.0, |a, b| 2.0 * a - b * 0.5),
    ];
    let mut cases: Vec<Case> = table
        .map(|(ty, name, expression, n, oracle)| {
            let expected = a.iter().zip(&b).map(|(&a, &b)| (oracle(wide(a), wide(b)), n * ulp32(16.0)));
            Case::each(format!("float.{name}_{ty}"), expression)
                .read(&format!("a: array<{ty}>"), &a)
                .read(&format!("b: array<{ty}>"), &b)
                .write_near(&format!("out: array<{ty}>"), Near::each(format!("{n} ULP at 16"), expected))
                .invocations(256)
        })
        .into();
    let at = |v: &[f32], i: usize, k: usize| wide(v[4 * i + k]);
    let rotated = (0..128).flat_map(|i| [at(&a, i, 2), at(&a, i, 1), at(&a, i, 0), 0.0]);
    cases.push(
        Case::each("float.swizzle_vec3", "a[i].zyx")
            .read("a: array<vec3f>", &a)
            .write("out: array<vec3f>", rotated.map(|x| x as f32).collect::<Vec<f32>>())
            .invocations(128),
    );
    let body = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {\n var v = a[id.x];\n \
                v.y = v.x; v[3] = v[id.x % 3u]; v[id.x % 2u] = 9.0; out[id.x] = v;\n}";
    let components = (0..128).flat_map(|i| {
        let mut v = [0, 1, 2, 3].map(|k| a[4 * i + k]);
        v[1] = v[0];
        v[3] = v[i % 3];
        v[i % 2] = 9.0;
        v
    });
    cases.push(
        Case::new("float.vector_components", body)
            .read("a: array<vec4f>", &a)
            .write("out: array<vec4f>", components.collect::<Vec<f32>>())
            .invocations(128),
    );
    cases
}
