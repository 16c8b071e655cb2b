//! Rehearsals: what an evaluation would compile is found before it runs, so that a driver compiles its kernels side by side.
//!
//! A kernel's text is known only when the operation before it has run, since it names the tensors that it reads. So an evaluation runs twice where a
//! driver may have much to compile: first in a capture of its own (`Captured`), in which tensors have no memory, dispatches are noted and not recorded, and
//! whatever would read, move or copy contents is refused, which ends the rehearsal early. What was noted is compiled by as many threads as there are
//! processors (`Slot::program_ahead`). Then the evaluation runs, and `Slot::program` finds its programs there.
//!
//! - Nothing depends on it: what a rehearsal misses is compiled when it is needed, and what it compiled is proved like every program (`trust`).
//! - Results of a rehearsal are known inside it only, as those of a capture. `undo` takes them back at its end.
//! - Once `CALM` evaluations in a row had nothing to compile, there are none until one has.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::capture::Captured;
use super::context::{self, Inside};
use super::slot::Slot;
use super::{Engine, Shared};
use crate::backend::MaybeSend;
use crate::kernel::Kernel;

/// Rehearsals in a row without anything to compile after which a device has no more of them.
pub(super) const CALM: u32 = 16;

/// The findings of a rehearsal so far.
#[derive(Default)]
pub(crate) struct Rehearsal(Mutex<Found>);

#[derive(Default)]
struct Found {
    launches: Vec<Launch>,
    undo: Vec<Box<dyn FnOnce() + Send>>,
}

/// The first dispatch of a kernel that is not compiled.
pub(super) struct Launch {
    pub(super) slot: Arc<Slot>,
    pub(super) kernel: Kernel,
    pub(super) label: Arc<str>,
    pub(super) workgroups: [u32; 3],
    pub(super) rounds: u64,
}

impl Rehearsal {
    fn launches(&self) -> Vec<Launch> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).launches)
    }

    /// Notes a dispatch.
    pub(super) fn note(&self, launch: Launch) {
        if !launch.slot.device().must_prove() || launch.slot.is_compiled(&launch.kernel) {
            return;
        }
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &Launch| Arc::ptr_eq(&known.slot, &launch.slot) && known.kernel == launch.kernel;
        if !found.launches.iter().any(is_same) {
            found.launches.push(launch);
        }
    }

    /// Does something at the end; the last is done first.
    pub(crate) fn undo(&self, work: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).undo.push(Box::new(work));
    }
}

/// Also where the evaluation is dropped before its end.
impl Drop for Rehearsal {
    fn drop(&mut self) {
        let found = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        found.undo.into_iter().rev().for_each(|work| work());
    }
}

/// Kernels that were compiled before a dispatch needed them, and when one did.
#[cfg(feature = "_test")]
#[derive(Default)]
pub(super) struct Counts([AtomicUsize; 2]);

#[cfg(feature = "_test")]
impl Counts {
    pub(super) fn count(&self, ahead: bool) {
        self.0[usize::from(!ahead)].fetch_add(1, Ordering::Relaxed);
    }
}

/// See [`crate::testing::compiled`].
#[cfg(feature = "_test")]
#[doc(hidden)]
pub fn compiled(engine: &Engine) -> [usize; 2] {
    let counts = engine.shared().primary().beside::<Counts>();
    [0, 1].map(|at: usize| counts.0[at].load(Ordering::Relaxed))
}

impl Engine {
    /// Rehearses an evaluation, if that may pay, and compiles what it would compile.
    pub(crate) async fn rehearse<T>(&self, evaluation: impl Future<Output = T> + MaybeSend) {
        let shared = self.shared();
        let slot = shared.primary();
        if !slot.device().must_prove() || slot.is_calm() || !self.may_trace() || shared.current_scope().is_some() {
            return;
        }
        let captured = Arc::new(Captured::rehearsing());
        drop(context::within(shared, Inside::Capture(captured.clone()), evaluation).await);
        let launches = captured.rehearsal().map_or_else(Vec::new, |rehearsal| rehearsal.launches());
        drop(captured);
        slot.note_rehearsal(!launches.is_empty());
        // One is compiled when it is needed.
        if launches.len() > 1 {
            let launches = shared.answered(launches).await;
            side_by_side(&launches);
        }
    }
}

impl Shared {
    /// The dispatches whose devices have given the right answers to what they need: nothing else is compiled.
    async fn answered(&self, launches: Vec<Launch>) -> Vec<Launch> {
        let mut right = Vec::with_capacity(launches.len());
        for launch in launches {
            let Launch { slot, kernel, label, workgroups, rounds } = &launch;
            if self.check_answers(slot, kernel, label, *workgroups, *rounds).await.is_ok() {
                right.push(launch);
            }
        }
        right
    }
}

/// Compiles kernels from several threads.
fn side_by_side(launches: &[Launch]) {
    let next = AtomicUsize::new(0);
    let compile = || {
        while let Some(launch) = launches.get(next.fetch_add(1, Ordering::Relaxed)) {
            // An error comes out of the dispatch that needs it.
            let _ = pollster::block_on(launch.slot.program_ahead(&launch.kernel));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..super::trust::cores().min(launches.len()) {
            // What no thread could be started for is compiled by this one.
            let _ = std::thread::Builder::new().name("cantus-compiler".to_owned()).spawn_scoped(scope, compile);
        }
        compile();
    });
}
