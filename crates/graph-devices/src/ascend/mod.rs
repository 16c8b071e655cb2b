//! The Ascend backend: Huawei's processors by AscendCL and the operators of aclnn, loaded at run time. They take operation graphs, and no
//! kernels.
//!
//! `ASCEND_TOOLKIT_HOME` says where the libraries are, beside the system's own places; `CANTUS_ASCEND_LIBRARY` names one that has all of them.
//! Looking makes no context.

mod abi;
mod adapt;
mod call;
mod device;
mod library;
mod memory;
mod objects;
mod program;
mod record;
mod target;

use std::sync::{Arc, OnceLock};

use self::library::Library;
use crate::backend::{
    Backend, BoxFuture, Capabilities, Device, DeviceInfo, DeviceKind, OpenOptions, Probe, devices_text, ready,
};
use crate::error::{Error, Result};
use cantus_base::listed::Listed;

const NAME: &str = "ascend";
const PRIORITY: i32 = 75;

/// The library and its devices, or why there are none.
type Found = Result<(Arc<Library>, Vec<DeviceInfo>), String>;

/// Finds Ascend devices.
#[derive(Default)]
pub struct AscendBackend {
    named: Option<String>,
    found: OnceLock<Found>,
}

cantus_base::opaque_debug!(AscendBackend);

impl AscendBackend {
    /// The backend, with the library that `CANTUS_ASCEND_LIBRARY` names or those of the toolkit; nothing is loaded yet.
    #[must_use]
    pub fn new() -> Self {
        Self { named: std::env::var("CANTUS_ASCEND_LIBRARY").ok().filter(|name| !name.is_empty()), ..Self::default() }
    }

    /// The backend with one library that has the functions of all of Ascend's.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use cantus::backend::{Backend, ascend::AscendBackend};
    /// let probe = AscendBackend::with_library("/nowhere/libascend.so").probe().await;
    /// assert!(probe.devices.is_empty() && probe.reason.is_some());
    /// # });
    /// ```
    #[must_use]
    pub fn with_library(path: &str) -> Self {
        Self { named: Some(path.to_owned()), ..Self::default() }
    }

    fn found(&self) -> &Found {
        self.found.get_or_init(|| {
            let library = Library::load(self.named.as_deref())?;
            let count = library.initialise().and_then(|()| library.devices()).map_err(|fault| fault.to_string())?;
            let infos = (0..count as usize).map(|index| info(&library, index)).listed();
            Ok((Arc::new(library), infos))
        })
    }
}

fn info(library: &Library, index: usize) -> DeviceInfo {
    let chip = library.chip();
    let name = if chip.is_empty() { "Ascend" } else { &chip };
    let mut info = DeviceInfo::new(NAME, index, name.to_owned(), DeviceKind::Other);
    info.driver = library.version().to_owned();
    info.priority = PRIORITY;
    let mut capabilities = Capabilities { operation_graphs: true, ..Capabilities::default() };
    // Of values; kernels there are none.
    capabilities.limits.buffer_bytes = 1 << 40;
    capabilities.limits.storage_binding_bytes = 1 << 40;
    info.capabilities = capabilities;
    info
}

impl Backend for AscendBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        PRIORITY
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        ready(match self.found() {
            Ok((_, devices)) => {
                let reason = devices.is_empty().then(|| "AscendCL finds no device".to_owned());
                Probe { devices: devices.clone(), reason }
            }
            Err(reason) => Probe { devices: Vec::new(), reason: Some(reason.clone()) },
        })
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        let none = |reason: String| Error::NoDevice {
            wanted: format!("the backend {NAME}, device {index}"),
            reasons: vec![(NAME.to_owned(), reason)],
        };
        let opened = match self.found() {
            Ok((library, devices)) => match devices.get(index) {
                Some(info) => device::open(library, info, options).map(|device| Arc::new(device) as Arc<dyn Device>),
                None => Err(none(devices_text(devices.len()))),
            },
            Err(reason) => Err(none(reason.clone())),
        };
        ready(opened)
    }
}
