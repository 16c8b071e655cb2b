//! Kernels of single blocks: what they share.

use std::hash::Hash;
use std::sync::Arc;

use crate::backend::BoxFuture;
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{MOST_TENSORS, Writer};
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::frame::Frame;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// A kernel over matrices, given as functions of batch, row and column.
pub(super) struct MatrixKernel {
    pub(super) name: &'static str,
    pub(super) frame: String,
    pub(super) words: Vec<u32>,
    pub(super) inputs: Vec<(&'static str, Arc<Typed>)>,
    pub(super) workgroups: [usize; 3],
}

impl Operation for MatrixKernel {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        self.inputs.iter().map(|(_, typed)| typed).listed()
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.name, &self.frame, &self.words, self.workgroups).hash(digest);
        self.inputs.iter().for_each(|(name, _)| name.hash(digest));
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let mut writer = Writer::new(&self.words);
            for (name, typed) in &self.inputs {
                let typed = call.narrowed(typed, MOST_TENSORS / self.inputs.len()).await?;
                let rank = typed.shape.len();
                let groups = [("batch", 0..rank - 2), ("row", rank - 2..rank - 1), ("column", rank - 1..rank)];
                writer.function(name, &typed, &typed.shape, &groups, None)?;
            }
            let output = call.output(&writer, DType::F32, self.name).await?;
            let body = format!("\n{}", self.frame);
            let workgroups = self.workgroups;
            Composed { name: self.name, writer: &writer, output: "f32", body: &body, workgroups, flops: 0, rounds: 0 }
                .run(call.engine, &output)
                .await?;
            call.followed(output).await
        })
    }
}

impl MatrixKernel {
    /// Its result over the first input's matrices: an axis of `length` elements for each.
    pub(super) fn deferred(self, engine_of: &Expr, length: usize) -> Expr {
        engine_of.derived(|_| {
            let mut shape = self.inputs.first().map_or_else(Vec::new, |(_, typed)| typed.shape.clone());
            shape.truncate(shape.len().saturating_sub(2));
            shape.push(length);
            Ok(Typed::deferred(self, shape, DType::F32))
        })
    }
}

/// Elements `from..` of the last axis as matrices of these sides.
pub(super) fn unpacked(packed: &Expr, from: usize, [rows, columns]: [usize; 2]) -> Expr {
    let result = packed.shape().map(|shape| {
        let batch = &shape[..shape.len().saturating_sub(1)];
        let mut ranges: Vec<_> = batch.iter().map(|&side| 0..side).listed();
        ranges.push(from..from + rows * columns);
        packed.slice(&ranges).reshape(&[batch, &[rows, columns]].concat())
    });
    packed.of(result)
}

/// A frame with as many invocations as its matrices need.
pub(super) fn lanes_for(frame: &Frame<1>, elements: usize) -> String {
    frame.filled([(elements <= 512).then_some("64u")])
}
