//! A kernel's bytecode, and its run over bound memory. The queue calls `CpuProgram::run`. Code compiled ahead replaces the bytecode if it came with the
//! kernel and fits; both get the same memory. Bindings are checked here against their buffers, since a buffer may be smaller than the kernel was promised.

use std::any::Any;
use std::sync::Arc;

use super::fault::Fault;
use super::memory::CpuBuffer;
use crate::ahead;
use crate::backend::{Bound, Buffer, Dispatch, Program};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::spmd::{self, Beyond, Launch, Limits, Memory, OutOfRange};
use cantus_base::listed::Listed;

/// A kernel or a native operation.
pub(super) enum CpuProgram {
    Kernel(KernelProgram),
    #[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
    Native(super::native::Native),
}

pub(super) struct KernelProgram {
    program: Arc<spmd::Bytecode>,
    /// Runs in place of the bytecode.
    compiled: Option<&'static ahead::Compiled>,
    /// The values of the overrides that it takes.
    arguments: Vec<u32>,
    /// For each binding of the program, its place in the reflection's list.
    order: Vec<usize>,
    /// The names of the bindings, in the reflection's order.
    names: Vec<Arc<str>>,
}

impl Program for CpuProgram {}

impl CpuProgram {
    /// Returns whether it may run on a thread other than the queue's.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn runs_anywhere(&self) -> bool {
        match self {
            Self::Kernel(_) => true,
            Self::Native(native) => native.runs_anywhere(),
        }
    }

    /// Runs it to its end, on this thread and those that share its work.
    pub(super) fn run(&self, dispatch: &Dispatch, limits: &Limits<'_>) -> std::result::Result<(), Fault> {
        match self {
            Self::Kernel(kernel) => kernel.run(dispatch, limits),
            #[cfg(any(feature = "wgsl", not(target_arch = "wasm32")))]
            Self::Native(native) => {
                let mut floats = Vec::with_capacity(dispatch.bindings.len());
                for (place, bound) in dispatch.bindings.iter().enumerate() {
                    let Bound::Buffer { buffer, offset, bytes } = bound else {
                        return Err(Fault::from("it takes buffers only"));
                    };
                    let (buffer, start, bytes) = memory(buffer, *offset, *bytes)?;
                    // Results come last.
                    if place + native.results() >= dispatch.bindings.len() {
                        buffer.changes();
                    }
                    floats.push(super::floats::Floats(start.cast(), bytes / size_of::<f32>()));
                }
                // Kept results are identified by their place in the whole buffer, so only a binding that begins there has a keeper.
                let keeper = |place: usize| match dispatch.bindings.get(place) {
                    Some(Bound::Buffer { buffer, offset: 0, .. }) => own(buffer).map(CpuBuffer::keeper),
                    _ => None,
                };
                native.run(&floats, &super::native::Call { keeper: &keeper, limits })
            }
        }
    }
}

/// A buffer of such a device.
fn own(buffer: &Arc<dyn Buffer>) -> Option<&CpuBuffer> {
    let any: &dyn Any = &**buffer;
    any.downcast_ref()
}

/// A checked range of a buffer of this device: its start and its bytes, which are valid while the dispatch holds the buffer.
fn memory(
    buffer: &Arc<dyn Buffer>,
    offset: u64,
    bytes: u64,
) -> std::result::Result<(&CpuBuffer, *mut u8, usize), &'static str> {
    let buffer = own(buffer).ok_or("a buffer of another device is bound")?;
    let end = offset.checked_add(bytes);
    if end.is_none_or(|end| end > buffer.bytes()) || !offset.is_multiple_of(4) {
        return Err("a binding reaches outside of its buffer");
    }
    let outside = "a binding is larger than this machine can address";
    let (offset, bytes) = (usize::try_from(offset).map_err(|_| outside)?, usize::try_from(bytes).map_err(|_| outside)?);
    // SAFETY: the offset lies within the buffer.
    Ok((buffer, unsafe { buffer.start().add(offset) }, bytes))
}

impl KernelProgram {
    pub(super) fn new(kernel: &Kernel, device: &str) -> Result<Self> {
        let program = kernel.program()?.clone();
        let reflection = kernel.reflection()?;
        let order = program.bindings().iter().map(|wanted| {
            let place = reflection
                .bindings
                .iter()
                .position(|known| (known.group, known.binding) == (wanted.group, wanted.binding));
            place.ok_or_else(|| Error::Device {
                device: device.to_owned(),
                action: format!("compiling the kernel {}", kernel.name()),
                message: format!(
                    "the bytecode's binding {}.{} is not in the reflection (prepare the kernel again)",
                    wanted.group, wanted.binding
                ),
            })
        });
        let order = order.try_listed()?;
        let compiled = super::compiled::compiled_ahead(kernel);
        let arguments = compiled.map_or(Ok(Vec::new()), |compiled| kernel.ahead_arguments(compiled.arguments))?;
        let names = reflection.bindings.iter().map(|binding| Arc::from(&*binding.name)).listed();
        Ok(Self { program, compiled, arguments, order, names })
    }

    fn run(&self, dispatch: &Dispatch, limits: &Limits<'_>) -> std::result::Result<(), Fault> {
        // Uniform contents are copied to words, for their alignment.
        let mut uniforms: Vec<Vec<u64>> = Vec::new();
        for &place in &self.order {
            if let Some(Bound::Uniform(bytes)) = dispatch.bindings.get(place) {
                let words = bytes.chunks(8).map(|chunk| {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    u64::from_ne_bytes(word)
                });
                uniforms.push(words.listed());
            }
        }
        let mut next_uniform = uniforms.iter_mut();
        let mut memories = Vec::with_capacity(self.order.len());
        for (&place, wanted) in self.order.iter().zip(self.program.bindings()) {
            let memory = match dispatch.bindings.get(place) {
                Some(Bound::Uniform(bytes)) => {
                    let words = next_uniform.next().ok_or("a uniform binding is missing")?;
                    // SAFETY: `words` outlives the run and has at least `bytes.len()` bytes.
                    unsafe { Memory::from_raw(words.as_mut_ptr().cast(), bytes.len()) }
                }
                Some(Bound::Buffer { buffer, offset, bytes }) => {
                    let (buffer, start, bytes) = memory(buffer, *offset, *bytes)?;
                    if wanted.writable {
                        buffer.changes();
                    }
                    // SAFETY: the range was checked; the dispatch holds the buffer during the run.
                    unsafe { Memory::from_raw(start, bytes) }
                }
                None => return Err(Fault::from("a binding is missing")),
            };
            memories.push(memory);
        }
        let launch = Launch::new(dispatch.workgroups, &memories).limits(*limits);
        match self.compiled {
            Some(compiled) if limits.beyond.is_none() && ahead::launch::suits(compiled, dispatch.workgroups) => {
                // SAFETY: `Kernel::with_ahead` was promised a generated kernel without data races, and `new` saw that it fits.
                unsafe { ahead::launch::execute(compiled, self.program.bindings(), &self.arguments, &launch) }
            }
            _ => spmd::execute(&self.program, &launch),
        }
        .map_err(Fault::from)?;
        match limits.beyond.and_then(Beyond::found) {
            None => Ok(()),
            Some((stores, OutOfRange { binding, place, length })) => {
                let name = binding.and_then(|binding| self.names.get(*self.order.get(binding)?));
                let of = name.map_or_else(|| "an array of the kernel's own".to_owned(), |name| name.to_string());
                Err(Fault::Beyond { of, place, length, stores })
            }
        }
    }
}
