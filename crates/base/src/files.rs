//! Files that are written whole or not at all.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file under a name for the time being, in the folder of its place.
pub struct Temporary {
    file: File,
    name: Name,
}

/// The name of a file that goes with this, unless it is kept.
struct Name {
    path: PathBuf,
    kept: bool,
}

impl Temporary {
    /// Returns a new file to become `path`, gone when this is dropped before [`Temporary::commit`].
    pub fn new(path: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let mut name = OsString::from(".");
            name.push(path.file_name().unwrap_or_default());
            name.push(format!(".{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
            let path = path.with_file_name(name);
            match File::options().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { file, name: Name { path, kept: false } }),
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

    /// Moves the file to its place, and replaces an existing file.
    pub fn commit(self, path: &Path) -> io::Result<()> {
        let Self { file, mut name } = self;
        drop(file);
        std::fs::rename(&name.path, path)?;
        name.kept = true;
        Ok(())
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_file(&self.path);
        }
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
}
