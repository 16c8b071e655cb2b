//! The devices of the machine.

use std::sync::Arc;

use cantus::backend::vulkan::VulkanBackend;
use cantus::backend::{Backend, DeviceInfo, OpenOptions};
use kit::backend::Open;
use pollster::block_on;

/// A device that a probe found, and how the end of its work is known.
#[derive(Clone)]
pub struct Found {
    pub backend: Arc<VulkanBackend>,
    pub info: DeviceInfo,
    /// By fences, or by a timeline semaphore.
    pub fences: bool,
}

/// The devices, each with a timeline semaphore and with fences, and the probe's reason. With the validation layers where they are
/// installed.
pub fn devices() -> (Vec<Found>, Option<String>) {
    let (mut all, mut reason) = (Vec::new(), None);
    for fences in [false, true] {
        let backend = Arc::new(VulkanBackend::new().validation(true).fences(fences));
        let probe = block_on(backend.probe());
        all.extend(probe.devices.into_iter().map(|info| Found { backend: backend.clone(), info, fences }));
        reason = probe.reason;
    }
    (all, reason)
}

impl Found {
    /// Opens it with plain options.
    pub fn open(&self) -> Open {
        self.open_with(&OpenOptions::default())
    }

    pub fn open_with(&self, options: &OpenOptions) -> Open {
        Open(block_on(self.backend.open(self.info.index, options)).expect("opens"))
    }
}
