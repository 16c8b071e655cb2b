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

    /// Answers, unless it was answered before. Returns whether this was the first answer.
    pub(crate) fn answer(&self, answer: Answer) -> bool {
        let waker = {
            let mut state = self.lock();
            if state.answer.is_some() {
                return false;
            }
            state.answer = Some(answer);
            state.waker.take()
        };
        // Woken outside of the lock: the woken task may look at once.
        if let Some(waker) = waker {
            waker.wake();
        }
        true
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
