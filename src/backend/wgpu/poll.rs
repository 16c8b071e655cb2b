//! One poll thread per native device: without a poll no map and no "work done" ever completes.
//!
//! The thread starts when first needed, sleeps on a condition variable while nothing is in flight, waits in the driver (not in a
//! loop) while something is, and ends with the device. Drivers may ignore the time limit of a wait (llvmpipe does): where the
//! device has one, a second thread keeps it. On the web the browser does all of this, and nothing here is compiled.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use web_time::Instant;

use crate::backend::health::Health;
use crate::backend::signal::{Failure, Signal, wakes};
use crate::deep_stack::panic_text;

/// How long one wait in the driver may last. Short enough that the end of the device is noticed; long enough not to burn time.
const SLICE: Duration = Duration::from_millis(50);
/// On GL a wait holds the one context lock: others must get their turn.
const SLICE_SHARED: Duration = Duration::from_millis(5);
/// How often a finished submission may lack its callback (another thread may be about to run it) before that is a failure.
const PATIENCE: u32 = 2000;

/// Something in flight.
struct Watch {
    signal: Signal,
    submission: wgpu::SubmissionIndex,
    deadline: Option<Instant>,
}

#[derive(Default)]
struct Queue {
    watches: Vec<Watch>,
    closing: bool,
}

struct Shared {
    device: wgpu::Device,
    health: Arc<Health>,
    /// Held while polling where the API has one context for all threads (GL).
    turn: Option<Arc<Mutex<()>>>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// The handle to the poll thread.
pub(super) struct Poller {
    shared: Arc<Shared>,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    poll: Option<JoinHandle<()>>,
    clock: Option<JoinHandle<()>>,
}

impl Poller {
    pub(super) fn new(device: wgpu::Device, health: Arc<Health>, turn: Option<Arc<Mutex<()>>>) -> Self {
        let shared = Shared { device, health, turn, queue: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), threads: Mutex::default() }
    }

    /// Sees to it that `signal` is answered: by its callback, or with a failure at `deadline`, or when the device is lost.
    pub(super) fn watch(&self, signal: &Signal, submission: wgpu::SubmissionIndex, deadline: Option<Instant>) {
        if let Err(error) = self.start(deadline.is_some()) {
            self.shared.health.lose(&format!("no thread could be started to wait for it: {error}"));
            signal.answer(Err(Failure::Lost));
            return;
        }
        self.shared.lock().watches.push(Watch { signal: signal.clone(), submission, deadline });
        self.shared.changed.notify_all();
    }

    fn start(&self, with_clock: bool) -> std::io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let start = |name: &str, work: fn(&Shared)| {
            let shared = self.shared.clone();
            std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared))
        };
        if threads.poll.is_none() {
            threads.poll = Some(start("cantus-wgpu-poll", Shared::run)?);
        }
        if with_clock && threads.clock.is_none() {
            threads.clock = Some(start("cantus-wgpu-clock", Shared::keep_time)?);
        }
        Ok(())
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        let threads = std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        // Joined, so that the driver is not torn down on a thread while the process already exits. A callback on one of them may drop
        // the last reference: then there is nobody to wait for.
        for thread in [threads.poll, threads.clock].into_iter().flatten() {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut unanswered = 0_u32;
        while let Some((signal, submission, slice)) = self.next() {
            let timed_out = match wakes::after(|| self.poll(submission, slice)) {
                Ok(result) => matches!(result, Err(wgpu::PollError::Timeout)),
                Err(reason) => {
                    self.health.lose(&reason);
                    false
                }
            };
            // A finished submission has been answered by now, unless another thread is about to run its callback.
            let silent = !timed_out && !signal.is_answered();
            unanswered = if silent { unanswered + 1 } else { 0 };
            if unanswered > PATIENCE {
                signal.answer(Err(Failure::Silent));
            } else if silent {
                std::thread::sleep(Duration::from_millis(1));
            }
            if self.health.is_lost() {
                self.fail_all(Failure::Lost);
            }
        }
        self.fail_all(Failure::Lost);
    }

    /// Sleeps until something is in flight; `None` when the device closes.
    fn next(&self) -> Option<(Signal, wgpu::SubmissionIndex, Duration)> {
        let mut queue = self.lock();
        loop {
            if queue.closing {
                return None;
            }
            queue.watches.retain(|watch| !watch.signal.is_answered());
            if let Some(first) = queue.watches.first() {
                let slice = if self.turn.is_some() { SLICE_SHARED } else { SLICE };
                return Some((first.signal.clone(), first.submission.clone(), slice));
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits in the driver. wgpu panics when the driver reports a lost device there: that becomes the reason.
    fn poll(
        &self,
        submission: wgpu::SubmissionIndex,
        slice: Duration,
    ) -> Result<Result<wgpu::PollStatus, wgpu::PollError>, String> {
        let _turn = self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        let kind = wgpu::PollType::Wait { submission_index: Some(submission), timeout: Some(slice) };
        catch_unwind(AssertUnwindSafe(|| self.device.poll(kind))).map_err(|panic| panic_text(&*panic))
    }

    /// Sleeps until a deadline passes, then gives the device up.
    fn keep_time(&self) {
        let mut queue = self.lock();
        while !queue.closing {
            queue.watches.retain(|watch| !watch.signal.is_answered());
            let Some(deadline) = queue.watches.iter().filter_map(|watch| watch.deadline).min() else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                queue = self.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(queue);
            // First, so that whoever is woken finds it so.
            self.health.overdue();
            self.fail_all(Failure::Timeout);
            queue = self.lock();
        }
    }

    /// Fails everything in flight: as overdue only what is.
    fn fail_all(&self, failure: Failure) {
        let now = Instant::now();
        for watch in std::mem::take(&mut self.lock().watches) {
            let overdue = watch.deadline.is_some_and(|deadline| deadline <= now);
            let failure = if overdue && failure == Failure::Timeout { Failure::Timeout } else { Failure::Lost };
            watch.signal.answer(Err(failure));
        }
    }
}
