//! Deviations, norms, counts, and questions about all elements.

use cantus::ops::Expr;
use cantus::{DType, Engine};
use ndarray::ArrayD;

use crate::{Numbers, by_turns, close, few, halves, name, of_halves, oracle, tensor, wide};

#[test]
fn norms_deviations_and_log_sums_over_any_axes() {
    for engine in by_turns() {
        for seed in few(engine, 0..24) {
            let mut numbers = Numbers::new(500 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [3000, 70, 20][rank - 1]);
            let places = crate::reduce::some_axes(&mut numbers, rank);
            let axes: Vec<isize> = places.iter().map(|&axis| axis as isize - rank as isize).collect();
            let keep = numbers.below(2) == 0;
            let array = numbers.array(&shape);
            let half = seed % 6 == 5;
            let (t, f) = if half {
                (Expr::from(&halves(engine, &array)), of_halves(&array))
            } else {
                (Expr::from(&tensor(engine, &array)), wide(&array))
            };
            let on = |op: &str| format!("{op} over {axes:?} of {shape:?}, seed {seed}, on {}", name(engine));
            let of = |f: &ArrayD<f64>, g: &dyn Fn(&[f64]) -> f64| oracle::reduce(f, &places, keep, g);
            let near = if half { 2e-3 } else { 2e-5 };
            let check = |got: Expr, g: &dyn Fn(&[f64]) -> f64, what: &str| close(&got, &of(&f, g), near, &on(what));
            let norm = |p: f64| move |row: &[f64]| row.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p);
            check(t.norm(2.0, &axes, keep), &norm(2.0), "norm 2");
            check(t.norm(1.0, &axes, keep), &norm(1.0), "norm 1");
            check(t.norm(3.5, &axes, keep), &norm(3.5), "norm 3.5");
            check(t.norm(0.0, &axes, keep), &|row| row.iter().filter(|x| **x != 0.0).count() as f64, "norm 0");
            let count: usize = places.iter().map(|&axis| shape[axis]).product();
            if count > 0 {
                let fold = |row: &[f64], first: f64, f: fn(f64, f64) -> f64| row.iter().map(|x| x.abs()).fold(first, f);
                check(t.norm(f64::INFINITY, &axes, keep), &|row| fold(row, 0.0, f64::max), "norm inf");
                check(t.norm(f64::NEG_INFINITY, &axes, keep), &|row| fold(row, f64::MAX, f64::min), "norm -inf");
                let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len() as f64;
                let std = move |row: &[f64]| {
                    (row.iter().map(|x| (x - mean(row)).powi(2)).sum::<f64>() / row.len() as f64).sqrt()
                };
                check(t.std(&axes, 0.0, keep), &std, "std");
                // Far beyond what e^x has in float32.
                let far = &t * 40.0;
                let wide = of(&(&f * 40.0), &|row| {
                    let top = row.iter().copied().fold(f64::MIN, f64::max);
                    top + row.iter().map(|x| (x - top).exp()).sum::<f64>().ln()
                });
                close(&far.logsumexp(&axes, keep), &wide, near, &on("logsumexp"));
            }
        }
    }
}

#[test]
fn counts_and_questions_about_all() {
    let truth = |value: bool| f64::from(u8::from(value));
    for engine in by_turns() {
        for seed in few(engine, 0..16) {
            let mut numbers = Numbers::new(560 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [300, 20, 7][rank - 1]);
            let places = crate::reduce::some_axes(&mut numbers, rank);
            let axes: Vec<isize> = places.iter().map(|&axis| axis as isize).collect();
            let keep = numbers.below(2) == 0;
            // Nearly all of them 0, or nearly none.
            let rare = numbers.below(2) == 0;
            let array = numbers.array(&shape).mapv(|x| if (x > 3.8) == rare { 1.0 + x.abs() } else { 0.0 });
            let dtype = [DType::F32, DType::F16, DType::I32, DType::U32][seed as usize % 4];
            let t = tensor(engine, &array).cast(dtype);
            let f = wide(&array);
            let what = format!("{dtype} over {axes:?} of {shape:?}, seed {seed}, on {}", name(engine));
            let of = |g: &dyn Fn(&[f64]) -> f64| oracle::reduce(&f, &places, keep, g);
            let count = |row: &[f64]| row.iter().filter(|x| **x != 0.0).count();
            close(&t.count_nonzero(&axes, keep), &of(&|row| count(row) as f64), 0.0, &what);
            close(&t.any(&axes, keep), &of(&|row| truth(count(row) > 0)), 0.0, &what);
            close(&t.all(&axes, keep), &of(&|row| truth(count(row) == row.len())), 0.0, &what);
        }
    }
}

#[test]
fn of_no_elements_and_of_infinities() {
    let one = |engine: &Engine, expr: Expr| {
        let got = expr.eval().unwrap_or_else(|error| panic!("{error} on {}", name(engine)));
        got.cast(DType::F32).eval().unwrap().to_vec::<f32>().unwrap()
    };
    for engine in by_turns() {
        let none = engine.zeros::<f32>(&[2, 0]).unwrap();
        assert_eq!(one(engine, none.any(&[1], false)), [0.0; 2]);
        assert_eq!(one(engine, none.all(&[1], false)), [1.0; 2]);
        assert_eq!(one(engine, none.count_nonzero(&[1], false)), [0.0; 2]);
        assert_eq!(one(engine, none.norm(2.0, &[1], false)), [0.0; 2]);
        if ["cpu", "opencl"].contains(&&*engine.selected().device.backend) {
            assert_eq!(one(engine, none.logsumexp(&[1], false)), [f32::NEG_INFINITY; 2]);
            let infinite = engine.tensor_from(&[f32::INFINITY, 1.0, f32::NEG_INFINITY, f32::NEG_INFINITY], &[2, 2]);
            let sums = one(engine, infinite.unwrap().logsumexp(&[1], false));
            assert_eq!(sums, [f32::INFINITY, f32::NEG_INFINITY], "{}", name(engine));
            let nan = engine.tensor(&[1.0, f32::NAN]).unwrap();
            assert!(
                one(engine, nan.logsumexp(&[], false))[0].is_nan()
                    && one(engine, nan.norm(2.0, &[], false))[0].is_nan()
            );
            assert_eq!(one(engine, nan.count_nonzero(&[], false)), [2.0], "{}", name(engine));
        }
    }
}
