//! Values for uniform bindings, set by name and encoded by the binding's layout. `dispatch` fills a block for each uniform binding, `capture` for each
//! change of one. Every member must be set, since a kernel may read it. A number that the shader's type cannot hold is an error, never rounded to infinity
//! or wrapped.

use crate::error::Result;
use crate::kernel::{Layout, Scalar};
use cantus_base::listed::Listed;

/// A value for a uniform binding or one of its members. Made with `into()`, which [`DispatchBuilder::set`](super::DispatchBuilder::set)
/// calls:
///
/// | from | for |
/// | --- | --- |
/// | `bool`, any integer, `usize` among them, `f16`, `f32`, `f64` | a scalar |
/// | an array, a slice or a `Vec` of them | a vector, an array, a matrix by columns |
/// | an array, a slice or a `Vec` of arrays | a matrix (its columns), an array of vectors or matrices |
/// | a reference to a [`bytemuck::Pod`] structure | a structure with the same layout |
///
/// Numbers are converted to the shader's type, and placed by WGSL's rules: columns and elements are padded as the layout has it. A number
/// that the type cannot hold is an error of the dispatch.
#[derive(Debug, Clone, PartialEq)]
pub struct Value(Contents);

#[derive(Debug, Clone, PartialEq)]
enum Contents {
    One(Number),
    Many {
        numbers: Vec<Number>,
        /// Lengths of the nested arrays, the outermost first.
        lengths: Vec<usize>,
    },
    /// A structure of Rust, byte by byte.
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Integer(i128),
    Float(f64),
}

/// A part of a [`Value`]: a number, or an array of parts.
pub trait Component: sealed::Component {}

mod sealed {
    use super::Number;

    pub trait Component {
        /// Lengths of the nested arrays, the outermost first.
        fn lengths() -> Vec<usize>;
        #[expect(private_interfaces, reason = "nobody outside can call it")]
        fn collect(&self, numbers: &mut Vec<Number>);
    }
}

impl<T: Component, const N: usize> Component for [T; N] {}
impl<T: Component, const N: usize> sealed::Component for [T; N] {
    fn lengths() -> Vec<usize> {
        let mut lengths = T::lengths();
        lengths.insert(0, N);
        lengths
    }

    #[expect(private_interfaces, reason = "nobody outside can call it")]
    fn collect(&self, numbers: &mut Vec<Number>) {
        self.iter().for_each(|part| part.collect(numbers));
    }
}

impl<T: Component> From<&[T]> for Value {
    fn from(parts: &[T]) -> Self {
        let mut lengths = T::lengths();
        lengths.insert(0, parts.len());
        let mut numbers = Vec::with_capacity(parts.len());
        parts.iter().for_each(|part| part.collect(&mut numbers));
        Self(Contents::Many { numbers, lengths })
    }
}

impl<T: Component, const N: usize> From<[T; N]> for Value {
    fn from(parts: [T; N]) -> Self {
        Self::from(parts.as_slice())
    }
}

impl<T: Component> From<Vec<T>> for Value {
    fn from(parts: Vec<T>) -> Self {
        Self::from(parts.as_slice())
    }
}

/// The bytes of a structure, for a uniform structure of the same size and the same offsets. A reference to a number is that number.
impl<T: bytemuck::Pod> From<&T> for Value {
    fn from(value: &T) -> Self {
        match number_of(value) {
            Some(number) => Self(Contents::One(number)),
            None => Self(Contents::Bytes(bytemuck::bytes_of(value).to_vec())),
        }
    }
}

macro_rules! from_numbers {
    ($($rust:ty => |$value:ident| $number:expr;)*) => {$(
        impl From<$rust> for Value {
            fn from($value: $rust) -> Self {
                Self(Contents::One($number))
            }
        }
        impl Component for $rust {}
        impl sealed::Component for $rust {
            fn lengths() -> Vec<usize> {
                Vec::new()
            }

            #[expect(private_interfaces, reason = "nobody outside can call it")]
            fn collect(&self, numbers: &mut Vec<Number>) {
                let $value = *self;
                numbers.push($number);
            }
        }
    )*};
}
from_numbers! {
    f32 => |value| Number::Float(f64::from(value));
    f64 => |value| Number::Float(value);
    half::f16 => |value| Number::Float(value.to_f64());
    i8 => |value| Number::Integer(i128::from(value));
    u8 => |value| Number::Integer(i128::from(value));
    i16 => |value| Number::Integer(i128::from(value));
    u16 => |value| Number::Integer(i128::from(value));
    i32 => |value| Number::Integer(i128::from(value));
    u32 => |value| Number::Integer(i128::from(value));
    i64 => |value| Number::Integer(i128::from(value));
    u64 => |value| Number::Integer(i128::from(value));
    isize => |value| Number::Integer(value as i128);
    usize => |value| Number::Integer(value as i128);
    bool => |value| Number::Integer(i128::from(value));
}

/// The number behind a reference to plain data, if it is one of Rust's numbers.
fn number_of<T: bytemuck::Pod>(value: &T) -> Option<Number> {
    let value: &dyn std::any::Any = value;
    macro_rules! downcast {
        ($($rust:ty),*) => {
            None$(.or_else(|| value.downcast_ref::<$rust>().map(|&value| {
                let Value(contents) = Value::from(value);
                contents
            })))*
        };
    }
    let found: Option<Contents> = downcast!(f32, f64, half::f16, i8, u8, i16, u16, i32, u32, i64, u64, isize, usize);
    match found {
        Some(Contents::One(number)) => Some(number),
        _ => None,
    }
}

/// Larger bindings are not set member by member, nor copied for each dispatch.
const MAX_BLOCK: usize = 1 << 20;

/// The contents of one uniform binding, being filled.
pub(crate) struct UniformBlock {
    bytes: Vec<u8>,
    filled: Vec<bool>,
}

impl UniformBlock {
    pub(crate) fn new(layout: &Layout) -> Result<Self, String> {
        let bytes = layout.min_bytes();
        let size = usize::try_from(bytes).ok().filter(|size| *size <= MAX_BLOCK).ok_or_else(|| {
            format!("it has {bytes} bytes; values set by name hold at most {MAX_BLOCK}: bind a tensor to it")
        })?;
        Ok(Self { bytes: vec![0; size], filled: vec![false; size] })
    }

    /// A binding that is filled already.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), filled: vec![true; bytes.len()] }
    }

    /// Sets the member at `path` (empty: the whole binding).
    pub(crate) fn set(&mut self, layout: &Layout, path: &str, value: &Value) -> Result<(), String> {
        let (layout, base) = member(layout, path)?;
        let numbers = match &value.0 {
            Contents::One(number) => std::slice::from_ref(number),
            Contents::Many { numbers, lengths } => {
                check_nesting(layout, lengths)?;
                numbers
            }
            Contents::Bytes(bytes) => return self.set_structure(layout, base, bytes),
        };
        let mut leaves = Vec::new();
        collect_leaves(layout, base, &mut leaves);
        if leaves.len() != numbers.len() {
            return Err(format!("{layout} takes {} values, {} were given", leaves.len(), numbers.len()));
        }
        for ((offset, scalar), number) in leaves.into_iter().zip(numbers) {
            let (encoded, size) = encode(*number, scalar).map_err(|reason| match path {
                "" => reason,
                path => format!("{path}: {reason}"),
            })?;
            let range = offset..offset + size;
            let (Some(target), Some(filled)) = (self.bytes.get_mut(range.clone()), self.filled.get_mut(range)) else {
                return Err("the member lies outside of the binding".to_owned());
            };
            target.copy_from_slice(&encoded[..size]);
            filled.fill(true);
        }
        Ok(())
    }

    /// Sets a structure from one of Rust: what lies where is the caller's promise, the size is checked.
    fn set_structure(&mut self, layout: &Layout, base: usize, bytes: &[u8]) -> Result<(), String> {
        let Layout::Struct { size, .. } = layout else {
            return Err(format!(
                "it is {layout}, not a structure: give numbers or arrays of them by value, not a reference (bytes of any layout: .set_bytes)"
            ));
        };
        if bytes.len() as u64 != u64::from(*size) {
            return Err(format!(
                "{layout} has {size} bytes, the structure given has {} (WGSL pads a vec3 to 16 bytes: give both the same members and padding)",
                bytes.len()
            ));
        }
        let range = base..base + bytes.len();
        let (Some(target), Some(filled)) = (self.bytes.get_mut(range.clone()), self.filled.get_mut(range)) else {
            return Err("the member lies outside of the binding".to_owned());
        };
        target.copy_from_slice(bytes);
        filled.fill(true);
        Ok(())
    }

    /// Sets the whole binding from bytes laid out as WGSL lays it out.
    pub(crate) fn set_bytes(&mut self, layout: &Layout, bytes: &[u8]) -> Result<(), String> {
        let expected = layout.min_bytes();
        if bytes.len() as u64 != expected {
            return Err(format!("{layout} takes {expected} bytes, {} were given", bytes.len()));
        }
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        self.filled.fill(true);
        Ok(())
    }

    /// The bytes, if every member has been set; else the first that was not.
    pub(crate) fn into_bytes(self, name: &str, layout: &Layout) -> Result<Vec<u8>, String> {
        match first_unset(layout, name, 0, &self.filled) {
            None => Ok(self.bytes),
            Some(path) => Err(path),
        }
    }
}

fn member<'a>(layout: &'a Layout, path: &str) -> Result<(&'a Layout, usize), String> {
    let mut layout = layout;
    let mut base = 0;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let Layout::Struct { members, .. } = layout else {
            return Err(format!("{layout} has no member \"{name}\""));
        };
        let found = members.iter().find(|member| member.name == name).ok_or_else(|| {
            let known: Vec<&str> = members.iter().map(|member| member.name.as_str()).listed();
            format!("{layout} has no member \"{name}\" (it has: {})", known.join(", "))
        })?;
        base += found.offset as usize;
        layout = &found.layout;
    }
    Ok((layout, base))
}

/// Arrays of arrays must be nested as the layout is: the columns of a matrix, the elements of an array. Flat ones may hold any layout's numbers
/// in memory order.
fn check_nesting(layout: &Layout, lengths: &[usize]) -> Result<(), String> {
    if lengths.len() < 2 {
        return Ok(());
    }
    let mut expected = Vec::new();
    let mut inner = Some(layout);
    while let Some(layout) = inner {
        inner = None;
        match layout {
            Layout::Vector(size, _) => expected.push(usize::from(*size)),
            Layout::Matrix { columns, rows, .. } => expected.extend([usize::from(*columns), usize::from(*rows)]),
            Layout::Array { element, count, .. } => {
                expected.push(count.unwrap_or(0) as usize);
                inner = Some(&**element);
            }
            Layout::Scalar(_) | Layout::Atomic(_) => {}
            Layout::Struct { name, .. } => {
                return Err(format!("{name} is a structure: set its members by name, or give a structure of Rust"));
            }
        }
    }
    if expected == lengths {
        return Ok(());
    }
    let shape = |lengths: &[usize]| lengths.iter().map(ToString::to_string).listed().join(" x ");
    Err(format!("{layout} takes {} values, {} were given", shape(&expected), shape(lengths)))
}

fn collect_leaves(layout: &Layout, base: usize, leaves: &mut Vec<(usize, Scalar)>) {
    match layout {
        Layout::Scalar(scalar) | Layout::Atomic(scalar) => leaves.push((base, *scalar)),
        Layout::Vector(size, scalar) => {
            leaves.extend((0..usize::from(*size)).map(|i| (base + i * scalar.bytes() as usize, *scalar)));
        }
        Layout::Matrix { columns, rows, scalar, stride } => {
            for column in 0..usize::from(*columns) {
                let start = base + column * *stride as usize;
                leaves.extend((0..usize::from(*rows)).map(|row| (start + row * scalar.bytes() as usize, *scalar)));
            }
        }
        Layout::Array { element, count, stride } => {
            for i in 0..count.unwrap_or(0) as usize {
                collect_leaves(element, base + i * *stride as usize, leaves);
            }
        }
        Layout::Struct { members, .. } => {
            for member in members {
                collect_leaves(&member.layout, base + member.offset as usize, leaves);
            }
        }
    }
}

fn first_unset(layout: &Layout, path: &str, base: usize, filled: &[bool]) -> Option<String> {
    if let Layout::Struct { members, .. } = layout {
        return members.iter().find_map(|member| {
            first_unset(&member.layout, &format!("{path}.{}", member.name), base + member.offset as usize, filled)
        });
    }
    let mut leaves = Vec::new();
    collect_leaves(layout, base, &mut leaves);
    let unset = leaves.iter().any(|(offset, _)| !filled.get(*offset).copied().unwrap_or(false));
    unset.then(|| path.to_owned())
}

fn encode(number: Number, scalar: Scalar) -> Result<([u8; 8], usize), String> {
    let mut bytes = [0_u8; 8];
    let integer = match number {
        Number::Integer(value) => Some(value),
        Number::Float(value) if value.fract() == 0.0 && value.abs() < 1e30 => Some(value as i128),
        Number::Float(_) => None,
    };
    let float = match number {
        Number::Integer(value) => value as f64,
        Number::Float(value) => value,
    };
    let finite = float.is_finite();
    let fault = || match number {
        Number::Integer(value) => format!("{value} is not a value of {scalar}"),
        Number::Float(value) if value.abs() >= 1e16 => format!("{value:e} is not a value of {scalar}"),
        Number::Float(value) => format!("{value} is not a value of {scalar}"),
    };
    macro_rules! put {
        ($value:expr) => {{
            let encoded = $value.to_le_bytes();
            bytes[..encoded.len()].copy_from_slice(&encoded);
            encoded.len()
        }};
    }
    macro_rules! put_integer {
        ($rust:ty) => {{
            let value = integer.ok_or_else(fault)?;
            put!(<$rust>::try_from(value).map_err(|_| fault())?)
        }};
    }
    let size = match scalar {
        // A number must not become an infinity on its way.
        Scalar::F32 if finite && (float as f32).is_infinite() => return Err(fault()),
        Scalar::F16 if finite && half::f16::from_f64(float).is_infinite() => return Err(fault()),
        Scalar::F32 => put!((float as f32)),
        Scalar::F64 => put!(float),
        Scalar::F16 => put!(half::f16::from_f64(float)),
        Scalar::I32 => put_integer!(i32),
        Scalar::U32 => put_integer!(u32),
        Scalar::I64 => put_integer!(i64),
        Scalar::U64 => put_integer!(u64),
        Scalar::I16 => put_integer!(i16),
        Scalar::U16 => put_integer!(u16),
        Scalar::Bool => {
            let value = integer.filter(|value| (0..=1).contains(value)).ok_or_else(fault)?;
            put!((value as u32))
        }
    };
    Ok((bytes, size))
}
