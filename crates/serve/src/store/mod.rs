//! Jobs on disk: an embedded database, written by one thread that commits what came together in one transaction. A job is accepted once its
//! transaction is on the disk.

mod open;
mod overlay;
mod pieces;
mod write;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use axum::body::Bytes;
use redb::{Database, ReadableDatabase, TableDefinition};

use crate::job::Record;
use open::{Fault, Found, Identity, load};
pub use pieces::PIECE;
use write::Writer;

const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");
const REQUESTS: TableDefinition<&str, &[u8]> = TableDefinition::new("requests");
const RESULTS: TableDefinition<&str, &[u8]> = TableDefinition::new("results");
const FACTS: TableDefinition<&str, u64> = TableDefinition::new("facts");

/// A change. What belongs together is one.
#[derive(Debug)]
pub enum Change {
    /// A new job with its request.
    Accept(Box<Record>, Bytes),
    /// A job's new state.
    Update(Box<Record>),
    /// A job's end with its result, after which the request is no longer needed.
    Finish(Box<Record>, Option<Bytes>),
    /// A job is forgotten.
    Forget(Box<Record>),
    /// Nothing but the store's age.
    Age,
}

/// Seconds that services ran with this store. It does not jump as the system's clock does.
#[derive(Debug, Clone, Copy)]
struct Age {
    before: u64,
    since: Instant,
}

impl Age {
    fn now(self) -> u64 {
        self.before.saturating_add(self.since.elapsed().as_secs())
    }
}

type Reply = tokio::sync::oneshot::Sender<Result<(), String>>;

/// The database while it is open, for who reads it and for the thread that writes it.
#[derive(Debug)]
struct Held {
    /// None after a failure of the disk in which it cannot even be read.
    database: RwLock<Option<Database>>,
    path: PathBuf,
    identity: Identity,
    age: Age,
    /// The last write failed.
    failing: AtomicBool,
}

/// The jobs on disk.
#[derive(Debug)]
pub struct Store {
    held: Arc<Held>,
    writer: SyncSender<(Change, Reply)>,
}

/// The result of [`Store::open`].
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// Every job.
    pub records: Vec<Record>,
    /// The place of a damaged database that was set aside, and the fault of it.
    pub aside: Option<(PathBuf, String)>,
}

impl Store {
    /// Opens the database of a folder. One that is damaged is set aside under another name, and a new one begun.
    ///
    /// # Errors
    /// In words, when the folder cannot be written, or another process has the database open.
    #[expect(clippy::disallowed_methods, reason = "at the start, before anybody is served")]
    pub fn open(folder: &Path) -> Result<Opened, String> {
        let path = folder.join("jobs.redb");
        let (database, Found { records, age }, aside) = match load(&path) {
            Ok((database, found)) => (database, found, None),
            Err(Fault::Other(reason)) => return Err(format!("{}: {reason}", path.display())),
            Err(Fault::Damaged(reason)) => {
                let aside = (0..10_000)
                    .map(|number| folder.join(format!("jobs.damaged-{number}.redb")))
                    .find(|path| !path.exists())
                    .ok_or("too many damaged databases were set aside: remove some")?;
                std::fs::rename(&path, &aside)
                    .map_err(|error| format!("cannot set {} aside: {error}", path.display()))?;
                let (database, found) =
                    load(&path).map_err(|fault| format!("{}: {}", path.display(), fault.reason()))?;
                (database, found, Some((aside, reason)))
            }
        };
        let identity = Identity::of(&path).ok_or_else(|| format!("{} is gone", path.display()))?;
        let age = Age { before: age, since: Instant::now() };
        let database = RwLock::new(Some(database));
        let held = Arc::new(Held { database, path, identity, age, failing: AtomicBool::new(false) });
        let (writer, changes) = sync_channel(4096);
        let mut thread = Writer::new(held.clone());
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || thread.work(&changes))
            .map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(Opened { store: Self { held, writer }, records, aside })
    }

    /// Makes a change, and waits until it is on the disk.
    ///
    /// # Errors
    /// What the disk says; then nothing is changed.
    pub async fn change(&self, change: Change) -> Result<(), String> {
        let (reply, outcome) = tokio::sync::oneshot::channel();
        let mut sent = (change, reply);
        // The channel is bounded: a disk that is slower than its callers slows them down.
        loop {
            match self.writer.try_send(sent) {
                Ok(()) => break,
                Err(std::sync::mpsc::TrySendError::Full(back)) => {
                    sent = back;
                    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
                }
                Err(std::sync::mpsc::TrySendError::Disconnected(_)) => return Err("the store has ended".to_owned()),
            }
        }
        outcome.await.unwrap_or_else(|_| Err("the store has ended".to_owned()))
    }

    /// Seconds that services ran with this store: times to keep things count these seconds, whatever the system's clock says.
    pub fn age(&self) -> u64 {
        self.held.age.now()
    }

    /// Returns whether the last write failed. The store tries again by itself.
    pub fn is_failing(&self) -> bool {
        self.held.failing.load(Ordering::Relaxed)
    }

    /// The request of a job.
    ///
    /// # Errors
    /// In words, of the disk, or where there is no memory for it.
    pub fn request(&self, id: &str) -> Result<Option<Vec<u8>>, String> {
        self.reading(|read| pieces::whole(&read.open_table(REQUESTS)?, id))?.transpose()
    }

    /// A piece of the result of a job. Together they are the result; there are no more from the first one on that is not there.
    ///
    /// # Errors
    /// As [`Store::request`].
    pub fn result(&self, id: &str, piece: usize) -> Result<Option<Vec<u8>>, String> {
        self.reading(|read| pieces::get(&read.open_table(RESULTS)?, id, piece))?.transpose()
    }

    fn reading<T>(&self, work: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error>) -> Result<T, String> {
        let database = self.held.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or("the database is closed after a failure of the disk")?;
        let read = database.begin_read().map_err(|error| error.to_string())?;
        work(&read).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test waits")]
mod tests {
    use super::open::FORMAT;
    use super::*;

    /// Opens a store once the thread of the one before has ended.
    fn open(folder: &Path) -> Result<Opened, String> {
        let mut opened = Store::open(folder);
        for _ in 0..100 {
            match &opened {
                Err(reason) if reason.contains("another process") => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    opened = Store::open(folder);
                }
                _ => break,
            }
        }
        opened
    }

    #[test]
    fn a_store_of_a_newer_version_is_kept_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()).unwrap());
        assert!(open(folder.path()).unwrap().aside.is_none());
        let path = folder.path().join("jobs.redb");
        let change = |format: u64| {
            let database = (0..100).find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                Database::create(&path).ok()
            });
            let write = database.as_ref().unwrap().begin_write().unwrap();
            write.open_table(FACTS).unwrap().insert("format", format).unwrap();
            write.commit().unwrap();
        };
        change(FORMAT + 1);
        let reason = open(folder.path()).unwrap_err();
        assert!(reason.contains("a newer version wrote it"), "{reason}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        change(FORMAT);
        assert!(open(folder.path()).unwrap().aside.is_none());
    }

    #[test]
    fn a_store_of_a_newer_library_is_kept_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()).unwrap());
        let path = folder.path().join("jobs.redb");
        // Once the writer of the store has closed it.
        eventually(|| Database::open(&path).is_ok());
        let mut bytes = std::fs::read(&path).unwrap();
        // The versions of the file's format, in both of its slots.
        for slot in [64, 192] {
            bytes[slot] += 1;
        }
        std::fs::write(&path, &bytes).unwrap();
        let reason = open(folder.path()).unwrap_err();
        assert!(reason.contains("a newer version wrote it"), "{reason}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// A job that has ended, with its result.
    fn ended(id: &str, result: Vec<u8>) -> Change {
        let job =
            serde_json::json!({"id": id, "state": "done", "kind": "field", "created": 1, "devices": [], "events": []});
        let record = serde_json::json!({"id": id, "owner": "a", "job": job, "content_type": "", "query": "", "attempts": 0, "bytes": 0, "digest": ""});
        Change::Finish(serde_json::from_value(record).unwrap(), Some(result.into()))
    }

    fn eventually(condition: impl Fn() -> bool) {
        let until = Instant::now() + std::time::Duration::from_secs(60);
        while !condition() {
            assert!(Instant::now() < until, "it never happened");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    #[test]
    fn a_store_that_is_removed_takes_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap().store;
        pollster::block_on(store.change(ended("first", vec![1]))).unwrap();
        let (path, elsewhere) = (folder.path().join("jobs.redb"), folder.path().join("elsewhere"));
        std::fs::rename(&path, &elsewhere).unwrap();
        let reason = pollster::block_on(store.change(ended("second", vec![2]))).unwrap_err();
        assert!(reason.contains("was removed or replaced") && store.is_failing(), "{reason}");
        // Another one in its place is not it.
        std::fs::copy(&elsewhere, &path).unwrap();
        assert!(pollster::block_on(store.change(Change::Age)).is_err());
        assert_eq!(store.result("first", 0).unwrap(), Some(vec![1]));
        // Moved back, it goes on by itself.
        std::fs::rename(&elsewhere, &path).unwrap();
        eventually(|| !store.is_failing());
        pollster::block_on(store.change(ended("second", vec![2]))).unwrap();
        assert_eq!(store.result("second", 0).unwrap(), Some(vec![2]));
    }

    /// Neither the store nor who reads it holds more than a piece at a time; of results of before, all of it is the first one.
    #[test]
    fn results_are_kept_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap().store;
        let result: Vec<u8> = (0..1_000_000_u32).map(|at| (at.wrapping_mul(at) >> 4) as u8).collect();
        for (id, bytes) in [("large", &result[..]), ("larger", &result[..7]), ("none", &[])] {
            pollster::block_on(store.change(ended(id, bytes.to_vec()))).unwrap();
        }
        let read = |id: &str| -> Vec<Vec<u8>> { (0..).map_while(|piece| store.result(id, piece).unwrap()).collect() };
        let pieces = read("large");
        assert!(pieces.len() > 3 && pieces.iter().all(|piece| piece.len() <= PIECE));
        assert!(pieces.concat() == result);
        assert_eq!((read("larger"), read("none"), read("nobody")), (vec![result[..7].to_vec()], vec![vec![]], vec![]));
        let Change::Finish(record, _) = ended("large", Vec::new()) else { unreachable!() };
        pollster::block_on(store.change(Change::Forget(record))).unwrap();
        assert_eq!((read("large").len(), read("larger").len()), (0, 1));
        let left = store.reading(|read| Ok(redb::ReadableTableMetadata::len(&read.open_table(RESULTS)?)?)).unwrap();
        assert_eq!(left, 2);
        // Format 1 had them whole.
        let database = store.held.database.read().unwrap();
        let write = database.as_ref().unwrap().begin_write().unwrap();
        write.open_table(RESULTS).unwrap().insert("old", &result[..]).unwrap();
        write.commit().unwrap();
        drop(database);
        assert!(read("old") == [result]);
    }

    /// The state of a job that a stop interrupts may come after its end, or after the job is forgotten: neither comes back as one without a request.
    #[test]
    fn a_state_does_not_undo_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap().store;
        let Change::Finish(done, _) = ended("one", Vec::new()) else { unreachable!() };
        let mut running = done.clone();
        running.job.state = crate::job::State::Running;
        let change = |change: Change| pollster::block_on(store.change(change)).unwrap();
        let mut forgotten = running.clone();
        forgotten.id = "two".to_owned();
        change(Change::Accept(running.clone(), vec![7].into()));
        change(Change::Accept(forgotten.clone(), vec![8].into()));
        change(Change::Update(running.clone()));
        assert_eq!(store.request("one").unwrap(), Some(vec![7]));
        change(Change::Finish(done, Some(vec![1].into())));
        change(Change::Update(running));
        change(Change::Forget(forgotten.clone()));
        change(Change::Update(forgotten));
        assert_eq!(store.result("one", 0).unwrap(), Some(vec![1]));
        drop(store);
        let records = open(folder.path()).unwrap().records;
        assert_eq!(
            records.iter().map(|record| (&*record.id, record.job.state.name())).collect::<Vec<_>>(),
            [("one", "done")]
        );
    }

    #[test]
    fn an_empty_store_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("jobs.redb"), "").unwrap();
        let (aside, reason) = open(folder.path()).unwrap().aside.unwrap();
        assert_eq!((std::fs::metadata(aside).unwrap().len(), reason.as_str()), (0, "it is empty"));
    }

    #[test]
    fn a_store_ages_with_the_services_that_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(folder.path()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1100));
        pollster::block_on(opened.store.change(Change::Age)).unwrap();
        let age = opened.store.age();
        drop(opened);
        assert!(age >= 1 && open(folder.path()).unwrap().store.age() >= age);
    }
}
