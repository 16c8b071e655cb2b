//! What differs between the vendors: names of libraries and functions, numbers of attributes, and a dialect of the translator.

use std::ffi::c_int;

use super::library::{FunctionNames, ProductNames};
use super::takeover::Takeover;
use crate::translate::Dialect;

/// What differs between the vendors.
#[derive(Debug)]
pub(in crate::backend) struct Vendor {
    /// The backend's name.
    pub(in crate::backend) name: &'static str,
    /// Priority of its devices.
    pub(in crate::backend) priority: i32,
    /// Their priority without the run-time compiler: below the GPUs of any API that has one.
    pub(in crate::backend) priority_without_compiler: i32,
    /// The language that its compiler takes.
    pub(in crate::backend) dialect: Dialect,
    /// The driver's library, first choice first.
    pub(in crate::backend) libraries: &'static [&'static str],
    /// The variable that names the driver's library, for systems where it lies elsewhere.
    pub(in crate::backend) library_variable: &'static str,
    /// What to install when the driver is missing.
    pub(in crate::backend) library_remedy: &'static str,
    /// The run-time compiler's library, first choice first, for a driver of that version.
    pub(in crate::backend) compilers: fn(version: i32) -> &'static [&'static str],
    /// The variable that names the compiler's library.
    pub(in crate::backend) compiler_variable: &'static str,
    /// What to install when the compiler is missing.
    pub(in crate::backend) compiler_remedy: &'static str,
    /// The driver's function of each role.
    pub(in crate::backend) functions: FunctionNames,
    /// The compiler's function of each role.
    pub(in crate::backend) compiler_functions: CompilerNames,
    /// Numbers of the device attributes.
    pub(in crate::backend) attributes: Attributes,
    /// The oldest driver that works, as its version function gives it, and in words.
    pub(in crate::backend) oldest_driver: (i32, &'static str),
    /// The compiler's option for a device's architecture.
    pub(in crate::backend) architecture_option: fn(&Architecture) -> String,
    /// Code that the driver compiles further, where there is such a thing.
    pub(in crate::backend) portable: Option<PortableNames>,
    /// Options of every compilation.
    pub(in crate::backend) options: &'static [&'static str],
    /// The least compute capability of devices that multiply small matrices of f16 in hardware, by translated kernels.
    pub(in crate::backend) matrices: Option<(i32, i32)>,
    /// The library of products in place of kernels that state one.
    pub(in crate::backend) products: Option<&'static ProductLibrary>,
    /// The library of sums over devices.
    pub(in crate::backend) collectives: Option<&'static CollectiveLibrary>,
    /// Native kernels in place of translated ones.
    pub(in crate::backend) takeovers: &'static [Takeover],
    /// Kernels that were compiled when the library was built, for systems without the compiler.
    pub(in crate::backend) embedded: fn(source: &str) -> Option<&'static str>,
}

/// A library of sums over devices, as a vendor has it.
#[derive(Debug)]
pub(in crate::backend) struct CollectiveLibrary {
    /// Its name for people.
    pub(in crate::backend) name: &'static str,
    /// Files, first choice first.
    pub(in crate::backend) libraries: &'static [&'static str],
    /// The variable that names the file.
    pub(in crate::backend) variable: &'static str,
    /// What to do where it is missing.
    pub(in crate::backend) remedy: &'static str,
}

/// A library of products, as a vendor has it.
#[derive(Debug)]
pub(in crate::backend) struct ProductLibrary {
    /// Its name for people.
    pub(in crate::backend) name: &'static str,
    /// Above a native kernel of a lower rank.
    pub(in crate::backend) rank: i32,
    /// Files, first choice first, for a driver of that version: none of a major version above the driver's.
    pub(in crate::backend) libraries: fn(version: i32) -> &'static [&'static str],
    /// The variable that names the file.
    pub(in crate::backend) variable: &'static str,
    /// What to do where it is missing.
    pub(in crate::backend) remedy: &'static str,
    /// The function of each role.
    pub(in crate::backend) functions: ProductNames,
    /// A function that tells the version that the library was made for, in the driver's numbers, where there is one.
    pub(in crate::backend) made_for: Option<&'static str>,
    /// Its numbers.
    pub(in crate::backend) numbers: ProductNumbers,
}

/// Where the vendors' numbers differ.
#[derive(Debug)]
pub(in crate::backend) struct ProductNumbers {
    /// Sums in float32.
    pub(in crate::backend) sums: c_int,
    /// Sums in i32.
    pub(in crate::backend) whole_sums: c_int,
    /// An operand as it is, and transposed.
    pub(in crate::backend) as_it_is: i32,
    pub(in crate::backend) transposed: i32,
    /// Attributes of a product.
    pub(in crate::backend) transpose: [c_int; 2],
    pub(in crate::backend) epilogue: c_int,
    pub(in crate::backend) bias: c_int,
    /// Attributes of a matrix.
    pub(in crate::backend) batches: c_int,
    pub(in crate::backend) batch_stride: c_int,
    /// Attributes of a preference: how parts of sums are added up, and the first of four alignments; where it has them.
    pub(in crate::backend) preferences: Option<[c_int; 2]>,
}

/// Numbers of the device attributes that are asked for.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend) struct Attributes {
    pub(in crate::backend) threads_per_block: i32,
    pub(in crate::backend) block_x: i32,
    pub(in crate::backend) grid_x: i32,
    pub(in crate::backend) shared_bytes: i32,
    pub(in crate::backend) warp_size: i32,
    pub(in crate::backend) integrated: i32,
    pub(in crate::backend) compute_major: i32,
    pub(in crate::backend) compute_minor: i32,
    pub(in crate::backend) memory_pools: i32,
    /// Shared memory of a block that asks for it; 0 where there is no such thing.
    pub(in crate::backend) shared_opt_in: i32,
    /// Thread-block clusters; 0 where there are none.
    pub(in crate::backend) clusters: i32,
}

/// What code is compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::backend) struct Architecture {
    /// Compute capability.
    pub(in crate::backend) compute: (i32, i32),
    /// The vendor's name for it (`gfx90a`), where there is one.
    pub(in crate::backend) name: Option<String>,
}

/// The name of the compiler's function for each role.
#[derive(Debug)]
pub(in crate::backend) struct CompilerNames {
    pub(in crate::backend) version: &'static str,
    pub(in crate::backend) create: &'static str,
    pub(in crate::backend) compile: &'static str,
    pub(in crate::backend) destroy: &'static str,
    pub(in crate::backend) log_size: &'static str,
    pub(in crate::backend) log: &'static str,
    pub(in crate::backend) code_size: &'static str,
    pub(in crate::backend) code: &'static str,
}

/// Code that is not for one architecture: the driver compiles it for its devices.
#[derive(Debug)]
pub(in crate::backend) struct PortableNames {
    /// The compiler's functions, with those that give such code.
    pub(in crate::backend) functions: CompilerNames,
    /// The compiler's functions that count and list the architectures that it knows, as 10 times the major number plus the minor one.
    pub(in crate::backend) count: &'static str,
    pub(in crate::backend) list: &'static str,
    /// The compiler's option for one of those.
    pub(in crate::backend) option: fn(i32) -> String,
}
