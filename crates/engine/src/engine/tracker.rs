//! The tracker of a tensor's contents: where they are, whether they are lost, who may have changed them, and who still reads them as they were.
//!
//! # One type, five questions
//! A handle (`Tensor`) shares an `Inner`, which holds one `Tracker`. Its `Place` is where the contents are now: slot, buffer, state, and `released` once a
//! memory scope gave the memory back. Each of the five things that change over a tensor's life answers another question:
//!
//! | | belongs to | changes | read by | question |
//! | --- | --- | --- | --- | --- |
//! | `version` | the tensor | a command that writes it is recorded, or the host wrote it | `relocate`, checks of indices | Was it written since I looked? |
//! | `place.state` (`MemoryState`) | memory on one device | it is used by a turn, lost or dropped | reads, `slot` | Do the contents exist? Who used them last? |
//! | `is_shared` | the tensor | its memory is given to others; never reset | checks of indices | May others write without notice? |
//! | `checked` | the tensor | an operation checked it as indices | `is_within` | Are the contents known to be indices of this axis? |
//! | `recorded` | the tensor | an expression records it; a copy is made | `Tensor::preserve` | Which expressions still read the contents as they are now? |
//!
//! # Why they are not fewer
//! - **`version` is not in the state.** A move gives the tensor a new state and leaves its version. A version counts when a command is recorded, while
//!   turns of a state count when it is submitted.
//! - **A loss is in the state.** Commands hold the state and not the tensor. A loss therefore outlives dropped handles, and reaches what was computed
//!   from it.
//! - **`is_shared` is no version.** Whoever has the memory writes whenever it likes, so no number could tell.
//! - **Checks of indices** are kept twice. `checked` saves checking an index tensor again. The state's `checks` list what the contents depend on; commands
//!   pass them on to what they write, and a read evaluates them.
//! - **`recorded` is a list of weak references** and not a count: whatever overwrites the tensor gives each of these expressions the copy to read.
//!
//! # What holds
//! - `version` is counted up only while `Moves` is held, so a move that began before the write notices it and begins again.
//! - Before anything overwrites a tensor, it calls `preserve`. Only operations' own results skip this, because no expression has recorded them
//!   (`DispatchBuilder::fresh`).
//! - A place is replaced only by `relocate`, once the copy is complete. A released place is never filled again.
//!
//! # An example
//! `y = gather(x, i)` in a loop. The first time `i` is copied and its greatest index computed; `checked` has version 0 and the check, and so has the state
//! of `y`. Reading `y` looks at the number. Afterwards `is_within` is true, and `i` is used as it is. `i.write(..)` first copies `i` for expressions that
//! have recorded it, then sets version 1, so the next gather checks again. After `i.buffer()` every gather checks.

#[cfg(feature = "wgsl")]
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Slot;
use super::index_checks::{Axis, Check};
use super::memory_state::MemoryState;
#[cfg(feature = "wgsl")]
use super::recorded::Recorded;
use crate::backend::Buffer;
use crate::error::{Error, Result};

/// The memory of a tensor and its device.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) slot: Arc<Slot>,
    /// `None` for a tensor without elements.
    pub(crate) buffer: Option<Arc<dyn Buffer>>,
    pub(crate) state: Arc<MemoryState>,
    /// Set once the memory was given back, by a memory scope.
    pub(crate) released: Option<Arc<Error>>,
}

impl Place {
    /// # Errors
    /// [`Error::TensorLost`] when the contents are gone.
    pub(super) fn check(&self, label: &str) -> Result<()> {
        match self.cause() {
            None => Ok(()),
            Some(cause) => Err(Error::TensorLost { tensor: label.to_owned(), cause: cause.clone() }),
        }
    }

    /// Why the contents are gone, if they are.
    pub(super) fn cause(&self) -> Option<&Arc<Error>> {
        self.released.as_ref().or(self.state.lost())
    }
}

/// A check of the contents as indices, and the version that it looked at.
struct Checked {
    version: u64,
    check: Arc<Check>,
}

/// See the module.
pub(crate) struct Tracker {
    place: Mutex<Place>,
    /// Counts what was recorded or written, so that a move knows that it must begin again.
    version: AtomicU64,
    /// True if others may write to the memory without telling.
    is_shared: AtomicBool,
    /// The last check of the contents as indices.
    checked: Mutex<Option<Box<Checked>>>,
    /// The expressions' records since the contents were last overwritten.
    #[cfg(feature = "wgsl")]
    recorded: Mutex<Vec<Weak<Recorded>>>,
}

impl Tracker {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place: Mutex::new(place),
            version: AtomicU64::new(0),
            is_shared: AtomicBool::new(false),
            checked: Mutex::default(),
            #[cfg(feature = "wgsl")]
            recorded: Mutex::default(),
        }
    }

    /// The place, locked.
    pub(super) fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of the memory where the contents are now.
    pub(super) fn state(&self) -> Arc<MemoryState> {
        self.place().state.clone()
    }

    /// Gives the memory back. Work that was recorded before keeps it until it is done, and what it computes is sound.
    pub(crate) fn release(&self, cause: &Arc<Error>) {
        let mut place = self.place();
        if place.cause().is_none() {
            place.state.note_dropped();
            (place.released, place.buffer) = (Some(cause.clone()), None);
        }
    }

    /// Returns the number of times the contents were written.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Notes that a command that writes the contents was recorded, or that the host wrote them. The caller holds [`super::relocate::Moves`].
    pub(super) fn note_written(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Notes that others have got the memory.
    pub(super) fn note_shared(&self) {
        self.is_shared.store(true, Ordering::Release);
    }

    /// Returns whether the contents were found to be indices of such an axis, and nobody has written to them since.
    #[cfg_attr(not(feature = "wgsl"), allow(dead_code, reason = "operations alone look at indices"))]
    pub(super) fn is_within(&self, axis: Axis) -> bool {
        !self.is_shared.load(Ordering::Acquire)
            && self.checked().as_deref().is_some_and(|known| {
                known.check.is_for(axis) && known.check.is_sound() && known.version == self.version()
            })
    }

    /// Notes a check of the contents as they were in a version. A pending check of the same contents serves as well.
    #[cfg_attr(not(feature = "wgsl"), allow(dead_code, reason = "operations alone look at indices"))]
    pub(super) fn note_checked(&self, version: u64, axis: Axis, check: Arc<Check>) {
        let mut checked = self.checked();
        if !checked.as_deref().is_some_and(|known| known.version == version && known.check.is_for(axis)) {
            *checked = Some(Box::new(Checked { version, check }));
        }
    }

    fn checked(&self) -> MutexGuard<'_, Option<Box<Checked>>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The expressions' records, locked.
    #[cfg(feature = "wgsl")]
    pub(super) fn recorded(&self) -> MutexGuard<'_, Vec<Weak<Recorded>>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.place().state.note_dropped();
    }
}
