//! Heat spreads through a plate, on the plain processor: by code that the build script made of the WGSL, and by the executor.
//!
//! cargo run --release -p cantus-example-ahead

use std::time::Instant;

use cantus::{Engine, Kernel, Result};

/// The kernels that `build.rs` wrote.
mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

const WIDTH: usize = 1000;
const HEIGHT: usize = 600;
const STEPS: usize = 200;

/// The plate after all steps; its upper rim is hot.
fn spread(engine: &Engine, kernel: &Kernel) -> Result<Vec<f32>> {
    let mut plate = vec![0.0_f32; WIDTH * HEIGHT];
    plate.iter_mut().take(WIDTH).for_each(|heat| *heat = 100.0);
    let (mut before, mut after) = (engine.tensor(&plate)?, engine.zeros::<f32>(&[WIDTH * HEIGHT])?);
    for _ in 0..STEPS {
        engine
            .dispatch(kernel)
            .bind("before", &before)
            .bind("after", &after)
            .set("plate.width", WIDTH as u32)
            .set("plate.height", HEIGHT as u32)
            .workgroups([WIDTH.div_ceil(16) as u32, HEIGHT.div_ceil(16) as u32, 1])
            .run()?;
        std::mem::swap(&mut before, &mut after);
    }
    before.to_vec::<f32>()
}

fn main() -> Result<()> {
    let heat = kernels::heat::kernel()?;
    let processor = Engine::builder().backend("cpu").build()?;
    let mut plates = Vec::new();
    for (way, kernel) in [("compiled ahead", heat.clone()), ("by the executor", heat.without_ahead())] {
        spread(&processor, &kernel)?;
        let start = Instant::now();
        plates.push(spread(&processor, &kernel)?);
        println!("{STEPS} steps of {WIDTH} x {HEIGHT} {way}: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    let same = |a: &f32, b: &f32| a.to_bits() == b.to_bits();
    let equal = plates.windows(2).all(|pair| matches!(pair, [a, b] if a.iter().zip(b).all(|(a, b)| same(a, b))));
    println!("{}", if equal { "the same bits" } else { "they differ: a defect" });

    // The best device of the machine takes the same kernel; on a GPU, its WGSL.
    let engine = Engine::new()?;
    spread(&engine, &heat)?;
    println!("{}: the same kernel", engine.selected().device.name);
    std::process::exit(i32::from(!equal));
}
