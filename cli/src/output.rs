//! Output files: written under a temporary name beside the final one and renamed when complete. Never half there, not even after
//! Ctrl-C or at a limit on the size of files. Knows nothing of formats.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use cantus::error::Bytes;
use cantus::files::{self, Temporary};
use cantus::{Error, Result};

const BUFFER_BYTES: usize = 1 << 18;

/// Temporary files that an interrupt must remove.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The reaction to Ctrl-C: nothing more than usual, let the work end itself, or it has been told to.
static STOP: AtomicU8 = AtomicU8::new(USUAL);
const USUAL: u8 = 0;
const ASKED_FOR: u8 = 1;
const STOPPED: u8 = 2;

/// Makes the first Ctrl-C only set [`stopped`]: the work then ends by itself and reports its results. A second Ctrl-C ends the program.
pub fn stop_first() {
    STOP.store(ASKED_FOR, Ordering::Relaxed);
    remove_on_interrupt();
}

/// Returns whether Ctrl-C was pressed since [`stop_first`].
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed) == STOPPED
}

/// A file in the making. Dropped without [`OutputFile::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct OutputFile {
    /// The path as given, for messages.
    shown: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Temporary {
        file: BufWriter<Temporary>,
        target: PathBuf,
        registered: Registered,
    },
    /// Devices and pipes cannot be renamed over: `/dev/null` must stay what it is.
    Direct(BufWriter<Piped<File>>),
    /// Standard output.
    Standard(BufWriter<Piped<io::Stdout>>),
}

/// A sink with a reader behind it, as a pipe has. That the reader has seen enough (`| head`) is no error: the rest goes nowhere.
#[derive(Debug)]
struct Piped<W> {
    sink: W,
    is_closed: bool,
}

impl<W: Write> Piped<W> {
    fn buffered(sink: W) -> BufWriter<Self> {
        BufWriter::with_capacity(BUFFER_BYTES, Self { sink, is_closed: false })
    }
}

impl<W: Write> Write for Piped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        match self.sink.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(bytes.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.sink.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

impl OutputFile {
    /// Starts the file, so that an unwritable place is known before any work is done. `-` is standard output.
    ///
    /// # Errors
    /// [`Error::Io`] saying what is wrong with the place.
    pub fn create(path: &Path) -> Result<Self> {
        let fault = |reason: String| cannot_write(path, reason);
        if path == Path::new("-") {
            if io::stdout().is_terminal() {
                return Err(fault("standard output is a terminal (send it to a file or a program)".to_owned()));
            }
            let sink = Sink::Standard(Piped::buffered(io::stdout()));
            return Ok(Self { shown: "standard output".into(), sink });
        }
        // Renaming over a symbolic link would replace the link, not the file.
        let target = files::target(path).map_err(|error| fault(error.to_string()))?;
        match std::fs::metadata(&target) {
            Ok(existing) if existing.is_dir() => {
                return Err(fault("it is a folder (give a file name)".to_owned()));
            }
            Ok(existing) if !existing.is_file() => {
                let file = File::options().write(true).open(&target).map_err(|error| fault(error.to_string()))?;
                let sink = Sink::Direct(Piped::buffered(file));
                return Ok(Self { shown: path.to_owned(), sink });
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => return Err(fault(error.to_string())),
            _ => {}
        }
        if target.file_name().is_none() {
            return Err(fault("it is not a file name".to_owned()));
        }
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(fault(format!("the folder {} does not exist (create it first)", folder.display())));
        }
        remove_on_interrupt();
        let file = Temporary::new(&target).map_err(|error| fault(system_reason(&error)))?;
        let registered = Registered::new(file.path());
        let sink = Sink::Temporary { file: BufWriter::with_capacity(BUFFER_BYTES, file), target, registered };
        Ok(Self { shown: path.to_owned(), sink })
    }

    /// Fails when this many bytes do not fit there, so that it is known before hours of work. Where the system does not report it, the writing will.
    ///
    /// # Errors
    /// [`Error::Io`] with what is needed and what is free.
    pub fn expect(&self, bytes: u128) -> Result<()> {
        let Sink::Temporary { file, .. } = &self.sink else { return Ok(()) };
        let Some(free) = free(file.get_ref().as_file()).filter(|free| *free < bytes) else { return Ok(()) };
        let [needed, free] = [bytes, free].map(|bytes| Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)));
        Err(cannot_write(&self.shown, format!("it needs at least {needed}, and {free} are free there")))
    }

    /// Another handle of the file, to read and write anywhere in it. What was written so far lies at its beginning.
    ///
    /// # Errors
    /// [`Error::Io`] for what cannot be read back, as pipes and devices.
    #[cfg(feature = "circuits")]
    pub fn anywhere(&mut self) -> Result<File> {
        let Sink::Temporary { file, .. } = &mut self.sink else {
            return Err(cannot_write(
                &self.shown,
                "what is written is read again, which only a file allows".to_owned(),
            ));
        };
        file.flush().and_then(|()| file.get_ref().as_file().try_clone()).map_err(|error| fault(&self.shown, &error))
    }

    /// Completes the file under its final name.
    ///
    /// # Errors
    /// [`Error::Io`] when the last bytes cannot be written or the name cannot be taken.
    pub fn commit(self) -> Result<()> {
        let shown = self.shown;
        let fault = |error: &io::Error| fault(&shown, error);
        match self.sink {
            Sink::Temporary { file, target, registered } => {
                let file = file.into_inner().map_err(|error| fault(error.error()))?;
                file.commit(&target).map_err(|error| fault(&error))?;
                drop(registered);
            }
            Sink::Direct(mut file) => file.flush().map_err(|error| fault(&error))?,
            Sink::Standard(mut out) => out.flush().map_err(|error| fault(&error))?,
        }
        Ok(())
    }

    /// The path as the user gave it.
    pub fn shown(&self) -> &Path {
        &self.shown
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Temporary { file, .. } => file.write(bytes),
            Sink::Direct(file) => file.write(bytes),
            Sink::Standard(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Temporary { file, .. } => file.flush(),
            Sink::Direct(file) => file.flush(),
            Sink::Standard(out) => out.flush(),
        }
    }
}

/// Bytes that are free where a file is.
#[cfg(target_os = "linux")]
fn free(file: &File) -> Option<u128> {
    use std::os::fd::AsRawFd;
    let mut facts = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the descriptor is open, and there is room for what the call writes.
    let told = unsafe { libc::fstatvfs(file.as_raw_fd(), facts.as_mut_ptr()) } == 0;
    // SAFETY: the call has filled it.
    let facts = told.then(|| unsafe { facts.assume_init() })?;
    Some(u128::from(facts.f_bavail) * u128::from(facts.f_frsize))
}

#[cfg(not(target_os = "linux"))]
fn free(_: &File) -> Option<u128> {
    None
}

/// The lower-case extension of a path, or nothing.
pub fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// The error for a write that failed.
pub fn fault(path: &Path, error: &io::Error) -> Error {
    cannot_write(path, system_reason(error))
}

fn cannot_write(path: &Path, reason: String) -> Error {
    Error::Io { action: "cannot write".to_owned(), path: path.display().to_string(), reason }
}

fn system_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::FileTooLarge => {
            "it exceeds the limit on the size of files (ulimit -f, or the file system's)".to_owned()
        }
        // What did not come from the system says itself what to do.
        io::ErrorKind::PermissionDenied if error.get_ref().is_none() => {
            "no permission (choose another folder)".to_owned()
        }
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only (choose another folder)".to_owned(),
        // Without the temporary file's name, which tempfile puts behind the system's own words.
        _ => {
            let text = error.to_string();
            text.split_once(" at path ").map_or_else(|| text.clone(), |(reason, _)| reason.to_owned())
        }
    }
}

/// Makes a file above the limit on the size of files an error of the write: by default the system ends the process.
pub fn refuse_large_files() {
    #[cfg(unix)]
    // SAFETY: the signal is ignored; no handler is installed.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// A place in [`UNFINISHED`], given back when dropped.
#[derive(Debug)]
struct Registered(PathBuf);

impl Registered {
    fn new(path: &Path) -> Self {
        unfinished().push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.0);
    }
}

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// On Ctrl-C, termination and hang-up: removes what is unfinished and ends the process with the shell's code for it.
fn remove_on_interrupt() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let installed = ctrlc::set_handler(|| {
            if STOP.compare_exchange(ASKED_FOR, STOPPED, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return;
            }
            for path in unfinished().drain(..) {
                let _ = std::fs::remove_file(path);
            }
            std::process::exit(130);
        });
        if let Err(error) = installed {
            tracing::debug!("no interrupt handler: {error}");
        }
    });
}
