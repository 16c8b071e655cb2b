//! The memory that input may take: sizes come from headers, and are compared with the memory limit and with what the machine has before anything is
//! read.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::OnceLock;

use cantus::error::LimitError;
use cantus::memory;
use cantus::tensor::npy::{self, Array};
use cantus::{Error, Result};

/// The limit of the settings, in bytes.
static LIMIT: OnceLock<u64> = OnceLock::new();

/// Bytes of a pipe that are read before they are counted.
const FIRST_STEP: u64 = 1 << 20;

/// Takes the memory limit of the settings. The first one counts.
pub fn limit(bytes: Option<u64>) {
    if let Some(bytes) = bytes {
        let _ = LIMIT.set(bytes);
    }
}

/// Returns an error if `what` takes more than the memory limit, or more than this machine has left.
///
/// # Errors
/// [`Error::Limit`] with both sizes.
pub fn fits(what: &str, bytes: u64) -> Result<()> {
    if let Some(limit) = LIMIT.get().filter(|limit| **limit < bytes) {
        let (what, limit) = (what.to_owned(), *limit);
        return Err(LimitError::MemoryLimit { what, bytes, limit, remedy: String::new() }.into());
    }
    memory::fits(what, bytes)
}

/// Returns an empty vector with room for this many elements of `what`.
///
/// # Errors
/// As [`fits`].
pub fn vec<T>(what: &str, count: usize) -> Result<Vec<T>> {
    fits(what, (count as u64).saturating_mul(size_of::<T>() as u64))?;
    memory::vec(what, count)
}

/// Returns this many zeros of `what`.
///
/// # Errors
/// As [`fits`].
pub fn zeros(what: &str, count: usize) -> Result<Vec<u8>> {
    fits(what, count as u64)?;
    memory::zeros(what, count)
}

/// Reads a file or a pipe.
///
/// # Errors
/// As [`fits`], and [`Error::Unreadable`].
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let unreadable = |error: std::io::Error| Error::unreadable(path, &error);
    let mut file = File::open(path).map_err(unreadable)?;
    let what = path.display().to_string();
    let held = file.metadata().map_err(unreadable)?.len();
    let mut bytes = vec(&what, usize::try_from(held).unwrap_or(usize::MAX))?;
    loop {
        // A pipe does not say how much it has.
        let step = FIRST_STEP.max(bytes.len() as u64).max(held);
        if file.by_ref().take(step).read_to_end(&mut bytes).map_err(unreadable)? == 0 {
            return Ok(bytes);
        }
        fits(&what, bytes.len() as u64)?;
    }
}

/// Reads a `.npy` file.
///
/// # Errors
/// As [`fits`] and [`npy::read`].
pub fn npy(path: &Path) -> Result<Array> {
    let unreadable = |error: std::io::Error| Error::unreadable(path, &error);
    let file = File::open(path).map_err(unreadable)?;
    let held = file.metadata().map_err(unreadable)?.len();
    npy_from(BufReader::new(file), path, held)
}

/// Reads a `.npy` of about `held` bytes from any reader; `name` is for errors.
///
/// # Errors
/// As [`npy`].
pub fn npy_from(reader: impl Read, name: &Path, held: u64) -> Result<Array> {
    npy::read_where(reader, name, held, |described| fits(&name.display().to_string(), described.bytes))
}
