//! Jobs on disk: an embedded database, written by one thread that commits what came together in one transaction. A job is accepted once its
//! transaction is on the disk.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};

use crate::job::Record;

const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");
const REQUESTS: TableDefinition<&str, &[u8]> = TableDefinition::new("requests");
const RESULTS: TableDefinition<&str, &[u8]> = TableDefinition::new("results");
const FACTS: TableDefinition<&str, u64> = TableDefinition::new("facts");

/// Bytes of the database that are kept in memory: records are there anyway, and a result is read once.
const CACHE: usize = 32 << 20;

/// The version of the tables' format: a newer service may write another one.
const FORMAT: u64 = 1;

/// A change. What belongs together is one.
#[derive(Debug)]
pub enum Change {
    /// A new job with its request.
    Accept(Box<Record>, Arc<[u8]>),
    /// A job's new state.
    Update(Box<Record>),
    /// A job's end with its result, after which the request is no longer needed.
    Finish(Box<Record>, Option<Vec<u8>>),
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

/// The jobs on disk.
#[derive(Debug)]
pub struct Store {
    database: Arc<RwLock<Option<Database>>>,
    age: Age,
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
    pub fn open(folder: &Path) -> Result<Opened, String> {
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let path = folder.join("jobs.redb");
        private(folder, 0o700);
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
        private(&path, 0o600);
        let age = Age { before: age, since: Instant::now() };
        let database = Arc::new(RwLock::new(Some(database)));
        let (writer, changes) = sync_channel(4096);
        let held = database.clone();
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || write(&held, &path, age, &changes))
            .map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(Opened { store: Self { database, age, writer }, records, aside })
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
        self.age.now()
    }

    /// The request of a job.
    pub fn request(&self, id: &str) -> Result<Option<Vec<u8>>, String> {
        self.get(REQUESTS, id)
    }

    /// The result of a job.
    pub fn result(&self, id: &str) -> Result<Option<Vec<u8>>, String> {
        self.get(RESULTS, id)
    }

    fn get(&self, table: TableDefinition<&str, &[u8]>, id: &str) -> Result<Option<Vec<u8>>, String> {
        self.reading(|read| Ok(read.open_table(table)?.get(id)?.map(|bytes| bytes.value().to_vec())))
    }

    fn reading<T>(&self, work: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error>) -> Result<T, String> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or("the database is closed after a failure of the disk")?;
        let read = database.begin_read().map_err(|error| error.to_string())?;
        work(&read).map_err(|error| error.to_string())
    }
}

/// Why a database does not open.
enum Fault {
    Damaged(String),
    Other(String),
}

impl Fault {
    fn reason(self) -> String {
        match self {
            Self::Damaged(reason) | Self::Other(reason) => reason,
        }
    }
}

/// The contents of a database.
struct Found {
    records: Vec<Record>,
    age: u64,
}

/// Leaves a file or folder to its owner alone. One that was there before may be somebody else's: then it stays as it is.
fn private(path: &Path, mode: u32) {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        if let Err(error) = std::fs::set_permissions(path, mode) {
            crate::log(&format!("warning: others may read {}: {error}", path.display()));
        }
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
}

fn load(path: &Path) -> Result<(Database, Found), Fault> {
    // A damaged file may make the database panic; that is damage too.
    std::panic::catch_unwind(|| load_unguarded(path))
        .unwrap_or_else(|_| Err(Fault::Damaged("it cannot be read".to_owned())))
}

fn load_unguarded(path: &Path) -> Result<(Database, Found), Fault> {
    use redb::{DatabaseError, StorageError};
    // The database would begin anew in it, as if there had been nothing.
    if std::fs::metadata(path).is_ok_and(|found| found.len() == 0) {
        return Err(Fault::Damaged("it is empty".to_owned()));
    }
    let database = Database::builder().set_cache_size(CACHE).create(path).map_err(|error| match &error {
        DatabaseError::DatabaseAlreadyOpen => Fault::Other("another process has it open".to_owned()),
        DatabaseError::UpgradeRequired(_) => Fault::Other(format!("this version cannot read it; it is kept: {error}")),
        DatabaseError::Storage(StorageError::Io(io)) => match io.kind() {
            // What is too short, or is no database at all.
            std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof => Fault::Damaged(error.to_string()),
            _ => Fault::Other(error.to_string()),
        },
        _ => Fault::Damaged(error.to_string()),
    })?;
    let damaged = |error: redb::Error| match error {
        redb::Error::Io(io) if is_full(&io) => Fault::Other(io.to_string()),
        error => Fault::Damaged(error.to_string()),
    };
    let (format, age) = facts(&database).map_err(damaged)?;
    if format > FORMAT {
        return Err(Fault::Other(
            "a newer version wrote it; it is kept as it is: run that version, or give another folder (--data)"
                .to_owned(),
        ));
    }
    let records = records(&database).map_err(damaged)?;
    let records: Result<Vec<Record>, _> = records.iter().map(|bytes| serde_json::from_slice(bytes)).collect();
    let records = records.map_err(|error| Fault::Damaged(format!("a job's record cannot be read: {error}")))?;
    Ok((database, Found { records, age }))
}

/// Returns whether there is no room: on the disk, of a quota, or below the limit on a file's size.
fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The format and the age. Of this format every table exists from the first transaction on; of a newer one nothing is touched.
fn facts(database: &Database) -> Result<(u64, u64), redb::Error> {
    let write = database.begin_write()?;
    let found = {
        let mut facts = write.open_table(FACTS)?;
        let fact = |name| Ok::<_, redb::Error>(facts.get(name)?.map(|fact| fact.value()));
        let (format, age) = (fact("format")?, fact("age")?.unwrap_or(0));
        if format.is_none() {
            facts.insert("format", FORMAT)?;
        }
        (format.unwrap_or(FORMAT), age)
    };
    if found.0 > FORMAT {
        write.abort()?;
        return Ok(found);
    }
    write.open_table(RECORDS)?;
    write.open_table(REQUESTS)?;
    write.open_table(RESULTS)?;
    write.commit()?;
    Ok(found)
}

fn records(database: &Database) -> Result<Vec<Vec<u8>>, redb::Error> {
    let read = database.begin_read()?;
    // Requests of jobs that wait must be readable too: better to know it now.
    let requests = read.open_table(REQUESTS)?;
    let _ = requests.len()?;
    let table = read.open_table(RECORDS)?;
    let mut found = Vec::new();
    for row in table.iter()? {
        let (_, bytes) = row?;
        found.push(bytes.value().to_vec());
    }
    Ok(found)
}

/// The thread that writes.
fn write(database: &RwLock<Option<Database>>, path: &Path, age: Age, changes: &Receiver<(Change, Reply)>) {
    while let Ok(first) = changes.recv() {
        let batch: Vec<(Change, Reply)> = std::iter::once(first).chain(changes.try_iter().take(511)).collect();
        let outcome = attempt(database, path, age, &batch.iter().map(|(change, _)| change).collect::<Vec<_>>());
        // One that cannot be written costs the others nothing.
        let alone = outcome.is_err() && batch.len() > 1;
        for (change, reply) in batch {
            let outcome = if alone { attempt(database, path, age, &[&change]) } else { outcome.clone() };
            let _ = reply.send(outcome);
        }
    }
}

fn attempt(database: &RwLock<Option<Database>>, path: &Path, age: Age, changes: &[&Change]) -> Result<(), String> {
    let outcome = {
        let held = database.read().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_ref().ok_or_else(|| "the database is closed".to_owned());
        held.and_then(|held| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| commit(held, age, changes)))
                .unwrap_or_else(|_| Err(redb::Error::Corrupted("it panicked".to_owned())))
                .map_err(|error| error.to_string())
        })
    };
    if outcome.is_err() {
        // After a failure of the disk the database takes nothing more until it is opened again.
        let mut held = database.write().unwrap_or_else(PoisonError::into_inner);
        drop(held.take());
        *held = load(path).ok().map(|(database, _)| database);
    }
    outcome
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
                requests.remove(id)?;
                results.remove(id)?;
                continue;
            }
            let bytes = serde_json::to_vec(record).map_err(|error| redb::Error::Io(error.into()))?;
            records.insert(id, bytes.as_slice())?;
            match change {
                Change::Accept(_, request) => {
                    requests.insert(id, &request[..])?;
                }
                Change::Finish(_, result) => {
                    requests.remove(id)?;
                    if let Some(result) = result {
                        results.insert(id, result.as_slice())?;
                    }
                }
                _ => {}
            }
        }
    }
    write.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
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
