//! Checks for everything that wgpu would refuse, made before anything is recorded: this device's side of
//! `gpu/src/checks.rs`.

use std::sync::Arc;

use super::memory::{Memory, WgpuBuffer};
use super::program::{FOLD_BYTES, Pipeline, WgpuProgram};
use super::shared::Shared;
use crate::backend::Bound;
use crate::checks::{self, Facts, Owner, Rules};
use crate::error::{Error, Result};
use crate::kernel::{AddressSpace, Reflection};

impl Owner for Shared {
    type Program = WgpuProgram;
    type Buffer = WgpuBuffer;

    fn rules(&self) -> Rules<'_> {
        let limits = &self.limits;
        Rules {
            device: &self.info.name,
            storage: (limits.max_storage_buffer_binding_size, u64::from(limits.min_storage_buffer_offset_alignment)),
            uniform: (limits.max_uniform_buffer_binding_size, u64::from(limits.min_uniform_buffer_offset_alignment)),
        }
    }

    fn compiled(&self, program: &WgpuProgram) -> bool {
        std::ptr::eq(Arc::as_ptr(&program.shared), self)
    }

    fn holds(&self, buffer: &WgpuBuffer) -> bool {
        std::ptr::eq(Arc::as_ptr(&buffer.shared), self)
    }

    fn reflection(program: &WgpuProgram) -> &Reflection {
        &program.reflection
    }

    fn facts(buffer: &WgpuBuffer) -> Facts<'_> {
        buffer.facts()
    }

    /// Views of textures and samplers follow the buffers.
    fn check_bound(&self, program: &WgpuProgram, label: &str, bound: &[Bound]) -> Result<()> {
        let reflection = &program.reflection;
        let (buffers, rest) = bound.split_at(bound.len().min(reflection.bindings.len()));
        checks::bindings(&self.rules(), &reflection.bindings, label, buffers, |buffer| {
            let buffer = self.own_buffer(buffer, label)?;
            buffer.plain(label)?;
            Ok(buffer.facts())
        })?;
        for (binding, bound) in reflection.bindings.iter().zip(buffers) {
            if let (AddressSpace::Uniform, Bound::Buffer { buffer, .. }) = (binding.space, bound)
                && !self
                    .own_buffer(&**buffer, label)?
                    .plain(label)?
                    .buffer
                    .usage()
                    .contains(wgpu::BufferUsages::UNIFORM)
            {
                let reason = "the app's buffer has no usage UNIFORM (name it when you create the buffer)".to_owned();
                return Err(Error::Binding {
                    kernel: label.to_owned(),
                    binding: binding.name.clone(),
                    fault: reason.into(),
                });
            }
        }
        super::image::check_bound(self, reflection, label, rest)
    }
}

/// Checks a copy that has a texture at an end.
pub(super) fn check_copy(source: &WgpuBuffer, target: &WgpuBuffer, bytes: u64) -> Result<()> {
    let is_image = |buffer: &WgpuBuffer| matches!(buffer.memory, Memory::Image(_));
    let whole = match (is_image(source), is_image(target)) {
        (false, false) => return Ok(()),
        (true, false) => bytes == source.bytes,
        (false, true) => bytes == target.bytes,
        (true, true) => false,
    };
    if whole {
        return Ok(());
    }
    Err(Error::invalid(
        format!("the copy from {} to {}", source.label, target.label),
        "a texture of the app's is copied whole, from or to a buffer",
    ))
}

/// The pipeline, grid and uniform of a dispatch that must be folded.
pub(super) fn folded<'a>(
    shared: &Shared,
    program: &'a WgpuProgram,
    label: &str,
    workgroups: [u32; 3],
) -> Result<(&'a Pipeline, [u32; 3], [u8; FOLD_BYTES as usize])> {
    shared.check_ids(program, label, workgroups)?;
    let pipeline = program.folded()?;
    #[cfg(feature = "wgsl")]
    if let Some(plan) = crate::kernel::fold::plan(workgroups, shared.limits.max_compute_workgroups_per_dimension) {
        return Ok((pipeline, plan.grid, plan.uniform));
    }
    let _ = pipeline;
    Err(checks::too_many(&shared.info.name, label, workgroups))
}
