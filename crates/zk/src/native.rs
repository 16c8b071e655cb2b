//! Operations on the processor in place of kernels.

use crate::algebra::Operation;
use crate::backend::native::{Function, NativeOperation, Threads};
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::host::DType;
use cantus_base::listed::Listed;

/// Runs an operation on tensors of words where the processor does; `shape` is the result's. `None` where a kernel is to run.
pub(super) async fn native(
    engine: &Engine,
    operation: Operation,
    inputs: &[&Tensor],
    shape: &[usize],
    name: &str,
) -> Result<Option<Tensor>> {
    let bytes = |sizes: Vec<usize>| sizes.into_iter().map(|words| words.checked_mul(size_of::<u32>())).collect();
    let Some(sizes) = operation.sizes().and_then(bytes) else { return Ok(None) };
    // Its tasks are spread by threads of this library.
    let function = Function::new(operation, sizes, |operation, inputs, result, stop| {
        let unaligned = |error| format!("a binding's memory: {error}");
        let words = inputs.iter().map(|&bytes| bytemuck::try_cast_slice(bytes).map_err(unaligned));
        let (inputs, result) = (words.try_listed()?, bytemuck::try_cast_slice_mut(result).map_err(unaligned)?);
        operation.run(&inputs, result, stop)
    });
    let operation = NativeOperation::Function(function.on(Threads::Any));
    engine.native_async(operation, inputs, (DType::U32, shape), name).await
}
