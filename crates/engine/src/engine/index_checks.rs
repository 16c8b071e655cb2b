//! Indices that tensors hold, checked on the device. The device computes their maximum, which says whether they lie within their axis. A read of anything
//! that depends on them evaluates the check. Kernels clamp each index by themselves, so one that is out of range reads within the axis until then. It belongs to the memory that depends on it, and commands pass it on from what they read to what they write.

#![cfg_attr(not(feature = "wgsl"), allow(dead_code, reason = "operations alone look at indices"))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::Shared;
use super::memory_state::MemoryState;
use super::slot::Slot;
use super::tensor::Tensor;
use crate::backend::Buffer;
use crate::error::{Error, IndexError, Result};

/// An axis, and which operation looks indices up there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Axis {
    pub(crate) operation: &'static str,
    pub(crate) axis: usize,
    pub(crate) length: usize,
    /// True if indices below 0 count from the end.
    pub(crate) is_signed: bool,
}

impl Axis {
    /// Returns whether the same indices are within both.
    fn is_like(self, other: Self) -> bool {
        (self.length, self.is_signed) == (other.length, other.is_signed)
    }

    /// Returns the error for the greatest of the indices, to each of which the length was added if they are signed.
    fn fault(self, greatest: u32) -> Option<Error> {
        let length = self.length as u64;
        let most = if self.is_signed { 2 * length } else { length };
        if u64::from(greatest) < most {
            return None;
        }
        let (index, least) = match self.is_signed {
            true => (i64::from(greatest.wrapping_sub(self.length as u32).cast_signed()), -(self.length as i64)),
            false => (i64::from(greatest), 0),
        };
        let most = length.cast_signed() - 1;
        let operation = self.operation.to_string();
        Some(IndexError::Element { operation, index, axis: self.axis, least, most }.into())
    }
}

/// A check of the indices of one evaluation, or of all replays of a graph.
pub(crate) struct Check {
    axis: Axis,
    /// The device of the number. If the device is dropped first, nothing is reported.
    slot: Weak<Slot>,
    greatest: Arc<dyn Buffer>,
    /// A replay writes the number anew.
    is_replayed: bool,
    known: OnceLock<u32>,
}

impl Check {
    /// Returns whether it is a check of indices of such an axis.
    pub(super) fn is_for(&self, axis: Axis) -> bool {
        self.axis.is_like(axis)
    }

    /// Returns whether the greatest index is known, and lies within the axis.
    pub(super) fn is_sound(&self) -> bool {
        self.known.get().is_some_and(|&greatest| self.axis.fault(greatest).is_none())
    }

    /// Looks at the number, once the device has computed it.
    async fn verify(&self, shared: &Shared) -> Result<()> {
        let greatest = match self.known.get() {
            Some(known) => *known,
            None => {
                let Some(slot) = self.slot.upgrade() else { return Ok(()) };
                shared.settle(&slot).await;
                let mut bytes = [0; 4];
                if slot.failure().is_some() || slot.device().read(&self.greatest, 0, &mut bytes).await.is_err() {
                    // The tensors that depend on it report the failure.
                    return Ok(());
                }
                let greatest = u32::from_ne_bytes(bytes);
                if !self.is_replayed {
                    let _ = self.known.set(greatest);
                }
                greatest
            }
        };
        self.axis.fault(greatest).map_or(Ok(()), Err)
    }
}

/// The checks that contents depend on.
#[derive(Default)]
pub(super) struct Checks {
    has_any: AtomicBool,
    all: Mutex<Vec<Arc<Check>>>,
}

impl Checks {
    pub(super) fn add(&self, more: impl Iterator<Item = Arc<Check>>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|check| !check.is_sound());
        for check in more {
            if !all.iter().any(|known| Arc::ptr_eq(known, &check)) {
                all.push(check);
            }
        }
        self.has_any.store(!all.is_empty(), Ordering::Release);
    }

    pub(super) fn list(&self) -> Vec<Arc<Check>> {
        if !self.has_any.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn clear(&self) {
        if self.has_any.swap(false, Ordering::AcqRel) {
            self.all.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

impl Tensor {
    /// Returns whether the contents were found to be indices of such an axis, and nobody has written to them since.
    pub(crate) fn is_within(&self, axis: Axis) -> bool {
        self.inner.tracker.is_within(axis)
    }
}

/// The number of checks that are evaluated together when nothing is read for long.
const MOST_UNSEEN: usize = 256;

/// Checks whose number nobody has looked at.
#[derive(Default)]
pub(super) struct Unseen(Mutex<Vec<Weak<Check>>>);

impl Shared {
    /// Ties what reads `indices` to a check of them: `greatest` is a number for it alone. `of` is what they are a copy of, and its version at most.
    pub(crate) async fn watch(&self, indices: &Tensor, greatest: &Tensor, axis: Axis, of: (&Tensor, u64)) {
        self.trace_watch(indices, greatest, axis);
        if let Some(check) = self.watched(indices, greatest, axis).filter(|check| !check.is_replayed) {
            let (tensor, version) = of;
            tensor.inner.tracker.note_checked(version, axis, check);
        }
        self.look().await;
    }

    /// Looks at what nobody has looked at, where there is much of it: numbers must not pile up.
    pub(super) async fn look(&self) {
        let due = {
            let mut unseen = self.unseen.0.lock().unwrap_or_else(PoisonError::into_inner);
            if unseen.len() < MOST_UNSEEN { Vec::new() } else { std::mem::take(&mut *unseen) }
        };
        for check in due.iter().filter_map(Weak::upgrade) {
            // A read of what depends on it reports the error.
            let _ = check.verify(self).await;
        }
    }

    pub(super) fn watched(&self, indices: &Tensor, greatest: &Tensor, axis: Axis) -> Option<Arc<Check>> {
        let (place, number) = (indices.place(), greatest.place());
        let buffer = number.buffer?;
        let is_replayed = self.current_capture().is_some();
        let slot = Arc::downgrade(&number.slot);
        let check = Arc::new(Check { axis, slot, greatest: buffer, is_replayed, known: OnceLock::new() });
        if !is_replayed {
            self.unseen.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&check));
        }
        place.state.checks().add([check.clone()].into_iter());
        Some(check)
    }

    /// Reports indices out of range that contents depend on.
    pub(super) async fn verify(&self, state: &MemoryState) -> Result<()> {
        for check in state.checks().list() {
            check.verify(self).await?;
        }
        Ok(())
    }
}
