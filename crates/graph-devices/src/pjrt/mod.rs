//! The PJRT backend: devices whose vendors have a plugin for it (Tenstorrent, TPU, Neuron, and GPUs by XLA), loaded at run time. They take
//! operation graphs as StableHLO, and no kernels.
//!
//! `CANTUS_PJRT_PLUGIN` names plugins: `tt`, `tpu`, `neuron`, `cuda`, `rocm`, `xpu`, the path of a library, or several of these as in `PATH`.
//! `simulate` and `simulate-bf16` are a plugin of Cantus's own that computes on the processor, for work without the hardware. `NAME*4` says that
//! its client has four devices; otherwise as many are known as the system has nodes for, and the rest when the client is made. Without the
//! variable a plugin is looked for where there is a sign of its device. Looking makes no client; a library that was never used on this machine is
//! loaded in a copy of the process first, and opened in one before it is here.

mod abi;
mod attempts;
mod client;
mod device;
mod event;
mod plugin;
mod program;
mod shared;
mod simulate;
mod trial;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use self::plugin::{Candidate, Plugin};
use crate::backend::{
    Backend, BoxFuture, Capabilities, Device, DeviceInfo, DeviceKind, OpenOptions, Probe, devices_text, ready,
};
use crate::error::{Error, Result};
use cantus_base::listed::Listed;

const NAME: &str = "pjrt";
/// Tenstorrent's; all others rank lower.
const PRIORITY: i32 = 85;

/// A device that is found: of which candidate, and which one of its client's.
#[derive(Clone)]
struct Entry {
    candidate: usize,
    place: usize,
    info: DeviceInfo,
}

/// The result of a probe: plugins by candidate, devices, and remarks.
#[derive(Default)]
struct Found {
    plugins: Vec<Option<Plugin>>,
    devices: Vec<Entry>,
    remarks: Vec<String>,
}

/// Finds devices with a PJRT plugin.
#[derive(Default)]
pub struct PjrtBackend {
    asked: Option<String>,
    candidates: OnceLock<(Vec<Candidate>, Vec<String>)>,
    found: Mutex<Option<Found>>,
}

cantus_base::opaque_debug!(PjrtBackend);

impl PjrtBackend {
    /// The backend, with the plugins that `CANTUS_PJRT_PLUGIN` names; nothing is loaded yet.
    #[must_use]
    pub fn new() -> Self {
        Self { asked: std::env::var("CANTUS_PJRT_PLUGIN").ok(), ..Self::default() }
    }

    /// The backend with these plugins, as the variable would name them.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use cantus::backend::{Backend, pjrt::PjrtBackend};
    /// let probe = PjrtBackend::with_plugins("simulate").probe().await;
    /// assert_eq!(probe.devices[0].priority, 85);
    /// # });
    /// ```
    #[must_use]
    pub fn with_plugins(plugins: &str) -> Self {
        Self { asked: Some(plugins.to_owned()), ..Self::default() }
    }

    fn candidates(&self) -> &(Vec<Candidate>, Vec<String>) {
        self.candidates.get_or_init(|| plugin::candidates(self.asked.as_deref()))
    }

    /// Asks what was found. A client that was made since may have more devices than were known; those come last.
    fn found<T>(&self, ask: impl FnOnce(&Found) -> T) -> T {
        let (candidates, missing) = self.candidates();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found = found.get_or_insert_with(|| {
            let mut found = Found { remarks: missing.clone(), ..Found::default() };
            for candidate in candidates {
                let plugin = client::loaded(candidate);
                let reason = plugin.as_ref().err().map(|reason| format!("{}: {reason}", candidate.source.name()));
                found.remarks.extend(reason);
                found.plugins.push(plugin.ok());
            }
            found
        });
        for (number, (candidate, plugin)) in candidates.iter().zip(&found.plugins).enumerate() {
            let Some(plugin) = *plugin else { continue };
            let of_candidate = found.devices.iter().filter(|entry| entry.candidate == number).count();
            for place in of_candidate..client::devices(plugin).unwrap_or(0).max(candidate.devices) {
                let info = info(candidate, plugin, found.devices.len());
                found.devices.push(Entry { candidate: number, place, info });
            }
        }
        ask(found)
    }
}

fn info(candidate: &Candidate, plugin: Plugin, index: usize) -> DeviceInfo {
    let (major, minor) = plugin.version();
    let mut info = DeviceInfo::new(NAME, index, format!("{} (PJRT)", candidate.kind.title), DeviceKind::Other);
    info.driver = format!("PJRT {major}.{minor}, {}", candidate.source.name());
    info.priority = candidate.kind.priority;
    let mut capabilities = Capabilities { operation_graphs: true, ..Capabilities::default() };
    // Of values; kernels there are none.
    capabilities.limits.buffer_bytes = 1 << 40;
    capabilities.limits.storage_binding_bytes = 1 << 40;
    capabilities.features.float64 = true;
    capabilities.features.int64 = true;
    info.capabilities = capabilities;
    info
}

impl Backend for PjrtBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        PRIORITY
    }

    fn may_exceed(&self, priority: i32) -> bool {
        self.candidates().0.iter().any(|candidate| candidate.kind.priority > priority)
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        let (devices, remarks) = self.found(|found| {
            let devices: Vec<DeviceInfo> = found.devices.iter().map(|entry| entry.info.clone()).listed();
            (devices, found.remarks.clone())
        });
        let reason = match (devices.is_empty(), remarks.is_empty()) {
            (_, false) => Some(remarks.join("; ")),
            (true, true) => Some("no sign of a device with a plugin (CANTUS_PJRT_PLUGIN names one)".to_owned()),
            (false, true) => None,
        };
        ready(Probe { devices, reason })
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        let (entry, count) = self.found(|found| (found.devices.get(index).cloned(), found.devices.len()));
        let found = entry.and_then(|entry| Some((self.candidates().0.get(entry.candidate)?, entry)));
        let opened = match found {
            Some((candidate, entry)) => device::open(candidate, entry.place, &entry.info, options)
                .map(|device| Arc::new(device) as Arc<dyn Device>),
            None => Err(Error::NoDevice {
                wanted: format!("the backend {NAME}, device {index}"),
                reasons: vec![(NAME.to_owned(), devices_text(count))],
            }),
        };
        ready(opened)
    }
}

/// The table of the plugin that simulates, as a plugin's `GetPjrtApi` gives it: for doubles between it and the backend. Without the
/// setting for it, it has three devices.
#[cfg(feature = "_test")]
#[doc(hidden)]
#[must_use]
pub fn simulator_table() -> *const std::ffi::c_void {
    simulate::api(crate::graph::Precision::Full).cast()
}
