//! Recordings: a batch encoded once into a command buffer that is submitted again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use super::encode::{Encoder, Step};
use super::errors::Errors as _;
use super::memory::{Choice, Place, RawBuffer};
use super::ring::{InUse, Kept, Slot, keep};
use super::sets::SetCache;
use super::shared::Shared;
use super::uniforms::Uniforms;
use crate::backend::{Command, Recording};
use crate::error::Result;

/// A recorded batch.
pub(super) struct VulkanRecording {
    shared: Arc<Shared>,
    /// The commands as given: they keep buffers and programs alive, and are used when the kernels are to be timed.
    commands: Vec<Command>,
    /// Absent when there is nothing to run.
    encoded: Option<Encoded>,
}

impl Recording for VulkanRecording {}

struct Encoded {
    commands: vk::CommandBuffer,
    /// The buffers it uses, each once.
    used: Arc<[Arc<RawBuffer>]>,
    /// The last submission of it.
    last: AtomicU64,
    /// Command buffer, pipelines, descriptor sets, uniforms.
    kept: Kept,
}

impl Encoded {
    fn new(shared: &Arc<Shared>, steps: &[Step<'_>]) -> Result<Self, vk::Result> {
        let needed = shared.uniform_bytes(steps);
        let mut uniforms = Uniforms::default();
        let place = match needed {
            0 => None,
            bytes => {
                let usage = vk::BufferUsageFlags::UNIFORM_BUFFER;
                Some((shared.memory.buffer(bytes, usage, Place::ToDevice, Choice::Best)?, 0))
            }
        };
        uniforms.start(place, shared.uniform_alignment);
        let mut sets = SetCache::new(&shared.raw);
        let mut slot = Slot::new(&shared.raw, shared.family)?;
        slot.begin_reusable(&shared.raw)?;
        let mut encoder = Encoder::new(shared, slot.commands, &mut sets, &mut uniforms);
        for step in steps {
            encoder.step(step)?;
        }
        encoder.end();
        let (mut used, pipelines) = (encoder.used, encoder.kept);
        // SAFETY: everything was recorded without an error.
        unsafe { shared.raw.device.end_command_buffer(slot.commands) }?;
        if !uniforms.write() {
            return Err(vk::Result::ERROR_MEMORY_MAP_FAILED);
        }
        used.sort_by_key(|buffer| buffer.id);
        used.dedup_by_key(|buffer| buffer.id);
        let commands = slot.commands;
        slot.kept = pipelines;
        let contents = uniforms.buffer().cloned();
        Ok(Self { commands, used: used.into(), last: AtomicU64::new(0), kept: keep((slot, sets, contents)) })
    }
}

impl VulkanRecording {
    pub(super) fn new(shared: &Arc<Shared>, batch: &[Command]) -> Result<Self> {
        shared.health.check()?;
        let steps = shared.resolve_all(batch)?;
        let refused = |error| shared.health.refused(error, "recording a batch");
        let encoded = if steps.is_empty() { None } else { Some(Encoded::new(shared, &steps).map_err(refused)?) };
        Ok(Self { shared: shared.clone(), commands: batch.to_vec(), encoded })
    }

    pub(super) fn belongs_to(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Starts it once more.
    pub(super) fn replay(&self) -> Result<()> {
        let shared = &self.shared;
        shared.health.check()?;
        for command in &self.commands {
            command.check_cancelled()?;
        }
        if shared.profile {
            // Timestamps belong to one submission: the commands are encoded again, with them.
            return shared.submit_parts(&self.commands, &mut false);
        }
        let Some(encoded) = &self.encoded else { return Ok(()) };
        let deadline = shared.health.deadline();
        {
            let mut state = shared.lock();
            shared.flush(&mut state)?;
            let submitted = shared.timeline.submit(&[encoded.commands], state.flight.next());
            submitted.map_err(|error| shared.health.refused(error, "replaying a batch"))?;
            let serial = state.flight.submitted();
            encoded.last.store(serial, Ordering::Relaxed);
            for buffer in &*encoded.used {
                buffer.used_by(serial);
            }
        }
        shared.check_deadline(deadline, || "a replay".to_owned())
    }
}

impl Drop for VulkanRecording {
    fn drop(&mut self) {
        if let Some(encoded) = self.encoded.take() {
            let last = encoded.last.load(Ordering::Relaxed);
            let kept = keep((encoded.used, encoded.kept));
            self.shared.lock().flight.keep(last, InUse::Kept(kept));
        }
    }
}
