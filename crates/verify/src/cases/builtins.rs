//! Numeric builtins of float32 within WGSL's accuracy table. Where the table says "inherited from" an expression, the
//! allowed error is worked out from that expression beside the case.

use std::f64::consts::{LN_2, PI};

use super::float::{near1, near2, ulp1, wide};
use crate::case::Case;
use crate::check::{Near, ulp32};
use crate::inputs::{floats, spread};

pub fn cases() -> Vec<Case> {
    let mut cases = exponential();
    cases.extend(trigonometric());
    cases.extend(hyperbolic());
    cases.extend(geometric());
    cases.extend(interpolation());
    cases
}

/// The table's error of log and log2: absolute 2^-21 within [0.5, 2], else 3 ULP.
pub fn log_error(x: f64, result: f64) -> f64 {
    if (0.5..=2.0).contains(&x) { 2.0_f64.powi(-21) } else { 3.0 * ulp32(result) }
}

/// The table's error of exp and exp2: 3 + 2 |x| ULP.
pub fn exp_error(x: f64, result: f64) -> f64 {
    (3.0 + 2.0 * x.abs()) * ulp32(result)
}

/// The error of `pow(x, y)`, inherited from `exp2(y * log2(x))`.
pub fn pow_error(x: f64, y: f64) -> f64 {
    let exponent = y * x.log2();
    let off = y.abs() * log_error(x, x.log2()) + ulp32(exponent);
    let result = x.powf(y);
    exp_error(exponent, result) + result * ((off * LN_2).exp() - 1.0)
}

fn exponential() -> Vec<Case> {
    let a = floats(51, 512, -20.0, 20.0);
    let positive: Vec<f32> = spread(52, 512, -60.0, 60.0).iter().map(|x| x.abs()).collect();
    let near_one = floats(53, 512, 0.5, 2.0);
    let logs = [positive.clone(), near_one.clone()].concat();
    let bases: Vec<f32> = spread(54, 512, -6.0, 6.0).iter().map(|x| x.abs()).collect();
    let powers = floats(55, 512, -8.0, 8.0);
    let pow = bases.iter().zip(&powers).map(|(&x, &y)| (wide(x).powf(wide(y)), pow_error(wide(x), wide(y))));
    let table = |f: fn(f64) -> f64, error: fn(f64, f64) -> f64, a: &[f32]| {
        Near::each("WGSL's table", a.iter().map(|&x| (f(wide(x)), error(wide(x), f(wide(x))))).collect::<Vec<_>>())
    };
    vec![
        near1("builtins.exp", "exp(a[i])", &a, table(f64::exp, exp_error, &a)),
        near1("builtins.exp2", "exp2(a[i])", &a, table(f64::exp2, exp_error, &a)),
        near1("builtins.log", "log(a[i])", &logs, table(f64::ln, log_error, &logs)),
        near1("builtins.log2", "log2(a[i])", &logs, table(f64::log2, log_error, &logs)),
        near2("builtins.pow", "pow(a[i], b[i])", (&bases, &powers), Near::each("exp2(y log2(x))", pow)),
        ulp1("builtins.inverse_sqrt", "inverseSqrt(a[i])", &positive, 2.0, |x| 1.0 / x.sqrt()),
        // 1 / inverseSqrt(x): 2 ULP through a reciprocal, then 2.5.
        ulp1("builtins.sqrt", "sqrt(a[i])", &positive, 5.0, f64::sqrt),
        Case::map1(
            "builtins.sqrt_of_squares",
            "round(sqrt(a[i] * a[i]))",
            &(0..200).map(|i| i as f32).collect::<Vec<_>>(),
            |x| x,
        ),
        ulp1("builtins.degrees", "degrees(a[i])", &a, 2.0, f64::to_degrees),
        ulp1("builtins.radians", "radians(a[i])", &a, 2.0, f64::to_radians),
    ]
}

fn trigonometric() -> Vec<Case> {
    let a: Vec<f32> = floats(56, 512, -PI, PI).into_iter().filter(|x| wide(*x).abs() <= PI).collect();
    let sin = Near::absolute(a.iter().map(|&x| wide(x).sin()), 2.0_f64.powi(-11));
    let cos = Near::absolute(a.iter().map(|&x| wide(x).cos()), 2.0_f64.powi(-11));
    let away: Vec<f32> = floats(57, 512, -1.2, 1.2);
    // sin(x) / cos(x), each off by 2^-11.
    let tan = away.iter().map(|&x| {
        let (s, c) = wide(x).sin_cos();
        let e = 2.0_f64.powi(-11);
        (s / c, e / c + e * s.abs() / (c * (c - e)) + 2.5 * ulp32(s / c))
    });
    let unit = floats(58, 512, -1.0, 1.0);
    let arc = |f: fn(f64) -> f64, absolute: f64| {
        // The worse of the absolute bound and 4096 ULP of atan2.
        unit.iter().map(|&x| (f(wide(x)), absolute.max(4096.0 * ulp32(f(wide(x)))))).collect::<Vec<_>>()
    };
    let any = spread(59, 512, -20.0, 20.0);
    let other = spread(60, 512, -20.0, 20.0);
    let atan2 = Near::ulp(any.iter().zip(&other).map(|(&y, &x)| wide(y).atan2(wide(x))), 4096.0);
    vec![
        near1("builtins.sin", "sin(a[i])", &a, sin),
        near1("builtins.cos", "cos(a[i])", &a, cos),
        near1("builtins.tan", "tan(a[i])", &away, Near::each("sin(x) / cos(x)", tan)),
        near1("builtins.asin", "asin(a[i])", &unit, Near::each("absolute 6.81e-5 or atan2", arc(f64::asin, 6.81e-5))),
        near1("builtins.acos", "acos(a[i])", &unit, Near::each("absolute 6.77e-5 or atan2", arc(f64::acos, 6.77e-5))),
        ulp1("builtins.atan", "atan(a[i])", &any, 4096.0, f64::atan),
        near2("builtins.atan2", "atan2(a[i], b[i])", (&any, &other), atan2),
    ]
}

/// The error of sinh and cosh, `(exp(x) ± exp(-x)) / 2`: those of both exponentials add.
fn hyperbolic_error(x: f64) -> f64 {
    0.5 * (exp_error(x, x.exp()) + exp_error(x, (-x).exp())) + ulp32(x.abs().exp())
}

/// The error of tanh: absolute 1e-5, or what is inherited from `sinh(x) / cosh(x)`.
pub fn tanh_error(x: f64, result: f64) -> f64 {
    // Beyond, exp itself overflows, and 1e-5 is all there is to hold.
    if x.abs() > 80.0 {
        return 1e-5;
    }
    (hyperbolic_error(x) / x.cosh() * (1.0 + result.abs()) + 2.5 * ulp32(result)).max(1e-5)
}

fn hyperbolic() -> Vec<Case> {
    let a = floats(61, 512, -9.0, 9.0);
    let both = hyperbolic_error;
    let sinh = a.iter().map(|&x| (wide(x).sinh(), both(wide(x))));
    let cosh = a.iter().map(|&x| (wide(x).cosh(), both(wide(x))));
    let tanh = a.iter().map(|&x| (wide(x).tanh(), tanh_error(wide(x), wide(x).tanh())));
    // Inherited from log: an argument off by a few ULP, then the error of log itself.
    let from_log = |argument: f64, n: f64, result: f64| {
        n * ulp32(argument) / argument + log_error(argument, result).max(ulp32(result))
    };
    // x + sqrt(x^2 + 1) cancels for negative x, so its relative error grows: positive x only, and both signs small.
    let positive: Vec<f32> = spread(62, 512, -8.0, 8.0).iter().map(|x| x.abs()).collect();
    let asinh = positive.iter().map(|&x| {
        let x = wide(x);
        (x.asinh(), from_log(x + (x * x + 1.0).sqrt(), 8.0, x.asinh()))
    });
    let above: Vec<f32> = positive.iter().map(|x| 1.0 + x).collect();
    let acosh = above.iter().map(|&x| {
        let x = wide(x);
        let root = (x * x - 1.0).sqrt();
        // x^2 - 1 cancels near 1: an absolute error of 2 ULP of x^2 under the root.
        let off = (2.0 * ulp32(x * x)) / root + 8.0 * ulp32(x + root);
        (x.acosh(), off / (x + root) + from_log(x + root, 1.0, x.acosh()))
    });
    let within = floats(63, 512, -0.99, 0.99);
    let atanh = within.iter().map(|&x| {
        let x = wide(x);
        let q = (1.0 + x) / (1.0 - x);
        (x.atanh(), 0.5 * from_log(q, 5.0, q.ln()) + ulp32(1.0) / (1.0 - x.abs()))
    });
    vec![
        near1("builtins.sinh", "sinh(a[i])", &a, Near::each("(exp(x) - exp(-x)) / 2", sinh)),
        near1("builtins.cosh", "cosh(a[i])", &a, Near::each("(exp(x) + exp(-x)) / 2", cosh)),
        near1("builtins.tanh", "tanh(a[i])", &a, Near::each("absolute 1e-5 or sinh / cosh", tanh)),
        near1("builtins.asinh", "asinh(a[i])", &positive, Near::each("log(x + sqrt(x x + 1))", asinh)),
        near1("builtins.acosh", "acosh(a[i])", &above, Near::each("log(x + sqrt(x x - 1))", acosh)),
        near1("builtins.atanh", "atanh(a[i])", &within, Near::each("log((1 + x) / (1 - x)) / 2", atanh)),
    ]
}

type Vec3 = [f64; 3];

fn dot(a: Vec3, b: Vec3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn rows(v: &[f32]) -> Vec<Vec3> {
    v.chunks(4).map(|c| [wide(c[0]), wide(c[1]), wide(c[2])]).collect()
}

/// Vectors with components in [-2, 2]: all intermediate values stay below 16, all results are compared with an
/// absolute error of a few units in the last place there.
fn geometric() -> Vec<Case> {
    let a = floats(64, 1024, -2.0, 2.0);
    let b: Vec<f32> = floats(65, 1024, -2.0, 2.0);
    let (va, vb) = (rows(&a), rows(&b));
    let bound = 16.0 * ulp32(8.0);
    let scalar = |name: &str, expression: &str, oracle: fn(Vec3, Vec3) -> f64| {
        let expected = va.iter().zip(&vb).map(|(&a, &b)| oracle(a, b));
        Case::each(format!("builtins.{name}"), expression)
            .read("a: array<vec3f>", &a)
            .read("b: array<vec3f>", &b)
            .write_near("out", Near::absolute(expected, bound))
            .invocations(va.len())
    };
    let vector = |name: &str, expression: &str, allowed: f64, oracle: fn(Vec3, Vec3) -> Vec3| {
        let expected = va.iter().zip(&vb).flat_map(|(&a, &b)| {
            let [x, y, z] = oracle(a, b);
            [x, y, z, 0.0]
        });
        Case::each(format!("builtins.{name}"), expression)
            .read("a: array<vec3f>", &a)
            .read("b: array<vec3f>", &b)
            .write_near("out: array<vec3f>", Near::absolute(expected, allowed))
            .invocations(va.len())
    };
    fn scale(s: f64, a: Vec3) -> Vec3 {
        a.map(|x| s * x)
    }
    fn plus(a: Vec3, b: Vec3) -> Vec3 {
        [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
    }
    fn unit(a: Vec3) -> Vec3 {
        scale(1.0 / dot(a, a).sqrt(), a)
    }
    vec![
        scalar("dot_vec3", "dot(a[i], b[i])", dot),
        scalar("dot_vec2", "dot(a[i].xy, b[i].zy)", |a, b| a[0] * b[2] + a[1] * b[1]),
        scalar("length_vec3", "length(a[i])", |a, _| dot(a, a).sqrt()),
        scalar("length_scalar", "length(a[i].y)", |a, _| a[1].abs()),
        scalar("distance", "distance(a[i], b[i])", |a, b| {
            let d = plus(a, scale(-1.0, b));
            dot(d, d).sqrt()
        }),
        vector("cross", "cross(a[i], b[i])", bound, |a, b| {
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        }),
        vector("normalize", "normalize(a[i])", bound, |a, _| unit(a)),
        vector("face_forward", "faceForward(a[i], b[i], vec3f(0.5, 1.0, -0.25))", 0.0, |a, b| {
            if dot(b, [0.5, 1.0, -0.25]) < 0.0 { a } else { scale(-1.0, a) }
        }),
        vector("reflect", "reflect(a[i], normalize(b[i]))", 4.0 * bound, |a, b| {
            plus(a, scale(-2.0 * dot(unit(b), a), unit(b)))
        }),
        // At a grazing angle the root takes the error of its argument: k is bounded away from zero by eta = 0.5.
        vector("refract", "refract(normalize(a[i]), normalize(b[i]), 0.5)", 4.0 * bound, |a, b| {
            let (a, b, eta) = (unit(a), unit(b), 0.5);
            let k = 1.0 - eta * eta * (1.0 - dot(b, a) * dot(b, a));
            plus(scale(eta, a), scale(-(eta * dot(b, a) + k.sqrt()), b))
        }),
        Case::each(
            "builtins.refract_total_reflection",
            "refract(vec3f(1.0, 0.0, 0.0), vec3f(0.0, 1.0, 0.0), 1.0 + a[i]) + vec3f(1.0, 2.0, 3.0)",
        )
        .read("a", [1.0_f32, 2.0, 3.0, 4.0])
        .write("out: array<vec3f>", [1.0_f32, 2.0, 3.0, 0.0].repeat(4)),
    ]
}

fn interpolation() -> Vec<Case> {
    let a = floats(66, 512, -4.0, 4.0);
    let b = floats(67, 512, -4.0, 4.0);
    let both = |f: fn(f64, f64) -> f64, e: f64| {
        Near::absolute(a.iter().zip(&b).map(|(&a, &b)| f(wide(a), wide(b))).collect::<Vec<_>>(), e)
    };
    let bound = 4.0 * ulp32(16.0);
    vec![
        near2("builtins.mix", "mix(a[i], b[i], 0.375)", (&a, &b), both(|a, b| a * 0.625 + b * 0.375, bound)),
        near2(
            "builtins.mix_extrapolates",
            "mix(2.0, a[i], b[i])",
            (&a, &b),
            both(|a, b| 2.0 * (1.0 - b) + a * b, bound),
        ),
        near2(
            "builtins.smoothstep",
            "smoothstep(-2.0, 3.0, a[i]) + step(a[i], b[i])",
            (&a, &b),
            both(
                |a, b| {
                    let t = ((a + 2.0) / 5.0).clamp(0.0, 1.0);
                    t * t * (3.0 - 2.0 * t) + if a <= b { 1.0 } else { 0.0 }
                },
                bound,
            ),
        ),
        near2("builtins.fma", "fma(a[i], b[i], 0.1)", (&a, &b), both(|a, b| a * b + wide(0.1_f32), bound)),
        Case::each("builtins.mix_vec4_scalar", "mix(a[i], b[i], 0.25)")
            .read("a: array<vec4f>", &a)
            .read("b: array<vec4f>", &b)
            .write_near("out: array<vec4f>", both(|a, b| a * 0.75 + b * 0.25, bound))
            .invocations(128),
        Case::each("builtins.clamp_step_vec2", "clamp(a[i], vec2f(-1.0, 0.0), vec2f(1.0, 2.0)) + step(b[i], a[i])")
            .read("a: array<vec2f>", &a)
            .read("b: array<vec2f>", &b)
            .write_near(
                "out: array<vec2f>",
                Near::ulp(
                    a.iter().zip(&b).enumerate().map(|(k, (&a, &b))| {
                        let (low, high) = if k % 2 == 0 { (-1.0, 1.0) } else { (0.0, 2.0) };
                        wide(a).clamp(low, high) + if b <= a { 1.0 } else { 0.0 }
                    }),
                    1.0,
                ),
            )
            .invocations(256),
        ulp1("builtins.vector_exp2_of_components", "exp2(vec2f(floor(a[i]), 1.0)).x", &a, 12.0, |x| x.floor().exp2()),
    ]
}
