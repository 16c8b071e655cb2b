//! Batches: checked whole, encoded into one command encoder, submitted once.
//!
//! Consecutive dispatches share a compute pass; what is already set (pipeline, bind groups) is not set again.

use std::any::Any;
use std::sync::Arc;

use super::checks;
use super::errors::{Caught, Errors as _, Scopes};
use super::groups::{EntryKind, Range, Resource};
use super::image::WgpuView;
use super::memory::{Memory, WgpuBuffer};
use super::program::{FOLD_BYTES, Group, Pipeline, Slot, Source, WgpuProgram};
use super::shared::{Shared, State};
use super::texture::{Samplers, sampler_words};
use super::timestamps::Timer;
use super::uniforms::{MAX_BYTES, UniformArena};
use super::work::Work;
use crate::backend::{Bound, Command, Dispatch, Refusal, padded};
use crate::checks::Owner as _;
use crate::error::Result;

/// A batch that was submitted: what wgpu thinks of it comes out of [`Submitted::accepted`].
pub(super) struct Submitted {
    shared: Arc<Shared>,
    caught: Caught,
    /// Dispatch and kernel names, for errors.
    labels: Vec<(Arc<str>, Arc<str>)>,
    /// The number of submissions.
    parts: usize,
}

impl Submitted {
    /// Waits for wgpu's verdict on it. Of a submission that is not valid nothing runs: the batch comes back.
    pub(super) async fn accepted(self, batch: Vec<Command>) -> Result<(), Refusal> {
        let Self { shared, caught, labels, parts } = self;
        match caught.first().await {
            None if shared.health.is_lost() => Err(shared.health.lost_error().into()),
            None => Ok(()),
            Some(error) => {
                // Something kept may be what is not valid.
                shared.lock().groups.clear();
                let action = action(&labels, Some(&error.to_string()));
                let told = shared.health.wgpu_error(&error, &action, &action, 0);
                let whole = parts == 1 && matches!(error, wgpu::Error::Validation { .. });
                Err(if whole { Refusal::whole(told, batch) } else { told.into() })
            }
        }
    }
}

/// Describes a batch in words; just the kernel that a message of wgpu's names, if it names one.
fn action(labels: &[(Arc<str>, Arc<str>)], message: Option<&str>) -> String {
    let quoted = |name: &str| message.is_some_and(|message| message.contains(&format!("'{name}'")));
    let culprit = labels.iter().find(|(label, kernel)| quoted(label) || quoted(kernel));
    match (culprit, labels) {
        (Some((label, _)), _) | (None, [(label, _)]) => format!("running {label}"),
        (None, []) => "copying".to_owned(),
        (None, [(first, _), .., (last, _)]) => {
            format!("running a batch of {} kernels, {first} to {last}", labels.len())
        }
    }
}

type Step<'a> = crate::checks::Step<'a, Resolved<'a>, WgpuBuffer>;

/// A dispatch, resolved to this backend's types.
#[doc(hidden)]
pub struct Resolved<'a> {
    dispatch: &'a Dispatch,
    pipeline: &'a Pipeline,
    grid: [u32; 3],
    /// The true counts, for a folded pipeline.
    counts: Option<[u8; FOLD_BYTES as usize]>,
}

impl Shared {
    /// Checks, encodes and submits a batch. Nothing is submitted when anything in it is wrong.
    pub(super) fn submit(self: &Arc<Self>, batch: &[Command]) -> Result<Submitted> {
        self.health.check()?;
        self.check_alive()?;
        let mut labels: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        let steps = self.check_batch(batch, |dispatch, program| {
            let resolved = self.resolve(dispatch, program)?;
            if labels.last().is_none_or(|(label, _)| !Arc::ptr_eq(label, &dispatch.label)) {
                labels.push((dispatch.label.clone(), program.name.clone()));
            }
            Ok(resolved)
        })?;
        for step in &steps {
            if let Step::Copy { source, target, bytes, .. } = step {
                checks::check_copy(source, target, *bytes)?;
            }
        }
        let deadline = self.health.deadline();
        let (caught, parts) = self.contained("submitting a batch", || {
            let _turn = self.turn();
            let mut state = self.lock();
            let scopes = Scopes::open(&self.device);
            let (mut rest, mut parts) = (steps.as_slice(), 0);
            // Once at least: an empty batch still clears buffers and flushes writes.
            loop {
                let (now, later) = rest.split_at(self.fitting(&state, rest));
                self.run(&mut state, now);
                (rest, parts) = (later, parts + 1);
                if rest.is_empty() {
                    break;
                }
            }
            (scopes.close(), parts)
        })?;
        let submitted = Submitted { shared: self.clone(), caught, labels, parts };
        self.check_deadline(deadline, || action(&submitted.labels, None))?;
        Ok(submitted)
    }

    /// Finds pipeline and grid of a dispatch.
    fn resolve<'a>(&self, dispatch: &'a Dispatch, program: &'a WgpuProgram) -> Result<Resolved<'a>> {
        let limit = self.limits.max_compute_workgroups_per_dimension;
        if dispatch.workgroups.iter().all(|&count| count <= limit) {
            return Ok(Resolved { dispatch, pipeline: &program.plain, grid: dispatch.workgroups, counts: None });
        }
        let (pipeline, grid, counts) = checks::folded(self, program, &dispatch.label, dispatch.workgroups)?;
        Ok(Resolved { dispatch, pipeline, grid, counts: Some(counts) })
    }

    /// Returns the number of steps that fit into one submission's uniform arena (and timer); at least one.
    fn fitting(&self, state: &State, steps: &[Step<'_>]) -> usize {
        let mut bytes = 0_u64;
        let mut timed = 0;
        for (index, step) in steps.iter().enumerate() {
            if let Step::Dispatch(resolved) = step {
                bytes += uniform_bytes(state, resolved);
                timed += 1;
            }
            let full = bytes > MAX_BYTES || (self.profile && timed > Timer::MOST);
            if full && index > 0 {
                return index;
            }
        }
        steps.len()
    }

    /// Encodes and submits steps that fit.
    fn run(&self, state: &mut State, steps: &[Step<'_>]) {
        let needed = steps.iter().map(|step| match step {
            Step::Dispatch(resolved) => uniform_bytes(state, resolved),
            Step::Copy { .. } => 0,
        });
        let needed = needed.sum();
        state.samplers.limit();
        if let Some(replaced) = state.uniforms.begin(&self.device, needed, || self.new_id()) {
            state.groups.forget(&[replaced]);
        }
        let encoder =
            || self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("cantus batch") });
        // Apart: what is cleared stays cleared when the batch is refused.
        if state.has_clears() {
            let mut clears = encoder();
            state.encode_clears(&mut clears);
            self.queue.submit([clears.finish()]);
        }
        let mut encoder = encoder();
        let dispatches = steps.iter().filter(|step| matches!(step, Step::Dispatch(_))).count();
        let mut timer = if self.profile && dispatches > 0 { Timer::new(self, dispatches) } else { None };
        let mut pass: Option<Pass> = None;
        for step in steps {
            match step {
                Step::Dispatch(resolved) => {
                    if timer.is_some() {
                        pass = None;
                    }
                    let writes = timer.as_mut().map(|timer| timer.next(&resolved.dispatch.label));
                    pass.get_or_insert_with(|| Pass::begin(&mut encoder, writes)).dispatch(self, state, resolved);
                }
                Step::Copy { source, source_offset, target, target_offset, bytes } => {
                    pass = None;
                    match (&source.memory, &target.memory) {
                        (Memory::Buffer(from, _), Memory::Buffer(to, _)) => encoder.copy_buffer_to_buffer(
                            &from.buffer,
                            *source_offset,
                            &to.buffer,
                            *target_offset,
                            Some(*bytes),
                        ),
                        (Memory::Image(image), Memory::Buffer(buffer, _)) => {
                            image.copy_out(&mut encoder, &buffer.buffer);
                        }
                        (Memory::Buffer(buffer, _), Memory::Image(image)) => {
                            image.copy_in(&mut encoder, &buffer.buffer);
                        }
                        // Refused before.
                        (Memory::Image(_), Memory::Image(_)) => {}
                    }
                }
            }
        }
        drop(pass);
        if let Some(timer) = &timer {
            timer.resolve(&mut encoder);
        }
        state.uniforms.write(&self.queue);
        self.queue.submit([encoder.finish()]);
        state.unsubmitted = 0;
        if let Some(timer) = timer {
            timer.collect(&self.times);
        }
    }

    /// Waits until everything submitted so far has finished.
    pub(super) async fn finish(self: Arc<Self>) -> Result<()> {
        self.health.check()?;
        self.check_alive()?;
        let deadline = self.health.deadline();
        let work = self.contained("waiting", || {
            let _turn = self.turn();
            let mut state = self.lock();
            let submission = self.queue.submit([]);
            state.unsubmitted = 0;
            let (work, answer) = Work::new(&self.device, self.turn.as_ref(), submission);
            self.queue.on_submitted_work_done(move || {
                // Nobody may ask any more.
                let _ = answer.send(true);
            });
            work
        })?;
        self.answered(work, deadline, || "the work in flight".to_owned()).await?;
        self.check_alive()?;
        self.health.check()
    }
}

/// Most bytes of the uniform arena that a dispatch takes.
fn uniform_bytes(state: &State, resolved: &Resolved<'_>) -> u64 {
    let contents = resolved.dispatch.bindings.iter().map(|bound| match bound {
        Bound::Uniform(bytes) => state.uniforms.footprint(padded(bytes.len() as u64)),
        Bound::Buffer { .. } => 0,
    });
    let counts = if resolved.counts.is_some() { state.uniforms.footprint(FOLD_BYTES) } else { 0 };
    contents.sum::<u64>() + counts
}

/// A compute pass, and what is set in it.
struct Pass {
    raw: wgpu::ComputePass<'static>,
    pipeline: Option<u64>,
    /// The bindings set so far, group by group of the pipeline.
    set: Vec<Setting>,
    /// Scratch space: the group about to be set.
    next: Setting,
    /// Scratch space: where each slot's uniform lies in the arena.
    arena: Vec<u32>,
}

/// A bind group's key and dynamic offsets.
#[derive(Default, Clone, PartialEq)]
struct Setting {
    key: Vec<u64>,
    offsets: Vec<u32>,
}

impl Pass {
    fn begin(
        encoder: &mut wgpu::CommandEncoder,
        timestamp_writes: Option<wgpu::ComputePassTimestampWrites<'_>>,
    ) -> Self {
        let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
        // The pass is dropped before the encoder is used again: `run` sees to it.
        let raw = encoder.begin_compute_pass(&descriptor).forget_lifetime();
        Self { raw, pipeline: None, set: Vec::new(), next: Setting::default(), arena: Vec::new() }
    }

    fn dispatch(&mut self, shared: &Shared, state: &mut State, resolved: &Resolved<'_>) {
        let pipeline = resolved.pipeline;
        if self.pipeline != Some(pipeline.id) {
            self.raw.set_pipeline(&pipeline.raw);
            self.pipeline = Some(pipeline.id);
            self.set.clear();
        }
        self.set.resize_with(pipeline.groups.len(), Setting::default);
        for (place, group) in pipeline.groups.iter().enumerate() {
            self.set_group(shared, state, resolved, place, group);
        }
        let [x, y, z] = resolved.grid;
        self.raw.dispatch_workgroups(x, y, z);
    }

    fn set_group(&mut self, shared: &Shared, state: &mut State, resolved: &Resolved<'_>, place: usize, group: &Group) {
        let State { groups, uniforms, samplers, .. } = state;
        self.next.offsets.clear();
        self.arena.clear();
        for slot in &group.slots {
            if let (EntryKind::Other(_), Some(Bound::Uniform(bytes))) = (slot.kind, resolved.bound(slot)) {
                samplers.make(&shared.device, || shared.new_id(), sampler_words(bytes));
            }
            let offset = resolved.contents(slot).map_or(0, |contents| uniforms.place(contents, padded(slot.bytes)));
            if slot.dynamic {
                self.next.offsets.push(offset);
            }
            self.arena.push(if slot.dynamic { 0 } else { offset });
        }
        let ranges = || {
            let slots = group.slots.iter().zip(&self.arena);
            slots.filter_map(|(slot, &offset)| resolved.range(slot, (&*uniforms, &*samplers), offset))
        };
        self.next.key.clear();
        self.next.key.push(group.layout.id);
        for range in ranges() {
            self.next.key.extend([range.id, range.offset, range.bytes]);
        }
        if self.set[place] == self.next {
            return;
        }
        let label = &resolved.dispatch.label;
        let raw = groups.group(&shared.device, &group.layout, &self.next.key, ranges, label);
        self.raw.set_bind_group(group.index, raw, &self.next.offsets);
        std::mem::swap(&mut self.set[place], &mut self.next);
    }
}

impl Resolved<'_> {
    fn bound(&self, slot: &Slot) -> Option<&Bound> {
        match slot.source {
            Source::Counts => None,
            Source::Binding(index) => self.dispatch.bindings.get(index),
        }
    }

    /// The bytes that go into the arena for this slot, if its contents are given with the dispatch.
    fn contents(&self, slot: &Slot) -> Option<&[u8]> {
        match (slot.source, self.bound(slot)) {
            _ if matches!(slot.kind, EntryKind::Other(_)) => None,
            (Source::Counts, _) => self.counts.as_ref().map(<[u8; FOLD_BYTES as usize]>::as_slice),
            (_, Some(Bound::Uniform(bytes))) => Some(bytes),
            _ => None,
        }
    }

    /// The resource of this slot: a tensor's buffer range, the arena's at `offset`, a view of a texture, or a sampler.
    fn range<'b>(
        &'b self,
        slot: &Slot,
        (uniforms, samplers): (&'b UniformArena, &'b Samplers),
        offset: u32,
    ) -> Option<Range<'b>> {
        let binding = slot.binding;
        match (slot.kind, self.bound(slot)) {
            (EntryKind::Other(_), Some(Bound::Buffer { buffer, .. })) => {
                let view = (&**buffer as &dyn Any).downcast_ref::<WgpuView>()?;
                Some(Range { binding, resource: Resource::View(&view.raw), id: view.id, offset: 0, bytes: 0 })
            }
            (EntryKind::Other(_), Some(Bound::Uniform(bytes))) => {
                let (sampler, id) = samplers.get(sampler_words(bytes))?;
                Some(Range { binding, resource: Resource::Sampler(sampler), id, offset: 0, bytes: 0 })
            }
            (_, Some(Bound::Buffer { buffer, offset, bytes })) => {
                let raw = (&**buffer as &dyn Any).downcast_ref::<WgpuBuffer>()?.raw()?;
                let (resource, offset, bytes) = (Resource::Buffer(&raw.buffer), *offset, padded(*bytes));
                Some(Range { binding, resource, id: raw.id, offset, bytes })
            }
            _ => {
                let (buffer, id) = uniforms.buffer()?;
                let resource = Resource::Buffer(buffer);
                Some(Range { binding, resource, id, offset: offset.into(), bytes: padded(slot.bytes) })
            }
        }
    }
}
