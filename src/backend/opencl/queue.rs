//! Batches and transfers: checked whole, then put into the queue one after the other.

use std::ffi::c_void;
use std::sync::{Arc, PoisonError};

use opencl3::event::{CL_COMPLETE, Event};
use opencl3::memory::{Buffer as ClBuffer, CL_MEM_READ_WRITE, ClMem};

use super::device::{Shared, State};
use super::memory::{OpenClBuffer, Scratch};
use super::program::{Form, OpenClProgram};
use crate::backend::checks::{self, Rules};
use crate::backend::wait::{Awaited, Ended};
use crate::backend::{Bound, Buffer, Command, Dispatch, Program};
use crate::error::{Error, Result};
use crate::kernel::AddressSpace;
use crate::translate::Argument;

/// Uploads are cut into pieces of this size, so that little host memory waits.
const UPLOAD_BYTES: usize = 16 << 20;
/// Host memory that may wait for the queue.
const WAITING_BYTES: usize = 64 << 20;

/// Has a command been done? A negative status is the code of its failure.
pub(super) fn status(event: &Event) -> std::result::Result<bool, i32> {
    let status = event.command_execution_status().map_err(|error| error.0)?;
    if status.0 < 0 { Err(status.0) } else { Ok(status.0 == CL_COMPLETE) }
}

/// A command that is waited for, with the host memory that it fills.
pub(super) struct Marker {
    event: Event,
    /// Shared with the reader: if it goes away, the memory stays until the command is done.
    _into: Option<Arc<Landing>>,
}

impl Awaited for Marker {
    type Fault = i32;

    fn passed(&self) -> std::result::Result<bool, i32> {
        status(&self.event)
    }

    fn block(&self) -> std::result::Result<(), i32> {
        let waited = self.event.wait().map_err(|error| error.0);
        // A wait for a failed command says only that some command failed.
        match status(&self.event) {
            Err(code) => Err(code),
            Ok(_) => waited,
        }
    }
}

/// Host memory that a read fills. Whoever holds the last reference frees it, after the command is done.
struct Landing {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory, written by the queue alone until the event has passed, and read by one reader after that.
unsafe impl Send for Landing {}
// SAFETY: as above.
unsafe impl Sync for Landing {}

impl Landing {
    fn new(bytes: usize) -> Self {
        let memory = vec![0_u8; bytes].into_boxed_slice();
        Self { start: Box::into_raw(memory).cast(), bytes }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        // SAFETY: made from a boxed slice of this length in `new`, and taken back once.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start, self.bytes)) });
    }
}

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
        self.check_alive()?;
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
        if dispatch.cancel.as_ref().is_some_and(|cancel| cancel.is_cancelled()) {
            return Err(Error::Cancelled { what: label.to_owned() });
        }
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

    pub(super) fn own_program<'a>(&self, program: &'a dyn Program, label: &str) -> Result<&'a OpenClProgram> {
        let own = |program: &OpenClProgram| std::ptr::eq(Arc::as_ptr(&program.shared), self);
        checks::program(program, own, &self.info.name, label)
    }

    pub(super) fn own_buffer<'a>(&self, buffer: &'a dyn Buffer, what: &str) -> Result<&'a OpenClBuffer> {
        let own = |buffer: &OpenClBuffer| std::ptr::eq(Arc::as_ptr(&buffer.shared), self);
        checks::buffer(buffer, own, &self.info.name, what)
    }

    /// Queues zeros. `from` and `bytes` are multiples of 4.
    pub(super) fn clear(
        &self,
        _state: &mut State,
        buffer: &ClBuffer<u8>,
        from: u64,
        bytes: u64,
    ) -> std::result::Result<(), i32> {
        let mut alias = Alias::of(buffer)?;
        // SAFETY: the range lies within the buffer; the pattern is copied during the call.
        let filled = unsafe { self.queue.enqueue_fill_buffer(&mut alias.0, &[0_u8; 4], size(from), size(bytes), &[]) };
        filled.map(|_| ()).map_err(|error| error.0)
    }

    fn copy(
        &self,
        source: &ClBuffer<u8>,
        from: usize,
        target: &ClBuffer<u8>,
        to: usize,
        bytes: usize,
    ) -> std::result::Result<(), i32> {
        let mut alias = Alias::of(target)?;
        // SAFETY: both ranges were checked; the command's buffers differ.
        let copied = unsafe { self.queue.enqueue_copy_buffer(source, &mut alias.0, from, to, bytes, &[]) };
        copied.map(|_| ()).map_err(|error| error.0)
    }

    /// Queues host bytes. They are copied first, and kept until the queue has read them.
    pub(super) fn upload(
        &self,
        state: &mut State,
        buffer: &ClBuffer<u8>,
        offset: u64,
        data: &[u8],
    ) -> std::result::Result<(), i32> {
        let mut place = size(offset);
        for chunk in data.chunks(UPLOAD_BYTES) {
            self.collect(state)?;
            let owned = chunk.to_vec();
            let mut alias = Alias::of(buffer)?;
            // SAFETY: the caller checked the range; `owned` stays in the list until the command is done.
            let event = unsafe { self.queue.enqueue_write_buffer(&mut alias.0, 0, place, &owned, &[]) };
            state.uploads.push_back((event.map_err(|error| error.0)?, owned));
            place += chunk.len();
        }
        Ok(())
    }

    /// Lets go of what the queue has read, and waits when much is waiting.
    fn collect(&self, state: &mut State) -> std::result::Result<(), i32> {
        let mut waiting: usize = state.uploads.iter().map(|(_, data)| data.len()).sum();
        while let Some((event, data)) = state.uploads.front() {
            if !status(event)? {
                if waiting <= WAITING_BYTES {
                    break;
                }
                event.wait().map_err(|error| error.0)?;
            }
            waiting -= data.len();
            state.uploads.pop_front();
        }
        Ok(())
    }

    pub(super) fn write(&self, buffer: &dyn Buffer, offset: u64, data: &[u8]) -> Result<()> {
        self.check_alive()?;
        let buffer = self.own_buffer(buffer, "a write")?;
        checks::range(&buffer.label, buffer.padded(), offset, data.len() as u64, "writing")?;
        let block = buffer.block()?;
        let mut state = self.lock();
        self.upload(&mut state, &block.buffer, offset, data).map_err(|fault| self.error(fault, "writing a tensor"))
    }

    pub(super) async fn read(&self, buffer: &dyn Buffer, offset: u64, into: &mut [u8]) -> Result<()> {
        self.check_alive()?;
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
        let ended = self.waiter.wait(marker, self.deadline()).await;
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
        self.check_alive()?;
        let event = {
            let _order = self.lock();
            // SAFETY: no list of events is given.
            let marked = unsafe { self.queue.enqueue_marker_with_wait_list(&[]) };
            let event = marked.map_err(|error| self.error(error.0, "finishing"))?;
            self.queue.flush().map_err(|error| self.error(error.0, "finishing"))?;
            event
        };
        let ended = self.waiter.wait(Marker { event, _into: None }, self.deadline()).await;
        self.ended(ended, "finishing")
    }

    /// What the end of a wait means.
    fn ended(&self, ended: Ended<i32>, what: &str) -> Result<()> {
        match ended {
            Ended::Passed => Ok(()),
            Ended::Failed(code) => {
                let reason = opencl3::error_codes::ClError(code).to_string();
                self.lose(&reason);
                Err(Error::DeviceLost { device: self.info.name.clone(), reason: format!("{reason} ({what})") })
            }
            Ended::Late => {
                let limit = self.timeout.unwrap_or_default().as_millis();
                self.lose("it did not finish within the time limit");
                Err(Error::Timeout {
                    what: what.to_owned(),
                    device: self.info.name.clone(),
                    milliseconds: u64::try_from(limit).unwrap_or(u64::MAX),
                })
            }
        }
    }
}

/// A second handle of a buffer, for calls that want to change it: OpenCL counts references, Rust's borrow says nothing of the device's memory.
struct Alias(ClBuffer<u8>);

impl Alias {
    fn of(buffer: &ClBuffer<u8>) -> std::result::Result<Self, i32> {
        // SAFETY: the memory object lives; the reference is given back by the alias's drop.
        unsafe { opencl3::memory::retain_mem_object(buffer.get())? };
        Ok(Self(ClBuffer::new(buffer.get())))
    }
}

fn set_bytes(kernel: &opencl3::kernel::Kernel, place: u32, bytes: &[u8]) -> opencl3::Result<()> {
    let start: *const c_void = bytes.as_ptr().cast();
    // SAFETY: the argument is a structure of this size by value, as the translation has it; the bytes are copied during the call.
    Ok(unsafe { opencl3::kernel::set_kernel_arg(kernel.get(), place, bytes.len(), start) }?)
}

/// A checked size as the host's type: buffers are smaller than memory.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
