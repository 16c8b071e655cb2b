//! The devices of the machine.

use std::sync::Arc;

use cantus::backend::wgpu::WgpuBackend;
use cantus::backend::{Backend, DeviceInfo, OpenOptions};
use kit::backend::Open;
use pollster::block_on;

/// A device that a probe found.
#[derive(Clone)]
pub struct Found {
    pub backend: Arc<WgpuBackend>,
    pub info: DeviceInfo,
}

/// The devices, and the probe's reason.
pub fn devices() -> (Vec<Found>, Option<String>) {
    let backend = Arc::new(WgpuBackend::new());
    let probe = block_on(backend.probe());
    let found = probe.devices.into_iter().map(|info| Found { backend: backend.clone(), info });
    (found.collect(), probe.reason)
}

impl Found {
    /// Opens it with plain options.
    pub fn open(&self) -> Open {
        self.open_with(&OpenOptions::default())
    }

    pub fn open_with(&self, options: &OpenOptions) -> Open {
        Open(block_on(self.backend.open(self.info.index, options)).expect("opens"))
    }

    pub fn is_gl(&self) -> bool {
        self.info.name.ends_with("(GL)")
    }
}
