//! The backends that an engine considers.

use std::sync::Arc;

use super::Backend;

/// A list of backends. A third party adds its own without a change to Cantus.
#[derive(Clone, Default)]
pub struct Registry {
    backends: Vec<Arc<dyn Backend>>,
}

impl Registry {
    /// Creates a registry without backends.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a registry of the backends built into this library.
    #[must_use]
    pub fn with_defaults() -> Self {
        #[allow(unused_mut, reason = "without the features there is nothing to add")]
        let mut registry = Self::empty();
        #[cfg(all(feature = "pjrt", not(target_arch = "wasm32")))]
        registry.register(Arc::new(super::pjrt::PjrtBackend::new()));
        #[cfg(all(feature = "hip", not(target_arch = "wasm32")))]
        registry.register(Arc::new(super::hip::HipBackend::new()));
        #[cfg(all(feature = "ascend", not(target_arch = "wasm32")))]
        registry.register(Arc::new(super::ascend::AscendBackend::new()));
        #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
        registry.register(Arc::new(super::cuda::CudaBackend::new()));
        #[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
        registry.register(Arc::new(super::vulkan::VulkanBackend::new()));
        #[cfg(feature = "wgpu")]
        registry.register(Arc::new(super::wgpu::WgpuBackend::new()));
        #[cfg(all(feature = "opencl", not(target_arch = "wasm32")))]
        registry.register(Arc::new(super::opencl::OpenClBackend::new()));
        #[cfg(feature = "cpu")]
        registry.register(Arc::new(super::cpu::CpuBackend::new()));
        registry
    }

    /// Adds a backend; one of the same name is replaced.
    pub fn register(&mut self, backend: Arc<dyn Backend>) {
        self.backends.retain(|known| known.name() != backend.name());
        self.backends.push(backend);
    }

    /// The backends, in the order of registration.
    #[must_use]
    pub fn backends(&self) -> &[Arc<dyn Backend>] {
        &self.backends
    }

    /// The backend of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Backend>> {
        self.backends.iter().find(|backend| backend.name() == name)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.backends.iter().map(|backend| backend.name())).finish()
    }
}
