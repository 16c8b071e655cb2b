//! Kernels on a driver run in a process of their own: Mesa 22.3 ends the process on some (docs/drivers.md), which nothing within it can prevent. This
//! process waits, and says what happened with an exit code instead of a signal.

use std::process::ExitCode;

/// How the process of its own ended.
pub enum Ended {
    /// By itself.
    With(ExitCode),
    /// By a signal of a defect, which it told.
    ByDriver,
}

/// Set for the process that computes.
const WITHIN: &str = "CANTUS_WITHIN";

/// Runs the program's own arguments in another process, with this one's input and output. `None` in that process, and where none can be started.
#[cfg(unix)]
pub fn run() -> Option<Ended> {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    if std::env::var_os(WITHIN).is_some() {
        return None;
    }
    let mut command = std::process::Command::new(std::env::current_exe().ok()?);
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(WITHIN, "1");
    #[cfg(target_os = "linux")]
    {
        let parent = std::process::id();
        // SAFETY: the closure calls only what may be called between fork and exec. The parent may have ended before the child asked for the signal.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                if std::os::unix::process::parent_id() == parent {
                    Ok(())
                } else {
                    Err(std::io::ErrorKind::Other.into())
                }
            });
        }
    }
    let mut child = command.spawn().ok()?;
    // Ctrl-C reaches both: the child ends as it does alone, and this process tells how.
    // SAFETY: no handler is called.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let status = child.wait();
    // What this process may do in the child's place can be interrupted again.
    // SAFETY: no handler is called.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    let status = status.ok()?;
    if let Some(signal) = status.signal() {
        if super::crash::SIGNALS.contains(&signal) {
            return Some(Ended::ByDriver);
        }
        // SAFETY: the default ends this process by the signal that ended the child.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    Some(Ended::With(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))))
}

/// No process of its own is started here.
#[cfg(not(unix))]
pub fn run() -> Option<Ended> {
    None
}
