//! Batches and transfers: checked whole, then put into the stream one after the other.

use std::sync::Arc;

use super::arguments::Arguments;
use super::driver::{Event, Fault, Pinned};
use super::library::Address;
use super::memory::{Scratch, StreamBuffer};
use super::program::{Form, StreamProgram};
use super::shared::{Shared, State};
use super::staging::BLOCK_BYTES;
use crate::backend::checks::{self, Rules};
use crate::backend::{Bound, Buffer, Command, Dispatch};
use crate::error::{Error, Result};
use crate::kernel::{AddressSpace, fold};
use crate::translate::Argument;

/// A dispatch with its code and grid.
pub(super) struct Resolved<'a> {
    pub(super) dispatch: &'a Dispatch,
    pub(super) program: &'a StreamProgram,
    pub(super) form: &'a Form,
    pub(super) grid: [u32; 3],
    /// The true counts, for a folded form.
    counts: Option<[u8; fold::UNIFORM_BYTES]>,
}

pub(super) enum Step<'a> {
    Dispatch(Resolved<'a>),
    Copy { source: Address, target: Address, bytes: usize },
}

impl Shared {
    /// Puts a batch into the stream. Nothing is queued when anything in it is wrong.
    pub(super) fn submit(self: &Arc<Self>, batch: &[Command]) -> Result<()> {
        self.health.check()?;
        let steps = self.resolve_all(batch)?;
        let mut state = self.lock();
        self.driver.make_current().map_err(|fault| self.error(fault, "submitting a batch"))?;
        for step in &steps {
            match step {
                Step::Dispatch(resolved) => self.launch(&mut state, resolved)?,
                Step::Copy { source, target, bytes } => {
                    // SAFETY: both ranges were checked; the command's buffers differ.
                    let copied = unsafe { self.driver.copy_within(self.driver.stream(), *target, *source, *bytes) };
                    copied.map_err(|fault| self.error(fault, "copying"))?;
                }
            }
        }
        Ok(())
    }

    /// Checks a whole batch.
    pub(super) fn resolve_all<'a>(&self, batch: &'a [Command]) -> Result<Vec<Step<'a>>> {
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
                    steps.push(Step::Copy {
                        source: source.address() + source_offset,
                        target: target.address() + target_offset,
                        bytes: usize::try_from(*bytes).unwrap_or(0),
                    });
                }
            }
        }
        Ok(steps)
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
        }
        let uniform_buffers =
            program.reflection.bindings.iter().zip(&dispatch.bindings).any(|(binding, bound)| {
                binding.space == AddressSpace::Uniform && matches!(bound, Bound::Buffer { .. })
            });
        let by_value = !uniform_buffers && program.by_value_fits();
        let (folded, grid, counts) = match self.folding(label, dispatch.workgroups, program)? {
            None => (false, dispatch.workgroups, None),
            Some(plan) => (true, plan.grid, Some(plan.uniform)),
        };
        Ok(Resolved { dispatch, program, form: program.form(by_value, folded)?, grid, counts })
    }

    /// How a dispatch is folded, where a dimension holds less.
    pub(super) fn folding(&self, label: &str, counts: [u32; 3], program: &StreamProgram) -> Result<Option<fold::Plan>> {
        checks::ids(program.reflection.workgroup_size, label, counts)?;
        if counts.iter().zip(self.grid).all(|(count, most)| *count <= most) {
            return Ok(None);
        }
        let plan = fold::plan(counts, self.info.capabilities.limits.workgroups_per_dimension);
        plan.map(Some).ok_or_else(|| Error::InvalidSize {
            what: format!("the workgroups of {label}"),
            reason: format!("{counts:?} are too many for one dispatch on {}: dispatch fewer at a time", self.info.name),
        })
    }

    pub(super) fn check_bindings(&self, program: &StreamProgram, label: &str, bindings: &[Bound]) -> Result<()> {
        let limits = &self.info.capabilities.limits;
        let rules = Rules {
            device: &self.info.name,
            storage: (limits.storage_binding_bytes, u64::from(limits.storage_alignment)),
            uniform: (limits.uniform_binding_bytes, 16),
        };
        checks::bindings(&rules, &program.reflection.bindings, label, bindings, |buffer| {
            self.own_buffer(buffer, label).map(StreamBuffer::facts)
        })
    }

    fn launch(self: &Arc<Self>, state: &mut State, resolved: &Resolved<'_>) -> Result<()> {
        let label = &resolved.dispatch.label;
        let action = || format!("running {label}");
        let mut arguments = std::mem::take(&mut state.arguments);
        let filled = self.fill(state, &mut arguments, resolved);
        let launched = filled.and_then(|scratch| {
            let started = self.mark().map_err(|fault| self.error(fault, &action()))?;
            // SAFETY: the arguments are those of the translation; every buffer among them was checked, lives with the dispatch until it is
            // queued, and returns to a pool or the driver in the stream's order.
            let launched = unsafe {
                let block = resolved.program.reflection.workgroup_size;
                let stream = self.driver.stream();
                self.driver.launch(stream, &resolved.form.module, resolved.grid, block, arguments.pointers())
            };
            launched.map_err(|fault| self.error(fault, &action()))?;
            drop(scratch);
            if let (Some(start), Some(end)) = (started, self.mark().map_err(|fault| self.error(fault, &action()))?) {
                state.timing.push((label.clone(), start, end));
            }
            Ok(())
        });
        state.arguments = arguments;
        launched
    }

    /// A timed event at this point of the stream, when kernels are timed.
    fn mark(&self) -> std::result::Result<Option<Event>, Fault> {
        if !self.profile {
            return Ok(None);
        }
        let event = self.driver.event(true)?;
        self.driver.record(&event)?;
        Ok(Some(event))
    }

    /// Fills in the arguments. What they point to beyond the dispatch's own buffers is in the result, to be kept until the launch.
    pub(super) fn fill(
        self: &Arc<Self>,
        state: &mut State,
        arguments: &mut Arguments,
        resolved: &Resolved<'_>,
    ) -> Result<Vec<Scratch>> {
        let (dispatch, form) = (resolved.dispatch, resolved.form);
        let mut scratch = Vec::new();
        arguments.clear();
        // A folded form reads one more uniform, behind the kernel's own.
        let contents = |index: usize| match dispatch.bindings.get(index) {
            Some(Bound::Uniform(contents)) => Some(contents.as_slice()),
            Some(Bound::Buffer { .. }) => None,
            None => resolved.counts.as_ref().map(<[u8; fold::UNIFORM_BYTES]>::as_slice),
        };
        for argument in &form.arguments {
            match argument {
                Argument::Value { index, bytes } => {
                    arguments.push(contents(*index).unwrap_or_default(), *bytes as usize);
                }
                Argument::Pointer { index } => {
                    let address = match dispatch.bindings.get(*index) {
                        Some(Bound::Buffer { buffer, offset, .. }) => {
                            self.own_buffer(&**buffer, &dispatch.label)?.address() + offset
                        }
                        _ => {
                            let made = self.scratch(state, contents(*index).unwrap_or_default(), &dispatch.label)?;
                            let address = made.address();
                            scratch.push(made);
                            address
                        }
                    };
                    arguments.push(&address.to_ne_bytes(), 8);
                }
                Argument::Sizes { indices } => {
                    let sizes = indices.iter().map(|&index| match dispatch.bindings.get(index) {
                        Some(Bound::Buffer { bytes, .. }) => u32::try_from(*bytes).unwrap_or(u32::MAX),
                        _ => 0,
                    });
                    arguments.push_numbers(indices.len(), sizes);
                }
            }
        }
        Ok(scratch)
    }

    /// The address of a checked range.
    fn range(&self, buffer: &dyn Buffer, offset: u64, bytes: u64, action: &str) -> Result<Address> {
        let buffer = self.own_buffer(buffer, action)?;
        checks::range(&buffer.label, buffer.padded(), offset, bytes, action)?;
        Ok(buffer.address() + offset)
    }

    /// Copies host bytes into the stream, through the staging blocks.
    pub(super) fn upload(&self, state: &mut State, target: Address, data: &[u8]) -> std::result::Result<(), Fault> {
        let mut place = target;
        for chunk in data.chunks(BLOCK_BYTES) {
            let source = state.staging.fill(&self.driver, chunk)?;
            // SAFETY: the block stays as it is until the stream has passed; the caller checked the target.
            unsafe { self.driver.copy_in(place, source, chunk.len())? };
            place += chunk.len() as u64;
        }
        Ok(())
    }

    pub(super) fn write(&self, buffer: &dyn Buffer, offset: u64, data: &[u8]) -> Result<()> {
        self.health.check()?;
        let target = self.range(buffer, offset, data.len() as u64, "writing")?;
        let mut state = self.lock();
        let written = self.driver.make_current().and_then(|()| self.upload(&mut state, target, data));
        written.map_err(|fault| self.error(fault, "writing a tensor"))
    }

    /// Reads through page-locked blocks, two at a time: one travels while the other is copied out.
    pub(super) async fn read(&self, buffer: &dyn Buffer, offset: u64, into: &mut [u8]) -> Result<()> {
        self.health.check()?;
        let mut source = self.range(buffer, offset, into.len() as u64, "reading")?;
        let deadline = self.health.deadline();
        let mut travelling: Option<(Pinned, Event, &mut [u8])> = None;
        for chunk in into.chunks_mut(BLOCK_BYTES) {
            let fetched = self.fetch(source, chunk.len()).map_err(|fault| self.error(fault, "reading a tensor"))?;
            source += chunk.len() as u64;
            if let Some(earlier) = travelling.replace((fetched.0, fetched.1, chunk)) {
                self.arrive(earlier, deadline).await?;
            }
        }
        match travelling {
            Some(last) => self.arrive(last, deadline).await,
            None => Ok(()),
        }
    }

    /// Queues a copy into a block.
    fn fetch(&self, source: Address, bytes: usize) -> std::result::Result<(Pinned, Event), Fault> {
        let mut state = self.lock();
        self.driver.make_current()?;
        let reused = state.reading.pop();
        let pinned = match reused {
            Some(pinned) => pinned,
            None => self.driver.pinned(BLOCK_BYTES)?,
        };
        // SAFETY: the block is this read's alone until the event has passed, and as large as any chunk; the range was checked.
        unsafe { self.driver.copy_out(pinned.start(), source, bytes.min(pinned.bytes()))? };
        let event = self.driver.event(false)?;
        self.driver.record(&event)?;
        Ok((pinned, event))
    }

    async fn arrive(
        &self,
        (pinned, event, into): (Pinned, Event, &mut [u8]),
        deadline: Option<std::time::Instant>,
    ) -> Result<()> {
        let ended = self.waiter.wait(event, deadline).await;
        if let Err(error) = self.ended(ended, "reading a tensor") {
            // The stream may still write to it.
            std::mem::forget(pinned);
            return Err(error);
        }
        // SAFETY: the copy has ended, and nothing else refers to the block.
        unsafe { std::ptr::copy_nonoverlapping(pinned.start(), into.as_mut_ptr(), into.len()) };
        let mut state = self.lock();
        if state.reading.len() < 4 {
            state.reading.push(pinned);
        }
        Ok(())
    }

    /// Waits until the stream is where it is now.
    pub(super) async fn finish(&self) -> Result<()> {
        self.health.check()?;
        let event = {
            let _order = self.lock();
            let made = self.driver.make_current().and_then(|()| self.driver.event(false));
            let recorded = made.and_then(|event| self.driver.record(&event).map(|()| event));
            recorded.map_err(|fault| self.error(fault, "finishing"))?
        };
        let ended = self.waiter.wait(event, self.health.deadline()).await;
        self.ended(ended, "finishing")
    }

    /// Copies from a buffer of another device of the same vendor, when both are.
    pub(super) async fn copy_peer(
        self: &Arc<Self>,
        target: Arc<dyn Buffer>,
        other: Arc<Self>,
        source: Arc<dyn Buffer>,
        bytes: u64,
    ) -> Result<()> {
        other.finish().await?;
        self.health.check()?;
        let (to, from) = (self.range(&*target, 0, bytes, "a copy")?, other.range(&*source, 0, bytes, "a copy")?);
        {
            let _order = self.lock();
            let size = usize::try_from(bytes).unwrap_or(0);
            // SAFETY: both ranges were checked; the other device is idle, and its buffer is held until this stream has passed.
            let copied = self
                .driver
                .make_current()
                .and_then(|()| unsafe { self.driver.copy_peer(to, &other.driver, from, size) });
            copied.map_err(|fault| self.error(fault, "copying between devices"))?;
        }
        self.finish().await
    }

    /// Memory for the contents of a uniform that does not travel among the arguments.
    fn scratch(self: &Arc<Self>, state: &mut State, contents: &[u8], label: &str) -> Result<Scratch> {
        let scratch = self.take_scratch(contents.len() as u64, label)?;
        let written = self.upload(state, scratch.address(), contents);
        written.map_err(|fault| self.error(fault, &format!("running {label}")))?;
        Ok(scratch)
    }
}
