//! The device's side of the engine's batches: graphs compiled and run, recordings, bytes to it and from it.

use std::sync::Arc;

use super::abi::{self, Fault};
use super::adapt::adapted;
use super::memory::{Event, Memory, Pinned};
use super::program::{Ascend, Program, Sink};
use super::record::Recorded;
use crate::graph::Graph;
use crate::tensor::DType;
use crate::values::{Fetched, Ran, Run, Target};

impl Target for Ascend {
    type Fault = Fault;
    type Value = Arc<Memory>;
    type Event = Event;
    type Program = Program;
    type Recording = Recorded;
    type Landing = Pinned;

    const TITLE: &'static str = "an Ascend device";

    /// Asks every operator for its workspace, over no memory: what it refuses is known before anything runs.
    fn compile(&self, graph: &Arc<Graph>) -> Result<Program, Fault> {
        Program::new(&self.stream, adapted(graph)?)
    }

    /// Memory that nothing reads any more serves the next work of the stream in any case.
    fn run(&self, program: &Program, inputs: &[Arc<Memory>], _spare: Option<usize>) -> Ran<Self> {
        self.stream.context.enter()?;
        let mut workspace = self.turn();
        let mut sink = Sink { queue: self.stream.stream, workspace: &mut workspace, held: None };
        let result = self.pass(program, inputs, &mut sink)?;
        drop(workspace);
        Ok((result, Some(self.stream.record()?)))
    }

    fn record(&self, inputs: &[(DType, Vec<usize>)], runs: &[Run<Self>]) -> Result<Option<Recorded>, Fault> {
        Recorded::new(self, inputs, runs)
    }

    fn places<'a>(&self, recording: &'a Recorded) -> (&'a [Arc<Memory>], &'a [Arc<Memory>]) {
        (&recording.inputs, &recording.results)
    }

    fn replay(&self, recording: &Recorded, inputs: &[Arc<Memory>]) -> Result<Option<Arc<Event>>, Fault> {
        recording.run(self, inputs).map(Some)
    }

    fn upload(&self, bytes: &[u8], _dtype: DType, _shape: &[usize]) -> Result<Arc<Memory>, Fault> {
        self.stream.context.enter()?;
        let memory = self.stream.memory(bytes.len())?;
        if bytes.is_empty() {
            return Ok(Arc::new(memory));
        }
        let mut staging = self.stream.pinned(bytes.len())?;
        staging.fill(bytes);
        let (library, stream) = (self.library(), self.stream.stream);
        // SAFETY: both hold that many bytes until the stream has passed.
        let code = unsafe {
            (library.copy_async)(memory.address, memory.bytes, staging.address, bytes.len(), abi::TO_DEVICE, stream)
        };
        library.check("aclrtMemcpyAsync", code)?;
        self.stream.record()?;
        Ok(Arc::new(memory))
    }

    fn fetch(&self, value: &Arc<Memory>, dtype: DType, shape: &[usize]) -> Fetched<Self> {
        self.stream.context.enter()?;
        let bytes = shape.iter().product::<usize>() * dtype.bytes();
        let landing = self.stream.pinned(bytes)?;
        if bytes > 0 {
            let (library, stream) = (self.library(), self.stream.stream);
            // SAFETY: as in `upload`.
            let code =
                unsafe { (library.copy_async)(landing.address, bytes, value.address, bytes, abi::TO_HOST, stream) };
            library.check("aclrtMemcpyAsync", code)?;
        }
        let event = self.stream.record()?;
        Ok((landing, event))
    }

    fn kept(&self) -> u64 {
        self.stream.kept()
    }

    fn trim(&self) -> Result<(), Fault> {
        *self.turn() = None;
        self.stream.trim()
    }
}
