//! aclnn's own objects, destroyed when they are dropped.

use super::abi::{self, Fault};
use super::library::{Library, Pointer};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// A tensor, a scalar or a list of integers.
pub(super) struct Object {
    pub(super) object: Pointer,
    /// Libraries stay loaded.
    destroy: unsafe extern "C" fn(Pointer) -> i32,
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: nobody else has it; an executor that refers to it is gone, or does not run again.
        unsafe { (self.destroy)(self.object) };
    }
}

fn signed(sides: &[usize]) -> Vec<i64> {
    sides.iter().map(|&side| side as i64).listed()
}

impl Object {
    fn made(object: Pointer, destroy: unsafe extern "C" fn(Pointer) -> i32, what: &str) -> Result<Self, Fault> {
        if object.is_null() {
            return Err(Fault { code: -1, message: format!("{what} gave nothing") });
        }
        Ok(Self { object, destroy })
    }

    /// A contiguous tensor over memory.
    pub(super) fn tensor(
        library: &Library,
        dtype: DType,
        shape: &[usize],
        format: i32,
        data: Pointer,
    ) -> Result<Self, Fault> {
        let sides = signed(shape);
        let mut strides = vec![1_i64; sides.len()];
        for axis in (1..sides.len()).rev() {
            strides[axis - 1] = strides[axis] * sides[axis];
        }
        let (rank, kind) = (sides.len() as u64, abi::kind(dtype));
        // SAFETY: the lists are read during the call.
        let object = unsafe {
            let (sides, strides) = (sides.as_ptr(), strides.as_ptr());
            (library.create_tensor)(sides, rank, kind, strides, 0, format, sides, rank, data)
        };
        Self::made(object, library.destroy_tensor, "aclCreateTensor")
    }

    /// A number by its bits.
    pub(super) fn scalar(library: &Library, bits: u64, dtype: DType) -> Result<Self, Fault> {
        let bits = bits.to_le_bytes();
        // SAFETY: the number is read during the call.
        let object = unsafe { (library.create_scalar)(bits.as_ptr().cast(), abi::kind(dtype)) };
        Self::made(object, library.destroy_scalar, "aclCreateScalar")
    }

    pub(super) fn integer(library: &Library, number: usize) -> Result<Self, Fault> {
        Self::scalar(library, number as u64, DType::I64)
    }

    pub(super) fn list(library: &Library, numbers: &[usize]) -> Result<Self, Fault> {
        let numbers = signed(numbers);
        // SAFETY: the list is read during the call.
        let object = unsafe { (library.create_ints)(numbers.as_ptr(), numbers.len() as u64) };
        Self::made(object, library.destroy_ints, "aclCreateIntArray")
    }
}
