//! What Vulkan does not check itself, said before anything is recorded, with the names of those concerned.

use std::sync::Arc;

use super::buffer::{VulkanBuffer, padded};
use super::device::Shared;
use super::program::{FOLD_BYTES, Pipeline, VulkanProgram};
use crate::backend::Bound;
use crate::error::{Bytes, Error, Result};
use crate::kernel::{Access, AddressSpace, Binding};

/// A buffer bound to a binding.
struct Bind<'a> {
    binding: &'a Binding,
    buffer: &'a VulkanBuffer,
    start: u64,
    end: u64,
}

/// Checks what is bound to a program's bindings: devices, sizes, alignments, and buffers bound twice.
pub(super) fn bindings(shared: &Shared, program: &VulkanProgram, label: &str, bound: &[Bound]) -> Result<()> {
    let expected = &program.reflection.bindings;
    if bound.len() != expected.len() {
        return Err(Error::InvalidInput {
            what: label.to_owned(),
            reason: format!("{} bindings were given, and the kernel has {}", bound.len(), expected.len()),
        });
    }
    let mut binds: Vec<Bind<'_>> = Vec::with_capacity(bound.len());
    for (binding, bound) in expected.iter().zip(bound) {
        match bound {
            Bound::Uniform(contents) => check_contents(binding, contents, label)?,
            Bound::Buffer { buffer, offset, bytes } => {
                let buffer = shared.own_buffer(&**buffer, label)?;
                let bind = check_buffer(shared, binding, buffer, *offset, *bytes, label)?;
                if let Some(reason) = binds.iter().find_map(|other| conflict(other, &bind)) {
                    return Err(fault(binding, label, reason));
                }
                binds.push(bind);
            }
        }
    }
    Ok(())
}

fn fault(binding: &Binding, label: &str, reason: String) -> Error {
    Error::Binding { kernel: label.to_owned(), binding: binding.name.clone(), reason }
}

fn check_contents(binding: &Binding, contents: &[u8], label: &str) -> Result<()> {
    if binding.space != AddressSpace::Uniform {
        return Err(fault(binding, label, "it is a storage binding: bind a tensor to it".to_owned()));
    }
    let expected = binding.layout.min_bytes();
    if contents.len() as u64 != expected {
        let reason = format!("{} bytes were given, and {} takes {expected}", contents.len(), binding.layout);
        return Err(fault(binding, label, reason));
    }
    Ok(())
}

fn check_buffer<'a>(
    shared: &Shared,
    binding: &'a Binding,
    buffer: &'a VulkanBuffer,
    offset: u64,
    bytes: u64,
    label: &str,
) -> Result<Bind<'a>> {
    let limits = &shared.info.capabilities.limits;
    let (most, alignment) = match binding.space {
        AddressSpace::Storage => (limits.storage_binding_bytes, u64::from(limits.storage_alignment)),
        AddressSpace::Uniform => (limits.uniform_binding_bytes, shared.uniform_alignment),
    };
    let refuse = |reason: String| Err(fault(binding, label, reason));
    let least = binding.layout.min_bytes();
    if bytes < least {
        return refuse(format!(
            "{bytes} bytes of {} are bound, and {} takes {least} at least",
            buffer.label, binding.layout
        ));
    }
    if bytes > most {
        let (bytes, most) = (Bytes(bytes), Bytes(most));
        return refuse(format!(
            "{bytes} of {} are bound, and {} binds {most} at most (use smaller tiles)",
            buffer.label, shared.info.name
        ));
    }
    if !offset.is_multiple_of(alignment) {
        return refuse(format!("the offset {offset} is not a multiple of {alignment}"));
    }
    match offset.checked_add(padded(bytes)) {
        Some(end) if end <= buffer.padded() => Ok(Bind { binding, buffer, start: offset, end }),
        _ => refuse(format!("{bytes} bytes from byte {offset} on do not lie within {}", buffer.label)),
    }
}

/// Why two bindings cannot share a buffer, if they do and cannot.
///
/// As on every device of Cantus, which is WebGPU's rule: within a dispatch a buffer is either read or written. And what WGSL writes
/// through one variable must not be visible through another.
fn conflict(one: &Bind<'_>, other: &Bind<'_>) -> Option<String> {
    if one.buffer.raw.id != other.buffer.raw.id {
        return None;
    }
    let writes =
        |bind: &Bind<'_>| bind.binding.access == Access::ReadWrite && bind.binding.space == AddressSpace::Storage;
    let (name, label) = (&one.binding.name, &one.buffer.label);
    match (writes(one), writes(other)) {
        (false, false) => None,
        (true, true) if one.end <= other.start || other.end <= one.start => None,
        (true, true) => Some(format!(
            "it overlaps with what is bound to \"{name}\" ({label}), and the kernel writes both: bind two tensors"
        )),
        _ => Some(format!(
            "{label} is bound to \"{name}\" as well, and the kernel reads one and writes the other: bind a copy to one of them"
        )),
    }
}

/// Checks that the ids of so many workgroups fit into 32 bits.
pub(super) fn ids(program: &VulkanProgram, label: &str, workgroups: [u32; 3]) -> Result<()> {
    let sizes = program.reflection.workgroup_size;
    for (axis, (count, size)) in ["x", "y", "z"].iter().zip(workgroups.iter().zip(sizes)) {
        let invocations = u64::from(*count) * u64::from(size);
        if invocations > 1 << 32 {
            return Err(Error::InvalidSize {
                what: format!("the workgroups of {label}"),
                reason: format!(
                    "{count} workgroups of {size} in {axis} are {invocations} invocations, and a global_invocation_id holds 4294967296 at most: dispatch fewer at a time"
                ),
            });
        }
    }
    Ok(())
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
    if let Some(plan) = crate::kernel::fold::plan(workgroups, limit) {
        return Ok((pipeline, plan.grid, plan.uniform));
    }
    let total: u128 = workgroups.iter().map(|&count| u128::from(count)).product();
    Err(Error::InvalidSize {
        what: format!("the workgroups of {label}"),
        reason: format!(
            "{total} workgroups in all, and {} runs {} at most in one dispatch: dispatch fewer at a time",
            shared.info.name,
            u32::MAX
        ),
    })
}
