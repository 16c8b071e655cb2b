//! Descriptors: the number of connections that the system's limit of open files has room for.

/// Descriptors that are kept for the rest: files, the database, kernels' pipes.
#[cfg(unix)]
const RESERVE: u64 = 64;

/// Raises the limit of open files for that many connections, and returns how many there is room for.
#[cfg(unix)]
pub fn room(connections: usize) -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes a structure that lives until it returns.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return bounded(connections);
    }
    let wanted = (connections as libc::rlim_t).saturating_add(4 * RESERVE).min(limit.rlim_max);
    if wanted > limit.rlim_cur {
        let raised = libc::rlimit { rlim_cur: wanted, ..limit };
        // SAFETY: the call reads a structure that lives until it returns.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            limit = raised;
        }
    }
    let room = usize::try_from(within(limit.rlim_cur)).unwrap_or(usize::MAX);
    if room < connections {
        let files = limit.rlim_cur;
        crate::log(&format!(
            "warning: the limit of open files is {files}, so there are at most {room} connections, not {connections} (raise it: ulimit -n, LimitNOFILE)"
        ));
    }
    bounded(connections.min(room))
}

#[cfg(not(unix))]
pub fn room(connections: usize) -> usize {
    bounded(connections)
}

/// Connections within a limit of open files: all but the reserve, or half of what is too little for one.
#[cfg(unix)]
fn within(files: u64) -> u64 {
    files.saturating_sub(RESERVE).max(files / 2).max(1)
}

/// The runtime counts no further.
fn bounded(connections: usize) -> usize {
    connections.clamp(1, tokio::sync::Semaphore::MAX_PERMITS)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_kept() {
        assert_eq!([0, 1, 64, 100, 1024].map(within), [1, 1, 32, 50, 960]);
        assert_eq!(bounded(usize::MAX), tokio::sync::Semaphore::MAX_PERMITS);
    }
}
