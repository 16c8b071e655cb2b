//! Ranking: which device an engine takes, and which one comes next when a device fails.
//!
//! # What comes in
//! The registered backends and the choices of `Config` (a backend, a device's index, `low_power`); later a failure, with the devices that were tried.
//!
//! # Stages
//! 1. **Probe** (`choose`), from the lowest priority up. A backend that cannot beat the best device found so far (`Backend::may_exceed`: the machine shows
//!    no sign of a GPU) is not probed until it is needed, because probing Vulkan and GL takes a tenth of a second.
//! 2. **Order** (`rank`). Priorities belong to devices: one backend may have GPUs at 50 and software adapters at 10. With `low_power`, discrete GPUs rank
//!    at 30, which is after other GPUs except GL and before the CPU.
//! 3. **Open** the first one that opens. The others stay as `Candidate`s, probed or not. Without any, `Error::NoDevice` has the reason of each.
//! 4. **Fall back** (`next_after`). The best device that was not tried is opened and the failure noted (`EventKind::FellBack`). Unprobed backends are
//!    probed first, since their devices may be better than any known one.
//!
//! # What holds
//! - A candidate stays in the list until it is open or refused, so cancelling a call never loses a fallback, and concurrent calls get the same slot.
//! - After `OutOfMemory` no other API to the same silicon is tried: `DeviceInfo::identity` (UUID, PCI address, LUID) tells that CUDA and Vulkan reach the
//!   same card.
//! - A device that was asked for by name is never replaced while opening. Later it is, unless `Fallback::Never`.
//!
//! # What is surprising
//! - Equal ranks keep the order of registration, because the sort is stable.
//! - The index of `Config::device` counts the devices of the best backend that was found, not those of all.
//!
//! # An example
//! A machine without a GPU, with Mesa's drivers installed. `cpu` is probed first and gives a device of priority 20. Vulkan and wgpu see no device node of a
//! GPU and so could find nothing but software, which ranks below the CPU: both stay unprobed, and the CPU is opened at once. If it refuses a kernel later,
//! `next_after` probes them and opens llvmpipe.

use crate::backend::BoxFuture;
use std::sync::{Arc, PoisonError};

use super::event::EventKind;
use super::{Shared, Slot};
use crate::backend::{Backend, Device, DeviceInfo, DeviceKind, Identity, OpenOptions, Registry, devices_text};
use crate::config::{Config, Fallback};
use crate::error::{Error, Result};
use cantus_base::listed::{Listed, Ordered};

/// The device an engine works on, and why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Selection {
    /// The device.
    pub device: DeviceInfo,
    /// The reason for the choice, in words.
    pub why: String,
}

/// Everything `cantus devices` shows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Survey {
    /// Every registered backend, best first.
    pub backends: Vec<BackendSurvey>,
    /// The device that an engine would take now; `None` with the reason in `refusal`.
    pub selected: Option<Selection>,
    /// The error, if no device is available.
    pub refusal: Option<Error>,
}

/// One backend as probed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BackendSurvey {
    /// Its name.
    pub name: String,
    /// The priority of its best device, or of its best kind of device if it found no device.
    pub priority: i32,
    /// True if it has a device.
    pub available: bool,
    /// The reason why it has no device, or a remark.
    pub reason: Option<String>,
    /// The devices of the backend.
    pub devices: Vec<DeviceInfo>,
}

/// A device that can be tried.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "a machine has a handful of them")]
pub(crate) enum Candidate {
    /// Found by a probe.
    Device(Arc<dyn Backend>, DeviceInfo),
    /// A backend that was not probed, because another one was asked for.
    Unprobed(Arc<dyn Backend>),
}

/// Probes every backend and says which device an engine would take.
///
/// ```
/// use cantus::{Config, backend::Registry, engine::survey};
///
/// let survey = survey(&Registry::with_defaults(), &Config::default());
/// for backend in &survey.backends {
///     println!("{}: {} devices", backend.name, backend.devices.len());
/// }
/// # Ok::<_, cantus::Error>(())
/// ```
///
/// # Errors
/// None: what is not available is in the survey, with its reason.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn survey(registry: &Registry, config: &Config) -> Survey {
    crate::engine::blocking::block_on(survey_async(registry, config))
}

/// Probes every backend and says which device an engine would take.
pub fn survey_async<'a>(registry: &'a Registry, config: &'a Config) -> BoxFuture<'a, Survey> {
    Box::pin(async move {
        let mut backends = Vec::new();
        for backend in registry.backends() {
            let probe = backend.probe().await;
            backends.push(BackendSurvey {
                name: backend.name().to_owned(),
                priority: probe
                    .devices
                    .iter()
                    .map(|device| device.priority)
                    .max()
                    .unwrap_or_else(|| backend.priority()),
                available: !probe.devices.is_empty(),
                reason: probe.reason,
                devices: probe.devices,
            });
        }
        backends.order_by_key(|backend| std::cmp::Reverse(backend.priority));
        let options = open_options(config);
        match choose(registry, config, &options).await {
            Ok(choice) => {
                let device = choice.device.info().clone();
                // Some memory is known only once the device is open.
                let known = backends.iter_mut().flat_map(|backend| &mut backend.devices);
                for known in known.filter(|known| known.backend == device.backend && known.index == device.index) {
                    known.memory_bytes = known.memory_bytes.or(device.memory_bytes);
                }
                Survey { backends, selected: Some(Selection { device, why: choice.why }), refusal: None }
            }
            Err(error) => Survey { backends, selected: None, refusal: Some(error) },
        }
    })
}

pub(super) fn open_options(config: &Config) -> OpenOptions {
    OpenOptions {
        memory_limit: config.memory_limit,
        timeout: config.timeout(),
        stall_limit: config.stall_limit(),
        check_stores: config.check_stores.unwrap_or(false),
        profile: config.profile.unwrap_or(false) || config.trace.is_some(),
        low_power: config.low_power.unwrap_or(false),
        without_native: !config.native.unwrap_or(true),
        cache_folder: None,
    }
}

pub(super) struct Choice {
    pub(super) device: Arc<dyn Device>,
    pub(super) why: String,
    pub(super) rest: Vec<Candidate>,
    pub(super) skipped: Vec<(String, String)>,
}

/// Ranks and opens: the best device that opens, or the one that was asked for.
pub(super) async fn choose(registry: &Registry, config: &Config, options: &OpenOptions) -> Result<Choice> {
    let mut skipped = Vec::new();
    let mut unprobed = Vec::new();
    let mut found: Vec<(Arc<dyn Backend>, DeviceInfo)> = Vec::new();
    if let Some(name) = &config.backend
        && registry.get(name).is_none()
    {
        let known: Vec<&str> = registry.backends().iter().map(|backend| backend.name()).listed();
        let reason = format!("there is no such backend (there are: {})", known.join(", "));
        return Err(Error::NoDevice { wanted: wanted(config), reasons: vec![(name.clone(), reason)] });
    }
    // From the lowest priority up, so that a backend that cannot have a better device is not probed. Probing for GPUs takes longer than a small field.
    let mut backends = registry.backends().to_vec();
    backends.order_by_key(|backend| backend.priority());
    for backend in &backends {
        let best = found.iter().map(|(_, device)| rank(device, options)).max();
        let of_use = match &config.backend {
            Some(name) => name == backend.name(),
            None => config.device.is_some() || best.is_none_or(|best| backend.may_exceed(best)),
        };
        if !of_use {
            unprobed.push(Candidate::Unprobed(backend.clone()));
            continue;
        }
        let probe = backend.probe().await;
        if probe.devices.is_empty() {
            skipped.push((backend.name().to_owned(), probe.reason.unwrap_or_else(|| "it has no device".to_owned())));
        }
        found.extend(probe.devices.into_iter().map(|device| (backend.clone(), device)));
    }
    // Stable: equal ranks keep the order of registration and index.
    found.order_by_key(|(_, device)| std::cmp::Reverse((rank(device, options), device.priority)));
    let saved = options.low_power
        && found.first().is_some_and(|(_, best)| found.iter().any(|(_, device)| device.priority > best.priority));
    if let (Some(index), Some((best, _))) = (config.device, found.first().cloned()) {
        let of_best =
            |(backend, device): &(Arc<dyn Backend>, DeviceInfo)| backend.name() == best.name() && device.index == index;
        let Some(place) = found.iter().position(of_best) else {
            let count = found.iter().filter(|(backend, _)| backend.name() == best.name()).count();
            let reason = devices_text(count);
            return Err(Error::NoDevice { wanted: wanted(config), reasons: vec![(best.name().to_owned(), reason)] });
        };
        let chosen = found.remove(place);
        unprobed.splice(0..0, found.drain(..).map(|(backend, device)| Candidate::Device(backend, device)));
        found.push(chosen);
    }
    let total = found.len();
    let mut rest = found.into_iter();
    while let Some((backend, device)) = rest.next() {
        match backend.open(device.index, options).await {
            Ok(opened) => {
                let spared = unprobed.iter().filter(|candidate| matches!(candidate, Candidate::Unprobed(_))).count();
                let why = why(config, &device, total, (skipped.len(), spared), saved);
                // Unprobed ones first: see `next_best`.
                let rest = unprobed.into_iter().chain(rest.map(|(backend, device)| Candidate::Device(backend, device)));
                let rest = rest.listed();
                return Ok(Choice { device: opened, why, rest, skipped });
            }
            Err(error) => skipped.push((device.name.clone(), error.to_string())),
        }
    }
    Err(Error::NoDevice { wanted: wanted(config), reasons: skipped })
}

fn wanted(config: &Config) -> String {
    match (&config.backend, config.device) {
        (Some(backend), Some(device)) => format!("the backend {backend}, device {device}"),
        (Some(backend), None) => format!("the backend {backend}"),
        (None, Some(device)) => format!("device {device}"),
        (None, None) => "any backend".to_owned(),
    }
}

/// Lower than a GPU's priority anywhere but on GL, and higher than the CPU's.
const DISCRETE_AT_LOW_POWER: i32 = 30;

/// The order in which devices are taken: by priority, and with `low_power` GPUs with memory of their own after the others.
fn rank(device: &DeviceInfo, options: &OpenOptions) -> i32 {
    match device.kind {
        DeviceKind::DiscreteGpu if options.low_power => device.priority.min(DISCRETE_AT_LOW_POWER),
        _ => device.priority,
    }
}

fn why(config: &Config, device: &DeviceInfo, found: usize, (skipped, spared): (usize, usize), saved: bool) -> String {
    if config.backend.is_some() || config.device.is_some() {
        return "asked for by name or index".to_owned();
    }
    let passed = if skipped == 0 { String::new() } else { format!("; {skipped} passed over") };
    let noun = if found == 1 { "device" } else { "devices" };
    let spared =
        if spared == 0 { String::new() } else { format!("; {spared} not opened: no better device is expected there") };
    let rule = if saved { "low power: highest priority except discrete GPUs" } else { "highest priority" };
    format!("{rule} ({}) of {found} {noun}{passed}{spared}", device.priority)
}

impl Shared {
    /// The device to try after those that failed: the best that is left, opened if needed.
    ///
    /// # Errors
    /// The original error when fallback is off, the fault is not the device's, or nothing is left.
    pub(crate) async fn next_after(&self, tried: &[Arc<Slot>], error: &Error, what: &str) -> Result<Arc<Slot>> {
        if self.fallback == Fallback::Never || !error.is_device_fault() {
            return Err(error.clone());
        }
        // If the silicon has no memory left, another API to it has none either.
        let full: Vec<Identity> = match error {
            Error::OutOfMemory { .. } => tried.iter().map(|slot| slot.device().info().identity.clone()).listed(),
            _ => Vec::new(),
        };
        let Some(next) = self.next_best(tried, &full).await else { return Err(error.clone()) };
        let failed = tried.last().map_or("", |slot| slot.name());
        // The first line suffices: the failure was reported with its places before.
        let reason = error.to_string();
        let reason = reason.lines().next().unwrap_or_default();
        let message = format!("{what} goes from {failed} to {}: {reason}", next.name());
        self.events.push(EventKind::FellBack, next.name(), &message);
        Ok(next)
    }

    /// Returns the best device that was not tried and whose silicon is not in `full`.
    async fn next_best(&self, tried: &[Arc<Slot>], full: &[Identity]) -> Option<Arc<Slot>> {
        let has_room = |info: &DeviceInfo| !full.iter().any(|silicon| silicon.is_same(&info.identity));
        loop {
            let fresh = |slot: &&Arc<Slot>| {
                let untried = !tried.iter().any(|known| Arc::ptr_eq(known, slot));
                untried && slot.failure().is_none() && has_room(slot.device().info())
            };
            let opened = self.open_slots();
            let order = |info: &DeviceInfo| (rank(info, &self.options), info.priority);
            let best_opened = opened.iter().filter(fresh).max_by_key(|slot| order(slot.device().info()));
            // It stays among the candidates until it is open or refused: a call that is dropped on the way, or another that looks
            // at the same time, must still find it.
            let candidate = {
                let candidates = self.candidates.lock().unwrap_or_else(PoisonError::into_inner);
                let of_use = |candidate: &&Candidate| match candidate {
                    Candidate::Device(_, info) => has_room(info),
                    Candidate::Unprobed(_) => true,
                };
                match (candidates.iter().find(of_use), best_opened) {
                    (None, _) => None,
                    (Some(Candidate::Device(_, info)), Some(slot)) if order(info) <= order(slot.device().info()) => {
                        None
                    }
                    // The remaining backends are probed before any of their devices can be compared.
                    (Some(best), _) => Some(best.clone()),
                }
            };
            match candidate {
                None => return best_opened.cloned(),
                Some(Candidate::Unprobed(backend)) => self.probe_late(&backend).await,
                Some(Candidate::Device(backend, info)) => {
                    if let Some(slot) = self.open_candidate(&backend, &info).await
                        && fresh(&&slot)
                    {
                        return Some(slot);
                    }
                }
            }
        }
    }

    /// Opens a device beside the selected one, and removes it from the candidates. Concurrent calls all get the device that opened first.
    pub(super) async fn open_candidate(&self, backend: &Arc<dyn Backend>, info: &DeviceInfo) -> Option<Arc<Slot>> {
        let opened = backend.open(info.index, &self.options).await;
        let slot = self.keep_opened(info, opened)?;
        #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
        self.ask_beside(&slot);
        Some(slot)
    }

    fn keep_opened(&self, info: &DeviceInfo, opened: Result<Arc<dyn Device>>) -> Option<Arc<Slot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut candidates = self.candidates.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &DeviceInfo| known.backend == info.backend && known.index == info.index;
        let place =
            candidates.iter().position(|candidate| matches!(candidate, Candidate::Device(_, known) if is_it(known)));
        let Some(place) = place else {
            return slots.iter().find(|slot| is_it(slot.device().info())).cloned();
        };
        candidates.remove(place);
        match opened {
            Ok(device) => {
                let slot = Arc::new(Slot::new(device, &self.options));
                self.events.push(EventKind::Opened, slot.name(), "opened beside the selected device");
                slots.push(slot.clone());
                Some(slot)
            }
            Err(error) => {
                self.events.push(EventKind::Skipped, &info.name, &error.to_string());
                None
            }
        }
    }

    /// The device of that name: a backend's name, with an index or without, or a device's whole name. Opened if needed.
    ///
    /// # Errors
    /// [`Error::NoDevice`] with the available devices, or with the reason for which it does not open.
    pub(super) async fn find(&self, name: &str) -> Result<Arc<Slot>> {
        let is_it = |info: &DeviceInfo| {
            let backend = info.backend.as_str();
            let indexed = name.split_once(':').and_then(|(of, index)| Some((of, index.parse::<usize>().ok()?)));
            name == backend || name == info.name || indexed == Some((backend, info.index))
        };
        loop {
            let opened = self.open_slots();
            if let Some(slot) = opened.iter().find(|slot| slot.failure().is_none() && is_it(slot.device().info())) {
                return Ok(slot.clone());
            }
            let candidates = self.candidates.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let of_use = |candidate: &&Candidate| match candidate {
                Candidate::Device(_, info) => is_it(info),
                // A whole name of a device may be of any backend.
                Candidate::Unprobed(backend) => name.split(':').next() == Some(backend.name()),
            };
            let unprobed = |candidate: &&Candidate| matches!(candidate, Candidate::Unprobed(_));
            let is_backend = candidates.iter().any(|candidate| of_use(&candidate))
                || opened.iter().any(|slot| slot.device().info().backend == name);
            let next = candidates.iter().find(of_use).or(candidates.iter().filter(|_| !is_backend).find(unprobed));
            match next.cloned() {
                Some(Candidate::Unprobed(backend)) => self.probe_late(&backend).await,
                Some(Candidate::Device(backend, info)) => {
                    if let Some(slot) = self.open_candidate(&backend, &info).await {
                        return Ok(slot);
                    }
                }
                None => {
                    let lost = |slot: &Arc<Slot>| slot.failure().map_or("open".to_owned(), |error| error.to_string());
                    let known = opened.iter().map(|slot| (slot.name().to_string(), lost(slot)));
                    return Err(Error::NoDevice { wanted: name.to_owned(), reasons: known.listed() });
                }
            }
        }
    }

    async fn probe_late(&self, backend: &Arc<dyn Backend>) {
        let probe = backend.probe().await;
        let mut candidates = self.candidates.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |candidate: &Candidate| matches!(candidate, Candidate::Unprobed(known) if Arc::ptr_eq(known, backend));
        // Another call may have probed it meanwhile.
        let Some(place) = candidates.iter().position(is_it) else { return };
        candidates.remove(place);
        if probe.devices.is_empty() {
            let reason = probe.reason.unwrap_or_else(|| "it has no device".to_owned());
            self.events.push(EventKind::Skipped, backend.name(), &reason);
        }
        candidates.extend(probe.devices.into_iter().map(|device| Candidate::Device(backend.clone(), device)));
        candidates.order_by_key(|candidate| match candidate {
            Candidate::Unprobed(_) => (0, std::cmp::Reverse((0, 0))),
            Candidate::Device(_, info) => (1, std::cmp::Reverse((rank(info, &self.options), info.priority))),
        });
    }
}
