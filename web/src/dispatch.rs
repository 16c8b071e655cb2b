//! One dispatch, gathered piece by piece from JavaScript's object and run as the engine's own builder does.

use cantus::engine::{Engine, Value};
use cantus::{Kernel, Tensor};
use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::engine::RawEngine;
use crate::error::{invalid, thrown};
use crate::kernel::RawKernel;
use crate::promise::promise;
use crate::tensor::RawTensor;

#[derive(Clone, Copy)]
enum Amount {
    Invocations([u64; 3]),
    Workgroups([u64; 3]),
}

/// A dispatch being gathered.
#[wasm_bindgen]
pub struct RawDispatch {
    engine: Engine,
    kernel: Kernel,
    bindings: Vec<(String, Tensor)>,
    uniforms: Vec<(String, Vec<f64>)>,
    amount: Option<Amount>,
}

#[wasm_bindgen]
impl RawEngine {
    /// Begins a dispatch.
    pub fn dispatch(&self, kernel: &RawKernel) -> RawDispatch {
        RawDispatch {
            engine: self.engine.clone(),
            kernel: kernel.0.clone(),
            bindings: Vec::new(),
            uniforms: Vec::new(),
            amount: None,
        }
    }
}

#[wasm_bindgen]
impl RawDispatch {
    /// Binds a tensor by the binding's name.
    pub fn bind(&mut self, name: String, tensor: &RawTensor) {
        self.bindings.push((name, tensor.0.clone()));
    }

    /// Sets a uniform binding or a member of one.
    pub fn set(&mut self, path: String, values: Vec<f64>) {
        self.uniforms.push((path, values));
    }

    /// The least number of invocations.
    pub fn invocations(&mut self, x: f64, y: f64, z: f64) -> Result<(), JsValue> {
        self.amount = Some(Amount::Invocations(extent([x, y, z])?));
        Ok(())
    }

    /// The number of workgroups.
    pub fn workgroups(&mut self, x: f64, y: f64, z: f64) -> Result<(), JsValue> {
        self.amount = Some(Amount::Workgroups(extent([x, y, z])?));
        Ok(())
    }

    /// Checks and records it.
    pub fn run(&self) -> Promise {
        let (engine, kernel, amount) = (self.engine.clone(), self.kernel.clone(), self.amount);
        let (bindings, uniforms) = (self.bindings.clone(), self.uniforms.clone());
        promise(async move {
            let mut dispatch = engine.dispatch(&kernel);
            for (name, tensor) in &bindings {
                dispatch = dispatch.bind(name, tensor);
            }
            for (path, values) in &uniforms {
                dispatch = dispatch.set(path, Value::from(values.as_slice()));
            }
            dispatch = match amount {
                Some(Amount::Invocations(count)) => dispatch.invocations(count),
                Some(Amount::Workgroups(count)) => dispatch.workgroups(count),
                None => dispatch,
            };
            dispatch.run_async().await.map_err(|error| thrown(&error))?;
            Ok(JsValue::UNDEFINED)
        })
    }
}

fn extent(numbers: [f64; 3]) -> Result<[u64; 3], JsValue> {
    if numbers.iter().all(|number| number.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(number)) {
        return Ok(numbers.map(|number| number as u64));
    }
    Err(invalid(&format!("the extent {numbers:?}"), "it takes whole numbers from 0"))
}
