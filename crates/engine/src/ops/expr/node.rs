//! Expressions that are recorded and not yet computed: operations on their elements, views of their shape. What is recorded becomes one
//! kernel when it is evaluated.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use rustc_hash::{FxHashMap, FxHashSet};

use super::common;
use super::deferred::{Compute, Deferred, Own};
use super::operation::Operation;
use super::operators::Operand;
use super::schedule::History;
use super::shape;
use crate::engine::recorded::Recorded;
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::kernel::Features;
use crate::ops::elementwise::{Binary, Unary};
use crate::tensor::{DType, Kind};
use cantus_base::listed::Listed;

/// The source of a view's elements.
#[derive(Clone)]
pub(in crate::ops) enum Source {
    /// One of an operation's own.
    Tensor(Tensor),
    /// One of the caller's, as it was when it was recorded.
    Recorded(Arc<Recorded>),
    /// The result of an operation.
    Deferred(Arc<Deferred>),
    /// Indices without memory: the value of an element is its position, as u32.
    Indices,
}

impl Source {
    /// The tensor, once there is one.
    pub(in crate::ops) fn tensor(&self) -> Option<Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor.clone()),
            Self::Recorded(recorded) => Some(recorded.tensor()),
            Self::Deferred(deferred) => deferred.result(),
            Self::Indices => None,
        }
    }
}

/// The layout of elements in a source, without a copy.
#[derive(Clone)]
pub(in crate::ops) struct View {
    pub(in crate::ops) source: Source,
    pub(in crate::ops) offset: usize,
    pub(in crate::ops) strides: Vec<usize>,
}

impl View {
    /// Returns whether elements that lie side by side are rows apart in the order of a shape.
    pub(super) fn lies_across(&self, shape: &[usize]) -> bool {
        let last = self.strides.last().copied().unwrap_or(1);
        last > 1 && self.strides.iter().zip(shape).any(|(&stride, &side)| stride == 1 && side > 1)
    }
}

/// The distribution of random numbers that are made from Philox 4x32-10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) enum RandomKind {
    /// 32 bits.
    Bits,
    /// Uniform in [0, 1), 24 bits.
    Uniform,
    /// Normal, mean 0 and deviation 1.
    Normal,
}

/// The operation of an expression, element by element, in its own shape.
pub(in crate::ops) enum Node {
    Read(View),
    /// A read at `stride` times the index; the axis of the index has `length` elements.
    Gather {
        view: View,
        stride: usize,
        length: usize,
        index: Arc<Typed>,
    },
    /// The same value everywhere.
    Constant(f64),
    Unary(Unary, Arc<Typed>),
    Binary(Binary, Arc<Typed>, Arc<Typed>),
    /// condition ≠ 0 ? a : b
    Select(Arc<Typed>, Arc<Typed>, Arc<Typed>),
    Cast(Arc<Typed>),
    Random {
        kind: RandomKind,
        seed: u64,
        counter: Arc<Typed>,
    },
}

/// The work that is recorded up to a node and not computed yet, along the path that has most of it.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ops) struct Backlog {
    /// Nodes and operations on the longest path.
    length: u32,
    /// Bytes of the tensors that they read, which live as long.
    bytes: u64,
    /// One of them has many elements.
    is_wide: bool,
}

impl Backlog {
    /// Returns the backlog of a tensor.
    pub(super) fn of(bytes: u64) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Returns the backlog of a node of a shape that reads others.
    pub(super) fn above(shape: &[usize], read: impl Iterator<Item = Self>) -> Self {
        /// Work on more elements than these is shared among the threads, which would wait for that of the caller.
        const WIDE: usize = 1 << 13;
        let (mut longest, mut bytes) = (Self::default(), 0_u64);
        for one in read {
            match one.length {
                0 => bytes = bytes.saturating_add(one.bytes),
                length => {
                    longest.length = longest.length.max(length);
                    longest.bytes = longest.bytes.max(one.bytes);
                    longest.is_wide |= one.is_wide;
                }
            }
        }
        Self {
            length: longest.length.saturating_add(1),
            bytes: longest.bytes.saturating_add(bytes),
            is_wide: longest.is_wide || shape::product(shape) > WIDE,
        }
    }

    /// Returns whether it is submitted while more is recorded: at a share of the bound.
    #[cfg(not(target_arch = "wasm32"))]
    fn is_due(self, share: u32) -> bool {
        /// The bounds on nodes in a row, where one is wide and where none is, …
        const MOST_NODES: u32 = 2048;
        const MOST_NARROW: u32 = 512;
        /// … and on bytes that more than a few of them hold.
        const MOST_BYTES: u64 = 1 << 28;
        const FEW_NODES: u32 = 16;
        let most = if self.is_wide { MOST_NODES } else { MOST_NARROW };
        self.length > most / share || self.length > FEW_NODES / share && self.bytes > MOST_BYTES / u64::from(share)
    }
}

/// A node with its shape and dtype.
pub(in crate::ops) struct Typed {
    pub(in crate::ops) node: Node,
    pub(in crate::ops) shape: Vec<usize>,
    pub(in crate::ops) dtype: DType,
    /// Nodes on the longest way down.
    pub(in crate::ops) depth: u32,
    pub(super) backlog: Backlog,
    /// It reads a tensor. Constants, places and random numbers of them belong to no engine.
    pub(super) is_rooted: bool,
    /// Its value, if views of it were made or an evaluation keeps it.
    pub(super) own: Mutex<Own>,
    pub(super) history: History,
    /// Its hash, if the table of common subexpressions has it.
    pub(super) listed: AtomicU64,
}

impl Drop for Typed {
    fn drop(&mut self) {
        let hash = *self.listed.get_mut();
        if hash != 0 {
            common::forget(self, hash);
        }
    }
}

/// The expressions that a node reads, listed without an allocation.
pub(in crate::ops) enum Children<'a> {
    None,
    One([&'a Arc<Typed>; 1]),
    Two([&'a Arc<Typed>; 2]),
    Three([&'a Arc<Typed>; 3]),
}

impl<'a> Deref for Children<'a> {
    type Target = [&'a Arc<Typed>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::None => &[],
            Self::One(children) => children,
            Self::Two(children) => children,
            Self::Three(children) => children,
        }
    }
}

impl<'a> IntoIterator for Children<'a> {
    type Item = &'a Arc<Typed>;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<&'a Arc<Typed>>, 3>>;

    fn into_iter(self) -> Self::IntoIter {
        let all = match self {
            Self::None => [None; 3],
            Self::One([a]) => [Some(a), None, None],
            Self::Two([a, b]) => [Some(a), Some(b), None],
            Self::Three([a, b, c]) => [Some(a), Some(b), Some(c)],
        };
        all.into_iter().flatten()
    }
}

/// The depth from which on an expression is computed on its own, so that kernels stay of a reasonable size.
const DEEPEST: u32 = 64;

impl Typed {
    pub(in crate::ops) fn new(node: Node, shape: Vec<usize>, dtype: DType) -> Arc<Self> {
        let mut typed = Self::at_depth(node, shape, dtype, 0);
        typed.depth = typed.children().iter().map(|child| child.depth + 1).max().unwrap_or(0);
        if typed.depth > DEEPEST {
            let (shape, dtype) = (typed.shape.clone(), typed.dtype);
            let deferred = Deferred::new(Compute(Arc::new(typed)), shape, dtype);
            return Self::of(Source::Deferred(deferred.clone()), &deferred.shape, dtype);
        }
        Arc::new(typed)
    }

    /// Creates a node for the contiguous elements of `source`.
    pub(in crate::ops) fn of(source: Source, shape: &[usize], dtype: DType) -> Arc<Self> {
        let view = View { source, offset: 0, strides: shape::contiguous(shape) };
        Arc::new(Self::at_depth(Node::Read(view), shape.to_vec(), dtype, 0))
    }

    /// A node of a depth that is known.
    pub(in crate::ops) fn at_depth(node: Node, shape: Vec<usize>, dtype: DType, depth: u32) -> Self {
        let own = || shape::product(&shape).saturating_mul(dtype.bytes()) as u64;
        let read = |view: &View| match &view.source {
            Source::Tensor(_) | Source::Recorded(_) => Backlog::of(own()),
            Source::Deferred(deferred) => deferred.backlog(),
            Source::Indices => Backlog::default(),
        };
        let backlog = match &node {
            Node::Read(view) => read(view),
            Node::Gather { view, index, .. } => Backlog::above(&shape, [read(view), index.backlog].into_iter()),
            Node::Constant(_) => Backlog::default(),
            Node::Unary(_, a) | Node::Cast(a) | Node::Random { counter: a, .. } => {
                Backlog::above(&shape, [a.backlog].into_iter())
            }
            Node::Binary(_, a, b) => Backlog::above(&shape, [a.backlog, b.backlog].into_iter()),
            Node::Select(a, b, c) => Backlog::above(&shape, [a.backlog, b.backlog, c.backlog].into_iter()),
        };
        let is_rooted = match &node {
            Node::Read(view) => !matches!(view.source, Source::Indices),
            Node::Gather { view, index, .. } => index.is_rooted || !matches!(view.source, Source::Indices),
            Node::Constant(_) => false,
            Node::Unary(_, a) | Node::Cast(a) | Node::Random { counter: a, .. } => a.is_rooted,
            Node::Binary(_, a, b) => a.is_rooted || b.is_rooted,
            Node::Select(a, b, c) => a.is_rooted || b.is_rooted || c.is_rooted,
        };
        Self {
            node,
            shape,
            dtype,
            depth,
            backlog,
            is_rooted,
            own: Mutex::default(),
            history: History::default(),
            listed: AtomicU64::new(0),
        }
    }

    /// A tensor of an operation's own.
    pub(in crate::ops) fn read(tensor: &Tensor) -> Arc<Self> {
        Self::of(Source::Tensor(tensor.clone()), tensor.shape(), tensor.dtype())
    }

    /// The result of an operation.
    pub(in crate::ops) fn deferred(operation: impl Operation + 'static, shape: Vec<usize>, dtype: DType) -> Arc<Self> {
        let deferred = Deferred::new(operation, shape, dtype);
        Self::of(Source::Deferred(deferred.clone()), &deferred.shape, dtype)
    }

    /// Returns whether views change only where it reads.
    pub(in crate::ops) fn is_plain(&self) -> bool {
        match &self.node {
            Node::Read(_) | Node::Constant(_) => true,
            Node::Cast(inner) => inner.is_plain(),
            _ => false,
        }
    }

    /// The same values in another dtype.
    pub(in crate::ops) fn cast(self: &Arc<Self>, dtype: DType) -> Arc<Self> {
        if dtype == self.dtype {
            return self.clone();
        }
        Self::new(Node::Cast(self.clone()), self.shape.clone(), dtype)
    }

    /// The same values as their dtype holds them. f16 and bf16 are computed in f32: what looks at a value (a cast, a predicate, a comparison, an order)
    /// finds the one that is stored, whether or not it was stored before.
    pub(in crate::ops) fn rounded(self: &Arc<Self>) -> Arc<Self> {
        let is_exact = match &self.node {
            Node::Read(view) => !matches!(view.source, Source::Deferred(_)),
            Node::Gather { .. } | Node::Constant(_) | Node::Cast(_) => true,
            Node::Unary(..) | Node::Binary(..) | Node::Select(..) | Node::Random { .. } => false,
        };
        if !self.dtype.is_half() || is_exact { self.clone() } else { self.cast(DType::F32).cast(self.dtype) }
    }

    /// The same values in the dtype that they are computed in, of which a kernel can store one alone.
    pub(in crate::ops) fn widened(self: &Arc<Self>) -> Arc<Self> {
        self.cast(self.dtype.computed())
    }

    /// A computed result in the dtype of what it was made from, where that is narrower.
    pub(in crate::ops) fn narrowed(self: Arc<Self>, dtype: DType) -> Arc<Self> {
        if dtype.is_packed() { self.cast(dtype) } else { self }
    }

    /// Returns the form that is added up or multiplied: bools and narrow integers as words, since sums of them exceed their range.
    pub(in crate::ops) fn summable(self: &Arc<Self>) -> Arc<Self> {
        if self.dtype.kind() == Kind::Float { self.clone() } else { self.widened() }
    }

    /// Zeros, or another number, of a shape.
    pub(in crate::ops) fn filled(value: f64, shape: &[usize], dtype: DType) -> Arc<Self> {
        let constant = Self::new(Node::Constant(value), Vec::new(), dtype);
        Self::new(Node::Cast(constant), shape.to_vec(), dtype)
    }

    /// Number of elements.
    pub(in crate::ops) fn count(&self) -> usize {
        shape::product(&self.shape)
    }

    pub(in crate::ops) fn children(&self) -> Children<'_> {
        match &self.node {
            Node::Read(_) | Node::Constant(_) => Children::None,
            Node::Unary(_, a) | Node::Cast(a) | Node::Gather { index: a, .. } | Node::Random { counter: a, .. } => {
                Children::One([a])
            }
            Node::Binary(_, a, b) => Children::Two([a, b]),
            Node::Select(a, b, c) => Children::Three([a, b, c]),
        }
    }

    /// The same node over other expressions, one for each of [`Typed::children`].
    pub(in crate::ops) fn over(&self, children: &[Arc<Self>], shape: Vec<usize>) -> Arc<Self> {
        let node = match (&self.node, children) {
            (Node::Unary(op, _), [a]) => Node::Unary(*op, a.clone()),
            (Node::Cast(_), [a]) => Node::Cast(a.clone()),
            (Node::Random { kind, seed, .. }, [a]) => Node::Random { kind: *kind, seed: *seed, counter: a.clone() },
            (Node::Gather { view, stride, length, .. }, [a]) => {
                Node::Gather { view: view.clone(), stride: *stride, length: *length, index: a.clone() }
            }
            (Node::Binary(op, ..), [a, b]) => Node::Binary(*op, a.clone(), b.clone()),
            (Node::Select(..), [a, b, c]) => Node::Select(a.clone(), b.clone(), c.clone()),
            (Node::Read(view), _) => Node::Read(view.clone()),
            (Node::Constant(value), _) => Node::Constant(*value),
            // The caller maps the children that it was given.
            (_, _) => Node::Constant(f64::NAN),
        };
        Self::new(node, shape, self.dtype)
    }

    /// The expression with the result of an operation in its place.
    pub(in crate::ops) fn with_result(self: &Arc<Self>, of: &Arc<Deferred>, tensor: &Tensor) -> Arc<Self> {
        self.mapped(&mut |typed| match &typed.node {
            Node::Read(View { source: Source::Deferred(deferred), .. }) if Arc::ptr_eq(deferred, of) => {
                Some(Self::read(tensor))
            }
            _ => None,
        })
    }

    /// The expression with another one in place of one of its nodes.
    pub(in crate::ops) fn replaced(self: &Arc<Self>, node: &Arc<Self>, by: &Arc<Self>) -> Arc<Self> {
        self.mapped(&mut |typed| Arc::ptr_eq(typed, node).then(|| by.clone()))
    }

    /// The expression with what `change` gives in place of nodes.
    fn mapped(self: &Arc<Self>, change: &mut impl FnMut(&Arc<Self>) -> Option<Arc<Self>>) -> Arc<Self> {
        fn step(
            typed: &Arc<Typed>,
            change: &mut impl FnMut(&Arc<Typed>) -> Option<Arc<Typed>>,
            known: &mut HashMap<*const Typed, Arc<Typed>>,
        ) -> Arc<Typed> {
            if let Some(known) = known.get(&Arc::as_ptr(typed)) {
                return known.clone();
            }
            let result = change(typed).unwrap_or_else(|| match &typed.node {
                Node::Read(_) | Node::Constant(_) => typed.clone(),
                _ => {
                    let children: Vec<_> =
                        typed.children().into_iter().map(|child| step(child, change, known)).listed();
                    typed.over(&children, typed.shape.clone())
                }
            });
            known.insert(Arc::as_ptr(typed), result.clone());
            result
        }
        step(self, change, &mut HashMap::new())
    }

    /// Lists every node once that `known` has not, what is read before what reads it, without the places of rolls.
    pub(super) fn walk_new<T>(self: &Arc<Self>, known: &FxHashMap<*const Self, T>, nodes: &mut Vec<Arc<Self>>) {
        fn step<T>(
            typed: &Arc<Typed>,
            known: &FxHashMap<*const Typed, T>,
            seen: &mut FxHashSet<*const Typed>,
            nodes: &mut Vec<Arc<Typed>>,
        ) {
            if known.contains_key(&Arc::as_ptr(typed)) || !seen.insert(Arc::as_ptr(typed)) {
                return;
            }
            if typed.rolled().is_none() {
                for child in typed.children() {
                    step(child, known, seen, nodes);
                }
            }
            nodes.push(typed.clone());
        }
        step(self, known, &mut FxHashSet::default(), nodes);
    }

    /// Every node once, what is read before what reads it.
    pub(in crate::ops) fn walk(self: &Arc<Self>, visit: &mut impl FnMut(&Arc<Self>)) {
        fn step(typed: &Arc<Typed>, seen: &mut HashSet<*const Typed>, visit: &mut impl FnMut(&Arc<Typed>)) {
            if !seen.insert(Arc::as_ptr(typed)) {
                return;
            }
            for child in typed.children() {
                step(child, seen, visit);
            }
            visit(typed);
        }
        match self.node {
            // Nothing to remember.
            Node::Read(_) | Node::Constant(_) => visit(self),
            _ => step(self, &mut HashSet::new(), visit),
        }
    }
}

/// An expression over tensors, recorded and not yet computed. Its methods and operators record more, and [`Expr::eval`] turns all of it into as
/// few kernels as possible. A mistake (shapes that do not broadcast, dtypes that an operation refuses) is returned by `eval`.
///
/// It uses its tensors as they were when it was recorded: before a tensor is overwritten, the contents that expressions still read are copied.
///
/// Types narrower than 32 bits are computed in a wider one: f16 and bf16 in f32, bool and the integers of 8 and 16 bits in i32 and u32, which wrap
/// after each step. f64, i64, u64 and complex128 run on devices that support them, and always on the CPU. Operands of two dtypes are
/// [promoted](DType::promoted). Operators take expressions, tensors (by value or reference), and numbers, which take the dtype of the other operand. On
/// the left of an operator a number is an `f64` or an `i32`.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let x = engine.tensor(&[1.0_f32, 2.0, 3.0])?;
/// let y = engine.tensor(&[4.0_f32, 5.0, 6.0])?;
/// let z = (2.0 * &x + 1.0_f32) / &y - 1;
/// let w = (&x + &y).maximum(6.0) * (-&x);
/// assert_eq!(z.eval()?.to_vec::<f32>()?, [-0.25, 0.0, 7.0 / 6.0 - 1.0]);
/// assert_eq!(w.eval()?.to_vec::<f32>()?, [-6.0, -14.0, -27.0]);
/// assert_eq!((x + y).eval()?.to_vec::<f32>()?, [5.0, 7.0, 9.0]); // by value: the expression keeps them
/// # Ok::<(), cantus::Error>(())
/// ```
#[derive(Clone)]
pub struct Expr {
    pub(in crate::ops) engine: Engine,
    pub(in crate::ops) state: Result<Arc<Typed>>,
}

impl std::fmt::Debug for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.state {
            Ok(typed) => write!(f, "Expr({} {:?})", typed.dtype, typed.shape),
            Err(error) => write!(f, "Expr({error})"),
        }
    }
}

impl From<&Tensor> for Expr {
    fn from(tensor: &Tensor) -> Self {
        let recorded = || Source::Recorded(Recorded::of(tensor));
        let read = |_| common::shared(Typed::of(recorded(), tensor.shape(), tensor.dtype()));
        let state = shape::count(tensor.shape()).map(read);
        Self { engine: tensor.engine(), state }
    }
}

impl From<Tensor> for Expr {
    fn from(tensor: Tensor) -> Self {
        Self::from(&tensor)
    }
}

impl From<&Self> for Expr {
    fn from(expr: &Self) -> Self {
        expr.clone()
    }
}

/// The expression, computed where much is recorded: a loop of any length takes flat memory, and the device works while it is recorded. In a
/// capture or a memory scope nothing is, and on the web, where recording never waits, neither.
#[cfg(not(target_arch = "wasm32"))]
fn submitted(engine: &Engine, typed: Arc<Typed>) -> Result<Arc<Typed>> {
    if !typed.backlog.is_due(1) || !submits(engine) {
        return Ok(typed);
    }
    let tensor = crate::engine::blocking::block_on(super::replay::evaluate(engine, &typed))?;
    Ok(typed.kept(&tensor))
}

#[cfg(not(target_arch = "wasm32"))]
fn submits(engine: &Engine) -> bool {
    !engine.shared().is_passing() && !engine.shared().is_evaluating()
}

/// Floats that are computed in f32.
pub(in crate::ops) fn is_float(dtype: DType) -> bool {
    dtype.computed() == DType::F32
}

/// Integers that are computed in words.
pub(in crate::ops) fn is_whole(dtype: DType) -> bool {
    matches!(dtype.computed(), DType::I32 | DType::U32) && dtype != DType::Bool
}

/// Returns whether a selection takes this dtype for its condition.
pub(in crate::ops) fn is_mask(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::U32)
}

/// Returns whether a device with these features computes with a dtype.
pub(in crate::ops) fn supported(dtype: DType, features: Features) -> bool {
    match dtype {
        DType::F64 | DType::Complex128 => features.float64,
        DType::I64 | DType::U64 => features.int64,
        _ => true,
    }
}

impl Expr {
    pub(in crate::ops) fn derived(&self, make: impl FnOnce(&Arc<Typed>) -> Result<Arc<Typed>>) -> Self {
        let state = match &self.state {
            Ok(typed) => make(&typed.shared()),
            Err(error) => Err(error.clone()),
        };
        Self::counted(&self.engine, state)
    }

    /// A mistake in place of what would be made of this; the first one, if there was one before.
    pub(in crate::ops) fn failed(&self, error: &Error) -> Self {
        self.derived(|_| Err(error.clone()))
    }

    /// A result of what is made of this, or its mistake.
    pub(in crate::ops) fn of(&self, result: Result<Self>) -> Self {
        result.unwrap_or_else(|error| self.failed(&error))
    }

    /// Creates the expression that `make` returns, if its elements can be counted.
    pub(in crate::ops) fn made(engine: &Engine, make: impl FnOnce() -> Result<Arc<Typed>>) -> Self {
        Self::counted(engine, make())
    }

    fn counted(engine: &Engine, state: Result<Arc<Typed>>) -> Self {
        let state = state.and_then(|typed| shape::count(&typed.shape).map(|_| common::shared(typed)));
        #[cfg(not(target_arch = "wasm32"))]
        let state = state.and_then(|typed| submitted(engine, typed));
        Self { engine: engine.clone(), state }
    }

    /// Returns whether enough is recorded to evaluate it now: half of the limit at which recording evaluates by itself. For callers that wait themselves.
    #[cfg(not(target_arch = "wasm32"))]
    #[doc(hidden)]
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.state.as_ref().is_ok_and(|typed| typed.backlog.is_due(2) && submits(&self.engine))
    }

    /// Returns the shape.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let sum = engine.zeros::<f32>(&[2, 1])?.expr() + engine.zeros::<f32>(&[3])?.expr();
    /// assert_eq!(sum.shape()?, [2, 3]); // nothing is computed
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first mistake in the recorded expressions.
    pub fn shape(&self) -> Result<&[usize]> {
        self.state.as_ref().map(|typed| typed.shape.as_slice()).map_err(Clone::clone)
    }

    /// Returns the dtype.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.5_f32])?;
    /// assert_eq!(x.cast(cantus::DType::I32).dtype()?, cantus::DType::I32);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first mistake in the recorded expressions.
    pub fn dtype(&self) -> Result<DType> {
        self.state.as_ref().map(|typed| typed.dtype).map_err(Clone::clone)
    }

    /// Returns a constant of the dtype of `self`, to be combined with it. For integers it must be a whole number.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, -2.0])?.expr();
    /// let limit = x.constant(0.5);
    /// assert_eq!(x.minimum(&limit).eval()?.to_vec::<f32>()?, [0.5, -2.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn constant(&self, value: f64) -> Self {
        self.derived(|typed| {
            // NaN and numbers beyond every integer are beyond these as well.
            let fits = typed
                .dtype
                .limits()
                .is_none_or(|(low, high)| value.fract() == 0.0 && (low..=high).contains(&(value as i128)));
            if !fits {
                return Err(Error::invalid(
                    format!("the number {value}"),
                    match typed.dtype.limits() {
                        Some((low, high)) => {
                            format!("it is not a value of {} (a whole number from {low} to {high})", typed.dtype)
                        }
                        None => format!("it is no {}", typed.dtype),
                    },
                ));
            }
            let bits = typed.dtype.float_bits(value).and_then(|bits| typed.dtype.half(u16::try_from(bits).ok()?));
            Ok(Typed::new(Node::Constant(bits.map_or(value, f64::from)), Vec::new(), typed.dtype))
        })
    }

    /// The other operand, if it belongs to the same engine.
    pub(in crate::ops) fn beside(&self, other: &Self) -> Result<Arc<Typed>> {
        let typed = other.state.as_ref().map_err(Clone::clone)?;
        if !self.engine.is(&other.engine) {
            return Err(Error::AnotherEngine { tensor: "of the second operand".to_owned() });
        }
        Ok(typed.shared())
    }

    /// Selects `a` where this (bool, or u32) is not 0, and `b` elsewhere. Their dtypes are promoted.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, -2.0])?.expr();
    /// assert_eq!(x.greater(0.0).select(&x, x.constant(9.0)).eval()?.to_vec::<f32>()?, [1.0, 9.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn select(&self, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        let (a, b) = (a.into(), b.into());
        self.derived(|condition| {
            let (a, b) = (self.beside(&a)?, self.beside(&b)?);
            if !is_mask(condition.dtype) {
                return Err(Error::dtype(
                    format!("a selection by {}", condition.dtype),
                    "the condition must be bool or u32 (compare, or cast)",
                ));
            }
            let (a, b) = self.promoted(&a, &b, "a selection")?;
            let shape = shape::broadcast(&shape::broadcast(&condition.shape, &a.shape)?, &b.shape)?;
            let dtype = a.dtype;
            Ok(Typed::new(Node::Select(condition.clone(), a, b), shape, dtype))
        })
    }

    /// Selects this where a condition (bool, or u32) is not 0, and `other` elsewhere: [`Expr::select`] as a method of the values, like PyTorch's `x.where(…)`.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, -2.0])?.expr();
    /// assert_eq!(x.r#where(x.greater(0.0), 9.0).eval()?.to_vec::<f32>()?, [1.0, 9.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn r#where(&self, condition: impl Into<Self>, other: impl Into<Operand>) -> Self {
        condition.into().select(self, other.into().beside(self))
    }

    /// Interpolates between this (for a weight of 0) and `end` (for 1): x + w (end - x). Exact at both ends. For floats.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[0.0_f32, 10.0])?;
    /// assert_eq!(x.lerp(20.0, 0.25).eval()?.to_vec::<f32>()?, [5.0, 12.5]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn lerp(&self, end: impl Into<Operand>, weight: impl Into<Operand>) -> Self {
        let checked = self.derived(|typed| match typed.dtype.kind() {
            Kind::Float => Ok(typed.clone()),
            _ => Err(Error::dtype(format!("lerp of {}", typed.dtype), "it needs floats (cast first)")),
        });
        let (end, weight) = (end.into().beside(&checked), weight.into().beside(&checked));
        let way = end.binary(Binary::Sub, &checked);
        // From the nearer end, so that each is met exactly.
        let from_start = checked.binary(Binary::Add, way.binary(Binary::Mul, &weight));
        let rest = weight.constant(1.0).binary(Binary::Sub, &weight);
        let from_end = end.binary(Binary::Sub, way.binary(Binary::Mul, rest));
        weight.binary(Binary::Lt, 0.5).select(from_start, from_end)
    }

    /// Converts to another dtype. Floats are truncated to integers and saturate; NaN becomes 0. Integers wrap to narrower ones. For bool, numbers
    /// other than 0 are true. A complex number gives its real part.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::DType;
    /// let x = engine.tensor(&[1.9_f32, -1.9, f32::NAN, 1e20])?;
    /// assert_eq!(x.cast(DType::I32).eval()?.to_vec::<i32>()?, [1, -1, 0, i32::MAX]);
    /// assert_eq!(x.cast(DType::U8).eval()?.to_vec::<u8>()?, [1, 0, 0, 255]);
    /// assert_eq!(engine.tensor(&[300_i32])?.cast(DType::U8).eval()?.to_vec::<u8>()?, [44]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "astype")]
    pub fn cast(&self, dtype: DType) -> Self {
        self.derived(|typed| Ok(if dtype == typed.dtype { typed.clone() } else { typed.rounded().cast(dtype) }))
    }

    /// Two operands in the dtype that both are promoted to.
    pub(in crate::ops) fn promoted(
        &self,
        a: &Arc<Typed>,
        b: &Arc<Typed>,
        what: &str,
    ) -> Result<(Arc<Typed>, Arc<Typed>)> {
        if a.dtype == b.dtype {
            return Ok((a.clone(), b.clone()));
        }
        let dtype = a.dtype.promoted(b.dtype)?;
        let features = self.engine.selected().device.capabilities.features;
        if ![a.dtype, b.dtype].contains(&dtype) && !supported(dtype, features) {
            return Err(Error::dtype(
                format!("{what} of {} and {}", a.dtype, b.dtype),
                format!(
                    "the result is {dtype}, which {} does not have: cast one to the other's dtype, as in .cast(DType::{:?})",
                    self.engine.selected().device.name,
                    a.dtype
                ),
            ));
        }
        Ok((a.rounded().cast(dtype), b.rounded().cast(dtype)))
    }

    /// Limits the elements to `low..=high`; NaN stays.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[-5.0_f32, 0.5, 5.0])?;
    /// assert_eq!(x.clamp(0.0, 1.0).eval()?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn clamp(&self, low: f64, high: f64) -> Self {
        if low > high || low.is_nan() || high.is_nan() {
            return self.derived(|_| {
                Err(Error::invalid(format!("clamp to {low}..={high}"), "the lower limit must not exceed the upper"))
            });
        }
        let (low, high) = (self.constant(low), self.constant(high));
        let above = self.binary(Binary::Gt, &high).select(&high, self);
        above.binary(Binary::Lt, &low).select(&low, &above)
    }
}
