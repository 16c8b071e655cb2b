//! The progress of work.

use tokio::sync::watch;

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

    /// Does `whole` things by blocks, and reports after each.
    ///
    /// # Errors
    /// The first of a block.
    pub fn blocks<E>(
        &self,
        whole: usize,
        block: usize,
        mut work: impl FnMut(std::ops::Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        for start in (0..whole).step_by(block.max(1)) {
            // With a single block there is nothing to tell between start and end.
            if whole > block {
                self.at(start, whole);
            }
            work(start..(start + block).min(whole))?;
        }
        Ok(())
    }
}
