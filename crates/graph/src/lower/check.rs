//! The sizes that lowering relies on: those of an expression fit together.

use super::{Lowered, Lowering, refused};
use crate::backend::expression::{Node, Part};

/// The number of elements of a shape, if a word holds it.
pub(super) fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |count, &side| count.checked_mul(side))
}

impl Lowering<'_> {
    /// Refuses a node whose sizes do not fit those of its operands.
    pub(super) fn check(&self, node: &Node) -> Lowered<()> {
        if node.shape.contains(&0) {
            return refused("what has no elements");
        }
        let read = |place: usize| {
            let operand = node.operands.get(place).and_then(|&operand| self.nodes.get(operand));
            operand.map(|operand| operand.shape.as_slice())
        };
        let rank = |place| read(place).map_or(0, <[usize]>::len);
        // The last element of a view is one of what is read, or a position.
        let within = |first: Option<usize>, strides: &[usize], source: usize| {
            let steps = || strides.iter().zip(&node.shape).map(|(&stride, &side)| stride.checked_mul(side - 1));
            let last = first.and_then(|first| steps().try_fold(first, |last, step| last.checked_add(step?)));
            let held = read(source).map_or(Some(u32::MAX as usize), count);
            strides.len() == node.shape.len() && last.zip(held).is_some_and(|(last, held)| last < held)
        };
        let fits = count(&node.shape).is_some()
            && match &node.part {
                Part::View { offset, strides } => within(Some(*offset), strides, 0),
                Part::Gather { offset, strides, step, length } => {
                    let moved = length.checked_sub(1).and_then(|last| last.checked_mul(*step));
                    within(moved.and_then(|moved| moved.checked_add(*offset)), strides, 1)
                }
                Part::Reduce { from, .. } | Part::Find { from, .. } => *from <= rank(0),
                Part::Product => match (read(0), read(1)) {
                    (Some([batch @ .., _, k]), Some([same @ .., rows, _])) => batch == same && k == rows,
                    _ => false,
                },
                Part::Convolution(_) => rank(0) == 4 && rank(1) == 4,
                _ => true,
            };
        if fits { Ok(()) } else { refused("operands of such sizes") }
    }
}
