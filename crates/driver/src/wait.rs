//! Waiting for a device's queue without holding up the caller's thread. Knows no API: what is waited for is an [`Awaited`].
//!
//! A device has one [`Waiter`]. One of its threads waits in the driver, the other keeps the time limit, because drivers may ignore that of a
//! wait (llvmpipe does). They start when first needed and sleep while nothing is waited for. Whoever waits is woken by them, under no lock.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_channel::oneshot;

use crate::backend::DeviceKind;
use crate::error::{Error, Result};
use crate::health::Health;

/// The longest wait in a driver that takes a limit: short enough to notice that the device is gone, long enough not to waste processor
/// time.
pub const SLICE: Duration = Duration::from_millis(50);

/// Returns how long the caller itself polls before it sleeps: most kernels and small transfers are done by then, and a change of threads costs
/// as much. On an H100 to be woken by the driver took 50 to 110 microseconds; where the processor does the work, or shares its power with what
/// does, looking takes from it.
pub fn look(kind: DeviceKind) -> Duration {
    Duration::from_micros(if kind == DeviceKind::DiscreteGpu { 400 } else { 30 })
}

/// A point in a queue.
pub trait Awaited: Send + Sync + 'static {
    /// The driver's error.
    type Fault: Send;

    /// [`Awaited::block`] ends after about a [`SLICE`], if the driver keeps to that.
    const ENDS: bool;

    /// Has the queue passed it? Never sleeps.
    fn passed(&self) -> std::result::Result<bool, Self::Fault>;

    /// Sleeps in the driver until it may have.
    fn block(&self) -> std::result::Result<(), Self::Fault>;
}

/// The outcome of a wait.
#[derive(Debug)]
pub enum Ended<F> {
    /// The queue has passed the point.
    Passed,
    /// The time limit passed first. The device counts as lost.
    Late,
    /// The device is lost for another reason.
    Lost,
    /// The driver reports a failure of what came before.
    Failed(F),
}

impl<F> Ended<F> {
    /// Returns the result for the caller. `what` was waited for; `fault` makes the error of a driver's failure.
    pub fn result(self, health: &Health, what: &str, fault: impl FnOnce(F) -> Error) -> Result<()> {
        match self {
            Self::Passed => Ok(()),
            Self::Late => Err(health.timeout_error(what)),
            Self::Lost => Err(health.lost_error()),
            Self::Failed(failure) => Err(fault(failure)),
        }
    }
}

struct Watch<E: Awaited> {
    /// The number of its submission.
    number: u64,
    event: Arc<E>,
    deadline: Option<Instant>,
    done: oneshot::Sender<Ended<E::Fault>>,
}

impl<E: Awaited> Watch<E> {
    fn end(self, ended: Ended<E::Fault>) {
        // The event may hold the device: it goes before the asker goes on.
        drop(self.event);
        // The asker may be gone.
        let _ = self.done.send(ended);
    }
}

struct Watches<E: Awaited> {
    list: Vec<Watch<E>>,
    closing: bool,
}

struct Shared<E: Awaited> {
    health: Arc<Health>,
    watches: Mutex<Watches<E>>,
    changed: Condvar,
}

#[derive(Default)]
struct Threads {
    wait: Option<JoinHandle<()>>,
    clock: Option<JoinHandle<()>>,
}

/// Waits for the points of one device's queue.
pub struct Waiter<E: Awaited> {
    name: &'static str,
    look: Duration,
    shared: Arc<Shared<E>>,
    threads: Mutex<Threads>,
}

impl<E: Awaited> Waiter<E> {
    /// `name` names the device's threads; a caller polls for [`look`].
    pub fn new(name: &'static str, health: Arc<Health>, look: Duration) -> Self {
        let watches = Mutex::new(Watches { list: Vec::new(), closing: false });
        Self {
            name,
            look,
            shared: Arc::new(Shared { health, watches, changed: Condvar::new() }),
            threads: Mutex::default(),
        }
    }

    /// Waits for the event behind the submission of that number, not longer than until the deadline: then the device is given up.
    pub async fn wait(&self, number: u64, event: Arc<E>, deadline: Option<Instant>) -> Ended<E::Fault> {
        let start = Instant::now();
        loop {
            if let Some(found) = end_of(&*event) {
                return found;
            }
            if self.shared.health.is_lost() {
                return Ended::Lost;
            }
            if start.elapsed() >= self.look {
                break;
            }
            std::hint::spin_loop();
        }
        if self.start(deadline.is_some()).is_err() {
            return self.sit_out(&*event, deadline);
        }
        let (done, outcome) = oneshot::channel();
        self.shared.lock().list.push(Watch { number, event, deadline, done });
        self.shared.changed.notify_all();
        outcome.await.unwrap_or(Ended::Lost)
    }

    fn start(&self, with_clock: bool) -> std::io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let start = |role: &str, work: fn(&Shared<E>)| {
            let shared = self.shared.clone();
            cantus_base::threads::spawn(format!("cantus-{}-{role}", self.name), Box::new(move || work(&shared)))
        };
        if threads.wait.is_none() {
            threads.wait = Some(start("wait", Shared::run)?);
        }
        if with_clock && threads.clock.is_none() {
            threads.clock = Some(start("clock", Shared::keep_time)?);
        }
        Ok(())
    }

    /// Waits on this thread, since there is no other.
    fn sit_out(&self, event: &E, deadline: Option<Instant>) -> Ended<E::Fault> {
        loop {
            if let Some(found) = end_of(event) {
                return found;
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                self.shared.health.overdue();
                return Ended::Late;
            }
            match event.block() {
                Ok(()) if self.shared.health.is_lost() => return Ended::Lost,
                Ok(()) => {}
                Err(fault) => return Ended::Failed(fault),
            }
        }
    }
}

impl<E: Awaited> Drop for Waiter<E> {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        let threads = std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        let waiting = threads.wait.filter(|_| E::ENDS);
        // Joined, so that the driver is not torn down on a thread while the process already exits. A woken task on one of them may drop the
        // last reference: then there is nobody to wait for.
        for thread in [waiting, threads.clock].into_iter().flatten() {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl<E: Awaited> Shared<E> {
    fn lock(&self) -> MutexGuard<'_, Watches<E>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while let Some(event) = self.next() {
            let fault = event.block().err();
            self.answer(event, fault);
            if self.health.is_lost() {
                self.fail_all();
            }
        }
        self.fail_all();
    }

    /// Sleeps until something is waited for, and returns what the queue passes first; `None` when the device closes.
    fn next(&self) -> Option<Arc<E>> {
        let mut watches = self.lock();
        loop {
            if watches.closing {
                return None;
            }
            if let Some(first) = watches.list.iter().min_by_key(|watch| watch.number) {
                return Some(first.event.clone());
            }
            watches = self.changed.wait(watches).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Answers what has ended, and drops entries that nobody asks for any more. The list is unlocked first: a woken task may ask for more at once.
    fn answer(&self, blocked: Arc<E>, mut fault: Option<E::Fault>) {
        let mut ended = Vec::new();
        let mut dropped = Vec::new();
        {
            let mut watches = self.lock();
            for watch in std::mem::take(&mut watches.list) {
                let failed = fault.take_if(|_| Arc::ptr_eq(&watch.event, &blocked)).map(Ended::Failed);
                match failed.or_else(|| end_of(&*watch.event)) {
                    Some(end) => ended.push((watch, end)),
                    None if watch.done.is_canceled() => dropped.push(watch),
                    None => watches.list.push(watch),
                }
            }
        }
        drop((blocked, dropped));
        for (watch, end) in ended {
            watch.end(end);
        }
    }

    /// Sleeps until a deadline passes, then gives the device up.
    fn keep_time(&self) {
        let mut watches = self.lock();
        while !watches.closing {
            let waited_for = watches.list.iter().filter(|watch| !watch.done.is_canceled());
            let Some(deadline) = waited_for.filter_map(|watch| watch.deadline).min() else {
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
            self.fail_all();
            watches = self.lock();
        }
    }

    /// Ends all waits: as late those whose time has passed.
    fn fail_all(&self) {
        let now = Instant::now();
        for watch in std::mem::take(&mut self.lock().list) {
            let late = watch.deadline.is_some_and(|deadline| deadline <= now);
            watch.end(if late { Ended::Late } else { Ended::Lost });
        }
    }
}

fn end_of<E: Awaited>(event: &E) -> Option<Ended<E::Fault>> {
    match event.passed() {
        Ok(true) => Some(Ended::Passed),
        Ok(false) => None,
        Err(fault) => Some(Ended::Failed(fault)),
    }
}
