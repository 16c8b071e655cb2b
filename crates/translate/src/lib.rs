//! naga IR to the C family: CUDA C++, HIP C++, OpenCL C and host C. Knows nothing of engine, tensors or devices.
//!
//! # What comes in
//! A validated module whose overrides are resolved, an entry point, its reflection, a `Dialect` and `Options`. What comes out is a `Translation`: the
//! source, the function's name in it, and its arguments in terms of the reflection's bindings.
//!
//! # Stages
//! 1. **Names** (`names`, `words.txt`). WGSL's names are kept unless a language or its headers use them.
//! 2. **Scan** (`scan`). How often each expression is used, what is reached, where control ends. From this follows which expressions become variables.
//! 3. **Write** (`entry`, `function`, `stmt`, `expr`, `place`, `constant`). One `Writer` for all languages goes through the entry point and writes each
//!    function that it calls before it. What differs is asked of the trait `Language`, one file for each language in `dialect`.
//! 4. **Define on demand** (`types`, `polyfill`). A type, a table or a helper is defined where it is first asked for. Every operation on a vector is a
//!    helper under a mangled name. Helpers that in the end nothing calls are left out.
//! 5. **Put together** (`Writer::whole`): prelude, types, constants, helpers, functions, entry point.
//!
//! # What the emitted source promises, in every language
//! - Integers are WGSL's to the bit: overflow wraps, shifts take as many bits as count, division by zero gives the dividend, floats become integers by
//!   saturation.
//! - An index out of range is moved to the last element. A runtime-sized array that is bound must have one element at least.
//! - Workgroup memory begins as zero. Private variables of the module are variables of the entry point, handed down by pointer.
//! - Floats are the language's own functions without relaxed mathematics. CUDA and HIP may fuse a product and a sum, as WGSL allows; OpenCL and the host do
//!   not.
//! - Subgroup operations outside of branches take all lanes that the workgroup fills; in branches, those that arrive together. Lanes are 32 in CUDA and on
//!   the host, 32 or 64 in HIP, and at most 64 in OpenCL.
//! - Types lie in memory as WGSL says, by explicit padding; `f16` is kept as its bits and computed as `f32` with one rounding for each operation, so that
//!   no language needs halves of its own.
//!
//! # What is surprising
//! - A value is a C expression, and a pointer is the lvalue that it points to. Loads become variables where naga emits them, so later stores do not change
//!   them. Everything else stays inline unless it is named, used twice or nested deeply.
//! - C has no variables of a module that each invocation has for itself, so functions get storage, workgroup and private variables as further parameters.
//! - The host's function takes, before its arguments, two pointers to three `u32`: the workgroup's id and the number of workgroups. It runs that one
//!   workgroup, as a plain loop over invocations, or as fibers where these wait for each other.
//!
//! # An example
//! `y[id.x] = x[id.x] / n;` with `x`, `y` of `array<u32>` and a uniform `n`. The division becomes a call of a helper that gives the dividend for `n` = 0;
//! it is defined before the entry point. Both indices are moved to the last element where they are beyond it, by the lengths that the structure of sizes
//! gives. In CUDA the entry point is `extern "C" __global__` with two pointers, `n` (a pointer, or by value), and the sizes.

mod constant;
mod dialect;
mod entry;
mod expr;
mod function;
mod names;
mod place;
mod polyfill;
mod scan;
mod stmt;
mod types;

use cantus_base::{flow, fragment, reflection};

use std::collections::BTreeSet;

use naga::proc::{NameKey, Namer};
use naga::valid::ModuleInfo;
use naga::{GlobalVariable, Handle, Module};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::reflection::Reflection;
use crate::reflection::Scalar;
use dialect::Language;

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
    /// Returns its name in messages.
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

/// The features of an OpenCL device beyond OpenCL C 1.2's core.
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

impl OpenClFeatures {
    /// All of them.
    pub const ALL: Self = Self { fp16: true, fp64: true, int64_atomics: true, subgroups: true };
}

/// The effect of an index out of range in a translated kernel. WGSL allows both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutOfRange {
    /// It is moved to the last element.
    #[default]
    LastElement,
    /// Loads give zero, and stores and atomic operations do nothing, as in the CPU executor's memory. A pointer to a part of something that is
    /// handed to a function still points to the last element.
    Zero,
}

/// Options of a translation.
///
/// ```
/// let options = cantus::translate::Options::new().bound_loops(true);
/// assert!(options.bound_loops && !options.uniforms_by_value);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// Ends loops after 2^32 rounds by a 64-bit counter, so that no compiler may take an endless loop for undefined behaviour.
    pub bound_loops: bool,
    /// Uniform bindings are arguments by value instead of pointers.
    pub uniforms_by_value: bool,
    /// Features of the OpenCL device.
    pub opencl: OpenClFeatures,
    /// The effect of an index out of range.
    pub out_of_range: OutOfRange,
}

impl Options {
    /// Loops as they are, uniforms by pointers, OpenCL's core alone, indices out of range moved to the last element.
    #[must_use]
    pub const fn new() -> Self {
        let opencl = OpenClFeatures { fp16: false, fp64: false, int64_atomics: false, subgroups: false };
        Self { bound_loops: false, uniforms_by_value: false, opencl, out_of_range: OutOfRange::LastElement }
    }

    /// Sets whether loops end after 2^32 rounds.
    #[must_use]
    pub const fn bound_loops(mut self, bound: bool) -> Self {
        self.bound_loops = bound;
        self
    }

    /// Sets whether uniform bindings are arguments by value.
    #[must_use]
    pub const fn uniforms_by_value(mut self, by_value: bool) -> Self {
        self.uniforms_by_value = by_value;
        self
    }

    /// Sets the effect of an index out of range.
    #[must_use]
    pub const fn out_of_range(mut self, out_of_range: OutOfRange) -> Self {
        self.out_of_range = out_of_range;
        self
    }

    /// Sets the features of the OpenCL device.
    #[must_use]
    pub const fn opencl(mut self, features: OpenClFeatures) -> Self {
        self.opencl = features;
        self
    }
}

/// A kernel in the language itself, in place of an entry point's body. It finds the entry point's name as `CANTUS_ENTRY`, its parameters as
/// `CANTUS_PARAMETERS`, and what its body called as functions of the same names and arguments.
#[cfg(feature = "_cuda_hip")]
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct Frame<'a> {
    /// The kernel.
    #[doc(hidden)]
    pub source: &'a str,
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
#[non_exhaustive]
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
#[doc(hidden)]
pub struct Unsupported {
    /// The construct, in words.
    #[doc(hidden)]
    pub construct: String,
    /// The byte range in the WGSL text.
    #[doc(hidden)]
    pub span: Option<std::ops::Range<usize>>,
}

type Result<T> = std::result::Result<T, Unsupported>;

/// No device runs larger workgroups, and the writer counts their invocations in 32 bits.
const MAX_INVOCATIONS: u64 = 1 << 16;

/// Translates one entry point of a validated module whose overrides are resolved.
#[doc(hidden)]
pub fn translate(
    module: &Module,
    info: &ModuleInfo,
    entry_point: usize,
    reflection: &Reflection,
    dialect: Dialect,
    options: &Options,
) -> Result<Translation> {
    writer(module, info, reflection, dialect, options)?.entry_point(entry_point)
}

/// As [`translate`], with another kernel in place of the entry point's body.
#[cfg(feature = "_cuda_hip")]
#[doc(hidden)]
pub fn translate_frame(
    module: &Module,
    info: &ModuleInfo,
    entry_point: usize,
    reflection: &Reflection,
    dialect: Dialect,
    (options, frame): (&Options, &Frame<'_>),
) -> Result<Translation> {
    writer(module, info, reflection, dialect, options)?.framed(entry_point, frame)
}

fn writer<'m>(
    module: &'m Module,
    info: &'m ModuleInfo,
    reflection: &'m Reflection,
    dialect: Dialect,
    options: &Options,
) -> Result<Writer<'m>> {
    let invocations = reflection.invocations();
    if !(1..=MAX_INVOCATIONS).contains(&invocations) {
        let construct = format!("a workgroup of {invocations} invocations (at most {MAX_INVOCATIONS})");
        return Err(Unsupported { construct, span: None });
    }
    let (namer, names) = names::names(module);
    Ok(Writer {
        module,
        info,
        reflection,
        language: dialect::language(dialect),
        options: *options,
        namer,
        names,
        defined: FxHashSet::default(),
        kinds: BTreeSet::new(),
        types: String::new(),
        helpers: Vec::new(),
        constants: String::new(),
        functions: String::new(),
        requires: BTreeSet::new(),
        subgroup_sites: 0,
        uses_subgroups: false,
        tables: FxHashMap::default(),
        span: naga::Span::UNDEFINED,
    })
}

/// One translation: what is written so far, by the part of the source that it belongs to.
struct Writer<'m> {
    module: &'m Module,
    info: &'m ModuleInfo,
    reflection: &'m Reflection,
    language: &'static dyn Language,
    options: Options,
    namer: Namer,
    names: FxHashMap<NameKey, String>,
    /// Types, helpers, constants and functions that are written already.
    defined: FxHashSet<String>,
    /// Scalars that occur.
    kinds: BTreeSet<Scalar>,
    types: String,
    /// Helpers by name, each before those that call it.
    helpers: Vec<(String, String)>,
    constants: String,
    functions: String,
    requires: BTreeSet<&'static str>,
    subgroup_sites: u32,
    uses_subgroups: bool,
    /// Tables by their type and contents.
    tables: FxHashMap<String, String>,
    span: naga::Span,
}

impl Writer<'_> {
    fn unsupported<T>(&self, construct: impl Into<String>) -> Result<T> {
        Err(Unsupported { construct: construct.into(), span: self.span.to_range() })
    }

    /// Turns a missing answer into an error that names the construct.
    fn known<T>(&self, value: Option<T>, construct: &str) -> Result<T> {
        match value {
            Some(value) => Ok(value),
            None => self.unsupported(construct),
        }
    }

    /// The name of something in the module.
    fn named(&self, key: NameKey) -> String {
        self.names.get(&key).cloned().unwrap_or_else(|| "unnamed".to_owned())
    }

    fn global_name(&self, handle: Handle<GlobalVariable>) -> String {
        self.named(NameKey::GlobalVariable(handle))
    }

    /// Defines a helper of that name unless it is there; what `body` asks for comes before it.
    fn helper(&mut self, name: &str, body: impl FnOnce(&mut Self) -> Result<String>) -> Result<()> {
        if self.defined.insert(name.to_owned()) {
            let text = body(self)?;
            self.define(name, &text);
        }
        Ok(())
    }

    fn define(&mut self, name: &str, text: &str) {
        self.helpers.push((name.to_owned(), format!("{}{text}\n", self.language.helper())));
    }
}

/// Returns whether an identifier occurs in a text, other than as a member of something.
fn mentions(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|text| text.chars().next());
        let member = text.get(..at).is_some_and(|text| text.ends_with('.') || text.ends_with("->"));
        !member && !before.is_some_and(part) && !after.is_some_and(part)
    })
}
