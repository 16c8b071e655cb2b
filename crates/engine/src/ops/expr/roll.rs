//! Rolls: gathers whose places count up from an offset, and continue at 0 after the last element. Graphics processors compute the places as they are
//! recorded; processors read runs.

use super::node::{Node, Source, Typed, View};
use super::shape::broadcast_strides;
use crate::backend::native::{AssembleShape, CopyShape, Roll};
use crate::ops::elementwise::Binary;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// The memory that a roll reads.
pub(super) struct Rolled<'a> {
    pub(super) source: &'a Source,
    /// Steps in memory. Along the axis of the roll it is the one from an element to the next.
    pub(super) strides: Vec<usize>,
    pub(super) offset: usize,
    /// `None` where a single place of the axis is read.
    pub(super) roll: Option<Roll>,
}

/// The first index of a read of indices, and its steps.
fn counted(typed: &Typed) -> Option<(usize, &[usize], &[usize])> {
    match &typed.node {
        Node::Read(View { source: Source::Indices, offset, strides }) => Some((*offset, strides, &typed.shape)),
        _ => None,
    }
}

fn whole_number(typed: &Typed) -> Option<usize> {
    match typed.node {
        Node::Constant(value) if value >= 0.0 && value.fract() == 0.0 => Some(value as usize),
        _ => None,
    }
}

impl Typed {
    /// Returns what is read, if this is a roll as [`Expr::roll`](super::Expr::roll) records it, or a view of one.
    pub(super) fn rolled(&self) -> Option<Rolled<'_>> {
        let Node::Gather { view, stride, length, index } = &self.node else { return None };
        let Node::Select(condition, ahead, again) = &index.node else { return None };
        let (Node::Binary(Binary::Lt, place, edge), Node::Binary(Binary::Add, one, back)) =
            (&condition.node, &ahead.node)
        else {
            return None;
        };
        let Node::Binary(Binary::Sub, other, end) = &again.node else { return None };
        let (edge, back) = (whole_number(edge)?, whole_number(back)?);
        let (first, steps, shape) = counted(place)?;
        let alike = [one, other].into_iter().all(|other| counted(other) == Some((first, steps, shape)));
        if index.dtype != DType::U32 || !alike || whole_number(end)? != edge || edge.checked_add(back)? != *length {
            return None;
        }
        let steps = broadcast_strides(shape, steps, &self.shape);
        let mut strides = view.strides.clone();
        let start = if first < edge { first + back } else { first - edge };
        let mut moving = (0..steps.len()).filter(|&axis| steps[axis] > 0);
        let Some(axis) = moving.next() else {
            return Some(Rolled { source: &view.source, strides, offset: view.offset + start * stride, roll: None });
        };
        let last = self.shape[axis].checked_sub(1)?.checked_mul(steps[axis])?;
        if moving.next().is_some() || strides[axis] != 0 || first.checked_add(last)? >= *length {
            return None;
        }
        strides[axis] = *stride;
        let roll = Some(Roll::new(axis, [start, steps[axis], *length]));
        Some(Rolled { source: &view.source, strides, offset: view.offset, roll })
    }
}

impl Rolled<'_> {
    /// Returns the copy of what is read, in two parts at most, to contiguous memory of a shape.
    pub(super) fn copy(&self, shape: &[usize], bytes: usize) -> AssembleShape {
        let begin = vec![0; shape.len()];
        let Some(roll) = self.roll else {
            let part = CopyShape::new(shape, &self.strides, self.offset).of_bytes(bytes);
            return AssembleShape::new(shape, vec![(part, begin)]);
        };
        let (axis, side) = (roll.axis, shape[roll.axis]);
        let edge = roll.wraps_at().min(side);
        let parts = [0..edge, edge..side].into_iter().filter(|part| !part.is_empty()).map(|part| {
            let (mut sides, mut strides, mut at) = (shape.to_vec(), self.strides.clone(), begin.clone());
            let offset = self.offset + roll.place(part.start) * strides[axis];
            (sides[axis], at[axis]) = (part.len(), part.start);
            strides[axis] *= roll.step;
            (CopyShape::new(&sides, &strides, offset).of_bytes(bytes), at)
        });
        AssembleShape::new(shape, parts.listed())
    }
}
