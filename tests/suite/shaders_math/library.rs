//! `shaders/lib/math.wgsl`, function by function.

use super::gpu::{self, Binding};
use cantus::link::Linker;

/// A kernel that maps `accurate_*` over pairs.
const PROBE: &str = "
import package::lib::math::{accurate_sin, accurate_cos, accurate_exp, accurate_log, accurate_atan2, accurate_sin_product};
@group(0) @binding(0) var<storage, read> pairs: array<vec2f>;
@group(0) @binding(1) var<storage, read_write> results: array<f32>;
@compute @workgroup_size(64)
fn probe(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&pairs) {
        let x = pairs[id.x].x;
        let y = pairs[id.x].y;
        results[id.x] = EXPRESSION;
    }
}";

fn probe(expression: &str) -> String {
    let library = include_str!("../../../shaders/lib/math.wgsl");
    let linker = Linker::new().module("package::lib::math", "math.wgsl", library);
    let linked = linker.link("probe.wgsl", &PROBE.replace("EXPRESSION", expression)).unwrap();
    linked.text().to_string()
}

fn ulp(exact: f64) -> f64 {
    let exponent = exact.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    (exponent - 23.0).exp2()
}

/// The largest error of `expression` over `pairs` on each adapter, by `measure(got, x, y)`.
fn worst(expression: &str, pairs: &[[f32; 2]], limit: f64, measure: impl Fn(f64, f64, f64) -> f64) {
    let wgsl = probe(expression);
    for gpu in gpu::all() {
        let bindings = [Binding::Input(bytemuck::cast_slice(pairs)), Binding::Output(4 * pairs.len() as u64)];
        let groups = (pairs.len() as u32).div_ceil(64);
        let out = gpu.run(&wgsl, "probe", &bindings, [groups, 1, 1]);
        let got: Vec<f32> = bytemuck::pod_collect_to_vec(&out[0]);
        let mut worst = (0.0, [0.0; 2], 0.0);
        for (&[x, y], &got) in pairs.iter().zip(&got) {
            let error = measure(f64::from(got), f64::from(x), f64::from(y));
            if error.is_nan() || error > worst.0 {
                worst = (error, [x, y], got);
            }
        }
        println!("{expression} on {}: {:.3e} at {:?}", gpu.name, worst.0, worst.1);
        assert!(worst.0 <= limit, "{expression} on {}: {worst:?} is beyond {limit:e}", gpu.name);
    }
}

/// Evenly spaced between the bounds, a few hundred thousand.
fn between(low: f32, high: f32) -> Vec<[f32; 2]> {
    let n = 300_000;
    (0..=n).map(|i| low + (high - low) * (i as f32 / n as f32)).map(|x| [x, 0.0]).collect()
}

/// Positive normal floats of all exponents.
fn positive() -> impl Iterator<Item = f32> {
    (0x0080_0000_u32..0x7f80_0000).step_by(6_841).map(f32::from_bits)
}

#[test]
fn sine_and_cosine() {
    for range in [between(-10_000.0, 10_000.0), between(-64.0, 64.0), between(-1.0, 1.0)] {
        worst("accurate_sin(x)", &range, 2e-7, |got, x, _| (got - x.sin()).abs());
        worst("accurate_cos(x)", &range, 2e-7, |got, x, _| (got - x.cos()).abs());
    }
}

#[test]
fn sine_of_a_product() {
    // The phase is given, and k is exactly 21.78125 + 0.00332567934.
    let pairs: Vec<[f32; 2]> =
        (0..300_000_u64).map(|i| [i as f32 * 1e-5, ((i * 7_919) % 100_003) as f32 * 1.6e-4 - 8.0]).collect();
    let k = f64::from(21.78125_f32) + f64::from(0.003_325_679_3_f32);
    worst("accurate_sin_product(vec2f(21.78125, 0.00332567934), x, y)", &pairs, 1.5e-6, |got, x, y| {
        (got - (k * x + y).sin()).abs()
    });
}

#[test]
fn exponential() {
    worst("accurate_exp(x)", &between(-87.3, 88.72), 3.0, |got, x, _| (got - x.exp()).abs() / ulp(x.exp()));
    worst("accurate_exp(x)", &between(-200.0, -87.4), 2e-38, |got, x, _| (got - x.exp()).abs());
}

#[test]
fn logarithm() {
    let all: Vec<[f32; 2]> = positive().map(|x| [x, 0.0]).collect();
    for range in [all, between(0.5, 2.0)] {
        worst("accurate_log(x)", &range, 3.0, |got, x, _| (got - x.ln()).abs() / ulp(x.ln()));
    }
}

#[test]
fn angle() {
    let mut pairs = vec![[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]];
    for i in 0..300_000_u32 {
        let mix = |seed: u32| (i.wrapping_mul(2_654_435_761).wrapping_add(seed)).wrapping_mul(0x9e37_79b1) >> 8;
        let part = |seed| mix(seed) as f32 / 8_388_608.0 - 1.0;
        pairs.push([part(1), part(77_777)]);
        pairs.push([part(3) * 1e-3, part(5) * 1e3]);
    }
    // Two and a half ULP of the quotient are WGSL's own allowance for the division.
    worst("accurate_atan2(y, x)", &pairs, 6.5, |got, x, y| (got - y.atan2(x)).abs() / ulp(y.atan2(x)));
}
