//! Lists the devices of the platforms, and their capabilities. The backend's `probe` and its quick look (`may_have_gpu`) come from here. Platforms are
//! asked one at a time, because PoCL crashes otherwise. Priorities: Intel's GPUs first, other GPUs below their own backends, processors below Cantus's CPU.

use std::sync::{Mutex, PoisonError};

use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device};
use opencl3::error_codes::{ClError, DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::platform::{Platform, get_platforms};

use crate::backend::{Capabilities, DeviceInfo, DeviceKind, Execution, Identity, Limits};
use crate::kernel::Features;
use crate::translate::OpenClFeatures;

/// The backend's name.
pub(super) const NAME: &str = "opencl";
/// Priority of Intel's GPUs, whose own runtime this is, of any other GPU, and of a processor.
pub(super) const INTEL_GPU: i32 = 75;
pub(super) const GPU: i32 = 40;
pub(super) const PROCESSOR: i32 = 10;
/// Intel's number among vendors of PCI devices.
const INTEL: u32 = 0x8086;

/// The loader's answer when no platform is installed.
const NO_PLATFORM: i32 = -1001;

/// A device that was found.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) device: Device,
    pub(super) features: OpenClFeatures,
    /// Most bytes of arguments in one launch.
    pub(super) argument_bytes: usize,
    /// Its compiler is Intel's for processors.
    pub(super) is_intels_processor: bool,
    pub(super) info: DeviceInfo,
}

/// A quick look: some platform other than a processor's may be installed.
pub(super) fn may_have_gpu() -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    // Platforms are named by files; those of PoCL are processors.
    let Ok(vendors) = std::fs::read_dir("/etc/OpenCL/vendors") else {
        return std::env::var_os("OCL_ICD_VENDORS").is_some() || std::env::var_os("OCL_ICD_FILENAMES").is_some();
    };
    vendors.flatten().any(|file| !file.file_name().to_string_lossy().contains("pocl"))
}

/// A quick look: one of the machine's graphics cards is Intel's. Where nothing tells, there may be one.
pub(super) fn may_have_intel_gpu() -> bool {
    if !cfg!(target_os = "linux") {
        return may_have_gpu();
    }
    let cards = std::fs::read_dir("/sys/class/drm").into_iter().flatten().flatten();
    let is_intels = |path: &std::path::Path| {
        std::fs::read_to_string(path.join("device/vendor")).is_ok_and(|vendor| vendor.trim() == format!("{INTEL:#06x}"))
    };
    may_have_gpu() && cards.into_iter().any(|card| is_intels(&card.path()))
}

fn gpu_priority(vendor: u32) -> i32 {
    if vendor == INTEL { INTEL_GPU } else { GPU }
}

/// Finds the devices and a remark, or the reason for none.
pub(super) fn probe() -> Result<(Vec<Found>, Option<String>), String> {
    // PoCL makes its devices when they are first asked for, and crashes when two threads ask at once.
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let platforms = get_platforms().map_err(|ClError(code)| match code {
        DLOPEN_RUNTIME_LOAD_FAILED | DLOPEN_FUNCTION_NOT_AVAILABLE => "the library OpenCL is not installed".to_owned(),
        NO_PLATFORM => "no OpenCL platform is installed".to_owned(),
        code => format!("its platforms cannot be listed (error {code})"),
    })?;
    let (mut found, mut passed_over) = (Vec::new(), Vec::new());
    for platform in &platforms {
        // A platform without devices answers with an error.
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            match describe(platform, Device::new(id), found.len()) {
                Ok(device) => found.push(device),
                Err(reason) => passed_over.push(reason),
            }
        }
    }
    let remark = (!passed_over.is_empty()).then(|| passed_over.join("; "));
    if found.is_empty() {
        return Err(remark.unwrap_or_else(|| "its platforms have no device".to_owned()));
    }
    Ok((found, remark))
}

/// The numbers in a version such as `OpenCL 1.2 PoCL 3.1`.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.strip_prefix("OpenCL ")?.split(' ').next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn features(device: &Device) -> OpenClFeatures {
    let extensions = device.extensions().unwrap_or_default();
    let has = |extension: &str| extensions.split(' ').any(|known| known == extension);
    OpenClFeatures {
        fp16: has("cl_khr_fp16"),
        fp64: has("cl_khr_fp64") || device.double_fp_config().is_ok_and(|config| config != 0),
        int64_atomics: has("cl_khr_int64_base_atomics") && has("cl_khr_int64_extended_atomics"),
        subgroups: has("cl_khr_subgroups") && has("cl_khr_subgroup_shuffle") && has("cl_khr_subgroup_ballot"),
    }
}

/// Asks for a device's limits; `unreported` words the error of one that it does not report.
fn limits(device: &Device, unreported: impl Fn(&str) -> String) -> Result<Limits, String> {
    let largest = device.max_mem_alloc_size().map_err(|_| unreported("largest buffer"))?;
    let items = device.max_work_item_sizes().map_err(|_| unreported("work-item sizes"))?;
    let side = |axis: usize| items.get(axis).map_or(1, |&size| u32::try_from(size).unwrap_or(u32::MAX));
    let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let alignment = device.mem_base_addr_align().unwrap_or(1024).div_ceil(8).max(16);
    Ok(Limits {
        buffer_bytes: largest,
        // Lengths are 32-bit numbers of bytes in translated kernels, as in WGSL.
        storage_binding_bytes: largest.min(u64::from(u32::MAX) & !3),
        uniform_binding_bytes: 65_536,
        storage_bindings: 64,
        uniform_bindings: 64,
        workgroup_bytes: small(device.local_mem_size().map_err(|_| unreported("local memory"))?),
        workgroup_invocations: small(device.max_work_group_size().map_err(|_| unreported("work-group size"))? as u64),
        workgroup_size: [side(0), side(1), side(2)],
        workgroups_per_dimension: u32::MAX,
        storage_alignment: alignment,
    })
}

fn describe(platform: &Platform, device: Device, index: usize) -> Result<Found, String> {
    let name = device.name().map_err(|error| format!("a device has no name: {error}"))?.trim().to_owned();
    let unreported = |what: &str| format!("{name} does not report its {what}");
    let version_text = device.version().map_err(|_| unreported("version"))?;
    if version(&version_text).is_none_or(|version| version < (1, 2)) {
        return Err(format!("{name} is too old: it has {version_text}, and OpenCL 1.2 is needed"));
    }
    if device.available() != Ok(true) || device.compiler_available() != Ok(true) {
        return Err(format!("{name} is not available, or has no compiler"));
    }
    if device.endian_little() != Ok(true) {
        return Err(format!("{name} is big-endian"));
    }
    let features = features(&device);
    let kind = device.dev_type().map_err(|_| unreported("type"))?;
    let unified = device.host_unified_memory().unwrap_or(false);
    let (kind, priority) = if kind & CL_DEVICE_TYPE_GPU != 0 {
        let priority = gpu_priority(device.vendor_id().unwrap_or_default());
        (if unified { DeviceKind::IntegratedGpu } else { DeviceKind::DiscreteGpu }, priority)
    } else if kind & CL_DEVICE_TYPE_CPU != 0 {
        (DeviceKind::Software, PROCESSOR)
    } else {
        (DeviceKind::Other, PROCESSOR)
    };
    let memory = device.global_mem_size().map_err(|_| unreported("memory"))?;
    let limits = limits(&device, unreported)?;
    let driver = format!(
        "{} {}, {version_text}",
        platform.name().unwrap_or_default(),
        device.driver_version().unwrap_or_default()
    );
    let info = DeviceInfo {
        backend: NAME.to_owned(),
        index,
        name,
        kind,
        driver,
        memory_bytes: Some(memory),
        identity: Identity::default(),
        priority,
        capabilities: Capabilities {
            features: Features {
                // Halves are words of bits in translated kernels, computed in f32: no device needs cl_khr_fp16.
                f16: true,
                int64: true,
                float64: features.fp64,
                int16: true,
                subgroups: features.subgroups,
                int64_atomics: features.int64_atomics,
                float32_atomics: true,
                cooperative_matrix: false,
            },
            subgroup_sizes: None,
            subgroup_size_control: false,
            cooperative_matrix: false,
            timestamps: true,
            operation_graphs: false,
            execution: Execution::Compiler,
            unified_memory: unified,
            limits,
        },
    };
    let argument_bytes = device.max_parameter_size().map_or(1024, |bytes| bytes.max(1024));
    let is_intels = || platform.vendor().is_ok_and(|vendor| vendor.starts_with("Intel"));
    let is_intels_processor = info.kind == DeviceKind::Software && is_intels();
    Ok(Found { device, features, argument_bytes, is_intels_processor, info })
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn intels_gpus_rank_as_oneapi() {
        assert_eq!([0x8086, 0x1002, 0].map(super::gpu_priority), [75, 40, 40]);
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(version("OpenCL 3.0 PoCL HSTR: pthread"), Some((3, 0)));
        assert_eq!(version("OpenCL 1.1"), Some((1, 1)));
        assert_eq!(version("Open CL"), None);
    }
}
