//! The state of a tensor's memory: whether the contents were lost and why, which turns of the device used them, and the checks of indices that they
//! depend on.
//!
//! A state belongs to memory on one device, not to a handle. The tensor's `Place` holds it, and so does each command that reads or writes the memory
//! (`Effect`), until the outcome of the command is known. A loss therefore survives dropped tensors, memory scopes and moves; the first cause stays.
//! Turns count what the device was given, under the lock of its slot: `slot` asks them whether a command that did not run may run later. `tracker`
//! says how it differs from the other things that a tensor tracks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::index_checks::Checks;
use crate::error::Error;

/// The state of one tensor's memory on one device. The tensor holds it, and so does every command that reads or writes the memory: a loss
/// outlives the tensor until all that was recorded with it is concluded.
pub(crate) struct MemoryState {
    label: Arc<str>,
    lost: OnceLock<Arc<Error>>,
    /// No handle refers to the memory any more.
    dropped: AtomicBool,
    /// The device's turn (a submission, or a write of the host's) that last used the memory.
    turn: AtomicU64,
    /// The turn that last wrote to it.
    written: AtomicU64,
    /// Checks of the indices that the contents were looked up with.
    checks: Checks,
}

impl MemoryState {
    pub(super) fn new(label: &Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            label: label.clone(),
            lost: OnceLock::new(),
            dropped: AtomicBool::new(false),
            turn: AtomicU64::new(0),
            written: AtomicU64::new(0),
            checks: Checks::default(),
        })
    }

    /// Returns the state of a copy.
    pub(super) fn copied(label: &Arc<str>, from: &Self) -> Arc<Self> {
        let state = Self::new(label);
        state.checks.add(from.checks.list().into_iter());
        state
    }

    pub(super) fn checks(&self) -> &Checks {
        &self.checks
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Marks the contents as lost; the first cause stays. Returns whether this was the first.
    pub(super) fn lose(&self, cause: &Arc<Error>) -> bool {
        self.lost.set(cause.clone()).is_ok()
    }

    /// Why the contents were lost, if they were.
    pub(super) fn lost(&self) -> Option<&Arc<Error>> {
        self.lost.get()
    }

    /// Notes that a turn reads the memory. Turns are counted under the slot's lock.
    pub(super) fn note_read(&self, turn: u64) {
        self.turn.store(turn, Ordering::Relaxed);
    }

    /// Notes that a turn writes to the memory.
    pub(super) fn note_written(&self, turn: u64) {
        self.note_read(turn);
        self.written.store(turn, Ordering::Relaxed);
    }

    /// Returns whether no later turn read the memory or wrote to it.
    pub(super) fn is_last_turn(&self, turn: u64) -> bool {
        self.turn.load(Ordering::Relaxed) == turn
    }

    /// Returns whether no later turn wrote to the memory.
    pub(super) fn is_unwritten_since(&self, turn: u64) -> bool {
        self.written.load(Ordering::Relaxed) <= turn
    }

    pub(super) fn note_dropped(&self) {
        self.dropped.store(true, Ordering::Relaxed);
    }

    /// Returns whether a handle may still be read.
    pub(super) fn is_held(&self) -> bool {
        !self.dropped.load(Ordering::Relaxed)
    }
}
