//! Callers' kernels. Each runs in a process of its own, with limits on memory and processor time, and soon a lower
//! priority: what a kernel does to it, it does to itself. The process gets the work on its stdin and answers on its stdout, both a line of JSON and
//! bytes behind it. It ends with the service, however that ends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use cantus::backend::CancelFlag;
use cantus::kernel::{Access, AddressSpace, Reflection, StorageTextureAccess, TextureBinding};
use cantus::{DType, Engine, Kernel, Tensor, Texture};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::array::{Array, DTypeName, EXACT, Number};
use super::forms::KernelKind;
use super::output::Output;
use super::process::{LOOK, Process, limit};
use super::{distinct, escaped, once};
use crate::job::Shape;
use crate::priority::step_back;
use crate::problem::Problem;

/// A WGSL kernel of the caller's own.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelWork {
    /// The kind of this work.
    #[expect(dead_code, reason = "it is read to be checked")]
    pub kind: KernelKind,
    /// Its text.
    pub wgsl: String,
    /// The entry point, where there are several.
    #[serde(default)]
    pub entry: Option<String>,
    /// Values of overrides.
    #[serde(default, deserialize_with = "distinct")]
    #[schema(value_type = BTreeMap<String, f64>)]
    pub overrides: BTreeMap<String, Number>,
    /// Workgroups along x, y and z.
    #[schema(min_items = 1, max_items = 3)]
    pub workgroups: Vec<u32>,
    /// The contents of the kernel's variables, by their names. Uniforms take the bytes of their elements, textures images of height x width x
    /// channels.
    #[serde(default, deserialize_with = "distinct")]
    pub bindings: BTreeMap<String, Array>,
    /// Variables that begin as zeros; textures as bindings.
    #[serde(default, deserialize_with = "distinct")]
    pub zeros: BTreeMap<String, Zeros>,
    /// The variable that is answered.
    pub output: String,
}

/// A tensor of zeros.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Zeros {
    /// The dtype of its elements.
    pub dtype: DTypeName,
    /// Lengths of its axes.
    #[schema(max_items = 16)]
    pub shape: Vec<u32>,
}

/// The limits of a caller's kernel.
#[derive(Debug, Clone)]
pub struct KernelLimits {
    /// Bytes.
    pub memory: u64,
    /// Time from the start of its process to the answer.
    pub time: Duration,
    /// Bytes of its text.
    pub text: u64,
    /// Its device.
    pub device: String,
    /// The program and arguments that run it.
    pub command: Vec<std::ffi::OsString>,
    /// Folder in which its driver may keep files while it runs.
    pub folder: std::path::PathBuf,
}

const BINDINGS: usize = 16;

impl KernelWork {
    /// Binds an array that came as bytes.
    ///
    /// # Errors
    /// 422 for too many, or one that is there.
    pub fn bind(&mut self, name: &str, array: Array) -> Result<(), Problem> {
        if self.bindings.len() >= BINDINGS {
            return Err(Problem::invalid(format!("a kernel has at most {BINDINGS} bindings")).at("/bindings"));
        }
        once(!self.bindings.contains_key(name), "/bindings", name)?;
        self.bindings.insert(name.to_owned(), array);
        Ok(())
    }

    /// Checks sizes, and the arrays.
    ///
    /// # Errors
    /// 413 and 422.
    pub fn check(&mut self, limits: &KernelLimits) -> Result<(), Problem> {
        if self.wgsl.len() as u64 > limits.text {
            return Err(
                Problem::too_large(format!("a kernel's text has at most {} bytes here", limits.text)).at("/wgsl")
            );
        }
        if self.workgroups.is_empty() || self.workgroups.len() > 3 || self.workgroups.contains(&0) {
            return Err(Problem::invalid("one to three numbers, each at least 1").at("/workgroups"));
        }
        if self.workgroups.iter().try_fold(1_u32, |product, &count| product.checked_mul(count)).is_none() {
            return Err(Problem::invalid("all together at most 4294967295").at("/workgroups"));
        }
        if self.bindings.len() + self.zeros.len() > BINDINGS {
            return Err(Problem::invalid(format!("a kernel has at most {BINDINGS} bindings")).at("/bindings"));
        }
        for name in self.zeros.keys() {
            once(!self.bindings.contains_key(name), "/zeros", name)?;
        }
        if self.overrides.len() > 64 {
            return Err(Problem::invalid("at most 64 overrides are set").at("/overrides"));
        }
        self.overrides()?;
        let mut bytes = 0_u64;
        for (name, array) in &mut self.bindings {
            array.check(&format!("/bindings/{}", escaped(name)))?;
            bytes = bytes.saturating_add(array.length().unwrap_or(usize::MAX) as u64);
        }
        for zeros in self.zeros.values() {
            let sides = zeros.shape.iter().map(|&side| u64::from(side));
            let size = sides.fold(zeros.dtype.dtype().bytes() as u64, u64::saturating_mul);
            bytes = bytes.saturating_add(size);
        }
        // The output is there twice while it is answered.
        if bytes.saturating_add(self.produces()) > limits.memory {
            let detail = format!(
                "a kernel's bindings, with its output counted twice, may have at most {} bytes here",
                limits.memory
            );
            return Err(Problem::too_large(detail).at("/bindings"));
        }
        if !self.bindings.contains_key(&self.output) && !self.zeros.contains_key(&self.output) {
            return Err(Problem::invalid("the output must be one of the bindings or of the zeros").at("/output"));
        }
        Ok(())
    }

    /// Bytes of its output.
    pub fn produces(&self) -> u64 {
        let zeros = self.zeros.get(&self.output).map(|zeros| {
            let sides = zeros.shape.iter().map(|&side| u64::from(side));
            sides.fold(zeros.dtype.dtype().bytes() as u64, u64::saturating_mul)
        });
        let bound = || self.bindings.get(&self.output).and_then(Array::length).map_or(0, |length| length as u64);
        zeros.unwrap_or_else(bound)
    }

    /// Runs it in a process of its own.
    ///
    /// # Errors
    /// What the kernel or its limits say.
    #[expect(clippy::disallowed_methods, reason = "the lane's thread waits")]
    pub fn run(&self, limits: &KernelLimits, stop: &CancelFlag) -> Result<Output, Problem> {
        let message = self.message()?;
        let mut process = Process::begin(limits)?;
        let (stdin, stdout) = (process.child.stdin.take(), process.child.stdout.take());
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else { return Err(Problem::internal()) };
        // A process that does not read blocks its writer alone; killed, it ends it.
        let writer = std::thread::spawn(move || stdin.write_all(&message));
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        let most = limits.memory.saturating_add(1 << 20);
        let reader = std::thread::spawn(move || {
            step_back();
            let mut bytes = Vec::new();
            let _ = answer.send(match stdout.take(most).read_to_end(&mut bytes) {
                Err(error) if error.kind() == std::io::ErrorKind::OutOfMemory => Some(Err(Problem::no_memory())),
                _ => read(bytes),
            });
        });
        let outcome = loop {
            match answered.recv_timeout(LOOK) {
                Ok(Some(outcome)) => break outcome,
                // It ended without a word: how it ended says why.
                Ok(None) => break Err(process.ended()),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break Err(Problem::internal()),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            }
            if stop.is_cancelled() {
                break Err(Problem::cancelled());
            }
            if let Some(problem) = process.exceeded(limits) {
                break Err(problem);
            }
        };
        drop(process);
        let _ = writer.join();
        let _ = reader.join();
        outcome
    }

    /// The values of overrides, which go to the kernel as float64s.
    fn overrides(&self) -> Result<BTreeMap<String, f64>, Problem> {
        let exact = |(name, number): (&String, &Number)| {
            let value = number.real().filter(|_| number.whole().is_none_or(|whole| whole.abs() <= EXACT));
            let refused = || Problem::invalid("an override must be a number; whole numbers are at most 2^53 from 0");
            let value = value.ok_or_else(|| refused().at(format!("/overrides/{}", escaped(name))))?;
            Ok((name.clone(), value))
        };
        self.overrides.iter().map(exact).collect()
    }

    fn message(&self) -> Result<Vec<u8>, Problem> {
        let mut given = Vec::new();
        for (name, array) in &self.bindings {
            given.push(Given {
                name: name.clone(),
                dtype: array.dtype,
                shape: array.sides(),
                bytes: array.bytes()?.len(),
            });
        }
        let head = Head {
            wgsl: self.wgsl.clone(),
            entry: self.entry.clone(),
            overrides: self.overrides()?,
            workgroups: self.workgroups.clone(),
            given,
            zeros: self.zeros.clone(),
            output: self.output.clone(),
        };
        let mut line = serde_json::to_vec(&head).map_err(|_| Problem::internal())?;
        line.push(b'\n');
        let bytes = self.bindings.values().map(|array| array.bytes().map_or(0, <[u8]>::len)).sum::<usize>();
        let mut message = super::room(line.len() + bytes)?;
        message.extend(line);
        for array in self.bindings.values() {
            message.extend_from_slice(array.bytes()?);
        }
        Ok(message)
    }
}

/// The line of JSON that the process reads.
#[derive(Serialize, Deserialize)]
struct Head {
    wgsl: String,
    entry: Option<String>,
    overrides: BTreeMap<String, f64>,
    workgroups: Vec<u32>,
    given: Vec<Given>,
    zeros: BTreeMap<String, Zeros>,
    output: String,
}

#[derive(Serialize, Deserialize)]
struct Given {
    name: String,
    dtype: DTypeName,
    shape: Vec<usize>,
    bytes: usize,
}

/// The line of JSON that it answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Shape(Shape),
    Problem(Problem),
}

/// The answer; nothing where the process ended without one.
fn read(mut bytes: Vec<u8>) -> Option<Result<Output, Problem>> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let answer = bytes.get(..end).and_then(|line| serde_json::from_slice(line).ok());
    // Where it lies: another allocation of so much would cost every thread of the service.
    bytes.drain(..=end);
    Some(match answer {
        None => Err(Problem::internal()),
        Some(Answer::Problem(problem)) => Err(problem),
        Some(Answer::Shape(shape)) => {
            let expected =
                shape.dtype.parse().map(|dtype: DType| shape.shape.iter().product::<usize>() * dtype.bytes());
            if expected.is_ok_and(|expected| expected == bytes.len()) {
                Ok(Output { shape, bytes })
            } else {
                Err(Problem::internal())
            }
        }
    })
}

/// Runs the process: limits itself, reads, computes, answers.
pub fn work(memory: u64, seconds: u64, device: &str, parent: Option<u32>) -> Result<(), String> {
    limit(memory, seconds, device, parent)?;
    let outcome = compute(memory, seconds, device);
    let (answer, bytes) = match &outcome {
        Ok(output) => (Answer::Shape(output.shape.clone()), output.bytes.as_slice()),
        Err(problem) => (Answer::Problem(problem.clone()), &[][..]),
    };
    let mut stdout = std::io::stdout().lock();
    let line = serde_json::to_string(&answer).map_err(|error| error.to_string())?;
    let sent = writeln!(stdout, "{line}").and_then(|()| stdout.write_all(bytes)).and_then(|()| stdout.flush());
    sent.map_err(|error| error.to_string())
}

fn compute(memory: u64, seconds: u64, device: &str) -> Result<Output, Problem> {
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut line = String::new();
    input.by_ref().take(64 << 20).read_line(&mut line).map_err(|_| Problem::internal())?;
    let head: Head = serde_json::from_str(&line).map_err(|_| Problem::internal())?;
    let limits = (memory, Duration::from_secs(seconds));
    let engine = crate::engine::open(device, limits.0, Some(limits.1)).map_err(|_| Problem::internal())?;
    execute(&engine, &head, &mut input).map_err(|problem| *problem)
}

fn execute(engine: &Engine, head: &Head, input: &mut impl Read) -> Result<Output, Box<Problem>> {
    let of = |error: cantus::Error| Box::new(Problem::of(&error));
    let mut kernel = Kernel::from_wgsl(&head.wgsl).map_err(of)?;
    if let Some(entry) = &head.entry {
        kernel = kernel.with_entry_point(entry).map_err(of)?;
    }
    for (name, value) in &head.overrides {
        kernel = kernel.with_override(name, *value).map_err(of)?;
    }
    let reflection = kernel.reflection().map_err(of)?;
    let (mut bound, mut uniforms) = (BTreeMap::new(), Vec::new());
    let texture = |name: &str| reflection.textures.iter().find(|texture| texture.name == name);
    for given in &head.given {
        let mut bytes = cantus::memory::zeros("a binding", given.bytes).map_err(of)?;
        input.read_exact(&mut bytes).map_err(|_| Box::new(Problem::internal()))?;
        let uniform =
            reflection.binding(&given.name).is_some_and(|(_, binding)| binding.space == AddressSpace::Uniform);
        let (name, dtype) = (given.name.as_str(), given.dtype.dtype());
        if uniform {
            uniforms.push((name, bytes));
        } else if let Some(binding) = texture(name) {
            bound.insert(name, image(engine, binding, dtype, &given.shape, &bytes)?);
        } else {
            let tensor = engine.tensor_from_bytes(dtype, &given.shape, &bytes).map_err(of)?;
            bound.insert(name, Bound::Tensor(tensor));
        }
    }
    for (name, zeros) in &head.zeros {
        let shape: Vec<usize> = zeros.shape.iter().map(|&side| side as usize).collect();
        let dtype = zeros.dtype.dtype();
        let made = match texture(name) {
            Some(binding) => {
                // Checked with the request: all of them fit the memory.
                let bytes = shape.iter().fold(dtype.bytes(), |product, &side| product.saturating_mul(side));
                image(engine, binding, dtype, &shape, &cantus::memory::zeros("zeros", bytes).map_err(of)?)?
            }
            None => Bound::Tensor(engine.zeros_of(dtype, &shape).map_err(of)?),
        };
        bound.insert(name, made);
    }
    let output = bound.get(head.output.as_str()).filter(|_| is_written(reflection, &head.output)).ok_or_else(|| {
        Box::new(Problem::invalid("the output must be a variable that the kernel may write").at("/output"))
    })?;
    let mut workgroups = [1_u32; 3];
    workgroups.iter_mut().zip(&head.workgroups).for_each(|(side, &given)| *side = given);
    let mut dispatch = engine.dispatch(&kernel).workgroups(workgroups);
    for (name, bound) in &bound {
        dispatch = match bound {
            Bound::Tensor(tensor) => dispatch.bind(name, tensor),
            Bound::Texture(texture) => dispatch.bind(name, texture),
        };
    }
    for sampler in &reflection.samplers {
        dispatch = dispatch.bind(&sampler.name, sampler.usual());
    }
    for (name, bytes) in &uniforms {
        dispatch = dispatch.set_bytes(name, bytes);
    }
    dispatch.run().map_err(of)?;
    match output {
        Bound::Tensor(tensor) => Output::of(tensor).map_err(of),
        Bound::Texture(texture) => {
            let (dtype, shape, bytes) = texture.to_pixels().map_err(of)?;
            Ok(Output { shape: Shape { dtype: dtype.name().to_owned(), shape, hex: None }, bytes })
        }
    }
}

/// The object of a variable.
enum Bound {
    Tensor(Tensor),
    Texture(Texture),
}

/// The texture of an array of height x width x channels.
fn image(
    engine: &Engine,
    binding: &TextureBinding,
    dtype: DType,
    shape: &[usize],
    bytes: &[u8],
) -> Result<Bound, Box<Problem>> {
    let channels = shape.get(2).copied().unwrap_or(1);
    let format = Texture::format_for(binding, dtype, channels).ok_or_else(|| {
        let (name, detail) = (&binding.name, format!("{binding} has no format of {channels} channels of {dtype}"));
        Box::new(Problem::invalid(format!("{name}: {detail}")).at("/bindings"))
    })?;
    let made = engine.texture_from_pixels(dtype, shape, bytes, format);
    made.map(Bound::Texture).map_err(|error| Box::new(Problem::of(&error)))
}

/// Returns whether the kernel may write the variable of a name.
fn is_written(reflection: &Reflection, name: &str) -> bool {
    let buffer = reflection.binding(name).is_some_and(|(_, binding)| binding.access == Access::ReadWrite);
    let texture = reflection.textures.iter().find(|texture| texture.name == name).and_then(|texture| texture.storage);
    buffer || texture.is_some_and(|(_, access)| access != StorageTextureAccess::Read)
}
