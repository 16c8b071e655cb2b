//! Each device's speed: a picture, a sum, a product of matrices.

use std::time::Instant;

use cantus::Engine;
use cantus::ops::Expr;

use crate::api::Measured;

/// The number of measurements on each device.
const EACH: usize = 3;

/// Measures every device; calls `progress` after each measurement with the percentage.
///
/// # Errors
/// As the operations.
pub fn all(engines: &[Engine], progress: &mut dyn FnMut(u8)) -> cantus::Result<Vec<Measured>> {
    const SIDE: usize = 512;
    let mut measured = Vec::new();
    for engine in engines {
        let device = &engine.selected().device.name;
        let mut add =
            |name: &str, unit: &str, amount: f64, work: &dyn Fn() -> cantus::Result<()>| -> cantus::Result<()> {
                work()?;
                let mut times = Vec::new();
                for _ in 0..5 {
                    let begun = Instant::now();
                    work()?;
                    times.push(begun.elapsed().as_secs_f64().max(1e-9));
                }
                times.sort_by(f64::total_cmp);
                let median = times.get(times.len() / 2).copied().unwrap_or(f64::INFINITY);
                measured.push(Measured {
                    device: device.clone(),
                    name: name.to_owned(),
                    milliseconds: median * 1e3,
                    rate: amount / median,
                    unit: unit.to_owned(),
                });
                progress((100 * measured.len() / (EACH * engines.len())).min(100) as u8);
                Ok(())
            };
        add("field 512x512", "elements/s", (SIDE * SIDE) as f64, &|| {
            let params = cantus::ops::field::FieldParams::new(SIDE, SIDE);
            cantus::ops::field::field(engine, &params)?.to_bytes().map(drop)
        })?;
        let x = engine.zeros::<f32>(&[4 << 20])?;
        add("sum of 16 MiB of f32", "bytes/s", (16 << 20) as f64, &|| {
            Expr::from(&x).sum(&[], false).eval()?.to_bytes().map(drop)
        })?;
        let a = engine.zeros::<f32>(&[SIDE, SIDE])?;
        add("matmul 512x512x512 f32", "FLOP/s", 2.0 * (SIDE * SIDE * SIDE) as f64, &|| {
            Expr::from(&a).matmul(&a).eval()?.to_bytes().map(drop)
        })?;
    }
    Ok(measured)
}
