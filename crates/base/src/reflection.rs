//! The reflection of a kernel, as plain data. `crates/kernel` makes it from naga's module, and everybody else reads it: the engine checks arguments by it,
//! devices bind by it, prepared kernels carry it as bytes. Those bytes may be hostile, hence `Layout::is_sound` and a bound on nesting. Sizes are WGSL's,
//! not packed: a `vec3<f32>` in an array takes 16 bytes.

use crate::listed::Listed;
use std::cell::Cell;

use crate::texture::{SamplerBinding, TextureBinding};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// A WGSL scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scalar {
    /// `bool` (not host-shareable).
    Bool,
    /// `i32`
    I32,
    /// `u32`
    U32,
    /// `f32`
    F32,
    /// `f16`
    F16,
    /// `i64`
    I64,
    /// `u64`
    U64,
    /// `f64`
    F64,
    /// `i16`
    I16,
    /// `u16`
    U16,
}

impl Scalar {
    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            Self::F16 | Self::I16 | Self::U16 => 2,
            Self::Bool | Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Returns the WGSL keyword.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F64 => "f64",
            Self::I16 => "i16",
            Self::U16 => "u16",
        }
    }
}

#[cfg(feature = "wgsl")]
impl Scalar {
    /// Returns the scalar type of naga's; `None` if WGSL has no name for it.
    #[doc(hidden)]
    pub fn of(scalar: naga::Scalar) -> Option<Self> {
        use naga::ScalarKind::{Bool, Float, Sint, Uint};
        Some(match (scalar.kind, scalar.width) {
            (Bool, _) => Self::Bool,
            (Sint, 2) => Self::I16,
            (Sint, 4) => Self::I32,
            (Sint, 8) => Self::I64,
            (Uint, 2) => Self::U16,
            (Uint, 4) => Self::U32,
            (Uint, 8) => Self::U64,
            (Float, 2) => Self::F16,
            (Float, 4) => Self::F32,
            (Float, 8) => Self::F64,
            _ => return None,
        })
    }

    /// Returns whether it takes 64 bits.
    #[doc(hidden)]
    pub fn is_wide(self) -> bool {
        self.bytes() == 8
    }

    /// One of the floating-point types.
    #[doc(hidden)]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// One of the signed integer types.
    #[doc(hidden)]
    pub fn is_signed(self) -> bool {
        matches!(self, Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns the unsigned integer of the same size.
    #[doc(hidden)]
    pub fn unsigned(self) -> Self {
        match self {
            Self::Bool => Self::Bool,
            Self::I16 | Self::U16 | Self::F16 => Self::U16,
            Self::I32 | Self::U32 | Self::F32 => Self::U32,
            Self::I64 | Self::U64 | Self::F64 => Self::U64,
        }
    }
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The deepest nesting of structures and arrays, because code that walks a layout recurses.
#[doc(hidden)]
pub const MAX_TYPE_DEPTH: usize = 64;

/// Reads the parts of a layout, one level further down.
fn within<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    thread_local! {
        static DEPTH: Cell<usize> = const { Cell::new(0) };
    }
    struct Level;
    impl Drop for Level {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    let _level = Level;
    if DEPTH.get() > MAX_TYPE_DEPTH {
        return Err(D::Error::custom("a type is nested too deeply"));
    }
    T::deserialize(deserializer)
}

/// The layout of a host-shareable type. All offsets, strides and sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// One scalar.
    Scalar(Scalar),
    /// `atomic<T>`
    Atomic(Scalar),
    /// `vecN<T>`
    Vector(u8, Scalar),
    /// `matCxR<T>`: columns, rows, element, distance between columns.
    Matrix {
        /// Number of columns.
        columns: u8,
        /// Number of rows.
        rows: u8,
        /// Element type.
        scalar: Scalar,
        /// Distance between columns.
        stride: u32,
    },
    /// `array<T, N>`, or `array<T>` when `count` is `None`.
    Array {
        /// Element layout.
        #[serde(deserialize_with = "within")]
        element: Box<Layout>,
        /// Number of elements; `None` for a runtime-sized array.
        count: Option<u32>,
        /// Distance between elements.
        stride: u32,
    },
    /// A structure.
    Struct {
        /// WGSL name.
        name: String,
        /// Members in order.
        #[serde(deserialize_with = "within")]
        members: Vec<Member>,
        /// Size, with padding (of the fixed part when the last member is runtime-sized).
        size: u32,
    },
}

/// A structure's member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// WGSL name.
    pub name: String,
    /// Offset from the structure's start.
    pub offset: u32,
    /// Layout of the member.
    pub layout: Layout,
}

impl Layout {
    /// Returns the size in bytes; a runtime-sized array counts as one element.
    #[must_use]
    pub fn min_bytes(&self) -> u64 {
        match self {
            Self::Scalar(scalar) | Self::Atomic(scalar) => u64::from(scalar.bytes()),
            Self::Vector(size, scalar) => u64::from(*size) * u64::from(scalar.bytes()),
            Self::Matrix { columns, stride, .. } => u64::from(*columns) * u64::from(*stride),
            Self::Array { count, stride, .. } => u64::from(count.unwrap_or(1)) * u64::from(*stride),
            Self::Struct { members, size, .. } => match members.last() {
                Some(last) if last.layout.is_runtime_sized() => {
                    u64::from(*size).max(u64::from(last.offset) + last.layout.min_bytes())
                }
                _ => u64::from(*size),
            },
        }
    }

    /// Returns how many of these bytes are whole elements of a runtime-sized array, including the part before the array. WGSL counts these; drivers
    /// differ in how they treat the rest.
    #[doc(hidden)]
    pub fn whole_bytes(&self, bytes: u64) -> u64 {
        let (before, stride) = match self.runtime_array() {
            // A buffer is bound in units of 4 bytes.
            Some((before, stride)) if stride.is_multiple_of(4) && bytes > before => (before, stride),
            _ => return bytes,
        };
        (before + (bytes - before) / stride * stride).max(self.min_bytes()).min(bytes)
    }

    /// Returns why a tensor of that shape would be misread: its rows are packed, and WGSL pads them, as it pads each `vec3` of an array.
    #[doc(hidden)]
    pub fn misread(&self, shape: &[usize]) -> Option<String> {
        let scalar = u64::from(self.scalar()?.bytes());
        let mut layout = self;
        loop {
            let (numbers, places, what) = match layout {
                Self::Array { element, stride, .. } => (element.numbers()?, u64::from(*stride), element.to_string()),
                Self::Matrix { rows, stride, .. } => (u64::from(*rows), u64::from(*stride), "column".to_owned()),
                _ => return None,
            };
            let places = places / scalar;
            let mut row = 1_u64;
            let mut rows = shape.iter().skip(1).rev().map(|&side| {
                row = row.saturating_mul(side as u64);
                row
            });
            if numbers != places && rows.any(|row| row == numbers) {
                return Some(format!(
                    "the shape {shape:?} has {numbers} numbers for each {what}, which takes the room of {places} in {self}: give {places}, with \
                     padding behind each row of 3"
                ));
            }
            let Self::Array { element, .. } = layout else { return None };
            layout = element;
        }
    }

    /// The numbers in a value of a known size.
    fn numbers(&self) -> Option<u64> {
        Some(match self {
            Self::Scalar(_) | Self::Atomic(_) => 1,
            Self::Vector(size, _) => u64::from(*size),
            Self::Matrix { columns, rows, .. } => u64::from(*columns) * u64::from(*rows),
            Self::Array { element, count, .. } => element.numbers()?.checked_mul(u64::from((*count)?))?,
            Self::Struct { members, .. } => {
                members.iter().try_fold(0_u64, |sum, member| sum.checked_add(member.layout.numbers()?))?
            }
        })
    }

    /// Returns the offset of a runtime-sized array and its stride.
    fn runtime_array(&self) -> Option<(u64, u64)> {
        match self {
            Self::Array { count: None, stride, .. } => Some((0, u64::from(*stride).max(1))),
            Self::Struct { members, .. } => {
                let last = members.last()?;
                last.layout.runtime_array().map(|(before, stride)| (before + u64::from(last.offset), stride))
            }
            _ => None,
        }
    }

    /// Returns true for a runtime-sized array, or a structure that ends in one.
    #[must_use]
    pub fn is_runtime_sized(&self) -> bool {
        match self {
            Self::Array { count, .. } => count.is_none(),
            Self::Struct { members, .. } => members.last().is_some_and(|last| last.layout.is_runtime_sized()),
            _ => false,
        }
    }

    /// Returns whether sizes, offsets and strides make sense: data that come from outside may say anything.
    #[doc(hidden)]
    pub fn is_sound(&self) -> bool {
        let sides = |sides: &[u8]| sides.iter().all(|side| (2..=4).contains(side));
        match self {
            Self::Scalar(_) | Self::Atomic(_) => true,
            Self::Vector(size, _) => sides(&[*size]),
            Self::Matrix { columns, rows, scalar, stride } => {
                sides(&[*columns, *rows]) && u32::from(*rows) * scalar.bytes() <= *stride && *stride <= 64
            }
            Self::Array { element, stride, .. } => {
                element.is_sound()
                    && !element.is_runtime_sized()
                    && *stride > 0
                    && element.min_bytes() <= u64::from(*stride)
            }
            Self::Struct { members, size, .. } => {
                let last = members.len().saturating_sub(1);
                !members.is_empty()
                    && members.iter().enumerate().all(|(place, member)| {
                        let runtime = member.layout.is_runtime_sized();
                        let end = u64::from(member.offset) + if runtime { 0 } else { member.layout.min_bytes() };
                        member.layout.is_sound() && end <= u64::from(*size) && (!runtime || place == last)
                    })
            }
        }
    }

    /// Returns the scalar type of all parts of the type (scalars, vectors, matrices and arrays of them), if there is only one.
    #[must_use]
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) | Self::Atomic(scalar) | Self::Vector(_, scalar) | Self::Matrix { scalar, .. } => {
                Some(*scalar)
            }
            Self::Array { element, .. } => element.scalar(),
            Self::Struct { members, .. } => {
                let mut scalars = members.iter().map(|member| member.layout.scalar());
                let first = scalars.next()??;
                scalars.all(|scalar| scalar == Some(first)).then_some(first)
            }
        }
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scalar(scalar) => write!(f, "{scalar}"),
            Self::Atomic(scalar) => write!(f, "atomic<{scalar}>"),
            Self::Vector(size, scalar) => write!(f, "vec{size}<{scalar}>"),
            Self::Matrix { columns, rows, scalar, .. } => write!(f, "mat{columns}x{rows}<{scalar}>"),
            Self::Array { element, count: Some(count), .. } => write!(f, "array<{element}, {count}>"),
            Self::Array { element, count: None, .. } => write!(f, "array<{element}>"),
            Self::Struct { name, .. } => f.write_str(name),
        }
    }
}

/// The address space of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AddressSpace {
    /// `var<uniform>`
    Uniform,
    /// `var<storage>` or `var<storage, read_write>`
    Storage,
}

/// The access of a kernel to a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Reads only.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// A resource of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The variable's name in the WGSL text.
    pub name: String,
    /// `@group`
    pub group: u32,
    /// `@binding`
    pub binding: u32,
    /// Uniform or storage.
    pub space: AddressSpace,
    /// Read, or read and write.
    pub access: Access,
    /// Type and layout.
    pub layout: Layout,
}

/// An override constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Override {
    /// The name (or `@id`, if it has one).
    pub name: String,
    /// Its type.
    pub scalar: Scalar,
    /// The value in force: set, or the default. `None` if there is neither, or if the entry point does not use it and its default is an
    /// expression.
    pub value: Option<f64>,
}

/// Optional features of a device that a kernel needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Features {
    /// `enable f16;`
    pub f16: bool,
    /// `i64`, `u64`
    pub int64: bool,
    /// `f64`
    pub float64: bool,
    /// `i16`, `u16`
    pub int16: bool,
    /// Subgroup operations and builtins.
    pub subgroups: bool,
    /// 64-bit atomics.
    pub int64_atomics: bool,
    /// Atomics on f32.
    pub float32_atomics: bool,
    /// `enable wgpu_cooperative_matrix;`
    pub cooperative_matrix: bool,
}

impl Features {
    /// Returns each feature with its name.
    #[must_use]
    pub fn named(self) -> [(&'static str, bool); 8] {
        [
            ("f16", self.f16),
            ("int64", self.int64),
            ("float64", self.float64),
            ("int16", self.int16),
            ("subgroups", self.subgroups),
            ("int64_atomics", self.int64_atomics),
            ("float32_atomics", self.float32_atomics),
            ("cooperative_matrix", self.cooperative_matrix),
        ]
    }

    /// Returns the names of the features wanted here that `available` lacks.
    #[must_use]
    pub fn missing_from(self, available: Self) -> Vec<&'static str> {
        let pairs = self.named().into_iter().zip(available.named());
        pairs.filter(|((_, wanted), (_, have))| *wanted && !have).map(|((name, _), _)| name).listed()
    }
}

/// Everything known about one entry point of a kernel, with its overrides in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reflection {
    /// The entry point's name.
    pub entry_point: String,
    /// `@workgroup_size`, after overrides.
    pub workgroup_size: [u32; 3],
    /// The bindings that the entry point uses, sorted by group and binding.
    pub bindings: Vec<Binding>,
    /// The override constants of the module.
    pub overrides: Vec<Override>,
    /// Optional features that the module needs.
    pub features: Features,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// The textures that the entry point uses, sorted by group and binding. A prepared kernel has none.
    #[serde(skip)]
    pub textures: Vec<TextureBinding>,
    /// The samplers that it uses, in the same order.
    #[serde(skip)]
    pub samplers: Vec<SamplerBinding>,
}

impl Reflection {
    /// Returns the binding of that name and its place in `bindings`.
    #[must_use]
    pub fn binding(&self, name: &str) -> Option<(usize, &Binding)> {
        self.bindings.iter().enumerate().find(|(_, binding)| binding.name == name)
    }

    /// Invocations in a workgroup.
    #[must_use]
    pub fn invocations(&self) -> u64 {
        self.workgroup_size.iter().fold(1, |product: u64, &side| product.saturating_mul(u64::from(side)))
    }
}
