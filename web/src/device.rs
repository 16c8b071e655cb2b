//! The WebGPU backend, remembering the device it opened: an app that draws from tensors needs it.

use std::sync::{Arc, Mutex, PoisonError};

use cantus::backend::wgpu::{WgpuBackend, raw_device};
use cantus::backend::{Backend, BoxFuture, Device, OpenOptions, Probe};
use wasm_bindgen::JsValue;

/// The backend `wgpu`, watched.
#[derive(Default)]
pub(crate) struct Watched {
    inner: WgpuBackend,
    opened: Mutex<Option<Arc<dyn Device>>>,
}

impl Watched {
    /// The browser's own `GPUDevice` behind what was opened last.
    pub(crate) fn gpu_device(&self) -> Option<JsValue> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let (device, _) = raw_device(&**opened.as_ref()?)?;
        Some(device.as_webgpu()?.clone().into())
    }
}

impl Backend for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn priority(&self) -> i32 {
        self.inner.priority()
    }

    fn may_exceed(&self, priority: i32) -> bool {
        self.inner.may_exceed(priority)
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        self.inner.probe()
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, cantus::Result<Arc<dyn Device>>> {
        Box::pin(async move {
            let device = self.inner.open(index, options).await?;
            *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(device.clone());
            Ok(device)
        })
    }
}
