//! The owners of running work: the capture that takes its commands, the memory scopes that take its tensors, the flags that cancel it, the trace that
//! notes it.
//!
//! A thread keeps a stack of them. A closure enters for as long as it runs; a future enters for each poll, so that it belongs to the same
//! capture and scopes on whichever thread an executor polls it, and what runs between two polls does not.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;

use super::capture::Captured;
use super::scope::Scope;
use super::trace::Trace;
use super::{Engine, Shared};
use crate::backend::CancelFlag;

/// One thing that work can be inside of.
#[derive(Clone)]
pub(super) enum Inside {
    Capture(Arc<Captured>),
    Scope(Arc<Scope>),
    Cancel(CancelFlag),
    Trace(Arc<Trace>),
    /// An evaluation: what records on its behalf submits nothing.
    #[cfg(feature = "wgsl")]
    Evaluation,
}

thread_local! {
    /// Each with its engine; the innermost is the last.
    static STACK: RefCell<Vec<(Arc<Shared>, Inside)>> = const { RefCell::new(Vec::new()) };
}

/// Leaves at its end, whatever ended the work.
pub(super) struct Entered {
    depth: usize,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let left = STACK.with_borrow_mut(|stack| {
            let depth = self.depth.min(stack.len());
            stack.split_off(depth)
        });
        // Outside of the borrow: dropping an engine runs code of its own.
        drop(left);
    }
}

/// Enters until the guard is dropped.
pub(super) fn enter(engine: &Arc<Shared>, inside: &Inside) -> Entered {
    STACK.with_borrow_mut(|stack| {
        let depth = stack.len();
        stack.push((engine.clone(), inside.clone()));
        Entered { depth }
    })
}

/// The future, inside for each of its polls.
pub(super) async fn within<F: Future>(engine: &Arc<Shared>, inside: Inside, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let _entered = enter(engine, &inside);
        future.as_mut().poll(context)
    })
    .await
}

/// The innermost thing of an engine that `choose` takes.
fn innermost<T>(engine: &Shared, choose: impl Fn(&Inside) -> Option<T>) -> Option<T> {
    STACK.with_borrow(|stack| {
        let mut own = stack.iter().rev().filter(|(known, _)| std::ptr::eq(Arc::as_ptr(known), engine));
        own.find_map(|(_, inside)| choose(inside))
    })
}

impl Shared {
    /// The capture that this work belongs to.
    pub(crate) fn current_capture(&self) -> Option<Arc<Captured>> {
        innermost(self, |inside| match inside {
            Inside::Capture(capture) => Some(capture.clone()),
            _ => None,
        })
    }

    /// Returns whether this work is a rehearsal, which records nothing.
    pub(crate) fn is_rehearsing(&self) -> bool {
        self.current_capture().is_some_and(|capture| capture.is_rehearsal())
    }

    /// Returns whether replays compute what is made here.
    #[cfg(feature = "wgsl")]
    pub(crate) fn is_captured(&self) -> bool {
        self.current_capture().is_some_and(|capture| !capture.is_rehearsal())
    }

    /// Returns whether what is made here may be gone, or not be computed, where it is read later.
    pub(crate) fn is_passing(&self) -> bool {
        self.current_capture().is_some() || self.current_scope().is_some()
    }

    /// Returns whether this work is an evaluation's.
    #[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
    pub(crate) fn is_evaluating(&self) -> bool {
        innermost(self, |inside| matches!(inside, Inside::Evaluation).then_some(())).is_some()
    }

    /// The innermost memory scope that this work belongs to.
    pub(super) fn current_scope(&self) -> Option<Arc<Scope>> {
        innermost(self, |inside| match inside {
            Inside::Scope(scope) => Some(Some(scope.clone())),
            Inside::Capture(capture) if capture.is_rehearsal() => Some(None),
            _ => None,
        })
        .flatten()
    }

    /// The trace that notes this work.
    pub(super) fn current_trace(&self) -> Option<Arc<Trace>> {
        innermost(self, |inside| match inside {
            Inside::Trace(trace) => Some(Some(trace.clone())),
            Inside::Capture(capture) if capture.is_rehearsal() => Some(None),
            _ => None,
        })
        .flatten()
    }

    /// Adds the flags that cancel this work to those of a dispatch.
    pub(super) fn add_cancel_flags(&self, flags: &mut Vec<CancelFlag>) {
        STACK.with_borrow(|stack| {
            for (known, inside) in stack {
                if let (true, Inside::Cancel(flag)) = (std::ptr::eq(Arc::as_ptr(known), self), inside) {
                    flags.push(flag.clone());
                }
            }
        });
    }
}

/// A future that is an evaluation.
#[cfg(feature = "wgsl")]
pub(crate) async fn evaluation<F: Future>(engine: &Engine, future: F) -> F::Output {
    within(engine.shared(), Inside::Evaluation, future).await
}

impl Engine {
    /// Runs work that a flag cancels: everything that it records, in dispatches, expressions, operations and library calls. Raised from
    /// anywhere, the flag stops what was not submitted yet everywhere, and what runs already on the CPU; on a GPU what runs goes on to its end. What
    /// the stopped work would have written is lost ([`crate::Error::Cancelled`]); all other work goes on. Scopes may be nested.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::backend::CancelFlag;
    /// let stop = CancelFlag::new(); // clones are the same flag: give one to the button
    /// let x = engine.tensor(&[1.0_f32, 2.0, 3.0])?;
    /// let squares = engine.cancel_scope(&stop, || (&x * &x).eval())?;
    /// stop.cancel();
    /// assert!(squares.to_vec::<f32>().is_err()); // stopped before it was submitted
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), cantus::Error>(())
    /// ```
    pub fn cancel_scope<T>(&self, flag: &CancelFlag, work: impl FnOnce() -> T) -> T {
        let _entered = enter(self.shared(), &Inside::Cancel(flag.clone()));
        work()
    }

    /// [`Engine::cancel_scope`] of a future. The scope belongs to the future, on whichever threads it is polled; tasks that it spawns are not
    /// part of it. Dropping the future cancels nothing that it has recorded: raise the flag for that.
    pub async fn cancel_scope_async<T>(&self, flag: &CancelFlag, work: impl Future<Output = T>) -> T {
        within(self.shared(), Inside::Cancel(flag.clone()), work).await
    }
}
