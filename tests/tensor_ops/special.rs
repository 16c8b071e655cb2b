//! NaN, infinities and the zeros: kept bit for bit where the device promises it, listed where it does not.

use cantus::Engine;
use cantus::num_complex::Complex;
use cantus::ops::Expr;

use crate::{engines, name};

const VALUES: [f32; 9] =
    [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0, -2.5, f32::MAX, f32::MIN_POSITIVE];

type Case = (&'static str, fn(&Expr, &Expr) -> Expr, fn(f32, f32) -> f32);

/// Operations with one right answer for every value, as IEEE 754 and the definitions have it.
const CASES: &[Case] = &[
    ("a + b", |a, b| a + b, |a, b| a + b),
    ("a - b", |a, b| a - b, |a, b| a - b),
    ("a b", |a, b| a * b, |a, b| a * b),
    ("a / b", |a, b| a / b, |a, b| a / b),
    ("-a", |a, _| -a, |a, _| -a),
    ("abs a", |a, _| a.abs(), |a, _| a.abs()),
    ("sqrt a", |a, _| a.sqrt(), |a, _| a.sqrt()),
    ("exp of an infinity or zero", |a, _| a.exp(), |a, _| if a.is_finite() && a != 0.0 { f32::NAN } else { a.exp() }),
    ("a, moved", |a, _| a.reshape(&[81]) * 1.0, |a, _| a),
];

/// The same value; of NaN no bits are promised.
fn same(got: f32, wanted: f32) -> bool {
    got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan()
}

/// What a device gets wrong in a case.
fn wrong(engine: &Engine, (what, expr, plain): &Case, a: &[f32], b: &[f32]) -> Vec<String> {
    let (x, y) = (engine.tensor(a).unwrap(), engine.tensor(b).unwrap());
    let got = expr(&x.expr(), &y.expr()).eval().unwrap().to_vec::<f32>().unwrap();
    let mut wrong = Vec::new();
    for ((&a, &b), &got) in a.iter().zip(b).zip(&got) {
        let wanted = plain(a, b);
        // The exponential of other values is no matter of special values.
        let other = what.starts_with("exp") && wanted.is_nan() && !a.is_nan();
        if !other && !same(got, wanted) {
            wrong.push(format!("{what} of {a:e} and {b:e}: {got:e}, not {wanted:e}"));
        }
    }
    wrong
}

#[test]
fn special_values_are_kept() {
    let pairs: Vec<(f32, f32)> = VALUES.iter().flat_map(|&a| VALUES.iter().map(move |&b| (a, b))).collect();
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
    for engine in engines() {
        let backend = engine.selected().device.backend.as_str();
        let wrong: Vec<String> = CASES.iter().flat_map(|case| wrong(engine, case, &a, &b)).collect();
        if ["cpu", "opencl", "cuda"].contains(&backend) {
            assert!(wrong.is_empty(), "{}: {wrong:#?}", name(engine));
        } else if !wrong.is_empty() {
            // WGSL lets a device assume that there is no NaN and no infinity.
            println!("{} does not keep {} of them: {}", name(engine), wrong.len(), wrong.join("; "));
        }
        let kept = |values: &[f32]| engine.tensor(values).unwrap().to_vec::<f32>().unwrap();
        assert!(kept(&a).iter().zip(&a).all(|(got, value)| got.to_bits() == value.to_bits()), "{}", name(engine));
    }
}

/// As C99's annex G has it.
#[test]
fn roots_of_complex_infinities() {
    const INF: f32 = f32::INFINITY;
    let cases = [
        ([INF, 3.0], [INF, 0.0]),
        ([INF, -3.0], [INF, -0.0]),
        ([-INF, 3.0], [0.0, INF]),
        ([-INF, -3.0], [0.0, -INF]),
        ([2.0, INF], [INF, INF]),
        ([-2.0, -INF], [INF, -INF]),
        ([-INF, INF], [INF, INF]),
        ([f32::NAN, INF], [INF, INF]),
        ([-0.0, -0.0], [0.0, -0.0]),
        ([-4.0, 0.0], [0.0, 2.0]),
        ([-4.0, -0.0], [0.0, -2.0]),
    ];
    for engine in engines().iter().filter(|engine| ["cpu", "opencl"].contains(&&*engine.selected().device.backend)) {
        let numbers = cases.map(|([re, im], _)| Complex::new(re, im));
        let roots = engine.tensor(&numbers).unwrap().sqrt().eval().unwrap().to_vec::<Complex<f32>>().unwrap();
        for ((from, wanted), got) in cases.iter().zip(roots) {
            assert!(same(got.re, wanted[0]) && same(got.im, wanted[1]), "{from:?} on {}: {got}", name(engine));
        }
    }
}
