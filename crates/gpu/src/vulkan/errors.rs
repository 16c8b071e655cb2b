//! Vulkan's results as [`Error`]s.

use ash::vk;

use crate::error::Error;
use crate::health::Health;

/// The errors of a device's calls.
pub(super) trait Errors {
    /// The error for a call that Vulkan refused. `what` and `bytes` say what was to be allocated when memory was the matter.
    fn vulkan_error(&self, result: vk::Result, action: &str, what: &str, bytes: u64) -> Error;

    /// As [`Errors::vulkan_error`] for calls that move no tensor's memory.
    fn refused(&self, result: vk::Result, action: &str) -> Error {
        self.vulkan_error(result, action, action, 0)
    }
}

impl Errors for Health {
    fn vulkan_error(&self, result: vk::Result, action: &str, what: &str, bytes: u64) -> Error {
        match result {
            vk::Result::ERROR_DEVICE_LOST => {
                self.lose("the driver reported it lost");
                self.lost_error()
            }
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
            | vk::Result::ERROR_OUT_OF_HOST_MEMORY
            | vk::Result::ERROR_OUT_OF_POOL_MEMORY
            | vk::Result::ERROR_FRAGMENTED_POOL
            | vk::Result::ERROR_TOO_MANY_OBJECTS => {
                Error::OutOfMemory { device: self.device.clone(), what: what.to_owned(), bytes }
            }
            _ => Error::Device {
                device: self.device.clone(),
                action: action.to_owned(),
                message: format!("Vulkan says {result:?}: {result}"),
            },
        }
    }
}
