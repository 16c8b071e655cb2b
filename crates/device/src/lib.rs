//! The boundary to devices: two traits, the data that crosses it, and nothing about any one API.
//!
//! A [`Backend`] finds and opens devices; a [`Device`] allocates, transfers, compiles and runs. Everything that may wait is a
//! future. Order is the order of calls: what [`Device::submit`] is given first runs first.

mod chain;
#[doc(hidden)]
pub mod detached;
pub mod expression;
mod function;
mod images;
mod info;
pub mod native;
#[doc(hidden)]
pub mod needs;
#[doc(hidden)]
pub mod pool;
#[doc(hidden)]
pub mod recording;
mod refusal;
mod sharing;
mod texture;

use cantus_base::{error, tensor};
use cantus_kernel as kernel;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use detached::{Detached, detached};
pub use info::{Capabilities, DeviceInfo, DeviceKind, Execution, Identity, Limits, PciAddress};
pub use pool::{MemoryFigures, Pool, Request, Taken};
pub use recording::{CommandList, Recording, UniformChange};
pub use refusal::{Ran, Refusal};
pub use sharing::{DriverMemory, Sharing};
pub use texture::{ROW_ALIGNMENT, TextureAccess, TextureView, Textures};

use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// `Send` where threads exist; nothing on the web, where wgpu's types stay on their thread.
#[cfg(not(target_arch = "wasm32"))]
pub trait MaybeSend: Send {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + ?Sized> MaybeSend for T {}
/// `Send` where threads exist; nothing on the web, where wgpu's types stay on their thread.
#[cfg(target_arch = "wasm32")]
pub trait MaybeSend {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> MaybeSend for T {}

/// `Sync` where threads exist; nothing on the web.
#[cfg(not(target_arch = "wasm32"))]
pub trait MaybeSync: Sync {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Sync + ?Sized> MaybeSync for T {}
/// `Sync` where threads exist; nothing on the web.
#[cfg(target_arch = "wasm32")]
pub trait MaybeSync {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> MaybeSync for T {}

/// A boxed future, `Send` where threads exist.
#[cfg(not(target_arch = "wasm32"))]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A boxed future, `Send` where threads exist.
#[cfg(target_arch = "wasm32")]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Returns a future that is ready.
pub fn ready<'a, T: MaybeSend + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

/// The devices that a backend found.
#[derive(Debug, Clone, Default)]
pub struct Probe {
    /// The devices, in the order of their index.
    pub devices: Vec<DeviceInfo>,
    /// The reason why there is no device, or a note for the user.
    pub reason: Option<String>,
}

impl Probe {
    /// Creates a probe that found these devices.
    #[must_use]
    pub fn found(devices: Vec<DeviceInfo>) -> Self {
        Self { devices, reason: None }
    }

    /// Creates a probe that found no device, for that reason.
    #[must_use]
    pub fn none(reason: impl Into<String>) -> Self {
        Self { devices: Vec::new(), reason: Some(reason.into()) }
    }
}

/// Options for opening devices.
///
/// ```
/// # use std::time::Duration;
/// let options = cantus::backend::OpenOptions::new().memory_limit(1 << 30).timeout(Duration::from_secs(10));
/// assert_eq!(options.memory_limit, Some(1 << 30));
/// ```
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Limit on the engine's memory on the device, in bytes; `None`: the device's own limit.
    pub memory_limit: Option<u64>,
    /// Time limit on a batch or a transfer.
    pub timeout: Option<Duration>,
    /// The time limit for workgroups that run together on the CPU; `None`: no limit.
    pub stall_limit: Option<Duration>,
    /// Look for stores out of range, on the CPU.
    pub check_stores: bool,
    /// Measure each kernel's time on the device, if possible.
    pub profile: bool,
    /// Prefer the device that draws less power, if there is a choice.
    pub low_power: bool,
    /// Run portable kernels only: no native kernel, no library of the vendor's.
    pub without_native: bool,
    /// Folder for data to remember between runs; `None`: nothing is stored.
    pub cache_folder: Option<std::path::PathBuf>,
}

impl OpenOptions {
    /// Creates options without limits, profile and cache folder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the memory on the device, in bytes.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Limits the time of each batch and each transfer.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets whether to measure each kernel's time, on devices that can.
    #[must_use]
    pub fn profile(mut self, profile: bool) -> Self {
        self.profile = profile;
        self
    }

    /// Runs portable kernels only: no native kernels, no vendor's libraries.
    #[must_use]
    pub fn without_native(mut self) -> Self {
        self.without_native = true;
        self
    }

    /// Sets whether to prefer devices that draw less power.
    #[must_use]
    pub fn low_power(mut self, low_power: bool) -> Self {
        self.low_power = low_power;
        self
    }

    /// Sets the folder for data to remember between runs.
    #[must_use]
    pub fn cache_folder(mut self, folder: impl Into<std::path::PathBuf>) -> Self {
        self.cache_folder = Some(folder.into());
        self
    }
}

/// A way to reach devices.
///
/// An app adds its own with [`Registry::register`]. In this library a backend is:
///
/// 1. a folder in `crates/gpu/src`, named like the backend: `mod.rs` (this trait), `device.rs` ([`Device`]), `queue.rs` (batches), `program.rs` (kernels),
///    `memory.rs` (buffers, over a [`Pool`]) and `shared.rs` (what these share), in this order: none imports from one before it;
/// 2. its feature, which turns on the internal features of what it shares with others (`_device`: checks, needs, health);
/// 3. its module in `crates/gpu/src/lib.rs`, and one line in [`Registry::with_defaults`] (`crates/engine/src/backend/registry.rs`).
///
/// The conformance suite runs every kernel on every device that the registry finds.
pub trait Backend: MaybeSend + MaybeSync {
    /// Short lower-case name, as in `--backend NAME`.
    fn name(&self) -> &str;
    /// Priority of its best kind of device; higher is preferred. Each device has its own in [`DeviceInfo::priority`].
    fn priority(&self) -> i32;
    /// False when a quick look shows that a probe would find no device above this priority: an engine that has one of that
    /// priority may then do without a probe, which can take a tenth of a second.
    fn may_exceed(&self, priority: i32) -> bool {
        let _ = priority;
        true
    }
    /// Finds the devices, or the reason for none. Never panics, never needs a library at link time.
    fn probe(&self) -> BoxFuture<'_, Probe>;
    /// Opens the device of that index of the probe.
    ///
    /// # Errors
    /// When there is no such device or it does not open.
    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>>;
}

/// A kernel compiled for one device. Backends downcast it (`dyn Any`) to their own type.
pub trait Program: Any + MaybeSend + MaybeSync {
    /// Returns whether a native kernel runs in its place for these contents of its uniform `words` and this number of workgroups.
    fn is_taken_over(&self, words: &[u8], workgroups: [u32; 3]) -> bool {
        let _ = (words, workgroups);
        false
    }
}

/// Memory on one device. Backends downcast it (`dyn Any`) to their own type. Dropping the last reference frees it.
pub trait Buffer: Any + MaybeSend + MaybeSync {
    /// Size in bytes as asked for, at least.
    fn bytes(&self) -> u64;
}

impl std::fmt::Debug for dyn Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for dyn Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// Host memory of another owner, which must keep it until this is dropped.
pub struct HostMemory {
    start: NonNull<u8>,
    bytes: u64,
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: plain memory; whoever made this promised that any thread may read it while the owner lives.
unsafe impl Send for HostMemory {}
// SAFETY: any number of threads may read, by the same promise.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Describes `bytes` bytes from `start` on, which `owner` keeps alive.
    ///
    /// # Safety
    /// The memory must be valid for reads by any thread, and nobody may write to it, until `owner` is dropped. Kernels may write to it if they bind it
    /// for writing.
    pub unsafe fn new(start: NonNull<u8>, bytes: u64, owner: impl Any + Send + Sync) -> Self {
        Self { start, bytes, _owner: Box::new(owner) }
    }

    /// Returns the first byte.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl std::fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostMemory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The contents of a new buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Zeros.
    Zeroed,
    /// Anything: the caller promises that every byte is written before it is read.
    Overwritten,
}

impl Contents {
    /// Returns the bytes to clear of a buffer of this size in memory that may hold anything: all of it, or only the padding after a size that is not a
    /// multiple of 4, which kernels see and nobody writes.
    #[must_use]
    pub fn stale(self, bytes: u64) -> std::ops::Range<u64> {
        match self {
            Self::Zeroed => 0..padded(bytes),
            Self::Overwritten => bytes & !3..padded(bytes),
        }
    }
}

/// Returns the reason why there is no device of an index, with the number of devices.
#[doc(hidden)]
#[must_use]
pub fn devices_text(count: usize) -> String {
    match count {
        0 => "it has no device".to_owned(),
        1 => "it has one device, number 0".to_owned(),
        _ => format!("it has {count} devices, numbered 0 to {}", count - 1),
    }
}

/// Returns the size of a buffer that kernels may see: rounded up to WebGPU's multiple of 4.
#[doc(hidden)]
pub fn padded(bytes: u64) -> u64 {
    bytes.div_ceil(4).saturating_mul(4)
}

/// A flag that stops work in progress: at loop back-edges on the CPU, before the submission elsewhere.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Creates a flag that is not raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Raises the flag.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Lowers the flag, so that it can be used again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
    /// Returns whether the flag is raised.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    /// Returns the flag itself, for an executor that polls it.
    #[must_use]
    pub fn as_atomic(&self) -> &AtomicBool {
        &self.0
    }
}

/// A resource bound to one binding of a kernel.
#[derive(Debug, Clone)]
pub enum Bound {
    /// `bytes` bytes of a buffer from `offset` on.
    Buffer {
        /// The buffer, made by the same device.
        buffer: Arc<dyn Buffer>,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// The contents of a uniform binding, for this dispatch alone.
    Uniform(Vec<u8>),
}

/// One kernel to run.
#[derive(Debug, Clone)]
pub struct Dispatch {
    /// The compiled kernel, made by the same device.
    pub program: Arc<dyn Program>,
    /// Name for errors and metrics.
    pub label: Arc<str>,
    /// One entry per binding, in the order of `Reflection::bindings`. Sizes have been checked against the layouts. Only where
    /// [`Device::textures`] is there do textures and samplers follow.
    pub bindings: Vec<Bound>,
    /// Workgroups in x, y, z. Any of them may exceed a device's limit per dimension: the device folds or refuses.
    pub workgroups: [u32; 3],
    /// Any of these stops the work.
    pub cancel: Vec<CancelFlag>,
    /// The operation that the kernel computes, if a vendor's library may compute it instead.
    pub stated: Option<Arc<native::Stated>>,
}

impl Dispatch {
    /// Creates a dispatch without a flag that stops it.
    #[must_use]
    pub fn new(
        program: Arc<dyn Program>,
        label: impl Into<Arc<str>>,
        bindings: Vec<Bound>,
        workgroups: [u32; 3],
    ) -> Self {
        Self { program, label: label.into(), bindings, workgroups, cancel: Vec::new(), stated: None }
    }

    /// Returns an error if the dispatch was cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check_cancelled(&self) -> Result<()> {
        if self.cancel.iter().any(CancelFlag::is_cancelled) {
            return Err(Error::Cancelled { what: self.label.to_string() });
        }
        Ok(())
    }
}

/// One step of a batch.
#[derive(Debug, Clone)]
pub enum Command {
    /// Runs a kernel.
    Dispatch(Dispatch),
    /// Copies within the device.
    Copy {
        /// Buffer to copy from.
        source: Arc<dyn Buffer>,
        /// Offset in the source, in bytes.
        source_offset: u64,
        /// Buffer to copy to; not the same as `source`.
        target: Arc<dyn Buffer>,
        /// Offset in the target, in bytes.
        target_offset: u64,
        /// The number of bytes. Offsets and size are multiples of 4.
        bytes: u64,
    },
}

impl Command {
    /// Returns an error if it is a dispatch that was cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check_cancelled(&self) -> Result<()> {
        match self {
            Self::Dispatch(dispatch) => dispatch.check_cancelled(),
            Self::Copy { .. } => Ok(()),
        }
    }
}

/// The time that a kernel ran on the device, by the device's own clock.
#[derive(Debug, Clone)]
pub struct KernelTime {
    /// The dispatch's label.
    pub label: Arc<str>,
    /// The start, if the device's clock can be compared with the host's.
    pub start: Option<web_time::Instant>,
    /// The time.
    pub time: Duration,
}

/// Figures of the native kernels that took over from translated ones on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TakeoverFigures {
    /// The native kernel.
    pub name: &'static str,
    /// The number of launches or recordings.
    pub launches: u64,
    /// The reason why it was not used, if the translated kernel ran in its place.
    pub refusal: Option<String>,
}

impl TakeoverFigures {
    /// Creates figures without launches.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, launches: 0, refusal: None }
    }
}

/// A device's part of a sum over devices, and its copy of the sum.
#[derive(Debug, Clone)]
pub struct SumPart {
    /// Its part.
    pub from: Arc<dyn Buffer>,
    /// The sum.
    pub into: Arc<dyn Buffer>,
}

/// One opened device.
pub trait Device: Any + MaybeSend + MaybeSync {
    /// Returns its description and features.
    fn info(&self) -> &DeviceInfo;

    /// Compiles a kernel. Programs are cached by the engine.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] with the construct when the device lacks something that the kernel needs.
    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>>;

    /// Checks, before anything is recorded, that the device can run this many workgroups of the program.
    ///
    /// # Errors
    /// [`crate::Error::Limit`] naming the limit.
    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()>;

    /// Checks, before anything is recorded, that these buffers and uniforms can be bound to the program together.
    ///
    /// # Errors
    /// [`crate::Error::Binding`] naming the bindings: a range outside of the device's limits, a buffer both read and written.
    fn check_bindings(&self, program: &dyn Program, label: &str, bindings: &[Bound]) -> Result<()> {
        let _ = (program, label, bindings);
        Ok(())
    }

    /// Takes memory; `label` names it in errors. `bytes` may be any number but 0.
    ///
    /// # Errors
    /// [`crate::Error::MemoryLimit`] or [`crate::Error::OutOfMemory`].
    fn allocate<'a>(&'a self, bytes: u64, contents: Contents, label: &'a str)
    -> BoxFuture<'a, Result<Arc<dyn Buffer>>>;

    /// The first byte of a buffer, on a device whose memory is the host's; `None` elsewhere. Whoever reads there waits for [`Device::finish`]
    /// first, and keeps the buffer.
    fn host_address(&self, buffer: &Arc<dyn Buffer>) -> Option<NonNull<u8>> {
        let _ = buffer;
        None
    }

    /// Memory of the host's as a buffer, on a device that computes in it; gives it back elsewhere.
    ///
    /// # Errors
    /// The memory itself.
    fn adopt(&self, memory: HostMemory) -> Result<Arc<dyn Buffer>, HostMemory> {
        Err(memory)
    }

    /// Returns the means to share memory with other libraries that use the same driver; `None` if the device cannot.
    fn sharing(&self) -> Option<&dyn Sharing> {
        None
    }

    /// Returns the means to bind kernels to an app's own textures; `None` on a device that shares no app's API.
    fn textures(&self) -> Option<&dyn Textures> {
        None
    }

    /// Writes host bytes, after everything submitted so far.
    ///
    /// # Errors
    /// When the range is outside of the buffer, or the device failed.
    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>>;

    /// Reads into host memory, after everything submitted so far.
    ///
    /// # Errors
    /// When the range is outside of the buffer, the device failed, is lost, or the time limit passed.
    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>>;

    /// Starts a batch. Encoding and queueing happen in the call; the future resolves when the device can say whether the batch was
    /// accepted (not: finished). It must be awaited, or its error is lost.
    ///
    /// # Errors
    /// [`Refusal`], which says which commands ran.
    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>>;

    /// As [`Device::submit`], for a caller who calls [`Device::help`] next: no other thread need begin with it.
    ///
    /// # Errors
    /// As [`Device::submit`].
    fn submit_awaited(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        self.submit(batch)
    }

    /// Called by a thread that waits for what was submitted, and holds no lock: a device may compute on it.
    fn help(&self) {}

    /// Checks a batch and keeps it, to be run again and again by [`Device::replay`]. Nothing runs yet. What the batch refers to stays
    /// alive as long as the recording does; uniforms keep the contents that they have now, buffers are read as they are at each replay.
    ///
    /// Without a way of the device's own, the commands are kept and submitted again each time.
    ///
    /// # Errors
    /// As [`Device::submit`], for what can be known before it runs.
    fn record<'a>(&'a self, batch: &'a [Command]) -> BoxFuture<'a, Result<Arc<dyn Recording>>> {
        ready(Ok(Arc::new(CommandList(batch.to_vec())) as Arc<dyn Recording>))
    }

    /// Starts a recorded batch once more, after everything submitted so far, as [`Device::submit`] does. A raised cancel flag of one of
    /// its dispatches stops it before it starts. The future must be awaited, or its error is lost.
    ///
    /// # Errors
    /// [`crate::Error::InvalidState`] when another device made the recording; otherwise as [`Device::submit`].
    fn replay(&self, recording: &Arc<dyn Recording>) -> BoxFuture<'static, Result<(), Refusal>> {
        match CommandList::of(&**recording) {
            Some(list) => self.submit(list.0.clone()),
            None => ready(Err(recording::foreign(self.info()).into())),
        }
    }

    /// Changes uniforms of a recorded batch, for the replays that start from now on; those under way keep what they had. False where the device cannot
    /// do so in place, and nothing has changed: the caller records the batch anew.
    ///
    /// # Errors
    /// A device that is lost.
    fn update(&self, recording: &Arc<dyn Recording>, changes: &[UniformChange]) -> Result<bool> {
        let _ = (recording, changes);
        Ok(false)
    }

    /// Waits until everything submitted so far has finished.
    ///
    /// # Errors
    /// Failures of earlier work, a lost device, the time limit.
    fn finish(&self) -> BoxFuture<'_, Result<()>>;

    /// Copies from a buffer of another device without a way through host memory, where the two can; `None` where they cannot, and the
    /// caller reads and writes. Both buffers hold `bytes` bytes at least.
    fn copy_from<'a>(
        &'a self,
        target: &'a Arc<dyn Buffer>,
        other: &'a dyn Device,
        source: &'a Arc<dyn Buffer>,
        bytes: u64,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        let _ = (target, other, source, bytes);
        None
    }

    /// Element-wise sums of `count` float32 over devices, of which this is the first, by a library of the vendor's; `None` where it has none for them, and
    /// the caller adds up in host memory. What was submitted to the devices before comes before it, and it has ended when the future has.
    fn sum_over<'a>(
        &'a self,
        members: Vec<(&'a dyn Device, SumPart)>,
        count: usize,
    ) -> BoxFuture<'a, Option<Result<()>>> {
        let _ = (members, count);
        ready(None)
    }

    /// The operation as a program of the device's own (a vendor's library), to be dispatched once with the operation's bindings; `None`
    /// where the device has none, and a WGSL kernel is run.
    fn native(&self, operation: &native::NativeOperation) -> Option<Arc<dyn Program>> {
        let _ = operation;
        None
    }

    /// Returns whether a dispatch that states this product runs by a library of the vendor's in place of its kernel.
    fn takes(&self, product: &native::ProductShape) -> bool {
        let _ = product;
        false
    }

    /// Returns whether there are native kernels for kernels of this entry point: [`Program::is_taken_over`] says which run.
    fn has_takeovers(&self, entry: &str) -> bool {
        let _ = entry;
        false
    }

    /// Native kernels and libraries that ran in place of translated kernels, or failed to.
    fn takeovers(&self) -> Vec<TakeoverFigures> {
        Vec::new()
    }

    /// Returns whether the engine asks it kernels with known answers before it runs an app's: true for what goes through a driver's compiler.
    fn must_prove(&self) -> bool {
        false
    }

    /// The most numbers of an array of an invocation's own with a computed index, and the most cases of a `switch`, that its driver's compiler
    /// takes within seconds; `None` where no limit is known.
    fn longest(&self) -> Option<u64> {
        None
    }

    /// Memory figures.
    fn memory(&self) -> MemoryFigures;

    /// Gives pooled memory back to the system.
    fn trim(&self);

    /// Device times measured since the last call (empty unless opened with `profile` and the device has timestamps).
    fn take_times(&self) -> Vec<KernelTime> {
        Vec::new()
    }
}
