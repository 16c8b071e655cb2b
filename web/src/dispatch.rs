//! One dispatch, gathered piece by piece from JavaScript's object and run as the engine's own builder does.

use cantus::engine::{Engine, Value};
use cantus::{Kernel, Sampler, Tensor, Texture};
use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::engine::RawEngine;
use crate::error::{invalid, thrown};
use crate::kernel::RawKernel;
use crate::promise::promise;
use crate::tensor::RawTensor;
use crate::texture::{RawTexture, sampler};

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
    textures: Vec<(String, Texture)>,
    samplers: Vec<(String, Sampler)>,
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
            textures: Vec::new(),
            samplers: Vec::new(),
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

    /// Binds a texture by the binding's name.
    #[wasm_bindgen(js_name = bindTexture)]
    pub fn bind_texture(&mut self, name: String, texture: &RawTexture) {
        self.textures.push((name, texture.0.clone()));
    }

    /// Binds a sampler by the binding's name: address modes of u, v and w; filters of magnification, minification and levels; the least and the
    /// greatest level of detail; the comparison.
    #[wasm_bindgen(js_name = bindSampler)]
    pub fn bind_sampler(
        &mut self,
        name: String,
        address: Vec<String>,
        filters: Vec<String>,
        least: f32,
        most: f32,
        compare: Option<String>,
    ) -> Result<(), JsValue> {
        self.samplers.push((name, sampler(&address, &filters, [least, most], compare.as_deref())?));
        Ok(())
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

    /// Checks and records it. Samplers without a value are linear and clamp to the edge.
    pub fn run(&self) -> Promise {
        let (engine, kernel, amount) = (self.engine.clone(), self.kernel.clone(), self.amount);
        let (bindings, uniforms) = (self.bindings.clone(), self.uniforms.clone());
        let (textures, mut samplers) = (self.textures.clone(), self.samplers.clone());
        promise(async move {
            let reflection = kernel.reflection().map_err(|error| thrown(&error))?;
            for binding in &reflection.samplers {
                if !samplers.iter().any(|(name, _)| *name == binding.name) {
                    samplers.push((binding.name.clone(), binding.usual()));
                }
            }
            let mut dispatch = engine.dispatch(&kernel);
            for (name, tensor) in &bindings {
                dispatch = dispatch.bind(name, tensor);
            }
            for (name, texture) in &textures {
                dispatch = dispatch.bind(name, texture);
            }
            for (name, sampler) in &samplers {
                dispatch = dispatch.bind(name, sampler);
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
