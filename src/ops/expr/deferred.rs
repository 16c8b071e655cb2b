//! Operations that are recorded and take a kernel of their own: what they need, and their result once it is computed.

use std::sync::{Arc, Mutex, PoisonError};

use super::assemble::Assemble;
use super::conv::{Conv, Pool};
use super::emit::Writer;
use super::evaluate::{compute, kernel, narrowed, resolve};
use super::matmul::Matmul;
use super::node::Typed;
use super::reduce::Reduce;
use super::rows::Rows;
use super::scan::Scan;
use crate::backend::BoxFuture;
use crate::engine::{Engine, Extent, Tensor};
use crate::error::Result;
use crate::tensor::DType;

/// An operation whose result expressions read.
pub(super) struct Deferred {
    pub(super) operation: Operation,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
    result: Mutex<Option<Tensor>>,
}

/// What it does.
pub(super) enum Operation {
    /// An expression computed on its own: what follows reads its elements in another order.
    Compute(Arc<Typed>),
    Reduce(Reduce),
    Rows(Rows),
    Scan(Scan),
    Matmul(Matmul),
    Conv(Conv),
    Pool(Pool),
    Assemble(Assemble),
}

/// What follows an operation in its own kernel: an expression of the operation's shape that reads its result.
pub(super) struct Epilogue<'a> {
    pub(super) typed: &'a Arc<Typed>,
    pub(super) of: &'a Arc<Deferred>,
}

impl Deferred {
    pub(super) fn new(operation: Operation, shape: Vec<usize>, dtype: DType) -> Arc<Self> {
        Arc::new(Self { operation, shape, dtype, result: Mutex::new(None) })
    }

    pub(super) fn result(&self) -> Option<Tensor> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether an epilogue can be part of its kernel, and how much that saves: the larger the better.
    pub(super) fn fusable(&self) -> u32 {
        match self.operation {
            Operation::Compute(_) | Operation::Scan(_) | Operation::Assemble(_) => 0,
            Operation::Reduce(_) => 1,
            Operation::Rows(_) => 2,
            Operation::Pool(_) => 3,
            Operation::Matmul(_) | Operation::Conv(_) => 4,
        }
    }

    /// The expressions that it reads.
    pub(super) fn inputs(&self) -> Vec<&Arc<Typed>> {
        match &self.operation {
            Operation::Compute(typed) => vec![typed],
            Operation::Reduce(reduce) => vec![&reduce.input],
            Operation::Rows(rows) => vec![&rows.input],
            Operation::Scan(scan) => vec![&scan.input],
            Operation::Matmul(matmul) => vec![&matmul.a, &matmul.b],
            Operation::Conv(conv) => vec![&conv.input, &conv.weight],
            Operation::Pool(pool) => vec![&pool.input],
            Operation::Assemble(assemble) => assemble.parts.iter().map(|(part, _)| part).collect(),
        }
    }

    /// Computes it once and keeps the result.
    pub(super) fn compute<'a>(self: &'a Arc<Self>, engine: &'a Engine) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            if let Some(tensor) = self.result() {
                return Ok(tensor);
            }
            let tensor = self.run(engine, None).await?;
            Ok(self.result.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(tensor).clone())
        })
    }

    /// Computes it, with what follows.
    pub(super) async fn run(self: &Arc<Self>, engine: &Engine, epilogue: Option<&Epilogue<'_>>) -> Result<Tensor> {
        for input in self.inputs() {
            resolve(engine, input, None).await?;
        }
        match &self.operation {
            Operation::Compute(typed) => compute(engine, typed).await,
            Operation::Reduce(reduce) => reduce.run(engine, self, epilogue).await,
            Operation::Rows(rows) => rows.run(engine, self, epilogue).await,
            Operation::Scan(scan) => scan.run(engine, self).await,
            Operation::Matmul(matmul) => matmul.run(engine, self, epilogue).await,
            Operation::Conv(conv) => conv.run(engine, self, epilogue).await,
            Operation::Pool(pool) => pool.run(engine, self, epilogue).await,
            Operation::Assemble(assemble) => assemble.run(engine, self).await,
        }
    }
}

/// An operation's input with few enough tensors that `others` more fit beside it.
pub(super) async fn slim(engine: &Engine, typed: &Arc<Typed>, others: usize) -> Result<Arc<Typed>> {
    narrowed(engine, typed, super::emit::MOST_TENSORS.saturating_sub(others).max(1)).await
}

/// One kernel to run: a body for what a writer wrote.
pub(super) struct Launch<'a> {
    pub(super) name: &'a str,
    pub(super) writer: &'a Writer,
    /// The WGSL type of the output's elements.
    pub(super) output: &'a str,
    pub(super) body: &'a str,
    pub(super) workgroups: [usize; 3],
    /// Floating-point operations, for profiles; 0 where counting them says little.
    pub(super) flops: usize,
}

impl Launch<'_> {
    /// Runs it into `y`.
    pub(super) async fn run(&self, engine: &Engine, y: &Tensor) -> Result<()> {
        let kernel = kernel(self.name, &self.writer.text(self.output, self.body))?;
        let bytes = self.writer.bytes();
        let mut dispatch = engine.dispatch(&kernel).flops(self.flops as u64).set_bytes("words", &bytes).bind("y", y);
        for (name, tensor) in super::emit::NAMES.iter().zip(self.writer.tensors()) {
            dispatch = dispatch.bind(name, tensor);
        }
        dispatch.workgroups(Extent::from(self.workgroups)).run_async().await
    }
}
