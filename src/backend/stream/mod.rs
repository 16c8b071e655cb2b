//! Devices driven through streams: CUDA's driver and HIP's runtime have one shape, and so one implementation. Which of the two a device
//! is, is a [`Vendor`]: names of libraries, functions and attributes, and a dialect of the translator.
//!
//! The functions are looked up at run time, each as a plain C function that returns a number: a code that a newer driver invents stays
//! a number, and a missing library or symbol is a reason.

mod compiler;
mod device;
mod driver;
mod graph;
mod library;
mod memory;
mod probe;
mod program;
mod queue;
mod staging;

use crate::translate::Dialect;

pub use compiler::Compiled;
pub(super) use compiler::{Compiler, Names as CompilerNames};
pub(super) use driver::Current;
pub(super) use library::{GraphNames, Names};
pub(super) use probe::{Detail, Found, Manner, open, probe, summary};

/// What differs between the vendors.
#[derive(Debug)]
pub(super) struct Vendor {
    /// The backend's name.
    pub(super) name: &'static str,
    /// Priority of its devices.
    pub(super) priority: i32,
    /// The language that its compiler takes.
    pub(super) dialect: Dialect,
    /// The driver's library, first choice first.
    pub(super) libraries: &'static [&'static str],
    /// The variable that names the driver's library, for systems where it lies elsewhere.
    pub(super) library_variable: &'static str,
    /// The run-time compiler's library.
    pub(super) compilers: &'static [&'static str],
    /// The variable that names the compiler's library.
    pub(super) compiler_variable: &'static str,
    /// What to install when the compiler is missing.
    pub(super) compiler_remedy: &'static str,
    /// The driver's function of each role.
    pub(super) functions: Names,
    /// The same for graphs.
    pub(super) graph_functions: GraphNames,
    /// The compiler's function of each role.
    pub(super) compiler_functions: compiler::Names,
    /// Numbers of the device attributes.
    pub(super) attributes: Attributes,
    /// The oldest driver that works, as its version function gives it, and in words.
    pub(super) oldest_driver: (i32, &'static str),
    /// The compiler's option for a device's architecture.
    pub(super) architecture_option: fn(&Architecture) -> String,
    /// Options of every compilation.
    pub(super) options: &'static [&'static str],
    /// Kernels that were compiled when the library was built, for systems without the compiler.
    pub(super) embedded: fn(source: &str) -> Option<&'static str>,
}

/// Numbers of the device attributes that are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes {
    pub(super) threads_per_block: i32,
    pub(super) block_x: i32,
    pub(super) grid_x: i32,
    pub(super) shared_bytes: i32,
    pub(super) warp_size: i32,
    pub(super) integrated: i32,
    pub(super) compute_major: i32,
    pub(super) compute_minor: i32,
    pub(super) memory_pools: i32,
}

/// What code is compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Architecture {
    /// Compute capability.
    pub(super) compute: (i32, i32),
    /// The vendor's name for it (`gfx90a`), where there is one.
    pub(super) name: Option<String>,
}
