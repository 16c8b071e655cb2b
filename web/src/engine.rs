//! The engine: opening, creating tensors, and the field operations.

#[cfg(feature = "webgpu")]
use std::sync::Arc;
use std::time::Duration;

use cantus::ops::{
    self,
    field::{FieldParams, Frequency},
};
use cantus::{Engine, Tensor};
use js_sys::Promise;
use wasm_bindgen::prelude::*;

#[cfg(feature = "webgpu")]
use crate::device::Watched;
use crate::error::thrown;
use crate::promise::promise;
use crate::tensor::{RawTensor, dtype};

/// The longest time that a kernel may run on the CPU without progress: it blocks the page's thread.
const STALL_LIMIT: Duration = Duration::from_secs(10);

/// An opened engine.
#[wasm_bindgen]
pub struct RawEngine {
    pub(crate) engine: Engine,
    #[cfg(feature = "webgpu")]
    webgpu: Arc<Watched>,
}

/// A promise of a tensor.
pub(crate) fn tensor_promise(future: impl Future<Output = cantus::Result<Tensor>> + 'static) -> Promise {
    promise(async move {
        match future.await {
            Ok(tensor) => Ok(RawTensor(tensor).into()),
            Err(error) => Err(thrown(&error)),
        }
    })
}

#[wasm_bindgen]
impl RawEngine {
    /// Opens the engine; `backend` is "wgpu", "cpu", or `undefined` for the best device.
    pub fn open(backend: Option<String>, low_power: bool) -> Promise {
        promise(async move {
            let mut builder = Engine::builder().low_power(low_power).stall_limit(STALL_LIMIT);
            #[cfg(feature = "webgpu")]
            let webgpu = Arc::new(Watched::default());
            #[cfg(feature = "webgpu")]
            {
                builder = builder.with_backend(webgpu.clone());
            }
            if let Some(backend) = backend {
                builder = builder.backend(&backend);
            }
            match builder.build_async().await {
                Ok(engine) => Ok(Self {
                    engine,
                    #[cfg(feature = "webgpu")]
                    webgpu,
                }
                .into()),
                Err(error) => Err(thrown(&error)),
            }
        })
    }

    /// The backend of the device: "wgpu" or "cpu".
    #[wasm_bindgen(getter)]
    pub fn backend(&self) -> String {
        self.engine.selected().device.backend.clone()
    }

    /// The device's name.
    #[wasm_bindgen(getter)]
    pub fn device(&self) -> String {
        self.engine.selected().device.name.clone()
    }

    /// The device's kind: "discrete gpu", "software gpu", "cpu" and so on.
    #[wasm_bindgen(getter)]
    pub fn kind(&self) -> String {
        self.engine.selected().device.kind.name().to_owned()
    }

    /// Returns whether the backend has not run on such hardware yet.
    #[wasm_bindgen(getter, js_name = isExperimental)]
    pub fn is_experimental(&self) -> bool {
        self.engine.selected().device.is_experimental()
    }

    /// Returns the reason for the choice of the device.
    #[wasm_bindgen(getter)]
    pub fn why(&self) -> String {
        self.engine.selected().why.clone()
    }

    /// Returns the events so far, a line each: what was opened, skipped, placed, moved or failed.
    #[wasm_bindgen(getter)]
    pub fn events(&self) -> Vec<String> {
        self.engine.events().iter().map(ToString::to_string).collect()
    }

    /// Bytes in use on the device.
    #[wasm_bindgen(getter, js_name = memoryInUse)]
    pub fn memory_in_use(&self) -> f64 {
        self.engine.memory().in_use as f64
    }

    /// The browser's `GPUDevice`, or `undefined` on the CPU.
    #[wasm_bindgen(getter, js_name = gpuDevice)]
    pub fn gpu_device(&self) -> Option<JsValue> {
        #[cfg(feature = "webgpu")]
        if self.engine.selected().device.backend == "wgpu" {
            return self.webgpu.gpu_device();
        }
        None
    }

    /// A tensor of the bytes of a typed array.
    pub fn tensor(&self, bytes: Vec<u8>, shape: Vec<usize>, dtype_name: &str) -> Result<Promise, JsValue> {
        let (engine, dtype) = (self.engine.clone(), dtype(dtype_name)?);
        Ok(tensor_promise(async move { engine.tensor_from_bytes_async(dtype, &shape, &bytes).await }))
    }

    /// A tensor of zeros.
    pub fn zeros(&self, shape: Vec<usize>, dtype_name: &str) -> Result<Promise, JsValue> {
        let (engine, dtype) = (self.engine.clone(), dtype(dtype_name)?);
        Ok(tensor_promise(async move { engine.zeros_of_async(dtype, &shape).await }))
    }

    /// A damped spiral wave, `[height, width]`.
    pub fn field(&self, width: usize, height: usize, hertz: f64, time: f64) -> Promise {
        let engine = self.engine.clone();
        let params = FieldParams::new(width, height).frequency(Frequency::Hertz(hertz)).time(time);
        tensor_promise(async move { ops::field::field_async(&engine, &params).await })
    }

    /// The golden-ratio spiral, `[height, width]`.
    #[wasm_bindgen(js_name = phiPattern)]
    pub fn phi_pattern(&self, width: usize, height: usize) -> Promise {
        let engine = self.engine.clone();
        tensor_promise(async move { ops::field::phi_pattern_async(&engine, width, height).await })
    }

    /// The coherence of a field, a number from 0 to 1.
    pub fn coherence(&self, field: &RawTensor) -> Promise {
        let (engine, field) = (self.engine.clone(), field.0.clone());
        promise(async move {
            match ops::coherence_async(&engine, &field).await {
                Ok(coherence) => Ok(coherence.into()),
                Err(error) => Err(thrown(&error)),
            }
        })
    }

    /// Submits what was recorded.
    pub fn flush(&self) {
        self.engine.flush();
    }

    /// Resolves when all work so far has finished.
    pub fn finish(&self) -> Promise {
        let engine = self.engine.clone();
        promise(async move {
            engine.finish_async().await.map_err(|error| thrown(&error))?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// The names of the frequencies and their values in Hz, in turn.
    #[wasm_bindgen(js_name = frequencies)]
    pub fn frequencies() -> Vec<JsValue> {
        Frequency::names().flat_map(|(name, hertz)| [JsValue::from(name), JsValue::from(hertz)]).collect()
    }
}
