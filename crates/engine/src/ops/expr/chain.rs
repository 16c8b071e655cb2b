//! Expressions as steps over elements, for devices that run such chains natively. `evaluate` asks for whole expressions (`computed`) and for groups
//! (`together`). Reductions and norms ask for the steps before and after a row (`reduced`, `rows`). `crates/cpu/src/chain.rs` runs them. The range of each
//! number of a byte is known (`Reach`), so a sum of bytes wraps only where it may leave the range. `None` means a kernel.

mod complex;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::complex::{is_complex, part_of};
use super::deferred::Deferred;
use super::evaluate::{turned, unrolled};
use super::node::{Node, Source, Typed, View};
use super::roll::Rolled;
use super::schedule::Schedule;
use super::shape::{Collapsed, broadcast_strides, collapse, contiguous, product};
use super::view::permuted;
use crate::backend::native::{
    Combination, CopyShape, ElementsShape, NativeOperation, Number, One, ReduceShape, Roll, RowFunction, Step, Two,
};
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::ops::elementwise::{Binary, Unary};
use crate::ops::tensor::number;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// Steps and inputs, at most: longer chains are worth a kernel.
const MOST_STEPS: usize = 96;
const MOST_INPUTS: usize = 12;
/// The processor takes many rows at a time if they have fewer than `SHORT` elements and the view has at most `MOST_AXES` axes.
const SHORT: usize = 64;
const MOST_AXES: usize = 8;
/// Inputs whose elements are fewer than this apart along a row are read in place: a cache line has several of them.
const NEAR: usize = 8;

/// The steps of an expression, and what they read.
#[derive(Default)]
struct Lowering {
    views: Vec<(Vec<usize>, usize)>,
    tensors: Vec<Tensor>,
    /// Views of places.
    places: Vec<(Vec<usize>, usize)>,
    /// The rolls of views, with the number of each view.
    rolls: Vec<(usize, Roll)>,
    /// Lanes have 64 bits: float64 and words. Numbers of 32 bits are only read, converted and written.
    wide: bool,
    /// Where the expression is complex, the step of its real part; the last step is the imaginary one.
    pair: Option<u16>,
}

/// The views of inputs, in joined axes.
struct Views {
    sides: Vec<usize>,
    inputs: Vec<CopyShape>,
    places: Vec<CopyShape>,
    rolls: Vec<Roll>,
    wide: bool,
    pair: Option<u16>,
}

impl Views {
    fn shape(self, steps: Vec<Step>) -> ElementsShape {
        let shape = ElementsShape::new(&self.sides, self.inputs, steps);
        shape.with_places(self.places).with_rolls(self.rolls).widely(self.wide).in_pairs(self.pair)
    }

    /// Returns whether inputs are in reading order or nearly so, or rows are so short that they are taken several at a time.
    fn pays(&self, row: bool) -> bool {
        let Some((&length, outer)) = self.sides.split_last() else { return false };
        let near = |view: &CopyShape| view.strides.last().is_some_and(|&stride| stride < if row { 2 } else { NEAR });
        let short = !row && length < SHORT && product(outer) > 1 && self.sides.len() <= MOST_AXES;
        short || self.inputs.iter().all(near)
    }
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
        Binary::Hypot => Two::Hypot,
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

/// Returns the function that brings a whole number into the range of a dtype of one byte.
fn wrapping(dtype: DType) -> Option<One> {
    match dtype {
        DType::U8 => Some(One::Byte),
        DType::I8 => Some(One::SignedByte),
        _ => None,
    }
}

/// Returns the range of a dtype whose elements are small whole numbers, and an empty one, which nothing reads, for floats and words. `None` for dtypes
/// that no step takes.
fn limits(dtype: DType, wide: bool) -> Option<Reach> {
    match dtype {
        DType::F32 | DType::I32 | DType::U32 => Some((0, 0)),
        DType::F64 | DType::I64 | DType::U64 if wide => Some((0, 0)),
        DType::Bool => Some((0, 1)),
        DType::U8 => Some((0, 255)),
        DType::I8 => Some((-128, 127)),
        _ => None,
    }
}

fn is_taken(dtype: DType, wide: bool) -> bool {
    limits(dtype, wide).is_some()
}

fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::I64 | DType::U64 | DType::Complex128)
}

/// Returns whether an expression computes with 64 bits.
fn has_wide(typed: &Arc<Typed>) -> bool {
    let mut found = false;
    typed.walk(&mut |node| found |= is_wide(node.dtype));
    found
}

/// Returns the 32-bit dtype that has the same steps as a dtype. In a wide chain only dtypes of 64 bits have one.
fn as_narrow(dtype: DType, wide: bool) -> Option<DType> {
    match dtype {
        DType::F64 if wide => Some(DType::F32),
        DType::I64 if wide => Some(DType::I32),
        DType::U64 if wide => Some(DType::U32),
        DType::F32 | DType::I32 | DType::U32 if wide => None,
        other => Some(other),
    }
}

fn is_byte(dtype: DType) -> bool {
    wrapping(dtype).is_some()
}

/// The least and the greatest number that a step of bytes may give.
type Reach = (i64, i64);

/// Float32 has all whole numbers up to here.
const EXACT: i64 = 1 << 24;

/// Returns the range of a sum, difference or product of bytes, if float32 holds all of it.
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

/// Steps, and the range of each step of bytes. A step is wrapped only when its range would show in the result.
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
        // Any byte but 0 is true.
        let is_truth = dtype == DType::Bool;
        let wrap = if is_truth { Some(One::Not) } else { wrapping(dtype) };
        let (Some(wrap), Some((least, greatest))) = (wrap, limits(dtype, false)) else { return step };
        let (low, high) = self.reach(step);
        if least <= low && high <= greatest {
            return step;
        }
        if let Some(&known) = self.wrapped.get(&(step, wrap)) {
            return known;
        }
        let wrapped = if is_truth {
            let zero = self.add(Step::Constant(0), (0, 0));
            self.add(Step::Two(Two::Ne, step, zero), (least, greatest))
        } else {
            self.add(Step::One(wrap, step), (least, greatest))
        };
        self.wrapped.insert((step, wrap), wrapped);
        wrapped
    }

    /// The number of a step in another dtype, where one has 64 bits or neither has more than one byte.
    fn wide_cast(&mut self, x: u16, from: DType, to: DType) -> Option<u16> {
        use DType::{Bool, F32, F64, I8, I32, I64, U8, U32, U64};
        let limits = limits(to, true)?;
        Some(match (from, to) {
            (F32 | I32 | U32, F32 | I32 | U32) => return None,
            (F32, _) => {
                let x = self.add(Step::One(One::OfSingle, x), (0, 0));
                if to == F64 { x } else { self.wide_cast(x, F64, to)? }
            }
            (I32, _) => {
                let x = self.add(Step::One(One::OfLowWord, x), (0, 0));
                if is_wide(to) && to != F64 { x } else { self.wide_cast(x, I64, to)? }
            }
            (U32, I64 | U64) => x,
            (U32, _) => self.wide_cast(x, U64, to)?,
            (F64, F32) => self.add(Step::One(One::ToSingle, x), limits),
            (I64, F32) => self.add(Step::One(One::SignedToSingle, x), limits),
            (U64, F32) => self.add(Step::One(One::UnsignedToSingle, x), limits),
            (I64 | U64, I32 | U32) => self.add(Step::One(One::LowWord, x), limits),
            (Bool | I8 | U8, F32 | I32 | U32) => {
                let between = if to == F32 { F64 } else { I64 };
                let x = self.wide_cast(x, from, between)?;
                self.wide_cast(x, between, to)?
            }
            (_, F32 | I32 | U32) => return None,
            _ => {
                let narrow = |dtype: DType| as_narrow(dtype, true);
                debug_assert!(matches!(to, Bool | I8 | U8 | F64 | I64 | U64));
                self.cast(x, narrow(from)?, narrow(to)?)?
            }
        })
    }

    /// The number of a step in another dtype.
    fn cast(&mut self, x: u16, from: DType, to: DType) -> Option<u16> {
        let limits = limits(to, false)?;
        Some(match (from, to) {
            (DType::F32, DType::U8) => self.add(Step::One(One::SaturatedToByte, x), limits),
            (DType::F32, DType::I8) => self.add(Step::One(One::SaturatedToSignedByte, x), limits),
            (DType::U8, DType::I8) | (DType::I8, DType::U8) | (DType::I32 | DType::U32, DType::I32 | DType::U32) => x,
            (DType::F32, DType::I32) => self.add(Step::One(One::SaturatedToSigned, x), limits),
            (DType::F32, DType::U32) => self.add(Step::One(One::SaturatedToUnsigned, x), limits),
            (_, DType::I32 | DType::U32) => {
                let x = self.within(x, from);
                self.add(Step::One(One::ToWord, x), limits)
            }
            (DType::I32, DType::F32) => self.add(Step::One(One::OfSigned, x), limits),
            (DType::U32, DType::F32) => self.add(Step::One(One::OfUnsigned, x), limits),
            // The first half of the bytes is above what i8 has: it wraps where that shows.
            (DType::I32 | DType::U32, DType::U8 | DType::I8) => self.add(Step::One(One::LowByte, x), (0, 255)),
            (DType::I32 | DType::U32, DType::Bool) => {
                let zero = self.add(Step::Constant(0), (0, 0));
                self.add(Step::Two(Two::WordNe, x, zero), limits)
            }
            // Truths and bytes are numbers here.
            (DType::Bool, DType::Bool) | (_, DType::F32 | DType::U8 | DType::I8) => self.within(x, from),
            _ => {
                let (x, zero) = (self.within(x, from), self.add(Step::Constant(0), (0, 0)));
                self.add(Step::Two(Two::Ne, x, zero), limits)
            }
        })
    }
}

/// The step of a function of elements of a dtype, which are float32 there: bytes have few.
fn one_of(op: Unary, dtype: DType) -> Option<One> {
    match (op, dtype) {
        (_, DType::F32) => one(op),
        (Unary::Neg | Unary::Abs | Unary::Sign | Unary::LogicalNot, DType::U8 | DType::I8) => one(op),
        (Unary::LogicalNot | Unary::BitwiseNot, DType::Bool) => Some(One::Not),
        (Unary::BitwiseNot, DType::I32 | DType::U32) => Some(One::WordNot),
        (Unary::Neg, DType::I32) => Some(One::WordNeg),
        (Unary::Abs, DType::I32) => Some(One::WordAbs),
        (Unary::Sign, DType::I32) => Some(One::WordSign),
        _ => None,
    }
}

/// Returns the function of two elements.
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
        (_, DType::I32 | DType::U32) => two_of_words(op, dtype == DType::I32),
        _ => None,
    }
}

/// Returns the function of two words.
fn two_of_words(op: Binary, signed: bool) -> Option<Two> {
    let by_sign = |[one, other]: [Two; 2]| if signed { one } else { other };
    Some(match op {
        Binary::Add => Two::WordAdd,
        Binary::Sub => Two::WordSub,
        Binary::Mul => Two::WordMul,
        Binary::BitwiseAnd => Two::WordAnd,
        Binary::BitwiseOr => Two::WordOr,
        Binary::BitwiseXor => Two::WordXor,
        Binary::Min => by_sign([Two::SignedMin, Two::UnsignedMin]),
        Binary::Max => by_sign([Two::SignedMax, Two::UnsignedMax]),
        Binary::FloorDivide => by_sign([Two::SignedQuotient, Two::UnsignedQuotient]),
        Binary::Remainder => by_sign([Two::SignedRemainder, Two::UnsignedRemainder]),
        Binary::Fmod => by_sign([Two::SignedRest, Two::UnsignedRemainder]),
        Binary::Eq => Two::WordEq,
        Binary::Ne => Two::WordNe,
        // `a > b` is `b < a`.
        Binary::Lt | Binary::Gt => by_sign([Two::SignedLt, Two::UnsignedLt]),
        Binary::Le | Binary::Ge => by_sign([Two::SignedLe, Two::UnsignedLe]),
        _ => return None,
    })
}

fn is_word(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::U32)
}

/// The steps of several expressions.
#[derive(Default)]
struct Chain {
    steps: Steps,
    known: FxHashMap<*const Typed, u16>,
    /// The imaginary parts of complex ones, of which `known` has the real parts.
    imaginary: FxHashMap<*const Typed, u16>,
    /// Values that the same operation computes.
    values: FxHashMap<*const Deferred, u16>,
}

/// Returns the step of a value that the same operation computes, if it is read in its own order.
fn value_read(values: &FxHashMap<*const Deferred, u16>, view: &View, node: &Typed) -> Option<u16> {
    let Source::Deferred(deferred) = &view.source else { return None };
    let step = values.get(&Arc::as_ptr(deferred)).copied()?;
    let plain = view.offset == 0 && node.shape == deferred.shape && view.strides == contiguous(&node.shape);
    plain.then_some(step)
}

impl Lowering {
    /// The steps of an expression of a shape, or `None` if a part of it has no step. `of` is what [`Step::Row`] stands for.
    fn steps(&mut self, typed: &Arc<Typed>, shape: &[usize], of: Option<&Arc<Deferred>>) -> Option<Vec<Step>> {
        let mut chain = Chain::default();
        let last = self.extend(&mut chain, typed, shape, of)?;
        if let Some(&imaginary) = chain.imaginary.get(&Arc::as_ptr(typed)) {
            let is_last = usize::from(imaginary) + 1 == chain.steps.all.len() && imaginary != last;
            if !is_last {
                chain.steps.last(imaginary, self.wide);
            }
            self.pair = Some(last);
        } else if is_complex(typed.dtype) {
            return None;
        } else if !chain.imaginary.is_empty() && usize::from(last) + 1 < chain.steps.all.len() {
            // A part of a complex number may come before the other one's steps.
            chain.steps.last(last, self.wide);
            return Some(chain.steps.all);
        }
        if self.pair.is_some() {
            return Some(chain.steps.all);
        }
        // The last node is the expression itself. If it is a cast, its step may be an earlier one.
        (usize::from(last) + 1 == chain.steps.all.len()).then_some(chain.steps.all)
    }

    /// Adds the steps of an expression to those of others; says which one is its own.
    fn extend(
        &mut self,
        chain: &mut Chain,
        typed: &Arc<Typed>,
        shape: &[usize],
        of: Option<&Arc<Deferred>>,
    ) -> Option<u16> {
        let mut nodes = Vec::new();
        typed.walk_new(&chain.known, &mut nodes);
        let wide = self.wide;
        for node in &nodes {
            if complex::concerns(node) {
                let (step, imaginary) = self.complex(chain, node, shape)?;
                if chain.steps.all.len() > MOST_STEPS {
                    return None;
                }
                chain.known.insert(Arc::as_ptr(node), step);
                chain.imaginary.extend(imaginary.map(|step| (Arc::as_ptr(node), step)));
                continue;
            }
            let Chain { steps, known, values, .. } = &mut *chain;
            let number = |child: &Arc<Typed>| known.get(&Arc::as_ptr(child)).copied();
            let limits = limits(node.dtype, wide)?;
            let narrow = |dtype: DType| as_narrow(dtype, wide);
            let step = match &node.node {
                Node::Read(view) if let Some(step) = value_read(values, view, node) => step,
                Node::Read(_) | Node::Gather { .. } => {
                    let read = match &node.node {
                        Node::Read(view) => self.read(view, node, shape, of)?,
                        _ => self.read_rolled(&node.rolled()?, node, shape)?,
                    };
                    let read = steps.add(read, (0, 255));
                    if node.dtype == DType::I8 { steps.add(Step::One(One::SignedByte, read), limits) } else { read }
                }
                Node::Constant(value) if node.dtype == DType::U64 => {
                    steps.add(Step::WideConstant(*value as u64), limits)
                }
                Node::Constant(value) if node.dtype == DType::I64 => {
                    steps.add(Step::WideConstant((*value as i64).cast_unsigned()), limits)
                }
                Node::Constant(value) if wide && !is_word(node.dtype) && node.dtype != DType::F32 => {
                    steps.add(Step::WideConstant(value.to_bits()), limits)
                }
                Node::Constant(value) if is_word(node.dtype) => steps.add(Step::Constant(*value as i64 as u32), limits),
                Node::Constant(value) => steps.add(Step::Constant((*value as f32).to_bits()), limits),
                Node::Unary(op, a) => {
                    let x = steps.within(number(a)?, a.dtype);
                    let (low, high) = limits;
                    steps.add(Step::One(one_of(*op, narrow(a.dtype)?)?, x), (low.min(-high), high.max(-low)))
                }
                Node::Binary(op, a, b) => {
                    let (x, y) = (number(a)?, number(b)?);
                    let of = narrow(a.dtype)?;
                    let step = two_of(*op, of)?;
                    let sums = || reach(*op, steps.reach(x), steps.reach(y));
                    match is_byte(a.dtype).then(sums).flatten() {
                        Some(reach) => steps.add(Step::Two(step, x, y), reach),
                        None => {
                            let (x, y) = (steps.within(x, a.dtype), steps.within(y, b.dtype));
                            let turned = is_word(of) && matches!(op, Binary::Gt | Binary::Ge);
                            let (x, y) = if turned { (y, x) } else { (x, y) };
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
                Node::Cast(a) if wide => steps.wide_cast(number(a)?, a.dtype, node.dtype)?,
                Node::Cast(a) => steps.cast(number(a)?, a.dtype, node.dtype)?,
                Node::Random { .. } => return None,
            };
            if steps.all.len() > MOST_STEPS {
                return None;
            }
            known.insert(Arc::as_ptr(node), step);
        }
        chain.known.get(&Arc::as_ptr(typed)).copied()
    }

    fn read(&mut self, view: &View, node: &Typed, shape: &[usize], of: Option<&Arc<Deferred>>) -> Option<Step> {
        if let (Source::Deferred(deferred), Some(of)) = (&view.source, of)
            && Arc::ptr_eq(deferred, of)
        {
            // An epilogue reads its operation as it is.
            return Some(Step::Row);
        }
        if let Source::Indices = view.source {
            let place = (broadcast_strides(&node.shape, &view.strides, shape), view.offset);
            let known = self.places.iter().position(|known| *known == place);
            let number = known.unwrap_or_else(|| {
                self.places.push(place);
                self.places.len() - 1
            });
            return u16::try_from(number).ok().map(Step::Place);
        }
        let strides = broadcast_strides(&node.shape, &view.strides, shape);
        self.input(&view.source, node.dtype, (strides, view.offset), None).map(Step::Input)
    }

    fn read_rolled(&mut self, rolled: &Rolled<'_>, node: &Typed, shape: &[usize]) -> Option<Step> {
        let strides = broadcast_strides(&node.shape, &rolled.strides, shape);
        let before = shape.len() - node.shape.len();
        let roll = rolled.roll.map(|roll| roll.along(before + roll.axis));
        if roll.is_some_and(|roll| shape[roll.axis] != node.shape[roll.axis - before]) {
            return None;
        }
        let input = self.input(rolled.source, node.dtype, (strides, rolled.offset), roll)?;
        let number = self.rolls.iter().position(|(view, _)| *view == usize::from(input));
        Some(number.map_or(Step::Input(input), |number| Step::Rolled(input, number as u16)))
    }

    /// Returns the number of an input, which is a view of a tensor.
    fn input(&mut self, source: &Source, dtype: DType, view: (Vec<usize>, usize), roll: Option<Roll>) -> Option<u16> {
        let tensor = source.tensor().filter(|tensor| tensor.dtype() == dtype)?;
        self.known_input(&tensor, view, roll)
    }

    /// The number of a view of a tensor, in steps of its parts where it is complex.
    fn known_input(&mut self, tensor: &Tensor, view: (Vec<usize>, usize), roll: Option<Roll>) -> Option<u16> {
        let roll_of = |view: usize| self.rolls.iter().find(|(of, _)| *of == view).map(|(_, roll)| *roll);
        let same = |(place, other): (usize, &Tensor)| {
            Arc::ptr_eq(&other.inner, &tensor.inner) && self.views[place] == view && roll_of(place) == roll
        };
        let number = match self.tensors.iter().enumerate().position(same) {
            Some(number) => number,
            None if self.tensors.len() < MOST_INPUTS => {
                self.rolls.extend(roll.map(|roll| (self.views.len(), roll)));
                self.views.push(view);
                self.tensors.push(tensor.clone());
                self.tensors.len() - 1
            }
            None => return None,
        };
        u16::try_from(number).ok()
    }

    /// The axes, joined where possible. Axes before `cut` are not joined with later ones, and rolled axes are not joined.
    fn views(&self, shape: &[usize], cut: usize) -> Views {
        let whole = contiguous(shape);
        let all = self.views.iter().chain(&self.places);
        let strides: Vec<&Vec<usize>> = all.map(|(strides, _)| strides).chain([&whole]).listed();
        let part = |axes: Range<usize>| {
            let views: Vec<Vec<usize>> = strides.iter().map(|view| view[axes.clone()].to_vec()).listed();
            collapse(&shape[axes], &views)
        };
        let is_rolled = |axis: usize| self.rolls.iter().any(|(_, roll)| roll.axis == axis);
        let mut bounds = (0..shape.len()).filter(|&axis| is_rolled(axis)).flat_map(|axis| [axis, axis + 1]).listed();
        bounds.extend([0, cut, shape.len()]);
        bounds.sort_unstable();
        bounds.dedup();
        let mut joined = Collapsed { shape: Vec::new(), strides: vec![Vec::new(); strides.len()] };
        let (mut rolls, mut before_cut) = (Vec::new(), 0);
        for bound in bounds.windows(2) {
            let &[from, to] = bound else { continue };
            let part = if is_rolled(from) {
                rolls.push((from, joined.shape.len()));
                Collapsed { shape: vec![shape[from]], strides: strides.iter().map(|view| vec![view[from]]).listed() }
            } else {
                part(from..to)
            };
            joined.shape.extend(&part.shape);
            joined.strides.iter_mut().zip(&part.strides).for_each(|(to, view)| to.extend(view));
            if to <= cut {
                before_cut = joined.shape.len();
            }
        }
        if before_cut == joined.shape.len() && (cut < shape.len() || before_cut == 0) {
            joined.shape.push(1);
            joined.strides.iter_mut().for_each(|view| view.push(1));
        }
        let along = |roll: &Roll| rolls.iter().find(|(axis, _)| *axis == roll.axis).map(|(_, axis)| roll.along(*axis));
        let mut rolls = self.rolls.iter().filter_map(|(_, roll)| along(roll)).listed();
        joined_behind(&mut joined, &mut rolls, before_cut);
        let (of_tensors, of_places) = joined.strides.split_at(self.views.len());
        let views = of_tensors.iter().zip(&self.views).zip(&self.tensors);
        let inputs = views
            .map(|((strides, (_, offset)), tensor)| {
                CopyShape::new(&joined.shape, strides, *offset).of_bytes(part_of(tensor.dtype()).bytes())
            })
            .listed();
        let places = of_places.iter().zip(&self.places);
        let places = places.map(|(strides, (_, offset))| CopyShape::new(&joined.shape, strides, *offset)).listed();
        Views { sides: joined.shape, inputs, places, rolls, wide: self.wide, pair: self.pair }
    }
}

/// Joins rolled axes with the axes after them, but not across `cut`. The roll's distance is multiplied by the elements of those axes.
fn joined_behind(joined: &mut Collapsed, rolls: &mut [Roll], cut: usize) {
    for behind in (1..joined.shape.len()).rev().filter(|&behind| behind != cut) {
        let (axis, each) = (behind - 1, joined.shape[behind]);
        let is_whole = rolls.iter().any(|roll| roll.axis == axis)
            && rolls.iter().all(|roll| roll.axis != behind && (roll.axis != axis || roll.step == 1));
        if !is_whole || !joined.strides.iter().all(|view| Some(view[axis]) == view[behind].checked_mul(each)) {
            continue;
        }
        joined.shape[axis] *= each;
        joined.shape.remove(behind);
        joined.strides.iter_mut().for_each(|view| view[axis] = view.remove(behind));
        for roll in rolls.iter_mut() {
            *roll = match roll.axis {
                at if at == axis => Roll::new(axis, [roll.start * each, 1, roll.length * each]),
                at => roll.along(if at > axis { at - 1 } else { at }),
            };
        }
    }
}

/// Computes a chain of operations on float32, words, bytes and truths natively; `None` if the device cannot.
pub(in crate::ops) async fn computed(engine: &Engine, typed: &Arc<Typed>) -> Result<Option<Tensor>> {
    let wide = has_wide(typed);
    if !is_taken(part_of(typed.dtype), wide) || typed.shape.contains(&0) || !engine.is_processors() {
        return Ok(None);
    }
    let mut lowering = Lowering { wide, ..Lowering::default() };
    let Some(steps) = lowering.steps(typed, &typed.shape, None) else { return Ok(None) };
    let views = lowering.views(&typed.shape, typed.shape.len());
    if !views.pays(false) {
        return Ok(None);
    }
    let shape = views.shape(steps).to_bytes(part_of(typed.dtype).bytes());
    let tensors: Vec<&Tensor> = lowering.tensors.iter().listed();
    engine.native_async(NativeOperation::Elements(shape), &tensors, (typed.dtype, &typed.shape), "elementwise").await
}

/// Results of a kernel, at most.
const MOST_RESULTS: usize = 8;

/// Returns the operation that computes as many values of a group as possible, from the first on, with the tensors that it reads and the values' dtypes.
fn chained(
    schedule: &Schedule,
    group: &[Arc<Deferred>],
    shape: &[usize],
) -> Option<(ElementsShape, Vec<Tensor>, Vec<DType>)> {
    let expressions = group.iter().take(MOST_RESULTS).map_while(|one| one.expression()).listed();
    if shape.contains(&0) || expressions.len() < 2 {
        return None;
    }
    let expressions = schedule.lowered_together(&expressions);
    let wide = expressions.first().is_some_and(has_wide);
    let (mut lowering, mut chain) = (Lowering { wide, ..Lowering::default() }, Chain::default());
    // For each value its step, and how many tensors are read up to it.
    let mut taken: Vec<(u16, usize)> = Vec::new();
    for (one, typed) in group.iter().zip(&expressions) {
        let Some(step) = lowering.extend(&mut chain, typed, shape, None) else { break };
        if usize::from(step) + 1 != chain.steps.all.len() || !is_taken(typed.dtype, wide) {
            break;
        }
        chain.values.insert(Arc::as_ptr(one), step);
        taken.push((step, lowering.tensors.len()));
    }
    let (&(last, inputs), before) = taken.split_last().filter(|(_, before)| !before.is_empty())?;
    chain.steps.all.truncate(usize::from(last) + 1);
    lowering.tensors.truncate(inputs);
    lowering.views.truncate(inputs);
    lowering.rolls.retain(|(view, _)| *view < inputs);
    let views = lowering.views(shape, shape.len());
    if !views.pays(false) {
        return None;
    }
    let dtypes = expressions.iter().take(taken.len()).map(|typed| typed.dtype).listed();
    let more = before.iter().zip(&dtypes).map(|(&(step, _), dtype)| (step, dtype.bytes())).listed();
    let bytes = dtypes.last().map_or(4, |dtype| dtype.bytes());
    Some((views.shape(chain.steps.all).to_bytes(bytes).and(more), lowering.tensors, dtypes))
}

/// Computes as many values of a group as one native operation takes, from the first on. Empty if that does not pay.
pub(super) async fn together(engine: &Engine, schedule: &Schedule, group: &[Arc<Deferred>]) -> Result<Vec<Tensor>> {
    let shape = group.first().map(|first| first.shape.clone()).unwrap_or_default();
    let found = if engine.is_processors() { chained(schedule, group, &shape) } else { None };
    let Some((operation, tensors, dtypes)) = found else { return Ok(Vec::new()) };
    let likes: Vec<(DType, &[usize])> = dtypes.iter().map(|&dtype| (dtype, &shape[..])).listed();
    let tensors: Vec<&Tensor> = tensors.iter().listed();
    let made = engine.natives(NativeOperation::Elements(operation), &tensors, &likes, "elementwise").await?;
    Ok(made.unwrap_or_default())
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
    let views = lowering.views(shape, shape.len() - 1);
    if lowering.tensors.is_empty() || !views.pays(true) {
        return Ok(None);
    }
    let operation = NativeOperation::Elements(views.shape(steps).after_rows(function, before));
    let tensors: Vec<&Tensor> = lowering.tensors.iter().listed();
    engine.native_async(operation, &tensors, (DType::F32, shape), label).await
}

/// Reduces the axes from `from` on natively; `None` if the device cannot. `shape` is the result's.
pub(in crate::ops) async fn reduced(
    engine: &Engine,
    typed: &Arc<Typed>,
    from: usize,
    by: Combination,
    shape: &[usize],
) -> Result<Option<Tensor>> {
    let rank = typed.shape.len();
    let is_whole = !typed.shape.contains(&0) && from < rank && engine.is_processors();
    let Some(number) = number(typed.dtype).filter(|_| is_taken(typed.dtype, false) && is_whole) else {
        return Ok(None);
    };
    // Axes that stay are put last if memory lies that way, and fewer of them if they are apart.
    let mut found = arranged(typed, from, by, number);
    if found.is_none() && Lowering::default().steps(typed, &typed.shape, None).is_some() {
        // Inputs that lie across the others are transposed first.
        found = arranged(&turned(engine, typed).await?, from, by, number);
    }
    if found.is_none()
        && let Some(unrolled) = unrolled(engine, typed).await?
    {
        found = arranged(&unrolled, from, by, number);
    }
    let Some((operation, tensors)) = found else { return Ok(None) };
    let tensors: Vec<&Tensor> = tensors.iter().listed();
    engine.native_async(NativeOperation::Reduce(operation), &tensors, (typed.dtype, shape), "reduce").await
}

/// The reduction with as many of the axes that stay as possible put last.
fn arranged(typed: &Arc<Typed>, from: usize, by: Combination, number: Number) -> Option<(ReduceShape, Vec<Tensor>)> {
    (behind(typed, from)..=from).find_map(|behind| reduction(typed, [behind, from], by, number))
}

/// The reduction with the axes `behind..from`, which stay, put last.
fn reduction(
    typed: &Arc<Typed>,
    [behind, from]: [usize; 2],
    by: Combination,
    number: Number,
) -> Option<(ReduceShape, Vec<Tensor>)> {
    let rank = typed.shape.len();
    let order: Vec<usize> = (0..behind).chain(from..rank).chain(behind..from).listed();
    let arranged = permuted(typed, &order);
    let mut lowering = Lowering::default();
    let steps = lowering.steps(&arranged, &arranged.shape, None)?;
    let down_columns = behind < from;
    let cut = if down_columns { rank - (from - behind) } else { from };
    let views = lowering.views(&arranged.shape, cut);
    let inner = product(&arranged.shape[cut..]);
    if lowering.tensors.is_empty() || !views.pays(false) || down_columns && views.sides.last() != Some(&inner) {
        return None;
    }
    let outer = product(&arranged.shape[..behind]);
    Some((ReduceShape::new(views.shape(steps), outer, down_columns, by, number), lowering.tensors))
}

/// Returns the first axis before `from` whose elements are closer together than those of the reduced axes, by the input that reads the most memory.
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
