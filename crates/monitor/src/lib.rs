//! Figures of a machine's devices and of the engines on them, for `cantus top` and the service.
//!
//! Devices come from NVML (NVIDIA), from Linux' sysfs (AMD, Intel), from Vulkan where nothing else reports memory, and from the system (the
//! processor). Engines are those of this user that publish ([`cantus::engine::Builder::publish`]). A figure that is not reported is a [`Reading`] with the reason.
//!
//! Everything is behind the feature `collect`; on the web there is nothing to watch, and the crate is empty.
#![cfg(all(feature = "collect", not(target_arch = "wasm32")))]

mod cpu;
#[cfg(feature = "nvml")]
mod nvml;
mod sysfs;
#[cfg(feature = "vulkan")]
mod vulkan;

use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cantus::engine::{Figures, publish_folder, published_in};
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// A figure, or why it is missing. As JSON an object: `value`, which is `null` where it is missing, and then `reason`.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading<T>(pub Result<T, String>);

impl<T> Reading<T> {
    /// Creates an empty reading with the reason.
    pub fn none(reason: impl Into<String>) -> Self {
        Self(Err(reason.into()))
    }

    /// The figure.
    pub fn value(&self) -> Option<&T> {
        self.0.as_ref().ok()
    }
}

impl<T: Serialize> Serialize for Reading<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Reading", 1 + usize::from(self.0.is_err()))?;
        object.serialize_field("value", &self.value())?;
        if let Err(reason) = &self.0 {
            object.serialize_field("reason", reason)?;
        }
        object.end()
    }
}

/// A process on a device.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Bytes of the device's memory, where the vendor tells.
    pub memory_bytes: Option<u64>,
}

/// A device. Texts hold no control characters.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// The source of its figures: `nvml`, `sysfs`, `vulkan` or `system`.
    pub source: &'static str,
    /// PCI address as `0000:03:00.0`, where it has one.
    pub pci: Option<String>,
    /// Bytes of memory.
    pub memory_total_bytes: Reading<u64>,
    /// Bytes in use by all processes; for Vulkan what is beyond this process's budget.
    pub memory_used_bytes: Reading<u64>,
    /// Bytes that may still be had.
    pub memory_free_bytes: Reading<u64>,
    /// Percent of the time in which it worked.
    pub utilisation_percent: Reading<f64>,
    /// Degrees Celsius.
    pub temperature_celsius: Reading<f64>,
    /// Watts.
    pub power_watts: Reading<f64>,
    /// Megahertz of its processors.
    pub clock_mhz: Reading<f64>,
    /// Megahertz of its memory.
    pub memory_clock_mhz: Reading<f64>,
    /// Processes on it.
    pub processes: Reading<Vec<Process>>,
}

impl Device {
    /// A device of which nothing is known yet, for that reason.
    fn unknown(name: &str, source: &'static str, pci: Option<String>, reason: &str) -> Self {
        let name: String = name.chars().filter(|c| !c.is_control()).take(120).collect();
        let none = || Reading::none(reason);
        Self {
            name,
            source,
            pci,
            memory_total_bytes: Reading::none(reason),
            memory_used_bytes: Reading::none(reason),
            memory_free_bytes: Reading::none(reason),
            utilisation_percent: none(),
            temperature_celsius: none(),
            power_watts: none(),
            clock_mhz: none(),
            memory_clock_mhz: none(),
            processes: Reading::none(reason),
        }
    }
}

/// An engine that publishes.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Engine {
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Dispatches recorded per second since the last look, or since the engine was made.
    pub dispatches_per_second: f64,
}

/// One look at everything.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Sample {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// The machine's devices: GPUs, then the processor.
    pub devices: Vec<Device>,
    /// Engines by process.
    pub engines: Vec<Engine>,
    /// The sources that could not be read, and why.
    pub remarks: Vec<String>,
}

/// The sources of figures.
#[derive(Debug, Clone)]
pub struct Sources {
    /// NVML's library; by default `CANTUS_NVML_LIBRARY`, else the system's.
    pub nvml: Option<PathBuf>,
    /// The root of sysfs: `/sys`.
    pub sysfs: PathBuf,
    /// The folder in which engines publish.
    pub published: PathBuf,
    /// True if Vulkan is asked.
    pub vulkan: bool,
}

impl Default for Sources {
    fn default() -> Self {
        let nvml = std::env::var_os("CANTUS_NVML_LIBRARY").filter(|path| !path.is_empty()).map(PathBuf::from);
        Self { nvml, sysfs: "/sys".into(), published: publish_folder(), vulkan: true }
    }
}

/// Looks at devices and engines again and again.
#[derive(Debug)]
pub struct Monitor {
    sources: Sources,
    #[cfg(feature = "nvml")]
    nvml: Result<nvml::Library, String>,
    #[cfg(feature = "vulkan")]
    vulkan: Option<Result<vulkan::Instance, String>>,
    sysfs: sysfs::Tree,
    cpu: cpu::Cpu,
    /// The last look's engines.
    last: Vec<Engine>,
}

impl Monitor {
    /// Opens what there is; a library that is missing is a remark in each sample.
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        Self {
            #[cfg(feature = "nvml")]
            nvml: nvml::Library::open(sources.nvml.as_deref()),
            #[cfg(feature = "vulkan")]
            vulkan: sources.vulkan.then(vulkan::Instance::open),
            sysfs: sysfs::Tree::new(sources.sysfs.clone()),
            cpu: cpu::Cpu::new(sources.sysfs.clone()),
            last: Vec::new(),
            sources,
        }
    }

    /// Looks. What is a rate (the processor's utilisation, Intel's power, dispatches) is over the time since the last look, which should be a
    /// fifth of a second or more.
    pub fn sample(&mut self) -> Sample {
        let now = Instant::now();
        let mut remarks = Vec::new();
        let mut devices = Vec::new();
        #[cfg(feature = "nvml")]
        match &self.nvml {
            Ok(library) => match library.devices() {
                Ok(found) => devices.extend(found),
                Err(reason) => remarks.push(format!("NVIDIA: {reason}")),
            },
            Err(reason) => remarks.push(format!("NVIDIA: {reason}")),
        }
        #[cfg(not(feature = "nvml"))]
        remarks.push("NVIDIA: this build does not ask NVML".to_owned());
        for device in self.sysfs.devices(now) {
            if device.pci.is_none() || !devices.iter().any(|known: &Device| known.pci == device.pci) {
                devices.push(device);
            }
        }
        #[cfg(feature = "vulkan")]
        match &self.vulkan {
            Some(Ok(instance)) => instance.add_to(&mut devices),
            Some(Err(reason)) => remarks.push(format!("Vulkan: {reason}")),
            None => {}
        }
        devices.push(self.cpu.look(now));
        let figures = published_in(&self.sources.published);
        let engines: Vec<Engine> = figures.into_iter().map(|figures| self.engine(figures)).collect();
        self.last.clone_from(&engines);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Sample { time_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX), devices, engines, remarks }
    }

    fn engine(&self, figures: Figures) -> Engine {
        let same = |last: &&Engine| {
            let last = &last.figures;
            (last.process, last.engine) == (figures.process, figures.engine) && last.age <= figures.age
        };
        let last = self.last.iter().find(same);
        let (since, before) = last.map_or((0.0, 0), |last| (last.figures.age, last.figures.dispatches));
        let (seconds, count) = (figures.age - since, figures.dispatches.saturating_sub(before));
        let dispatches_per_second = match last {
            // Two looks between two writes see the same figures.
            Some(last) if seconds < 1e-3 => last.dispatches_per_second,
            _ => count as f64 / seconds.max(1e-3),
        };
        Engine { figures, dispatches_per_second }
    }
}
