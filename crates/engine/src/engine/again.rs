//! What an evaluation recorded on a device, to be recorded again with other tensors of the same sizes: without planning, text, or lookups by name.
//!
//! A trace is taken while operations run as always. Whatever is more than memory for results and dispatches over known tensors spoils it, and
//! the evaluation stays what it was.

#![cfg_attr(not(feature = "wgsl"), allow(dead_code, reason = "expressions take WGSL"))]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::context::{self, Inside};
use super::places::Axis;
use super::slot::{Effect, Size};
use super::tensor::{Place, Tensor};
use super::{Engine, Shared, Slot};
use crate::backend::native::Stated;
use crate::backend::{Bound, Command, Contents, Dispatch, Program};
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
    /// What reads the one tensor depends on places that the other one tells of.
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
    tensors: Vec<Tensor>,
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
        self.tensors.iter().position(|known| Arc::ptr_eq(&known.inner, &tensor.inner))
    }

    /// Whether all is on one device so far.
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
        taken.tensors.push(tensor.clone());
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
            Step::Dispatch(Again { program, label, arguments, workgroups, stated, size, bytes: total, flops })
        });
        let on = taken.is_on(slot) && dispatch.cancel.is_empty();
        taken.spoiled |= known.is_none() || !on;
        taken.steps.extend(known);
    }
}

impl Engine {
    /// Whether what is recorded here could be traced: not in a capture, nor in another trace.
    pub(crate) fn may_trace(&self) -> bool {
        let shared = self.shared();
        shared.current_capture().is_none() && shared.current_trace().is_none() && !shared.profiler.is_active()
    }

    /// Runs an evaluation over `inputs`: its outcome, and its steps with the number of each of its tensors, where they can be done again.
    pub(crate) async fn traced<T>(
        &self,
        inputs: &[Tensor],
        work: impl Future<Output = Result<T>>,
    ) -> (Result<T>, Option<(Steps, Vec<Tensor>)>) {
        let trace = Arc::new(Trace::default());
        trace.lock().tensors = inputs.to_vec();
        let result = context::within(self.shared(), Inside::Trace(trace.clone()), work).await;
        let Taken { tensors, slot, steps, spoiled } = std::mem::take(&mut *trace.lock());
        let steps = slot
            .filter(|_| !spoiled && result.is_ok())
            .map(|slot| (Steps { slot: Arc::downgrade(&slot), steps }, tensors));
        (result, steps)
    }
}

impl Steps {
    /// Records the steps again: all tensors by their numbers. `None` where an input is no longer on the device, or what they take is not to be
    /// had there: then the evaluation goes its usual way.
    pub(crate) async fn again(&self, engine: &Engine, inputs: &[Tensor]) -> Option<Vec<Tensor>> {
        let (shared, slot) = (engine.shared(), &self.slot.upgrade()?);
        if slot.failure().is_some() {
            return None;
        }
        let mut places: Vec<Place> = Vec::with_capacity(inputs.len() + self.steps.len());
        let mut tensors: Vec<Tensor> = Vec::with_capacity(inputs.len() + self.steps.len());
        for tensor in inputs {
            places.push(tensor.live_place().ok().filter(|place| Arc::ptr_eq(&place.slot, slot))?);
            tensors.push(tensor.clone());
        }
        for step in &self.steps {
            match step {
                Step::Output { dtype, shape, label } => {
                    let made = engine.create(slot.clone(), *dtype, shape, Contents::Overwritten, label.clone());
                    let tensor = made.await.ok()?;
                    places.push(Some(tensor.place()).filter(|place| Arc::ptr_eq(&place.slot, slot))?);
                    tensors.push(tensor);
                }
                Step::Dispatch(again) => again.record(shared, slot, &tensors, &mut places)?,
                Step::Watch { places, greatest, axis } => {
                    shared.watched(tensors.get(*places)?, tensors.get(*greatest)?, *axis);
                }
            }
        }
        shared.look().await;
        Some(tensors)
    }
}

impl Again {
    fn record(&self, shared: &Shared, slot: &Arc<Slot>, tensors: &[Tensor], places: &mut [Place]) -> Option<()> {
        let span = shared.profiler.begin();
        let _still = shared.moves.hold();
        let mut effect = Effect { reads: Vec::with_capacity(self.arguments.len()), writes: Vec::with_capacity(1) };
        let mut bindings = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            bindings.push(match argument {
                Argument::Uniform(bytes) => Bound::Uniform(bytes.clone()),
                Argument::Tensor { number, bytes, written } => {
                    let (tensor, place) = (tensors.get(*number)?, places.get_mut(*number)?);
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
