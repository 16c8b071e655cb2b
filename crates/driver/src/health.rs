//! A device's record of its own state.

use std::sync::{Mutex, OnceLock, PoisonError};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::{
    Weak,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;

use web_time::Instant;

#[cfg(not(target_arch = "wasm32"))]
use crate::backend::detached::{self, AtWork};
use crate::error::{Error, Result};

/// A device's state of health. Threads and callbacks share it.
pub struct Health {
    /// The device's name, for errors.
    pub device: String,
    lost: OnceLock<String>,
    /// The work that is held when a time limit passes, until it has ended.
    #[cfg(not(target_arch = "wasm32"))]
    at_work: OnceLock<Weak<dyn AtWork>>,
    #[cfg(not(target_arch = "wasm32"))]
    adopted: AtomicBool,
    complaints: Mutex<Vec<String>>,
    /// The time limit set when the device was opened.
    timeout: Option<Duration>,
}

impl Health {
    /// Creates the health of a device whose batches and transfers have a time limit.
    pub fn new(device: String, timeout: Option<Duration>) -> Self {
        Self {
            device,
            lost: OnceLock::new(),
            #[cfg(not(target_arch = "wasm32"))]
            at_work: OnceLock::new(),
            #[cfg(not(target_arch = "wasm32"))]
            adopted: AtomicBool::new(false),
            complaints: Mutex::default(),
            timeout,
        }
    }

    /// Names what is to be held when a time limit passes: everything that the device's work may touch.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn watch_over(&self, device: Weak<dyn AtWork>) {
        // Once, when the device is opened.
        let _ = self.at_work.set(device);
    }

    /// Returns the time by which work that starts now must end.
    pub fn deadline(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    /// The error for work that was not finished by then.
    pub fn timeout_error(&self, what: &str) -> Error {
        let limit = self.timeout.unwrap_or_default().as_millis();
        let milliseconds = u64::try_from(limit).unwrap_or(u64::MAX);
        Error::Timeout { what: what.to_owned(), device: self.device.clone(), milliseconds }
    }

    /// Marks the device as lost. The first reason is kept.
    pub fn lose(&self, reason: &str) {
        if self.lost.set(reason.to_owned()).is_ok() {
            tracing::warn!(device = %self.device, reason, "device lost");
        }
    }

    /// Marks the device as lost because it missed a time limit. Its work may never end: whatever that may touch is held from now on, and
    /// whoever used the device goes on.
    pub fn overdue(&self) {
        self.lose("it did not finish within the time limit");
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(device) = self.at_work.get().and_then(Weak::upgrade)
            && !self.adopted.swap(true, Ordering::AcqRel)
        {
            detached::adopt(device);
        }
    }

    /// Returns whether the device is lost.
    pub fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// The error of a lost device.
    pub fn lost_error(&self) -> Error {
        let reason = self.lost.get().map_or("it does not answer", String::as_str);
        Error::DeviceLost { device: self.device.clone(), reason: reason.to_owned() }
    }

    /// Keeps an error that came outside of any call.
    pub fn complain(&self, message: String) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Fails when the device is lost, or with the errors that came outside of any call (once).
    pub fn check(&self) -> Result<()> {
        if self.is_lost() {
            return Err(self.lost_error());
        }
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.is_empty() {
            return Ok(());
        }
        let message = std::mem::take(&mut *complaints).join("; ");
        Err(Error::Device { device: self.device.clone(), action: "earlier work".to_owned(), message })
    }
}
