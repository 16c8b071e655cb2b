//! The queue: a thread that runs what was submitted, in order. wgpu-core holds locks while it submits, so nothing is computed there. One thread runs
//! submissions in order; fences count them. After a failed command the device is lost and the rest is skipped but counted as over, so nobody waits for
//! ever. Computing in `submit` would hold wgpu-core's locks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cantus_base::threads::{Pool, within};
use wgpu_hal::{DeviceError, FenceValue};

use crate::Options;
use crate::command::{Command, Run};

/// A fence: the number of the last submission that is over.
#[derive(Debug, Clone)]
pub struct Fence {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    value: Mutex<FenceValue>,
    changed: Condvar,
}

/// The queue of a device. The thread ends when the queue and all that was submitted are gone.
#[derive(Debug)]
pub struct Queue {
    jobs: Mutex<Sender<Job>>,
    lost: Arc<AtomicBool>,
}

struct Job {
    commands: Vec<Arc<Vec<Command>>>,
    fence: Fence,
    value: FenceValue,
}

impl Fence {
    pub(crate) fn new() -> Self {
        Self { state: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, FenceValue> {
        self.state.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn value(&self) -> FenceValue {
        *self.lock()
    }

    fn reach(&self, value: FenceValue) {
        let mut now = self.lock();
        *now = value.max(*now);
        drop(now);
        self.state.changed.notify_all();
    }

    /// Waits until a submission is over, or for some time. Returns whether it is over.
    pub(crate) fn wait(&self, value: FenceValue, timeout: Option<Duration>) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut now = self.lock();
        while *now < value {
            let changed = &self.state.changed;
            now = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return false,
                Some(left) => changed.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner).0,
                None => changed.wait(now).unwrap_or_else(PoisonError::into_inner),
            };
        }
        true
    }
}

impl Queue {
    /// Starts the thread, which is one of those that kernels run on. `start` is when time begins for timestamps.
    pub(crate) fn new(lost: Arc<AtomicBool>, start: Instant, options: Arc<Options>) -> Result<Self, DeviceError> {
        let threads = rayon::ThreadPoolBuilder::new().thread_name(|place| format!("cantus-hal {place}")).build();
        let threads = threads.map_err(|error| {
            tracing::error!("the threads of the queue do not start: {error}");
            DeviceError::OutOfMemory
        })?;
        let threads = Pool::new(threads);
        let (jobs, waiting) = channel();
        // The thread holds the pool, so that the others are there as long as it is.
        let (held, own) = (threads.clone(), lost.clone());
        let run = Run { start, options };
        threads.spawn(move || serve(&held, &waiting, &own, &run));
        Ok(Self { jobs: Mutex::new(jobs), lost })
    }

    /// Queues commands; the fence reaches the value when they are over.
    pub(crate) fn submit(
        &self,
        commands: Vec<Arc<Vec<Command>>>,
        fence: &Fence,
        value: FenceValue,
    ) -> Result<(), DeviceError> {
        if self.lost.load(Ordering::Acquire) {
            return Err(DeviceError::Lost);
        }
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.send(Job { commands, fence: fence.clone(), value }).map_err(|_| DeviceError::Lost)
    }

    /// Waits until all that was submitted is over.
    pub(crate) fn wait(&self) -> Result<(), DeviceError> {
        let fence = Fence::new();
        self.submit(Vec::new(), &fence, 1)?;
        fence.wait(1, None);
        Ok(())
    }
}

/// Runs jobs until there will be no more. After one that failed the device is lost: no other runs, and all are over.
fn serve(threads: &Arc<Pool>, waiting: &Receiver<Job>, lost: &AtomicBool, run: &Run) {
    while let Ok(Job { commands, fence, value }) = waiting.recv() {
        if !lost.load(Ordering::Acquire) {
            let all = || commands.iter().flat_map(|commands| commands.iter()).try_for_each(|command| command.run(run));
            let outcome = catch_unwind(AssertUnwindSafe(|| within(threads, all)));
            let failure = match outcome {
                Ok(outcome) => outcome.err(),
                Err(panic) => Some(cantus_base::deep_stack::panic_text(&*panic)),
            };
            if let Some(reason) = failure {
                lost.store(true, Ordering::Release);
                run.options.fail(&reason);
            }
        }
        // Memory that nothing else holds goes before who waits sees the end.
        drop(commands);
        fence.reach(value);
    }
}

#[cfg(test)]
mod tests {
    use super::{Fence, Queue};
    use crate::command::Command;
    use crate::memory::Memory;
    use crate::{Failure, Options};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};
    use wgpu_hal::DeviceError;

    #[test]
    fn a_command_that_fails_loses_the_device_and_ends_the_wait() {
        let lost = Arc::new(AtomicBool::new(false));
        let (told, reasons) = channel();
        let told = Mutex::new(told);
        let tell = move |reason: &str| told.lock().unwrap().send(reason.to_owned()).unwrap();
        let options = Options { on_failure: Some(Failure::new(tell)), ..Options::default() };
        let queue = Queue::new(lost.clone(), Instant::now(), Arc::new(options)).unwrap();
        let memory = Arc::new(Memory::new(8).unwrap());
        let clear = |end| vec![Arc::new(vec![Command::Clear { buffer: memory.clone(), range: 0..end }])];
        let (fence, long) = (Fence::new(), Some(Duration::from_secs(60)));
        queue.submit(clear(8), &fence, 1).unwrap();
        assert!(fence.wait(1, long) && !lost.load(Ordering::Acquire));
        queue.submit(clear(9), &fence, 2).unwrap();
        assert!(fence.wait(2, long) && lost.load(Ordering::Acquire));
        assert!(reasons.try_recv().unwrap().contains("outside of its memory"));
        assert_eq!(queue.submit(clear(8), &fence, 3), Err(DeviceError::Lost));
        assert!(!fence.wait(3, Some(Duration::from_millis(10))));
        assert_eq!(fence.value(), 2);
    }
}
