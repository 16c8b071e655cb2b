//! The waiting work of a lane, by key.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use super::Task;
use crate::work::Alike;

/// A task with when it came.
pub(super) struct Entry {
    pub task: Task,
    pub alike: Option<Alike>,
    pub since: Instant,
}

/// A key's waiting work, and what it holds and has had.
#[derive(Default)]
pub(super) struct Owner {
    pub tasks: VecDeque<Entry>,
    pub count: usize,
    pub bytes: u64,
    /// A thread computes for it.
    pub served: bool,
    /// Seconds of the lane that it has had, counted from where others were when it came.
    pub used: f64,
}

/// The waiting work of a lane.
#[derive(Default)]
pub(super) struct Waiting {
    pub owners: HashMap<Arc<str>, Owner>,
    pub count: usize,
    pub bytes: u64,
    pub floor: f64,
    pub closed: bool,
    pub threads: usize,
    pub idle: usize,
}

impl Waiting {
    /// The key whose turn it is: it has work, nobody computes for it, and it has had the least.
    pub fn first(&self) -> Option<Arc<str>> {
        let waits = self.owners.iter().filter(|(_, owner)| !owner.served && !owner.tasks.is_empty());
        waits.min_by(|a, b| a.1.used.total_cmp(&b.1.used)).map(|(name, _)| name.clone())
    }
}

/// The number of tasks of each key's queue that are searched for similar ones.
const LOOK: usize = 1024;

/// Takes tasks that are alike from all queues.
pub(super) fn gather(waiting: &mut Waiting, alike: &Alike, most: usize, batch: &mut Vec<Task>) {
    for owner in waiting.owners.values_mut() {
        let mut place = 0;
        while batch.len() < most && place < owner.tasks.len().min(LOOK) {
            let fits = |entry: &Entry| entry.alike.as_ref() == Some(alike) && !entry.task.cancel.is_cancelled();
            if owner.tasks.get(place).is_some_and(fits) {
                batch.extend(owner.tasks.remove(place).map(|entry| entry.task));
            } else {
                place += 1;
            }
        }
    }
}
