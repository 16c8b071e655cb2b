//! A custom kernel: a blur whose radius is an override, its taps a uniform array, its bindings found by reflection.
//!
//! cargo run --example custom_kernel

use cantus::{Engine, Kernel, Result};

/// Each value becomes the weighted sum of its neighbours; what lies outside counts with the nearest value.
const BLUR: &str = "
    override radius: i32 = 1;
    struct Params { taps: array<vec4f, 4> }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage> input: array<f32>;
    @group(0) @binding(2) var<storage, read_write> output: array<f32>;

    @compute @workgroup_size(64)
    fn blur(@builtin(global_invocation_id) id: vec3u) {
        let count = i32(arrayLength(&output));
        let centre = i32(id.x);
        if centre >= count { return; }
        var sum = 0.0;
        for (var offset = -radius; offset <= radius; offset += 1) {
            let tap = abs(offset);
            sum += params.taps[tap / 4][tap % 4] * input[clamp(centre + offset, 0, count - 1)];
        }
        output[centre] = sum;
    }";

/// Blurs `values`; `taps` has the weight of the centre, then of each distance: at most 16.
///
/// # Errors
/// What the engine answers; among it a binding that does not fit.
pub fn blur(engine: &Engine, values: &[f32], taps: &[f32]) -> Result<Vec<f32>> {
    let radius = u32::try_from(taps.len().clamp(1, 16) - 1).unwrap_or(15);
    let kernel = Kernel::from_wgsl(BLUR)?.with_override("radius", radius)?;
    let mut weights = [[0.0_f32; 4]; 4];
    for (weight, tap) in weights.as_flattened_mut().iter_mut().zip(taps) {
        *weight = *tap;
    }
    let input = engine.tensor(values)?;
    let output = engine.zeros::<f32>(&[values.len()])?;
    engine
        .dispatch(&kernel)
        .bind("input", &input)
        .bind("output", &output)
        .set_bytes("params", bytemuck::bytes_of(&weights))
        .invocations(values.len())
        .run()?;
    output.to_vec()
}

/// Blurs a step and shows what the kernel takes.
pub fn main() -> Result<()> {
    let engine = Engine::new()?;
    for binding in &Kernel::from_wgsl(BLUR)?.reflection()?.bindings {
        println!("{}: {}", binding.name, binding.layout);
    }
    let step = [0.0_f32, 0.0, 0.0, 1.0, 1.0, 1.0];
    println!("{:?} on {}", blur(&engine, &step, &[0.5, 0.25])?, engine.selected().device.name);
    Ok(())
}
