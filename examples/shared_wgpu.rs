//! An app with a wgpu device of its own: the engine computes on it, and the app's own pass reads the tensor's buffer where it lies.
//! (A program that draws would bind the same buffer in its render pass.)
//!
//! cargo run --example shared_wgpu

use cantus::backend::wgpu::raw_buffer;
use cantus::ops::field::{FieldParams, field};
use cantus::{Engine, Error, Result, Tensor};

/// The app's own shader: four floats to one word of bytes, as a picture's pixels.
const BYTES: &str = "
    @group(0) @binding(0) var<storage> values: array<vec4f>;
    @group(0) @binding(1) var<storage, read_write> pixels: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&pixels) { pixels[id.x] = pack4x8unorm(values[id.x] * 0.5 + 0.5); }
    }";

fn fault(action: &str, error: impl std::fmt::Display) -> Error {
    Error::Device { device: "the app's device".into(), action: action.into(), message: error.to_string() }
}

/// The app's device, or `None` where there is no adapter.
pub fn device() -> Option<(wgpu::Device, wgpu::Queue)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).ok()?;
    pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).ok()
}

/// A field of [-1, 1] as bytes, by a pass of the app over the tensor's own buffer. Its length must be a multiple of 4.
///
/// # Errors
/// [`Error::Device`] when the tensor is not on a wgpu device, or the app's pass fails.
pub fn pixels(device: &wgpu::Device, queue: &wgpu::Queue, tensor: &Tensor) -> Result<Vec<u8>> {
    // What the engine still holds back must be in the queue before the app's pass.
    tensor.engine().flush();
    let shared = tensor.buffer().ok_or_else(|| fault("sharing", "the tensor is lost"))?;
    let values = raw_buffer(&*shared).ok_or_else(|| fault("sharing", "the tensor is elsewhere"))?;
    let size = tensor.len() as u64;
    let buffer = |usage| {
        let usage = usage | wgpu::BufferUsages::COPY_DST;
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    };
    let bytes = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let staging = buffer(wgpu::BufferUsages::MAP_READ);
    let source = wgpu::ShaderSource::Wgsl(BYTES.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: values.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: bytes.as_entire_binding() },
        ],
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups((tensor.len() as u32 / 4).div_ceil(64), 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&bytes, 0, &staging, 0, Some(size));
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |_| {});
    device.poll(wgpu::PollType::wait_indefinitely()).map_err(|error| fault("waiting", error))?;
    let mapped = staging.get_mapped_range(..).map_err(|error| fault("mapping", error))?;
    Ok(mapped.to_vec())
}

/// Computes a field with the engine and its bytes with the app's pass.
pub fn main() -> Result<()> {
    let Some((device, queue)) = device() else {
        println!("there is no adapter to share");
        return Ok(());
    };
    let engine = Engine::from_wgpu(device.clone(), queue.clone());
    let picture = pixels(&device, &queue, &field(&engine, &FieldParams::new(64, 32))?)?;
    // Letters are twice as high as wide: every second row.
    for row in picture.chunks(64).step_by(2) {
        println!("{}", row.iter().map(|&pixel| b" .:-=+*#"[usize::from(pixel / 32)] as char).collect::<String>());
    }
    Ok(())
}
