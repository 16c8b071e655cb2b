//! Compiled graphs. `values` compiles and runs through it. The first run is noted on disk before it happens (`attempts`), because a plugin may end the
//! process. A program that gives an input's memory to its result is a second one, made when there is an input to give.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use super::abi::{self, Call, Compile, Execute, ExecuteOptions, Fault, ProgramText};
use super::event::Event;
use super::plugin::Owned;
use super::shared::{Landing, Pjrt, nested};
use crate::graph::{Graph, Value};
use crate::tensor::DType;
use crate::values::{Fetched, Ran, Run, Target};
use crate::wait::Awaited as _;
use cantus_base::listed::Listed;

/// A smaller result is not worth a second program.
const REUSED_BYTES: usize = 1 << 20;

/// A program of the plugin's.
pub(super) struct Executable {
    owned: Arc<Owned>,
    /// Its text, until it first runs.
    unused: Mutex<Option<String>>,
}

/// A compiled graph: as it is, and by input as one whose result takes that input's memory, made when there is one to take.
pub(super) struct Program {
    plain: Arc<Executable>,
    graph: Arc<Graph>,
    reusing: Mutex<Vec<(usize, Option<Arc<Executable>>)>>,
}

impl Pjrt {
    fn compiled(&self, text: String) -> Result<Arc<Executable>, Fault> {
        if let Some(message) = self.attempts.refusal(&text) {
            return Err(Fault { code: abi::UNIMPLEMENTED, message });
        }
        let _attempt = self.attempts.begin(&text);
        let (format, options) = ("mlir", abi::compile_options(self.id));
        let program = nested(ProgramText {
            code: text.as_ptr().cast(),
            code_length: text.len(),
            format: format.as_ptr().cast(),
            format_length: format.len(),
        });
        let compiled = self.plugin.call(
            Call::ClientCompile,
            Compile {
                client: self.client.object,
                program: &raw const program,
                options: options.as_ptr().cast(),
                options_length: options.len(),
                executable: std::ptr::null_mut(),
            },
        )?;
        let owned = Owned::new(self.plugin, compiled.executable, Call::ExecutableDestroy, Some(self.client.clone()));
        Ok(Arc::new(Executable { owned, unused: Mutex::new(Some(text)) }))
    }

    /// Compiles a program, runs it over zeros, and waits.
    pub(super) fn use_once(&self, text: &str) -> Option<()> {
        let graph = Graph::from_stablehlo(text).ok()?;
        let executable = self.compiled(text.to_owned()).ok()?;
        let zeros = |value: &Value| {
            let (dtype, shape) = (graph.dtype(*value), graph.shape(*value));
            self.to_device(&vec![0; shape.iter().product::<usize>() * dtype.bytes()], dtype, shape)
        };
        let inputs = graph.inputs().iter().map(zeros).try_listed().ok()?;
        self.start(&executable, &inputs).ok()?.1?.block().ok()
    }

    fn start(&self, executable: &Executable, inputs: &[Arc<Owned>]) -> Ran<Self> {
        let text = executable.unused.lock().unwrap_or_else(PoisonError::into_inner).take();
        let first = text.and_then(|text| self.attempts.begin(&text));
        let arguments: Vec<*mut c_void> = inputs.iter().map(|value| value.object).listed();
        let lists = [arguments.as_ptr()];
        let mut results = [std::ptr::null_mut::<c_void>()];
        let outputs = [results.as_mut_ptr()];
        let mut events = [std::ptr::null_mut::<c_void>()];
        let options = nested(ExecuteOptions {
            callbacks: [std::ptr::null_mut(); 2],
            callback_counts: [0; 2],
            launch: 0,
            kept: std::ptr::null(),
            kept_count: 0,
        });
        self.plugin.call(
            Call::Execute,
            Execute {
                executable: executable.owned.object,
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
        let event = (!event.is_null()).then(|| self.event(event));
        if let (Some(attempt), Some(event)) = (first, &event) {
            self.attempts.sweep();
            self.attempts.keep(event, attempt);
        }
        Ok((self.buffer(result), event))
    }

    /// The program that takes that input's memory; `None` where it is not worth it, or the plugin refuses.
    fn reusing(&self, program: &Program, input: usize) -> Option<Arc<Executable>> {
        let [output] = program.graph.outputs() else { return None };
        let count: usize = program.graph.shape(*output).iter().product();
        if count * program.graph.dtype(*output).bytes() < REUSED_BYTES {
            return None;
        }
        let mut known = program.reusing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = known.iter().find(|(place, _)| *place == input) {
            return known.clone();
        }
        let made = program.graph.stablehlo_reusing(input).map(|text| self.compiled(text));
        let made = made.and_then(|made| {
            made.inspect_err(|fault| tracing::debug!("no result takes its input's memory: {fault}")).ok()
        });
        known.push((input, made.clone()));
        made
    }
}

impl Target for Pjrt {
    type Fault = Fault;
    type Value = Arc<Owned>;
    type Event = Event;
    type Program = Program;
    /// The interface has none.
    type Recording = std::convert::Infallible;
    type Landing = Landing;

    const TITLE: &'static str = "a PJRT device";

    fn compile(&self, graph: &Arc<Graph>) -> Result<Program, Fault> {
        let plain = self.compiled(graph.stablehlo())?;
        Ok(Program { plain, graph: graph.clone(), reusing: Mutex::default() })
    }

    fn run(&self, program: &Program, inputs: &[Arc<Owned>], spare: Option<usize>) -> Ran<Self> {
        let reusing = spare.and_then(|input| self.reusing(program, input));
        self.start(reusing.as_ref().unwrap_or(&program.plain), inputs)
    }

    fn record(&self, _inputs: &[(DType, Vec<usize>)], _runs: &[Run<Self>]) -> Result<Option<Self::Recording>, Fault> {
        Ok(None)
    }

    fn places<'a>(&self, recording: &'a Self::Recording) -> (&'a [Arc<Owned>], &'a [Arc<Owned>]) {
        match *recording {}
    }

    fn replay(&self, recording: &Self::Recording, _inputs: &[Arc<Owned>]) -> Result<Option<Arc<Event>>, Fault> {
        match *recording {}
    }

    fn upload(&self, bytes: &[u8], dtype: DType, shape: &[usize]) -> Result<Arc<Owned>, Fault> {
        self.to_device(bytes, dtype, shape)
    }

    fn fetch(&self, value: &Arc<Owned>, dtype: DType, shape: &[usize]) -> Fetched<Self> {
        self.to_host(value, shape.len(), shape.iter().product::<usize>() * dtype.bytes())
    }

    /// Within a client.
    fn take(&self, other: &Self, value: &Arc<Owned>) -> Option<Result<Arc<Owned>, Fault>> {
        Arc::ptr_eq(&self.client, &other.client).then(|| self.copy_here(value))
    }
}
