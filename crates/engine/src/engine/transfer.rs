//! Contents of tensors to and from the host: slices, arrays of ndarray, `.npy` files. Reads settle the slot first (`settled`), so they see everything
//! recorded before and return the error of what was lost. Writes come after all recorded work, and what expressions recorded is preserved before. A write
//! that fails half-way loses the tensor, because nobody knows which half.

use crate::backend::BoxFuture;
use std::sync::Arc;

use super::Shared;
use super::relocate::{ATTEMPTS, contended};
use super::slot::upload;
use super::tensor::Tensor;
use super::tracker::Place;
use crate::error::{DtypeError, Error, Result};
use crate::tensor::{DType, Element};

impl Tensor {
    /// Copies the contents to the host, after all work recorded so far.
    ///
    /// # Errors
    /// [`Error::TensorLost`] when earlier work that wrote it failed, else what the device reports.
    pub fn to_bytes_async(&self) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(async move {
            let mut bytes = self.host_room()?;
            self.read_bytes(0, &mut bytes).await?;
            Ok(bytes)
        })
    }

    /// Copies the contents to the host as elements, after all work recorded so far.
    ///
    /// # Errors
    /// [`Error::Dtype`] when `T` is not the tensor's dtype, else as [`Tensor::to_bytes_async`].
    pub async fn to_vec_async<T: Element>(&self) -> Result<Vec<T>> {
        self.expect_dtype(T::DTYPE)?;
        let mut values = self.host_room()?;
        self.read_elements(0, &mut values).await?;
        Ok(values)
    }

    /// Copies the contents into memory of the caller's, after all work recorded so far.
    ///
    /// # Errors
    /// [`Error::Shape`] when the slice has another number of elements, else as [`Tensor::to_vec_async`].
    pub async fn read_into_async<T: Element>(&self, into: &mut [T]) -> Result<()> {
        self.check_write(T::DTYPE, size_of_val(into))?;
        self.read_elements(0, into).await
    }

    /// Copies the elements from `first` on, in row-major order, as many as `into` has.
    ///
    /// # Errors
    /// [`Error::Shape`] when there are fewer, else as [`Tensor::to_vec_async`].
    pub async fn read_at_async<T: Element>(&self, first: usize, into: &mut [T]) -> Result<()> {
        let offset = self.check_range(T::DTYPE, first, into.len())?;
        self.read_elements(offset, into).await
    }

    /// Returns the only element.
    ///
    /// # Errors
    /// [`Error::Shape`] when there are none or several, else as [`Tensor::to_vec_async`].
    pub async fn item_async<T: Element>(&self) -> Result<T> {
        let mut value = [T::zeroed()];
        self.expect_dtype(T::DTYPE)?;
        if self.len() != 1 {
            return Err(self.wrong_size(format!("it has {} elements; item() needs exactly one", self.len())));
        }
        self.read_elements(0, &mut value).await?;
        let [value] = value;
        Ok(value)
    }

    /// Overwrites the contents from the host, after all work recorded so far. Expressions recorded before keep the old contents: they are copied
    /// where one still reads them. Dropped half-way, it may have written a part.
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of elements differs, [`Error::Dtype`] when the dtype does. Where the device fails, the
    /// contents are lost.
    pub async fn write_async<T: Element>(&self, values: &[T]) -> Result<()> {
        let bytes = bytemuck::cast_slice(values);
        self.check_write(T::DTYPE, bytes.len())?;
        self.write_bytes(0, bytes).await
    }

    /// Overwrites the elements from `first` on, in row-major order, as many as `values` has, after all work recorded so far.
    ///
    /// # Errors
    /// [`Error::Shape`] when there are fewer, [`Error::Dtype`] when the dtype differs.
    pub async fn write_at_async<T: Element>(&self, first: usize, values: &[T]) -> Result<()> {
        let offset = self.check_range(T::DTYPE, first, values.len())?;
        self.write_bytes(offset, bytemuck::cast_slice(values)).await
    }

    /// Returns the contents as an `ndarray` array of the same shape.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_array_async<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        let values = self.to_vec_async().await?;
        ndarray::ArrayD::from_shape_vec(self.shape(), values).map_err(|error| self.wrong_size(error.to_string()))
    }

    /// Copies the contents into an `ndarray` array or view of the same shape and of any layout.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes differ, else as [`Tensor::to_vec_async`].
    pub async fn read_into_array_async<T: Element, S, D>(&self, into: &mut ndarray::ArrayBase<S, D>) -> Result<()>
    where
        S: ndarray::DataMut<Elem = T>,
        D: ndarray::Dimension,
    {
        self.expect_dtype(T::DTYPE)?;
        if into.shape() != self.shape() {
            return Err(self.wrong_size(format!("its shape is {:?}, not {:?}", self.shape(), into.shape())));
        }
        if let Some(contiguous) = into.as_slice_mut() {
            return self.read_elements(0, contiguous).await;
        }
        let values = self.to_vec_async::<T>().await?;
        into.iter_mut().zip(values).for_each(|(element, value)| *element = value);
        Ok(())
    }

    /// Reads elements that are inside of it, from a place in bytes on.
    async fn read_elements<T: Element>(&self, offset: u64, into: &mut [T]) -> Result<()> {
        if let Some(bytes) = T::bytes_mut(into) {
            return self.read_bytes(offset, bytes).await;
        }
        let mut bytes = vec![0; size_of_val(into)];
        self.read_bytes(offset, &mut bytes).await?;
        T::decode(into, &bytes);
        Ok(())
    }

    /// Reads bytes that are inside of it.
    pub(super) fn read_bytes<'a>(&'a self, offset: u64, into: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let shared = &self.inner.engine;
            shared.check_computed(self)?;
            shared.spoil_trace();
            let span = shared.profiler().begin();
            let place = self.settled(shared).await?;
            shared.verify(&place.state).await?;
            let Some(buffer) = place.buffer.as_ref().filter(|_| !into.is_empty()) else { return Ok(()) };
            let result = place.slot.device().read(buffer, offset, into).await;
            shared.profiler().end(span, || format!("read {}", self.label()), into.len() as u64);
            shared.note_outcome(&place.slot, &result);
            result
        })
    }

    /// Waits until it is computed.
    ///
    /// # Errors
    /// As [`Tensor::to_bytes_async`].
    pub fn wait_async(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            // By reading where it begins.
            let mut bytes = [0; 4];
            let most = usize::try_from(self.byte_len()).unwrap_or(4).min(4);
            self.read_bytes(0, &mut bytes[..most]).await
        })
    }

    /// Its place once the device has taken or refused all work recorded there so far.
    pub(super) async fn settled(&self, shared: &Arc<Shared>) -> Result<Place> {
        for _ in 0..ATTEMPTS {
            let slot = self.place().slot;
            shared.settle(&slot).await;
            let place = self.live_place()?;
            // It may have been moved meanwhile.
            if Arc::ptr_eq(&place.slot, &slot) {
                return Ok(place);
            }
        }
        Err(contended(self.label()))
    }

    /// Checks that the bytes are as many as its elements have.
    pub(super) fn check_write(&self, dtype: DType, bytes: usize) -> Result<()> {
        self.expect_dtype(dtype)?;
        if bytes as u64 == self.byte_len() {
            return Ok(());
        }
        Err(self.wrong_size(format!("it has {} elements, {} were given", self.len(), bytes / dtype.bytes())))
    }

    /// The offset in bytes of a range of elements that is inside of it.
    fn check_range(&self, dtype: DType, first: usize, count: usize) -> Result<u64> {
        self.expect_dtype(dtype)?;
        if first.checked_add(count).is_some_and(|end| end <= self.len()) {
            return Ok(first as u64 * dtype.bytes() as u64);
        }
        Err(self.wrong_size(format!("it has {} elements, fewer than {count} from element {first} on", self.len())))
    }

    /// Overwrites bytes that are inside of it.
    pub(super) fn write_bytes<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let shared = &self.inner.engine;
            shared.spoil_trace();
            #[cfg(feature = "wgsl")]
            if !bytes.is_empty() {
                self.preserve().await?;
            }
            for _ in 0..ATTEMPTS {
                let place = self.live_place()?;
                place.slot.begin_write(&place.state, &shared.events);
                let Some(buffer) = place.buffer.as_ref().filter(|_| !bytes.is_empty()) else { return Ok(()) };
                let span = shared.profiler().begin();
                let written = if bytes.len() as u64 == self.byte_len() {
                    place.state.checks().clear();
                    upload(&place.slot, buffer, bytes).await
                } else {
                    place.slot.device().write(buffer, offset, bytes).await
                };
                if let Err(error) = &written {
                    // Its contents are unknown now.
                    shared.note_outcome(&place.slot, &written);
                    place.state.lose(&Arc::new(error.clone()));
                }
                written?;
                shared.profiler().end(span, || format!("write tensor {}", self.label()), bytes.len() as u64);
                let _still = shared.moves.hold();
                self.inner.tracker.note_written();
                // If it was moved meanwhile, the copy may lack this write.
                if Arc::ptr_eq(&self.place().state, &place.state) {
                    return Ok(());
                }
            }
            Err(contended(self.label()))
        })
    }

    fn wrong_size(&self, reason: String) -> Error {
        Error::shape(format!("the tensor {}", self.label()), reason)
    }

    fn expect_dtype(&self, dtype: DType) -> Result<()> {
        if dtype == self.dtype() {
            return Ok(());
        }
        let what = format!("the tensor {}", self.label());
        Err(DtypeError::Mismatch { what, found: self.dtype().name(), wanted: dtype.name() }.into())
    }

    /// Zeros of the contents' size.
    pub(super) fn host_room<T: Copy + bytemuck::Zeroable>(&self) -> Result<Vec<T>> {
        let length = usize::try_from(self.byte_len()).unwrap_or(usize::MAX) / size_of::<T>();
        let mut room = Vec::new();
        room.try_reserve_exact(length).map_err(|_| Error::OutOfMemory {
            device: "the host".to_owned(),
            what: format!("a copy of the tensor {}", self.label()),
            bytes: self.byte_len(),
        })?;
        room.resize(length, T::zeroed());
        Ok(room)
    }
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl Tensor {
    /// [`Tensor::to_bytes_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert_eq!(engine.tensor(&[1_u32])?.to_bytes()?, 1_u32.to_ne_bytes());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        crate::engine::blocking::block_on(self.to_bytes_async())
    }

    /// [`Tensor::to_vec_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert_eq!(engine.tensor(&[1_u32, 2])?.to_vec::<u32>()?, [1, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        crate::engine::blocking::block_on(self.to_vec_async())
    }

    /// [`Tensor::read_into_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let mut frame = [0_u32; 3];
    /// engine.tensor(&[7_u32, 8, 9])?.read_into(&mut frame)?;
    /// assert_eq!(frame, [7, 8, 9]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn read_into<T: Element>(&self, into: &mut [T]) -> Result<()> {
        crate::engine::blocking::block_on(self.read_into_async(into))
    }

    /// [`Tensor::read_at_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[0_i32, 1, 2, 3, 4])?;
    /// let mut part = [0_i32; 2];
    /// x.read_at(3, &mut part)?;
    /// assert_eq!(part, [3, 4]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn read_at<T: Element>(&self, first: usize, into: &mut [T]) -> Result<()> {
        crate::engine::blocking::block_on(self.read_at_async(first, into))
    }

    /// [`Tensor::item_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 2.0, 3.0])?;
    /// assert_eq!(x.sum(&[], false).eval()?.item::<f32>()?, 6.0);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn item<T: Element>(&self) -> Result<T> {
        crate::engine::blocking::block_on(self.item_async())
    }

    /// [`Tensor::write_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<f32>(&[2])?;
    /// x.write(&[1.0_f32, 2.0])?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn write<T: Element>(&self, values: &[T]) -> Result<()> {
        crate::engine::blocking::block_on(self.write_async(values))
    }

    /// [`Tensor::write_at_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.zeros::<f32>(&[2, 2])?;
    /// x.write_at(1, &[5.0_f32, 6.0])?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 5.0, 6.0, 0.0]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn write_at<T: Element>(&self, first: usize, values: &[T]) -> Result<()> {
        crate::engine::blocking::block_on(self.write_at_async(first, values))
    }

    /// [`Tensor::to_array_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.to_array::<f32>()?[[1, 0]], 3.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn to_array<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        crate::engine::blocking::block_on(self.to_array_async())
    }

    /// [`Tensor::read_into_array_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use ndarray::{Array2, s};
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let mut canvas = Array2::<f32>::zeros((3, 4));
    /// x.read_into_array(&mut canvas.slice_mut(s![1.., 1..;2]))?;
    /// assert_eq!(canvas.row(2).to_vec(), [0.0, 3.0, 0.0, 4.0]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn read_into_array<T: Element, S, D>(&self, into: &mut ndarray::ArrayBase<S, D>) -> Result<()>
    where
        S: ndarray::DataMut<Elem = T>,
        D: ndarray::Dimension,
    {
        crate::engine::blocking::block_on(self.read_into_array_async(into))
    }
}

/// Files.
#[cfg(all(feature = "npy", not(target_arch = "wasm32")))]
impl Tensor {
    /// Creates a tensor of a `.npy` file's elements.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let path = folder.path().join("x.npy");
    /// engine.tensor(&[1.0_f32, 2.0])?.to_npy(&path)?;
    /// let x = cantus::Tensor::from_npy(&engine, &path)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`cantus_npy::read`] and [`super::Engine::tensor_from_bytes`].
    pub fn from_npy(engine: &super::Engine, path: impl AsRef<std::path::Path>) -> Result<Self> {
        crate::engine::blocking::block_on(Self::from_npy_async(engine, path))
    }

    /// [`Tensor::from_npy`] as a future, which reads the file in its first poll.
    ///
    /// # Errors
    /// As [`Tensor::from_npy`].
    pub async fn from_npy_async(engine: &super::Engine, path: impl AsRef<std::path::Path>) -> Result<Self> {
        let array = cantus_npy::read(path)?;
        engine.tensor_from_bytes_async(array.dtype, &array.shape, &array.bytes).await
    }

    /// Writes the contents to a `.npy` file, whole or not at all.
    ///
    /// # Errors
    /// As [`Tensor::to_bytes`] and [`cantus_npy::write`].
    pub fn to_npy(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        crate::engine::blocking::block_on(self.to_npy_async(path))
    }

    /// [`Tensor::to_npy`] as a future, which writes the file in its last poll.
    ///
    /// # Errors
    /// As [`Tensor::to_npy`].
    pub async fn to_npy_async(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        cantus_npy::write(path, self.dtype(), self.shape(), &self.to_bytes_async().await?)
    }
}
