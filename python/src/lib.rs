//! The part of the Python package `cantus` that is Rust: engines, lazy arrays, kernels, and one call for each table of operations. Names,
//! promotion, indexing and everything else of the array API is Python (`../cantus`).

mod array;
mod call;
mod checks;
mod circuits;
mod data;
mod dlpack;
mod engine;
mod errors;
mod few;
mod handle;
mod kernel;
mod numbers;
mod stream;
mod texture;
mod wait;

use pyo3::prelude::*;

/// Recording makes many small objects, which another thread may free.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::array::Lazy;
    #[pymodule_export]
    use super::circuits::{Circuit, Compiled};
    #[pymodule_export]
    use super::data::{Archive, from_arrow, save};
    #[pymodule_export]
    use super::engine::{Engine, forked, frequencies, survey};
    #[pymodule_export]
    use super::handle::{Handle, extended, late, wrap};
    #[pymodule_export]
    use super::kernel::Kernel;
    #[pymodule_export]
    use super::stream::Stream;
    #[pymodule_export]
    use super::texture::{Texture, format_for, texture_sides};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("unary", super::call::names(cantus::ops::Unary::ALL.iter().map(|op| op.name())))?;
        module.add("binary", super::call::names(cantus::ops::Binary::ALL.iter().map(|op| op.name())))?;
        super::errors::register(module)
    }
}
