//! Memory of an app's Vulkan device that other APIs can import on the same card: a wgpu buffer over it, and its file descriptor.
//! `Engine::tensor_shared_with_wgpu_async` calls `export` with an app's device and imports the result into CUDA or HIP. Buffers that wgpu allocated itself cannot
//! be exported. The two devices share no semaphore: whoever writes must be waited for on the host.

use std::fmt::Write as _;
use std::os::fd::{FromRawFd as _, OwnedFd};

use ash::{khr, vk};
use wgpu::hal::vulkan;

use super::errors::{Caught, Scopes, one_line};
use super::memory::USAGES;
use crate::error::{Error, Result};

/// The kind of handle that a driver exports to other APIs, CUDA and HIP among them.
const KIND: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;

/// A buffer whose memory others can import: see [`export`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// The buffer. Its usages are those of [`raw_buffer`](super::raw_buffer).
    pub buffer: wgpu::Buffer,
    /// The memory as an opaque file descriptor. Who imports it owns it.
    pub fd: OwnedFd,
    /// The size of the allocation, which is dedicated to the buffer.
    pub allocated: u64,
    /// The index of the allocation's memory type. Vulkan imports with the same one.
    pub memory_type: u32,
}

/// Vulkan's objects before they are wgpu's.
struct Raw<'a> {
    device: &'a ash::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        // SAFETY: both are this device's or null, and no work uses them yet.
        unsafe {
            self.device.destroy_buffer(self.buffer, None);
            self.device.free_memory(self.memory, None);
        }
    }
}

/// Creates a buffer of a Vulkan device in memory that another API can import on the same card, another major version of wgpu among them. `card` is the
/// UUID of the importing device (`VkPhysicalDeviceIDProperties::deviceUUID`). The contents are undefined at first.
///
/// Vulkan imports with the same size, memory type and usages (storage, uniform, vertex, index, indirect, transfer source and target), dedicated to a buffer. The two
/// devices share no semaphore: wait for the one that writes before the other reads, and the reverse.
///
/// # Errors
/// [`Error::Shape`] for 0 bytes; [`Error::InvalidState`] when the device's API is not Vulkan, it is another card, or its driver exports no
/// memory; [`Error::OutOfMemory`]; [`Error::Device`] when the driver fails.
pub async fn export(device: &wgpu::Device, bytes: u64, label: &str, card: [u8; 16]) -> Result<Exported> {
    let (exported, caught) = allocate(device, (bytes, label), card)?;
    match caught.first().await {
        None => Ok(exported),
        Some(error) => Err(failed(device, one_line(&error))),
    }
}

fn allocate(device: &wgpu::Device, (bytes, label): (u64, &str), card: [u8; 16]) -> Result<(Exported, Caught)> {
    let refused = |reason: String| Error::state("the wgpu device", reason);
    let fault = |error: vk::Result| match error {
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            Error::OutOfMemory { device: device.adapter_info().name, what: label.to_owned(), bytes }
        }
        _ => failed(device, error.to_string()),
    };
    if bytes == 0 {
        let reason = "0 bytes: shared memory has at least one".to_owned();
        return Err(Error::shape(label, reason));
    }
    // SAFETY: nothing that is wgpu's is destroyed through it.
    let hal = unsafe { device.as_hal::<vulkan::Api>() };
    let hal =
        hal.ok_or_else(|| refused("its API is not Vulkan, which alone exports memory: copy tensors".to_owned()))?;
    let (raw, physical, instance) = (hal.raw_device(), hal.raw_physical_device(), hal.shared_instance());
    if !hal.enabled_device_extensions().contains(&khr::external_memory_fd::NAME) {
        return Err(refused("its driver has no VK_KHR_external_memory_fd: copy tensors".to_owned()));
    }
    let instance = instance.raw_instance();
    let mut ids = vk::PhysicalDeviceIDProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut ids);
    // SAFETY: the device belongs to the instance; wgpu enables the extension on Vulkan 1.1 and later, which has this function.
    unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
    if ids.device_uuid != card {
        let (own, other) = (hexadecimal(ids.device_uuid), hexadecimal(card));
        let reason =
            format!("it is on another card (UUID {own}) than the importing device (UUID {other}): copy tensors");
        return Err(refused(reason));
    }
    let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(KIND);
    // What `USAGES` says.
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::UNIFORM_BUFFER
        | vk::BufferUsageFlags::VERTEX_BUFFER
        | vk::BufferUsageFlags::INDEX_BUFFER
        | vk::BufferUsageFlags::INDIRECT_BUFFER
        | vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST;
    let create = vk::BufferCreateInfo::default().size(bytes).usage(usage).push_next(&mut external);
    let mut made = Raw { device: raw, buffer: vk::Buffer::null(), memory: vk::DeviceMemory::null() };
    // SAFETY: the device lives, and has the extension that `external` belongs to; the size is not zero.
    made.buffer = unsafe { raw.create_buffer(&create, None) }.map_err(fault)?;
    // SAFETY: the buffer was just made.
    let needs = unsafe { raw.get_buffer_memory_requirements(made.buffer) };
    // SAFETY: the physical device belongs to the instance.
    let memory = unsafe { instance.get_physical_device_memory_properties(physical) };
    let of_device = |(index, kind): &(u32, &vk::MemoryType)| {
        needs.memory_type_bits & (1 << index) != 0
            && kind.property_flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL)
    };
    let kind = (0_u32..).zip(memory.memory_types_as_slice()).find(of_device);
    let (kind, _) =
        kind.ok_or_else(|| refused("its driver exports no memory of the card's: copy tensors".to_owned()))?;
    let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(made.buffer);
    let mut exports = vk::ExportMemoryAllocateInfo::default().handle_types(KIND);
    let allocation = vk::MemoryAllocateInfo::default()
        .allocation_size(needs.size)
        .memory_type_index(kind)
        .push_next(&mut dedicated)
        .push_next(&mut exports);
    // SAFETY: the type is one of the device's, and what the structure points to lives until the call is over.
    made.memory = unsafe { raw.allocate_memory(&allocation, None) }.map_err(fault)?;
    // SAFETY: the memory is the buffer's alone, as large as it needs and of a type that it takes.
    unsafe { raw.bind_buffer_memory(made.buffer, made.memory, 0) }.map_err(fault)?;
    let get = vk::MemoryGetFdInfoKHR::default().memory(made.memory).handle_type(KIND);
    // SAFETY: the memory was allocated for export.
    let fd = unsafe { khr::external_memory_fd::Device::new(instance, raw).get_memory_fd(&get) }.map_err(fault)?;
    // SAFETY: the driver made it for the caller.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: bound to each other; from here on wgpu frees both.
    let owned = unsafe { vulkan::Buffer::from_raw_managed(made.buffer, made.memory, 0, needs.size) };
    std::mem::forget(made);
    let descriptor =
        wgpu::BufferDescriptor { label: Some(label), size: bytes, usage: USAGES, mapped_at_creation: false };
    let scopes = Scopes::open(device);
    // SAFETY: of this device, as described; the importer fills it before anybody reads.
    let buffer = unsafe { device.create_buffer_from_hal::<vulkan::Api>(owned, &descriptor) };
    Ok((Exported { buffer, fd, allocated: needs.size, memory_type: kind }, scopes.close()))
}

fn failed(device: &wgpu::Device, message: String) -> Error {
    Error::Device { device: device.adapter_info().name, action: "exporting memory".to_owned(), message }
}

fn hexadecimal(uuid: [u8; 16]) -> String {
    uuid.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
