//! Heat spreads along a rod: the app's own kernel runs again and again, and an operation of the library at the end.

use cantus::{Engine, Kernel};

const STEP: &str = include_str!("step.wgsl");

const CELLS: usize = 256;

fn main() -> cantus::Result<()> {
    let engine = Engine::new()?;
    let step = Kernel::from_wgsl(STEP)?;

    let mut cells = vec![0.0_f32; CELLS];
    cells[CELLS / 2] = 100.0;
    let (mut now, mut next) = (engine.tensor(&cells)?, engine.zeros::<f32>(&[CELLS])?);
    for _ in 0..500 {
        engine
            .dispatch(&step)
            .bind("before", &now)
            .bind("after", &next)
            .set("params.rate", 0.25_f32)
            .invocations(CELLS as u32)
            .run()?;
        std::mem::swap(&mut now, &mut next);
    }

    let total = now.sum(&[], false).eval()?.to_vec::<f32>()?;
    let warmest = now.max(&[], false).eval()?.to_vec::<f32>()?;
    println!("{}: {:.3} in all, {:.3} where it is warmest", engine.selected().device.name, total[0], warmest[0]);
    assert!((total[0] - 100.0).abs() < 0.01, "heat got lost");
    Ok(())
}
