//! NaN, infinities and the zeros: kept bit for bit where the device promises it, listed where it does not.

use cantus::num_complex::Complex;
use cantus::ops::{Binary, Expr};
use cantus::{DType, Engine};

use crate::{Numbers, by_turns, name};

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

/// Returns the mistakes of a device in a case.
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
    for engine in by_turns() {
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

type Function = (&'static str, fn(&Expr) -> Expr, fn(f64) -> f64);

/// Functions with one right answer at these values, as C99's annex F has it. Elsewhere their errors are measured, see `elementwise.rs`.
const FUNCTIONS: &[Function] = &[
    ("exp", |x| x.exp(), f64::exp),
    ("exp2", |x| x.exp2(), f64::exp2),
    ("expm1", |x| x.expm1(), f64::exp_m1),
    ("log", |x| x.log(), f64::ln),
    ("log2", |x| x.log2(), f64::log2),
    ("log10", |x| x.log10(), f64::log10),
    ("log1p", |x| x.log1p(), f64::ln_1p),
    ("sin", |x| x.sin(), f64::sin),
    ("cos", |x| x.cos(), f64::cos),
    ("tan", |x| x.tan(), f64::tan),
    ("asin", |x| x.asin(), f64::asin),
    ("acos", |x| x.acos(), f64::acos),
    ("atan", |x| x.atan(), f64::atan),
    ("sinh", |x| x.sinh(), f64::sinh),
    ("cosh", |x| x.cosh(), f64::cosh),
    ("tanh", |x| x.tanh(), f64::tanh),
    ("asinh", |x| x.asinh(), f64::asinh),
    ("acosh", |x| x.acosh(), f64::acosh),
    ("atanh", |x| x.atanh(), f64::atanh),
    ("sigmoid", |x| x.sigmoid(), |x| 1.0 / (1.0 + (-x).exp())),
    ("softplus", |x| x.softplus(), |x| if x > 80.0 { x } else { x.exp().ln_1p() }),
    ("clamp", |x| x.clamp(-1.0, 1.0), |x| x.clamp(-1.0, 1.0)),
    ("relu", |x| x.relu(), |x| if x < 0.0 { 0.0 } else { x }),
    ("sign", |x| x.sign(), |x| if x.is_nan() || x == 0.0 { x } else { x.signum() }),
    ("sqrt", |x| x.sqrt(), f64::sqrt),
    ("cbrt", |x| x.cbrt(), f64::cbrt),
    ("floor", |x| x.floor(), f64::floor),
    (
        "erf",
        |x| x.erf(),
        |x| {
            if x.is_nan() {
                x
            } else if x == -2.0 {
                -0.995_322_265
            } else {
                x.signum() * f64::from(x != 0.0)
            }
        },
    ),
    (
        "erfc",
        |x| x.erfc(),
        |x| {
            if x.is_nan() {
                x
            } else if x == -2.0 {
                1.995_322_265
            } else {
                1.0 - x.signum() * f64::from(x != 0.0)
            }
        },
    ),
    ("x^2.5", |x| x.binary(Binary::Pow, x.constant(2.5)), |x| x.powf(2.5)),
    ("x^-3", |x| x.binary(Binary::Pow, x.constant(-3.0)), |x| x.powi(-3)),
    ("x^3", |x| x.binary(Binary::Pow, x.constant(3.0)), |x| x.powi(3)),
    ("1^x", |x| x.constant(1.0).binary(Binary::Pow, x), |_| 1.0),
    ("0.5^x", |x| x.constant(0.5).binary(Binary::Pow, x), |x| 0.5_f64.powf(x)),
    ("2^x", |x| x.constant(2.0).binary(Binary::Pow, x), |x| 2.0_f64.powf(x)),
    ("(-1)^x", |x| x.constant(-1.0).binary(Binary::Pow, x), |x| (-1.0_f64).powf(x)),
];

#[test]
fn functions_of_nan_and_infinities() {
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, -2.0];
    for engine in by_turns() {
        let x = engine.tensor(&values).unwrap().expr();
        let (mut wrong, mut unsigned) = (Vec::new(), Vec::new());
        for (what, expr, plain) in FUNCTIONS {
            let got = expr(&x).eval().unwrap().to_vec::<f32>().unwrap();
            for (value, got) in values.iter().zip(got) {
                let wanted = plain(f64::from(*value)) as f32;
                let mistake = format!("{what} at {value}: {got}, not {wanted}");
                if !(same(got.abs(), wanted.abs()) || (got - wanted).abs() <= 1e-5 * wanted.abs()) {
                    wrong.push(mistake);
                } else if got.is_sign_negative() != wanted.is_sign_negative() && !wanted.is_nan() {
                    unsigned.push(mistake);
                }
            }
        }
        if ["cpu", "opencl", "cuda"].contains(&engine.selected().device.backend.as_str()) {
            wrong.append(&mut unsigned);
        } else if !unsigned.is_empty() {
            // WGSL lets a device drop the sign of a zero.
            println!("{} does not keep {} signs: {}", name(engine), unsigned.len(), unsigned.join("; "));
        }
        assert!(wrong.is_empty(), "{}: {wrong:#?}", name(engine));
    }
}

#[test]
fn comparisons_with_nan() {
    type Compared = (&'static str, fn(&Expr, &Expr) -> Expr, fn(&f32, &f32) -> bool);
    let cases: &[Compared] = &[
        ("equal", |a, b| a.equal(b), |a, b| a == b),
        ("not_equal", |a, b| a.not_equal(b), |a, b| a != b),
        ("less", |a, b| a.less(b), |a, b| a < b),
        ("less_equal", |a, b| a.less_equal(b), |a, b| a <= b),
        ("greater", |a, b| a.greater(b), |a, b| a > b),
        ("greater_equal", |a, b| a.greater_equal(b), |a, b| a >= b),
    ];
    let (a, b): (Vec<f32>, Vec<f32>) = VALUES.iter().flat_map(|&a| VALUES.iter().map(move |&b| (a, b))).unzip();
    for engine in by_turns() {
        let (x, y) = (engine.tensor(&a).unwrap().expr(), engine.tensor(&b).unwrap().expr());
        for (what, expr, plain) in cases {
            // As it is, and as the condition of a choice.
            let truth = expr(&x, &y).cast(DType::F32).eval().unwrap().to_vec::<f32>().unwrap();
            let chosen = expr(&x, &y).select(&x, &y).eval().unwrap().to_vec::<f32>().unwrap();
            for (((a, b), truth), chosen) in a.iter().zip(&b).zip(truth).zip(chosen) {
                let wanted = plain(a, b);
                assert_eq!(truth != 0.0, wanted, "{what} of {a:e} and {b:e} on {}", name(engine));
                let other = if wanted { *a } else { *b };
                assert!(
                    chosen == other || chosen.is_nan() && other.is_nan(),
                    "{a:e} {what} {b:e} chose {chosen:e} on {}",
                    name(engine)
                );
            }
        }
    }
}

#[test]
fn a_row_with_nan_has_no_softmax() {
    let values = [0.5, f32::NAN, 1.0, 2.0, 0.5, 1.0];
    for engine in by_turns() {
        let x = engine.tensor(&values).unwrap().expr().reshape(&[2, 3]);
        for (what, expr) in
            [("softmax", x.softmax(1)), ("log_softmax", x.log_softmax(1)), ("logsumexp", x.logsumexp(&[1], true) + &x)]
        {
            let got = expr.eval().unwrap().to_vec::<f32>().unwrap();
            let (first, second) = got.split_at(3);
            assert!(first.iter().all(|x| x.is_nan()), "{what} on {}: {first:?}", name(engine));
            assert!(second.iter().all(|x| x.is_finite()), "{what} on {}: {second:?}", name(engine));
        }
    }
}

#[test]
fn sines_of_large_numbers() {
    let mut numbers = Numbers::new(11);
    for engine in by_turns() {
        let mut x: Vec<f32> = (0..20_000).map(|_| numbers.float() * (numbers.below(126) as f32).exp2()).collect();
        // Close to multiples of pi, and the largest.
        x.extend([16_367_173.0 * 4.722_366_5e21, f32::MAX, -f32::MAX, 10_000.0, 10_000.001, 1e5, 1e10, 1e20, 1e30]);
        let tensor = engine.tensor(&x).unwrap().expr();
        let sines = tensor.sin().eval().unwrap().to_vec::<f32>().unwrap();
        let cosines = tensor.cos().eval().unwrap().to_vec::<f32>().unwrap();
        for ((&x, sine), cosine) in x.iter().zip(sines).zip(cosines) {
            let wide = f64::from(x);
            let fits = (f64::from(sine) - wide.sin()).abs() < 3e-7 && (f64::from(cosine) - wide.cos()).abs() < 3e-7;
            assert!(
                fits,
                "sin {x:e} = {sine}, cos = {cosine} on {}, not {} and {}",
                name(engine),
                wide.sin(),
                wide.cos()
            );
        }
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
    for engine in by_turns().iter().filter(|engine| ["cpu", "opencl"].contains(&&*engine.selected().device.backend)) {
        let numbers = cases.map(|([re, im], _)| Complex::new(re, im));
        let roots = engine.tensor(&numbers).unwrap().sqrt().eval().unwrap().to_vec::<Complex<f32>>().unwrap();
        for ((from, wanted), got) in cases.iter().zip(roots) {
            assert!(same(got.re, wanted[0]) && same(got.im, wanted[1]), "{from:?} on {}: {got}", name(engine));
        }
    }
}
