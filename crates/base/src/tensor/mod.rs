//! The parts of a tensor, as plain data: shape and dtype. No engine and no device: the handle is [`crate::Tensor`].

mod dtype;

pub use dtype::{DType, Element};
#[doc(hidden)]
pub use dtype::{Kind, names as dtype_names};

use crate::error::{Error, Result};

/// Returns the bytes of `shape` elements of `dtype`.
///
/// # Errors
/// [`Error::InvalidSize`] when the product does not fit.
#[doc(hidden)]
pub fn byte_count(shape: &[usize], dtype: DType) -> Result<u64> {
    let count = shape.iter().try_fold(dtype.bytes(), |product, &side| product.checked_mul(side));
    match count.filter(|&bytes| bytes <= isize::MAX as usize) {
        Some(bytes) => Ok(bytes as u64),
        None => Err(Error::InvalidSize {
            what: format!("the shape {shape:?}"),
            reason: format!("{dtype} elements of that shape exceed what this system can address (use smaller tiles)"),
        }),
    }
}
