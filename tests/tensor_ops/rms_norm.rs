//! Root mean square normalisation.

use cantus::ops::Expr;

use crate::{Numbers, by_turns, close, name, oracle, seeds, tensor, wide};

#[test]
fn the_last_axis() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..20) {
            let mut numbers = Numbers::new(220 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [1500, 300, 40][rank - 1]);
            let x = numbers.array(&shape);
            let (t, f) = (Expr::from(&tensor(engine, &x)), wide(&x));
            let gain = numbers.array(&shape[rank - 1..]);
            let expected = oracle::rows(&f, rank - 1, |row| {
                let mean_square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
                let factor = 1.0 / (mean_square + 1e-6).sqrt();
                row.iter().zip(gain.iter()).map(|(x, g)| x * factor * f64::from(*g)).collect()
            });
            let what = format!("{shape:?}, seed {seed}, on {}", name(engine));
            close(&t.rms_norm(tensor(engine, &gain), 1e-6), &expected, 5e-6, &what);
        }
    }
}
