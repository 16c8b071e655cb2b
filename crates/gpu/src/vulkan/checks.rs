//! Checks that Vulkan does not make itself, before anything is recorded: this device's side of `gpu/src/checks.rs`.

use std::sync::Arc;

use super::buffer::VulkanBuffer;
use super::program::{FOLD_BYTES, Pipeline, VulkanProgram};
use super::shared::Shared;
use crate::checks::{self, Facts, Owner, Rules};
use crate::error::Result;
use crate::kernel::Reflection;

impl Owner for Shared {
    type Program = VulkanProgram;
    type Buffer = VulkanBuffer;

    fn rules(&self) -> Rules<'_> {
        let limits = &self.info.capabilities.limits;
        Rules {
            device: &self.info.name,
            storage: (limits.storage_binding_bytes, u64::from(limits.storage_alignment)),
            uniform: (limits.uniform_binding_bytes, self.uniform_alignment),
        }
    }

    fn compiled(&self, program: &VulkanProgram) -> bool {
        std::ptr::eq(Arc::as_ptr(&program.shared), self)
    }

    fn holds(&self, buffer: &VulkanBuffer) -> bool {
        std::ptr::eq(Arc::as_ptr(&buffer.shared), self)
    }

    fn reflection(program: &VulkanProgram) -> &Reflection {
        &program.reflection
    }

    fn facts(buffer: &VulkanBuffer) -> Facts<'_> {
        buffer.facts()
    }
}

/// True when the device runs this many workgroups without folding.
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
    shared.check_ids(program, label, workgroups)?;
    let pipeline = program.folded()?;
    let limit = shared.info.capabilities.limits.workgroups_per_dimension;
    let plan = crate::kernel::fold::plan(workgroups, limit);
    let plan = plan.ok_or_else(|| checks::too_many(&shared.info.name, label, workgroups))?;
    Ok((pipeline, plan.grid, plan.uniform))
}
