//! The CPU backend: this machine's processor, through the lock-step executor of [`crate::spmd`]. Needs no driver.

#![allow(
    clippy::extra_unused_type_parameters,
    reason = "a function of which there is a form for each instruction set names the set"
)]

#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod attention;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod chain;
mod compiled;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod converts;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod copies;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod counts;
mod device;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod doubles;
mod fault;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod floats;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod folds;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod forms;
#[cfg(all(feature = "fft", not(target_arch = "wasm32")))]
mod fourier;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod gathers;
mod memory;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod multiply;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod native;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod order;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod pools;
mod prefix;
mod processor;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod product;
mod program;
mod queue;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod random;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod reduce;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod registers;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod resample;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod rows;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod scatters;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod taps;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod tiles;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod vector;
#[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
mod windows;
#[cfg(target_arch = "x86_64")]
mod words;

#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_base::{error, tensor, threads};
use cantus_device as backend;
use cantus_kernel as kernel;
use cantus_spmd as spmd;
use cantus_spmd::ahead;

use std::sync::Arc;

use self::processor::{NAME, PRIORITY, device_info};
use crate::backend::{Backend, BoxFuture, Device, OpenOptions, Probe, ready};
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

/// Lends this thread to the CPU backend's work, for good: on the web, where nobody else can start threads, each web worker that is to help calls
/// it once, on the module's shared memory. It never returns.
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub fn help() -> ! {
    threads::help()
}
