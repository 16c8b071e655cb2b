//! Prefix sums.

use cantus::ops::Expr;

use crate::{Numbers, close, engines, halves, name, of_halves, oracle, seeds, tensor, wide};

#[test]
fn prefix_sums_along_any_axis() {
    for engine in engines() {
        for seed in seeds(engine, 0..12) {
            let mut numbers = Numbers::new(400 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [40_000, 2500, 30][rank - 1].min(40_000));
            let x = numbers.array(&shape).mapv(|x| (x * 4.0).round());
            let axis = numbers.below(rank);
            let t = Expr::from(&tensor(engine, &x));
            let what = format!("along {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            let scan = |inclusive: bool| {
                oracle::rows(&wide(&x), axis, |row| {
                    let mut sum = 0.0;
                    row.iter()
                        .map(|x| {
                            sum += x;
                            if inclusive { sum } else { sum - x }
                        })
                        .collect()
                })
            };
            // Whole numbers: exact.
            close(&t.cumsum(axis as isize), &scan(true), 0.0, &what);
            close(&t.cumsum_exclusive(axis as isize), &scan(false), 0.0, &what);
        }
    }
}

#[test]
fn halves_are_summed_in_float32() {
    for engine in engines() {
        for seed in seeds(engine, 0..6) {
            let mut numbers = Numbers::new(350 + seed);
            let shape = [1 + numbers.below(30), 1 + numbers.below(700)];
            let x = numbers.array(&shape);
            let (t, f) = (Expr::from(&halves(engine, &x)), of_halves(&x));
            let what = format!("{shape:?}, seed {seed}, on {}", name(engine));
            let running = oracle::rows(&f, 1, |row| {
                row.iter()
                    .scan(0.0, |sum, x| {
                        *sum += x;
                        Some(*sum)
                    })
                    .collect()
            });
            close(&t.cumsum(1), &running, 2e-3, &what);
        }
    }
}
