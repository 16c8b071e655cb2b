//! Work that waits for a device, and its order. A lane has threads that work for a device; small requests have a lane of their own, so that
//! none waits behind what takes seconds. The next request is of the key that has had the least of the lane's time; alike ones become one
//! dispatch.
//!
//! Where work takes long a key has one thread at most, and a key that waits gets one of its own, up to a number: what one key computes ends when it
//! ends, and no other key waits for that. Each thread has an engine of its own, because a device works off in order what an engine gives it.
//!
//! Nobody knows how long work takes before it has ended. Where all threads compute, one more tries what waits: what does not end within a first moment
//! is stopped, and begins again when a thread is free (TAGS, Harchol-Balter 2002). So short work waits for a moment, however many keys compute long.

mod compute;
mod task;
mod waiting;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use cantus::Engine;
use cantus::backend::CancelFlag;

use crate::priority::Yields;
use crate::problem::Problem;
use crate::share::{Bound, Short};
use crate::work::kernel::KernelLimits;
use compute::Worker;
use task::finish;
pub use task::{Finished, Task};
use waiting::{Entry, Waiting, gather};

/// The bounds of a lane's waiting work.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Requests.
    pub count: usize,
    /// Bytes of requests.
    pub bytes: u64,
    /// The share that one key may fill, in percent.
    pub share: u32,
    /// The longest wait.
    pub wait: Duration,
    /// The longest work.
    pub time: Duration,
    /// The most requests of one dispatch.
    pub batch: usize,
    /// The time for which the first of them waits for others.
    pub window: Duration,
    /// Bytes that work may hold on the device.
    pub memory: u64,
    /// The most threads.
    pub threads: usize,
    /// The time for which work is tried where all of them compute, if it is.
    pub first: Option<Duration>,
    /// The priority of its threads, except the one that tries.
    pub yields: Yields,
}

/// Makes what a further thread of a lane computes with.
pub type Opener = dyn Fn() -> Result<Means, String> + Send + Sync;

/// The means of a lane.
#[derive(Debug, Clone)]
pub enum Means {
    /// An engine.
    Engine(Engine),
    /// Processes for callers' kernels.
    Processes(KernelLimits),
}

/// Room in a lane, given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    lane: Arc<Lane>,
    owner: Arc<str>,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut waiting = self.lane.lock();
        waiting.count = waiting.count.saturating_sub(1);
        waiting.bytes = waiting.bytes.saturating_sub(self.bytes);
        if let Some(owner) = waiting.owners.get_mut(&self.owner) {
            owner.count = owner.count.saturating_sub(1);
            owner.bytes = owner.bytes.saturating_sub(self.bytes);
        }
    }
}

/// The work that runs in a lane now.
#[derive(Debug)]
struct Running {
    since: Instant,
    stop: CancelFlag,
    flags: Vec<CancelFlag>,
    late: Arc<AtomicBool>,
    /// It is tried, and ends then.
    first: Option<Duration>,
}

/// The two kinds of threads of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It computes to the end.
    Computes,
    /// It tries, for a first moment.
    Tries,
}

/// The time without work after which a thread gives back the memory that its engine keeps for more.
const REST: Duration = Duration::from_secs(2);

/// The times the first moment for which a key's work is not tried again after a try in vain.
const BARRED: u32 = 20;

/// Threads that work for a device, and what waits for them.
pub struct Lane {
    /// Its name: the device's, and which of its lanes.
    pub name: String,
    bounds: Bounds,
    waiting: Mutex<Waiting>,
    wake: Condvar,
    running: Mutex<Vec<Running>>,
    opener: Box<Opener>,
    /// Requests that ended, dispatches that they took, and microseconds of work.
    pub done: AtomicU64,
    /// Dispatches.
    pub dispatches: AtomicU64,
    /// Microseconds at work.
    pub busy: AtomicU64,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Lane {
    /// Begins a lane with its first thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    #[expect(clippy::disallowed_methods, reason = "the thread that watches")]
    pub fn begin(name: String, bounds: Bounds, means: Means, opener: Box<Opener>) -> std::io::Result<Arc<Self>> {
        let lane = Arc::new(Self {
            name,
            bounds,
            waiting: Mutex::new(Waiting { threads: 1, ..Waiting::default() }),
            wake: Condvar::new(),
            running: Mutex::default(),
            opener,
            done: AtomicU64::new(0),
            dispatches: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        });
        lane.spawn(Some(means), Role::Computes)?;
        let watched = Arc::downgrade(&lane);
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let mut turn = 0_u32;
            while let Some(lane) = watched.upgrade() {
                if lane.lock().closed && lane.running().is_empty() {
                    break;
                }
                lane.watch();
                turn = turn.wrapping_add(1);
                if turn.is_multiple_of(10) {
                    lane.drop_ended();
                }
                drop(lane);
                std::thread::sleep(Duration::from_millis(20));
            }
        })?;
        Ok(lane)
    }

    /// A thread, with what it computes with or what it opens first.
    fn spawn(self: &Arc<Self>, means: Option<Means>, role: Role) -> std::io::Result<()> {
        let own = self.clone();
        let thread = std::thread::Builder::new().name(format!("lane {}", self.name));
        thread.spawn(move || {
            if role == Role::Computes {
                own.bounds.yields.apply();
            }
            match means.map_or_else(|| (own.opener)(), Ok) {
                Ok(means) => own.work(&Worker::new(means, own.bounds.memory), role),
                Err(reason) => {
                    crate::log(&format!("{}: no further thread: {reason}", own.name));
                    own.without(role);
                }
            }
        })?;
        Ok(())
    }

    /// A thread of a role could not begin.
    fn without(&self, role: Role) {
        let mut waiting = self.lock();
        match role {
            Role::Computes => waiting.threads -= 1,
            Role::Tries => waiting.tries = false,
        }
    }

    /// Sees to it that somebody computes where a key waits and all threads compute for others: a further thread, or the one that tries.
    fn reinforce(self: &Arc<Self>) {
        let mut waiting = self.lock();
        if waiting.closed || waiting.idle > 0 {
            return;
        }
        let role = if waiting.threads < self.bounds.threads {
            if waiting.first(false).is_none() {
                return;
            }
            waiting.threads += 1;
            Role::Computes
        } else {
            if self.bounds.first.is_none() || waiting.first(true).is_none() {
                return;
            }
            if std::mem::replace(&mut waiting.tries, true) {
                // It may have found a thread idle that has other work now.
                self.wake.notify_all();
                return;
            }
            Role::Tries
        };
        drop(waiting);
        if self.spawn(None, role).is_err() {
            self.without(role);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests and bytes that wait or are being computed.
    pub fn load(&self) -> (usize, u64) {
        let waiting = self.lock();
        (waiting.count, waiting.bytes)
    }

    /// Takes room for a request, whose body was parsed in `spent` seconds.
    ///
    /// # Errors
    /// 429 when there is no room, for this key or for any; 503 when the lane has ended.
    pub fn reserve(self: &Arc<Self>, owner: &Arc<str>, bytes: u64, spent: f64, bounded: bool) -> Result<Room, Problem> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(Problem::unavailable("the service is stopping"));
        }
        let Bounds { count, bytes: most, share, .. } = self.bounds;
        let own = waiting.owners.get(owner).map_or((0, 0), |owner| (owner.count as u64, owner.bytes));
        let room = Bound { most: count as u64, share }.admits(waiting.count as u64, own.0, 1);
        let room = room.and_then(|()| Bound { most, share }.admits(waiting.bytes, own.1, bytes));
        if let (true, Err(short)) = (bounded, room) {
            let busy = self.busy.load(Ordering::Relaxed) as f64 / self.done.load(Ordering::Relaxed).max(1) as f64 / 1e6;
            let seconds = (busy * waiting.count as f64 / 2.0).clamp(1.0, 300.0) as u32;
            let whose = match short {
                Short::Whole => "the queue is full",
                Short::Own => "the key's share of the queue is full",
            };
            return Err(Problem::busy(whose, seconds));
        }
        waiting.count += 1;
        waiting.bytes = waiting.bytes.saturating_add(bytes);
        waiting.spent.add(owner, spent);
        let entry = waiting.owners.entry(owner.clone()).or_default();
        entry.count += 1;
        entry.bytes = entry.bytes.saturating_add(bytes);
        Ok(Room { lane: self.clone(), owner: owner.clone(), bytes })
    }

    /// Queues work.
    pub fn push(self: &Arc<Self>, task: Task) {
        let alike = if self.bounds.batch > 1 { task.work.alike() } else { None };
        let mut waiting = self.lock();
        if waiting.closed {
            drop(waiting);
            drop(task);
            return;
        }
        let (owner, job) = (task.owner.clone(), task.begun.is_some());
        let entry = Entry { task, alike, since: Instant::now(), job, tried: false };
        waiting.owners.entry(owner).or_default().tasks.push_back(entry);
        drop(waiting);
        // One that gathers a batch may hear it in the place of one that is idle.
        self.wake.notify_all();
        self.reinforce();
    }

    /// Ends the lane: what waits is dropped, what runs is stopped if `stop` says so.
    pub fn end(&self, stop: bool) {
        let mut waiting = self.lock();
        waiting.closed = true;
        let tasks: Vec<Entry> = waiting.owners.values_mut().flat_map(|owner| owner.tasks.drain(..)).collect();
        drop(waiting);
        drop(tasks);
        self.wake.notify_all();
        if stop {
            self.running().iter().for_each(|running| running.stop.cancel());
        }
    }

    /// Stops what is too late, or what nobody waits for.
    fn watch(&self) {
        for running in &*self.running() {
            let time = running.since.elapsed();
            if time > self.bounds.time {
                running.late.store(true, Ordering::Relaxed);
            }
            if time > running.first.unwrap_or(self.bounds.time) {
                running.stop.cancel();
            }
            if running.flags.iter().all(CancelFlag::is_cancelled) {
                running.stop.cancel();
            }
        }
    }

    /// Ends what was cancelled, or waited for too long, behind what runs.
    fn drop_ended(&self) {
        let mut waiting = self.lock();
        let mut ended = Vec::new();
        for owner in waiting.owners.values_mut() {
            if owner.tasks.iter().any(|entry| self.ended(entry).is_some()) {
                let (over, kept) =
                    owner.tasks.drain(..).partition::<VecDeque<_>, _>(|entry| self.ended(entry).is_some());
                owner.tasks = kept;
                ended.extend(over);
            }
        }
        // Their room is in the tasks, and giving it back takes the lock.
        drop(waiting);
        for entry in ended {
            let problem = self.ended(&entry).unwrap_or_else(Problem::cancelled);
            finish(entry.task, Err(problem), None, 0.0, 1, &[], &[]);
        }
    }

    /// Why a task that waits will not be computed.
    fn ended(&self, entry: &Entry) -> Option<Problem> {
        if entry.task.cancel.is_cancelled() {
            Some(Problem::cancelled())
        } else if !entry.job && entry.since.elapsed() > self.bounds.wait {
            Some(Problem::unavailable("it waited in the queue for longer than it may"))
        } else {
            None
        }
    }

    /// The next tasks that become one dispatch; `None` at the lane's end. A thread that waits for a while calls `rest`, once.
    fn next(&self, role: Role, rest: impl Fn()) -> Option<Vec<Entry>> {
        let (mut waiting, mut rested) = (self.lock(), false);
        loop {
            if waiting.closed {
                return None;
            }
            let first = match role {
                Role::Computes => waiting.first(false),
                // One that is idle computes to the end.
                Role::Tries if waiting.idle > 0 => None,
                Role::Tries => waiting.first(true),
            };
            let Some(first) = first else {
                let idle = usize::from(role == Role::Computes);
                waiting.idle += idle;
                let time = if rested { Duration::MAX } else { REST };
                let (held, over) = self.wake.wait_timeout(waiting, time).unwrap_or_else(PoisonError::into_inner);
                waiting = held;
                waiting.idle -= idle;
                if over.timed_out() && !rested {
                    rested = true;
                    drop(waiting);
                    rest();
                    waiting = self.lock();
                }
                continue;
            };
            let Some(owner) = waiting.owners.get_mut(&first) else { continue };
            let Some(entry) = owner.tasks.pop_front() else { continue };
            waiting.spent.turn(&first);
            if let Some(problem) = self.ended(&entry) {
                // Its room is in the task, and giving it back takes the lock.
                drop(waiting);
                finish(entry.task, Err(problem), None, 0.0, 1, &[], &[]);
                waiting = self.lock();
                continue;
            }
            if let Some(owner) = waiting.owners.get_mut(&first) {
                owner.served = true;
            }
            let (since, alike) = (entry.since, entry.alike.clone());
            let mut batch = vec![entry];
            if let Some(alike) = alike {
                loop {
                    gather(&mut waiting, &alike, self.bounds.batch, &mut batch);
                    let left = self.bounds.window.saturating_sub(since.elapsed());
                    if batch.len() >= self.bounds.batch || left.is_zero() || waiting.closed {
                        break;
                    }
                    waiting = self.wake.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
            return Some(batch);
        }
    }

    /// Counts a dispatch's time, a part to each of its keys; the first is the one that was served. `back` was tried in vain, and waits again.
    fn charge(&self, owners: &[Arc<str>], seconds: f64, back: Vec<Entry>) {
        let mut waiting = self.lock();
        let each = seconds / owners.len().max(1) as f64;
        for owner in owners {
            waiting.spent.add(owner, each);
        }
        if waiting.closed {
            // Their room is in the tasks, and giving it back takes the lock.
            drop(waiting);
            return drop(back);
        }
        let barred = self.bounds.first.map(|first| Instant::now() + BARRED * first);
        for mut entry in back.into_iter().rev() {
            entry.tried = true;
            let owner = waiting.owners.entry(entry.task.owner.clone()).or_default();
            owner.barred = barred;
            owner.tasks.push_front(entry);
        }
        if let Some(owner) = owners.first().and_then(|first| waiting.owners.get_mut(first)) {
            owner.served = false;
        }
        // Who has nothing here is forgotten.
        if waiting.owners.len() > 1024 {
            waiting.owners.retain(|_, owner| owner.count > 0 || owner.served);
        }
    }

    /// A thread.
    fn work(self: &Arc<Self>, worker: &Worker, role: Role) {
        let first = self.bounds.first.filter(|_| role == Role::Tries);
        while let Some(mut batch) = self.next(role, || worker.rest()) {
            // A key that came while this thread was looked for has nobody else now.
            self.reinforce();
            for entry in &mut batch {
                if let Some(begun) = entry.task.begun.take() {
                    let _ = begun.send(());
                }
            }
            let (stop, late) = (CancelFlag::new(), Arc::new(AtomicBool::new(false)));
            let flags = batch.iter().map(|entry| entry.task.cancel.clone()).collect();
            let (since, began) = (Instant::now(), SystemTime::now());
            self.running().push(Running { since, stop: stop.clone(), flags, late: late.clone(), first });
            let tasks: Vec<&Task> = batch.iter().map(|entry| &entry.task).collect();
            let mut outcomes = worker.compute(&tasks, &stop);
            self.running().retain(|running| !Arc::ptr_eq(&running.late, &late));
            if stop.is_cancelled() {
                // The device did not fail: it was stopped.
                outcomes.events.clear();
            }
            let seconds = since.elapsed().as_secs_f64();
            // To the microsecond: a number with few digits is the same after the disk.
            let milliseconds = (seconds * 1e6).round() / 1e3;
            let owners: Vec<Arc<str>> = batch.iter().map(|entry| entry.task.owner.clone()).collect();
            self.dispatches.fetch_add(1, Ordering::Relaxed);
            self.busy.fetch_add((seconds * 1e6) as u64, Ordering::Relaxed);
            let count = batch.len();
            // The answers in order; one that is missing is a fault of the service.
            outcomes.results.resize_with(count, || Err(Problem::internal()));
            let mut back = Vec::new();
            for (entry, result) in batch.into_iter().zip(outcomes.results) {
                let stopped = matches!(&result, Err(problem) if problem.status == 409);
                let result = if stopped && late.load(Ordering::Relaxed) {
                    Err(Problem::time_limit(self.bounds.time.as_millis()))
                } else if stopped && first.is_some() && !entry.task.cancel.is_cancelled() && !self.lock().closed {
                    back.push(entry);
                    continue;
                } else {
                    result
                };
                self.done.fetch_add(1, Ordering::Relaxed);
                finish(entry.task, result, Some(began), milliseconds, count, &outcomes.devices, &outcomes.events);
            }
            self.charge(&owners, seconds, back);
            if role == Role::Tries {
                // One that became idle meanwhile takes the rest.
                self.wake.notify_all();
            }
        }
    }
}
