//! The instance: the root of wgpu-hal's objects, with one adapter. Its surfaces exist, and can do nothing: wgpu-hal's `InstanceError`, which would refuse
//! them, cannot be made outside of it.

use std::sync::Arc;
use std::time::Duration;

use raw_window_handle::{RawDisplayHandle, RawWindowHandle};
use wgpu_hal::{self as hal, InstanceError, SurfaceError};
use wgpu_types as wgt;

use crate::unused::SurfaceTexture;
use crate::{Adapter, Api, Device, Fence, Options, options};

/// The instance.
#[derive(Debug, Clone)]
pub struct Instance {
    backend: wgt::Backend,
    options: Result<Arc<Options>, String>,
}

/// A surface that shows nothing. No adapter is compatible with it.
#[derive(Debug)]
pub struct Surface;

impl Instance {
    /// Creates the instance, with the options that the environment names ([`Options::from_env`]). Where these are wrong it has no adapter, and says why.
    #[must_use]
    pub fn new() -> Self {
        Self::answering(wgt::Backend::Noop)
    }

    /// Creates the instance with options.
    #[must_use]
    pub fn with(options: Options) -> Self {
        Self { backend: wgt::Backend::Noop, options: Ok(Arc::new(options)) }
    }

    /// Creates an instance whose adapter says that it is of another backend, for a wgpu-core that is patched to ask it in place of that one: some programs
    /// ask for the backends that they know, and for no other.
    #[must_use]
    pub fn answering(backend: wgt::Backend) -> Self {
        Self { backend, options: Options::from_env().map(Arc::new) }
    }
}

impl Default for Instance {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns whether the environment asks a patched wgpu-core for this device in place of its own: `CANTUS_WGPU=1`.
#[must_use]
pub fn is_asked_for() -> bool {
    std::env::var_os("CANTUS_WGPU").is_some_and(|value| value == "1")
}

impl hal::Instance for Instance {
    type A = Api;

    unsafe fn init(_desc: &hal::InstanceDescriptor<'_>) -> Result<Self, InstanceError> {
        Ok(Self::new())
    }

    unsafe fn create_surface(&self, _: RawDisplayHandle, _: RawWindowHandle) -> Result<Surface, InstanceError> {
        Ok(Surface)
    }

    unsafe fn enumerate_adapters(&self, _surface_hint: Option<&Surface>) -> Vec<hal::ExposedAdapter<Api>> {
        match &self.options {
            Ok(options) => vec![Adapter::exposed(self.backend, options.clone())],
            Err(reason) => {
                options::report(&format!("there is no adapter: {reason}"));
                Vec::new()
            }
        }
    }
}

const NOTHING_SHOWN: &str = "the CPU device of Cantus shows nothing in windows";

impl hal::Surface for Surface {
    type A = Api;

    unsafe fn configure(&self, _device: &Device, _config: &hal::SurfaceConfiguration) -> Result<(), SurfaceError> {
        Err(SurfaceError::Other(NOTHING_SHOWN))
    }

    unsafe fn unconfigure(&self, _device: &Device) {}

    unsafe fn acquire_texture(
        &self,
        _timeout: Option<Duration>,
        _fence: &Fence,
    ) -> Result<hal::AcquiredSurfaceTexture<Api>, SurfaceError> {
        Err(SurfaceError::Other(NOTHING_SHOWN))
    }

    unsafe fn discard_texture(&self, texture: SurfaceTexture) {
        match texture {}
    }
}
