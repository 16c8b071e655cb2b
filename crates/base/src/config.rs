//! Configuration: default < TOML file < `CANTUS_*` variables < code and flags. Engines read it once, when they are built, through `Builder`; the program
//! and Python have the same keys. A setting is one row of a macro (`KEYS`), so file, variable, flag and documentation cannot differ. Every field is
//! optional: `None` means that nobody set it, and the engine decides.

use std::path::{Path, PathBuf};
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

/// How a setting is read from text, and written.
struct Kind<T> {
    read: fn(&str) -> Option<T>,
    write: fn(&T) -> String,
}

const TEXT: Kind<String> = Kind { read: |text| Some(text.to_owned()), write: String::clone };
const INDEX: Kind<usize> = Kind { read: |text| text.parse().ok(), write: usize::to_string };
const BYTES: Kind<u64> = Kind { read: |text| parse_bytes(text).filter(|&bytes| bytes > 0), write: u64::to_string };
const LIMIT: Kind<u64> = Kind { read: |text| text.parse().ok().filter(|&limit| limit > 0), write: u64::to_string };
const LIMIT_OR_NONE: Kind<u64> = Kind { read: |text| text.parse().ok(), write: u64::to_string };
const SWITCH: Kind<bool> = Kind { read: parse_bool, write: bool::to_string };
const TRACE: Kind<PathBuf> =
    Kind { read: |text| is_trace(text).then(|| text.into()), write: |path| path.display().to_string() };
const FALLBACK: Kind<Fallback> = Kind {
    read: |text| match text {
        "always" | "true" | "1" => Some(Fallback::Always),
        "never" | "false" | "0" => Some(Fallback::Never),
        _ => None,
    },
    write: |fallback| match fallback {
        Fallback::Always => "always".to_owned(),
        Fallback::Never => "never".to_owned(),
    },
};

/// Makes [`Config`] and [`KEYS`] of a row for each setting: its meaning, its name, its type, how text says it, and what it takes. The file's key is the
/// name, and the variable `CANTUS_` with the name in capitals.
macro_rules! settings {
    ($($(#[doc = $meaning:literal])+ $name:ident: $type:ty, $kind:expr, $takes:literal;)+) => {
        /// Settings of an engine. `None` means: not set here.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        #[non_exhaustive]
        pub struct Config {
            $($(#[doc = $meaning])+ #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)+
        }

        /// The keys and their values.
        pub const KEYS: [(&str, &str); [$($takes),+].len()] = [$((stringify!($name), $takes)),+];

        impl Config {
            /// Returns these settings, and those of `base` where nothing is set here. A device of `base` belongs to the backend named there: it does
            /// not count if another one is named here.
            #[must_use]
            pub fn over(self, mut base: Self) -> Self {
                if self.backend.is_some() && self.backend != base.backend {
                    base.device = None;
                }
                Self { $($name: self.$name.or(base.$name)),+ }
            }

            /// Returns the value of a key as text, if it is set.
            #[must_use]
            pub fn get(&self, key: &str) -> Option<String> {
                match key {
                    $(stringify!($name) => self.$name.as_ref().map($kind.write),)+
                    _ => None,
                }
            }

            /// Sets a known key from text. `None` if the text is not one of its values.
            fn read(&mut self, key: &str, text: &str) -> Option<()> {
                match key {
                    $(stringify!($name) => self.$name = Some(($kind.read)(text)?),)+
                    _ => return None,
                }
                Some(())
            }
        }
    };
}

settings! {
    /// The backend to use, by name.
    backend: String, TEXT, "a backend's name, e.g. cpu or wgpu";
    /// The device of that backend, by index.
    device: usize, INDEX, "a device's index within its backend";
    /// The reaction when a device fails.
    fallback: Fallback, FALLBACK, "always or never";
    /// Limits the memory on each device, in bytes.
    memory_limit: u64, BYTES, "bytes, or a size such as 512MiB";
    /// Limits the time of each batch and each transfer, in milliseconds.
    timeout_ms: u64, LIMIT, "milliseconds";
    /// Limits the time without progress on the CPU, in milliseconds; 0 is no limit.
    stall_ms: u64, LIMIT_OR_NONE, "milliseconds, 0 for no limit";
    /// Measures each kernel's time on the device.
    profile: bool, SWITCH, "true, false, or a file NAME.json for a trace";
    /// The file for each engine's trace, for Chrome's and Perfetto's viewers. Sets `profile` as well.
    trace: PathBuf, TRACE, "a file NAME.json";
    /// Makes operations that create data choose the device by estimated time (the default), not only by rank.
    placement: bool, SWITCH, "true or false";
    /// Prefers GPUs that share the system's memory over discrete ones.
    low_power: bool, SWITCH, "true or false";
    /// Lets native kernels and vendors' libraries replace portable kernels (the default).
    native: bool, SWITCH, "true or false, on or off";
    /// Runs kernels on the CPU, where a store beyond an array is an error. Elsewhere it does nothing.
    check_stores: bool, SWITCH, "true or false";
    /// Computes the same bits on every device.
    reproducible: bool, SWITCH, "true or false";
    /// Publishes the engine's figures for `cantus top` of the same user.
    publish: bool, SWITCH, "true or false";
}

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
    pub fn path() -> Option<PathBuf> {
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
    pub fn from_file(path: &Path) -> Result<Self> {
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
        if key == "profile" && is_trace(value) {
            (self.profile, self.trace) = (Some(true), Some(value.into()));
            return Ok(());
        }
        self.read(key, value)
            .ok_or_else(|| Error::Config { place: place.to_owned(), reason: format!("\"{value}\" is not {takes}") })
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
    Path::new(value).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
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
