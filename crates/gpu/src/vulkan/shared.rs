//! The state that the parts of an opened device share: below buffers, programs and the queue, which are made of it. Buffers, programs and recordings hold
//! `Shared`. The host may touch memory directly only while it holds the lock and the device is done with the buffer (`is_done_with`). Transfers that must
//! wait are pending, and go ahead of the next submission.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ash::vk;
use rustc_hash::FxHashMap;
use web_time::Instant;

use super::cache::PipelineCache;
use super::errors::Errors as _;
use super::features::Support;
use super::memory::{Memory, RawBuffer};
use super::objects::Raw;
use super::ring::{HostRing, InUse, Slot};
use super::sets::{SetCache, SetLayout, SlotKind};
use super::timeline::{Submission, Timeline};
use super::timestamps::Timer;
use super::uniforms::Uniforms;
use crate::backend::detached::AtWork;
use crate::backend::{DeviceInfo, KernelTime, Pool};
use crate::error::Result;
use crate::health::Health;
use crate::in_flight::InFlight;
use crate::matrices::Matrices;
use crate::wait::Waiter;

/// Times kept until they are asked for.
const KEPT_TIMES: usize = 1 << 16;

/// The state that the parts of a device share. Buffers, programs and recordings keep it alive.
pub(super) struct Shared {
    /// Its threads end first.
    pub(super) waiter: Waiter<Submission>,
    pub(super) info: DeviceInfo,
    pub(super) support: Support,
    pub(super) matrices: Matrices,
    pub(super) limits: vk::PhysicalDeviceLimits,
    /// Alignment of a uniform's offset.
    pub(super) uniform_alignment: u64,
    pub(super) timestamp_bits: u32,
    pub(super) family: u32,
    pub(super) spirv: naga::back::spv::Options<'static>,
    pub(super) profile: bool,
    pub(super) health: Arc<Health>,
    pub(super) timeline: Arc<Timeline>,
    pub(super) cache: PipelineCache,
    pub(super) layouts: Mutex<FxHashMap<Vec<SlotKind>, Arc<SetLayout>>>,
    pub(super) times: Mutex<Vec<KernelTime>>,
    pub(super) state: Mutex<State>,
    pub(super) pool: Pool<Arc<RawBuffer>>,
    pub(super) memory: Arc<Memory>,
    pub(super) raw: Arc<Raw>,
}

/// The state under the device's lock.
pub(super) struct State {
    /// The submissions' numbers, and what they may still touch.
    pub(super) flight: InFlight<InUse>,
    /// Command buffers, not in use.
    pub(super) slots: Vec<Slot>,
    pub(super) sets: SetCache,
    /// The uniforms of the submission being made.
    pub(super) contents: Uniforms,
    pub(super) uniforms: HostRing,
    pub(super) uploads: HostRing,
    /// Staging buffers for reads, not in use.
    pub(super) staging: Vec<Arc<RawBuffer>>,
    pub(super) pending: Vec<Pending>,
}

/// A transfer that goes ahead of the next submission.
pub(super) enum Pending {
    Clear { buffer: Arc<RawBuffer>, offset: u64, bytes: u64 },
    Copy { source: Arc<RawBuffer>, from: u64, target: Arc<RawBuffer>, to: u64, bytes: u64 },
}

impl State {
    /// Notes a transfer for the next submission.
    pub(super) fn pend(&mut self, pending: Pending) {
        let next = self.flight.next();
        match &pending {
            Pending::Clear { buffer, .. } => buffer.used_by(next),
            Pending::Copy { source, target, .. } => {
                source.used_by(next);
                target.used_by(next);
            }
        }
        self.pending.push(pending);
    }

    /// True when the device is done with a buffer, as far as is known: while the lock is held, the host may touch it.
    pub(super) fn is_done_with(&self, buffer: &RawBuffer) -> bool {
        self.flight.has_passed(buffer.last_use())
    }

    /// Takes up what ended with this submission. Its timers are returned.
    fn take_up(&mut self, completed: u64) -> Vec<Timer> {
        let mut timers = Vec::new();
        for what in self.flight.pass(completed) {
            if let InUse::Slot(mut slot) = what {
                timers.extend(slot.timer.take());
                slot.clear();
                self.slots.push(slot);
            }
        }
        timers
    }
}

impl Shared {
    /// The device's lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The layout with these slots.
    pub(super) fn layout(&self, slots: &[SlotKind]) -> Result<Arc<SetLayout>> {
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = layouts.get(slots) {
            return Ok(known.clone());
        }
        let layout = SetLayout::new(&self.raw, layouts.len() as u64, slots);
        let layout = Arc::new(layout.map_err(|error| self.health.refused(error, "making a layout"))?);
        layouts.insert(slots.to_vec(), layout.clone());
        Ok(layout)
    }

    /// Fails when a driver whose submissions block (software drivers' do) has used up the time. The device is lost then.
    pub(super) fn check_deadline(&self, deadline: Option<Instant>, what: impl Fn() -> String) -> Result<()> {
        if deadline.is_none_or(|deadline| deadline > Instant::now()) {
            return Ok(());
        }
        self.health.overdue();
        Err(self.health.timeout_error(&what()))
    }

    /// Waits until that submission has ended.
    pub(super) async fn wait(self: &Arc<Self>, serial: u64, what: impl Fn() -> String) -> Result<()> {
        let deadline = self.health.deadline();
        self.health.check()?;
        let submission = Arc::new(Submission { timeline: self.timeline.clone(), serial });
        let ended = self.waiter.wait(serial, submission, deadline).await;
        ended.result(&self.health, &what(), |error| {
            self.health.lose(&format!("waiting for it failed: {error}"));
            self.health.lost_error()
        })?;
        self.health.check()
    }

    pub(super) fn note_times(&self, measured: Vec<KernelTime>) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT_TIMES.saturating_sub(times.len());
        times.extend(measured.into_iter().take(room));
    }

    /// Takes up what has ended.
    pub(super) fn reclaim(&self, state: &mut State) -> Result<()> {
        let completed =
            self.timeline.completed().map_err(|error| self.health.refused(error, "asking for its state"))?;
        state.uploads.reclaim(completed);
        state.uniforms.reclaim(completed);
        for timer in state.take_up(completed) {
            let times = timer.times(f64::from(self.limits.timestamp_period), self.timestamp_bits);
            self.note_times(times.map_err(|error| self.health.refused(error, "reading timestamps"))?);
        }
        Ok(())
    }

    /// Writes the pipeline cache to its file where that is worth it.
    pub(super) fn save_cache(&self) {
        if !self.health.is_lost() {
            self.cache.save();
        }
    }
}

impl AtWork for Shared {
    fn has_ended(&self) -> bool {
        // The lock may be held by a thread that hangs in the driver.
        let Ok(state) = self.state.try_lock() else { return false };
        // A device that is gone does not work any more.
        self.timeline.completed().map_or(true, |completed| completed >= state.flight.last())
    }

    fn held_bytes(&self) -> u64 {
        let figures = self.pool.figures();
        figures.in_use + figures.pooled
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.timeline.drain();
        // A device that missed its time limit is held until its work has ended, so this ends too.
        // SAFETY: the last reference is going, so that nobody uses the queue.
        let idle = unsafe { self.raw.device.device_wait_idle() };
        if idle.is_ok() {
            self.cache.save();
        }
    }
}
