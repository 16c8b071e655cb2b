//! Pointers as the C lvalues that they point to: places, what they hold, and how long runtime-sized arrays are. `expr` and `stmt` turn pointers into
//! lvalues by it. A pointer handed to a function is a real C pointer; all others are paths. Lengths of runtime-sized arrays come from the structure of
//! sizes, which functions get as a parameter.

use naga::{Expression, Handle, TypeInner};

use naga::proc::NameKey;

use super::expr::constant_index;
use super::function::Body;
use super::types::{COMPONENTS, Ty, array_count, is_runtime_sized};
use super::{OutOfRange, Result, Writer};
use crate::reflection::Scalar;

impl<'m> Writer<'m> {
    /// Returns whether an expression is a pointer.
    pub(super) fn is_pointer(&self, f: &Body<'m>, handle: Handle<Expression>) -> bool {
        matches!(
            f.info[handle].ty.inner_with(&self.module.types),
            TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. }
        )
    }

    /// The address space of a pointer.
    pub(super) fn space_of(&self, f: &Body<'m>, handle: Handle<Expression>) -> Result<naga::AddressSpace> {
        match f.info[handle].ty.inner_with(&self.module.types) {
            TypeInner::Pointer { space, .. } | TypeInner::ValuePointer { space, .. } => Ok(*space),
            _ => self.unsupported("a value where a pointer is expected"),
        }
    }

    /// Returns the target of a pointer, as an lvalue.
    pub(super) fn place(&mut self, f: &mut Body<'m>, handle: Handle<Expression>) -> Result<String> {
        let function = f.function;
        Ok(match &function.expressions[handle] {
            Expression::LocalVariable(variable) => f.local(self, *variable),
            Expression::GlobalVariable(variable) => {
                let name = self.global_name(*variable);
                if f.is_pointed(self, *variable) { format!("(*{name})") } else { name }
            }
            Expression::FunctionArgument(index) => format!("(*{})", f.argument(self, *index)),
            Expression::AccessIndex { base, index } => {
                if let Some(element) = self.runtime_element_place(f, *base)? {
                    let (bytes, stride) = self.runtime_bytes(f, *base)?;
                    let (count, last) = (format!("({bytes} / {stride}u)"), format!("({bytes} / {stride}u - 1u)"));
                    let index = self.in_range(f, Scalar::U32, &format!("{index}u"), &count, &last)?;
                    return Ok(element.replace('@', &index));
                }
                let inner = self.pointee(f, *base)?;
                let place = self.place(f, *base)?;
                if let Pointee::Struct(ty) = inner {
                    let member = self.named(NameKey::StructMember(ty, *index));
                    return Ok(arrow(&place, &member));
                }
                let ty = self.pointee_type(inner)?;
                let path = self.part_path(ty, *index)?;
                match path.strip_prefix('.') {
                    Some(field) => arrow(&place, field),
                    None => format!("{place}{path}"),
                }
            }
            Expression::Access { base, index } => {
                if let Some(element) = self.runtime_element_place(f, *base)? {
                    let (bytes, stride) = self.runtime_bytes(f, *base)?;
                    let (count, last) = (format!("({bytes} / {stride}u)"), format!("({bytes} / {stride}u - 1u)"));
                    let kind = self.kind_of(self.ty_of(f, *index)?)?;
                    let index = self.value(f, *index)?;
                    let index = self.in_range(f, kind, &index, &count, &last)?;
                    return Ok(element.replace('@', &index));
                }
                let inner = self.pointee(f, *base)?;
                let ty = self.pointee_type(inner)?;
                let place = self.place(f, *base)?;
                match ty {
                    Ty::Vector(size, kind) => {
                        let index = self.clamped(f, *index, size)?;
                        if let Some(component) = constant_index(&index).and_then(|index| COMPONENTS.get(index)) {
                            return Ok(arrow(&place, component));
                        }
                        let space = self.space_of(f, *base)?;
                        let space = self.language.space(space, self.options.uniforms_by_value);
                        format!("(({space}{} *)&{place})[{index}]", kind.name())
                    }
                    Ty::Matrix(columns, rows, _) => {
                        let index = self.clamped(f, *index, columns)?;
                        arrow(&place, &format!("c[{index}]{}", if rows == 3 { ".v" } else { "" }))
                    }
                    Ty::Array(handle) => {
                        let TypeInner::Array { base, size, stride } = self.module.types[handle].inner else {
                            return self.unsupported("indexing of this type");
                        };
                        let count = self.known(array_count(self.module, size), "indexing of this type")?;
                        let index = self.clamped(f, *index, count)?;
                        let suffix = self.element_suffix(self.ty(base)?, stride)?;
                        arrow(&place, &format!("e[{index}]{suffix}"))
                    }
                    Ty::Scalar(_) | Ty::Struct(_) => return self.unsupported("indexing of this type"),
                }
            }
            _ => return self.unsupported("pointers of this kind"),
        })
    }

    /// Returns an element behind a pointer to a runtime-sized array as an lvalue, with `@` for the index.
    fn runtime_element_place(&mut self, f: &mut Body<'m>, base: Handle<Expression>) -> Result<Option<String>> {
        let Some(ty) = self.runtime_array(f, base) else { return Ok(None) };
        let (element, stride, _) = self.runtime_element(ty)?;
        let suffix = self.element_suffix(element, stride)?;
        let elements = self.elements(f, base)?;
        Ok(Some(format!("{elements}[@]{suffix}")))
    }

    /// The type behind a pointer to a runtime-sized array.
    pub(super) fn runtime_array(&self, f: &Body<'m>, pointer: Handle<Expression>) -> Option<Handle<naga::Type>> {
        match f.info[pointer].ty.inner_with(&self.module.types) {
            TypeInner::Pointer { base, .. } => match self.module.types[*base].inner {
                TypeInner::Array { .. } if is_runtime_sized(self.module, *base) => Some(*base),
                _ => None,
            },
            _ => None,
        }
    }

    /// A C pointer to the first element of a runtime-sized array.
    pub(super) fn elements(&mut self, f: &mut Body<'m>, pointer: Handle<Expression>) -> Result<String> {
        match &f.function.expressions[pointer] {
            Expression::GlobalVariable(variable) => Ok(self.global_name(*variable)),
            Expression::FunctionArgument(index) => Ok(f.argument(self, *index)),
            _ => self.place(f, pointer),
        }
    }

    /// Bytes from a runtime-sized array's beginning, or that of the structure which it ends, to the end of what is bound; and the
    /// array's stride.
    pub(super) fn runtime_bytes(&mut self, f: &mut Body<'m>, pointer: Handle<Expression>) -> Result<(String, u32)> {
        let stride = match self.runtime_array(f, pointer) {
            Some(ty) => self.runtime_element(ty)?.1,
            None => 1,
        };
        let bytes = match &f.function.expressions[pointer] {
            Expression::GlobalVariable(variable) => format!("cantus_bytes.{}", self.global_name(*variable)),
            Expression::FunctionArgument(index) => format!("cantus_bytes_{}", f.argument(self, *index)),
            Expression::AccessIndex { base, index } => {
                let Pointee::Struct(ty) = self.pointee(f, *base)? else {
                    return self.unsupported("runtime-sized arrays in this place");
                };
                let TypeInner::Struct { members, .. } = &self.module.types[ty].inner else {
                    return self.unsupported("runtime-sized arrays in this place");
                };
                let offset = self.known(members.get(*index as usize), "this member")?.offset;
                let (bytes, _) = self.runtime_bytes(f, *base)?;
                if offset == 0 { bytes } else { format!("({bytes} - {offset}u)") }
            }
            _ => return self.unsupported("runtime-sized arrays in this place"),
        };
        Ok((bytes, stride))
    }

    fn pointee(&self, f: &Body<'m>, pointer: Handle<Expression>) -> Result<Pointee> {
        Ok(match *f.info[pointer].ty.inner_with(&self.module.types) {
            TypeInner::Pointer { base, .. } => match self.module.types[base].inner {
                TypeInner::Struct { .. } => Pointee::Struct(base),
                _ => Pointee::Value(self.ty(base)?),
            },
            TypeInner::ValuePointer { size: Some(size), scalar, .. } => {
                Pointee::Value(Ty::Vector(size as u32, self.known(Scalar::of(scalar), "numbers of this type")?))
            }
            TypeInner::ValuePointer { size: None, scalar, .. } => {
                Pointee::Value(Ty::Scalar(self.known(Scalar::of(scalar), "numbers of this type")?))
            }
            _ => return self.unsupported("a value where a pointer is expected"),
        })
    }

    fn pointee_type(&self, pointee: Pointee) -> Result<Ty> {
        Ok(match pointee {
            Pointee::Struct(handle) => Ty::Struct(handle),
            Pointee::Value(ty) => ty,
        })
    }

    /// The type of the value that a pointer points to.
    pub(super) fn pointed_type(&self, f: &Body<'m>, pointer: Handle<Expression>) -> Result<Ty> {
        let pointee = self.pointee(f, pointer)?;
        self.pointee_type(pointee)
    }

    /// Returns whether a pointer points to an atomic.
    pub(super) fn is_atomic(&self, f: &Body<'m>, pointer: Handle<Expression>) -> bool {
        match f.info[pointer].ty.inner_with(&self.module.types) {
            TypeInner::Pointer { base, .. } => matches!(self.module.types[*base].inner, TypeInner::Atomic(_)),
            _ => false,
        }
    }

    pub(super) fn load(&mut self, f: &mut Body<'m>, pointer: Handle<Expression>) -> Result<String> {
        let (place, condition) = self.guarded(f, |writer, f| writer.place(f, pointer))?;
        let ty = self.pointed_type(f, pointer)?;
        let mut value = place;
        if self.is_atomic(f, pointer) {
            let kind = self.kind_of(ty)?;
            let space = self.space_of(f, pointer)?;
            let helper = self.atomic_load(kind, space)?;
            value = format!("{helper}({})", address(&value));
        }
        self.or_zero(condition, ty, value)
    }

    /// Returns the result of `write`, and the condition for its use; nothing where indices are moved into range.
    pub(super) fn guarded(
        &mut self,
        f: &mut Body<'m>,
        write: impl FnOnce(&mut Self, &mut Body<'m>) -> Result<String>,
    ) -> Result<(String, Option<String>)> {
        let guards = (self.options.out_of_range == OutOfRange::Zero).then(Vec::new);
        let outer = std::mem::replace(&mut f.guards, guards);
        let text = write(self, f);
        let guards = std::mem::replace(&mut f.guards, outer).unwrap_or_default();
        Ok((text?, (!guards.is_empty()).then(|| guards.join(" && "))))
    }

    /// A value, or zero where the condition does not hold.
    pub(super) fn or_zero(&mut self, condition: Option<String>, ty: Ty, value: String) -> Result<String> {
        Ok(match condition {
            Some(condition) => format!("({condition} ? {value} : {})", self.zero(ty)?),
            None => value,
        })
    }
}

#[derive(Clone, Copy)]
enum Pointee {
    Struct(Handle<naga::Type>),
    Value(Ty),
}

/// `place.field`, with an arrow where the place is behind a pointer.
pub(super) fn arrow(place: &str, field: &str) -> String {
    match behind(place) {
        Some(name) => format!("{name}->{field}"),
        None => format!("{place}.{field}"),
    }
}

/// `&place`.
pub(super) fn address(place: &str) -> String {
    match behind(place) {
        Some(name) => name.to_owned(),
        None => format!("&{place}"),
    }
}

/// The name in `(*name)`.
fn behind(place: &str) -> Option<&str> {
    let name = place.strip_prefix("(*")?.strip_suffix(')')?;
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(name)
}
