//! `cantus run --watch`: again whenever a file that went into it changes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use cantus::error::without_remedies;
use cantus::{Error, Result};

use super::contents::Source;
use super::{Arguments, once};
use crate::global::Global;
use crate::report;

/// Between looks at the files.
const LOOK: Duration = Duration::from_millis(150);

/// Runs, and runs again after each change; errors are printed, and it continues. Ends with the process.
///
/// # Errors
/// When no file can be watched, or no device opens.
pub fn again_and_again(global: &Global, kernel: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let mut files = files(kernel, arguments);
    if let Some(stream) = files.iter().find(|file| file.as_path() == Path::new("-")) {
        return Err(Error::invalid(
            "--watch",
            format!("{} is standard input, which cannot be read again", stream.display()),
        ));
    }
    // A name that is wrong from the start is mended on the command line. Later a file may be gone for a moment: editors replace it.
    if let Some(missing) = files.iter().find(|file| from_nowhere(file)) {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::unreadable(missing, &error));
    }
    let engine = global.engine()?;
    loop {
        let seen = states(&files);
        if let Err(error) = once(global, kernel, arguments, Some(&engine)) {
            let _ = writeln!(std::io::stderr(), "error: {}", without_remedies(&error.to_string()));
        }
        report::done("waiting for a change (Ctrl-C ends)");
        await_change(&files, &seen);
        // It may import from other files now.
        files = self::files(kernel, arguments);
    }
}

/// Returns whether there is neither such a file nor, where it looks like a name, a shipped kernel.
fn from_nowhere(file: &Path) -> bool {
    !file.exists() && (file.components().count() > 1 || file.extension().is_some())
}

/// Waits until a file is another one than was seen, and all that were there are there again.
fn await_change(files: &[PathBuf], seen: &[State]) {
    loop {
        std::thread::sleep(LOOK);
        let now = states(files);
        let complete = now.iter().zip(seen).all(|(now, seen)| now.is_some() || seen.is_none());
        if complete && now != seen {
            return;
        }
    }
}

/// The kernel and the files that inputs come from.
fn files(kernel: &Path, arguments: &Arguments) -> Vec<PathBuf> {
    let inputs = arguments.given.inputs.iter().filter_map(|input| match &input.source {
        Source::File(path, _) => Some(path.clone()),
        Source::Stdin => Some("-".into()),
        Source::Made(..) => None,
    });
    let mut files: Vec<PathBuf> = std::iter::once(kernel.to_owned()).chain(inputs).collect();
    files.extend(super::imported(kernel, &arguments.given.features));
    files
}

/// The state of a file, which tells that it has changed: when it was written, and its length. None of a file that isn't
/// there.
type State = Option<(SystemTime, u64)>;

fn states(files: &[PathBuf]) -> Vec<State> {
    let state = |file: &PathBuf| {
        let facts = std::fs::metadata(file).ok()?;
        Some((facts.modified().ok()?, facts.len()))
    };
    files.iter().map(state).collect()
}
