//! The blocking forms: a future run to its end on this thread, which devices can see.

use std::cell::Cell;

thread_local! {
    static BLOCKED: Cell<Help> = const { Cell::new(Help::None) };
}

/// The work that a waiting thread may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "on the web no thread waits"))]
pub(crate) enum Help {
    None,
    /// Work of few invocations.
    Small,
    All,
}

/// Sets what may run on this thread, until it goes.
#[cfg(not(target_arch = "wasm32"))]
struct Set(Help);

#[cfg(not(target_arch = "wasm32"))]
impl Set {
    fn new(help: Help) -> Self {
        Self(BLOCKED.replace(help))
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Drop for Set {
    fn drop(&mut self) {
        BLOCKED.set(self.0);
    }
}

/// Runs a future to its end. What it waits for may run on this thread.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let _set = Set::new(Help::All);
    pollster::block_on(future)
}

/// Runs `poll`, in which a future is polled by a thread that waits for it. Work of few invocations, which takes some milliseconds unless each
/// takes thousands of steps, may run on this thread, which saves waking another. Longer work stays with the device's threads, so that whoever
/// waits can look at signals. The blocking forms of this library need no such thing: they give the thread away altogether.
///
/// ```
/// use std::task::{Context, Waker};
///
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let sum = (cantus::ops::full(&engine, &[8], 1.0, cantus::DType::F32) + 1.0).sum(&[], false).eval()?;
/// let mut work = Box::pin(sum.to_vec_async::<f32>());
/// let mut context = Context::from_waker(Waker::noop());
/// let first = cantus::engine::waiting(|| work.as_mut().poll(&mut context));
/// assert!(first.is_ready()); // the processor computed it on this thread
/// # Ok::<_, cantus::Error>(())
/// ```
#[cfg(not(target_arch = "wasm32"))]
pub fn waiting<T>(poll: impl FnOnce() -> T) -> T {
    let _set = Set::new(Help::Small);
    poll()
}

/// Returns the work that this thread may run.
pub(crate) fn help() -> Help {
    BLOCKED.get()
}
