//! Files that are written whole or not at all, and keep what the file before them had: its place behind links, its mode and its owner. For results, caches,
//! checkpoints and jobs alike. Renaming makes the change atomic; a lock beside the file, not the file itself, keeps other processes out, because the file
//! is replaced. Nothing here creates a temporary file in another folder, since renaming works within one file system only.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Characters of a file's name in that of the file which becomes it: file systems allow 255 bytes, and this one is longer.
const NAME_START: usize = 40;

/// Links that are followed, as systems do.
const MOST_LINKS: usize = 40;

/// A file under a name for the time being, in the folder of its place.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    name: Name,
}

/// The name of a file that goes with this, unless it is kept.
#[derive(Debug)]
struct Name {
    path: PathBuf,
    kept: bool,
}

impl Temporary {
    /// Returns a new file to become `path`, gone when this is dropped before [`Temporary::commit`]. It has the mode of the file that it replaces.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::PermissionDenied`] if the file there is read-only.
    pub fn new(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let target = target(path)?;
        let old = replaced(&target)?;
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        // Nobody else reads what replaces a private file, not even before it has its mode.
        #[cfg(unix)]
        if old.is_some() {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let start: String = target.file_name().unwrap_or_default().to_string_lossy().chars().take(NAME_START).collect();
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = target.with_file_name(format!(".{start}.{}-{number}.tmp", std::process::id()));
            match options.open(&path) {
                Ok(file) => {
                    let temporary = Self { file, name: Name { path, kept: false } };
                    old.map_or(Ok(()), |old| keep(&temporary.file, &old))?;
                    return Ok(temporary);
                }
                // Left behind by a process of the same number that was killed: the next name is tried.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens or creates the file of that name, for work that continues after an interruption. The file stays when this is dropped.
    pub fn lasting(path: PathBuf) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
        Ok(Self { file, name: Name { path, kept: true } })
    }

    /// Creates a new file of that name, which only one process writes. A file left by a killed process is replaced.
    pub fn of_one_writer(path: PathBuf) -> io::Result<Self> {
        let file = File::create(&path)?;
        Ok(Self { file, name: Name { path, kept: false } })
    }

    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    #[must_use]
    pub fn as_file(&self) -> &File {
        &self.file
    }

    /// Returns its path for the time being.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.name.path
    }

    /// Moves the file to its place, and replaces an existing file, of which it keeps the mode.
    ///
    /// # Errors
    /// As [`Temporary::new`].
    pub fn commit(self, path: &Path) -> io::Result<()> {
        let Self { file, mut name } = self;
        let target = target(path)?;
        if let Some(old) = replaced(&target)? {
            keep(&file, &old)?;
        }
        drop(file);
        std::fs::rename(&name.path, target)?;
        name.kept = true;
        Ok(())
    }
}

impl io::Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns the place of a file behind links, also behind a link to a file that does not exist yet.
///
/// # Errors
/// Where links lead to each other.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    if let Ok(place) = path.canonicalize() {
        return Ok(place);
    }
    // It has no path: a pipe behind /dev/stdout.
    if path.exists() {
        return Ok(path.to_owned());
    }
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(link) = target.read_link() else { return Ok(target) };
        target = target.parent().map_or_else(|| link.clone(), |folder| folder.join(&link));
    }
    Err(io::Error::other("its symbolic links lead in a circle"))
}

/// Returns the facts of the file that a new one replaces at `target`, if there is one.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if it is read-only: renaming would replace it all the same.
pub fn replaced(target: &Path) -> io::Result<Option<Metadata>> {
    let old = match std::fs::metadata(target) {
        Ok(old) if old.is_file() => old,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let refused = || {
        let reason = "the file is read-only (make it writable, or choose another name)";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
    };
    if old.permissions().readonly() {
        return refused();
    }
    match File::options().write(true).open(target) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused(),
        _ => Ok(Some(old)),
    }
}

/// Gives a file the mode of the one that it replaces, and its owner and group where this process may. A group that cannot be kept loses its rights: they
/// would be another group's.
///
/// # Errors
/// The system's.
#[cfg(unix)]
pub fn keep(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

    let new = file.metadata()?;
    let mut mode = old.mode() & 0o7777;
    if new.uid() != old.uid() && fchown(file, Some(old.uid()), None).is_err() {
        mode &= 0o0777;
    }
    if new.gid() != old.gid() && fchown(file, None, Some(old.gid())).is_err() {
        mode &= 0o0707;
    }
    if new.mode() & 0o7777 == mode && new.uid() == old.uid() && new.gid() == old.gid() {
        return Ok(());
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Elsewhere a file's rights are those of its folder.
///
/// # Errors
/// None here.
#[cfg(not(unix))]
pub fn keep(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Waits until no other process changes the file, and keeps others from it until the result is dropped. The lock is a file beside it, because the file
/// itself is replaced.
///
/// # Errors
/// The system's. Where it has no locks, none is taken.
pub fn exclusive(path: &Path) -> io::Result<File> {
    let target = target(path)?;
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".lock");
    let lock = File::options().write(true).create(true).truncate(false).open(target.with_file_name(name))?;
    match lock.lock() {
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        _ => Ok(lock),
    }
}

/// Writes a file under a temporary name in the same folder and renames it: readers see the old contents or all of the new ones. A failure leaves
/// no file behind.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut temporary = Temporary::new(path)?;
    write(temporary.file())?;
    temporary.commit(path)
}

/// Writes a file in a cache as [`write_whole`] does, and creates its folder if it is missing.
pub fn write_cached(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    write_whole(path, write)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("lists");
        entries.map(|entry| entry.expect("is there").file_name().into_string().expect("is text")).collect()
    }

    #[test]
    fn the_new_contents_replace_the_old_ones() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = folder.path().join("deeper").join("file");
        for contents in ["a long first text", "short"] {
            write_cached(&path, |file| file.write_all(contents.as_bytes())).expect("writes");
            assert_eq!(std::fs::read_to_string(&path).expect("reads"), contents);
        }
        assert_eq!(names(&folder.path().join("deeper")), ["file"]);
    }

    #[test]
    fn a_failure_leaves_the_old_contents_and_nothing_else() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "old").expect("writes");
        let failed = write_whole(&path, |file| {
            file.write_all(b"half of the new")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "old");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = folder.path().join("file");
        for number in 0..64 {
            let name = format!(".file.{}-{number}.tmp", std::process::id());
            std::fs::write(folder.path().join(name), "of another").expect("writes");
        }
        write_whole(&path, |file| file.write_all(b"new")).expect("writes");
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "new");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_an_error() {
        let folder = tempfile::tempdir().expect("makes a folder");
        assert!(write_whole(&folder.path().join("none").join("file"), |_| Ok(())).is_err());
    }

    /// The mode, the place behind links, and the refusal of read-only files: what `cp` and `>` do.
    #[test]
    #[cfg(unix)]
    fn a_new_file_keeps_what_the_one_before_had() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().expect("makes a folder");
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| std::fs::metadata(at(name)).expect("is there").permissions().mode() & 0o7777;
        let set = |name: &str, mode| {
            std::fs::write(at(name), "old").expect("writes");
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).expect("sets the mode");
        };
        for kept in [0o600, 0o640, 0o666, 0o755] {
            set("kept", kept);
            write_whole(&at("kept"), |file| {
                assert_eq!(file.metadata()?.permissions().mode() & 0o7777, kept, "while it is written");
                file.write_all(b"new")
            })
            .expect("writes");
            assert_eq!((mode("kept"), std::fs::read(at("kept")).expect("reads")), (kept, b"new".to_vec()));
        }
        set("read-only", 0o444);
        let error = write_whole(&at("read-only"), |file| file.write_all(b"new")).expect_err("is refused");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!((mode("read-only"), std::fs::read(at("read-only")).expect("reads")), (0o444, b"old".to_vec()));
        std::fs::create_dir(at("deeper")).expect("makes a folder");
        symlink("deeper/second", at("first")).expect("links");
        symlink("third", at("deeper/second")).expect("links");
        write_whole(&at("first"), |file| file.write_all(b"new")).expect("writes");
        assert!(at("first").is_symlink() && at("deeper/second").is_symlink());
        assert_eq!(std::fs::read(at("deeper/third")).expect("reads"), b"new");
        symlink("b", at("a")).expect("links");
        symlink("a", at("b")).expect("links");
        assert!(write_whole(&at("a"), |file| file.write_all(b"new")).is_err() && at("a").is_symlink());
    }

    #[test]
    fn one_at_a_time_changes_a_file() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = folder.path().join("count");
        std::fs::write(&path, "0").expect("writes");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let _lock = exclusive(&path).expect("locks");
                        let count: u32 = std::fs::read_to_string(&path).expect("reads").parse().expect("is a number");
                        let text = (count + 1).to_string();
                        write_whole(&path, |file| file.write_all(text.as_bytes())).expect("writes");
                    }
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "100");
    }
}
