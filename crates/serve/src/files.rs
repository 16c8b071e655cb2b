//! Files that the operator names. Only regular files are read: reading a pipe or a device may never return.
#![expect(clippy::disallowed_methods, reason = "who calls this has a thread for it")]

use std::fs::{File, OpenOptions};
use std::io::{Error, Read as _};
use std::path::Path;

/// Reads a regular file whole.
///
/// # Errors
/// As the system; and for a pipe, a device or a folder.
pub fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = unblocked(OpenOptions::new().read(true)).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file to append to. A pipe that nobody reads is an error.
///
/// # Errors
/// As the system.
pub fn append(path: &Path) -> std::io::Result<File> {
    let file = unblocked(OpenOptions::new().create(true).append(true)).open(path)?;
    blocking(&file)?;
    Ok(file)
}

/// Opening waits for nobody.
#[cfg(unix)]
fn unblocked(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK)
}

#[cfg(not(unix))]
fn unblocked(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Writing waits again: who writes has a thread of its own.
#[cfg(unix)]
fn blocking(file: &File) -> std::io::Result<()> {
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(file);
    // SAFETY: the descriptor is open as long as the file lives, and the calls take numbers alone.
    let set = unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFL);
        flags >= 0 && libc::fcntl(descriptor, libc::F_SETFL, flags & !libc::O_NONBLOCK) >= 0
    };
    if set { Ok(()) } else { Err(Error::last_os_error()) }
}

#[cfg(not(unix))]
fn blocking(_file: &File) -> std::io::Result<()> {
    Ok(())
}
