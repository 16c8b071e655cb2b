//! The native operation for `sort`, where only values are wanted: the processor sorts rows without their places. Other devices gather the values
//! at the places that sorting finds.

use std::hash::Hash;
use std::sync::Arc;

use super::gather::along_rows;
use super::sort::sort_words;
use crate::backend::BoxFuture;
use crate::backend::native::{NativeOperation, OrderShape};
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::expr::evaluate::compute;
use crate::ops::expr::node::Typed;
use crate::ops::expr::operation::{Call, Operation};
use crate::ops::expr::replay::KeyWords;
use crate::ops::expr::shape::product;
use crate::ops::host;

/// The rows along the last axis of what has an order, sorted.
pub(super) struct Order {
    pub(super) input: Arc<Typed>,
    pub(super) descending: bool,
}

impl Order {
    /// The values at the places that sorting finds.
    fn by_places(&self) -> Result<Arc<Typed>> {
        let places = if host::is_wide(self.input.dtype) {
            host::argsort(&self.input, self.descending)
        } else {
            let [_, places] = sort_words(&self.input, self.input.shape.last().copied().unwrap_or(1), self.descending);
            places
        };
        along_rows(&self.input, places)
    }
}

impl Operation for Order {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, words: &mut KeyWords) -> bool {
        self.descending.hash(words);
        true
    }

    fn with_places(&self) -> Option<Arc<Typed>> {
        self.by_places().ok()
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let (input, shape) = (&self.input, &self.input.shape);
            let length = shape.last().copied().unwrap_or(1);
            let rows = product(shape) / length.max(1);
            let operation = NativeOperation::Order(OrderShape::new([rows, length], input.dtype, self.descending));
            if call.engine.has_native(&operation) {
                let rows = compute(call.engine, input).await?;
                let like = (input.dtype, &shape[..]);
                if let Some(sorted) = call.engine.native_async(operation, &[&rows], like, "sort").await? {
                    return call.followed(sorted).await;
                }
            }
            call.followed(compute(call.engine, &self.by_places()?).await?).await
        })
    }
}
