//! Metal: a GPU is one object of a process, whichever library asked for it, so a buffer of it is both devices'.

use objc2_metal::{MTLDevice as _, MTLResourceOptions};
use wgpu_29::hal::metal as bevys_metal;
use wgpu_30::hal::metal as own_metal;

use super::{BYTES, TAKEN};
use crate::Outcome;

pub(super) const BACKEND: wgpu_30::Backends = wgpu_30::Backends::METAL;

/// Memory of both devices, which are on one GPU.
pub(super) fn common(bevys: &wgpu_29::Device, device: &wgpu_30::Device) -> Outcome<(wgpu_30::Buffer, wgpu_29::Buffer)> {
    // SAFETY: nothing of wgpu's is destroyed through them.
    let (own, other) = unsafe { (device.as_hal::<own_metal::Api>(), bevys.as_hal::<bevys_metal::Api>()) };
    let own = own.ok_or("Cantus's device is not Metal's")?;
    let other = other.ok_or("Bevy's device is not Metal's: run it without --shared")?;
    if own.raw_device().registryID() != other.raw_device().registryID() {
        return Err("Bevy is on another GPU".into());
    }
    let raw = own.raw_device().newBufferWithLength_options(BYTES as usize, MTLResourceOptions::StorageModePrivate);
    let raw = raw.ok_or("Metal has no memory left")?;
    // SAFETY: a buffer of that size; both sides hold a reference.
    let sides = unsafe {
        (own_metal::Device::buffer_from_raw(raw.clone(), BYTES), bevys_metal::Device::buffer_from_raw(raw, BYTES))
    };
    let label = Some("picture");
    let given = wgpu_30::BufferDescriptor {
        label,
        size: BYTES,
        usage: wgpu_30::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    };
    let taken = wgpu_29::BufferDescriptor { label, size: BYTES, usage: TAKEN, mapped_at_creation: false };
    // SAFETY: of these devices and as described; Cantus fills it before anybody reads.
    Ok(unsafe {
        (
            device.create_buffer_from_hal::<own_metal::Api>(sides.0, &given),
            bevys.create_buffer_from_hal::<bevys_metal::Api>(sides.1, &taken),
        )
    })
}
