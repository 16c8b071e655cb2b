//! A one-shot answer that a callback gives and a future awaits. The first answer stands; later ones are ignored.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Why no good answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The time limit passed.
    Timeout,
    /// The device is gone, or refused.
    Lost,
    /// The device finished the work but never answered.
    #[cfg_attr(
        any(target_arch = "wasm32", not(feature = "wgpu")),
        expect(dead_code, reason = "only wgpu's poll thread finds it")
    )]
    Silent,
}

type Answer = Result<(), Failure>;

#[derive(Default)]
struct State {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

/// Both ends of the answer; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Signal {
    state: Arc<Mutex<State>>,
}

impl Signal {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Answers, unless it was answered before.
    pub(crate) fn answer(&self, answer: Answer) {
        // Woken outside of the lock: the woken task may look at once.
        if let Some(waker) = self.settle(answer) {
            waker.wake();
        }
    }

    /// As [`Signal::answer`] from a callback, on a thread that may hold locks which the woken task asks for: it is woken when they are
    /// released, or by another thread.
    #[cfg(all(feature = "wgpu", not(target_arch = "wasm32")))]
    pub(crate) fn answer_from_callback(&self, answer: Answer) {
        if let Some(waker) = self.settle(answer) {
            wakes::later(waker);
        }
    }

    /// Notes the answer, unless there is one; whom to wake then.
    fn settle(&self, answer: Answer) -> Option<Waker> {
        let mut state = self.lock();
        if state.answer.is_some() {
            return None;
        }
        state.answer = Some(answer);
        state.waker.take()
    }

    #[cfg_attr(
        any(target_arch = "wasm32", not(feature = "wgpu")),
        expect(dead_code, reason = "only wgpu's poll thread asks")
    )]
    pub(crate) fn is_answered(&self) -> bool {
        self.lock().answer.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Signal {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let mut state = self.lock();
        match state.answer {
            Some(answer) => Poll::Ready(answer),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Wakes of callbacks, which must not run under the locks of whoever caused the callback.
#[cfg(all(feature = "wgpu", not(target_arch = "wasm32")))]
pub(crate) mod wakes {
    use std::cell::RefCell;
    use std::sync::OnceLock;
    use std::sync::mpsc::{Sender, channel};
    use std::task::Waker;

    thread_local! {
        /// Those that this thread wakes when it has released its locks.
        static HELD: RefCell<Option<Vec<Waker>>> = const { RefCell::new(None) };
    }

    /// Runs what may cause callbacks, and wakes those whom they answered after it. `work` takes its locks itself.
    pub(crate) fn after<T>(work: impl FnOnce() -> T) -> T {
        HELD.set(Some(Vec::new()));
        let result = work();
        HELD.take().into_iter().flatten().for_each(Waker::wake);
        result
    }

    /// Wakes later: at the end of [`after`] on this thread, otherwise on a thread that holds no lock.
    pub(super) fn later(waker: Waker) {
        let left = HELD.with_borrow_mut(|held| match held {
            Some(held) => {
                held.push(waker);
                None
            }
            None => Some(waker),
        });
        let Some(waker) = left else { return };
        static THREAD: OnceLock<Option<Sender<Waker>>> = OnceLock::new();
        let thread = THREAD.get_or_init(|| {
            let (sender, wakers) = channel::<Waker>();
            let work = move || wakers.into_iter().for_each(Waker::wake);
            std::thread::Builder::new().name("cantus-wake".to_owned()).spawn(work).ok().map(|_| sender)
        });
        match thread {
            // The thread lives as long as the process, unless a task panics when it is woken.
            Some(thread) => {
                if let Err(error) = thread.send(waker) {
                    error.0.wake();
                }
            }
            None => waker.wake(),
        }
    }
}
