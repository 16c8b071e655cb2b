//! A plugin that this machine has not seen yet is tried in a copy of this process first: one that aborts ends the copy, and is refused here with
//! what it said. Elsewhere than on Linux with glibc there are no such copies, and a plugin is believed.

use std::time::Duration;

/// A client of many devices may take its time.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// True if there are copies.
pub(super) const COPIES: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn survives(_limit: Duration, _work: impl FnOnce()) -> Result<(), String> {
    Ok(())
}

/// Does some work in a copy of this process. It may fail; when it ends the copy, or does not end in time, it is said why it must not be
/// done here. The copy has this thread alone: it takes none of the library's locks.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn survives(limit: Duration, work: impl FnOnce()) -> Result<(), String> {
    copy::survives(limit, work)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod copy {
    use std::fs::File;
    use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
    use std::os::fd::{AsRawFd as _, FromRawFd as _};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    /// Bytes of what the copy said that are looked at.
    const HEARD: u64 = 4096;

    pub(super) fn survives(limit: Duration, work: impl FnOnce()) -> Result<(), String> {
        // Without a copy there is no trial, and the work is believed.
        let (Ok((mut ended, done)), Some(said)) = (std::io::pipe(), anonymous()) else { return Ok(()) };
        // SAFETY: the copy runs what follows alone, on this thread, and leaves by `_exit`. glibc makes its allocator and its loader usable there.
        let copy = unsafe { libc::fork() };
        if copy < 0 {
            return Ok(());
        }
        if copy == 0 {
            quiet(&said);
            let _ = catch_unwind(AssertUnwindSafe(work));
            let _ = (&done).write_all(&[1]);
            // SAFETY: it ends the copy without the app's own handlers.
            unsafe { libc::_exit(0) };
        }
        drop(done);
        let mut poll = libc::pollfd { fd: ended.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let limit = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
        let deadline = std::time::Instant::now() + Duration::from_millis(limit.unsigned_abs().into());
        let in_time = loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            // SAFETY: one descriptor, which lives.
            match unsafe { libc::poll(&raw mut poll, 1, i32::try_from(left.as_millis()).unwrap_or(limit)) } {
                0 => break false,
                ready if ready > 0 => break true,
                // A signal of the app's.
                _ if !left.is_zero() => {}
                _ => break false,
            }
        };
        let finished = in_time && matches!(ended.read(&mut [0]), Ok(1));
        let mut status = 0;
        // SAFETY: the process is ours; an app that does not wait for its children has waited for it already.
        let known = unsafe {
            if !in_time {
                libc::kill(copy, libc::SIGKILL);
            }
            libc::waitpid(copy, &raw mut status, 0) == copy
        };
        if finished {
            return Ok(());
        }
        let how = match (in_time, known) {
            (false, _) => format!("did not end within {} s", limit / 1000),
            (_, true) if libc::WIFSIGNALED(status) => format!("ended it by signal {}", libc::WTERMSIG(status)),
            (_, true) => format!("ended it with exit code {}", libc::WEXITSTATUS(status)),
            _ => "ended it".to_owned(),
        };
        Err(match last_line(said) {
            Some(line) => format!("{how}, and said: {line}"),
            None => how,
        })
    }

    /// A file without a name.
    fn anonymous() -> Option<File> {
        // SAFETY: the name ends in 0.
        let descriptor = unsafe { libc::memfd_create(c"cantus".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: it is a new descriptor, which nobody else has.
        (descriptor >= 0).then(|| unsafe { File::from_raw_fd(descriptor) })
    }

    /// Prepares the copy: none of the app's handlers, no core file, and no output on its terminal.
    fn quiet(said: &File) {
        let nothing = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: calls that change this process alone.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &raw const nothing);
            for signal in [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTERM] {
                libc::signal(signal, libc::SIG_DFL);
            }
            libc::dup2(said.as_raw_fd(), libc::STDOUT_FILENO);
            libc::dup2(said.as_raw_fd(), libc::STDERR_FILENO);
        }
    }

    fn last_line(mut said: File) -> Option<String> {
        let end = said.seek(SeekFrom::End(0)).ok()?;
        said.seek(SeekFrom::Start(end.saturating_sub(HEARD))).ok()?;
        let mut bytes = Vec::new();
        said.take(HEARD).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.chars().filter(|c| !c.is_control()).take(200).collect())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_what_ends_well_is_believed() {
            let long = Duration::from_secs(60);
            assert_eq!(survives(long, || {}), Ok(()));
            assert_eq!(survives(long, || std::panic::resume_unwind(Box::new(()))), Ok(()));
            let said = || {
                let line = b"cannot go on\n\n";
                // SAFETY: a write of as many bytes.
                unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
                std::process::abort();
            };
            assert_eq!(survives(long, said), Err("ended it by signal 6, and said: cannot go on".to_owned()));
            // SAFETY: it ends the copy.
            assert_eq!(survives(long, || unsafe { libc::_exit(3) }), Err("ended it with exit code 3".to_owned()));
            let hangs = || std::thread::sleep(Duration::from_secs(600));
            assert_eq!(survives(Duration::from_millis(1500), hangs), Err("did not end within 1 s".to_owned()));
        }
    }
}
