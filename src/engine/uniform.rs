//! Values for uniform bindings, set by name and encoded by the binding's layout.

use crate::error::Result;
use crate::kernel::{Layout, Scalar};

/// One number, or several for a vector, matrix or array (in memory order; matrices by columns). Made with `into()` from Rust's
/// numbers, `bool`, arrays and slices.
#[derive(Debug, Clone, PartialEq)]
pub struct Value(Numbers);

#[derive(Debug, Clone, PartialEq)]
enum Numbers {
    One(Number),
    Many(Vec<Number>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Value {
    fn numbers(&self) -> &[Number] {
        match &self.0 {
            Numbers::One(number) => std::slice::from_ref(number),
            Numbers::Many(numbers) => numbers,
        }
    }
}

macro_rules! from_numbers {
    ($($rust:ty => |$value:ident| $number:expr;)*) => {$(
        impl From<$rust> for Value {
            fn from($value: $rust) -> Self {
                Self(Numbers::One($number))
            }
        }
        impl<const N: usize> From<[$rust; N]> for Value {
            fn from(values: [$rust; N]) -> Self {
                Self::from(values.as_slice())
            }
        }
        impl From<&[$rust]> for Value {
            fn from(values: &[$rust]) -> Self {
                Self(Numbers::Many(values.iter().map(|&$value| $number).collect()))
            }
        }
    )*};
}
from_numbers! {
    f32 => |value| Number::Float(f64::from(value));
    f64 => |value| Number::Float(value);
    half::f16 => |value| Number::Float(value.to_f64());
    i32 => |value| Number::Integer(i128::from(value));
    u32 => |value| Number::Integer(i128::from(value));
    i64 => |value| Number::Integer(i128::from(value));
    u64 => |value| Number::Integer(i128::from(value));
    bool => |value| Number::Integer(i128::from(value));
}

/// The contents of one uniform binding, being filled.
pub(crate) struct UniformBlock {
    bytes: Vec<u8>,
    filled: Vec<bool>,
}

impl UniformBlock {
    pub(crate) fn new(layout: &Layout) -> Self {
        let size = usize::try_from(layout.min_bytes()).unwrap_or(0);
        Self { bytes: vec![0; size], filled: vec![false; size] }
    }

    /// Sets the member at `path` (empty: the whole binding).
    pub(crate) fn set(&mut self, layout: &Layout, path: &str, value: &Value) -> Result<(), String> {
        let (layout, base) = member(layout, path)?;
        let mut leaves = Vec::new();
        collect_leaves(layout, base, &mut leaves);
        let numbers = value.numbers();
        if leaves.len() != numbers.len() {
            return Err(format!("{layout} takes {} values, {} were given", leaves.len(), numbers.len()));
        }
        for ((offset, scalar), number) in leaves.into_iter().zip(numbers) {
            let (encoded, size) = encode(*number, scalar)?;
            let range = offset..offset + size;
            let (Some(target), Some(filled)) = (self.bytes.get_mut(range.clone()), self.filled.get_mut(range)) else {
                return Err("the member lies outside of the binding".to_owned());
            };
            target.copy_from_slice(&encoded[..size]);
            filled.fill(true);
        }
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
    pub(crate) fn finish(self, name: &str, layout: &Layout) -> Result<Vec<u8>, String> {
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
            let known: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            format!("{layout} has no member \"{name}\" (it has: {})", known.join(", "))
        })?;
        base += found.offset as usize;
        layout = &found.layout;
    }
    Ok((layout, base))
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
    let fault = || match number {
        Number::Integer(value) => format!("{value} is not a value of {scalar}"),
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
