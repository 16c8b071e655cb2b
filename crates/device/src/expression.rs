//! Expressions as plain data: what an engine hands to devices that run operations and no kernels
//! ([`super::Capabilities::operation_graphs`]). They are described here and nowhere computed.

use std::sync::Arc;

use crate::native::{Combination, Conv2dShape, RowFunction};
use crate::tensor::DType;

/// An expression over arguments. Every node comes after those that it reads, and the last one is the result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Expression {
    /// The nodes.
    pub nodes: Vec<Node>,
}

/// A part of an expression, with the shape and dtype of its value. Elements are computed in [`DType::computed`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// The operation.
    pub part: Part,
    /// The operands, by their places among the nodes.
    pub operands: Vec<usize>,
    /// The shape of the value.
    pub shape: Vec<usize>,
    /// The dtype of the value.
    pub dtype: DType,
}

/// The operation of a node. Operands of element-wise operations broadcast to the node's shape, aligned at the last axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// The argument of that number, contiguous. Arguments come in the order of their numbers.
    Argument(usize),
    /// A number, by the bits of a float64.
    Constant(u64),
    /// The elements of the operand, which is contiguous, by strides from an offset on; without an operand their positions, as u32.
    View {
        /// The first element.
        offset: usize,
        /// Steps along the node's axes.
        strides: Vec<usize>,
    },
    /// index, source: a view, moved by `step` times the index. Negative indices count from the end, and indices out of range take the nearest
    /// element. Without a source, the positions.
    Gather {
        /// The first element at index 0.
        offset: usize,
        /// Steps along the node's axes.
        strides: Vec<usize>,
        /// The distance from one index to the next.
        step: usize,
        /// The number of positions: at least one.
        length: usize,
    },
    /// A function of the operands' elements: the function `element` of a WGSL text, whose parameters and result have the types in which the
    /// dtypes are computed. Integers narrower than a word wrap.
    Function(Arc<str>),
    /// condition, a, b: a where the condition is not 0.
    Select,
    /// The numbers in the node's dtype: to a narrower float rounded, to bool whether it is not 0, of a complex number the real part. Integers wrap.
    Cast,
    /// The elements that the invocations of a WGSL kernel store, one each, at the row and column of their id.
    Kernel {
        /// The text.
        text: Arc<str>,
        /// The members of its uniforms by path, such as `grid.width` or `wave.number.0`, with the bits of a float64.
        uniforms: Vec<(&'static str, u64)>,
    },
    /// The elements of the axes from `from` on, combined.
    Reduce {
        /// The combination.
        by: Combination,
        /// The first axis that is reduced.
        from: usize,
    },
    /// The place, counted along the axes from `from` on, of the first greatest or least element; NaN wins over all numbers.
    Find {
        /// True for the least.
        least: bool,
        /// The first axis that is searched.
        from: usize,
    },
    /// A function of each row: the last axis.
    Rows(RowFunction),
    /// The product of matrices of floats, [batch.., m, k] and [batch.., k, n], in float32.
    Product,
    /// images, weights.
    Convolution(Conv2dShape),
}

impl Expression {
    /// Adds a node and returns its place.
    pub fn push(&mut self, part: Part, operands: Vec<usize>, shape: &[usize], dtype: DType) -> usize {
        self.nodes.push(Node { part, operands, shape: shape.to_vec(), dtype });
        self.nodes.len() - 1
    }

    /// Returns the number of floating-point operations: one for each element of a function, two for each term of a product.
    #[must_use]
    pub fn flops(&self) -> u64 {
        self.nodes.iter().map(|node| self.node_flops(node)).fold(0, u64::saturating_add)
    }

    fn node_flops(&self, node: &Node) -> u64 {
        let count = |shape: &[usize]| shape.iter().fold(1, |count: u64, &side| count.saturating_mul(side as u64));
        let operand = node.operands.first().and_then(|&place| self.nodes.get(place));
        let read = operand.map_or(&[][..], |operand| &operand.shape);
        match &node.part {
            Part::Function(_) | Part::Select | Part::Kernel { .. } => count(&node.shape),
            Part::Reduce { .. } | Part::Find { .. } | Part::Rows(_) => count(read),
            Part::Product => 2_u64
                .saturating_mul(count(&node.shape))
                .saturating_mul(count(read.split_at(read.len().saturating_sub(1)).1)),
            Part::Convolution(shape) => shape.flops(),
            _ => 0,
        }
    }
}
