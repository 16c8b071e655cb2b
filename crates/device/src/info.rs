//! The description of a device and its abilities: plain data, the same for every backend. Backends fill it in while probing, and the engine ranks, checks
//! and falls back by it. Limits are what a kernel may use, not what the driver likes best. `Identity` tells that two APIs reach the same card; an empty one
//! is like no other.

use crate::kernel::Features;

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Returns the name used in text and JSON.
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

/// The limits of dispatches and allocations. Sizes are in bytes. The default is what WebGPU guarantees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// A device's features beyond plain WGSL, and its limits. The default is nothing, within WebGPU's limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Optional WGSL features.
    pub features: Features,
    /// Smallest and largest subgroup, if it has subgroups.
    pub subgroup_sizes: Option<(u32, u32)>,
    /// A kernel may ask for one subgroup size of several (Vulkan's subgroup size control).
    pub subgroup_size_control: bool,
    /// True if it multiplies 16 x 16 matrices of f16 in hardware, by the subgroup, with sums in f32 (NVIDIA's tensor cores, Vulkan's cooperative matrix).
    /// Other devices run kernels with [`Features::cooperative_matrix`](crate::kernel::Features) by shuffles, with 8 x 8 matrices only (Metal), or not at all.
    pub cooperative_matrix: bool,
    /// True if it can time each kernel by its own clock.
    pub timestamps: bool,
    /// Host and device share memory.
    pub unified_memory: bool,
    /// True if it runs operation graphs and no kernels. Other work goes to another device.
    pub operation_graphs: bool,
    /// The way in which it runs a kernel's lanes.
    pub execution: Execution,
    /// Limits.
    pub limits: Limits,
}

/// The means that run a kernel's invocations, as far as they decide which kernel is fastest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Execution {
    /// A driver that has lanes, or imitates them.
    #[default]
    Driver,
    /// A compiler of C, which vectorises over invocations where the device is a processor.
    Compiler,
    /// This process itself, without a driver.
    Executor,
}

/// The identifiers of one piece of hardware, as far as the API reports them: a GPU is several devices if several APIs reach it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The driver's number for it, the same in CUDA and Vulkan of one vendor.
    pub uuid: Option<[u8; 16]>,
    /// The address on the PCI bus.
    pub pci: Option<PciAddress>,
    /// Windows' identifier for it.
    pub luid: Option<[u8; 8]>,
}

/// A place on the PCI bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PciAddress {
    /// Domain, bus and device.
    pub place: [u32; 3],
}

impl PciAddress {
    /// Returns the address in a text such as `0000:01:00.0`; `None` for any other.
    ///
    /// ```
    /// use cantus::backend::PciAddress;
    /// assert_eq!(PciAddress::parse("0000:0A:00.0").map(|address| address.place), Some([0, 10, 0]));
    /// assert_eq!(PciAddress::parse("somewhere"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().split('.').next()?;
        let mut parts = text.split(':').map(|part| u32::from_str_radix(part, 16).ok());
        let place = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(Self { place })
    }
}

impl Identity {
    /// Returns whether both are known to be the same hardware.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_some() && one == other
        }
        same(&self.uuid, &other.uuid) || same(&self.pci, &other.pci) || same(&self.luid, &other.luid)
    }
}

/// One device, as found by a probe.
#[derive(Debug, Clone)]
pub struct DeviceInfo {
    /// The backend's name.
    pub backend: String,
    /// Index within the backend.
    pub index: usize,
    /// The device's name, with its API if a backend has several: `llvmpipe (Vulkan)`.
    pub name: String,
    /// The kind of device.
    pub kind: DeviceKind,
    /// Driver and version.
    pub driver: String,
    /// The memory in bytes, if the API reports it.
    pub memory_bytes: Option<u64>,
    /// The identity of the hardware; empty for drivers that imitate a GPU.
    pub identity: Identity,
    /// Rank; higher is preferred.
    pub priority: i32,
    /// The features and limits.
    pub capabilities: Capabilities,
}

impl DeviceInfo {
    /// Creates a device of that backend. Set its driver, memory, rank and capabilities afterwards.
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
            identity: Identity::default(),
            priority: 0,
            capabilities: Capabilities::default(),
        }
    }

    /// Returns whether this backend has not run on such hardware yet: it was tested on a double of its libraries, a simulator or its compiler
    /// alone. A backend of your own never is. `cantus verify` says whether it is right on the device at hand.
    ///
    /// ```
    /// use cantus::backend::{DeviceInfo, DeviceKind};
    ///
    /// assert!(DeviceInfo::new("hip", 0, "A GPU", DeviceKind::DiscreteGpu).is_experimental());
    /// assert!(!DeviceInfo::new("cpu", 0, "A processor", DeviceKind::Cpu).is_experimental());
    /// ```
    // docs/stability.md has the table with reasons.
    #[must_use]
    pub fn is_experimental(&self) -> bool {
        let is_hardware =
            matches!(self.kind, DeviceKind::DiscreteGpu | DeviceKind::IntegratedGpu | DeviceKind::VirtualGpu);
        match self.backend.as_str() {
            "hip" | "ascend" | "pjrt" => true,
            "opencl" => is_hardware,
            // A name ends with its API. A browser does not say what is behind its.
            "wgpu" => self.name.ends_with("(WebGPU)") || (is_hardware && !self.name.ends_with("(Vulkan)")),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_experimental_until_it_has_met_its_hardware() {
        let of = |backend, name, kind| DeviceInfo::new(backend, 0, name, kind).is_experimental();
        let (gpu, software) = (DeviceKind::DiscreteGpu, DeviceKind::Software);
        for (backend, name, kind, expected) in [
            ("cpu", "A processor", DeviceKind::Cpu, false),
            ("cuda", "A GPU", gpu, false),
            ("vulkan", "A GPU", gpu, false),
            ("wgpu", "A GPU (Vulkan)", gpu, false),
            ("wgpu", "A GPU (Metal)", DeviceKind::IntegratedGpu, true),
            ("wgpu", "A GPU (DX12)", gpu, true),
            ("wgpu", "apple (WebGPU)", DeviceKind::Other, true),
            ("wgpu", "llvmpipe (GL)", software, false),
            ("opencl", "A GPU", DeviceKind::IntegratedGpu, true),
            ("opencl", "pthread", software, false),
            ("hip", "A GPU", gpu, true),
            ("pjrt", "A simulator", software, true),
            ("ascend", "910B", DeviceKind::Other, true),
            ("mine", "An accelerator", gpu, false),
        ] {
            assert_eq!(of(backend, name, kind), expected, "{backend} {name}");
        }
    }
}
