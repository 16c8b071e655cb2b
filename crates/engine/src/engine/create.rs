//! Tensors from host values, and of zeros. Every tensor begins here (those over memory of others in `host` and `driver_view`). `placement` names the
//! device. `output` is for kernels that write each element: its contents are unspecified before, where `zeros` clears. `near` keeps results beside what
//! they are computed from.

use crate::backend::BoxFuture;
use std::sync::Arc;

use super::{Engine, Slot, Tensor, Work, slot};
use crate::backend::Contents;
use crate::error::{Error, Result};
use crate::tensor::{DType, Element, byte_count};
use cantus_base::listed::Listed;

/// Returns the name of a tensor in messages. The label of a tensor that nobody named: messages say "the tensor" before
/// it.
pub(super) fn unnamed(dtype: DType, shape: &[usize]) -> Arc<str> {
    format!("{dtype}{shape:?}").into()
}

impl Engine {
    /// Creates a one-dimensional tensor of host values.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`], [`Error::OutOfMemory`], or the device's failure when no other device takes it.
    pub async fn tensor_async<T: Element>(&self, values: &[T]) -> Result<Tensor> {
        self.tensor_from_async(values, &[values.len()]).await
    }

    /// Creates a tensor of host values in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shape's product is not the number of values, else as [`Engine::tensor_async`].
    pub async fn tensor_from_async<T: Element>(&self, values: &[T], shape: &[usize]) -> Result<Tensor> {
        self.tensor_from_bytes_async(T::DTYPE, shape, bytemuck::cast_slice(values)).await
    }

    /// Creates a tensor of elements given as bytes in the machine's order, row-major.
    ///
    /// # Errors
    /// As [`Engine::tensor_from_async`].
    pub fn tensor_from_bytes_async<'a>(
        &'a self,
        dtype: DType,
        shape: &'a [usize],
        bytes: &'a [u8],
    ) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let expected = byte_count(shape, dtype)?;
            if expected != bytes.len() as u64 {
                return Err(Error::shape(
                    format!("the shape {shape:?}"),
                    format!(
                        "it takes {} {dtype} values, {} were given",
                        expected / dtype.bytes() as u64,
                        bytes.len() / dtype.bytes()
                    ),
                ));
            }
            let work = Work { elements: expected / dtype.bytes() as u64, bytes: expected };
            let slot = self.shared.place(work).await;
            self.shared.spoil_trace();
            let tensor = self.create(slot, dtype, shape, Contents::Overwritten, unnamed(dtype, shape)).await?;
            let place = tensor.place();
            if let Some(buffer) = &place.buffer {
                let span = self.shared.profiler.begin();
                slot::upload(&place.slot, buffer, bytes).await?;
                self.shared.profiler.end(span, || format!("write tensor {}", tensor.label()), bytes.len() as u64);
            }
            Ok(tensor)
        })
    }

    /// Creates a tensor of the values of an `ndarray` array or view of any layout, in the array's own shape. Copied once more when it is not
    /// contiguous and row-major.
    ///
    /// # Errors
    /// As [`Engine::tensor_from_async`].
    pub async fn tensor_from_array_async<T: Element, S, D>(&self, array: &ndarray::ArrayBase<S, D>) -> Result<Tensor>
    where
        S: ndarray::Data<Elem = T>,
        D: ndarray::Dimension,
    {
        match array.as_slice() {
            Some(values) => self.tensor_from_async(values, array.shape()).await,
            None => {
                let values: Vec<T> = array.iter().copied().listed();
                self.tensor_from_async(&values, array.shape()).await
            }
        }
    }

    /// Creates a one-dimensional tensor of what an iterator gives.
    ///
    /// # Errors
    /// As [`Engine::tensor_async`].
    pub async fn tensor_from_iter_async<T: Element>(&self, values: impl IntoIterator<Item = T>) -> Result<Tensor> {
        let values: Vec<T> = values.into_iter().listed();
        self.tensor_async(&values).await
    }

    /// Creates a tensor of zeros.
    ///
    /// # Errors
    /// As [`Engine::tensor_async`].
    pub async fn zeros_async<T: Element>(&self, shape: &[usize]) -> Result<Tensor> {
        self.zeros_of_async(T::DTYPE, shape).await
    }

    /// Creates a tensor of zeros of a dtype known at run time.
    ///
    /// # Errors
    /// As [`Engine::tensor_async`].
    pub fn zeros_of_async<'a>(&'a self, dtype: DType, shape: &'a [usize]) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            self.shared.spoil_trace();
            let slot = self.shared.primary();
            let tensor = self.create(slot, dtype, shape, Contents::Zeroed, unnamed(dtype, shape)).await?;
            self.shared.clear_when_replayed(&tensor).await?;
            Ok(tensor)
        })
    }

    /// Creates a tensor for a kernel to write: on the device where `near` is, or without it on the one that computes its elements soonest. It saves the
    /// pass over memory by which [`Engine::zeros_async`] clears it: every element is unspecified until a kernel writes it. `label` and the shape name it
    /// in errors.
    ///
    /// # Errors
    /// [`Error::AnotherEngine`] if `near` belongs to another engine, [`Error::Limit`] for a shape of more bytes than can be counted,
    /// [`Error::MemoryLimit`], [`Error::OutOfMemory`], or the device's failure when no other device takes it.
    pub fn output_async<'a>(
        &'a self,
        near: Option<&'a Tensor>,
        dtype: DType,
        shape: &'a [usize],
        label: &'a str,
    ) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let elements = byte_count(shape, dtype)? / dtype.bytes() as u64;
            let slot = match near {
                Some(tensor) => {
                    self.check_own(tensor)?;
                    tensor.place().slot
                }
                None => self.shared.place(Work { elements, bytes: 0 }).await,
            };
            let tensor = self
                .create(slot, dtype, shape, Contents::Overwritten, format!("{label} {}", unnamed(dtype, shape)).into())
                .await?;
            self.shared.note_scratch(&tensor);
            self.shared.trace_output(&tensor);
            Ok(tensor)
        })
    }

    /// Returns a copy of consecutive elements of a tensor of u32, from `first` on, on its device, as a tensor of this shape. It is for kernels that cannot
    /// bind the tensor whole ([`Limits::storage_binding_bytes`](crate::backend::Limits::storage_binding_bytes)). `label` names the copy in errors.
    ///
    /// # Errors
    /// [`Error::Dtype`] for another dtype, [`Error::Index`] if the tensor ends before the copy does, else as [`Engine::output_async`]
    /// and [`Tensor::read_at_async`].
    #[cfg(feature = "wgsl")]
    pub fn words_async<'a>(
        &'a self,
        tensor: &'a Tensor,
        first: usize,
        shape: &'a [usize],
        label: &'a str,
    ) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            self.check_own(tensor)?;
            if tensor.dtype() != DType::U32 {
                return Err(Error::dtype(
                    format!("words of the tensor {} of {}", tensor.label(), tensor.dtype()),
                    "only tensors of u32 have words (make one of u32)",
                ));
            }
            let count = byte_count(shape, DType::U32)? / DType::U32.bytes() as u64;
            if (tensor.len() as u64).checked_sub(count).is_none_or(|last| first as u64 > last) {
                return Err(Error::index(
                    format!("{count} words from {first} on"),
                    format!("the tensor {} has {}", tensor.label(), tensor.len()),
                ));
            }
            let part = self.output_async(Some(tensor), DType::U32, shape, label).await?;
            if self.shared.copy_words(tensor, first, &part)? {
                return Ok(part);
            }
            // One of them is elsewhere by now.
            let mut words = vec![0_u32; part.len()];
            tensor.read_at_async(first, &mut words).await?;
            part.write_async(&words).await?;
            Ok(part)
        })
    }

    /// Refuses a tensor of another engine.
    pub(super) fn check_own(&self, tensor: &Tensor) -> Result<()> {
        if Arc::ptr_eq(&tensor.inner.engine, &self.shared) {
            Ok(())
        } else {
            Err(Error::AnotherEngine { tensor: tensor.label().to_owned() })
        }
    }

    pub(super) async fn create(
        &self,
        slot: Arc<Slot>,
        dtype: DType,
        shape: &[usize],
        contents: Contents,
        label: Arc<str>,
    ) -> Result<Tensor> {
        let bytes = byte_count(shape, dtype)?;
        let shared = &self.shared;
        let place = shared.allocate(slot, bytes, contents, &label).await?;
        let tensor = Tensor::assemble(shared.clone(), label, shape, dtype, place);
        shared.note_made(&tensor);
        Ok(tensor)
    }
}

/// The blocking forms.
#[cfg(not(target_arch = "wasm32"))]
impl Engine {
    /// [`Engine::tensor_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 2.0])?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2][..], cantus::DType::F32));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn tensor<T: Element>(&self, values: &[T]) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.tensor_async(values))
    }

    /// [`Engine::tensor_from_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1_u32, 2, 3, 4, 5, 6], &[2, 3])?;
    /// assert_eq!(x.shape(), [2, 3]);
    /// assert!(engine.tensor_from(&[1_u32], &[2, 3]).is_err());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn tensor_from<T: Element>(&self, values: &[T], shape: &[usize]) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.tensor_from_async(values, shape))
    }

    /// [`Engine::tensor_from_bytes_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from_bytes(cantus::DType::I32, &[1], &7_i32.to_ne_bytes())?;
    /// assert_eq!(x.item::<i32>()?, 7);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn tensor_from_bytes(&self, dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.tensor_from_bytes_async(dtype, shape, bytes))
    }

    /// [`Engine::tensor_from_array_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use ndarray::{array, s};
    /// let image = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// let right = engine.tensor_from_array(&image.slice(s![.., 1..]).t())?; // a view of any layout
    /// assert_eq!(right.to_array::<f32>()?, array![[2.0_f32, 5.0], [3.0, 6.0]].into_dyn());
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn tensor_from_array<T: Element, S, D>(&self, array: &ndarray::ArrayBase<S, D>) -> Result<Tensor>
    where
        S: ndarray::Data<Elem = T>,
        D: ndarray::Dimension,
    {
        crate::engine::blocking::block_on(self.tensor_from_array_async(array))
    }

    /// [`Engine::tensor_from_iter_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let squares = engine.tensor_from_iter((0..4_u32).map(|i| i * i))?;
    /// assert_eq!(squares.to_vec::<u32>()?, [0, 1, 4, 9]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn tensor_from_iter<T: Element>(&self, values: impl IntoIterator<Item = T>) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.tensor_from_iter_async(values))
    }

    /// [`Engine::zeros_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert_eq!(engine.zeros::<f32>(&[2, 2])?.to_vec::<f32>()?, [0.0; 4]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn zeros<T: Element>(&self, shape: &[usize]) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.zeros_async::<T>(shape))
    }

    /// [`Engine::output_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_u32, 2, 3])?;
    /// let y = engine.output(Some(&x), cantus::DType::U32, &[3], "squares")?;
    /// let square = cantus::Kernel::from_wgsl(
    ///     "@group(0) @binding(0) var<storage> x: array<u32>;
    ///      @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    ///      @compute @workgroup_size(1) fn square(@builtin(workgroup_id) id: vec3u) { y[id.x] = x[id.x] * x[id.x]; }",
    /// )?;
    /// engine.dispatch(&square).bind("x", &x).bind("y", &y).workgroups(3).run()?;
    /// assert_eq!(y.to_vec::<u32>()?, [1, 4, 9]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn output(&self, near: Option<&Tensor>, dtype: DType, shape: &[usize], label: &str) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.output_async(near, dtype, shape, label))
    }

    /// [`Engine::words_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let words = engine.tensor(&[1_u32, 2, 3, 4, 5])?;
    /// let part = engine.words(&words, 1, &[2, 2], "part")?;
    /// assert_eq!((part.shape(), part.to_vec::<u32>()?), (&[2, 2][..], vec![2, 3, 4, 5]));
    /// assert!(engine.words(&words, 2, &[2, 2], "part").is_err());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(feature = "wgsl")]
    pub fn words(&self, tensor: &Tensor, first: usize, shape: &[usize], label: &str) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.words_async(tensor, first, shape, label))
    }

    /// [`Engine::zeros_of_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// assert_eq!(engine.zeros_of(cantus::DType::U64, &[2])?.to_vec::<u64>()?, [0, 0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn zeros_of(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        crate::engine::blocking::block_on(self.zeros_of_async(dtype, shape))
    }
}
