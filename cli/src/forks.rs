//! Many runs of the program without starting it each time, for `./test --fuzz` alone: with `CANTUS_FORKS` set, each line of standard input is a
//! list of arguments, which a copy of this process runs. How each ended is a line of standard output.

use std::ffi::OsString;
use std::io::{BufRead as _, Write as _};
use std::os::fd::AsRawFd as _;

/// Between the arguments of a line.
const SEPARATOR: char = '\x1f';
/// A copy that takes longer has much work, and is ended.
static LIMIT: libc::itimerval = libc::itimerval {
    it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
    it_value: libc::timeval { tv_sec: 0, tv_usec: 300_000 },
};

/// In each copy, its arguments; nothing where this is a run like any other. The process that is asked leaves when its input ends.
pub fn arguments() -> Option<Vec<OsString>> {
    std::env::var_os("CANTUS_FORKS")?;
    let nowhere = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").ok()?;
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        // SAFETY: no other thread is there yet, so that the copy finds no lock held.
        match unsafe { libc::fork() } {
            0 => {
                for stream in 0..3 {
                    // SAFETY: both are open descriptors.
                    unsafe { libc::dup2(nowhere.as_raw_fd(), stream) };
                }
                // SAFETY: the signal's default ends the process.
                unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const LIMIT, std::ptr::null_mut()) };
                let words = line.split(SEPARATOR).map(OsString::from);
                return Some(std::iter::once(OsString::from("cantus")).chain(words).collect());
            }
            child => {
                let mut status = 0;
                // SAFETY: the child is this process's own, and the status is written here.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                let _ = match libc::WIFEXITED(status) {
                    true => writeln!(out, "code {}", libc::WEXITSTATUS(status)),
                    false => writeln!(out, "signal {}", libc::WTERMSIG(status)),
                };
                let _ = out.flush();
            }
        }
    }
    std::process::exit(0)
}
