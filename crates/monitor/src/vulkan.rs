//! Memory of Vulkan's devices by `VK_EXT_memory_budget`, for those of which nothing else tells.

use ash::vk;

use crate::{Device, Reading};

pub struct Instance {
    /// Keeps the loader's library.
    _entry: ash::Entry,
    raw: ash::Instance,
    devices: Vec<vk::PhysicalDevice>,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").finish_non_exhaustive()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once, and nothing was made from it that lives longer.
        unsafe { self.raw.destroy_instance(None) }
    }
}

impl Instance {
    pub fn open() -> Result<Self, String> {
        // SAFETY: the system's loader is trusted with its own initialisation.
        let entry = unsafe { ash::Entry::load() }.map_err(|_| "its loader is not installed".to_owned())?;
        let about = vk::ApplicationInfo::default().application_name(c"cantus").api_version(vk::API_VERSION_1_1);
        let info = vk::InstanceCreateInfo::default().application_info(&about);
        // SAFETY: `info` and what it points to live until the call returns.
        let raw = unsafe { entry.create_instance(&info, None) }.map_err(|error| error.to_string())?;
        // SAFETY: the instance is alive.
        match unsafe { raw.enumerate_physical_devices() } {
            Ok(devices) => Ok(Self { _entry: entry, raw, devices }),
            Err(error) => {
                // SAFETY: it is destroyed once, here.
                unsafe { raw.destroy_instance(None) };
                Err(error.to_string())
            }
        }
    }

    /// Fills in memory of the devices that have none, and adds those that are not there yet.
    pub fn add_to(&self, devices: &mut Vec<Device>) {
        for &physical in &self.devices {
            let found = self.device(physical);
            match devices.iter_mut().find(|known| known.pci.is_some() && known.pci == found.pci) {
                Some(known) if known.memory_total_bytes.0.is_err() => {
                    known.memory_total_bytes = found.memory_total_bytes;
                    known.memory_used_bytes = found.memory_used_bytes;
                    known.memory_free_bytes = found.memory_free_bytes;
                }
                Some(_) => {}
                None => devices.push(found),
            }
        }
    }

    fn device(&self, physical: vk::PhysicalDevice) -> Device {
        // SAFETY: the instance and its physical devices are alive; an error counts as no extensions.
        let extensions = unsafe { self.raw.enumerate_device_extension_properties(physical) }.unwrap_or_default();
        let has = |name: &std::ffi::CStr| extensions.iter().any(|known| known.extension_name_as_c_str() == Ok(name));
        let mut address = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceProperties2::default();
        let has_address = has(ash::ext::pci_bus_info::NAME);
        if has_address {
            properties = properties.push_next(&mut address);
        }
        // SAFETY: a device without Vulkan 1.1 is not asked for more than 1.0 has; the structures live until the call returns.
        unsafe {
            if self.raw.get_physical_device_properties(physical).api_version >= vk::API_VERSION_1_1 {
                self.raw.get_physical_device_properties2(physical, &mut properties);
            } else {
                properties.properties = self.raw.get_physical_device_properties(physical);
            }
        }
        let about = properties.properties;
        let name =
            about.device_name_as_c_str().map_or_else(|_| "a Vulkan device".into(), |name| name.to_string_lossy());
        let pci = has_address.then(|| {
            format!(
                "{:04x}:{:02x}:{:02x}.{:x}",
                address.pci_domain, address.pci_bus, address.pci_device, address.pci_function
            )
        });
        let mut device = Device::unknown(&name, "vulkan", pci, "Vulkan does not report it");
        if about.device_type == vk::PhysicalDeviceType::CPU {
            device.processes = Reading::none("it is a driver that runs on the processor");
        }
        if about.api_version < vk::API_VERSION_1_1 || !has(ash::ext::memory_budget::NAME) {
            let reason = "its driver lacks VK_EXT_memory_budget";
            device.memory_total_bytes = Reading::none(reason);
            device.memory_used_bytes = Reading::none(reason);
            device.memory_free_bytes = Reading::none(reason);
            return device;
        }
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut memory = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        // SAFETY: the device has Vulkan 1.1 and the extension; the structures live until the call returns.
        unsafe { self.raw.get_physical_device_memory_properties2(physical, &mut memory) };
        let heaps = memory.memory_properties;
        let (mut total, mut free) = (0_u64, 0_u64);
        let count = heaps.memory_heap_count as usize;
        for (index, heap) in heaps.memory_heaps.iter().enumerate().take(count) {
            if heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL) {
                let budget_of = |list: &[u64]| list.get(index).copied().unwrap_or_default();
                total = total.saturating_add(heap.size);
                let left = budget_of(&budget.heap_budget).saturating_sub(budget_of(&budget.heap_usage));
                free = free.saturating_add(left.min(heap.size));
            }
        }
        device.memory_total_bytes = Reading(Ok(total));
        device.memory_used_bytes = Reading(Ok(total.saturating_sub(free)));
        device.memory_free_bytes = Reading(Ok(free));
        device
    }
}
