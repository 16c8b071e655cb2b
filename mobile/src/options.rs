//! The choices made before an engine opens, with the folders that an app passes in.

use std::path::Path;

use crate::error::Result;

/// An engine's reaction when a device fails before anything was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum Fallback {
    /// Tries the next device, moves the inputs there, records an event.
    Always,
    /// Turns every failure into an error.
    Never,
}

/// Choices for `Engine.open`. What is left out comes from the configuration, and then from the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, uniffi::Record)]
pub struct EngineOptions {
    /// Only this backend: `vulkan`, `wgpu` or `cpu`.
    #[uniffi(default = None)]
    pub backend: Option<String>,
    /// Only this device of the backend.
    #[uniffi(default = None)]
    pub device: Option<u32>,
    /// Prefer the device that draws less power.
    #[uniffi(default = None)]
    pub low_power: Option<bool>,
    /// Folder for compiled pipelines and measurements: the app's cache folder. Created when needed.
    #[uniffi(default = None)]
    pub cache_folder: Option<String>,
    /// Folder of `config.toml`, if there is one: a folder of the app.
    #[uniffi(default = None)]
    pub config_folder: Option<String>,
    /// The reaction when a device fails.
    #[uniffi(default = None)]
    pub fallback: Option<Fallback>,
    /// Limit in bytes on what the engine holds on each device.
    #[uniffi(default = None)]
    pub memory_limit: Option<u64>,
    /// Time limit on a batch or a transfer.
    #[uniffi(default = None)]
    pub timeout_ms: Option<u64>,
    /// Measure each kernel's time on the device.
    #[uniffi(default = None)]
    pub profile: Option<bool>,
    /// Let small fields go to the CPU when that is estimated to be quicker.
    #[uniffi(default = None)]
    pub placement: Option<bool>,
}

impl EngineOptions {
    /// Defaults, the file in the app's folder and `CANTUS_*` variables if there is such a folder, then what is set here.
    pub(crate) fn config(&self) -> Result<cantus::Config> {
        let base = match &self.config_folder {
            None => cantus::Config::default(),
            Some(folder) => {
                let file = Path::new(folder).join("config.toml");
                let mut config =
                    if file.exists() { cantus::Config::from_file(&file)? } else { cantus::Config::default() };
                config.apply_environment(|name| std::env::var(name).ok())?;
                config
            }
        };
        let mut config = cantus::Config::default();
        config.backend = self.backend.clone();
        config.device = self.device.map(|index| index as usize);
        config.low_power = self.low_power;
        config.fallback = self.fallback.map(Into::into);
        config.memory_limit = self.memory_limit;
        config.timeout_ms = self.timeout_ms.map(|limit| limit.max(1));
        config.profile = self.profile;
        config.placement = self.placement;
        Ok(config.over(base))
    }

    /// A builder with all of it.
    pub(crate) fn builder(&self) -> Result<cantus::engine::Builder> {
        let builder = cantus::Engine::builder().config(self.config()?);
        Ok(match &self.cache_folder {
            Some(folder) => builder.cache_folder(folder),
            None => builder,
        })
    }
}

impl From<Fallback> for cantus::Fallback {
    fn from(fallback: Fallback) -> Self {
        match fallback {
            Fallback::Always => Self::Always,
            Fallback::Never => Self::Never,
        }
    }
}
