//! Native operations: what a device computes by itself in place of WGSL kernels. The evaluator asks before it composes a kernel, and apps may define
//! operations of their own (`Function`). `None` is no error: the device has no form, or no memory, or another thread moved an input, and the caller
//! dispatches the kernel. Inputs must be contiguous, so views are copied first.

use crate::backend::BoxFuture;
use std::sync::Arc;

use super::Engine;
use super::relocate::relocate;
use super::slot::{Effect, Size};
use super::tensor::Tensor;
#[cfg(feature = "wgsl")]
use crate::backend::Execution;
use crate::backend::native::NativeOperation;
#[cfg(feature = "wgsl")]
use crate::backend::native::ProductShape;
use crate::backend::{Bound, Command, Dispatch, TakeoverFigures};
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
use crate::backend::{Device, SumPart};
use crate::error::{Error, Result};
#[cfg(feature = "wgsl")]
use crate::kernel::Kernel;
use crate::tensor::DType;
use cantus_base::listed::Listed;

impl super::Shared {
    /// Returns whether native kernels may run in place of the portable ones.
    fn takes_native(&self) -> bool {
        !self.reproducible && !self.options().without_native
    }
}

impl Engine {
    /// Returns whether one of the open devices runs operation graphs.
    #[cfg(feature = "graph")]
    #[doc(hidden)]
    #[must_use]
    pub fn takes_graphs(&self) -> bool {
        let shared = self.shared();
        !shared.reproducible && shared.any_slot(|slot| slot.device().info().capabilities.operation_graphs)
    }

    /// Native kernels that ran in place of portable ones since the engine was made, device by device, and those that were given up.
    ///
    /// ```
    /// let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert!(engine.takeovers().is_empty()); // the processor has operations of its own, which `Engine::metrics` lists
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn takeovers(&self) -> Vec<(Arc<str>, TakeoverFigures)> {
        let of = |slot: &Arc<super::slot::Slot>| {
            let name = slot.name().clone();
            slot.device().takeovers().into_iter().map(move |figures| (name.clone(), figures)).listed()
        };
        self.shared().open_slots().iter().flat_map(of).listed()
    }

    /// Returns whether the best device has a native form of an operation.
    pub(crate) fn has_native(&self, operation: &NativeOperation) -> bool {
        let shared = self.shared();
        shared.takes_native() && shared.primary().device().native(operation).is_some()
    }

    /// Returns whether the best device is the CPU and its native operations are enabled.
    #[cfg(feature = "wgsl")]
    pub(crate) fn is_processors(&self) -> bool {
        let shared = self.shared();
        shared.takes_native() && shared.primary().device().info().capabilities.execution == Execution::Executor
    }

    /// Returns whether the vendor's library runs a kernel that states a product, on the device where a tensor is.
    #[cfg(feature = "wgsl")]
    pub(crate) fn takes(&self, near: &Tensor, product: &ProductShape) -> bool {
        self.shared().takes_native() && near.place().slot.device().takes(product)
    }

    /// The same on the device that the engine uses first.
    #[cfg(feature = "wgsl")]
    pub(crate) fn takes_first(&self, product: &ProductShape) -> bool {
        self.shared().takes_native() && self.shared().primary().device().takes(product)
    }

    /// Returns whether a native kernel runs in place of a kernel, on the device where a tensor is. `make` makes the kernel if there may be one.
    #[cfg(feature = "wgsl")]
    pub(crate) async fn is_taken_over(
        &self,
        near: &Tensor,
        (entry, make): (&str, impl FnOnce() -> Result<Kernel>),
        words: &[u8],
        workgroups: [usize; 3],
    ) -> Result<bool> {
        let slot = near.place().slot;
        if !self.shared().takes_native() || slot.failure().is_some() || !slot.device().has_takeovers(entry) {
            return Ok(false);
        }
        let [Ok(x), Ok(y), Ok(z)] = workgroups.map(u32::try_from) else { return Ok(false) };
        // A kernel that does not compile is reported when it runs, because another device may take it.
        let program = slot.program_ahead(&make()?).await;
        Ok(program.is_ok_and(|program| program.is_taken_over(words, [x, y, z])))
    }

    /// Runs an operation on tensors by the device's native code: its vendor's library, or the CPU backend's functions. `None` if the device has none for
    /// it; then the caller dispatches a kernel. [`Function`](crate::backend::native::Function) has an example in which the app defines the operation.
    ///
    /// The device is the one where the largest input is, or the one that makes new tensors if there are no inputs; other inputs are moved there. `operation`
    /// states all sizes, and its variant says what the inputs are, in which order. They are read as contiguous and row-major. `like` is the dtype and the
    /// shape of the result; its bytes beyond those that the operation writes are unspecified. `label` names the work in metrics, profiles and errors,
    /// followed by `(native)`.
    ///
    /// The result is also `None` if the engine runs kernels only ([`Builder::native`](super::Builder::native), the reproducible mode), if the device
    /// has failed, and if it has no memory left for the result.
    ///
    /// # Errors
    /// [`Error::AnotherEngine`] for inputs of another engine, [`Error::InvalidInput`] for an operation with several results, else as
    /// [`Engine::output_async`], and those of a transfer if an input is moved. What is found wrong when the operation runs (a tensor
    /// that is smaller than its sizes state, an error of its function) is returned when the result is read.
    pub fn native_async<'a>(
        &'a self,
        operation: NativeOperation,
        inputs: &'a [&'a Tensor],
        like: (DType, &'a [usize]),
        label: &'a str,
    ) -> BoxFuture<'a, Result<Option<Tensor>>> {
        Box::pin(async move {
            Ok(self.natives(operation, inputs, &[like], label).await?.and_then(|mut results| results.pop()))
        })
    }

    /// [`Engine::native_async`] of an operation with as many results as there are dtypes and shapes.
    pub(crate) async fn natives(
        &self,
        operation: NativeOperation,
        inputs: &[&Tensor],
        likes: &[(DType, &[usize])],
        label: &str,
    ) -> Result<Option<Vec<Tensor>>> {
        if operation.results() != likes.len() {
            return Err(Error::invalid(
                format!("the native operation {label}"),
                format!("it has {} results, and {} are described", operation.results(), likes.len()),
            ));
        }
        let shared = self.shared();
        let (span, flops) = (shared.profiler.begin(), operation.flops());
        for tensor in inputs {
            self.check_own(tensor)?;
        }
        let largest = inputs.iter().max_by_key(|tensor| tensor.byte_len());
        let slot = largest.map_or_else(|| shared.primary(), |tensor| tensor.place().slot);
        if slot.failure().is_some() {
            return Ok(None);
        }
        if !shared.takes_native() {
            return Ok(None);
        }
        let Some(program) = slot.device().native(&operation) else { return Ok(None) };
        for tensor in inputs {
            relocate(shared, tensor, &slot).await?;
        }
        let mut outputs = Vec::with_capacity(likes.len());
        for &(dtype, shape) in likes {
            outputs.push(self.output_async(largest.copied(), dtype, shape, label).await?);
        }
        if shared.is_rehearsing() {
            return Ok(Some(outputs));
        }
        let still = shared.moves.hold();
        let mut effect = Effect::default();
        let mut bindings = Vec::with_capacity(inputs.len() + outputs.len());
        let mut bytes = 0;
        for (place, tensor) in inputs.iter().copied().chain(&outputs).enumerate() {
            let at = tensor.live_place()?;
            // There was no memory for the result, or another thread moved an input: the kernel runs where it can.
            let Some(buffer) = at.buffer.filter(|_| Arc::ptr_eq(&at.slot, &slot)) else { return Ok(None) };
            effect.add(at.state, place >= inputs.len());
            bytes += tensor.byte_len();
            bindings.push(Bound::Buffer { buffer, offset: 0, bytes: tensor.byte_len().next_multiple_of(4) });
            shared.note_used(tensor);
        }
        outputs.iter().for_each(|output| output.inner.tracker.note_written());
        let label: Arc<str> = format!("{label} (native)").into();
        shared.metrics.dispatch(&label, slot.name(), bytes, false);
        shared.profiler.dispatch(span, &label, &slot, bytes, flops);
        let dispatch = Dispatch { program, label, bindings, workgroups: [1; 3], cancel: Vec::new(), stated: None };
        let invocations = outputs.iter().map(|output| output.len() as u64).sum();
        let size = Size { invocations, operations: 0, bytes: outputs.iter().map(Tensor::byte_len).sum() };
        let tensors: Vec<(&Tensor, bool)> =
            inputs.iter().map(|&tensor| (tensor, false)).chain(outputs.iter().map(|output| (output, true))).listed();
        shared.trace_dispatch(&slot, &dispatch, &tensors, size, flops);
        shared.record(&slot, Command::Dispatch(dispatch), effect, size);
        drop(still);
        shared.make_room(&slot).await;
        Ok(Some(outputs))
    }
}

/// The blocking form.
#[cfg(not(target_arch = "wasm32"))]
impl Engine {
    /// [`Engine::native_async`], blocking.
    ///
    /// ```
    /// use cantus::backend::native::{NativeOperation, Number, SortShape};
    /// let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[5_u32, 7, 6])?;
    /// let shape = SortShape { rows: 1, length: 3, keep: 2, number: Number::U32, descending: true };
    /// // The keys of the two greatest elements, and their places.
    /// let sorted = engine.native(NativeOperation::Sort(shape), &[&x], (cantus::DType::U32, &[2, 2]), "greatest two")?;
    /// assert_eq!(sorted.map(|sorted| sorted.to_vec::<u32>()).transpose()?, Some(vec![!7, 1, !6, 2]));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn native(
        &self,
        operation: NativeOperation,
        inputs: &[&Tensor],
        like: (DType, &[usize]),
        label: &str,
    ) -> Result<Option<Tensor>> {
        crate::engine::blocking::block_on(self.native_async(operation, inputs, like, label))
    }
}

/// Returns the element-wise sum of float32 tensors of one shape, one of each engine, on each engine's device, by a library of the devices' vendor;
/// `None` without such a library.
///
/// # Errors
/// Those of the devices.
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
pub fn sum_over_devices<'a>(parts: &'a [Tensor]) -> BoxFuture<'a, Result<Option<Vec<Tensor>>>> {
    Box::pin(async move {
        let mut places = Vec::with_capacity(parts.len());
        let mut sums = Vec::with_capacity(parts.len());
        for part in parts {
            let shared = &part.inner.engine;
            if !shared.takes_native() {
                return Ok(None);
            }
            let sum = Engine::from_shared(shared.clone())
                .output_async(Some(part), DType::F32, part.shape(), "all_sum")
                .await?;
            let place = part.place();
            shared.settle(&place.slot).await;
            let (from, to) = (part.live_place()?, sum.live_place()?);
            let (true, Some(from), Some(into)) = (Arc::ptr_eq(&from.slot, &to.slot), from.buffer, to.buffer) else {
                return Ok(None);
            };
            places.push((to.slot, SumPart { from, into }));
            sums.push(sum);
        }
        let Some((first, _)) = places.first() else { return Ok(None) };
        let count = sums.first().map_or(0, Tensor::len);
        let members = places.iter().map(|(slot, part)| (&**slot.device() as &dyn Device, part.clone())).listed();
        match first.device().sum_over(members, count).await {
            Some(outcome) => {
                outcome?;
                sums.iter().for_each(|sum| sum.inner.tracker.note_written());
                Ok(Some(sums))
            }
            None => Ok(None),
        }
    })
}

impl super::Shared {
    /// Copies words of a tensor to another one of the same device, which it fills; `false` where they are on several.
    pub(super) fn copy_words(&self, source: &Tensor, first: usize, target: &Tensor) -> Result<bool> {
        let _still = self.moves.hold();
        let (from, to) = (source.live_place()?, target.live_place()?);
        let (Some(buffer), Some(into)) = (from.buffer, to.buffer) else { return Ok(false) };
        if !Arc::ptr_eq(&from.slot, &to.slot) {
            return Ok(false);
        }
        // A trace has no copies.
        self.spoil_trace();
        self.note_used(source);
        target.inner.tracker.note_written();
        let (source_offset, bytes) = (4 * first as u64, target.byte_len());
        let command = Command::Copy { source: buffer, source_offset, target: into, target_offset: 0, bytes };
        let effect = Effect { reads: vec![from.state], writes: vec![to.state] };
        self.record(&to.slot, command, effect, Size::default());
        Ok(true)
    }
}
