//! The thread that writes. One thread writes, and many changes go into one transaction. A change that cannot be written is tried again later; nobody is
//! told before it is. After a failure the database is opened anew, and if the disk takes no writes, to read alone.
#![expect(clippy::disallowed_methods, reason = "on the store's own thread")]

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use redb::{Database, ReadableTable as _, Table};

use crate::job::{Record, Shape};

use super::open::{Identity, again, to_read};
use super::pieces;
use super::{Age, Change, FACTS, Held, RECORDS, REQUESTS, RESULTS, Reply};

/// The time after which a failed write is tried again, if nobody writes before.
const RETRY: Duration = Duration::from_secs(1);

/// Bytes that the disk must take before a large database is opened again.
const PROBE: usize = 64 << 10;

/// The one that writes.
pub(super) struct Writer {
    held: Arc<Held>,
    /// The open database takes writes; it may be open to read alone.
    writable: bool,
    /// Opening reads all of the database: after it failed, not again before then.
    not_before: Option<Instant>,
}

impl Writer {
    pub fn new(held: Arc<Held>) -> Self {
        Self { held, writable: true, not_before: None }
    }

    /// Writes what comes until the store is dropped.
    pub fn work(&mut self, changes: &Receiver<(Change, Reply)>) {
        loop {
            let first = if self.held.failing.load(Ordering::Relaxed) {
                changes.recv_timeout(RETRY)
            } else {
                changes.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            let first = match first {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.attempt(&[&Change::Age]);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let batch: Vec<(Change, Reply)> = std::iter::once(first).chain(changes.try_iter().take(511)).collect();
            let outcome = self.attempt(&batch.iter().map(|(change, _)| change).collect::<Vec<_>>());
            // One that cannot be written costs the others nothing.
            let alone = outcome.is_err() && batch.len() > 1;
            for (change, reply) in batch {
                let outcome = if alone { self.attempt(&[&change]) } else { outcome.clone() };
                let _ = reply.send(outcome);
            }
        }
    }

    fn attempt(&mut self, changes: &[&Change]) -> Result<(), String> {
        let outcome = self.opened().and_then(|()| self.committed(changes));
        self.held.failing.store(outcome.is_err(), Ordering::Relaxed);
        outcome
    }

    /// Sees to it that the database is there and takes writes.
    fn opened(&mut self) -> Result<(), String> {
        let Held { path, identity, .. } = &*self.held;
        // What is written into a file without a name is gone with the process.
        if Identity::of(path) != Some(*identity) {
            return Err(format!(
                "{} was removed or replaced while it was open: move it back, or restart the service",
                path.display()
            ));
        }
        if self.writable {
            return Ok(());
        }
        if self.not_before.is_some_and(|then| Instant::now() < then) {
            return Err("the database is opened again in a moment".to_owned());
        }
        self.open_again()
    }

    /// Opens the database again, which has to write; where it cannot, to read alone.
    fn open_again(&mut self) -> Result<(), String> {
        let path = &self.held.path;
        let possible = probe(path);
        let tried = possible.is_ok();
        let mut database = self.held.database.write().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let opened = possible.and_then(|()| {
            // It holds the file's lock.
            drop(database.take());
            again(path)
        });
        match opened {
            Ok(opened) => {
                *database = Some(opened);
                (self.writable, self.not_before) = (true, None);
                Ok(())
            }
            Err(reason) => {
                if std::mem::take(&mut self.writable) {
                    drop(database.take());
                }
                if database.is_none() {
                    *database = to_read(path).ok();
                }
                self.not_before = tried.then(|| Instant::now() + 10 * begun.elapsed());
                Err(reason)
            }
        }
    }

    fn committed(&mut self, changes: &[&Change]) -> Result<(), String> {
        let outcome = {
            let held = self.held.database.read().unwrap_or_else(PoisonError::into_inner);
            let held = held.as_ref().ok_or_else(|| "the database is closed".to_owned());
            held.and_then(|held| {
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| commit(held, self.held.age, changes)))
                    .unwrap_or_else(|_| Err(redb::Error::Corrupted("it panicked".to_owned())))
                    .map_err(|error| error.to_string())
            })
        };
        if outcome.is_err() {
            // After a failure of the disk the database gives nothing more until it is opened again.
            let _ = self.open_again();
        }
        outcome
    }
}

/// Asks whether the disk takes a write at all.
fn probe(path: &Path) -> Result<(), String> {
    let probe = path.with_file_name(format!(".cantus-probe-{}", crate::keys::random_hex::<16>()?));
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&probe);
    let outcome = file.and_then(|mut file| file.write_all(&[0; PROBE]).and_then(|()| file.sync_data()));
    let _ = std::fs::remove_file(&probe);
    outcome.map_err(|error| error.to_string())
}

fn commit(database: &Database, age: Age, changes: &[&Change]) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    {
        let mut records = write.open_table(RECORDS)?;
        let mut requests = write.open_table(REQUESTS)?;
        let mut results = write.open_table(RESULTS)?;
        write.open_table(FACTS)?.insert("age", age.now())?;
        for change in changes {
            let (Change::Accept(record, _)
            | Change::Update(record)
            | Change::Finish(record, _)
            | Change::Forget(record)) = change
            else {
                continue;
            };
            let id = record.id.as_str();
            if let Change::Forget(_) = change {
                records.remove(id)?;
                pieces::remove(&mut requests, id)?;
                pieces::remove(&mut results, id)?;
                continue;
            }
            // A stop writes the states of what it interrupts while the ends of some are on their way: an end stays, and so does a job's absence.
            if matches!(change, Change::Update(_)) && !is_open(&records, id)? {
                continue;
            }
            let bytes = serde_json::to_vec(record).map_err(|error| redb::Error::Io(error.into()))?;
            records.insert(id, bytes.as_slice())?;
            match change {
                Change::Accept(_, request) => {
                    pieces::put(&mut requests, id, request, 1)?;
                }
                Change::Finish(_, result) => {
                    pieces::remove(&mut requests, id)?;
                    if let Some(result) = result {
                        let each = record.shape.as_ref().map_or(1, Shape::each);
                        pieces::put(&mut results, id, result, each)?;
                    }
                }
                _ => {}
            }
        }
    }
    write.commit()?;
    Ok(())
}

/// Returns whether a job is on the disk and has not ended.
fn is_open(records: &Table<'_, &'static str, &'static [u8]>, id: &str) -> Result<bool, redb::Error> {
    let Some(bytes) = records.get(id)? else { return Ok(false) };
    let record: Record = serde_json::from_slice(bytes.value()).map_err(|error| redb::Error::Io(error.into()))?;
    Ok(!record.job.state.ended())
}
