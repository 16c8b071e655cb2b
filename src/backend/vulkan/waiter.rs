//! The threads that wait for submissions on behalf of futures: one waits in the driver, one keeps the time limit.
//!
//! They start when first needed and sleep while nothing is waited for. The clock is apart because drivers may ignore the limit of
//! a wait (llvmpipe does).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use web_time::Instant;

use super::timeline::Timeline;
use crate::backend::health::Health;
use crate::backend::signal::{Failure, Signal};

/// How long one wait in the driver may last: short enough that the end of the device is noticed.
const SLICE: Duration = Duration::from_millis(50);

/// Something waited for.
struct Watch {
    signal: Signal,
    serial: u64,
    deadline: Option<Instant>,
}

#[derive(Default)]
struct Watches {
    list: Vec<Watch>,
    closing: bool,
}

struct Shared {
    timeline: Arc<Timeline>,
    health: Arc<Health>,
    watches: Mutex<Watches>,
    changed: Condvar,
}

pub(super) struct Waiter {
    shared: Arc<Shared>,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    wait: Option<JoinHandle<()>>,
    clock: Option<JoinHandle<()>>,
}

impl Waiter {
    pub(super) fn new(timeline: Arc<Timeline>, health: Arc<Health>) -> Self {
        let shared = Shared { timeline, health, watches: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), threads: Mutex::default() }
    }

    /// A signal that is answered when that submission has ended, or with a failure at `deadline`, or when the device is lost.
    pub(super) fn watch(&self, serial: u64, deadline: Option<Instant>) -> Signal {
        let signal = Signal::new();
        if let Err(error) = self.start(deadline.is_some()) {
            self.shared.health.lose(&format!("no thread could be started to wait for it: {error}"));
            signal.answer(Err(Failure::Lost));
            return signal;
        }
        self.shared.lock().list.push(Watch { signal: signal.clone(), serial, deadline });
        self.shared.changed.notify_all();
        signal
    }

    fn start(&self, with_clock: bool) -> std::io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let start = |name: &str, work: fn(&Shared)| {
            let shared = self.shared.clone();
            std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared))
        };
        if threads.wait.is_none() {
            threads.wait = Some(start("cantus-vk-wait", Shared::run)?);
        }
        if with_clock && threads.clock.is_none() {
            threads.clock = Some(start("cantus-vk-clock", Shared::keep_time)?);
        }
        Ok(())
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        let threads = std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        // A woken task on one of them may drop the last reference: then there is nobody to wait for.
        for thread in [threads.wait, threads.clock].into_iter().flatten() {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Watches> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while let Some(serial) = self.next() {
            let waited = self.timeline.wait(serial, SLICE).and_then(|_| self.timeline.completed());
            match waited {
                Ok(completed) => self.answer(completed),
                Err(error) => self.health.lose(&format!("waiting for it failed: {error}")),
            }
            if self.health.is_lost() {
                self.fail_all(Failure::Lost);
            }
        }
        self.fail_all(Failure::Lost);
    }

    /// Sleeps until something is waited for; `None` when the device closes.
    fn next(&self) -> Option<u64> {
        let mut watches = self.lock();
        loop {
            if watches.closing {
                return None;
            }
            if let Some(first) = watches.list.iter().map(|watch| watch.serial).min() {
                return Some(first);
            }
            watches = self.changed.wait(watches).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Answers what has ended. The list is let go first: a woken task may ask for more at once.
    fn answer(&self, completed: u64) {
        let ended: Vec<Watch> = {
            let mut watches = self.lock();
            let (ended, left) = std::mem::take(&mut watches.list).into_iter().partition(|w| w.serial <= completed);
            watches.list = left;
            ended
        };
        for watch in ended {
            watch.signal.answer(Ok(()));
        }
    }

    /// Sleeps until a deadline passes, then gives the device up.
    fn keep_time(&self) {
        let mut watches = self.lock();
        while !watches.closing {
            let Some(deadline) = watches.list.iter().filter_map(|watch| watch.deadline).min() else {
                watches = self.changed.wait(watches).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                watches = self.changed.wait_timeout(watches, left).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(watches);
            // First, so that whoever is woken finds it so.
            self.health.overdue();
            self.fail_all(Failure::Timeout);
            watches = self.lock();
        }
    }

    /// Fails everything waited for: as overdue only what is.
    fn fail_all(&self, failure: Failure) {
        let now = Instant::now();
        let all = std::mem::take(&mut self.lock().list);
        for watch in all {
            let overdue = watch.deadline.is_some_and(|deadline| deadline <= now);
            let failure = if overdue && failure == Failure::Timeout { Failure::Timeout } else { Failure::Lost };
            watch.signal.answer(Err(failure));
        }
    }
}
