//! How the database is opened: for the first time, and again after a failure of the disk. `store` opens the database by it at the start, and `write` again
//! after a failure of the disk. A damaged file is set aside and the service starts without it; a newer format ends the start instead, since nothing of it
//! may be touched. The database's panics count as damage.
#![expect(clippy::disallowed_methods, reason = "on the store's own thread, and at the start")]

use std::path::Path;

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata};

use super::overlay::Overlay;
use super::{FACTS, RECORDS, REQUESTS, RESULTS};
use crate::job::Record;

/// Bytes of the database that are kept in memory: records are there anyway, and a result is read once.
const CACHE: usize = 32 << 20;

/// The version of the tables' format: a newer service may write another one. Of 1 requests and results are single values, which are read as one piece.
pub(super) const FORMAT: u64 = 2;

const NEWER: &str = "a newer version wrote it; it is kept as it is: run that version, or give another folder (--data)";

/// Which file it is: another one may come to lie under its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

impl Identity {
    /// The file that lies at a path, if any.
    pub fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        return Some(Self(std::os::unix::fs::MetadataExt::dev(&found), std::os::unix::fs::MetadataExt::ino(&found)));
        #[cfg(not(unix))]
        return found.is_file().then_some(Self(0, 0));
    }
}

/// Opens a database again that was open before. Unlike [`load`] it makes none.
///
/// # Errors
/// In words.
pub(super) fn again(path: &Path) -> Result<Database, String> {
    guarded(|| Database::builder().set_cache_size(CACHE).open(path).map_err(|error| error.to_string()))
}

/// Opens it for reading where the disk takes no writes: what opening has to write stays in memory.
///
/// # Errors
/// In words.
pub(super) fn to_read(path: &Path) -> Result<Database, String> {
    guarded(|| {
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        let file = FileBackend::new(file).map_err(|error| error.to_string())?;
        let overlay = Overlay::new(file).map_err(|error| error.to_string())?;
        let builder = Database::builder().set_cache_size(CACHE).create_with_backend(overlay);
        builder.map_err(|error| error.to_string())
    })
}

/// A damaged file may make the database panic.
fn guarded<T>(open: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(open)).unwrap_or_else(|_| Err("it cannot be read".to_owned()))
}

/// Why a database does not open.
pub(super) enum Fault {
    Damaged(String),
    Other(String),
}

impl Fault {
    pub fn reason(self) -> String {
        match self {
            Self::Damaged(reason) | Self::Other(reason) => reason,
        }
    }
}

/// The contents of a database.
pub(super) struct Found {
    pub records: Vec<Record>,
    pub age: u64,
}

pub(super) fn load(path: &Path) -> Result<(Database, Found), Fault> {
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
        // The file's format, a layer below that of the tables. The library has no kind of error for a newer one, only these words.
        DatabaseError::Storage(StorageError::Corrupted(reason)) if reason.contains("file format version") => {
            Fault::Other(format!("{NEWER} ({reason})"))
        }
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
        return Err(Fault::Other(NEWER.to_owned()));
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
        if format.is_none_or(|format| format < FORMAT) {
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
