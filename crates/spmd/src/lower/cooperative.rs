//! Cooperative matrices: fragments in the lanes of a subgroup (`fragment`). Elements out of range are zero, and are not stored. A product exchanges
//! elements by shuffles, and rounds its sums once for each step and, of f16, once at the end.

use std::rc::Rc;

use naga::{CooperativeData, Expression, Handle, TypeInner};

use super::super::bytecode::{Gather, Input, Int2, Op};
use super::builder::Operand;
use super::pointer::{Pointer, Root};
use super::types::Ty;
use super::{Lowering, Result};
use crate::fragment::{self, Fragment};
use crate::reflection::Scalar;

impl Lowering<'_, '_> {
    fn fragment(&self, handle: Handle<Expression>) -> Result<Fragment> {
        let invocations: u32 = self.workgroup_size.iter().product();
        if !invocations.is_multiple_of(fragment::LANES) {
            return self.unsupported(format!(
                "cooperative matrices in workgroups of {invocations} invocations: they must be a multiple of {}",
                fragment::LANES
            ));
        }
        let of = Fragment::of(self.frame()?.info[handle].ty.inner_with(&self.module.types));
        self.known(of, "cooperative matrices that are not square")
    }

    /// The array that a cooperative matrix lies in, and the index of its first element.
    fn cooperative_array(&mut self, pointer: Handle<Expression>) -> Result<(Rc<Pointer>, Operand)> {
        let (base, index) = match self.frame()?.function.expressions[pointer] {
            Expression::Access { base, index } => (base, self.scalar(index)?),
            Expression::AccessIndex { base, index } => (base, Operand::word(index)),
            _ => return self.unsupported("cooperative matrices in memory that is no element of an array"),
        };
        let array = self.pointer(base)?;
        let is_array =
            matches!(array.ty, Ty::Handle(ty) if matches!(self.module.types[ty].inner, TypeInner::Array { .. }));
        if !is_array || !matches!(array.root, Root::Binding(_) | Root::Workgroup { .. }) {
            return self
                .unsupported("cooperative matrices in memory other than arrays of storage and of the workgroup");
        }
        Ok((array, index))
    }

    /// Pointers to a lane's elements.
    fn cooperative_places(&mut self, of: Fragment, data: &CooperativeData) -> Result<Vec<Pointer>> {
        let (array, first) = self.cooperative_array(data.pointer)?;
        let stride = self.scalar(data.stride)?;
        let lane = self.builder.input(Input::SubgroupInvocation);
        let major = self.builder.int2(Int2::ShiftRightUnsigned, lane, Operand::word(2));
        let minor = self.builder.and(lane, Operand::word(3));
        let minor = self.builder.mul(minor, Operand::word(2));
        let (row, column) = if of.rows_are_major() { (major, minor) } else { (minor, major) };
        let mut places = Vec::new();
        for element in 0..of.elements() {
            let (down, across) = of.place(element);
            let row = self.builder.add(row, Operand::word(down));
            let column = self.builder.add(column, Operand::word(across));
            let (outer, inner) = if data.row_major { (row, column) } else { (column, row) };
            let line = self.builder.mul(outer, stride);
            let place = self.builder.add(line, inner);
            let index = self.builder.add(first, place);
            places.push(self.element_of(&array, index)?);
        }
        Ok(places)
    }

    pub(super) fn cooperative_load(
        &mut self,
        handle: Handle<Expression>,
        data: &CooperativeData,
    ) -> Result<Rc<[Operand]>> {
        let of = self.fragment(handle)?;
        let mut scalars = Vec::new();
        for place in self.cooperative_places(of, data)? {
            let value = self.load(&place)?;
            let super::Value::Scalars(value) = value else {
                return self.unsupported("pointers in cooperative matrices");
            };
            scalars.extend_from_slice(&value);
        }
        if scalars.len() != of.elements() as usize {
            return self.unsupported("cooperative matrices in memory that holds no scalars");
        }
        Ok(scalars.into())
    }

    pub(super) fn cooperative_store(&mut self, target: Handle<Expression>, data: &CooperativeData) -> Result<()> {
        let of = self.fragment(target)?;
        let scalars = self.scalars(target)?;
        let places = self.cooperative_places(of, data)?;
        for (place, value) in places.iter().zip(scalars.iter()) {
            self.store(place, &[*value])?;
        }
        Ok(())
    }

    pub(super) fn cooperative_product(&mut self, operands: [Handle<Expression>; 3]) -> Result<Rc<[Operand]>> {
        let [a, b, c] = operands.map(|operand| self.fragment(operand));
        let (a, b, sums) = (a?, b?, c?);
        if !sums.takes(a, b) {
            return self.unsupported("products of cooperative matrices of different sizes or types");
        }
        let [left, right, begun] = operands.map(|operand| self.scalars(operand));
        let (left, right, mut results) = (left?, right?, begun?.to_vec());
        let mask = self.mask();
        let lane = self.builder.input(Input::SubgroupInvocation);
        let left_lane = self.builder.and(lane, Operand::word(28));
        let right_lane = self.builder.and(lane, Operand::word(3));
        let right_lane = self.builder.mul(right_lane, Operand::word(8));
        let read = |lowering: &mut Self, values: &[Operand], first: Operand, read: fragment::Read| {
            let value = lowering.known(values.get(read.element as usize).copied(), "this cooperative matrix")?;
            let from = lowering.builder.add(first, Operand::word(read.lane));
            Ok(lowering.builder.subgroup(Op::Gather(Gather::Shuffle), value, Some(from), mask))
        };
        let halves = sums.size / 8;
        for k in 0..sums.size {
            let mut rows = Vec::new();
            for half in 0..halves {
                rows.push(read(self, &left, left_lane, fragment::left(k, half))?);
            }
            for (pair, half) in (0..2).flat_map(|pair| (0..halves).map(move |half| (pair, half))) {
                let column = read(self, &right, right_lane, fragment::right(k, pair, half))?;
                for (below, row) in (0..).zip(&rows) {
                    let element = (pair + 2 * below + 4 * half) as usize;
                    let sum = self.known(results.get(element).copied(), "this cooperative matrix")?;
                    results[element] = self.builder.ternary(Op::Fma, [*row, column, sum]);
                }
            }
        }
        let kind = self.known(Scalar::of(sums.scalar), "cooperative matrices of this type")?;
        Ok(results.into_iter().map(|sum| self.narrow(kind, sum)).collect())
    }
}
