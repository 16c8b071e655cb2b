//! What wgpu would refuse, said before anything is recorded: this device's side of `backend/checks`.

use super::memory::WgpuBuffer;
use super::program::{FOLD_BYTES, Pipeline, WgpuProgram};
use super::shared::Shared;
use crate::backend::Bound;
use crate::backend::checks::{self, Rules};
use crate::error::Result;

/// Checks what is bound to a program's bindings: devices, sizes, alignments, and buffers bound twice.
pub(super) fn bindings(shared: &Shared, program: &WgpuProgram, label: &str, bound: &[Bound]) -> Result<()> {
    let limits = &shared.limits;
    let rules = Rules {
        device: &shared.info.name,
        storage: (limits.max_storage_buffer_binding_size, u64::from(limits.min_storage_buffer_offset_alignment)),
        uniform: (limits.max_uniform_buffer_binding_size, u64::from(limits.min_uniform_buffer_offset_alignment)),
    };
    checks::bindings(&rules, &program.reflection.bindings, label, bound, |buffer| {
        shared.own_buffer(buffer, label).map(WgpuBuffer::facts)
    })
}

/// Checks that the ids of so many workgroups fit into 32 bits.
pub(super) fn ids(program: &WgpuProgram, label: &str, workgroups: [u32; 3]) -> Result<()> {
    checks::ids(program.reflection.workgroup_size, label, workgroups)
}

/// The pipeline, grid and uniform of a dispatch that must be folded.
pub(super) fn folded<'a>(
    shared: &Shared,
    program: &'a WgpuProgram,
    label: &str,
    workgroups: [u32; 3],
) -> Result<(&'a Pipeline, [u32; 3], [u8; FOLD_BYTES as usize])> {
    ids(program, label, workgroups)?;
    let pipeline = program.folded()?;
    #[cfg(feature = "wgsl")]
    if let Some(plan) = crate::kernel::fold::plan(workgroups, shared.limits.max_compute_workgroups_per_dimension) {
        return Ok((pipeline, plan.grid, plan.uniform));
    }
    let _ = pipeline;
    Err(checks::too_many(&shared.info.name, label, workgroups))
}
