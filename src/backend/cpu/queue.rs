//! The device's queue: one thread that runs batches in order, so that a caller is never held up by a kernel. It is one of the threads that
//! kernels run on. (A queue that hands its kernels to others wakes them while it still runs itself: on two processors both of them then
//! woke on the same one and stayed there for milliseconds.) On the web, where there are no threads, batches run when they are submitted.
//!
//! Invariant that the memory relies on: buffers are read and written only by a job, or by a holder of `Queue::exclusive`, and the
//! two exclude each other by the lock `running`.

use std::any::Any;
use std::sync::atomic::AtomicBool;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::mpsc::TryRecvError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use web_time::Instant;

use super::fault::Fault;
use super::memory::CpuBuffer;
use super::program::CpuProgram;
use crate::backend::{BoxFuture, Buffer, CancelFlag, Command, Dispatch, KernelTime, Refusal, ready};
use crate::error::{Error, Result};
use crate::spmd::{Limits, Stopped};

/// Times kept until they are asked for.
const KEPT_TIMES: usize = 1 << 16;
/// How long the queue's thread stays awake without work.
#[cfg(not(target_arch = "wasm32"))]
const AWAKE: Duration = Duration::from_micros(50);

pub(super) struct Shared {
    device: String,
    limits: TimeLimits,
    running: Mutex<()>,
    times: Mutex<Vec<KernelTime>>,
}

/// How long work may take.
#[derive(Clone, Copy)]
pub(super) struct TimeLimits {
    /// On a batch.
    pub(super) timeout: Option<Duration>,
    /// On workgroups that run together.
    pub(super) stall: Option<Duration>,
}

pub(super) struct Queue {
    shared: Arc<Shared>,
    /// Batches that were submitted and have not run to their end.
    #[cfg(not(target_arch = "wasm32"))]
    under_way: Arc<AtomicUsize>,
    #[cfg(not(target_arch = "wasm32"))]
    jobs: std::sync::mpsc::Sender<Job>,
    /// Ends when the queue has: the sender above goes first.
    #[cfg(not(target_arch = "wasm32"))]
    _threads: rayon::ThreadPool,
}

#[cfg(not(target_arch = "wasm32"))]
struct Job {
    batch: Vec<Command>,
    done: futures_channel::oneshot::Sender<Result<(), Refusal>>,
}

impl Queue {
    pub(super) fn new(device: String, limits: TimeLimits) -> Result<Self> {
        let shared = Arc::new(Shared { device, limits, running: Mutex::new(()), times: Mutex::default() });
        #[cfg(not(target_arch = "wasm32"))]
        {
            let (jobs, incoming) = std::sync::mpsc::channel::<Job>();
            let worker = shared.clone();
            let under_way = Arc::new(AtomicUsize::new(0));
            let counted = under_way.clone();
            // On one processor the thread would only keep others from running.
            let awake = if super::processor::threads() > 1 { AWAKE } else { Duration::ZERO };
            let threads = rayon::ThreadPoolBuilder::new()
                .num_threads(super::processor::threads())
                .thread_name(|thread| format!("cantus-cpu-{thread}"))
                // A batch that panics ends the queue, and `submit` says so.
                .panic_handler(|_| ())
                .build();
            let threads = threads.map_err(|error| Error::Device {
                device: shared.device.clone(),
                action: "starting its queue".to_owned(),
                message: error.to_string(),
            })?;
            threads.spawn(move || {
                while let Some(job) = next(&incoming, awake) {
                    let result = worker.run(job.batch);
                    counted.fetch_sub(1, Ordering::Release);
                    // The receiver may be gone: the work is done all the same.
                    let _ = job.done.send(result);
                }
            });
            Ok(Self { shared, under_way, jobs, _threads: threads })
        }
        #[cfg(target_arch = "wasm32")]
        Ok(Self { shared })
    }

    /// Queues a batch; the future resolves when it has run.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        let (done, outcome) = futures_channel::oneshot::channel();
        let stopped =
            Error::DeviceLost { device: self.shared.device.clone(), reason: "its queue has stopped".to_owned() };
        self.under_way.fetch_add(1, Ordering::Relaxed);
        if self.jobs.send(Job { batch, done }).is_err() {
            return ready(Err(stopped.into()));
        }
        Box::pin(async move { outcome.await.unwrap_or(Err(stopped.into())) })
    }

    /// Runs a batch now.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn submit(&self, batch: Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>> {
        ready(self.shared.run(batch))
    }

    /// Waits for everything submitted so far. Failures belong to the batches, not to the wait.
    pub(super) async fn idle(&self) {
        // A round trip to the queue's thread takes longer than most transfers.
        #[cfg(not(target_arch = "wasm32"))]
        if self.under_way.load(Ordering::Acquire) == 0 {
            return;
        }
        let _ = self.submit(Vec::new()).await;
    }

    /// Keeps jobs from running while the guard lives.
    pub(super) fn exclusive(&self) -> MutexGuard<'_, ()> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_times(&self) -> Vec<KernelTime> {
        std::mem::take(&mut *self.shared.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The next batch. A thread that sleeps takes up to 50 µs to wake, so it looks that long before it does.
#[cfg(not(target_arch = "wasm32"))]
fn next(incoming: &std::sync::mpsc::Receiver<Job>, awake: Duration) -> Option<Job> {
    let start = Instant::now();
    while start.elapsed() < awake {
        match incoming.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    incoming.recv().ok()
}

impl Shared {
    /// Runs all commands. One that fails is nobody else's failure.
    fn run(&self, batch: Vec<Command>) -> Result<(), Refusal> {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let from_now = || self.limits.timeout.and_then(|limit| Instant::now().checked_add(limit));
        let mut deadline = from_now();
        let mut failed = Vec::new();
        for (place, command) in batch.into_iter().enumerate() {
            if let Err(error) = self.step(command, deadline) {
                // The time was taken by this one.
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
                let limits = Limits { deadline, cancel: &cancel, stall: self.limits.stall };
                program.run(&dispatch, &limits).map_err(|stopped| self.stopped(&dispatch, stopped))?;
                let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
                if times.len() < KEPT_TIMES {
                    times.push(KernelTime { label: dispatch.label, start: Some(start), time: start.elapsed() });
                }
            }
            Command::Copy { source, source_offset, target, target_offset, bytes } => {
                let (from, to) =
                    (self.range(&*source, source_offset, bytes)?, self.range(&*target, target_offset, bytes)?);
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
        }
    }

    fn failed(&self, what: String, message: String) -> Error {
        Error::Device { device: self.device.clone(), action: format!("running the kernel {what}"), message }
    }

    /// The start of a checked range of a buffer.
    pub(super) fn range(&self, buffer: &dyn Buffer, offset: u64, bytes: u64) -> Result<*mut u8> {
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
}
