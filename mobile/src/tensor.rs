//! Tensors: shape, dtype, and reading and writing. Values travel as lists, or as bytes, which cost one copy and no boxing.

use std::sync::Arc;

use crate::error::{CantusError, Result};
use crate::off_thread;

/// The element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum DType {
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// 32-bit two's complement.
    I32,
    /// 32-bit unsigned.
    U32,
    /// 64-bit two's complement.
    I64,
    /// 64-bit unsigned.
    U64,
}

/// An array on one device of an engine: contiguous, row-major. Releasing the last reference gives its memory back.
#[derive(uniffi::Object)]
pub struct Tensor {
    pub(crate) inner: cantus::Tensor,
}

#[uniffi::export]
impl Tensor {
    /// Lengths of the axes; empty for a scalar.
    pub fn shape(&self) -> Vec<u64> {
        self.inner.shape().iter().map(|&side| side as u64).collect()
    }

    /// The element type.
    ///
    /// # Errors
    /// `Dtype` for one that these bindings do not name: none that they can make.
    pub fn dtype(&self) -> Result<DType> {
        self.inner.dtype().try_into()
    }

    /// Number of elements.
    pub fn length(&self) -> u64 {
        self.inner.len() as u64
    }

    /// The name of the device it is on now.
    pub fn device_name(&self) -> String {
        self.inner.device_name()
    }

    /// The elements, after all work recorded so far.
    ///
    /// # Errors
    /// `Dtype` when they are not f32, `TensorLost` when earlier work that wrote them failed.
    pub async fn read(&self) -> Result<Vec<f32>> {
        let tensor = self.inner.clone();
        off_thread(move || tensor.to_vec()).await
    }

    /// The elements of an i32 tensor.
    ///
    /// # Errors
    /// As `read`.
    pub async fn read_i32(&self) -> Result<Vec<i32>> {
        let tensor = self.inner.clone();
        off_thread(move || tensor.to_vec()).await
    }

    /// The elements of a u32 tensor.
    ///
    /// # Errors
    /// As `read`.
    pub async fn read_u32(&self) -> Result<Vec<u32>> {
        let tensor = self.inner.clone();
        off_thread(move || tensor.to_vec()).await
    }

    /// The elements of any dtype as bytes, little-endian, row-major.
    ///
    /// # Errors
    /// As `read`.
    pub async fn read_bytes(&self) -> Result<Vec<u8>> {
        let tensor = self.inner.clone();
        off_thread(move || tensor.to_bytes()).await
    }

    /// Overwrites all elements, after all work recorded so far.
    ///
    /// # Errors
    /// `Shape` when the number of elements differs, `Dtype` when they are not f32.
    pub async fn write(&self, values: Vec<f32>) -> Result<()> {
        let tensor = self.inner.clone();
        off_thread(move || tensor.write(&values)).await
    }

    /// Overwrites all elements of any dtype from bytes, little-endian, row-major.
    ///
    /// # Errors
    /// `Shape` when the number of bytes differs.
    pub async fn write_bytes(&self, bytes: Vec<u8>) -> Result<()> {
        let tensor = self.inner.clone();
        if bytes.len() as u64 != tensor.byte_len() {
            let text =
                format!("the tensor {} has {} bytes, {} were given", tensor.label(), tensor.byte_len(), bytes.len());
            return Err(CantusError::shape(text));
        }
        off_thread(move || write_bytes(&tensor, &bytes)).await
    }
}

/// Overwrites a tensor from bytes of its own dtype.
pub(crate) fn write_bytes(tensor: &cantus::Tensor, bytes: &[u8]) -> cantus::Result<()> {
    // Bytes from elsewhere may lie at any address, so elements are copied out one by one.
    fn write<T: cantus::Element + bytemuck::AnyBitPattern>(
        tensor: &cantus::Tensor,
        bytes: &[u8],
    ) -> cantus::Result<()> {
        let values: Vec<T> = bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
        tensor.write(&values)
    }
    use cantus::DType as D;
    match tensor.dtype() {
        D::F16 => write::<half::f16>(tensor, bytes),
        D::F32 => write::<f32>(tensor, bytes),
        D::F64 => write::<f64>(tensor, bytes),
        D::I32 => write::<i32>(tensor, bytes),
        D::U32 => write::<u32>(tensor, bytes),
        D::I64 => write::<i64>(tensor, bytes),
        D::U64 => write::<u64>(tensor, bytes),
        other => Err(foreign(other)),
    }
}

/// A shape as this machine counts.
pub(crate) fn sides(shape: &[u64]) -> Result<Vec<usize>> {
    let side = |&side: &u64| {
        usize::try_from(side).map_err(|_| CantusError::Limit {
            text: format!("the shape {shape:?} passes what this system can address"),
        })
    };
    shape.iter().map(side).collect()
}

impl Tensor {
    pub(crate) fn shared(inner: cantus::Tensor) -> Arc<Self> {
        Arc::new(Self { inner })
    }
}

impl From<DType> for cantus::DType {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F16 => Self::F16,
            DType::F32 => Self::F32,
            DType::F64 => Self::F64,
            DType::I32 => Self::I32,
            DType::U32 => Self::U32,
            DType::I64 => Self::I64,
            DType::U64 => Self::U64,
        }
    }
}

/// The error for a dtype that came to the library after these bindings.
fn foreign(dtype: cantus::DType) -> cantus::Error {
    cantus::Error::dtype(format!("the dtype {dtype}"), "these bindings have no name for it")
}

impl TryFrom<cantus::DType> for DType {
    type Error = CantusError;

    fn try_from(dtype: cantus::DType) -> Result<Self> {
        use cantus::DType as D;
        Ok(match dtype {
            D::F16 => Self::F16,
            D::F32 => Self::F32,
            D::F64 => Self::F64,
            D::I32 => Self::I32,
            D::U32 => Self::U32,
            D::I64 => Self::I64,
            D::U64 => Self::U64,
            other => return Err(foreign(other).into()),
        })
    }
}
