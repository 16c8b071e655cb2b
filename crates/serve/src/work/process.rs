//! The process of a caller's kernel, from both sides: what the service sees of it and when it ends it, and how it limits itself. The service runs a
//! caller's kernel in a process of its own (`work/kernel`). Both sides limit it: the process by the system's limits before it reads a byte, the service by
//! looking at memory and time. It gets no variables but those that drivers need, and its folder goes with it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::kernel::KernelLimits;
use crate::problem::Problem;

/// Interval between two looks at a process.
pub(super) const LOOK: Duration = Duration::from_millis(10);

/// The program's own memory, besides a kernel, its compiler and its buffers.
const PROGRAM: u64 = 32 << 20;

/// The time after which a process lets newer ones go first.
const FRESH: Duration = Duration::from_millis(200);

/// The variables by which drivers find their files and libraries.
const VARIABLES: [&str; 9] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "OCL_ICD_VENDORS",
    "OCL_ICD_FILENAMES",
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCM_PATH",
];

/// A process that computes, and ends when this is dropped.
pub(super) struct Process {
    pub child: Child,
    begun: Instant,
    demoted: bool,
    folder: Option<PathBuf>,
}

impl Process {
    /// Begins one, with nothing of the service's surroundings but what drivers need.
    ///
    /// # Errors
    /// 500 when the system gives none.
    #[expect(clippy::disallowed_methods, reason = "on a lane's thread")]
    pub fn begin(limits: &KernelLimits) -> Result<Self, Problem> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let refused = |error: std::io::Error| {
            crate::log(&format!("the process of a caller's kernel could not be started: {error}"));
            Problem::internal()
        };
        let (program, arguments) = limits.command.split_first().ok_or_else(Problem::internal)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg("kernel-worker")
            .args(["--memory", &limits.memory.to_string()])
            .args(["--seconds", &limits.time.as_secs().saturating_add(2).to_string()])
            .args(["--on", &limits.device])
            .args(["--parent", &std::process::id().to_string()])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let folder = if is_processor(&limits.device) {
            None
        } else {
            // Drivers write what they compile: into a folder that goes with the process.
            let folder =
                limits.folder.join(format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
            std::fs::create_dir_all(&folder).map_err(refused)?;
            cantus::engine::hand_on(&folder).map_err(refused)?;
            command.envs(VARIABLES.iter().filter_map(|&name| Some((name, std::env::var_os(name)?))));
            command.envs(["HOME", "TMPDIR", "XDG_CACHE_HOME", "POCL_CACHE_DIR"].map(|name| (name, &folder)));
            Some(folder)
        };
        let child = command.spawn().map_err(refused);
        let begun = Instant::now();
        match child {
            Ok(child) => Ok(Self { child, begun, demoted: false, folder }),
            Err(problem) => {
                remove(folder);
                Err(problem)
            }
        }
    }

    /// Why it is to be ended now, if it is.
    pub fn exceeded(&mut self, limits: &KernelLimits) -> Option<Problem> {
        let time = self.begun.elapsed();
        if time > limits.time {
            return Some(Problem::time_limit(limits.time.as_millis()));
        }
        if time > FRESH && !self.demoted {
            crate::priority::demote(self.child.id());
            self.demoted = true;
        }
        let held = memory(self.child.id()).unwrap_or(0);
        (held > limits.memory.saturating_add(PROGRAM)).then(|| Problem::memory_limit(limits.memory))
    }

    /// Why it ended without an answer.
    pub fn ended(&mut self) -> Problem {
        let how = self.child.wait();
        #[cfg(unix)]
        let signal = how.ok().and_then(|how| std::os::unix::process::ExitStatusExt::signal(&how));
        #[cfg(unix)]
        match signal {
            Some(libc::SIGXCPU) => return Problem::kernel_ended("it exceeded its limit of processor time"),
            Some(libc::SIGKILL | libc::SIGTERM | libc::SIGINT | libc::SIGHUP) => {
                return Problem::unavailable("the kernel's process was ended from outside before it had its result");
            }
            _ => {}
        }
        #[cfg(not(unix))]
        drop(how);
        Problem::kernel_ended("its compiler or driver failed, or was refused memory")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        remove(self.folder.take());
    }
}

#[expect(clippy::disallowed_methods, reason = "on a lane's thread")]
fn remove(folder: Option<PathBuf>) {
    // What cannot be removed now is removed at the next start.
    let _ = folder.map(std::fs::remove_dir_all);
}

fn is_processor(device: &str) -> bool {
    device.split(':').next() == Some("cpu")
}

/// Bytes that are a process's own: not those of files that it maps.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "on a lane's thread, and the system's file does not wait")]
fn memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kibibytes = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    Some((kibibytes("RssAnon")? + kibibytes("RssShmem")? + kibibytes("VmSwap").unwrap_or(0)) << 10)
}

#[cfg(not(target_os = "linux"))]
fn memory(_process: u32) -> Option<u64> {
    None
}

/// Limits this process: it ends with the one that began it; memory, the processor's time, files; and one processor is left to others.
///
/// # Errors
/// In words, when the system refuses a limit.
#[cfg(unix)]
pub(super) fn limit(memory: u64, seconds: u64, device: &str, parent: Option<u32>) -> Result<(), String> {
    if let Some(parent) = parent {
        end_with(parent)?;
    }
    let set = |what, most: u64| {
        let limit = libc::rlimit { rlim_cur: most as libc::rlim_t, rlim_max: most as libc::rlim_t };
        // SAFETY: the call reads a structure that lives until it returns.
        if unsafe { libc::setrlimit(what, &raw const limit) } == 0 {
            Ok(())
        } else {
            Err(format!("the process cannot be limited: {}", std::io::Error::last_os_error()))
        }
    };
    // Drivers' compilers are found by it, and a service may be started without one.
    if !is_processor(device) && std::env::var_os("PATH").is_none_or(|path| path.is_empty()) {
        // SAFETY: nothing else runs in this process yet.
        unsafe { std::env::set_var("PATH", "/usr/local/bin:/usr/bin:/bin") };
    }
    // What it holds is watched from outside; these are far above, because addresses are not memory: threads and allocators reserve more than they
    // use, and drivers of GPUs the addresses of all of their memory.
    if is_processor(device) {
        set(libc::RLIMIT_AS, memory.saturating_mul(4).saturating_add(4 << 30))?;
    }
    set(libc::RLIMIT_DATA, memory.saturating_mul(2).saturating_add(1 << 30))?;
    set(libc::RLIMIT_CPU, seconds.saturating_mul(64))?;
    // A driver keeps what it compiles in files.
    set(libc::RLIMIT_FSIZE, if is_processor(device) { 0 } else { 64 << 20 })?;
    set(libc::RLIMIT_CORE, 0)?;
    // Its priority is the service's until it has run for a while: then the service lowers it.
    crate::priority::leave_a_core();
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn limit(_memory: u64, _seconds: u64, _device: &str, _parent: Option<u32>) -> Result<(), String> {
    Ok(())
}

/// Ends this process when the one that began it ends.
#[cfg(target_os = "linux")]
fn end_with(parent: u32) -> Result<(), String> {
    // SAFETY: the call takes numbers alone.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(format!("the process cannot be tied to the service: {}", std::io::Error::last_os_error()));
    }
    // It may have ended before.
    if std::os::unix::process::parent_id() == parent { Ok(()) } else { Err("the service has ended".to_owned()) }
}

/// Ends this process when the one that began it ends: then it has another parent.
#[cfg(all(unix, not(target_os = "linux")))]
#[expect(clippy::disallowed_methods, reason = "the thread that watches")]
fn end_with(parent: u32) -> Result<(), String> {
    let watch = move || {
        while std::os::unix::process::parent_id() == parent {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::process::abort();
    };
    std::thread::Builder::new().name("parent".to_owned()).spawn(watch).map(drop).map_err(|error| error.to_string())
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "a test waits")]
mod tests {
    use super::*;

    fn nice(process: u32) -> Option<i64> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name may hold anything but is the last thing in brackets; the 17th field behind it.
        stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()
    }

    #[test]
    fn a_process_lets_others_go_first_once_it_has_had_its_moment() {
        let command = ["sh", "-c", "sleep 60; true"].map(Into::into).to_vec();
        let (time, folder) = (Duration::from_secs(60), std::env::temp_dir());
        let limits = KernelLimits { memory: 1 << 30, time, text: 0, device: "cpu".to_owned(), command, folder };
        let mut process = Process::begin(&limits).unwrap();
        assert!(process.exceeded(&limits).is_none());
        assert_eq!(nice(process.child.id()).unwrap(), nice(std::process::id()).unwrap());
        process.begun -= 2 * FRESH;
        assert!(process.exceeded(&limits).is_none());
        assert_eq!(nice(process.child.id()), Some(19));
    }
}
