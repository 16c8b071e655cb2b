//! The progress of work, and its end before it is done.

use cantus::backend::CancelFlag;
use tokio::sync::watch;

use crate::problem::Problem;

/// The progress of work, in percent; nothing if no step between its start and its end can be known.
#[derive(Debug)]
pub struct Progress(watch::Sender<Option<u8>>);

impl Progress {
    /// Progress, and who follows it.
    pub fn new() -> (Self, watch::Receiver<Option<u8>>) {
        let (sender, receiver) = watch::channel(None);
        (Self(sender), receiver)
    }

    /// Reports that `done` of `whole` is done. Work that starts again after the loss of a device keeps its progress until it is overtaken; 100 is the
    /// result's own.
    pub fn at(&self, done: usize, whole: usize) {
        let percent = done.saturating_mul(100).checked_div(whole).unwrap_or(0).min(99) as u8;
        self.0.send_if_modified(|held| {
            let further = held.is_none_or(|held| percent > held);
            if further {
                *held = Some(percent);
            }
            further
        });
    }
}

/// The steps of work: told how far it is, and stopped between two of them.
#[derive(Debug)]
pub struct Steps<'a> {
    /// Told after each.
    pub progress: &'a Progress,
    /// Stops it: its time is over, or nobody waits for it.
    pub stop: &'a CancelFlag,
}

impl Steps<'_> {
    /// Goes on, unless the work is to stop. Work on the host asks now and then; on a device the engine does.
    ///
    /// # Errors
    /// 409.
    pub fn go_on(&self) -> Result<(), Problem> {
        if self.stop.is_cancelled() { Err(Problem::cancelled()) } else { Ok(()) }
    }

    /// Does `whole` things by blocks, and reports after each.
    ///
    /// # Errors
    /// The first of a block; 409 when the work is to stop.
    pub fn blocks<E: From<Problem>>(
        &self,
        whole: usize,
        block: usize,
        mut work: impl FnMut(std::ops::Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        for start in (0..whole).step_by(block.max(1)) {
            self.go_on()?;
            // With a single block there is nothing to tell between start and end.
            if whole > block {
                self.progress.at(start, whole);
            }
            work(start..(start + block).min(whole))?;
        }
        Ok(())
    }
}
