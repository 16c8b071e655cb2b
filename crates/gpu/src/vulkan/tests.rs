//! The validation layers, where they are installed.

use ash::vk;

use super::adapter;
use super::instance::{Instance, take_validation_messages};

/// The control for every run without a message: a mistake is noticed.
#[test]
fn validation_notices_a_mistake() {
    let Ok(instance) = Instance::new(true) else {
        cantus_skips::not_run("a mistake is noticed", "this machine has no Vulkan");
        return;
    };
    if !instance.validated {
        cantus_skips::not_run("a mistake is noticed", "VK_LAYER_KHRONOS_validation is not installed");
        return;
    }
    let (adapters, _) = adapter::list(&instance);
    let Some(adapter) = adapters.first() else {
        cantus_skips::not_run("a mistake is noticed", "Vulkan has no device");
        return;
    };
    let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(adapter.family).queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    // SAFETY: the structures live; the mistake is in the size, which the layer reports and the driver never uses.
    unsafe {
        let device = instance.raw.create_device(adapter.physical, &info, None).expect("opens");
        let mistake = vk::BufferCreateInfo::default().size(0).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        if let Ok(buffer) = device.create_buffer(&mistake, None) {
            device.destroy_buffer(buffer, None);
        }
        device.destroy_device(None);
    }
    let messages = take_validation_messages();
    assert!(messages.iter().any(|message| message.contains("VkBufferCreateInfo")), "{messages:?}");
}
