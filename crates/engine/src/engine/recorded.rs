//! Contents that expressions recorded. What overwrites a tensor copies them first, for as long as an expression may read them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::capture::Captured;
use super::relocate::{ATTEMPTS, contended, copied};
use super::slot::{Effect, Size};
use super::tensor::Tensor;
use crate::backend::{Command, Contents};
use crate::error::{Error, Result};
use cantus_base::listed::Listed;

/// A tensor as an expression recorded it: the tensor itself, or a copy from before it was overwritten.
pub(crate) struct Recorded {
    tensor: Mutex<Tensor>,
    /// The capture in which it was recorded. The contents are then those at each replay.
    capture: Option<Weak<Captured>>,
}

impl Recorded {
    /// The contents of a tensor as they are now: the same for all who record them before they change.
    pub(crate) fn of(tensor: &Tensor) -> Arc<Self> {
        let capture = tensor.inner.engine.current_capture();
        let mut known = tensor.inner.tracker.recorded();
        let found = known.iter().filter_map(Weak::upgrade).find(|recorded| recorded.is_of(capture.as_ref()));
        found.unwrap_or_else(|| {
            let capture = capture.as_ref().map(Arc::downgrade);
            let recorded = Arc::new(Self { tensor: Mutex::new(tensor.clone()), capture });
            known.retain(|known| known.strong_count() > 0);
            known.push(Arc::downgrade(&recorded));
            recorded
        })
    }

    fn is_of(&self, capture: Option<&Arc<Captured>>) -> bool {
        match (&self.capture, capture) {
            (None, None) => true,
            (Some(own), Some(capture)) => own.ptr_eq(&Arc::downgrade(capture)),
            (_, _) => false,
        }
    }

    /// Returns the tensor that holds them.
    pub(crate) fn tensor(&self) -> Tensor {
        self.tensor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Tensor {
    /// Copies the contents for the expressions that recorded them, before something overwrites them.
    pub(crate) async fn preserve(&self) -> Result<()> {
        let read: Vec<Arc<Recorded>> = self.inner.tracker.recorded().iter().filter_map(Weak::upgrade).listed();
        let current = self.inner.engine.current_capture();
        let (within, before): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|recorded| current.is_some() && recorded.is_of(current.as_ref()));
        self.copied_for(&within, true).await?;
        // An expression recorded before the capture reads the contents from before it.
        self.copied_for(&before, false).await
    }

    async fn copied_for(&self, readers: &[Arc<Recorded>], is_captured: bool) -> Result<()> {
        if readers.is_empty() {
            return Ok(());
        }
        let shared = &self.inner.engine;
        shared.spoil_trace();
        for _ in 0..ATTEMPTS {
            // A lost or empty tensor has no contents to keep.
            let Ok(place) = self.live_place() else { return Ok(()) };
            let Some(source) = place.buffer.clone() else { return Ok(()) };
            let label = self.shared_label();
            let mut to = shared.allocate(place.slot.clone(), self.byte_len(), Contents::Overwritten, label).await?;
            let Some(target) = to.buffer.clone() else { return Ok(()) };
            let is_beside = Arc::ptr_eq(&to.slot, &place.slot);
            if !is_beside && is_captured {
                // A replay copies on its own device.
                return Err(Error::OutOfMemory {
                    device: place.slot.name().to_string(),
                    what: format!("a copy of the tensor {label}, which a graph overwrites and reads"),
                    bytes: self.byte_len(),
                });
            }
            if !is_beside {
                // There was no room for it on the same device.
                to.buffer = copied(shared, self, &place, &to.slot).await?;
            }
            let _still = shared.moves.hold();
            if !self.is_at(&place) {
                continue;
            }
            let effect = Effect { reads: vec![place.state.clone()], writes: vec![to.state.clone()] };
            let slot = to.slot.clone();
            let copy = Self::assemble(shared.clone(), label.clone(), self.shape(), self.dtype(), to);
            if is_beside {
                let bytes = self.byte_len().next_multiple_of(4);
                let command = Command::Copy { source, source_offset: 0, target, target_offset: 0, bytes };
                if is_captured {
                    shared.note_used(self);
                    shared.record(&slot, command, effect, Size::default());
                } else {
                    slot.record(command, effect, Size::default(), &shared.events);
                }
            }
            for reader in readers {
                *reader.tensor.lock().unwrap_or_else(PoisonError::into_inner) = copy.clone();
            }
            let has_copy = |known: &Weak<Recorded>| readers.iter().any(|reader| known.ptr_eq(&Arc::downgrade(reader)));
            self.inner.tracker.recorded().retain(|known| !has_copy(known));
            return Ok(());
        }
        Err(contended(self.label()))
    }
}
