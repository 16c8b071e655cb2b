//! Native reductions of the CPU. A chain of float32 or of words is reduced as it is computed; a view of any other dtype is widened as it is loaded.

use std::sync::Arc;

use crate::backend::native::{Combination, CopyShape, FoldShape, NativeOperation};
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::ops::expr::chain;
use crate::ops::expr::emit;
use crate::ops::expr::evaluate::compute;
use crate::ops::expr::node::{Node, Typed};
use crate::ops::expr::shape::contiguous;
use crate::tensor::{DType, Kind};

/// Elements that are computed before they are reduced: no more than are read, or than these.
const FEW: usize = 1 << 18;

/// Reduces the axes from `from` on natively; `None` if the device cannot. `shape` is the result's.
pub(super) async fn folded(
    engine: &Engine,
    input: &Arc<Typed>,
    from: usize,
    by: Combination,
    shape: &[usize],
) -> Result<Option<Tensor>> {
    if !engine.is_processors() || input.shape.contains(&0) {
        return Ok(None);
    }
    let source = widening(input, by);
    // Bytes are added up as they are.
    let is_packed = source.dtype.is_packed() && source.is_plain();
    if by != Combination::Product
        && !is_packed
        && let Some(found) = chain::reduced(engine, input, from, by, shape).await?
    {
        return Ok(Some(found));
    }
    let to = input.dtype.computed();
    let operation = |view: CopyShape, dtype: DType| NativeOperation::Fold(FoldShape::new(view, from, [dtype, to], by));
    for source in [source, input] {
        let contiguous = CopyShape::new(&source.shape, &contiguous(&source.shape), 0);
        if !engine.has_native(&operation(contiguous.clone(), source.dtype)) {
            continue;
        }
        if let Node::Read(view) = &source.node
            && let Some(tensor) = view.source.tensor().filter(|tensor| tensor.dtype() == source.dtype)
        {
            let view = CopyShape::new(&source.shape, &view.strides, view.offset);
            return engine.native_async(operation(view, source.dtype), &[&tensor], (to, shape), "reduce").await;
        }
        if source.count() <= read(source).max(FEW) {
            let elements = compute(engine, source).await?;
            return engine.native_async(operation(contiguous, source.dtype), &[&elements], (to, shape), "reduce").await;
        }
    }
    Ok(None)
}

/// The elements that an expression reads.
fn read(typed: &Arc<Typed>) -> usize {
    let mut tensors = Vec::new();
    emit::tensors(typed, &mut tensors);
    tensors.iter().map(Tensor::len).sum()
}

/// Returns the operand of a lossless cast under a sum: its elements are converted as they are loaded.
fn widening(input: &Arc<Typed>, by: Combination) -> &Arc<Typed> {
    let Node::Cast(source) = &input.node else { return input };
    let (from, to) = (source.dtype, input.dtype);
    let widens = match (from.kind(), to.kind()) {
        _ if source.shape != input.shape => false,
        (Kind::Complex, _) | (_, Kind::Complex | Kind::Bool) => false,
        (Kind::Float, Kind::Float) => from.bytes() >= 4 && from.bytes() <= to.bytes(),
        (Kind::Float, _) => false,
        // A float represents all integers of at most half its bits.
        (_, Kind::Float) => by == Combination::Sum && 2 * from.bytes() <= to.bytes() && to.bytes() >= 4,
        _ => from.bytes() <= to.bytes(),
    };
    if widens && matches!(by, Combination::Sum | Combination::Product) { source } else { input }
}
