//! Pointers: a root and a path, known when the program is made except for indices; loads and stores through them. A pointer never exists at run time: it is
//! a root (binding, workgroup memory, variable, table) and a path of offsets. `fold` makes one index of all run-time steps, so one check serves nested
//! arrays. Indexing a variable that lives in registers voids the attempt: next time it is in memory.

use std::rc::Rc;

use naga::{Expression, Handle};

use super::super::bytecode::{Atomic, Batching, Count, Element, FULL, Number, Op, Space, Strided};
use super::builder::Operand;
use super::types::{Ty, Units};
use super::variable::{Storage, inner_element, private};
use super::{Fact, Lowering, Place, Result, Value};
use crate::reflection::Scalar;

#[derive(Clone, Debug)]
pub(crate) struct Pointer {
    pub root: Root,
    /// The type pointed to.
    pub ty: Ty,
    /// Offset in the units of the root's layout.
    pub offset: u32,
    pub path: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Root {
    Variable(usize),
    Binding(u32),
    /// Offset in bytes, and the words of each scalar.
    Workgroup {
        base: u32,
        unit: u32,
    },
    /// A constant table of the code; otherwise like workgroup memory.
    Table {
        base: u32,
        unit: u32,
    },
}

impl Root {
    fn layout(self) -> Units {
        match self {
            Root::Binding(_) => Units::Bytes,
            Root::Variable(_) | Root::Workgroup { .. } | Root::Table { .. } => Units::Scalars,
        }
    }
}

/// One index that is known only at run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub index: Operand,
    /// Stride in the units of the root's layout.
    pub stride: u32,
    pub count: Count,
}

/// A path folded into one index.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct Folded {
    index: Operand,
    stride: u32,
    count: Count,
}

impl Lowering<'_, '_> {
    pub(super) fn pointer(&mut self, handle: Handle<Expression>) -> Result<Rc<Pointer>> {
        match self.evaluate(handle)? {
            Value::Pointer(pointer) => Ok(pointer),
            Value::Scalars(_) => self.unsupported("a value where a pointer is expected"),
        }
    }

    pub(super) fn variable_pointer(&self, variable: usize, ty: Ty) -> Value {
        Value::Pointer(Rc::new(Pointer { root: Root::Variable(variable), ty, offset: 0, path: Vec::new() }))
    }

    pub(super) fn global_pointer(&mut self, handle: Handle<naga::GlobalVariable>) -> Result<Value> {
        let ty = Ty::Handle(self.module.global_variables[handle].ty);
        let root = match self.globals.places.get(&handle) {
            Some(Place::Binding(binding)) => Root::Binding(*binding),
            Some(Place::Workgroup { base, unit }) => Root::Workgroup { base: *base, unit: *unit },
            Some(Place::Private) => Root::Variable(self.known(self.privates.get(&handle).copied(), "this variable")?),
            Some(Place::Argument(_)) | None => return self.unsupported("this variable"),
        };
        Ok(Value::Pointer(Rc::new(Pointer { root, ty, offset: 0, path: Vec::new() })))
    }

    /// A pointer to a part with a known index.
    pub(super) fn part_of(&mut self, pointer: &Pointer, index: u32) -> Result<Pointer> {
        let layout = pointer.root.layout();
        if !self.types.is_struct(pointer.ty) && self.types.count(pointer.ty).is_none_or(|count| index >= count) {
            return self.element_of(pointer, Operand::word(index));
        }
        let (ty, offset) = self.known(self.types.part(pointer.ty, index, layout), "pointers to this type")?;
        let offset = self.known(pointer.offset.checked_add(offset), "variables of this size")?;
        Ok(Pointer { ty, offset, ..pointer.clone() })
    }

    /// A pointer to an element with an index that is known at run time.
    pub(super) fn element_of(&mut self, pointer: &Pointer, index: Operand) -> Result<Pointer> {
        if let (Some(index), Some(count)) = (index.constant(), self.types.count(pointer.ty))
            && index < u64::from(count)
        {
            return self.part_of(pointer, index as u32);
        }
        let (ty, stride) =
            self.known(self.types.element(pointer.ty, pointer.root.layout()), "indexing of this type")?;
        let count = match self.types.count(pointer.ty) {
            Some(count) => Count::Fixed(count),
            None => Count::Runtime { start: pointer.offset, stride: stride.max(1), scale: 1 },
        };
        let mut element = Pointer { ty, ..pointer.clone() };
        element.path.push(Step { index, stride, count });
        if let Root::Variable(variable) = pointer.root
            && matches!(self.variables[variable].storage, Storage::Registers(_))
        {
            self.found.insert(Fact::Indexed(self.variables[variable].id));
        }
        Ok(element)
    }

    /// Folds the path into one index. Where one of several indices is out of range, the folded one is too.
    fn fold(&mut self, root: Root, path: &[Step]) -> Folded {
        let scale = self.scale(root);
        match path {
            [] => Folded { index: Operand::word(0), stride: 0, count: Count::Fixed(1) },
            [step] => Folded { index: step.index, stride: step.stride * scale, count: step.count },
            steps => {
                let unit = steps.iter().fold(0, |unit, step| gcd(unit, step.stride)).max(1);
                let mut index = Operand::word(0);
                let mut within: Option<Operand> = None;
                let mut last = 0_u64;
                let mut runtime = None;
                for step in steps {
                    let limit = match step.count {
                        Count::Fixed(count) => {
                            last += u64::from(count.saturating_sub(1)) * u64::from(step.stride / unit);
                            Operand::word(count)
                        }
                        Count::Runtime { start, stride, .. } => {
                            runtime = Some(Count::Runtime { start, stride, scale: step.stride / unit });
                            self.length_of(root, start, stride)
                        }
                    };
                    let inside = self.builder.below(step.index, limit);
                    within = Some(match within {
                        Some(within) => self.builder.and(within, inside),
                        None => inside,
                    });
                    let place = self.builder.mul(step.index, Operand::word(step.stride / unit));
                    index = self.builder.add(index, place);
                }
                if let Some(within) = within {
                    index = self.builder.select(within, index, Operand::word(u32::MAX));
                }
                let count = runtime.unwrap_or(Count::Fixed(u32::try_from(last + 1).unwrap_or(u32::MAX)));
                Folded { index, stride: unit * scale, count }
            }
        }
    }

    /// The access to one scalar behind a pointer.
    fn scalar_access(&self, pointer: &Pointer, folded: &Folded, leaf: u32, kind: Scalar) -> Strided {
        let offset = pointer.offset + leaf;
        match pointer.root {
            Root::Binding(binding) => {
                let element = match kind {
                    Scalar::F16 => Element::Half,
                    Scalar::I16 => Element::Short,
                    Scalar::U16 => Element::UnsignedShort,
                    _ => inner_element(kind),
                };
                let space = Space::Binding(binding);
                Strided { space, element, offset, stride: folded.stride, count: folded.count }
            }
            Root::Workgroup { base, unit } | Root::Table { base, unit } => {
                let space = match pointer.root {
                    Root::Table { .. } => Space::Table,
                    _ if self.batching == Batching::Groups => Space::Groups,
                    _ => Space::Workgroup,
                };
                let offset = base + offset * unit * 4;
                Strided { space, element: inner_element(kind), offset, stride: folded.stride, count: folded.count }
            }
            Root::Variable(variable) => {
                let Storage::Private { base, slots, unit } = self.variables[variable].storage else {
                    return private(0, 0, 0, 0, 0, false);
                };
                let count = match folded.count {
                    Count::Fixed(count) => count,
                    Count::Runtime { .. } => 0,
                };
                private(base, slots, offset * unit, folded.stride, count, kind.is_wide())
            }
        }
    }

    /// Units of memory for each unit of the root's layout.
    fn scale(&self, root: Root) -> u32 {
        match root {
            Root::Binding(_) => 1,
            Root::Workgroup { unit, .. } | Root::Table { unit, .. } => unit * 4,
            Root::Variable(variable) => match self.variables[variable].storage {
                Storage::Private { unit, .. } => unit,
                Storage::Registers(_) => 1,
            },
        }
    }

    pub(super) fn load_variable(&mut self, variable: usize, ty: Ty) -> Result<Value> {
        let pointer = Pointer { root: Root::Variable(variable), ty, offset: 0, path: Vec::new() };
        self.load(&pointer)
    }

    pub(super) fn store_variable(&mut self, variable: usize, first: u32, values: &[Operand]) -> Result<()> {
        match self.variables[variable].storage.clone() {
            Storage::Registers(_) => self.assign(variable, first as usize, values),
            Storage::Private { base, slots, unit } => {
                let mask = self.store_mask(self.variables[variable].depth);
                for (scalar, value) in (first..).zip(values) {
                    let access = private(base, slots, scalar * unit, 0, 1, self.builder.is_wide(*value));
                    self.builder.store(access, Operand::word(0), *value, mask);
                }
            }
        }
        Ok(())
    }

    /// Returns whether the pointer leads to an atomic that other threads may touch: workgroup memory belongs to one thread.
    fn is_shared_atomic(&self, pointer: &Pointer) -> bool {
        matches!(pointer.root, Root::Binding(_)) && matches!(self.types.plain(pointer.ty), Ty::Atomic(_))
    }

    pub(super) fn load(&mut self, pointer: &Pointer) -> Result<Value> {
        if self.is_shared_atomic(pointer) {
            let number = self.number_behind(pointer)?;
            let (access, index) = self.atomic_access(pointer)?;
            let op = Op::Atomic(Atomic::Load, number);
            return Ok(Value::Scalars([self.builder.atomic(op, access, index, None, None, FULL)].into()));
        }
        let leaves = self.types.leaves(pointer.ty, pointer.root.layout());
        let leaves = self.known(leaves, "values of this type or size")?;
        if let Root::Variable(variable) = pointer.root
            && let Storage::Registers(registers) = self.variables[variable].storage.clone()
        {
            if let Some(constant) = self.variables[variable].constant {
                return Ok(Value::Scalars([Operand::word(constant)].into()));
            }
            let mut values = Vec::with_capacity(leaves.len());
            for (leaf, kind) in leaves {
                let zero = Operand::Constant { bits: 0, wide: kind.is_wide() };
                values.push(match registers.get((pointer.offset + leaf) as usize) {
                    // Indexed at run time: this attempt is void, and the next one has the variable in memory. No constant, which would unroll loops.
                    _ if !pointer.path.is_empty() => self.builder.copy(zero),
                    Some(register) => self.builder.copy(Operand::Register(*register)),
                    None => zero,
                });
            }
            return Ok(Value::Scalars(values.into()));
        }
        let folded = self.fold(pointer.root, &pointer.path);
        let mut values = Vec::with_capacity(leaves.len());
        for (leaf, kind) in leaves {
            let access = self.scalar_access(pointer, &folded, leaf, kind);
            values.push(self.builder.load(access, folded.index));
        }
        Ok(Value::Scalars(values.into()))
    }

    pub(super) fn store(&mut self, pointer: &Pointer, values: &[Operand]) -> Result<()> {
        if self.is_shared_atomic(pointer) {
            let number = self.number_behind(pointer)?;
            let (access, index) = self.atomic_access(pointer)?;
            let value = self.known(values.first().copied(), "a value without scalars")?;
            let mask = self.mask();
            self.builder.atomic_store(number, access, index, value, mask);
            return Ok(());
        }
        let leaves = self.types.leaves(pointer.ty, pointer.root.layout());
        let leaves = self.known(leaves, "values of this type or size")?;
        let mut mask = self.mask();
        if let Root::Variable(variable) = pointer.root {
            if let Storage::Registers(_) = self.variables[variable].storage {
                if pointer.path.is_empty() {
                    self.assign(variable, pointer.offset as usize, values);
                }
                return Ok(());
            }
            mask = self.store_mask(self.variables[variable].depth);
        }
        let folded = self.fold(pointer.root, &pointer.path);
        for ((leaf, kind), value) in leaves.into_iter().zip(values) {
            let access = self.scalar_access(pointer, &folded, leaf, kind);
            self.builder.store(access, folded.index, *value, mask);
        }
        Ok(())
    }

    /// `arrayLength`.
    pub(super) fn array_length(&mut self, pointer: &Pointer) -> Result<Operand> {
        let (_, stride) = self.known(self.types.element(pointer.ty, Units::Bytes), "arrayLength of this type")?;
        Ok(self.length_of(pointer.root, pointer.offset, stride.max(1)))
    }

    /// Number of elements of a runtime array that begins at `start`.
    fn length_of(&mut self, root: Root, start: u32, stride: u32) -> Operand {
        let space = match root {
            Root::Binding(binding) => Space::Binding(binding),
            _ => Space::Workgroup,
        };
        // The least element, so that only whole strides decide.
        let element = Element::UnsignedShort;
        let count = Count::Runtime { start, stride, scale: 1 };
        self.builder.length(Strided { space, element, offset: start, stride, count })
    }

    pub(super) fn number_behind(&self, pointer: &Pointer) -> Result<Number> {
        let kind = self.known(self.types.kind(pointer.ty), "atomics of this type")?;
        self.known(number(kind), "atomics of this type")
    }

    pub(super) fn atomic_access(&mut self, pointer: &Pointer) -> Result<(Strided, Operand)> {
        let kind = self.known(self.types.kind(pointer.ty), "atomics of this type")?;
        let folded = self.fold(pointer.root, &pointer.path);
        Ok((self.scalar_access(pointer, &folded, 0, kind), folded.index))
    }

    /// Puts constants into the code's table and gives a pointer to them.
    pub(super) fn table_pointer(&mut self, ty: Ty, values: &[Operand]) -> Option<Pointer> {
        let unit = if self.types.has_wide(ty) { 2 } else { 1 };
        let mut bytes = Vec::new();
        for value in values {
            let bits = value.constant()?;
            bytes.extend_from_slice(&bits.to_le_bytes()[..unit * 4]);
        }
        let table = &mut self.builder.table;
        let known = table.windows(bytes.len().max(1)).position(|window| window == bytes).filter(|at| at % 8 == 0);
        let base = known.unwrap_or_else(|| {
            table.resize(table.len().next_multiple_of(8), 0);
            let base = table.len();
            table.extend_from_slice(&bytes);
            base
        });
        let root = Root::Table { base: u32::try_from(base).ok()?, unit: unit as u32 };
        Some(Pointer { root, ty, offset: 0, path: Vec::new() })
    }
}

/// Returns the number type that atomics and collectives compute with.
pub(crate) fn number(kind: Scalar) -> Option<Number> {
    Some(match kind {
        Scalar::I32 => Number::I32,
        Scalar::U32 => Number::U32,
        Scalar::F32 => Number::F32,
        Scalar::F16 => Number::F16,
        Scalar::I64 => Number::I64,
        Scalar::U64 => Number::U64,
        Scalar::F64 => Number::F64,
        Scalar::Bool | Scalar::I16 | Scalar::U16 => return None,
    })
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
