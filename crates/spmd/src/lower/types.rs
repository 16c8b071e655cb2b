//! Types flattened to scalars, and their layout in memory. A value is a list of scalars, and this says which, in which order, and where each lies in
//! memory. Layouts come in two units: bytes as the host sees them, and scalars for memory that only the kernel sees. Very large values are not flattened
//! and stay in memory.

use crate::fragment::Fragment;
use crate::reflection::Scalar;
use std::rc::Rc;

use naga::{ArraySize, Handle, Module, Type, TypeInner, VectorSize};
use rustc_hash::FxHashMap;

/// A type in the arena, or one that naga resolves on the fly.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ty {
    Handle(Handle<Type>),
    Scalar(naga::Scalar),
    Vector(VectorSize, naga::Scalar),
    Matrix(VectorSize, VectorSize, naga::Scalar),
    Atomic(naga::Scalar),
}

/// The positions of a value's scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Units {
    /// Bytes, as the host sees them.
    Bytes,
    /// One after the other, in units of a scalar.
    Scalars,
}

/// The module's types, with what was found out about them.
pub(crate) struct Types<'m> {
    module: &'m Module,
    flat: FxHashMap<Handle<Type>, Option<Rc<[Scalar]>>>,
}

/// More scalars than this in one value are not flattened into registers.
pub(crate) const MAX_SCALARS: usize = 1 << 16;

impl<'m> Types<'m> {
    pub fn new(module: &'m Module) -> Self {
        Types { module, flat: FxHashMap::default() }
    }

    /// The type behind a resolution.
    pub fn resolve(&self, inner: &naga::proc::TypeResolution) -> Option<Ty> {
        match inner {
            naga::proc::TypeResolution::Handle(handle) => Some(Ty::Handle(*handle)),
            naga::proc::TypeResolution::Value(inner) => self.of_inner(inner),
        }
    }

    fn of_inner(&self, inner: &TypeInner) -> Option<Ty> {
        match *inner {
            TypeInner::Scalar(scalar) => Some(Ty::Scalar(scalar)),
            TypeInner::Vector { size, scalar } => Some(Ty::Vector(size, scalar)),
            TypeInner::Matrix { columns, rows, scalar } => Some(Ty::Matrix(columns, rows, scalar)),
            TypeInner::Atomic(scalar) => Some(Ty::Atomic(scalar)),
            // What a lane holds of it.
            TypeInner::CooperativeMatrix { scalar, .. } => match Fragment::of(inner)?.elements() {
                2 => Some(Ty::Vector(VectorSize::Bi, scalar)),
                _ => Some(Ty::Matrix(VectorSize::Bi, VectorSize::Quad, scalar)),
            },
            _ => None,
        }
    }

    /// Handles of plain types become the plain types.
    pub fn plain(&self, ty: Ty) -> Ty {
        match ty {
            Ty::Handle(handle) => self.of_inner(&self.module.types[handle].inner).unwrap_or(ty),
            _ => ty,
        }
    }

    /// The scalar of scalars, vectors, matrices and atomics.
    pub fn kind(&self, ty: Ty) -> Option<Scalar> {
        match self.plain(ty) {
            Ty::Scalar(scalar) | Ty::Vector(_, scalar) | Ty::Matrix(_, _, scalar) | Ty::Atomic(scalar) => {
                Scalar::of(scalar)
            }
            Ty::Handle(_) => None,
        }
    }

    /// All scalars of a value in order; `None` for types without values, or too large a one.
    pub fn flat(&mut self, ty: Ty) -> Option<Rc<[Scalar]>> {
        let repeat = |scalar, count: usize| Some(vec![Scalar::of(scalar)?; count].into());
        match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => repeat(scalar, 1),
            Ty::Vector(size, scalar) => repeat(scalar, size as usize),
            Ty::Matrix(columns, rows, scalar) => repeat(scalar, columns as usize * rows as usize),
            Ty::Handle(handle) => {
                if let Some(known) = self.flat.get(&handle) {
                    return known.clone();
                }
                let flat = self.flatten(handle);
                self.flat.insert(handle, flat.clone());
                flat
            }
        }
    }

    fn flatten(&mut self, handle: Handle<Type>) -> Option<Rc<[Scalar]>> {
        let module = self.module;
        match &module.types[handle].inner {
            TypeInner::Array { base, size, .. } => {
                let count = array_count(module, *size)? as usize;
                let element = self.flat(Ty::Handle(*base))?;
                let total = element.len().checked_mul(count)?;
                (total <= MAX_SCALARS).then(|| element.repeat(count).into())
            }
            TypeInner::Struct { members, .. } => {
                let mut all = Vec::new();
                for member in members {
                    all.extend_from_slice(&self.flat(Ty::Handle(member.ty))?);
                }
                (all.len() <= MAX_SCALARS).then(|| all.into())
            }
            inner => {
                let plain = self.of_inner(inner)?;
                self.flat(plain)
            }
        }
    }

    /// Number of scalars, which may be more than fit into registers.
    pub fn scalars(&self, ty: Ty) -> Option<u64> {
        match self.plain(ty) {
            Ty::Scalar(_) | Ty::Atomic(_) => Some(1),
            Ty::Vector(size, _) => Some(size as u64),
            Ty::Matrix(columns, rows, _) => Some(columns as u64 * rows as u64),
            Ty::Handle(handle) => match &self.module.types[handle].inner {
                TypeInner::Array { base, size, .. } => {
                    self.scalars(Ty::Handle(*base))?.checked_mul(u64::from(array_count(self.module, *size)?))
                }
                TypeInner::Struct { members, .. } => {
                    members.iter().try_fold(0_u64, |sum, member| sum.checked_add(self.scalars(Ty::Handle(member.ty))?))
                }
                _ => None,
            },
        }
    }

    /// Returns whether a scalar of the type takes two words.
    pub fn has_wide(&self, ty: Ty) -> bool {
        match self.plain(ty) {
            Ty::Handle(handle) => match &self.module.types[handle].inner {
                TypeInner::Array { base, .. } => self.has_wide(Ty::Handle(*base)),
                TypeInner::Struct { members, .. } => members.iter().any(|member| self.has_wide(Ty::Handle(member.ty))),
                _ => false,
            },
            plain => self.kind(plain).is_some_and(Scalar::is_wide),
        }
    }

    /// Type of an element, and how far apart elements lie. `None` for structs and scalars.
    pub fn element(&self, ty: Ty, layout: Units) -> Option<(Ty, u32)> {
        let (element, bytes) = match self.plain(ty) {
            Ty::Vector(_, scalar) => (Ty::Scalar(scalar), u32::from(scalar.width)),
            Ty::Matrix(_, rows, scalar) => {
                let padded = if rows == VectorSize::Bi { 2 } else { 4 };
                (Ty::Vector(rows, scalar), padded * u32::from(scalar.width))
            }
            Ty::Handle(handle) => match self.module.types[handle].inner {
                TypeInner::Array { base, stride, .. } => (Ty::Handle(base), stride),
                _ => return None,
            },
            Ty::Scalar(_) | Ty::Atomic(_) => return None,
        };
        match layout {
            Units::Bytes => Some((element, bytes)),
            Units::Scalars => Some((element, u32::try_from(self.scalars(element)?).ok()?)),
        }
    }

    /// Number of elements; `None` for runtime arrays, structs and scalars.
    pub fn count(&self, ty: Ty) -> Option<u32> {
        match self.plain(ty) {
            Ty::Vector(size, _) => Some(size as u32),
            Ty::Matrix(columns, _, _) => Some(columns as u32),
            Ty::Handle(handle) => match self.module.types[handle].inner {
                TypeInner::Array { size, .. } => array_count(self.module, size),
                _ => None,
            },
            Ty::Scalar(_) | Ty::Atomic(_) => None,
        }
    }

    pub fn is_struct(&self, ty: Ty) -> bool {
        matches!(ty, Ty::Handle(handle) if matches!(self.module.types[handle].inner, TypeInner::Struct { .. }))
    }

    /// Type and place of a member, or of an element with a known index.
    pub fn part(&self, ty: Ty, index: u32, layout: Units) -> Option<(Ty, u32)> {
        if let Ty::Handle(handle) = ty
            && let TypeInner::Struct { members, .. } = &self.module.types[handle].inner
        {
            let member = members.get(index as usize)?;
            let offset = match layout {
                Units::Bytes => member.offset,
                Units::Scalars => {
                    let before = &members[..index as usize];
                    let scalars = before
                        .iter()
                        .try_fold(0_u64, |sum, member| sum.checked_add(self.scalars(Ty::Handle(member.ty))?))?;
                    u32::try_from(scalars).ok()?
                }
            };
            return Some((Ty::Handle(member.ty), offset));
        }
        let (element, stride) = self.element(ty, layout)?;
        Some((element, index.checked_mul(stride)?))
    }

    /// Offset and kind of every scalar of a value.
    pub fn leaves(&self, ty: Ty, layout: Units) -> Option<Vec<(u32, Scalar)>> {
        let mut leaves = Vec::new();
        self.collect_leaves(ty, layout, 0, &mut leaves)?;
        Some(leaves)
    }

    fn collect_leaves(&self, ty: Ty, layout: Units, offset: u32, leaves: &mut Vec<(u32, Scalar)>) -> Option<()> {
        if leaves.len() > MAX_SCALARS {
            return None;
        }
        match self.plain(ty) {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => {
                leaves.push((offset, Scalar::of(scalar)?));
                return Some(());
            }
            _ => {}
        }
        let parts = match ty {
            Ty::Handle(handle) => match &self.module.types[handle].inner {
                TypeInner::Struct { members, .. } => members.len() as u32,
                _ => self.count(ty)?,
            },
            _ => self.count(ty)?,
        };
        for index in 0..parts {
            let (part, place) = self.part(ty, index, layout)?;
            self.collect_leaves(part, layout, offset.checked_add(place)?, leaves)?;
        }
        Some(())
    }

    /// Least size in bytes, runtime arrays counting one element.
    pub fn min_bytes(&self, handle: Handle<Type>) -> u64 {
        let module = self.module;
        match &module.types[handle].inner {
            TypeInner::Array { size: ArraySize::Dynamic, stride, .. } => u64::from(*stride),
            TypeInner::Struct { members, span } => match members.last() {
                Some(last) if module.types[last.ty].inner.is_dynamically_sized(&module.types) => {
                    u64::from(last.offset) + self.min_bytes(last.ty)
                }
                _ => u64::from(*span),
            },
            inner => u64::from(inner.try_size(module.to_ctx()).unwrap_or(0)),
        }
    }
}

/// Elements of an array, by a constant or a resolved override; `None` for a runtime array.
fn array_count(module: &Module, size: ArraySize) -> Option<u32> {
    match size.resolve(module.to_ctx()) {
        Ok(naga::proc::IndexableLength::Known(count)) => Some(count),
        Ok(naga::proc::IndexableLength::Dynamic) | Err(_) => None,
    }
}
