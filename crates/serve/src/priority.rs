//! Lower priorities for background work. Threads and processes inherit both from the thread that begins them, so an engine that is opened on
//! such a thread computes on such threads.

/// The way in which a thread yields to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Yields {
    /// It is as any thread.
    Nothing,
    /// Its priority is lower.
    Priority,
    /// The same, and one processor is left to others.
    Core,
}

impl Yields {
    /// Makes this thread such a one, and those that it begins.
    pub fn apply(self) {
        if self != Self::Nothing {
            step_back();
        }
        if self == Self::Core {
            leave_a_core();
        }
    }
}

/// Lowers this thread's priority.
pub fn step_back() {
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes and gives numbers alone; 0 is the calling thread. A lower priority is not worth an error.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}

/// Runs long work on a thread of its own with a lower priority.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::task::spawn_blocking(move || {
        step_back();
        work()
    })
}

/// Lowers the priority of a process that has used its share, with all threads of its group.
pub fn demote(group: u32) {
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes and gives numbers alone. A lower priority is not worth an error.
    let _ = unsafe { libc::setpriority(libc::PRIO_PGRP, group, 19) };
    #[cfg(not(target_os = "linux"))]
    let _ = group;
}

/// Leaves one processor to others, where this thread may run on several.
pub fn leave_a_core() {
    #[cfg(target_os = "linux")]
    // SAFETY: the calls read and write a set of processors that lives until they return; its bits are numbers alone.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &raw mut set) != 0 || libc::CPU_COUNT(&set) < 2 {
            return;
        }
        if let Some(first) = (0..8 * size).find(|&processor| libc::CPU_ISSET(processor, &set)) {
            libc::CPU_CLR(first, &mut set);
            // Fewer processors are not worth an error.
            let _ = libc::sched_setaffinity(0, size, &raw const set);
        }
    }
}
