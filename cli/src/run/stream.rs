//! `cantus run --stream`: a kernel over files larger than memory, chunk by chunk.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cantus::engine::Value;
use cantus::error::Bytes;
use cantus::fnv::Fnv;
use cantus::kernel::Access;
use cantus::ops::Expr;
use cantus::stream::{Chunk, Npy, NpyFile, Rows, Sink, Source, Stream};
use cantus::tensor::npy::{self, Array};
use cantus::{DType, Engine, Error, Result, Tensor};
use clap::Args;
use serde_json::json;

use super::contents::{self, Colors, Format};
use super::fit::spread;
use super::job::{Amount, Job};
use super::{Given, read_kernel, shown};
use crate::global::Global;
use crate::output::{self, OutputFile};
use crate::parse::{self, Elements, Invocations, NamedFile, Shape};
use crate::progress::Progress;
use crate::report;

/// A kernel run over rows.
#[derive(Debug, Clone, Default, Args)]
pub struct ByRows {
    /// Run over these bindings' .npy files chunk by chunk, along the first axis, with one invocation per element of the first binding (rows and
    /// columns by y and x if the kernel's workgroups have two axes). Outputs of the shape of one of them ([@x]) are written chunk by chunk;
    /// others are shared by all chunks. --memory-limit limits the memory
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', conflicts_with_all = ["compare", "repeat", "time", "watch", "workgroups", "invocations"])]
    pub stream: Vec<String>,
    /// With --stream: add this many rows before and after each chunk, for stencils; their results are cut off
    #[arg(long, value_name = "BEFORE,AFTER", value_parser = overlap)]
    overlap: Option<(usize, usize)>,
    /// With --stream: the maximum number of rows in a chunk [default: 4 MiB of rows on the CPU, 32 MiB elsewhere]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    chunk_rows: Option<u32>,
    /// With --stream: save the progress in this file, and resume from it after an interruption
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// With --checkpoint: the least time between two saves: milliseconds, or with a unit as in 500ms, 30s, 2m
    #[arg(long, value_name = "TIME", requires = "checkpoint", default_value = "5s", value_parser = parse::milliseconds)]
    checkpoint_every: u64,
}

impl ByRows {
    /// Returns whether the kernel runs over rows.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] when it does not but is given row settings.
    pub fn is_wanted(&self) -> Result<bool> {
        let told = [
            (self.overlap.is_some(), "--overlap"),
            (self.chunk_rows.is_some(), "--chunk-rows"),
            (self.checkpoint.is_some(), "--checkpoint"),
        ];
        match told.into_iter().find(|(told, _)| *told && self.stream.is_empty()) {
            Some((_, flag)) => {
                Err(Error::invalid(flag, "it needs --stream: name the files to read in chunks, as in --stream x,y"))
            }
            None => Ok(!self.stream.is_empty()),
        }
    }

    /// Returns the place of a binding that is read chunk by chunk.
    fn place(&self, name: &str) -> Option<usize> {
        self.stream.iter().position(|streamed| streamed == name)
    }
}

fn overlap(text: &str) -> Result<(usize, usize), String> {
    let sides = text.split_once(',').and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    sides.ok_or_else(|| "it takes two numbers of rows, as in 1,1".to_owned())
}

/// The values that `--set` takes from a chunk.
#[derive(Debug, Clone, Copy)]
enum Of {
    First,
    Rows,
    Before,
    Elements,
}

impl Of {
    fn parse(text: &str) -> Result<Self> {
        match text {
            "@first" => Ok(Self::First),
            "@rows" => Ok(Self::Rows),
            "@before" => Ok(Self::Before),
            "@elements" => Ok(Self::Elements),
            _ => Err(Error::invalid(
                format!("--set of {text}"),
                "a chunk has @first (its first row), @rows, @before (rows that overlap) and @elements",
            )),
        }
    }

    fn value(self, chunk: &Chunk) -> Value {
        let number = match self {
            Self::First => chunk.first_row(),
            Self::Rows => chunk.rows() as u64,
            Self::Before => chunk.before() as u64,
            Self::Elements => chunk.tensor().len() as u64,
        };
        Value::from([number].as_slice())
    }
}

/// A binding of a chunk.
enum Bound {
    /// The source of that place.
    Read(usize),
    /// Zeros of the shape of the source of that place.
    Made(usize, DType),
    /// There for all chunks.
    Whole(Tensor, bool),
}

/// Runs the kernel over all rows.
pub(super) fn run(global: &Global, file: &Path, arguments: &super::Arguments) -> Result<ExitCode> {
    let mut plan = Plan::new(file, arguments)?;
    let formats = plan.once.iter().map(|file| Format::of(&file.path)).collect::<Result<Vec<_>>>()?;
    let files = plan.once.iter().map(|file| OutputFile::create(&file.path)).collect::<Result<Vec<_>>>()?;
    let engine = global.engine()?;
    let start = Instant::now();
    let bound = plan.bound(&engine)?;
    let large = plan.count.filter(|rows| rows.saturating_mul(plan.row_bytes) > 1 << 28);
    let bar = large.map(|rows| Progress::new(rows, "rows"));
    let counts_alone = bar.is_some() && plan.by_chunk.is_empty();
    let told = bar.clone();
    let Some(stream) = plan.stream(&engine) else { return Ok(ExitCode::SUCCESS) };
    let stream = stream.on_progress(move |progress| {
        if let Some(bar) = &told {
            bar.set(progress.rows);
        }
    });
    let sinks = plan.sinks()?;
    let work = |chunk: &Chunk| {
        let results = plan.run(&engine, &bound, chunk)?;
        // Nothing is read back that would say how far it is.
        if counts_alone && chunk.rows() > 0 {
            engine.finish()?;
        }
        Ok(results)
    };
    let done = stream.map_each(work, sinks);
    if let Some(bar) = bar {
        bar.clear();
    }
    done?;
    engine.finish()?;
    let time = start.elapsed();
    for ((file, format), output) in files.into_iter().zip(formats).zip(&plan.once) {
        let tensor = bound.iter().find_map(|(name, bound)| match bound {
            Bound::Whole(tensor, _) if *name == output.name => Some(tensor),
            _ => None,
        });
        if let Some(tensor) = tensor {
            let array = Array::new(tensor.dtype(), tensor.shape(), tensor.to_bytes()?)?;
            let colors = Colors { map: arguments.colormap, range: arguments.range };
            contents::write(file, format, &array, &output.name, colors)?;
        }
    }
    plan.tell(&engine, time)
}

/// A kernel and its files, checked against each other.
struct Plan<'a> {
    arguments: &'a super::Arguments,
    /// With what all chunks share.
    job: Job,
    /// In the order of `--stream`.
    sources: Vec<Npy>,
    /// Rows of all chunks, if they are counted.
    count: Option<u64>,
    /// Bytes of a row of all sources.
    row_bytes: u64,
    /// Bindings that are made for each chunk, of the shape of the source of that place.
    made: Vec<(String, usize, DType)>,
    set: Vec<(String, Of)>,
    /// Results that are written chunk by chunk.
    by_chunk: Vec<NamedFile>,
    /// Results that all chunks share.
    once: Vec<NamedFile>,
}

impl<'a> Plan<'a> {
    fn new(file: &Path, arguments: &'a super::Arguments) -> Result<Self> {
        let kernel = read_kernel(file, arguments.given.entry.as_deref(), &arguments.given.features)?;
        let rows = &arguments.rows;
        // What is there once is what a run of one dispatch would be given.
        let mut given = Given { invocations: Some(Invocations::Counts([1; 3])), ..arguments.given.clone() };
        given.inputs.retain(|input| rows.place(&input.name).is_none());
        given.zeros.retain(|zeros| !matches!(&zeros.shape, Shape::Like(other) if rows.place(other).is_some()));
        given.set.retain(|setting| !setting.value.starts_with('@'));
        let mut job = Job::new(kernel, &given)?;
        let sources = sources(&job, arguments)?;
        let made = made(&job, arguments)?;
        let set = arguments.given.set.iter().filter(|setting| setting.value.starts_with('@'));
        let set = set.map(|setting| Ok((setting.name.clone(), Of::parse(&setting.value)?)));
        let set = set.collect::<Result<Vec<_>>>()?;
        let (by_chunk, once) = outputs(&job, arguments, &made)?;
        if let (Some(_), Some(first)) = (&rows.checkpoint, once.first()) {
            return Err(Error::invalid(
                "--checkpoint",
                format!("{} is on the device for all chunks and would be lost (leave one of them out)", first.name),
            ));
        }
        job.read_back(&once, false)?;
        let row_bytes = |source: &Npy| source.row().iter().product::<usize>() as u64 * source.dtype().bytes() as u64;
        let (count, row_bytes) = (sources.first().and_then(Source::rows), sources.iter().map(row_bytes).sum());
        Ok(Self { arguments, job, sources, count, row_bytes, made, set, by_chunk, once })
    }

    /// All bindings; what all chunks share is on the device.
    fn bound(&self, engine: &Engine) -> Result<Vec<(String, Bound)>> {
        let read = self.arguments.rows.stream.iter().enumerate();
        let mut bound: Vec<_> = read.map(|(place, name)| (name.clone(), Bound::Read(place))).collect();
        bound.extend(self.made.iter().map(|(name, place, dtype)| (name.clone(), Bound::Made(*place, *dtype))));
        for source in self.job.parts().1 {
            bound.push((source.name().to_owned(), Bound::Whole(source.on(engine)?, source.is_raw())));
        }
        Ok(bound)
    }

    /// Takes the sources as a stream.
    fn stream(&mut self, engine: &Engine) -> Option<Stream> {
        let rows = &self.arguments.rows;
        let mut sources = std::mem::take(&mut self.sources).into_iter();
        let first = sources.next()?;
        let mut stream = sources.fold(Stream::new(engine, first), Stream::with);
        if let Some((before, after)) = rows.overlap {
            stream = stream.overlap(before, after);
        }
        if let Some(rows) = rows.chunk_rows {
            stream = stream.chunk_rows(rows as usize);
        }
        if let Some(path) = &rows.checkpoint {
            stream = stream.checkpoint(path).checkpoint_every(Duration::from_millis(rows.checkpoint_every));
            stream = stream.named(self.name());
        }
        Some(stream)
    }

    /// Returns a name that tells this work from all other work on the same files: the kernel's text and entry point, the values that were set, what is
    /// there for all chunks, and what is bound to what.
    fn name(&self) -> String {
        let (step, whole) = self.job.parts();
        let (entry, given) = (&step.reflection().entry_point, &self.arguments.given);
        let mut hashes = [Fnv::new(), Fnv::second()];
        let mut add = |part: &[u8]| {
            // With its length: two parts are not one.
            hashes = hashes.map(|hash| hash.with(&(part.len() as u64).to_le_bytes()).with(part));
        };
        add(step.wgsl().as_bytes());
        for setting in &given.set {
            add(setting.name.as_bytes());
            add(setting.value.as_bytes());
        }
        add(format!("{:?} {:?} {:?}", self.arguments.rows.stream, given.zeros, self.made).as_bytes());
        self.by_chunk.iter().for_each(|output| add(output.name.as_bytes()));
        for source in whole {
            add(format!("{} {:?}", source.name(), source.shape()).as_bytes());
            add(source.values());
        }
        format!("{entry} {:016x}{:016x}", hashes[0].value(), hashes[1].value())
    }

    fn sinks(&self) -> Result<Vec<Box<dyn Sink>>> {
        let sinks = self.by_chunk.iter().map(|output| -> Result<Box<dyn Sink>> {
            match (&self.arguments.rows.checkpoint, self.count) {
                (None, Some(rows)) => Ok(Box::new(RowsFile { file: Some(OutputFile::create(&output.path)?), rows })),
                _ => Ok(Box::new(NpyFile::new(&output.path))),
            }
        });
        sinks.collect()
    }

    /// Runs the kernel over a chunk. Returns the results that are written chunk by chunk.
    fn run(&self, engine: &Engine, bound: &[(String, Bound)], chunk: &Chunk) -> Result<Vec<Expr>> {
        let tensors = bound.iter().map(|(_, bound)| match bound {
            Bound::Read(place) => Ok(chunk.tensors()[*place].clone()),
            Bound::Made(place, dtype) => engine.zeros_of(*dtype, chunk.tensors()[*place].shape()),
            Bound::Whole(tensor, _) => Ok(tensor.clone()),
        });
        let tensors = tensors.collect::<Result<Vec<Tensor>>>()?;
        if chunk.rows() > 0 {
            let (step, _) = self.job.parts();
            let of = bound.iter().zip(&tensors);
            let of = of.map(|((name, bound), tensor)| (name.as_str(), tensor, matches!(bound, Bound::Whole(_, true))));
            let more: Vec<(String, Value)> =
                self.set.iter().map(|(path, of)| (path.clone(), of.value(chunk))).collect();
            let two_axes = step.reflection().workgroup_size[1] > 1;
            step.dispatch_of(engine, of, &more, amount(chunk.tensor(), two_axes)?).run()?;
        }
        let result = |output: &NamedFile| {
            let place = bound.iter().position(|(known, _)| *known == output.name);
            place.map(|place| tensors[place].expr())
        };
        Ok(self.by_chunk.iter().filter_map(result).collect())
    }

    /// Says what was done.
    fn tell(&self, engine: &Engine, time: Duration) -> Result<ExitCode> {
        let outputs = &self.arguments.outputs;
        let rows = self.count.unwrap_or(0);
        let bytes = rows.saturating_mul(self.row_bytes);
        if self.arguments.json {
            report::print_json(&json!({
                "kernel": self.arguments.kernel,
                "entry": self.job.kernel_name(),
                "device": report::device_json(&engine.selected().device),
                "ms": report::milliseconds(time),
                "rows": rows,
                "bytes": bytes,
                "outputs": outputs.iter().map(|output| json!({ "name": output.name, "file": output.path })).collect::<Vec<_>>(),
            }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let files: Vec<String> = outputs.iter().map(|output| output.path.display().to_string()).collect();
        let arrow = if files.is_empty() { String::new() } else { format!(" -> {}", files.join(", ")) };
        Ok(report::done(&format!(
            "{} on {}, {rows} rows, {}, in {}{arrow}",
            self.job.kernel_name(),
            report::device_text(engine),
            Bytes(bytes),
            report::time_text(time)
        )))
    }
}

/// Opens the files that `--stream` names.
fn sources(job: &Job, arguments: &super::Arguments) -> Result<Vec<Npy>> {
    let mut sources = Vec::new();
    for name in &arguments.rows.stream {
        let input = arguments.given.inputs.iter().find(|input| input.name == *name);
        let path = match input.map(|input| &input.source) {
            Some(contents::Source::File(path, None)) if path.extension().is_some_and(|kind| kind == "npy") => path,
            Some(_) => return Err(job.fault(name, "--stream reads .npy files (give it as --in NAME=FILE.npy)")),
            None => return Err(job.fault(name, format!("--stream names it, but --in {name}=FILE.npy is missing"))),
        };
        let source = Npy::open(path)?;
        job.check_rows(name, &shown(path), source.dtype(), source.row())?;
        sources.push(source);
    }
    Ok(sources)
}

/// The bindings of `--out` that have the shape of a source: the source's place.
fn made(job: &Job, arguments: &super::Arguments) -> Result<Vec<(String, usize, DType)>> {
    let mut made = Vec::new();
    for zeros in &arguments.given.zeros {
        if let Shape::Like(other) = &zeros.shape
            && let Some(place) = arguments.rows.place(other)
        {
            let Elements::Numbers(dtype) = zeros.elements else {
                return Err(job.fault(&zeros.name, "--stream reads rows of numbers, not textures"));
            };
            job.check_rows(&zeros.name, "--out", dtype, &[])?;
            made.push((zeros.name.clone(), place, dtype));
        }
    }
    Ok(made)
}

/// The results that are written chunk by chunk, and those that all chunks share.
fn outputs(
    job: &Job,
    arguments: &super::Arguments,
    made: &[(String, usize, DType)],
) -> Result<(Vec<NamedFile>, Vec<NamedFile>)> {
    let is_by_chunk = |output: &&NamedFile| {
        arguments.rows.place(&output.name).is_some() || made.iter().any(|(name, ..)| *name == output.name)
    };
    let (by_chunk, once): (Vec<_>, Vec<_>) = arguments.outputs.iter().partition(is_by_chunk);
    for output in &by_chunk {
        let binding = job.parts().0.reflection().binding(&output.name).map(|(_, binding)| binding);
        if binding.is_some_and(|binding| binding.access == Access::Read) {
            return Err(job.fault(&output.name, "-o asks for it, but the kernel only reads it"));
        }
        if output.path.extension().is_none_or(|kind| kind != "npy") {
            return Err(job.fault(&output.name, "the rows of a stream are written to a .npy file (-o NAME=FILE.npy)"));
        }
    }
    Ok((by_chunk.into_iter().cloned().collect(), once.into_iter().cloned().collect()))
}

/// A `.npy` file of that number of rows, which Ctrl-C removes.
struct RowsFile {
    file: Option<OutputFile>,
    rows: u64,
}

impl Sink for RowsFile {
    fn write(&mut self, rows: Rows<'_>) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let shape = std::iter::once(usize::try_from(self.rows).unwrap_or(usize::MAX)).chain(rows.row.iter().copied());
        let header =
            if rows.first == 0 { npy::write_header(file, rows.dtype, &shape.collect::<Vec<_>>()) } else { Ok(()) };
        header.and_then(|()| file.write_all(rows.bytes)).map_err(|error| output::fault(file.shown(), &error))
    }

    fn end(&mut self) -> Result<()> {
        self.file.take().map_or(Ok(()), OutputFile::commit)
    }
}

/// An invocation for each element.
fn amount(tensor: &Tensor, two_axes: bool) -> Result<Amount> {
    let counts = spread(tensor.shape(), 1 + usize::from(two_axes)).ok_or_else(|| {
        Error::limit("a chunk", format!("its invocations exceed {} (make chunks smaller with --chunk-rows)", u32::MAX))
    })?;
    Ok(Amount::Invocations(counts))
}
