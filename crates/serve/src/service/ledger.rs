//! The jobs in memory, found by what they are asked for: id, key, `Idempotency-Key`, and the time when they may be forgotten. Nothing looks through
//! all of them, however many there are.

use std::collections::{BTreeSet, HashMap};

use cantus::backend::CancelFlag;
use tokio::sync::watch;

use crate::job::{Job, Record, State};

/// A job in memory.
#[derive(Debug)]
pub(super) struct Live {
    pub record: Record,
    /// Tells who follows it; `None` once it has ended: most jobs have, and a channel takes more memory than a record.
    pub changes: Option<watch::Sender<Job>>,
    pub cancel: CancelFlag,
    /// True once it is on the disk; closed without, when it could not be written. `None`: it is there.
    pub written: Option<watch::Receiver<bool>>,
    /// This start cannot compute it, and nothing follows it.
    pub held: bool,
}

impl Live {
    /// A job of the disk.
    pub fn stored(record: Record, cancel: CancelFlag) -> Self {
        let changes = (!record.job.state.ended()).then(|| watch::channel(record.job.clone()).0);
        Self { record, changes, cancel, written: None, held: false }
    }

    /// The job as it changes; of one that has ended, as it is.
    pub fn follow(&self) -> watch::Receiver<Job> {
        match &self.changes {
            Some(changes) => changes.subscribe(),
            None => watch::channel(self.record.job.clone()).1,
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    jobs: HashMap<String, Live>,
    /// Jobs by key, time and id.
    owned: BTreeSet<(String, u64, String)>,
    /// Jobs by time and id.
    ordered: BTreeSet<(u64, String)>,
    /// Jobs by key and `Idempotency-Key`.
    named: HashMap<(String, String), String>,
    /// Jobs that have ended, by the time from which they may be forgotten.
    due: BTreeSet<(u64, String)>,
    states: HashMap<&'static str, u64>,
}

impl Ledger {
    /// The job of an id.
    pub fn get(&self, id: &str) -> Option<&Live> {
        self.jobs.get(id)
    }

    /// The job that an owner's `Idempotency-Key` made.
    pub fn named(&self, owner: &str, key: &str) -> Option<&Live> {
        self.jobs.get(self.named.get(&(owner.to_owned(), key.to_owned()))?)
    }

    /// The newest jobs, of one key or of all.
    pub fn newest(&self, owner: Option<&str>, most: usize) -> Vec<Job> {
        let shown = |id: &String| self.jobs.get(id).map(|live| live.record.job.clone());
        match owner {
            None => self.ordered.iter().rev().take(most).filter_map(|(_, id)| shown(id)).collect(),
            Some(owner) => {
                let own = (owner.to_owned(), 0, String::new())..(owner.to_owned(), u64::MAX, String::new());
                self.owned.range(own).rev().take(most).filter_map(|(.., id)| shown(id)).collect()
            }
        }
    }

    /// Some of those that may be forgotten at this age of the store.
    pub fn over(&self, age: u64, most: usize) -> Vec<Record> {
        let over = self.due.range(..(age.saturating_add(1), String::new()));
        over.take(most).filter_map(|(_, id)| self.jobs.get(id).map(|live| live.record.clone())).collect()
    }

    /// Returns the jobs that are being computed.
    pub fn running(&self) -> Vec<String> {
        let running = self.jobs.iter().filter(|(_, live)| live.record.job.state == State::Running);
        running.map(|(id, _)| id.clone()).collect()
    }

    /// The number in each state.
    pub fn states(&self) -> HashMap<&'static str, u64> {
        self.states.clone()
    }

    /// Adds a job.
    pub fn insert(&mut self, live: Live) {
        let record = &live.record;
        let (id, created) = (record.id.clone(), record.job.created);
        self.owned.insert((record.owner.clone(), created, id.clone()));
        self.ordered.insert((created, id.clone()));
        if let Some(key) = &record.idempotency {
            self.named.insert((record.owner.clone(), key.clone()), id.clone());
        }
        self.stands(Standing::of(record), &id, true);
        self.jobs.insert(id, live);
    }

    /// Takes a job out.
    pub fn remove(&mut self, id: &str) -> Option<Live> {
        let live = self.jobs.remove(id)?;
        let record = &live.record;
        let (id, created) = (record.id.clone(), record.job.created);
        self.owned.remove(&(record.owner.clone(), created, id.clone()));
        if let Some(key) = &record.idempotency {
            self.named.remove(&(record.owner.clone(), key.clone()));
        }
        self.stands(Standing::of(record), &id, false);
        self.ordered.remove(&(created, id));
        Some(live)
    }

    /// Changes a job, and tells who watches it. One that has ended stays as it is.
    pub fn alter(&mut self, id: &str, change: impl FnOnce(&mut Record)) -> Option<Record> {
        let live = self.jobs.get_mut(id).filter(|live| !live.record.job.state.ended())?;
        let before = Standing::of(&live.record);
        change(&mut live.record);
        if let Some(changes) = &live.changes {
            changes.send_replace(live.record.job.clone());
        }
        if live.record.job.state.ended() {
            live.changes = None;
            live.written = live.written.take().filter(|written| !*written.borrow());
        }
        let (after, record) = (Standing::of(&live.record), live.record.clone());
        self.stands(before, id, false);
        self.stands(after, id, true);
        Some(record)
    }

    /// Marks a job that this start cannot compute.
    pub fn hold(&mut self, id: &str) {
        if let Some(live) = self.jobs.get_mut(id) {
            live.held = true;
        }
    }

    /// Returns whether a job was held. It is no longer.
    pub fn release(&mut self, id: &str) -> bool {
        self.jobs.get_mut(id).is_some_and(|live| std::mem::take(&mut live.held))
    }

    /// Counts a job's state, and when it may be forgotten; or no longer.
    fn stands(&mut self, standing: Standing, id: &str, there: bool) {
        let count = self.states.entry(standing.state).or_default();
        *count = if there { *count + 1 } else { count.saturating_sub(1) };
        if let Some(due) = standing.due {
            let entry = (due, id.to_owned());
            if there {
                self.due.insert(entry)
            } else {
                self.due.remove(&entry)
            };
        }
    }
}

/// The fields of a job that change its place in the indexes.
struct Standing {
    state: &'static str,
    due: Option<u64>,
}

impl Standing {
    fn of(record: &Record) -> Self {
        Self { state: record.job.state.name(), due: record.due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(id: usize, owner: &str, created: u64, key: Option<&str>) -> Live {
        let id = format!("{id:032x}");
        let job = serde_json::json!({"id": id, "state": "queued", "kind": "field", "created": created, "devices": [], "events": []});
        let record = serde_json::json!({"id": id, "owner": owner, "job": job, "content_type": "", "query": "", "attempts": 0, "bytes": 0,
            "idempotency": key, "digest": ""});
        let record: Record = serde_json::from_value(record).unwrap();
        Live::stored(record, CancelFlag::new())
    }

    /// Who follows a job hears how it ended, also from then on; and a job that has ended keeps no channel.
    #[test]
    fn a_job_that_ended_is_followed_without_a_channel() {
        let mut ledger = Ledger::default();
        ledger.insert(live(1, "a", 0, None));
        let id = format!("{:032x}", 1);
        let mut before = ledger.get(&id).unwrap().follow();
        ledger.alter(&id, |record| record.job.state = State::Running);
        assert!(before.has_changed().unwrap() && ledger.get(&id).unwrap().changes.is_some());
        ledger.alter(&id, |record| record.job.state = State::Done);
        assert!(before.borrow_and_update().state.ended());
        let ended = ledger.get(&id).unwrap();
        assert!(ended.changes.is_none() && ended.written.is_none());
        assert!(ended.follow().borrow().state.ended());
    }

    /// The indexes find what a search through all jobs finds.
    #[test]
    fn every_index_agrees_with_a_search() {
        let mut ledger = Ledger::default();
        // A generator of Lehmer's: the order is any, and the same each time.
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed * 48_271 % 0x7fff_ffff;
            seed % below
        };
        for number in 0..4000_usize {
            let id = format!("{:032x}", random(300));
            match random(4) {
                0 => drop(ledger.remove(&id)),
                1 => {
                    let due = random(50);
                    ledger.alter(&id, |record| {
                        record.job.state = if due.is_multiple_of(2) { State::Done } else { State::Running };
                        record.due = Some(due).filter(|due| due.is_multiple_of(2));
                    });
                }
                _ if ledger.get(&id).is_none() => {
                    let owner = ["a", "ab", "b"][random(3) as usize];
                    let key = format!("{number}");
                    let id = usize::from_str_radix(&id, 16).unwrap();
                    ledger.insert(live(
                        id,
                        owner,
                        random(20),
                        Some(&key).filter(|_| number % 2 == 0).map(String::as_str),
                    ));
                }
                _ => {}
            }
            if number % 100 != 0 {
                continue;
            }
            let mut all: Vec<&Record> = ledger.jobs.values().map(|live| &live.record).collect();
            all.sort_by(|a, b| (b.job.created, &b.id).cmp(&(a.job.created, &a.id)));
            for owner in [None, Some("a"), Some("ab"), Some("b"), Some("c")] {
                let own = all.iter().filter(|record| owner.is_none_or(|owner| owner == record.owner));
                let expected: Vec<&String> = own.map(|record| &record.id).take(7).collect();
                let found = ledger.newest(owner, 7);
                assert_eq!(found.iter().map(|job| &job.id).collect::<Vec<_>>(), expected);
            }
            for record in &all {
                if let Some(key) = &record.idempotency {
                    assert_eq!(ledger.named(&record.owner, key).unwrap().record.id, record.id);
                }
            }
            let due = all.iter().filter(|record| record.due.is_some_and(|due| due <= 20)).count();
            assert_eq!(ledger.over(20, usize::MAX).len(), due);
            for (state, count) in ledger.states() {
                assert_eq!(all.iter().filter(|record| record.job.state.name() == state).count() as u64, count);
            }
        }
        assert!(ledger.jobs.len() > 50 && ledger.named("c", "1").is_none());
    }
}
