//! Opening a device: its plugin's client.

use super::abi::{self, Call, ClientCreate, NamedValue};
use super::plugin::{self, Candidate, Owned, Plugin, Source};
use super::shared::{self, Pjrt};
use crate::backend::values::ValueDevice;
use crate::backend::{DeviceInfo, OpenOptions};
use crate::error::{Error, Result};

/// Makes the client and takes its first device.
pub(super) fn open(candidate: &Candidate, info: &DeviceInfo, options: &OpenOptions) -> Result<ValueDevice<Pjrt>> {
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
    let plugin = Plugin::load(&candidate.source).map_err(failed)?;
    plugin::initialised(plugin).map_err(|fault| failed(fault.to_string()))?;
    let settings: Vec<NamedValue> = candidate
        .kind
        .options
        .iter()
        .map(|(name, value)| NamedValue {
            struct_size: size_of::<NamedValue>(),
            extension: std::ptr::null_mut(),
            name: name.as_ptr(),
            name_length: name.count_bytes(),
            kind: abi::BOOL,
            value: u64::from(*value),
            value_size: 1,
        })
        .collect();
    let made = plugin.call(
        Call::ClientCreate,
        ClientCreate {
            options: settings.as_ptr(),
            option_count: settings.len(),
            callbacks: [std::ptr::null_mut(); 4],
            client: std::ptr::null_mut(),
        },
    );
    let client = made.map_err(|fault| failed(fault.to_string()))?.client;
    let client = Owned::new(plugin, client, Call::ClientDestroy, None);
    let devices = shared::devices(&client).map_err(|fault| failed(fault.to_string()))?;
    let Some(&(device, id)) = devices.first() else { return Err(failed("its client has no device".to_owned())) };
    let mut info = info.clone();
    let platform = plugin.text_of(Call::ClientPlatformName, client.object).unwrap_or_default();
    let version = plugin.text_of(Call::ClientPlatformVersion, client.object).unwrap_or_default();
    let title = shared::title(plugin, device).filter(|title| !title.is_empty()).unwrap_or_else(|| platform.clone());
    info.name = format!("{title} (PJRT)");
    info.driver = format!("{} by {platform} {}", info.driver, version.lines().next().unwrap_or_default());
    info.memory_bytes = shared::memory(plugin, device);
    let simulated = matches!(candidate.source, Source::Simulator(_));
    Ok(ValueDevice::new("cantus pjrt", info, Pjrt::new(client, (device, id), simulated), options))
}
