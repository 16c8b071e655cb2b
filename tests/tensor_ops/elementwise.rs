//! Functions of elements against their definitions in float64, on every device of the machine.

use std::cmp::Ordering;

use cantus::ops::{Binary, Expr, Unary};
use cantus::{DType, Engine, Error, Tensor};

use crate::values::{self, Value, doubles, limits, sampled, supported};
use crate::{Numbers, by_turns, engines, name, seeds};

/// A function, its definition, and the numbers that it is asked for.
type Of1 = (Unary, fn(f64) -> f64, [f64; 2]);
type Of2 = (Binary, fn(f64, f64) -> f64, [[f64; 2]; 2]);

/// One row for each function of one element: [`every_function_has_a_definition`] misses the others.
const OF_ONE: &[Of1] = &[
    (Unary::Neg, |x| -x, [-1000.0, 1000.0]),
    (Unary::Abs, f64::abs, [-1000.0, 1000.0]),
    (Unary::Real, |x| x, [-1000.0, 1000.0]),
    (Unary::Imag, |_| 0.0, [-1000.0, 1000.0]),
    (Unary::Conj, |x| x, [-1000.0, 1000.0]),
    (Unary::Angle, |x| if x < 0.0 { std::f64::consts::PI } else { 0.0 }, [-1000.0, 1000.0]),
    (Unary::Sign, |x| if x == 0.0 { 0.0 } else { x.signum() }, [-3.0, 3.0]),
    (Unary::Floor, f64::floor, [-1000.0, 1000.0]),
    (Unary::Ceil, f64::ceil, [-1000.0, 1000.0]),
    (Unary::Round, f64::round_ties_even, [-8.0, 8.0]),
    (Unary::Trunc, f64::trunc, [-1000.0, 1000.0]),
    (Unary::Square, |x| x * x, [-1000.0, 1000.0]),
    (Unary::Reciprocal, |x| 1.0 / x, [0.01, 1000.0]),
    (Unary::Rsqrt, |x| 1.0 / x.sqrt(), [0.01, 1000.0]),
    (Unary::Cbrt, f64::cbrt, [-1000.0, 1000.0]),
    (Unary::Sqrt, f64::sqrt, [0.0, 1000.0]),
    (Unary::Exp, f64::exp, [-80.0, 80.0]),
    (Unary::Exp2, f64::exp2, [-120.0, 127.0]),
    (Unary::Expm1, f64::exp_m1, [-5.0, 5.0]),
    (Unary::Log, f64::ln, [1e-3, 1000.0]),
    (Unary::Log2, f64::log2, [1e-3, 1000.0]),
    (Unary::Log10, f64::log10, [1e-3, 1000.0]),
    (Unary::Log1p, f64::ln_1p, [-0.99, 10.0]),
    (Unary::Sin, f64::sin, [-1000.0, 1000.0]),
    (Unary::Cos, f64::cos, [-1000.0, 1000.0]),
    (Unary::Tan, f64::tan, [-1.4, 1.4]),
    (Unary::Asin, f64::asin, [-1.0, 1.0]),
    (Unary::Acos, f64::acos, [-1.0, 1.0]),
    (Unary::Atan, f64::atan, [-30.0, 30.0]),
    (Unary::Sinh, f64::sinh, [-11.0, 11.0]),
    (Unary::Cosh, f64::cosh, [-11.0, 11.0]),
    (Unary::Asinh, f64::asinh, [-1000.0, 1000.0]),
    (Unary::Acosh, f64::acosh, [1.0, 1000.0]),
    (Unary::Atanh, f64::atanh, [-0.9995, 0.9995]),
    (Unary::Tanh, f64::tanh, [-12.0, 12.0]),
    (Unary::Relu, |x| x.max(0.0), [-1000.0, 1000.0]),
    (Unary::Sigmoid, sigmoid, [-90.0, 90.0]),
    (Unary::Silu, |x| x * sigmoid(x), [-90.0, 90.0]),
    (Unary::Gelu, |x| 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)), [-12.0, 12.0]),
    (Unary::GeluTanh, gelu_tanh, [-12.0, 12.0]),
    (Unary::Erf, erf, [-6.0, 6.0]),
    (Unary::Erfc, libm::erfc, [-6.0, 6.0]),
    (Unary::Lgamma, libm::lgamma, [-9.9, 100.0]),
    (Unary::Digamma, digamma, [0.05, 100.0]),
    (Unary::Relu6, |x| x.clamp(0.0, 6.0), [-10.0, 10.0]),
    (Unary::Selu, |x| 1.050_700_987_355_480_5 * elu(x, 1.673_263_242_354_377_2), [-10.0, 10.0]),
    (Unary::Softplus, softplus, [-90.0, 90.0]),
    (Unary::LogSigmoid, |x| -softplus(-x), [-90.0, 90.0]),
    (Unary::Mish, |x| x * softplus(x).tanh(), [-90.0, 90.0]),
    (Unary::HardSigmoid, |x| (x / 6.0 + 0.5).clamp(0.0, 1.0), [-5.0, 5.0]),
    (Unary::HardSwish, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0), [-5.0, 5.0]),
    (Unary::IsNan, |_| 0.0, [-5.0, 5.0]),
    (Unary::IsInfinite, |_| 0.0, [-5.0, 5.0]),
    (Unary::IsFinite, |_| 1.0, [-5.0, 5.0]),
    (Unary::LogicalNot, |x| f64::from(x == 0.0), [-3.0, 3.0]),
    (Unary::BitwiseNot, |x| !(x as i64) as f64, [-1000.0, 1000.0]),
    // Of a negative number the bits depend on its width: `dtypes` has those.
    (Unary::CountOnes, |x| f64::from((x as i64).count_ones()), [0.0, 1000.0]),
];

const ANY: [[f64; 2]; 2] = [[-1000.0, 1000.0]; 2];
/// For divisions: not by 0, also of integers.
const BY_SOME: [[f64; 2]; 2] = [[-1000.0, 1000.0], [1.0, 9.0]];

/// The same for functions of two.
const OF_TWO: &[Of2] = &[
    (Binary::Add, |x, y| x + y, ANY),
    (Binary::Sub, |x, y| x - y, ANY),
    (Binary::Mul, |x, y| x * y, ANY),
    (Binary::Div, |x, y| x / y, [[-1000.0, 1000.0], [1.0, 9.0]]),
    (Binary::Pow, f64::powf, [[0.25, 8.0], [-4.0, 4.0]]),
    (Binary::Complex, |x, _| x, ANY),
    (Binary::Min, f64::min, ANY),
    (Binary::Max, f64::max, ANY),
    (Binary::Atan2, f64::atan2, ANY),
    (Binary::Hypot, f64::hypot, ANY),
    (Binary::CopySign, f64::copysign, ANY),
    (Binary::NextAfter, |x, y| f64::from(libm::nextafterf(x as f32, y as f32)), ANY),
    (Binary::Fmod, |x, y| x % y, BY_SOME),
    (Binary::Remainder, remainder, BY_SOME),
    (Binary::FloorDivide, |x, y| ((x - remainder(x, y)) / y).round(), BY_SOME),
    (Binary::LogAddExp, |x, y| x.max(y) + (-(x - y).abs()).exp().ln_1p(), [[-90.0, 90.0]; 2]),
    (Binary::Elu, elu, [[-10.0, 10.0], [0.5, 2.0]]),
    (Binary::LeakyRelu, |x, y| if x < 0.0 { x * y } else { x }, [[-10.0, 10.0], [0.0, 0.5]]),
    (Binary::LogicalAnd, |x, y| f64::from(x != 0.0 && y != 0.0), [[-2.0, 2.0]; 2]),
    (Binary::LogicalOr, |x, y| f64::from(x != 0.0 || y != 0.0), [[-2.0, 2.0]; 2]),
    (Binary::LogicalXor, |x, y| f64::from((x != 0.0) != (y != 0.0)), [[-2.0, 2.0]; 2]),
    (Binary::BitwiseAnd, |x, y| ((x as i64) & (y as i64)) as f64, ANY),
    (Binary::BitwiseOr, |x, y| ((x as i64) | (y as i64)) as f64, ANY),
    (Binary::BitwiseXor, |x, y| ((x as i64) ^ (y as i64)) as f64, ANY),
    (Binary::ShiftLeft, |x, y| ((x as i64) << (y as u32)) as f64, [[-1000.0, 1000.0], [0.0, 40.0]]),
    (Binary::ShiftRight, |x, y| ((x as i64) >> (y as u32)) as f64, [[-1000.0, 1000.0], [0.0, 40.0]]),
    (Binary::Eq, |x, y| f64::from(x == y), [[0.0, 4.0]; 2]),
    (Binary::Ne, |x, y| f64::from(x != y), [[0.0, 4.0]; 2]),
    (Binary::Lt, |x, y| f64::from(x < y), [[0.0, 4.0]; 2]),
    (Binary::Le, |x, y| f64::from(x <= y), [[0.0, 4.0]; 2]),
    (Binary::Gt, |x, y| f64::from(x > y), [[0.0, 4.0]; 2]),
    (Binary::Ge, |x, y| f64::from(x >= y), [[0.0, 4.0]; 2]),
];

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn elu(x: f64, a: f64) -> f64 {
    if x < 0.0 { a * x.exp_m1() } else { x }
}

/// With the sign of the divisor.
fn remainder(x: f64, y: f64) -> f64 {
    let rest = x % y;
    if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest }
}

/// By steps to 30, and the asymptotic series from there.
fn digamma(x: f64) -> f64 {
    if x < 0.0 {
        return digamma(1.0 - x) - std::f64::consts::PI / (std::f64::consts::PI * x).tan();
    }
    let steps = (0..30).map(|step| 1.0 / (x + f64::from(step))).sum::<f64>();
    let z = x + 30.0;
    z.ln() - 0.5 / z - 1.0 / (12.0 * z * z) + 1.0 / (120.0 * z.powi(4)) - steps
}

fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
}

/// The series near 0, the continued fraction of 1 - erf(x) elsewhere.
fn erf(x: f64) -> f64 {
    if x.abs() < 3.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..100 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return sum * 2.0 / std::f64::consts::PI.sqrt();
    }
    let a = x.abs();
    let fraction = (1..=100).rev().fold(a, |below, n| a + 0.5 * f64::from(n) / below);
    (1.0 - (-a * a).exp() / (fraction * std::f64::consts::PI.sqrt())).copysign(x)
}

#[test]
fn every_function_has_a_definition() {
    for op in Unary::ALL {
        assert_eq!(OF_ONE.iter().filter(|(known, ..)| known == op).count(), 1, "{op:?}: write its row");
    }
    for op in Binary::ALL {
        assert_eq!(OF_TWO.iter().filter(|(known, ..)| known == op).count(), 1, "{op:?}: write its row");
    }
}

/// Numbers of a dtype within a range, as float64 has them, and as a tensor.
fn operand(engine: &Engine, dtype: DType, [low, high]: [f64; 2], seed: u64) -> (Vec<f64>, Tensor) {
    let mut numbers = Numbers::new(seed);
    // Halves reach to 65,504; integers no further than their limits.
    let (low, high) = match limits(dtype) {
        Some((least, greatest)) => (low.max(least as f64), high.min(greatest as f64)),
        None if [DType::F16, DType::BF16].contains(&dtype) => (low.max(-8.0), high.min(8.0)),
        None => (low, high),
    };
    let numbers: Vec<f64> = (0..1001).map(|_| low + (f64::from(numbers.float()) + 4.0) / 8.0 * (high - low)).collect();
    let (held, tensor) = values::operand(engine, dtype, &numbers);
    (held.into_iter().map(Value::real).collect(), tensor)
}

/// Within what the table promises of float32; what is narrower is rounded once more, and f64 is as accurate; integers are exact, and wrap.
fn check(got: &Tensor, expected: &[f64], accuracy: &str, what: &str) {
    let promised = if accuracy == "exact" { 6e-8 } else { accuracy.parse::<f64>().unwrap() };
    let tolerance = match got.dtype() {
        DType::F32 | DType::Complex64 => promised,
        DType::F16 => promised + 5e-4,
        DType::BF16 => promised + 4e-3,
        DType::F64 | DType::Complex128 => 1e-14,
        _ => 0.0,
    };
    let values = doubles(got);
    assert_eq!(values.len(), expected.len(), "{what}");
    for (place, (value, expected)) in values.iter().zip(expected).enumerate() {
        let expected = match limits(got.dtype()) {
            Some(_) => Value::Whole(*expected as i128).held(got.dtype()).real(),
            None => *expected,
        };
        let near = *value == expected || (value - expected).abs() <= tolerance * expected.abs().max(1.0);
        assert!(near, "{what}[{place}]: {value}, expected {expected}");
    }
}

/// The word's own dtypes always, the others by turns.
fn taken(engine: &Engine, op: usize, dtype: DType) -> bool {
    let usual = [DType::F32, DType::F16, DType::I32, DType::U32].contains(&dtype);
    supported(engine, dtype) && (usual || sampled(engine, 16 * op + dtype as usize, 4))
}

/// The number of 16 bits next to `x` in the direction of `y`: its bits are one more, or one less.
fn next_of_bits(dtype: DType, x: f64, y: f64) -> f64 {
    let bits = |number: f64| dtype.float_bits(number).unwrap() as u16;
    let next = match x.partial_cmp(&y) {
        None => return f64::NAN,
        Some(Ordering::Equal) => return y,
        _ if x == 0.0 => bits(y) & 0x8000 | 1,
        Some(Ordering::Less) if x > 0.0 => bits(x) + 1,
        Some(Ordering::Greater) if x < 0.0 => bits(x) + 1,
        _ => bits(x) - 1,
    };
    dtype.half(next).unwrap().into()
}

#[test]
fn every_function_is_as_accurate_as_the_table_says() {
    for engine in by_turns() {
        for (op, definition, range) in seeds(engine, 0..OF_ONE.len() as u64).map(|place| &OF_ONE[place as usize]) {
            for dtype in op.dtypes().filter(|dtype| taken(engine, *op as usize, *dtype)) {
                let (x, tensor) = operand(engine, dtype, *range, 7);
                let expected: Vec<f64> = x.into_iter().map(definition).collect();
                let what = format!("{op:?} of {dtype} on {}", name(engine));
                check(&tensor.unary(*op).eval().unwrap(), &expected, op.accuracy(), &what);
            }
        }
        for (op, definition, [left, right]) in
            seeds(engine, 0..OF_TWO.len() as u64).map(|place| &OF_TWO[place as usize])
        {
            for dtype in op.dtypes().filter(|dtype| taken(engine, *op as usize, *dtype)) {
                // Powers of integers below 0 are for 1 and -1 alone.
                let whole = *op == Binary::Pow && limits(dtype).is_some();
                let (x, a) = operand(engine, dtype, *left, 8);
                let (y, b) = operand(engine, dtype, if whole { [0.0, 4.0] } else { *right }, 9);
                // The next number depends on the width.
                let definition = match (*op, dtype) {
                    (Binary::NextAfter, DType::F64) => libm::nextafter,
                    (Binary::NextAfter, DType::F16) => |x, y| next_of_bits(DType::F16, x, y),
                    (Binary::NextAfter, DType::BF16) => |x, y| next_of_bits(DType::BF16, x, y),
                    _ => *definition,
                };
                let expected: Vec<f64> = x.into_iter().zip(y).map(|(x, y)| definition(x, y)).collect();
                let what = format!("{op:?} of {dtype} on {}", name(engine));
                check(&a.binary(*op, &b).eval().unwrap(), &expected, op.accuracy(), &what);
            }
        }
    }
}

/// Functions that are about x near 0 lose none of its digits there, and overflow where their values do.
#[test]
fn small_and_large_numbers_keep_their_digits() {
    use Unary::{Asin, Asinh, Atan, Atanh, Cbrt, Erfc, Exp2, Expm1, Log1p, Log2, Log10, Sinh, Tan};
    let small: Vec<f32> = (0..60).map(|i| 10_f32.powf(-0.5 * i as f32) * if i % 2 == 0 { 0.4 } else { -0.4 }).collect();
    let large: Vec<f32> = (0..60).map(|i| 10_f32.powf(-30.0 + i as f32)).collect();
    let mild: Vec<f32> = (0..60).map(|i| 0.15 * i as f32).collect();
    let of_small = [Expm1, Log1p, Sinh, Asinh, Atanh, Tan, Asin, Atan, Cbrt];
    let of_large = [Cbrt, Log2, Log10, Asinh, Atan];
    for engine in by_turns() {
        for (ops, values) in [(&of_small[..], &small), (&of_large[..], &large), (&[Erfc, Exp2][..], &mild)] {
            let x = engine.tensor(values).unwrap();
            for op in ops {
                let (_, definition, _) = OF_ONE.iter().find(|(known, ..)| known == op).unwrap();
                let got = x.unary(*op).eval().unwrap().to_vec::<f32>().unwrap();
                for (&x, got) in values.iter().zip(got) {
                    let want = definition(f64::from(x));
                    let error = if want == 0.0 { f64::from(got).abs() } else { (f64::from(got) / want - 1.0).abs() };
                    assert!(error < 2e-6, "{op:?} of {x:e}: {got:e}, expected {want:e}, on {}", name(engine));
                }
            }
        }
    }
}

#[test]
fn roots_poles_and_signs() {
    let pi = std::f32::consts::PI;
    for engine in by_turns() {
        let two = |x: f32, y: f32, op: Binary| {
            let (x, y) = (engine.tensor(&[x]).unwrap(), engine.tensor(&[y]).unwrap());
            x.binary(op, &y).eval().unwrap().item::<f32>().unwrap()
        };
        let near = |got: f32, want: f32, what: &str| {
            assert!(
                (got - want).abs() <= 1e-6 * want.abs().max(1.0),
                "{what}: {got}, expected {want}, on {}",
                name(engine)
            );
        };
        // As Python has them.
        for (x, y, rest, quotient) in
            [(7.0, 3.0, 1.0, 2.0), (-7.0, 3.0, 2.0, -3.0), (7.0, -3.0, -2.0, -3.0), (-7.0, -3.0, -1.0, 2.0)]
        {
            near(two(x, y, Binary::Remainder), rest, "remainder");
            near(two(x, y, Binary::FloorDivide), quotient, "floor_divide");
            near(two(x, y, Binary::Fmod), x % y, "fmod");
            let (x, y) = (engine.tensor(&[x as i32]).unwrap(), engine.tensor(&[y as i32]).unwrap());
            let whole = |op: Binary| x.binary(op, &y).eval().unwrap().item::<i32>().unwrap();
            assert_eq!((whole(Binary::Remainder), whole(Binary::FloorDivide)), (rest as i32, quotient as i32));
        }
        // Far apart, where a quotient has no whole part left.
        for (x, y) in [(1e30_f32, 7.0_f32), (3.3e38, 1.1e-30), (5e-30, 3e-37), (16_777_217.0, 0.1)] {
            assert_eq!(two(x, y, Binary::Fmod), x % y, "{x:e} by {y:e} on {}", name(engine));
        }
        for (y, x, angle) in [
            (0.0, 1.0, 0.0),
            (1.0, 0.0, pi / 2.0),
            (-1.0, 0.0, -pi / 2.0),
            (0.0, -1.0, pi),
            (1.0, -1.0, 0.75 * pi),
            (-1.0, -1.0, -0.75 * pi),
            (0.0, 0.0, 0.0),
        ] {
            near(two(y, x, Binary::Atan2), angle, "atan2");
        }
        near(two(3e30, 4e30, Binary::Hypot) / 1e30, 5.0, "hypot of large numbers");
        near(two(3e-30, 4e-30, Binary::Hypot) * 1e30, 5.0, "hypot of small numbers");
        assert_eq!(two(0.0, 0.0, Binary::Hypot), 0.0);
        let gamma = engine.tensor(&[1.0_f32, 2.0, 0.5, -0.5, 3.0]).unwrap();
        let logs = gamma.lgamma().eval().unwrap().to_vec::<f32>().unwrap();
        for (got, want) in logs.iter().zip([0.0, 0.0, pi.sqrt().ln(), (2.0 * pi.sqrt()).ln(), 2.0_f32.ln()]) {
            near(*got, want, "lgamma");
        }
        let half = engine.tensor(&[-0.5_f32]).unwrap().digamma().eval().unwrap().item::<f32>().unwrap();
        near(half, digamma(-0.5) as f32, "digamma");
        let powers = engine.tensor(&[1.0_f32, 2.0, 1024.0, 0.125]).unwrap();
        assert_eq!(powers.log2().eval().unwrap().to_vec::<f32>().unwrap(), [0.0, 1.0, 10.0, -3.0]);
        let whole = engine.tensor(&[0.0_f32, 1.0, 10.0, -3.0]).unwrap();
        assert_eq!(whole.exp2().eval().unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0, 1024.0, 0.125]);
    }
}

/// On devices that keep NaN and infinity: our own executor and OpenCL do.
#[test]
fn functions_of_nan_and_infinity() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let kept = engines().iter().filter(|engine| ["cpu", "opencl"].contains(&&*engine.selected().device.backend));
    for engine in kept {
        let x = engine.tensor(&[nan, inf, -inf, 0.0, 1.0]).unwrap();
        let class = |op: Unary| {
            x.unary(op).eval().unwrap().to_vec::<bool>().unwrap().into_iter().map(u32::from).collect::<Vec<_>>()
        };
        assert_eq!(class(Unary::IsNan), [1, 0, 0, 0, 0], "{}", name(engine));
        assert_eq!(class(Unary::IsInfinite), [0, 1, 1, 0, 0], "{}", name(engine));
        assert_eq!(class(Unary::IsFinite), [0, 0, 0, 1, 1], "{}", name(engine));
        let same = |a: f32, b: f32| a == b || a.is_nan() && b.is_nan();
        let cases: [(Unary, [f32; 4]); 15] = [
            (Unary::Sign, [nan, 1.0, -1.0, 0.0]),
            (Unary::Cbrt, [nan, inf, -inf, 0.0]),
            (Unary::Log2, [nan, inf, nan, -inf]),
            (Unary::Log10, [nan, inf, nan, -inf]),
            (Unary::Log1p, [nan, inf, nan, 0.0]),
            (Unary::Asin, [nan, nan, nan, 0.0]),
            (Unary::Asinh, [nan, inf, -inf, 0.0]),
            (Unary::Acosh, [nan, inf, nan, nan]),
            (Unary::Atanh, [nan, nan, nan, 0.0]),
            (Unary::Erf, [nan, 1.0, -1.0, 0.0]),
            (Unary::Erfc, [nan, 0.0, 2.0, 1.0]),
            (Unary::Lgamma, [nan, inf, inf, inf]),
            (Unary::Digamma, [nan, inf, nan, nan]),
            (Unary::Relu6, [nan, 6.0, 0.0, 0.0]),
            (Unary::Softplus, [nan, inf, 0.0, 2.0_f32.ln()]),
        ];
        // Elsewhere their own functions begin with a limit to what is finite.
        let half_turn = std::f32::consts::FRAC_PI_2;
        let processors: [(Unary, [f32; 4]); 10] = [
            (Unary::Exp, [nan, inf, 0.0, 1.0]),
            (Unary::Expm1, [nan, inf, -1.0, 0.0]),
            (Unary::Log, [nan, inf, nan, -inf]),
            (Unary::Sqrt, [nan, inf, nan, 0.0]),
            (Unary::Tanh, [nan, 1.0, -1.0, 0.0]),
            (Unary::Sigmoid, [nan, 1.0, 0.0, 0.5]),
            (Unary::Sinh, [nan, inf, -inf, 0.0]),
            (Unary::Cosh, [nan, inf, inf, 1.0]),
            (Unary::Atan, [nan, half_turn, -half_turn, 0.0]),
            (Unary::Acos, [nan, nan, nan, half_turn]),
        ];
        let processors = processors.into_iter().filter(|_| engine.selected().device.backend == "cpu");
        for (op, want) in cases.into_iter().chain(processors) {
            let got = x.unary(op).eval().unwrap().to_vec::<f32>().unwrap();
            let fits = got.iter().zip(want).all(|(&got, want)| same(got, want) || (got - want).abs() < 1e-6);
            assert!(fits, "{op:?}: {got:?}, expected {want:?}, on {}", name(engine));
        }
        let pairs = [(inf, inf), (-inf, inf), (inf, 1.0), (1.0, -inf), (nan, 1.0), (0.0, -0.0), (-0.0, 1.0)];
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let (a, b) = (engine.tensor(&a).unwrap(), engine.tensor(&b).unwrap());
        for (op, definition) in [
            (Binary::Atan2, f32::atan2 as fn(f32, f32) -> f32),
            (Binary::Hypot, f32::hypot),
            (Binary::CopySign, f32::copysign),
            (Binary::Fmod, |x, y| x % y),
            (Binary::NextAfter, libm::nextafterf),
        ] {
            let got = a.binary(op, &b).eval().unwrap().to_vec::<f32>().unwrap();
            for (&(x, y), got) in pairs.iter().zip(got) {
                let want = definition(x, y);
                let fits = same(got, want) || (got - want).abs() < 1e-6;
                assert!(fits, "{op:?} of {x} and {y}: {got}, expected {want}, on {}", name(engine));
            }
        }
    }
}

#[test]
fn other_dtypes_are_refused_by_name() {
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let whole = engine.tensor(&[1_i32; 6]).unwrap();
    let text = whole.erf().eval().expect_err("is for floats").to_string();
    assert!(text.contains("erf of i32") && text.contains("f32, f16"), "{text}");
    let unsigned = engine.tensor(&[1_u32; 6]).unwrap();
    let text = (-&unsigned).eval().expect_err("is for signed numbers").to_string();
    assert!(text.contains("f32, f16, bf16, f64, i32"), "{text}");
}

/// Numbers between -4 and 4, the same for a seed.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut numbers = Numbers::new(seed);
    (0..count).map(|_| numbers.float()).collect()
}

fn tensor(engine: &Engine, values: &[f32], shape: &[usize]) -> Tensor {
    engine.tensor_from(values, shape).unwrap()
}

/// Within an absolute error, or the same error relative to what is expected.
fn close(got: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (place, (&got, &want)) in got.iter().zip(expected).enumerate() {
        // Not `>`: a NaN must fail.
        let near = (f64::from(got) - want).abs() <= tolerance * want.abs().max(1.0);
        assert!(near || got.is_nan() && want.is_nan(), "{what}[{place}]: {got}, expected {want}");
    }
}

#[test]
fn shapes_broadcast_as_in_numpy() {
    let shapes: [(&[usize], &[usize], &[usize]); 8] = [
        (&[5], &[5], &[5]),
        (&[4, 3], &[3], &[4, 3]),
        (&[4, 1], &[1, 3], &[4, 3]),
        (&[2, 3, 4], &[3, 1], &[2, 3, 4]),
        (&[], &[7], &[7]),
        (&[0, 3], &[3], &[0, 3]),
        (&[1], &[1], &[1]),
        (&[33, 1, 65], &[2, 65], &[33, 2, 65]),
    ];
    let at = |shape: &[usize], out: &[usize], mut place: usize| {
        let (mut index, mut step) = (0, 1);
        let offset = out.len() - shape.len();
        for axis in (0..out.len()).rev() {
            let coordinate = place % out[axis];
            place /= out[axis];
            if axis >= offset {
                let side = shape[axis - offset];
                index += if side == 1 { 0 } else { coordinate * step };
                step *= side;
            }
        }
        index
    };
    for engine in by_turns() {
        for (a, b, out) in shapes {
            let (x, y) = (numbers(1, a.iter().product()), numbers(2, b.iter().product()));
            let sum = (&Expr::from(&tensor(engine, &x, a)) - &tensor(engine, &y, b)).eval().unwrap();
            assert_eq!(sum.shape(), out);
            let count: usize = out.iter().product();
            let expected: Vec<f64> =
                (0..count).map(|place| f64::from(x[at(a, out, place)]) - f64::from(y[at(b, out, place)])).collect();
            close(&sum.to_vec::<f32>().unwrap(), &expected, 1e-6, &format!("{a:?} - {b:?} on {}", name(engine)));
        }
    }
}

#[test]
fn a_chain_is_one_kernel_with_the_result_of_its_parts() {
    for engine in by_turns() {
        let (x, w, b) = (numbers(3, 64 * 50), numbers(4, 64 * 50), numbers(5, 50));
        let (tx, tw, tb) = (tensor(engine, &x, &[64, 50]), tensor(engine, &w, &[64, 50]), tensor(engine, &b, &[50]));
        let chain = (Expr::from(&tx) * &tw + &tb).gelu().clamp(-0.5, 3.0);
        let fused = chain.eval().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(chain.wgsl().unwrap().matches("@compute").count(), 1);
        let expected: Vec<f64> = (0..x.len())
            .map(|i| {
                let v = f64::from(x[i]) * f64::from(w[i]) + f64::from(b[i % 50]);
                (0.5 * v * (1.0 + erf(v / std::f64::consts::SQRT_2))).clamp(-0.5, 3.0)
            })
            .collect();
        close(&fused, &expected, 5e-6, &name(engine));
        let product = (Expr::from(&tx) * &tw).eval().unwrap();
        let apart = (Expr::from(&product) + &tb).eval().unwrap();
        let apart = Expr::from(&apart).gelu().clamp(-0.5, 3.0).eval().unwrap().to_vec::<f32>().unwrap();
        close(&fused, &apart.iter().map(|&v| f64::from(v)).collect::<Vec<_>>(), 5e-6, &name(engine));
    }
}

#[test]
fn more_inputs_than_a_kernel_binds_take_several() {
    for engine in by_turns() {
        let inputs: Vec<Vec<f32>> = (0..17).map(|seed| numbers(seed, 40)).collect();
        let tensors: Vec<Tensor> = inputs.iter().map(|values| tensor(engine, values, &[40])).collect();
        let sum = tensors[1..].iter().fold(Expr::from(&tensors[0]), |sum, next| sum + next);
        let expected: Vec<f64> = (0..40).map(|i| inputs.iter().map(|values| f64::from(values[i])).sum()).collect();
        close(&sum.eval().unwrap().to_vec::<f32>().unwrap(), &expected, 1e-5, &name(engine));
    }
}

#[test]
fn halves_need_no_device_with_halves() {
    for engine in by_turns() {
        let values: Vec<half::f16> = numbers(9, 77).into_iter().map(half::f16::from_f32).collect();
        let x = engine.tensor_from(&values, &[7, 11]).unwrap();
        let y = (&Expr::from(&x) * &x).eval().unwrap();
        let expected: Vec<half::f16> = values.iter().map(|x| half::f16::from_f32(x.to_f32() * x.to_f32())).collect();
        assert_eq!(y.to_vec::<half::f16>().unwrap(), expected, "{}", name(engine));
        let wide = Expr::from(&x).cast(DType::F32).eval().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(wide, values.iter().map(|x| x.to_f32()).collect::<Vec<_>>());
    }
}

#[test]
fn integers_wrap_compare_and_convert() {
    for engine in by_turns() {
        let a: Vec<i32> = vec![i32::MAX, i32::MIN, -7, 0, 12];
        let b: Vec<i32> = vec![1, 1, 2, 5, 12];
        let (x, y) = (engine.tensor(&a).unwrap(), engine.tensor(&b).unwrap());
        let expr = Expr::from(&x);
        let sum = (&expr + &y).eval().unwrap().to_vec::<i32>().unwrap();
        assert_eq!(sum, a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b)).collect::<Vec<_>>());
        let less = expr.binary(Binary::Lt, &y).eval().unwrap().to_vec::<bool>().unwrap();
        assert_eq!(less, a.iter().zip(&b).map(|(a, b)| a < b).collect::<Vec<_>>());
        let larger = expr.binary(Binary::Ge, &y).select(&x, &y).eval().unwrap().to_vec::<i32>().unwrap();
        assert_eq!(larger, a.iter().zip(&b).map(|(a, b)| *a.max(b)).collect::<Vec<_>>());
        let floats = engine.tensor(&[1.9_f32, -1.9, 0.0, 100.0]).unwrap();
        let whole = Expr::from(&floats).cast(DType::I32).eval().unwrap().to_vec::<i32>().unwrap();
        assert_eq!(whole, [1, -1, 0, 100]);
    }
}

/// On devices that keep NaN, infinity and -0: our own executor and OpenCL do.
#[test]
fn nan_infinity_and_negative_zero_are_kept() {
    let kept = engines().iter().filter(|engine| ["cpu", "opencl"].contains(&&*engine.selected().device.backend));
    for engine in kept {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1.0];
        let x = engine.tensor(&values).unwrap();
        let expr = Expr::from(&x);
        let relu = expr.relu().eval().unwrap().to_vec::<f32>().unwrap();
        assert!(relu[0].is_nan() && relu[1] == f32::INFINITY && relu[2] == 0.0, "{relu:?} on {}", name(engine));
        assert!(relu[3].is_sign_negative());
        let least = expr.binary(Binary::Min, expr.constant(0.0)).eval().unwrap().to_vec::<f32>().unwrap();
        assert!(least[0].is_nan() && least[1] == 0.0 && least[2] == f32::NEG_INFINITY, "{least:?}");
        let negated = expr.negate().eval().unwrap().to_vec::<f32>().unwrap();
        assert!(negated[0].is_nan() && negated[3].to_bits() == 0, "{negated:?}");
        let powers = expr.binary(Binary::Pow, expr.constant(0.0)).eval().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(powers, [1.0; 5]);
    }
}

/// A rotation by nothing changes nothing.
#[test]
fn functions_are_exact_at_zero() {
    for engine in by_turns() {
        let values = [0.0_f32, -0.0, 3e-5, -3e-5];
        let x = Expr::from(&engine.tensor(&values).unwrap());
        let read = |expr: Expr| expr.eval().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(read(x.cos()), [1.0; 4], "cosine on {}", name(engine));
        assert_eq!(read(x.sin()), values, "sine on {}", name(engine));
        assert_eq!(read(x.tan()), values, "tangent on {}", name(engine));
        for (what, expr, zero) in [("exp", x.exp(), 1.0), ("cosh", x.cosh(), 1.0), ("tanh", x.tanh(), 0.0)] {
            assert_eq!(read(expr)[..2], [zero; 2], "{what} on {}", name(engine));
        }
    }
}

#[test]
fn powers_follow_numpy() {
    let cases = [(-2.0_f32, 3.0_f32), (-2.0, 2.0), (2.0, 0.5), (0.0, 2.0), (9.0, -0.5), (-8.0, 0.5), (1.5, 20.0)];
    for engine in by_turns() {
        let (a, b): (Vec<f32>, Vec<f32>) = cases.into_iter().unzip();
        let (x, y) = (engine.tensor(&a).unwrap(), engine.tensor(&b).unwrap());
        let got = Expr::from(&x).binary(Binary::Pow, &y).eval().unwrap().to_vec::<f32>().unwrap();
        for ((a, b), got) in cases.iter().zip(got) {
            let want = f64::from(*a).powf(f64::from(*b));
            let fits = want.is_nan() && got.is_nan() || (f64::from(got) - want).abs() <= 1e-5 * want.abs();
            assert!(fits, "{a}^{b} is {got}, expected {want} on {}", name(engine));
        }
    }
}

#[test]
fn mistakes_come_out_of_eval_with_a_remedy() {
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let (x, y) = (tensor(&engine, &[1.0; 6], &[2, 3]), tensor(&engine, &[1.0; 8], &[2, 4]));
    let text = |expr: Expr| expr.eval().expect_err("is a mistake").to_string();
    assert!(text(&Expr::from(&x) + &y).contains("do not broadcast: 3 and 4 at axis 1"));
    let whole = engine.tensor(&[1_i32; 6]).unwrap();
    assert!(text(&Expr::from(&x) + &whole).contains("cast one of them"));
    assert!(text(Expr::from(&whole).sqrt()).contains("cast first"));
    assert!(text(&Expr::from(&whole) + Expr::from(&whole).constant(0.5)).contains("0.5"));
    assert!(text(Expr::from(&x).clamp(2.0, 1.0)).contains("must not exceed"));
    let other = Engine::builder().backend("cpu").build().unwrap();
    let foreign = tensor(&other, &[1.0; 6], &[2, 3]);
    let error = (&Expr::from(&x) + &foreign).eval().expect_err("is of another engine");
    assert!(matches!(error, Error::AnotherEngine { .. }), "{error:?}");
    // The first mistake stays, whatever follows.
    assert!(text((&Expr::from(&x) + &y).exp().clamp(0.0, 1.0)).contains("do not broadcast"));
}

/// Distance in units in the last place of the float32 nearest to what is right.
fn ulps(got: f32, expected: f64) -> f64 {
    let near = expected as f32;
    if got == near || got.is_nan() && near.is_nan() {
        return 0.0;
    }
    let step = (f64::from(near.abs().next_up()) - f64::from(near.abs())).max(f64::from(f32::from_bits(1)));
    (f64::from(got) - expected).abs() / step
}

#[test]
fn errors_on_the_cpu_are_within_what_the_table_says_in_ulps() {
    const COUNT: usize = 50_000;
    let Some(engine) = engines().iter().find(|engine| engine.selected().device.backend == "cpu") else { return };
    let spread = |[low, high]: [f64; 2], seed: u64| -> Vec<f32> {
        let mut numbers = Numbers::new(seed);
        (0..COUNT).map(|_| (low + (f64::from(numbers.float()) + 4.0) / 8.0 * (high - low)) as f32).collect()
    };
    let check = |what: &str, most: u32, got: &[f32], expected: &mut dyn Iterator<Item = f64>| {
        let worst = got.iter().zip(expected).map(|(&got, expected)| ulps(got, expected)).fold(0.0, f64::max);
        // What is exact is rounded once.
        let most = f64::from(most).max(0.5);
        assert!(worst <= most, "{what}: {worst} ULP, the table says {most}");
    };
    for (op, definition, range) in OF_ONE.iter().filter(|(op, ..)| op.dtypes().any(|dtype| dtype == DType::F32)) {
        let Some(most) = op.ulps() else { continue };
        let x = spread(*range, 9);
        let got = engine.tensor(&x).unwrap().unary(*op).cast(DType::F32).eval().unwrap().to_vec::<f32>().unwrap();
        check(op.name(), most, &got, &mut x.iter().map(|&x| definition(f64::from(x))));
    }
    for (op, definition, [left, right]) in OF_TWO.iter().filter(|(op, ..)| op.dtypes().any(|dtype| dtype == DType::F32))
    {
        let Some(most) = op.ulps() else { continue };
        let (x, y) = (spread(*left, 9), spread(*right, 10));
        let both = engine.tensor(&x).unwrap().binary(*op, engine.tensor(&y).unwrap());
        let got = both.cast(DType::F32).eval().unwrap().to_vec::<f32>().unwrap();
        check(op.name(), most, &got, &mut x.iter().zip(&y).map(|(&x, &y)| definition(f64::from(x), f64::from(y))));
    }
}

#[test]
fn between_two_values_and_by_a_condition() {
    for engine in by_turns() {
        let mut numbers = Numbers::new(77);
        let [x, y, w] = [0, 1, 2].map(|_| numbers.array(&[50, 7]));
        let [tx, ty, tw] = [&x, &y, &w].map(|array| crate::tensor(engine, array).expr());
        let on = &name(engine);
        let expected = ndarray::Zip::from(&x).and(&y).and(&w).map_collect(|&x, &y, &w| {
            let [x, y, w] = [x, y, w].map(f64::from);
            x + w * (y - x)
        });
        crate::close(&tx.lerp(&ty, &tw), &expected, 2e-6, on);
        // The ends are met exactly.
        crate::close(&tx.lerp(&ty, 0.0), &crate::wide(&x), 0.0, on);
        crate::close(&tx.lerp(&ty, 1.0), &crate::wide(&y), 0.0, on);
        let chosen = ndarray::Zip::from(&x).and(&y).map_collect(|&x, &y| f64::from(if x > 0.5 { x } else { y }));
        crate::close(&tx.r#where(tx.greater(0.5), &ty), &chosen, 0.0, on);
        let whole = engine.tensor(&[1_i32, 2]).unwrap();
        let message = whole.lerp(2, 1).eval().unwrap_err().to_string();
        assert!(message.contains("cast first"), "{message}");
    }
}
