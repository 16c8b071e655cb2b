//! `cantus job`: several kernels over the same buffers, round after round, from a TOML file. Simulations and pipelines without a program.

mod buffers;
mod file;
mod film;
pub mod samplers;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cantus::kernel::AddressSpace;
use cantus::{Error, Result, Sampler};
use clap::Args;
use serde_json::json;

use self::buffers::{Buffers, First, contents_of};
use self::file::{Extent, JobFile, OutputTable, StepTable};
use self::film::Film;
use super::global::Global;
use super::output::OutputFile;
use super::progress::Computed;
use super::run::contents::{self, Colors, Format};
use super::run::job::{Amount, Step};
use super::run::read_kernel;
use super::{animation, output, parse, report};

/// Run several kernels over the same buffers, as a TOML file describes: simulations and pipelines
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// File to run, in the format below, or - for standard input; its paths are relative to its folder
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Run this many rounds, instead of the file's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = r#"The file:
  repeat = 200           # rounds; a round is all steps in order
  mips = true            # compute all levels of textures read from files

  [buffers]              # as for --in of cantus run: a file, zeros, iota or
  now = "random:7:2[256,256]"   # random:SEED, with a shape or one number for
  next = "zeros[@now]"   # each invocation of the first step that uses it
  photo = "photo.png"    # a texture if the step has one; or made by its format,
  sharp = "rgba8unorm[@photo]"   # as for --out: rgba8unorm[480,640]

  [[step]]
  kernel = "life.wgsl"   # a file, or a shipped kernel's name
  bind = { cells = "now", after = "next" }   # if the names differ
  invocations = [256, 256]   # or workgroups, or "@now": one for each element
  set = { birth = 3, params.rate = 0.5 }   # overrides, uniforms, their members
  samplers = { smp = "nearest" }   # or { filter = "linear", address = "repeat",
                         # lod = [0, 4], compare = "less" }; linear and clamped
                         # to the edge without
  advance = { "params.time" = [0.0, 0.01] }   # in the first round, and what
                         # each further round adds
  repeat = 2             # in a row; once = true: in the first round only
  swap = ["now", "next"] # buffers to swap afterwards

  [[output]]
  buffer = "now"
  file = "life.gif"      # .npy, .safetensors, .csv, .png, .bin, or animated:
                         # .gif, .apng; {} becomes the frame's number
  every = 4              # a frame every 4 rounds; without it only the last
  fps = 25
  colormap = "gray"
  range = [0, 1]

Examples:
  cantus job life.toml
  cantus --backend cpu job life.toml --repeat 1000"#;

/// A step of the file, with its buffers by place.
struct Action {
    /// Line in the file, from 1.
    number: usize,
    /// Runs in the first round only.
    once: bool,
    what: What,
}

enum What {
    Kernel {
        step: Box<Step>,
        /// A binding, and the buffer's place.
        bound: Vec<(String, usize)>,
        samplers: Vec<(String, Sampler)>,
        /// The buffer that it runs an invocation for each element of.
        like: Option<usize>,
        advance: Vec<(String, [f64; 2])>,
        repeat: u32,
    },
    Swap(usize, usize),
}

impl What {
    /// Returns how often kernels run in one round.
    fn dispatches(&self) -> u32 {
        match self {
            Self::Kernel { repeat, .. } => *repeat,
            Self::Swap(..) => 0,
        }
    }
}

/// The destination of a buffer.
struct Output {
    buffer: usize,
    table: OutputTable,
    to: To,
    colors: Colors,
}

enum To {
    /// At the end only, to this file.
    Last(Format, Option<OutputFile>),
    /// A file for each frame: `{}` is its number.
    Numbered(Format),
    Moving(Option<Film>),
}

/// Runs the subcommand.
///
/// # Errors
/// As `cantus run`; and when the file isn't understood, naming the line or the step.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let Plan { rounds, steps, actions, first, mut outputs } = Plan::read(arguments)?;
    for output in &mut outputs {
        output.open()?;
    }
    let engine = global.engine()?;
    let mut state = Buffers::new(&engine, first)?;
    let start = Instant::now();
    let mut progress = Computed::new(rounds.into(), "rounds");
    let mut dispatches = 0_u64;
    for round in 0..rounds {
        for action in actions.iter().filter(|action| round == 0 || !action.once) {
            state.act(&engine, &action.what, round).map_err(|error| in_step(action.number, error))?;
            dispatches += u64::from(action.what.dispatches());
        }
        for output in &mut outputs {
            output.frame(&state, round, rounds)?;
        }
        progress.recorded(&engine)?;
    }
    engine.finish()?;
    drop(progress);
    let time = start.elapsed();
    for output in &mut outputs {
        output.end(&state)?;
    }
    let device = state.device().unwrap_or_else(|| engine.selected().device.clone());
    let files: Vec<String> = outputs.iter().map(|output| output.table.file.display().to_string()).collect();
    if arguments.json {
        return report::print_json(&json!({
            "job": arguments.file,
            "rounds": rounds,
            "steps": steps,
            "dispatches": dispatches,
            "device": report::device_json(&device),
            "ran_on": report::ran_on(&engine),
            "ms": report::milliseconds(time),
            "outputs": outputs.iter().map(|output| json!({
                "buffer": output.table.buffer,
                "file": output.table.file,
                "frames": output.table.every.map(|every| rounds / every),
            })).collect::<Vec<_>>(),
        }));
    }
    let mut text = format!(
        "{}, {rounds} {} on {}, in {}",
        arguments.file.display(),
        if rounds == 1 { "round" } else { "rounds" },
        report::device_text(&engine),
        report::time_text(time)
    );
    if rounds > 1 {
        let _ = write!(text, " ({} each)", report::time_text(time.checked_div(rounds).unwrap_or(Duration::ZERO)));
    }
    if !files.is_empty() {
        let _ = write!(text, " -> {}", files.join(", "));
    }
    Ok(report::done(&text))
}

/// A file that was read, with what it names.
struct Plan {
    rounds: u32,
    /// Steps of the file.
    steps: usize,
    actions: Vec<Action>,
    /// The first contents of the buffers.
    first: Vec<First>,
    outputs: Vec<Output>,
}

impl Plan {
    fn read(arguments: &Arguments) -> Result<Self> {
        let file = JobFile::read(&arguments.file)?;
        // What came from standard input begins at the current folder: it has no parent.
        let folder = arguments.file.parent().unwrap_or(Path::new(""));
        let rounds = arguments.repeat.unwrap_or(file.repeat);
        let wrong = |reason: &str| Err(Error::file(arguments.file.display().to_string(), reason));
        if file.steps.is_empty() {
            return wrong("it has no [[step]]");
        }
        if rounds == 0 {
            return wrong("repeat = 0: a job runs at least once");
        }
        let names: Vec<&str> = file.buffers.keys().map(String::as_str).collect();
        let mut actions = Vec::new();
        for (number, table) in (1..).zip(&file.steps) {
            let whats = actions_of(table, folder, &names).map_err(|error| in_step(number, error))?;
            actions.extend(whats.into_iter().map(|what| Action { number, once: table.once, what }));
        }
        let first = contents_of(&file, folder, &names, &mut actions)?;
        let outputs = file.outputs.into_iter().map(|table| Output::new(table, folder, &names, rounds));
        Ok(Self { rounds, steps: file.steps.len(), actions, first, outputs: outputs.collect::<Result<_>>()? })
    }
}

/// Returns the actions of a step of the file: a kernel, a change of places, or both.
fn actions_of(table: &StepTable, folder: &Path, names: &[&str]) -> Result<Vec<What>> {
    let mut actions = Vec::new();
    let wrong = |what: &str, reason: &str| Err(Error::invalid(what, reason));
    if let Some(kernel) = &table.kernel {
        let mut like = None;
        let amount = match (&table.workgroups, &table.invocations) {
            (Some(counts), None) => counts.counts().map(Amount::Workgroups),
            (None, Some(Extent::Like(text))) => {
                // Its shape is known once the buffers are read.
                like = text.strip_prefix('@').map(|name| place(names, name)).transpose()?;
                like.map(|_| Amount::Invocations([1; 3]))
            }
            (None, Some(counts)) => counts.counts().map(Amount::Invocations),
            _ => return wrong("the dispatch", "say how much to run: either workgroups or invocations"),
        };
        let Some(amount) = amount else {
            return wrong(
                "workgroups or invocations",
                "it takes one to three counts of at least 1, as in [64, 64] (invocations also @BUFFER: one for each element)",
            );
        };
        if table.repeat == 0 {
            return wrong("repeat = 0", "a step runs at least once");
        }
        let beside = folder.join(kernel);
        let path = if beside.exists() || kernel.contains(['/', '.']) { beside } else { PathBuf::from(kernel) };
        let kernel = read_kernel(&path, table.entry.as_deref(), &[])?;
        let step = Step::new(kernel, &file::settings(&table.set)?, amount)?;
        let storage = step.reflection().bindings.iter().filter(|binding| binding.space == AddressSpace::Storage);
        let storage = storage.map(|binding| binding.name.as_str());
        let images = step.reflection().textures.iter().map(|texture| texture.name.as_str());
        let bindings: Vec<&str> = storage.chain(images).collect();
        if let Some(unknown) = table.bind.keys().find(|name| !bindings.contains(&name.as_str())) {
            let near = parse::closest(unknown, &bindings);
            return wrong(
                &format!("bind = {{ {unknown} = … }}"),
                &format!("the kernel has no such storage or texture{near}"),
            );
        }
        let bound = bindings.iter().map(|&binding| {
            let buffer = table.bind.get(binding).map_or(binding, String::as_str);
            Ok((binding.to_owned(), place(names, buffer)?))
        });
        let bound = bound.collect::<Result<Vec<_>>>()?;
        let advance = table.advance.iter().map(|(name, values)| (name.clone(), *values)).collect();
        let samplers = samplers::all(step.reflection(), &table.samplers)?;
        let (step, repeat) = (Box::new(step), table.repeat);
        actions.push(What::Kernel { step, bound, samplers, like, advance, repeat });
    } else if table.swap.is_none() {
        return wrong("a step", "it has neither kernel nor swap");
    }
    if let Some([a, b]) = &table.swap {
        actions.push(What::Swap(place(names, a)?, place(names, b)?));
    }
    Ok(actions)
}

/// The place of a buffer.
fn place(names: &[&str], name: &str) -> Result<usize> {
    names.iter().position(|known| *known == name).ok_or_else(|| {
        Error::invalid(
            format!("the buffer {name}"),
            format!("[buffers] has no such buffer{}; it has: {}", parse::closest(name, names), names.join(", ")),
        )
    })
}

impl Output {
    fn new(mut table: OutputTable, folder: &Path, names: &[&str], rounds: u32) -> Result<Self> {
        let buffer = place(names, &table.buffer)?;
        let colors = Colors { map: table.map()?, range: table.range.map(|[low, high]| (low, high)) };
        table.file = folder.join(&table.file);
        let wrong = |reason: &str| Err(Error::file(format!("the output {}", table.file.display()), reason));
        if colors.range.is_some_and(|(low, high)| !(low < high && (high - low).is_finite())) {
            return wrong("range is two numbers, the first less than the second");
        }
        if table.every.is_some_and(|every| every == 0 || every > rounds) {
            return wrong("every is at least 1 and at most the number of rounds");
        }
        let extension = output::extension(&table.file);
        let to = if matches!(extension.as_str(), "gif" | "apng") {
            table.every.get_or_insert(1);
            if !table.fps.is_none_or(|fps| (0.01..=1000.0).contains(&fps)) {
                return wrong("fps is a number from 0.01 to 1000");
            }
            let frames = table.every.map_or(1, |every| rounds / every);
            let format = animation::Format::of(&table.file)?;
            To::Moving(Some(Film::new(format, table.file.clone(), frames, table.fps)))
        } else if table.fps.is_some() {
            return wrong("only .gif and .apng have fps");
        } else {
            let format = Format::of(&table.file)?;
            let has_number = table.file.to_string_lossy().contains("{}");
            match table.every {
                Some(_) if has_number => To::Numbered(format),
                Some(_) => {
                    return wrong("with every, its name has a {} for the frame's number, or ends in .gif or .apng");
                }
                None => To::Last(format, None),
            }
        };
        Ok(Self { buffer, table, to, colors })
    }

    /// Creates the file that is written at the end: a place that can't be written is known before anything runs.
    fn open(&mut self) -> Result<()> {
        if let To::Last(_, file) = &mut self.to {
            *file = Some(OutputFile::create(&self.table.file)?);
        }
        Ok(())
    }

    /// Writes the frame of a round, if it has one.
    fn frame(&mut self, state: &Buffers, round: u32, rounds: u32) -> Result<()> {
        let Some(every) = self.table.every.filter(|every| (round + 1).is_multiple_of(*every)) else { return Ok(()) };
        let array = state.array(self.buffer)?;
        match &mut self.to {
            To::Moving(Some(film)) => film.frame(&array, self.colors),
            To::Numbered(format) => {
                let path = numbered(&self.table.file, (round + 1) / every, rounds / every);
                contents::write(OutputFile::create(&path)?, *format, &array, &self.table.buffer, self.colors)
            }
            To::Last(..) | To::Moving(None) => Ok(()),
        }
    }

    /// Writes what is written at the end.
    fn end(&mut self, state: &Buffers) -> Result<()> {
        match &mut self.to {
            To::Last(format, file) => {
                let Some(file) = file.take() else { return Ok(()) };
                contents::write(file, *format, &state.array(self.buffer)?, &self.table.buffer, self.colors)
            }
            To::Moving(film) => film.take().map_or(Ok(()), Film::end),
            To::Numbered(_) => Ok(()),
        }
    }
}

/// The name of a frame: as many digits as the last one takes.
fn numbered(path: &Path, frame: u32, frames: u32) -> PathBuf {
    let width = frames.to_string().len();
    PathBuf::from(path.to_string_lossy().replace("{}", &format!("{frame:0width$}")))
}

/// Says in which step of the file.
fn in_step(number: usize, error: Error) -> Error {
    if !error.is_input() {
        return error;
    }
    Error::invalid(format!("step {number}"), error.to_string())
}
