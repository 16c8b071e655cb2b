//! Recordings: the work of several graphs captured into a model of the library's, which one call runs. It reads and writes memory of its own:
//! inputs that are elsewhere are copied there first.

use std::ptr::null_mut;
use std::sync::Arc;

use super::abi::{self, Fault};
use super::library::{Captures, Pointer};
use super::memory::{Context, Event, Memory, Retired, Stream};
use super::program::{Ascend, Sink};
use crate::tensor::DType;
use crate::values::Run;
use cantus_base::listed::Listed;

/// A recording.
pub(super) struct Recorded {
    model: Pointer,
    /// Memory that the inputs are read from.
    pub(super) inputs: Vec<Arc<Memory>>,
    /// Memory of the results, for runs whose results last.
    pub(super) results: Vec<Arc<Memory>>,
    /// The memory that is written between them.
    _held: Vec<Arc<Memory>>,
    _workspace: Option<Memory>,
    stream: Arc<Stream>,
}

// SAFETY: models may be run and destroyed by any thread that has entered their context.
unsafe impl Send for Recorded {}
// SAFETY: `&Recorded` gives out only memory's addresses; a model is run under the target's lock, and destroyed once.
unsafe impl Sync for Recorded {}

impl Drop for Recorded {
    fn drop(&mut self) {
        // It may still run; its memory goes back in the stream's order.
        self.stream.retire(Retired::Model(self.model));
    }
}

/// A stream whose work becomes a model.
struct Capture<'a> {
    stream: Pointer,
    begun: bool,
    table: &'a Captures,
    context: &'a Context,
}

impl<'a> Capture<'a> {
    fn begin(context: &'a Context, table: &'a Captures) -> Result<Self, Fault> {
        let (library, mut stream) = (&context.library, null_mut());
        // SAFETY: a place for the stream.
        library.check("aclrtCreateStream", unsafe { (library.create_stream)(&raw mut stream) })?;
        let mut capture = Self { stream, begun: false, table, context };
        // SAFETY: the stream is this capture's own.
        let code = unsafe { (table.begin)(stream, abi::CAPTURE_THREAD_LOCAL) };
        library.check("aclmdlRICaptureBegin", code)?;
        capture.begun = true;
        Ok(capture)
    }

    /// The model, which nobody holds yet.
    fn end(&mut self) -> Result<Pointer, Fault> {
        let mut model = null_mut();
        self.begun = false;
        // SAFETY: a place for the model; the capture has begun on this thread.
        let code = unsafe { (self.table.end)(self.stream, &raw mut model) };
        self.context.library.check("aclmdlRICaptureEnd", code)?;
        match model.is_null() {
            true => Err(Fault::refused("the capture gave no model")),
            false => Ok(model),
        }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if self.begun
            && let Ok(model) = self.end()
        {
            // SAFETY: it has not run.
            unsafe { (self.table.destroy)(model) };
        }
        // SAFETY: nobody else has it.
        unsafe { (self.context.library.destroy_stream)(self.stream) };
    }
}

impl Recorded {
    /// `None` where the library has no captures.
    pub(super) fn new(
        device: &Ascend,
        inputs: &[(DType, Vec<usize>)],
        runs: &[Run<Ascend>],
    ) -> Result<Option<Self>, Fault> {
        let (stream, context) = (&device.stream, &device.stream.context);
        let Some(table) = &context.library.captures else { return Ok(None) };
        context.enter()?;
        let place = |(dtype, shape): &(DType, Vec<usize>)| {
            stream.memory(shape.iter().product::<usize>() * dtype.bytes()).map(Arc::new)
        };
        let inputs = inputs.iter().map(place).try_listed()?;
        let (mut workspace, mut held) = (None, Vec::new());
        // Executors and their places are one thread's at a time.
        let _turn = device.turn();
        let mut capture = Capture::begin(context, table)?;
        let results = Run::all(runs, &inputs, |run, values| {
            let mut sink = Sink { queue: capture.stream, workspace: &mut workspace, held: Some(&mut held) };
            device.pass(&run.program, values, &mut sink)
        })?;
        let model = capture.end()?;
        Ok(Some(Self { model, inputs, results, _held: held, _workspace: workspace, stream: stream.clone() }))
    }

    /// Runs it over those values.
    pub(super) fn run(&self, device: &Ascend, values: &[Arc<Memory>]) -> Result<Arc<Event>, Fault> {
        let context = &device.stream.context;
        context.enter()?;
        let _turn = device.turn();
        for (place, value) in self.inputs.iter().zip(values) {
            if !Arc::ptr_eq(place, value) {
                device.copy(place, value, self.stream.stream)?;
            }
        }
        let captures = context.library.captures.as_ref().ok_or_else(|| Fault::refused("there are no captures"))?;
        // SAFETY: the model lives, and keeps its memory.
        let code = unsafe { (captures.execute)(self.model, self.stream.stream) };
        context.library.check("aclmdlRIExecuteAsync", code)?;
        self.stream.record()
    }
}
