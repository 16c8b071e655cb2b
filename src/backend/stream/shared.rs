//! What the parts of an opened device share: below memory, programs and the queue, which are made of it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::arguments::Arguments;
use super::compiler::Compiler;
use super::driver::{Block, Driver, Event, Fault, FaultKind, Pinned};
use super::staging::Staging;
use super::vendor::Architecture;
use crate::backend::health::Health;
use crate::backend::native_cache::NativeCache;
use crate::backend::wait::{Ended, Waiter};
use crate::backend::{DeviceInfo, Pool};
use crate::error::{Error, Result};

/// What the parts of a device share. Buffers and programs keep it alive.
pub(super) struct Shared {
    pub(super) info: DeviceInfo,
    pub(super) architecture: Architecture,
    /// Most blocks in each dimension of a launch.
    pub(super) grid: [u32; 3],
    pub(super) profile: bool,
    pub(super) cache: NativeCache,
    pub(super) waiter: Waiter<Event>,
    // Dropped in this order: what refers to the driver's objects before the driver.
    pub(super) state: Mutex<State>,
    pub(super) pool: Pool<Block>,
    pub(super) health: Health,
    pub(super) compiler: OnceLock<std::result::Result<Compiler, String>>,
    pub(super) driver: Arc<Driver>,
}

/// What is changed under the device's lock. Whoever puts work into the stream holds it.
#[derive(Default)]
pub(super) struct State {
    pub(super) staging: Staging,
    /// Blocks for reads, not in use.
    pub(super) reading: Vec<Pinned>,
    pub(super) arguments: Arguments,
    /// Kernels that may still run, with the events around them.
    pub(super) timing: Vec<(Arc<str>, Event, Event)>,
}

impl Shared {
    /// The device's lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The compiler, loaded when first asked for.
    pub(super) fn compiler(&self) -> std::result::Result<&Compiler, &str> {
        let vendor = self.driver.platform.vendor;
        self.compiler.get_or_init(|| Compiler::new(vendor, &vendor.compiler_functions)).as_ref().map_err(String::as_str)
    }

    /// The error for a fault of the driver's. One that ends the context ends the device.
    pub(super) fn error(&self, fault: Fault, action: &str) -> Error {
        let device = self.info.name.clone();
        match fault.kind {
            FaultKind::Call => Error::Device { device, action: action.to_owned(), message: fault.message },
            FaultKind::OutOfMemory => Error::OutOfMemory { device, what: action.to_owned(), bytes: 0 },
            FaultKind::Lost => {
                self.health.lose(&fault.message);
                Error::DeviceLost { device, reason: format!("{} ({action})", fault.message) }
            }
        }
    }

    /// What the end of a wait means.
    pub(super) fn ended(&self, ended: Ended<Fault>, what: &str) -> Result<()> {
        match ended {
            Ended::Passed => Ok(()),
            Ended::Failed(fault) => Err(self.error(fault, what)),
            Ended::Late => {
                self.health.overdue();
                Err(self.health.timeout_error(what))
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The stream may still be reading from the staging blocks. Where it never ends, they stay.
        if self.health.is_lost() || self.driver.settle().is_err() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(state));
        }
    }
}
