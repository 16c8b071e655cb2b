//! naga IR to the C family: CUDA C++, HIP C++, OpenCL C and host C. Knows nothing of engine, tensors or devices.
//!
//! One writer for all: every operation on a vector is a mangled helper, and what differs between the languages is a `dialect`.

use crate::kernel::Reflection;

/// A language of the C family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// CUDA C++, as NVRTC 12 and later compiles it, without any header.
    Cuda,
    /// HIP C++, as hiprtc compiles it.
    Hip,
    /// OpenCL C: 1.2's core, and what [`OpenClFeatures`] adds.
    OpenCl,
    /// C11: one function per workgroup.
    Host,
}

impl Dialect {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDA C++",
            Self::Hip => "HIP C++",
            Self::OpenCl => "OpenCL C",
            Self::Host => "host C",
        }
    }
}

/// What an OpenCL device has beyond OpenCL C 1.2's core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct OpenClFeatures {
    /// `cl_khr_fp16`
    pub fp16: bool,
    /// `cl_khr_fp64`
    pub fp64: bool,
    /// `cl_khr_int64_base_atomics` and `cl_khr_int64_extended_atomics`
    pub int64_atomics: bool,
    /// `cl_khr_subgroups` and the extended operations that WGSL needs.
    pub subgroups: bool,
}

/// How a kernel is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Options {
    /// Ends loops after 2^32 rounds by a 64-bit counter, so that no compiler may take an endless loop for undefined behaviour.
    pub bound_loops: bool,
    /// Uniform bindings are arguments by value instead of pointers.
    pub uniforms_by_value: bool,
    /// For OpenCL.
    pub opencl: OpenClFeatures,
}

/// One argument of a translated kernel, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A pointer to what is bound to `Reflection::bindings[index]`.
    Pointer {
        /// Place in `Reflection::bindings`.
        index: usize,
    },
    /// The contents of the uniform binding `Reflection::bindings[index]`, by value.
    Value {
        /// Place in `Reflection::bindings`.
        index: usize,
        /// Size in bytes of the argument.
        bytes: u32,
    },
    /// A structure of `u32`, by value: the bytes bound to each of these bindings.
    Sizes {
        /// Places in `Reflection::bindings`.
        indices: Vec<usize>,
    },
}

/// A translated kernel.
#[derive(Debug, Clone)]
pub struct Translation {
    /// The source.
    pub source: String,
    /// The function's name in it.
    pub entry: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// The kernel's reflection, whose bindings the arguments refer to.
    pub reflection: Reflection,
    /// Extensions or limits that the source relies on, for messages.
    pub requires: Vec<String>,
}

/// A construct that a language cannot express.
#[derive(Debug, Clone)]
pub(crate) struct Unsupported {
    /// The construct, in words.
    pub(crate) construct: String,
    /// Its bytes in the WGSL text.
    pub(crate) span: Option<std::ops::Range<usize>>,
}

/// Translates one entry point of a validated module whose overrides are resolved.
pub(crate) fn translate(
    module: &naga::Module,
    info: &naga::valid::ModuleInfo,
    entry_point: usize,
    reflection: &Reflection,
    dialect: Dialect,
    options: &Options,
) -> Result<Translation, Unsupported> {
    let _ = (module, info, entry_point, reflection, options);
    Err(Unsupported { construct: format!("{} is not there yet", dialect.name()), span: None })
}
