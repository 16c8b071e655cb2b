//! Reductions, normalisations, prefix sums.

use cantus::DType;
use cantus::ops::Expr;
use ndarray::{ArrayD, IxDyn};

use crate::{Numbers, by_turns, close, halves, name, of_halves, oracle, seeds, tensor, wide};

/// Some axes of this many, in order; at least one.
pub(crate) fn some_axes(numbers: &mut Numbers, rank: usize) -> Vec<usize> {
    let mask = 1 + numbers.below((1 << rank) - 1);
    (0..rank).filter(|axis| mask >> axis & 1 == 1).collect()
}

#[test]
fn sums_products_extremes_and_moments_over_any_axes() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..40) {
            let mut numbers = Numbers::new(seed);
            let rank = 1 + numbers.below(4);
            let shape = numbers.shape(rank, [3000, 70, 20, 9][rank - 1]);
            let x = numbers.array(&shape);
            let places = some_axes(&mut numbers, rank);
            let axes: Vec<isize> = places
                .iter()
                .map(|&axis| if seed % 2 == 0 { axis as isize } else { axis as isize - rank as isize })
                .collect();
            let keep = numbers.below(2) == 0;
            let (t, f) = (Expr::from(&tensor(engine, &x)), wide(&x));
            let what = |op: &str| format!("{op} over {axes:?} of {shape:?}, seed {seed}, on {}", name(engine));
            let count: usize = places.iter().map(|&axis| shape[axis]).product();
            let magnitude = 4.0 * count.max(1) as f64;
            let sum = |row: &[f64]| row.iter().sum::<f64>();
            close(&t.sum(&axes, keep), &oracle::reduce(&f, &places, keep, sum), 1e-6 * magnitude, &what("sum"));
            let small = &t * t.constant(0.25);
            let product = oracle::reduce(&f, &places, keep, |row| row.iter().map(|x| 0.25 * x).product());
            close(&small.prod(&axes, keep), &product, 1e-4, &what("prod"));
            if count == 0 {
                continue;
            }
            let (greatest, least) = (
                |row: &[f64]| row.iter().copied().fold(f64::MIN, f64::max),
                |row: &[f64]| row.iter().copied().fold(f64::MAX, f64::min),
            );
            close(&t.max(&axes, keep), &oracle::reduce(&f, &places, keep, greatest), 0.0, &what("max"));
            close(&t.min(&axes, keep), &oracle::reduce(&f, &places, keep, least), 0.0, &what("min"));
            let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len() as f64;
            close(&t.mean(&axes, keep), &oracle::reduce(&f, &places, keep, mean), 1e-5, &what("mean"));
            let variance = |row: &[f64]| row.iter().map(|x| (x - mean(row)).powi(2)).sum::<f64>() / row.len() as f64;
            close(&t.variance(&axes, 0.0, keep), &oracle::reduce(&f, &places, keep, variance), 2e-5, &what("variance"));
            // What is computed on the way in and out belongs to the kernel.
            let around = t.exp().sum(&axes, keep).log();
            let expected = oracle::reduce(&f, &places, keep, |row| row.iter().map(|x| x.exp()).sum::<f64>().ln());
            close(&around, &expected, 2e-5, &what("log sum exp"));
        }
    }
}

/// Reduces columns in parts: several threads take rows of one column, not equally many.
#[test]
fn columns_of_many_rows() {
    for engine in by_turns() {
        for (seed, (shape, axis)) in (2300..).zip([(vec![5003, 70], 0), (vec![3, 1009, 130], 1), (vec![40_009, 3], 0)])
        {
            let mut numbers = Numbers::new(seed);
            let x = numbers.array(&shape);
            let (t, f) = (Expr::from(&tensor(engine, &x)), wide(&x));
            let what = |op: &str| format!("{op} over {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let sum = oracle::reduce(&f, &[axis], false, |row| row.iter().sum());
            close(&t.sum(&[axis as isize], false), &sum, 4e-6 * shape[axis] as f64, &what("sum"));
            let greatest = oracle::reduce(&f, &[axis], false, |row| row.iter().copied().fold(f64::MIN, f64::max));
            close(&t.max(&[axis as isize], false), &greatest, 0.0, &what("max"));
        }
    }
}

/// Few elements beside neighbours that stay, as a pool's windows have them.
#[test]
fn extremes_of_windows() {
    for engine in by_turns() {
        for (seed, (shape, places)) in (2400..).zip([
            (vec![3, 5, 2, 4, 2, 9], vec![2, 4]),
            (vec![3, 2, 64], vec![1]),
            (vec![9, 8], vec![0]),
            (vec![3, 3, 17], vec![0, 1]),
            (vec![5, 1, 2, 12], vec![1, 2]),
            (vec![2, 10, 8], vec![1]),
        ]) {
            let mut numbers = Numbers::new(seed);
            let mut x = numbers.array(&shape);
            if seed % 2 == 0 {
                x.as_slice_mut().unwrap()[7] = f32::NAN;
            }
            let axes: Vec<isize> = places.iter().map(|&axis| axis as isize).collect();
            let (t, f) = (Expr::from(&tensor(engine, &x)), wide(&x));
            for keep in [false, true] {
                let what = |op: &str| format!("{op} over {axes:?} of {shape:?}, seed {seed}, on {}", name(engine));
                let extreme = |by: fn(f64, f64) -> f64| {
                    let nan = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { by(a, b) };
                    oracle::reduce(&f, &places, keep, |row| row.iter().copied().reduce(nan).unwrap())
                };
                close(&t.max(&axes, keep), &extreme(f64::max), 0.0, &what("max"));
                close(&(-&t).min(&axes, keep), &extreme(f64::max).mapv(|x| -x), 0.0, &what("min of negated"));
            }
        }
    }
}

#[test]
fn the_first_greatest_is_found() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..20) {
            let mut numbers = Numbers::new(100 + seed);
            let shape = [1 + numbers.below(40), 1 + numbers.below(90), 1 + numbers.below(5)];
            // Few values, so that there are ties.
            let x = numbers.array(&shape).mapv(|x| x.round());
            let t = Expr::from(&tensor(engine, &x));
            let first = |row: &[f64], better: fn(f64, f64) -> bool| {
                let mut best = 0;
                (0..row.len()).for_each(|i| {
                    if better(row[i], row[best]) {
                        best = i
                    }
                });
                best as f64
            };
            let axis = numbers.below(3);
            let what = format!("axis {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let f = wide(&x);
            close(
                &t.argmax(Some(axis as isize), false),
                &oracle::reduce(&f, &[axis], false, |row| first(row, |a, b| a > b)),
                0.0,
                &what,
            );
            close(
                &t.argmin(Some(axis as isize), true),
                &oracle::reduce(&f, &[axis], true, |row| first(row, |a, b| a < b)),
                0.0,
                &what,
            );
            close(
                &t.argmax(None, false),
                &oracle::reduce(&f, &[0, 1, 2], false, |row| first(row, |a, b| a > b)),
                0.0,
                &what,
            );
        }
        // Long enough for two steps.
        let mut long = vec![1.0_f32; 300_000];
        long[123_457] = 2.0;
        long[234_567] = 2.0;
        let t = engine.tensor(&long).unwrap();
        assert_eq!(t.argmax(None, false).eval().unwrap().to_vec::<u32>().unwrap(), [123_457], "{}", name(engine));
        let whole = engine.tensor(&[3_i32, -5, 7, 7, -5]).unwrap();
        assert_eq!(whole.argmin(Some(0), false).eval().unwrap().to_vec::<u32>().unwrap(), [1]);
    }
}

#[test]
fn long_sums_are_accurate() {
    // The worst for a running sum: many equal values, and a large one among small ones.
    let count = 1 << 22;
    for engine in by_turns() {
        let mut numbers = Numbers::new(7);
        let mut values: Vec<f32> = (0..count).map(|_| numbers.float()).collect();
        for (what, values) in [
            ("equal", vec![0.1_f32; count]),
            ("random", values.clone()),
            ("mixed", {
                values[count / 2] = 1e7;
                values
            }),
        ] {
            let expected: f64 = values.iter().map(|&x| f64::from(x)).sum();
            let magnitude: f64 = values.iter().map(|&x| f64::from(x.abs())).sum();
            let t = engine.tensor(&values).unwrap();
            let got = t.sum(&[], false).eval().unwrap().to_vec::<f32>().unwrap()[0];
            let error = (f64::from(got) - expected).abs() / magnitude;
            assert!(error <= 1e-6, "{what}: {got}, expected {expected}, off by {error:e} on {}", name(engine));
        }
    }
}

#[test]
fn integers_are_summed_by_wrapping() {
    for engine in by_turns() {
        let values: Vec<i32> = (0..100_000_i64).map(|i| (i * 1_664_525 + 1_013_904_223) as i32).collect();
        let t = engine.tensor(&values).unwrap();
        let expected = values.iter().fold(0_i32, |sum, &x| sum.wrapping_add(x));
        assert_eq!(t.sum(&[], false).eval().unwrap().to_vec::<i32>().unwrap(), [expected], "{}", name(engine));
        let prefix = t.cumsum(0).eval().unwrap().to_vec::<i32>().unwrap();
        let mut running = 0_i32;
        for (place, (&value, &got)) in values.iter().zip(&prefix).enumerate() {
            running = running.wrapping_add(value);
            assert_eq!(got, running, "{place} on {}", name(engine));
        }
        assert_eq!(t.max(&[], false).eval().unwrap().to_vec::<i32>().unwrap(), [*values.iter().max().unwrap()]);
    }
}

#[test]
fn halves_are_reduced_in_float32() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..6) {
            let mut numbers = Numbers::new(300 + seed);
            let shape = [1 + numbers.below(30), 1 + numbers.below(700)];
            let x = numbers.array(&shape);
            let (t, f) = (Expr::from(&halves(engine, &x)), of_halves(&x));
            let what = format!("{shape:?}, seed {seed}, on {}", name(engine));
            let sum = t.sum(&[-1], false);
            assert_eq!(sum.dtype().unwrap(), DType::F16);
            close(&sum, &oracle::reduce(&f, &[1], false, |row| row.iter().sum()), 2e-3, &what);
        }
    }
}

#[test]
fn nan_wins() {
    for engine in by_turns() {
        let mut values = vec![1.0_f32; 1000];
        values[700] = f32::NAN;
        values[800] = f32::NAN;
        values[10] = f32::INFINITY;
        let t = engine.tensor(&values).unwrap();
        let one = |expr: Expr| expr.eval().unwrap().to_vec::<f32>().unwrap()[0];
        assert!(one(t.max(&[], false)).is_nan() && one(t.min(&[], false)).is_nan() && one(t.sum(&[], false)).is_nan());
        assert_eq!(t.argmax(None, false).eval().unwrap().to_vec::<u32>().unwrap(), [700], "{}", name(engine));
        assert_eq!(t.argmin(None, false).eval().unwrap().to_vec::<u32>().unwrap(), [700], "{}", name(engine));
        // The exponential is a polynomial elsewhere, of a number that is kept within its range.
        if !["cpu", "opencl"].contains(&&*engine.selected().device.backend) {
            continue;
        }
        let expected = ArrayD::from_shape_vec(IxDyn(&[1]), vec![f64::NAN]).unwrap();
        close(&t.softmax(0).slice(&[10..11]), &expected, 0.0, &name(engine));
    }
}
