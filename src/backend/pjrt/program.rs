//! Compiled graphs.

use std::ffi::c_void;
use std::sync::Arc;

use super::abi::{self, Call, Compile, Execute, ExecuteOptions, Fault, ProgramText};
use super::plugin::Owned;
use super::shared::{Event, OnDevice, Shared, nested};
use crate::backend::Program;
use crate::graph::Graph;
use crate::tensor::DType;

type Typed = (DType, Vec<usize>);

/// A graph with one result, compiled for one device.
pub(super) struct PjrtProgram {
    executable: Arc<Owned>,
    client: Arc<Owned>,
    pub(super) graph: Arc<Graph>,
    pub(super) inputs: Vec<Typed>,
    output: Typed,
}

impl Program for PjrtProgram {}

impl PjrtProgram {
    pub(super) fn new(shared: &Shared, graph: &Arc<Graph>) -> Result<Self, Fault> {
        let [output] = graph.outputs() else {
            return Err(Fault { code: abi::UNIMPLEMENTED, message: "a graph of several results".to_owned() });
        };
        let ty = |value| (graph.dtype(value), graph.shape(value).to_vec());
        let (text, format, options) = (graph.stablehlo(), "mlir", abi::compile_options(shared.id));
        let program = nested(ProgramText {
            code: text.as_ptr().cast(),
            code_length: text.len(),
            format: format.as_ptr().cast(),
            format_length: format.len(),
        });
        let compiled = shared.plugin.call(
            Call::ClientCompile,
            Compile {
                client: shared.client.object,
                program: &raw const program,
                options: options.as_ptr().cast(),
                options_length: options.len(),
                executable: std::ptr::null_mut(),
            },
        )?;
        let executable =
            Owned::new(shared.plugin, compiled.executable, Call::ExecutableDestroy, Some(shared.client.clone()));
        let inputs = graph.inputs().iter().map(|value| ty(*value)).collect();
        Ok(Self { executable, client: shared.client.clone(), graph: graph.clone(), inputs, output: ty(*output) })
    }

    /// Whether this client compiled it.
    pub(super) fn is_of(&self, shared: &Shared) -> bool {
        Arc::ptr_eq(&self.client, &shared.client)
    }

    /// Starts it: the result, and the event of its end where the plugin gives one.
    pub(super) fn run(&self, shared: &Shared, inputs: &[OnDevice]) -> Result<(OnDevice, Option<Arc<Event>>), Fault> {
        let arguments: Vec<*mut c_void> = inputs.iter().map(|value| value.buffer.object).collect();
        let lists = [arguments.as_ptr()];
        let mut results = [std::ptr::null_mut::<c_void>()];
        let outputs = [results.as_mut_ptr()];
        let mut events = [std::ptr::null_mut::<c_void>()];
        let options =
            nested(ExecuteOptions { callbacks: [std::ptr::null_mut(); 2], callback_counts: [0; 2], launch: 0 });
        shared.plugin.call(
            Call::Execute,
            Execute {
                executable: self.executable.object,
                options: &raw const options,
                arguments: lists.as_ptr(),
                device_count: 1,
                argument_count: arguments.len(),
                outputs: outputs.as_ptr(),
                events: events.as_mut_ptr(),
                device: std::ptr::null_mut(),
            },
        )?;
        let [result] = results;
        if result.is_null() {
            return Err(Fault { code: abi::INTERNAL, message: "the plugin gave no result".to_owned() });
        }
        let [event] = events;
        let event = (!event.is_null()).then(|| shared.event(event));
        Ok((shared.value(result, self.output.0, self.output.1.clone()), event))
    }
}
