//! A physical device's description in Cantus's words: names, kinds, priorities, features, limits. Opens nothing. `mod` lists adapters by it while probing.
//! A device is described by what its queue family for compute can do, and a software driver is recognised by its type or name. The environment may make a
//! device count as another kind (`Emulation`), for tests.

use ash::vk;

use super::emulation;
use super::features::{Available, Chain, Support};
use super::instance::Instance;
use super::matrices::Offer;
use crate::backend::{Capabilities, DeviceInfo, DeviceKind, Execution, Identity as DeviceIdentity, Limits, PciAddress};
use crate::matrices::Matrices;
use cantus_base::listed::Listed;

/// The backend's name.
pub(super) const NAME: &str = "vulkan";
/// A GPU.
pub(super) const GPU: i32 = 60;
/// A driver that imitates a GPU on the processor.
pub(super) const SOFTWARE: i32 = 10;

/// Names by which software drivers give themselves away where the API does not say.
const SOFTWARE_NAMES: [&str; 3] = ["llvmpipe", "swiftshader", "warp"];

/// A physical device that can compute.
pub(super) struct Adapter {
    pub(super) physical: vk::PhysicalDevice,
    pub(super) info: DeviceInfo,
    /// The queue family to compute on.
    pub(super) family: u32,
    pub(super) available: Available,
    pub(super) support: Support,
    pub(super) matrices: Matrices,
    pub(super) limits: vk::PhysicalDeviceLimits,
    pub(super) memory: vk::PhysicalDeviceMemoryProperties,
    /// Bits of a timestamp that count; 0 without timestamps.
    pub(super) timestamp_bits: u32,
    pub(super) identity: Identity,
    /// Whatever it is, it counts as a device with memory of its own.
    pub(super) discrete: bool,
}

impl Adapter {
    /// Makes the adapter count as a device with its own memory, with the smallest limits, and whose driver does not set workgroup memory to zero.
    pub(super) fn treat_as_discrete(&mut self) {
        self.discrete = true;
        self.support.zero_workgroup = false;
        emulation::smallest(&mut self.limits);
        let capabilities = &mut self.info.capabilities;
        capabilities.unified_memory = false;
        capabilities.limits = limits(&self.limits, capabilities.limits.buffer_bytes.min(256 << 20));
    }

    /// Limits the size of a storage binding.
    pub(super) fn bind_at_most(&mut self, bytes: u32) {
        self.limits.max_storage_buffer_range = bytes;
        self.info.capabilities.limits.storage_binding_bytes = u64::from(bytes & !3);
    }
}

/// The driver and the device that a pipeline cache belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) vendor: u32,
    pub(super) device: u32,
    pub(super) driver: u32,
    pub(super) uuid: [u8; vk::UUID_SIZE],
}

/// The physical devices that can compute, and the reasons of those that cannot.
pub(super) fn list(instance: &Instance) -> (Vec<Adapter>, Vec<String>) {
    // SAFETY: the instance is alive.
    let physicals = match unsafe { instance.raw.enumerate_physical_devices() } {
        Ok(physicals) => physicals,
        Err(error) => return (Vec::new(), vec![format!("Vulkan lists no devices ({error})")]),
    };
    let (mut adapters, mut reasons) = (Vec::new(), Vec::new());
    for physical in physicals {
        match describe(instance, physical, adapters.len()) {
            Ok(adapter) => adapters.push(adapter),
            Err(reason) => reasons.push(reason),
        }
    }
    (adapters, reasons)
}

fn text(characters: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = characters.iter().take_while(|&&c| c != 0).map(|&c| c.to_ne_bytes()[0]).listed();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

fn describe(instance: &Instance, physical: vk::PhysicalDevice, index: usize) -> Result<Adapter, String> {
    // SAFETY: the physical device belongs to the instance.
    let plain = unsafe { instance.raw.get_physical_device_properties(physical) };
    let name = text(&plain.device_name);
    let (major, minor) = (vk::api_version_major(plain.api_version), vk::api_version_minor(plain.api_version));
    if plain.api_version < vk::API_VERSION_1_1 {
        return Err(format!("{name} has Vulkan {major}.{minor}, and 1.1 is needed (update its driver)"));
    }
    let available = Available::new(&instance.raw, physical, plain.api_version.min(instance.api));
    let extra = Properties::query(instance, physical, &available);
    // SAFETY: the physical device belongs to the instance.
    let families = unsafe { instance.raw.get_physical_device_queue_family_properties(physical) };
    let computes = |family: &vk::QueueFamilyProperties| {
        family.queue_flags.contains(vk::QueueFlags::COMPUTE) && family.queue_count > 0
    };
    let (family, queue) = families
        .iter()
        .enumerate()
        .find(|(_, family)| computes(family))
        .ok_or_else(|| format!("{name} has no queue that computes"))?;
    if plain.limits.max_per_stage_descriptor_storage_buffers == 0 {
        return Err(format!("{name} has no storage buffers"));
    }
    let mut support = Chain::query(&instance.raw, physical, &available).support(extra.subgroups());
    let matrices = matrices(instance, physical, (&available, &support), &extra);
    support.kernel.cooperative_matrix = matrices.are_used();
    // SAFETY: the physical device belongs to the instance.
    let memory = unsafe { instance.raw.get_physical_device_memory_properties(physical) };
    let kind = kind(&name, plain.device_type);
    let timestamps = queue.timestamp_valid_bits > 0 && plain.limits.timestamp_period > 0.0;
    let info = DeviceInfo {
        backend: NAME.to_owned(),
        index,
        name,
        kind,
        driver: extra.driver(),
        memory_bytes: local_bytes(&memory),
        identity: if kind == DeviceKind::Software { DeviceIdentity::default() } else { extra.identity() },
        priority: if kind == DeviceKind::Software { SOFTWARE } else { GPU },
        capabilities: Capabilities {
            features: support.kernel,
            subgroup_sizes: support.kernel.subgroups.then(|| extra.subgroup_sizes(&support)),
            subgroup_size_control: support.size_control,
            cooperative_matrix: Matrices::FRAME_IS_RIGHT && matrices.have_shipped(),
            timestamps,
            operation_graphs: false,
            execution: Execution::Driver,
            unified_memory: is_unified(kind, &memory),
            limits: limits(&plain.limits, largest_buffer(&extra, &memory)),
        },
    };
    let identity = Identity {
        vendor: plain.vendor_id,
        device: plain.device_id,
        driver: plain.driver_version,
        uuid: plain.pipeline_cache_uuid,
    };
    let timestamp_bits = if timestamps { queue.timestamp_valid_bits } else { 0 };
    let family = u32::try_from(family).unwrap_or(0);
    let (limits, discrete) = (plain.limits, false);
    Ok(Adapter {
        physical,
        info,
        family,
        available,
        support,
        matrices,
        limits,
        memory,
        timestamp_bits,
        identity,
        discrete,
    })
}

/// Returns the device's support for cooperative matrices.
fn matrices(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    (available, support): (&Available, &Support),
    extra: &Properties,
) -> Matrices {
    let extension = available.has(ash::khr::cooperative_matrix::NAME);
    // A driver that cannot say them has none.
    let listed = if extension { instance.products(physical).unwrap_or_default() } else { Vec::new() };
    let offer = Offer {
        extension,
        feature: support.cooperative_matrix,
        in_compute: extra.matrix.cooperative_matrix_supported_stages.contains(vk::ShaderStageFlags::COMPUTE),
        memory_model: support.memory_model,
        f16: support.kernel.f16,
        subgroups: support.kernel.subgroups,
        listed: &listed,
    };
    offer.matrices()
}

fn kind(name: &str, kind: vk::PhysicalDeviceType) -> DeviceKind {
    let name = name.to_lowercase();
    if SOFTWARE_NAMES.iter().any(|known| name.contains(known)) {
        return DeviceKind::Software;
    }
    match kind {
        vk::PhysicalDeviceType::DISCRETE_GPU => DeviceKind::DiscreteGpu,
        vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceKind::IntegratedGpu,
        vk::PhysicalDeviceType::VIRTUAL_GPU => DeviceKind::VirtualGpu,
        vk::PhysicalDeviceType::CPU => DeviceKind::Software,
        _ => DeviceKind::Other,
    }
}

fn heaps(memory: &vk::PhysicalDeviceMemoryProperties) -> &[vk::MemoryHeap] {
    memory.memory_heaps_as_slice()
}

/// The device's own memory: its largest heap of that kind.
fn local_bytes(memory: &vk::PhysicalDeviceMemoryProperties) -> Option<u64> {
    let local = heaps(memory).iter().filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
    local.map(|heap| heap.size).max()
}

/// Host and device share memory: the kind says so, and there is memory that both reach.
fn is_unified(kind: DeviceKind, memory: &vk::PhysicalDeviceMemoryProperties) -> bool {
    let shared = vk::MemoryPropertyFlags::DEVICE_LOCAL | vk::MemoryPropertyFlags::HOST_VISIBLE;
    matches!(kind, DeviceKind::IntegratedGpu | DeviceKind::Software)
        && memory.memory_types_as_slice().iter().any(|kind| kind.property_flags.contains(shared))
}

fn largest_buffer(extra: &Properties, memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    let heap = heaps(memory).iter().map(|heap| heap.size).max().unwrap_or(0);
    extra.largest_buffer().min(heap) & !255
}

fn limits(limits: &vk::PhysicalDeviceLimits, buffer_bytes: u64) -> Limits {
    let counts = limits.max_compute_work_group_count;
    Limits {
        buffer_bytes,
        storage_binding_bytes: u64::from(limits.max_storage_buffer_range & !3),
        uniform_binding_bytes: u64::from(limits.max_uniform_buffer_range & !15),
        storage_bindings: limits
            .max_per_stage_descriptor_storage_buffers
            .min(limits.max_descriptor_set_storage_buffers),
        uniform_bindings: limits
            .max_per_stage_descriptor_uniform_buffers
            .min(limits.max_descriptor_set_uniform_buffers),
        workgroup_bytes: limits.max_compute_shared_memory_size,
        workgroup_invocations: limits.max_compute_work_group_invocations,
        workgroup_size: limits.max_compute_work_group_size,
        workgroups_per_dimension: counts.into_iter().min().unwrap_or(0),
        storage_alignment: u32::try_from(limits.min_storage_buffer_offset_alignment.max(4)).unwrap_or(256),
    }
}

/// Properties beyond the plain ones.
#[derive(Default)]
struct Properties {
    subgroup: vk::PhysicalDeviceSubgroupProperties<'static>,
    maintenance3: vk::PhysicalDeviceMaintenance3Properties<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Properties<'static>,
    sizes: vk::PhysicalDeviceSubgroupSizeControlProperties<'static>,
    driver: vk::PhysicalDeviceDriverProperties<'static>,
    ids: vk::PhysicalDeviceIDProperties<'static>,
    bus: vk::PhysicalDevicePCIBusInfoPropertiesEXT<'static>,
    matrix: vk::PhysicalDeviceCooperativeMatrixPropertiesKHR<'static>,
    on_bus: bool,
}

impl Properties {
    fn query(instance: &Instance, physical: vk::PhysicalDevice, available: &Available) -> Self {
        let mut found = Self::default();
        let mut all =
            vk::PhysicalDeviceProperties2::default().push_next(&mut found.subgroup).push_next(&mut found.maintenance3);
        all = all.push_next(&mut found.ids);
        found.on_bus = available.has(ash::ext::pci_bus_info::NAME);
        if found.on_bus {
            all = all.push_next(&mut found.bus);
        }
        if available.has(ash::khr::cooperative_matrix::NAME) {
            all = all.push_next(&mut found.matrix);
        }
        if available.api >= vk::API_VERSION_1_3 {
            all = all.push_next(&mut found.maintenance4);
        }
        if available.since(vk::API_VERSION_1_3, ash::ext::subgroup_size_control::NAME) {
            all = all.push_next(&mut found.sizes);
        }
        if available.since(vk::API_VERSION_1_2, ash::khr::driver_properties::NAME) {
            all = all.push_next(&mut found.driver);
        }
        // SAFETY: only structures that the device knows are linked; they live until the call is over.
        unsafe { instance.raw.get_physical_device_properties2(physical, &mut all) };
        found
    }

    /// All of WGSL's subgroup operations, in compute shaders.
    fn subgroups(&self) -> bool {
        use vk::SubgroupFeatureFlags as F;
        let all = F::BASIC | F::VOTE | F::ARITHMETIC | F::BALLOT | F::SHUFFLE | F::SHUFFLE_RELATIVE | F::QUAD;
        self.subgroup.supported_operations.contains(all)
            && self.subgroup.supported_stages.contains(vk::ShaderStageFlags::COMPUTE)
    }

    fn subgroup_sizes(&self, support: &Support) -> (u32, u32) {
        if support.size_control && self.sizes.min_subgroup_size > 0 {
            return (self.sizes.min_subgroup_size, self.sizes.max_subgroup_size);
        }
        (self.subgroup.subgroup_size, self.subgroup.subgroup_size)
    }

    fn identity(&self) -> DeviceIdentity {
        let place = [self.bus.pci_domain, self.bus.pci_bus, self.bus.pci_device];
        DeviceIdentity {
            uuid: Some(self.ids.device_uuid).filter(|uuid| uuid.iter().any(|&byte| byte != 0)),
            pci: (self.on_bus && place != [0; 3]).then_some(PciAddress { place }),
            luid: (self.ids.device_luid_valid == vk::TRUE).then_some(self.ids.device_luid),
        }
    }

    fn largest_buffer(&self) -> u64 {
        let known = [self.maintenance3.max_memory_allocation_size, self.maintenance4.max_buffer_size];
        known.into_iter().filter(|&bytes| bytes > 0).min().unwrap_or(1 << 30)
    }

    fn driver(&self) -> String {
        let parts = [text(&self.driver.driver_name), text(&self.driver.driver_info)];
        parts.into_iter().filter(|part| !part.is_empty()).listed().join(" ")
    }
}
