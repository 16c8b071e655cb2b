//! Captures: work that is recorded once and replayed, with everything checked, compiled and allocated before the first replay.
//!
//! # What comes in
//! A closure or future (`Engine::capture`), and for each replay new contents of inputs and uniforms (`GraphInputs`).
//!
//! # Stages
//! 1. **Collect.** While the capture is open (`Inside::Capture`, see `context`), `Shared::record` puts commands into it and not into the batch of a device.
//!    Dispatches are checked and compiled as ever. What would read a tensor that only a replay computes is refused (`check_computed`).
//! 2. **Finish** (`finish_capture`). All commands must be on one device. `share_memory` lets intermediate results whose lives do not overlap use the same
//!    buffer (`lives`). The device records the commands (`Device::record`), after what was pending was submitted.
//! 3. **Replay** (`Graph::replay_async`). Writes the inputs, sets uniforms, copies what is overwritten for expressions that still read it (`preserve`),
//!    checks under `Moves` that no tensor was moved since, and starts the recording (`Slot::replay`).
//!
//! # What holds
//! - Replays of a device take turns: one writes its inputs and starts before the next one writes.
//! - The outcome of a replay is that of its `Effect`s, as of a batch. A failed replay loses the graph's outputs.
//! - A new tensor of zeros is cleared at each replay (`clear_when_replayed`), because a kernel may add to it.
//! - Intermediate memory is shared only if nothing but the commands holds the buffer (`Arc::strong_count`).
//!
//! # What is surprising
//! - Values that expressions compute in a capture are known inside it only: each replay computes them anew.
//! - A uniform can be set only where the dispatch set it by value. What was bound as a tensor is written as a tensor.
//! - On CUDA a uniform changes in the driver's graph (`Device::update`). Elsewhere the device records anew.
//!
//! # An example
//! `step = capture(|| x.matmul(&w).relu().eval())` takes one dispatch: the product with the function at its end. `outputs()` is a tensor that has no
//! contents yet, and reading it in the closure would be an error. `replay(set(&x, ..))` writes `x`, marks the output as written, and starts the recording;
//! a read of the output then waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::context::{self, Inside};
use super::lives::{Life, homes};
use super::memory_state::MemoryState;
use super::slot::{Effect, Size};
use super::tensor::{Inner, Tensor};
use super::uniform::{UniformBlock, Value};
use super::{Engine, Shared, Slot};
use crate::backend::{Bound, Buffer, Command, Contents, Recording, UniformChange};
use crate::error::{Error, Result};
use crate::kernel::{AddressSpace, Kernel};
use crate::tensor::Element;
use cantus_base::listed::Listed;

/// A capture under way.
#[derive(Default)]
pub(crate) struct Captured {
    taken: Mutex<Capture>,
    /// The kernels that an evaluation would compile, if it is only rehearsed.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    rehearsal: Option<super::rehearsal::Rehearsal>,
}

/// The commands and tensors that a capture has taken so far.
#[derive(Default)]
struct Capture {
    steps: Vec<(Arc<Slot>, Command, Effect)>,
    /// Memory of results that were made in the capture.
    scratch: Vec<Arc<dyn Buffer>>,
    /// The tensors that its commands name, and where they were.
    used: Vec<Used>,
}

/// A tensor as a graph knows it.
struct Used {
    tensor: Weak<Inner>,
    state: Arc<MemoryState>,
    /// True if a replay overwrites it.
    #[cfg(feature = "wgsl")]
    written: bool,
}

impl Captured {
    /// A capture in which nothing is recorded.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    pub(super) fn rehearsing() -> Self {
        Self { rehearsal: Some(super::rehearsal::Rehearsal::default()), ..Self::default() }
    }

    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    pub(crate) fn rehearsal(&self) -> Option<&super::rehearsal::Rehearsal> {
        self.rehearsal.as_ref()
    }

    /// Returns whether nothing is recorded.
    pub(crate) fn is_rehearsal(&self) -> bool {
        #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
        return self.rehearsal.is_some();
        #[cfg(not(all(feature = "wgsl", not(target_arch = "wasm32"))))]
        return false;
    }

    fn lock(&self) -> MutexGuard<'_, Capture> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Notes that a command names a tensor: a graph stops when it is moved.
    pub(super) fn note_used(&self, tensor: &Tensor) {
        let Some(capture) = self.current_capture() else { return };
        let (state, tensor) = (tensor.place().state, tensor.downgrade());
        let mut capture = capture.lock();
        if !capture.used.iter().any(|known| Arc::ptr_eq(&known.state, &state)) {
            capture.used.push(Used {
                tensor,
                state,
                #[cfg(feature = "wgsl")]
                written: false,
            });
        }
    }

    /// Records a command on a slot, or in the capture that the work belongs to.
    pub(super) fn record(&self, slot: &Arc<Slot>, mut command: Command, effect: Effect, size: Size) {
        if let Command::Dispatch(dispatch) = &mut command {
            self.add_cancel_flags(&mut dispatch.cancel);
        }
        match self.current_capture() {
            Some(capture) if capture.is_rehearsal() => {}
            Some(capture) => capture.lock().steps.push((slot.clone(), command, effect)),
            None => slot.record(command, effect, size, &self.events),
        }
    }

    /// Clears a new tensor of zeros at each replay of a capture, because it may be added to.
    pub(super) async fn clear_when_replayed(self: &Arc<Self>, tensor: &Tensor) -> Result<()> {
        let place = tensor.place();
        let (Some(target), Some(_)) = (place.buffer, self.current_capture()) else { return Ok(()) };
        let bytes = tensor.byte_len().next_multiple_of(4);
        let source = place.slot.device().allocate(bytes, Contents::Zeroed, "zeros").await?;
        let command = Command::Copy { source, source_offset: 0, target, target_offset: 0, bytes };
        let effect = Effect { reads: Vec::new(), writes: vec![place.state] };
        self.note_scratch(tensor);
        self.record(&place.slot, command, effect, Size::default());
        Ok(())
    }

    /// Notes memory that was made for a result.
    pub(super) fn note_scratch(&self, tensor: &Tensor) {
        if let Some(capture) = self.current_capture() {
            capture.lock().scratch.extend(tensor.place().buffer);
        }
    }

    /// Refuses what needs the contents of a tensor that only a replay computes.
    pub(super) fn check_computed(&self, tensor: &Tensor) -> Result<()> {
        let Some(capture) = self.current_capture() else { return Ok(()) };
        if capture.is_rehearsal() {
            return Err(Error::state(format!("the tensor {}", tensor.label()), "a rehearsal computes nothing"));
        }
        let state = tensor.inner.tracker.state();
        let pending = capture
            .lock()
            .steps
            .iter()
            .any(|(.., effect)| effect.writes.iter().any(|known| Arc::ptr_eq(known, &state)));
        if !pending {
            return Ok(());
        }
        Err(Error::state(
            format!("the tensor {}", tensor.label()),
            "a replay computes it, not the capture of the graph (read it after a replay)",
        ))
    }
}

/// New contents for tensors and uniforms that a graph reads.
#[derive(Debug, Default)]
pub struct GraphInputs<'a> {
    writes: Vec<(&'a Tensor, std::borrow::Cow<'a, [u8]>, crate::DType)>,
    uniforms: Vec<(&'a Kernel, &'a str, Value)>,
}

impl<'a> GraphInputs<'a> {
    /// Creates an empty set: the graph runs on the current contents of its inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Overwrites an input before the graph runs. A number that changes from step to step is a tensor of one element, which broadcasts.
    #[must_use]
    pub fn set<T: Element>(mut self, tensor: &'a Tensor, values: &'a [T]) -> Self {
        self.writes.push((tensor, std::borrow::Cow::Borrowed(bytemuck::cast_slice(values)), T::DTYPE));
        self
    }

    /// Sets a uniform, or a member of one (`params.a`), in every captured dispatch of a kernel, for this replay and later ones. The driver's graph is
    /// changed in place on CUDA; elsewhere the work is recorded anew.
    ///
    /// ```
    /// # fn main() -> cantus::Result<()> {
    /// use cantus::engine::GraphInputs;
    /// let engine = cantus::Engine::new()?;
    /// let scale = cantus::Kernel::from_wgsl(
    ///     "@group(0) @binding(0) var<uniform> factor: f32;
    ///      @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    ///      @compute @workgroup_size(1) fn scale(@builtin(workgroup_id) id: vec3u) { y[id.x] *= factor; }",
    /// )?;
    /// let y = engine.tensor(&[1.0_f32, 2.0])?;
    /// let step = engine.capture(|| engine.dispatch(&scale).bind("y", &y).set("factor", 2.0).workgroups(2).run())?;
    /// step.replay(&GraphInputs::new())?;
    /// step.replay(&GraphInputs::new().set_uniform(&scale, "factor", 5.0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [10.0, 20.0]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn set_uniform(mut self, kernel: &'a Kernel, path: &'a str, value: impl Into<Value>) -> Self {
        self.uniforms.push((kernel, path, value.into()));
        self
    }
}

/// A sequence of dispatches, captured by [`Engine::capture`], to be run with new contents of its inputs.
///
/// Its intermediate results share memory wherever one is no longer needed when another begins.
pub struct Graph<T> {
    engine: Engine,
    outputs: T,
    slot: Option<Arc<Slot>>,
    recorded: Option<Mutex<Recorded>>,
    effects: Arc<[Effect]>,
    dispatches: usize,
    bytes: u64,
    used: Vec<Used>,
}

/// A device's recording of a graph, and the commands it was made from.
struct Recorded {
    commands: Vec<Command>,
    recording: Arc<dyn Recording>,
}

impl<T> std::fmt::Debug for Graph<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("dispatches", &self.dispatches).finish_non_exhaustive()
    }
}

impl<T> Graph<T> {
    /// Returns the captured closure's result: its tensors hold results once [`Graph::replay`] has run.
    pub fn outputs(&self) -> &T {
        &self.outputs
    }

    /// Returns the number of commands that a replay runs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dispatches
    }

    /// Returns whether nothing was captured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dispatches == 0
    }

    /// Returns the bytes that the intermediate results take together.
    #[must_use]
    pub fn scratch_bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the parameters and starts the captured work, without waiting for its end.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] and [`Error::Shape`] for parameters that do not fit their tensors, [`Error::Binding`] for uniforms that the graph
    /// does not have, and what the device reports.
    pub async fn replay_async(&self, params: &GraphInputs<'_>) -> Result<()> {
        for (tensor, bytes, dtype) in &params.writes {
            if !Arc::ptr_eq(&tensor.inner.engine, self.engine.shared()) {
                return Err(Error::AnotherEngine { tensor: tensor.label().to_owned() });
            }
            tensor.check_write(*dtype, bytes.len())?;
        }
        // The inputs of two replays must not mix, not even of two graphs: one writes and starts before the next one writes.
        let _turn = match &self.slot {
            Some(slot) => Some(slot.replays().lock().await),
            None => None,
        };
        let changes = self.changes(params).await?;
        for (tensor, bytes, _) in &params.writes {
            tensor.write_bytes(0, bytes).await?;
        }
        let (Some(slot), Some(recorded)) = (&self.slot, &self.recorded) else { return Ok(()) };
        if !changes.is_empty() {
            self.change(slot, recorded, changes).await?;
        }
        let recording = lock(recorded).recording.clone();
        #[cfg(feature = "wgsl")]
        for used in &self.used {
            if used.written
                && let Some(inner) = used.tensor.upgrade()
            {
                Tensor { inner }.preserve().await?;
            }
        }
        // No tensor moves between the check and the start.
        let _still = self.engine.shared().moves.hold();
        let held = || self.used.iter().filter_map(|used| Some((used.tensor.upgrade()?, &used.state)));
        for (tensor, state) in held() {
            if !Arc::ptr_eq(&tensor.tracker.state(), state) {
                return Err(Error::state(
                    "a graph",
                    format!(
                        "the tensor {} was moved to another device after it was captured (capture it again)",
                        state.label()
                    ),
                ));
            }
        }
        held().for_each(|(tensor, _)| tensor.tracker.note_written());
        if let Some(error) = slot.failure() {
            return Err(error);
        }
        slot.replay(&recording, &self.effects, &self.engine.shared().events);
        Ok(())
    }

    /// The uniforms that are to be set, by command.
    async fn changes(&self, params: &GraphInputs<'_>) -> Result<Vec<UniformChange>> {
        let mut changes: Vec<UniformChange> = Vec::new();
        for (kernel, path, value) in &params.uniforms {
            let (name, member) = path.split_once('.').unwrap_or((path, ""));
            let fault = |reason: String| Error::Binding {
                kernel: kernel.label().to_string(),
                binding: name.to_owned(),
                fault: reason.into(),
            };
            let reflection = kernel.reflection()?;
            let Some((place, binding)) = reflection.binding(name) else {
                return Err(fault("the kernel has no such binding".to_owned()));
            };
            if binding.space != AddressSpace::Uniform {
                return Err(fault(
                    "it is a storage binding: GraphInputs::set writes the tensor that is bound to it".to_owned(),
                ));
            }
            let absent = || {
                fault(
                    "the graph has no dispatch of the kernel in which it was set, and not bound to a tensor".to_owned(),
                )
            };
            let (Some(slot), Some(recorded)) = (&self.slot, &self.recorded) else { return Err(absent()) };
            let (program, _) = slot.program(kernel).await?;
            let mut found = false;
            for (command, step) in lock(recorded).commands.iter().enumerate() {
                let Command::Dispatch(dispatch) = step else { continue };
                let Some(Bound::Uniform(known)) = dispatch.bindings.get(place) else { continue };
                if !Arc::ptr_eq(&dispatch.program, &program) {
                    continue;
                }
                found = true;
                let earlier = changes.iter_mut().find(|change| (change.command, change.binding) == (command, place));
                let mut block = UniformBlock::of(earlier.as_ref().map_or(known, |change| &change.contents));
                block.set(&binding.layout, member, value).map_err(fault)?;
                let contents = block.into_bytes(name, &binding.layout).map_err(fault)?;
                match earlier {
                    Some(change) => change.contents = contents,
                    None => changes.push(UniformChange { command, binding: place, contents }),
                }
            }
            if !found {
                return Err(absent());
            }
        }
        Ok(changes)
    }

    /// Sets uniforms in what the device keeps, or has it keep something new. Whoever calls it has the device's turn to replay.
    async fn change(&self, slot: &Slot, recorded: &Mutex<Recorded>, changes: Vec<UniformChange>) -> Result<()> {
        let (mut commands, recording) = {
            let recorded = lock(recorded);
            (recorded.commands.clone(), recorded.recording.clone())
        };
        let in_place = slot.device().update(&recording, &changes)?;
        UniformChange::apply(changes, &mut commands);
        let recording = if in_place { recording } else { slot.device().record(&commands).await? };
        *lock(recorded) = Recorded { commands, recording };
        Ok(())
    }

    /// [`Graph::replay_async`], blocking until the work is started.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn replay(&self, params: &GraphInputs<'_>) -> Result<()> {
        crate::engine::blocking::block_on(self.replay_async(params))
    }
}

impl Engine {
    /// Captures what `body` dispatches on this thread, without running it: operations, expressions that it evaluates, kernels of the app's
    /// own. Tensors from outside are the graph's inputs; those that `body` returns are its outputs. All work must be on one device.
    ///
    /// ```
    /// # fn main() -> cantus::Result<()> {
    /// use cantus::engine::GraphInputs;
    /// let engine = cantus::Engine::new()?;
    /// let (x, w) = (engine.zeros::<f32>(&[1, 3])?, engine.tensor_from(&[1.0_f32; 6], &[3, 2])?);
    /// let step = engine.capture(|| x.matmul(&w).relu().eval())?;
    /// step.replay(&GraphInputs::new().set(&x, &[1.0_f32, 2.0, 3.0]))?;
    /// assert_eq!(step.outputs().to_vec::<f32>()?, [6.0, 6.0]);
    /// step.replay(&GraphInputs::new().set(&x, &[0.0_f32, 0.5, 0.0]))?;
    /// assert_eq!(step.outputs().to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `body` answers; [`Error::InvalidState`] inside of another capture, or when the work is on several devices; what the device
    /// reports when it records.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn capture<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<Graph<T>> {
        let captured = self.begin_capture()?;
        let outputs = {
            let _entered = context::enter(self.shared(), &Inside::Capture(captured.clone()));
            body()
        };
        crate::engine::blocking::block_on(self.finish_capture(&captured, outputs?))
    }

    /// [`Engine::capture`] of a future. The capture belongs to the future, on whichever threads it is polled: what runs between two polls is
    /// not captured, and neither are tasks that it spawns. Dropping the future ends the capture.
    ///
    /// # Errors
    /// As [`Engine::capture`].
    pub async fn capture_async<T>(&self, body: impl Future<Output = Result<T>>) -> Result<Graph<T>> {
        let captured = self.begin_capture()?;
        let outputs = context::within(self.shared(), Inside::Capture(captured.clone()), body).await;
        self.finish_capture(&captured, outputs?).await
    }

    fn begin_capture(&self) -> Result<Arc<Captured>> {
        if self.shared().current_capture().is_none() {
            return Ok(Arc::default());
        }
        Err(Error::state("a capture", "another capture of the engine is in progress (end that one first)"))
    }

    async fn finish_capture<T>(&self, captured: &Captured, outputs: T) -> Result<Graph<T>> {
        #[cfg_attr(not(feature = "wgsl"), expect(unused_mut, reason = "as with the feature `wgsl`"))]
        let Capture { steps, scratch, mut used } = std::mem::take(&mut *captured.lock());
        #[cfg(feature = "wgsl")]
        for used in &mut used {
            let writes = |effect: &Effect| effect.writes.iter().any(|state| Arc::ptr_eq(state, &used.state));
            used.written = steps.iter().any(|(.., effect)| writes(effect));
        }
        let slot = steps.first().map(|(slot, ..)| slot.clone());
        if let Some(first) = &slot
            && let Some((other, ..)) = steps.iter().find(|(slot, ..)| !Arc::ptr_eq(slot, first))
        {
            return Err(Error::state(
                "a graph",
                format!(
                    "its work is on {} and on {}, but a graph runs on one device (create its inputs there)",
                    first.name(),
                    other.name()
                ),
            ));
        }
        let (mut commands, effects): (Vec<Command>, Vec<Effect>) =
            steps.into_iter().map(|(_, command, effect)| (command, effect)).unzip();
        let bytes = share_memory(&mut commands, scratch);
        let dispatches = commands.len();
        let recorded = match &slot {
            Some(slot) => {
                slot.flush(&self.shared().events);
                let recording = slot.device().record(&commands).await?;
                Some(Mutex::new(Recorded { commands, recording }))
            }
            None => None,
        };
        Ok(Graph { engine: self.clone(), outputs, slot, recorded, effects: effects.into(), dispatches, bytes, used })
    }
}

fn lock(recorded: &Mutex<Recorded>) -> MutexGuard<'_, Recorded> {
    recorded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the buffers that a command refers to.
fn buffers(command: &mut Command) -> Vec<&mut Arc<dyn Buffer>> {
    match command {
        Command::Dispatch(dispatch) => dispatch
            .bindings
            .iter_mut()
            .filter_map(|bound| match bound {
                Bound::Buffer { buffer, .. } => Some(buffer),
                Bound::Uniform(_) => None,
            })
            .listed(),
        Command::Copy { source, target, .. } => vec![source, target],
    }
}

/// Lets intermediate results whose lives do not meet share memory; the bytes that are left of them. Each is written before it is read, and
/// nothing outside of the commands refers to it.
fn share_memory(commands: &mut [Command], scratch: Vec<Arc<dyn Buffer>>) -> u64 {
    let address = |buffer: &Arc<dyn Buffer>| Arc::as_ptr(buffer).cast::<()>();
    let mut uses: HashMap<*const (), (Life, usize)> = HashMap::new();
    for (at, command) in commands.iter_mut().enumerate() {
        for buffer in buffers(command) {
            let life = Life { first: at, last: at, bytes: buffer.bytes() };
            let (life, count) = uses.entry(address(buffer)).or_insert((life, 0));
            (life.last, *count) = (at, *count + 1);
        }
    }
    // A tensor that is still alive holds its buffer once more than the commands and this list do.
    let life = |buffer: Arc<dyn Buffer>| {
        let &(life, count) = uses.get(&address(&buffer))?;
        (Arc::strong_count(&buffer) == count + 1).then_some((life, buffer))
    };
    let mut inner: Vec<(Life, Arc<dyn Buffer>)> = scratch.into_iter().filter_map(life).listed();
    inner.sort_by_key(|(life, _)| life.first);
    let homes = homes(&inner.iter().map(|(life, _)| *life).listed());
    // A home is the buffer of its largest result.
    let mut largest: Vec<Option<&Arc<dyn Buffer>>> = vec![None; homes.bytes.len()];
    for ((_, buffer), &home) in inner.iter().zip(&homes.of) {
        if largest[home].is_none_or(|known| known.bytes() < buffer.bytes()) {
            largest[home] = Some(buffer);
        }
    }
    let moved: HashMap<*const (), &Arc<dyn Buffer>> =
        inner.iter().zip(&homes.of).filter_map(|((_, own), &home)| Some((address(own), largest[home]?))).collect();
    for command in commands {
        for buffer in buffers(command) {
            if let Some(home) = moved.get(&address(buffer)) {
                *buffer = Arc::clone(home);
            }
        }
    }
    homes.bytes.iter().sum()
}
