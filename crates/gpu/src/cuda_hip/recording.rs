//! Recordings as graphs of the driver: a batch captured once, then started by one call. Where the driver has no graphs, or kernels are to
//! be timed one by one, the commands are kept and put into the stream again.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use super::arguments::Arguments;
use super::driver::{Driver, Graph, LaunchShape, NON_BLOCKING, Stream};
use super::library::{GraphTable, Handle};
use super::memory::Scratch;
use super::platform::{Fault, FaultKind, check};
use super::queue::{Resolved, Run, Step};
use super::shared::{Held, Shared};
use super::takeover::Takeover;
use crate::backend::{Bound, Command, CommandList, Recording, Refusal, UniformChange, recording};
use crate::checks::Owner as _;
use crate::error::Result;
use crate::translate::Argument;
use cantus_base::listed::Listed;

/// The mode in which other threads' calls do not end the capture.
const CAPTURE_THREAD_LOCAL: i32 = 1;

/// A batch as a graph.
struct StreamRecording {
    /// Taken on drop.
    graph: Option<Graph>,
    /// For each command the data to change its arguments in place; `None` if they cannot be changed.
    launches: Mutex<Vec<Option<Launch>>>,
    /// Uniforms that do not travel among the arguments, and what native kernels have cleared.
    _scratch: Vec<Scratch>,
    /// They keep buffers and programs alive.
    commands: Vec<Command>,
    shared: Arc<Shared>,
}

impl Recording for StreamRecording {}

/// A launch in a graph.
struct Launch {
    node: Handle,
    function: Handle,
    shape: LaunchShape,
    list: Vec<Argument>,
    arguments: Arguments,
    /// The native kernel that it is.
    taken: Option<&'static Takeover>,
}

// SAFETY: handles are names, which any thread may use; the arguments are plain memory.
unsafe impl Send for Launch {}

impl Drop for StreamRecording {
    fn drop(&mut self) {
        // It may still be running. What it refers to goes back in the stream's order.
        if let Some(graph) = self.graph.take() {
            self.shared.lock().keep(Held::Graph(graph));
        }
    }
}

/// A stream for a capture, destroyed at its end.
struct CaptureStream<'a> {
    stream: Stream,
    driver: &'a Driver,
}

impl<'a> CaptureStream<'a> {
    fn new(driver: &'a Driver) -> std::result::Result<Self, Fault> {
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the pointer is valid; a context is current.
        let code = unsafe { (driver.functions().stream_create)(&raw mut handle, NON_BLOCKING) };
        check(code, driver.platform.vendor.functions.plain.stream_create)?;
        Ok(Self { stream: Stream(handle), driver })
    }
}

impl Drop for CaptureStream<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once. A capture that was not ended ends with it.
        unsafe { (self.driver.functions().stream_destroy)(self.stream.0) };
    }
}

impl Shared {
    /// Keeps a batch, as a graph where that can be.
    pub(super) fn record(self: &Arc<Self>, batch: &[Command]) -> Result<Arc<dyn Recording>> {
        self.health.check()?;
        let steps = self.resolve_all(batch)?;
        let list = || Arc::new(CommandList(batch.to_vec())) as Arc<dyn Recording>;
        let driver = &self.driver;
        let Some(table) = driver.functions().graphs.as_ref().filter(|_| !self.profile && !steps.is_empty()) else {
            return Ok(list());
        };
        let mut state = self.lock();
        let _current = driver.enter().map_err(|fault| self.error(fault, "recording a batch"))?;
        // The arguments of all launches, and their uniforms in memory, before the capture begins: an upload has no place in it.
        let mut launches = Vec::with_capacity(steps.len());
        let mut scratch = Vec::new();
        for step in &steps {
            let mut arguments = Arguments::default();
            if let Step::Dispatch(Resolved { dispatch, run: Run::Kernel(launch), .. }) = step {
                scratch.extend(self.fill(&mut state, &mut arguments, dispatch, launch)?);
            }
            launches.push((step, arguments));
        }
        match capture(driver, table, launches) {
            Ok((handle, launches)) => {
                for step in &steps {
                    if let Step::Dispatch(resolved) = step
                        && let Some(native) = resolved.native()
                    {
                        self.takeovers.ran(native);
                    }
                }
                let graph = Some(Graph::new(handle, driver));
                let (commands, shared) = (batch.to_vec(), self.clone());
                let launches = Mutex::new(launches);
                Ok(Arc::new(StreamRecording { graph, launches, _scratch: scratch, commands, shared }))
            }
            // What cannot be captured can still be run.
            Err(fault) if fault.kind == FaultKind::Call => {
                tracing::debug!("{} keeps commands in place of a graph: {}", self.info.name, fault.message);
                Ok(list())
            }
            Err(fault) => Err(self.error(fault, "recording a batch")),
        }
    }

    /// Changes uniforms of a recording in place; false where that cannot be, or failed: what was changed by then does not matter to a new recording.
    pub(super) fn update(self: &Arc<Self>, recording: &dyn Recording, changes: &[UniformChange]) -> Result<bool> {
        self.health.check()?;
        let own = (recording as &dyn Any).downcast_ref::<StreamRecording>();
        let Some(own) = own.filter(|own| Arc::ptr_eq(&own.shared, self)) else { return Ok(false) };
        let Some(graph) = &own.graph else { return Ok(false) };
        let mut launches = own.launches.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |change: &UniformChange| {
            let Some(Command::Dispatch(dispatch)) = own.commands.get(change.command) else { return false };
            let known = dispatch.bindings.get(change.binding);
            matches!(known, Some(Bound::Uniform(known)) if known.len() == change.contents.len())
                && matches!(launches.get(change.command), Some(Some(_)))
        };
        if !changes.iter().all(fits) {
            return Ok(false);
        }
        // How a native kernel is launched depends on its uniforms: one that would be launched otherwise is recorded anew.
        let replanned = |change: &UniformChange| {
            let (Some(Command::Dispatch(dispatch)), Some(Some(launch))) =
                (own.commands.get(change.command), launches.get(change.command))
            else {
                return Some(None);
            };
            let Some(takeover) = launch.taken else { return Some(None) };
            let program = self.own_program(&*dispatch.program, &dispatch.label).ok()?;
            let words =
                program.replan(takeover, (change.binding, &change.contents), dispatch.workgroups, &launch.shape)?;
            Some(Some(words))
        };
        let Some(replanned) = changes.iter().map(replanned).try_listed() else { return Ok(false) };
        let mut state = self.lock();
        let outcome = self.driver.enter().and_then(|_current| {
            state.take_up(&self.driver)?;
            for (change, words) in changes.iter().zip(replanned) {
                let Some(Some(launch)) = launches.get_mut(change.command) else { continue };
                let mut travels = false;
                for (place, argument) in launch.list.iter().enumerate() {
                    match argument {
                        Argument::Value { index, .. } if *index == change.binding => {
                            launch.arguments.set(place, &change.contents);
                            travels = true;
                        }
                        // In memory: overwritten in the stream's order, behind the replays that are under way.
                        Argument::Pointer { index } if *index == change.binding => {
                            if let Some(address) = launch.arguments.word(place) {
                                self.overwrite(&mut state, address, &change.contents)?;
                            }
                        }
                        _ => {}
                    }
                }
                for (number, word) in words.iter().flatten().enumerate() {
                    launch.arguments.set(launch.list.len() + number, &word.to_ne_bytes());
                    travels = true;
                }
                if travels {
                    let kernel = (launch.function, &launch.shape);
                    // SAFETY: the arguments are those of the launch, of which a uniform has other contents.
                    unsafe { graph.set_arguments(launch.node, kernel, launch.arguments.pointers())? };
                }
            }
            Ok(())
        });
        match outcome {
            Ok(()) => Ok(true),
            Err(fault) if fault.kind == FaultKind::Call => {
                tracing::debug!("{} records a graph anew: {}", self.info.name, fault.message);
                Ok(false)
            }
            Err(fault) => Err(self.error(fault, "changing a graph")),
        }
    }

    /// Starts a recording behind what is in the stream.
    pub(super) fn replay(self: &Arc<Self>, recording: &dyn Recording) -> Result<(), Refusal> {
        if let Some(list) = CommandList::of(recording) {
            return self.submit(list.0.clone());
        }
        let own = (recording as &dyn Any).downcast_ref::<StreamRecording>();
        let Some(own) = own.filter(|own| Arc::ptr_eq(&own.shared, self)) else {
            return Err(recording::foreign(&self.info).into());
        };
        self.health.check()?;
        for command in &own.commands {
            command.check_cancelled()?;
        }
        let mut state = self.lock();
        let started = self.driver.enter().and_then(|_current| {
            state.take_up(&self.driver)?;
            state.enqueue();
            own.graph.as_ref().map_or(Ok(()), Graph::start)?;
            state.mark(&self.driver)
        });
        started.map_err(|fault| self.error(fault, "replaying a graph"))?;
        Ok(())
    }
}

/// Captures steps into a graph, which comes with what is needed to change each of them.
fn capture(
    driver: &Driver,
    table: &GraphTable,
    launches: Vec<(&Step<'_>, Arguments)>,
) -> std::result::Result<(Handle, Vec<Option<Launch>>), Fault> {
    let names = &driver.platform.vendor.functions.graphs;
    let own = CaptureStream::new(driver)?;
    let stream = own.stream;
    // SAFETY: the stream is this capture's own.
    check(unsafe { (table.capture_begin)(stream.0, CAPTURE_THREAD_LOCAL) }, names.capture_begin)?;
    let mut outcome = Ok(());
    let mut captured = Vec::with_capacity(launches.len());
    for (step, mut arguments) in launches {
        // SAFETY: as for a batch that is put into the stream: ranges and arguments were checked; the recording keeps what they refer to.
        outcome = unsafe {
            match step {
                Step::Dispatch(Resolved { run: Run::Kernel(launch), .. }) => {
                    launch.start(driver, stream, &mut arguments)
                }
                Step::Dispatch(Resolved { run: Run::Library(call), .. }) => call.start(stream),
                Step::Copy { source, source_offset, target, target_offset, bytes } => {
                    let (from, to) = (source.address() + source_offset, target.address() + target_offset);
                    driver.copy_within(stream, to, from, usize::try_from(*bytes).unwrap_or(0))
                }
            }
        };
        if outcome.is_err() {
            break;
        }
        captured.push(match step {
            Step::Dispatch(Resolved { run: Run::Kernel(launch), .. }) => {
                driver.captured_node(stream).map(|node| Launch {
                    node,
                    function: launch.form.module.function(),
                    shape: launch.shape,
                    list: launch.form.arguments.clone(),
                    arguments,
                    taken: launch.taken.map(|(takeover, _)| takeover),
                })
            }
            _ => None,
        });
    }
    let mut graph: Handle = std::ptr::null_mut();
    // SAFETY: the pointer is valid; the capture began above.
    let ended = check(unsafe { (table.capture_end)(stream.0, &raw mut graph) }, names.capture_end);
    let mut ready: Handle = std::ptr::null_mut();
    let result = outcome.and(ended).and_then(|()| {
        // SAFETY: the pointer is valid, the graph whole.
        check(unsafe { (table.instantiate)(&raw mut ready, graph, 0) }, names.instantiate)
    });
    if !graph.is_null() {
        // SAFETY: made by the end of the capture, destroyed once; what was made from it does not need it.
        unsafe { (table.graph_destroy)(graph) };
    }
    result.map(|()| (ready, captured))
}
