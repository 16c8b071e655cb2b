//! Scans and differences.

use cantus::DType;
use cantus::ops::Expr;

use crate::{Numbers, by_turns, close, few, halves, name, of_halves, oracle, tensor, wide};

/// Each element with those before it.
fn running(row: &[f64], f: fn(f64, f64) -> f64) -> Vec<f64> {
    let mut total = None;
    row.iter()
        .map(|&x| {
            let next = total.map_or(x, |total| f(total, x));
            total = Some(next);
            next
        })
        .collect()
}

#[test]
fn prefix_sums_along_any_axis() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(400 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [40_000, 2500, 30][rank - 1]);
            let x = numbers.array(&shape).mapv(|x| (x * 4.0).round());
            let axis = numbers.below(rank);
            let t = Expr::from(&tensor(engine, &x));
            let what = format!("along {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let sums = oracle::rows(&wide(&x), axis, |row| running(row, |a, b| a + b));
            // Whole numbers: exact.
            close(&t.cumsum(axis as isize), &sums, 0.0, &what);
            close(&t.cumsum_exclusive(axis as isize), &(sums - wide(&x)), 0.0, &what);
        }
    }
}

/// Rows that a processor cuts into parts; the sums are right to 1e-6 of what was summed.
#[test]
fn long_rows() {
    for engine in by_turns() {
        for (rows, length) in [(1, 300_001), (2, 65_536), (700, 33)] {
            let mut numbers = Numbers::new(460 + length as u64);
            let x = numbers.array(&[rows, length]);
            let t = tensor(engine, &x);
            let what = format!("[{rows}, {length}] on {}", name(engine));
            let sums = oracle::rows(&wide(&x), 1, |row| running(row, |a, b| a + b));
            let summed = oracle::rows(&wide(&x.mapv(f32::abs)), 1, |row| running(row, |a, b| a + b));
            let found = t.cumsum(1).eval().unwrap().to_vec::<f32>().unwrap();
            for ((found, sum), summed) in found.iter().zip(&sums).zip(&summed) {
                assert!((f64::from(*found) - sum).abs() <= 1e-6 * summed.max(1.0), "{what}: {found}, {sum}");
            }
            let whole = (&t * 1e9_f32).cast(DType::I32);
            let integers = whole.eval().unwrap().to_vec::<i32>().unwrap();
            let wrapped: Vec<i32> = integers
                .chunks(length)
                .flat_map(|row| {
                    row.iter().scan(0_i32, |sum, &x| {
                        *sum = sum.wrapping_add(x);
                        Some(*sum)
                    })
                })
                .collect();
            assert_eq!(whole.cumsum(1).eval().unwrap().to_vec::<i32>().unwrap(), wrapped, "{what}");
        }
    }
}

#[test]
fn running_products_extremes_and_logarithms_of_sums() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(430 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [9000, 1500, 30][rank - 1]);
            let axis = numbers.below(rank);
            let x = numbers.array(&shape);
            let t = Expr::from(&tensor(engine, &x));
            let what = |op: &str| format!("{op} along {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let of = |f: fn(f64, f64) -> f64| oracle::rows(&wide(&x), axis, |row| running(row, f));
            close(&t.cummax(axis as isize), &of(f64::max), 0.0, &what("cummax"));
            close(&t.cummin(axis as isize), &of(f64::min), 0.0, &what("cummin"));
            let log_sums = of(|a, b| a.max(b) + (-(a - b).abs()).exp().ln_1p());
            close(&t.logcumsumexp(axis as isize), &log_sums, 1e-5, &what("logcumsumexp"));
            // Near 1, so that thousands of factors stay in range.
            let factors = x.mapv(|x| 1.0 + x / 4096.0);
            let products = oracle::rows(&wide(&factors), axis, |row| running(row, |a, b| a * b));
            let t = Expr::from(&tensor(engine, &factors));
            close(&t.cumprod(axis as isize), &products, 1e-5, &what("cumprod"));
            let whole = t.cast(DType::I32).binary(cantus::ops::Binary::Sub, 3);
            close(
                &whole.cummax(axis as isize),
                &oracle::rows(&wide(&factors.mapv(|x| x.trunc() - 3.0)), axis, |row| running(row, f64::max)),
                0.0,
                &what("cummax of i32"),
            );
        }
    }
}

#[test]
fn integers_wrap_in_products_and_meet_their_limits() {
    for engine in by_turns() {
        let x: Vec<i32> = (0..3000).map(|i| 2 * i + 1).collect();
        let expected: Vec<i32> = x
            .iter()
            .scan(1_i32, |p, x| {
                *p = p.wrapping_mul(*x);
                Some(*p)
            })
            .collect();
        let t = engine.tensor(&x).unwrap();
        assert_eq!(t.cumprod(0).eval().unwrap().to_vec::<i32>().unwrap(), expected, "{}", name(engine));
        let low = engine.tensor(&[i32::MIN; 2000]).unwrap();
        assert_eq!(low.cummax(0).eval().unwrap().to_vec::<i32>().unwrap(), [i32::MIN; 2000], "{}", name(engine));
        let high = engine.tensor(&[u32::MAX; 2000]).unwrap();
        assert_eq!(high.cummin(0).eval().unwrap().to_vec::<u32>().unwrap(), [u32::MAX; 2000], "{}", name(engine));
    }
}

#[test]
fn differences_along_any_axis() {
    for engine in by_turns() {
        for seed in few(engine, 0..12) {
            let mut numbers = Numbers::new(460 + seed);
            let shape = numbers.shape(3, 9);
            let (axis, n) = (numbers.below(3), numbers.below(4));
            let x = numbers.array(&shape).mapv(|x| (x * 4.0).round());
            let what = format!("{n} along {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let mut expected = wide(&x);
            for _ in 0..n.min(shape[axis]) {
                let length = expected.shape()[axis];
                let part = |from: usize| {
                    expected.slice_axis(ndarray::Axis(axis), ndarray::Slice::from(from..from + length - 1)).to_owned()
                };
                expected = part(1) - part(0);
            }
            close(&tensor(engine, &x).diff(n, axis as isize), &expected, 0.0, &what);
        }
    }
}

#[test]
fn halves_are_summed_in_float32() {
    for engine in by_turns() {
        for seed in few(engine, 0..6) {
            let mut numbers = Numbers::new(350 + seed);
            let shape = [1 + numbers.below(30), 1 + numbers.below(700)];
            let x = numbers.array(&shape);
            let (t, f) = (Expr::from(&halves(engine, &x)), of_halves(&x));
            let what = format!("{shape:?}, seed {seed}, on {}", name(engine));
            let sums = oracle::rows(&f, 1, |row| running(row, |a, b| a + b));
            close(&t.cumsum(1), &sums, 2e-3, &what);
            close(&t.cummax(0), &oracle::rows(&f, 0, |row| running(row, f64::max)), 0.0, &what);
        }
    }
}

/// The values before a part decide, not the part's own product.
#[test]
fn zeros_stay_zeros_before_large_numbers() {
    for engine in by_turns().iter().filter(|engine| engine.selected().device.backend == "cpu") {
        for length in [9, 100, 5000, 200_000] {
            let mut values = vec![1e38_f32; length];
            values[0] = 0.0;
            let products = engine.tensor(&values).unwrap().cumprod(0).eval().unwrap().to_vec::<f32>().unwrap();
            assert!(products.iter().all(|product| *product == 0.0), "{length} numbers");
        }
    }
}
