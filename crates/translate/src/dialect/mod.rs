//! The differences between the languages. The writer asks a `Language` wherever two languages differ; its defaults are CUDA's. A new language is one file
//! here. A feature that a language lacks is refused by `lacks*` with a reason, before any text refers to it.

mod cuda;
mod hip;
mod host;
mod opencl;

use naga::{AddressSpace, Barrier};

use super::polyfill::Atomic;
use super::{Dialect, Options};
use crate::reflection::Scalar;
pub(super) use host::FIBERS;

/// The parts of an entry point, for a language to put together.
pub(super) struct Entry {
    /// The function's name.
    pub name: String,
    pub workgroup_size: [u32; 3],
    /// Parameters in order: declaration and name.
    pub parameters: Vec<(String, String)>,
    /// Type and name of each workgroup variable.
    pub workgroup: Vec<(String, String)>,
    /// Definitions of private variables and builtins.
    pub before: String,
    /// The workgroup variables' first values.
    pub clear: String,
    pub body: String,
    /// True if invocations wait for each other.
    pub meets: bool,
}

/// A language of the C family.
pub(super) trait Language: Sync {
    fn dialect(&self) -> Dialect;
    /// The source's first lines.
    fn prelude(
        &self,
        kinds: &std::collections::BTreeSet<Scalar>,
        requires: &std::collections::BTreeSet<&'static str>,
    ) -> String;
    /// Returns the text before a helper's result type.
    fn helper(&self) -> &'static str;
    /// Returns the text before a function's result type.
    fn function(&self) -> &'static str;
    /// Returns the text before a constant's type.
    fn constant(&self) -> &'static str;
    /// Returns the text between `struct` and `{` that aligns a type.
    fn align(&self, bytes: u32) -> String;
    /// The initialiser of a composite that is all zero.
    fn zero(&self) -> &'static str;
    /// Returns the suffixes of `i64` and `u64` literals.
    fn long_suffixes(&self) -> (&'static str, &'static str) {
        ("ll", "ull")
    }
    fn long_zeros(&self) -> (&'static str, &'static str) {
        ("0ll", "0ull")
    }
    fn least_long(&self) -> &'static str {
        "(-9223372036854775807ll - 1)"
    }
    /// Returns the text before the type that a pointer points to.
    fn space(&self, space: AddressSpace, uniforms_by_value: bool) -> &'static str;
    /// Tells helpers on pointers of different spaces apart, where that is needed.
    fn space_suffix(&self, _space: AddressSpace) -> &'static str {
        ""
    }
    /// Why a type of scalars is not available, if so.
    fn lacks(&self, _kind: Scalar, _options: &Options) -> Option<&'static str> {
        None
    }
    fn lacks_subgroups(&self, _options: &Options) -> Option<&'static str> {
        None
    }
    fn lacks_atomic(&self, _atomic: Atomic, _kind: Scalar, _options: &Options) -> Option<&'static str> {
        None
    }
    /// Extensions that a type of scalars, atomics on it, or subgroup operations need.
    fn kind_extension(&self, _kind: Scalar) -> Option<&'static str> {
        None
    }
    fn atomic_extensions(&self, _kind: Scalar) -> &'static [&'static str] {
        &[]
    }
    fn subgroup_extensions(&self) -> &'static [&'static str] {
        &[]
    }
    /// Workgroup variables are pointers in the entry point's body.
    fn workgroup_by_pointer(&self) -> bool {
        false
    }
    /// Parameters that are not used are mentioned, so that compilers do not warn.
    fn marks_unused(&self) -> bool {
        false
    }
    fn barrier(&self, flags: Barrier, site: u32) -> String;
    fn fence(&self, flags: Barrier) -> String;
    /// The name of a function of the C library on floats.
    fn float_function(&self, name: &str, kind: Scalar) -> String {
        if kind == Scalar::F32 { format!("{name}f") } else { name.to_owned() }
    }
    fn inverse_sqrt(&self, kind: Scalar) -> Option<&'static str>;
    fn count_ones(&self, kind: Scalar) -> &'static str;
    /// A body that counts the leading zeros of `a`.
    fn leading_zeros(&self, kind: Scalar) -> String;
    /// A body that gives the bits of `a` another type.
    fn bit_cast(&self, from: Scalar, to: Scalar) -> String {
        format!("union {{ {} from; {} to; }} u; u.from = a; return u.to;", from.name(), to.name())
    }
    /// A body for a half `a`, if the language has one.
    fn half_to_float(&self) -> Option<&'static str> {
        None
    }
    fn float_to_half(&self) -> Option<&'static str> {
        None
    }
    fn half_arithmetic(&self, _op: &str) -> Option<String> {
        None
    }
    /// A body of an atomic operation on `p`, with `v` and `compare`; `qualifier` comes before types that `p` points to.
    fn atomic(&self, atomic: Atomic, kind: Scalar, qualifier: &str) -> String;
    /// The argument that says which lanes take part in a subgroup operation.
    fn participants(&self, straight: bool, invocations: u32, site: u32) -> String;
    fn lanes_parameter(&self) -> &'static str {
        "cantus_lanes lanes"
    }
    fn lanes_argument(&self) -> &'static str {
        "lanes"
    }
    /// Returns the text at the beginning of a subgroup operation.
    fn meet(&self) -> &'static str {
        ""
    }
    /// Helpers of subgroup operations by name.
    fn subgroup_primitives(&self) -> &'static [(&'static str, &'static str)];
    /// The type of sets of lanes, if subgroups occur.
    fn lanes_type(&self) -> &'static str;
    /// A body that gives the value `x` of lane `i`; `None` where they lie in an array `values`.
    fn shuffle(&self, kind: Scalar) -> Option<String>;
    /// A body that gives the ballot of `x` as a `VEC4`.
    fn ballot(&self) -> &'static str;
    /// Why there are no cooperative matrices, if so.
    fn lacks_matrices(&self) -> Option<&'static str> {
        None
    }
    /// A constant condition, and a body that gives `a` times `b`, of f16, plus `c`, of that kind, by hardware for such products.
    fn matrix_multiply_add(&self, _size: u32, _sums: Scalar) -> Option<(&'static str, String)> {
        None
    }
    /// A constant condition, and the beginning of a block in which hardware loads a matrix of f16 from workgroup memory `p`, as the pairs
    /// `r0` to `r3` of elements; `turned` where a lane's pairs do not lie in a row of memory.
    fn matrix_load(&self, _size: u32, _row_major: bool, _turned: bool) -> Option<(&'static str, String)> {
        None
    }
    /// A builtin value: of an axis, where it has several.
    fn workgroup_id(&self, axis: usize) -> String;
    fn local_id(&self, axis: usize) -> String;
    fn workgroups(&self, axis: usize) -> String;
    fn subgroup_size(&self) -> &'static str;
    fn subgroup_lane(&self) -> &'static str {
        "cantus_lane()"
    }
    fn subgroup_id(&self, index: &str) -> String;
    fn subgroups(&self, invocations: u32) -> String;
    /// Storage bindings' pointers do not alias.
    fn restrict(&self) -> &'static str;
    /// Returns the text before uniforms that are parameters by value.
    fn by_value(&self) -> &'static str {
        "const "
    }
    /// The whole entry point.
    fn entry(&self, entry: &Entry) -> String;
}

pub(super) fn language(dialect: Dialect) -> &'static dyn Language {
    match dialect {
        Dialect::Cuda => &cuda::Cuda,
        Dialect::Hip => &hip::Hip,
        Dialect::OpenCl => &opencl::OpenCl,
        Dialect::Host => &host::Host,
    }
}

/// Type definitions that all languages share, except for these types of 8 bytes.
fn typedefs(kinds: &std::collections::BTreeSet<Scalar>, long: &str) -> String {
    let mut text =
        String::from("typedef unsigned char u8;\ntypedef int i32;\ntypedef unsigned int u32;\ntypedef float f32;\n");
    let more = [
        (Scalar::I16, "typedef short i16;\n".to_owned()),
        (Scalar::U16, "typedef unsigned short u16;\n".to_owned()),
        (Scalar::F16, "typedef unsigned short f16; // its bits\n".to_owned()),
        (Scalar::I64, format!("typedef {long} i64;\n")),
        (Scalar::F64, "typedef double f64;\n".to_owned()),
    ];
    text += &format!("typedef unsigned {long} u64;\n");
    for (kind, line) in more {
        if kinds.contains(&kind) {
            text += &line;
        }
    }
    text
}
