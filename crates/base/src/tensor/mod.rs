//! The parts of a tensor, as plain data: shape and dtype. No engine and no device: the handle is [`crate::Tensor`].

mod dtype;

pub use dtype::{DType, Element};
#[doc(hidden)]
pub use dtype::{Kind, names as dtype_names};

use crate::error::{Error, Result, ShapeError};

/// Returns the bytes of `shape` elements of `dtype`.
///
/// # Errors
/// [`Error::Limit`] when the product does not fit.
#[doc(hidden)]
pub fn byte_count(shape: &[usize], dtype: DType) -> Result<u64> {
    let count = shape.iter().try_fold(dtype.bytes(), |product, &side| product.checked_mul(side));
    match count.filter(|&bytes| bytes <= isize::MAX as usize) {
        Some(bytes) => Ok(bytes as u64),
        None => Err(Error::limit(
            format!("the shape {shape:?}"),
            format!("{dtype} elements of that shape exceed what this system can address (use smaller tiles)"),
        )),
    }
}

/// Refuses contents of another size than their shape takes.
///
/// # Errors
/// [`ShapeError::Contents`], and as [`byte_count`].
#[doc(hidden)]
pub fn check_bytes(shape: &[usize], dtype: DType, given: u64) -> Result<()> {
    let expected = byte_count(shape, dtype)?;
    if expected == given {
        return Ok(());
    }
    Err(ShapeError::Contents { shape: shape.to_vec(), dtype: dtype.name(), expected, given }.into())
}
