//! The devices of the machine.

use std::sync::Arc;
use std::time::Duration;

use cantus::backend::vulkan::{Emulation, VulkanBackend};
use cantus::backend::{Backend, DeviceInfo, OpenOptions};
use kit::backend::Open;
use pollster::block_on;

/// The way in which a device is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// As it is: a timeline semaphore tells the end of its work.
    Timeline,
    /// As if it had no timeline semaphore.
    Fences,
    /// As one with memory of its own, whose work begins a little later.
    Discrete,
}

/// A device that a probe found.
#[derive(Clone)]
pub struct Found {
    pub backend: Arc<VulkanBackend>,
    pub info: DeviceInfo,
    pub mode: Mode,
}

/// The backend as a mode wants it.
pub fn backend(mode: Mode) -> VulkanBackend {
    let plain = VulkanBackend::new().validation(true);
    match mode {
        Mode::Timeline => plain,
        Mode::Fences => plain.fences(true),
        Mode::Discrete => plain.emulate(discrete(Duration::from_millis(1))),
    }
}

/// A device with memory of its own, whose work begins that much later.
pub fn discrete(delay: Duration) -> Emulation {
    let mut emulation = Emulation::default();
    (emulation.discrete, emulation.delay) = (true, Some(delay));
    emulation
}

/// The devices, each in every mode, and the probe's reason. With the validation layers where they are installed.
pub fn devices() -> (Vec<Found>, Option<String>) {
    let (mut all, mut reason) = (Vec::new(), None);
    for mode in [Mode::Timeline, Mode::Fences, Mode::Discrete] {
        let backend = Arc::new(backend(mode));
        let probe = block_on(backend.probe());
        all.extend(probe.devices.into_iter().map(|info| Found { backend: backend.clone(), info, mode }));
        reason = probe.reason;
    }
    (all, reason)
}

impl Found {
    /// Opens it with plain options.
    pub fn open(&self) -> Open {
        self.open_with(&OpenOptions::default())
    }

    /// Opens it under other circumstances.
    pub fn open_under(&self, emulation: Emulation, options: &OpenOptions) -> Open {
        let backend = backend(self.mode).emulate(emulation);
        Open(block_on(backend.open(self.info.index, options)).expect("opens"))
    }

    pub fn open_with(&self, options: &OpenOptions) -> Open {
        Open(block_on(self.backend.open(self.info.index, options)).expect("opens"))
    }
}
