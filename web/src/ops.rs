//! Operations on tensors that need the WGSL front end: each is one call of the library's own.

use cantus::ops::Expr;
use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::engine::{RawEngine, tensor_promise};
use crate::tensor::RawTensor;

fn evaluated(expr: Expr) -> Promise {
    tensor_promise(async move { expr.eval_async().await })
}

#[wasm_bindgen]
impl RawEngine {
    /// The matrix product.
    pub fn matmul(&self, a: &RawTensor, b: &RawTensor) -> Promise {
        evaluated(a.0.expr().matmul(&b.0))
    }

    /// Softmax along an axis.
    pub fn softmax(&self, a: &RawTensor, axis: i32) -> Promise {
        evaluated(a.0.expr().softmax(axis as isize))
    }

    /// The sum of all elements, a tensor of one.
    pub fn sum(&self, a: &RawTensor) -> Promise {
        evaluated(a.0.expr().sum(&[], false))
    }

    /// The sums from the first element on, along an axis.
    pub fn cumsum(&self, a: &RawTensor, axis: i32) -> Promise {
        evaluated(a.0.expr().cumsum(axis as isize))
    }
}
