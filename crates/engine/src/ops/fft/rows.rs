//! The native operation for Fourier transforms along the last axis, which the processor computes by `rustfft`, several rows at once. Devices without
//! it, and lengths that it does not take, use kernels (`complex_transformed`).

use std::hash::Hash;
use std::sync::Arc;

use crate::backend::BoxFuture;
use crate::backend::native::{FftShape, NativeOperation};
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::expr::operation::{Call, Operation};
use crate::ops::expr::shape::product;
use crate::tensor::DType;

/// The transforms of rows of complex64 or complex128 along the last axis.
pub(super) struct Rows {
    pub(super) input: Arc<Typed>,
    pub(super) inverse: bool,
}

impl Operation for Rows {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.inverse.hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let (engine, dtype) = (call.engine, self.input.dtype);
            let length = self.input.shape.last().copied().unwrap_or(1);
            let (rows, wide) = (product(&self.input.shape) / length.max(1), dtype == DType::Complex128);
            let operation = NativeOperation::Fft(FftShape { rows, length, inverse: self.inverse, wide });
            if engine.has_native(&operation) {
                let input = call.compute(&self.input).await?;
                let like = (dtype, &*self.input.shape);
                if let Some(found) = engine.native_async(operation, &[&input], like, "fft").await? {
                    return call.followed(found).await;
                }
            }
            let input = Expr { engine: engine.clone(), state: Ok(self.input.clone()) };
            let found = input.complex_transformed(self.input.shape.len() - 1, self.inverse)?;
            call.followed(found.eval_async().await?).await
        })
    }
}
