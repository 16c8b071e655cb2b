//! First uses of programs. A plugin that ends the process at work takes everything along, so each program is noted on disk before it is compiled and
//! before it first runs, and no more when that is done. What a process left noted is tried in a copy of the next one, before that makes its client:
//! what ends the copy too is refused from then on, and goes to another device.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::event::Event;
use crate::fnv::{Fnv, fnv};
use crate::wait::Awaited as _;
use crate::{files, private_folder};

/// The kind of a note that a process left behind when it ended during a first run.
const BEGUN: &str = "begun";
/// The kind of a note on a program that also ended a copy of the process; it says how.
const REFUSED: &str = "refused";
/// Bytes of a note that are read: programs are smaller.
const LONGEST: u64 = 16 << 20;

/// The notes of one plugin's programs.
pub(super) struct Attempts {
    /// `None`: nothing is noted.
    folder: Option<PathBuf>,
    /// The plugin's identity, which an update changes.
    plugin: String,
    /// First runs that have not ended.
    running: Mutex<Vec<(Arc<Event>, Attempt)>>,
}

/// A program that is at its first use. The note goes with it; it is locked, so others see that its process lives.
pub(super) struct Attempt {
    path: PathBuf,
    lock: File,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Attempts {
    /// Returns the attempts of a plugin; without a plugin, nothing is recorded.
    pub(super) fn new(cache: Option<&Path>, plugin: Option<String>) -> Self {
        let cache = cache.filter(|_| plugin.is_some()).map(|cache| cache.join("pjrt"));
        let folder = private_folder::open(cache, "programs that crash the process are not recorded");
        Self { folder, plugin: plugin.unwrap_or_default(), running: Mutex::default() }
    }

    /// Returns attempts that record nothing.
    pub(super) fn none() -> Self {
        Self::new(None, None)
    }

    fn path(&self, program: &str, kind: &str) -> Option<PathBuf> {
        let text = format!("{}\n{program}", self.plugin);
        let name = format!("{:016x}{:016x}.{kind}", fnv(text.as_bytes()), Fnv::second().with(text.as_bytes()).value());
        self.folder.as_ref().map(|folder| folder.join(name))
    }

    /// Why a program is not given to the plugin, if it is not.
    pub(super) fn refusal(&self, program: &str) -> Option<String> {
        let path = self.path(program, REFUSED)?;
        let how = fs::read_to_string(&path).ok()?;
        let again = path.display();
        Some(format!(
            "the program was tried in another process, and {how}: it is left alone (remove {again} to have it tried again)"
        ))
    }

    /// Notes a program until the attempt is dropped. `None` where that cannot be.
    pub(super) fn begin(&self, program: &str) -> Option<Attempt> {
        let path = self.path(program, BEGUN)?;
        let lock = File::options().write(true).create(true).truncate(false).open(&path).ok()?;
        // Another process or thread is at it.
        lock.try_lock().ok()?;
        let attempt = Attempt { path, lock };
        let mut note = &attempt.lock;
        note.set_len(0).and_then(|()| write!(note, "{}\n{program}", self.plugin)).ok()?;
        Some(attempt)
    }

    /// Keeps an attempt until its run has ended.
    pub(super) fn keep(&self, run: &Arc<Event>, attempt: Attempt) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push((run.clone(), attempt));
    }

    /// Releases the first runs that have ended.
    pub(super) fn sweep(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|(event, _)| matches!(event.passed(), Ok(false)));
    }

    /// Tries what processes left behind: `survives` says how a program ends a copy of the process, if it does.
    pub(super) fn settle(&self, survives: impl Fn(&str) -> Result<(), String>) {
        let entries = self.folder.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == BEGUN));
        for path in paths {
            let Ok(mut file) = File::options().read(true).write(true).open(&path) else { continue };
            if file.try_lock().is_err() {
                continue;
            }
            let mut note = String::new();
            let read = (&mut file).take(LONGEST).read_to_string(&mut note);
            let Some((_, program)) = note.split_once('\n').filter(|(plugin, _)| read.is_ok() && *plugin == self.plugin)
            else {
                continue;
            };
            // Its name is that of its contents: what has changed since is no program that was tried.
            if self.path(program, BEGUN).as_deref() != Some(&*path) {
                let _ = fs::remove_file(&path);
                continue;
            }
            let tried = survives(program);
            if let (Err(how), Some(refused)) = (&tried, self.path(program, REFUSED)) {
                tracing::warn!("a program is not given to its PJRT plugin any more, because it {how}");
                let _ = files::write_cached(&refused, |file| file.write_all(how.as_bytes()));
            }
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_behind_is_tried_once() {
        let folder = tempfile::tempdir().expect("is made");
        let open = |plugin: &str| Attempts::new(Some(folder.path()), Some(plugin.to_owned()));
        let (one, other) = (open("one"), open("other"));
        let count = || fs::read_dir(folder.path().join("pjrt")).expect("is there").count();
        // What ends is no more noted, and what is under way is nobody else's.
        drop(one.begin("good"));
        assert_eq!(count(), 0);
        let at_work = one.begin("at work").expect("is noted");
        assert!(one.begin("at work").is_none());
        one.settle(|_| panic!("it is under way"));
        // As by a process that was ended.
        for program in ["bad", "interrupted"] {
            let path = one.path(program, BEGUN).expect("has a folder");
            fs::write(path, format!("one\n{program}")).expect("is written");
        }
        other.settle(|_| panic!("it is another plugin's"));
        assert_eq!(count(), 3);
        let damaged = one.path("whole", BEGUN).expect("has a folder");
        fs::write(damaged, "one\nwhale").expect("is written");
        let tried = |program: &str| if program == "bad" { Err("ended it by signal 6".to_owned()) } else { Ok(()) };
        // A process that another test forks holds the locks of these files for a moment.
        for _ in 0..100 {
            one.settle(tried);
            if count() == 2 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        one.settle(|_| panic!("it was tried"));
        assert!(one.refusal("bad").is_some_and(|reason| reason.contains("by signal 6") && reason.contains("remove")));
        assert_eq!((one.refusal("interrupted"), other.refusal("bad"), count()), (None, None, 2));
        drop(at_work);
        let nowhere = Attempts::new(None, Some("one".to_owned()));
        assert!(nowhere.begin("good").is_none() && nowhere.refusal("good").is_none());
    }
}
