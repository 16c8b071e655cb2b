//! Descriptor sets, made once and kept by what they bind. All bindings of a kernel are in one set. `encode` asks for the set of each dispatch. Sets are
//! found by ids of buffers, which are never used again, so a set over a buffer that is gone is never found. When there are too many, all are dropped at
//! once, after the work that uses them.

use std::sync::Arc;

use ash::prelude::VkResult;
use ash::vk;
use rustc_hash::FxHashMap;

use super::objects::{Owned, Raw};
use super::ring::Kept;
use cantus_base::listed::Listed;

/// More sets than this are not kept.
const MAX_SETS: usize = 4096;
/// Sets in a pool.
const POOL_SETS: u32 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SlotKind {
    Storage,
    /// Reached by an offset that is part of the set.
    Uniform,
    /// Reached by an offset that is given when the set is bound.
    DynamicUniform,
}

impl SlotKind {
    fn raw(self) -> vk::DescriptorType {
        match self {
            Self::Storage => vk::DescriptorType::STORAGE_BUFFER,
            Self::Uniform => vk::DescriptorType::UNIFORM_BUFFER,
            Self::DynamicUniform => vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC,
        }
    }
}

/// The layout of a kernel's bindings: slot after slot from binding 0 of set 0.
pub(super) struct SetLayout {
    pub(super) id: u64,
    pub(super) slots: Vec<SlotKind>,
    pub(super) pipeline: Owned<vk::PipelineLayout>,
    set: Owned<vk::DescriptorSetLayout>,
}

impl SetLayout {
    pub(super) fn new(raw: &Arc<Raw>, id: u64, slots: &[SlotKind]) -> VkResult<Self> {
        let entries: Vec<_> = slots
            .iter()
            .zip(0_u32..)
            .map(|(slot, binding)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding)
                    .descriptor_type(slot.raw())
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .listed();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&entries);
        // SAFETY: what the structures point to lives until the call is over.
        let set = Owned::new(raw, unsafe { raw.device.create_descriptor_set_layout(&info, None) }?);
        let sets = [set.handle];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
        // SAFETY: `info` points to `sets`, which lives until the call is over.
        let pipeline = Owned::new(raw, unsafe { raw.device.create_pipeline_layout(&info, None) }?);
        Ok(Self { id, slots: slots.to_vec(), pipeline, set })
    }
}

/// A range that a slot binds.
pub(super) struct Range {
    pub(super) buffer: vk::Buffer,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The sets. They refer to buffers by ids that are never used again, so that one over a buffer that is gone is never found.
pub(super) struct SetCache {
    raw: Arc<Raw>,
    pools: Vec<Owned<vk::DescriptorPool>>,
    sets: FxHashMap<Box<[u64]>, vk::DescriptorSet>,
}

impl SetCache {
    pub(super) fn new(raw: &Arc<Raw>) -> Self {
        Self { raw: raw.clone(), pools: Vec::new(), sets: FxHashMap::default() }
    }

    /// The set that binds these ranges. `key`: the layout's id, then id, offset and size of each range.
    pub(super) fn set(&mut self, layout: &SetLayout, key: &[u64], ranges: &[Range]) -> VkResult<vk::DescriptorSet> {
        if let Some(&known) = self.sets.get(key) {
            return Ok(known);
        }
        let set = self.allocate(layout)?;
        let infos: Vec<_> = ranges
            .iter()
            .map(|range| {
                [vk::DescriptorBufferInfo::default().buffer(range.buffer).offset(range.offset).range(range.bytes)]
            })
            .listed();
        let writes: Vec<_> = infos
            .iter()
            .zip(&layout.slots)
            .zip(0_u32..)
            .map(|((info, slot), binding)| {
                vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(binding)
                    .descriptor_type(slot.raw())
                    .buffer_info(info)
            })
            .listed();
        // SAFETY: the set is new, so nothing uses it; the buffers live.
        unsafe { self.raw.device.update_descriptor_sets(&writes, &[]) };
        self.sets.insert(key.into(), set);
        Ok(set)
    }

    fn allocate(&mut self, layout: &SetLayout) -> VkResult<vk::DescriptorSet> {
        let layouts = [layout.set.handle];
        if let Some(pool) = self.pools.last() {
            let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool.handle).set_layouts(&layouts);
            // SAFETY: pool and layout live; the cache is used under one lock.
            let sets = unsafe { self.raw.device.allocate_descriptor_sets(&info) };
            match sets {
                Ok(sets) => return sets.first().copied().ok_or(vk::Result::ERROR_UNKNOWN),
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL) => {}
                Err(error) => return Err(error),
            }
        }
        self.pools.push(self.pool(layout)?);
        let pool = self.pools.last().ok_or(vk::Result::ERROR_UNKNOWN)?;
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool.handle).set_layouts(&layouts);
        // SAFETY: pool and layout live, and the pool is new; the cache is used under one lock.
        let sets = unsafe { self.raw.device.allocate_descriptor_sets(&info) }?;
        sets.first().copied().ok_or(vk::Result::ERROR_UNKNOWN)
    }

    /// A pool for some sets of usual size, and for one of this layout at least.
    fn pool(&self, layout: &SetLayout) -> VkResult<Owned<vk::DescriptorPool>> {
        let sizes =
            [(SlotKind::Storage, 4), (SlotKind::Uniform, 1), (SlotKind::DynamicUniform, 2)].map(|(kind, usual)| {
                let needed = layout.slots.iter().filter(|slot| **slot == kind).count();
                let count = u32::try_from(needed).unwrap_or(u32::MAX).max(usual * POOL_SETS);
                vk::DescriptorPoolSize::default().ty(kind.raw()).descriptor_count(count)
            });
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(POOL_SETS).pool_sizes(&sizes);
        // SAFETY: what `info` points to lives until the call is over.
        Ok(Owned::new(&self.raw, unsafe { self.raw.device.create_descriptor_pool(&info, None) }?))
    }

    /// Starts over when there are too many sets, and returns what the old ones were allocated from.
    pub(super) fn thin_out(&mut self) -> Option<Kept> {
        if self.sets.len() < MAX_SETS {
            return None;
        }
        self.sets.clear();
        Some(Arc::new(std::mem::take(&mut self.pools)))
    }
}
