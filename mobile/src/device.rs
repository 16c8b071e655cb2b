//! Devices as plain data: what there is, what an engine takes, and why.

use crate::error::Result;
use crate::options::EngineOptions;

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum DeviceKind {
    /// A GPU with its own memory.
    DiscreteGpu,
    /// A GPU that shares the system's memory: what phones have.
    IntegratedGpu,
    /// A GPU behind a hypervisor.
    VirtualGpu,
    /// The processor, driven by Cantus itself.
    Cpu,
    /// A driver that imitates a GPU on the processor.
    Software,
    /// Something else.
    Other,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct DeviceInfo {
    /// The backend's name.
    pub backend: String,
    /// Index within the backend.
    pub index: u32,
    /// The device's name.
    pub name: String,
    /// The kind of device.
    pub kind: DeviceKind,
    /// Driver and version.
    pub driver: String,
    /// Its memory, where the API tells.
    pub memory_bytes: Option<u64>,
    /// Rank; higher is preferred.
    pub priority: i32,
    /// Its backend has not run on such hardware yet.
    pub experimental: bool,
}

/// A device, and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Selection {
    /// The device.
    pub device: DeviceInfo,
    /// Why, in words.
    pub why: String,
}

/// One backend as probed.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct SurveyedBackend {
    /// Its name.
    pub name: String,
    /// Its devices.
    pub devices: Vec<DeviceInfo>,
    /// Why it has none, or a remark.
    pub reason: Option<String>,
}

/// The devices of the machine, and the one that an engine with the same options would take.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
pub struct Survey {
    /// Every backend, best first.
    pub backends: Vec<SurveyedBackend>,
    /// The device that an engine would take now.
    pub selected: Option<Selection>,
    /// Why no device can be had.
    pub refusal: Option<String>,
}

/// Looks for every device, and says which one an engine with these options would take, and why.
///
/// # Errors
/// `InvalidInput` when the configuration cannot be understood; what cannot be had is in the survey.
#[uniffi::export]
pub async fn devices(options: EngineOptions) -> Result<Survey> {
    let config = options.config()?;
    let registry = cantus::backend::Registry::with_defaults();
    crate::off_thread(move || Ok(cantus::engine::survey(&registry, &config).into())).await
}

impl From<cantus::engine::Survey> for Survey {
    fn from(survey: cantus::engine::Survey) -> Self {
        let backends = survey.backends.into_iter().map(|backend| SurveyedBackend {
            name: backend.name,
            devices: backend.devices.iter().map(Into::into).collect(),
            reason: backend.reason,
        });
        Self {
            backends: backends.collect(),
            selected: survey.selected.as_ref().map(Into::into),
            refusal: survey.refusal.map(|error| error.to_string()),
        }
    }
}

impl From<&cantus::engine::Selection> for Selection {
    fn from(selection: &cantus::engine::Selection) -> Self {
        Self { device: (&selection.device).into(), why: selection.why.clone() }
    }
}

impl From<&cantus::backend::DeviceInfo> for DeviceInfo {
    fn from(info: &cantus::backend::DeviceInfo) -> Self {
        use cantus::backend::DeviceKind as K;
        Self {
            backend: info.backend.clone(),
            index: u32::try_from(info.index).unwrap_or(u32::MAX),
            name: info.name.clone(),
            kind: match info.kind {
                K::DiscreteGpu => DeviceKind::DiscreteGpu,
                K::IntegratedGpu => DeviceKind::IntegratedGpu,
                K::VirtualGpu => DeviceKind::VirtualGpu,
                K::Cpu => DeviceKind::Cpu,
                K::Software => DeviceKind::Software,
                _ => DeviceKind::Other,
            },
            driver: info.driver.clone(),
            memory_bytes: info.memory_bytes,
            priority: info.priority,
            experimental: info.is_experimental(),
        }
    }
}
