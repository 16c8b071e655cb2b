//! Waiting without the interpreter's lock, until the work is done or the user interrupts it.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use cantus::backend::CancelFlag;
use cantus::engine::waiting;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::{exception, guarded};

/// The longest wait before a look for an interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// The longest wait for the device to release cancelled work. A call of a library's (a factorisation, a transform) can't be stopped: the caller goes
/// on after this, and what the call computes is dropped.
const GRACE: Duration = Duration::from_millis(200);

/// Raised by an interrupt: on everything that is recorded and not yet done. What comes later has another.
static FLAG: Mutex<Option<CancelFlag>> = Mutex::new(None);

fn flag() -> CancelFlag {
    FLAG.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().clone()
}

fn interrupted() {
    if let Some(flag) = FLAG.lock().unwrap_or_else(PoisonError::into_inner).take() {
        flag.cancel();
    }
}

/// The user has kernels of their own.
static KERNELS: AtomicBool = AtomicBool::new(false);

fn has_kernels() -> bool {
    KERNELS.load(Ordering::Relaxed)
}

/// Notes that the user has kernels of their own.
pub(crate) fn note_kernel() {
    KERNELS.store(true, Ordering::Relaxed);
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for an engine's work. Ctrl-C cancels the recorded commands, and is raised once the device has released them, or soon after.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    engine: &cantus::Engine,
    work: impl Future<Output = cantus::Result<T>> + Send,
) -> PyResult<T> {
    guarded(|| waited(py, engine, work))
}

fn waited<T: Send>(
    py: Python<'_>,
    engine: &cantus::Engine,
    work: impl Future<Output = cantus::Result<T>> + Send,
) -> PyResult<T> {
    let flag = flag();
    let (result, interrupt) = py.detach(|| {
        let mut work = pin!(engine.cancel_scope_async(&flag, work));
        // Most work is done by the first look: recording waits for nothing, and small work runs in it. How long a kernel of the user's takes
        // nobody knows, so with those signals are looked at.
        let mut look = || work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let first = if has_kernels() { look() } else { waiting(look) };
        if let Poll::Ready(result) = first {
            return (Some(result), None);
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut interrupt: Option<(PyErr, Instant)> = None;
        loop {
            if let Poll::Ready(result) = work.as_mut().poll(&mut context) {
                return (Some(result), interrupt);
            }
            thread::park_timeout(LOOK);
            if let Some((_, since)) = &interrupt {
                if since.elapsed() >= GRACE {
                    return (None, interrupt);
                }
            } else if let Err(error) = Python::attach(|py| py.check_signals()) {
                interrupted();
                interrupt = Some((error, Instant::now()));
            }
        }
    });
    match (interrupt, result) {
        (None, Some(result)) => result.map_err(exception),
        (Some((interrupt, _)), _) => Err(interrupt),
        (None, None) => Err(PyKeyboardInterrupt::new_err(())),
    }
}
