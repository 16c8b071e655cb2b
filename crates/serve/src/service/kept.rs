//! Places and room on the disk that are kept for jobs.

use std::sync::Arc;

use super::Service;
use crate::problem::Problem;
use crate::share::Short;

/// Bytes on disk of a job besides what its request and its result hold. In memory it takes about three times as many (`benches/notes/2026-11-29-guard.md`).
pub(super) const RECORD: u64 = 1024;

impl Service {
    /// Takes a place and room on the disk for a job.
    pub(super) fn keep(&self, owner: &Arc<str>, bytes: u64) -> Result<(), Problem> {
        if bytes > self.disk.most() {
            let most = self.disk.most();
            return Err(Problem::too_large(format!("a job takes {bytes} bytes on disk; the limit is {most}")));
        }
        let full = |short: Short, what: &str| {
            let whose = if short == Short::Own { "the key's share of " } else { "" };
            Problem::unavailable(format!("{whose}{what} is full: delete some, or wait"))
        };
        self.places.take(owner, 1).map_err(|short| full(short, "the number of jobs"))?;
        self.disk.take(owner, bytes).map_err(|short| {
            self.places.give(owner, 1);
            full(short, "the room for jobs on disk")
        })
    }

    /// Releases the room that [`Service::keep`] took.
    pub(super) fn unkeep(&self, owner: &Arc<str>, bytes: u64) {
        self.places.give(owner, 1);
        self.disk.give(owner, bytes);
    }
}

/// A place and room on the disk, given back unless the job stays.
pub(super) struct Kept {
    pub service: Arc<Service>,
    pub owner: Arc<str>,
    pub bytes: Option<u64>,
}

impl Kept {
    /// The job keeps it.
    pub fn stay(mut self) {
        self.bytes = None;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes {
            self.service.unkeep(&self.owner, bytes);
        }
    }
}
