//! The waiting work of a lane, by key.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use super::Task;
use crate::share::Spent;
use crate::work::Alike;

/// A task with when it came.
pub(super) struct Entry {
    pub task: Task,
    pub alike: Option<Alike>,
    pub since: Instant,
    /// A job, which was accepted: it waits for as long as it takes.
    pub job: bool,
    /// It was begun, and did not end within the first moment.
    pub tried: bool,
}

/// A key's waiting work, and what it holds.
#[derive(Default)]
pub(super) struct Owner {
    pub tasks: VecDeque<Entry>,
    pub count: usize,
    pub bytes: u64,
    /// A thread computes for it.
    pub served: bool,
    /// Its last try was in vain: there is no other before that time.
    pub barred: Option<Instant>,
}

impl Owner {
    /// Returns whether its next task may be tried.
    fn may_try(&self, now: Instant) -> bool {
        self.tasks.front().is_some_and(|entry| !entry.tried) && self.barred.is_none_or(|until| until < now)
    }
}

/// The waiting work of a lane.
#[derive(Default)]
pub(super) struct Waiting {
    pub owners: HashMap<Arc<str>, Owner>,
    /// Seconds of the lane that keys have had.
    pub spent: Spent,
    pub count: usize,
    pub bytes: u64,
    pub closed: bool,
    pub threads: usize,
    pub idle: usize,
    /// There is a thread for first moments.
    pub tries: bool,
}

impl Waiting {
    /// The key whose turn it is: it has work, nobody computes for it, and it has had the least. For first moments alone its work may be tried.
    pub fn first(&self, tries: bool) -> Option<Arc<str>> {
        let now = Instant::now();
        let waits = self.owners.iter().filter(|(_, owner)| !owner.served && !owner.tasks.is_empty());
        let waits = waits.filter(|(_, owner)| !tries || owner.may_try(now));
        waits.map(|(name, _)| name).min_by(|a, b| self.spent.of(a).total_cmp(&self.spent.of(b))).cloned()
    }
}

/// The number of tasks of each key's queue that are searched for similar ones.
const LOOK: usize = 1024;

/// Takes tasks that are alike from all queues.
pub(super) fn gather(waiting: &mut Waiting, alike: &Alike, most: usize, batch: &mut Vec<Entry>) {
    for owner in waiting.owners.values_mut() {
        let mut place = 0;
        while batch.len() < most && place < owner.tasks.len().min(LOOK) {
            let fits = |entry: &Entry| entry.alike.as_ref() == Some(alike) && !entry.task.cancel.is_cancelled();
            if owner.tasks.get(place).is_some_and(fits) {
                batch.extend(owner.tasks.remove(place));
            } else {
                place += 1;
            }
        }
    }
}
