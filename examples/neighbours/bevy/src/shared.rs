//! Memory that a device of wgpu 29 and one of wgpu 30 have in common: Vulkan's opaque file descriptors.
//!
//! Cantus's device allocates it (`cantus::backend::wgpu::export`) and Bevy's imports it, both on one card. wgpu 29 opens Vulkan devices with the
//! extension where the driver has it. The picture is copied on the card only: from the tensor to this memory, and from there to the texture. There is no
//! semaphore in common, so each side waits for the other. On Metal and DX12 the same would go by shared handles; nobody has written or tried that.

use std::os::fd::{AsRawFd as _, IntoRawFd as _};

use ash::{khr, vk};
use bevy::render::renderer::RenderQueue;
use bevy::render::texture::GpuImage;
use cantus::Engine;
use cantus::backend::wgpu::{Exported, export, raw_buffer};
use scene::{HEIGHT, Scene, WIDTH};
use wgpu_29::hal::vulkan;

use crate::Outcome;

const KIND: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
const BYTES: u64 = 4 * (WIDTH as u64) * (HEIGHT as u64);

pub struct Shared {
    /// Cantus's side.
    device: wgpu_30::Device,
    queue: wgpu_30::Queue,
    given: wgpu_30::Buffer,
    /// Bevy's side of the same memory.
    taken: wgpu_29::Buffer,
    /// Bevy's last use of it.
    last: Option<wgpu_29::SubmissionIndex>,
}

/// An engine on the card of Bevy's device, and memory that both have.
pub fn connect(bevys: &wgpu_29::Device) -> Outcome<(Engine, Shared)> {
    let card = uuid(bevys)?;
    let mut descriptor = wgpu_30::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu_30::Backends::VULKAN;
    let instance = wgpu_30::Instance::new(descriptor);
    let mut refused = "there is no Vulkan device".to_owned();
    for adapter in pollster::block_on(instance.enumerate_adapters(wgpu_30::Backends::VULKAN)) {
        let required_limits = adapter.limits();
        let descriptor = wgpu_30::DeviceDescriptor { required_limits, ..Default::default() };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
        match pollster::block_on(export(&device, BYTES, "picture", card)) {
            Ok(exported) => {
                let given = exported.buffer.clone();
                let taken = import(bevys, exported)?;
                let engine = Engine::from_wgpu(device.clone(), queue.clone());
                return Ok((engine, Shared { device, queue, given, taken, last: None }));
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
        let mut encoder = self.device.create_command_encoder(&wgpu_30::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(raw, 0, &self.given, 0, BYTES);
        let written = self.queue.submit([encoder.finish()]);
        // And Cantus has written this one.
        self.device.poll(wgpu_30::PollType::Wait { submission_index: Some(written), timeout: None })?;

        let mut encoder = bevys.create_command_encoder(&wgpu_29::CommandEncoderDescriptor::default());
        let layout = wgpu_29::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4 * WIDTH), rows_per_image: None };
        encoder.copy_buffer_to_texture(
            wgpu_29::TexelCopyBufferInfo { buffer: &self.taken, layout },
            shown.texture.as_image_copy(),
            shown.texture_descriptor.size,
        );
        self.last = Some(queue.submit([encoder.finish()]));
        Ok(())
    }
}

fn uuid(device: &wgpu_29::Device) -> Outcome<[u8; 16]> {
    // SAFETY: nothing of wgpu's is destroyed through it.
    let hal =
        unsafe { device.as_hal::<vulkan::Api>() }.ok_or("Bevy's device is not Vulkan's: run it without --shared")?;
    if !hal.enabled_device_extensions().contains(&khr::external_memory_fd::NAME) {
        return Err("the driver has no VK_KHR_external_memory_fd: run it without --shared".into());
    }
    let mut ids = vk::PhysicalDeviceIDProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut ids);
    let instance = hal.shared_instance().raw_instance();
    // SAFETY: the device belongs to the instance; wgpu enables the extension on Vulkan 1.1 and later, which has this function.
    unsafe { instance.get_physical_device_properties2(hal.raw_physical_device(), &mut properties) };
    Ok(ids.device_uuid)
}

/// Vulkan's objects until they are wgpu's.
struct Raw<'a> {
    device: &'a ash::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        // SAFETY: both are this device's or null, and nothing uses them yet.
        unsafe {
            self.device.destroy_buffer(self.buffer, None);
            self.device.free_memory(self.memory, None);
        }
    }
}

fn import(device: &wgpu_29::Device, exported: Exported) -> Outcome<wgpu_29::Buffer> {
    // SAFETY: nothing of wgpu's is destroyed through it.
    let hal = unsafe { device.as_hal::<vulkan::Api>() }.ok_or("Bevy's device is not Vulkan's")?;
    let raw = hal.raw_device();
    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(KIND);
    // As Cantus says of `export`.
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::UNIFORM_BUFFER
        | vk::BufferUsageFlags::VERTEX_BUFFER
        | vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST;
    let create = vk::BufferCreateInfo::default().size(BYTES).usage(usage).push_next(&mut external);
    let mut made = Raw { device: raw, buffer: vk::Buffer::null(), memory: vk::DeviceMemory::null() };
    // SAFETY: the device lives and has the extension, here and below.
    made.buffer = unsafe { raw.create_buffer(&create, None) }?;
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(made.buffer);
    let mut imported = vk::ImportMemoryFdInfoKHR::default().handle_type(KIND).fd(exported.fd.as_raw_fd());
    let allocation = vk::MemoryAllocateInfo::default()
        .allocation_size(exported.allocated)
        .memory_type_index(exported.memory_type)
        .push_next(&mut dedicated)
        .push_next(&mut imported);
    // SAFETY: exported on the same card with this size and type, for a buffer like this one.
    made.memory = unsafe { raw.allocate_memory(&allocation, None) }?;
    // The driver owns the descriptor from here on.
    let _ = exported.fd.into_raw_fd();
    // SAFETY: the memory is the buffer's alone on this device.
    unsafe { raw.bind_buffer_memory(made.buffer, made.memory, 0) }?;
    // SAFETY: bound to each other; from here on wgpu frees both.
    let buffer = unsafe { vulkan::Buffer::from_raw_managed(made.buffer, made.memory, 0, exported.allocated) };
    std::mem::forget(made);
    let usage = wgpu_29::BufferUsages::COPY_SRC;
    let descriptor =
        wgpu_29::BufferDescriptor { label: Some("picture"), size: BYTES, usage, mapped_at_creation: false };
    // SAFETY: of this device and as described; Cantus fills it before anybody reads.
    Ok(unsafe { device.create_buffer_from_hal::<vulkan::Api>(buffer, &descriptor) })
}
