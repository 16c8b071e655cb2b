//! Expressions as steps over elements, for devices that run such chains by means of their own.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::deferred::Deferred;
use super::node::{Node, Source, Typed, View};
use super::shape::{broadcast_strides, collapse, contiguous, product};
use super::view::permuted;
use crate::backend::native::{
    Combination, CopyShape, ElementsShape, NativeOperation, One, ReduceShape, RowFunction, Step, Two,
};
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::ops::elementwise::{Binary, Unary};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// Steps and inputs, at most: longer chains are worth a kernel.
const MOST_STEPS: usize = 64;
const MOST_INPUTS: usize = 12;
/// Elements of a row, at least, where there is more than one row and a kernel would do no more for each than for an element.
const SHORTEST: usize = 32;

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

/// What brings a whole number into the range of a dtype of one byte.
fn wrapping(dtype: DType) -> Option<One> {
    match dtype {
        DType::U8 => Some(One::Byte),
        DType::I8 => Some(One::SignedByte),
        _ => None,
    }
}

/// The whole numbers that a dtype has here; float32 has others beside them. `None` for dtypes that no step takes.
fn limits(dtype: DType) -> Option<Reach> {
    match dtype {
        DType::F32 => Some((0, 0)),
        DType::Bool => Some((0, 1)),
        DType::U8 => Some((0, 255)),
        DType::I8 => Some((-128, 127)),
        _ => None,
    }
}

fn is_byte(dtype: DType) -> bool {
    wrapping(dtype).is_some()
}

/// The least and the greatest number that a step of bytes may give.
type Reach = (i64, i64);

/// Float32 has all whole numbers up to here.
const EXACT: i64 = 1 << 24;

/// What a sum, difference or product of bytes reaches, where float32 has all of that.
fn reach(op: Binary, (a, b): Reach, (c, d): Reach) -> Option<Reach> {
    let (low, high) = match op {
        Binary::Add => (a + c, b + d),
        Binary::Sub => (a - d, b - c),
        Binary::Mul => {
            let all = [a * c, a * d, b * c, b * d];
            (all.into_iter().min()?, all.into_iter().max()?)
        }
        _ => return None,
    };
    (-EXACT <= low && high <= EXACT).then_some((low, high))
}

/// Steps, and what those of bytes reach: they wrap only where it shows.
#[derive(Default)]
struct Steps {
    all: Vec<Step>,
    reaches: Vec<Reach>,
    wrapped: HashMap<(u16, One), u16>,
}

impl Steps {
    fn add(&mut self, step: Step, reach: Reach) -> u16 {
        self.all.push(step);
        self.reaches.push(reach);
        (self.all.len() - 1) as u16
    }

    fn reach(&self, step: u16) -> Reach {
        self.reaches.get(usize::from(step)).copied().unwrap_or((i64::MIN, i64::MAX))
    }

    /// The step, or one that brings its number into the range of the dtype.
    fn within(&mut self, step: u16, dtype: DType) -> u16 {
        let (Some(wrap), Some((least, greatest))) = (wrapping(dtype), limits(dtype)) else { return step };
        let (low, high) = self.reach(step);
        if least <= low && high <= greatest {
            return step;
        }
        if let Some(&known) = self.wrapped.get(&(step, wrap)) {
            return known;
        }
        let wrapped = self.add(Step::One(wrap, step), (least, greatest));
        self.wrapped.insert((step, wrap), wrapped);
        wrapped
    }
}

/// The step of a function of elements of a dtype, which are float32 there: bytes have few.
fn one_of(op: Unary, dtype: DType) -> Option<One> {
    match (op, dtype) {
        (_, DType::F32) => one(op),
        (Unary::Neg | Unary::Abs | Unary::Sign | Unary::LogicalNot, DType::U8 | DType::I8) => one(op),
        (Unary::LogicalNot | Unary::BitwiseNot, DType::Bool) => Some(One::Not),
        _ => None,
    }
}

/// The same of two.
fn two_of(op: Binary, dtype: DType) -> Option<Two> {
    let is_comparison = matches!(op, Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge);
    match (op, dtype) {
        (_, DType::F32) => two(op),
        (Binary::BitwiseAnd | Binary::LogicalAnd | Binary::Min, DType::Bool) => Some(Two::And),
        (Binary::BitwiseOr | Binary::LogicalOr | Binary::Max, DType::Bool) => Some(Two::Or),
        (Binary::BitwiseXor | Binary::LogicalXor, DType::Bool) => Some(Two::Ne),
        (_, DType::Bool) if is_comparison => two(op),
        (Binary::Min | Binary::Max | Binary::LogicalAnd | Binary::LogicalOr, DType::U8 | DType::I8) => two(op),
        (Binary::Add | Binary::Sub | Binary::Mul, DType::U8 | DType::I8) => two(op),
        (_, DType::U8 | DType::I8) if is_comparison => two(op),
        _ => None,
    }
}

impl Lowering {
    /// The steps of an expression of a shape, or `None` where something of it is no step. `of` is what [`Step::Row`] stands for.
    fn steps(&mut self, typed: &Arc<Typed>, shape: &[usize], of: Option<&Arc<Deferred>>) -> Option<Vec<Step>> {
        let mut nodes = Vec::new();
        typed.walk(&mut |node| nodes.push(node.clone()));
        let mut steps = Steps::default();
        let mut known: HashMap<*const Typed, u16> = HashMap::new();
        for node in &nodes {
            let number = |child: &Arc<Typed>| known.get(&Arc::as_ptr(child)).copied();
            let limits = limits(node.dtype)?;
            let step = match &node.node {
                Node::Read(view) => {
                    let read = steps.add(self.read(view, node, shape, of)?, (0, 255));
                    if node.dtype == DType::I8 { steps.add(Step::One(One::SignedByte, read), limits) } else { read }
                }
                Node::Constant(value) => steps.add(Step::Constant((*value as f32).to_bits()), limits),
                Node::Unary(op, a) => {
                    let x = steps.within(number(a)?, a.dtype);
                    let (low, high) = limits;
                    steps.add(Step::One(one_of(*op, a.dtype)?, x), (low.min(-high), high.max(-low)))
                }
                Node::Binary(op, a, b) => {
                    let (x, y) = (number(a)?, number(b)?);
                    let step = two_of(*op, a.dtype)?;
                    let sums = || reach(*op, steps.reach(x), steps.reach(y));
                    match is_byte(a.dtype).then(sums).flatten() {
                        Some(reach) => steps.add(Step::Two(step, x, y), reach),
                        None => {
                            let (x, y) = (steps.within(x, a.dtype), steps.within(y, b.dtype));
                            let inside = reach(*op, steps.reach(x), steps.reach(y)).filter(|_| is_byte(a.dtype));
                            steps.add(Step::Two(step, x, y), inside.unwrap_or(limits))
                        }
                    }
                }
                Node::Select(condition, a, b) => {
                    let [x, y] = [(a, number(a)?), (b, number(b)?)].map(|(typed, x)| steps.within(x, typed.dtype));
                    let condition = steps.within(number(condition)?, condition.dtype);
                    steps.add(Step::Choose(condition, x, y), limits)
                }
                Node::Cast(a) => {
                    let from = number(a)?;
                    match (a.dtype, node.dtype) {
                        (DType::F32, DType::U8 | DType::I8) => return None,
                        (DType::U8, DType::I8) | (DType::I8, DType::U8) => from,
                        // Truths and bytes are numbers here.
                        (DType::Bool, DType::Bool) | (_, DType::F32 | DType::U8 | DType::I8) => {
                            steps.within(from, a.dtype)
                        }
                        _ => {
                            let (x, zero) = (steps.within(from, a.dtype), steps.add(Step::Constant(0), (0, 0)));
                            steps.add(Step::Two(Two::Ne, x, zero), limits)
                        }
                    }
                }
                Node::Gather { .. } | Node::Random { .. } => return None,
            };
            if steps.all.len() > MOST_STEPS {
                return None;
            }
            known.insert(Arc::as_ptr(node), step);
        }
        let steps = steps.all;
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
        let tensor = view.source.tensor().filter(|tensor| tensor.dtype() == node.dtype)?;
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

    /// The axes, joined as far as may be, but none of those before `cut` with one behind it.
    fn views(&self, shape: &[usize], cut: usize) -> (Vec<usize>, Vec<CopyShape>) {
        let whole = contiguous(shape);
        let strides: Vec<&Vec<usize>> = self.views.iter().map(|(strides, _)| strides).chain([&whole]).listed();
        let part = |axes: Range<usize>| {
            let views: Vec<Vec<usize>> = strides.iter().map(|view| view[axes.clone()].to_vec()).listed();
            collapse(&shape[axes], &views)
        };
        let (mut joined, last) = (part(0..cut), part(cut..shape.len()));
        joined.shape.extend(&last.shape);
        joined.strides.iter_mut().zip(&last.strides).for_each(|(to, view)| to.extend(view));
        if last.shape.is_empty() && (cut < shape.len() || joined.shape.is_empty()) {
            joined.shape.push(1);
            joined.strides.iter_mut().for_each(|view| view.push(1));
        }
        let views = joined.strides.iter().zip(&self.views).zip(&self.tensors);
        let views = views
            .map(|((strides, (_, offset)), tensor)| {
                CopyShape::new(&joined.shape, strides, *offset).of_bytes(tensor.dtype().bytes())
            })
            .listed();
        (joined.shape, views)
    }
}

/// Whether rows are long enough, and read in their order or not at all.
fn pays(sides: &[usize], views: &[CopyShape], shortest: usize) -> bool {
    let Some((&length, outer)) = sides.split_last() else { return false };
    let in_order = |view: &CopyShape| view.strides.last().is_some_and(|&stride| stride < 2);
    (length >= shortest || product(outer) == 1) && views.iter().all(in_order)
}

/// Computes a chain of operations on float32, bytes and truths by the device's own means, where it has some.
pub(super) async fn computed(engine: &Engine, typed: &Arc<Typed>) -> Result<Option<Tensor>> {
    let is_taken = [DType::F32, DType::Bool, DType::U8, DType::I8].contains(&typed.dtype);
    if !is_taken || typed.shape.contains(&0) || !engine.is_processors() {
        return Ok(None);
    }
    let mut lowering = Lowering::default();
    let Some(steps) = lowering.steps(typed, &typed.shape, None) else { return Ok(None) };
    let (sides, views) = lowering.views(&typed.shape, typed.shape.len());
    if lowering.tensors.is_empty() || !pays(&sides, &views, SHORTEST) {
        return Ok(None);
    }
    let shape = ElementsShape::new(&sides, views, steps).to_bytes(typed.dtype.bytes());
    let tensors: Vec<&Tensor> = lowering.tensors.iter().listed();
    engine.native(NativeOperation::Elements(shape), &tensors, (typed.dtype, &typed.shape), "elementwise").await
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
    let (sides, views) = lowering.views(shape, shape.len() - 1);
    if lowering.tensors.is_empty() || !pays(&sides, &views, 1) {
        return Ok(None);
    }
    let operation = NativeOperation::Elements(ElementsShape::new(&sides, views, steps).after_rows(function, before));
    let tensors: Vec<&Tensor> = lowering.tensors.iter().listed();
    engine.native(operation, &tensors, (DType::F32, shape), label).await
}

/// A reduction of the axes from `from` on by the device's own means, where it has some. `shape` is the result's.
pub(in crate::ops) async fn reduced(
    engine: &Engine,
    typed: &Arc<Typed>,
    from: usize,
    by: Combination,
    shape: &[usize],
) -> Result<Option<Tensor>> {
    let rank = typed.shape.len();
    if typed.dtype != DType::F32 || typed.shape.contains(&0) || from == rank || !engine.is_processors() {
        return Ok(None);
    }
    // Axes that stay go behind the others where memory lies so.
    let behind = behind(typed, from);
    let order: Vec<usize> = (0..behind).chain(from..rank).chain(behind..from).listed();
    let arranged = permuted(typed, &order);
    let mut lowering = Lowering::default();
    let Some(steps) = lowering.steps(&arranged, &arranged.shape, None) else { return Ok(None) };
    let down_columns = behind < from;
    let cut = if down_columns { rank - (from - behind) } else { from };
    let (sides, views) = lowering.views(&arranged.shape, cut);
    let inner = product(&arranged.shape[cut..]);
    if lowering.tensors.is_empty() || !pays(&sides, &views, 1) || down_columns && sides.last() != Some(&inner) {
        return Ok(None);
    }
    let elements = ElementsShape::new(&sides, views, steps);
    let outer = product(&arranged.shape[..behind]);
    let operation = NativeOperation::Reduce(ReduceShape::new(elements, outer, down_columns, by));
    let tensors: Vec<&Tensor> = lowering.tensors.iter().listed();
    engine.native(operation, &tensors, (DType::F32, shape), "reduce").await
}

/// The first of the axes before `from` that lies closer together than the axes behind do, in most of the memory that is read.
fn behind(typed: &Arc<Typed>, from: usize) -> usize {
    let (mut first, mut most) = (from, 0);
    typed.walk(&mut |node| {
        let Node::Read(view) = &node.node else { return };
        if node.shape != typed.shape || matches!(view.source, Source::Indices) {
            return;
        }
        let steps = |axes: Range<usize>| {
            let sides = node.shape[axes.clone()].iter().zip(&view.strides[axes]);
            sides.filter(|(side, stride)| **side > 1 && **stride > 0).map(|(side, stride)| (*side, *stride)).listed()
        };
        let all: Vec<(usize, usize)> = steps(0..node.shape.len());
        let read = all.iter().fold(1, |product: usize, (side, _)| product.saturating_mul(*side));
        let farthest = steps(from..node.shape.len()).iter().map(|(_, stride)| *stride).max();
        if let Some(farthest) = farthest.filter(|_| read > most) {
            let far =
                |axis: &usize| node.shape[*axis] < 2 || view.strides[*axis] == 0 || view.strides[*axis] > farthest;
            (first, most) = ((0..from).find(|axis| !far(axis)).unwrap_or(from), read);
        }
    });
    first
}
