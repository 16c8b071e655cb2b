//! The handle: a shape, a dtype, and a buffer on one device of an engine. Reading and writing from the host; no operations.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Engine, Shared, Slot, upload};
use crate::backend::Buffer;
use crate::error::{Error, Result};
#[cfg(all(feature = "npy", not(target_arch = "wasm32")))]
use crate::tensor::npy;
use crate::tensor::{DType, Element};

/// An array on one device of an engine: contiguous, row-major. Cheap to clone; clones are the same array.
///
/// Dropping the last clone gives the memory back to the device's pool.
#[derive(Clone)]
pub struct Tensor {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    label: String,
    shape: Box<[usize]>,
    dtype: DType,
    pub(crate) engine: Arc<Shared>,
    place: Mutex<Place>,
}

/// Where a tensor's data is.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) slot: Arc<Slot>,
    /// `None` for a tensor without elements.
    pub(crate) buffer: Option<Arc<dyn Buffer>>,
    /// Set once the contents are lost.
    pub(crate) lost: Option<Arc<Error>>,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the contents as lost; the first cause stays.
    pub(crate) fn lose(&self, cause: &Arc<Error>) {
        self.lock().lost.get_or_insert_with(|| cause.clone());
    }

    /// Gives the memory back. Work that was recorded before keeps it until it is done, and what it computes is sound.
    pub(crate) fn release(&self, cause: &Arc<Error>) {
        let mut place = self.lock();
        if place.lost.is_none() {
            (place.lost, place.buffer) = (Some(cause.clone()), None);
        }
    }

    /// Whether a failure took the contents: not true of memory that was given back.
    pub(crate) fn is_lost(&self) -> bool {
        let place = self.lock();
        place.lost.is_some() && place.buffer.is_some()
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }
}

impl Tensor {
    pub(crate) fn assemble(engine: Arc<Shared>, label: String, shape: &[usize], dtype: DType, place: Place) -> Self {
        Self { inner: Arc::new(Inner { label, shape: shape.into(), dtype, engine, place: Mutex::new(place) }) }
    }

    /// Lengths of the axes; `[]` for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.inner.shape
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.inner.dtype
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.shape.iter().product()
    }

    /// True when there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of the contents in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.len() as u64 * self.dtype().bytes() as u64
    }

    /// The label used in messages.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.inner.label
    }

    /// The engine it belongs to.
    #[must_use]
    pub fn engine(&self) -> Engine {
        Engine::from_shared(self.inner.engine.clone())
    }

    /// The name of the device it is on now.
    #[must_use]
    pub fn device_name(&self) -> String {
        self.place().slot.name().to_string()
    }

    /// Its memory on the device, for code that shares the device (for wgpu: [`crate::backend::wgpu::raw_buffer`]); `None` without
    /// elements. Work recorded so far is submitted first by [`Engine::flush`].
    #[must_use]
    pub fn buffer(&self) -> Option<Arc<dyn Buffer>> {
        self.place().buffer
    }

    pub(crate) fn place(&self) -> Place {
        self.inner.lock().clone()
    }

    pub(crate) fn set_place(&self, place: Place) {
        *self.inner.lock() = place;
    }

    pub(crate) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.inner)
    }

    /// The place, or the error that lost the contents.
    pub(crate) fn live_place(&self) -> Result<Place> {
        let place = self.place();
        match &place.lost {
            None => Ok(place),
            Some(cause) => Err(Error::TensorLost { tensor: self.label().to_owned(), cause: cause.clone() }),
        }
    }

    /// Copies the contents to the host, after all work recorded so far.
    ///
    /// # Errors
    /// [`Error::TensorLost`] when earlier work that wrote it failed, else what the device reports.
    pub async fn to_bytes_async(&self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.byte_len()).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| self.host_out_of_memory())?;
        bytes.resize(length, 0);
        self.read_into(&mut bytes).await?;
        Ok(bytes)
    }

    /// Copies the contents to the host as elements, after all work recorded so far.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] when `T` is not the tensor's dtype, else as [`Tensor::to_bytes_async`].
    pub async fn to_vec_async<T: Element>(&self) -> Result<Vec<T>> {
        self.expect_dtype::<T>()?;
        let mut values = Vec::new();
        values.try_reserve_exact(self.len()).map_err(|_| self.host_out_of_memory())?;
        values.resize(self.len(), T::zeroed());
        self.read_into(bytemuck::cast_slice_mut(&mut values)).await?;
        Ok(values)
    }

    async fn read_into(&self, bytes: &mut [u8]) -> Result<()> {
        self.inner.engine.check_computed(self)?;
        let span = self.inner.engine.profiler().begin();
        self.inner.engine.settle(&self.place().slot).await?;
        let place = self.live_place()?;
        let Some(buffer) = &place.buffer else { return Ok(()) };
        let result = place.slot.device().read(buffer, 0, bytes).await;
        self.inner.engine.profiler().end(span, || format!("read {}", self.label()), bytes.len() as u64);
        self.inner.engine.note_outcome(&place.slot, &result);
        result
    }

    /// Overwrites the contents from the host, after all work recorded so far.
    ///
    /// # Errors
    /// [`Error::InvalidSize`] when the number of elements differs, [`Error::InvalidInput`] when the dtype does.
    pub async fn write_async<T: Element>(&self, values: &[T]) -> Result<()> {
        let bytes = bytemuck::cast_slice(values);
        self.check_write(T::DTYPE, bytes.len())?;
        self.write_bytes(bytes).await
    }

    /// Whether bytes of elements fit the whole of it.
    pub(crate) fn check_write(&self, dtype: DType, bytes: usize) -> Result<()> {
        if dtype != self.dtype() {
            return Err(self.other_dtype(dtype));
        }
        if bytes as u64 != self.byte_len() {
            return Err(Error::InvalidSize {
                what: format!("the tensor {}", self.label()),
                reason: format!("it has {} elements, {} were given", self.len(), bytes / dtype.bytes()),
            });
        }
        Ok(())
    }

    /// Overwrites the contents with bytes that were checked.
    pub(crate) async fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        let place = self.live_place()?;
        self.inner.engine.flush_slot(&place.slot);
        let Some(buffer) = &place.buffer else { return Ok(()) };
        let span = self.inner.engine.profiler().begin();
        upload(&place.slot, buffer, bytes).await?;
        self.inner.engine.profiler().end(span, || format!("write {}", self.label()), bytes.len() as u64);
        Ok(())
    }

    fn other_dtype(&self, dtype: DType) -> Error {
        Error::InvalidInput {
            what: format!("the tensor {}", self.label()),
            reason: format!("its elements are {}, not {dtype}", self.dtype()),
        }
    }

    fn expect_dtype<T: Element>(&self) -> Result<()> {
        if T::DTYPE == self.dtype() { Ok(()) } else { Err(self.other_dtype(T::DTYPE)) }
    }

    fn host_out_of_memory(&self) -> Error {
        Error::OutOfMemory {
            device: "the host".to_owned(),
            what: format!("a copy of the tensor {}", self.label()),
            bytes: self.byte_len(),
        }
    }
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl Tensor {
    /// [`Tensor::to_bytes_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        pollster::block_on(self.to_bytes_async())
    }

    /// [`Tensor::to_vec_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        pollster::block_on(self.to_vec_async())
    }

    /// [`Tensor::write_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn write<T: Element>(&self, values: &[T]) -> Result<()> {
        pollster::block_on(self.write_async(values))
    }

    /// The contents as an `ndarray` array of the same shape.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    pub fn to_array<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        let values = self.to_vec()?;
        ndarray::ArrayD::from_shape_vec(self.shape(), values).map_err(|error| Error::InvalidSize {
            what: format!("the tensor {}", self.label()),
            reason: error.to_string(),
        })
    }
}

/// Files.
#[cfg(all(feature = "npy", not(target_arch = "wasm32")))]
impl Tensor {
    /// A tensor of a `.npy` file's elements.
    ///
    /// # Errors
    /// As [`npy::read`] and [`Engine::tensor_from_bytes`].
    pub fn from_npy(engine: &Engine, path: impl AsRef<std::path::Path>) -> Result<Self> {
        let array = npy::read(path)?;
        engine.tensor_from_bytes(array.dtype, &array.shape, &array.bytes)
    }

    /// Writes the contents to a `.npy` file, whole or not at all.
    ///
    /// # Errors
    /// As [`Tensor::to_bytes`] and [`npy::write`].
    pub fn to_npy(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        npy::write(path, self.dtype(), self.shape(), &self.to_bytes()?)
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
