//! One opened device of an engine: its programs, its batch, and the submissions whose outcome is not known yet.
//!
//! # What comes in
//! Commands with their `Effect` (the states of the memory that they read and write) and their `Size`; replays of recordings; writes of the host.
//!
//! # Stages
//! 1. `record` adds a command to the batch (`Work::pending`). It passes checks of indices from what the command reads to what it writes.
//! 2. `submit` gives the batch to the device when it is full, when a result is asked for (`settle`), or at `flush`. It is full at `BATCH_COMMANDS`
//!    commands (fewer on the CPU), `BATCH_INVOCATIONS` invocations, `BATCH_OPERATIONS` estimated operations, or `most_under_way` bytes of results.
//!    Commands that were cancelled are left out and lose their own results.
//! 3. `start` counts a turn, notes it in the states, and keeps a `Submission` with the shared future of its outcome.
//! 4. `conclude` takes the outcomes in order. What did not run is lost (`lose`), and so is what was computed from lost memory (`follow`).
//!
//! # The outcomes of a batch
//! - It ran: `follow` each command.
//! - `Ran::AllBut`: the commands that failed lose their outputs. The rest is sound.
//! - `Ran::Nothing`: the commands are submitted one by one, ahead of everything that waits (`submit_again`), so one faulty command does not take others
//!   down. A command whose inputs were written since, or whose outputs were used, is not repeated, because it would compute something else
//!   (`may_run_again`, by turns).
//! - `Ran::Unknown`, a lost device, a timeout: everything that the batch writes is lost.
//!
//! The first failure is kept for `Engine::finish` (`unreported`). A lost device takes no new work (`failure`).
//!
//! # What holds
//! - Batches are submitted in the order of recording, under the lock of `work`.
//! - A state is marked before the outcome is forgotten, so a read that has settled sees every loss.
//! - At most `MOST_IN_FLIGHT` batches wait before recording waits for the oldest (`make_room`). Memory of results under way is bounded too (`is_full`).
//! - Each kernel is compiled once for a device. A refusal (`Error::Unsupported`) is kept like a program.
//!
//! # What is surprising
//! - The estimate of operations exists because systems reset a GPU whose batch takes about two seconds. It counts only for devices behind a driver, and
//!   multiplies naga's expressions by the bounds of loops (`crates/kernel/src/rounds.rs`; 256 rounds if the text shows no bound).
//! - A thread that waits in a blocking call may run the CPU's batch itself (`help`), so small work wakes no other thread.
//! - A driver's compiler cannot be stopped. With a time limit it runs on a thread that is left behind when the limit passes.
//!
//! # An example
//! A batch of three commands: `a` computes x, `b` computes y from x, `c` computes z from y. The driver refuses it and nothing ran. The three are
//! submitted again on their own: `a` runs; `b` is refused again, and y is lost with the driver's error; `c` runs, but read what is lost, so z is lost
//! with the reason that its input y was. Reading x gives numbers, reading z an error, and `finish` returns the error of `b`.

#[cfg(feature = "wgsl")]
use std::any::Any;
use std::collections::VecDeque;
#[cfg(feature = "wgsl")]
use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
#[cfg(not(target_arch = "wasm32"))]
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::Shared as SharedFuture;
use rustc_hash::FxHashMap;

use super::blocking::{Help, help};
use super::event::{EventKind, Log};
use super::memory_state::MemoryState;
use crate::backend::{BoxFuture, Buffer, Command, Device, Execution, OpenOptions, Program, Ran, Recording, Refusal};
#[cfg(feature = "wgsl")]
use crate::backend::{MaybeSend, MaybeSync};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use cantus_base::listed::Listed;
#[cfg(not(target_arch = "wasm32"))]
use cantus_base::threads::ThreadTime;

/// The interval at which a running compiler is checked.
#[cfg(not(target_arch = "wasm32"))]
const LOOK: Duration = Duration::from_millis(50);

/// A batch is submitted when it has this many commands, …
const BATCH_COMMANDS: usize = 1024;
/// … on the CPU this many, where submitting costs little and another core starts while more is recorded, …
const PROCESSORS_COMMANDS: usize = 64;
/// … or this many invocations: a device should not idle while a long batch is recorded, …
const BATCH_INVOCATIONS: u64 = 1 << 22;
/// … or this many operations by an estimate: systems reset a GPU that takes some two seconds for one batch, and the slowest do 10^11
/// operations in that time.
const BATCH_OPERATIONS: u64 = 1 << 33;
/// The most invocations of a batch that a waiting thread runs itself if it must not block for long: some milliseconds, unless each takes thousands of
/// steps.
const SMALL_INVOCATIONS: u64 = 1 << 22;
/// The bytes of results that may be in flight before a caller has to wait, as a multiple of `most_under_way`.
const MOST_UNDER_WAY: u64 = 16;
/// The batches that may be in flight before a caller has to wait.
const MOST_IN_FLIGHT: usize = 64;

/// State that a layer above keeps with a device; on the web it stays on its thread.
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
type Beside = dyn Any + Send + Sync;
#[cfg(all(feature = "wgsl", target_arch = "wasm32"))]
type Beside = dyn Any;

pub(crate) struct Slot {
    name: Arc<str>,
    device: Arc<dyn Device>,
    /// Commands of a batch, at most.
    commands: usize,
    /// Limits on a driver's compiler: of time, and of the processor's time.
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "there is no thread to leave behind"))]
    limits: [Option<Duration>; 2],
    /// The compiled kernels, and the reason for each one that the device cannot run.
    programs: Mutex<FxHashMap<Kernel, Result<Arc<dyn Program>>>>,
    /// The same for kernels that no dispatch has needed yet.
    #[cfg(feature = "wgsl")]
    ahead: Mutex<FxHashMap<Kernel, Result<Arc<dyn Program>>>>,
    /// Rehearsals in a row that found nothing to compile.
    #[cfg(feature = "wgsl")]
    calm: AtomicU32,
    work: Mutex<Work>,
    /// Set when the device is lost: no new work goes there.
    failure: Mutex<Option<Error>>,
    /// The first failure of work since the engine was last waited for.
    unreported: Mutex<Option<Error>>,
    /// Held from a graph's first input to its start.
    replays: futures_util::lock::Mutex<()>,
    /// The state that layers above keep with the device, one value for each type.
    #[cfg(feature = "wgsl")]
    beside: Mutex<Vec<Box<Beside>>>,
    /// The wrong answers that were reported.
    #[cfg(feature = "wgsl")]
    told: Mutex<crate::kernel::Needs>,
}

#[derive(Default)]
struct Work {
    pending: Vec<Command>,
    effects: Vec<Effect>,
    size: Size,
    in_flight: VecDeque<Submission>,
    /// Counts what the device was given: submissions and host writes.
    turn: u64,
    /// Bytes of results recorded since the device was last waited for.
    under_way: u64,
}

/// The amount of work in a command or a batch.
#[derive(Clone, Copy, Default)]
pub(crate) struct Size {
    pub(crate) invocations: u64,
    /// An estimate; 0 if there is no driver whose limits matter.
    pub(crate) operations: u64,
    /// Bytes of the results.
    pub(crate) bytes: u64,
}

impl Size {
    fn add(&mut self, other: Self) {
        self.invocations = self.invocations.saturating_add(other.invocations);
        self.operations = self.operations.saturating_add(other.operations);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The memory that one command reads and writes.
#[derive(Clone, Default)]
pub(crate) struct Effect {
    pub(crate) reads: Vec<Arc<MemoryState>>,
    pub(crate) writes: Vec<Arc<MemoryState>>,
}

impl Effect {
    /// Adds memory that is read, and written if the flag says so.
    pub(super) fn add(&mut self, state: Arc<MemoryState>, writes: bool) {
        if writes {
            self.writes.push(state.clone());
        }
        self.reads.push(state);
    }

    /// Passes the checks of the memory that it reads to the memory that it writes.
    pub(super) fn pass_on(&self) {
        for from in &self.reads {
            let checks = from.checks().list();
            if !checks.is_empty() {
                self.writes
                    .iter()
                    .filter(|to| !Arc::ptr_eq(from, to))
                    .for_each(|to| to.checks().add(checks.iter().cloned()));
            }
        }
    }

    /// Returns whether the commands of a turn that did not run would compute the same now: no later turn wrote to their inputs, or used their outputs.
    fn may_run_again(&self, turn: u64) -> bool {
        self.reads.iter().all(|state| state.is_unwritten_since(turn))
            && self.writes.iter().all(|state| state.is_last_turn(turn))
    }
}

/// A batch in flight.
struct Submission {
    outcome: Outcome,
    effects: Arc<[Effect]>,
    /// Its turn, and the turn of the batch that it was first part of.
    turn: u64,
    first: u64,
}

type Outcome = SharedFuture<BoxFuture<'static, Result<(), Refusal>>>;

impl Slot {
    pub(crate) fn new(device: Arc<dyn Device>, options: &OpenOptions) -> Self {
        Self {
            name: device.info().name.as_str().into(),
            commands: match device.info().capabilities.execution {
                Execution::Executor => PROCESSORS_COMMANDS,
                _ => BATCH_COMMANDS,
            },
            device,
            limits: [options.timeout, options.stall_limit],
            programs: Mutex::default(),
            #[cfg(feature = "wgsl")]
            ahead: Mutex::default(),
            #[cfg(feature = "wgsl")]
            calm: AtomicU32::new(0),
            work: Mutex::default(),
            failure: Mutex::default(),
            unreported: Mutex::default(),
            replays: futures_util::lock::Mutex::new(()),
            #[cfg(feature = "wgsl")]
            beside: Mutex::default(),
            #[cfg(feature = "wgsl")]
            told: Mutex::default(),
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Returns the state that a layer above keeps with the device; it is made on the first request.
    #[cfg(feature = "wgsl")]
    pub(crate) fn beside<T: Any + MaybeSend + MaybeSync + Default>(&self) -> Arc<T> {
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let known = beside.iter().find_map(|kept| kept.downcast_ref::<Arc<T>>()).cloned();
        known.unwrap_or_else(|| {
            let made = Arc::new(T::default());
            beside.push(Box::new(made.clone()));
            made
        })
    }

    /// True the first time for each construct.
    #[cfg(feature = "wgsl")]
    pub(super) fn tell_once(&self, need: crate::kernel::Need) -> bool {
        let mut told = lock(&self.told);
        let new = !told.contains(need);
        told.insert(need);
        new
    }

    /// Returns whether the kernel is compiled for this device.
    #[cfg(feature = "wgsl")]
    pub(super) fn has_program(&self, kernel: &Kernel) -> bool {
        lock(&self.programs).get(kernel).is_some_and(Result::is_ok)
    }

    /// Returns whether the kernel is compiled, or was refused.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    pub(super) fn is_compiled(&self, kernel: &Kernel) -> bool {
        lock(&self.programs).contains_key(kernel) || lock(&self.ahead).contains_key(kernel)
    }

    /// Returns the kernel compiled for this device before a dispatch needs it: that one proves it (`trust`) and takes it over.
    #[cfg(feature = "wgsl")]
    pub(super) async fn program_ahead(&self, kernel: &Kernel) -> Result<Arc<dyn Program>> {
        if let Some(known) = lock(&self.programs).get(kernel) {
            return known.clone();
        }
        if let Some(known) = lock(&self.ahead).get(kernel) {
            return known.clone();
        }
        let compiled = self.compile(kernel).await;
        // What fails for another reason than the kernel itself is compiled again.
        if matches!(compiled, Ok(_) | Err(Error::Unsupported { .. })) {
            lock(&self.ahead).insert(kernel.clone(), compiled.clone());
        }
        compiled
    }

    /// Returns whether rehearsals found nothing to compile for some time.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    pub(super) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed) >= super::rehearsal::CALM
    }

    /// Notes whether a rehearsal found something to compile.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    pub(super) fn note_rehearsal(&self, found: bool) {
        if found {
            self.calm.store(0, Ordering::Relaxed);
        } else {
            self.calm.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the reason why the device takes no new work, if it takes none.
    pub(crate) fn failure(&self) -> Option<Error> {
        lock(&self.failure).clone()
    }

    pub(crate) fn note_failure(&self, error: &Error) {
        if matches!(error, Error::DeviceLost { .. }) {
            lock(&self.failure).get_or_insert_with(|| error.clone());
        }
    }

    /// The lock for writing a graph's inputs and starting it.
    pub(super) fn replays(&self) -> &futures_util::lock::Mutex<()> {
        &self.replays
    }

    /// Takes the first failure of work that was not taken yet.
    pub(crate) fn take_unreported(&self) -> Option<Error> {
        lock(&self.unreported).take()
    }

    /// Returns the kernel compiled for this device, from the cache or compiled now, and whether it was compiled now. A refusal is kept, so the device is
    /// not asked again. Other failures are not, because memory may become free.
    pub(crate) async fn program(&self, kernel: &Kernel) -> Result<(Arc<dyn Program>, bool)> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        if let Some(known) = lock(&self.programs).get(kernel) {
            return known.clone().map(|program| (program, false));
        }
        #[cfg(feature = "wgsl")]
        let ahead = lock(&self.ahead).remove(kernel);
        #[cfg(not(feature = "wgsl"))]
        let ahead = None;
        #[cfg(feature = "_test")]
        self.beside::<super::rehearsal::Counts>().count(ahead.is_some());
        let compiled = match ahead {
            Some(compiled) => compiled,
            None => self.compile(kernel).await,
        };
        #[cfg(feature = "wgsl")]
        self.calm.store(0, Ordering::Relaxed);
        if compiled.as_ref().is_err_and(|error| !matches!(error, Error::Unsupported { .. })) {
            return compiled.map(|program| (program, true));
        }
        lock(&self.programs).entry(kernel.clone()).or_insert(compiled).clone().map(|program| (program, true))
    }

    #[cfg(target_arch = "wasm32")]
    async fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Program>> {
        self.device.compile(kernel).await
    }

    /// A driver's compiler cannot be stopped: with a limit it runs on a thread that is left behind when the limit passes.
    #[cfg(not(target_arch = "wasm32"))]
    async fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Program>> {
        let [limit, of_processor] = self.limits;
        if !self.device.must_prove() || limit.or(of_processor).is_none() {
            return self.device.compile(kernel).await;
        }
        let (send, receive) = std::sync::mpsc::channel();
        let (device, copy) = (self.device.clone(), kernel.clone());
        let (begin, begun) = std::sync::mpsc::channel();
        let compile = move || {
            let _ = begin.send(ThreadTime::here());
            let _ = send.send(pollster::block_on(device.compile(&copy)));
        };
        let failed = |message: String| Error::Device {
            device: self.name.to_string(),
            action: format!("compiling {}", kernel.label()),
            message,
        };
        cantus_base::threads::spawn("cantus-driver".to_owned(), Box::new(compile))
            .map_err(|error| failed(format!("the compiler's thread could not be started: {error}")))?;
        let ended = || failed("its compiler ended without a result".to_owned());
        let (since, taken) = (Instant::now(), begun.recv().map_err(|_| ended())?);
        loop {
            let left = limit.map_or(LOOK, |limit| limit.saturating_sub(since.elapsed()).min(LOOK));
            match receive.recv_timeout(left) {
                Ok(compiled) => return compiled,
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(limit) = limit.filter(|&limit| since.elapsed() >= limit) {
                return Err(Error::Timeout {
                    what: format!("compiling {}", kernel.label()),
                    device: self.name.to_string(),
                    milliseconds: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
                });
            }
            if let Some(most) = of_processor.filter(|&most| taken.elapsed().is_some_and(|taken| taken >= most)) {
                // The device remains in use. It only has no program for this kernel.
                return Err(Error::Unsupported {
                    kernel: kernel.label().to_string(),
                    device: self.name.to_string(),
                    construct: format!(
                        "its driver's compiler took more than {} ms of the processor's time (stall_ms raises the limit)",
                        most.as_millis()
                    ),
                    report: String::new(),
                });
            }
        }
    }

    /// Adds a command to the batch; submits when the batch is full.
    pub(crate) fn record(&self, command: Command, effect: Effect, size: Size, log: &Log) {
        effect.pass_on();
        let mut work = lock(&self.work);
        work.pending.push(command);
        work.effects.push(effect);
        work.size.add(size);
        work.under_way = work.under_way.saturating_add(size.bytes);
        if work.pending.len() >= self.commands
            || work.size.invocations >= BATCH_INVOCATIONS
            || work.size.operations >= BATCH_OPERATIONS
            || work.size.bytes >= self.most_under_way()
        {
            self.submit(&mut work, log);
        }
    }

    pub(crate) fn flush(&self, log: &Log) {
        self.submit(&mut lock(&self.work), log);
    }

    /// Prepares a host write to memory: submits everything recorded so far, and counts a turn.
    pub(crate) fn begin_write(&self, state: &MemoryState, log: &Log) {
        let mut work = lock(&self.work);
        self.submit(&mut work, log);
        self.resolve_ready(&mut work, log);
        work.turn += 1;
        state.note_written(work.turn);
    }

    /// Commands that are recorded and not yet submitted, and submissions whose end is not known yet.
    #[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
    pub(super) fn queue(&self, log: &Log) -> (usize, usize) {
        let mut work = lock(&self.work);
        self.resolve_ready(&mut work, log);
        (work.pending.len(), work.in_flight.len())
    }

    /// Returns whether there is work whose outcome is not known yet.
    pub(crate) fn is_busy(&self) -> bool {
        let work = lock(&self.work);
        !work.pending.is_empty() || !work.in_flight.is_empty()
    }

    /// Waits while too many batches are in flight, so that a device that is slower than its caller does not accumulate work.
    pub(crate) async fn make_room(&self, log: &Log) {
        loop {
            let oldest = {
                let work = lock(&self.work);
                if work.in_flight.len() < MOST_IN_FLIGHT {
                    return;
                }
                work.in_flight.front().map(|submission| submission.outcome.clone())
            };
            let Some(oldest) = oldest else { return };
            self.wait(&oldest, log).await;
        }
    }

    /// Returns whether results in flight exceed their limit of memory, and resets the count if so. A caller that drops results without reading any would
    /// otherwise run ahead of the device without bound.
    pub(crate) fn is_full(&self) -> bool {
        let mut work = lock(&self.work);
        let is_full = work.under_way > MOST_UNDER_WAY * self.most_under_way();
        if is_full {
            work.under_way = 0;
        }
        is_full
    }

    /// Submits under the lock, so that batches are submitted in the order of recording. Submissions that have ended are concluded here, so that an app that
    /// never reads does not accumulate them.
    fn submit(&self, work: &mut Work, log: &Log) {
        self.submit_by(work, log, |batch| self.device.submit(batch));
    }

    fn submit_by(
        &self,
        work: &mut Work,
        log: &Log,
        begin: impl FnOnce(Vec<Command>) -> BoxFuture<'static, Result<(), Refusal>>,
    ) {
        if work.pending.is_empty() {
            return;
        }
        self.resolve_ready(work, log);
        let mut batch = std::mem::take(&mut work.pending);
        let mut effects = std::mem::take(&mut work.effects);
        work.size = Size::default();
        self.leave_out_cancelled(&mut batch, &mut effects, log);
        if !batch.is_empty() {
            let submission = self.start(work, effects.into(), None, || begin(batch));
            work.in_flight.push_back(submission);
        }
    }

    /// Removes commands that were cancelled before they were submitted. They lose their own results only.
    fn leave_out_cancelled(&self, batch: &mut Vec<Command>, effects: &mut Vec<Effect>, log: &Log) {
        if batch.iter().all(|command| command.check_cancelled().is_ok()) {
            return;
        }
        let all = std::mem::take(batch).into_iter().zip(std::mem::take(effects));
        for (command, effect) in all {
            match command.check_cancelled() {
                Ok(()) => {
                    batch.push(command);
                    effects.push(effect);
                }
                Err(error) => self.fail(&effect, &error, log),
            }
        }
    }

    /// Gives the device something to do. `first` is the turn of a batch that this was part of.
    fn start(
        &self,
        work: &mut Work,
        effects: Arc<[Effect]>,
        first: Option<u64>,
        begin: impl FnOnce() -> BoxFuture<'static, Result<(), Refusal>>,
    ) -> Submission {
        work.turn += 1;
        for effect in &*effects {
            effect.reads.iter().for_each(|state| state.note_read(work.turn));
            effect.writes.iter().for_each(|state| state.note_written(work.turn));
        }
        Submission { outcome: begin().shared(), effects, turn: work.turn, first: first.unwrap_or(work.turn) }
    }

    /// Starts a recording, after everything recorded so far.
    pub(crate) fn replay(&self, recording: &Arc<dyn Recording>, effects: &Arc<[Effect]>, log: &Log) {
        effects.iter().for_each(Effect::pass_on);
        let mut work = lock(&self.work);
        self.submit(&mut work, log);
        self.resolve_ready(&mut work, log);
        let submission = self.start(&mut work, effects.clone(), None, || self.device.replay(recording));
        work.in_flight.push_back(submission);
    }

    fn resolve_ready(&self, work: &mut Work, log: &Log) {
        while let Some(first) = work.in_flight.front() {
            // A shared future makes no progress unless it is polled; polling once does not wait.
            let Some(outcome) = first.outcome.clone().now_or_never() else { return };
            if let Some(submission) = work.in_flight.pop_front() {
                self.conclude(work, &submission, outcome, log);
            }
        }
    }

    /// Submits the batch and waits until every submission so far is known to be accepted or refused. Failures are on the tensors afterwards.
    pub(crate) async fn settle(&self, log: &Log) {
        let (helps, last) = {
            let mut work = lock(&self.work);
            let helps = match help() {
                Help::None => false,
                // Batches in flight may take longer.
                Help::Small => work.in_flight.is_empty() && work.size.invocations <= SMALL_INVOCATIONS,
                Help::All => true,
            };
            if helps {
                self.submit_by(&mut work, log, |batch| self.device.submit_awaited(batch));
            } else {
                self.submit(&mut work, log);
            }
            (helps, work.turn)
        };
        if helps {
            self.device.help();
        }
        loop {
            let next =
                lock(&self.work).in_flight.front().map(|submission| (submission.outcome.clone(), submission.first));
            let Some((outcome, first)) = next else { break };
            if first > last {
                break;
            }
            self.wait(&outcome, log).await;
        }
    }

    /// Waits for the outcome of a submission, and concludes it.
    async fn wait(&self, outcome: &Outcome, log: &Log) {
        let result = outcome.clone().await;
        let mut work = lock(&self.work);
        // Another task may have concluded it while this one waited.
        if work.in_flight.front().is_some_and(|submission| submission.outcome.ptr_eq(outcome))
            && let Some(submission) = work.in_flight.pop_front()
        {
            self.conclude(&mut work, &submission, result, log);
        }
    }

    /// Marks as lost what commands that did not run would have written, and what was computed from lost inputs. A batch of which nothing ran
    /// is submitted again, command by command.
    fn conclude(&self, work: &mut Work, submission: &Submission, outcome: Result<(), Refusal>, log: &Log) {
        let effects = &*submission.effects;
        let Err(Refusal { error, ran }) = outcome else {
            return effects.iter().for_each(|effect| self.follow(effect, log));
        };
        self.note_failure(&error);
        match ran {
            Ran::Nothing(batch)
                if batch.len() == effects.len()
                    && batch.len() > 1
                    && !matches!(*error, Error::DeviceLost { .. } | Error::Timeout { .. }) =>
            {
                self.submit_again(work, submission, batch, &error, log);
            }
            Ran::AllBut(failed) => {
                let mut failed = failed.into_iter().peekable();
                for (place, effect) in effects.iter().enumerate() {
                    match failed.next_if(|(at, _)| *at == place) {
                        Some((_, error)) => self.fail(effect, &error, log),
                        None => self.follow(effect, log),
                    }
                }
            }
            _ => {
                self.report(&error, log);
                effects.iter().for_each(|effect| self.lose(effect, &error, log));
            }
        }
    }

    /// Submits the commands of a refused batch one by one, ahead of everything that is not submitted yet. A command whose inputs were written since would
    /// compute something else, and one whose result was used since would come too late. The outputs of both are lost.
    fn submit_again(&self, work: &mut Work, submission: &Submission, batch: Vec<Command>, error: &Error, log: &Log) {
        let message = format!("{error}; its {} commands are submitted one by one", batch.len());
        log.push(EventKind::Failed, &self.name, &message);
        let sound: Vec<bool> = submission.effects.iter().map(|effect| effect.may_run_again(submission.turn)).listed();
        let mut again = Vec::new();
        for ((command, effect), sound) in batch.into_iter().zip(&*submission.effects).zip(sound) {
            if !sound {
                self.fail(effect, error, log);
            } else if let Err(cancelled) = command.check_cancelled() {
                self.fail(effect, &cancelled, log);
            } else {
                let effects = [effect.clone()].into();
                again.push(self.start(work, effects, Some(submission.first), || self.device.submit(vec![command])));
            }
        }
        again.into_iter().rev().for_each(|submission| work.in_flight.push_front(submission));
    }

    /// A command was not run.
    fn fail(&self, effect: &Effect, error: &Error, log: &Log) {
        self.report(error, log);
        self.lose(effect, &Arc::new(error.clone()), log);
    }

    /// A command ran: what it computed from lost inputs is lost.
    fn follow(&self, effect: &Effect, log: &Log) {
        if let Some(input) = effect.reads.iter().find(|state| state.lost().is_some()) {
            let cause = Arc::new(Error::Device {
                device: self.name.to_string(),
                action: "computing it".to_owned(),
                message: format!("its input, the tensor {}, was lost", input.label()),
            });
            self.lose(effect, &cause, log);
        }
    }

    /// Keeps the first failure for whoever waits for everything.
    pub(super) fn report(&self, error: &Error, log: &Log) {
        lock(&self.unreported).get_or_insert_with(|| error.clone());
        log.push(EventKind::Failed, &self.name, &error.to_string());
    }

    fn lose(&self, effect: &Effect, cause: &Arc<Error>, log: &Log) {
        for state in &effect.writes {
            if state.lose(cause) && state.is_held() {
                log.push(EventKind::Lost, &self.name, &format!("the tensor {} was lost: {cause}", state.label()));
            }
        }
    }
}

/// Writes host bytes to a buffer, padded to the unit of 4 bytes.
pub(crate) async fn upload(slot: &Slot, buffer: &Arc<dyn Buffer>, bytes: &[u8]) -> Result<()> {
    let whole = bytes.len() / 4 * 4;
    let (aligned, rest) = bytes.split_at(whole);
    if !aligned.is_empty() {
        slot.device().write(buffer, 0, aligned).await?;
    }
    if !rest.is_empty() {
        let mut last = [0_u8; 4];
        last[..rest.len()].copy_from_slice(rest);
        slot.device().write(buffer, whole as u64, &last).await?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
