//! DX12: a process has one device of an adapter, whichever library asked for it, so a resource of it is both devices'.

use wgpu_29::hal::dx12 as bevys_dx12;
use wgpu_30::hal::dx12 as own_dx12;
use windows::Win32::Graphics::Direct3D12::{
    D3D12_HEAP_FLAG_NONE, D3D12_HEAP_PROPERTIES, D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_DESC,
    D3D12_RESOURCE_DIMENSION_BUFFER, D3D12_RESOURCE_STATE_COMMON, D3D12_TEXTURE_LAYOUT_ROW_MAJOR, ID3D12Resource,
};
use windows::Win32::Graphics::Dxgi::Common::DXGI_SAMPLE_DESC;

use super::{BYTES, TAKEN};
use crate::Outcome;

pub(super) const BACKEND: wgpu_30::Backends = wgpu_30::Backends::DX12;

/// Memory of both devices, which are on one adapter.
pub(super) fn common(bevys: &wgpu_29::Device, device: &wgpu_30::Device) -> Outcome<(wgpu_30::Buffer, wgpu_29::Buffer)> {
    // SAFETY: nothing of wgpu's is destroyed through them.
    let (own, other) = unsafe { (device.as_hal::<own_dx12::Api>(), bevys.as_hal::<bevys_dx12::Api>()) };
    let own = own.ok_or("Cantus's device is not DX12's")?;
    let other = other.ok_or("Bevy's device is not DX12's: run it without --shared")?;
    if own.raw_device() != other.raw_device() {
        return Err("Bevy is on another adapter".into());
    }
    let heap = D3D12_HEAP_PROPERTIES { Type: D3D12_HEAP_TYPE_DEFAULT, ..Default::default() };
    let buffer = D3D12_RESOURCE_DESC {
        Dimension: D3D12_RESOURCE_DIMENSION_BUFFER,
        Width: BYTES,
        Height: 1,
        DepthOrArraySize: 1,
        MipLevels: 1,
        SampleDesc: DXGI_SAMPLE_DESC { Count: 1, Quality: 0 },
        Layout: D3D12_TEXTURE_LAYOUT_ROW_MAJOR,
        ..Default::default()
    };
    let mut raw: Option<ID3D12Resource> = None;
    // SAFETY: the descriptions live through the call. A buffer decays to the common state after each submission, and each side waits for the other.
    unsafe {
        own.raw_device().CreateCommittedResource(
            &heap,
            D3D12_HEAP_FLAG_NONE,
            &buffer,
            D3D12_RESOURCE_STATE_COMMON,
            None,
            &mut raw,
        )
    }?;
    let raw = raw.ok_or("DX12 gave no resource")?;
    // SAFETY: a buffer of that size; both sides hold a reference.
    let sides = unsafe {
        (own_dx12::Device::buffer_from_raw(raw.clone(), BYTES), bevys_dx12::Device::buffer_from_raw(raw, BYTES))
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
            device.create_buffer_from_hal::<own_dx12::Api>(sides.0, &given),
            bevys.create_buffer_from_hal::<bevys_dx12::Api>(sides.1, &taken),
        )
    })
}
