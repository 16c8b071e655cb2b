//! The Vulkan backend: naga's SPIR-V on raw Vulkan 1.1 and later, loaded at run time.
//!
//! Real GPUs rank at 60, software drivers (llvmpipe, SwiftShader) at 10. A device's parts: `memory` with `arena` (blocks, buffers),
//! `buffer` and `transfer` (tensors, writes, reads), `program` with `sets` and `cache` (SPIR-V, pipelines), `encode`, `queue`, `ring`
//! and `recording` (batches), `timeline` (how an end is known). All of them are made of what `shared`
//! holds; `device` puts the trait over them.
//!
//! `CANTUS_VALIDATION=1` switches the validation layers on, where they are installed; what they say comes out of
//! [`take_validation_messages`]. `CANTUS_VULKAN_FENCES=1` does without timeline semaphores, as on drivers that have none.
//! `CANTUS_VULKAN_DISCRETE=1` and `CANTUS_VULKAN_DELAY=MICROSECONDS` treat a device as one with memory of its own, and as a slow one
//! ([`Emulation`]).
//!
//! llvmpipe silently ends the loops of an invocation after 65,535 rounds in all: results of kernels that loop longer are wrong there.

mod adapter;
mod arena;
mod buffer;
mod cache;
mod checks;
mod device;
mod emulation;
mod encode;
mod errors;
mod features;
mod instance;
mod matrices;
mod memory;
mod objects;
mod program;
mod queue;
mod recording;
mod ring;
mod sets;
mod shared;
#[cfg(test)]
mod tests;
mod timeline;
mod timestamps;
mod transfer;
mod uniforms;

use std::sync::{Arc, Mutex, PoisonError};

use self::adapter::{Adapter, NAME};
#[cfg(feature = "_test")]
#[doc(hidden)]
pub use self::cache::test as cache_file;
use self::device::VulkanDevice;
pub use self::emulation::Emulation;
use self::instance::Instance;
pub use self::instance::take_validation_messages;
use crate::backend::{Backend, BoxFuture, Device, OpenOptions, Probe, devices_text, ready};
use crate::error::{Error, Result};

/// Finds and opens Vulkan devices.
///
/// The first probe loads the library and the drivers; what it finds is kept until the backend is dropped.
pub struct VulkanBackend {
    validation: bool,
    fences: bool,
    emulation: Emulation,
    found: Mutex<Option<Arc<Found>>>,
}

/// The result of a probe, and the instance it belongs to.
struct Found {
    /// Absent when Vulkan cannot be loaded.
    instance: Option<Arc<Instance>>,
    adapters: Vec<Adapter>,
    reason: Option<String>,
}

impl Default for VulkanBackend {
    fn default() -> Self {
        Self::new()
    }
}

cantus_base::opaque_debug!(VulkanBackend);

impl VulkanBackend {
    /// The backend as the environment wishes it. Nothing is loaded before the first probe.
    #[must_use]
    pub fn new() -> Self {
        let on = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
        Self {
            validation: on("CANTUS_VALIDATION"),
            fences: on("CANTUS_VULKAN_FENCES"),
            emulation: Emulation::of_environment(),
            found: Mutex::default(),
        }
    }

    /// Switches the validation layers on or off.
    #[must_use]
    pub fn validation(mut self, on: bool) -> Self {
        self.validation = on;
        self
    }

    /// Waits by fences, as on drivers without timeline semaphores.
    #[must_use]
    pub fn fences(mut self, on: bool) -> Self {
        self.fences = on;
        self
    }

    /// Brings about the circumstances of other machines, for tests. Call it before the first probe.
    #[must_use]
    pub fn emulate(mut self, emulation: Emulation) -> Self {
        self.emulation = emulation;
        self
    }

    /// True when the validation layers are on: asked for, and installed.
    #[must_use]
    pub fn is_validated(&self) -> bool {
        self.found().instance.as_ref().is_some_and(|instance| instance.validated)
    }

    fn found(&self) -> Arc<Found> {
        let mut known = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return known.clone();
        }
        let found = Arc::new(Found::look(self.validation, &self.emulation));
        // An empty result is not kept: a driver may be installed meanwhile.
        if !found.adapters.is_empty() {
            *known = Some(found.clone());
        }
        found
    }

    fn open_adapter(&self, index: usize, options: &OpenOptions) -> Result<Arc<dyn Device>> {
        let found = self.found();
        let (Some(adapter), Some(instance)) = (found.adapters.get(index), &found.instance) else {
            let count = found.adapters.len();
            let reason = found.reason.clone();
            let reason = reason.filter(|_| count == 0);
            let reason = reason.unwrap_or_else(|| devices_text(count));
            return Err(Error::NoDevice {
                wanted: format!("{NAME} device {index}"),
                reasons: vec![(NAME.to_owned(), reason)],
            });
        };
        let device = VulkanDevice::open(instance, adapter, options, (self.fences, &self.emulation))?;
        tracing::debug!(device = %adapter.info.name, "opened");
        Ok(Arc::new(device))
    }
}

impl Found {
    fn look(validation: bool, emulation: &Emulation) -> Self {
        let instance = match Instance::new(validation) {
            Ok(instance) => instance,
            Err(reason) => return Self { instance: None, adapters: Vec::new(), reason: Some(reason) },
        };
        let (mut adapters, mut reasons) = adapter::list(&instance);
        if emulation.discrete {
            adapters.iter_mut().for_each(Adapter::treat_as_discrete);
        }
        if let Some(bytes) = emulation.binding {
            adapters.iter_mut().for_each(|adapter| adapter.bind_at_most(bytes));
        }
        if adapters.is_empty() {
            reasons.push(format!("no Vulkan driver was found that can compute ({})", instance::REMEDY));
        }
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        Self { instance: Some(Arc::new(instance)), adapters, reason }
    }
}

impl Backend for VulkanBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        adapter::GPU
    }

    fn may_exceed(&self, priority: i32) -> bool {
        priority < adapter::SOFTWARE || (priority < adapter::GPU && super::nodes::may_have_gpu())
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        let found = self.found();
        let devices = found.adapters.iter().map(|adapter| adapter.info.clone()).collect();
        ready(Probe { devices, reason: found.reason.clone() })
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        ready(self.open_adapter(index, options))
    }
}
