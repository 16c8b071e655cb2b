//! Accuracy over many points: at least 100,000 for each function, edge values included. On the CPU the shipped limits
//! hold (`strictly`); elsewhere WGSL's own table, within its ranges.

use super::builtins::{exp_error, log_error, pow_error, tanh_error};
use super::float::wide;
use crate::case::{Case, Values};
use crate::check::ulp32;
use crate::inputs::Random;

pub fn cases() -> Vec<Case> {
    vec![
        one("exp", everywhere(1, -104.0, 89.5), f64::exp, Limit::Ulp(4.0), |x, r| Some(exp_error(x, r))),
        one("log", everywhere(2, 0.4, 2.1), f64::ln, Limit::Ulp(4.0), |x, r| (x > 0.0).then(|| log_error(x, r))),
        one("tanh", everywhere(3, -10.0, 10.0), f64::tanh, Limit::Ulp(4.0), |x, r| Some(tanh_error(x, r))),
        // 1 / inverseSqrt(x): 2 ULP through a reciprocal, then 2.5.
        one("sqrt", everywhere(4, 0.0, 4.0), f64::sqrt, Limit::Rounded, |x, r| (x >= 0.0).then(|| 5.0 * ulp32(r))),
        one("sin", turns(5), f64::sin, Limit::UlpOrAbsolute(4.0, 2.0_f64.powi(-23)), in_one_turn),
        one("cos", turns(6), f64::cos, Limit::UlpOrAbsolute(4.0, 2.0_f64.powi(-23)), in_one_turn),
        atan2(),
        pow(),
    ]
}

const POINTS: usize = 1 << 16;

/// The accuracy that the CPU backend promises.
#[derive(Clone, Copy)]
enum Limit {
    Ulp(f64),
    /// The worse of the two.
    UlpOrAbsolute(f64, f64),
    /// The nearest float32, ties to even.
    Rounded,
}

/// WGSL's sin and cos say something between -π and π only.
fn in_one_turn(x: f64, _: f64) -> Option<f64> {
    (x.abs() <= std::f64::consts::PI).then(|| 2.0_f64.powi(-11))
}

const EDGES: [f32; 26] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    1.175_494_2e-38,
    f32::MAX,
    f32::MIN,
    f32::EPSILON,
    0.999_999_94,
    1.000_000_1,
    88.722_84,
    88.722_83,
    -87.336_54,
    -103.972_08,
    -103.278_93,
    std::f32::consts::PI,
    std::f32::consts::FRAC_PI_2,
    std::f32::consts::LN_2,
    9.010_914,
    16_777_216.0,
];

/// Every magnitude and sign, then `low..high` densely.
fn everywhere(seed: u64, low: f64, high: f64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let spread = (0..POINTS as u32).map(|k| f32::from_bits(k << 16 | random.u32() >> 16));
    let mut points: Vec<f32> = EDGES.into_iter().chain(spread.filter(|x| x.is_finite())).collect();
    points.extend((0..POINTS).map(|_| (low + (high - low) * random.unit()) as f32));
    points
}

/// |x| to 1e4: evenly, within one turn, and next to the zeros of sin and cos.
fn turns(seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut points: Vec<f32> = EDGES.into_iter().filter(|x| x.abs() <= 1e4).collect();
    points.extend((0..POINTS).map(|_| (2e4 * random.unit() - 1e4) as f32));
    points.extend((0..POINTS / 2).map(|_| (7.0 * random.unit() - 3.5) as f32));
    points.extend((0..6366).flat_map(|k| {
        let zero = (f64::from(k) * std::f64::consts::FRAC_PI_2) as f32;
        [zero, -zero, zero.next_up(), zero.next_down()]
    }));
    points
}

fn one(
    name: &'static str,
    points: Vec<f32>,
    oracle: fn(f64) -> f64,
    limit: Limit,
    table: fn(f64, f64) -> Option<f64>,
) -> Case {
    let columns = points.iter().map(|&x| (wide(x), oracle(wide(x)), table(wide(x), oracle(wide(x))))).collect();
    let case = Case::each(format!("accuracy.{name}"), &format!("{name}(a[i])")).read("a", &points);
    judged(case, columns, limit, move |i| format!("{name}({:e})", points[i]))
}

/// (argument for the table's ranges, expected value, error that WGSL allows or nothing where it allows any)
type Column = (f64, f64, Option<f64>);

fn judged(
    case: Case,
    columns: Vec<Column>,
    limit: Limit,
    point: impl Fn(usize) -> String + Clone + Send + Sync + 'static,
) -> Case {
    let n = columns.len();
    let out = case.bindings.len();
    let strict = columns.clone();
    let name = point.clone();
    case.check("out", vec![0.0_f32; n], move |finals| {
        // A device may flush subnormal numbers, and assume that there is no infinity.
        let smallest = wide(f32::MIN_POSITIVE);
        let off = |(x, expected, allowed): Column, got: f32| {
            let allowed = allowed.filter(|_| expected.abs() < wide(f32::MAX) && (x == 0.0 || x.abs() >= smallest))?;
            let excess = (wide(got) - expected).abs() / allowed.max(if expected.abs() <= smallest * 1.01 { smallest } else { 0.0 });
            (excess.is_nan() || excess > 1.0).then_some(excess)
        };
        worst(finals, out, &columns, off).map_or(Ok(()), |(i, excess, count)| {
            Err(format!(
                "{}: expected {:e}, got {:e}: {excess:.2} times the error that WGSL allows ({count} of {n} are off)",
                point(i),
                columns[i].1,
                finals[out].f32s()[i]
            ))
        })
    })
    .strictly(move |finals| {
        let off = |(_, expected, _): Column, got: f32| {
            let error = strict_error(expected, got, limit);
            (error.is_nan() || error > 1.0).then_some(error)
        };
        worst(finals, out, &strict, off).map_or(Ok(()), |(i, excess, count)| {
            let (expected, got) = (strict[i].1, finals[out].f32s()[i]);
            let ulps = (wide(got) - expected).abs() / ulp32(expected);
            Err(format!(
                "{}: expected {expected:e}, got {got:e}: {ulps:.2} ULP, {excess:.2} times the limit ({count} of {n} are off)",
                name(i)
            ))
        })
    })
    .invocations(n)
}

/// The error in units of what is allowed.
fn strict_error(expected: f64, got: f32, limit: Limit) -> f64 {
    if expected.is_nan() {
        return if got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = expected as f32;
    if matches!(limit, Limit::Rounded) {
        return if got == rounded { 0.0 } else { f64::INFINITY };
    }
    if rounded.is_infinite() || got.is_infinite() {
        // Next to the largest float, a few units in the last place decide between it and infinity.
        let close = expected.abs() > wide(f32::MAX) * (1.0 - 4e-7) && expected.abs() < wide(f32::MAX) * (1.0 + 4e-7);
        return if got == rounded || close { 0.0 } else { f64::INFINITY };
    }
    let allowed = match limit {
        Limit::Ulp(n) => n * ulp32(expected),
        Limit::UlpOrAbsolute(n, absolute) => absolute.max(n * ulp32(expected)),
        Limit::Rounded => 0.0,
    };
    (wide(got) - expected).abs() / allowed
}

/// The point that is furthest off, by how much, and how many are off.
fn worst(
    finals: &[Values],
    out: usize,
    columns: &[Column],
    off: impl Fn(Column, f32) -> Option<f64>,
) -> Option<(usize, f64, usize)> {
    let found: Vec<(usize, f64)> = columns
        .iter()
        .zip(finals[out].f32s())
        .enumerate()
        .filter_map(|(i, (&column, &got))| off(column, got).map(|excess| (i, excess)))
        .collect();
    let order = |x: f64| if x.is_nan() { f64::INFINITY } else { x };
    let (i, excess) = *found.iter().max_by(|a, b| order(a.1).total_cmp(&order(b.1)))?;
    Some((i, excess, found.len()))
}

fn atan2() -> Case {
    let mut random = Random::new(7);
    let edges = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, f32::MIN_POSITIVE, f32::MAX, f32::MIN, 1e-30, -1e30, 0.5];
    let mut pairs: Vec<(f32, f32)> = edges.iter().flat_map(|&y| edges.iter().map(move |&x| (y, x))).collect();
    let mut any = || loop {
        let x = f32::from_bits(random.u32());
        if x.is_finite() {
            return x;
        }
    };
    pairs.extend((0..POINTS).map(|_| (any(), any())));
    // Ratios near one, where neither of the two vanishes.
    pairs.extend((0..POINTS).map(|_| ((16.0 * random.unit() - 8.0) as f32, (16.0 * random.unit() - 8.0) as f32)));
    let (y, x): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let columns = pairs.iter().map(|&(y, x)| {
        let expected = wide(y).atan2(wide(x));
        let normal = |v: f32| v.is_normal() && v.abs() <= 2.0_f32.powi(126);
        // Outside of its ranges, and where the quotient is not a normal number, the table says nothing.
        let quotient = (wide(y) / wide(x)).abs();
        let inside = normal(y) && normal(x) && (2.0_f64.powi(-126)..2.0_f64.powi(126)).contains(&quotient);
        (1.0, expected, inside.then(|| 4096.0 * ulp32(expected)))
    });
    let case = Case::each("accuracy.atan2", "atan2(a[i], b[i])").read("a", &y).read("b", &x);
    judged(case, columns.collect(), Limit::Ulp(4.0), move |i| format!("atan2({:e}, {:e})", y[i], x[i]))
}

fn pow() -> Case {
    let mut random = Random::new(8);
    let corners = [1e-3, 0.5, 0.999_999_94, 1.0, 1.000_000_1, 2.0, 10.0, 1e3];
    let powers = [-32.0, -1.0, -0.5, 0.0, 1e-6, 0.5, 1.0, 2.0, 3.0, 32.0];
    let mut pairs: Vec<(f32, f32)> = corners.iter().flat_map(|&x| powers.iter().map(move |&y| (x, y))).collect();
    pairs.extend((0..2 * POINTS).map(|k| {
        // Half of them evenly in x's logarithm, half next to 1, where large powers show every error of it.
        let x =
            if k % 2 == 0 { (6.0 * random.unit() - 3.0) * std::f64::consts::LN_10 } else { 2.0 * random.unit() - 1.0 };
        ((x.exp() as f32).clamp(1e-3, 1e3), (64.0 * random.unit() - 32.0) as f32)
    }));
    let (x, y): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let columns = pairs.iter().map(|&(x, y)| {
        let (x, y) = (wide(x), wide(y));
        (1.0, x.powf(y), Some(pow_error(x, y)))
    });
    let case = Case::each("accuracy.pow", "pow(a[i], b[i])").read("a", &x).read("b", &y);
    judged(case, columns.collect(), Limit::Ulp(16.0), move |i| format!("pow({:e}, {:e})", x[i], y[i]))
}
