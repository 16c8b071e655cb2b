//! The operation for `sort`, where only values are wanted. The processor sorts rows without their places. Other devices do so in the kernel for short rows,
//! and gather the values of long ones at the places that sorting finds.

use std::hash::Hash;
use std::sync::Arc;

use super::digits::{Keys, LONGEST};
use super::gather::along_rows;
use super::sort::{order_of_element, sort_bits};
use crate::backend::BoxFuture;
use crate::backend::native::{NativeOperation, OrderShape};
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::word;
use crate::ops::expr::node::Typed;
use crate::ops::expr::number::stored;
use crate::ops::expr::operation::{Call, Operation};
use crate::ops::expr::shape::product;
use crate::ops::expr::view::axis_of;
use crate::ops::host;

/// The rows along the last axis of what has an order, sorted.
pub(super) struct Order {
    pub(super) input: Arc<Typed>,
    pub(super) descending: bool,
    /// The number of bits of a key that may differ.
    pub(super) bits: u32,
}

impl Order {
    /// Returns whether a kernel sorts the values of rows along an axis.
    pub(super) fn is_one_kernel(shape: &[usize], axis: isize) -> bool {
        axis_of(axis, shape.len()).is_ok_and(|axis| shape[axis] <= LONGEST)
    }

    /// The values at the places that sorting finds.
    fn by_places(&self) -> Result<Arc<Typed>> {
        let places = if host::is_wide(self.input.dtype) {
            host::argsort(&self.input, self.descending)
        } else {
            let length = self.input.shape.last().copied().unwrap_or(1);
            let [_, places] = sort_bits(&self.input, length, self.descending, self.bits);
            places
        };
        along_rows(&self.input, places)
    }
}

impl Operation for Order {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.descending, self.bits).hash(digest);
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
                let rows = call.compute(input).await?;
                let like = (input.dtype, &shape[..]);
                if let Some(sorted) = call.engine.native_async(operation, &[&rows], like, "sort").await? {
                    return call.followed(sorted).await;
                }
            }
            if length > LONGEST || host::is_wide(input.dtype) || input.dtype.is_packed() {
                return call.followed(call.compute(&self.by_places()?).await?).await;
            }
            let input = call.slim(input).await?;
            word(input.count())?;
            let order = order_of_element(input.dtype, self.descending, self.bits)?;
            let keys = Keys { input: &input, order: &order, bits: self.bits, rows, length, keep: length };
            let writer = keys.short()?;
            let output = call.output(&writer, input.dtype, "sort").await?;
            // The key of a number is not the number: zeros, and NaNs, have one key.
            let store = "fn store(row: u32, at: u32, key: u32, place: u32) {
    y[row * words[0].w + at] = element(row, place);
}
";
            keys.sort_short(call.engine, &writer, (stored(input.dtype), store), &output).await?;
            call.followed(output).await
        })
    }
}
