//! A run: the arguments checked against the kernel, so that what does not fit is said in terms of files and flags.

use std::time::Instant;

use cantus::engine::{DispatchBuilder, Value};
use cantus::error::OverrideError;
use cantus::kernel::{Access, AddressSpace, Binding, Layout, Reflection, StorageTextureAccess, TextureBinding};
use cantus::tensor::npy::Array;
use cantus::{DType, Engine, Error, Kernel, Result, Sampler, Tensor, Texture};

use super::contents;
use super::fit::{
    check_dtype, check_file, conversion, fault, found, known, near, parts, read_raw, results, shape_of, sides, spread,
    unbound,
};
use super::textures::{self, Image};
use super::{Given, Outcome, shown};
use crate::output;
use crate::parse::{Assignment, Elements, Invocations, NamedFile, NamedTensor, Shape};
use crate::progress::Computed;

/// A kernel with everything it is to be given.
pub struct Job {
    step: Step,
    tensors: Vec<Source>,
    images: Vec<Image>,
    samplers: Vec<(String, Sampler)>,
    mips: bool,
    /// Names of the bindings that are read back.
    results: Vec<String>,
}

/// A job's objects on a device.
pub struct OnDevice {
    /// In the order of the flags.
    pub tensors: Vec<Tensor>,
    textures: Vec<Texture>,
}

/// A kernel with its settings, and how much of it runs.
pub struct Step {
    pub(super) kernel: Kernel,
    pub(super) reflection: Reflection,
    uniforms: Vec<(String, Value)>,
    amount: Amount,
}

/// A binding's tensor before it is on a device.
pub struct Source {
    pub(super) name: String,
    pub(super) contents: Contents,
}

pub(super) enum Contents {
    Values(Array),
    /// Bytes in WGSL's own layout.
    Raw(Array),
    Zeros(DType, Vec<usize>),
}

/// The amount of work of a kernel.
#[derive(Clone, Copy)]
pub enum Amount {
    /// Workgroups by x, y and z.
    Workgroups([u32; 3]),
    /// At least this many invocations, rounded up to whole workgroups.
    Invocations([u32; 3]),
}

impl Amount {
    /// The shape of a tensor with an element for each invocation: slices, rows, columns. Elements that are vectors have their parts as the last
    /// axis.
    fn shape(self, reflection: &Reflection, binding: &Binding) -> Vec<usize> {
        let counts = match self {
            Self::Invocations(counts) => counts,
            Self::Workgroups(groups) => {
                let mut counts = groups;
                for (count, size) in counts.iter_mut().zip(reflection.workgroup_size) {
                    *count = count.saturating_mul(size);
                }
                counts
            }
        };
        let mut shape: Vec<usize> =
            counts.iter().rev().map(|&count| count as usize).skip_while(|&count| count == 1).collect();
        shape.extend(parts(&binding.layout));
        shape
    }
}

impl Job {
    /// Checks the arguments against the kernel and reads the input files.
    ///
    /// # Errors
    /// [`Error::Binding`], [`Error::Override`] or [`Error::InvalidInput`] naming the flag or file, [`Error::Unreadable`].
    pub fn new(kernel: Kernel, arguments: &Given) -> Result<Self> {
        let (amount, like) = match (arguments.workgroups, &arguments.invocations) {
            (Some(count), _) => (Amount::Workgroups(count), None),
            (None, Some(Invocations::Counts(count))) => (Amount::Invocations(*count), None),
            // Known below.
            (None, Some(Invocations::Like(name))) => (Amount::Invocations([1; 3]), Some(name)),
            (None, None) => {
                return Err(Error::invalid("the dispatch", "say how much to run: --workgroups or --invocations"));
            }
        };
        let step = Step::new(kernel, &arguments.set, amount)?;
        if let Some(again) = arguments.inputs.iter().filter(|input| input.source == contents::Source::Stdin).nth(1) {
            return Err(step.fault(&again.name, "standard input was read already"));
        }
        let samplers = textures::samplers(&step.reflection, &arguments.samplers)?;
        let (tensors, images, results) = (Vec::new(), Vec::new(), Vec::new());
        let mut job = Self { step, tensors, images, samplers, mips: arguments.mips, results };
        // What decides how much runs comes first: others may have a number for each invocation.
        let input = |name: &String| arguments.inputs.iter().find(|input| input.name == *name);
        let zeros = |name: &String| arguments.zeros.iter().find(|zeros| zeros.name == *name);
        let (first_input, first_zeros) = (like.and_then(input), like.and_then(zeros));
        match (like, first_input, first_zeros) {
            (None, ..) => {}
            (Some(name), Some(input), _) => {
                if matches!(input.source, contents::Source::Made(_, None)) {
                    return Err(job.fault(name, format!("--invocations @{name} takes its shape, which is unknown (give one, as in --in {name}=iota[480,640])")));
                }
                job.fill(input)?;
            }
            (Some(_), None, Some(zeros)) => job.make(zeros)?,
            (Some(name), None, None) => {
                found(&job.step, name, "--invocations")?;
                return Err(job.fault(
                    name,
                    format!("--invocations @{name} takes its shape, which neither --in nor --out gives"),
                ));
            }
        }
        if let Some(name) = like {
            let shape = job.shape_of(name).unwrap_or_default();
            job.step.run_for_each(name, shape, &format!("--invocations @{name}"))?;
        }
        for input in &arguments.inputs {
            if first_input.is_none_or(|first| !std::ptr::eq(first, input)) {
                job.fill(input)?;
            }
        }
        for zeros in &arguments.zeros {
            if first_input.is_some() || first_zeros.is_none_or(|first| !std::ptr::eq(first, zeros)) {
                job.make(zeros)?;
            }
        }
        Ok(job)
    }

    /// The texture of a name, if it is one and has nothing yet.
    fn texture(&self, name: &str, flag: &str) -> Result<Option<&TextureBinding>> {
        let Some(binding) = self.step.reflection.textures.iter().find(|texture| texture.name == name) else {
            return Ok(None);
        };
        if self.images.iter().any(|image| image.name == name) {
            return Err(self.fault(name, format!("{flag} names it a second time")));
        }
        Ok(Some(binding))
    }

    /// The shape of what a flag gave a name: of an image its height and width.
    fn shape_of(&self, name: &str) -> Option<Vec<usize>> {
        let image = self.images.iter().find(|image| image.name == name).map(|image| image.sides.to_vec());
        image.or_else(|| shape_of(&self.tensors, name))
    }

    /// Takes an `--in`.
    fn fill(&mut self, input: &contents::Input) -> Result<()> {
        if let Some(binding) = self.texture(&input.name, "--in")? {
            self.images.push(Image::read(&self.step, binding, input, self.mips)?);
            return Ok(());
        }
        unbound(&self.step, &self.tensors, &input.name, "--in")?;
        let read = Source::read(&self.step, &self.tensors, &input.name, &input.name, &input.source);
        self.tensors.push(read.map_err(|error| by_chunks(error, input))?);
        Ok(())
    }

    /// Takes an `--out`.
    fn make(&mut self, zeros: &NamedTensor) -> Result<()> {
        let texture = self.texture(&zeros.name, "--out")?;
        let dtype = match (zeros.elements, texture) {
            (Elements::Numbers(dtype), None) => dtype,
            (Elements::Texels(format), Some(binding)) => {
                let shape = match &zeros.shape {
                    Shape::Sides(sides) => sides.clone(),
                    Shape::Like(other) => self.shape_of(other).ok_or_else(|| {
                        self.fault(
                            &zeros.name,
                            format!("[@{other}] takes the shape of a binding that no earlier flag gives"),
                        )
                    })?,
                };
                let image = Image::zeros(&self.step, &zeros.name, binding, format, &shape)?;
                self.images.push(image);
                return Ok(());
            }
            (Elements::Numbers(dtype), Some(binding)) => {
                let reason = format!("--out makes numbers of {dtype}, and it is a {binding}: give its format");
                return Err(self.fault(&zeros.name, reason));
            }
            (Elements::Texels(format), None) => {
                found(&self.step, &zeros.name, "--out")?;
                return Err(self.fault(
                    &zeros.name,
                    format!("--out gives the texture format {format}, but it is a buffer: give a dtype"),
                ));
            }
        };
        let binding = unbound(&self.step, &self.tensors, &zeros.name, "--out")?;
        if binding.access == Access::Read {
            return Err(self.fault(&zeros.name, "it is only read: fill it with --in, not --out"));
        }
        let shape = match &zeros.shape {
            Shape::Like(other) if self.images.iter().any(|image| image.name == *other) => {
                self.shape_of(other).unwrap_or_default()
            }
            shape => sides(&self.step.reflection, &self.tensors, &zeros.name, shape)?,
        };
        check_dtype(&self.step.reflection, binding, dtype, "--out makes", "")?;
        self.tensors.push(Source { name: zeros.name.clone(), contents: Contents::Zeros(dtype, shape) });
        Ok(())
    }

    /// The names of the bindings that the kernel may write.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        let reflection = &self.step.reflection;
        let names = self.tensors.iter().map(|source| source.name.as_str());
        let names =
            names.filter(|name| reflection.binding(name).is_some_and(|(_, own)| own.access == Access::ReadWrite));
        names.chain(self.images.iter().map(|image| image.name.as_str()).filter(|name| is_stored(reflection, name)))
    }

    /// Their bytes.
    pub fn written_bytes(&self) -> u64 {
        let image = |name: &str| self.images.iter().find(|image| image.name == name).map_or(0, Image::bytes);
        let of = |name: &str| {
            self.tensors.iter().find(|source| source.name == name).map_or_else(|| image(name), Source::bytes)
        };
        self.written().map(of).fold(0, u64::saturating_add)
    }

    /// Says what [`Job::execute`] reads back: what `outputs` name, and with `all` everything that the kernel may write.
    ///
    /// # Errors
    /// [`Error::Binding`] for an output that the kernel does not write or that was given nothing.
    pub fn read_back(&mut self, outputs: &[NamedFile], all: bool) -> Result<()> {
        let reflection = &self.step.reflection;
        let (images, buffers): (Vec<&NamedFile>, Vec<&NamedFile>) =
            outputs.iter().partition(|output| reflection.textures.iter().any(|texture| texture.name == output.name));
        self.results = results(&self.step, &self.tensors, buffers.into_iter(), all)?;
        let mut images: Vec<&str> = images.into_iter().map(|output| output.name.as_str()).collect();
        if let Some(read) = images.iter().find(|name| !is_stored(reflection, name)) {
            return Err(self.fault(read, "-o asks for it, but the kernel only reads it"));
        }
        if all {
            images
                .extend(self.images.iter().map(|image| image.name.as_str()).filter(|name| is_stored(reflection, name)));
        }
        for name in images {
            if !self.images.iter().any(|image| image.name == name) {
                let remedy =
                    format!("-o asks for it, but it was given neither --in {name}=FILE nor --out {name}=FORMAT[SHAPE]");
                return Err(self.fault(name, remedy));
            }
            if !self.results.iter().any(|known| known == name) {
                self.results.push(name.to_owned());
            }
        }
        Ok(())
    }

    /// The entry point's name.
    pub fn kernel_name(&self) -> &str {
        &self.step.reflection.entry_point
    }

    /// The names of what [`Job::execute`] reads back, in order.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        self.results.iter().map(String::as_str)
    }

    /// The result of that name.
    ///
    /// # Errors
    /// [`Error::InvalidState`] when it was not read back.
    pub fn result<'a>(&self, results: &'a [Array], name: &str) -> Result<&'a Array> {
        let found = self.results().zip(results).find(|(known, _)| *known == name);
        found.map(|(_, array)| array).ok_or_else(|| Error::state(format!("-o {name}"), "the binding was not read back"))
    }

    /// Runs `repeat` times in a row on the engine's device, and reads back. `timed`: each run ends before the next begins.
    ///
    /// # Errors
    /// As the library's dispatch and transfers.
    pub fn execute(&self, engine: &Engine, repeat: u32, timed: bool) -> Result<Outcome> {
        let ready = self.on(engine)?;
        let start = Instant::now();
        let mut runs = Vec::new();
        let mut progress = (repeat > 1).then(|| Computed::new(repeat.into(), "runs"));
        for _ in 0..repeat {
            let start = Instant::now();
            self.record(engine, &ready, &[]).run()?;
            if timed {
                engine.finish()?;
                runs.push(start.elapsed());
            }
            if let Some(progress) = &mut progress {
                progress.recorded(engine)?;
            }
        }
        engine.finish()?;
        let time = start.elapsed();
        drop(progress);
        let mut results = Vec::new();
        for name in &self.results {
            let place = self.tensors.iter().position(|source| source.name == *name);
            if let Some(tensor) = place.and_then(|place| ready.tensors.get(place)) {
                results.push(Array::new(tensor.dtype(), tensor.shape(), tensor.to_bytes()?)?);
            }
            let image = self.images.iter().position(|image| image.name == *name);
            if let Some(texture) = image.and_then(|place| ready.textures.get(place)) {
                results.push(Image::array(texture)?);
            }
        }
        // Where it ran: what is bound is on that device, also after a fallback.
        let bound = ready.tensors.first().map(Tensor::device).or_else(|| ready.textures.first().map(Texture::device));
        let device = bound.unwrap_or_else(|| engine.selected().device.clone());
        Ok(Outcome { device, results, time, runs })
    }
}

impl Job {
    /// The kernel with its settings, and what was given whole, for who dispatches by chunks.
    pub fn parts(&self) -> (&Step, &[Source]) {
        (&self.step, &self.tensors)
    }

    /// Checks that a binding takes rows of that dtype and shape from a file.
    ///
    /// # Errors
    /// [`Error::Binding`] where it does not.
    pub fn check_rows(&self, name: &str, from: &str, dtype: DType, row: &[usize]) -> Result<()> {
        let binding = unbound(&self.step, &self.tensors, name, "--stream")?;
        let shape: Vec<usize> = std::iter::once(0).chain(row.iter().copied()).collect();
        check_dtype(&self.step.reflection, binding, dtype, &format!("{from} holds"), &conversion(binding))?;
        Array::new(dtype, &shape, Vec::new()).map(drop)
    }

    /// The error for what a binding cannot be.
    pub fn fault(&self, name: &str, reason: impl Into<String>) -> Error {
        self.step.fault(name, reason)
    }
}

/// The parts of a run, for who runs a job again and again.
#[cfg(feature = "viewer")]
impl Job {
    /// Returns the kernel's reflection.
    pub fn reflection(&self) -> &Reflection {
        &self.step.reflection
    }

    /// Returns whether a flag set the uniform of that path.
    pub fn is_set(&self, path: &str) -> bool {
        self.step.uniforms.iter().any(|(set, _)| set == path)
    }

    /// The names of the bindings that have tensors or textures, in the order of [`OnDevice::from`], and whether the kernel writes them.
    pub fn bound(&self) -> impl Iterator<Item = (&str, bool)> {
        let reflection = &self.step.reflection;
        let tensors = self.tensors.iter().map(|source| {
            let binding = reflection.binding(&source.name);
            (source.name.as_str(), binding.is_some_and(|(_, binding)| binding.access == Access::ReadWrite))
        });
        tensors.chain(self.images.iter().map(|image| (image.name.as_str(), is_stored(reflection, &image.name))))
    }

    /// A fresh tensor or texture for the binding of that place in [`Job::bound`]: the file's values, or zeros.
    ///
    /// # Errors
    /// As the library's transfers.
    pub fn make_bound(&self, engine: &Engine, place: usize) -> Result<Option<Bound>> {
        if let Some(source) = self.tensors.get(place) {
            return source.on(engine).map(|tensor| Some(Bound::Tensor(tensor)));
        }
        let image = place.checked_sub(self.tensors.len()).and_then(|place| self.images.get(place));
        image.map(|image| image.on(engine).map(Bound::Texture)).transpose()
    }
}

/// A binding's object on a device.
#[cfg(feature = "viewer")]
#[derive(Clone)]
pub enum Bound {
    Tensor(Tensor),
    Texture(Texture),
}

#[cfg(feature = "viewer")]
impl From<Vec<Bound>> for OnDevice {
    fn from(all: Vec<Bound>) -> Self {
        let mut ready = Self { tensors: Vec::new(), textures: Vec::new() };
        for bound in all {
            match bound {
                Bound::Tensor(tensor) => ready.tensors.push(tensor),
                Bound::Texture(texture) => ready.textures.push(texture),
            }
        }
        ready
    }
}

impl Job {
    /// Fresh tensors and textures of everything that was given.
    ///
    /// # Errors
    /// As the library's transfers.
    pub fn on(&self, engine: &Engine) -> Result<OnDevice> {
        let tensors = self.tensors.iter().map(|source| source.on(engine)).collect::<Result<_>>()?;
        let textures = self.images.iter().map(|image| image.on(engine)).collect::<Result<_>>()?;
        Ok(OnDevice { tensors, textures })
    }

    /// A dispatch with everything set; `more` uniforms beside those of the flags.
    pub fn record<'a>(
        &'a self,
        engine: &'a Engine,
        ready: &'a OnDevice,
        more: &'a [(String, Value)],
    ) -> DispatchBuilder<'a> {
        let bound = self.tensors.iter().zip(&ready.tensors);
        let bound = bound.map(|(source, tensor)| (source.name.as_str(), tensor, source.is_raw()));
        let mut dispatch = self.step.dispatch(engine, bound, more);
        for (image, texture) in self.images.iter().zip(&ready.textures) {
            dispatch = dispatch.bind(&image.name, texture);
        }
        for (name, sampler) in &self.samplers {
            dispatch = dispatch.bind(name, sampler);
        }
        dispatch
    }
}

impl Step {
    /// Checks the settings against the kernel.
    ///
    /// # Errors
    /// [`Error::Binding`] or [`Error::Override`] for a setting that the kernel doesn't have or take.
    pub fn new(kernel: Kernel, settings: &[Assignment], amount: Amount) -> Result<Self> {
        let (kernel, rest) = set_overrides(kernel, settings)?;
        let reflection = kernel.reflection()?.clone();
        let uniforms = rest.into_iter().map(|rest| uniform(&reflection, rest)).collect::<Result<Vec<_>>>()?;
        Ok(Self { kernel, reflection, uniforms, amount })
    }

    /// Returns the kernel's reflection.
    pub fn reflection(&self) -> &Reflection {
        &self.reflection
    }

    /// Returns the kernel's text, with what it imports.
    pub fn wgsl(&self) -> &str {
        self.kernel.wgsl()
    }

    /// Sets the amount to an invocation for each element of a shape: along as many axes as workgroups have. The vectors of a binding that has
    /// that name count as one element each.
    ///
    /// # Errors
    /// [`Error::Limit`] for `what` when a side is too long.
    pub fn run_for_each(&mut self, binding: &str, mut shape: Vec<usize>, what: &str) -> Result<()> {
        let reflection = &self.reflection;
        let parts = reflection.binding(binding).and_then(|(_, binding)| parts(&binding.layout));
        if parts.is_some() && shape.last().copied() == parts {
            shape.pop();
        }
        let axes = reflection.workgroup_size.iter().rposition(|&size| size > 1).map_or(1, |last| last + 1);
        let counts = spread(&shape, axes)
            .ok_or_else(|| Error::limit(what, format!("its shape {shape:?} has a side of more than {}", u32::MAX)))?;
        self.amount = Amount::Invocations(counts);
        Ok(())
    }

    /// The error for what a binding cannot be.
    pub fn fault(&self, name: &str, reason: impl Into<String>) -> Error {
        fault(&self.reflection, name, reason.into())
    }

    /// A dispatch with everything set: `bound` are bindings, their tensors, and whether those are bytes in WGSL's layout; `more` uniforms beside
    /// those that were given.
    pub fn dispatch<'a>(
        &'a self,
        engine: &'a Engine,
        bound: impl Iterator<Item = (&'a str, &'a Tensor, bool)>,
        more: &'a [(String, Value)],
    ) -> DispatchBuilder<'a> {
        self.dispatch_of(engine, bound, more, self.amount)
    }

    /// The same for another amount.
    pub fn dispatch_of<'a>(
        &'a self,
        engine: &'a Engine,
        bound: impl Iterator<Item = (&'a str, &'a Tensor, bool)>,
        more: &'a [(String, Value)],
        amount: Amount,
    ) -> DispatchBuilder<'a> {
        let mut dispatch = engine.dispatch(&self.kernel);
        for (binding, tensor, raw) in bound {
            dispatch = if raw { dispatch.bind_raw(binding, tensor) } else { dispatch.bind(binding, tensor) };
        }
        for (path, value) in self.uniforms.iter().chain(more) {
            dispatch = dispatch.set(path, value.clone());
        }
        match amount {
            Amount::Workgroups(count) => dispatch.workgroups(count),
            Amount::Invocations(count) => dispatch.invocations(count),
        }
    }
}

impl Source {
    /// Reads the contents for a binding of a step, under a name of its own. `earlier` are those whose shapes it may
    /// take.
    ///
    /// # Errors
    /// [`Error::Binding`] when it doesn't fit the binding, [`Error::Unreadable`] and [`Error::InvalidFile`] naming the file.
    pub fn read(step: &Step, earlier: &[Self], name: &str, binding: &str, source: &contents::Source) -> Result<Self> {
        let reflection = &step.reflection;
        let binding = found(step, binding, "the input")?;
        let of = |contents| Self { name: name.to_owned(), contents };
        let (array, from) = match source {
            contents::Source::File(path, _) if contents::is_raw(path) => {
                return Ok(of(Contents::Raw(read_raw(reflection, binding, path)?)));
            }
            contents::Source::File(path, tensor) => (contents::read(path, tensor.as_deref(), binding)?, shown(path)),
            contents::Source::Stdin => (contents::read_stdin()?, "standard input".to_owned()),
            contents::Source::Made(made, shape) => {
                let shape = match shape {
                    Some(shape) => sides(reflection, earlier, name, shape)?,
                    None => step.amount.shape(reflection, binding),
                };
                let dtype = binding.layout.scalar().and_then(DType::of_scalar).ok_or_else(|| {
                    let reason = format!(
                        "zeros, iota and random fill scalars and vectors of one type; the shader has {}",
                        binding.layout
                    );
                    fault(reflection, name, reason)
                })?;
                (contents::make(*made, dtype, &shape)?, "what is made".to_owned())
            }
        };
        check_file(reflection, binding, &from, &array)?;
        Ok(of(Contents::Values(array)))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its shape; of bytes in WGSL's layout, their number in words.
    pub fn shape(&self) -> &[usize] {
        match &self.contents {
            Contents::Values(array) | Contents::Raw(array) => &array.shape,
            Contents::Zeros(_, shape) => shape,
        }
    }

    /// The bytes of what was read or made; none of zeros.
    pub fn values(&self) -> &[u8] {
        match &self.contents {
            Contents::Values(array) | Contents::Raw(array) => &array.bytes,
            Contents::Zeros(..) => &[],
        }
    }

    /// Returns whether it is bytes in WGSL's layout.
    pub fn is_raw(&self) -> bool {
        matches!(self.contents, Contents::Raw(_))
    }

    fn bytes(&self) -> u64 {
        match &self.contents {
            Contents::Values(array) | Contents::Raw(array) => array.bytes.len() as u64,
            Contents::Zeros(dtype, shape) => {
                shape.iter().fold(dtype.bytes() as u64, |bytes, &side| bytes.saturating_mul(side as u64))
            }
        }
    }

    /// A fresh tensor of it.
    ///
    /// # Errors
    /// As the library's transfers.
    pub fn on(&self, engine: &Engine) -> Result<Tensor> {
        match &self.contents {
            Contents::Values(array) | Contents::Raw(array) => {
                engine.tensor_from_bytes(array.dtype, &array.shape, &array.bytes)
            }
            Contents::Zeros(dtype, shape) => engine.zeros_of(*dtype, shape),
        }
    }
}

/// A file that memory does not hold may be read chunk by chunk.
fn by_chunks(error: Error, input: &contents::Input) -> Error {
    match (error, &input.source) {
        (Error::Limit(limit), contents::Source::File(path, None)) if output::extension(path) == "npy" => {
            limit.with_remedy(&format!("--stream {} reads it in chunks", input.name)).into()
        }
        (error, _) => error,
    }
}

/// Returns whether a kernel stores to the texture of a name.
fn is_stored(reflection: &Reflection, name: &str) -> bool {
    let found = reflection.textures.iter().find(|texture| texture.name == name);
    found.is_some_and(|texture| !matches!(texture.storage, None | Some((_, StorageTextureAccess::Read))))
}

/// A `--set` that is no override, so must be a uniform; or else the error to give.
struct Uniform<'a> {
    setting: &'a Assignment,
    no_override: Option<Error>,
}

/// Sets what is an override, and returns the rest.
fn set_overrides(kernel: Kernel, settings: &[Assignment]) -> Result<(Kernel, Vec<Uniform<'_>>)> {
    let mut kernel = kernel;
    let mut rest = Vec::new();
    for setting in settings {
        if setting.name.contains('.') {
            rest.push(Uniform { setting, no_override: None });
            continue;
        }
        let value = match setting.value.as_str() {
            "true" => Some(1.0),
            "false" => Some(0.0),
            text => match text.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok().map(f64::from),
                None => text.parse::<f64>().ok(),
            },
        };
        // A value that is no number is tried as NaN, which no override takes: the error says whether there is one at all.
        match kernel.with_override(&setting.name, value.unwrap_or(f64::NAN)) {
            Ok(changed) => kernel = changed,
            Err(error) => rest.push(Uniform { setting, no_override: Some(error) }),
        }
    }
    Ok((kernel, rest))
}

/// The path of the first member of that name.
fn member_path(layout: &Layout, path: &str, name: &str) -> Option<String> {
    let Layout::Struct { members, .. } = layout else { return None };
    members.iter().find_map(|member| {
        let path = format!("{path}.{}", member.name);
        if member.name == name { Some(path) } else { member_path(&member.layout, &path, name) }
    })
}

/// The path and value of a uniform.
fn uniform(reflection: &Reflection, Uniform { setting, no_override }: Uniform<'_>) -> Result<(String, Value)> {
    let binding = setting.name.split('.').next().unwrap_or_default();
    if reflection.binding(binding).is_none() {
        let mut uniforms = reflection.bindings.iter().filter(|known| known.space == AddressSpace::Uniform);
        if let (Some(Error::Override { name, fault }), Some(path)) =
            (&no_override, uniforms.find_map(|known| member_path(&known.layout, &known.name, &setting.name)))
        {
            let fault = format!("{fault}; the member of that name is set by --set {path}=…");
            return Err(Error::Override { name: name.clone(), fault: OverrideError::Unknown(fault) });
        }
        return Err(no_override.unwrap_or_else(|| {
            fault(
                reflection,
                binding,
                format!("--set {} does not fit{}: {}", setting.name, near(reflection, binding), known(reflection)),
            )
        }));
    }
    let value = value(&setting.value).ok_or_else(|| {
        fault(
            reflection,
            binding,
            format!("--set {}: \"{}\" is not a number, nor a list of numbers", setting.name, setting.value),
        )
    })?;
    Ok((setting.name.clone(), value))
}

/// Numbers as exactly as they are written: integers stay integers.
fn value(text: &str) -> Option<Value> {
    let numbers = |text: &str| match text.trim() {
        "true" => "1".to_owned(),
        "false" => "0".to_owned(),
        number => number.to_owned(),
    };
    let parts: Vec<String> = text.split(',').map(numbers).collect();
    fn all<T: std::str::FromStr>(parts: &[String]) -> Option<Vec<T>> {
        parts.iter().map(|part| part.parse().ok()).collect()
    }
    if let Some(values) = all::<i64>(&parts) {
        return Some(Value::from(values.as_slice()));
    }
    if let Some(values) = all::<u64>(&parts) {
        return Some(Value::from(values.as_slice()));
    }
    all::<f64>(&parts).map(|values| Value::from(values.as_slice()))
}
