//! Softmax and its logarithm.

use cantus::ops::Expr;

use crate::{Numbers, by_turns, close, name, of_halves, oracle, seeds, tensor, wide};

#[test]
fn any_axis() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..20) {
            let mut numbers = Numbers::new(200 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [1500, 300, 40][rank - 1]);
            let x = numbers.array(&shape);
            let (t, f) = (Expr::from(&tensor(engine, &x)), wide(&x));
            let axis = numbers.below(rank);
            let what = |op: &str| format!("{op} along {axis} of {shape:?}, seed {seed}, on {}", name(engine));
            close(&t.softmax(axis as isize), &oracle::rows(&f, axis, oracle::softmax), 2e-6, &what("softmax"));
            let logarithms = oracle::rows(&f, axis, |row| oracle::softmax(row).iter().map(|p| p.ln()).collect());
            close(&t.log_softmax(axis as isize), &logarithms, 5e-6, &what("log_softmax"));
        }
    }
}

#[test]
fn halves_are_computed_in_float32() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..6) {
            let mut numbers = Numbers::new(300 + seed);
            let shape = [1 + numbers.below(30), 1 + numbers.below(700)];
            let x = numbers.array(&shape);
            let expected = oracle::rows(&of_halves(&x), 1, oracle::softmax);
            let what = format!("{:?}, seed {seed}, on {}", x.shape(), name(engine));
            close(&crate::halves(engine, &x).expr().softmax(-1), &expected, 1e-3, &what);
        }
    }
}
