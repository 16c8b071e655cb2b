//! Compiled code on disk, one file for each kernel, by everything that it depends on. The file holds the whole key and a checksum, and a
//! file that does not fit is ignored. That finds damage, not malice: the folder belongs to the user alone (`private_folder`).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::files;
use crate::fnv::{Fnv, fnv};
use cantus_base::listed::{Listed, Ordered};

/// Changes when the files' form does.
const MARK: &[u8; 8] = b"CANTUS01";
/// All files of one backend together, at most; the oldest go first.
const MOST_BYTES: u64 = 256 << 20;

/// The inputs that compiled code depends on: source, options, device, driver, compiler.
pub struct Key {
    /// All parts, each with its length.
    text: Vec<u8>,
}

/// The cache of one backend.
pub struct NativeCache {
    /// `None`: nothing is kept.
    folder: Option<PathBuf>,
    warned: AtomicBool,
}

impl NativeCache {
    /// The cache of a backend within the user's cache folder. What is too much is removed.
    pub fn open(folder: Option<&Path>, backend: &str) -> Self {
        let folder = crate::private_folder::open(
            folder.map(|folder| folder.join("kernels").join(backend)),
            "compiled kernels are not cached",
        );
        if let Some(folder) = &folder {
            prune(folder);
        }
        Self { folder, warned: AtomicBool::new(false) }
    }

    /// The key of these parts; this library's version is one of them.
    pub fn key(&self, parts: &[&str]) -> Key {
        let mut text = Vec::new();
        for part in parts.iter().chain(&[env!("CARGO_PKG_VERSION")]) {
            text.extend((part.len() as u64).to_le_bytes());
            text.extend(part.as_bytes());
        }
        Key { text }
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        let name = format!("{:016x}{:016x}", fnv(&key.text), Fnv::second().with(&key.text).value());
        self.folder.as_ref().map(|folder| folder.join(name))
    }

    /// The code that was kept for the key, if it is there and whole.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path(key)?).ok()?;
        let rest = bytes.strip_prefix(MARK)?;
        let (sum, rest) = rest.split_first_chunk::<8>()?;
        if u64::from_le_bytes(*sum) != fnv(rest) {
            return None;
        }
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let (stored, code) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        (stored == key.text && !code.is_empty()).then(|| code.to_vec())
    }

    /// Keeps code. A folder that cannot be written is a warning, once.
    pub fn put(&self, key: &Key, code: &[u8]) {
        let Some(path) = self.path(key) else { return };
        if let Err(error) = write(&path, key, code)
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("compiled kernels are not cached: {}: {error}", path.display());
        }
    }
}

/// Returns the code kept for a source: `code`, where that is given, is put there before. For tests.
#[cfg(feature = "_test")]
#[doc(hidden)]
pub fn kept(folder: &Path, source: &str, code: Option<&[u8]>) -> Option<Vec<u8>> {
    let cache = NativeCache::open(Some(folder), "test");
    let key = cache.key(&[source]);
    code.inspect(|code| cache.put(&key, code));
    cache.get(&key)
}

fn write(path: &Path, key: &Key, code: &[u8]) -> std::io::Result<()> {
    let mut rest = (key.text.len() as u64).to_le_bytes().to_vec();
    rest.extend(&key.text);
    rest.extend(code);
    files::write_cached(path, |file| {
        file.write_all(MARK)?;
        file.write_all(&fnv(&rest).to_le_bytes())?;
        file.write_all(&rest)
    })
}

/// Removes the oldest files while there is too much.
fn prune(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let facts = entry.metadata().ok()?;
            Some((facts.modified().ok()?, facts.len(), entry.path()))
        })
        .listed();
    let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    files.order_by(Ord::cmp);
    for (_, bytes, path) in files {
        if total <= MOST_BYTES {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_file(folder: &Path) -> PathBuf {
        let mut files = fs::read_dir(folder.join("kernels/test")).expect("is there");
        files.next().expect("has a file").expect("is readable").path()
    }

    #[test]
    fn what_is_kept_comes_back_and_what_is_damaged_does_not() {
        let folder = tempfile::tempdir().expect("is made");
        let cache = NativeCache::open(Some(folder.path()), "test");
        let (key, other) = (cache.key(&["source", "a"]), cache.key(&["sourcea", ""]));
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"code");
        assert_eq!(cache.get(&key).as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.get(&other), None, "parts must not run together");
        let file = only_file(folder.path());
        let whole = fs::read(&file).expect("is readable");
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&file, &damaged).expect("is writable");
            assert_eq!(cache.get(&key), None, "byte {place} was trusted");
            fs::write(&file, &whole[..place]).expect("is writable");
            assert_eq!(cache.get(&key), None, "{place} bytes were trusted");
        }
        cache.put(&key, b"code");
        assert_eq!(cache.get(&key).as_deref(), Some(&b"code"[..]), "it is made anew");
    }

    #[test]
    fn many_writers_leave_one_whole_file() {
        let folder = tempfile::tempdir().expect("is made");
        std::thread::scope(|scope| {
            for number in 0..8_u8 {
                let folder = folder.path();
                scope.spawn(move || {
                    let cache = NativeCache::open(Some(folder), "test");
                    let key = cache.key(&["source"]);
                    for _ in 0..50 {
                        cache.put(&key, &[number; 10_000]);
                        let code = cache.get(&key).expect("is whole");
                        assert!(code.len() == 10_000 && code.iter().all(|&byte| byte == code[0]));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path().join("kernels/test")).expect("is there").count(), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_failure() {
        let file = tempfile::NamedTempFile::new().expect("is made");
        let cache = NativeCache::open(Some(file.path()), "test");
        let key = cache.key(&["source"]);
        cache.put(&key, b"code");
        assert_eq!(cache.get(&key), None);
    }
}
