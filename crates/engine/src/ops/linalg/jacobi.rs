//! Jacobi's method in rounds, each a dispatch: of symmetric matrices from both sides, of others from one.

use std::hash::Hash;
use std::sync::Arc;

use crate::backend::BoxFuture;
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::node::{Source, Typed};
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::product;
use crate::tensor::DType;

const PAIRS: &str = cantus_shaders::tensor::PAIRS;
const BOTH: &str = cantus_shaders::tensor::EIGH_JACOBI;
const ONE: &str = cantus_shaders::tensor::SVD_JACOBI;

/// Rounds in which all pairs of rows meet, as often as any matrix of that many rows needs: they converge quadratically in the end.
fn sweeps(rows: usize) -> usize {
    6 + rows.next_power_of_two().ilog2() as usize
}

/// The matrices (…, 2, n, n), n even: a symmetric one and the identity. They become the eigenvalues on a diagonal, and their vectors as columns.
pub(super) struct BothSides(pub(super) Arc<Typed>);

impl Operation for BothSides {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.0]
    }

    fn parameters(&self, _digest: &mut Digest) -> bool {
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let shape = &self.0.shape;
            let n = shape[shape.len() - 1];
            let batches = product(&shape[..shape.len() - 3]);
            let all = product(shape);
            word(all)?;
            let mut from = call.compute(&self.0).await?;
            let mut spare: Option<Tensor> = None;
            let body = format!("\n{PAIRS}{BOTH}");
            let workgroups = [product(&[batches, n / 2, n / 2]).div_ceil(64), 1, 1];
            for round in (0..sweeps(n)).flat_map(|_| 0..n - 1) {
                let mut writer = Writer::new(&[word(n)?, word(round)?, word(batches)?, 0]);
                let flat = Typed::of(Source::Tensor(from.clone()), &[all], DType::F32);
                writer.function("element", &flat, &flat.shape, &[("i", 0..1)], None)?;
                // The inputs may have other readers, so they are not overwritten.
                let to = match spare.take() {
                    Some(spare) => spare,
                    None => call.engine.output_async(Some(&from), DType::F32, shape, "eigh").await?,
                };
                Composed {
                    name: "eigh_jacobi",
                    writer: &writer,
                    output: "f32",
                    body: &body,
                    workgroups,
                    flops: 0,
                    rounds: 0,
                }
                .run(call.engine, &to)
                .await?;
                let read = std::mem::replace(&mut from, to);
                if round > 0 {
                    spare = Some(read);
                }
            }
            call.followed(from).await
        })
    }
}

/// Rows (…, n, length), n even: of a matrix of `columns` columns, of the identity, and one element more. They become rows at right angles, the
/// rotations that made them, and the greatest cosine that was left.
pub(super) struct OneSide {
    pub(super) rows: Arc<Typed>,
    pub(super) columns: usize,
}

impl Operation for OneSide {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.rows]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.columns.hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let shape = &self.rows.shape;
            let rank = shape.len();
            let (n, length) = (shape[rank - 2], shape[rank - 1]);
            word(product(shape))?;
            // A tensor of its own, which the rounds change in place.
            let fresh = Typed::new(crate::ops::expr::node::Node::Cast(self.rows.clone()), shape.clone(), DType::F32);
            let rows = call.compute(&fresh).await?;
            let body = format!("\n{PAIRS}{ONE}");
            let workgroups = [n / 2, product(&shape[..rank - 2]), 1];
            let count = sweeps(n);
            for (sweep, round) in (0..count).flat_map(|sweep| (0..n - 1).map(move |round| (sweep, round))) {
                let last = u32::from(sweep + 1 == count);
                let writer = Writer::new(&[word(n)?, word(self.columns)?, word(length)?, word(round)?, last]);
                Composed {
                    name: "svd_jacobi",
                    writer: &writer,
                    output: "f32",
                    body: &body,
                    workgroups,
                    flops: 0,
                    rounds: 0,
                }
                .run(call.engine, &rows)
                .await?;
            }
            call.followed(rows).await
        })
    }
}
