//! The CPU backend: this machine's processor, through the lock-step executor of [`crate::spmd`]. Needs no driver.

mod compiled;
#[cfg(not(target_arch = "wasm32"))]
mod conv;
#[cfg(not(target_arch = "wasm32"))]
mod copies;
mod device;
mod fault;
#[cfg(not(target_arch = "wasm32"))]
mod floats;
mod memory;
#[cfg(not(target_arch = "wasm32"))]
mod native;
mod processor;
#[cfg(not(target_arch = "wasm32"))]
mod product;
mod program;
mod queue;
#[cfg(not(target_arch = "wasm32"))]
mod random;
#[cfg(not(target_arch = "wasm32"))]
mod rows;
#[cfg(not(target_arch = "wasm32"))]
mod vector;

use std::sync::Arc;

use self::processor::{NAME, PRIORITY, device_info};
use super::{Backend, BoxFuture, Device, OpenOptions, Probe, ready};
use crate::error::{Error, Result};

pub use compiled::compiled_ahead;
pub use device::CpuDevice;

/// Finds one device: the processor.
#[derive(Debug, Default, Clone, Copy)]
pub struct CpuBackend;

impl CpuBackend {
    /// The backend.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        PRIORITY
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        ready(Probe::found(vec![device_info()]))
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        if index != 0 {
            let reason = "the backend cpu has one device, with the index 0".to_owned();
            return ready(Err(Error::NoDevice {
                wanted: format!("device {index}"),
                reasons: vec![(NAME.to_owned(), reason)],
            }));
        }
        ready(CpuDevice::new(device_info(), options).map(|device| Arc::new(device) as Arc<dyn Device>))
    }
}
