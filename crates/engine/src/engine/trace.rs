//! Traces: the commands that an evaluation recorded on a device, to be recorded again with other tensors of the same sizes. `ops/expr/replay.rs` says
//! when two evaluations are the same.
//!
//! - **Taking.** `Engine::traced` runs the work inside a `Trace`, as always. Memory for results, dispatches and checks of indices add a `Step` each
//!   (`trace_output`, `trace_dispatch`, `trace_watch`). Tensors are numbers: inputs first, then results. Anything else (a read, an upload, a move,
//!   a fallback, a second device, a tensor that has no number) spoils the trace (`spoil_trace`), and the evaluation is not kept.
//! - **Keeping.** `Traced::steps` turns it into `Steps`. With a list of tensors to keep, every other tensor is released after the dispatch that uses it last.
//!   On a device that runs in order (the CPU), small results among these share one buffer (`shared`), each at the offset of a home that is free while it is
//!   needed (`lives`).
//! - **Repeating.** `Steps::replay` allocates the results and records the dispatches. Each dispatch checks under `Moves` that its tensors are still where
//!   they were. It returns `None` if an input is elsewhere or there is no memory, and the caller plans as usual. Commands recorded until then
//!   stay recorded: they write only memory of their own.
//!
//! A capture (`capture`) keeps commands with the buffers that they name, because the device records those once and a replay is one call. A trace keeps
//! numbers, because each evaluation has tensors of its own. Both give memory to results by `lives`.
//!
//! A trace holds its tensors weakly, so that memory is reused while it is taken. `Steps` hold the device weakly, because they are stored beside it.

#![cfg_attr(not(feature = "wgsl"), allow(dead_code, reason = "expressions take WGSL"))]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustc_hash::{FxHashMap, FxHashSet};

use super::context::{self, Inside};
use super::index_checks::Axis;
use super::lives::{Life, homes};
use super::memory_state::MemoryState;
use super::slot::{Effect, Size};
use super::tensor::{Inner, Tensor};
use super::tracker::Place;
use super::{Engine, Shared, Slot};
use crate::backend::native::Stated;
use crate::backend::{Bound, BoxFuture, Buffer, Command, Contents, Dispatch, Execution, Program};
use crate::error::Result;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// The steps of an evaluation on one device. Tensors are numbered: first those that it was given, then its results.
pub(crate) struct Steps {
    /// Kept beside the device itself.
    slot: Weak<Slot>,
    steps: Vec<Step>,
    /// Bytes of the memory that small results share which nothing needs after the steps.
    shared: u64,
}

enum Step {
    /// Memory for a result.
    Output {
        dtype: DType,
        shape: Box<[usize]>,
        label: Arc<str>,
    },
    /// A place in the shared memory for a result.
    Part {
        offset: u64,
        label: Arc<str>,
    },
    Dispatch(TracedDispatch),
    /// The contents of the one tensor depend on indices whose check the other one reports.
    Watch {
        indices: usize,
        greatest: usize,
        axis: Axis,
    },
}

/// A dispatch whose tensors are numbers.
struct TracedDispatch {
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
    /// The tensors that it was given.
    inputs: usize,
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

    /// Notes a check of indices.
    pub(super) fn trace_watch(&self, indices: &Tensor, greatest: &Tensor, axis: Axis) {
        let Some(trace) = self.current_trace() else { return };
        let mut taken = trace.lock();
        let known = taken.number(indices).zip(taken.number(greatest));
        taken.spoiled |= known.is_none();
        taken.steps.extend(known.map(|(indices, greatest)| Step::Watch { indices, greatest, axis }));
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
            Step::Dispatch(TracedDispatch {
                program,
                label,
                arguments,
                workgroups,
                stated,
                size,
                bytes: total,
                flops,
                last,
            })
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
        trace.lock().inputs = inputs.len();
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
        let Taken { mut steps, slot, inputs, .. } = self.0;
        if let Some(kept) = kept {
            let mut seen: FxHashSet<usize> = kept.iter().copied().collect();
            for step in steps.iter_mut().rev() {
                let traced = match step {
                    Step::Dispatch(traced) => traced,
                    Step::Watch { indices, greatest, .. } => {
                        seen.extend([*indices, *greatest]);
                        continue;
                    }
                    Step::Output { .. } | Step::Part { .. } => continue,
                };
                for argument in &traced.arguments {
                    if let Argument::Tensor { number, .. } = argument
                        && seen.insert(*number)
                    {
                        traced.last.push(*number);
                    }
                }
            }
        }
        let slot = slot?;
        let runs_in_order = slot.device().info().capabilities.execution == Execution::Executor;
        let shared = kept.filter(|_| runs_in_order).map_or(0, |kept| shared(&mut steps, inputs, kept));
        Some(Steps { slot: Arc::downgrade(&slot), steps, shared })
    }
}

/// The largest result that shares memory with others, and the bytes that they share at most.
const MOST_OF_PART: u64 = 1 << 17;
const MOST_SHARED: u64 = 1 << 21;
/// Results begin at lines of the cache.
const LINE: u64 = 64;

/// Gives small results that nothing needs after the steps places in one memory, each for as long as steps use it: what a tensor of its own takes would
/// cost more than their work. Returns the bytes of that memory. The device runs one step after the other.
fn shared(steps: &mut [Step], inputs: usize, kept: &[usize]) -> u64 {
    let mut lasts: FxHashMap<usize, usize> = FxHashMap::default();
    let mut whole: FxHashSet<usize> = kept.iter().copied().collect();
    for (place, step) in steps.iter().enumerate() {
        match step {
            Step::Dispatch(traced) => lasts.extend(traced.numbers().map(|number| (number, place))),
            // Those are asked for by others.
            Step::Watch { indices, greatest, .. } => whole.extend([*indices, *greatest]),
            Step::Output { .. } | Step::Part { .. } => {}
        }
    }
    let made = steps.iter().enumerate().filter(|(_, step)| matches!(step, Step::Output { .. }));
    let lives = made.zip(inputs..).filter_map(|((first, step), number)| {
        let Step::Output { dtype, shape, .. } = step else { return None };
        let bytes = shape.iter().fold(dtype.bytes() as u64, |bytes, &side| bytes.saturating_mul(side as u64));
        let last = lasts.get(&number).filter(|_| (1..=MOST_OF_PART).contains(&bytes) && !whole.contains(&number))?;
        Some(Life { first, last: *last, bytes: bytes.next_multiple_of(LINE) })
    });
    let lives: Vec<Life> = lives.listed();
    let homes = homes(&lives);
    // Homes lie side by side. Results of those beyond the bound are tensors of their own.
    let mut end = 0;
    let mut offsets: Vec<Option<u64>> = Vec::with_capacity(homes.bytes.len());
    for bytes in &homes.bytes {
        let fits = end + bytes <= MOST_SHARED;
        offsets.push(fits.then_some(end));
        end += if fits { *bytes } else { 0 };
    }
    for (life, &home) in lives.iter().zip(&homes.of) {
        if let (Step::Output { label, .. }, Some(offset)) = (&steps[life.first], offsets[home]) {
            steps[life.first] = Step::Part { offset, label: label.clone() };
        }
    }
    end
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
    pub(crate) async fn replay(&self, engine: &Engine, inputs: &[Tensor]) -> Option<Vec<Option<Tensor>>> {
        let (shared, slot) = (engine.shared(), &self.slot.upgrade()?);
        if slot.failure().is_some() {
            return None;
        }
        let mut known: Vec<Known> = Vec::with_capacity(inputs.len() + self.steps.len());
        for tensor in inputs {
            let place = tensor.live_place().ok().filter(|place| Arc::ptr_eq(&place.slot, slot))?;
            known.push(Known::Tensor(tensor.clone(), place));
        }
        let memory = match self.shared {
            0 => None,
            bytes => Some(slot.device().allocate(bytes, Contents::Overwritten, "results of steps").await.ok()?),
        };
        let (mut under_way, most) = (0, slot.most_under_way());
        for step in &self.steps {
            match step {
                Step::Output { dtype, shape, label } => {
                    let made = engine.create(slot.clone(), *dtype, shape, Contents::Overwritten, label.clone());
                    let tensor = made.await.ok()?;
                    under_way += tensor.byte_len();
                    let place = Some(tensor.place()).filter(|place| Arc::ptr_eq(&place.slot, slot))?;
                    known.push(Known::Tensor(tensor, place));
                }
                Step::Part { offset, label } => {
                    let state = MemoryState::new(label);
                    // No handle refers to it: nobody misses it where it is lost.
                    state.note_dropped();
                    known.push(Known::Part(*offset, state));
                }
                Step::Dispatch(traced) => {
                    traced.record(shared, slot, &known, memory.as_ref())?;
                    for &number in &traced.last {
                        *known.get_mut(number)? = Known::Nothing;
                    }
                    if under_way > most {
                        under_way = 0;
                        shared.finish_slot(slot).await;
                    }
                }
                Step::Watch { indices, greatest, axis } => {
                    let [indices, greatest] = [*indices, *greatest].map(|number| known.get(number)?.tensor());
                    let _ = shared.watched(indices?, greatest?, *axis);
                }
            }
        }
        shared.make_room(slot).await;
        shared.look().await;
        Some(known.into_iter().map(Known::into_tensor).listed())
    }
}

/// A tensor of the steps, while something needs it.
enum Known {
    Nothing,
    Tensor(Tensor, Place),
    /// A result in the shared memory, from a byte on.
    Part(u64, Arc<MemoryState>),
}

impl Known {
    fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor, _) => Some(tensor),
            Self::Nothing | Self::Part(..) => None,
        }
    }

    fn into_tensor(self) -> Option<Tensor> {
        match self {
            Self::Tensor(tensor, _) => Some(tensor),
            Self::Nothing | Self::Part(..) => None,
        }
    }
}

impl TracedDispatch {
    /// The numbers of the tensors.
    fn numbers(&self) -> impl Iterator<Item = usize> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Uniform(_) => None,
            Argument::Tensor { number, .. } => Some(*number),
        })
    }

    fn record(
        &self,
        shared: &Shared,
        slot: &Arc<Slot>,
        known: &[Known],
        memory: Option<&Arc<dyn Buffer>>,
    ) -> Option<()> {
        let span = shared.profiler.begin();
        let _still = shared.moves.hold();
        let mut effect = Effect { reads: Vec::with_capacity(self.arguments.len()), writes: Vec::with_capacity(1) };
        let mut bindings = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            bindings.push(match argument {
                Argument::Uniform(bytes) => Bound::Uniform(bytes.clone()),
                Argument::Tensor { number, bytes, written } => {
                    let (buffer, offset, state) = match known.get(*number)? {
                        // Another thread may have moved it since it was looked at.
                        Known::Tensor(tensor, place) if tensor.is_at(place) => {
                            if *written {
                                tensor.inner.tracker.note_written();
                            }
                            (place.buffer.clone()?, 0, &place.state)
                        }
                        Known::Part(offset, state) => (memory?.clone(), *offset, state),
                        Known::Nothing | Known::Tensor(..) => return None,
                    };
                    effect.add(state.clone(), *written);
                    Bound::Buffer { buffer, offset, bytes: *bytes }
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
