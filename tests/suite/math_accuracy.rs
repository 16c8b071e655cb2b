//! The executor's float functions against f64, as lane loops, with and without fused multiply-add.
//!
//! Sweeps take every exponent of both signs with random mantissas, and the values where something special happens.

use cantus::spmd::math::{self, Baseline, FAST_TRIG_LIMIT, Fma};

type Unary = fn(&[f32]) -> Vec<f32>;
type Binary = fn(&[f32], &[f32]) -> Vec<f32>;

/// `(name, [(isa, lane loop)])`: the loops as the executor compiles them.
macro_rules! loops {
    (@body $function:ident $isa:ident ($($from:ident: $to:ident),+)) => {{
        let mut results = vec![0.0_f32; first!($($from),+).len()];
        for i in 0..results.len() {
            results[i] = math::$function::<$isa>($($from[i]),+);
        }
        results
    }};
    ($kind:ident, $function:ident, ($($from:ident: $to:ident),+)) => {{
        fn baseline($($from: &[f32]),+) -> Vec<f32> {
            loops!(@body $function Baseline ($($from: $to),+))
        }
        #[cfg(target_arch = "x86_64")]
        fn fused($($from: &[f32]),+) -> Vec<f32> {
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
            fn enabled($($from: &[f32]),+) -> Vec<f32> {
                loops!(@body $function Fma ($($from: $to),+))
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
                // SAFETY: the processor has what the function enables.
                unsafe { enabled($($from),+) }
            } else {
                loops!(@body $function Fma ($($from: $to),+))
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        fn fused($($from: &[f32]),+) -> Vec<f32> {
            loops!(@body $function Fma ($($from: $to),+))
        }
        (stringify!($function), [("baseline", baseline as $kind), ("fma", fused as $kind)])
    }};
}

macro_rules! first {
    ($first:ident $(, $rest:ident)*) => {
        $first
    };
}

macro_rules! unary {
    ($function:ident) => {
        loops!(Unary, $function, (x: y))
    };
}

macro_rules! binary {
    ($function:ident) => {
        loops!(Binary, $function, (a: x, b: y))
    };
}

struct Random(u64);

impl Random {
    fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn between(&mut self, low: f64, high: f64) -> f32 {
        (low + (high - low) * (f64::from(self.bits()) / 4_294_967_296.0)) as f32
    }
}

const EDGES: [f32; 22] = [
    0.0,
    1.0,
    0.5,
    2.0,
    0.999_999_94,
    1.000_000_1,
    f32::MIN_POSITIVE,
    1e-45,
    f32::MAX,
    f32::INFINITY,
    f32::NAN,
    8_388_607.5,
    8_388_608.0,
    1.5,
    2.5,
    88.722_84,
    88.722_83,
    103.972_08,
    87.336_54,
    128.0,
    149.0,
    std::f32::consts::PI,
];

fn edges() -> impl Iterator<Item = f32> {
    EDGES.into_iter().flat_map(|x| [x, -x])
}

/// 256,000 floats: every exponent, both signs; then the edges.
fn sweep(seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    let all = (0..512_u32).flat_map(|top| (0..500).map(move |_| top)).map(|top| {
        let x = f32::from_bits((top << 23) | (random.bits() >> 9));
        if x.is_nan() { 1.0 } else { x }
    });
    all.chain(edges()).collect()
}

/// 250,000 floats, evenly spread.
fn spread(seed: u64, low: f64, high: f64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..250_000).map(|_| random.between(low, high)).collect()
}

/// Error of `got` in units of the last place of `want`, the last place of a subnormal being 2^-149.
fn ulps(got: f32, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = want as f32;
    if rounded.is_infinite() || got.is_infinite() {
        // One last place either way where f32 ends.
        let near_the_end = want.is_finite() && (want.abs() / f64::from(f32::MAX) - 1.0).abs() < 4e-7;
        return if got == rounded || near_the_end { 0.0 } else { f64::INFINITY };
    }
    let exponent = (((want.abs().to_bits() >> 52) as i32) - 1023).max(-126);
    ((f64::from(got) - want) / f64::from(exponent - 23).exp2()).abs()
}

struct Limit {
    ulp: f64,
    /// An absolute error that will do as well.
    or_absolute: f64,
}

fn check(what: &str, limit: &Limit, points: impl Iterator<Item = (String, f32, f64)>) {
    let mut worst = (0.0, String::new(), 0.0_f32, 0.0_f64);
    let mut count = 0;
    for (at, got, want) in points {
        count += 1;
        let error = if (f64::from(got) - want).abs() <= limit.or_absolute { 0.0 } else { ulps(got, want) };
        if error > worst.0 {
            worst = (error, at, got, want);
        }
    }
    println!("{what}: {:.3} ULP at {} over {count} points", worst.0, worst.1);
    assert!(worst.0 <= limit.ulp, "{what}: {worst:?}");
    assert!(count >= 200_000, "{what}: only {count} points");
}

fn unary_check(function: (&str, [(&str, Unary); 2]), limit: &Limit, points: &[f32], exact: impl Fn(f64) -> f64) {
    for (isa, run) in function.1 {
        let results = run(points);
        let compared = points.iter().zip(results).map(|(&x, got)| (format!("{x:e}"), got, exact(f64::from(x))));
        check(&format!("{} {isa}", function.0), limit, compared);
    }
}

const FOUR: Limit = Limit { ulp: 4.0, or_absolute: 0.0 };
const THREE: Limit = Limit { ulp: 3.0, or_absolute: 0.0 };
const CORRECTLY_ROUNDED: Limit = Limit { ulp: 0.5, or_absolute: 0.0 };
const EXACT: Limit = Limit { ulp: 0.0, or_absolute: 0.0 };

/// The sweep, and evenly spread points where the function lives.
fn everywhere(seed: u64, low: f64, high: f64) -> Vec<f32> {
    [sweep(seed), spread(seed + 100, low, high)].concat()
}

#[test]
fn exponentials_and_logarithms() {
    unary_check(unary!(exp), &THREE, &everywhere(1, -104.0, 89.0), f64::exp);
    unary_check(unary!(exp2), &THREE, &everywhere(2, -151.0, 129.0), f64::exp2);
    unary_check(unary!(log), &THREE, &everywhere(3, 0.5, 2.0), f64::ln);
    unary_check(unary!(log2), &THREE, &everywhere(4, 0.5, 2.0), f64::log2);
}

#[test]
fn powers_of_two_are_exact() {
    for (isa, run) in unary!(exp2).1 {
        let exponents: Vec<f32> = (-149..128).map(|n| n as f32).collect();
        let powers = run(&exponents);
        for (n, power) in exponents.iter().zip(&powers) {
            assert_eq!(f64::from(*power), f64::from(*n).exp2(), "exp2({n}) {isa}");
        }
        let logs = unary!(log2).1.iter().find(|(name, _)| *name == isa).map(|(_, run)| run(&powers));
        assert_eq!(logs.as_ref(), Some(&exponents), "log2 of powers of two, {isa}");
    }
}

#[test]
fn roots() {
    unary_check(unary!(sqrt), &CORRECTLY_ROUNDED, &everywhere(5, 0.0, 4.0), f64::sqrt);
    unary_check(unary!(inverse_sqrt), &THREE, &everywhere(6, 0.0, 4.0), |x| 1.0 / x.sqrt());
}

#[test]
fn inverse_trigonometry() {
    unary_check(unary!(atan), &THREE, &everywhere(7, -4.0, 4.0), f64::atan);
    unary_check(unary!(asin), &THREE, &everywhere(8, -1.0, 1.0), f64::asin);
    unary_check(unary!(acos), &THREE, &everywhere(9, -1.0, 1.0), f64::acos);
}

#[test]
fn hyperbolic() {
    unary_check(unary!(sinh), &THREE, &everywhere(10, -90.0, 90.0), f64::sinh);
    unary_check(unary!(cosh), &THREE, &everywhere(11, -90.0, 90.0), f64::cosh);
    unary_check(unary!(tanh), &THREE, &everywhere(12, -10.0, 10.0), f64::tanh);
    unary_check(unary!(asinh), &FOUR, &everywhere(13, -10.0, 10.0), f64::asinh);
    unary_check(unary!(acosh), &FOUR, &everywhere(14, 1.0, 10.0), f64::acosh);
    unary_check(unary!(atanh), &FOUR, &everywhere(15, -1.0, 1.0), f64::atanh);
}

/// The lanes forms by way of a plain slice.
macro_rules! trig_lanes {
    ($name:ident, $lanes:ident) => {
        #[allow(non_camel_case_types, reason = "named as the function")]
        mod $name {
            use super::*;
            fn run<I: math::Isa>(x: &[f32]) -> Vec<f32> {
                // In place, as the executor may ask for.
                let mut results = x.to_vec();
                let lanes = results.as_mut_ptr();
                // SAFETY: source and destination are the same vector.
                unsafe { math::$lanes::<I>(lanes, lanes, x.len()) };
                results
            }
            pub fn both() -> (&'static str, [(&'static str, Unary); 2]) {
                (stringify!($lanes), [("baseline", run::<Baseline>), ("fma", run::<Fma>)])
            }
        }
    };
}
trig_lanes!(sines, sin_lanes);
trig_lanes!(cosines, cos_lanes);
trig_lanes!(tangents, tan_lanes);

#[test]
fn trigonometry() {
    // Beyond the fast range nothing but ULP counts; within, 1e-10 next to a zero will do.
    let next_to_zeros = Limit { ulp: 4.0, or_absolute: 1e-10 };
    let large: Vec<f32> = sweep(16).into_iter().filter(|x| x.abs() > FAST_TRIG_LIMIT || x.abs() < 1.0).collect();
    let large = [large, spread(17, 1.0e4, 1.0e6).into_iter().filter(|x| x.abs() > FAST_TRIG_LIMIT).collect()].concat();
    let fast: Vec<f32> = everywhere(18, -1.0e4, 1.0e4).into_iter().filter(|x| x.abs() <= 1.0e4).collect();
    let near = spread(19, -10.0, 10.0);
    unary_check(sines::both(), &FOUR, &large, f64::sin);
    unary_check(cosines::both(), &FOUR, &large, f64::cos);
    for points in [&fast, &near] {
        unary_check(sines::both(), &next_to_zeros, points, f64::sin);
        unary_check(cosines::both(), &next_to_zeros, points, f64::cos);
        unary_check(tangents::both(), &FOUR, points, f64::tan);
        unary_check(unary!(sin), &next_to_zeros, points, f64::sin);
        unary_check(unary!(cos), &next_to_zeros, points, f64::cos);
        unary_check(unary!(tan), &FOUR, points, f64::tan);
    }
    unary_check(tangents::both(), &FOUR, &large, f64::tan);
}

#[test]
fn lanes_of_every_length_touch_nothing_else() {
    for n in 0..200 {
        let x: Vec<f32> = (0..n).map(|i| if i % 37 == 5 { 1e30 } else { i as f32 * 0.7 }).collect();
        let mut y = vec![7.0_f32; n + 8];
        // SAFETY: y is longer than x.
        unsafe { math::sin_lanes::<Baseline>(y.as_mut_ptr(), x.as_ptr(), n) };
        for (&x, &y) in x.iter().zip(&y) {
            assert!((f64::from(y) - f64::from(x).sin()).abs() < 1e-7, "sin {x} of {n} lanes: {y}");
        }
        assert!(y[n..].iter().all(|&guard| guard == 7.0), "{n} lanes write past their end");
    }
}

fn binary_check(
    function: (&str, [(&str, Binary); 2]),
    limit: &Limit,
    a: &[f32],
    b: &[f32],
    exact: impl Fn(f64, f64) -> f64,
) {
    for (isa, run) in function.1 {
        let results = run(a, b);
        let pairs = a.iter().zip(b).zip(results);
        let compared = pairs.map(|((&a, &b), got)| (format!("({a:e}, {b:e})"), got, exact(f64::from(a), f64::from(b))));
        check(&format!("{} {isa}", function.0), limit, compared);
    }
}

#[test]
fn angles() {
    let (mut y, mut x) = (sweep(20), sweep(21));
    // The second a shuffle of itself, then near the first in size.
    let mut random = Random(22);
    for i in (1..x.len()).rev() {
        x.swap(i, random.bits() as usize % (i + 1));
    }
    let near = spread(23, -1.0, 1.0);
    y.extend(&near);
    x.extend(spread(24, -1.0, 1.0));
    let scaled = near.iter().map(|v| v * 1e-38);
    y.extend(scaled);
    x.extend(spread(25, -1e-38, 1e-38));
    binary_check(binary!(atan2), &FOUR, &y, &x, f64::atan2);

    // Every pair of special values, sign of zero included.
    let (y, x): (Vec<f32>, Vec<f32>) = edges().flat_map(|y| edges().map(move |x| (y, x))).unzip();
    for (isa, run) in binary!(atan2).1 {
        for ((&y, &x), got) in y.iter().zip(&x).zip(run(&y, &x)) {
            let want = f64::from(y).atan2(f64::from(x));
            assert!(ulps(got, want) <= 4.0, "atan2({y:e}, {x:e}) {isa}: {got:e}, not {want:e}");
            let signs_agree = want.is_nan() || got.is_sign_negative() == want.is_sign_negative();
            assert!(signs_agree, "atan2({y:e}, {x:e}) {isa}: {got:e}, not {want:e}");
        }
    }
}

#[test]
fn powers() {
    let within = Limit { ulp: 16.0, or_absolute: 0.0 };
    let logarithms = spread(26, 1e-3_f64.ln(), 1e3_f64.ln());
    let x: Vec<f32> = logarithms.iter().map(|l| f64::from(*l).exp() as f32).collect();
    binary_check(binary!(pow), &within, &x, &spread(27, -32.0, 32.0), f64::powf);
    binary_check(binary!(pow), &within, &spread(28, 0.99, 1.01), &spread(29, -9_000.0, 9_000.0), f64::powf);
    let positive: Vec<f32> = sweep(30).iter().map(|x| x.abs()).collect();
    let small: Vec<f32> = positive.iter().zip(spread(31, -1.5, 1.5).iter().cycle()).map(|(_, &y)| y).collect();
    binary_check(binary!(pow), &within, &positive, &small, f64::powf);

    let whole = edges().filter(|x| !x.is_nan() && !x.is_sign_negative()).collect::<Vec<_>>();
    let exponents: Vec<f32> = edges().filter(|y| !y.is_nan()).collect();
    let (x, y): (Vec<f32>, Vec<f32>) = whole.iter().flat_map(|&x| exponents.iter().map(move |&y| (x, y))).unzip();
    for (isa, run) in binary!(pow).1 {
        for ((&x, &y), got) in x.iter().zip(&y).zip(run(&x, &y)) {
            let want = f64::from(x).powf(f64::from(y));
            assert!(ulps(got, want) <= 16.0, "pow({x:e}, {y:e}) {isa}: {got:e}, not {want:e}");
        }
        let specials = run(&[-2.0, -2.0, f32::NAN, 1.0, f32::NAN], &[2.0, 0.0, 0.0, f32::NAN, 1.0]);
        assert!(specials[0].is_nan() && specials[4].is_nan(), "{isa}: {specials:?}");
        assert_eq!(specials[1..4], [1.0, 1.0, 1.0], "{isa}");
    }
}

#[test]
fn rounding() {
    let points = [everywhere(32, -10.0, 10.0), spread(33, -1.0e7, 1.0e7)].concat();
    unary_check(unary!(floor), &EXACT, &points, f64::floor);
    unary_check(unary!(ceil), &EXACT, &points, f64::ceil);
    unary_check(unary!(trunc), &EXACT, &points, f64::trunc);
    unary_check(unary!(round_even), &EXACT, &points, f64::round_ties_even);
    unary_check(unary!(fract), &CORRECTLY_ROUNDED, &points, |x| x - x.floor());
    for ((name, runs), exact) in [
        (unary!(floor), f32::floor as fn(f32) -> f32),
        (unary!(ceil), f32::ceil),
        (unary!(trunc), f32::trunc),
        (unary!(round_even), f32::round_ties_even),
    ] {
        for (isa, run) in runs {
            for (&x, got) in points.iter().zip(run(&points)) {
                assert!(x.is_nan() || got.to_bits() == exact(x).to_bits(), "{name}({x:e}) {isa}: {got:e}");
            }
        }
    }
}

#[test]
fn halves() {
    for bits in 0..=u16::MAX {
        let want = half::f16::from_bits(bits).to_f32();
        let got = math::f16_to_f32(bits);
        assert!(got == want && got.is_sign_negative() == want.is_sign_negative() || got.is_nan() && want.is_nan());
        assert!(math::f32_to_f16(got) == bits || want.is_nan(), "{bits:#x}");
        // The float half-way to the next, and its neighbours.
        let next = half::f16::from_bits(bits.wrapping_add(1)).to_f32();
        let middle = ((f64::from(want) + f64::from(next)) / 2.0) as f32;
        for x in [middle, middle.next_up(), middle.next_down()] {
            let rounded = half::f16::from_f32(x);
            let same = |got: half::f16| got == rounded && got.is_sign_negative() == rounded.is_sign_negative();
            assert!(x.is_nan() || same(half::f16::from_bits(math::f32_to_f16(x))), "{x:e}");
        }
    }
    for x in sweep(34) {
        let want = half::f16::from_f32(x);
        let got = half::f16::from_bits(math::f32_to_f16(x));
        assert!(got.to_bits() == want.to_bits() || x.is_nan() && got.is_nan(), "{x:e}: {got} {want}");
        let back = math::round_f16(x);
        assert!(back.to_bits() == want.to_f32().to_bits() || x.is_nan() && back.is_nan(), "{x:e}: {back:e}");
    }
}
