//! The entry point's arguments: ids, in the form that suits the way of batching.

use naga::{Binding, BuiltIn, Function, TypeInner};

use super::super::SUBGROUP_SIZE;
use super::super::bytecode::{Batching, Input};
use super::builder::Operand;
use super::{Lowering, Result, Value};
use cantus_base::listed::Listed;

impl Lowering<'_, '_> {
    pub(super) fn inputs(&mut self, function: &Function) -> Result<Vec<Value>> {
        let mut arguments = Vec::new();
        for argument in &function.arguments {
            let mut scalars = Vec::new();
            match (&argument.binding, &self.module.types[argument.ty].inner) {
                (Some(binding), _) => scalars.extend(self.builtin(binding)?),
                (None, TypeInner::Struct { members, .. }) => {
                    for member in members {
                        let binding = self.known(member.binding.as_ref(), "arguments without a builtin")?;
                        scalars.extend(self.builtin(binding)?);
                    }
                }
                (None, _) => return self.unsupported("arguments without a builtin"),
            }
            arguments.push(Value::Scalars(scalars.into()));
        }
        Ok(arguments)
    }

    fn builtin(&mut self, binding: &Binding) -> Result<Vec<Operand>> {
        let Binding::BuiltIn(builtin) = binding else { return self.unsupported("@location in compute shaders") };
        let size = self.workgroup_size;
        let invocations: u32 = size.iter().product();
        Ok(match builtin {
            BuiltIn::WorkGroupId => (0..3).map(|axis| self.workgroup_id(axis)).listed(),
            BuiltIn::LocalInvocationId => (0..3).map(|axis| self.local_id(axis)).listed(),
            BuiltIn::GlobalInvocationId => (0..3).map(|axis| self.global_id(axis)).listed(),
            BuiltIn::LocalInvocationIndex => vec![self.local_index()],
            BuiltIn::WorkGroupSize => size.map(Operand::word).to_vec(),
            BuiltIn::NumWorkGroups => (0..3).map(|axis| self.builder.input(Input::NumWorkgroups(axis))).listed(),
            BuiltIn::NumSubgroups => vec![Operand::word(invocations.div_ceil(SUBGROUP_SIZE))],
            BuiltIn::SubgroupSize => vec![Operand::word(SUBGROUP_SIZE)],
            BuiltIn::SubgroupId => vec![self.builder.input(Input::SubgroupId)],
            BuiltIn::SubgroupInvocationId => vec![self.builder.input(Input::SubgroupInvocation)],
            other => return self.unsupported(format!("the builtin {other:?}")),
        })
    }

    fn workgroup_id(&mut self, axis: u8) -> Operand {
        if let Some(lanes) = self.row {
            let first = self.builder.input(Input::FirstWorkgroup(axis));
            let along = self.workgroup_size[0];
            if axis > 0 || along.is_multiple_of(lanes) {
                return first;
            }
            if along == 1 {
                return self.builder.iota(first);
            }
            let place = self.builder.input(Input::GroupInBatch);
            return self.builder.add(place, first);
        }
        match self.batching {
            Batching::Single => self.builder.input(Input::FirstWorkgroup(axis)),
            Batching::Row if axis > 0 || self.one_group => self.builder.input(Input::FirstWorkgroup(axis)),
            Batching::Row => {
                let first = self.builder.input(Input::FirstWorkgroup(axis));
                if self.workgroup_size == [1; 3] {
                    return self.builder.iota(first);
                }
                let place = self.builder.input(Input::GroupInBatch);
                self.builder.add(place, first)
            }
            Batching::Linear | Batching::Groups => self.builder.input(Input::Workgroup(axis)),
        }
    }

    fn local_id(&mut self, axis: u8) -> Operand {
        let size = self.workgroup_size;
        let along = size[axis as usize];
        if along == 1 {
            return Operand::word(0);
        }
        if let Some(lanes) = self.row {
            if axis > 0 {
                return self.builder.input(Input::RowLocal(axis));
            }
            if along.is_multiple_of(lanes) {
                let start = self.builder.input(Input::RowLocalStart);
                return self.builder.iota(start);
            }
            return self.builder.input(Input::LocalId(0));
        }
        // The only side that is longer than 1: the id is the local index.
        if size.iter().product::<u32>() == along {
            return self.local_index();
        }
        self.builder.input(Input::LocalId(axis))
    }

    fn local_index(&mut self) -> Operand {
        if self.workgroup_size == [1; 3] {
            Operand::word(0)
        } else if self.row.is_some() {
            // x + width (y + height z), of which y and z are uniform in a row.
            let [width, height, _] = self.workgroup_size;
            let (x, y, z) = (self.local_id(0), self.local_id(1), self.local_id(2));
            let z = self.builder.mul(z, Operand::word(height));
            let row = self.builder.add(y, z);
            let row = self.builder.mul(row, Operand::word(width));
            self.builder.add(x, row)
        } else if self.one_group {
            self.builder.iota(Operand::word(0))
        } else {
            self.builder.input(Input::LocalIndex)
        }
    }

    fn global_id(&mut self, axis: u8) -> Operand {
        let size = self.workgroup_size;
        let along = size[axis as usize];
        if self.row.is_some() && axis == 0 {
            let start = self.builder.input(Input::RowStart);
            return self.builder.iota(start);
        }
        let only = size.iter().product::<u32>() == along;
        if only && axis == 0 && !matches!(self.batching, Batching::Linear | Batching::Groups) {
            // The lanes of a batch follow each other along x.
            let first = self.builder.input(Input::FirstWorkgroup(0));
            let base = self.builder.mul(first, Operand::word(along));
            return self.builder.iota(base);
        }
        let group = self.workgroup_id(axis);
        let base = self.builder.mul(group, Operand::word(along));
        let local = self.local_id(axis);
        self.builder.add(local, base)
    }
}
