//! What a device remembers of its health, and Vulkan's results as [`Error`]s.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;

use crate::error::{Error, Result};

/// Why a device is lost that missed a time limit.
pub(super) const OVERDUE: &str = "it did not finish within the time limit";

/// A device's state of health.
pub(super) struct Health {
    pub(super) device: String,
    lost: OnceLock<String>,
    stuck: AtomicBool,
}

impl Health {
    pub(super) fn new(device: String) -> Self {
        Self { device, lost: OnceLock::new(), stuck: AtomicBool::new(false) }
    }

    /// Marks the device as lost. The first reason stands.
    pub(super) fn lose(&self, reason: &str) {
        if self.lost.set(reason.to_owned()).is_ok() {
            tracing::warn!(device = %self.device, reason, "device lost");
        }
    }

    /// Marks the device as lost because it missed a time limit: its work may never end.
    pub(super) fn give_up(&self) {
        self.stuck.store(true, Ordering::Relaxed);
        self.lose(OVERDUE);
    }

    /// True when its work may never end.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    pub(super) fn lost_error(&self) -> Error {
        let reason = self.lost.get().map_or("it does not answer", String::as_str);
        Error::DeviceLost { device: self.device.clone(), reason: reason.to_owned() }
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.is_lost() { Err(self.lost_error()) } else { Ok(()) }
    }

    /// The error for a call that Vulkan refused. `what` and `bytes` say what was to be allocated when memory was the matter.
    pub(super) fn translate(&self, result: vk::Result, action: &str, what: &str, bytes: u64) -> Error {
        match result {
            vk::Result::ERROR_DEVICE_LOST => {
                self.lose("the driver gave it up");
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

    /// As [`Health::translate`] for calls that move no tensor's memory.
    pub(super) fn refused(&self, result: vk::Result, action: &str) -> Error {
        self.translate(result, action, action, 0)
    }
}
