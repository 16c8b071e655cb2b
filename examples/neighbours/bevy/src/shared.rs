//! Memory that a device of wgpu 29 and one of wgpu 30 have in common, by the interface that both are on.
//!
//! The picture is copied on the card only: from the tensor to this memory, and from there to the texture. There is no semaphore in common, so each
//! side waits for the other. Vulkan's way runs in CI; Metal's and DX12's compile, and nobody has run them yet.

#[cfg_attr(target_os = "linux", path = "shared/vulkan.rs")]
#[cfg_attr(target_os = "macos", path = "shared/metal.rs")]
#[cfg_attr(windows, path = "shared/dx12.rs")]
mod memory;

use bevy::render::renderer::RenderQueue;
use bevy::render::texture::GpuImage;
use cantus::Engine;
use cantus::backend::wgpu::raw_buffer;
use scene::{HEIGHT, Scene, WIDTH};

use crate::Outcome;

const BYTES: u64 = 4 * (WIDTH as u64) * (HEIGHT as u64);
/// Uses of the memory on Bevy's side.
const TAKEN: wgpu_29::BufferUsages = wgpu_29::BufferUsages::COPY_SRC;

/// The two sides of the same memory, as a way of [`memory`] makes them.
struct Both {
    device: wgpu_30::Device,
    queue: wgpu_30::Queue,
    given: wgpu_30::Buffer,
    taken: wgpu_29::Buffer,
}

pub struct Shared {
    both: Both,
    /// Bevy's last use of it.
    last: Option<wgpu_29::SubmissionIndex>,
}

/// An engine on the card of Bevy's device, and memory that both have.
pub fn connect(bevys: &wgpu_29::Device) -> Outcome<(Engine, Shared)> {
    let mut descriptor = wgpu_30::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = memory::BACKEND;
    let instance = wgpu_30::Instance::new(descriptor);
    let mut refused = "there is no device of the interface that Bevy is on".to_owned();
    for adapter in pollster::block_on(instance.enumerate_adapters(memory::BACKEND)) {
        let required_limits = adapter.limits();
        let descriptor = wgpu_30::DeviceDescriptor { required_limits, ..Default::default() };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
        match memory::common(bevys, &device) {
            Ok((given, taken)) => {
                let engine = Engine::from_wgpu(device.clone(), queue.clone());
                return Ok((engine, Shared { both: Both { device, queue, given, taken }, last: None }));
            }
            Err(error) => refused = error.to_string(),
        }
    }
    Err(refused.into())
}

impl Shared {
    pub fn draw(
        &mut self,
        scene: &Scene,
        seconds: f32,
        shown: &GpuImage,
        bevys: &wgpu_29::Device,
        queue: &RenderQueue,
    ) -> Outcome {
        scene.draw(seconds)?;
        // Bevy has read the frame before.
        if let Some(last) = self.last.take() {
            bevys.poll(wgpu_29::PollType::Wait { submission_index: Some(last), timeout: None })?;
        }
        scene.pixels.engine().flush();
        let buffer = scene.pixels.buffer().ok_or("the picture is lost")?;
        let raw = raw_buffer(&*buffer).ok_or("the picture is on another device")?;
        let mut encoder = self.both.device.create_command_encoder(&wgpu_30::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(raw, 0, &self.both.given, 0, BYTES);
        let written = self.both.queue.submit([encoder.finish()]);
        // And Cantus has written this one.
        self.both.device.poll(wgpu_30::PollType::Wait { submission_index: Some(written), timeout: None })?;

        let mut encoder = bevys.create_command_encoder(&wgpu_29::CommandEncoderDescriptor::default());
        let layout = wgpu_29::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4 * WIDTH), rows_per_image: None };
        encoder.copy_buffer_to_texture(
            wgpu_29::TexelCopyBufferInfo { buffer: &self.both.taken, layout },
            shown.texture.as_image_copy(),
            shown.texture_descriptor.size,
        );
        self.last = Some(queue.submit([encoder.finish()]));
        Ok(())
    }
}
