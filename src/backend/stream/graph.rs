//! Recordings as graphs of the driver: a batch captured once, then started by one call. Where the driver has no graphs, or kernels are to
//! be timed one by one, the commands are kept and put into the stream anew.

use std::any::Any;
use std::sync::Arc;

use super::arguments::Arguments;
use super::driver::{Driver, Fault, FaultKind, NON_BLOCKING, Stream, check};
use super::library::{GraphTable, Handle};
use super::memory::Scratch;
use super::queue::Step;
use super::shared::Shared;
use crate::backend::{Command, CommandList, Recording, recording};
use crate::error::Result;

/// What other threads do meanwhile does not end the capture.
const CAPTURE_THREAD_LOCAL: i32 = 1;

/// A batch as a graph.
struct StreamRecording {
    // Dropped in this order: the graph before what it refers to.
    graph: Graph,
    /// Uniforms that do not travel among the arguments.
    _scratch: Vec<Scratch>,
    /// They keep buffers and programs alive.
    commands: Vec<Command>,
    shared: Arc<Shared>,
}

impl Recording for StreamRecording {}

/// A graph, ready to start.
struct Graph {
    handle: Handle,
    driver: Arc<Driver>,
}

// SAFETY: as for `Driver`: a handle is a name, which any thread may use.
unsafe impl Send for Graph {}
// SAFETY: as above; starts of it are ordered by the device's lock.
unsafe impl Sync for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // It may still be running.
        if self.driver.settle().is_ok()
            && let Some(table) = &self.driver.functions().graphs
        {
            // SAFETY: made by `capture`, destroyed once, and the stream is past it.
            unsafe { (table.destroy)(self.handle) };
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
        check(code, driver.platform.vendor.functions.stream_create)?;
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
        driver.make_current().map_err(|fault| self.error(fault, "recording a batch"))?;
        // The arguments of all launches, and their uniforms in memory, before the capture begins: an upload has no place in it.
        let mut launches = Vec::with_capacity(steps.len());
        let mut scratch = Vec::new();
        for step in &steps {
            let mut arguments = Arguments::default();
            if let Step::Dispatch(resolved) = step {
                scratch.extend(self.fill(&mut state, &mut arguments, resolved)?);
            }
            launches.push((step, arguments));
        }
        match capture(driver, table, launches) {
            Ok(handle) => {
                let graph = Graph { handle, driver: driver.clone() };
                let (commands, shared) = (batch.to_vec(), self.clone());
                Ok(Arc::new(StreamRecording { graph, _scratch: scratch, commands, shared }))
            }
            // What cannot be captured can still be run.
            Err(fault) if fault.kind == FaultKind::Call => {
                tracing::debug!("{} keeps commands in place of a graph: {}", self.info.name, fault.message);
                Ok(list())
            }
            Err(fault) => Err(self.error(fault, "recording a batch")),
        }
    }

    /// Starts a recording behind what is in the stream.
    pub(super) fn replay(self: &Arc<Self>, recording: &dyn Recording) -> Result<()> {
        if let Some(list) = CommandList::of(recording) {
            return self.submit(&list.0);
        }
        let own = (recording as &dyn Any).downcast_ref::<StreamRecording>();
        let Some(own) = own.filter(|own| Arc::ptr_eq(&own.shared, self)) else {
            return Err(recording::foreign(&self.info));
        };
        self.health.check()?;
        for command in &own.commands {
            command.check_cancelled()?;
        }
        let _order = self.lock();
        let started = self.driver.make_current().and_then(|()| own.graph.start());
        started.map_err(|fault| self.error(fault, "replaying a graph"))
    }
}

impl Graph {
    fn start(&self) -> std::result::Result<(), Fault> {
        let functions = self.driver.functions();
        let names = &self.driver.platform.vendor.graph_functions;
        let Some(table) = &functions.graphs else { return Ok(()) };
        // SAFETY: the graph is whole, and what it refers to lives in its recording.
        check(unsafe { (table.launch)(self.handle, self.driver.stream().0) }, names.launch)
    }
}

/// Captures steps into a graph.
fn capture(
    driver: &Driver,
    table: &GraphTable,
    launches: Vec<(&Step<'_>, Arguments)>,
) -> std::result::Result<Handle, Fault> {
    let names = &driver.platform.vendor.graph_functions;
    let own = CaptureStream::new(driver)?;
    let stream = own.stream;
    // SAFETY: the stream is this capture's own.
    check(unsafe { (table.capture_begin)(stream.0, CAPTURE_THREAD_LOCAL) }, names.capture_begin)?;
    let mut outcome = Ok(());
    for (step, mut arguments) in launches {
        // SAFETY: as for a batch that is put into the stream: ranges and arguments were checked; the recording keeps what they refer to.
        outcome = unsafe {
            match step {
                Step::Dispatch(resolved) => {
                    let block = resolved.program.reflection.workgroup_size;
                    driver.launch(stream, &resolved.form.module, resolved.grid, block, arguments.pointers())
                }
                Step::Copy { source, target, bytes } => driver.copy_within(stream, *target, *source, *bytes),
            }
        };
        if outcome.is_err() {
            break;
        }
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
    result.map(|()| ready)
}
