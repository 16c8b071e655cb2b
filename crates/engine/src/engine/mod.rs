//! The engine: ranks devices, places tensors, records dispatches, falls back, and notes what it did. It has no device code: a device is a `Device` of
//! `cantus-device`.
//!
//! # What comes in
//! Choices (`Builder`), values of the host, kernels with named bindings, native operations, and requests for results. Expressions come in as dispatches
//! and native operations: the evaluator (`ops/expr`) is a layer above.
//!
//! # Stages
//! 1. **Open** (`builder`, `rank`). Backends are probed, and the best device that opens is selected. The others remain
//!    candidates.
//! 2. **Make tensors** (`create`, `placement`). A new tensor goes to the selected device, or to the CPU where that is estimated to be faster.
//! 3. **Dispatch** (`dispatch`; `native` for native operations). Everything is checked, the kernel is compiled, the tensors are brought to one device,
//!    and one command is recorded. Before the first use of a kernel, known answers decide whether the driver gets its constructs right (`trust`).
//! 4. **Submit** (`slot`). Commands collect in a batch for each device. A full batch is submitted, as is one whose results are asked for.
//! 5. **Conclude** (`slot`, `memory_state`). The outcome of a batch says which commands ran. Tensors that were not computed are marked as lost. Where the
//!    outcome is unknown (the device was lost, or the time limit passed), everything that the batch writes is lost.
//! 6. **Read** (`transfer`). A read submits, waits for the outcome, returns the error of a lost tensor, evaluates checks of indices (`index_checks`), and
//!    copies.
//!
//! When compiling, allocating or a driver fails, `next_after` gives the next device, and `relocate` moves the tensors there.
//!
//! # What carries it
//! - `Engine` is a handle of `Shared`: options, devices, candidates, events, metrics.
//! - `Slot` is an opened device with its programs, its batch and its submissions. Slot 0 is the selected device.
//! - `Tensor` is a handle of `Inner`: shape, dtype and a `Place` (slot, buffer, state) in a `Tracker`. `tracker` lists what it tracks.
//! - `context` is a stack of what work is inside of: captures, memory scopes, cancel flags, traces. A future enters it at each poll.
//!
//! # What holds
//! - A command names buffers of the slot on which it is recorded. Recording holds `Moves` shared. A move holds it exclusively while it notes the tensor's
//!   place and version and again while it sets the new place, but not while it copies. If the tensor was written in between, the move begins again.
//! - Commands of a slot run in the order in which they were recorded: batches are submitted under the lock of `Slot::work`.
//! - The host writes after everything recorded before (`Slot::begin_write`).
//! - A loss belongs to memory. Whatever was computed from lost memory is lost too, and its error names the input.
//! - Whatever may wait is a future and may be dropped at any await. Work that it recorded stays recorded.
//! - Tensors of two engines never meet in a command (`Error::AnotherEngine`).
//!
//! # What is surprising
//! - Recording succeeds before anything has run. A failure appears at a read of what it lost, and once at `Engine::finish`.
//! - A dispatch runs where most of its bytes are, not on the selected device.
//! - A device that was lost keeps its slot and gets no new work. New tensors go to the next device. Tensors that it computed before are not marked at once:
//!   a read returns the device's error, and a dispatch that would move one to another device fails with `TensorLost`.
//!
//! # An example
//! `x = engine.tensor(&[1_u32, 2, 3])`, a dispatch of a kernel `double` over `x`, and `x.to_vec()`.
//! - `tensor` asks for a place, allocates 12 bytes there and uploads.
//! - The dispatch checks that `x` fits the binding, finds or compiles the program, records a `Command::Dispatch` with the buffer of `x`, and counts the
//!   version of `x` up. Nothing is submitted.
//! - `to_vec` settles the slot: the batch of one command is submitted and its outcome awaited. It ran, so `x` is not lost, and its bytes are read.

#[doc(hidden)]
pub mod blocking;
mod builder;
mod capture;
pub(crate) mod context;
mod create;
mod dispatch;
mod driver_view;
mod event;
mod host;
pub(crate) mod index_checks;
mod lives;
mod memory_state;
mod metrics;
#[cfg(feature = "wgsl")]
mod native;
mod placement;
#[cfg(not(target_arch = "wasm32"))]
mod printed;
mod profile;
#[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
mod publish;
mod rank;
#[cfg(feature = "wgsl")]
pub(crate) mod recorded;
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
mod rehearsal;
mod relocate;
#[doc(hidden)]
pub mod remembered;
mod scope;
mod slot;
pub(crate) mod tensor;
#[cfg(feature = "wgsl")]
mod texture;
pub(crate) mod trace;
mod tracker;
mod transfer;
#[cfg(feature = "wgsl")]
mod trust;
#[cfg(feature = "wgsl")]
mod tuning;
mod uniform;

use crate::backend::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(not(target_arch = "wasm32"))]
pub use blocking::waiting;
pub use builder::Builder;
#[cfg(feature = "wgsl")]
pub(crate) use capture::Captured;
pub use capture::{Graph, GraphInputs};
pub use dispatch::{DispatchBuilder, Extent};
pub use driver_view::{DriverStream, DriverView};
pub use event::{Event, EventKind};
pub use host::HostView;
#[cfg(all(feature = "_test", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub use rehearsal::compiled;

#[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
#[doc(inline)]
pub use cantus_publish::{
    DeviceFigures, Figures, KernelFigures, PublishedEvent, publish_as, publish_folder, published, published_in,
};
pub use metrics::MetricRow;
pub use profile::{Profile, ProfileRow, Span};
#[cfg(not(target_arch = "wasm32"))]
pub use rank::survey;
pub use rank::{BackendSurvey, Selection, Survey, survey_async};
pub use scope::Kept;
pub use tensor::Tensor;
#[cfg(feature = "wgsl")]
pub use texture::{Pixels, Resource, Texture, TextureDescriptor, TextureDimension};
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
pub use trust::hand_on;
#[cfg(feature = "wgsl")]
pub use trust::{Verdict, is_refusal, wrong_answers};
#[cfg(feature = "wgsl")]
pub use tuning::{TuneOptions, Tuned};
pub use uniform::Value;

use memory_state::MemoryState;
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
pub use native::sum_over_devices;
pub(crate) use placement::Work;
pub(crate) use slot::Slot;
use tracker::Place;

use crate::backend::{Buffer, Contents, Device, MemoryFigures, OpenOptions};
use crate::config::Fallback;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use cantus_base::listed::Listed;

/// Runs kernels on the best device of the machine, and on the next one when that fails. Clones are cheap and share the engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

/// An engine's policy for its devices.
pub(crate) struct Policy {
    fallback: Fallback,
    placement: bool,
    requested: bool,
    unproven: bool,
    refuse_wrong: bool,
    trusts_places: bool,
    reproducible: bool,
}

/// The state that all clones and tensors of an engine share.
pub(crate) struct Shared {
    options: OpenOptions,
    fallback: Fallback,
    /// The device was requested by name, or handed over: it gets all kernels that it takes.
    #[cfg_attr(not(feature = "wgsl"), expect(dead_code, reason = "for known answers"))]
    requested: bool,
    /// Devices are not asked kernels with known answers.
    #[cfg_attr(not(feature = "wgsl"), expect(dead_code, reason = "for known answers"))]
    unproven: bool,
    /// A kernel that needs what a device gets wrong is refused there, also where it was requested.
    #[cfg_attr(not(feature = "wgsl"), expect(dead_code, reason = "for known answers"))]
    refuse_wrong: bool,
    /// Kernels run in their reproducible form.
    pub(crate) reproducible: bool,
    selection: Selection,
    /// Threads that ask devices kernels with known answers.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    asking: Mutex<Vec<trust::Asking>>,
    /// Opened devices; the first is the selected one.
    slots: Mutex<Vec<Arc<Slot>>>,
    /// Devices that may be opened when one fails, best first.
    candidates: Mutex<Vec<rank::Candidate>>,
    placement: placement::Placement,
    events: event::Log,
    metrics: metrics::Metrics,
    profiler: profile::Profiler,
    /// The file for the profile of the engine's whole life.
    #[cfg(all(feature = "trace", not(target_arch = "wasm32")))]
    trace: std::sync::OnceLock<(std::path::PathBuf, web_time::Instant)>,
    moves: relocate::Moves,
    /// Places are taken as they are: whoever made the engine looks at them.
    #[cfg_attr(not(feature = "wgsl"), expect(dead_code, reason = "operations alone look at indices"))]
    pub(crate) trusts_places: bool,
    unseen: index_checks::Unseen,
    /// The thread that publishes figures, if any.
    #[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
    publisher: std::sync::OnceLock<cantus_publish::Publisher>,
}

impl Engine {
    /// Opens the best device. Reads no configuration and no `CANTUS_*` variables; see [`Engine::from_env`].
    ///
    /// ```
    /// let engine = cantus::Engine::new()?;
    /// println!("{}", engine.selected().device.name);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoDevice`] with every candidate's reason.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new() -> Result<Self> {
        Self::builder().build()
    }

    /// [`Engine::new`] as a future.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub async fn new_async() -> Result<Self> {
        Self::builder().build_async().await
    }

    /// Opens a device by the user's configuration file and `CANTUS_*` variables ([`crate::Config::load`]), as the program does.
    ///
    /// # Errors
    /// [`Error::Config`] naming the file or variable that cannot be understood; [`Error::NoDevice`] with every candidate's reason.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn from_env() -> Result<Self> {
        blocking::block_on(Self::from_env_async())
    }

    /// [`Engine::from_env`] as a future. On the web, which has neither files nor variables, it is [`Engine::new_async`].
    ///
    /// # Errors
    /// As [`Engine::from_env`].
    pub async fn from_env_async() -> Result<Self> {
        Self::builder().config(crate::Config::load()?).build_async().await
    }

    /// Returns a builder, for the choices to make before opening: backend, device, limits, fallback.
    ///
    /// ```
    /// let engine = cantus::Engine::builder().backend("cpu").memory_limit(1 << 30).build()?;
    /// assert_eq!(engine.selected().device.backend, "cpu");
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Creates an engine on an app's own wgpu device, which it shares: tensors' buffers ([`crate::backend::wgpu::raw_buffer`]) can be drawn from
    /// without a copy. The device's features and limits stay as they are, and there is nothing to fall back to.
    #[cfg(feature = "wgpu")]
    #[must_use]
    pub fn from_wgpu(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let options = OpenOptions::default();
        Self::on_device(crate::backend::wgpu::from_device(device, queue, &options), options)
    }

    /// An engine on one opened device, with nothing to fall back to.
    pub(crate) fn on_device(device: Arc<dyn Device>, options: OpenOptions) -> Self {
        let why = "handed over by the app".to_owned();
        let policy = Policy {
            fallback: Fallback::Never,
            placement: false,
            requested: true,
            unproven: false,
            refuse_wrong: false,
            trusts_places: false,
            reproducible: false,
        };
        Self::assemble(options, policy, device, why, Vec::new())
    }

    pub(crate) fn from_shared(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) fn assemble(
        options: OpenOptions,
        policy: Policy,
        device: Arc<dyn Device>,
        why: String,
        candidates: Vec<rank::Candidate>,
    ) -> Self {
        let selection = Selection { device: device.info().clone(), why };
        let folder = options.cache_folder.clone();
        let slot = Slot::new(device, &options);
        Self {
            shared: Arc::new(Shared {
                options,
                fallback: policy.fallback,
                requested: policy.requested,
                unproven: policy.unproven,
                refuse_wrong: policy.refuse_wrong,
                reproducible: policy.reproducible,
                selection,
                #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
                asking: Mutex::default(),
                slots: Mutex::new(vec![Arc::new(slot)]),
                candidates: Mutex::new(candidates),
                placement: placement::Placement::new(policy.placement, folder),
                events: event::Log::default(),
                metrics: metrics::Metrics::default(),
                profiler: profile::Profiler::default(),
                #[cfg(all(feature = "trace", not(target_arch = "wasm32")))]
                trace: std::sync::OnceLock::new(),
                moves: relocate::Moves::default(),
                trusts_places: policy.trusts_places,
                unseen: index_checks::Unseen::default(),
                #[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
                publisher: std::sync::OnceLock::new(),
            }),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the device that new tensors are made on, and why it was chosen.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let chosen = engine.selected();
    /// println!("{}: {}", chosen.device.name, chosen.why);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn selected(&self) -> &Selection {
        &self.shared.selection
    }

    /// Returns everything that was opened, skipped, placed, moved, lost or failed so far, oldest first (the last 4,096).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// for event in engine.events() {
    ///     println!("{event:?}");
    /// }
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.shared.events.list()
    }

    /// Per operation and device: how often, how long, how many bytes, how many fallbacks.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// engine.tensor(&[1.0_f32, 2.0])?.expr().exp().eval()?;
    /// assert!(engine.metrics().iter().any(|row| row.count == 1));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> Vec<MetricRow> {
        self.shared.metric_rows()
    }

    /// Memory figures of the selected device.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<f32>(&[1000])?;
    /// assert!(engine.memory().in_use >= x.byte_len());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn memory(&self) -> MemoryFigures {
        self.shared.primary().device().memory()
    }

    /// Returns memory kept for reuse to the system.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// drop(engine.zeros::<f32>(&[1 << 20])?);
    /// engine.trim();
    /// assert_eq!(engine.memory().in_use, 0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn trim(&self) {
        for slot in self.shared.open_slots() {
            slot.device().trim();
        }
    }

    /// Records an event of the selected device in [`Engine::events`]: for what spreads work over several engines.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// engine.record_event(cantus::engine::EventKind::FellBack, "rows 0 to 99 of another engine, which failed");
    /// # assert!(engine.events().iter().any(|event| event.message.starts_with("rows 0 to 99")));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn record_event(&self, kind: EventKind, message: &str) {
        self.shared.events.push(kind, &self.selected().device.name, message);
    }

    /// Returns whether two handles are of one engine.
    #[cfg(feature = "wgsl")]
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Begins a dispatch: bind tensors and set uniforms by name, set its size, and run it.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let double = cantus::Kernel::from_wgsl("
    ///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    ///     @compute @workgroup_size(64)
    ///     fn double(@builtin(global_invocation_id) id: vec3u) {
    ///         if id.x < arrayLength(&x) { x[id.x] *= 2u; }
    ///     }
    /// ")?;
    /// let x = engine.tensor(&[1_u32, 2, 3])?;
    /// engine.dispatch(&double).bind("x", &x).invocations(x.len()).run()?;
    /// assert_eq!(x.to_vec::<u32>()?, [2, 4, 6]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn dispatch<'a>(&'a self, kernel: &'a Kernel) -> DispatchBuilder<'a> {
        DispatchBuilder::new(self, kernel)
    }

    /// Submits the recorded work without waiting for it.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32])?;
    /// let y = (&x * 2.0).eval()?;
    /// engine.flush(); // the device works while the app does something else
    /// assert_eq!(y.item::<f32>()?, 2.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    pub fn flush(&self) {
        for slot in self.shared.open_slots() {
            self.shared.flush_slot(&slot);
        }
    }

    /// Waits until all work recorded so far has finished.
    ///
    /// # Errors
    /// The first failure of work since the last call, even if a read of a tensor that it lost has reported it already.
    pub fn finish_async(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let slots = self.shared.open_slots();
            for slot in &slots {
                self.shared.finish_slot(slot).await;
            }
            // Told after the last wait: a call that is dropped before swallows nothing.
            let failures: Vec<Error> = slots.iter().filter_map(|slot| slot.take_unreported()).listed();
            failures.into_iter().next().map_or(Ok(()), Err)
        })
    }
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl Engine {
    /// [`Engine::finish_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let y = engine.tensor(&[1.0_f32])?.expr().exp().eval()?;
    /// engine.finish()?; // it has been computed
    /// # drop(y);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn finish(&self) -> Result<()> {
        blocking::block_on(self.finish_async())
    }
}

impl Shared {
    fn metric_rows(&self) -> Vec<MetricRow> {
        for slot in self.open_slots() {
            self.collect_times(&slot);
        }
        self.metrics.rows()
    }

    pub(crate) fn primary(&self) -> Arc<Slot> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // The first slot is pushed when the engine is made and never removed.
        slots[0].clone()
    }

    /// Returns the options for opening devices.
    #[cfg(feature = "wgsl")]
    pub(crate) fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// Notes an event of a device.
    #[cfg(feature = "wgsl")]
    pub(crate) fn note(&self, kind: EventKind, device: &str, message: &str) {
        self.events.push(kind, device, message);
    }

    #[cfg(feature = "graph")]
    pub(crate) fn any_slot(&self, is_it: impl Fn(&Slot) -> bool) -> bool {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|slot| is_it(slot))
    }

    /// The devices that are open.
    pub(crate) fn open_slots(&self) -> Vec<Arc<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Memory on `slot`, or on the next device that has it.
    pub(crate) async fn allocate(
        self: &Arc<Self>,
        slot: Arc<Slot>,
        bytes: u64,
        contents: Contents,
        label: &Arc<str>,
    ) -> Result<Place> {
        let state = MemoryState::new(label);
        if bytes == 0 || self.is_rehearsing() {
            return Ok(Place { slot, buffer: None, state, released: None });
        }
        let mut tried = vec![slot];
        // Buffers are bound in units of 4 bytes; an f16 tensor of odd length has two bytes of padding.
        let padded = bytes.next_multiple_of(4);
        loop {
            let slot = tried[tried.len() - 1].clone();
            let attempt = match slot.failure() {
                Some(error) => Err(error),
                None => self.allocate_on(&slot, padded, contents, label).await,
            };
            match attempt {
                Ok(buffer) => return Ok(Place { slot, buffer: Some(buffer), state, released: None }),
                Err(error) => {
                    self.note_outcome::<()>(&slot, &Err(error.clone()));
                    tried.push(self.next_after(&tried, &error, label).await?);
                }
            }
        }
    }

    /// Allocates on a device. If it has no memory left, running work is awaited, which may free some.
    async fn allocate_on(
        &self,
        slot: &Arc<Slot>,
        bytes: u64,
        contents: Contents,
        label: &str,
    ) -> Result<Arc<dyn Buffer>> {
        let refused = match slot.device().allocate(bytes, contents, label).await {
            Err(error @ (Error::MemoryLimit { .. } | Error::OutOfMemory { .. })) => error,
            done => return done,
        };
        if !slot.is_busy() {
            return Err(refused);
        }
        self.finish_slot(slot).await;
        slot.device().allocate(bytes, contents, label).await
    }

    /// Submits a slot's pending commands. Failures come out where the outputs are read.
    pub(crate) fn flush_slot(&self, slot: &Slot) {
        slot.flush(&self.events);
    }

    /// Submits, waits until the device has accepted or refused, and marks what was lost.
    pub(crate) async fn settle(&self, slot: &Arc<Slot>) {
        slot.settle(&self.events).await;
        self.collect_times(slot);
    }

    /// Waits where too much is on its way to a device: batches, or bytes of results.
    pub(crate) async fn make_room(&self, slot: &Arc<Slot>) {
        slot.make_room(&self.events).await;
        // A capture and a scope keep their results.
        if !self.is_passing() && slot.is_full() {
            self.finish_slot(slot).await;
        }
    }

    /// Waits until all work of a slot so far has finished. What failed is kept for [`Engine::finish_async`].
    pub(crate) async fn finish_slot(&self, slot: &Arc<Slot>) {
        slot.settle(&self.events).await;
        if let Err(error) = slot.device().finish().await {
            slot.note_failure(&error);
            slot.report(&error, &self.events);
        }
        self.collect_times(slot);
    }

    fn collect_times(&self, slot: &Slot) {
        for time in slot.device().take_times() {
            // Known answers are asked beside the app's work.
            #[cfg(feature = "wgsl")]
            if &*time.label == trust::LABEL {
                continue;
            }
            self.metrics.time(&time.label, slot.name(), time.time);
            self.profiler.time(slot, &time);
        }
    }

    /// Records a failure; a lost device is not used for new work.
    pub(crate) fn note_outcome<T>(&self, slot: &Slot, result: &Result<T>) {
        if let Err(error) = result {
            slot.note_failure(error);
            self.events.push(EventKind::Failed, slot.name(), &error.to_string());
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("device", &self.selected().device.name).finish_non_exhaustive()
    }
}
