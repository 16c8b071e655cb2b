//! Opening a device of a plugin's client.

use super::attempts::Attempts;
use super::client;
use super::plugin::{Candidate, Source};
use super::shared::{self, Pjrt};
use crate::backend::{DeviceInfo, OpenOptions};
use crate::error::{Error, Result};
use crate::native_cache::NativeCache;
use crate::values::ValueDevice;

/// Takes a device of the candidate's client, by its place among those that this process may use.
pub(super) fn open(
    candidate: &Candidate,
    place: usize,
    info: &DeviceInfo,
    options: &OpenOptions,
) -> Result<ValueDevice<Pjrt>> {
    let failed = |reason: String| Error::NoDevice {
        wanted: format!("the device {}", info.name),
        reasons: vec![(candidate.source.name(), reason)],
    };
    if let Source::Library(path) = &candidate.source {
        for (name, place) in candidate.kind.environment {
            let folder = path.parent().map(|parent| parent.join(place)).filter(|folder| folder.is_dir());
            if let (None, Some(folder)) = (std::env::var_os(name), folder) {
                // SAFETY: the variable is set once, before the library that reads it is loaded; Rust's own readers take a lock.
                unsafe { std::env::set_var(name, folder) };
            }
        }
    }
    let cache = NativeCache::open(options.cache_folder.as_deref(), "pjrt");
    let attempts = Attempts::new(options.cache_folder.as_deref(), client::facts(candidate));
    let client = client::opened(candidate, &cache, &attempts).map_err(failed)?;
    let plugin = client.plugin;
    let devices = shared::devices(&client).map_err(|fault| failed(fault.to_string()))?;
    let Some(&(device, id)) = devices.get(place) else {
        return Err(failed(format!("its client has {} devices", devices.len())));
    };
    let mut info = info.clone();
    let platform = shared::platform(&client);
    let title = shared::title(plugin, device).filter(|title| !title.is_empty()).unwrap_or_else(|| platform.0.clone());
    info.name = format!("{title} (PJRT)");
    info.driver = format!("{} by {} {}", info.driver, platform.0, platform.1);
    info.memory_bytes = shared::memory(plugin, device);
    Ok(ValueDevice::new("cantus pjrt", info, Pjrt::new(client, (device, id), attempts), options))
}
