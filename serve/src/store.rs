//! Jobs on disk: an embedded database, written by one thread that commits what came together in one transaction. A job is accepted once its
//! transaction is on the disk.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};

use crate::job::Record;

const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");
const REQUESTS: TableDefinition<&str, &[u8]> = TableDefinition::new("requests");
const RESULTS: TableDefinition<&str, &[u8]> = TableDefinition::new("results");

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
}

type Reply = tokio::sync::oneshot::Sender<Result<(), String>>;

/// The jobs on disk.
#[derive(Debug)]
pub struct Store {
    database: Arc<RwLock<Option<Database>>>,
    writer: SyncSender<(Change, Reply)>,
}

/// What [`Store::open`] found.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// Every job.
    pub records: Vec<Record>,
    /// Where a damaged database was set aside, and what was wrong with it.
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
        let (database, records, aside) = match load(&path) {
            Ok((database, records)) => (database, records, None),
            Err(Fault::Other(reason)) => return Err(format!("{}: {reason}", path.display())),
            Err(Fault::Damaged(reason)) => {
                let aside = (0..10_000)
                    .map(|number| folder.join(format!("jobs.damaged-{number}.redb")))
                    .find(|path| !path.exists())
                    .ok_or("too many damaged databases were set aside: remove some")?;
                std::fs::rename(&path, &aside)
                    .map_err(|error| format!("cannot set {} aside: {error}", path.display()))?;
                let (database, records) =
                    load(&path).map_err(|fault| format!("{}: {}", path.display(), fault.reason()))?;
                (database, records, Some((aside, reason)))
            }
        };
        let database = Arc::new(RwLock::new(Some(database)));
        let (writer, changes) = sync_channel(4096);
        let held = database.clone();
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || write(&held, &path, &changes))
            .map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(Opened { store: Self { database, writer }, records, aside })
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

fn load(path: &Path) -> Result<(Database, Vec<Record>), Fault> {
    // A damaged file may make the database panic; that is damage too.
    std::panic::catch_unwind(|| load_unguarded(path))
        .unwrap_or_else(|_| Err(Fault::Damaged("it cannot be read".to_owned())))
}

fn load_unguarded(path: &Path) -> Result<(Database, Vec<Record>), Fault> {
    use redb::{DatabaseError, StorageError};
    let database = Database::create(path).map_err(|error| match &error {
        DatabaseError::DatabaseAlreadyOpen => Fault::Other("another process has it open".to_owned()),
        DatabaseError::Storage(StorageError::Io(io)) => match io.kind() {
            // What is too short, or is no database at all.
            std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof => Fault::Damaged(error.to_string()),
            _ => Fault::Other(error.to_string()),
        },
        _ => Fault::Damaged(error.to_string()),
    })?;
    let damaged = |error: redb::Error| match error {
        redb::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => Fault::Other(io.to_string()),
        error => Fault::Damaged(error.to_string()),
    };
    tables(&database).map_err(damaged)?;
    let records = records(&database).map_err(damaged)?;
    let records: Result<Vec<Record>, _> = records.iter().map(|bytes| serde_json::from_slice(bytes)).collect();
    let records = records.map_err(|error| Fault::Damaged(format!("a job's record cannot be read: {error}")))?;
    Ok((database, records))
}

/// Every table exists from the first transaction on.
fn tables(database: &Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    write.open_table(RECORDS)?;
    write.open_table(REQUESTS)?;
    write.open_table(RESULTS)?;
    write.commit()?;
    Ok(())
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
fn write(database: &RwLock<Option<Database>>, path: &Path, changes: &Receiver<(Change, Reply)>) {
    while let Ok(first) = changes.recv() {
        let batch: Vec<(Change, Reply)> = std::iter::once(first).chain(changes.try_iter().take(511)).collect();
        let outcome = attempt(database, path, &batch.iter().map(|(change, _)| change).collect::<Vec<_>>());
        // One that cannot be written costs the others nothing.
        let alone = outcome.is_err() && batch.len() > 1;
        for (change, reply) in batch {
            let outcome = if alone { attempt(database, path, &[&change]) } else { outcome.clone() };
            let _ = reply.send(outcome);
        }
    }
}

fn attempt(database: &RwLock<Option<Database>>, path: &Path, changes: &[&Change]) -> Result<(), String> {
    let outcome = {
        let held = database.read().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_ref().ok_or_else(|| "the database is closed".to_owned());
        held.and_then(|held| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| commit(held, changes)))
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

fn commit(database: &Database, changes: &[&Change]) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    {
        let mut records = write.open_table(RECORDS)?;
        let mut requests = write.open_table(REQUESTS)?;
        let mut results = write.open_table(RESULTS)?;
        for change in changes {
            let (Change::Accept(record, _)
            | Change::Update(record)
            | Change::Finish(record, _)
            | Change::Forget(record)) = change;
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
