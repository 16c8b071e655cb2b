//! Lists the devices of a driver, and their capabilities.

use std::sync::Arc;

use super::compiler::Compiler;
use super::platform::Platform;
use super::vendor::{Architecture, Vendor};
use crate::backend::{Capabilities, DeviceInfo, DeviceKind, Execution, Limits, Probe};
use crate::kernel::Features;
use cantus_base::listed::Listed;

/// A device that was found.
#[derive(Clone)]
pub(crate) struct Found {
    pub(super) platform: Arc<Platform>,
    pub(super) device: i32,
    pub(super) pools: bool,
    pub(super) architecture: Architecture,
    pub(super) grid: [u32; 3],
    /// Bytes of shared memory that a block of a cluster may ask for; 0 without clusters.
    pub(super) cluster_bytes: u32,
    /// Why there is no run-time compiler.
    lacks_compiler: Option<String>,
    pub(crate) info: DeviceInfo,
}

/// The vendor's own description of a device.
pub(crate) struct Detail {
    /// The driver's name and version.
    pub(crate) driver: String,
}

/// The vendor's part of a probe: details of a device.
pub(crate) struct Manner {
    pub(crate) detail: fn(version: i32) -> Detail,
}

/// Finds the devices, or the reason for none.
pub(crate) fn probe(vendor: &'static Vendor, manner: &Manner) -> Result<Vec<Found>, String> {
    let platform = Arc::new(Platform::new(vendor)?);
    let count = platform.count().map_err(|fault| fault.message)?;
    let found: Vec<Found> = (0..count).filter_map(|index| describe(&platform, manner, index)).listed();
    if found.is_empty() { Err("the driver is installed, but has no device".to_owned()) } else { Ok(found) }
}

/// The found devices as the backend's trait wants them. Without a run-time compiler they run few kernels: it is said why.
pub(crate) fn summary(found: &Result<Vec<Found>, String>) -> Probe {
    match found {
        Ok(found) => {
            let mut probe = Probe::found(found.iter().map(|found| found.info.clone()).listed());
            let lacks = found.iter().find_map(|found| found.lacks_compiler.as_ref());
            probe.reason = lacks.map(|reason| format!("few kernels can be run, so it ranks lower: {reason}"));
            probe
        }
        Err(reason) => Probe::none(reason.clone()),
    }
}

/// A device that the driver can describe; others are left out.
fn describe(platform: &Arc<Platform>, manner: &Manner, index: i32) -> Option<Found> {
    let vendor = platform.vendor;
    let attributes = &vendor.attributes;
    let device = platform.device(index).ok()?;
    let detail = (manner.detail)(platform.version);
    // A value that makes no sense (a driver that counts its attributes in another way) gives way to what every device has.
    let ask = |attribute: i32, sensible: std::ops::RangeInclusive<u32>, otherwise: u32| {
        let value = platform.attribute(attribute, device).and_then(|value| u32::try_from(value).ok());
        value.filter(|value| sensible.contains(value)).unwrap_or(otherwise)
    };
    let threads = ask(attributes.threads_per_block, 64..=4096, 256);
    let block = [0, 1, 2].map(|axis| ask(attributes.block_x + axis, 16..=4096, 64));
    let grid = [0, 1, 2].map(|axis| ask(attributes.grid_x + axis, 65_535..=u32::MAX, 65_535));
    let warp = ask(attributes.warp_size, 32..=64, 32);
    let shared_bytes = ask(attributes.shared_bytes, 16_384..=(1 << 20), 16_384);
    let integrated = ask(attributes.integrated, 0..=1, 0) == 1;
    let compute = (
        platform.attribute(attributes.compute_major, device).unwrap_or(0),
        platform.attribute(attributes.compute_minor, device).unwrap_or(0),
    );
    let memory_bytes = platform.memory(device).ok();
    let largest = memory_bytes.unwrap_or(u64::from(u32::MAX));
    let features = Features {
        f16: true,
        int64: true,
        float64: true,
        int16: true,
        subgroups: true,
        int64_atomics: true,
        float32_atomics: true,
        cooperative_matrix: true,
    };
    let lacks_compiler = Compiler::library(vendor, platform.version).err();
    let info = DeviceInfo {
        backend: vendor.name.to_owned(),
        index: usize::try_from(index).ok()?,
        name: platform.name(device).ok()?,
        kind: if integrated { DeviceKind::IntegratedGpu } else { DeviceKind::DiscreteGpu },
        driver: detail.driver,
        memory_bytes,
        identity: platform.identity(device),
        priority: if lacks_compiler.is_none() { vendor.priority } else { vendor.priority_without_compiler },
        capabilities: Capabilities {
            features,
            subgroup_sizes: Some((warp, warp)),
            subgroup_size_control: false,
            cooperative_matrix: vendor.matrices.is_some_and(|least| compute >= least),
            timestamps: true,
            operation_graphs: false,
            execution: Execution::Compiler,
            unified_memory: integrated,
            limits: Limits {
                buffer_bytes: largest,
                // Lengths are 32-bit numbers of bytes in translated kernels, as in WGSL.
                storage_binding_bytes: largest.min(u64::from(u32::MAX) & !3),
                uniform_binding_bytes: 65_536,
                storage_bindings: 128,
                uniform_bindings: 128,
                workgroup_bytes: shared_bytes.min(48 << 10),
                workgroup_invocations: threads,
                workgroup_size: block,
                workgroups_per_dimension: 65_535,
                storage_alignment: 16,
            },
        },
    };
    let pools = platform.attribute(attributes.memory_pools, device) == Some(1);
    let architecture = Architecture { compute, name: platform.architecture(device) };
    let has_clusters = platform.functions.clusters.is_some()
        && attributes.clusters > 0
        && platform.attribute(attributes.clusters, device) == Some(1);
    let cluster_bytes = if has_clusters { ask(attributes.shared_opt_in, 16_384..=(1 << 20), shared_bytes) } else { 0 };
    Some(Found { platform: platform.clone(), device, pools, architecture, grid, cluster_bytes, lacks_compiler, info })
}
