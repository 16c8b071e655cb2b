//! Values that are computed once for all their readers: results of operations and values of expressions, and how long their inputs are held. The planner
//! lists them, `evaluate` computes them, and expressions read them like memory. A result is kept as a `Recorded`, so that overwriting the tensor later does
//! not change the value. After `MOST_HELD` operations in a row one releases its inputs: such a result cannot be computed again when it is lost.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::common;
use super::digest::Digest;
use super::evaluate::{computed, resolve};
use super::node::{Backlog, Node, Source, Typed, View};
use super::operation::{Call, Epilogue, Operation};
use super::schedule::{History, Left, Schedule};
use crate::backend::BoxFuture;
use crate::engine::recorded::Recorded;
use crate::engine::{Captured, Engine, Tensor};
use crate::error::{Error, Result};
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// The value of an expression. Its readers hold it until it is computed, and the expression holds it from then on.
#[derive(Default)]
pub(super) struct Own {
    known: Weak<Deferred>,
    held: Option<Arc<Deferred>>,
}

/// An operation whose result expressions read.
pub(in crate::ops) struct Deferred {
    /// `None` once the inputs were released.
    operation: Mutex<Option<Arc<dyn Operation>>>,
    pub(in crate::ops) shape: Vec<usize>,
    pub(in crate::ops) dtype: DType,
    result: Mutex<Kept>,
    /// The length of the chain of operations up to this one that hold their inputs, so that they can be computed again.
    held: AtomicU32,
    /// The work that computing it would take: none once there is a result.
    backlog: Mutex<Backlog>,
    pub(super) history: History,
    /// Its hash, if the table of common subexpressions has it.
    pub(super) listed: AtomicU64,
}

/// A result, as it was when it was computed.
#[derive(Default)]
struct Kept {
    recorded: Option<Arc<Recorded>>,
    /// The capture whose replays compute it.
    capture: Option<Weak<Captured>>,
}

impl Kept {
    fn tensor(&self) -> Option<Tensor> {
        self.recorded.as_ref().map(|recorded| recorded.tensor())
    }

    /// Returns whether it was computed in another capture than the current one, or outside a capture while one is open.
    fn is_from_elsewhere(&self) -> bool {
        let Some(tensor) = self.tensor() else { return false };
        let now = tensor.inner.engine.current_capture();
        match (&self.capture, now) {
            (None, None) => false,
            (Some(capture), Some(now)) => !capture.ptr_eq(&Arc::downgrade(&now)),
            (_, _) => true,
        }
    }
}

/// A result of this many operations in a row releases its inputs, and cannot be computed again when it is lost.
const MOST_HELD: u32 = 8;

impl Deferred {
    pub(in crate::ops) fn new(operation: impl Operation + 'static, shape: Vec<usize>, dtype: DType) -> Arc<Self> {
        let backlog = Mutex::new(Backlog::above(&shape, operation.inputs().into_iter().map(|input| input.backlog)));
        Arc::new(Self {
            operation: Mutex::new(Some(Arc::new(operation))),
            backlog,
            shape,
            dtype,
            result: Mutex::default(),
            held: AtomicU32::new(0),
            history: History::default(),
            listed: AtomicU64::new(0),
        })
    }

    pub(super) fn backlog(&self) -> Backlog {
        *self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn operation(&self) -> Option<Arc<dyn Operation>> {
        self.operation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::ops) fn result(&self) -> Option<Tensor> {
        self.kept().tensor()
    }

    /// Returns the result unless it was lost since; a lost one is computed again.
    pub(in crate::ops) fn live_result(&self) -> Option<Tensor> {
        let kept = self.kept();
        let is_from_elsewhere = kept.is_from_elsewhere();
        let (tensor, captured) = (kept.tensor(), kept.capture.is_some());
        drop(kept);
        // A capture computes values anew, but uses results of operations from before it. Results from inside a capture are not known outside.
        let is_elsewhere = is_from_elsewhere && (captured || self.is_value());
        tensor.filter(|tensor| tensor.is_live() && !(is_elsewhere && (captured || self.is_recomputed())))
    }

    /// Returns whether its inputs still exist, so that it is computed again.
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

    /// Returns whether an expression may end its kernel. Its own result is then not written, and it keeps its inputs.
    pub(super) fn ends_with_reader(&self, schedule: &Schedule) -> bool {
        self.left(schedule) == Some(Left::ToEnd)
            && self.operation().is_some_and(|operation| operation.fusable() > 0 && would_hold(&*operation) < MOST_HELD)
    }

    /// Notes that its own result was not written. Whoever asks for the result makes it be computed again.
    pub(super) fn note_fused(self: &Arc<Self>, engine: &Engine) {
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(capture) = engine.shared().current_capture()
            && let Some(rehearsal) = capture.rehearsal()
        {
            let (of, was_part) = (Arc::downgrade(self), self.history.was_part());
            let held = self.held.load(Ordering::Relaxed);
            rehearsal.undo(move || {
                if let Some(of) = of.upgrade() {
                    of.history.restore(was_part);
                    of.held.store(held, Ordering::Relaxed);
                }
            });
        }
        #[cfg(target_arch = "wasm32")]
        let _ = engine;
        self.history.note_part();
        let held = self.operation().map_or(0, |operation| would_hold(&*operation));
        self.held.store(held, Ordering::Relaxed);
    }

    /// Returns how a schedule computes it: by its readers, or with the expression that reads it. `None` also for an operation that was fused since: another
    /// reader gets a result.
    pub(super) fn left(&self, schedule: &Schedule) -> Option<Left> {
        schedule.left(self).filter(|left| *left == Left::ToReaders || !self.history.was_part())
    }

    /// See [`Operation::takes_memory`].
    pub(super) fn takes_memory(&self) -> bool {
        self.operation().is_some_and(|operation| operation.takes_memory())
    }

    /// See [`Operation::with_places`]. `None` if the result exists already.
    pub(super) fn with_places(&self) -> Option<Arc<Typed>> {
        if self.result().is_some() { None } else { self.operation().and_then(|operation| operation.with_places()) }
    }

    /// See [`Operation::beginning`]. `None` if the result exists already.
    pub(super) fn beginning(&self, keep: usize) -> Option<Arc<Self>> {
        if self.result().is_some() { None } else { self.operation().and_then(|operation| operation.beginning(keep)) }
    }

    /// Returns whether it is the value of an expression.
    pub(super) fn is_value(&self) -> bool {
        self.operation().is_some_and(|operation| operation.expression().is_some())
    }

    /// See [`Operation::expression`].
    pub(super) fn expression(&self) -> Option<Arc<Typed>> {
        self.operation().and_then(|operation| operation.expression())
    }

    /// Keeps a result, and releases the inputs once enough operations in a row hold theirs.
    pub(in crate::ops) fn keep(self: &Arc<Self>, tensor: &Tensor) {
        let operation = self.operation();
        let expression = operation.as_ref().and_then(|operation| operation.expression());
        let shared = &tensor.inner.engine;
        #[cfg(not(target_arch = "wasm32"))]
        if shared.is_rehearsing() {
            return self.keep_rehearsed(tensor);
        }
        let capture = shared.current_capture().map(|capture| Arc::downgrade(&capture));
        *self.kept() = Kept { recorded: Some(Recorded::of(tensor)), capture };
        *self.backlog.lock().unwrap_or_else(PoisonError::into_inner) = Backlog::of(tensor.byte_len());
        let Some(operation) = operation.filter(|_| !shared.is_passing()) else { return };
        let held = match &expression {
            Some(_) => MOST_HELD,
            None => would_hold(&*operation),
        };
        self.held.store(held % MOST_HELD, Ordering::Relaxed);
        if let Some(expression) = expression {
            expression.hold(self);
            let recompute: Arc<dyn Operation> = Arc::new(Recompute(Arc::downgrade(&expression)));
            self.replace(Some(recompute));
        } else if held >= MOST_HELD {
            self.replace(None);
        }
    }

    /// Keeps a result until the end of the rehearsal that made it.
    #[cfg(not(target_arch = "wasm32"))]
    fn keep_rehearsed(self: &Arc<Self>, tensor: &Tensor) {
        let Some(capture) = tensor.inner.engine.current_capture() else { return };
        let Some(rehearsal) = capture.rehearsal() else { return };
        let own = Arc::downgrade(&capture);
        let rehearsed = Kept { recorded: Some(Recorded::of(tensor)), capture: Some(own.clone()) };
        let mut kept = self.kept();
        // Another thread has computed it meanwhile.
        if kept.tensor().is_some_and(|tensor| tensor.is_live()) {
            return;
        }
        let before = std::mem::replace(&mut *kept, rehearsed);
        drop(kept);
        let of = Arc::downgrade(self);
        rehearsal.undo(move || {
            let Some(of) = of.upgrade() else { return };
            let mut kept = of.kept();
            if kept.capture.as_ref().is_some_and(|capture| capture.ptr_eq(&own)) {
                let rehearsed = std::mem::replace(&mut *kept, before);
                drop(kept);
                drop(rehearsed);
            }
        });
    }

    /// Replaces the operation. The old one is dropped when nothing is locked.
    fn replace(&self, operation: Option<Arc<dyn Operation>>) {
        let before = std::mem::replace(&mut *self.operation.lock().unwrap_or_else(PoisonError::into_inner), operation);
        drop_in_turn(before);
    }

    /// See [`Operation::fusable`].
    pub(in crate::ops) fn fusable(&self) -> u32 {
        self.operation().map_or(0, |operation| operation.fusable())
    }

    /// Computes it once and keeps the result.
    pub(in crate::ops) fn compute<'a>(
        self: &'a Arc<Self>,
        engine: &'a Engine,
        schedule: &'a Schedule,
    ) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            if let Some(tensor) = self.live_result() {
                return Ok(tensor);
            }
            #[cfg(feature = "graph")]
            let by_graph = super::described::operation(engine, schedule, self).await?;
            #[cfg(not(feature = "graph"))]
            let by_graph: Option<Tensor> = None;
            let tensor = match by_graph {
                Some(tensor) => tensor,
                None => self.run(engine, schedule, None).await?,
            };
            // Another task may have computed it meanwhile.
            if let Some(known) = self.live_result() {
                return Ok(known);
            }
            self.keep(&tensor);
            Ok(tensor)
        })
    }

    /// Computes it, with the epilogue if there is one.
    pub(in crate::ops) async fn run(
        &self,
        engine: &Engine,
        schedule: &Schedule,
        epilogue: Option<Epilogue<'_>>,
    ) -> Result<Tensor> {
        let operation = self.operation().ok_or_else(lost)?;
        // An expression's value is computed as any expression.
        if operation.expression().is_none() {
            for input in operation.inputs() {
                let input = if operation.lowers() { schedule.lowered(input) } else { input.clone() };
                resolve(engine, schedule, &input, None).await?;
            }
        }
        operation.run(Call { engine, schedule, of: self, epilogue }).await
    }
}

/// Returns the number of consecutive operations that would be held up to this one.
fn would_hold(operation: &dyn Operation) -> u32 {
    1 + operation.inputs().into_iter().map(held_by).max().unwrap_or(0)
}

/// Returns the number of consecutive operations that the inputs of an expression hold.
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

fn lost() -> Error {
    Error::state(
        "the result of an operation",
        "it was lost, and its inputs were dropped since: compute it again from the beginning",
    )
}

impl Drop for Deferred {
    fn drop(&mut self) {
        let hash = *self.listed.get_mut();
        if hash != 0 {
            common::forget(self, hash);
        }
        drop_in_turn(self.operation.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Drops an operation. It holds its inputs, which hold the operations before it, so dropping a long chain recursively would overflow the stack. A chain is
/// dropped link by link instead.
fn drop_in_turn(operation: Option<Arc<dyn Operation>>) {
    thread_local! {
        /// The operations that are left to drop, while one is being dropped.
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

/// An expression that is computed on its own, because its readers read its elements in another order.
pub(in crate::ops) struct Compute(pub(in crate::ops) Arc<Typed>);

impl Operation for Compute {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.0]
    }

    fn parameters(&self, _digest: &mut Digest) -> bool {
        true
    }

    fn lowers(&self) -> bool {
        true
    }

    fn expression(&self) -> Option<Arc<Typed>> {
        Some(self.0.clone())
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move { computed(call.engine, call.schedule, &call.schedule.lowered_below(&self.0)).await })
    }
}

/// Computes the value of an expression again if it was lost, as long as the expression exists.
struct Recompute(Weak<Typed>);

impl Operation for Recompute {
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
            computed(call.engine, call.schedule, &call.schedule.lowered_below(&typed)).await
        })
    }
}

impl Typed {
    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its value, if something reads or keeps it.
    pub(super) fn own_value(&self) -> Option<Arc<Deferred>> {
        self.own().known.upgrade()
    }

    /// Returns its value, the same one for all readers.
    pub(super) fn value(self: &Arc<Self>) -> Arc<Deferred> {
        let mut own = self.own();
        own.known.upgrade().unwrap_or_else(|| {
            let value = Deferred::new(Compute(self.clone()), self.shape.clone(), self.dtype);
            own.known = Arc::downgrade(&value);
            value
        })
    }

    /// Holds its value, which is computed and no longer reads this expression.
    pub(super) fn hold(&self, value: &Arc<Deferred>) {
        let mut own = self.own();
        if own.known.ptr_eq(&Arc::downgrade(value)) {
            own.held = Some(value.clone());
        }
    }

    /// The same values, computed before their readers unless computing them there costs less.
    pub(in crate::ops) fn computed(self: &Arc<Self>) -> Arc<Self> {
        Self::of(Source::Deferred(self.value()), &self.shape, self.dtype)
    }

    /// The same values, read from the tensor that has them, so that this expression is not held.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn kept(self: &Arc<Self>, tensor: &Tensor) -> Arc<Self> {
        let value = self.value();
        value.keep(tensor);
        Self::of(Source::Deferred(value), &self.shape, self.dtype)
    }

    /// The same values, read where they are computed already.
    pub(in crate::ops) fn shared(self: &Arc<Self>) -> Arc<Self> {
        if self.depth == 0 {
            return self.clone();
        }
        let value = self.own().held.clone();
        match value.filter(|value| value.live_result().is_some()) {
            Some(value) => Self::of(Source::Deferred(value), &self.shape, self.dtype),
            None => self.clone(),
        }
    }
}
