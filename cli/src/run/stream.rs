//! `cantus run --stream`: a kernel over files larger than memory, chunk by chunk.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cantus::engine::Value;
use cantus::error::Bytes;
use cantus::kernel::Access;
use cantus::stream::{Chunk, Npy, NpyFile, Rows, Sink, Source as _, Stream};
use cantus::tensor::npy::{self, Array};
use cantus::{DType, Error, Result, Tensor};
use clap::Args;
use serde_json::json;

use super::contents::{self, Colors, Format};
use super::fit::spread;
use super::job::{Amount, Job};
use super::{Given, read_kernel, shown};
use crate::global::Global;
use crate::output::{self, OutputFile};
use crate::parse::{self, Elements, Invocations, Shape};
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
            Some((_, flag)) => Err(Error::InvalidInput {
                what: flag.to_owned(),
                reason: "it needs --stream: name the files to read in chunks, as in --stream x,y".to_owned(),
            }),
            None => Ok(!self.stream.is_empty()),
        }
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
            _ => Err(Error::InvalidInput {
                what: format!("--set of {text}"),
                reason: "a chunk has @first (its first row), @rows, @before (rows that overlap) and @elements"
                    .to_owned(),
            }),
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
    let rows = &arguments.rows;
    let kernel = read_kernel(file, arguments.given.entry.as_deref(), &arguments.given.features)?;
    let is_streamed = |name: &str| rows.stream.iter().any(|streamed| streamed == name);
    // What is there once is what a run of one dispatch would be given.
    let mut given = Given { invocations: Some(Invocations::Counts([1; 3])), ..arguments.given.clone() };
    given.inputs.retain(|input| !is_streamed(&input.name));
    given.zeros.retain(|zeros| !matches!(&zeros.shape, Shape::Like(other) if is_streamed(other)));
    given.set.retain(|setting| !setting.value.starts_with('@'));
    let mut job = Job::new(kernel, &given)?;
    let mut sources = Vec::new();
    for name in &rows.stream {
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
    let place = |name: &str| rows.stream.iter().position(|streamed| streamed == name);
    let mut made = Vec::new();
    for zeros in &arguments.given.zeros {
        if let Shape::Like(other) = &zeros.shape
            && let Some(place) = place(other)
        {
            let Elements::Numbers(dtype) = zeros.elements else {
                return Err(job.fault(&zeros.name, "--stream reads rows of numbers, not textures"));
            };
            job.check_rows(&zeros.name, "--out", dtype, &[])?;
            made.push((zeros.name.clone(), place, dtype));
        }
    }
    let set = arguments.given.set.iter().filter(|setting| setting.value.starts_with('@'));
    let set = set.map(|setting| Ok((setting.name.clone(), Of::parse(&setting.value)?))).collect::<Result<Vec<_>>>()?;

    // Where the results go.
    let mut paths: Vec<(String, PathBuf)> = Vec::new();
    let mut once = Vec::new();
    for output in &arguments.outputs {
        let comes = is_streamed(&output.name) || made.iter().any(|(name, ..)| *name == output.name);
        if !comes {
            once.push(output.clone());
            continue;
        }
        let binding = job.parts().0.reflection().binding(&output.name).map(|(_, binding)| binding);
        if binding.is_some_and(|binding| binding.access == Access::Read) {
            return Err(job.fault(&output.name, "-o asks for it, but the kernel only reads it"));
        }
        if output.path.extension().is_none_or(|kind| kind != "npy") {
            return Err(job.fault(&output.name, "the rows of a stream are written to a .npy file (-o NAME=FILE.npy)"));
        }
        paths.push((output.name.clone(), output.path.clone()));
    }
    if rows.checkpoint.is_some() && !once.is_empty() {
        return Err(Error::InvalidInput {
            what: "--checkpoint".to_owned(),
            reason: format!(
                "{} is on the device for all chunks and would be lost (leave one of them out)",
                once[0].name
            ),
        });
    }
    job.read_back(&once, false)?;
    let formats = once.iter().map(|file| Format::of(&file.path)).collect::<Result<Vec<_>>>()?;
    let files = once.iter().map(|file| OutputFile::create(&file.path)).collect::<Result<Vec<_>>>()?;

    let engine = global.engine()?;
    let start = Instant::now();
    let (step, whole) = job.parts();
    let mut bound: Vec<(String, Bound)> = Vec::new();
    bound.extend(rows.stream.iter().enumerate().map(|(place, name)| (name.clone(), Bound::Read(place))));
    bound.extend(made.iter().map(|(name, place, dtype)| (name.clone(), Bound::Made(*place, *dtype))));
    for source in whole {
        bound.push((source.name().to_owned(), Bound::Whole(source.on(&engine)?, source.is_raw())));
    }
    let total: Option<u64> = sources.first().and_then(cantus::stream::Source::rows);
    let bytes: u64 = sources
        .iter()
        .map(|source| source.row().iter().product::<usize>() as u64 * source.dtype().bytes() as u64)
        .sum();
    let bar = total.filter(|rows| rows.saturating_mul(bytes) > 1 << 28).map(|rows| Progress::new(rows, "rows"));
    let counts_alone = bar.is_some() && paths.is_empty();
    let two_axes = step.reflection().workgroup_size[1] > 1;
    let work = |chunk: &Chunk| {
        let tensors = bound.iter().map(|(_, bound)| match bound {
            Bound::Read(place) => Ok(chunk.tensors()[*place].clone()),
            Bound::Made(place, dtype) => engine.zeros_of(*dtype, chunk.tensors()[*place].shape()),
            Bound::Whole(tensor, _) => Ok(tensor.clone()),
        });
        let tensors = tensors.collect::<Result<Vec<Tensor>>>()?;
        if chunk.rows() > 0 {
            let of = bound.iter().zip(&tensors);
            let of = of.map(|((name, bound), tensor)| (name.as_str(), tensor, matches!(bound, Bound::Whole(_, true))));
            let more: Vec<(String, Value)> = set.iter().map(|(path, of)| (path.clone(), of.value(chunk))).collect();
            step.dispatch_of(&engine, of, &more, amount(chunk.tensor(), two_axes)?).run()?;
            // Nothing is read back that would say how far it is.
            if counts_alone {
                engine.finish()?;
            }
        }
        let result =
            |name: &String| bound.iter().position(|(known, _)| known == name).map(|place| tensors[place].expr());
        Ok(paths.iter().filter_map(|(name, _)| result(name)).collect())
    };
    let mut sources = sources.into_iter();
    let Some(first) = sources.next() else { return Ok(ExitCode::SUCCESS) };
    let mut stream = sources.fold(Stream::new(&engine, first), |stream, source| stream.with(source));
    if let Some((before, after)) = rows.overlap {
        stream = stream.overlap(before, after);
    }
    if let Some(rows) = rows.chunk_rows {
        stream = stream.chunk_rows(rows as usize);
    }
    if let Some(path) = &rows.checkpoint {
        stream = stream.checkpoint(path).checkpoint_every(Duration::from_millis(rows.checkpoint_every));
    }
    let told = bar.clone();
    let stream = stream.on_progress(move |progress| {
        if let Some(bar) = &told {
            bar.set(progress.rows);
        }
    });
    let sinks = paths.iter().map(|(_, path)| -> Result<Box<dyn Sink>> {
        match (&rows.checkpoint, total) {
            (None, Some(rows)) => Ok(Box::new(RowsFile { file: Some(OutputFile::create(path)?), rows })),
            _ => Ok(Box::new(NpyFile::new(path))),
        }
    });
    let sinks = sinks.collect::<Result<Vec<_>>>()?;
    let done = stream.map_each(work, sinks);
    if let Some(bar) = bar {
        bar.clear();
    }
    done?;
    engine.finish()?;
    let time = start.elapsed();
    for ((file, format), output) in files.into_iter().zip(formats).zip(&once) {
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
    let all: Vec<String> = arguments.outputs.iter().map(|output| output.path.display().to_string()).collect();
    let rows = total.unwrap_or(0);
    if arguments.json {
        report::print_json(&json!({
            "kernel": file,
            "entry": job.kernel_name(),
            "device": report::device_json(&engine.selected().device),
            "ms": report::milliseconds(time),
            "rows": rows,
            "bytes": rows.saturating_mul(bytes),
            "outputs": arguments.outputs.iter().map(|output| json!({ "name": output.name, "file": output.path })).collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let arrow = if all.is_empty() { String::new() } else { format!(" -> {}", all.join(", ")) };
    Ok(report::done(&format!(
        "{} on {}, {rows} rows, {}, in {}{arrow}",
        job.kernel_name(),
        report::device_text(&engine),
        Bytes(rows.saturating_mul(bytes)),
        report::time_text(time)
    )))
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
    let counts = spread(tensor.shape(), 1 + usize::from(two_axes)).ok_or_else(|| Error::InvalidSize {
        what: "a chunk".to_owned(),
        reason: format!("its invocations exceed {} (make chunks smaller with --chunk-rows)", u32::MAX),
    })?;
    Ok(Amount::Invocations(counts))
}
