//! The device's queue: one thread that runs batches in order, so that a caller is never held up by a kernel. It is one of the threads that
//! kernels run on. (A queue that hands its kernels to others wakes them while it still runs itself: on two processors both of them then
//! woke on the same one and stayed there for milliseconds.) A caller who waits for a batch runs it on its own thread when its turn has come: no thread
//! has to wake for it. On the web, where nobody starts threads, batches run when they are submitted.
//!
//! Invariant that the memory relies on: buffers are read and written only by a job, or by a holder of `Queue::exclusive`, and the
//! two exclude each other by the lock `running`.

use std::any::Any;
#[cfg(not(target_arch = "wasm32"))]
use std::collections::VecDeque;
#[cfg(not(target_arch = "wasm32"))]
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Condvar;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use web_time::Instant;

use super::fault::Fault;
use super::memory::CpuBuffer;
use super::program::CpuProgram;
use crate::backend::{BoxFuture, Buffer, CancelFlag, Command, Dispatch, KernelTime, Refusal, ready};
use crate::error::{Error, Result};
use crate::spmd::{Beyond, Limits, Stopped};
#[cfg(not(target_arch = "wasm32"))]
use crate::threads::{Pool, within};

/// Times kept until they are asked for.
const KEPT_TIMES: usize = 1 << 16;

pub(super) struct Shared {
    device: String,
    limits: TimeLimits,
    running: Mutex<()>,
    times: Mutex<Vec<KernelTime>>,
}

/// Limits on the time that work may take.
#[derive(Clone, Copy)]
pub(super) struct TimeLimits {
    /// The limit on a batch.
    pub(super) timeout: Option<Duration>,
    /// The limit on workgroups that run together.
    pub(super) stall: Option<Duration>,
    /// Kernels are looked at for stores out of range.
    pub(super) check_stores: bool,
}

/// Takes batches in order; each runs on one of the threads below, or on that of a caller who waits for it.
#[cfg(not(target_arch = "wasm32"))]
pub(super) struct Queue {
    shared: Arc<Shared>,
    line: Arc<Line>,
    threads: Arc<Pool>,
}

#[cfg(target_arch = "wasm32")]
pub(super) struct Queue {
    shared: Arc<Shared>,
}

#[cfg(not(target_arch = "wasm32"))]
struct Job {
    batch: Vec<Command>,
    done: futures_channel::oneshot::Sender<Result<(), Refusal>>,
}

/// The batches that wait. Whoever takes the first one runs it, alone.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Default)]
struct Line {
    waiting: Mutex<Waiting>,
    /// The queue's thread sleeps here.
    work: Condvar,
}

#[cfg(not(target_arch = "wasm32"))]
#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// One is being run.
    busy: bool,
    /// No more will come.
    ended: bool,
    /// A job panicked: jobs that are not finished never will be.
    broken: bool,
}

#[cfg(not(target_arch = "wasm32"))]
impl Line {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch, for the queue's thread; `None` when there will be none.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            if !waiting.busy {
                if let Some(job) = waiting.jobs.pop_front() {
                    waiting.busy = true;
                    return Some(job);
                }
                if waiting.ended {
                    return None;
                }
            }
            waiting = self.work.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs a batch that was taken from the line.
    fn run(&self, shared: &Shared, job: Job) {
        let Job { batch, done } = job;
        let result = catch_unwind(AssertUnwindSafe(|| shared.run(batch)));
        let mut waiting = self.lock();
        waiting.busy = false;
        match result {
            Ok(result) => {
                let more = !waiting.jobs.is_empty() || waiting.ended;
                drop(waiting);
                // The receiver may be gone: the work is done all the same.
                let _ = done.send(result);
                if more {
                    self.work.notify_one();
                }
            }
            // Those who wait learn of it when their senders are dropped.
            Err(_) => {
                waiting.broken = true;
                drop(std::mem::take(&mut waiting.jobs));
            }
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Drop for Queue {
    fn drop(&mut self) {
        self.line.lock().ended = true;
        self.line.work.notify_one();
    }
}

#[cfg(target_arch = "wasm32")]
impl Queue {
    #[expect(clippy::unnecessary_wraps, reason = "as where there are threads, which may not start")]
    pub(super) fn new(device: String, limits: TimeLimits) -> Result<Self> {
        Ok(Self { shared: Arc::new(Shared::new(device, limits)) })
    }

    /// Runs a batch now.
    pub(super) fn submit(&self, batch: Vec<Command>, _wakes: bool) -> BoxFuture<'static, Result<(), Refusal>> {
        ready(self.shared.run(batch))
    }

    pub(super) fn help(&self) {}

    fn is_idle(&self) -> bool {
        true
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Queue {
    pub(super) fn new(device: String, limits: TimeLimits) -> Result<Self> {
        let shared = Arc::new(Shared::new(device, limits));
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(super::processor::threads())
            .thread_name(|thread| format!("cantus-cpu-{thread}"))
            .panic_handler(|_| ())
            .build();
        let threads = threads.map_err(|error| Error::Device {
            device: shared.device.clone(),
            action: "starting its queue".to_owned(),
            message: error.to_string(),
        })?;
        let line = Arc::<Line>::default();
        let (worker, jobs) = (shared.clone(), line.clone());
        let threads = Pool::new(threads);
        let pool = Arc::downgrade(&threads);
        threads.spawn(move || {
            while let Some(job) = jobs.next() {
                // The queue is gone, and this batch was given to it before.
                match pool.upgrade() {
                    Some(pool) => within(&pool, || jobs.run(&worker, job)),
                    None => jobs.run(&worker, job),
                }
            }
        });
        Ok(Self { shared, line, threads })
    }

    /// Queues a batch; the future resolves when it has run. Who does not wake the queue's thread calls [`Queue::help`] next.
    pub(super) fn submit(&self, batch: Vec<Command>, wakes: bool) -> BoxFuture<'static, Result<(), Refusal>> {
        let (done, outcome) = futures_channel::oneshot::channel();
        let stopped =
            Error::DeviceLost { device: self.shared.device.clone(), reason: "its queue has stopped".to_owned() };
        let mut waiting = self.line.lock();
        if waiting.broken {
            return ready(Err(stopped.into()));
        }
        waiting.jobs.push_back(Job { batch, done });
        let wakes = wakes && !waiting.busy;
        drop(waiting);
        if wakes {
            self.line.work.notify_one();
        }
        Box::pin(async move { outcome.await.unwrap_or(Err(stopped.into())) })
    }

    /// Runs on this thread what waits, as far as that may run here; the rest is for the queue's thread.
    pub(super) fn help(&self) {
        // Jobs that other threads add meanwhile are left to them.
        let before = self.line.lock().jobs.len();
        for _ in 0..before {
            let mut waiting = self.line.lock();
            if waiting.busy {
                // Who runs it wakes the queue's thread for the rest.
                return;
            }
            let Some(job) = waiting.jobs.front() else { return };
            let here = job.batch.iter().all(|command| self.shared.runs_anywhere(command));
            let Some(job) = waiting.jobs.pop_front_if(|_| here) else {
                drop(waiting);
                return self.line.work.notify_one();
            };
            waiting.busy = true;
            drop(waiting);
            within(&self.threads, || self.line.run(&self.shared, job));
        }
    }

    /// Returns whether everything that was queued has run.
    fn is_idle(&self) -> bool {
        let waiting = self.line.lock();
        !waiting.busy && waiting.jobs.is_empty()
    }
}

impl Queue {
    /// Waits for everything submitted so far. Failures belong to the batches, not to the wait.
    pub(super) async fn idle(&self) {
        if !self.is_idle() {
            let _ = self.submit(Vec::new(), true).await;
        }
    }

    /// Keeps jobs from running while the guard lives.
    pub(super) fn exclusive(&self) -> MutexGuard<'_, ()> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_times(&self) -> Vec<KernelTime> {
        std::mem::take(&mut *self.shared.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    fn new(device: String, limits: TimeLimits) -> Self {
        Self { device, limits, running: Mutex::new(()), times: Mutex::default() }
    }

    /// Returns whether a command may run on a thread other than the queue's.
    #[cfg(not(target_arch = "wasm32"))]
    fn runs_anywhere(&self, command: &Command) -> bool {
        let Command::Dispatch(dispatch) = command else { return true };
        let program: &dyn Any = &*dispatch.program;
        program.downcast_ref::<CpuProgram>().is_none_or(CpuProgram::runs_anywhere)
    }

    /// Runs all commands. One that fails is nobody else's failure.
    fn run(&self, batch: Vec<Command>) -> Result<(), Refusal> {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let from_now = || self.limits.timeout.and_then(|limit| Instant::now().checked_add(limit));
        let mut deadline = from_now();
        let mut failed = Vec::new();
        for (place, command) in batch.into_iter().enumerate() {
            if let Err(error) = self.step(command, deadline) {
                // This command used up the time; the next ones get the whole limit.
                if matches!(error, Error::Timeout { .. }) {
                    deadline = from_now();
                }
                failed.push((place, error));
            }
        }
        Refusal::all_but(failed)
    }

    fn step(&self, command: Command, deadline: Option<Instant>) -> Result<()> {
        match command {
            Command::Dispatch(dispatch) => {
                dispatch.check_cancelled()?;
                let program: &dyn Any = &*dispatch.program;
                let program = program.downcast_ref::<CpuProgram>().ok_or_else(|| self.foreign("program"))?;
                let start = Instant::now();
                let cancel: Vec<&AtomicBool> = dispatch.cancel.iter().map(CancelFlag::as_atomic).collect();
                let beyond = self.limits.check_stores.then(Beyond::default);
                let limits = Limits { deadline, cancel: &cancel, stall: self.limits.stall, beyond: beyond.as_ref() };
                program.run(&dispatch, &limits).map_err(|stopped| self.stopped(&dispatch, stopped))?;
                // Not every program looks at the clock on its way. What ends too late is too late, as on other devices.
                if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                    return Err(self.stopped(&dispatch, Fault::Stopped(Stopped::Deadline)));
                }
                let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
                if times.len() < KEPT_TIMES {
                    times.push(KernelTime { label: dispatch.label, start: Some(start), time: start.elapsed() });
                }
            }
            Command::Copy { source, source_offset, target, target_offset, bytes } => {
                let (from, to) =
                    (self.range(&*source, source_offset, bytes)?, self.target(&*target, target_offset, bytes)?);
                // SAFETY: both ranges were checked; `copy` allows them to overlap; this job excludes all other access.
                unsafe { std::ptr::copy(from, to, usize::try_from(bytes).unwrap_or(0)) };
            }
        }
        Ok(())
    }

    fn stopped(&self, dispatch: &Dispatch, fault: Fault) -> Error {
        let (what, device) = (dispatch.label.to_string(), self.device.clone());
        let milliseconds =
            |limit: Option<Duration>| u64::try_from(limit.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
        match fault {
            Fault::Stopped(Stopped::Deadline) => {
                Error::Timeout { what, device, milliseconds: milliseconds(self.limits.timeout) }
            }
            Fault::Stopped(Stopped::Stalled) => {
                Error::Stalled { what, device, milliseconds: milliseconds(self.limits.stall) }
            }
            Fault::Stopped(Stopped::Cancelled) => Error::Cancelled { what },
            Fault::Stopped(other) => self.failed(what, other.to_string()),
            Fault::Misfit(reason) => self.failed(what, reason),
            Fault::Beyond { of, place, length, stores } => {
                Error::StoreOutOfRange { kernel: what, of, place, length, stores }
            }
        }
    }

    fn failed(&self, what: String, message: String) -> Error {
        Error::Device { device: self.device.clone(), action: format!("running the kernel {what}"), message }
    }

    /// As [`Shared::range`], of a buffer that is about to be written to.
    fn target(&self, buffer: &dyn Buffer, offset: u64, bytes: u64) -> Result<*mut u8> {
        let start = self.range(buffer, offset, bytes)?;
        let any: &dyn Any = buffer;
        if let Some(buffer) = any.downcast_ref::<CpuBuffer>() {
            buffer.changes();
        }
        Ok(start)
    }

    /// The start of a checked range of a buffer.
    fn range(&self, buffer: &dyn Buffer, offset: u64, bytes: u64) -> Result<*mut u8> {
        let any: &dyn Any = buffer;
        let buffer = any.downcast_ref::<CpuBuffer>().ok_or_else(|| self.foreign("buffer"))?;
        if offset.checked_add(bytes).is_none_or(|end| end > Buffer::bytes(buffer)) {
            return Err(Error::Device {
                device: self.device.clone(),
                action: "a transfer".to_owned(),
                message: format!(
                    "{bytes} bytes from {offset} on lie outside of a buffer of {} bytes",
                    Buffer::bytes(buffer)
                ),
            });
        }
        // SAFETY: the offset lies within the buffer.
        Ok(unsafe { buffer.start().add(usize::try_from(offset).unwrap_or(0)) })
    }

    fn foreign(&self, what: &str) -> Error {
        Error::Device {
            device: self.device.clone(),
            action: "a batch".to_owned(),
            message: format!("a {what} of another device was given"),
        }
    }
}

impl Queue {
    /// The start of a checked range of a buffer.
    pub(super) fn range(&self, buffer: &dyn Buffer, offset: u64, bytes: u64) -> Result<*mut u8> {
        self.shared.range(buffer, offset, bytes)
    }

    /// As [`Queue::range`], of a buffer that is about to be written to.
    pub(super) fn target(&self, buffer: &dyn Buffer, offset: u64, bytes: u64) -> Result<*mut u8> {
        self.shared.target(buffer, offset, bytes)
    }
}
