//! Tensors: a handle of a shape, a dtype and memory on one device of an engine. Contents move to and from the host in `transfer`, and between devices in
//! `relocate`. What a tensor tracks of its contents, and why, is in `tracker`.
//!
//! Clones share one `Inner`. What may change over a tensor's life is in its `Tracker` alone, so a place that was read once may be stale: whoever submits
//! with it asks `is_at` while it holds `Moves`.

use std::sync::{Arc, Weak};

use super::tracker::{Place, Tracker};
use super::{Engine, Shared};
use crate::backend::{Buffer, DeviceInfo};
use crate::error::Result;
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
    pub(crate) tracker: Tracker,
}

impl Tensor {
    pub(crate) fn assemble(engine: Arc<Shared>, label: Arc<str>, shape: &[usize], dtype: DType, place: Place) -> Self {
        let tracker = Tracker::new(place);
        Self { inner: Arc::new(Inner { label, shape: shape.into(), dtype, engine, tracker }) }
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
        self.inner.tracker.note_shared();
        self.place().buffer
    }

    pub(crate) fn place(&self) -> Place {
        self.inner.tracker.place().clone()
    }

    pub(super) fn set_place(&self, place: Place) {
        *self.inner.tracker.place() = place;
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
        self.inner.tracker.place().cause().is_none()
    }

    /// Returns whether this is where it is now.
    pub(super) fn is_at(&self, place: &Place) -> bool {
        let now = self.inner.tracker.place();
        Arc::ptr_eq(&now.state, &place.state) && now.released.is_none()
    }

    pub(crate) fn version(&self) -> u64 {
        self.inner.tracker.version()
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
