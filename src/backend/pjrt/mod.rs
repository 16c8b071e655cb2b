//! The PJRT backend: devices whose vendors have a plugin for it (Tenstorrent, TPU, Neuron, and GPUs by XLA), loaded at run time. They take
//! operation graphs as StableHLO, and no kernels.
//!
//! `CANTUS_PJRT_PLUGIN` names plugins: `tt`, `tpu`, `neuron`, `cuda`, `rocm`, `xpu`, the path of a library, or several of these as in `PATH`.
//! `simulate` and `simulate-bf16` are a plugin of Cantus's own that computes on the processor, for work without the hardware. Without the
//! variable a plugin is looked for where there is a sign of its device. Looking makes no client.

mod abi;
mod device;
mod plugin;
mod program;
mod shared;
mod simulate;

use std::sync::{Arc, OnceLock};

use self::plugin::{Candidate, Plugin};
use super::{Backend, BoxFuture, Capabilities, Device, DeviceInfo, DeviceKind, OpenOptions, Probe, ready};
use crate::error::{Error, Result};

const NAME: &str = "pjrt";
/// Tenstorrent's; what else there is ranks lower.
const PRIORITY: i32 = 85;

/// What is found: devices, and what else is to be said.
struct Found {
    devices: Vec<(Candidate, DeviceInfo)>,
    remarks: Vec<String>,
}

/// Finds devices with a PJRT plugin.
#[derive(Default)]
pub struct PjrtBackend {
    asked: Option<String>,
    candidates: OnceLock<(Vec<Candidate>, Vec<String>)>,
    found: OnceLock<Found>,
}

opaque_debug!(PjrtBackend);

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

    fn found(&self) -> &Found {
        self.found.get_or_init(|| {
            let (candidates, missing) = self.candidates();
            let mut found = Found { devices: Vec::new(), remarks: missing.clone() };
            for candidate in candidates {
                match Plugin::load(&candidate.source) {
                    Ok(plugin) => {
                        let info = info(candidate, plugin, found.devices.len());
                        found.devices.push((candidate.clone(), info));
                    }
                    Err(reason) => found.remarks.push(format!("{}: {reason}", candidate.source.name())),
                }
            }
            found
        })
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
        let found = self.found();
        let devices: Vec<DeviceInfo> = found.devices.iter().map(|(_, info)| info.clone()).collect();
        let reason = match (devices.is_empty(), found.remarks.is_empty()) {
            (_, false) => Some(found.remarks.join("; ")),
            (true, true) => Some("no sign of a device with a plugin (CANTUS_PJRT_PLUGIN names one)".to_owned()),
            (false, true) => None,
        };
        ready(Probe { devices, reason })
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        let found = self.found();
        let opened = match found.devices.get(index) {
            Some((candidate, info)) => {
                device::open(candidate, info, options).map(|device| Arc::new(device) as Arc<dyn Device>)
            }
            None => Err(Error::NoDevice {
                wanted: format!("the backend {NAME}, device {index}"),
                reasons: vec![(NAME.to_owned(), format!("it has {} devices", found.devices.len()))],
            }),
        };
        ready(opened)
    }
}

/// The table of the plugin that simulates, as a plugin's `GetPjrtApi` gives it: for doubles that stand between it and the backend.
#[cfg(feature = "_test")]
#[doc(hidden)]
#[must_use]
pub fn simulator_table() -> *const std::ffi::c_void {
    simulate::api(crate::graph::Precision::Full).cast()
}
