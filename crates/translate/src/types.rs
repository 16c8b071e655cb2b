//! Types: their C names, and definitions with explicit padding, so that a type lies in memory as WGSL says.
//!
//! One C type serves all address spaces. A vector of three is 12 bytes; where WGSL puts elements further apart than they are
//! long, an element is a structure of the value `v` and padding.

use std::fmt::Write as _;

use naga::proc::{IndexableLength, NameKey};
use naga::{ArraySize, Handle, Module, Type, TypeInner};

use super::polyfill::fragment_type;
use super::{Result, Writer};
use crate::fragment::Fragment;
use crate::reflection::Scalar;

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ty {
    Scalar(Scalar),
    Vector(u32, Scalar),
    /// Columns, rows.
    Matrix(u32, u32, Scalar),
    Array(Handle<Type>),
    Struct(Handle<Type>),
}

impl Ty {
    /// The scalar that it is made of, except for arrays and structures.
    pub(super) fn kind(self) -> Option<Scalar> {
        match self {
            Self::Scalar(kind) | Self::Vector(_, kind) | Self::Matrix(_, _, kind) => Some(kind),
            Self::Array(_) | Self::Struct(_) => None,
        }
    }
}

/// Size of a scalar in C, where a bool takes one byte.
fn bytes_in_c(scalar: Scalar) -> u32 {
    if scalar == Scalar::Bool { 1 } else { scalar.bytes() }
}

/// The names of a vector's components.
pub(super) const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

/// Number of elements; `None` for a runtime-sized array.
pub(super) fn array_count(module: &Module, size: ArraySize) -> Option<u32> {
    match size.resolve(module.to_ctx()) {
        Ok(IndexableLength::Known(count)) => Some(count),
        Ok(IndexableLength::Dynamic) | Err(_) => None,
    }
}

/// Returns whether a type is a runtime-sized array, or a structure that ends in one.
pub(super) fn is_runtime_sized(module: &Module, ty: Handle<Type>) -> bool {
    match &module.types[ty].inner {
        TypeInner::Array { size, .. } => array_count(module, *size).is_none(),
        TypeInner::Struct { members, .. } => members.last().is_some_and(|last| is_runtime_sized(module, last.ty)),
        _ => false,
    }
}

impl Writer<'_> {
    /// The type of a handle; atomics are their scalars.
    pub(super) fn ty(&self, handle: Handle<Type>) -> Result<Ty> {
        match self.module.types[handle].inner {
            TypeInner::Array { .. } => Ok(Ty::Array(handle)),
            TypeInner::Struct { .. } => Ok(Ty::Struct(handle)),
            ref inner => self.plain(inner),
        }
    }

    /// Scalars, vectors, matrices and atomics.
    pub(super) fn plain(&self, inner: &TypeInner) -> Result<Ty> {
        let kind = |scalar| self.known(Scalar::of(scalar), "numbers of this type");
        Ok(match *inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => Ty::Scalar(kind(scalar)?),
            TypeInner::Vector { size, scalar } => Ty::Vector(size as u32, kind(scalar)?),
            TypeInner::Matrix { columns, rows, scalar } => Ty::Matrix(columns as u32, rows as u32, kind(scalar)?),
            TypeInner::CooperativeMatrix { .. } => {
                let held = Fragment::of(inner).and_then(fragment_type);
                self.known(held, "cooperative matrices of this type")?
            }
            TypeInner::Image { .. } | TypeInner::Sampler { .. } => return self.unsupported("textures and samplers"),
            TypeInner::AccelerationStructure { .. } | TypeInner::RayQuery { .. } => {
                return self.unsupported("ray tracing");
            }
            TypeInner::BindingArray { .. } => return self.unsupported("binding arrays"),
            TypeInner::Pointer { .. }
            | TypeInner::ValuePointer { .. }
            | TypeInner::Array { .. }
            | TypeInner::Struct { .. } => return self.unsupported("values of this type"),
        })
    }

    /// The C name of a type, which is defined from now on.
    pub(super) fn type_name(&mut self, ty: Ty) -> Result<String> {
        match ty {
            Ty::Scalar(kind) => {
                self.require_kind(kind)?;
                Ok(kind.name().to_owned())
            }
            Ty::Vector(size, kind) => {
                self.require_kind(kind)?;
                Ok(self.vector_name(size, kind))
            }
            Ty::Matrix(columns, rows, kind) => {
                self.require_kind(kind)?;
                let name = format!("mat{columns}x{rows}_{}", kind.name());
                if self.defined.insert(name.clone()) {
                    let column = self.column_name(rows, kind)?;
                    let _ = writeln!(self.types, "typedef struct {{ {column} c[{columns}]; }} {name};");
                }
                Ok(name)
            }
            Ty::Array(handle) => self.array_name(handle),
            Ty::Struct(handle) => self.struct_name(handle),
        }
    }

    pub(super) fn handle_name(&mut self, handle: Handle<Type>) -> Result<String> {
        let ty = self.ty(handle)?;
        self.type_name(ty)
    }

    fn vector_name(&mut self, size: u32, kind: Scalar) -> String {
        let name = format!("vec{size}_{}", kind.name());
        if self.defined.insert(name.clone()) {
            let (_, align) = self.vector_layout(size, kind);
            let align = if size == 3 { String::new() } else { self.language.align(align) };
            let components = COMPONENTS[..size as usize].join(", ");
            let _ = writeln!(self.types, "typedef struct {align}{{ {} {components}; }} {name};", kind.name());
        }
        name
    }

    /// The type of a matrix's column as it lies in memory.
    fn column_name(&mut self, rows: u32, kind: Scalar) -> Result<String> {
        let vector = Ty::Vector(rows, kind);
        if rows == 3 { self.padded_name(vector, 4 * kind.bytes()) } else { self.type_name(vector) }
    }

    /// The type of an element that takes `stride` bytes.
    pub(super) fn padded_name(&mut self, ty: Ty, stride: u32) -> Result<String> {
        let inner = self.type_name(ty)?;
        let (size, align) = self.layout(ty)?;
        if size == stride {
            return Ok(inner);
        }
        let name = format!("{inner}_stride{stride}");
        if self.defined.insert(name.clone()) {
            let padding = padding(0, size, stride - size, align);
            let _ = writeln!(self.types, "typedef struct {{ {inner} v; {padding} }} {name};");
        }
        Ok(name)
    }

    /// Returns the suffix of an element's name that reaches its value: elements with padding hold it as `v`.
    pub(super) fn element_suffix(&self, element: Ty, stride: u32) -> Result<&'static str> {
        Ok(if self.layout(element)?.0 == stride { "" } else { ".v" })
    }

    fn array_name(&mut self, handle: Handle<Type>) -> Result<String> {
        let TypeInner::Array { base, size, stride } = self.module.types[handle].inner else {
            return self.unsupported("arrays of this type");
        };
        let count = self.known(array_count(self.module, size), "runtime-sized arrays as values")?;
        let element = self.ty(base)?;
        let name = format!("{}_array{count}", self.type_name(element)?);
        if self.defined.insert(name.clone()) {
            let element = self.padded_name(element, stride)?;
            let _ = writeln!(self.types, "typedef struct {{ {element} e[{count}]; }} {name};");
        }
        Ok(name)
    }

    fn struct_name(&mut self, handle: Handle<Type>) -> Result<String> {
        let name = self.named(NameKey::Type(handle));
        if self.defined.contains(&name) {
            return Ok(name);
        }
        let module = self.module;
        let TypeInner::Struct { members, span } = &module.types[handle].inner else {
            return self.unsupported("structures of this type");
        };
        let mut text = String::from("typedef struct {\n");
        let mut place = 0;
        for (index, member) in members.iter().enumerate() {
            let (size, align) = if is_runtime_sized(module, member.ty) {
                (0, self.runtime_element(member.ty)?.2)
            } else {
                self.layout(self.ty(member.ty)?)?
            };
            let natural = u32::next_multiple_of(place, align);
            if member.offset > natural {
                let _ = writeln!(text, "    {}", padding(index, place, member.offset - place, 1));
            }
            let member_name = self.named(NameKey::StructMember(handle, index as u32));
            if is_runtime_sized(module, member.ty) {
                let (element, stride, _) = self.runtime_element(member.ty)?;
                let element = self.padded_name(element, stride)?;
                let _ = writeln!(text, "    {element} {member_name}[1]; // as many as are bound");
                place = u32::MAX;
                continue;
            }
            let member_type = self.handle_name(member.ty)?;
            let _ = writeln!(text, "    {member_type} {member_name};");
            place = member.offset.max(natural) + size;
        }
        let align = self.struct_align(handle)?;
        if place != u32::MAX && u32::next_multiple_of(place, align) < *span {
            let _ = writeln!(text, "    {}", padding(members.len(), place, span - place, 1));
        }
        let _ = writeln!(text, "}} {name};");
        self.types.push_str(&text);
        self.defined.insert(name.clone());
        Ok(name)
    }

    /// Paddings of a structure, by the member that they precede (the number of members for the last one): whether there is one.
    pub(super) fn struct_paddings(&self, handle: Handle<Type>) -> Result<Vec<bool>> {
        let TypeInner::Struct { members, span } = &self.module.types[handle].inner else {
            return self.unsupported("structures of this type");
        };
        let mut place = 0;
        let mut found = Vec::new();
        for member in members {
            let (size, align) = self.layout(self.ty(member.ty)?)?;
            let natural = u32::next_multiple_of(place, align);
            found.push(member.offset > natural);
            place = member.offset.max(natural) + size;
        }
        found.push(u32::next_multiple_of(place, self.struct_align(handle)?) < *span);
        Ok(found)
    }

    /// Element, stride and alignment of a runtime-sized array.
    pub(super) fn runtime_element(&self, handle: Handle<Type>) -> Result<(Ty, u32, u32)> {
        match self.module.types[handle].inner {
            TypeInner::Array { base, stride, .. } => {
                let element = self.ty(base)?;
                Ok((element, stride, self.layout(element)?.1))
            }
            _ => self.unsupported("runtime-sized values of this type"),
        }
    }

    fn vector_layout(&self, size: u32, kind: Scalar) -> (u32, u32) {
        let bytes = bytes_in_c(kind);
        let align = match size {
            3 => bytes,
            // Nothing gains by more than 16.
            _ => (size * bytes).min(16),
        };
        (size * bytes, align)
    }

    /// Size and alignment of the C type.
    pub(super) fn layout(&self, ty: Ty) -> Result<(u32, u32)> {
        Ok(match ty {
            Ty::Scalar(kind) => (bytes_in_c(kind), bytes_in_c(kind)),
            Ty::Vector(size, kind) => self.vector_layout(size, kind),
            Ty::Matrix(columns, rows, kind) => {
                let stride = if rows == 2 { 2 } else { 4 } * kind.bytes();
                (columns * stride, self.vector_layout(rows, kind).1)
            }
            Ty::Array(handle) => {
                let TypeInner::Array { base, size, stride } = self.module.types[handle].inner else {
                    return self.unsupported("arrays of this type");
                };
                let count = self.known(array_count(self.module, size), "runtime-sized arrays as values")?;
                let bytes = self.known(count.checked_mul(stride), "arrays of this size")?;
                (bytes, self.layout(self.ty(base)?)?.1)
            }
            Ty::Struct(handle) => {
                let TypeInner::Struct { span, .. } = self.module.types[handle].inner else {
                    return self.unsupported("structures of this type");
                };
                (span, self.struct_align(handle)?)
            }
        })
    }

    fn struct_align(&self, handle: Handle<Type>) -> Result<u32> {
        let TypeInner::Struct { members, .. } = &self.module.types[handle].inner else {
            return self.unsupported("structures of this type");
        };
        let mut most = 1;
        for member in members {
            let align = if is_runtime_sized(self.module, member.ty) {
                self.runtime_element(member.ty)?.2
            } else {
                self.layout(self.ty(member.ty)?)?.1
            };
            most = most.max(align);
        }
        Ok(most)
    }

    /// Notes what a scalar needs of the language.
    fn require_kind(&mut self, kind: Scalar) -> Result<()> {
        match self.language.lacks(kind, &self.options) {
            Some(lacking) => self.unsupported(lacking),
            None => {
                self.kinds.insert(kind);
                self.requires.extend(self.language.kind_extension(kind));
                Ok(())
            }
        }
    }
}

/// A member that fills `bytes` at `place`.
fn padding(number: usize, place: u32, bytes: u32, align: u32) -> String {
    if place.is_multiple_of(4) && bytes.is_multiple_of(4) && align <= 4 {
        format!("u32 pad{number}[{}];", bytes / 4)
    } else {
        format!("u8 pad{number}[{bytes}];")
    }
}
