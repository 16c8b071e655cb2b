//! Operation graphs: what devices run that take operations and no kernels (PJRT, Ascend). An expression is one by [`ToGraph::graph`]; a
//! graph is StableHLO text by [`Graph::stablehlo`], and [`Graph::simulate`] computes it on the processor.
//!
//! What a target would leave open is explicit in a graph: the divisor of an integer division is never 0, a shift is less than the width, a
//! float becomes an integer only within its range. Products and convolutions are of float32 in its full precision.

#[doc(inline)]
pub use cantus_graph::*;

use crate::ops::Expr;
use crate::{Result, Tensor};

/// Expressions as operation graphs.
pub trait ToGraph {
    /// Returns the expression as an operation graph, and the graph's arguments: the tensors that it reads, in order. The graph has one result, that
    /// of [`Expr::eval`]. Nothing runs.
    ///
    /// ```
    /// use cantus::graph::ToGraph as _;
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let (graph, inputs) = x.softmax(1).graph()?;
    /// assert_eq!(inputs.len(), 1);
    /// assert!(graph.stablehlo().contains("stablehlo.exponential"));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first mistake in the recorded expressions; [`Error::Unsupported`](crate::Error::Unsupported) for operations that graphs cannot express.
    fn graph(&self) -> Result<(Graph, Vec<Tensor>)>;
}

impl ToGraph for Expr {
    fn graph(&self) -> Result<(Graph, Vec<Tensor>)> {
        let (expression, tensors) = self.described()?;
        Ok((Graph::of("expression", &expression)?, tensors))
    }
}
