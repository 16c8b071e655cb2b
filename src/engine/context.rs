//! What work belongs to while it runs: the capture that takes its commands, the memory scopes that take its tensors.
//!
//! A thread keeps a stack of them. A closure enters for as long as it runs; a future enters for each poll, so that it belongs to the same
//! capture and scopes on whichever thread an executor polls it, and what runs between two polls does not.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;

use super::Shared;
use super::capture::Captured;
use super::memory::Scope;

/// One thing that work can be inside of.
#[derive(Clone)]
pub(super) enum Inside {
    Capture(Arc<Captured>),
    Scope(Arc<Scope>),
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
    pub(super) fn current_capture(&self) -> Option<Arc<Captured>> {
        innermost(self, |inside| match inside {
            Inside::Capture(capture) => Some(capture.clone()),
            Inside::Scope(_) => None,
        })
    }

    /// The innermost memory scope that this work belongs to.
    pub(super) fn current_scope(&self) -> Option<Arc<Scope>> {
        innermost(self, |inside| match inside {
            Inside::Scope(scope) => Some(scope.clone()),
            Inside::Capture(_) => None,
        })
    }
}
