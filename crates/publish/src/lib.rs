//! Figures of a live engine in a file of the user's runtime folder, for whoever watches it (`cantus top`). Knows no engine: it is given a function that
//! returns the figures. Apps use `cantus::engine`, which has everything here that is meant for them.
//!
//! An engine has two files there: `PID-N.lock`, which it holds locked, and `PID-N.json`, which it replaces twice a second. The system gives a
//! lock back when its process ends, however it ends: figures whose lock can be had are stale, and are removed by whoever finds them.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use cantus_base::listed::Ordered;
use cantus_base::{files, folders, private_folder, threads};

/// Between two writes.
const PERIOD: Duration = Duration::from_millis(500);
/// Upper bound on what an engine writes. A longer file was not written by an engine.
const LARGEST: u64 = 256 << 10;
/// Upper bound on the number of files read.
const MOST: usize = 1024;
/// Kernels in the file, at most.
pub const KERNELS: usize = 32;
/// Events in the file, at most.
pub const EVENTS: usize = 16;
/// The age after which a file without figures beside it counts as left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// The figures that an engine publishes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Figures {
    /// The process.
    pub process: u32,
    /// The program's name.
    pub program: String,
    /// The engine's number within the process, from 1.
    pub engine: u32,
    /// Seconds since the engine was made.
    pub age: f64,
    /// The selected device.
    pub selected: String,
    /// Open devices, the selected one first.
    pub devices: Vec<DeviceFigures>,
    /// Kernels and operations, those that ran most often first (at most 32).
    pub kernels: Vec<KernelFigures>,
    /// Dispatches recorded.
    pub dispatches: u64,
    /// Dispatches that went to another device because one failed.
    pub fallbacks: u64,
    /// Failures that devices reported, and wrong answers of drivers.
    pub failures: u64,
    /// Tensors that were lost.
    pub losses: u64,
    /// The last events, oldest first (at most 16).
    pub events: Vec<PublishedEvent>,
}

/// One of an engine's devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceFigures {
    /// The backend.
    pub backend: String,
    /// Index within the backend.
    pub index: usize,
    /// The device's name.
    pub name: String,
    /// Dispatches and copies that are recorded and not yet submitted.
    pub recorded: u64,
    /// Submissions whose end is not known yet.
    pub in_flight: u64,
    /// Bytes of live tensors and of work in flight.
    pub in_use: u64,
    /// Bytes kept for reuse.
    pub pooled: u64,
    /// The largest sum of both so far.
    pub peak: u64,
    /// The limit in bytes, where one is set.
    pub limit: Option<u64>,
    /// The reason why it takes no more work, if it does not.
    pub lost: Option<String>,
}

/// A kernel or operation on a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KernelFigures {
    /// Its name.
    pub operation: String,
    /// The device.
    pub device: String,
    /// Dispatches recorded.
    pub count: u64,
    /// Dispatches that the device timed.
    pub timed: u64,
    /// Seconds of those.
    pub seconds: f64,
}

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PublishedEvent {
    /// Seconds since the engine was made.
    pub at: f64,
    /// Its kind, as `engine::EventKind` names it.
    pub kind: String,
    /// The device or backend concerned.
    pub device: String,
    /// The event in words.
    pub message: String,
}

/// Returns where engines of this user publish: `cantus` in `XDG_RUNTIME_DIR`, else `cantus-UID` in the folder for temporary files.
#[must_use]
pub fn publish_folder() -> PathBuf {
    folders::runtime()
}

/// Returns the figures of this user's engines that publish (`engine::Builder::publish`), by process and engine. Figures of processes that have ended
/// are removed.
#[must_use]
pub fn published() -> Vec<Figures> {
    published_in(&publish_folder())
}

/// [`published`] in a folder. Other files are skipped: those that are damaged, longer than 256 KiB, links, or another user's. A
/// folder that others may write has none. Texts come without control characters.
#[must_use]
pub fn published_in(folder: &Path) -> Vec<Figures> {
    // A folder that is not there is not made by looking at it.
    if std::fs::symlink_metadata(folder).is_err() {
        return Vec::new();
    }
    let folder = private_folder::open(Some(folder.to_owned()), "published figures are not read");
    let Some(entries) = folder.and_then(|folder| std::fs::read_dir(folder).ok()) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()).take(MOST) {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") if is_stale(&path) => remove(&path),
            Some("json") => match read(&path) {
                Ok(figures) => found.push(figures),
                Err(error) => tracing::debug!("{} is passed over: {error}", path.display()),
            },
            Some("lock") if !path.with_extension("json").exists() && is_left_behind(&path) && is_stale(&path) => {
                remove(&path)
            }
            Some("tmp") if is_left_behind(&path) => drop(std::fs::remove_file(&path)),
            _ => {}
        }
    }
    found.order_by_key(|figures| (figures.process, figures.engine));
    found
}

/// Returns whether no engine holds the lock beside it.
fn is_stale(path: &Path) -> bool {
    match open_own(&path.with_extension("lock")) {
        Ok(file) => !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => true,
    }
}

fn is_left_behind(path: &Path) -> bool {
    let age =
        std::fs::symlink_metadata(path).and_then(|facts| facts.modified()).ok().and_then(|then| then.elapsed().ok());
    age.is_some_and(|age| age > LEFT_BEHIND)
}

fn remove(path: &Path) {
    for extension in ["json", "lock"] {
        let _ = std::fs::remove_file(path.with_extension(extension));
    }
}

/// Opens an ordinary file of this user's; links are not followed, and pipes are not waited for.
fn open_own(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    let facts = file.metadata()?;
    #[cfg(unix)]
    // SAFETY: the call takes nothing and cannot fail.
    let own = std::os::unix::fs::MetadataExt::uid(&facts) == unsafe { libc::geteuid() };
    #[cfg(not(unix))]
    let own = true;
    if facts.is_file() && own { Ok(file) } else { Err(io::Error::other("it is not a regular file of this user")) }
}

fn read(path: &Path) -> io::Result<Figures> {
    let mut bytes = Vec::new();
    open_own(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other("it is too long"));
    }
    let mut figures: Figures = serde_json::from_slice(&bytes)?;
    figures.clean();
    Ok(figures)
}

impl Figures {
    /// The figures with the names of the process and the engine, and texts of bounded length.
    fn named(mut self, engine: u32) -> Self {
        let executable = || {
            let path = std::env::current_exe().ok();
            let name = path.as_deref().and_then(Path::file_name).unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        self.process = std::process::id();
        self.program = PROGRAM.get().cloned().unwrap_or_else(executable);
        self.engine = engine;
        self.texts().for_each(|text| *text = short(text));
        self
    }

    /// Takes out of all texts what a terminal would obey or hide.
    fn clean(&mut self) {
        let unseen = |c: char| {
            c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        self.texts().for_each(|text| *text = short(text).replace(unseen, " "));
    }

    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let devices = self
            .devices
            .iter_mut()
            .flat_map(|device| [&mut device.backend, &mut device.name].into_iter().chain(device.lost.as_mut()));
        let kernels = self.kernels.iter_mut().flat_map(|kernel| [&mut kernel.operation, &mut kernel.device]);
        let events = self.events.iter_mut().flat_map(|event| [&mut event.kind, &mut event.device, &mut event.message]);
        [&mut self.program, &mut self.selected].into_iter().chain(devices).chain(kernels).chain(events)
    }
}

/// Writes figures until it is dropped.
#[derive(Debug)]
pub struct Publisher {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Publisher {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The engine's last handle may be the thread's own.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// The two files of an engine; removed with it.
struct Files {
    /// Held locked.
    _lock: File,
    path: PathBuf,
}

impl Files {
    fn new(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(format!("{name}.json"));
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
        }
        let lock = options.open(path.with_extension("lock"))?;
        lock.try_lock()?;
        Ok(Self { _lock: lock, path })
    }

    fn write(&self, figures: &Figures) -> io::Result<()> {
        let bytes = serde_json::to_vec(figures)?;
        files::write_whole(&self.path, |file| {
            #[cfg(unix)]
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            file.write_all(&bytes)
        })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Begins to publish what `figures` returns, until it returns `None` or the publisher is dropped. It sets the process, the program and the engine's
/// number itself. Where publishing is impossible the engine goes on without, after a warning.
#[must_use]
pub fn publish(figures: impl Fn() -> Option<Figures> + Send + 'static) -> Option<Publisher> {
    static ENGINES: AtomicU32 = AtomicU32::new(1);
    let engine = ENGINES.fetch_add(1, Ordering::Relaxed);
    let folder = private_folder::open(Some(publish_folder()), "figures are not published")?;
    // Those of the dead are taken away by the living.
    drop(published_in(&folder));
    let named = move || figures().map(|figures| figures.named(engine));
    let begun = Files::new(&folder, &format!("{}-{engine}", std::process::id())).and_then(|files| {
        named().map_or(Ok(()), |figures| files.write(&figures))?;
        let (stop, stopped) = channel::<()>();
        let work =
            move || while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) && step(&named, &files) {};
        let thread = threads::spawn("cantus-publish".to_owned(), Box::new(work))?;
        Ok(Publisher { stop: Some(stop), thread: Some(thread) })
    });
    begun.inspect_err(|error| tracing::warn!("figures are not published in {}: {error}", folder.display())).ok()
}

/// One write; false when the engine has ended. It is not held while the disk is waited for.
fn step(figures: &impl Fn() -> Option<Figures>, files: &Files) -> bool {
    let Some(figures) = figures() else { return false };
    if let Err(error) = files.write(&figures) {
        tracing::debug!("figures are not published: {error}");
    }
    true
}

static PROGRAM: OnceLock<String> = OnceLock::new();

/// Sets the program name that engines of this process publish, in place of the executable's: `make photos`, not `make`. The first call counts.
pub fn publish_as(program: &str) {
    let _ = PROGRAM.set(short(program));
}

/// A text of bounded length: the whole file is.
fn short(text: &str) -> String {
    text.chars().take(300).collect()
}
