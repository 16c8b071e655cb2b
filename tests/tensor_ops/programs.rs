//! Programs that never mention evaluation: graphs in which values are shared, seen in many ways, dropped and evaluated in between, against float64;
//! and long loops.

use std::time::{Duration, Instant};

use cantus::engine::GraphInputs;
use cantus::ops::Expr;
use cantus::{DType, Engine, Fallback, Tensor};
use ndarray::{ArrayD, Axis, IxDyn, Slice, concatenate};

use crate::{Numbers, by_turns, close, engines, name, seeds, tensor, wide};

/// An engine of its own on a device: nothing is compiled, counted or planned there.
fn fresh(on: &Engine) -> Engine {
    let device = &on.selected().device;
    let builder = Engine::builder().backend(&device.backend).device(device.index);
    builder.fallback(Fallback::Never).build().unwrap()
}

/// A value, and what it is.
#[derive(Clone)]
struct Value {
    expr: Expr,
    known: ArrayD<f64>,
}

/// Two values of one shape or of shapes that broadcast.
fn both(a: &ArrayD<f64>, b: &ArrayD<f64>, function: impl Fn(f64, f64) -> f64) -> ArrayD<f64> {
    let shape: Vec<usize> = a.shape().iter().zip(b.shape()).map(|(&a, &b)| if a == 1 { b } else { a }).collect();
    let (a, b) = (a.broadcast(shape.clone()).unwrap(), b.broadcast(shape.clone()).unwrap());
    let values = a.iter().zip(b.iter()).map(|(&a, &b)| function(a, b)).collect();
    ArrayD::from_shape_vec(IxDyn(&shape), values).unwrap()
}

fn standard(array: ArrayD<f64>) -> ArrayD<f64> {
    array.as_standard_layout().into_owned()
}

/// A step of a program over matrices of n x n, and their rows, columns and parts.
fn step(numbers: &mut Numbers, values: &[Value]) -> Value {
    let any = |numbers: &mut Numbers| values[numbers.below(values.len())].clone();
    let (a, b) = (any(numbers), any(numbers));
    let [rows, columns] = [a.known.shape()[0], a.known.shape()[1]];
    let (x, known) = (&a.expr, &a.known);
    let fits = known.shape().iter().zip(b.known.shape()).all(|(&a, &b)| a == b || a == 1 || b == 1);
    let (expr, known) = match numbers.below(16) {
        0 if fits => ((x + &b.expr) * 0.5, both(known, &b.known, |a, b| (a + b) * 0.5)),
        1 if fits => (x.maximum(&b.expr), both(known, &b.known, f64::max)),
        2 if fits => ((x - &b.expr).tanh(), both(known, &b.known, |a, b| (a - b).tanh())),
        3 if fits => {
            let selected = x.greater(&b.expr).select(x * 0.5, &b.expr * -1.0);
            (selected, both(known, &b.known, |a, b| if a > b { a * 0.5 } else { -b }))
        }
        4 => (x.transpose(), standard(known.t().to_owned())),
        5 => ((x + x.slice(&[0..1, 0..columns])) * 0.5, {
            let first = known.slice_axis(Axis(0), Slice::from(0..1)).to_owned();
            both(known, &first, |a, b| (a + b) * 0.5)
        }),
        6 if rows == columns => ((x + x.transpose()) * 0.5, {
            let turned = known.t().to_owned();
            both(known, &turned, |a, b| (a + b) * 0.5)
        }),
        7 => {
            let flat = (x.reshape(&[columns, rows]) + x.reshape(&[rows * columns]).reshape(&[columns, rows])) * 0.5;
            (flat, known.to_shape(IxDyn(&[columns, rows])).unwrap().to_owned())
        }
        8 => (x.sum(&[1], true) * (1.0 / columns as f64), known.mean_axis(Axis(1)).unwrap().insert_axis(Axis(1))),
        9 => (x - x.max(&[0], true), {
            let greatest = known.fold_axis(Axis(0), f64::NEG_INFINITY, |a, b| a.max(*b)).insert_axis(Axis(0));
            both(known, &greatest, |a, b| a - b)
        }),
        10 => (x.roll(&[1], &[0]), {
            let (last, rest) =
                (known.slice_axis(Axis(0), Slice::from(-1..)), known.slice_axis(Axis(0), Slice::from(..-1)));
            concatenate(Axis(0), &[last, rest]).unwrap()
        }),
        11 if columns == b.known.shape()[0] => {
            let product = x.matmul(&b.expr) * (1.0 / columns as f64);
            let [left, right] = [known, &b.known].map(|a| a.clone().into_dimensionality::<ndarray::Ix2>().unwrap());
            (product, left.dot(&right).into_dyn() / columns as f64)
        }
        12 => (x.softmax(1), {
            let greatest = known.fold_axis(Axis(1), f64::NEG_INFINITY, |a, b| a.max(*b)).insert_axis(Axis(1));
            let powers = both(known, &greatest, |a, b| (a - b).exp());
            let sums = powers.sum_axis(Axis(1)).insert_axis(Axis(1));
            both(&powers, &sums, |a, b| a / b)
        }),
        13 if rows > 1 => {
            let (up, down) = (x.slice(&[0..rows - 1]), x.slice(&[1..rows]));
            let [top, bottom] =
                [Slice::from(..-1), Slice::from(1..)].map(|part| known.slice_axis(Axis(0), part).to_owned());
            ((up + down) * 0.5, both(&top, &bottom, |a, b| (a + b) * 0.5))
        }
        14 => (x.flip(&[1]), {
            let mut turned = known.clone();
            turned.invert_axis(Axis(1));
            standard(turned)
        }),
        _ => (x.sigmoid() * x, known.mapv(|x| x / (1.0 + (-x).exp()))),
    };
    Value { expr, known }
}

#[test]
fn random_graphs_of_shared_values() {
    for engine in engines() {
        for seed in seeds(engine, 0..24) {
            let mut numbers = Numbers::new(seed);
            let n = 1 + numbers.below(9);
            let mut values: Vec<Value> = Vec::new();
            for _ in 0..3 {
                let array = numbers.array(&[n, n]);
                let input = tensor(engine, &array);
                values.push(Value { expr: input.expr() * 1.0, known: wide(&array) });
            }
            for at in 0..30 {
                let what = format!("seed {seed}, step {at}, n {n}, {}", name(engine));
                match numbers.below(20) {
                    0 => {
                        let value = &values[numbers.below(values.len())];
                        close(&value.expr, &value.known, 2e-3, &what);
                    }
                    1 if values.len() > 4 => drop(values.remove(numbers.below(values.len()))),
                    _ => values.push(step(&mut numbers, &values)),
                }
            }
            while values.len() > 1 {
                let value = values.remove(numbers.below(values.len()));
                close(&value.expr, &value.known, 2e-3, &format!("seed {seed}, at the end, n {n}, {}", name(engine)));
            }
        }
    }
}

/// A step of a loop, and what it makes of a matrix.
type Loop = (&'static str, fn(&Expr) -> Expr, fn(&ArrayD<f64>) -> ArrayD<f64>);

const LOOPS: [Loop; 4] = [
    ("(x + x.T) / 2", |x| (x + x.transpose()) / 2.0, |x| both(x, &x.t().to_owned(), |a, b| (a + b) / 2.0)),
    (
        "x - x[0] / 2",
        |x| x - x.slice(&[0..1]) * 0.5,
        |x| both(x, &x.slice_axis(Axis(0), Slice::from(0..1)).to_owned(), |a, b| a - b * 0.5),
    ),
    (
        "x[:-1] + x[1:]",
        |x| {
            let (up, down) = (x.slice(&[0..7]), x.slice(&[1..8]));
            ((up + down) * 0.5).concat(&[x.slice(&[7..8])], 0)
        },
        |x| {
            let [top, bottom] =
                [Slice::from(..-1), Slice::from(1..)].map(|part| x.slice_axis(Axis(0), part).to_owned());
            let mean = both(&top, &bottom, |a, b| (a + b) * 0.5);
            concatenate(Axis(0), &[mean.view(), x.slice_axis(Axis(0), Slice::from(-1..))]).unwrap()
        },
    ),
    (
        "x.reshape + x.reshape",
        |x| (x.reshape(&[64]) + x.transpose().reshape(&[64])).reshape(&[8, 8]) / 2.0,
        |x| both(x, &x.t().to_owned(), |a, b| (a + b) / 2.0),
    ),
];

#[test]
fn loops_without_a_word_about_evaluation_take_time_in_proportion() {
    for engine in engines() {
        let array = Numbers::new(1).array(&[8, 8]);
        for (what, step, known) in LOOPS {
            let (mut x, mut expected) = (tensor(engine, &array).expr(), wide(&array));
            let begin = Instant::now();
            for _ in 0..300 {
                (x, expected) = (step(&x), known(&expected));
            }
            close(&x, &expected, 1e-3, &format!("{what} on {}", name(engine)));
            assert!(begin.elapsed() < Duration::from_secs(60), "{what} on {}: {:?}", name(engine), begin.elapsed());
        }
    }
}

/// Ten thousand steps that nobody evaluates: nothing goes as deep.
#[test]
fn ten_thousand_steps() {
    let array = Numbers::new(2).array(&[8, 8]);
    let once: Loop = ("(x / 2 + 1).T", |x| (x * 0.5 + 1.0).transpose(), |x| standard(x.t().mapv(|x| x * 0.5 + 1.0)));
    let rows: Loop = (
        "softmax(x) + x.T",
        |x| x.softmax(1) + x.transpose() * 0.5,
        |x| {
            let powers = x.mapv(f64::exp);
            let sums = powers.sum_axis(Axis(1)).insert_axis(Axis(1));
            both(&both(&powers, &sums, |a, b| a / b), &x.t().to_owned(), |a, b| a + b * 0.5)
        },
    );
    for (what, step, known) in LOOPS.into_iter().chain([once, rows]) {
        let engine = Engine::builder().backend("cpu").build().unwrap();
        let (mut x, mut expected) = (tensor(&engine, &array).expr(), wide(&array));
        for _ in 0..10_000 {
            (x, expected) = (step(&x), known(&expected));
        }
        close(&x, &expected, 1e-2, what);
        let peak = engine.memory().peak;
        assert!(peak < 16 << 20, "{what}: {peak} bytes");
    }
}

/// A gigabyte of results, of which a few are needed at a time.
#[test]
fn long_evaluations_take_memory_for_a_part_of_them() {
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let mut x = engine.zeros::<f32>(&[512, 512]).unwrap().expr() + 1.0;
    for _ in 0..1000 {
        x = (&x + x.transpose()) / 2.0;
    }
    assert_eq!(x.sum(&[], false).eval().unwrap().item::<f32>().unwrap(), 512.0 * 512.0);
    let peak = engine.memory().peak;
    assert!(peak < 400 << 20, "{peak} bytes");
    // The end of a kernel before: what it reads is held no longer than eight of them.
    for _ in 0..300 {
        x = x.softmax(1) + x.transpose() * 0.5;
    }
    assert!(x.sum(&[], false).eval().unwrap().item::<f32>().unwrap() > 512.0);
    let peak = engine.memory().peak;
    assert!(peak < 400 << 20, "{peak} bytes");
}

/// Values that evaluations in a capture or a scope make are none outside of them, and a capture reads none of an expression from outside.
#[test]
fn values_belong_to_captures_and_scopes() {
    // Large enough that values are kept.
    const LENGTH: usize = 20_000;
    let numbers = |first: f32| -> Vec<f32> { (0..LENGTH).map(|at| first / (1 + at) as f32).collect() };
    for engine in engines() {
        let x = engine.tensor(&numbers(1.0)).unwrap();
        // An expression, a view of it and an operation that live throughout.
        let recorded = || {
            let shared = (&x + 1.0).exp();
            [shared.slice(&[0..LENGTH / 2]), shared, x.cumsum(0)]
        };
        let held = recorded();
        let evaluated = |[half, shared, sums]: &[Expr; 3]| {
            let all = shared.sum(&[], false) + half.sum(&[], false) * half.max(&[], false);
            [all, sums.slice(&[1..2]).sum(&[], false)].map(|sum| sum.eval().unwrap())
        };
        let right = |got: [Tensor; 2], first: f32, what: &str| {
            let wide: Vec<f64> = numbers(first).into_iter().map(f64::from).collect();
            let known: Vec<f64> = wide.iter().map(|x| (x + 1.0).exp()).collect();
            let sum = |part: &[f64]| part.iter().sum::<f64>();
            let all = sum(&known) + sum(&known[..LENGTH / 2]) * known[0].max(known[LENGTH / 2 - 1]);
            for (got, known) in got.iter().zip([all, wide[0] + wide[1]]) {
                let got = f64::from(got.item::<f32>().unwrap());
                assert!((got / known - 1.0).abs() < 1e-4, "{what} on {}: {got}, not {known}", name(engine));
            }
        };
        let graph = engine.capture(|| Ok(evaluated(&held))).unwrap();
        right(evaluated(&held), 1.0, "after a capture");
        for first in [3.0, 4.0] {
            graph.replay(&GraphInputs::new().set(&x, &numbers(first))).unwrap();
            right(graph.outputs().clone(), first, "a replay");
            right(evaluated(&held), 1.0, "what was recorded before");
            right(evaluated(&recorded()), first, "after a replay");
        }
        let [half, shared, sums] = recorded();
        right(evaluated(&[half.clone(), shared.clone(), sums]), 4.0, "before a capture");
        let graph = engine.capture(|| Ok(evaluated(&[half, shared, x.cumsum(0)]))).unwrap();
        x.write(&numbers(2.0)).unwrap();
        graph.replay(&GraphInputs::new()).unwrap();
        right(graph.outputs().clone(), 2.0, "a capture after evaluations");
        // A view that leaves a scope without the expression that it is of.
        let mut part = None;
        engine.memory_scope(|| {
            let inner = (&x + 1.0).exp();
            let view = inner.slice(&[0..LENGTH / 2]);
            (inner.sum(&[], false) + view.sum(&[], false) * view.max(&[], false)).eval().unwrap();
            part = Some(view);
        });
        let known: Vec<f64> = numbers(2.0)[..LENGTH / 2].iter().map(|&x| (f64::from(x) + 1.0).exp()).collect();
        let what = format!("after a scope on {}", name(engine));
        close(&part.unwrap(), &ndarray::Array1::from(known).into_dyn(), 1e-5, &what);
    }
}

/// Logistic regression: products of a matrix with vectors that are expressions, which each row would compute anew.
#[test]
fn a_regression_is_that_of_float64() {
    for engine in engines() {
        let mut numbers = Numbers::new(4);
        let (x, y) = (numbers.array(&[160, 112]), numbers.array(&[160, 1]).mapv(|y| f32::from(y > 0.0)));
        let (rows, known) = (tensor(engine, &x).expr(), wide(&x).into_dimensionality::<ndarray::Ix2>().unwrap());
        let (labels, targets) = (tensor(engine, &y).expr(), wide(&y).into_dimensionality::<ndarray::Ix2>().unwrap());
        let mut weights = engine.zeros::<f32>(&[112, 1]).unwrap().expr();
        let mut expected = ndarray::Array2::<f64>::zeros((112, 1));
        for _ in 0..30 {
            let slope = rows.transpose().matmul(rows.matmul(&weights).sigmoid() - &labels) / 160.0;
            weights = weights - slope * 0.1;
            let fault = known.dot(&expected).mapv(|x| 1.0 / (1.0 + (-x).exp())) - &targets;
            expected = expected - known.t().dot(&fault) * (0.1 / 160.0);
        }
        close(&weights, &expected.into_dyn(), 1e-3, &name(engine));
    }
}

/// A value that a loop carries is a sum of all steps, and each step reads it: it is kept where reading it again would begin at the first. 40 steps
/// took six times the kernels of 20.
#[test]
fn what_a_loop_carries_is_not_computed_from_the_start_at_each_step() {
    for engine in by_turns() {
        let engine = fresh(engine);
        let mut numbers = Numbers::new(5);
        let (rows, labels) = (numbers.array(&[96, 24]), numbers.array(&[96, 1]).mapv(|y| f32::from(y > 0.0)));
        let (rows, labels) = (tensor(&engine, &rows).expr(), tensor(&engine, &labels).expr());
        let kernels = |steps: usize| {
            let before: u64 = engine.metrics().iter().map(|row| row.count).sum();
            let mut weights = engine.zeros::<f32>(&[24, 1]).unwrap().expr();
            for _ in 0..steps {
                let slope = rows.transpose().matmul(rows.matmul(&weights).sigmoid() - &labels) / 96.0;
                weights = weights - slope * 0.1;
            }
            drop(weights.eval().unwrap());
            engine.metrics().iter().map(|row| row.count).sum::<u64>() - before
        };
        let (few, many) = (kernels(20), kernels(40));
        assert!(many <= 2 * few + 8 && many <= 40 * 5, "{}: {few}, {many}", name(&engine));
    }
}

/// Rounds of a choice: more values and tensors than a kernel binds, each read several times. 50 rounds took 1,100 kernels, one for each operation, where
/// ten are one.
#[test]
fn rounds_of_choices_take_a_few_kernels() {
    for engine in by_turns() {
        let engine = fresh(engine);
        let at = |row: usize, column: usize| [column as f32 / 12.0 - 2.0, row as f32 / 8.0 - 1.0];
        let places: Vec<[f32; 2]> = (0..16).flat_map(|row| (0..36).map(move |column| at(row, column))).collect();
        let [x, y] = [0, 1].map(|axis| {
            let values: Vec<f32> = places.iter().map(|place| place[axis]).collect();
            engine.tensor_from(&values, &[16, 36]).unwrap()
        });
        let zero = engine.zeros::<f32>(&[16, 36]).unwrap();
        let (mut a, mut b, mut count) = (zero.expr(), zero.expr(), zero.expr());
        for _ in 0..50 {
            let inside = (&a * &a + &b * &b).less_equal(4.0);
            // Read anew: another node for the same tensor.
            let next = inside.select(&a * &a - &b * &b + &x, &a);
            b = inside.select(&a * &b * 2.0 + &y, &b);
            a = next;
            count = count + inside.cast(DType::F32);
        }
        let before: u64 = engine.metrics().iter().map(|row| row.count).sum();
        let found = count.eval().unwrap().to_vec::<f32>().unwrap();
        let ran = engine.metrics().iter().map(|row| row.count).sum::<u64>() - before;
        let mut off = 0;
        for (found, [x, y]) in found.iter().zip(&places) {
            let (x, y, mut a, mut b, mut rounds) = (f64::from(*x), f64::from(*y), 0.0_f64, 0.0_f64, 0.0_f64);
            for _ in 0..50 {
                if a * a + b * b <= 4.0 {
                    rounds += 1.0;
                    (a, b) = (a * a - b * b + x, 2.0 * a * b + y);
                }
            }
            off += usize::from(f64::from(*found) != rounds);
        }
        // Where it is decided by the last bit, float32 and float64 part.
        assert!(off <= 6, "{}: {off} of {}", name(&engine), places.len());
        assert!(ran <= 140, "{}: {ran} kernels", name(&engine));
    }
}

/// A discrete GPU computes several steps of a loop in one kernel, whose reads are views of views. Both programs have whole numbers.
#[test]
fn a_gpus_kernels_take_several_steps() {
    const PLACES: usize = 30;
    for engine in by_turns() {
        let engine = fresh(engine);
        cantus::testing::plan_as_gpu(&engine);
        let ran = || engine.metrics().iter().map(|row| row.count).sum::<u64>();
        let mut numbers = Numbers::new(30);

        // All shortest ways: by way of each place in turn.
        let mut known: Vec<f32> = (0..PLACES * PLACES).map(|_| 1.0 + numbers.below(1000) as f32).collect();
        let mut ways = engine.tensor_from(&known, &[PLACES, PLACES]).unwrap().expr();
        for k in 0..PLACES {
            ways = ways.minimum(ways.slice(&[0..PLACES, k..k + 1]) + ways.slice(&[k..k + 1, 0..PLACES]));
            let before = known.clone();
            for (place, way) in known.iter_mut().enumerate() {
                let (from, to) = (place / PLACES, place % PLACES);
                *way = way.min(before[from * PLACES + k] + before[k * PLACES + to]);
            }
        }
        let before = ran();
        assert_eq!(ways.eval().unwrap().to_vec::<f32>().unwrap(), known, "{}", name(&engine));
        let kernels = ran() - before;
        assert!(kernels <= PLACES as u64 / 2, "{}: {kernels} kernels for {PLACES} steps", name(&engine));

        // Conway's game on a torus.
        let (rows, columns) = (13, 18);
        let mut known: Vec<u8> = (0..rows * columns).map(|_| u8::from(numbers.below(3) == 0)).collect();
        let mut world = engine.tensor_from(&known, &[rows, columns]).unwrap().expr();
        for _ in 0..12 {
            let around = |of: &Expr, axis| of + of.roll(&[1], &[axis]) + of.roll(&[-1], &[axis]);
            let count = around(&around(&world, 0), 1) - &world;
            let stays = world.equal(1).logical_and(count.equal(2));
            world = count.equal(3).logical_or(stays).cast(DType::U8);
            let before = known.clone();
            for (place, cell) in known.iter_mut().enumerate() {
                let (row, column) = (place / columns + rows, place % columns + columns);
                let beside = (0..9).filter(|&at| at != 4).map(|at| (row + at / 3 - 1, column + at % 3 - 1));
                let count: u8 = beside.map(|(row, column)| before[row % rows * columns + column % columns]).sum();
                *cell = u8::from(count == 3 || before[place] == 1 && count == 2);
            }
        }
        assert_eq!(world.eval().unwrap().to_vec::<u8>().unwrap(), known, "{}", name(&engine));
    }
}

/// The kernels of an evaluation are compiled side by side, before the first of them runs. What is found out for that leaves nothing behind.
#[test]
fn drivers_compile_an_evaluations_kernels_side_by_side() {
    for engine in by_turns() {
        let engine = fresh(engine);
        let mut numbers = Numbers::new(31);
        let (x, w) = (numbers.array(&[24, 70]), numbers.array(&[70, 90]));
        let (given, weights) = (tensor(&engine, &x).expr(), tensor(&engine, &w).expr());
        let ran = || engine.metrics().iter().map(|row| row.count).sum::<u64>();
        let program = || {
            let product = given.matmul(&weights);
            let hidden = product.maximum(0.0);
            let sorted = hidden.sort(1, false);
            let sums = sorted.cumsum(1);
            let end = (&sums / (sums.sum(&[1], true) + 1.0)).matmul(weights.transpose()).softmax(1);
            (product, end)
        };
        let before = ran();
        let (product, end) = program();
        let (first, rest) = (end.eval().unwrap().to_vec::<f32>().unwrap(), ran() - before);
        let [ahead, needed] = cantus::testing::compiled(&engine);
        if engine.selected().device.backend == "cpu" {
            assert_eq!(ahead, 0);
        } else {
            assert!(ahead >= 5 && needed <= 1, "{}: {ahead} ahead, {needed} when needed", name(&engine));
        }
        let matrix = |array: &ArrayD<f32>| wide(array).into_dimensionality::<ndarray::Ix2>().unwrap();
        let (x, w) = (matrix(&x), matrix(&w));
        let known = x.dot(&w);
        // A part that the rehearsal has met.
        close(&product, &known.clone().into_dyn(), 1e-4, &name(&engine));
        let mut shares = known.mapv(|value| value.max(0.0));
        for mut row in shares.rows_mut() {
            let mut sorted = row.to_vec();
            sorted.sort_by(f64::total_cmp);
            let mut sum = 0.0;
            sorted.iter_mut().for_each(|value| {
                sum += *value;
                *value = sum;
            });
            let all = sorted.iter().sum::<f64>() + 1.0;
            row.iter_mut().zip(sorted).for_each(|(at, value)| *at = value / all);
        }
        let mut known = shares.dot(&w.t());
        for mut row in known.rows_mut() {
            let most = row.iter().copied().fold(f64::MIN, f64::max);
            row.mapv_inplace(|value| (value - most).exp());
            let all = row.sum();
            row.mapv_inplace(|value| value / all);
        }
        close(&end, &known.into_dyn(), 1e-4, &name(&engine));

        // Once more, with everything compiled and new nodes: as many kernels, the same bits.
        drop((product, end));
        let before = ran();
        let (_product, again) = program();
        assert_eq!(again.eval().unwrap().to_vec::<f32>().unwrap(), first, "{}", name(&engine));
        assert_eq!(ran() - before, rest, "{}", name(&engine));
    }
}

/// An expression is of its tensors as they were when it was recorded, whatever overwrites them: the host, a kernel, the replay of a graph. What was
/// computed of it stays so too when its own tensor is overwritten.
#[test]
fn what_is_recorded_is_as_it_was() {
    let double = cantus::Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
         @compute @workgroup_size(1) fn double(@builtin(workgroup_id) id: vec3u) { x[id.x] *= 2.0; }",
    )
    .unwrap();
    for engine in engines() {
        let device = name(engine);
        let twice = |x: &Tensor| engine.dispatch(&double).bind("x", x).workgroups(x.len()).run();
        let x = engine.tensor(&[1.0_f32, 2.0, 3.0]).unwrap();
        let graph = engine.capture(|| twice(&x)).unwrap();
        let mut known = vec![1.0, 2.0, 3.0];
        let mut recorded: Vec<(Expr, Vec<f64>)> = Vec::new();
        for step in 0..24 {
            let mut beside = |expr: Expr, of: &dyn Fn(&[f64]) -> Vec<f64>| recorded.push((expr, of(&known)));
            beside((&x + 1.0).exp(), &|x| x.iter().map(|x| (x + 1.0).exp()).collect());
            beside(x.slice(&[1..3]) - x.slice(&[0..2]), &|x| vec![x[1] - x[0], x[2] - x[1]]);
            beside(x.sum(&[], true) * 0.5, &|x| vec![x.iter().sum::<f64>() * 0.5]);
            beside(x.expr(), &<[f64]>::to_vec);
            // Some are computed before, and kept; some are gone.
            if step % 3 == 1 {
                recorded[step].0.eval().unwrap();
            }
            if step % 5 == 4 {
                recorded.truncate(recorded.len() - 2);
            }
            match step % 4 {
                0 => {
                    known = vec![step as f64 * 0.1, -1.0, 0.5];
                    x.write(&known.iter().map(|&x| x as f32).collect::<Vec<_>>()).unwrap();
                }
                1 => {
                    known[1] = 0.75;
                    x.write_at(1, &[0.75_f32]).unwrap();
                }
                2 => {
                    known.iter_mut().for_each(|x| *x *= 2.0);
                    twice(&x).unwrap();
                }
                _ => {
                    known.iter_mut().for_each(|x| *x *= 2.0);
                    graph.replay(&GraphInputs::new()).unwrap();
                }
            }
        }
        for (place, (expr, known)) in recorded.iter().enumerate() {
            close(expr, &ndarray::Array1::from(known.clone()).into_dyn(), 1e-4, &format!("{place} on {device}"));
        }
        let y = &x * 3.0;
        let tensor = y.eval().unwrap();
        let then = ndarray::Array1::from(known.clone()).into_dyn() * 3.0;
        tensor.write(&[9.0_f32; 3]).unwrap();
        twice(&tensor).unwrap();
        close(&y, &then, 1e-5, &device);
        close(&(&y + 1.0), &(&then + 1.0), 1e-5, &device);
        assert_eq!(tensor.to_vec::<f32>().unwrap(), [18.0; 3], "{device}");
        // What a scope overwrites is still there behind it.
        let before = &x + 1.0;
        engine.memory_scope(|| x.write(&[0.0_f32; 3])).unwrap();
        close(&before, &(&then / 3.0 + 1.0), 1e-5, &device);
    }
}

/// The same within a graph: what it recorded before a kernel of its own overwrites a tensor is that of the tensor before, at each replay.
#[test]
fn what_a_graph_recorded_is_as_it_was() {
    let add = cantus::Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
         @compute @workgroup_size(1) fn add(@builtin(workgroup_id) id: vec3u) { x[id.x] += 10.0; }",
    )
    .unwrap();
    for engine in engines() {
        let device = name(engine);
        let x = engine.tensor(&[1.0_f32, 2.0]).unwrap();
        let outside = &x * 2.0;
        let graph = engine
            .capture(|| {
                let before = &x + 1.0;
                engine.dispatch(&add).bind("x", &x).workgroups(2).run()?;
                let after = &x + 1.0;
                Ok([before.eval()?, after.eval()?])
            })
            .unwrap();
        for start in [3.0_f32, 5.0] {
            graph.replay(&GraphInputs::new().set(&x, &[start, start + 1.0])).unwrap();
            let [before, after] = graph.outputs();
            assert_eq!(before.to_vec::<f32>().unwrap(), [start + 1.0, start + 2.0], "{device}");
            assert_eq!(after.to_vec::<f32>().unwrap(), [start + 11.0, start + 12.0], "{device}");
            let (then, known) = (&x - 10.0, ndarray::arr1(&[f64::from(start), f64::from(start) + 1.0]).into_dyn());
            graph.replay(&GraphInputs::new()).unwrap();
            close(&then, &known, 1e-6, &device);
        }
        close(&outside, &ndarray::arr1(&[2.0, 4.0]).into_dyn(), 1e-6, &device);
    }
}

/// The work that a long loop records is submitted while it continues: its memory is flat, and nothing says `eval`. In a graph nothing is
/// submitted.
#[test]
fn long_loops_are_submitted_while_they_record() {
    const SIDE: usize = 8;
    for engine in engines() {
        let device = name(engine);
        let start = engine.tensor_from(&[1.0_f32; SIDE * SIDE], &[SIDE, SIDE]).unwrap();
        let step = |x: &Expr| (x + x.transpose()) * 0.49 + 0.01;
        let known = |steps: i32| {
            let limit = 0.01 / (1.0 - 0.98);
            ndarray::Array2::from_elem((SIDE, SIDE), limit + (1.0 - limit) * 0.98_f64.powi(steps)).into_dyn()
        };
        let count = || engine.metrics().iter().map(|row| row.count).sum::<u64>();
        let before = count();
        let mut x = start.expr();
        for _ in 0..3_000 {
            x = step(&x);
        }
        assert!(count() > before, "nothing was submitted on {device}");
        close(&x, &known(3_000), 1e-4, &device);

        // What it reads is given back too.
        let part = vec![0.5_f32; 1 << 18];
        let mut sum = engine.zeros::<f32>(&[1 << 18]).unwrap().expr();
        let (begin, mut most) = (engine.memory().in_use, 0);
        for _ in 0..500 {
            sum = &sum + engine.tensor(&part).unwrap().expr();
            most = most.max(engine.memory().in_use.saturating_sub(begin));
        }
        assert!(most < 400 << 20, "{most} bytes of 500 MiB are held on {device}");
        let total = sum.max(&[], false).eval().unwrap().item::<f32>().unwrap();
        assert!((total - 250.0).abs() < 1e-3, "{total} on {device}");

        let graph = engine
            .capture(|| {
                let mut x = start.expr();
                for _ in 0..700 {
                    x = step(&x);
                }
                x.eval()
            })
            .unwrap();
        graph.replay(&GraphInputs::new()).unwrap();
        close(&graph.outputs().expr(), &known(700), 1e-4, &device);
    }
}

/// Bytes, signed and unsigned, wrap after each operation, and truths are 0 and 1: chains of them against whole numbers.
#[test]
fn chains_of_bytes_and_truths_wrap() {
    const LENGTH: usize = 300;
    let wrapped = |x: i64, dtype: DType| match dtype {
        DType::U8 => x.rem_euclid(256),
        DType::I8 => (x + 128).rem_euclid(256) - 128,
        _ => i64::from(x != 0),
    };
    for engine in engines() {
        for seed in seeds(engine, 0..12) {
            let mut numbers = Numbers::new(7100 + seed);
            let mut values: Vec<(Expr, Vec<i64>, DType)> = Vec::new();
            for dtype in [DType::U8, DType::I8, DType::Bool, DType::U8] {
                let words: Vec<i32> = (0..LENGTH).map(|_| numbers.below(256) as i32).collect();
                let known = words.iter().map(|&x| wrapped(x.into(), dtype)).collect();
                let expr = engine.tensor(&words).unwrap().cast(dtype).eval().unwrap().expr();
                values.push((expr, known, dtype));
            }
            for _ in 0..25 {
                let (x, a, dtype) = values[numbers.below(values.len())].clone();
                let alike: Vec<_> = values.iter().filter(|(.., other)| *other == dtype).cloned().collect();
                let (y, b, _) = alike[numbers.below(alike.len())].clone();
                let both = |of: &dyn Fn(i64, i64) -> i64| a.iter().zip(&b).map(|(&a, &b)| of(a, b)).collect::<Vec<_>>();
                let (expr, known, dtype) = match numbers.below(9) {
                    0 if dtype != DType::Bool => (&x + &y, both(&|a, b| a + b), dtype),
                    1 if dtype != DType::Bool => (&x - &y, both(&|a, b| a - b), dtype),
                    2 if dtype != DType::Bool => (&x * &y, both(&|a, b| a * b), dtype),
                    3 if dtype != DType::Bool => (x.maximum(&y), both(&i64::max), dtype),
                    4 => (x.less(&y), both(&|a, b| i64::from(a < b)), DType::Bool),
                    5 => (x.logical_not(), a.iter().map(|&a| i64::from(a == 0)).collect(), DType::Bool),
                    6 => (x.equal(&y).select(&y, &x), both(&|a, b| if a == b { b } else { a }), dtype),
                    7 if dtype == DType::Bool => (x.logical_or(&y), both(&|a, b| a | b), dtype),
                    _ => {
                        let to = [DType::U8, DType::I8, DType::Bool][numbers.below(3)];
                        (x.cast(to), a.clone(), to)
                    }
                };
                values.push((expr, known.into_iter().map(|x| wrapped(x, dtype)).collect(), dtype));
            }
            for (number, (expr, known, dtype)) in values.iter().enumerate() {
                let got = expr.eval().unwrap().cast(DType::I32).eval().unwrap().to_vec::<i32>().unwrap();
                let right = got.iter().zip(known).all(|(&got, &known)| i64::from(got) == known);
                assert!(right, "value {number} of {dtype}, seed {seed}, on {}: {got:?}, not {known:?}", name(engine));
            }
        }
    }
}

/// A word as its dtype holds it.
fn word(x: i64, dtype: DType) -> i64 {
    match dtype {
        DType::I32 => i64::from(x as i32),
        DType::U32 => i64::from(x as u32),
        _ => i64::from(x != 0),
    }
}

/// Whole numbers of 32 bits in rows of a few elements, which broadcast, with sums and extremes of them: against whole numbers.
#[test]
fn chains_of_words_in_short_rows() {
    for engine in engines() {
        for seed in seeds(engine, 0..12) {
            let mut numbers = Numbers::new(7300 + seed);
            let shape = [1 + numbers.below(40), 1 + numbers.below(9), [3, 8, 70][numbers.below(3)]];
            let mut values: Vec<(Expr, ArrayD<i64>, DType)> = Vec::new();
            for dtype in [DType::I32, DType::U32, DType::I32, DType::Bool] {
                let sides: Vec<usize> =
                    shape.iter().map(|&side| if numbers.below(3) == 0 { 1 } else { side }).collect();
                let known = ArrayD::from_shape_fn(sides.clone(), |_| match numbers.below(4) {
                    0 => word(i64::from(i32::MAX) - numbers.below(3) as i64, dtype),
                    _ => word(numbers.below(400) as i64 - 200, dtype),
                });
                let words: Vec<i32> = known.iter().map(|&x| x as i32).collect();
                let expr = engine.tensor_from(&words, &sides).unwrap().cast(dtype).eval().unwrap().expr();
                values.push((expr, known, dtype));
            }
            for _ in 0..20 {
                let (x, a, dtype) = values[numbers.below(values.len())].clone();
                let alike: Vec<_> = values.iter().filter(|(.., other)| *other == dtype).cloned().collect();
                let (y, b, _) = alike[numbers.below(alike.len())].clone();
                let both = |of: &dyn Fn(i64, i64) -> i64| {
                    let sides: Vec<usize> = a.shape().iter().zip(b.shape()).map(|(&a, &b)| a.max(b)).collect();
                    let (a, b) = (a.broadcast(sides.clone()).unwrap(), b.broadcast(sides.clone()).unwrap());
                    ArrayD::from_shape_vec(sides, a.iter().zip(&b).map(|(&a, &b)| of(a, b)).collect()).unwrap()
                };
                let whole = dtype != DType::Bool;
                let axis = numbers.below(3);
                let folded = |from: i64, of: fn(i64, i64) -> i64| {
                    a.fold_axis(Axis(axis), from, |&a, &b| word(of(a, b), dtype)).insert_axis(Axis(axis))
                };
                let along = [axis as isize];
                let (expr, known, dtype) = match numbers.below(12) {
                    0 if whole => (&x + &y, both(&|a, b| a + b), dtype),
                    1 if whole => (&x - &y, both(&|a, b| a - b), dtype),
                    2 if whole => (&x * &y, both(&|a, b| a.wrapping_mul(b)), dtype),
                    3 if whole => (x.minimum(&y), both(&i64::min), dtype),
                    4 => (x.greater_equal(&y), both(&|a, b| i64::from(a >= b)), DType::Bool),
                    5 => (x.not_equal(&y).select(&x, &y), both(&|a, b| if a == b { b } else { a }), dtype),
                    6 if whole => (x.bitwise_xor(&y), both(&|a, b| a ^ b), dtype),
                    7 if whole => (x.sum(&along, true), folded(0, |a, b| a + b), dtype),
                    8 if whole => (x.max(&along, true), folded(i64::MIN, i64::max), dtype),
                    9 if whole => (x.min(&along, true), folded(i64::MAX, i64::min), dtype),
                    _ => {
                        let to = [DType::I32, DType::U32, DType::Bool][numbers.below(3)];
                        (x.cast(to), a.clone(), to)
                    }
                };
                values.push((expr, known.mapv(|x| word(x, dtype)), dtype));
            }
            for (number, (expr, known, dtype)) in values.iter().enumerate() {
                let got = expr.eval().unwrap();
                assert_eq!(got.shape(), known.shape());
                let got = got.cast(DType::I32).eval().unwrap().to_vec::<i32>().unwrap();
                let right = got.iter().zip(known).all(|(&got, &known)| got == known as i32);
                assert!(right, "value {number} of {dtype}, seed {seed}, on {}: {got:?}, not {known:?}", name(engine));
            }
        }
    }
}

/// A long evaluation that comes again is done again from what was recorded: its values are those of the inputs, and what of it somebody holds keeps its own.
#[test]
fn long_evaluations_that_come_again() {
    const STEPS: usize = 250;
    for engine in engines() {
        let mut numbers = Numbers::new(11);
        for round in 0..5 {
            let [array, weights] = [[6, 6], [6, 6]].map(|shape| numbers.array(&shape));
            let (mut x, mut known) = (tensor(engine, &array).expr(), wide(&array));
            let (w, by) =
                (tensor(engine, &weights).expr(), wide(&weights).into_dimensionality::<ndarray::Ix2>().unwrap());
            let mut held = Vec::new();
            for step in 0..STEPS {
                let square = known.clone().into_dimensionality::<ndarray::Ix2>().unwrap();
                x = (x.matmul(&w) * 0.05 + x.transpose() * 0.8 + 0.3).tanh();
                known = (square.dot(&by) * 0.05 + &square.t() * 0.8 + 0.3).mapv(f64::tanh).into_dyn();
                // A product, an expression and a view of one that live on.
                match step {
                    40 => {
                        let square = known.clone().into_dimensionality::<ndarray::Ix2>().unwrap();
                        held.push((x.matmul(&w), square.dot(&by).into_dyn()));
                    }
                    90 => held.push((x.clone(), known.clone())),
                    140 => held.push((x.transpose(), standard(known.t().to_owned()))),
                    _ => {}
                }
            }
            let what = format!("round {round} on {}", name(engine));
            close(&x, &known, 1e-4, &what);
            close(&x, &known, 1e-4, &format!("again, {what}"));
            for (place, (expr, known)) in held.iter().enumerate() {
                close(expr, known, 1e-4, &format!("{place} that was held, {what}"));
            }
        }
    }
}

/// A value that a product of the processor's takes as both of its operands is written once, and read across where one of them is turned.
#[test]
fn operands_of_a_product_are_written_once() {
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let (rows, columns) = (500, 40);
    let array = Numbers::new(2100).array(&[rows, columns]);
    let x = tensor(&engine, &array);
    let centred = x.expr() - x.mean(&[0], true);
    let product = centred.transpose().matmul(&centred);
    let wide = wide(&array).into_dimensionality::<ndarray::Ix2>().unwrap();
    let centred = &wide - &wide.mean_axis(Axis(0)).unwrap();
    close(&product, &centred.t().dot(&centred).into_dyn(), 1e-4, "the product");
    let counted = |operation: &str| {
        engine.metrics().iter().filter(|row| row.operation == operation).map(|row| row.count).sum::<u64>()
    };
    assert_eq!([counted("elementwise (native)"), counted("copy (native)")], [1, 0]);
}
