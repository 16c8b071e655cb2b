//! Cuts a grid into chunks and runs a compiled kernel over them, on several threads where that pays.

use std::sync::OnceLock;

use super::Compiled;
use super::rt::{DONE, Job, Memory, NO_MEMORY};
use crate::{BindingInfo, Launch, Stopped, Watch, check_bindings};
use cantus_base::listed::Listed;

/// Runs of fewer lanes along x are left to the executor, which fills its lanes from several rows.
#[cfg(feature = "cpu")]
const NARROW: u64 = 16;
/// Operations times lanes below which a second thread costs more than it saves.
const WORTHWHILE: u64 = 250_000;

/// The number of steps of a task under a limit on progress: each one that ends is progress.
const STEPS: u64 = 64;

/// # Safety
/// `context` is the `Watch` of chunks that run.
unsafe extern "C" fn stop(context: *const ()) -> bool {
    // SAFETY: `context` is a `Watch` that outlives the run (this function's contract).
    let watch = unsafe { &*context.cast::<Watch<'_>>() };
    watch.check().is_err()
}

/// The job under limits.
fn watched(job: &Job, watch: Option<&Watch<'_>>) -> Job {
    match watch {
        Some(watch) => Job { stop: Some(stop), context: std::ptr::from_ref(watch).cast(), ..*job },
        None => Job { ..*job },
    }
}

/// Bytes from which on an output is streamed past the caches: never, unless `CANTUS_STREAM_FROM` says so. On the machines at hand a
/// streamed row took longer than one that goes through the caches, see benches/notes/2026-11-21-ahead.md.
fn stream_from() -> usize {
    static FROM: OnceLock<usize> = OnceLock::new();
    *FROM.get_or_init(|| {
        let wanted = std::env::var("CANTUS_STREAM_FROM").ok().and_then(|text| text.parse().ok());
        wanted.unwrap_or(usize::MAX)
    })
}

/// Returns whether the compiled form suits a grid. Narrow ones keep the executor busier.
#[cfg(feature = "cpu")]
#[doc(hidden)]
pub fn suits(compiled: &Compiled, workgroups: [u32; 3]) -> bool {
    let [x, y, z] = workgroups.map(u64::from);
    let [width, height, depth] = compiled.workgroup_size.map(u64::from);
    let along = x * width;
    let rows = y.saturating_mul(height).saturating_mul(z).saturating_mul(depth);
    compiled.row == 0 || along >= NARROW || rows < NARROW
}

/// Runs a compiled kernel over a grid; `arguments` are the values of its overrides.
///
/// # Errors
/// [`Stopped`] says why it ended early.
///
/// # Safety
/// The kernel was generated, for these bindings (`Compiled::fits`), and has no data race.
#[doc(hidden)]
pub unsafe fn execute(
    compiled: &Compiled,
    bindings: &[BindingInfo],
    arguments: &[u32],
    launch: &Launch<'_>,
) -> Result<(), Stopped> {
    check_bindings(bindings, launch)?;
    if arguments.len() != compiled.arguments.len() {
        return Err(Stopped::WrongArgumentCount { expected: compiled.arguments.len(), given: arguments.len() });
    }
    if launch.workgroups.contains(&0) {
        return Ok(());
    }
    let memory: Vec<Memory> = launch
        .bindings
        .iter()
        .map(|memory| {
            let (pointer, bytes) = memory.raw();
            Memory { pointer, bytes }
        })
        .listed();
    let limits = &launch.limits;
    limits.begin().check()?;
    let job = Job {
        workgroups: launch.workgroups,
        bindings: memory.as_ptr(),
        binding_count: memory.len(),
        arguments: arguments.as_ptr(),
        argument_count: arguments.len(),
        stop: None,
        context: std::ptr::null(),
        stream_from: stream_from(),
    };
    let entry = compiled.entry();
    let step = |from: u64, to: u64| {
        let watch = limits.begin();
        watch.check()?;
        let job = watched(&job, limits.are_set().then_some(&watch));
        // SAFETY: the bindings and the number of arguments were checked, and are those of the kernel, which has no race (this function's contract); the
        // entry was chosen for this processor; `watch` outlives the run.
        match unsafe { entry(&job, from, to) } {
            DONE => Ok(()),
            NO_MEMORY => Err(Stopped::TooMuchMemory { bytes: 0 }),
            // Time does not run backwards: if nothing stops it now, a flag did that was lowered again.
            _ => Err(watch.check().err().unwrap_or(Stopped::Cancelled)),
        }
    };
    let run = |from: u64, to: u64| {
        let steps = if limits.stall.is_some() { STEPS.min(to - from).max(1) } else { 1 };
        let bound = |at: u64| from + (u128::from(to - from) * u128::from(at) / u128::from(steps)) as u64;
        (0..steps).try_for_each(|at| step(bound(at), bound(at + 1)))
    };
    let chunks = chunks(compiled, launch.workgroups);
    let threads = crate::threads::count() as u64;
    if launch.parallel && threads > 1 && chunks > 1 && work(compiled, chunks) > WORTHWHILE {
        let tasks = chunks.min(threads * 16) as usize;
        return crate::threads::try_each(tasks, |task| {
            let bound = |t: usize| (u128::from(chunks) * t as u128 / tasks as u128) as u64;
            run(bound(task), bound(task + 1))
        });
    }
    run(0, chunks)
}

/// Operations times lanes.
fn work(compiled: &Compiled, chunks: u64) -> u64 {
    let lanes = match compiled.row {
        0 => compiled.workgroup_size.iter().map(|side| u64::from(*side)).product(),
        row => u64::from(row),
    };
    chunks.saturating_mul(u64::from(compiled.work)).saturating_mul(lanes)
}

fn chunks(compiled: &Compiled, workgroups: [u32; 3]) -> u64 {
    let [x, y, z] = workgroups.map(u64::from);
    match compiled.row {
        0 => x.saturating_mul(y).saturating_mul(z),
        row => {
            let [width, height, depth] = compiled.workgroup_size.map(u64::from);
            (x * width)
                .div_ceil(u64::from(row))
                .saturating_mul(y.saturating_mul(height))
                .saturating_mul(z.saturating_mul(depth))
        }
    }
}
