//! Commands into a command buffer: what is bound already is not bound again, and a barrier is put only where one step needs
//! what another did.

use std::any::Any;
use std::sync::Arc;

use ash::prelude::VkResult;
use ash::vk;

use super::buffer::VulkanBuffer;
use super::memory::RawBuffer;
use super::program::{FOLD_BYTES, Pipeline, VulkanProgram};
use super::ring::Kept;
use super::sets::{Range, SetCache, SlotKind};
use super::shared::{Pending, Shared};
use super::uniforms::{Uniforms, footprint};
use crate::backend::{Bound, Dispatch, padded};
use crate::checks;
use crate::kernel::{Access, AddressSpace};

/// This many uses without a barrier are told apart; then one is set regardless.
const MOST_USES: usize = 64;

pub(super) type Step<'a> = checks::Step<'a, Resolved<'a>, VulkanBuffer>;

/// A dispatch, resolved to this backend's types and checked.
#[doc(hidden)]
pub struct Resolved<'a> {
    pub(super) dispatch: &'a Dispatch,
    pub(super) program: &'a VulkanProgram,
    pub(super) pipeline: &'a Arc<Pipeline>,
    pub(super) grid: [u32; 3],
    /// The true counts, for a folded pipeline.
    pub(super) counts: Option<[u8; FOLD_BYTES as usize]>,
}

impl Resolved<'_> {
    /// Bytes of uniforms that it takes at most.
    pub(super) fn uniform_bytes(&self, alignment: u64) -> u64 {
        let contents = self.dispatch.bindings.iter().map(|bound| match bound {
            Bound::Uniform(bytes) => footprint(padded(bytes.len() as u64), alignment),
            Bound::Buffer { .. } => 0,
        });
        contents.sum::<u64>() + self.counts.map_or(0, |_| footprint(FOLD_BYTES, alignment))
    }

    /// The bytes of the uniform in that slot, if they are given with the dispatch.
    fn contents(&self, slot: usize) -> Option<&[u8]> {
        match self.dispatch.bindings.get(slot) {
            Some(Bound::Uniform(bytes)) => Some(bytes),
            Some(Bound::Buffer { .. }) => None,
            None => self.counts.as_ref().map(<[u8; FOLD_BYTES as usize]>::as_slice),
        }
    }

    /// The tensor's range in that slot.
    fn range(&self, slot: usize) -> Option<(&Arc<RawBuffer>, u64, u64)> {
        let Some(Bound::Buffer { buffer, offset, bytes }) = self.dispatch.bindings.get(slot) else { return None };
        let buffer = (&**buffer as &dyn Any).downcast_ref::<VulkanBuffer>()?;
        Some((&buffer.raw, *offset, padded(*bytes)))
    }

    fn writes(&self, slot: usize) -> bool {
        self.program
            .reflection
            .bindings
            .get(slot)
            .is_some_and(|binding| binding.space == AddressSpace::Storage && binding.access == Access::ReadWrite)
    }
}

/// A buffer's use by a step.
type Use = (u64, bool);

/// Commands being recorded. Errors leave a command buffer that must not be submitted.
pub(super) struct Encoder<'a> {
    shared: &'a Shared,
    commands: vk::CommandBuffer,
    sets: &'a mut SetCache,
    uniforms: &'a mut Uniforms,
    /// The buffers that the commands use, to keep alive and to mark as used.
    pub(super) used: Vec<Arc<RawBuffer>>,
    pub(super) kept: Vec<Kept>,
    /// Uses since the last barrier: buffer and whether it was written.
    uses: Vec<Use>,
    /// Uses of the last dispatch.
    last: Vec<Use>,
    pipeline: vk::Pipeline,
    /// The bound set and offsets: the set's key and the dynamic offsets.
    key: Vec<u64>,
    offsets: Vec<u32>,
    /// Scratch space for those of the next dispatch.
    next_key: Vec<u64>,
    next_offsets: Vec<u32>,
}

impl<'a> Encoder<'a> {
    /// Starts: what was submitted before is over for what follows.
    pub(super) fn new(
        shared: &'a Shared,
        commands: vk::CommandBuffer,
        sets: &'a mut SetCache,
        uniforms: &'a mut Uniforms,
    ) -> Self {
        let mut encoder = Self {
            shared,
            commands,
            sets,
            uniforms,
            used: Vec::new(),
            kept: Vec::new(),
            uses: Vec::new(),
            last: Vec::new(),
            pipeline: vk::Pipeline::null(),
            key: Vec::new(),
            offsets: Vec::new(),
            next_key: Vec::new(),
            next_offsets: Vec::new(),
        };
        encoder.barrier();
        encoder
    }

    pub(super) fn step(&mut self, step: &Step<'_>) -> VkResult<()> {
        match step {
            Step::Dispatch(resolved) => self.dispatch(resolved),
            Step::Copy { source, source_offset, target, target_offset, bytes } => {
                self.copy(&source.raw, *source_offset, &target.raw, *target_offset, *bytes);
                Ok(())
            }
        }
    }

    pub(super) fn pending(&mut self, pending: &Pending) {
        match pending {
            Pending::Clear { buffer, offset, bytes } => {
                self.separate(&[(buffer.id, true)]);
                self.used.push(buffer.clone());
                // SAFETY: the range lies in the buffer, at multiples of 4: `Shared::clear` sees to it.
                unsafe {
                    self.shared.raw.device.cmd_fill_buffer(self.commands, buffer.handle(), *offset, *bytes, 0);
                }
            }
            Pending::Copy { source, from, target, to, bytes } => self.copy(source, *from, target, *to, *bytes),
        }
    }

    fn copy(&mut self, source: &Arc<RawBuffer>, from: u64, target: &Arc<RawBuffer>, to: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.separate(&[(source.id, false), (target.id, true)]);
        self.used.extend([source.clone(), target.clone()]);
        let region = vk::BufferCopy::default().src_offset(from).dst_offset(to).size(bytes);
        // SAFETY: the ranges were checked against the buffers, which are not one buffer.
        unsafe {
            self.shared.raw.device.cmd_copy_buffer(self.commands, source.handle(), target.handle(), &[region]);
        }
    }

    fn dispatch(&mut self, resolved: &Resolved<'_>) -> VkResult<()> {
        self.bind(resolved)?;
        let last = std::mem::take(&mut self.last);
        self.separate(&last);
        self.last = last;
        let [x, y, z] = resolved.grid;
        // SAFETY: pipeline and set are bound; the counts are within the limits.
        unsafe { self.shared.raw.device.cmd_dispatch(self.commands, x, y, z) };
        Ok(())
    }

    /// Binds pipeline and set where they differ from what is bound. `last` holds the dispatch's uses afterwards.
    fn bind(&mut self, resolved: &Resolved<'_>) -> VkResult<()> {
        let (device, pipeline) = (&self.shared.raw.device, resolved.pipeline);
        if self.pipeline != pipeline.raw.handle {
            // SAFETY: the pipeline is kept alive until the commands have ended.
            unsafe { device.cmd_bind_pipeline(self.commands, vk::PipelineBindPoint::COMPUTE, pipeline.raw.handle) };
            self.pipeline = pipeline.raw.handle;
            self.key.clear();
            self.kept.push(pipeline.clone());
        }
        self.last.clear();
        self.next_key.clear();
        self.next_key.push(pipeline.layout.id);
        self.next_offsets.clear();
        for (slot, kind) in pipeline.layout.slots.iter().enumerate() {
            let (id, offset, bytes) = match resolved.range(slot) {
                Some((buffer, offset, bytes)) => {
                    self.last.push((buffer.id, resolved.writes(slot)));
                    (buffer.id, offset, bytes)
                }
                None => {
                    let contents = resolved.contents(slot).unwrap_or_default();
                    let bytes = padded(contents.len() as u64);
                    let offset = self.uniforms.add(contents, bytes);
                    (self.uniforms.buffer().map_or(0, |buffer| buffer.id), offset, bytes)
                }
            };
            // Tensors have their offset in the set, contents where they can be have it given when the set is bound.
            let given = *kind == SlotKind::DynamicUniform && resolved.contents(slot).is_some();
            if *kind == SlotKind::DynamicUniform {
                let dynamic = if given { u32::try_from(offset) } else { Ok(0) };
                self.next_offsets.push(dynamic.map_err(|_| vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)?);
            }
            self.next_key.extend([id, if given { 0 } else { offset }, bytes]);
        }
        if pipeline.layout.slots.is_empty() || (self.next_key == self.key && self.next_offsets == self.offsets) {
            return Ok(());
        }
        let set = self.set(resolved)?;
        // SAFETY: the set was made for this layout; its buffers live until the commands have ended.
        unsafe {
            device.cmd_bind_descriptor_sets(
                self.commands,
                vk::PipelineBindPoint::COMPUTE,
                pipeline.layout.pipeline.handle,
                0,
                &[set],
                &self.next_offsets,
            );
        }
        std::mem::swap(&mut self.key, &mut self.next_key);
        std::mem::swap(&mut self.offsets, &mut self.next_offsets);
        Ok(())
    }

    /// The set for `next_key`; its buffers are noted as used.
    fn set(&mut self, resolved: &Resolved<'_>) -> VkResult<vk::DescriptorSet> {
        let places = self.next_key.get(1..).unwrap_or_default().chunks_exact(3);
        let mut ranges = Vec::with_capacity(places.len());
        for (slot, place) in places.enumerate() {
            let buffer = resolved.range(slot).map(|(buffer, ..)| buffer).or_else(|| self.uniforms.buffer());
            let buffer = buffer.ok_or(vk::Result::ERROR_UNKNOWN)?;
            self.used.push(buffer.clone());
            ranges.push(Range { buffer: buffer.handle(), offset: place[1], bytes: place[2] });
        }
        self.sets.set(&resolved.pipeline.layout, &self.next_key, &ranges)
    }

    /// Sets a barrier if a step with these uses needs what a step since the last barrier did, or overwrites it; notes the uses.
    fn separate(&mut self, uses: &[Use]) {
        let conflict = uses
            .iter()
            .any(|(id, writes)| self.uses.iter().any(|(other, written)| id == other && (*writes || *written)));
        if conflict || self.uses.len() + uses.len() > MOST_USES {
            self.barrier();
        }
        self.uses.extend_from_slice(uses);
    }

    /// Everything before is over and visible for everything after.
    pub(super) fn barrier(&mut self) {
        self.uses.clear();
        const STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
            vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
        );
        let writes = vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE;
        let reads = vk::AccessFlags::SHADER_READ | vk::AccessFlags::UNIFORM_READ | vk::AccessFlags::TRANSFER_READ;
        let barrier = vk::MemoryBarrier::default().src_access_mask(writes).dst_access_mask(reads | writes);
        self.raw_barrier(STAGES, STAGES, barrier);
    }

    /// Ends: the host may read what was written once the submission has ended.
    pub(super) fn end(&mut self) {
        let stages = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER;
        let writes = vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE;
        let barrier = vk::MemoryBarrier::default().src_access_mask(writes).dst_access_mask(vk::AccessFlags::HOST_READ);
        self.raw_barrier(stages, vk::PipelineStageFlags::HOST, barrier);
    }

    fn raw_barrier(&self, from: vk::PipelineStageFlags, to: vk::PipelineStageFlags, barrier: vk::MemoryBarrier<'_>) {
        // SAFETY: the command buffer is being recorded, outside of any render pass.
        unsafe {
            self.shared.raw.device.cmd_pipeline_barrier(
                self.commands,
                from,
                to,
                vk::DependencyFlags::empty(),
                &[barrier],
                &[],
                &[],
            );
        }
    }
}
