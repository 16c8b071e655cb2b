//! The field family's pictures: a damped spiral wave, and the golden-ratio spiral.

#[doc(inline)]
pub use cantus_field::field::*;

#[cfg(feature = "graph")]
use crate::Result;
#[cfg(feature = "graph")]
use crate::graph::Graph;

/// Returns [`field_async`] as an operation graph without arguments.
///
/// ```
/// use cantus::ops::field::{FieldParams, field_graph};
/// let graph = field_graph(&FieldParams::new(53, 37))?;
/// assert_eq!(graph.shape(graph.outputs()[0]), [37, 53]);
/// # Ok::<_, cantus::Error>(())
/// ```
///
/// # Errors
/// As [`field_async`].
#[cfg(feature = "graph")]
pub fn field_graph(params: &FieldParams) -> Result<Graph> {
    Graph::of("field", &field_described(params)?)
}

/// Returns [`phi_pattern_async`] as an operation graph without arguments.
///
/// # Errors
/// As [`phi_pattern_async`].
#[cfg(feature = "graph")]
pub fn phi_pattern_graph(width: usize, height: usize) -> Result<Graph> {
    Graph::of("phi_pattern", &phi_pattern_described(width, height)?)
}
