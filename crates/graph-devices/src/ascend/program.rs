//! Graphs as calls of aclnn. Executors are made when a graph is compiled, and run again over other memory where aclnn lets them. A graph is compiled by
//! asking each operator for its workspace without memory, so refusals are known before anything runs. Everything runs in one stream in order, so memory is
//! used again at once, except in recordings, which write to it at every start.

use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::abi::{self, Fault};
use super::call::{self, Call, OPERANDS, missing};
use super::library::{Library, Pointer};
use super::memory::{Memory, Stream};
use crate::graph::{Graph, Node, Op, Value};
use cantus_base::listed::Listed;

/// An open device.
pub(super) struct Ascend {
    pub(super) stream: Arc<Stream>,
    /// The workspace of the operators, which run one after another. Whoever starts work holds it.
    workspace: Mutex<Option<Memory>>,
}

/// A graph in aclnn's words, and by node the call that is kept for it.
pub(super) struct Program {
    graph: Graph,
    calls: Mutex<Vec<Option<Call>>>,
    stream: Arc<Stream>,
}

impl Program {
    /// Asks every operator for its workspace, over no memory.
    pub(super) fn new(stream: &Arc<Stream>, graph: Graph) -> Result<Self, Fault> {
        stream.context.enter()?;
        let library = &*stream.context.library;
        let last = last_reads(&graph);
        let asked = |(node, last): (&Node, usize)| {
            if !is_called(node, last) {
                return Ok(None);
            }
            let mut call = call::ask(library, &graph, node, &[null_mut(); OPERANDS], null_mut())?;
            Ok(call.keep(library).then_some(call))
        };
        let calls = graph.nodes().iter().zip(last).map(asked).try_listed()?;
        Ok(Self { graph, calls: Mutex::new(calls), stream: stream.clone() })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Executors go in their context. One that cannot be entered is lost, and they with it.
        let _ = self.stream.context.enter();
    }
}

impl Ascend {
    pub(super) fn new(stream: Arc<Stream>) -> Self {
        Self { stream, workspace: Mutex::default() }
    }

    pub(super) fn library(&self) -> &Library {
        &self.stream.context.library
    }

    /// The right to start work.
    pub(super) fn turn(&self) -> MutexGuard<'_, Option<Memory>> {
        self.workspace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A destination of work and a source of memory: the device's stream, or one whose work is recorded.
pub(super) struct Sink<'a> {
    pub(super) queue: Pointer,
    pub(super) workspace: &'a mut Option<Memory>,
    /// All memory of a recording, which keeps it. What it holds alone serves the next node.
    pub(super) held: Option<&'a mut Vec<Arc<Memory>>>,
}

impl Sink<'_> {
    pub(super) fn memory(&mut self, stream: &Arc<Stream>, bytes: usize) -> Result<Arc<Memory>, Fault> {
        let Some(held) = &mut self.held else { return Ok(Arc::new(stream.memory(bytes)?)) };
        let size = Memory::rounded(bytes);
        if let Some(free) = held.iter().find(|memory| memory.bytes == size && Arc::strong_count(memory) == 1) {
            return Ok(free.clone());
        }
        let made = Arc::new(stream.memory(bytes)?);
        held.push(made.clone());
        Ok(made)
    }

    /// Room for an operator's own use.
    fn room(&mut self, stream: &Arc<Stream>, bytes: usize) -> Result<Pointer, Fault> {
        if bytes == 0 {
            return Ok(null_mut());
        }
        if self.workspace.as_ref().is_none_or(|memory| memory.bytes < bytes) {
            let small = self.workspace.take();
            if let Some(held) = &mut self.held {
                held.extend(small.map(Arc::new));
            }
            *self.workspace = Some(stream.memory(bytes)?);
        }
        Ok(self.workspace.as_ref().map_or(null_mut(), |memory| memory.address))
    }
}

/// Returns whether a node is an operator's work: neither the same bytes under another type, nor a number that is filled in where it is needed.
fn is_called(node: &Node, last: usize) -> bool {
    !matches!(node.op, Op::Input(_) | Op::Reshape | Op::Bitcast) && last != 0
}

/// Returns by node the last one that reads it; 0 if none does.
fn last_reads(graph: &Graph) -> Vec<usize> {
    let is_filled =
        |node: &Node, operand: Value| matches!(node.op, Op::Broadcast(_)) && graph.number(operand).is_some();
    let mut last = vec![0; graph.nodes().len()];
    for (place, node) in graph.nodes().iter().enumerate() {
        let read = node.operands.iter().filter(|value| !is_filled(node, **value));
        read.for_each(|value| last[value.index()] = place);
    }
    graph.outputs().iter().for_each(|value| last[value.index()] = usize::MAX);
    last
}

impl Ascend {
    /// Puts a graph's work into a stream, whose context is entered. The result is memory of its own.
    pub(super) fn pass(
        &self,
        program: &Program,
        inputs: &[Arc<Memory>],
        sink: &mut Sink<'_>,
    ) -> Result<Arc<Memory>, Fault> {
        let graph = &program.graph;
        let mut calls = program.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last_reads(graph);
        let mut values: Vec<Option<Arc<Memory>>> = vec![None; graph.nodes().len()];
        for (place, (node, call)) in graph.nodes().iter().zip(&mut *calls).enumerate() {
            let operand = |at: usize| node.operands.get(at).and_then(|value| values.get(value.index())?.clone());
            values[place] = match &node.op {
                Op::Input(number) => inputs.get(*number).cloned(),
                Op::Reshape | Op::Bitcast => operand(0),
                _ if !is_called(node, last[place]) => None,
                _ => {
                    let at = [0, 1, 2].map(|at| operand(at).map_or(null_mut(), |memory| memory.address));
                    Some(self.step(graph, node, call, &at, sink)?)
                }
            };
            // The stream runs in order: what nothing reads any more serves the next node.
            for value in &node.operands {
                if last[value.index()] == place {
                    values[value.index()] = None;
                }
            }
        }
        let result = graph.outputs().first().and_then(|value| values.get(value.index())?.clone());
        let result = result.ok_or_else(missing)?;
        // Recordings write to their inputs and results again: no other value may be the same memory.
        if inputs.iter().any(|input| Arc::ptr_eq(input, &result)) {
            let own = sink.memory(&self.stream, result.bytes)?;
            self.copy(&own, &result, sink.queue)?;
            return Ok(own);
        }
        Ok(result)
    }

    pub(super) fn copy(&self, to: &Memory, from: &Memory, queue: Pointer) -> Result<(), Fault> {
        let (library, bytes) = (self.library(), to.bytes.min(from.bytes));
        // SAFETY: both hold that many bytes, in the stream's order.
        let code = unsafe { (library.copy_async)(to.address, to.bytes, from.address, bytes, abi::WITHIN, queue) };
        library.check("aclrtMemcpyAsync", code)
    }

    fn step(
        &self,
        graph: &Graph,
        node: &Node,
        call: &mut Option<Call>,
        at: &[Pointer; OPERANDS],
        sink: &mut Sink<'_>,
    ) -> Result<Arc<Memory>, Fault> {
        let library = self.library();
        let result = sink.memory(&self.stream, node.count() * node.dtype.bytes())?;
        let mut anew = None;
        // An executor whose tensors cannot be moved makes room for new ones.
        if call.as_mut().is_some_and(|call| call.bind(library, at, result.address).is_err()) {
            *call = None;
        }
        let call = match call {
            Some(kept) => kept,
            None => anew.insert(call::ask(library, graph, node, at, result.address)?),
        };
        let room = sink.room(&self.stream, call.workspace)?;
        call.run(library, room, sink.queue)?;
        Ok(result)
    }
}
