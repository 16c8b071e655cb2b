//! Work in flight whose end a callback tells. On native devices the callback comes within whatever call of this process happens to look, under
//! locks of wgpu's: it only notes the answer, and the thread that waits wakes whoever asked. On the web the browser calls back by itself.

#[cfg(not(target_arch = "wasm32"))]
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::PoisonError;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
#[cfg(not(target_arch = "wasm32"))]
use std::time::Duration;

use futures_channel::oneshot;

#[cfg(not(target_arch = "wasm32"))]
use crate::deep_stack::panic_text;
#[cfg(not(target_arch = "wasm32"))]
use crate::wait::{Awaited, SLICE};

/// On GL a wait holds the one context: others must get their turn.
#[cfg(not(target_arch = "wasm32"))]
const SLICE_SHARED: Duration = Duration::from_millis(5);
/// The number of looks at a finished submission without its callback (another thread may be about to run it) before that counts as a failure.
#[cfg(not(target_arch = "wasm32"))]
const PATIENCE: u32 = 2000;

/// Part of wgpu 30's panic when a wait runs out of time and another thread takes the end of the work first: the queue is empty, so the work
/// has ended well. The panic also drops the answers that this poll was about to give, so [`Work`] uses the end of its submission if its answer was
/// dropped.
#[cfg(not(target_arch = "wasm32"))]
const OVERTAKEN: &str = "should be at least the wait submission index";

#[cfg(test)]
pub(super) static TIMES_OVERTAKEN: AtomicU32 = AtomicU32::new(0);

/// Why no good answer came.
#[cfg_attr(test, derive(Debug))]
pub(super) enum Fault {
    /// The device is gone, or refused.
    Lost(String),
    /// The device finished the work but never answered.
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "the browser answers by itself"))]
    Silent,
}

impl Fault {
    fn no_answer() -> Self {
        Self::Lost("it gave no answer".to_owned())
    }
}

/// A submission, and the answer that is to come for it.
#[cfg(not(target_arch = "wasm32"))]
pub(super) struct Work {
    answer: Mutex<oneshot::Receiver<bool>>,
    device: wgpu::Device,
    /// Held while polling where the API has one context for all threads (GL).
    turn: Option<Arc<Mutex<()>>>,
    submission: wgpu::SubmissionIndex,
    /// The length of one wait in the driver.
    pub(super) slice: Duration,
    /// The device has passed the submission.
    finished: AtomicBool,
    unanswered: AtomicU32,
}

#[cfg(not(target_arch = "wasm32"))]
impl Work {
    /// The work of that submission, and what its callback answers: whether it gives what was asked for.
    pub(super) fn new(
        device: &wgpu::Device,
        turn: Option<&Arc<Mutex<()>>>,
        submission: wgpu::SubmissionIndex,
    ) -> (Self, oneshot::Sender<bool>) {
        let (sender, answer) = oneshot::channel();
        let work = Self {
            answer: Mutex::new(answer),
            device: device.clone(),
            turn: turn.cloned(),
            submission,
            slice: if turn.is_some() { SLICE_SHARED } else { SLICE },
            finished: AtomicBool::new(false),
            unanswered: AtomicU32::new(0),
        };
        (work, sender)
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Awaited for Work {
    type Fault = Fault;

    const ENDS: bool = true;

    fn passed(&self) -> Result<bool, Fault> {
        match self.answer.lock().unwrap_or_else(PoisonError::into_inner).try_recv() {
            Ok(None) => Ok(false),
            Ok(Some(true)) => Ok(true),
            Ok(Some(false)) => Err(Fault::no_answer()),
            // What the answer was for (memory that is mapped, a device that is alive) is looked at by whoever waits.
            Err(oneshot::Canceled) => Ok(self.finished.load(Ordering::Acquire)),
        }
    }

    /// Waits in the driver. wgpu panics when the driver reports a lost device there: that becomes the reason.
    fn block(&self) -> Result<(), Fault> {
        let kind = wgpu::PollType::Wait { submission_index: Some(self.submission.clone()), timeout: Some(self.slice) };
        let polled = {
            let _turn = self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
            catch_unwind(AssertUnwindSafe(|| self.device.poll(kind)))
        };
        match polled {
            Err(panic) => match panic_text(&*panic) {
                text if text.contains(OVERTAKEN) => {
                    #[cfg(test)]
                    TIMES_OVERTAKEN.fetch_add(1, Ordering::Relaxed);
                    self.was_finished()
                }
                text => Err(Fault::Lost(text)),
            },
            Ok(Err(wgpu::PollError::Timeout)) => Ok(()),
            Ok(Err(_)) => self.be_patient(),
            Ok(Ok(_)) => self.was_finished(),
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Work {
    /// Finished work has been answered by now, unless another thread is about to run its callback.
    fn was_finished(&self) -> Result<(), Fault> {
        self.finished.store(true, Ordering::Release);
        self.be_patient()
    }

    fn be_patient(&self) -> Result<(), Fault> {
        match self.unanswered.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(()),
            PATIENCE.. => Err(Fault::Silent),
            _ => {
                std::thread::sleep(Duration::from_millis(1));
                Ok(())
            }
        }
    }
}

/// The answer that is to come.
#[cfg(target_arch = "wasm32")]
pub(super) struct Work(oneshot::Receiver<bool>);

#[cfg(target_arch = "wasm32")]
impl Work {
    /// The work of that submission, and what its callback answers: whether it gives what was asked for.
    pub(super) fn new(
        _: &wgpu::Device,
        _: Option<&Arc<Mutex<()>>>,
        _: wgpu::SubmissionIndex,
    ) -> (Self, oneshot::Sender<bool>) {
        let (sender, answer) = oneshot::channel();
        (Self(answer), sender)
    }

    /// Waits for it.
    pub(super) async fn answer(self) -> Result<(), Fault> {
        if self.0.await == Ok(true) { Ok(()) } else { Err(Fault::no_answer()) }
    }
}
