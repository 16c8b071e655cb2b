//! The progress of a stream, in a file, so that an interrupted run continues. `run` loads it before the first chunk and saves it between chunks, after the
//! sink's rows have reached the disk. It is replaced whole by renaming. A checkpoint of other sources, work or chunk sizes is an error that says what
//! differs, never ignored.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::files::Temporary;
use crate::fnv::fnv;

use super::feed::Digests;

/// Before the checksum of what follows it.
const MAGIC: &[u8; 16] = b"cantus stream 3\n";

/// The work that a checkpoint belongs to. Where all of it is the same, the rest of the rows is computed as the first ones were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) sources: String,
    /// The operation, and the name that the app gave its work.
    pub(super) work: String,
    /// Rows before and after those of a chunk.
    pub(super) overlap: (u64, u64),
    /// Rows of a chunk.
    pub(super) chunk_rows: u64,
}

/// The state after all rows before `next`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) identity: Identity,
    pub(super) next: u64,
    /// Of the rows before.
    pub(super) digests: Digests,
    /// The state of the work.
    pub(super) state: Vec<u8>,
    /// The value that is carried from chunk to chunk.
    pub(super) carry: Option<Vec<u8>>,
}

/// The file.
#[derive(Debug)]
pub(super) struct Checkpoint {
    path: PathBuf,
    every: Duration,
    written: Instant,
    /// Another process that goes on from the same file would write over this one's rows.
    _lock: Lock,
}

/// A file beside the checkpoint that is locked as long as it is there.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Checkpoint {
    /// Takes the file for this process.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if another one works on it, [`Error::Io`] if it cannot be written.
    pub(super) fn new((path, every): (PathBuf, Duration)) -> Result<Self> {
        let fault = |error: &std::io::Error| Error::Io {
            action: "cannot write".to_owned(),
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let lock = beside(&path, ".lock");
        let file = File::options().write(true).create(true).truncate(false).open(&lock);
        let file = file.map_err(|error| fault(&error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(invalid(&path, "another process works on it: wait for that one")),
            Err(TryLockError::Error(error)) if error.kind() != std::io::ErrorKind::Unsupported => Err(fault(&error)),
            _ => {
                let _lock = Lock { path: lock, _file: file };
                Ok(Self { path, every, written: Instant::now(), _lock })
            }
        }
    }

    /// Loads the checkpoint of an earlier run.
    pub(super) fn load(&self) -> Result<Option<Saved>> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::unreadable(&self.path, &error)),
        };
        let whole = bytes.strip_prefix(MAGIC).and_then(|rest| rest.split_first_chunk::<8>());
        let whole = whole.filter(|(sum, rest)| u64::from_le_bytes(**sum) == fnv(rest));
        let saved = whole.and_then(|(_, rest)| postcard::from_bytes(rest).ok());
        saved.map(Some).ok_or_else(|| invalid(&self.path, &again("it is damaged, or of another version")))
    }

    /// Checks that the work of an earlier run is that of this one.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] with what differs.
    pub(super) fn compare(&self, saved: &Identity, own: &Identity) -> Result<()> {
        let differs = if saved.sources != own.sources {
            "it belongs to other sources, or they have changed".to_owned()
        } else if saved.work != own.work {
            "it belongs to other work: another kernel, or other settings".to_owned()
        } else if saved != own {
            let Identity { overlap: (before, after), chunk_rows, .. } = saved;
            format!("it belongs to chunks of {chunk_rows} rows with {before} before and {after} after them")
        } else {
            return Ok(());
        };
        Err(invalid(&self.path, &again(&differs)))
    }

    /// Returns whether it is time for one.
    pub(super) fn is_due(&self) -> bool {
        self.written.elapsed() >= self.every
    }

    /// Writes it, whole or not at all.
    pub(super) fn save(
        &mut self,
        identity: &Identity,
        (next, digests): (u64, Digests),
        state: Vec<u8>,
        carry: Option<&Tensor>,
    ) -> Result<()> {
        let carry = carry.map(Tensor::to_bytes).transpose()?;
        let saved = Saved { identity: identity.clone(), next, digests, state, carry };
        let written = postcard::to_allocvec(&saved).map_err(std::io::Error::other).and_then(|bytes| {
            let mut temporary = Temporary::of_one_writer(self.temporary())?;
            temporary.file().write_all(MAGIC)?;
            temporary.file().write_all(&fnv(&bytes).to_le_bytes())?;
            temporary.file().write_all(&bytes)?;
            temporary.file().sync_data()?;
            temporary.commit(&self.path)
        });
        self.written = Instant::now();
        written.map_err(|error| Error::Io {
            action: "cannot write".to_owned(),
            path: self.path.display().to_string(),
            reason: error.to_string(),
        })
    }

    /// Returns the path where the checkpoint is written before it is renamed. It is always the same, so killed runs leave one file at most.
    fn temporary(&self) -> PathBuf {
        beside(&self.path, ".tmp")
    }

    /// The work is done.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_file(self.temporary());
        let _ = std::fs::remove_file(&self.path);
    }

    /// The tensor that was carried, in the form of the one that the work began with.
    pub(super) fn restore(&self, engine: &Engine, like: &Tensor, bytes: &[u8]) -> Result<Tensor> {
        engine.tensor_from_bytes(like.dtype(), like.shape(), bytes)
    }
}

fn beside(path: &std::path::Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(ending);
    path.with_file_name(name)
}

fn again(reason: &str) -> String {
    format!("{reason} (remove it to start again)")
}

fn invalid(path: &std::path::Path, reason: &str) -> Error {
    Error::file(format!("the checkpoint {}", path.display()), reason)
}
