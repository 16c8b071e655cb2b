//! One poll thread per native device: without a poll no map and no "work done" ever completes.
//!
//! The thread starts when first needed, sleeps on a condition variable while nothing is in flight, waits in the driver (not in a
//! loop) while something is, and ends with the device. It also keeps the time limits. On the web the browser does all of
//! this, and nothing here is compiled.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use web_time::Instant;

use super::errors::{Health, panic_text};
use super::signal::{Failure, Signal};

/// How long one wait in the driver may last. Short enough that a new watch with an earlier deadline, or the end of the device, is
/// noticed; long enough not to burn time.
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
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Poller {
    pub(super) fn new(device: wgpu::Device, health: Arc<Health>, turn: Option<Arc<Mutex<()>>>) -> Self {
        let shared = Shared { device, health, turn, queue: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), thread: Mutex::new(None) }
    }

    /// Sees to it that `signal` is answered: by its callback, or with a failure at `deadline`, or when the device is lost.
    pub(super) fn watch(&self, signal: &Signal, submission: wgpu::SubmissionIndex, deadline: Option<Instant>) {
        if !self.start() {
            signal.answer(Err(Failure::Lost));
            return;
        }
        self.shared.lock().watches.push(Watch { signal: signal.clone(), submission, deadline });
        self.shared.changed.notify_one();
    }

    fn start(&self) -> bool {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = self.shared.clone();
            match std::thread::Builder::new().name("cantus-wgpu-poll".to_owned()).spawn(move || shared.run()) {
                Ok(handle) => *thread = Some(handle),
                Err(error) => {
                    self.shared.health.lose(&format!("no poll thread could be started: {error}"));
                    return false;
                }
            }
        }
        true
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_one();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // Joined, so that the driver is not torn down on this thread while the process already exits. A callback on the poll thread
        // itself may drop the last reference: then there is nobody to wait for. A device that does not answer is not waited for.
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
            && !self.shared.health.is_stuck()
        {
            let _ = thread.join();
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
            let timed_out = match self.poll(submission, slice) {
                Ok(result) => matches!(result, Err(wgpu::PollError::Timeout)),
                Err(reason) => {
                    self.health.lose(&reason);
                    false
                }
            };
            // A finished submission has been answered by now, unless another thread is about to run its callback.
            let silent = !timed_out && !signal.is_answered();
            unanswered = if silent { unanswered + 1 } else { 0 };
            self.settle(&signal, unanswered > PATIENCE);
            if silent {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let watches = std::mem::take(&mut self.lock().watches);
        for watch in watches {
            watch.signal.answer(Err(Failure::Lost));
        }
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
                let mut slice = if self.turn.is_some() { SLICE_SHARED } else { SLICE };
                if let Some(deadline) = queue.watches.iter().filter_map(|watch| watch.deadline).min() {
                    slice = slice.min(deadline.saturating_duration_since(Instant::now()));
                }
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

    /// Fails what is overdue or cannot be answered any more; `first` too when the device fell silent on it.
    fn settle(&self, first: &Signal, silent: bool) {
        if silent {
            first.answer(Err(Failure::Silent));
        }
        let now = Instant::now();
        let mut failed: Vec<(Signal, Failure)> = Vec::new();
        let lost = self.health.is_lost();
        self.lock().watches.retain(|watch| {
            let overdue = watch.deadline.is_some_and(|deadline| deadline <= now);
            if watch.signal.is_answered() {
                return false;
            }
            if lost || overdue {
                failed.push((watch.signal.clone(), if overdue { Failure::Timeout } else { Failure::Lost }));
            }
            !(lost || overdue)
        });
        for (signal, failure) in failed {
            // A device that misses its time limit is treated as lost. First, so that whoever is woken finds it so.
            if failure == Failure::Timeout {
                self.health.give_up();
            }
            signal.answer(Err(failure));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, OpenOptions};

    /// The first adapter's device, or nothing on a machine without one (the backend's own tests list that).
    fn device() -> Option<(wgpu::Device, wgpu::Queue)> {
        let backend = crate::backend::wgpu::WgpuBackend::new();
        let device = pollster::block_on(backend.open(0, &OpenOptions::default())).ok()?;
        let (device, queue) = crate::backend::wgpu::raw_device(&*device)?;
        Some((device.clone(), queue.clone()))
    }

    /// Waits for an answer, but not for ever.
    fn answer_within(signal: &Signal, limit: Duration) -> Option<Result<(), Failure>> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let signal = signal.clone();
        std::thread::spawn(move || sender.send(pollster::block_on(signal)));
        receiver.recv_timeout(limit).ok()
    }

    #[test]
    fn a_wait_that_is_never_answered_ends_at_its_deadline() {
        let Some((device, queue)) = device() else {
            eprintln!("not run: this machine has no adapter");
            return;
        };
        let health = Health::new("a device".to_owned());
        let poller = Poller::new(device, health.clone(), None);
        let (silent, patient) = (Signal::new(), Signal::new());
        let now = Instant::now();
        poller.watch(&patient, queue.submit([]), None);
        poller.watch(&silent, queue.submit([]), Some(now + Duration::from_millis(150)));
        assert_eq!(answer_within(&silent, Duration::from_secs(5)), Some(Err(Failure::Timeout)));
        assert!(now.elapsed() >= Duration::from_millis(150));
        // The device counts as lost, and whoever else waits for it hears of that.
        assert!(health.is_lost() && health.is_stuck());
        assert!(matches!(answer_within(&patient, Duration::from_secs(5)), Some(Err(Failure::Lost | Failure::Timeout))));
    }

    #[test]
    fn a_wait_that_is_never_answered_ends_without_a_deadline_too() {
        let Some((device, queue)) = device() else {
            eprintln!("not run: this machine has no adapter");
            return;
        };
        let health = Health::new("a device".to_owned());
        let poller = Poller::new(device, health.clone(), None);
        let silent = Signal::new();
        poller.watch(&silent, queue.submit([]), None);
        assert_eq!(answer_within(&silent, Duration::from_secs(30)), Some(Err(Failure::Silent)));
        assert!(!health.is_lost());
    }

    #[test]
    fn waits_end_with_the_device() {
        let Some((device, queue)) = device() else {
            eprintln!("not run: this machine has no adapter");
            return;
        };
        let poller = Poller::new(device, Health::new("a device".to_owned()), None);
        let silent = Signal::new();
        poller.watch(&silent, queue.submit([]), None);
        drop(poller);
        assert_eq!(answer_within(&silent, Duration::from_secs(5)), Some(Err(Failure::Lost)));
    }

    #[test]
    fn the_first_answer_stands() {
        let signal = Signal::new();
        assert!(signal.answer(Ok(())));
        assert!(!signal.answer(Err(Failure::Lost)));
        assert_eq!(answer_within(&signal, Duration::from_secs(1)), Some(Ok(())));
    }
}
