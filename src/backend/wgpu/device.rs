//! An opened device: what its parts share, and the [`Device`] trait over them.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use web_time::Instant;

use super::errors::Health;
use super::groups::GroupCache;
use super::memory::RawBuffer;
use super::program::WgpuProgram;
use super::signal::{Failure, Signal};
use super::uniforms::UniformArena;
use crate::backend::{
    Bound, BoxFuture, Buffer, Command, Contents, Device, DeviceInfo, KernelTime, MemoryFigures, OpenOptions, Pool,
    Program, ready,
};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// What the parts of a device share. Buffers and programs keep it alive.
pub(super) struct Shared {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) info: DeviceInfo,
    pub(super) limits: wgpu::Limits,
    pub(super) health: Arc<Health>,
    pub(super) pool: Pool<RawBuffer>,
    pub(super) profile: bool,
    pub(super) times: Arc<Mutex<Vec<KernelTime>>>,
    state: Mutex<State>,
    timeout: Option<Duration>,
    /// False for an app's own device, whose error callbacks are the app's.
    owned: bool,
    ids: AtomicU64,
    /// On GL all threads share one context: whoever calls wgpu holds this.
    turn: Option<Arc<Mutex<()>>>,
    #[cfg(not(target_arch = "wasm32"))]
    poller: super::poll::Poller,
}

/// What is changed under the device's lock.
pub(super) struct State {
    pub(super) groups: GroupCache,
    pub(super) uniforms: UniformArena,
    /// Reused buffers that are to be cleared before the next work, by id.
    pub(super) clears: FxHashMap<u64, wgpu::Buffer>,
    /// Staging buffers for reads, not in use.
    pub(super) staging: Vec<wgpu::Buffer>,
    /// Bytes written since the last submission.
    pub(super) unsubmitted: u64,
}

impl Shared {
    /// The device's lock. The turn, where both are taken, is taken first.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This thread's turn on an API with one context for all threads.
    pub(super) fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn with_groups<T>(&self, work: impl FnOnce(&mut GroupCache) -> T) -> T {
        work(&mut self.lock().groups)
    }

    /// A number that no other buffer or pipeline of this device has.
    pub(super) fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// When what begins now must be finished.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    /// Sees to it that a signal is answered, by the deadline.
    pub(super) fn watch(&self, signal: &Signal, submission: wgpu::SubmissionIndex, deadline: Option<Instant>) {
        if self.overdue(deadline) {
            signal.answer(Err(Failure::Timeout));
        }
        #[cfg(not(target_arch = "wasm32"))]
        self.poller.watch(signal, submission, deadline);
        // The browser answers by itself, and gives up devices that hang.
        #[cfg(target_arch = "wasm32")]
        let _ = submission;
    }

    /// True when a driver whose submissions block (software drivers' do) has used up the time. The device is lost then.
    pub(super) fn overdue(&self, deadline: Option<Instant>) -> bool {
        let overdue = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if overdue {
            self.health.lose(super::errors::OVERDUE);
        }
        overdue
    }

    /// The error for an answer that did not come.
    pub(super) fn failure(&self, failure: Failure, what: &str) -> Error {
        let device = self.info.name.clone();
        match failure {
            Failure::Timeout => {
                let limit = self.timeout.unwrap_or_default().as_millis();
                Error::Timeout { what: what.to_owned(), device, milliseconds: u64::try_from(limit).unwrap_or(u64::MAX) }
            }
            Failure::Lost => {
                self.health.lose("it gave no answer");
                self.health.lost_error()
            }
            Failure::Silent => Error::Device {
                device,
                action: what.to_owned(),
                message: "the device finished the work but never answered".to_owned(),
            },
        }
    }

    /// Notices the loss of a device whose callbacks belong to an app: wgpu maps nothing on a device that is gone.
    pub(super) fn check_alive(&self) -> Result<()> {
        if self.owned {
            return Ok(());
        }
        let alive = self.contained("asking for its state", || {
            let _turn = self.turn();
            let scopes = super::errors::Scopes::open(&self.device);
            let probe = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("cantus probe"),
                size: 4,
                usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::MAP_WRITE,
                mapped_at_creation: true,
            });
            let alive = probe.get_mapped_range_mut(..).is_ok();
            drop(scopes.close());
            alive
        })?;
        if alive {
            return Ok(());
        }
        self.health.lose("it was destroyed or given up");
        Err(self.health.lost_error())
    }

    /// Runs calls into wgpu. A panic in there (a defect, or a driver at its end) becomes an error.
    pub(super) fn contained<T>(&self, action: &str, work: impl FnOnce() -> T) -> Result<T> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|panic| self.defect(action, &*panic))
    }

    fn defect(&self, action: &str, panic: &(dyn Any + Send)) -> Error {
        Error::Device {
            device: self.info.name.clone(),
            action: action.to_owned(),
            message: format!("a defect inside wgpu or the driver: {}", super::errors::panic_text(panic)),
        }
    }

    /// As [`Shared::contained`] on a thread with a deep stack: wgpu's compilers recurse over the kernel.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn on_deep_stack<T: Send>(&self, action: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
        const STACK_BYTES: usize = 64 << 20;
        let fault = |message: String| Error::Device {
            device: self.info.name.clone(),
            action: action.to_owned(),
            message: format!("no thread could be started: {message}"),
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("cantus-compile".to_owned()).stack_size(STACK_BYTES);
            let thread = thread.spawn_scoped(scope, work).map_err(|error| fault(error.to_string()))?;
            thread.join().map_err(|panic| self.defect(action, &*panic))
        })
    }

    #[cfg(target_arch = "wasm32")]
    pub(super) fn on_deep_stack<T>(&self, action: &str, work: impl FnOnce() -> T) -> Result<T> {
        self.contained(action, work)
    }

    /// The error for a kernel that did not compile.
    pub(super) fn compile_error(&self, error: &wgpu::Error, name: &str) -> Error {
        self.lock().groups.clear();
        self.health.translate(error, &format!("compiling {name}"), name, 0)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // wgpu's queue waits for the work in flight when it goes. Work that missed its time limit may never end: then the queue stays.
        if self.health.is_stuck() {
            std::mem::forget((self.device.clone(), self.queue.clone()));
        }
    }
}

/// A device of the wgpu backend.
pub(super) struct WgpuDevice {
    pub(super) shared: Arc<Shared>,
}

impl WgpuDevice {
    /// Wraps an opened device. `owned`: its error callbacks are ours to set.
    pub(super) fn new(
        device: wgpu::Device,
        queue: wgpu::Queue,
        info: DeviceInfo,
        options: &OpenOptions,
        owned: bool,
    ) -> Self {
        let health = Health::new(info.name.clone());
        if owned {
            health.attach(&device);
        }
        let limits = device.limits();
        let state = State {
            groups: GroupCache::default(),
            uniforms: UniformArena::new(&limits),
            clears: FxHashMap::default(),
            staging: Vec::new(),
            unsubmitted: 0,
        };
        let turn = (device.adapter_info().backend == wgpu::Backend::Gl).then(Arc::default);
        let shared = Shared {
            #[cfg(not(target_arch = "wasm32"))]
            poller: super::poll::Poller::new(device.clone(), health.clone(), turn.clone()),
            device,
            queue,
            info,
            limits,
            health,
            pool: Pool::new(options.memory_limit),
            profile: options.profile,
            times: Arc::default(),
            state: Mutex::new(state),
            timeout: options.timeout,
            owned,
            ids: AtomicU64::new(1),
            turn,
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Device for WgpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn compile<'a>(&'a self, kernel: &'a Kernel) -> BoxFuture<'a, Result<Arc<dyn Program>>> {
        let compiling = match WgpuProgram::start(&self.shared, kernel) {
            Ok(compiling) => compiling,
            Err(error) => return ready(Err(error)),
        };
        Box::pin(async move {
            match compiling.caught.first().await {
                Some(error) => Err(self.shared.compile_error(&error, &compiling.program.name)),
                None if self.shared.health.is_lost() => Err(self.shared.health.lost_error()),
                None => Ok(Arc::new(compiling.program) as Arc<dyn Program>),
            }
        })
    }

    fn check_workgroups(&self, program: &dyn Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        let program = self.shared.own_program(program, label)?;
        super::checks::ids(program, label, workgroups)?;
        let limit = self.shared.limits.max_compute_workgroups_per_dimension;
        if workgroups.contains(&0) || workgroups.iter().all(|&count| count <= limit) {
            return Ok(());
        }
        super::checks::folded(&self.shared, program, label, workgroups).map(|_| ())
    }

    fn check_bindings(&self, program: &dyn Program, label: &str, bindings: &[Bound]) -> Result<()> {
        let program = self.shared.own_program(program, label)?;
        super::checks::bindings(&self.shared, program, label, bindings)
    }

    fn allocate<'a>(
        &'a self,
        bytes: u64,
        contents: Contents,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Buffer>>> {
        Box::pin(self.shared.clone().allocate(bytes, contents, label.into()))
    }

    fn write<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, data: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let buffer = self.shared.own_buffer(&**buffer, "a write")?;
            self.shared.write(buffer, offset, data).await
        })
    }

    fn read<'a>(&'a self, buffer: &'a Arc<dyn Buffer>, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let buffer = self.shared.own_buffer(&**buffer, "a read")?;
            self.shared.read(buffer, offset, into).await
        })
    }

    fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<()>> {
        match self.shared.submit(&batch) {
            Ok(submitted) => Box::pin(submitted.accepted()),
            Err(error) => ready(Err(error)),
        }
    }

    fn finish(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.shared.clone().finish())
    }

    fn memory(&self) -> MemoryFigures {
        self.shared.pool.figures()
    }

    fn trim(&self) {
        self.shared.trim();
    }

    fn must_prove(&self) -> bool {
        true
    }

    fn take_times(&self) -> Vec<KernelTime> {
        #[cfg(not(target_arch = "wasm32"))]
        {
            // The times arrive by callback, and callbacks by polling.
            let _ = self.shared.contained("taking times", || {
                let _turn = self.shared.turn();
                self.shared.device.poll(wgpu::PollType::Poll)
            });
        }
        std::mem::take(&mut *self.shared.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
