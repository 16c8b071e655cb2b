//! Checks of dispatches and transfers on every device but the CPU, made before anything is recorded, with the names of those
//! concerned.

use std::any::Any;
use std::sync::Arc;

#[cfg(any(feature = "wgpu", all(feature = "vulkan", not(target_arch = "wasm32"))))]
use crate::backend::DeviceKind;
use crate::backend::{Bound, Buffer, Command, Dispatch, Program, padded};
use crate::error::{Bytes, Error, Result};
use crate::kernel::{Access, AddressSpace, Binding, Reflection};

/// Returns the longest table that a software Vulkan driver compiles within seconds: llvmpipe takes 2 s for a table of 256 numbers with a
/// computed index, 9 s for one of 512, and more than two minutes for 1,024; a `switch` likewise.
#[cfg(any(feature = "wgpu", all(feature = "vulkan", not(target_arch = "wasm32"))))]
pub(crate) fn longest(kind: DeviceKind) -> Option<u64> {
    matches!(kind, DeviceKind::Cpu | DeviceKind::Software).then_some(320)
}

/// The facts about a buffer that the checks need.
pub(super) struct Facts<'a> {
    /// Another number for every buffer of the device.
    pub(super) id: u64,
    /// Size that kernels may see.
    pub(super) bytes: u64,
    /// For messages.
    pub(super) label: &'a str,
}

/// The bindings that a device takes.
pub(super) struct Rules<'a> {
    /// The device's name.
    pub(super) device: &'a str,
    /// The most bytes that a storage binding has, and the alignment of its offset.
    pub(super) storage: (u64, u64),
    /// The same for a uniform binding.
    pub(super) uniform: (u64, u64),
}

/// A command in a backend's own types: `D` is a dispatch with what runs it.
pub(super) enum Step<'a, D, B> {
    Dispatch(D),
    Copy { source: &'a B, source_offset: u64, target: &'a B, target_offset: u64, bytes: u64 },
}

/// A device's side of the checks: what it knows of its own programs and buffers.
pub(super) trait Owner {
    type Program: Program;
    type Buffer: Buffer;

    fn rules(&self) -> Rules<'_>;
    /// Returns whether this very device compiled it.
    fn compiled(&self, program: &Self::Program) -> bool;
    /// Returns whether it lies on this very device.
    fn holds(&self, buffer: &Self::Buffer) -> bool;
    fn reflection(program: &Self::Program) -> &Reflection;
    fn facts(buffer: &Self::Buffer) -> Facts<'_>;

    /// A program as the device's own type.
    fn own_program<'a>(&self, program: &'a dyn Program, label: &str) -> Result<&'a Self::Program> {
        let found = (program as &dyn Any).downcast_ref::<Self::Program>().filter(|program| self.compiled(program));
        found.ok_or_else(|| {
            Error::state(label, format!("its program was compiled for another device than {}", self.rules().device))
        })
    }

    /// A buffer as the device's own type.
    fn own_buffer<'a>(&self, buffer: &'a dyn Buffer, what: &str) -> Result<&'a Self::Buffer> {
        let found = (buffer as &dyn Any).downcast_ref::<Self::Buffer>().filter(|buffer| self.holds(buffer));
        found.ok_or_else(|| {
            Error::state(what, format!("a buffer of another device than {} was given", self.rules().device))
        })
    }

    /// Checks what is bound to a program's bindings: devices, sizes, alignments, and buffers bound twice.
    fn check_bound(&self, program: &Self::Program, label: &str, bound: &[Bound]) -> Result<()> {
        bindings(&self.rules(), &Self::reflection(program).bindings, label, bound, |buffer| {
            self.own_buffer(buffer, label).map(Self::facts)
        })
    }

    /// Checks that the ids of this many workgroups fit into 32 bits.
    fn check_ids(&self, program: &Self::Program, label: &str, workgroups: [u32; 3]) -> Result<()> {
        ids(Self::reflection(program).workgroup_size, label, workgroups)
    }

    /// Checks a batch whole; `resolve` finds what runs a dispatch. Dispatches of no workgroup are left out, and bindings that repeat those
    /// of the dispatch before are not checked again.
    fn check_batch<'a, D>(
        &self,
        batch: &'a [Command],
        mut resolve: impl FnMut(&'a Dispatch, &'a Self::Program) -> Result<D>,
    ) -> Result<Vec<Step<'a, D, Self::Buffer>>> {
        let mut steps = Vec::with_capacity(batch.len());
        let mut previous: Option<&Dispatch> = None;
        for command in batch {
            command.check_cancelled()?;
            match command {
                Command::Dispatch(dispatch) if dispatch.workgroups.contains(&0) => {}
                Command::Dispatch(dispatch) => {
                    let program = self.own_program(&*dispatch.program, &dispatch.label)?;
                    let repeats = previous.is_some_and(|previous| {
                        Arc::ptr_eq(&previous.program, &dispatch.program)
                            && same(&previous.bindings, &dispatch.bindings)
                    });
                    if !repeats {
                        self.check_bound(program, &dispatch.label, &dispatch.bindings)?;
                    }
                    steps.push(Step::Dispatch(resolve(dispatch, program)?));
                    previous = Some(dispatch);
                }
                Command::Copy { source, source_offset, target, target_offset, bytes } => {
                    let (source, target) =
                        (self.own_buffer(&**source, "a copy")?, self.own_buffer(&**target, "a copy")?);
                    let (source_offset, target_offset, bytes) = (*source_offset, *target_offset, *bytes);
                    copy(&Self::facts(source), source_offset, &Self::facts(target), target_offset, bytes)?;
                    steps.push(Step::Copy { source, source_offset, target, target_offset, bytes });
                }
            }
        }
        Ok(steps)
    }
}

/// Fails unless `offset .. offset + bytes` lies within the first `size` bytes of a buffer.
pub(super) fn range(label: &str, size: u64, offset: u64, bytes: u64, action: &str) -> Result<()> {
    if offset.checked_add(bytes).is_some_and(|end| end <= size) {
        return Ok(());
    }
    Err(Error::index(
        format!("{action} {label}"),
        format!("{bytes} bytes from byte {offset} on do not lie within its {size} bytes"),
    ))
}

/// Checks a copy between two buffers, as WebGPU has it.
fn copy(source: &Facts<'_>, from: u64, target: &Facts<'_>, to: u64, bytes: u64) -> Result<()> {
    let fault =
        |reason: String| Err(Error::index(format!("the copy from {} to {}", source.label, target.label), reason));
    if source.id == target.id {
        return fault("source and target are the same buffer".to_owned());
    }
    if !(from | to | bytes).is_multiple_of(4) {
        return fault(format!("offsets {from} and {to} and size {bytes} must be multiples of 4 bytes"));
    }
    match (from.checked_add(bytes), to.checked_add(bytes)) {
        (Some(source_end), Some(target_end)) if source_end <= source.bytes && target_end <= target.bytes => Ok(()),
        _ => fault(format!("{bytes} bytes from byte {from} to byte {to} exceed a buffer")),
    }
}

struct Bind<'a> {
    binding: &'a Binding,
    facts: Facts<'a>,
    start: u64,
    end: u64,
}

/// Checks what is bound: count, sizes, alignments, and buffers bound twice. `facts` refuses buffers of another device.
pub(super) fn bindings<'a>(
    rules: &Rules<'_>,
    expected: &'a [Binding],
    label: &str,
    bound: &'a [Bound],
    facts: impl Fn(&'a dyn Buffer) -> Result<Facts<'a>>,
) -> Result<()> {
    if bound.len() != expected.len() {
        return Err(Error::invalid(
            label,
            format!("{} bindings were given, and the kernel has {}", bound.len(), expected.len()),
        ));
    }
    let mut binds: Vec<Bind<'_>> = Vec::new();
    for (binding, bound) in expected.iter().zip(bound) {
        match bound {
            Bound::Uniform(contents) => check_contents(binding, contents, label)?,
            Bound::Buffer { buffer, offset, bytes } => {
                let bind = check_buffer(rules, binding, facts(&**buffer)?, *offset, *bytes, label)?;
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
    Error::Binding { kernel: label.to_owned(), binding: binding.name.clone(), fault: reason.into() }
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
    rules: &Rules<'_>,
    binding: &'a Binding,
    facts: Facts<'a>,
    offset: u64,
    bytes: u64,
    label: &str,
) -> Result<Bind<'a>> {
    let (most, alignment) = match binding.space {
        AddressSpace::Storage => rules.storage,
        AddressSpace::Uniform => rules.uniform,
    };
    let refuse = |reason: String| Err(fault(binding, label, reason));
    let least = binding.layout.min_bytes();
    if bytes < least {
        return refuse(format!(
            "{bytes} bytes of {} are bound, and {} takes {least} at least",
            facts.label, binding.layout
        ));
    }
    if bytes > most {
        let (bytes, most) = (Bytes(bytes), Bytes(most));
        return refuse(format!(
            "{bytes} of {} are bound, and {} binds {most} at most (use smaller tiles)",
            facts.label, rules.device
        ));
    }
    if !offset.is_multiple_of(alignment.max(1)) {
        return refuse(format!("the offset {offset} is not a multiple of {alignment}"));
    }
    match offset.checked_add(padded(bytes)) {
        Some(end) if end <= facts.bytes => Ok(Bind { binding, facts, start: offset, end }),
        _ => refuse(format!("{bytes} bytes from byte {offset} on do not lie within {}", facts.label)),
    }
}

/// Why two bindings cannot share a buffer, if they do and cannot: within a dispatch it is either read or written, as on WebGPU, and what
/// WGSL writes through one variable must not be visible through another.
fn conflict(one: &Bind<'_>, other: &Bind<'_>) -> Option<String> {
    if one.facts.id != other.facts.id {
        return None;
    }
    let writes =
        |bind: &Bind<'_>| bind.binding.access == Access::ReadWrite && bind.binding.space == AddressSpace::Storage;
    let (name, label) = (&one.binding.name, one.facts.label);
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

/// Checks that the ids of this many workgroups fit into 32 bits.
fn ids(sizes: [u32; 3], label: &str, workgroups: [u32; 3]) -> Result<()> {
    for (axis, (count, size)) in ["x", "y", "z"].iter().zip(workgroups.iter().zip(sizes)) {
        let invocations = u64::from(*count) * u64::from(size);
        if invocations > 1 << 32 {
            return Err(Error::limit(
                format!("the workgroups of {label}"),
                format!(
                    "{count} workgroups of {size} in {axis} are {invocations} invocations, and a global_invocation_id holds 4294967296 at most: dispatch fewer at a time"
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the error for a dispatch of more workgroups than the device runs, folded or not.
#[cfg(feature = "_gpu")]
pub(super) fn too_many(device: &str, label: &str, workgroups: [u32; 3]) -> Error {
    let total: u128 = workgroups.iter().map(|&count| u128::from(count)).product();
    Error::limit(
        format!("the workgroups of {label}"),
        format!(
            "{total} workgroups in all, and {device} runs {} at most in one dispatch: dispatch fewer at a time",
            u32::MAX
        ),
    )
}

/// The same buffers at the same places, and uniforms of the same sizes.
fn same(one: &[Bound], other: &[Bound]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|pair| match pair {
            (Bound::Buffer { buffer: a, offset: b, bytes: c }, Bound::Buffer { buffer: x, offset: y, bytes: z }) => {
                Arc::ptr_eq(a, x) && b == y && c == z
            }
            (Bound::Uniform(a), Bound::Uniform(b)) => a.len() == b.len(),
            _ => false,
        })
}

/// Returns whether a uniform binding is bound to a buffer: then it cannot travel among a launch's arguments.
#[cfg(feature = "_native")]
pub(super) fn binds_uniform_buffers(reflection: &Reflection, bound: &[Bound]) -> bool {
    let mut pairs = reflection.bindings.iter().zip(bound);
    pairs.any(|(binding, bound)| binding.space == AddressSpace::Uniform && matches!(bound, Bound::Buffer { .. }))
}
