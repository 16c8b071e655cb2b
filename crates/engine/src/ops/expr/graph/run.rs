//! Runs expressions as graphs, on devices that take graphs and no kernels.

use std::sync::Arc;

use super::{Graph, Lowering};
use crate::backend::BoxFuture;
use crate::backend::native::NativeOperation;
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::ops::expr::deferred::Deferred;
use crate::ops::expr::node::{Expr, Source, Typed};
use cantus_base::listed::Listed;

/// Operations that are computed on their own before the rest is a graph, at most.
const MOST: usize = 256;

/// Computes an expression as one graph where its operands are on a device that takes graphs; `None` where they are not, or where it is none.
pub(in crate::ops) fn computed<'a>(engine: &'a Engine, typed: &'a Arc<Typed>) -> BoxFuture<'a, Result<Option<Tensor>>> {
    Box::pin(async move {
        if !engine.takes_graphs() || typed.shape.contains(&0) {
            return Ok(None);
        }
        for _ in 0..MOST {
            match Lowering::new("expression").lowered(typed) {
                Ok((graph, tensors)) => {
                    let inputs: Vec<&Tensor> = tensors.iter().listed();
                    let operation = NativeOperation::Graph(graph.shared());
                    return engine.native_async(operation, &inputs, (typed.dtype, &typed.shape), "graph").await;
                }
                Err((_, Some(missing))) if !is_of(typed, &missing) => {
                    missing.compute(engine).await?;
                }
                Err((refused, _)) => {
                    tracing::debug!("no operation graph: {refused}");
                    return Ok(None);
                }
            }
        }
        Ok(None)
    })
}

/// Computes an operation as a graph of its own; see [`computed`].
pub(in crate::ops) async fn operation(engine: &Engine, deferred: &Arc<Deferred>) -> Result<Option<Tensor>> {
    if !engine.takes_graphs() {
        return Ok(None);
    }
    let typed = Typed::of(Source::Deferred(deferred.clone()), &deferred.shape, deferred.dtype);
    computed(engine, &typed).await
}

/// Returns whether the expression is that operation's result, and nothing else.
fn is_of(typed: &Arc<Typed>, deferred: &Arc<Deferred>) -> bool {
    match &typed.node {
        crate::ops::expr::node::Node::Read(view) => {
            matches!(&view.source, Source::Deferred(of) if Arc::ptr_eq(of, deferred))
        }
        _ => false,
    }
}

impl Expr {
    /// Returns the expression as an operation graph, and the graph's arguments: the tensors that it reads, in order. The graph has one result, that
    /// of [`Expr::eval`]. Nothing runs.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let (graph, inputs) = x.softmax(1).graph()?;
    /// assert_eq!(inputs.len(), 1);
    /// assert!(graph.stablehlo().contains("stablehlo.exponential"));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first mistake in the recorded expressions; [`Error::Unsupported`] for operations that graphs cannot express.
    pub fn graph(&self) -> Result<(Graph, Vec<Tensor>)> {
        let typed = self.state.as_ref().map_err(Clone::clone)?;
        Lowering::new("expression").lowered(typed).map_err(|(refused, _)| Error::Unsupported {
            kernel: "expression".to_owned(),
            device: "operation graphs".to_owned(),
            construct: refused.to_string(),
            report: String::new(),
        })
    }
}
