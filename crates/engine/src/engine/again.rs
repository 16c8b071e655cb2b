//! The commands that an evaluation recorded on a device, to be recorded again with other tensors of the same sizes, without planning, text or lookups by name.
//!
//! A trace is taken while operations run as always. Whatever is more than memory for results and dispatches over known tensors spoils it, and
//! the evaluation stays what it was.

#![cfg_attr(not(feature = "wgsl"), allow(dead_code, reason = "expressions take WGSL"))]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustc_hash::{FxHashMap, FxHashSet};

use super::context::{self, Inside};
use super::places::Axis;
use super::slot::{Effect, Size};
use super::tensor::{Inner, Place, Tensor};
use super::{Engine, Shared, Slot};
use crate::backend::native::Stated;
use crate::backend::{Bound, BoxFuture, Command, Contents, Dispatch, Execution, Program};
use crate::error::Result;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// The steps of an evaluation on one device. Tensors are numbered: first those that it was given, then its results.
pub(crate) struct Steps {
    /// Kept beside the device itself.
    slot: Weak<Slot>,
    steps: Vec<Step>,
}

enum Step {
    /// Memory for a result.
    Output {
        dtype: DType,
        shape: Box<[usize]>,
        label: Arc<str>,
    },
    Dispatch(Again),
    /// The contents of the one tensor depend on places that the other one reports.
    Watch {
        places: usize,
        greatest: usize,
        axis: Axis,
    },
}

/// A dispatch whose tensors are numbers.
struct Again {
    program: Arc<dyn Program>,
    label: Arc<str>,
    arguments: Vec<Argument>,
    workgroups: [u32; 3],
    stated: Option<Arc<Stated>>,
    size: Size,
    bytes: u64,
    flops: u64,
    /// Tensors that nothing needs after it.
    last: Vec<usize>,
}

#[derive(Clone)]
enum Argument {
    Uniform(Vec<u8>),
    Tensor { number: usize, bytes: u64, written: bool },
}

/// A trace under way.
#[derive(Default)]
pub(super) struct Trace(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    /// Not held: memory that nothing needs any more goes back while the trace is taken.
    tensors: Vec<Weak<Inner>>,
    /// The tensors' numbers by address.
    numbers: FxHashMap<usize, usize>,
    slot: Option<Arc<Slot>>,
    steps: Vec<Step>,
    spoiled: bool,
}

impl Trace {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn number(&self, tensor: &Tensor) -> Option<usize> {
        self.numbers.get(&(Arc::as_ptr(&tensor.inner) as usize)).copied()
    }

    fn add(&mut self, tensor: &Tensor) {
        self.numbers.insert(Arc::as_ptr(&tensor.inner) as usize, self.tensors.len());
        self.tensors.push(tensor.downgrade());
    }

    /// Returns whether everything is on one device so far.
    fn is_on(&mut self, slot: &Arc<Slot>) -> bool {
        Arc::ptr_eq(self.slot.get_or_insert_with(|| slot.clone()), slot)
    }
}

impl Shared {
    /// Notes what cannot be done again from a trace.
    pub(super) fn spoil_trace(&self) {
        if let Some(trace) = self.current_trace() {
            trace.lock().spoiled = true;
        }
    }

    /// Notes memory that was made for a result.
    pub(super) fn trace_output(&self, tensor: &Tensor) {
        let Some(trace) = self.current_trace() else { return };
        let mut taken = trace.lock();
        let (dtype, shape, label) = (tensor.dtype(), tensor.shape().into(), tensor.shared_label().clone());
        taken.steps.push(Step::Output { dtype, shape, label });
        taken.add(tensor);
        let on = taken.is_on(&tensor.place().slot);
        taken.spoiled |= !on;
    }

    /// Notes a check of places.
    pub(super) fn trace_watch(&self, places: &Tensor, greatest: &Tensor, axis: Axis) {
        let Some(trace) = self.current_trace() else { return };
        let mut taken = trace.lock();
        let known = taken.number(places).zip(taken.number(greatest));
        taken.spoiled |= known.is_none();
        taken.steps.extend(known.map(|(places, greatest)| Step::Watch { places, greatest, axis }));
    }

    /// Notes a dispatch over `tensors`: those of its bindings that are no uniforms, and whether it writes them.
    pub(super) fn trace_dispatch(
        &self,
        slot: &Arc<Slot>,
        dispatch: &Dispatch,
        tensors: &[(&Tensor, bool)],
        size: Size,
        flops: u64,
    ) {
        let Some(trace) = self.current_trace() else { return };
        let mut taken = trace.lock();
        let mut tensors = tensors.iter();
        let mut total = 0;
        let arguments = dispatch.bindings.iter().map(|bound| match bound {
            Bound::Uniform(bytes) => Some(Argument::Uniform(bytes.clone())),
            Bound::Buffer { bytes, .. } => {
                let (tensor, written) = tensors.next()?;
                total += bytes;
                Some(Argument::Tensor { number: taken.number(tensor)?, bytes: *bytes, written: *written })
            }
        });
        let arguments: Option<Vec<Argument>> = arguments.try_listed();
        let (program, label) = (dispatch.program.clone(), dispatch.label.clone());
        let known = arguments.map(|arguments| {
            let (workgroups, stated) = (dispatch.workgroups, dispatch.stated.clone());
            let last = Vec::new();
            Step::Dispatch(Again { program, label, arguments, workgroups, stated, size, bytes: total, flops, last })
        });
        let on = taken.is_on(slot) && dispatch.cancel.is_empty();
        taken.spoiled |= known.is_none() || !on;
        taken.steps.extend(known);
    }
}

impl Engine {
    /// Returns whether commands recorded here could be traced: not in a capture, nor in another trace.
    pub(crate) fn may_trace(&self) -> bool {
        let shared = self.shared();
        shared.current_capture().is_none() && shared.current_trace().is_none() && !shared.profiler.is_active()
    }

    /// Runs an evaluation over `inputs`: its outcome, and its trace where it can be done again.
    pub(crate) async fn traced<T>(
        &self,
        inputs: &[Tensor],
        work: BoxFuture<'_, Result<T>>,
    ) -> (Result<T>, Option<Traced>) {
        let trace = Arc::new(Trace::default());
        inputs.iter().for_each(|tensor| trace.lock().add(tensor));
        let result = context::within(self.shared(), Inside::Trace(trace.clone()), work).await;
        let taken = std::mem::take(&mut *trace.lock());
        let is_whole = !taken.spoiled && result.is_ok() && taken.slot.is_some();
        (result, is_whole.then_some(Traced(taken)))
    }
}

/// The commands that an evaluation recorded.
pub(crate) struct Traced(Taken);

impl Traced {
    /// The number of a tensor that it was given or made.
    pub(crate) fn number(&self, tensor: &Tensor) -> Option<usize> {
        self.0.number(tensor)
    }

    /// The steps. Of the tensors that they make all stay, or only those of `kept`.
    pub(crate) fn steps(self, kept: Option<&[usize]>) -> Option<Steps> {
        let Taken { mut steps, slot, .. } = self.0;
        if let Some(kept) = kept {
            let mut seen: FxHashSet<usize> = kept.iter().copied().collect();
            for step in steps.iter_mut().rev() {
                let again = match step {
                    Step::Dispatch(again) => again,
                    Step::Watch { places, greatest, .. } => {
                        seen.extend([*places, *greatest]);
                        continue;
                    }
                    Step::Output { .. } => continue,
                };
                for argument in &again.arguments {
                    if let Argument::Tensor { number, .. } = argument
                        && seen.insert(*number)
                    {
                        again.last.push(*number);
                    }
                }
            }
        }
        Some(Steps { slot: Arc::downgrade(&slot?), steps })
    }
}

impl Slot {
    /// Bytes of results that are recorded before the device has computed them: a long evaluation takes memory for a few times as many. On the processor
    /// what is read next is still in the caches.
    pub(crate) fn most_under_way(&self) -> u64 {
        match self.device().info().capabilities.execution {
            Execution::Executor => 1 << 22,
            _ => 1 << 25,
        }
    }
}

impl Steps {
    /// Records the steps again: tensors by their numbers, of those that were given or made the ones that stay. `None` where an input is no longer on
    /// the device, or what they take is not to be had there: then the evaluation goes its usual way.
    pub(crate) async fn again(&self, engine: &Engine, inputs: &[Tensor]) -> Option<Vec<Option<Tensor>>> {
        let (shared, slot) = (engine.shared(), &self.slot.upgrade()?);
        if slot.failure().is_some() {
            return None;
        }
        let mut places: Vec<Option<Place>> = Vec::with_capacity(inputs.len() + self.steps.len());
        let mut tensors: Vec<Option<Tensor>> = Vec::with_capacity(inputs.len() + self.steps.len());
        for tensor in inputs {
            let place = tensor.live_place().ok().filter(|place| Arc::ptr_eq(&place.slot, slot))?;
            places.push(Some(place));
            tensors.push(Some(tensor.clone()));
        }
        let (mut under_way, most) = (0, slot.most_under_way());
        for step in &self.steps {
            match step {
                Step::Output { dtype, shape, label } => {
                    let made = engine.create(slot.clone(), *dtype, shape, Contents::Overwritten, label.clone());
                    let tensor = made.await.ok()?;
                    under_way += tensor.byte_len();
                    places.push(Some(Some(tensor.place()).filter(|place| Arc::ptr_eq(&place.slot, slot))?));
                    tensors.push(Some(tensor));
                }
                Step::Dispatch(again) => {
                    again.record(shared, slot, &tensors, &places)?;
                    for &number in &again.last {
                        *tensors.get_mut(number)? = None;
                        *places.get_mut(number)? = None;
                    }
                    if under_way > most {
                        under_way = 0;
                        shared.finish_slot(slot).await;
                    }
                }
                Step::Watch { places, greatest, axis } => {
                    let [places, greatest] = [*places, *greatest].map(|number| tensors.get(number)?.as_ref());
                    let _ = shared.watched(places?, greatest?, *axis);
                }
            }
        }
        shared.look().await;
        Some(tensors)
    }
}

impl Again {
    fn record(
        &self,
        shared: &Shared,
        slot: &Arc<Slot>,
        tensors: &[Option<Tensor>],
        places: &[Option<Place>],
    ) -> Option<()> {
        let span = shared.profiler.begin();
        let _still = shared.moves.hold();
        let mut effect = Effect { reads: Vec::with_capacity(self.arguments.len()), writes: Vec::with_capacity(1) };
        let mut bindings = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            bindings.push(match argument {
                Argument::Uniform(bytes) => Bound::Uniform(bytes.clone()),
                Argument::Tensor { number, bytes, written } => {
                    let (tensor, place) = (tensors.get(*number)?.as_ref()?, places.get(*number)?.as_ref()?);
                    // Another thread may have moved it since it was looked at.
                    if !tensor.is_at(place) {
                        return None;
                    }
                    let buffer = place.buffer.clone()?;
                    if *written {
                        effect.writes.push(place.fate.clone());
                        tensor.inner.note_written();
                    }
                    effect.reads.push(place.fate.clone());
                    Bound::Buffer { buffer, offset: 0, bytes: *bytes }
                }
            });
        }
        shared.metrics.dispatch(&self.label, slot.name(), self.bytes, false);
        shared.profiler.dispatch(span, &self.label, slot, self.bytes, self.flops);
        let dispatch = Dispatch {
            program: self.program.clone(),
            label: self.label.clone(),
            bindings,
            workgroups: self.workgroups,
            cancel: Vec::new(),
            stated: self.stated.clone(),
        };
        shared.record(slot, Command::Dispatch(dispatch), effect, self.size);
        Some(())
    }
}
