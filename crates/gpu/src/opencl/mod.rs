//! The OpenCL backend: all devices of all platforms, by the library that is there at run time. Kernels are translated to OpenCL C and
//! compiled by the device's own compiler; the binaries are kept on disk.

mod checks;
mod device;
mod event;
mod memory;
mod probe;
mod program;
mod queue;
mod shared;
mod transfer;

use std::sync::{Arc, OnceLock};

use self::probe::{Found, GPU, INTEL_GPU, NAME, PROCESSOR};
use crate::backend::{Backend, BoxFuture, Device, OpenOptions, Probe, devices_text, ready};
use crate::error::{Error, Result};
use cantus_base::listed::Listed;

pub use device::OpenClDevice;

/// The devices with a remark, or the reason for none.
type Probed = std::result::Result<(Vec<Found>, Option<String>), String>;

/// Finds OpenCL devices.
#[derive(Default)]
pub struct OpenClBackend {
    found: OnceLock<Probed>,
}

cantus_base::opaque_debug!(OpenClBackend);

impl OpenClBackend {
    /// The backend; nothing is loaded yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn found(&self) -> &Probed {
        self.found.get_or_init(probe::probe)
    }
}

impl Backend for OpenClBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        INTEL_GPU
    }

    fn may_exceed(&self, priority: i32) -> bool {
        priority < PROCESSOR
            || (priority < GPU && probe::may_have_gpu())
            || (priority < INTEL_GPU && probe::may_have_intel_gpu())
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        ready(match self.found() {
            Ok((found, remark)) => {
                Probe { devices: found.iter().map(|found| found.info.clone()).listed(), reason: remark.clone() }
            }
            Err(reason) => Probe::none(reason.clone()),
        })
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        let missing = |reason: String| Error::NoDevice {
            wanted: format!("the backend {NAME}, device {index}"),
            reasons: vec![(NAME.to_owned(), reason)],
        };
        let opened = match self.found() {
            Err(reason) => Err(missing(reason.clone())),
            Ok((found, _)) => match found.get(index) {
                None => Err(missing(devices_text(found.len()))),
                Some(found) => OpenClDevice::open(found, options).map(|device| Arc::new(device) as Arc<dyn Device>),
            },
        };
        ready(opened)
    }
}
