//! Particles that fall in a box, by two kernels with types.
//!
//! cargo run --release -p cantus-example-typed
//!
//! By hand, a dispatch of `step` needs both structures once more in Rust with their padding, the file's text with what it shares pasted in,
//! and names that nobody checks before it runs:
//!
//! ```ignore
//! #[repr(C)] #[derive(Clone, Copy, Pod, Zeroable)]
//! struct Particle { position: [f32; 3], mass: f32, velocity: [f32; 3], age: u32 }
//! #[repr(C)] #[derive(Clone, Copy, Pod, Zeroable)]
//! struct Room { low: [f32; 3], free_1: u32, high: [f32; 3], free_2: u32 }
//! let text = [include_str!("particle.wgsl"), include_str!("step.wgsl")].concat();
//! let step = Kernel::from_wgsl(&text)?;
//! let particles = engine.tensor::<u32>(bytemuck::cast_slice(&start))?;
//! engine.dispatch(&step).bind_raw("particles", &particles).set_bytes("within", bytes_of(&within)).set("seconds", 0.01_f32)
//!     .invocations(COUNT).run()?;
//! let moved: Vec<Particle> = bytemuck::cast_slice(&particles.to_vec::<u32>()?).to_vec();
//! ```

use cantus::typed::TensorOf;
use cantus::{Engine, Result};

/// The modules that `build.rs` writes.
mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

const COUNT: usize = 10_000;

fn main() -> Result<()> {
    let engine = Engine::new()?;
    let within = kernels::Room { low: [-1.0; 3].into(), high: [1.0; 3].into() };
    let particles = TensorOf::zeros(&engine, COUNT)?;
    kernels::scatter(&engine, kernels::Scatter { within, seed: [7, 0], particles: &particles })
        .invocations(COUNT)
        .run()?;
    for _ in 0..100 {
        let step = kernels::Step { within, seconds: 0.01, particles: &particles };
        kernels::step(&engine, step).invocations(COUNT).run()?;
    }
    let moved: Vec<kernels::Particle> = particles.items()?;
    let height = moved.iter().map(|particle| particle.position[1]).sum::<f32>() / COUNT as f32;
    let inside = moved.iter().all(|particle| particle.position[1] >= -1.0 && particle.age == 100);
    println!(
        "{COUNT} particles after a second: {height:.3} high on average, {}",
        if inside { "all in the box" } else { "some outside: a defect" }
    );
    std::process::exit(i32::from(!inside));
}
