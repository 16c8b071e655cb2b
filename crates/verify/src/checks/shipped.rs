//! The shipped kernels, against float64 written from the definitions: within the tolerance that each states. `checks::all` has them. The oracles follow the
//! definitions in `field`'s documentation, in float64, and constants are computed again from their definitions. Points on the seam of atan2 are left out:
//! rounding decides their side.

use cantus::Engine;
use cantus::ops::{
    self,
    field::{FieldParams, Frequency},
};

use super::{Check, words};
use crate::inputs::Random;

const PHI: f64 = 1.618_033_988_749_895;
const LAMBDA: f64 = 0.618_033_988_749_895;
const PHI_PHI: f64 = 2.178_457_567_937_599_5;

/// The coordinate of column or row `i` of `n`.
fn unit(i: usize, n: usize) -> f64 {
    if n == 1 { -1.0 } else { (2.0 * i as f64 - (n - 1) as f64) / (n - 1) as f64 }
}

fn field_f64(x: f64, y: f64, hertz: f64, time: f64) -> f64 {
    let r = PHI * x.hypot(y);
    (0.01 * hertz * r + PHI * y.atan2(x) + phi_phi() * time).sin() * (-LAMBDA * r).exp()
}

fn phi_pattern_f64(x: f64, y: f64) -> f64 {
    (10.0 * phi_phi() * x.hypot(y) + PHI * y.atan2(x)).sin()
}

/// φ^φ by its definition: the constant above is only a check on the digits.
fn phi_phi() -> f64 {
    let value = PHI.powf(PHI);
    assert!((value - PHI_PHI).abs() < 1e-5);
    value
}

/// The angle jumps where y = 0 and x < 0; a rounding decides the side there.
fn on_seam(x: f64, y: f64) -> bool {
    x < 0.0 && y.abs() < 1e-6
}

fn compare(values: &[f32], (width, height): (usize, usize), expected: impl Fn(f64, f64) -> f64) -> Result<(), String> {
    if values.len() != width * height {
        return Err(format!("{} values, {} expected", values.len(), width * height));
    }
    for (place, &got) in values.iter().enumerate() {
        let (x, y) = (unit(place % width, width), unit(place / width, height));
        let want = expected(x, y);
        // Not `>`: a NaN must fail.
        if !on_seam(x, y) && !((f64::from(got) - want).abs() <= 1e-5) {
            return Err(format!("row {}, column {}: {got}, expected {want}", place / width, place % width));
        }
    }
    Ok(())
}

fn coherence_f64(values: &[f32], width: usize) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
    let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / count;
    if variance == 0.0 {
        return 1.0;
    }
    let z: Vec<f64> = values.iter().map(|&v| (f64::from(v) - mean) / variance.sqrt()).collect();
    let mut sum = 0.0;
    for j in 1..values.len() / width {
        for i in 1..width {
            let (here, above, left) = (z[j * width + i], z[(j - 1) * width + i], z[j * width + i - 1]);
            sum += LAMBDA * (PHI * here * above + PHI * here * left).abs();
        }
    }
    (sum / count).min(1.0)
}

/// A reproducible noise in [-1, 1).
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| (random.u64() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
}

const SHAPES: [(usize, usize); 9] =
    [(1, 1), (1, 7), (7, 1), (2, 2), (64, 64), (333, 500), (4096, 3), (3, 4096), (1024, 257)];

/// All of them.
pub fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (width, height) in SHAPES {
        for (frequency, time) in [
            (Frequency::Love, 0.0),
            (Frequency::Oneness, 1.5),
            (Frequency::Unity, -3.25e4),
            (Frequency::Hertz(0.5), 0.1),
            // 0.01 f φ √2 is 22.9 f / 1000: an argument just below 64.
            (Frequency::Hertz(2400.0), 1.0),
        ] {
            let name = format!("shipped field {width} x {height}, {frequency}, t = {time}");
            checks.push(Check::new(name, move |engine| {
                let params = FieldParams::new(width, height).frequency(frequency).time(time);
                let values = ops::field::field(engine, &params).and_then(|tensor| tensor.to_vec::<f32>());
                compare(&values.map_err(words)?, (width, height), |x, y| field_f64(x, y, frequency.hertz(), time))
            }));
        }
        checks.push(Check::new(format!("shipped phi_pattern {width} x {height}"), move |engine| {
            let values = ops::field::phi_pattern(engine, width, height).and_then(|tensor| tensor.to_vec::<f32>());
            compare(&values.map_err(words)?, (width, height), phi_pattern_f64)
        }));
    }
    checks.push(Check::new("shipped field_tiles 300 x 200 in tiles of 7 rows", tiles));
    for (width, height) in
        [(1, 1), (1, 9), (9, 1), (2, 2), (5, 3), (256, 33), (257, 34), (1000, 700), (3, 20_000), (20_000, 3)]
    {
        let of = move |offset: f32, scale: f32| {
            let seed = (width * 31 + height) as u64;
            move |engine: &Engine| {
                let values: Vec<f32> = noise(width * height, seed).iter().map(|v| offset + scale * v).collect();
                coherence(engine, &values, width)
            }
        };
        checks.push(Check::new(format!("shipped coherence of noise {width} x {height}"), of(0.0, 1.0)));
        let name = format!("shipped coherence of noise about 1000, {width} x {height}");
        checks.push(Check::new(name, of(1000.0, 1.0)));
        checks.push(Check::new(format!("shipped coherence of a constant {width} x {height}"), of(0.3, 0.0)));
    }
    for (name, seed, scale) in [("near 1e-30", 3, 1e-30), ("near 1e37", 4, 1e37)] {
        checks.push(Check::new(format!("shipped coherence of values {name}"), move |engine| {
            let values: Vec<f32> = noise(64 * 64, seed).iter().map(|v| v * scale).collect();
            coherence(engine, &values, 64)
        }));
    }
    checks.push(Check::new("shipped coherence of a field", |engine| {
        let smooth = ops::field::field(engine, &FieldParams::new(640, 480)).and_then(|tensor| tensor.to_vec::<f32>());
        coherence(engine, &smooth.map_err(words)?, 640)
    }));
    checks
}

fn tiles(engine: &Engine) -> Result<(), String> {
    let (width, height) = (300, 200);
    let mut values = vec![f32::NAN; width * height];
    let params = FieldParams::new(width, height);
    let filled = ops::field::field_tiles(engine, &params, Some(7), |tile| {
        for row in 0..tile.rows {
            let start = (tile.first_row + row) * width + tile.first_column;
            values[start..start + tile.columns].copy_from_slice(&tile.values[row * tile.columns..][..tile.columns]);
        }
        Ok(())
    });
    filled.map_err(words)?;
    compare(&values, (width, height), |x, y| field_f64(x, y, 528.0, 0.0))
}

fn coherence(engine: &Engine, values: &[f32], width: usize) -> Result<(), String> {
    let expected = coherence_f64(values, width);
    let tensor = engine.tensor_from(values, &[values.len() / width, width]).map_err(words)?;
    let got = f64::from(ops::coherence(engine, &tensor).map_err(words)?);
    if (got - expected).abs() <= 2e-5 { Ok(()) } else { Err(format!("{got}, expected {expected}")) }
}
