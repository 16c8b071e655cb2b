//! Many runs of the program without starting it each time, for `./test --fuzz` alone: with `CANTUS_FORKS` set, each line of standard input is a
//! list of arguments, which a copy of this process runs. How each ended is a line of standard output. A copy serves many lists, because making
//! one takes longer than most lists do; whichever list ends it is the last one that it had. A list behind `CHECK` goes no further than to where
//! work would start, which is where the subcommand asks for an engine. A file before `INPUT` is its standard input.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{CommandFactory as _, FromArgMatches as _};

use super::Cli;

/// Between the arguments of a line.
const SEPARATOR: char = '\x1f';
/// Before a list that is to be checked and not run.
const CHECK: char = '\x1e';
/// Behind the file that is the standard input of a list.
const INPUT: char = '\x1d';
/// The list at hand is to be checked, and whether it came to where work starts.
static CHECKS: AtomicBool = AtomicBool::new(false);
static REACHED: AtomicBool = AtomicBool::new(false);
/// Lists that one copy runs.
const LISTS: usize = 256;
/// The exit code of a copy that ran its lists and reported each.
const ALL_RUN: i32 = 77;
/// A list that takes more of the processor has much work, and its copy is ended.
const LIMIT: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 100_000 };

/// Marks the start of the work. Returns true if nothing is to start because the current list is only checked.
pub fn stops_here() -> bool {
    let stops = CHECKS.load(Ordering::Relaxed);
    REACHED.store(stops, Ordering::Relaxed);
    stops
}

/// Runs what the input says; nothing where this is a run like any other.
pub fn serve() -> Option<ExitCode> {
    std::env::var_os("CANTUS_FORKS")?;
    let mut out = std::io::stdout();
    // Not the standard library's input: a copy would find it locked.
    // SAFETY: the copy is a new descriptor, which nobody else has.
    let mut lines = std::io::BufReader::new(unsafe { File::from_raw_fd(libc::dup(0)) });
    let mut line = String::new();
    // The caller writes a list when it has the answer to the one before: nothing of the next one is read by this process.
    while lines.read_line(&mut line).ok()? > 0 {
        // SAFETY: no other thread is there yet, so that the copy finds no lock held.
        match unsafe { libc::fork() } {
            0 => serve_copy(&line),
            child => {
                let mut status = 0;
                // SAFETY: the child is this process's own, and the status is written here.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                let _ = match libc::WIFEXITED(status) {
                    true if libc::WEXITSTATUS(status) == ALL_RUN => Ok(()),
                    true => writeln!(out, "code {}", libc::WEXITSTATUS(status)),
                    false => writeln!(out, "signal {}", libc::WTERMSIG(status)),
                };
                let _ = out.flush();
            }
        }
        line.clear();
    }
    Some(ExitCode::SUCCESS)
}

/// Serves in a copy of the process: its lists, of which `first` is the first.
fn serve_copy(first: &str) -> ! {
    // SAFETY: a copy without its parent has nobody to answer.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: the copies are new descriptors, which nobody else has.
    let (answers, lists) = unsafe { (File::from_raw_fd(libc::dup(1)), File::from_raw_fd(libc::dup(0))) };
    let (mut answers, mut lists) = (answers, std::io::BufReader::new(lists));
    if let Ok(nowhere) = File::options().read(true).write(true).open("/dev/null") {
        for stream in 0..3 {
            // SAFETY: both are open descriptors.
            unsafe { libc::dup2(nowhere.as_raw_fd(), stream) };
        }
    }
    let mut line = first.to_owned();
    // Described once: that takes as long as a list.
    let mut command = super::described();
    for number in 1.. {
        let words = line.trim_end_matches('\n');
        CHECKS.store(words.starts_with(CHECK), Ordering::Relaxed);
        REACHED.store(false, Ordering::Relaxed);
        let words = words.trim_start_matches(CHECK);
        let (given, words) = words.split_once(INPUT).unwrap_or(("/dev/null", words));
        if let Ok(given) = File::open(given) {
            // SAFETY: both are open descriptors.
            unsafe { libc::dup2(given.as_raw_fd(), 0) };
        }
        let words = words.split(SEPARATOR).map(OsString::from);
        time_limit(LIMIT);
        let words = std::iter::once(OsString::from("cantus")).chain(words);
        let parsed = command.try_get_matches_from_mut(words).and_then(|matches| Cli::from_arg_matches(&matches));
        let code = match parsed {
            Ok(cli) => super::run(cli),
            Err(error) => {
                let _ = error.print();
                ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
            }
        };
        time_limit(libc::timeval { tv_sec: 0, tv_usec: 0 });
        // What it left of its input is not the next one's.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let known = (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(u8::MAX);
        let _ = match REACHED.load(Ordering::Relaxed) {
            true => writeln!(answers, "checked"),
            false => writeln!(answers, "code {known}"),
        };
        line.clear();
        // What is read is run: nobody else sees it.
        if number == LISTS || !matches!(lists.read_line(&mut line), Ok(1..)) {
            break;
        }
    }
    std::process::exit(ALL_RUN)
}

/// Limits the processor time from now on; none lifts the limit. The signal's default ends the process.
fn time_limit(limit: libc::timeval) {
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: none, it_value: limit };
    // SAFETY: the timer is read during the call.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()) };
}
