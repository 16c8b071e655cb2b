//! The logical device, and its objects as values that destroy themselves.

use std::sync::Arc;

use ash::vk;

use super::instance::Instance;

/// The logical device. Everything made with it keeps it alive.
pub(super) struct Raw {
    pub(super) device: ash::Device,
    /// Used under the lock of the device's state.
    pub(super) queue: vk::Queue,
    /// Declared last, so that it goes last.
    pub(super) instance: Arc<Instance>,
}

impl Raw {
    pub(super) fn new(device: ash::Device, queue: vk::Queue, instance: Arc<Instance>) -> Self {
        Self { device, queue, instance }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: every object of the device keeps an `Arc` of this, so none is left.
        unsafe { self.device.destroy_device(None) };
    }
}

/// A handle that can be destroyed.
pub(super) trait Handle: Copy {
    /// Destroys it.
    ///
    /// # Safety
    /// It belongs to the device, is not destroyed yet, and the device does not use it any more.
    unsafe fn destroy(self, device: &ash::Device);
}

macro_rules! handles {
    ($($kind:ident by $function:ident),* $(,)?) => {$(
        impl Handle for vk::$kind {
            unsafe fn destroy(self, device: &ash::Device) {
                // SAFETY: passed on to the caller.
                unsafe { device.$function(self, None) }
            }
        }
    )*};
}

handles! {
    Buffer by destroy_buffer,
    CommandPool by destroy_command_pool,
    DescriptorPool by destroy_descriptor_pool,
    DescriptorSetLayout by destroy_descriptor_set_layout,
    DeviceMemory by free_memory,
    Fence by destroy_fence,
    Pipeline by destroy_pipeline,
    PipelineCache by destroy_pipeline_cache,
    PipelineLayout by destroy_pipeline_layout,
    QueryPool by destroy_query_pool,
    Semaphore by destroy_semaphore,
    ShaderModule by destroy_shader_module,
}

/// An object of the device, destroyed when dropped. Whoever drops it knows that the device has finished with it.
pub(super) struct Owned<H: Handle> {
    pub(super) handle: H,
    raw: Arc<Raw>,
}

impl<H: Handle> Owned<H> {
    pub(super) fn new(raw: &Arc<Raw>, handle: H) -> Self {
        Self { handle, raw: raw.clone() }
    }
}

impl<H: Handle> Drop for Owned<H> {
    fn drop(&mut self) {
        // SAFETY: this value owns the handle; the device has finished with it, as the type demands.
        unsafe { self.handle.destroy(&self.raw.device) };
    }
}
