//! Expressions as steps over elements, for devices that run such chains by means of their own.

use std::collections::HashMap;
use std::sync::Arc;

use super::node::{Node, Source, Typed, View};
use super::operation::Deferred;
use super::shape::{broadcast_strides, collapse, product};
use crate::backend::native::{CopyShape, ElementsShape, NativeOperation, One, RowFunction, Step, Two};
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::ops::elementwise::{Binary, Unary};
use crate::tensor::DType;

/// Steps and inputs, at most: longer chains are worth a kernel.
const MOST_STEPS: usize = 64;
const MOST_INPUTS: usize = 12;
/// Elements of a row, at least, where there is more than one row.
const SHORTEST: usize = 64;

/// The steps of an expression, and what they read.
#[derive(Default)]
struct Lowering {
    views: Vec<(Vec<usize>, usize)>,
    tensors: Vec<Tensor>,
}

/// The step of a function of one element.
fn one(op: Unary) -> Option<One> {
    Some(match op {
        Unary::Neg => One::Neg,
        Unary::Abs => One::Abs,
        Unary::Sign => One::Sign,
        Unary::Floor => One::Floor,
        Unary::Ceil => One::Ceil,
        Unary::Round => One::Round,
        Unary::Trunc => One::Trunc,
        Unary::Square => One::Square,
        Unary::Reciprocal => One::Reciprocal,
        Unary::Sqrt => One::Sqrt,
        Unary::Rsqrt => One::Rsqrt,
        Unary::Exp => One::Exp,
        Unary::Expm1 => One::Expm1,
        Unary::Log => One::Log,
        Unary::Log1p => One::Log1p,
        Unary::Sin => One::Sin,
        Unary::Cos => One::Cos,
        Unary::Tanh => One::Tanh,
        Unary::Relu => One::Relu,
        Unary::Relu6 => One::Relu6,
        Unary::Sigmoid => One::Sigmoid,
        Unary::Silu => One::Silu,
        Unary::Gelu => One::Gelu,
        Unary::GeluTanh => One::GeluTanh,
        Unary::Erf => One::Erf,
        Unary::Selu => One::Selu,
        Unary::Softplus => One::Softplus,
        Unary::LogSigmoid => One::LogSigmoid,
        Unary::HardSigmoid => One::HardSigmoid,
        Unary::HardSwish => One::HardSwish,
        Unary::IsNan => One::IsNan,
        Unary::LogicalNot => One::Not,
        _ => return None,
    })
}

/// The step of a function of two.
fn two(op: Binary) -> Option<Two> {
    Some(match op {
        Binary::Add => Two::Add,
        Binary::Sub => Two::Sub,
        Binary::Mul => Two::Mul,
        Binary::Div => Two::Div,
        Binary::Pow => Two::Pow,
        Binary::Min => Two::Min,
        Binary::Max => Two::Max,
        Binary::Elu => Two::Elu,
        Binary::LeakyRelu => Two::LeakyRelu,
        Binary::LogicalAnd => Two::And,
        Binary::LogicalOr => Two::Or,
        Binary::Eq => Two::Eq,
        Binary::Ne => Two::Ne,
        Binary::Lt => Two::Lt,
        Binary::Le => Two::Le,
        Binary::Gt => Two::Gt,
        Binary::Ge => Two::Ge,
        _ => return None,
    })
}

impl Lowering {
    /// The steps of an expression of a shape, or `None` where something of it is no step. `of` is what [`Step::Row`] stands for.
    fn steps(&mut self, typed: &Arc<Typed>, shape: &[usize], of: Option<&Arc<Deferred>>) -> Option<Vec<Step>> {
        let mut nodes = Vec::new();
        typed.walk(&mut |node| nodes.push(node.clone()));
        let mut steps: Vec<Step> = Vec::new();
        let mut known: HashMap<*const Typed, u16> = HashMap::new();
        for node in &nodes {
            let number = |child: &Arc<Typed>| known.get(&Arc::as_ptr(child)).copied();
            let is_number = node.dtype == DType::F32;
            let is_truth = node.dtype == DType::Bool;
            let step = match &node.node {
                Node::Read(view) if is_number => self.read(view, node, shape, of)?,
                Node::Constant(value) if is_number || is_truth => Step::Constant((*value as f32).to_bits()),
                Node::Unary(op, a) if is_number || is_truth => Step::One(one(*op)?, number(a)?),
                Node::Binary(op, a, b) if is_number || is_truth => Step::Two(two(*op)?, number(a)?, number(b)?),
                Node::Select(condition, a, b) if is_number || is_truth => {
                    Step::Choose(number(condition)?, number(a)?, number(b)?)
                }
                // Truths are numbers here.
                Node::Cast(a) if is_number && matches!(a.dtype, DType::F32 | DType::Bool) => {
                    known.insert(Arc::as_ptr(node), number(a)?);
                    continue;
                }
                _ => return None,
            };
            if steps.len() >= MOST_STEPS {
                return None;
            }
            known.insert(Arc::as_ptr(node), steps.len() as u16);
            steps.push(step);
        }
        // The last node is the expression itself; where that is a cast, its step is another's.
        let last = known.get(&Arc::as_ptr(typed)).copied()?;
        (usize::from(last) + 1 == steps.len()).then_some(steps)
    }

    fn read(&mut self, view: &View, node: &Typed, shape: &[usize], of: Option<&Arc<Deferred>>) -> Option<Step> {
        if let (Source::Deferred(deferred), Some(of)) = (&view.source, of)
            && Arc::ptr_eq(deferred, of)
        {
            // An epilogue reads its operation as it is.
            return Some(Step::Row);
        }
        let tensor = view.source.tensor().filter(|tensor| tensor.dtype() == DType::F32)?;
        let strides = broadcast_strides(&node.shape, &view.strides, shape);
        let same = |(place, other): (usize, &Tensor)| {
            Arc::ptr_eq(&other.inner, &tensor.inner) && self.views[place] == (strides.clone(), view.offset)
        };
        let number = match self.tensors.iter().enumerate().position(same) {
            Some(number) => number,
            None if self.tensors.len() < MOST_INPUTS => {
                self.views.push((strides, view.offset));
                self.tensors.push(tensor);
                self.tensors.len() - 1
            }
            None => return None,
        };
        Some(Step::Input(number as u16))
    }

    /// The axes, joined as far as may be; the last one stays for itself where rows are meant.
    fn views(&self, shape: &[usize], rows: bool) -> (Vec<usize>, Vec<CopyShape>) {
        let strides: Vec<Vec<usize>> = self.views.iter().map(|(strides, _)| strides.clone()).collect();
        let whole = crate::ops::expr::shape::contiguous(shape);
        let outer = shape.len() - usize::from(rows);
        let cut: Vec<Vec<usize>> = strides.iter().chain([&whole]).map(|view| view[..outer].to_vec()).collect();
        let mut joined = collapse(&shape[..outer], &cut);
        if rows {
            joined.shape.push(shape[outer]);
            joined.strides.iter_mut().zip(strides.iter().chain([&whole])).for_each(|(to, view)| to.push(view[outer]));
        }
        if joined.shape.is_empty() {
            joined.shape.push(1);
            joined.strides.iter_mut().for_each(|view| view.push(1));
        }
        let views = joined.strides.iter().zip(&self.views);
        let views = views.map(|(strides, (_, offset))| CopyShape::new(&joined.shape, strides, *offset)).collect();
        (joined.shape, views)
    }
}

/// Whether rows are long enough, and read in their order or not at all.
fn pays(sides: &[usize], views: &[CopyShape]) -> bool {
    let Some((&length, outer)) = sides.split_last() else { return false };
    let in_order = |view: &CopyShape| view.strides.last().is_some_and(|&stride| stride < 2);
    (length >= SHORTEST || product(outer) == 1) && views.iter().all(in_order)
}

/// Computes a chain of operations on float32 by the device's own means, where it has some.
pub(super) async fn computed(engine: &Engine, typed: &Arc<Typed>) -> Result<Option<Tensor>> {
    if typed.dtype != DType::F32 || typed.shape.contains(&0) || !engine.is_processors() {
        return Ok(None);
    }
    let mut lowering = Lowering::default();
    let Some(steps) = lowering.steps(typed, &typed.shape, None) else { return Ok(None) };
    let (sides, views) = lowering.views(&typed.shape, false);
    if lowering.tensors.is_empty() || !pays(&sides, &views) {
        return Ok(None);
    }
    let operation = NativeOperation::Elements(ElementsShape::new(&sides, views, steps));
    let tensors: Vec<&Tensor> = lowering.tensors.iter().collect();
    engine.native(operation, &tensors, (DType::F32, &typed.shape), "elementwise").await
}

/// The same for rows along the last axis of `input`, with what follows them.
pub(in crate::ops) async fn rows(
    engine: &Engine,
    function: RowFunction,
    input: &Arc<Typed>,
    of: Option<(&Arc<Typed>, &Arc<Deferred>)>,
    label: &str,
) -> Result<Option<Tensor>> {
    let shape = &input.shape;
    let is_float = |typed: &Typed| typed.dtype == DType::F32;
    if !is_float(input) || !of.is_none_or(|(typed, _)| is_float(typed)) || shape.contains(&0) || !engine.is_processors()
    {
        return Ok(None);
    }
    let mut lowering = Lowering::default();
    let Some(before) = lowering.steps(input, shape, None) else { return Ok(None) };
    let steps = match of {
        Some((typed, of)) => lowering.steps(typed, shape, Some(of)),
        None => Some(vec![Step::Row]),
    };
    let Some(steps) = steps else { return Ok(None) };
    let (sides, views) = lowering.views(shape, true);
    if lowering.tensors.is_empty() || !pays(&sides, &views) {
        return Ok(None);
    }
    let operation = NativeOperation::Elements(ElementsShape::new(&sides, views, steps).after_rows(function, before));
    let tensors: Vec<&Tensor> = lowering.tensors.iter().collect();
    engine.native(operation, &tensors, (DType::F32, shape), label).await
}
