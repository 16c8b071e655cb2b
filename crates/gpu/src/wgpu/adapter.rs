//! An adapter's description in Cantus's words: names, kinds, priorities, features, limits. Opens nothing. `mod` describes adapters while probing, and
//! devices once they are open, which may have fewer features and limits. GL contexts lie about compute shaders, so their version is read (`older_gl`).
//! Priorities: GPUs 50, GL below the CPU, software 10.

use wgpu::{AdapterInfo, Backend, DeviceType, Features};

use super::matrices::offered;
use crate::backend::{Capabilities, DeviceInfo, DeviceKind, Execution, Identity, Limits, PciAddress};
use crate::kernel;
use crate::matrices::Matrices;
use cantus_base::listed::Listed;

/// The backend's name.
pub(super) const NAME: &str = "wgpu";

/// A GPU through Vulkan, Metal, DX12 or WebGPU.
pub(super) const GPU: i32 = 50;
/// A GPU through GL: below the CPU (20), because wgpu runs GL without some of WGSL's guards.
const GPU_ON_GL: i32 = 15;
/// An adapter that imitates a GPU on the processor.
pub(super) const SOFTWARE: i32 = 10;
/// The same through GL.
const SOFTWARE_ON_GL: i32 = 5;

/// Names by which software adapters give themselves away where the API does not say.
const SOFTWARE_NAMES: [&str; 6] = ["llvmpipe", "softpipe", "swiftshader", "basic render driver", "warp", "pocl"];

/// Returns the adapter's support for cooperative matrices.
pub(super) fn matrices(adapter: &wgpu::Adapter) -> Matrices {
    offered(adapter.features(), &adapter.cooperative_matrix_properties())
}

/// wgpu's features that kernels or Cantus itself use, of those that the adapter has.
pub(super) fn wanted_features(adapter: &wgpu::Adapter, matrices: &Matrices) -> Features {
    let of_matrices = Features::EXPERIMENTAL_COOPERATIVE_MATRIX | Features::PASSTHROUGH_SHADERS;
    let wanted = if matrices.are_used() { WANTED | of_matrices } else { WANTED };
    adapter.features() & wanted
}

const WANTED: Features = Features::SHADER_F16
    .union(Features::SHADER_INT64)
    .union(Features::SHADER_F64)
    .union(Features::SHADER_I16)
    .union(Features::SUBGROUP)
    .union(Features::SUBGROUP_BARRIER)
    .union(Features::SHADER_INT64_ATOMIC_MIN_MAX)
    .union(Features::SHADER_INT64_ATOMIC_ALL_OPS)
    .union(Features::SHADER_FLOAT32_ATOMIC)
    .union(Features::TIMESTAMP_QUERY);

/// The kernel features that these wgpu features amount to.
pub(super) fn kernel_features(features: Features) -> kernel::Features {
    kernel::Features {
        f16: features.contains(Features::SHADER_F16),
        int64: features.contains(Features::SHADER_INT64),
        float64: features.contains(Features::SHADER_F64),
        int16: features.contains(Features::SHADER_I16),
        subgroups: features.contains(Features::SUBGROUP | Features::SUBGROUP_BARRIER),
        int64_atomics: features.contains(Features::SHADER_INT64_ATOMIC_MIN_MAX | Features::SHADER_INT64_ATOMIC_ALL_OPS),
        float32_atomics: features.contains(Features::SHADER_FLOAT32_ATOMIC),
        // Asked for where the adapter lists the kernels' products.
        cooperative_matrix: features.contains(Features::EXPERIMENTAL_COOPERATIVE_MATRIX),
    }
}

/// The API's name as a device's name has it.
pub(super) fn api_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Vulkan => "Vulkan",
        Backend::Metal => "Metal",
        Backend::Dx12 => "DX12",
        Backend::Gl => "GL",
        Backend::BrowserWebGpu => "WebGPU",
        Backend::Noop => "no-op",
    }
}

fn is_software(info: &AdapterInfo) -> bool {
    let name = info.name.to_lowercase();
    info.device_type == DeviceType::Cpu || SOFTWARE_NAMES.iter().any(|known| name.contains(known))
}

fn kind(info: &AdapterInfo) -> DeviceKind {
    if is_software(info) {
        return DeviceKind::Software;
    }
    match info.device_type {
        DeviceType::DiscreteGpu => DeviceKind::DiscreteGpu,
        DeviceType::IntegratedGpu => DeviceKind::IntegratedGpu,
        DeviceType::VirtualGpu => DeviceKind::VirtualGpu,
        DeviceType::Cpu => DeviceKind::Software,
        DeviceType::Other => DeviceKind::Other,
    }
}

fn priority(info: &AdapterInfo) -> i32 {
    match (is_software(info), info.backend == Backend::Gl) {
        (false, false) => GPU,
        (false, true) => GPU_ON_GL,
        (true, false) => SOFTWARE,
        (true, true) => SOFTWARE_ON_GL,
    }
}

fn identity(kind: DeviceKind, info: &AdapterInfo) -> Identity {
    let mut identity = Identity::default();
    if kind != DeviceKind::Software {
        identity.pci = PciAddress::parse(&info.device_pci_bus_id);
    }
    identity
}

/// Describes an adapter, or the device opened from it: `features` and `limits` are what it offers, or what it was opened with.
pub(super) fn describe(
    index: usize,
    info: &AdapterInfo,
    (features, matrices): (Features, &Matrices),
    limits: &wgpu::Limits,
) -> DeviceInfo {
    let name = if info.name.is_empty() { "adapter" } else { info.name.as_str() };
    let driver = [info.driver.as_str(), info.driver_info.as_str()];
    let features_of_kernels = kernel_features(features);
    let subgroups = (info.subgroup_min_size, info.subgroup_max_size);
    let kind = kind(info);
    DeviceInfo {
        backend: NAME.to_owned(),
        index,
        name: format!("{name} ({})", api_name(info.backend)),
        kind,
        driver: driver.into_iter().filter(|part| !part.is_empty()).listed().join(" "),
        memory_bytes: None,
        identity: identity(kind, info),
        priority: priority(info),
        capabilities: Capabilities {
            features: features_of_kernels,
            subgroup_sizes: features_of_kernels.subgroups.then_some(subgroups),
            subgroup_size_control: false,
            cooperative_matrix: Matrices::FRAME_IS_RIGHT && matrices.have_shipped(),
            timestamps: features.contains(Features::TIMESTAMP_QUERY),
            operation_graphs: false,
            execution: Execution::Driver,
            unified_memory: matches!(kind, DeviceKind::IntegratedGpu | DeviceKind::Software),
            limits: translate_limits(limits),
        },
    }
}

fn translate_limits(limits: &wgpu::Limits) -> Limits {
    Limits {
        buffer_bytes: limits.max_buffer_size,
        storage_binding_bytes: limits.max_storage_buffer_binding_size,
        uniform_binding_bytes: limits.max_uniform_buffer_binding_size,
        storage_bindings: limits.max_storage_buffers_per_shader_stage,
        uniform_bindings: limits.max_uniform_buffers_per_shader_stage,
        workgroup_bytes: limits.max_compute_workgroup_storage_size,
        workgroup_invocations: limits.max_compute_invocations_per_workgroup,
        workgroup_size: [
            limits.max_compute_workgroup_size_x,
            limits.max_compute_workgroup_size_y,
            limits.max_compute_workgroup_size_z,
        ],
        workgroups_per_dimension: limits.max_compute_workgroups_per_dimension,
        storage_alignment: limits.min_storage_buffer_offset_alignment,
    }
}

/// The version that a GL context says it has, if compute shaders came with a later one. NVIDIA's gives the version that wgpu asks for, 3.3, and
/// lists the extensions of its newest; naga writes for the version.
fn older_gl(version: &str) -> Option<&str> {
    let (number, first) = match version.split_once("OpenGL ES ") {
        Some((_, rest)) => (rest, (3, 1)),
        None => (version, (4, 3)),
    };
    let number = number.split(' ').next()?;
    let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
    let found = (parts.next()??, parts.next()??);
    (found < first).then_some(number)
}

/// Why an adapter is of no use, if it is not.
pub(super) fn unusable(info: &AdapterInfo, limits: &wgpu::Limits, compute: bool) -> Option<String> {
    let what = format!("{} ({})", info.name, api_name(info.backend));
    if !compute || limits.max_compute_workgroups_per_dimension == 0 {
        return Some(format!("{what} has no compute shaders"));
    }
    if info.backend == Backend::Gl
        && let Some(older) = older_gl(&info.driver_info)
    {
        return Some(format!("{what} has no compute shaders: wgpu was given OpenGL {older}"));
    }
    if limits.max_storage_buffers_per_shader_stage == 0 {
        return Some(format!("{what} has no storage buffers"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::older_gl;

    #[test]
    fn contexts_without_compute_shaders_are_known_by_their_version() {
        assert_eq!(older_gl("3.3.0 NVIDIA 580.159.04"), Some("3.3.0"));
        assert_eq!(older_gl("OpenGL ES 3.0 Mesa 22.3.6"), Some("3.0"));
        for version in ["4.5 (Core Profile) Mesa 22.3.6", "4.3.0", "OpenGL ES 3.2 Mesa 22.3.6", "", "unknown"] {
            assert_eq!(older_gl(version), None, "{version}");
        }
    }
}
