//! Local and private variables: in registers, or in per-lane memory where they are indexed at run time. `call` makes the variables of a body. A variable is
//! in registers unless it is indexed at run time or very large. It is uniform until a store proves otherwise (`Fact::Varying`), and the store's own attempt
//! already treats it as varying, so chains of variables take one more attempt only.

use std::rc::Rc;

use naga::{Handle, LocalVariable};

use super::super::bytecode::{Count, Element, FULL, Int2, Op, Space, Strided};
use super::builder::{Class, Operand, Register};
use super::types::Ty;
use super::{Fact, Lowering, Result};
use crate::reflection::Scalar;

/// Variables of more scalars live in memory from the start.
const MAX_REGISTERS: u64 = 256;
/// Private memory of one kernel, in slots of one word per lane.
const MAX_SLOTS: u32 = 1 << 16;
/// Larger private arrays are cleared by a loop.
const UNROLLED_CLEAR: u32 = 16;

pub(crate) struct Variable {
    pub id: usize,
    pub storage: Storage,
    /// Scopes around the variable: lanes inactive there never observe it.
    pub depth: usize,
    /// The value that it has here in each lane: the counter of a loop that is being unrolled.
    pub constant: Option<u32>,
}

#[derive(Clone)]
pub(crate) enum Storage {
    Registers(Rc<[Register]>),
    /// First slot, number of slots, and slots of each scalar.
    Private {
        base: u32,
        slots: u32,
        unit: u32,
    },
}

impl Lowering<'_, '_> {
    /// Makes a variable; `home` lets copies of one local variable share their memory.
    pub(super) fn new_variable(
        &mut self,
        ty: Ty,
        depth: usize,
        home: Option<(usize, Handle<LocalVariable>)>,
    ) -> Result<usize> {
        let id = self.variables.len();
        let scalars = self.known(self.types.scalars(ty), "variables of this type")?;
        let storage = if scalars > MAX_REGISTERS || self.facts.hold(&Fact::Indexed(id)) {
            let unit = if self.types.has_wide(ty) { 2 } else { 1 };
            let slots = u32::try_from(scalars * unit).ok().filter(|slots| *slots <= MAX_SLOTS);
            let slots = self.known(slots, "a private variable of more than 256 KiB")?;
            let known = home.and_then(|home| self.private_homes.get(&home).copied());
            let base = match known {
                Some(base) => base,
                None => {
                    let base = self.builder.private_slots;
                    self.builder.private_slots += slots;
                    if self.builder.private_slots > MAX_SLOTS {
                        return self.unsupported("private variables of more than 256 KiB");
                    }
                    if let Some(home) = home {
                        self.private_homes.insert(home, base);
                    }
                    base
                }
            };
            Storage::Private { base, slots, unit: unit as u32 }
        } else {
            let flat = self.types.flat(ty);
            let kinds = self.known(flat, "variables of this type")?;
            let registers = kinds.iter().enumerate().map(|(scalar, kind)| {
                let varying = self.facts.hold(&Fact::Varying(id, scalar));
                self.builder.variable(if varying { Class::Vector } else { Class::Uniform }, kind.is_wide())
            });
            Storage::Registers(registers.collect())
        };
        self.variables.push(Variable { id, storage, depth, constant: None });
        Ok(id)
    }

    /// Gives the variable's registers its name.
    pub(super) fn name_variable(&mut self, variable: usize, name: Option<&str>) {
        if let (Some(name), Storage::Registers(registers)) = (name, &self.variables[variable].storage) {
            for (part, register) in registers.iter().enumerate() {
                self.builder.name(*register, name, part, registers.len());
            }
        }
    }

    /// Stores scalars into registers of a variable, from `first` on.
    pub(super) fn assign(&mut self, variable: usize, first: usize, values: &[Operand]) {
        let depth = self.variables[variable].depth;
        let Storage::Registers(registers) = self.variables[variable].storage.clone() else { return };
        let mask = self.store_mask(depth);
        for (scalar, value) in (first..).zip(values) {
            let Some(register) = registers.get(scalar).copied() else { return };
            let uniform = self.builder.registers[register as usize].class == Class::Uniform;
            if uniform && (mask != FULL || !self.builder.is_uniform(*value)) {
                self.found.insert(Fact::Varying(self.variables[variable].id, scalar));
                // This attempt is void. What reads the variable from here on sees it as it will be in the next one, so that a chain of
                // variables takes one attempt, not one for each.
                self.builder.registers[register as usize].class = Class::Vector;
            }
            self.builder.assign(register, *value, mask);
        }
    }

    /// The variable's first value.
    pub(super) fn initialise(&mut self, variable: usize, ty: Ty, value: Option<&[Operand]>) -> Result<()> {
        match self.variables[variable].storage.clone() {
            Storage::Registers(registers) => {
                // Not yet under any mask of its own.
                for (scalar, register) in registers.iter().enumerate() {
                    let wide = self.builder.registers[*register as usize].wide;
                    let zero = Operand::Constant { bits: 0, wide };
                    let value = value.and_then(|value| value.get(scalar)).copied().unwrap_or(zero);
                    self.builder.assign(*register, value, FULL);
                }
                Ok(())
            }
            Storage::Private { base, slots, unit } => {
                match value {
                    Some(values) => {
                        for (scalar, value) in values.iter().enumerate() {
                            let access = private(base, slots, scalar as u32 * unit, 0, 1, self.builder.is_wide(*value));
                            self.builder.store(access, Operand::word(0), *value, FULL);
                        }
                    }
                    None => self.clear(base, slots, unit),
                }
                let _ = ty;
                Ok(())
            }
        }
    }

    /// Sets slots to zero, in the width in which they are used: lanes lie at other places for other widths.
    fn clear(&mut self, base: u32, slots: u32, unit: u32) {
        let wide = unit == 2;
        let zero = Operand::Constant { bits: 0, wide };
        let scalars = slots / unit;
        if scalars <= UNROLLED_CLEAR {
            for scalar in 0..scalars {
                let access = private(base, slots, scalar * unit, 0, 1, wide);
                self.builder.store(access, Operand::word(0), zero, FULL);
            }
            return;
        }
        let access = private(base, slots, 0, unit, scalars, wide);
        let counter = self.builder.variable(Class::Uniform, false);
        let top = self.builder.label();
        self.builder.assign(counter, Operand::word(0), FULL);
        self.builder.place(top);
        self.builder.store(access, Operand::Register(counter), zero, FULL);
        let next = self.builder.int2(Int2::Add, Operand::Register(counter), Operand::word(1));
        self.builder.assign(counter, next, FULL);
        let more = self.builder.below(Operand::Register(counter), Operand::word(scalars));
        self.builder.jump(Op::JumpIf, Some(more), FULL, top);
    }
}

/// Access to private memory, in slots.
pub(crate) fn private(base: u32, slots: u32, offset: u32, stride: u32, count: u32, wide: bool) -> Strided {
    let element = if wide { Element::Wide } else { Element::Word };
    Strided { space: Space::Private { base, slots }, element, offset, stride, count: Count::Fixed(count) }
}

/// Element of a scalar in memory that only the kernel sees.
pub(crate) fn inner_element(kind: Scalar) -> Element {
    if kind.is_wide() { Element::Wide } else { Element::Word }
}
