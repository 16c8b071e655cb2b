//! Batches: checked whole, encoded into one command buffer, submitted once. `submit` checks a batch whole, then encodes as many steps as fit into the ring
//! of uniforms, and submits, possibly several times. A batch may therefore have run in part when a later part fails, and `ran` says so. Pending writes go
//! ahead of the next submission.

use std::sync::Arc;

use ash::vk;

use super::checks;
use super::encode::{Encoder, Resolved, Step};
use super::errors::Errors as _;
use super::ring::{InUse, Slot};
use super::shared::{Shared, State};
use super::timestamps::Timer;
use super::uniforms::MAX_BYTES;
use crate::backend::{Command, Refusal};
use crate::checks::Owner as _;
use crate::error::Result;

/// The ring for uniforms at first.
const FIRST_UNIFORMS: u64 = 256 << 10;

impl Shared {
    /// Checks, encodes and submits a batch. Nothing is submitted when anything in it is wrong.
    pub(super) fn submit(self: &Arc<Self>, batch: Vec<Command>) -> Result<(), Refusal> {
        let mut ran = false;
        self.submit_parts(&batch, &mut ran).map_err(|error| match ran {
            false => Refusal::whole(error, batch),
            true => error.into(),
        })
    }

    /// Says in `ran` whether a part of it was submitted.
    pub(super) fn submit_parts(self: &Arc<Self>, batch: &[Command], ran: &mut bool) -> Result<()> {
        self.health.check()?;
        let steps = self.resolve_all(batch)?;
        let deadline = self.health.deadline();
        {
            let mut state = self.lock();
            self.reclaim(&mut state)?;
            let mut rest = steps.as_slice();
            // Once at least: an empty batch still starts pending transfers.
            loop {
                let (now, later) = rest.split_at(self.fitting(rest));
                if now.is_empty() && state.pending.is_empty() {
                    break;
                }
                self.run(&mut state, now)?;
                *ran = true;
                rest = later;
            }
        }
        self.check_deadline(deadline, || action(&steps))
    }

    /// Waits until everything submitted so far has finished.
    pub(super) async fn finish(self: Arc<Self>) -> Result<()> {
        self.health.check()?;
        let last = {
            let mut state = self.lock();
            self.flush(&mut state)?;
            state.flight.last()
        };
        self.wait(last, || "the work in flight".to_owned()).await
    }

    /// Starts pending transfers.
    pub(super) fn flush(self: &Arc<Self>, state: &mut State) -> Result<()> {
        self.reclaim(state)?;
        if state.pending.is_empty() { Ok(()) } else { self.run(state, &[]) }
    }

    /// The batch in this backend's types, checked.
    pub(super) fn resolve_all<'a>(&self, batch: &'a [Command]) -> Result<Vec<Step<'a>>> {
        self.check_batch(batch, |dispatch, program| {
            if checks::fits(self, dispatch.workgroups) {
                let grid = dispatch.workgroups;
                return Ok(Resolved { dispatch, program, pipeline: &program.plain, grid, counts: None });
            }
            let (pipeline, grid, counts) = checks::folded(self, program, &dispatch.label, dispatch.workgroups)?;
            Ok(Resolved { dispatch, program, pipeline, grid, counts: Some(counts) })
        })
    }

    /// Returns the number of steps that fit into one submission's uniforms (and timer); at least one, if there are any.
    fn fitting(&self, steps: &[Step<'_>]) -> usize {
        let (mut bytes, mut timed) = (0, 0);
        for (index, step) in steps.iter().enumerate() {
            if let Step::Dispatch(resolved) = step {
                bytes += resolved.uniform_bytes(self.uniform_alignment);
                timed += 1;
            }
            let full = bytes > MAX_BYTES || (self.profile && timed > Timer::MOST);
            if full && index > 0 {
                return index;
            }
        }
        steps.len()
    }

    /// Bytes of uniforms that these steps take at most.
    pub(super) fn uniform_bytes(&self, steps: &[Step<'_>]) -> u64 {
        let needed = steps.iter().map(|step| match step {
            Step::Dispatch(resolved) => resolved.uniform_bytes(self.uniform_alignment),
            Step::Copy { .. } => 0,
        });
        needed.sum()
    }

    /// Encodes and submits pending transfers, then steps that fit.
    fn run(self: &Arc<Self>, state: &mut State, steps: &[Step<'_>]) -> Result<()> {
        let refused = |error| self.health.refused(error, &action(steps));
        self.prepare_uniforms(state, steps).map_err(refused)?;
        let mut slot = match state.slots.pop() {
            Some(slot) => slot,
            None => Slot::new(&self.raw, self.family).map_err(refused)?,
        };
        let encoded = self.encode(state, &mut slot, steps);
        let submitted = encoded.and_then(|()| self.timeline.submit(&[slot.commands], state.flight.next()));
        if let Err(error) = submitted {
            // Nothing of it has a number, so nobody waits for it. Pending transfers go with the next submission.
            slot.clear();
            state.slots.push(slot);
            return Err(refused(error));
        }
        let serial = state.flight.submitted();
        for buffer in &slot.used {
            buffer.used_by(serial);
        }
        state.pending.clear();
        state.flight.keep(serial, InUse::Slot(slot));
        Ok(())
    }

    /// A range of the ring for the uniforms of these steps.
    fn prepare_uniforms(&self, state: &mut State, steps: &[Step<'_>]) -> Result<(), vk::Result> {
        let needed = self.uniform_bytes(steps);
        let (alignment, next) = (self.uniform_alignment, state.flight.next());
        if needed == 0 {
            state.contents.start(None, alignment);
            return Ok(());
        }
        let mut place = state.uniforms.take(next, needed, alignment);
        if place.is_none() {
            let bytes = (needed * 2).next_power_of_two().max(FIRST_UNIFORMS).max(state.uniforms.bytes());
            state.uniforms.replace(&self.memory, bytes)?;
            place = state.uniforms.take(next, needed, alignment);
        }
        state.contents.start(place, alignment);
        Ok(())
    }

    fn encode(&self, state: &mut State, slot: &mut Slot, steps: &[Step<'_>]) -> Result<(), vk::Result> {
        if let Some(old) = state.sets.thin_out() {
            let last = state.flight.last();
            state.flight.keep(last, InUse::Kept(old));
        }
        slot.begin_once(&self.raw)?;
        let timed = steps.iter().filter(|step| matches!(step, Step::Dispatch(_))).count();
        if self.profile && self.timestamp_bits > 0 && timed > 0 {
            slot.timer = Some(Timer::new(&self.raw, slot.commands, timed)?);
        }
        let mut encoder = Encoder::new(self, slot.commands, &mut state.sets, &mut state.contents);
        for pending in &state.pending {
            encoder.pending(pending);
        }
        for step in steps {
            match (&mut slot.timer, step) {
                (Some(timer), Step::Dispatch(resolved)) => {
                    // Each on its own, or the times would overlap.
                    encoder.barrier();
                    timer.start(slot.commands, &resolved.dispatch.label);
                    encoder.step(step)?;
                    timer.stop(slot.commands);
                }
                _ => encoder.step(step)?,
            }
        }
        encoder.end();
        (slot.used, slot.kept) = (encoder.used, encoder.kept);
        // SAFETY: everything was recorded without an error.
        unsafe { self.raw.device.end_command_buffer(slot.commands) }?;
        if !state.contents.write() {
            return Err(vk::Result::ERROR_MEMORY_MAP_FAILED);
        }
        Ok(())
    }
}

/// Describes these steps in words.
fn action(steps: &[Step<'_>]) -> String {
    let labels = || {
        steps.iter().filter_map(|step| match step {
            Step::Dispatch(resolved) => Some(&resolved.dispatch.label),
            Step::Copy { .. } => None,
        })
    };
    match (labels().next(), labels().next_back(), labels().count()) {
        (Some(only), _, 1) => format!("running {only}"),
        (Some(first), Some(last), count) => format!("running a batch of {count} kernels, {first} to {last}"),
        _ => "copying".to_owned(),
    }
}
