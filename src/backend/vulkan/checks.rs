//! What Vulkan does not check itself, said before anything is recorded: this device's side of `backend/checks`.

use std::sync::Arc;

use super::buffer::VulkanBuffer;
use super::program::{FOLD_BYTES, Pipeline, VulkanProgram};
use super::shared::Shared;
use crate::backend::Bound;
use crate::backend::checks::{self, Rules};
use crate::error::Result;

/// Checks what is bound to a program's bindings: devices, sizes, alignments, and buffers bound twice.
pub(super) fn bindings(shared: &Shared, program: &VulkanProgram, label: &str, bound: &[Bound]) -> Result<()> {
    let limits = &shared.info.capabilities.limits;
    let rules = Rules {
        device: &shared.info.name,
        storage: (limits.storage_binding_bytes, u64::from(limits.storage_alignment)),
        uniform: (limits.uniform_binding_bytes, shared.uniform_alignment),
    };
    checks::bindings(&rules, &program.reflection.bindings, label, bound, |buffer| {
        shared.own_buffer(buffer, label).map(VulkanBuffer::facts)
    })
}

/// Checks that the ids of so many workgroups fit into 32 bits.
pub(super) fn ids(program: &VulkanProgram, label: &str, workgroups: [u32; 3]) -> Result<()> {
    checks::ids(program.reflection.workgroup_size, label, workgroups)
}

/// True when the device runs so many workgroups without folding.
pub(super) fn fits(shared: &Shared, workgroups: [u32; 3]) -> bool {
    workgroups.iter().zip(shared.limits.max_compute_work_group_count).all(|(&count, limit)| count <= limit)
}

/// The pipeline, grid and uniform of a dispatch that must be folded.
pub(super) fn folded<'a>(
    shared: &Shared,
    program: &'a VulkanProgram,
    label: &str,
    workgroups: [u32; 3],
) -> Result<(&'a Arc<Pipeline>, [u32; 3], [u8; FOLD_BYTES as usize])> {
    ids(program, label, workgroups)?;
    let pipeline = program.folded()?;
    let limit = shared.info.capabilities.limits.workgroups_per_dimension;
    let plan = crate::kernel::fold::plan(workgroups, limit);
    let plan = plan.ok_or_else(|| checks::too_many(&shared.info.name, label, workgroups))?;
    Ok((pipeline, plan.grid, plan.uniform))
}
