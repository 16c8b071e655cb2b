//! Operations on tensors that need the WGSL front end: each is one call of the library's own.

use cantus::ops::Lazy;
use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::engine::{RawEngine, tensor_promise};
use crate::tensor::RawTensor;

fn evaluated(lazy: Lazy) -> Promise {
    tensor_promise(async move { lazy.eval_async().await })
}

#[wasm_bindgen]
impl RawEngine {
    /// The matrix product.
    pub fn matmul(&self, a: &RawTensor, b: &RawTensor) -> Promise {
        evaluated(a.0.lazy().matmul(&b.0))
    }

    /// Softmax along an axis.
    pub fn softmax(&self, a: &RawTensor, axis: i32) -> Promise {
        evaluated(a.0.lazy().softmax(axis as isize))
    }

    /// The sum of all elements, a tensor of one.
    pub fn sum(&self, a: &RawTensor) -> Promise {
        evaluated(a.0.lazy().sum(&[], false))
    }

    /// The sums from the first element on, along an axis.
    pub fn cumsum(&self, a: &RawTensor, axis: i32) -> Promise {
        evaluated(a.0.lazy().cumsum(axis as isize))
    }
}
