//! Expressions over tensors, fused into one kernel: against float64 on every device of the machine.

use cantus::ops::{Binary, Expr, Unary};
use cantus::{DType, Engine, Error, Tensor};
use kit::engine::{engines, name};
use kit::inputs::Random;

/// Numbers between -4 and 4, the same for a seed.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| (random.u64() >> 40) as f32 / (1 << 21) as f32 - 4.0).collect()
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

fn erf(x: f64) -> f64 {
    // The series; 60 terms are enough up to 4.
    let mut term = x;
    let mut sum = x;
    for n in 1..120 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    if x.abs() > 4.5 { x.signum() } else { sum * 2.0 / std::f64::consts::PI.sqrt() }
}

#[test]
fn every_function_is_within_its_error_everywhere() {
    type Oracle = fn(f64) -> f64;
    let functions: [(Unary, Oracle); 14] = [
        (Unary::Neg, |x| -x),
        (Unary::Abs, f64::abs),
        (Unary::Sqrt, f64::sqrt),
        (Unary::Exp, f64::exp),
        (Unary::Log, f64::ln),
        (Unary::Sin, f64::sin),
        (Unary::Cos, f64::cos),
        (Unary::Tanh, f64::tanh),
        (Unary::Relu, |x| x.max(0.0)),
        (Unary::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        (Unary::Silu, |x| x / (1.0 + (-x).exp())),
        (Unary::Gelu, |x| 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2))),
        (Unary::GeluTanh, |x| {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
        }),
        (Unary::Erf, erf),
    ];
    for engine in engines() {
        for (op, oracle) in functions {
            let mut values = numbers(7, 1001);
            if matches!(op, Unary::Sqrt | Unary::Log) {
                values.iter_mut().for_each(|value| *value = value.abs() + 1e-3);
            }
            let x = tensor(engine, &values, &[1001]);
            let got = Expr::from(&x).unary(op).eval().unwrap().to_vec::<f32>().unwrap();
            let expected: Vec<f64> = values.iter().map(|&x| oracle(f64::from(x))).collect();
            close(&got, &expected, 2e-6, &format!("{op:?} on {}", name(engine)));
        }
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
    for engine in engines() {
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
    for engine in engines() {
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
    for engine in engines() {
        let inputs: Vec<Vec<f32>> = (0..17).map(|seed| numbers(seed, 40)).collect();
        let tensors: Vec<Tensor> = inputs.iter().map(|values| tensor(engine, values, &[40])).collect();
        let sum = tensors[1..].iter().fold(Expr::from(&tensors[0]), |sum, next| sum + next);
        let expected: Vec<f64> = (0..40).map(|i| inputs.iter().map(|values| f64::from(values[i])).sum()).collect();
        close(&sum.eval().unwrap().to_vec::<f32>().unwrap(), &expected, 1e-5, &name(engine));
    }
}

#[test]
fn halves_need_no_device_with_halves() {
    for engine in engines() {
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
    for engine in engines() {
        let a: Vec<i32> = vec![i32::MAX, i32::MIN, -7, 0, 12];
        let b: Vec<i32> = vec![1, 1, 2, 5, 12];
        let (x, y) = (engine.tensor(&a).unwrap(), engine.tensor(&b).unwrap());
        let expr = Expr::from(&x);
        let sum = (&expr + &y).eval().unwrap().to_vec::<i32>().unwrap();
        assert_eq!(sum, a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b)).collect::<Vec<_>>());
        let less = expr.binary(Binary::Lt, &y).eval().unwrap().to_vec::<u32>().unwrap();
        assert_eq!(less, a.iter().zip(&b).map(|(a, b)| u32::from(a < b)).collect::<Vec<_>>());
        let larger = expr.binary(Binary::Ge, &y).select(&x, &y).eval().unwrap().to_vec::<i32>().unwrap();
        assert_eq!(larger, a.iter().zip(&b).map(|(a, b)| *a.max(b)).collect::<Vec<_>>());
        let floats = engine.tensor(&[1.9_f32, -1.9, 0.0, 100.0]).unwrap();
        let whole = Expr::from(&floats).cast(DType::I32).eval().unwrap().to_vec::<i32>().unwrap();
        assert_eq!(whole, [1, -1, 0, 100]);
    }
}

/// Where the device keeps them: our own executor and OpenCL do.
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

#[test]
fn powers_follow_numpy() {
    let cases = [(-2.0_f32, 3.0_f32), (-2.0, 2.0), (2.0, 0.5), (0.0, 2.0), (9.0, -0.5), (-8.0, 0.5), (1.5, 20.0)];
    for engine in engines() {
        let (a, b): (Vec<f32>, Vec<f32>) = cases.into_iter().unzip();
        let (x, y) = (engine.tensor(&a).unwrap(), engine.tensor(&b).unwrap());
        let got = Expr::from(&x).binary(Binary::Pow, &y).eval().unwrap().to_vec::<f32>().unwrap();
        for ((a, b), got) in cases.iter().zip(got) {
            let want = f64::from(*a).powf(f64::from(*b));
            // A device may take NaN for any number.
            let fits = want.is_nan() || (f64::from(got) - want).abs() <= 1e-5 * want.abs();
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
    assert!(text(&Expr::from(&x) + &whole).contains("one dtype"));
    assert!(text(Expr::from(&whole).sqrt()).contains("cast first"));
    assert!(text(&Expr::from(&whole) + Expr::from(&whole).constant(0.5)).contains("0.5"));
    assert!(text(Expr::from(&x).clamp(2.0, 1.0)).contains("must not exceed"));
    let wide = engine.tensor(&[1.0_f64]).unwrap();
    assert!(text(Expr::from(&wide).negate()).contains("f64"));
    let other = Engine::builder().backend("cpu").build().unwrap();
    let foreign = tensor(&other, &[1.0; 6], &[2, 3]);
    let error = (&Expr::from(&x) + &foreign).eval().expect_err("is of another engine");
    assert!(matches!(error, Error::AnotherEngine { .. }), "{error:?}");
    // The first mistake stays, whatever follows.
    assert!(text((&Expr::from(&x) + &y).exp().clamp(0.0, 1.0)).contains("do not broadcast"));
}
