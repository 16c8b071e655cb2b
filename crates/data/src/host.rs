//! Arrays in the host's memory, on their way into tensors.

use std::ptr::NonNull;

use cantus::backend::HostMemory;
use cantus::ndarray::{Array, Dimension};
use cantus::tensor::{byte_count, check_bytes};
use cantus::{DType, Element, Engine, Result, Tensor};

/// An array in memory of the host's, row-major, which it owns: a dtype, a shape and the elements in the machine's byte order.
#[derive(Debug)]
pub struct HostArray {
    dtype: DType,
    shape: Vec<usize>,
    memory: HostMemory,
}

impl HostArray {
    /// Creates an array over memory and its owner.
    ///
    /// # Errors
    /// [`cantus::Error::Shape`] if the memory has another size than the shape takes.
    pub fn new(dtype: DType, shape: &[usize], memory: HostMemory) -> Result<Self> {
        check_bytes(shape, dtype, memory.bytes())?;
        Ok(Self { dtype, shape: shape.to_vec(), memory })
    }

    /// Creates an array of a vector's values, in their memory.
    ///
    /// # Errors
    /// [`cantus::Error::Shape`] if the shape's product is not the number of values.
    pub fn from_vec<T: Element + Send + Sync>(values: Vec<T>, shape: &[usize]) -> Result<Self> {
        check_bytes(shape, T::DTYPE, size_of_val(values.as_slice()) as u64)?;
        Self::of_elements(T::DTYPE, shape, values, 0)
    }

    /// Creates an array of bytes in the machine's order, in their memory.
    ///
    /// # Errors
    /// [`cantus::Error::Shape`] if the shape takes another number of bytes.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Self> {
        check_bytes(shape, dtype, bytes.len() as u64)?;
        Self::of_elements(dtype, shape, bytes, 0)
    }

    /// Creates an array of an `ndarray` array, in its memory if that is contiguous and row-major; otherwise its elements are copied. A borrowed view has
    /// no memory to give: [`Engine::tensor_from_array`] copies it.
    ///
    /// ```
    /// use cantus::ndarray::array;
    /// use cantus_data::HostArray;
    ///
    /// let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = HostArray::from_array(array![[1.0_f32, 2.0], [3.0, 4.0]])?.into_tensor(&engine)?;
    /// assert_eq!(x.shape(), [2, 2]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`cantus::Error::Limit`] if the system cannot address its bytes.
    pub fn from_array<T: Element + Send + Sync, D: Dimension>(array: Array<T, D>) -> Result<Self> {
        let shape = array.shape().to_vec();
        let array = if array.is_standard_layout() { array } else { array.as_standard_layout().into_owned() };
        let (values, first) = array.into_raw_vec_and_offset();
        Self::of_elements(T::DTYPE, &shape, values, first.unwrap_or(0))
    }

    /// The elements from `first` on.
    fn of_elements<T: bytemuck::NoUninit + Send + Sync>(
        dtype: DType,
        shape: &[usize],
        mut values: Vec<T>,
        first: usize,
    ) -> Result<Self> {
        let elements = values.get_mut(first..).unwrap_or_default();
        let bytes = byte_count(shape, dtype)?.min(size_of_val(elements) as u64);
        let start = NonNull::from(elements).cast::<u8>();
        // SAFETY: the vector owns that many bytes from there on, goes along unchanged, and nobody else knows it.
        let memory = unsafe { HostMemory::new(start, bytes, values) };
        Self::new(dtype, shape, memory)
    }

    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the lengths of the axes; `[]` for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the elements in the machine's byte order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let bytes = usize::try_from(self.memory.bytes()).unwrap_or(0);
        // SAFETY: whoever made the memory promised that its bytes can be read while it lives, and that nobody writes them.
        unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr(), bytes) }
    }

    /// Makes it a tensor: in this memory on the CPU, where its alignment allows, else of a copy.
    ///
    /// # Errors
    /// As [`Engine::tensor_from_host_memory_async`].
    pub async fn into_tensor_async(self, engine: &Engine) -> Result<Tensor> {
        if self.memory.bytes() == 0 {
            return engine.tensor_from_bytes_async(self.dtype, &self.shape, &[]).await;
        }
        engine.tensor_from_host_memory_async(self.dtype, &self.shape, self.memory).await
    }

    /// [`HostArray::into_tensor_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn into_tensor(self, engine: &Engine) -> Result<Tensor> {
        if self.memory.bytes() == 0 {
            return engine.tensor_from_bytes(self.dtype, &self.shape, &[]);
        }
        engine.tensor_from_host_memory(self.dtype, &self.shape, self.memory)
    }
}
