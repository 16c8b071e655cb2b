//! Batches and transfers: checked whole, then put into the queue one after the other.

use std::ffi::c_void;
use std::sync::{Arc, PoisonError};

use opencl3::memory::{Buffer as ClBuffer, CL_MEM_READ_WRITE, ClMem};

use super::event::{Landing, Marker};
use super::memory::{OpenClBuffer, Scratch};
use super::program::{Form, OpenClProgram};
use super::shared::{Shared, State};
use super::transfer::size;
use crate::backend::checks::{self, Rules};
use crate::backend::{Bound, Buffer, Command, Dispatch};
use crate::error::Result;
use crate::kernel::AddressSpace;
use crate::translate::Argument;

/// A dispatch with its code.
struct Resolved<'a> {
    dispatch: &'a Dispatch,
    program: &'a OpenClProgram,
    form: &'a Form,
}

enum Step<'a> {
    Dispatch(Resolved<'a>),
    Copy { source: &'a OpenClBuffer, from: u64, target: &'a OpenClBuffer, to: u64, bytes: u64 },
}

impl Shared {
    /// Puts a batch into the queue. Nothing is queued when anything in it is wrong.
    pub(super) fn submit(self: &Arc<Self>, batch: &[Command]) -> Result<()> {
        self.health.check()?;
        let mut steps = Vec::with_capacity(batch.len());
        let mut previous: Option<&Dispatch> = None;
        for command in batch {
            match command {
                Command::Dispatch(dispatch) => {
                    if dispatch.workgroups.contains(&0) {
                        continue;
                    }
                    steps.push(Step::Dispatch(self.resolve(dispatch, previous)?));
                    previous = Some(dispatch);
                }
                Command::Copy { source, source_offset, target, target_offset, bytes } => {
                    let (source, target) =
                        (self.own_buffer(&**source, "a copy")?, self.own_buffer(&**target, "a copy")?);
                    checks::copy(&source.facts(), *source_offset, &target.facts(), *target_offset, *bytes)?;
                    steps.push(Step::Copy { source, from: *source_offset, target, to: *target_offset, bytes: *bytes });
                }
            }
        }
        let mut state = self.lock();
        for step in &steps {
            match step {
                Step::Dispatch(resolved) => self.launch(&mut state, resolved)?,
                Step::Copy { source, from, target, to, bytes } => {
                    let (source, target) = (&source.block()?.buffer, &target.block()?.buffer);
                    self.copy(source, size(*from), target, size(*to), size(*bytes))
                        .map_err(|fault| self.error(fault, "copying"))?;
                }
            }
        }
        self.queue.flush().map_err(|error| self.error(error.0, "submitting a batch"))
    }

    fn resolve<'a>(&self, dispatch: &'a Dispatch, previous: Option<&Dispatch>) -> Result<Resolved<'a>> {
        let label = &*dispatch.label;
        dispatch.check_cancelled()?;
        let program = self.own_program(&*dispatch.program, label)?;
        let repeats = previous.is_some_and(|previous| {
            Arc::ptr_eq(&previous.program, &dispatch.program) && checks::same(&previous.bindings, &dispatch.bindings)
        });
        if !repeats {
            self.check_bindings(program, label, &dispatch.bindings)?;
            checks::ids(program.reflection.workgroup_size, label, dispatch.workgroups)?;
        }
        let uniform_buffers =
            program.reflection.bindings.iter().zip(&dispatch.bindings).any(|(binding, bound)| {
                binding.space == AddressSpace::Uniform && matches!(bound, Bound::Buffer { .. })
            });
        let by_value = !uniform_buffers && program.by_value_fits();
        Ok(Resolved { dispatch, program, form: program.form(by_value)? })
    }

    pub(super) fn check_bindings(&self, program: &OpenClProgram, label: &str, bindings: &[Bound]) -> Result<()> {
        let limits = &self.info.capabilities.limits;
        let rules = Rules {
            device: &self.info.name,
            storage: (limits.storage_binding_bytes, u64::from(limits.storage_alignment)),
            uniform: (limits.uniform_binding_bytes, u64::from(limits.storage_alignment)),
        };
        checks::bindings(&rules, &program.reflection.bindings, label, bindings, |buffer| {
            self.own_buffer(buffer, label).map(OpenClBuffer::facts)
        })
    }

    fn launch(self: &Arc<Self>, state: &mut State, resolved: &Resolved<'_>) -> Result<()> {
        let dispatch = resolved.dispatch;
        let fault = |code: i32| self.error(code, &format!("running {}", dispatch.label));
        let kernel = resolved.form.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        // Kept until the launch is queued; the queue itself holds on to the memory after that.
        let mut scratch: Vec<Scratch> = Vec::new();
        let mut parts: Vec<ClBuffer<u8>> = Vec::new();
        for (place, argument) in (0_u32..).zip(&resolved.form.arguments) {
            let set = match argument {
                Argument::Pointer { index } => {
                    let memory = match dispatch.bindings.get(*index) {
                        Some(Bound::Buffer { buffer, offset, bytes }) => {
                            let block = self.own_buffer(&**buffer, &dispatch.label)?.block()?;
                            if *offset == 0 {
                                block.buffer.get()
                            } else {
                                // SAFETY: the range was checked against the buffer, its start against the alignment.
                                let part = unsafe {
                                    block.buffer.create_sub_buffer(CL_MEM_READ_WRITE, size(*offset), size(*bytes))
                                };
                                let part = part.map_err(|error| fault(error.0))?;
                                let memory = part.get();
                                parts.push(part);
                                memory
                            }
                        }
                        Some(Bound::Uniform(contents)) => {
                            let made = self.scratch(state, contents, &dispatch.label)?;
                            let memory = made.block.as_ref().map_or(std::ptr::null_mut(), |block| block.buffer.get());
                            scratch.push(made);
                            memory
                        }
                        None => std::ptr::null_mut(),
                    };
                    // SAFETY: the argument is a memory object, as the translation has it.
                    unsafe { kernel.set_arg(place, &memory) }
                }
                Argument::Value { index, bytes } => {
                    let given = match dispatch.bindings.get(*index) {
                        Some(Bound::Uniform(contents)) => contents.as_slice(),
                        _ => &[],
                    };
                    let mut value = given.to_vec();
                    value.resize(*bytes as usize, 0);
                    set_bytes(&kernel, place, &value)
                }
                Argument::Sizes { indices } => {
                    let sizes: Vec<u32> = indices
                        .iter()
                        .map(|&index| match dispatch.bindings.get(index) {
                            Some(Bound::Buffer { bytes, .. }) => u32::try_from(*bytes).unwrap_or(u32::MAX),
                            _ => 0,
                        })
                        .collect();
                    set_bytes(&kernel, place, bytemuck::cast_slice(&sizes))
                }
            };
            set.map_err(|error| fault(error.0))?;
        }
        let local = resolved.program.reflection.workgroup_size.map(|side| side as usize);
        let counts = dispatch.workgroups.map(|count| count as usize);
        let global = [local[0] * counts[0], local[1] * counts[1], local[2] * counts[2]];
        // SAFETY: the arguments were set to what the kernel takes, with ranges that were checked; the sizes live during the call.
        let launched = unsafe {
            self.queue.enqueue_nd_range_kernel(kernel.get(), 3, std::ptr::null(), global.as_ptr(), local.as_ptr(), &[])
        };
        let event = launched.map_err(|error| fault(error.0))?;
        if self.profile {
            state.timing.push((dispatch.label.clone(), event));
        }
        Ok(())
    }

    pub(super) fn write(&self, buffer: &dyn Buffer, offset: u64, data: &[u8]) -> Result<()> {
        self.health.check()?;
        let buffer = self.own_buffer(buffer, "a write")?;
        checks::range(&buffer.label, buffer.padded(), offset, data.len() as u64, "writing")?;
        let block = buffer.block()?;
        let mut state = self.lock();
        self.upload(&mut state, &block.buffer, offset, data).map_err(|fault| self.error(fault, "writing a tensor"))
    }

    pub(super) async fn read(&self, buffer: &dyn Buffer, offset: u64, into: &mut [u8]) -> Result<()> {
        self.health.check()?;
        let fault = |code: i32| self.error(code, "reading a tensor");
        let landing = Arc::new(Landing::new(into.len()));
        let marker = {
            let buffer = self.own_buffer(buffer, "a read")?;
            checks::range(&buffer.label, buffer.padded(), offset, into.len() as u64, "reading")?;
            let block = buffer.block()?;
            let _order = self.lock();
            // SAFETY: the memory is the command's alone until the event has passed, since nobody else makes a slice of it.
            let event = unsafe {
                let target = std::slice::from_raw_parts_mut(landing.start, landing.bytes);
                self.queue.enqueue_read_buffer(&block.buffer, 0, size(offset), target, &[])
            };
            let marker = Marker { event: event.map_err(|error| fault(error.0))?, _into: Some(landing.clone()) };
            self.queue.flush().map_err(|error| fault(error.0))?;
            marker
        };
        let ended = self.waiter.wait(marker, self.health.deadline()).await;
        if let Err(error) = self.ended(ended, "reading a tensor") {
            // The queue may still write to it.
            std::mem::forget(landing);
            return Err(error);
        }
        // SAFETY: the command is done, and the memory as large as `into`.
        unsafe { std::ptr::copy_nonoverlapping(landing.start, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Waits until the queue is where it is now.
    pub(super) async fn finish(&self) -> Result<()> {
        self.health.check()?;
        let event = {
            let _order = self.lock();
            // SAFETY: no list of events is given.
            let marked = unsafe { self.queue.enqueue_marker_with_wait_list(&[]) };
            let event = marked.map_err(|error| self.error(error.0, "finishing"))?;
            self.queue.flush().map_err(|error| self.error(error.0, "finishing"))?;
            event
        };
        let ended = self.waiter.wait(Marker { event, _into: None }, self.health.deadline()).await;
        self.ended(ended, "finishing")
    }
}

fn set_bytes(kernel: &opencl3::kernel::Kernel, place: u32, bytes: &[u8]) -> opencl3::Result<()> {
    let start: *const c_void = bytes.as_ptr().cast();
    // SAFETY: the argument is a structure of this size by value, as the translation has it; the bytes are copied during the call.
    Ok(unsafe { opencl3::kernel::set_kernel_arg(kernel.get(), place, bytes.len(), start) }?)
}
