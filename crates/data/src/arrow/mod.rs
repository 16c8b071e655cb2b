//! Arrow's columns by its C data interface, which Arrow's libraries, Polars, DuckDB and pyarrow speak: numbers in, without a copy on the CPU; tensors out.
//!
//! - A column of numbers is a tensor of one axis; fixed-size lists add axes. Booleans are bits in Arrow, and are copied both ways.
//! - Nulls are an error: a tensor has none.
//! - Text, dates and whatever has no dtype is an error that names the column.
//!
//! The structures are the interface's own, so any version of the crate `arrow` fits by a cast of pointers: `arrow::ffi::FFI_ArrowArray` is an [`ArrowArray`].

mod abi;
mod export;
mod import;

pub use abi::{ArrowArray, ArrowArrayStream, ArrowSchema};
#[cfg(not(target_arch = "wasm32"))]
pub use export::export;
pub use export::export_async;
pub use import::{array, columns, stream};

use cantus::DType;

/// The format strings of numbers, and their dtypes.
const FORMATS: [(&str, DType); 12] = [
    ("b", DType::Bool),
    ("c", DType::I8),
    ("C", DType::U8),
    ("s", DType::I16),
    ("S", DType::U16),
    ("i", DType::I32),
    ("I", DType::U32),
    ("l", DType::I64),
    ("L", DType::U64),
    ("e", DType::F16),
    ("f", DType::F32),
    ("g", DType::F64),
];

/// Fixed-size lists in fixed-size lists, at most: no more axes than that.
const MOST_NESTED: usize = 16;
