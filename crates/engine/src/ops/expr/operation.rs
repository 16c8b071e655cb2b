//! Operations that take a kernel of their own: what such an operation says of itself, and its result once it is computed.

use std::cell::RefCell;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::again::Words;
use super::emit::{self, Group, Writer};
use super::evaluate::{compute, computed, kernel, narrowed, resolve};
#[cfg(feature = "graph")]
use super::graph::{Item, Lowering, Refused};
use super::node::{Node, Source, Typed, View};
use super::plan::{lowered, lowered_below};
use crate::backend::native::ProductShape;
use crate::backend::{BoxFuture, MaybeSend, MaybeSync};
use crate::engine::tensor::Inner;
use crate::engine::{Captured, Engine, Extent, Tensor};
use crate::error::{Error, Result};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// An operation that is recorded, and computed by a kernel of its own: a frame of `shaders/tensor` around the expressions that it reads.
pub(in crate::ops) trait Operation: MaybeSend + MaybeSync {
    /// The expressions that it reads. What these read is computed before it runs.
    fn inputs(&self) -> Vec<&Arc<Typed>>;

    /// Adds all that it depends on beside its inputs, and says whether evaluations of it may be done again: what they record is known from this.
    fn parameters(&self, words: &mut Words) -> bool {
        let _ = words;
        false
    }

    /// The type's name.
    fn name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Whether an epilogue can be part of its kernel, and how much that saves: the larger, the better; 0 for never.
    fn fusable(&self) -> u32 {
        0
    }

    /// Whether what it reads may be an expression that was replaced by [`lowered`]: it looks at no input before it asks for it by
    /// [`Call::slim`], [`narrowed`] or [`compute`].
    fn lowers(&self) -> bool {
        false
    }

    /// The expression that it is the value of, and no operation.
    fn expression(&self) -> Option<Arc<Typed>> {
        None
    }

    /// Whether what it computes from is there.
    fn is_there(&self) -> bool {
        true
    }

    /// Computes it into a new tensor.
    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>>;

    /// The operation in a graph, for devices that take no kernels: its result in its own shape, as it is computed with.
    #[cfg(feature = "graph")]
    fn graph(&self, lowering: &mut Lowering) -> Result<Item, Refused> {
        let _ = lowering;
        Err(Refused::Operation)
    }
}

/// An operation whose result expressions read.
pub(in crate::ops) struct Deferred {
    /// `None` once it is dropped, or not needed any more.
    operation: Mutex<Option<Arc<dyn Operation>>>,
    pub(in crate::ops) shape: Vec<usize>,
    pub(in crate::ops) dtype: DType,
    result: Mutex<Kept>,
    /// Operations in a row that hold each other to be computed again, up to this one.
    held: AtomicU32,
    /// An evaluation found that what reads it computes it along.
    pub(super) inlined: AtomicBool,
    /// An evaluation found that an expression, its only reader, may end its kernel.
    pub(super) may_be_fused: AtomicBool,
    /// It was, and its own result was not written.
    pub(super) was_fused: AtomicBool,
}

/// A result, and for the value of an expression the tensors that it was computed from with how often each had been written: what is recorded
/// reads tensors as they are when it is evaluated.
#[derive(Default)]
struct Kept {
    tensor: Option<Tensor>,
    from: Vec<(Weak<Inner>, u64)>,
    /// The capture whose replays compute it.
    capture: Option<Weak<Captured>>,
}

impl Kept {
    /// Whether it was computed in another capture than this work's, or in none while this is in one.
    fn is_from_elsewhere(&self) -> bool {
        let Some(tensor) = &self.tensor else { return false };
        let now = tensor.inner.engine.current_capture();
        match (&self.capture, now) {
            (None, None) => false,
            (Some(capture), Some(now)) => !capture.ptr_eq(&Arc::downgrade(&now)),
            (_, _) => true,
        }
    }

    fn is_stale(&self) -> bool {
        self.from.iter().any(|(tensor, version)| tensor.upgrade().is_some_and(|tensor| tensor.version() != *version))
    }
}

/// Tensors that are noted at most: a value of more counts as one of none that changes.
const MOST_NOTED: usize = 256;

/// From so many operations in a row on, what a result was computed from is dropped: it cannot be computed again when it is lost.
const MOST_HELD: u32 = 8;

/// What follows an operation in its own kernel: an expression of the operation's shape that reads its result.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Epilogue<'a> {
    pub(in crate::ops) typed: &'a Arc<Typed>,
    pub(in crate::ops) of: &'a Arc<Deferred>,
}

/// What an operation is to compute.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Call<'a> {
    pub(in crate::ops) engine: &'a Engine,
    /// The shape and the dtype of the operation's own result.
    pub(in crate::ops) of: &'a Deferred,
    pub(in crate::ops) epilogue: Option<Epilogue<'a>>,
}

impl Deferred {
    pub(in crate::ops) fn new(operation: impl Operation + 'static, shape: Vec<usize>, dtype: DType) -> Arc<Self> {
        Arc::new(Self {
            operation: Mutex::new(Some(Arc::new(operation))),
            shape,
            dtype,
            result: Mutex::default(),
            held: AtomicU32::new(0),
            inlined: AtomicBool::new(false),
            may_be_fused: AtomicBool::new(false),
            was_fused: AtomicBool::new(false),
        })
    }

    fn operation(&self) -> Option<Arc<dyn Operation>> {
        self.operation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::ops) fn result(&self) -> Option<Tensor> {
        self.kept().tensor.clone()
    }

    /// What was computed, unless it was lost since, or is that of other contents: then it is computed again.
    pub(in crate::ops) fn live_result(&self) -> Option<Tensor> {
        let kept = self.kept();
        let (is_stale, is_from_elsewhere) = (kept.is_stale(), kept.is_from_elsewhere());
        let (tensor, captured) = (kept.tensor.clone(), kept.capture.is_some());
        drop(kept);
        // A capture computes expressions anew, and takes what operations gave before it; nothing of a capture is known outside.
        let is_elsewhere = is_from_elsewhere && (captured || self.is_value());
        tensor.filter(|tensor| {
            tensor.live_place().is_ok()
                && !(is_elsewhere && captured || (is_stale || is_elsewhere) && self.is_recomputed())
        })
    }

    /// Whether what it was computed from is still there.
    fn is_recomputed(&self) -> bool {
        self.operation().is_some_and(|operation| operation.is_there())
    }

    /// See [`Operation::inputs`].
    pub(in crate::ops) fn inputs(&self) -> Vec<Arc<Typed>> {
        self.operation().map_or_else(Vec::new, |operation| operation.inputs().into_iter().cloned().listed())
    }

    /// See [`Operation::lowers`].
    pub(super) fn lowers(&self) -> bool {
        self.operation().is_some_and(|operation| operation.lowers())
    }

    /// Whether an expression may end its kernel: then its own result is not written, and it goes on holding what it reads.
    pub(super) fn ends_with_reader(&self) -> bool {
        self.may_be_fused.load(Ordering::Relaxed)
            && self.operation().is_some_and(|operation| operation.fusable() > 0 && would_hold(&*operation) < MOST_HELD)
    }

    /// Notes that its own result was not written: who asks for it gets it, computed again.
    pub(super) fn note_fused(&self) {
        self.may_be_fused.store(false, Ordering::Relaxed);
        self.was_fused.store(true, Ordering::Relaxed);
        let held = self.operation().map_or(0, |operation| would_hold(&*operation));
        self.held.store(held, Ordering::Relaxed);
    }

    /// Whether an evaluation left it to what reads it.
    pub(super) fn is_planned(&self) -> bool {
        self.inlined.load(Ordering::Relaxed) || self.may_be_fused.load(Ordering::Relaxed)
    }

    /// Whether it is the value of an expression.
    pub(super) fn is_value(&self) -> bool {
        self.operation().is_some_and(|operation| operation.expression().is_some())
    }

    /// See [`Operation::parameters`].
    pub(in crate::ops) fn parameters(&self, words: &mut Words) -> bool {
        self.operation().is_some_and(|operation| {
            operation.name().hash(words);
            operation.parameters(words)
        })
    }

    /// Keeps a result; what it was computed from is held a while.
    pub(in crate::ops) fn keep(self: &Arc<Self>, tensor: &Tensor) {
        let operation = self.operation();
        let expression = operation.as_ref().and_then(|operation| operation.expression());
        let from = expression.as_ref().map_or_else(Vec::new, read_by);
        let shared = &tensor.inner.engine;
        let capture = shared.current_capture().map(|capture| Arc::downgrade(&capture));
        *self.kept() = Kept { tensor: Some(tensor.clone()), from, capture };
        let Some(operation) = operation.filter(|_| !shared.is_passing()) else { return };
        let held = match &expression {
            Some(_) => MOST_HELD,
            None => would_hold(&*operation),
        };
        self.held.store(held % MOST_HELD, Ordering::Relaxed);
        if let Some(expression) = expression {
            expression.hold(self);
            let again: Arc<dyn Operation> = Arc::new(Again(Arc::downgrade(&expression)));
            self.replace(Some(again));
        } else if held >= MOST_HELD {
            self.replace(None);
        }
    }

    /// What was there is dropped when nothing is locked.
    fn replace(&self, operation: Option<Arc<dyn Operation>>) {
        let before = std::mem::replace(&mut *self.operation.lock().unwrap_or_else(PoisonError::into_inner), operation);
        drop_in_turn(before);
    }

    /// See [`Operation::fusable`].
    pub(in crate::ops) fn fusable(&self) -> u32 {
        self.operation().map_or(0, |operation| operation.fusable())
    }

    /// Computes it once and keeps the result.
    pub(in crate::ops) fn compute<'a>(self: &'a Arc<Self>, engine: &'a Engine) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            if let Some(tensor) = self.live_result() {
                return Ok(tensor);
            }
            #[cfg(feature = "graph")]
            let by_graph = super::graph::operation(engine, self).await?;
            #[cfg(not(feature = "graph"))]
            let by_graph: Option<Tensor> = None;
            let tensor = match by_graph {
                Some(tensor) => tensor,
                None => self.run(engine, None).await?,
            };
            // Another task may have computed it meanwhile.
            if let Some(known) = self.live_result() {
                return Ok(known);
            }
            self.keep(&tensor);
            Ok(tensor)
        })
    }

    /// See [`Operation::graph`].
    #[cfg(feature = "graph")]
    pub(in crate::ops) fn graph(&self, lowering: &mut Lowering) -> Result<Item, Refused> {
        self.operation().map_or(Err(Refused::Operation), |operation| operation.graph(lowering))
    }

    /// Computes it, with what follows.
    pub(in crate::ops) async fn run(&self, engine: &Engine, epilogue: Option<Epilogue<'_>>) -> Result<Tensor> {
        let operation = self.operation().ok_or_else(lost)?;
        // An expression's value is computed as any expression.
        if operation.expression().is_none() {
            for input in operation.inputs() {
                let input = if operation.lowers() { lowered(input) } else { input.clone() };
                resolve(engine, &input, None).await?;
            }
        }
        operation.run(Call { engine, of: self, epilogue }).await
    }
}

/// How many operations in a row would be held up to this one.
fn would_hold(operation: &dyn Operation) -> u32 {
    1 + operation.inputs().into_iter().map(held_by).max().unwrap_or(0)
}

/// How many operations in a row what an expression reads holds.
fn held_by(typed: &Arc<Typed>) -> u32 {
    let mut most = 0;
    typed.walk(&mut |node| {
        if let Node::Read(View { source: Source::Deferred(deferred), .. })
        | Node::Gather { view: View { source: Source::Deferred(deferred), .. }, .. } = &node.node
            && deferred.operation().is_some()
        {
            most = most.max(deferred.held.load(Ordering::Relaxed));
        }
    });
    most
}

/// The tensors that a value is computed from, as they are now.
fn read_by(typed: &Arc<Typed>) -> Vec<(Weak<Inner>, u64)> {
    let mut found: Vec<(Weak<Inner>, u64)> = Vec::new();
    let mut add = |tensor: Weak<Inner>, version: u64| {
        if found.len() <= MOST_NOTED && !found.iter().any(|(known, _)| known.ptr_eq(&tensor)) {
            found.push((tensor, version));
        }
    };
    typed.walk(&mut |node| {
        let (Node::Read(view) | Node::Gather { view, .. }) = &node.node else { return };
        match &view.source {
            Source::Tensor(tensor) => add(Arc::downgrade(&tensor.inner), tensor.version()),
            Source::Deferred(deferred) => {
                deferred.kept().from.iter().for_each(|(tensor, version)| add(tensor.clone(), *version));
            }
            Source::Indices => {}
        }
    });
    if found.len() > MOST_NOTED { Vec::new() } else { found }
}

fn lost() -> Error {
    Error::InvalidInput {
        what: "the result of an operation".to_owned(),
        reason: "it was lost, and what it was computed from was dropped since: compute it again from the beginning"
            .to_owned(),
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        drop_in_turn(self.operation.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// An operation holds what it reads, and that the operations before it. Long chains are dropped link by link: one inside the other they would
/// overflow the stack.
fn drop_in_turn(operation: Option<Arc<dyn Operation>>) {
    thread_local! {
        /// What is left to drop, while something is dropped.
        static LEFT: RefCell<Option<Vec<Arc<dyn Operation>>>> = const { RefCell::new(None) };
    }
    let Some(operation) = operation else { return };
    let first = LEFT.try_with(|left| match &mut *left.borrow_mut() {
        Some(left) => {
            left.push(operation);
            false
        }
        empty => {
            *empty = Some(vec![operation]);
            true
        }
    });
    if first != Ok(true) {
        return;
    }
    let next = || LEFT.try_with(|left| left.borrow_mut().as_mut().and_then(Vec::pop)).ok().flatten();
    while let Some(operation) = next() {
        drop(operation);
    }
    let _ = LEFT.try_with(|left| left.borrow_mut().take());
}

impl<'a> Call<'a> {
    /// An input with few enough tensors that those of the epilogue fit beside it.
    pub(in crate::ops) async fn slim(&self, typed: &Arc<Typed>) -> Result<Arc<Typed>> {
        let mut others = Vec::new();
        if let Some(epilogue) = self.epilogue {
            emit::tensors(epilogue.typed, &mut others);
        }
        narrowed(self.engine, typed, emit::MOST_TENSORS.saturating_sub(others.len()).max(1)).await
    }

    /// Adds the epilogue's function of `value` and a place, whose groups of axes the frame counts under these names. The WGSL of what is to
    /// be stored, and its dtype.
    pub(in crate::ops) fn finished(
        &self,
        writer: &mut Writer,
        value: &str,
        groups: &[Group<'_>],
    ) -> Result<(String, DType)> {
        let Some(epilogue) = self.epilogue else { return Ok((value.to_owned(), self.of.dtype)) };
        writer.function("finished", epilogue.typed, &epilogue.typed.shape, groups, Some(epilogue.of))?;
        let names: Vec<&str> = groups.iter().map(|(name, _)| *name).listed();
        Ok((format!("finished({value}, {})", names.join(", ")), epilogue.typed.dtype))
    }

    /// A tensor for the result, near what the writer's kernel reads.
    pub(in crate::ops) async fn output(&self, writer: &Writer, dtype: DType, name: &str) -> Result<Tensor> {
        self.engine.output(writer.tensors().first(), dtype, &self.of.shape, name).await
    }

    /// What was computed by other means than a kernel of ours, with the epilogue.
    pub(in crate::ops) async fn followed(&self, result: Tensor) -> Result<Tensor> {
        match self.epilogue {
            Some(epilogue) => compute(self.engine, &epilogue.typed.with_result(epilogue.of, &result)).await,
            None => Ok(result),
        }
    }
}

/// An expression computed on its own: what follows reads its elements in another order.
pub(in crate::ops) struct Compute(pub(in crate::ops) Arc<Typed>);

impl Operation for Compute {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.0]
    }

    fn parameters(&self, _words: &mut Words) -> bool {
        true
    }

    fn lowers(&self) -> bool {
        true
    }

    fn expression(&self) -> Option<Arc<Typed>> {
        Some(self.0.clone())
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move { computed(call.engine, &lowered_below(&self.0)).await })
    }

    #[cfg(feature = "graph")]
    fn graph(&self, lowering: &mut Lowering) -> Result<Item, Refused> {
        lowering.whole(&self.0)
    }
}

/// The value of an expression that was computed, as long as somebody has the expression: to compute it again when it is lost.
struct Again(Weak<Typed>);

impl Operation for Again {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        Vec::new()
    }

    fn expression(&self) -> Option<Arc<Typed>> {
        self.0.upgrade()
    }

    fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let typed = self.0.upgrade().ok_or_else(lost)?;
            computed(call.engine, &lowered_below(&typed)).await
        })
    }
}

/// One kernel to run: a body for what a writer wrote.
pub(in crate::ops) struct Composed<'a> {
    /// The frame's name.
    pub(in crate::ops) name: &'a str,
    pub(in crate::ops) writer: &'a Writer,
    /// The WGSL type of the output's elements.
    pub(in crate::ops) output: &'a str,
    pub(in crate::ops) body: &'a str,
    pub(in crate::ops) workgroups: [usize; 3],
    /// Floating-point operations, for profiles; 0 where counting them says little.
    pub(in crate::ops) flops: usize,
    /// The most rounds that the loops of an invocation make together, where they grow with the sizes; 0 where they are few.
    pub(in crate::ops) rounds: usize,
}

impl Composed<'_> {
    /// Runs it into `y`.
    pub(in crate::ops) async fn run(&self, engine: &Engine, y: &Tensor) -> Result<()> {
        self.run_stated(engine, y, None).await
    }

    /// Whether a native kernel runs in its place, where what it reads is.
    pub(in crate::ops) async fn is_taken_over(&self, engine: &Engine) -> Result<bool> {
        let make = || kernel(self.name, &self.writer.text(self.output, self.body));
        let Some(near) = self.writer.tensors().first() else { return Ok(false) };
        engine.is_taken_over(near, (self.name, make), &self.writer.bytes(), self.workgroups).await
    }

    /// The same of a kernel that is a product: with its tensors a, b, and the bias where it has one.
    pub(in crate::ops) async fn run_stated(
        &self,
        engine: &Engine,
        y: &Tensor,
        stated: Option<(ProductShape, Vec<Tensor>)>,
    ) -> Result<()> {
        let kernel = kernel(self.name, &self.writer.text(self.output, self.body))?;
        let bytes = self.writer.bytes();
        let mut dispatch = engine.dispatch(&kernel).flops(self.flops as u64).rounds(self.rounds as u64);
        dispatch = dispatch.set_bytes("words", &bytes).bind("y", y);
        for (name, tensor) in emit::NAMES.iter().zip(self.writer.tensors()) {
            dispatch = dispatch.bind(name, tensor);
        }
        let named = |tensor: &Tensor| {
            let place = self.writer.tensors().iter().position(|known| Arc::ptr_eq(&known.inner, &tensor.inner))?;
            emit::NAMES.get(place).copied()
        };
        let stated = stated.and_then(|(product, tensors)| {
            let mut names = tensors.iter().map(named).try_listed()?;
            names.insert(2.min(names.len()), "y");
            Some((product, names))
        });
        dispatch.stating(stated).workgroups(Extent::from(self.workgroups)).run_async().await
    }
}
