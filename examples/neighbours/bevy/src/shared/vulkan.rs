//! Vulkan's opaque file descriptors: Cantus's device allocates the memory (`cantus::backend::wgpu::export`) and Bevy's imports it, both on one card.
//! wgpu 29 opens Vulkan devices with the extension where the driver has it.

use std::os::fd::{AsRawFd as _, IntoRawFd as _};

use ash::{khr, vk};
use cantus::backend::wgpu::{Exported, export};
use wgpu_29::hal::vulkan;

use super::{BYTES, TAKEN};
use crate::Outcome;

pub(super) const BACKEND: wgpu_30::Backends = wgpu_30::Backends::VULKAN;
const KIND: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;

/// Memory of both devices, which are on one card.
pub(super) fn common(bevys: &wgpu_29::Device, device: &wgpu_30::Device) -> Outcome<(wgpu_30::Buffer, wgpu_29::Buffer)> {
    let exported = pollster::block_on(export(device, BYTES, "picture", uuid(bevys)?))?;
    let given = exported.buffer.clone();
    Ok((given, import(bevys, exported)?))
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
    // SAFETY: the device lives and has the extension.
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
    let descriptor =
        wgpu_29::BufferDescriptor { label: Some("picture"), size: BYTES, usage: TAKEN, mapped_at_creation: false };
    // SAFETY: of this device and as described; Cantus fills it before anybody reads.
    Ok(unsafe { device.create_buffer_from_hal::<vulkan::Api>(buffer, &descriptor) })
}
