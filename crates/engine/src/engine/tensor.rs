//! Tensors: a handle of a shape, a dtype and memory on one device of an engine. Contents move to and from the host in `transfer`, and between devices in
//! `relocate`.
//!
//! # What a tensor tracks
//! A handle (`Tensor`) shares an `Inner`. Its `Place` is where the contents are now: slot, buffer, fate, and `released` once a memory scope gave the
//! memory back. Beside the place, five things change over a tensor's life, each for another question.
//!
//! | | belongs to | changes | read by | question |
//! | --- | --- | --- | --- | --- |
//! | `version` | the tensor | a command that writes it is recorded, or the host wrote it | `relocate`, checks of indices | Was it written since I looked? |
//! | `fate` (`Fate`) | memory on one device | it is used by a turn, lost or dropped | reads, `slot` | Do the contents exist? Who used them last? |
//! | `is_shared` | the tensor | its memory is given to others; never reset | checks of indices | May others write without notice? |
//! | `checked` (`Checked`) | the tensor | an operation checked it as indices | `is_within` | Are the contents known to be indices of this axis? |
//! | `recorded` | the tensor | an expression records it; a copy is made | `Tensor::preserve` | Which expressions still read the contents as they are now? |
//!
//! - **Why `version` is not in `fate`.** A move gives the tensor a new fate and leaves its version. A version counts when a command is recorded, while
//!   turns of a fate count when it is submitted.
//! - **Why a loss is in `fate`.** Commands hold the fate and not the tensor. A loss therefore outlives dropped handles, and reaches what was computed
//!   from it.
//! - **Checks of indices** are in two places. `checked` saves checking an index tensor again. The fate's `checks` list what the contents depend on;
//!   commands pass them on to what they write, and a read evaluates them.
//!
//! # What holds
//! - `version` is counted up only while `Moves` is held, so a move that began before the write notices it and begins again.
//! - Before anything overwrites a tensor, it calls `preserve`. Only operations' own results skip this, because no expression has recorded them
//!   (`DispatchBuilder::fresh`).
//! - A place is replaced only by `relocate`, once the copy is complete. A released place is never filled again.
//!
//! # An example
//! `y = gather(x, i)` in a loop. The first time `i` is copied and its greatest index computed; `checked` has version 0 and the check, and so has the fate
//! of `y`. Reading `y` looks at the number. Afterwards `is_within` is true, and `i` is used as it is. `i.write(..)` first copies `i` for expressions that
//! have recorded it, then sets version 1, so the next gather checks again. After `i.buffer()` every gather checks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::fate::Fate;
use super::places::Checked;
#[cfg(feature = "wgsl")]
use super::recorded::Recorded;
use super::{Engine, Shared, Slot};
use crate::backend::{Buffer, DeviceInfo};
use crate::error::{Error, Result};
use crate::tensor::DType;

/// An array on one device of an engine: contiguous and row-major. Clones are cheap and share the memory.
///
/// Dropping the last clone returns the memory to the device's pool.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
/// assert_eq!((x.shape(), x.ndim(), x.len(), x.byte_len()), (&[2, 3][..], 2, 6, 24));
/// x.write_at(4, &[50.0_f32])?;
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 50.0, 6.0]);
/// # Ok::<(), cantus::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    label: Arc<str>,
    shape: Box<[usize]>,
    dtype: DType,
    pub(crate) engine: Arc<Shared>,
    place: Mutex<Place>,
    /// Counts what was recorded or written to it, so that a move knows that it must begin again.
    version: AtomicU64,
    /// True if others may write to the memory without telling.
    is_shared: AtomicBool,
    /// The last check of its contents as places on an axis.
    checked: Checked,
    /// The expressions' records of it since it was last overwritten.
    #[cfg(feature = "wgsl")]
    recorded: Mutex<Vec<Weak<Recorded>>>,
}

/// The memory of a tensor and its device.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) slot: Arc<Slot>,
    /// `None` for a tensor without elements.
    pub(crate) buffer: Option<Arc<dyn Buffer>>,
    /// The fate of the contents.
    pub(crate) fate: Arc<Fate>,
    /// Set once the memory was given back, by a memory scope.
    pub(crate) released: Option<Arc<Error>>,
}

impl Place {
    /// # Errors
    /// [`Error::TensorLost`] when the contents are gone.
    pub(super) fn check(&self, label: &str) -> Result<()> {
        match self.released.as_ref().or(self.fate.lost()) {
            None => Ok(()),
            Some(cause) => Err(Error::TensorLost { tensor: label.to_owned(), cause: cause.clone() }),
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the memory back. Work that was recorded before keeps it until it is done, and what it computes is sound.
    pub(crate) fn release(&self, cause: &Arc<Error>) {
        let mut place = self.lock();
        if place.released.is_none() && place.fate.lost().is_none() {
            place.fate.note_dropped();
            (place.released, place.buffer) = (Some(cause.clone()), None);
        }
    }

    #[cfg(feature = "wgsl")]
    pub(super) fn recorded(&self) -> MutexGuard<'_, Vec<Weak<Recorded>>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of times it was written.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Notes that a command that writes it was recorded, or that the host wrote it. The caller holds [`super::relocate::Moves`].
    pub(super) fn note_written(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Notes that others have got the memory.
    pub(super) fn note_shared(&self) {
        self.is_shared.store(true, Ordering::Release);
    }

    pub(super) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Acquire)
    }

    pub(super) fn checked(&self) -> &Checked {
        &self.checked
    }

    /// Returns the fate of the contents where they are now.
    pub(super) fn fate(&self) -> Arc<Fate> {
        self.lock().fate.clone()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.lock().fate.note_dropped();
    }
}

impl Tensor {
    pub(crate) fn assemble(engine: Arc<Shared>, label: Arc<str>, shape: &[usize], dtype: DType, place: Place) -> Self {
        let (place, version) = (Mutex::new(place), AtomicU64::new(0));
        Self {
            inner: Arc::new(Inner {
                label,
                shape: shape.into(),
                dtype,
                engine,
                place,
                version,
                is_shared: AtomicBool::new(false),
                checked: Checked::default(),
                #[cfg(feature = "wgsl")]
                recorded: Mutex::default(),
            }),
        }
    }

    /// Returns the lengths of the axes; `[]` for a scalar.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert_eq!(engine.zeros::<f32>(&[2, 3])?.shape(), [2, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.inner.shape
    }

    /// Returns the number of axes; 0 for a scalar.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert_eq!(engine.zeros::<f32>(&[2, 3])?.ndim(), 2);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.inner.shape.len()
    }

    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.inner.dtype
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.shape.iter().product()
    }

    /// Returns whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the contents in bytes.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert_eq!(engine.zeros::<f32>(&[2, 3])?.byte_len(), 24);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.len() as u64 * self.dtype().bytes() as u64
    }

    /// Returns the label used in messages.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.inner.label
    }

    pub(super) fn shared_label(&self) -> &Arc<str> {
        &self.inner.label
    }

    /// Returns the engine it belongs to.
    #[must_use]
    pub fn engine(&self) -> Engine {
        Engine::from_shared(self.inner.engine.clone())
    }

    /// Returns the name of the device it is on now.
    #[must_use]
    pub fn device_name(&self) -> String {
        self.place().slot.name().to_string()
    }

    /// Returns the device it is on now: not the selected one, where what wrote it ran on another.
    #[must_use]
    pub fn device(&self) -> DeviceInfo {
        self.place().slot.device().info().clone()
    }

    /// Returns its memory on the device, for code that shares the device (for wgpu: [`crate::backend::wgpu::raw_buffer`]); `None` without
    /// elements. Work recorded so far is submitted first by [`Engine::flush`].
    #[must_use]
    pub fn buffer(&self) -> Option<Arc<dyn Buffer>> {
        self.inner.note_shared();
        self.place().buffer
    }

    pub(crate) fn place(&self) -> Place {
        self.inner.lock().clone()
    }

    pub(super) fn set_place(&self, place: Place) {
        *self.inner.lock() = place;
    }

    pub(super) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.inner)
    }

    /// The place, or the error that lost the contents.
    pub(crate) fn live_place(&self) -> Result<Place> {
        let place = self.place();
        place.check(self.label())?;
        Ok(place)
    }

    /// Returns whether the contents are there.
    #[cfg(feature = "wgsl")]
    pub(crate) fn is_live(&self) -> bool {
        let place = self.inner.lock();
        place.released.is_none() && place.fate.lost().is_none()
    }

    /// Returns whether this is where it is now.
    pub(super) fn is_at(&self, place: &Place) -> bool {
        let now = self.inner.lock();
        Arc::ptr_eq(&now.fate, &place.fate) && now.released.is_none()
    }

    pub(crate) fn version(&self) -> u64 {
        self.inner.version()
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tensor")
            .field("label", &self.label())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("device", &self.device_name())
            .finish()
    }
}
