//! What a device is and can do: plain data, the same for every backend.

use crate::kernel::Features;

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A GPU with memory of its own.
    DiscreteGpu,
    /// A GPU that shares the system's memory.
    IntegratedGpu,
    /// A GPU behind a hypervisor.
    VirtualGpu,
    /// This machine's processor, driven by Cantus itself.
    Cpu,
    /// A driver that imitates a GPU on the processor (llvmpipe, SwiftShader, WARP).
    Software,
    /// Something else.
    Other,
}

impl DeviceKind {
    /// The name used in text and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DiscreteGpu => "discrete gpu",
            Self::IntegratedGpu => "integrated gpu",
            Self::VirtualGpu => "virtual gpu",
            Self::Cpu => "cpu",
            Self::Software => "software gpu",
            Self::Other => "other",
        }
    }
}

/// The limits that a dispatch or an allocation meets. Sizes in bytes. The default is what WebGPU guarantees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest buffer.
    pub buffer_bytes: u64,
    /// Largest range bound to one storage binding.
    pub storage_binding_bytes: u64,
    /// Largest range bound to one uniform binding.
    pub uniform_binding_bytes: u64,
    /// Storage bindings in one kernel.
    pub storage_bindings: u32,
    /// Uniform bindings in one kernel.
    pub uniform_bindings: u32,
    /// Workgroup memory.
    pub workgroup_bytes: u32,
    /// Invocations in a workgroup.
    pub workgroup_invocations: u32,
    /// Workgroup size in each dimension.
    pub workgroup_size: [u32; 3],
    /// Workgroups in one dimension of a dispatch, before folding.
    pub workgroups_per_dimension: u32,
    /// Alignment of a storage binding's offset.
    pub storage_alignment: u32,
}

impl Default for Limits {
    /// The limits that every WebGPU device has at least.
    fn default() -> Self {
        Self {
            buffer_bytes: 1 << 28,
            storage_binding_bytes: 1 << 27,
            uniform_binding_bytes: 1 << 16,
            storage_bindings: 8,
            uniform_bindings: 12,
            workgroup_bytes: 1 << 14,
            workgroup_invocations: 256,
            workgroup_size: [256, 256, 64],
            workgroups_per_dimension: 65_535,
            storage_alignment: 256,
        }
    }
}

/// What a device can do beyond plain WGSL, and its limits. The default is nothing, within WebGPU's limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Optional WGSL features.
    pub features: Features,
    /// Smallest and largest subgroup, where it has subgroups.
    pub subgroup_sizes: Option<(u32, u32)>,
    /// A kernel may ask for one subgroup size of several (Vulkan's subgroup size control).
    pub subgroup_size_control: bool,
    /// It multiplies small matrices in hardware, by the subgroup (Vulkan's cooperative matrix). No kernel uses it yet.
    pub cooperative_matrix: bool,
    /// It can time each kernel by its own clock.
    pub timestamps: bool,
    /// Host and device share memory.
    pub unified_memory: bool,
    /// Limits.
    pub limits: Limits,
}

/// One device, as found by a probe.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The backend's name.
    pub backend: String,
    /// Index within the backend.
    pub index: usize,
    /// The device's name, with its API where a backend has several: `llvmpipe (Vulkan)`.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Driver and version.
    pub driver: String,
    /// Its memory, where the API tells.
    pub memory_bytes: Option<u64>,
    /// Rank; higher is preferred.
    pub priority: i32,
    /// What it can do.
    pub capabilities: Capabilities,
}

impl DeviceInfo {
    /// A device of that backend; driver, memory, rank and capabilities are to be filled in.
    ///
    /// ```
    /// use cantus::backend::{DeviceInfo, DeviceKind};
    ///
    /// let mut info = DeviceInfo::new("mine", 0, "An accelerator", DeviceKind::Other);
    /// info.priority = 60;
    /// info.capabilities.limits.workgroup_invocations = 1024;
    /// assert_eq!(info.capabilities.limits.workgroup_bytes, 16_384); // what WebGPU guarantees
    /// ```
    #[must_use]
    pub fn new(backend: impl Into<String>, index: usize, name: impl Into<String>, kind: DeviceKind) -> Self {
        Self {
            backend: backend.into(),
            index,
            name: name.into(),
            kind,
            driver: String::new(),
            memory_bytes: None,
            priority: 0,
            capabilities: Capabilities::default(),
        }
    }
}
