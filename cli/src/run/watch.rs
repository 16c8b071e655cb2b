//! `cantus run --watch`: again whenever a file that went into it changes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use cantus::{Error, Result};

use super::contents::Source;
use super::{Arguments, once};
use crate::global::Global;
use crate::report;

/// Between looks at the files.
const LOOK: Duration = Duration::from_millis(150);

/// Runs, and runs again after each change; errors are told, and it goes on. Ends with the process.
///
/// # Errors
/// When no file can be watched, or no device opens.
pub fn again_and_again(global: &Global, kernel: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let files = files(kernel, arguments);
    if let Some(stream) = files.iter().find(|file| file.as_path() == Path::new("-")) {
        return Err(Error::InvalidInput {
            what: "--watch".to_owned(),
            reason: format!("{} is standard input, which cannot be read again", stream.display()),
        });
    }
    let engine = global.engine()?;
    loop {
        let seen = states(&files);
        match once(global, kernel, arguments, Some(&engine)) {
            Ok(_) => {}
            // What only another command line mends ends here.
            Err(error) if files.iter().all(|file| !file.exists()) => return Err(error),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "error: {error}");
            }
        }
        report::done("waiting for a change (Ctrl-C ends)");
        while states(&files) == seen {
            std::thread::sleep(LOOK);
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
    std::iter::once(kernel.to_owned()).chain(inputs).collect()
}

/// What tells that a file has changed: when it was written, and its length.
fn states(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let state = |file: &PathBuf| {
        let facts = std::fs::metadata(file).ok()?;
        Some((facts.modified().ok()?, facts.len()))
    };
    files.iter().map(state).collect()
}
