//! The differences between the vendors: names of libraries and functions, numbers of attributes, and a dialect of the
//! translator.

use std::ffi::c_int;

use super::library::{FunctionNames, ProductNames};
use super::takeover::Takeover;
use crate::translate::Dialect;

/// A vendor's names, numbers and options.
#[derive(Debug)]
pub(crate) struct Vendor {
    /// The backend's name.
    pub(crate) name: &'static str,
    /// Priority of its devices.
    pub(crate) priority: i32,
    /// Their priority without the run-time compiler: below the GPUs of any API that has one.
    pub(crate) priority_without_compiler: i32,
    /// The language that its compiler takes.
    pub(crate) dialect: Dialect,
    /// The driver's library, first choice first.
    pub(crate) libraries: &'static [&'static str],
    /// The variable that names the driver's library, for systems where it lies elsewhere.
    pub(crate) library_variable: &'static str,
    /// The package to install when the driver is missing.
    pub(crate) library_remedy: &'static str,
    /// The run-time compiler's library, first choice first, for a driver of that version.
    pub(crate) compilers: fn(version: i32) -> &'static [&'static str],
    /// The variable that names the compiler's library.
    pub(crate) compiler_variable: &'static str,
    /// The package to install when the compiler is missing.
    pub(crate) compiler_remedy: &'static str,
    /// The driver's function of each role.
    pub(crate) functions: FunctionNames,
    /// The compiler's function of each role.
    pub(crate) compiler_functions: CompilerNames,
    /// Numbers of the device attributes.
    pub(crate) attributes: Attributes,
    /// The oldest driver that works, as its version function gives it, and in words.
    pub(crate) oldest_driver: (i32, &'static str),
    /// The compiler's option for a device's architecture.
    pub(crate) architecture_option: fn(&Architecture) -> String,
    /// Code that the driver compiles further, where there is such a thing.
    pub(crate) portable: Option<PortableNames>,
    /// Options of every compilation.
    pub(crate) options: &'static [&'static str],
    /// The least compute capability of devices that multiply small matrices of f16 in hardware, by translated kernels.
    pub(crate) matrices: Option<(i32, i32)>,
    /// The library of products in place of kernels that state one.
    pub(crate) products: Option<&'static ProductLibrary>,
    /// The library of sums over devices.
    pub(crate) collectives: Option<&'static CollectiveLibrary>,
    /// Native kernels in place of translated ones.
    pub(crate) takeovers: &'static [Takeover],
    /// Kernels that were compiled when the library was built, for systems without the compiler.
    pub(crate) embedded: fn(source: &str) -> Option<&'static str>,
}

/// A library of sums over devices, as a vendor has it.
#[derive(Debug)]
pub(crate) struct CollectiveLibrary {
    /// Its name for people.
    pub(crate) name: &'static str,
    /// Files, first choice first.
    pub(crate) libraries: &'static [&'static str],
    /// The variable that names the file.
    pub(crate) variable: &'static str,
    /// The remedy where it is missing.
    pub(crate) remedy: &'static str,
}

/// A library of products, as a vendor has it.
#[derive(Debug)]
pub(crate) struct ProductLibrary {
    /// Its name for people.
    pub(crate) name: &'static str,
    /// Above a native kernel of a lower rank.
    pub(crate) rank: i32,
    /// Files, first choice first, for a driver of that version: none of a major version above the driver's.
    pub(crate) libraries: fn(version: i32) -> &'static [&'static str],
    /// The variable that names the file.
    pub(crate) variable: &'static str,
    /// The remedy where it is missing.
    pub(crate) remedy: &'static str,
    /// The function of each role.
    pub(crate) functions: ProductNames,
    /// A function that tells the version that the library was made for, in the driver's numbers, where there is one.
    pub(crate) made_for: Option<&'static str>,
    /// Its numbers.
    pub(crate) numbers: ProductNumbers,
}

/// The numbers that differ between the vendors.
#[derive(Debug)]
pub(crate) struct ProductNumbers {
    /// Sums in float32.
    pub(crate) sums: c_int,
    /// Sums in i32.
    pub(crate) whole_sums: c_int,
    /// An operand as it is, and transposed.
    pub(crate) as_it_is: i32,
    pub(crate) transposed: i32,
    /// Attributes of a product.
    pub(crate) transpose: [c_int; 2],
    pub(crate) epilogue: c_int,
    pub(crate) bias: c_int,
    /// Attributes of a matrix.
    pub(crate) batches: c_int,
    pub(crate) batch_stride: c_int,
    /// Attributes of a preference: how parts of sums are added up, and the first of four alignments; where it has them.
    pub(crate) preferences: Option<[c_int; 2]>,
}

/// Numbers of the device attributes that are asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) threads_per_block: i32,
    pub(crate) block_x: i32,
    pub(crate) grid_x: i32,
    pub(crate) shared_bytes: i32,
    pub(crate) warp_size: i32,
    pub(crate) integrated: i32,
    pub(crate) compute_major: i32,
    pub(crate) compute_minor: i32,
    pub(crate) memory_pools: i32,
    /// Shared memory of a block that asks for it; 0 where there is no such thing.
    pub(crate) shared_opt_in: i32,
    /// Thread-block clusters; 0 where there are none.
    pub(crate) clusters: i32,
}

/// The target of a compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// Compute capability.
    pub(crate) compute: (i32, i32),
    /// The vendor's name for it (`gfx90a`), where there is one.
    pub(crate) name: Option<String>,
}

/// The name of the compiler's function for each role.
#[derive(Debug)]
pub(crate) struct CompilerNames {
    pub(crate) version: &'static str,
    pub(crate) create: &'static str,
    pub(crate) compile: &'static str,
    pub(crate) destroy: &'static str,
    pub(crate) log_size: &'static str,
    pub(crate) log: &'static str,
    pub(crate) code_size: &'static str,
    pub(crate) code: &'static str,
}

/// Code that is not for one architecture: the driver compiles it for its devices.
#[derive(Debug)]
pub(crate) struct PortableNames {
    /// The compiler's functions, with those that give such code.
    pub(crate) functions: CompilerNames,
    /// The compiler's functions that count and list the architectures that it knows, as 10 times the major number plus the minor one.
    pub(crate) count: &'static str,
    pub(crate) list: &'static str,
    /// The compiler's option for one of those.
    pub(crate) option: fn(i32) -> String,
}
