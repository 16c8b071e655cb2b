//! One opened device of an engine: its program cache, its pending batch, and the submissions whose outcome is not known yet.

#[cfg(feature = "wgsl")]
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::Shared as SharedFuture;
use rustc_hash::FxHashMap;

use super::event::{EventKind, Log};
use super::fate::Fate;
use crate::backend::{BoxFuture, Buffer, Command, Device, Program, Recording};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// A batch is submitted when it has so many commands …
const BATCH_COMMANDS: usize = 1024;
/// … or so many invocations: a device should not idle while a long batch is recorded.
const BATCH_INVOCATIONS: u64 = 1 << 22;

pub(crate) struct Slot {
    name: Arc<str>,
    device: Arc<dyn Device>,
    programs: Mutex<FxHashMap<Kernel, Arc<dyn Program>>>,
    work: Mutex<Work>,
    /// Set when the device is lost: no new work goes there.
    failure: Mutex<Option<Error>>,
    /// The first failure of work since the engine was last waited for.
    unreported: Mutex<Option<Error>>,
    /// What a layer above keeps with the device, one for each type.
    #[cfg(feature = "wgsl")]
    beside: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    /// Wrong answers that were told.
    #[cfg(feature = "wgsl")]
    told: Mutex<crate::kernel::Needs>,
}

#[derive(Default)]
struct Work {
    pending: Vec<Command>,
    effects: Vec<Effect>,
    invocations: u64,
    in_flight: Vec<Submission>,
}

/// The memory that one command reads and writes.
#[derive(Default)]
pub(crate) struct Effect {
    pub(crate) reads: Vec<Arc<Fate>>,
    pub(crate) writes: Vec<Arc<Fate>>,
}

/// A batch on its way.
struct Submission {
    outcome: SharedFuture<BoxFuture<'static, Result<()>>>,
    effects: Arc<[Effect]>,
}

impl Slot {
    pub(crate) fn new(device: Arc<dyn Device>) -> Self {
        Self {
            name: device.info().name.as_str().into(),
            device,
            programs: Mutex::default(),
            work: Mutex::default(),
            failure: Mutex::default(),
            unreported: Mutex::default(),
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

    /// What a layer above keeps with the device: made when it is first asked for.
    #[cfg(feature = "wgsl")]
    pub(crate) fn beside<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let known = beside.iter().find_map(|kept| kept.clone().downcast::<T>().ok());
        known.unwrap_or_else(|| {
            let made = Arc::new(T::default());
            beside.push(made.clone());
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

    /// Whether the kernel is compiled for this device.
    #[cfg(feature = "wgsl")]
    pub(super) fn has_program(&self, kernel: &Kernel) -> bool {
        lock(&self.programs).contains_key(kernel)
    }

    /// Why the device takes no new work, if it does not.
    pub(crate) fn failure(&self) -> Option<Error> {
        lock(&self.failure).clone()
    }

    pub(crate) fn note_failure(&self, error: &Error) {
        if matches!(error, Error::DeviceLost { .. }) {
            lock(&self.failure).get_or_insert_with(|| error.clone());
        }
    }

    /// The first failure of work that nobody was told of by this yet.
    pub(crate) fn take_unreported(&self) -> Option<Error> {
        lock(&self.unreported).take()
    }

    /// The kernel compiled for this device, from the cache or now. Failures are not cached: memory may come free.
    /// Says whether it was compiled now.
    pub(crate) async fn program(&self, kernel: &Kernel) -> Result<(Arc<dyn Program>, bool)> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        if let Some(program) = lock(&self.programs).get(kernel) {
            return Ok((program.clone(), false));
        }
        let program = self.device.compile(kernel).await?;
        Ok((lock(&self.programs).entry(kernel.clone()).or_insert(program).clone(), true))
    }

    /// Adds a command to the batch; submits when the batch is full.
    pub(crate) fn record(&self, command: Command, effect: Effect, invocations: u64, log: &Log) {
        let mut work = lock(&self.work);
        work.pending.push(command);
        work.effects.push(effect);
        work.invocations = work.invocations.saturating_add(invocations);
        if work.pending.len() >= BATCH_COMMANDS || work.invocations >= BATCH_INVOCATIONS {
            self.submit(&mut work, log);
        }
    }

    pub(crate) fn flush(&self, log: &Log) {
        self.submit(&mut lock(&self.work), log);
    }

    /// Submits under the lock, so that batches go out in the order in which they were recorded. What has come to an end well is
    /// forgotten here: an app that never reads must not pile up submissions.
    fn submit(&self, work: &mut Work, log: &Log) {
        if work.pending.is_empty() {
            return;
        }
        self.resolve_ready(work, log);
        let batch = std::mem::take(&mut work.pending);
        let effects = std::mem::take(&mut work.effects);
        work.invocations = 0;
        let outcome = self.device.submit(batch).shared();
        work.in_flight.push(Submission { outcome, effects: effects.into() });
    }

    /// Starts a recording, after everything recorded so far.
    pub(crate) fn replay(&self, recording: &Arc<dyn Recording>, effects: &Arc<[Effect]>, log: &Log) {
        let mut work = lock(&self.work);
        self.submit(&mut work, log);
        self.resolve_ready(&mut work, log);
        let outcome = self.device.replay(recording).shared();
        work.in_flight.push(Submission { outcome, effects: effects.clone() });
    }

    fn resolve_ready(&self, work: &mut Work, log: &Log) {
        while let Some(first) = work.in_flight.first() {
            // A shared future that nobody polls makes no progress of its own; polling once is free of waiting.
            let Some(outcome) = first.outcome.clone().now_or_never() else { return };
            let submission = work.in_flight.remove(0);
            self.conclude(&submission, &outcome, log);
        }
    }

    /// Submits the batch and waits until every submission so far is known to be accepted or refused. The failure, if there is one,
    /// is on the tensors afterwards; it is returned too when it is the device's end.
    pub(crate) async fn settle(&self, log: &Log) -> Result<()> {
        self.flush(log);
        loop {
            let next = lock(&self.work).in_flight.first().map(|submission| submission.outcome.clone());
            let Some(outcome) = next else { break };
            let result = outcome.clone().await;
            let mut work = lock(&self.work);
            // Another task may have concluded it while this one waited.
            if work.in_flight.first().is_some_and(|submission| submission.outcome.ptr_eq(&outcome)) {
                let submission = work.in_flight.remove(0);
                self.conclude(&submission, &result, log);
            }
        }
        Ok(())
    }

    /// Marks the outputs of a refused batch as lost, and in an accepted one those computed from lost inputs.
    fn conclude(&self, submission: &Submission, outcome: &Result<()>, log: &Log) {
        match outcome {
            Err(error) => {
                self.note_failure(error);
                lock(&self.unreported).get_or_insert_with(|| error.clone());
                log.push(EventKind::Failed, &self.name, &error.to_string());
                let cause = Arc::new(error.clone());
                for effect in &*submission.effects {
                    self.lose(effect, &cause, log);
                }
            }
            Ok(()) => {
                for effect in &*submission.effects {
                    if let Some(input) = effect.reads.iter().find(|fate| fate.lost().is_some()) {
                        let cause = Arc::new(Error::Device {
                            device: self.name.to_string(),
                            action: "computing it".to_owned(),
                            message: format!("its input, the tensor {}, was lost", input.label()),
                        });
                        self.lose(effect, &cause, log);
                    }
                }
            }
        }
    }

    fn lose(&self, effect: &Effect, cause: &Arc<Error>, log: &Log) {
        for fate in &effect.writes {
            if fate.lose(cause) && fate.is_held() {
                log.push(EventKind::Lost, &self.name, &format!("the tensor {} was lost: {cause}", fate.label()));
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
