//! Cases under libtest-mimic: each is a trial with a deadline. One that cannot run ends in [`not_run`]: it counts as ignored, and its reason
//! is printed.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::time::Duration;

pub use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// A wait that never gets its answer is found by this.
const DEADLINE: Duration = Duration::from_secs(120);

struct NotRun(String);

/// Ends the case as not run.
pub fn not_run(why: &str) -> ! {
    std::panic::resume_unwind(Box::new(NotRun(why.to_owned())))
}

/// A case that fails by panicking.
pub fn trial(name: String, case: impl FnOnce() + Send + 'static) -> Trial {
    let title = name.clone();
    Trial::ignorable_test(name, move || within(case).unwrap_or_else(|why| skipped(&title, &why)))
}

/// A case that cannot run. Where `required` is set, what it misses was expected to be there: it fails.
pub fn absent(name: String, why: String, required: &'static str) -> Trial {
    let title = name.clone();
    Trial::ignorable_test(name, move || match std::env::var_os(required) {
        None => skipped(&title, &why),
        Some(_) => Err(format!("{required} is set: {why}").into()),
    })
}

/// Returns a trial in place of the cases of a backend that has no device.
pub fn no_device(backend: &str, cases: usize, reason: Option<String>) -> Trial {
    absent(format!("{cases} cases of {backend}"), reason.unwrap_or_default(), "CANTUS_REQUIRE_ADAPTER")
}

fn skipped(title: &str, why: &str) -> Result<Completion, Failed> {
    crate::not_run(title, why);
    Ok(Completion::ignored_with(why))
}

/// Runs the case on a thread of its own; `Err` says why it could not run.
fn within(case: impl FnOnce() + Send + 'static) -> Result<Result<Completion, Failed>, String> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(case));
        let _ = sender.send(result);
    });
    let Ok(result) = receiver.recv_timeout(DEADLINE) else {
        return Ok(Err(format!("no end within {} s", DEADLINE.as_secs()).into()));
    };
    let _ = thread.join();
    let Err(panic) = result else { return Ok(Ok(Completion::Completed)) };
    let panic = match panic.downcast::<NotRun>() {
        Ok(why) => return Err(why.0),
        Err(panic) => panic,
    };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Ok(Err(text.unwrap_or_else(|| "panicked without a message".to_owned()).into()))
}

/// A case in a process of its own: this program again, as `command` says.
pub fn child(name: String, command: impl FnOnce(&mut Command) + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let mut child = Command::new(std::env::current_exe()?);
        // What one case compiles is not the next one's.
        let cache = tempfile::tempdir()?;
        child.env("XDG_CACHE_HOME", cache.path());
        command(&mut child);
        let output = child.output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        Err(format!("{}\n{said}", output.status).into())
    })
}

/// Runs the trials one after another: they share devices and what a process has once.
pub fn one_by_one(trials: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Runs the trials at the same time.
pub fn together(trials: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Builds a shared library by a compiler of the system.
///
/// # Errors
/// What the compiler said, or that it is missing.
pub fn build(compiler: &str, arguments: &[&str], source: &Path, library: &Path) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC"]).args(arguments).arg("-o").arg(library).arg(source).arg("-ldl");
    let output = command.output().map_err(|error| format!("{compiler}: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
