//! Reductions, functions of rows, products and convolutions as nodes of a graph.

use super::check::count;
use super::function::Item;
use super::{Lowered, Lowering, refused};
use crate::backend::expression::{Node, Part};
use crate::backend::native::{Combination, RowFunction};
use crate::simulate::contiguous;
use crate::tensor::DType;
use crate::{Binary, Compare, Convolution, Fold, Graph, Unary, Value};
use cantus_base::listed::Listed;

impl Lowering<'_> {
    pub(super) fn operation(&mut self, node: &Node) -> Lowered<Item> {
        let item = match &node.part {
            Part::Reduce { by, from } => self.reduce(node, *by, *from)?,
            Part::Find { least, from } => Item::One(self.found(node, *least, *from)?),
            Part::Rows(function) => Item::One(self.rows(node, *function)?),
            Part::Product => {
                let (a, b) = (self.single(node, 0)?, self.single(node, 1)?);
                Item::One(self.graph.dot(a, b))
            }
            Part::Convolution(shape) => {
                let (x, w) = (self.single(node, 0)?, self.single(node, 1)?);
                let (stride, padding, dilation, groups) = (shape.stride, shape.padding, shape.dilation, shape.groups);
                let window = Convolution { stride, padding, dilation, groups };
                Item::One(self.graph.convolution(x, w, window, shape.output))
            }
            _ => return refused("such an operation"),
        };
        // A reduction keeps its axes or drops them, a product with a vector has no axis for it.
        item.with(&item, &mut |value, _| {
            if count(self.graph.shape(value)) != count(&node.shape) {
                return refused("operands of such sizes");
            }
            Ok(self.graph.reshape(value, &node.shape))
        })
    }

    fn reduce(&mut self, node: &Node, by: Combination, from: usize) -> Lowered<Item> {
        let (operand, read) = self.operand(node, 0)?;
        let axes: Vec<usize> = (from..read.shape.len()).listed();
        let fold = match by {
            Combination::Sum => Fold::Sum,
            Combination::Product => Fold::Prod,
            Combination::Greatest => Fold::Max,
            Combination::Least => Fold::Min,
        };
        let x = self.whole(operand)?;
        if matches!(x, Item::Many(_)) && fold != Fold::Sum {
            return refused("the product or the greatest of complex numbers");
        }
        Ok(x.each(&mut |x| self.graph.reduce(fold, x, &axes)))
    }

    /// The least place among those whose element is the best; NaN is better than all.
    fn found(&mut self, node: &Node, least: bool, from: usize) -> Lowered<Value> {
        let (x, (_, read)) = (self.single(node, 0)?, self.operand(node, 0)?);
        let (shape, graph) = (&read.shape, &mut self.graph);
        let axes: Vec<usize> = (from..shape.len()).listed();
        let best = graph.reduce(if least { Fold::Min } else { Fold::Max }, x, &axes);
        let kept: Vec<usize> = (0..from).listed();
        let best = graph.broadcast(best, &kept, shape);
        let (same, nan, all) = (
            graph.compare(Compare::Eq, x, best),
            graph.compare(Compare::Ne, x, x),
            graph.compare(Compare::Ne, best, best),
        );
        let nan = graph.binary(Binary::And, nan, all);
        let is_best = graph.binary(Binary::Or, same, nan);
        let strides = contiguous(&shape[from..]);
        let mut place = graph.constant(0, DType::U32);
        for (&axis, stride) in axes.iter().zip(strides) {
            let (along, stride) = (graph.iota(axis, DType::U32, shape), graph.integer(stride as i64, DType::U32));
            let step = graph.binary(Binary::Multiply, along, stride);
            place = graph.binary(Binary::Add, place, step);
        }
        let none = graph.integer(i64::from(u32::MAX), DType::U32);
        let places = graph.select(is_best, place, none);
        Ok(graph.reduce(Fold::Min, places, &axes))
    }

    fn rows(&mut self, node: &Node, function: RowFunction) -> Lowered<Value> {
        let (x, (_, read)) = (self.single(node, 0)?, self.operand(node, 0)?);
        let (shape, graph) = (&read.shape, &mut self.graph);
        let Some((last, &length)) = shape.len().checked_sub(1).zip(shape.last()) else { return refused("no rows") };
        let kept: Vec<usize> = (0..last).listed();
        let along = |graph: &mut Graph, fold: Fold, x: Value| {
            let total = graph.reduce(fold, x, &[last]);
            graph.broadcast(total, &kept, shape)
        };
        let count = graph.float(length as f64, DType::F32);
        let (centred, eps) = match function {
            RowFunction::Softmax | RowFunction::LogSoftmax => {
                let greatest = along(graph, Fold::Max, x);
                let centred = graph.binary(Binary::Subtract, x, greatest);
                let power = graph.unary(Unary::Exp, centred);
                let total = along(graph, Fold::Sum, power);
                if function == RowFunction::Softmax {
                    return Ok(graph.binary(Binary::Divide, power, total));
                }
                let shift = graph.unary(Unary::Log, total);
                return Ok(graph.binary(Binary::Subtract, centred, shift));
            }
            RowFunction::LayerNorm(eps) => {
                let sum = along(graph, Fold::Sum, x);
                let mean = graph.binary(Binary::Divide, sum, count);
                (graph.binary(Binary::Subtract, x, mean), eps)
            }
            RowFunction::RmsNorm(eps) => (x, eps),
        };
        let square = graph.binary(Binary::Multiply, centred, centred);
        let squares = along(graph, Fold::Sum, square);
        let mean = graph.binary(Binary::Divide, squares, count);
        let eps = graph.constant(u64::from(eps), DType::F32);
        let mean = graph.binary(Binary::Add, mean, eps);
        let root = graph.unary(Unary::Sqrt, mean);
        Ok(graph.binary(Binary::Divide, centred, root))
    }
}
