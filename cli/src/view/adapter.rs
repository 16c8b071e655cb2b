//! Chooses the adapter that draws the window, and opens its device with all features that the engine may want.

use std::sync::Arc;

use eframe::egui_wgpu::{WgpuConfiguration, WgpuSetup, WgpuSetupCreateNew};
use eframe::wgpu::{
    Adapter, AdapterInfo, Backend, DeviceDescriptor, DeviceType, DownlevelFlags, Features, InstanceFlags, Surface,
};

/// Features that kernels may need.
const WANTED: Features = Features::SHADER_F16
    .union(Features::SHADER_INT64)
    .union(Features::SHADER_F64)
    .union(Features::SHADER_I16)
    .union(Features::SUBGROUP)
    .union(Features::SUBGROUP_BARRIER)
    .union(Features::SHADER_INT64_ATOMIC_MIN_MAX)
    .union(Features::SHADER_INT64_ATOMIC_ALL_OPS)
    .union(Features::SHADER_FLOAT32_ATOMIC);

/// The setup for a window. `WGPU_BACKEND` chooses among the APIs, as everywhere with wgpu.
pub fn configuration(low_power: bool) -> WgpuConfiguration {
    let mut setup = WgpuSetupCreateNew::without_display_handle();
    setup.instance_descriptor.flags = InstanceFlags::empty().with_env();
    setup.native_adapter_selector = Some(Arc::new(move |adapters, surface| select(adapters, surface, low_power)));
    setup.device_descriptor = Arc::new(|adapter| DeviceDescriptor {
        label: Some("cantus view"),
        required_features: adapter.features() & WANTED,
        required_limits: adapter.limits(),
        ..DeviceDescriptor::default()
    });
    WgpuConfiguration { wgpu_setup: WgpuSetup::CreateNew(setup), ..WgpuConfiguration::default() }
}

fn select(adapters: &[Adapter], surface: Option<&Surface<'_>>, low_power: bool) -> Result<Adapter, String> {
    let mut refused = Vec::new();
    let mut best: Option<(u32, &Adapter)> = None;
    for adapter in adapters {
        let info = adapter.get_info();
        match refusal(adapter, surface) {
            Some(reason) => refused.push(format!("{} ({:?}): {reason}", info.name, info.backend)),
            None => {
                let rank = rank(&info, low_power);
                if best.is_none_or(|(known, _)| rank > known) {
                    best = Some((rank, adapter));
                }
            }
        }
    }
    match best {
        Some((_, adapter)) => {
            // Kept to the program's end, and with it the driver's library: Mesa leaves work for the end of the process, which crashes when the
            // library is no longer there.
            std::mem::forget(adapter.clone());
            Ok(adapter.clone())
        }
        None if refused.is_empty() => Err("there is no Vulkan, Metal, DX12 or GL driver (install the GPU’s, or a software one; on Debian: apt-get install libvulkan1 mesa-vulkan-drivers)".to_owned()),
        None => Err(refused.join("; ")),
    }
}

/// Why an adapter cannot draw the window.
fn refusal(adapter: &Adapter, surface: Option<&Surface<'_>>) -> Option<&'static str> {
    let can = adapter.get_downlevel_capabilities().flags;
    if surface.is_some_and(|surface| !adapter.is_surface_supported(surface)) {
        Some("it cannot draw in this window")
    } else if !can.contains(DownlevelFlags::COMPUTE_SHADERS) {
        Some("it cannot compute")
    } else if !can.contains(DownlevelFlags::FRAGMENT_STORAGE) {
        Some("it cannot draw from a kernel's buffer")
    } else {
        None
    }
}

/// Higher is better: GPUs before software, and GL last among equals.
fn rank(info: &AdapterInfo, low_power: bool) -> u32 {
    let kind = match info.device_type {
        DeviceType::DiscreteGpu if low_power => 6,
        DeviceType::DiscreteGpu => 8,
        DeviceType::IntegratedGpu => 7,
        DeviceType::VirtualGpu => 4,
        DeviceType::Other => 3,
        DeviceType::Cpu => 0,
    };
    // A GPU behind GL comes before software behind Vulkan.
    2 * kind + u32::from(info.backend != Backend::Gl)
}
