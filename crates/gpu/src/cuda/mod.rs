//! The CUDA backend: NVIDIA GPUs through the driver and NVRTC, both loaded at run time. No toolkit is needed to build or to run.
//!
//! Kernels are translated to CUDA C++ and compiled for the device's own architecture; the code is kept on disk. Without NVRTC the shipped
//! kernels run from PTX that was made when the library was built.

mod compile;
mod libraries;
mod ptx;
mod takeovers;
mod vendor;

pub use compile::compile;
pub use ptx::source_line;

use std::sync::{Arc, OnceLock};

use self::vendor::{MANNER, NAME, PRIORITY, VENDOR};
use super::cuda_hip::{self, Found, probe};
use crate::backend::{Backend, BoxFuture, Device, OpenOptions, Probe, ready};
use crate::error::Result;

/// The native kernels that may run in a kernel's place, translated with it: for tests, which compile them.
#[cfg(feature = "_test")]
#[doc(hidden)]
pub fn takeovers(kernel: &crate::kernel::Kernel) -> Result<Vec<(&'static str, crate::translate::Translation)>> {
    let entry = kernel.reflection()?.entry_point.clone();
    let options = crate::translate::Options::new().bound_loops(true).uniforms_by_value(true);
    let found = takeovers::TAKEOVERS.iter().filter(|takeover| takeover.is_of(kernel, &entry));
    found
        .map(|takeover| {
            let text = takeover.text(kernel);
            let frame = crate::translate::Frame { source: &text };
            Ok((takeover.name, kernel.translate_frame(VENDOR.dialect, &options, &frame)?))
        })
        .collect()
}

/// Finds NVIDIA GPUs.
#[derive(Default)]
pub struct CudaBackend {
    found: OnceLock<std::result::Result<Vec<Found>, String>>,
}

cantus_base::opaque_debug!(CudaBackend);

impl CudaBackend {
    /// The backend; nothing is loaded yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn found(&self) -> &std::result::Result<Vec<Found>, String> {
        self.found.get_or_init(|| probe(&VENDOR, &MANNER))
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        PRIORITY
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        ready(cuda_hip::summary(self.found()))
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        ready(cuda_hip::open(NAME, self.found(), index, options))
    }
}
