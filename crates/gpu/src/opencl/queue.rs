//! Batches and transfers: checked whole, then put into the queue one after another. `device` submits here. The queue runs in order, so no barrier is needed
//! between commands. Arguments are set on a kernel object that is shared, which is why launching holds the device's lock. A command that fails after it was
//! accepted ends the device.

use std::ffi::c_void;
use std::sync::{Arc, PoisonError};

use opencl3::memory::{Buffer as ClBuffer, CL_MEM_READ_WRITE, ClMem};

use super::event::Landing;
use super::memory::{OpenClBuffer, Scratch};
use super::program::{Form, OpenClProgram};
use super::shared::{InUse, Shared, State};
use super::transfer::{UPLOAD_BYTES, WAITING_BYTES, size};
use crate::backend::{Bound, Buffer, Command, Dispatch, Refusal};
use crate::checks::{self, Owner as _, binds_uniform_buffers};
use crate::error::Result;
use crate::translate::Argument;
use cantus_base::listed::Listed;

/// A dispatch with its code.
#[doc(hidden)]
pub struct Resolved<'a> {
    dispatch: &'a Dispatch,
    program: &'a OpenClProgram,
    form: &'a Form,
}

type Step<'a> = checks::Step<'a, Resolved<'a>, OpenClBuffer>;

impl Shared {
    /// Puts a batch into the queue. Nothing is queued when anything in it is wrong.
    pub(super) fn submit(self: &Arc<Self>, batch: Vec<Command>) -> Result<(), Refusal> {
        let steps = match self.health.check().and_then(|()| self.resolve_all(&batch)) {
            Ok(steps) => steps,
            Err(error) => return Err(Refusal::whole(error, batch)),
        };
        let mut state = self.lock();
        state.take_up().map_err(|fault| self.error(fault, "submitting a batch"))?;
        let mut failed = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            if let Err(error) = self.start(&mut state, step) {
                if self.health.is_lost() {
                    return Err(error.into());
                }
                failed.push((place, error));
            }
        }
        self.mark(&mut state).map_err(|fault| self.error(fault, "submitting a batch"))?;
        self.queue.flush().map_err(|error| self.error(error.0, "submitting a batch"))?;
        Refusal::all_but(failed)
    }

    /// Checks a whole batch.
    fn resolve_all<'a>(&self, batch: &'a [Command]) -> Result<Vec<Step<'a>>> {
        self.check_batch(batch, |dispatch, program| {
            self.check_ids(program, &dispatch.label, dispatch.workgroups)?;
            let by_value = program.by_value_fits() && !binds_uniform_buffers(&program.reflection, &dispatch.bindings);
            Ok(Resolved { dispatch, program, form: program.form(by_value)? })
        })
    }

    /// Puts one step into the queue.
    fn start(self: &Arc<Self>, state: &mut State, step: &Step<'_>) -> Result<()> {
        match step {
            Step::Dispatch(resolved) => self.launch(state, resolved),
            Step::Copy { source, source_offset, target, target_offset, bytes } => {
                let (source, target) = (&source.block()?.buffer, &target.block()?.buffer);
                self.copy(source, size(*source_offset), target, size(*target_offset), size(*bytes))
                    .map_err(|fault| self.error(fault, "copying"))
            }
        }
    }

    /// Puts an event behind what is in the queue, and returns the number of all that.
    fn mark(&self, state: &mut State) -> std::result::Result<u64, i32> {
        // SAFETY: no list of events is given.
        let event = unsafe { self.queue.enqueue_marker_with_wait_list(&[]) };
        Ok(state.mark(event.map_err(|error| error.0)?))
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
                        .listed();
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

    pub(super) async fn write(&self, buffer: &dyn Buffer, offset: u64, data: &[u8]) -> Result<()> {
        self.health.check()?;
        let buffer = self.own_buffer(buffer, "a write")?;
        checks::range(&buffer.label, buffer.padded(), offset, data.len() as u64, "writing")?;
        let (deadline, block) = (self.health.deadline(), buffer.block()?);
        let mut place = offset;
        for chunk in data.chunks(UPLOAD_BYTES) {
            while let Some(number) = self.write_chunk(&block.buffer, place, chunk)? {
                self.pass(number, deadline, "writing a tensor").await?;
            }
            place += chunk.len() as u64;
        }
        Ok(())
    }

    /// Queues a part of a write. The number to wait for, when too much is waiting already.
    fn write_chunk(&self, buffer: &ClBuffer<u8>, place: u64, chunk: &[u8]) -> Result<Option<u64>> {
        let mut state = self.lock();
        let queued = state.take_up().and_then(|()| {
            if state.waiting > WAITING_BYTES {
                return Ok(Some(state.oldest()));
            }
            self.upload(&mut state, buffer, place, chunk).map(|()| None)
        });
        queued.map_err(|fault| self.error(fault, "writing a tensor"))
    }

    pub(super) async fn read(&self, buffer: &dyn Buffer, offset: u64, into: &mut [u8]) -> Result<()> {
        self.health.check()?;
        let deadline = self.health.deadline();
        let fault = |code: i32| self.error(code, "reading a tensor");
        let landing = Arc::new(Landing::new(into.len()));
        let number = {
            let buffer = self.own_buffer(buffer, "a read")?;
            checks::range(&buffer.label, buffer.padded(), offset, into.len() as u64, "reading")?;
            let block = buffer.block()?;
            let mut state = self.lock();
            state.keep(InUse::Landing(landing.clone()));
            // SAFETY: the memory is the command's alone until it is done, since nobody else makes a slice of it, and it is kept until then.
            let event = unsafe {
                let target = std::slice::from_raw_parts_mut(landing.start, landing.bytes);
                self.queue.enqueue_read_buffer(&block.buffer, 0, size(offset), target, &[])
            };
            let number = state.mark(event.map_err(|error| fault(error.0))?);
            self.queue.flush().map_err(|error| fault(error.0))?;
            number
        };
        self.pass(number, deadline, "reading a tensor").await?;
        // SAFETY: the command is done, and the memory as large as `into`.
        unsafe { std::ptr::copy_nonoverlapping(landing.start, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Waits until the queue is where it is now.
    pub(super) async fn finish(&self) -> Result<()> {
        self.health.check()?;
        let deadline = self.health.deadline();
        let number = {
            let mut state = self.lock();
            let marked = self.mark(&mut state);
            let number = marked.map_err(|code| self.error(code, "finishing"))?;
            self.queue.flush().map_err(|error| self.error(error.0, "finishing"))?;
            number
        };
        self.pass(number, deadline, "finishing").await
    }
}

fn set_bytes(kernel: &opencl3::kernel::Kernel, place: u32, bytes: &[u8]) -> opencl3::Result<()> {
    let start: *const c_void = bytes.as_ptr().cast();
    // SAFETY: the argument is a structure of this size by value, as the translation has it; the bytes are copied during the call.
    Ok(unsafe { opencl3::kernel::set_kernel_arg(kernel.get(), place, bytes.len(), start) }?)
}
