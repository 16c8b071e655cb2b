//! The contents of tensors as Rust's and `ndarray`'s views.

use std::ops::Deref;

use cantus::engine::HostView;
use cantus::error::DtypeError;
use cantus::ndarray::{ArrayView1, ArrayViewD, IxDyn};
use cantus::{Element, Result, Tensor};

/// The contents of a tensor as a slice, and as an array of its shape: the tensor's own memory on the CPU, a copy from other devices.
#[derive(Debug)]
pub struct View<T> {
    source: Source<T>,
    shape: Vec<usize>,
}

#[derive(Debug)]
enum Source<T> {
    /// Of as many elements.
    Memory(HostView, usize),
    Copy(Vec<T>),
}

impl<T: Element + bytemuck::AnyBitPattern> View<T> {
    /// Returns the contents after all work recorded so far. `bool` has no view, because its bytes may be any: see [`Tensor::to_vec`].
    ///
    /// ```
    /// use cantus_data::View;
    ///
    /// let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// // SAFETY: no kernel writes to x.
    /// let view = unsafe { View::<f32>::of(&x)? };
    /// assert_eq!(view.array().sum(), 10.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Safety
    /// No work that writes to the tensor may be recorded while the view lives: no kernel that binds it for writing, no [`Tensor::write`].
    ///
    /// # Errors
    /// [`cantus::Error::Dtype`] if the tensor has another dtype; else as [`Tensor::to_vec`].
    pub async unsafe fn of_async(tensor: &Tensor) -> Result<Self> {
        if tensor.dtype() != T::DTYPE {
            let what = format!("the tensor {}", tensor.label());
            return Err(DtypeError::Mismatch { what, found: tensor.dtype().name(), wanted: T::DTYPE.name() }.into());
        }
        let shape = tensor.shape().to_vec();
        let memory = tensor.host_view_async().await?;
        let source = match memory.filter(|view| view.as_ptr().cast::<T>().is_aligned()) {
            Some(view) => Source::Memory(view, tensor.len()),
            None => Source::Copy(tensor.to_vec_async().await?),
        };
        Ok(Self { source, shape })
    }

    /// [`View::of_async`], blocking.
    ///
    /// # Safety
    /// As the asynchronous form.
    ///
    /// # Errors
    /// As the asynchronous form.
    #[cfg(not(target_arch = "wasm32"))]
    pub unsafe fn of(tensor: &Tensor) -> Result<Self> {
        if tensor.dtype() == T::DTYPE
            && let Some(view) = tensor.host_view()?.filter(|view| view.as_ptr().cast::<T>().is_aligned())
        {
            return Ok(Self { source: Source::Memory(view, tensor.len()), shape: tensor.shape().to_vec() });
        }
        Ok(Self { source: Source::Copy(tensor.to_vec()?), shape: tensor.shape().to_vec() })
    }

    /// Returns the contents as an array.
    #[must_use]
    pub fn array(&self) -> ArrayViewD<'_, T> {
        // As many elements as the shape has, in its order.
        ArrayViewD::from_shape(IxDyn(&self.shape), self).unwrap_or_else(|_| ArrayView1::from(&[][..]).into_dyn())
    }
}

impl<T> View<T> {
    /// Returns the lengths of the axes.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns whether this is the tensor's own memory.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        matches!(self.source, Source::Memory(..))
    }
}

impl<T: bytemuck::AnyBitPattern> Deref for View<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.source {
            // SAFETY: the memory holds as many elements of that type, any bytes are one, and nobody writes to it: the promise of `of`.
            Source::Memory(view, len) => unsafe { std::slice::from_raw_parts(view.as_ptr().cast(), *len) },
            Source::Copy(values) => values,
        }
    }
}
