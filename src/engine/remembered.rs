//! Small files in the cache folder: what was measured in an earlier run. They can all be made again, so none of them can fail anything.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What was written under that name. A file that is missing, damaged or foreign counts as empty.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn recall<T: DeserializeOwned + Default>(folder: &Path, name: &str) -> T {
    let text = std::fs::read_to_string(folder.join(name)).ok();
    text.and_then(|text| toml::from_str(&text).ok()).unwrap_or_default()
}

/// Writes it, whole or not at all. A folder that cannot be written costs a measurement next time.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn remember<T: Serialize>(folder: &Path, name: &str, value: &T) {
    use std::io::Write as _;
    let Ok(text) = toml::to_string(value) else { return };
    let _ = crate::files::write_cached(&folder.join(name), |file| file.write_all(text.as_bytes()));
}

/// The key of a device in such a file: what was measured on another driver or by another version is measured again.
pub(super) fn key(info: &crate::backend::DeviceInfo) -> String {
    format!("{} | {} | {} | {}", info.backend, info.name, info.driver, env!("CARGO_PKG_VERSION"))
}

#[cfg(target_arch = "wasm32")]
pub(super) fn recall<T: DeserializeOwned + Default>(_folder: &Path, _name: &str) -> T {
    T::default()
}

#[cfg(target_arch = "wasm32")]
pub(super) fn remember<T: Serialize>(_folder: &Path, _name: &str, _value: &T) {}
