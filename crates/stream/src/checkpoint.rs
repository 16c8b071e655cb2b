//! The progress of a stream, in a file, so that an interrupted run continues.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use crate::files::Temporary;

const MAGIC: &[u8; 16] = b"cantus stream 1\n";

/// The state after all rows before `next`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    /// The identity of the stream: the sources and the work.
    identity: String,
    pub(super) next: u64,
    /// The state of the work.
    pub(super) state: Vec<u8>,
    /// The value that is carried from chunk to chunk.
    pub(super) carry: Option<Vec<u8>>,
}

/// The file.
#[derive(Debug)]
pub(super) struct Checkpoint {
    path: PathBuf,
    identity: String,
    every: Duration,
    written: Instant,
}

impl Checkpoint {
    pub(super) fn new((path, every): (PathBuf, Duration), identity: String) -> Self {
        Self { path, identity, every, written: Instant::now() }
    }

    /// Loads the checkpoint of an earlier run.
    pub(super) fn load(&self) -> Result<Option<Saved>> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::unreadable(&self.path, &error)),
        };
        let invalid = |reason: &str| Error::InvalidInput {
            what: format!("the checkpoint {}", self.path.display()),
            reason: format!("{reason} (remove it to start again)"),
        };
        let saved: Option<Saved> = bytes.strip_prefix(MAGIC).and_then(|rest| postcard::from_bytes(rest).ok());
        let saved = saved.ok_or_else(|| invalid("it is damaged, or of another version"))?;
        if saved.identity != self.identity {
            return Err(invalid("it belongs to other sources, or to other work"));
        }
        Ok(Some(saved))
    }

    /// Returns whether it is time for one.
    pub(super) fn is_due(&self) -> bool {
        self.written.elapsed() >= self.every
    }

    /// Writes it, whole or not at all.
    pub(super) fn save(&mut self, next: u64, state: Vec<u8>, carry: Option<&Tensor>) -> Result<()> {
        let carry = carry.map(Tensor::to_bytes).transpose()?;
        let saved = Saved { identity: self.identity.clone(), next, state, carry };
        let written = postcard::to_allocvec(&saved).map_err(std::io::Error::other).and_then(|bytes| {
            let mut temporary = Temporary::of_one_writer(self.temporary())?;
            temporary.file().write_all(MAGIC)?;
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
        let mut name = OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(".tmp");
        self.path.with_file_name(name)
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
