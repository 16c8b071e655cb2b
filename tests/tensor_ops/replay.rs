//! Expressions that are evaluated many times: what is recorded from a plan is what would be recorded anew.

use cantus::engine::GraphInputs;
use cantus::ops::{self, Expr};
use cantus::{DType, Engine, Tensor};

use crate::{Numbers, by_turns, name};

fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut numbers = Numbers::new(seed);
    (0..count).map(|_| numbers.float()).collect()
}

fn close(got: &[f32], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (place, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(
            (f64::from(*got) - want).abs() <= 2e-5 * want.abs().max(1.0),
            "{what}[{place}]: {got}, expected {want}"
        );
    }
}

/// A small network of several kernels and a native product.
fn network(x: &Tensor, w: &Tensor, gain: &Tensor) -> Expr {
    (x.rms_norm(gain, 1e-6).matmul(w).silu() + 1.0_f32).sum(&[-1], true)
}

fn expected(x: &[f32], w: &[f32], gain: &[f32], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let row = |row: usize| {
        let x: Vec<f64> = x[row * k..(row + 1) * k].iter().map(|&x| x.into()).collect();
        let scale = (x.iter().map(|x| x * x).sum::<f64>() / k as f64 + 1e-6).sqrt();
        let normal: Vec<f64> = x.iter().zip(gain).map(|(x, g)| x / scale * f64::from(*g)).collect();
        let column = |column: usize| {
            let y: f64 = (0..k).map(|i| normal[i] * f64::from(w[i * n + column])).sum();
            y / (1.0 + (-y).exp()) + 1.0
        };
        (0..n).map(column).sum()
    };
    (0..m).map(row).collect()
}

#[test]
fn the_same_over_other_tensors() {
    for engine in by_turns() {
        // Shapes come and go, and tensors change in place and for others.
        for shape in [[5, 8, 7], [40, 33, 21], [5, 8, 7], [1, 1, 1]] {
            let [m, k, n] = shape;
            let gain_values = numbers(3, k);
            let gain = engine.tensor(&gain_values).unwrap();
            for seed in 0..5 {
                let (x_values, w_values) = (numbers(10 + seed, m * k), numbers(20 + seed, k * n));
                let x = engine.tensor_from(&x_values, &[m, k]).unwrap();
                let w = engine.tensor_from(&w_values, &[k, n]).unwrap();
                let got = network(&x, &w, &gain).eval().unwrap();
                assert_eq!(got.shape(), [m, 1]);
                close(
                    &got.to_vec::<f32>().unwrap(),
                    &expected(&x_values, &w_values, &gain_values, shape),
                    &format!("{shape:?}, seed {seed}, {}", name(engine)),
                );
                let changed = numbers(30 + seed, m * k);
                x.write(&changed).unwrap();
                let got = network(&x, &w, &gain).eval().unwrap().to_vec::<f32>().unwrap();
                close(&got, &expected(&changed, &w_values, &gain_values, shape), "after a write");
            }
        }
    }
}

#[test]
fn what_is_alike_but_for_one_thing_is_told_apart() {
    for engine in by_turns() {
        let values = numbers(1, 24);
        let other = numbers(2, 24);
        let at = |i: usize, j: usize| f64::from(values[i * 6 + j]);
        let x = engine.tensor_from(&values, &[4, 6]).unwrap();
        let y = engine.tensor_from(&other, &[4, 6]).unwrap();
        for _ in 0..4 {
            let all = |expr: Expr| expr.eval().unwrap().to_vec::<f32>().unwrap();
            let of = |f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
                values.iter().zip(&other).map(|(&a, &b)| f(a.into(), b.into())).collect()
            };
            close(&all(&x - &y), &of(&|a, b| a - b), "x - y");
            close(&all(&y - &x), &of(&|a, b| b - a), "y - x");
            close(&all(&x - &x), &of(&|_, _| 0.0), "x - x");
            close(&all(&x * 2.0), &of(&|a, _| 2.0 * a), "2 x");
            close(&all(&x * 3.0), &of(&|a, _| 3.0 * a), "3 x");
            let rows: Vec<f64> = (0..4).map(|i| (0..6).map(|j| at(i, j)).sum()).collect();
            let columns: Vec<f64> = (0..6).map(|j| (0..4).map(|i| at(i, j)).sum()).collect();
            close(&all(x.sum(&[1], false)), &rows, "rows");
            close(&all(x.sum(&[0], false)), &columns, "columns");
            close(&all(x.transpose().sum(&[0], false)), &rows, "rows of the transposed");
            let part: Vec<f64> = (1..3).flat_map(|i| (2..5).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect();
            close(&all(x.slice(&[1..3, 2..5]) * 1.0), &part, "a part");
            let part: Vec<f64> = (1..3).flat_map(|i| (3..6).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect();
            close(&all(x.slice(&[1..3, 3..6]) * 1.0), &part, "another part");
            let least = |f: fn(f64, f64) -> f64, from: f64| -> Vec<f64> {
                (0..4).map(|i| (0..6).map(|j| at(i, j)).fold(from, f)).collect()
            };
            close(&all(x.max(&[1], false)), &least(f64::max, f64::MIN), "the greatest");
            close(&all(x.min(&[1], false)), &least(f64::min, f64::MAX), "the least");
            assert_eq!(x.sum(&[], true).eval().unwrap().shape(), [1, 1]);
            assert_eq!(x.sum(&[], false).eval().unwrap().shape(), [0; 0]);
            assert_eq!(x.cast(DType::I32).eval().unwrap().dtype(), DType::I32);
            assert_eq!(x.cast(DType::U32).eval().unwrap().dtype(), DType::U32);
        }
    }
}

#[test]
fn a_result_that_is_read_twice_is_computed_once() {
    for engine in by_turns() {
        let x = engine.tensor_from(&numbers(4, 300), &[10, 30]).unwrap();
        for round in 0..4 {
            let sums = x.softmax(1).sum(&[0], false);
            let (a, b) = ((&sums * 2.0).eval().unwrap(), (&sums + 1.0_f32).eval().unwrap());
            let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
            for (a, b) in a.iter().zip(&b) {
                assert!((a / 2.0 - (b - 1.0)).abs() < 1e-5, "round {round} on {}", name(engine));
            }
            assert!((a.iter().sum::<f32>() - 20.0).abs() < 1e-4);
        }
    }
}

#[test]
fn within_scopes_captures_and_threads() {
    for engine in by_turns() {
        let x = engine.tensor_from(&numbers(5, 64), &[8, 8]).unwrap();
        let want = network(&x, &x, &engine.tensor(&[1.0_f32; 8]).unwrap()).eval().unwrap().to_vec::<f32>().unwrap();
        let gain = engine.tensor(&[1.0_f32; 8]).unwrap();
        let evaluate = || network(&x, &x, &gain).eval().unwrap();
        for _ in 0..3 {
            assert_eq!(evaluate().to_vec::<f32>().unwrap(), want, "{}", name(engine));
        }
        // What a scope does not return is given back, also where it was recorded from a plan.
        let mut inner = None;
        let kept = engine.memory_scope(|| {
            inner = Some(evaluate());
            evaluate()
        });
        assert_eq!(kept.to_vec::<f32>().unwrap(), want);
        assert!(inner.unwrap().to_vec::<f32>().is_err());
        let graph = engine.capture(|| Ok(evaluate())).unwrap();
        for _ in 0..2 {
            graph.replay(&GraphInputs::new()).unwrap();
            assert_eq!(graph.outputs().to_vec::<f32>().unwrap(), want);
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        assert_eq!(evaluate().to_vec::<f32>().unwrap(), want);
                    }
                });
            }
        });
        let seeds: Vec<Vec<f32>> =
            [1, 2, 1, 1].map(|seed| ops::rand(engine, &[16], seed).eval().unwrap().to_vec::<f32>().unwrap()).to_vec();
        assert!(seeds[0] == seeds[2] && seeds[0] == seeds[3] && seeds[0] != seeds[1]);
    }
}

/// A plan's inputs may have gone to another device, or be lost.
#[test]
fn what_is_elsewhere_or_lost_goes_its_usual_way() {
    let engine: Engine = Engine::builder().backend("cpu").build().unwrap();
    let x = engine.tensor(&[1.0_f32, 2.0, 3.0]).unwrap();
    let double = |x: &Tensor| (x * 2.0).eval();
    for _ in 0..4 {
        assert_eq!(double(&x).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
    }
    let mut temporary = None;
    engine.memory_scope(|| temporary = Some(engine.tensor(&[5.0_f32, 6.0, 7.0]).unwrap()));
    assert!(double(&temporary.unwrap()).is_err());
    assert_eq!(double(&x).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
}

/// The same operations over the same tensors are one node while it lives; other constants, to the last bit, and other contents are not.
#[test]
fn what_is_recorded_twice_is_computed_once() {
    for engine in by_turns() {
        let device = &engine.selected().device;
        let engine = Engine::builder().backend(&device.backend).device(device.index).build().unwrap();
        let values = numbers(6, 64 * 64);
        let x = engine.tensor_from(&values, &[64, 64]).unwrap();
        let recorded = |scale: f32| (x.expr().exp() * scale).sum(&[1], true);
        let kernels = |both: [Expr; 2]| {
            let before: u64 = engine.metrics().iter().map(|row| row.count).sum();
            let [a, b] = &both;
            let product = (a * b).eval().unwrap().to_vec::<f32>().unwrap();
            (engine.metrics().iter().map(|row| row.count).sum::<u64>() - before, product)
        };
        let one = recorded(2.0);
        let (once, square) = kernels([one.clone(), one]);
        let (again, same) = kernels([recorded(2.0), recorded(2.0)]);
        assert_eq!((again, &same), (once, &square), "{}", name(&engine));
        let (_, other) = kernels([recorded(2.0), recorded(4.0)]);
        assert!(other.iter().zip(&square).all(|(other, square)| (other / square - 2.0).abs() < 1e-4));
        let [plus, minus] = [0.0, -0.0].map(|zero| x.expr().abs().copysign(zero));
        let signs = (plus + 1.0).minimum(&(minus.clone() - 1.0)).eval().unwrap().to_vec::<f32>().unwrap();
        assert!(signs.iter().all(|&sign| sign <= -1.0), "{}", name(&engine));
        // A view of what nobody else holds is a view.
        let turned = x.softmax(1).transpose().slice(&[1..3]);
        let whole = x.softmax(1).eval().unwrap().to_vec::<f32>().unwrap();
        let part = turned.eval().unwrap().to_vec::<f32>().unwrap();
        assert!(
            part.iter().enumerate().all(|(at, got)| *got == whole[at % 64 * 64 + 1 + at / 64]),
            "{}",
            name(&engine)
        );
        let before = recorded(2.0);
        x.write(&numbers(7, 64 * 64)).unwrap();
        let (_, mixed) = kernels([before, recorded(2.0)]);
        assert!(mixed != square && mixed.iter().all(|x| x.is_finite()));
    }
}

/// Many small results, which share memory when they are recorded again: products of other operands of the same sizes, and what is held or asked for later.
#[test]
fn small_results_of_long_evaluations_keep_apart() {
    const SIDES: [usize; 2] = [48, 64];
    let product = |a: &[f64], b: &[f64]| -> Vec<f64> {
        let [m, k] = SIDES;
        let at = |place: usize| (0..k).map(|i| a[place / k * k + i] * b[i * k + place % k]).sum();
        (0..m * k).map(at).collect()
    };
    for engine in by_turns() {
        for seed in 0..5 {
            let (x_values, w_values) = (numbers(50 + seed, 48 * 64), numbers(60 + seed, 64 * 64));
            let x = engine.tensor_from(&x_values, &SIDES).unwrap();
            let w = engine.tensor_from(&w_values, &[64, 64]).unwrap();
            let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&x| x.into()).collect() };
            let (from, w_values) = (wide(&x_values), wide(&w_values));
            let (mut y, mut want) = (x.expr(), from.clone());
            let mut held = Vec::new();
            for step in 0..24 {
                let factor = 0.02 + 0.001 * f64::from(step);
                // Each operand is read twice.
                let b = &w * factor;
                y = (y.matmul(&b) + x.matmul(&b)).tanh() - 0.25 * &y;
                let b: Vec<f64> = w_values.iter().map(|w| w * factor).collect();
                let sums = product(&want, &b).into_iter().zip(product(&from, &b));
                want = sums.zip(&want).map(|((a, b), y)| (a + b).tanh() - 0.25 * y).collect();
                if step % 9 == 8 {
                    held.push((y.clone(), want.clone()));
                }
            }
            held.push((y.clone(), want));
            y.eval().unwrap();
            for (place, (expr, want)) in held.iter().enumerate() {
                let got = expr.eval().unwrap().to_vec::<f32>().unwrap();
                for (got, want) in got.iter().zip(want) {
                    assert!((f64::from(*got) - want).abs() < 1e-3, "value {place}, seed {seed}, on {}", name(engine));
                }
            }
        }
    }
}
