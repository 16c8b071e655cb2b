//! Batches and transfers: checked whole, then put into the stream one after another. `submit` checks a batch whole before anything is queued, so a refusal
//! means that nothing ran. A dispatch tries what runs in its kernel's place (a library's product, a takeover) and falls back to the kernel in the same
//! place of the batch. Small uniforms travel among the arguments.

use std::sync::Arc;

use super::arguments::Arguments;
use super::driver::{Driver, Event, LaunchShape, Pinned, Stream};
use super::library::Address;
use super::memory::{Scratch, StreamBuffer};
use super::platform::Fault;
use super::product::LibraryCall;
use super::program::{Form, StreamProgram};
use super::shared::{Held, InUse, Shared, State};
use super::staging::{BLOCK_BYTES, Filled, Room};
use super::takeover::{Takeover, TakeoverLaunch};
use crate::backend::{Bound, Buffer, Command, Dispatch, Refusal};
use crate::checks::{self, Owner as _, binds_uniform_buffers};
use crate::error::Result;
use crate::kernel::fold;
use crate::translate::Argument;

/// A dispatch with what runs it.
#[doc(hidden)]
pub struct Resolved<'a> {
    pub(super) dispatch: &'a Dispatch,
    pub(super) program: &'a StreamProgram,
    pub(super) run: Run<'a>,
}

/// The program that runs a dispatch.
pub(super) enum Run<'a> {
    Kernel(Launch<'a>),
    /// The vendor's library, in the kernel's place.
    Library(LibraryCall),
}

/// A kernel's code and grid.
pub(super) struct Launch<'a> {
    pub(super) form: &'a Form,
    pub(super) shape: LaunchShape,
    /// The native kernel, and how it is launched.
    pub(super) taken: Option<(&'static Takeover, TakeoverLaunch)>,
    /// The true counts, for a folded form.
    counts: Option<[u8; fold::UNIFORM_BYTES]>,
}

impl Launch<'_> {
    /// Puts it into a stream, with the arguments that were filled in for it.
    ///
    /// # Safety
    /// Every address among the arguments is valid for what the kernel does with it, until the stream has passed.
    pub(super) unsafe fn start(
        &self,
        driver: &Driver,
        stream: Stream,
        arguments: &mut Arguments,
    ) -> std::result::Result<(), Fault> {
        if let Some((_, launch)) = self.taken.filter(|(_, launch)| launch.cleared > 0)
            && let Some(address) = arguments.word(self.form.arguments.len() + launch.words.len())
        {
            // SAFETY: `fill` took memory of that size.
            unsafe { driver.clear(stream, address, launch.cleared as usize)? };
        }
        // SAFETY: the arguments are those of the code, and their addresses are valid (this function's contract).
        unsafe { driver.launch(stream, &self.form.module, &self.shape, arguments.pointers()) }
    }
}

impl Resolved<'_> {
    /// Returns the native kernel that runs in place of the translated one.
    pub(super) fn native(&self) -> Option<&'static str> {
        match &self.run {
            Run::Kernel(launch) => launch.taken.map(|(takeover, _)| takeover.name),
            Run::Library(call) => Some(call.name()),
        }
    }
}

pub(super) type Step<'a> = checks::Step<'a, Resolved<'a>, StreamBuffer>;

impl Shared {
    /// Puts a batch into the stream. Nothing is queued when anything in it is wrong.
    pub(super) fn submit(self: &Arc<Self>, batch: Vec<Command>) -> Result<(), Refusal> {
        let steps = match self.health.check().and_then(|()| self.resolve_all(&batch)) {
            Ok(steps) => steps,
            Err(error) => return Err(Refusal::whole(error, batch)),
        };
        let mut state = self.lock();
        let refused = |fault| self.error(fault, "submitting a batch");
        let _current = self.driver.enter().map_err(refused)?;
        state.take_up(&self.driver).map_err(refused)?;
        state.enqueue();
        let mut failed = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            if let Err(error) = self.start(&mut state, step) {
                if self.health.is_lost() {
                    return Err(error.into());
                }
                failed.push((place, error));
            }
        }
        state.mark(&self.driver).map_err(refused)?;
        Refusal::all_but(failed)
    }

    /// Puts one step into the stream.
    fn start(self: &Arc<Self>, state: &mut State, step: &Step<'_>) -> Result<()> {
        match step {
            Step::Dispatch(resolved) => self.launch(state, resolved),
            Step::Copy { source, source_offset, target, target_offset, bytes } => {
                let (from, to) = (source.address() + source_offset, target.address() + target_offset);
                let bytes = usize::try_from(*bytes).unwrap_or(0);
                // SAFETY: both ranges were checked; the command's buffers differ.
                let copied = unsafe { self.driver.copy_within(self.driver.stream(), to, from, bytes) };
                copied.map_err(|fault| self.error(fault, "copying"))
            }
        }
    }

    /// Checks a whole batch.
    pub(super) fn resolve_all<'a>(&self, batch: &'a [Command]) -> Result<Vec<Step<'a>>> {
        self.check_batch(batch, |dispatch, program| {
            let taken = program.takeover(dispatch);
            let rank = taken.as_ref().map_or(i32::MIN, |(taken, ..)| taken.takeover.rank);
            if let Some(call) = self.library_call(dispatch).filter(|call| call.rank() > rank) {
                return Ok(Resolved { dispatch, program, run: Run::Library(call) });
            }
            let Some((taken, form, launch)) = taken else { return self.translated(dispatch, program) };
            let taken = taken.takeover;
            let shape = launch.shape(taken.threads);
            let launch = Launch { form, shape, taken: Some((taken, launch)), counts: None };
            Ok(Resolved { dispatch, program, run: Run::Kernel(launch) })
        })
    }

    /// A dispatch by the translated kernel.
    fn translated<'a>(&self, dispatch: &'a Dispatch, program: &'a StreamProgram) -> Result<Resolved<'a>> {
        let by_value = program.by_value_fits() && !binds_uniform_buffers(&program.reflection, &dispatch.bindings);
        let (folded, grid, counts) = match self.folding(&dispatch.label, dispatch.workgroups, program)? {
            None => (false, dispatch.workgroups, None),
            Some(plan) => (true, plan.grid, Some(plan.uniform)),
        };
        let block = program.reflection.workgroup_size;
        let shape = LaunchShape { grid, block, cluster: 0, shared_bytes: 0 };
        let launch = Launch { form: program.form(by_value, folded)?, shape, taken: None, counts };
        Ok(Resolved { dispatch, program, run: Run::Kernel(launch) })
    }

    /// Runs a dispatch; where what would run in its kernel's place is refused, by the kernel.
    fn launch(self: &Arc<Self>, state: &mut State, resolved: &Resolved<'_>) -> Result<()> {
        let Some(native) = resolved.native() else { return self.launch_one(state, resolved) };
        match self.launch_one(state, resolved) {
            Err(error) if !self.health.is_lost() => {
                self.takeovers.refuse(native, &error.to_string());
                self.launch_one(state, &self.translated(resolved.dispatch, resolved.program)?)
            }
            launched => launched,
        }
    }

    fn launch_one(self: &Arc<Self>, state: &mut State, resolved: &Resolved<'_>) -> Result<()> {
        let label = &resolved.dispatch.label;
        let failed = |fault| self.error(fault, &format!("running {label}"));
        let started = match &resolved.run {
            Run::Kernel(launch) => self.launch_kernel(state, resolved.dispatch, launch)?,
            Run::Library(call) => {
                let started = self.stamp().map_err(failed)?;
                // SAFETY: the device was entered and its lock is held; buffers live with the dispatch, and return to a pool or the driver
                // in the stream's order.
                unsafe { call.start(self.driver.stream()) }.map_err(failed)?;
                started
            }
        };
        let label = match resolved.native() {
            None => label.clone(),
            Some(native) => {
                self.takeovers.ran(native);
                format!("{label} ({native})").into()
            }
        };
        if let (Some(start), Some(end)) = (started, self.stamp().map_err(failed)?) {
            state.timing.push((label, start, end));
        }
        Ok(())
    }

    /// Launches a kernel; the event before it, when kernels are timed.
    fn launch_kernel(
        self: &Arc<Self>,
        state: &mut State,
        dispatch: &Dispatch,
        launch: &Launch<'_>,
    ) -> Result<Option<Event>> {
        let failed = |fault| self.error(fault, &format!("running {}", dispatch.label));
        let mut arguments = std::mem::take(&mut state.arguments);
        let filled = self.fill(state, &mut arguments, dispatch, launch);
        let launched = filled.and_then(|scratch| {
            let started = self.stamp().map_err(failed)?;
            // SAFETY: the arguments are those of the translation; every buffer among them was checked, lives with the dispatch until it is
            // queued, and returns to a pool or the driver in the stream's order.
            let launched = unsafe { launch.start(&self.driver, self.driver.stream(), &mut arguments) };
            launched.map_err(failed)?;
            drop(scratch);
            Ok(started)
        });
        state.arguments = arguments;
        launched
    }

    /// A timed event at this point of the stream, when kernels are timed.
    fn stamp(&self) -> std::result::Result<Option<Event>, Fault> {
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
        dispatch: &Dispatch,
        launch: &Launch<'_>,
    ) -> Result<Vec<Scratch>> {
        let form = launch.form;
        let mut scratch = Vec::new();
        arguments.clear();
        // A folded form reads one more uniform, behind the kernel's own.
        let contents = |index: usize| match dispatch.bindings.get(index) {
            Some(Bound::Uniform(contents)) => Some(contents.as_slice()),
            Some(Bound::Buffer { .. }) => None,
            None => launch.counts.as_ref().map(<[u8; fold::UNIFORM_BYTES]>::as_slice),
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
        if let Some((_, launch)) = &launch.taken {
            for word in launch.words {
                arguments.push(&word.to_ne_bytes(), 4);
            }
            if launch.cleared > 0 {
                let made = self.take_scratch(state, launch.cleared.into(), &dispatch.label)?;
                arguments.push(&made.address().to_ne_bytes(), 8);
                scratch.push(made);
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

    /// Copies host bytes (at most one block) into the stream, through the staging blocks. The number to wait for, when there is no room.
    fn upload(
        &self,
        state: &mut State,
        target: Address,
        data: &[u8],
        room: Room,
    ) -> std::result::Result<Option<u64>, Fault> {
        let number = state.latest();
        match state.staging.fill(&self.driver, (&mut state.flight, number), data, room)? {
            Filled::After(number) => Ok(Some(number)),
            Filled::Here(source) => {
                state.enqueue();
                // SAFETY: the block stays as it is until the stream has passed; the caller checked the target.
                unsafe { self.driver.copy_in(target, source, data.len())? };
                Ok(None)
            }
        }
    }

    pub(super) async fn write(&self, buffer: &dyn Buffer, offset: u64, data: &[u8]) -> Result<()> {
        self.health.check()?;
        let mut target = self.range(buffer, offset, data.len() as u64, "writing")?;
        let deadline = self.health.deadline();
        for chunk in data.chunks(BLOCK_BYTES) {
            while let Some(number) = self.write_chunk(target, chunk)? {
                self.pass(number, deadline, "writing a tensor").await?;
            }
            target += chunk.len() as u64;
        }
        Ok(())
    }

    fn write_chunk(&self, target: Address, chunk: &[u8]) -> Result<Option<u64>> {
        let mut state = self.lock();
        let written = self.driver.enter().and_then(|_current| {
            state.take_up(&self.driver)?;
            self.upload(&mut state, target, chunk, Room::Bounded)
        });
        written.map_err(|fault| self.error(fault, "writing a tensor"))
    }

    /// Reads through page-locked blocks, two at a time: one travels while the other is copied out.
    pub(super) async fn read(&self, buffer: &dyn Buffer, offset: u64, into: &mut [u8]) -> Result<()> {
        self.health.check()?;
        let mut source = self.range(buffer, offset, into.len() as u64, "reading")?;
        let deadline = self.health.deadline();
        let mut travelling: Option<(Arc<Pinned>, u64, &mut [u8])> = None;
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

    /// Queues a copy into a block. The stream keeps it too, so that it outlives a reader that fails or is dropped.
    fn fetch(&self, source: Address, bytes: usize) -> std::result::Result<(Arc<Pinned>, u64), Fault> {
        let mut state = self.lock();
        let _current = self.driver.enter()?;
        state.take_up(&self.driver)?;
        let pinned = Arc::new(state.staging.block(&self.driver)?);
        let number = state.enqueue();
        state.flight.keep(number, InUse::Landing(pinned.clone()));
        // SAFETY: the block is this read's alone until the stream has passed, and as large as any chunk; the range was checked.
        unsafe { self.driver.copy_out(pinned.start(), source, bytes.min(pinned.bytes()))? };
        state.mark(&self.driver)?;
        Ok((pinned, number))
    }

    async fn arrive(
        &self,
        (pinned, number, into): (Arc<Pinned>, u64, &mut [u8]),
        deadline: Option<std::time::Instant>,
    ) -> Result<()> {
        self.pass(number, deadline, "reading a tensor").await?;
        // SAFETY: the copy has ended, and nothing else touches the block.
        unsafe { std::ptr::copy_nonoverlapping(pinned.start(), into.as_mut_ptr(), into.len()) };
        if let Some(pinned) = Arc::into_inner(pinned) {
            self.lock().give_block(pinned);
        }
        Ok(())
    }

    /// Waits until the stream is where it is now.
    pub(super) async fn finish(&self) -> Result<()> {
        self.health.check()?;
        let latest = self.lock().latest();
        self.pass(latest, self.health.deadline(), "finishing").await
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
            let mut state = self.lock();
            let size = usize::try_from(bytes).unwrap_or(0);
            let copied = self.driver.enter().and_then(|_current| {
                state.enqueue();
                state.keep(Held::Foreign(source));
                // SAFETY: both ranges were checked; the other device is idle, and its buffer is held until this stream has passed.
                unsafe { self.driver.copy_peer(to, &other.driver, from, size)? };
                state.mark(&self.driver)
            });
            copied.map_err(|fault| self.error(fault, "copying between devices"))?;
        }
        self.finish().await
    }

    /// Memory for the contents of a uniform that does not travel among the arguments.
    fn scratch(self: &Arc<Self>, state: &mut State, contents: &[u8], label: &str) -> Result<Scratch> {
        let scratch = self.take_scratch(state, contents.len() as u64, label)?;
        let written = self.overwrite(state, scratch.address(), contents);
        written.map_err(|fault| self.error(fault, &format!("running {label}")))?;
        Ok(scratch)
    }

    /// Writes a uniform's memory, in the stream's order.
    pub(super) fn overwrite(
        &self,
        state: &mut State,
        mut target: Address,
        contents: &[u8],
    ) -> std::result::Result<(), Fault> {
        for chunk in contents.chunks(BLOCK_BYTES) {
            self.upload(state, target, chunk, Room::Unbounded)?;
            target += chunk.len() as u64;
        }
        Ok(())
    }
}
