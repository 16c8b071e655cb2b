//! Layer normalisation.

use cantus::ops::Expr;

use crate::{Numbers, by_turns, close, name, oracle, seeds, tensor, wide};

#[test]
fn the_last_axis() {
    for engine in by_turns() {
        for seed in seeds(engine, 0..20) {
            let mut numbers = Numbers::new(240 + seed);
            let rank = 1 + numbers.below(3);
            let shape = numbers.shape(rank, [1500, 300, 40][rank - 1]);
            let x = numbers.array(&shape);
            let (t, f) = (Expr::from(&tensor(engine, &x)), wide(&x));
            let length = shape[rank - 1];
            let (gain, bias) = (numbers.array(&[length]), numbers.array(&[length]));
            let expected = oracle::rows(&f, rank - 1, |row| {
                let mean = row.iter().sum::<f64>() / row.len() as f64;
                let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
                let factor = 1.0 / (variance + 1e-5).sqrt();
                let scaled = row.iter().zip(gain.iter().zip(bias.iter()));
                scaled.map(|(x, (g, b))| (x - mean) * factor * f64::from(*g) + f64::from(*b)).collect()
            });
            let what = format!("{shape:?}, seed {seed}, on {}", name(engine));
            // A short row may have a small variance, which enlarges what float32 rounds.
            let tolerance = if length < 8 { 2e-3 } else { 3e-5 };
            close(&t.layer_norm(tensor(engine, &gain), tensor(engine, &bias), 1e-5), &expected, tolerance, &what);
        }
    }
}
