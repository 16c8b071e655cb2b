//! Tensors whose elements' type the compiler knows, and what the functions that `cantus-build` writes from WGSL take.
//!
//! ```
//! use cantus::typed::TensorOf;
//!
//! let engine = cantus::Engine::builder().backend("cpu").build()?;
//! let corners = TensorOf::new(&engine, &[[0.0_f32, 1.0], [2.0, 3.0]])?;
//! assert_eq!((corners.len(), corners.shape()), (2, &[2, 2][..]));
//! assert_eq!(corners.items()?, [[0.0, 1.0], [2.0, 3.0]]);
//! # Ok::<(), cantus::Error>(())
//! ```

use std::marker::PhantomData;
use std::ops::Deref;

pub use bytemuck;
use bytemuck::{Pod, Zeroable};

use crate::error::DtypeError;
use crate::{DType, Element, Engine, Error, Result, Tensor};

/// The element type of a [`TensorOf`]: a scalar, an array of items (WGSL's vectors and matrices), or a structure that `cantus-build` writes.
pub trait Item: Pod {
    /// The element of the tensor: the scalar, or `u32` for structures.
    type Part: Element + Pod;

    /// The number of elements in an item.
    const PARTS: usize = size_of::<Self>() / size_of::<Self::Part>();
}

macro_rules! scalars {
    ($($scalar:ty),*) => {$(
        impl Item for $scalar {
            type Part = Self;
        }
    )*};
}
scalars!(f32, i32, u32, half::f16, f64, i64, u64, i16, u16);

macro_rules! rows {
    ($($count:literal),*) => {$(
        impl<T: Item> Item for [T; $count] {
            type Part = T::Part;
        }
    )*};
}
rows!(2, 3, 4);

/// A member of a structure with the padding that WGSL leaves after it. Create it with `into()`; read it with `*` or [`Padded::value`].
///
/// ```
/// use cantus::typed::Padded;
/// let position: Padded<[f32; 3], 4> = [1.0, 2.0, 3.0].into();
/// assert_eq!((position[1], size_of_val(&position)), (2.0, 16));
/// ```
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
pub struct Padded<T, const FREE: usize> {
    /// The member.
    pub value: T,
    free: [u8; FREE],
}

impl<T, const FREE: usize> From<T> for Padded<T, FREE> {
    fn from(value: T) -> Self {
        Self { value, free: [0; FREE] }
    }
}

impl<T, const FREE: usize> Deref for Padded<T, FREE> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: std::fmt::Debug, const FREE: usize> std::fmt::Debug for Padded<T, FREE> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: Default, const FREE: usize> Default for Padded<T, FREE> {
    fn default() -> Self {
        T::default().into()
    }
}

macro_rules! threes {
    ($($scalar:ty),*) => {$(
        // SAFETY: three numbers of 4 bytes and 4 bytes lie without gaps, and any bytes are such.
        unsafe impl Zeroable for Padded<[$scalar; 3], 4> {}
        // SAFETY: three numbers of 4 bytes and 4 bytes lie without gaps, and any bytes are such.
        unsafe impl Pod for Padded<[$scalar; 3], 4> {}
        impl Item for Padded<[$scalar; 3], 4> {
            type Part = $scalar;
        }
    )*};
}
threes!(f32, i32, u32);

/// A [`Tensor`] of items of one type. It dereferences to `Tensor`, so it can be passed wherever a tensor is.
pub struct TensorOf<T> {
    tensor: Tensor,
    items: PhantomData<fn() -> T>,
}

impl<T> Clone for TensorOf<T> {
    fn clone(&self) -> Self {
        Self { tensor: self.tensor.clone(), items: PhantomData }
    }
}

impl<T> std::fmt::Debug for TensorOf<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.tensor.fmt(f)
    }
}

impl<T> Deref for TensorOf<T> {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

impl<T: Item> TensorOf<T> {
    /// Items from the host.
    ///
    /// # Errors
    /// As [`Engine::tensor`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new(engine: &Engine, items: &[T]) -> Result<Self> {
        let parts: &[T::Part] = bytemuck::cast_slice(items);
        engine.tensor_from(parts, &shape::<T>(items.len())).and_then(Self::of)
    }

    /// [`TensorOf::new`] as a future.
    ///
    /// # Errors
    /// As [`Engine::tensor_async`].
    pub async fn new_async(engine: &Engine, items: &[T]) -> Result<Self> {
        let parts: &[T::Part] = bytemuck::cast_slice(items);
        engine.tensor_from_async(parts, &shape::<T>(items.len())).await.and_then(Self::of)
    }

    /// Items of zeros.
    ///
    /// # Errors
    /// As [`Engine::zeros`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn zeros(engine: &Engine, count: usize) -> Result<Self> {
        engine.zeros::<T::Part>(&shape::<T>(count)).and_then(Self::of)
    }

    /// [`TensorOf::zeros`] as a future.
    ///
    /// # Errors
    /// As [`Engine::zeros_async`].
    pub async fn zeros_async(engine: &Engine, count: usize) -> Result<Self> {
        engine.zeros_async::<T::Part>(&shape::<T>(count)).await.and_then(Self::of)
    }

    /// A tensor that has such elements, in any shape of a whole number of items.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::typed::TensorOf;
    /// let image = engine.zeros::<f32>(&[480, 640])?;
    /// assert_eq!(TensorOf::<f32>::of(image.clone())?.count(), 480 * 640);
    /// let error = TensorOf::<u32>::of(image).unwrap_err();
    /// assert!(error.to_string().contains("its elements are f32, not u32"), "{error}");
    /// # Ok::<(), cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Dtype`] when the dtype is another, [`Error::Shape`] when an item would be cut.
    pub fn of(tensor: Tensor) -> Result<Self> {
        let wanted: DType = <T::Part as Element>::DTYPE;
        let what = || format!("the tensor {}", tensor.label());
        if tensor.dtype() != wanted {
            let (found, wanted) = (tensor.dtype().name(), wanted.name());
            return Err(DtypeError::Mismatch { what: what(), found, wanted }.into());
        }
        if !tensor.len().is_multiple_of(T::PARTS.max(1)) {
            let (held, each) = (tensor.len(), T::PARTS);
            let reason = format!("it has {held} elements, not a multiple of the {each} that an item takes");
            return Err(Error::shape(what(), reason));
        }
        Ok(Self { tensor, items: PhantomData })
    }

    /// Returns the number of items.
    #[must_use]
    pub fn count(&self) -> usize {
        self.tensor.len() / T::PARTS.max(1)
    }

    /// Returns the number of items, as [`TensorOf::count`] does. The tensor's own `len` counts numbers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count()
    }

    /// Returns whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Reads the items.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn items(&self) -> Result<Vec<T>> {
        self.tensor.to_vec::<T::Part>().map(|parts| bytemuck::pod_collect_to_vec(&parts))
    }

    /// [`TensorOf::items`] as a future.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn items_async(&self) -> Result<Vec<T>> {
        self.tensor.to_vec_async::<T::Part>().await.map(|parts| bytemuck::pod_collect_to_vec(&parts))
    }

    /// The tensor, without the type of its items.
    #[must_use]
    pub fn into_tensor(self) -> Tensor {
        self.tensor
    }
}

fn shape<T: Item>(count: usize) -> Vec<usize> {
    if T::PARTS == 1 { vec![count] } else { vec![count, T::PARTS] }
}
