//! Configuration: default < TOML file < `CANTUS_*` variables < code and flags.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::listed::Listed;

/// The engine's reaction when a device fails before anything was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// Tries the next device, moves the inputs there, records an event.
    #[default]
    Always,
    /// Turns every failure into an error.
    Never,
}

/// Settings of an engine. `None` means: not set here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Config {
    /// The backend to use, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The device of that backend, by index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<usize>,
    /// The reaction when a device fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    /// Limits the memory on each device, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// Limits the time of each batch and each transfer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Limits the time without progress on the CPU, in milliseconds; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_ms: Option<u64>,
    /// Measures each kernel's time on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<bool>,
    /// The file for each engine's trace, for Chrome's and Perfetto's viewers. Sets `profile` as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<std::path::PathBuf>,
    /// Makes operations that create data choose the device by estimated time (the default), not only by rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<bool>,
    /// Prefers GPUs that share the system's memory over discrete ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_power: Option<bool>,
    /// Lets native kernels and vendors' libraries replace portable kernels (the default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<bool>,
    /// Computes the same bits on every device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproducible: Option<bool>,
    /// Publishes the engine's figures for `cantus top` of the same user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish: Option<bool>,
}

/// The keys and their values.
pub const KEYS: [(&str, &str); 13] = [
    ("backend", "a backend's name, e.g. cpu or wgpu"),
    ("device", "a device's index within its backend"),
    ("fallback", "always or never"),
    ("memory_limit", "bytes, or a size such as 512MiB"),
    ("timeout_ms", "milliseconds"),
    ("stall_ms", "milliseconds, 0 for no limit"),
    ("profile", "true, false, or a file NAME.json for a trace"),
    ("trace", "a file NAME.json"),
    ("placement", "true or false"),
    ("low_power", "true or false"),
    ("native", "true or false, on or off"),
    ("reproducible", "true or false"),
    ("publish", "true or false"),
];

impl Config {
    /// Defaults, then the configuration file (with the feature `config`), then the environment.
    ///
    /// # Errors
    /// [`Error::Config`] naming the file or variable that cannot be understood. A file named by `CANTUS_CONFIG` must exist.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn load() -> Result<Self> {
        #[cfg(feature = "config")]
        let mut config = match Self::path() {
            Some(path) if path.exists() || std::env::var_os("CANTUS_CONFIG").is_some() => Self::from_file(&path)?,
            _ => Self::default(),
        };
        #[cfg(not(feature = "config"))]
        let mut config = Self::default();
        config.apply_environment(|name| std::env::var(name).ok())?;
        Ok(config)
    }

    /// Defaults: the web has neither files nor environment.
    ///
    /// # Errors
    /// None here.
    #[cfg(target_arch = "wasm32")]
    pub fn load() -> Result<Self> {
        Ok(Self::default())
    }

    /// Returns the configuration file: `CANTUS_CONFIG`, or `cantus/config.toml` in the user's configuration folder.
    #[cfg(all(feature = "config", not(target_arch = "wasm32")))]
    #[must_use]
    pub fn path() -> Option<std::path::PathBuf> {
        match std::env::var_os("CANTUS_CONFIG") {
            Some(path) if !path.is_empty() => Some(path.into()),
            _ => crate::folders::config().map(|folder| folder.join("cantus").join("config.toml")),
        }
    }

    /// Reads a TOML file.
    ///
    /// # Errors
    /// [`Error::Config`] with the place in the file.
    #[cfg(all(feature = "config", not(target_arch = "wasm32")))]
    pub fn from_file(path: &std::path::Path) -> Result<Self> {
        let fault = |reason: String| Error::Config { place: path.display().to_string(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| fault(format!("it cannot be read: {error}")))?;
        toml::from_str(&text).map_err(|error| fault(error.to_string().trim_end().to_owned()))
    }

    /// Returns the settings as TOML.
    #[cfg(all(feature = "config", not(target_arch = "wasm32")))]
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Applies the `CANTUS_*` variables that `lookup` finds; empty ones count as not set.
    ///
    /// ```
    /// let mut config = cantus::Config::default();
    /// config.apply_environment(|name| (name == "CANTUS_BACKEND").then(|| "cpu".to_owned()))?;
    /// assert_eq!(config.get("backend").as_deref(), Some("cpu"));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] naming the variable.
    pub fn apply_environment(&mut self, lookup: impl Fn(&str) -> Option<String>) -> Result<()> {
        for (key, _) in KEYS {
            let variable = format!("CANTUS_{}", key.to_uppercase());
            if let Some(value) = lookup(&variable).filter(|value| !value.is_empty()) {
                self.set_from(&variable, key, &value)?;
            }
        }
        Ok(())
    }

    /// Sets a key from text.
    ///
    /// ```
    /// let mut config = cantus::Config::default();
    /// config.set("memory_limit", "2GiB")?;
    /// assert!(config.set("colour", "blue").is_err());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] if there is no such key, or the value is not one of its values; the message lists the valid ones.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.set_from(key, key, value)
    }

    fn set_from(&mut self, place: &str, key: &str, value: &str) -> Result<()> {
        let Some((_, takes)) = KEYS.iter().find(|(known, _)| *known == key) else {
            let known: Vec<&str> = KEYS.iter().map(|(known, _)| *known).listed();
            return Err(Error::Config {
                place: place.to_owned(),
                reason: format!("there is no such key (the keys are: {})", known.join(", ")),
            });
        };
        let fault = || Error::Config { place: place.to_owned(), reason: format!("\"{value}\" is not {takes}") };
        match key {
            "backend" => self.backend = Some(value.to_owned()),
            "device" => self.device = Some(value.parse().map_err(|_| fault())?),
            "fallback" => {
                self.fallback = Some(match value {
                    "always" | "true" | "1" => Fallback::Always,
                    "never" | "false" | "0" => Fallback::Never,
                    _ => return Err(fault()),
                });
            }
            "memory_limit" => {
                self.memory_limit = Some(parse_bytes(value).filter(|&bytes| bytes > 0).ok_or_else(fault)?)
            }
            "timeout_ms" => self.timeout_ms = Some(value.parse().ok().filter(|&limit| limit > 0).ok_or_else(fault)?),
            "stall_ms" => self.stall_ms = Some(value.parse().map_err(|_| fault())?),
            "profile" if is_trace(value) => (self.profile, self.trace) = (Some(true), Some(value.into())),
            "profile" => self.profile = Some(parse_bool(value).ok_or_else(fault)?),
            "trace" if is_trace(value) => self.trace = Some(value.into()),
            "trace" => return Err(fault()),
            "placement" => self.placement = Some(parse_bool(value).ok_or_else(fault)?),
            "low_power" => self.low_power = Some(parse_bool(value).ok_or_else(fault)?),
            "native" => self.native = Some(parse_bool(value).ok_or_else(fault)?),
            "publish" => self.publish = Some(parse_bool(value).ok_or_else(fault)?),
            _ => self.reproducible = Some(parse_bool(value).ok_or_else(fault)?),
        }
        Ok(())
    }

    /// Returns the value of a key as text, if it is set.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<String> {
        match key {
            "backend" => self.backend.clone(),
            "device" => self.device.map(|device| device.to_string()),
            "fallback" => self.fallback.map(|fallback| match fallback {
                Fallback::Always => "always".to_owned(),
                Fallback::Never => "never".to_owned(),
            }),
            "memory_limit" => self.memory_limit.map(|bytes| bytes.to_string()),
            "timeout_ms" => self.timeout_ms.map(|limit| limit.to_string()),
            "stall_ms" => self.stall_ms.map(|limit| limit.to_string()),
            "profile" => self.profile.map(|profile| profile.to_string()),
            "trace" => self.trace.as_ref().map(|path| path.display().to_string()),
            "placement" => self.placement.map(|placement| placement.to_string()),
            "low_power" => self.low_power.map(|low_power| low_power.to_string()),
            "native" => self.native.map(|native| native.to_string()),
            "reproducible" => self.reproducible.map(|reproducible| reproducible.to_string()),
            "publish" => self.publish.map(|publish| publish.to_string()),
            _ => None,
        }
    }

    /// Returns the limit on work without progress, if one is set.
    #[must_use]
    pub fn stall_limit(&self) -> Option<Duration> {
        self.stall_ms.filter(|&limit| limit > 0).map(Duration::from_millis)
    }

    /// Returns the time limit, if one is set.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}

fn is_trace(value: &str) -> bool {
    std::path::Path::new(value).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "on" | "yes" => Some(true),
        "false" | "0" | "off" | "no" => Some(false),
        _ => None,
    }
}

/// Returns a size in bytes: a number, with an optional unit KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024).
///
/// ```
/// assert_eq!(cantus::config::parse_bytes("1.5 KiB"), Some(1536));
/// assert_eq!(cantus::config::parse_bytes("2 MB"), Some(2_000_000));
/// assert_eq!(cantus::config::parse_bytes("many"), None);
/// # Ok::<_, cantus::Error>(())
/// ```
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let bytes = number.parse::<f64>().ok()? * factor as f64;
    (bytes.is_finite() && bytes < u64::MAX as f64).then_some(bytes as u64)
}
