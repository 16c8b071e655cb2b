//! `cantus run`: any WGSL kernel over real files, on one device or on two to compare them.

mod compare;
pub mod contents;
mod fit;
pub mod job;
mod pixels;
mod serve;
mod stream;
pub mod textures;
mod watch;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use cantus::backend::{DeviceInfo, Registry};
use cantus::config::Fallback;
use cantus::link::{Linked, Linker};
use cantus::tensor::npy::Array;
use cantus::{Engine, Error, Kernel, Result};
use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use self::compare::{Difference, Tolerance};
use self::contents::{Colors, Format, Input};
pub use self::job::Job;
use super::colormap::Colormap;
use super::global::{Global, canonical, known_backend};
use super::output::OutputFile;
use super::parse::{self, Assignment, Invocations, NamedFile, NamedTensor};
use super::report;

/// Run a WGSL kernel over files, or serve requests from another program
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(group(ArgGroup::new("amount").required(true).args(["workgroups", "invocations", "stream", "serve"])))]
pub struct Arguments {
    /// The kernel: a file, the name of a shipped one (cantus kernels), or - for standard input
    #[arg(value_name = "KERNEL.wgsl", required_unless_present = "serve")]
    kernel: Option<PathBuf>,
    /// Answer requests from stdin until it ends; each is a line of JSON (wgsl, entry, set, workgroups, bindings) and the bindings' bytes
    #[arg(long, conflicts_with_all = ["kernel", "outputs", "compare", "json", "entry", "inputs", "zeros", "set", "repeat", "time", "watch"])]
    serve: bool,
    #[command(flatten)]
    rows: stream::ByRows,
    #[command(flatten)]
    given: Given,
    /// Write a read_write binding to a file after the run: .npy, .safetensors, .csv, .png, .bin (bytes in WGSL's layout), or - (.npy to standard output)
    #[arg(short, long = "output", value_name = "NAME=FILE")]
    outputs: Vec<NamedFile>,
    /// Colour map of a .png with one value per pixel
    #[arg(long, value_name = "NAME", default_value_t = Colormap::Viridis, ignore_case = true, hide_possible_values = true)]
    colormap: Colormap,
    /// Values of the first and the last colour [default: the smallest and the largest]
    #[arg(long, value_name = "MIN,MAX", value_parser = parse::range, allow_hyphen_values = true)]
    range: Option<(f32, f32)>,
    /// Run the kernel this many times, each on the buffers that the last run left
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Print the least, median and greatest time of a run
    #[arg(long)]
    time: bool,
    /// Run again whenever the kernel's file or an input changes, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Also run on a second device, and print the largest differences between the results
    #[arg(long, value_name = "BACKEND[:N]")]
    compare: Option<String>,
    /// With --compare: fail when a difference is larger; absolute, or with a unit as in 1e-6rel, 4ulp
    #[arg(long, value_name = "T", requires = "compare", allow_hyphen_values = true)]
    tolerance: Option<Tolerance>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// A kernel's inputs, and the size of the dispatch.
#[derive(Debug, Clone, Default, Args)]
pub struct Given {
    /// The entry point; needed when there are several
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Turn on a feature of the kernel's conditions: @if(NAME)
    #[arg(long = "feature", value_name = "NAME")]
    pub features: Vec<String>,
    /// Fill a binding from a file (.npy, .csv, .png, .jpg, .safetensors[#TENSOR], .bin: bytes in WGSL's layout), from standard input (-, a .npy), or
    /// with zeros, iota (0, 1, 2 …), random:SEED (floats from 0 to 1, integers over their whole range) or random:SEED:N (below N): one number
    /// per invocation, or a shape as in iota[480,640]
    #[arg(long = "in", value_name = "NAME=FROM")]
    pub inputs: Vec<Input>,
    /// Create a binding of zeros: y=f32[480,640], or y=f32[@x] with the shape of x; a texture by its format: y=rgba8unorm[@image]
    #[arg(long = "out", value_name = "NAME=DTYPE[SHAPE]")]
    pub zeros: Vec<NamedTensor>,
    /// Compute all levels of detail of input textures
    #[arg(long)]
    pub mips: bool,
    /// Set an override (SIZE=64), a uniform (n=7) or a member of one (params.a=2); lists for vectors (params.v=1,2,3)
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub set: Vec<Assignment>,
    /// Set a sampler's filter (smp=nearest, smp=linear) or another of its settings: smp.address=repeat, clamp-to-edge or mirror-repeat, one or
    /// three; smp.lod=0,4; smp.compare=less
    #[arg(long = "sampler", value_name = "NAME=VALUE")]
    pub samplers: Vec<Assignment>,
    /// Run this many workgroups along x, y and z
    #[arg(long, value_name = "X,Y,Z", value_parser = parse::extent, allow_hyphen_values = true)]
    pub workgroups: Option<[u32; 3]>,
    /// Run at least this many invocations along x, y and z, rounded up to whole workgroups; @NAME: one per element of that binding
    #[arg(long, value_name = "X,Y,Z|@NAME", value_parser = parse::invocations, allow_hyphen_values = true)]
    pub invocations: Option<Invocations>,
}

/// The usage line, written by hand, because clap would print the group as one long line.
const USAGE: &str = "\
cantus run [OPTIONS] KERNEL.wgsl --invocations X,Y,Z|@NAME
       cantus run [OPTIONS] KERNEL.wgsl --workgroups X,Y,Z
       cantus run [OPTIONS] KERNEL.wgsl --stream NAME,NAME
       cantus run [OPTIONS] --serve";

const EXAMPLES: &str = "\
Examples:
  cantus run saxpy.wgsl --in x=x.npy --in y=y.npy --set params.a=2 \\
      --invocations @y -o y=out.npy
  cantus run saxpy.wgsl --in x=iota --in y=zeros --set params.a=2 \\
      --invocations 8           prints the first results, as no -o saves them
  cantus run saxpy.wgsl --in x=iota[1000000] --in y=zeros[1000000] \\
      --set params.a=2 --invocations @x --repeat 100 --time
  cantus run life.wgsl --in cells=random:7:2[256,256] --out after=u32[@cells] \\
      --invocations @cells -o after=cells.png --range 0,1
      one round of a kernel from cantus new coral --kind job
  cantus run blur.wgsl --in image=photo.png --out blurred=rgba8unorm[@image] \\
      --invocations @image -o blurred=blurred.png
      pictures as textures; samplers are linear and clamp to the edge unless
      --sampler smp=nearest --sampler smp.address=repeat says otherwise
  cantus run saxpy.wgsl --stream x,y --in x=huge-x.npy --in y=huge-y.npy \\
      --set params.a=2 -o y=out.npy
  cantus --backend cpu run saxpy.wgsl --in x=x.npy --in y=y.npy \\
      --set params.a=2 --invocations @y --compare wgpu:1";

/// The result on one device.
pub struct Outcome {
    device: DeviceInfo,
    /// The bindings that were asked for or are compared, in the order of [`Job::results`].
    results: Vec<Array>,
    time: Duration,
    /// The duration of each run, if they were timed.
    runs: Vec<Duration>,
}

impl Outcome {
    /// The least, the median and the greatest time of a run.
    fn spread(&self) -> [Duration; 3] {
        let mut runs = self.runs.clone();
        runs.sort_unstable();
        let at = |place: usize| runs.get(place).copied().unwrap_or_default();
        [at(0), at(runs.len() / 2), at(runs.len().saturating_sub(1))]
    }
}

/// Runs the subcommand.
///
/// # Errors
/// As the library, and when the arguments do not fit the kernel.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let Some(file) = arguments.kernel.as_deref().filter(|_| !arguments.serve) else {
        serve::serve(global)?;
        return Ok(ExitCode::SUCCESS);
    };
    if arguments.rows.is_wanted()? {
        return stream::run(global, file, arguments);
    }
    if arguments.watch {
        return watch::again_and_again(global, file, arguments);
    }
    once(global, file, arguments, None)
}

/// Runs the kernel, on an engine that is there or a new one.
fn once(global: &Global, file: &Path, arguments: &Arguments, engine: Option<&Engine>) -> Result<ExitCode> {
    let kernel = read_kernel(file, arguments.given.entry.as_deref(), &arguments.given.features)?;
    let mut job = Job::new(kernel, &arguments.given)?;
    // Without a file to write, a person sees the first numbers, unless they are too many to fetch.
    let summarised = arguments.outputs.is_empty() && !arguments.json && job.written_bytes() <= SUMMARISED;
    job.read_back(&arguments.outputs, arguments.compare.is_some() || summarised)?;
    if arguments.json && arguments.outputs.iter().any(|file| file.path == Path::new("-")) {
        return Err(Error::invalid(
            "--json with -o NAME=-",
            "both are for standard output: write one of them to a file",
        ));
    }
    let formats = arguments.outputs.iter().map(|file| Format::of(&file.path)).collect::<Result<Vec<_>>>()?;
    let files = arguments.outputs.iter().map(|file| OutputFile::create(&file.path)).collect::<Result<Vec<_>>>()?;
    let made;
    let engine = match engine {
        Some(engine) => engine,
        None => {
            made = global.engine()?;
            &made
        }
    };
    let outcome = job.execute(engine, arguments.repeat, arguments.time)?;
    let colors = Colors { map: arguments.colormap, range: arguments.range };
    for ((file, format), named) in files.into_iter().zip(formats).zip(&arguments.outputs) {
        contents::write(file, format, job.result(&outcome.results, &named.name)?, &named.name, colors)?;
    }
    let compared = match &arguments.compare {
        Some(other) => Some(compare(global, arguments, &job, &outcome, other)?),
        None => None,
    };
    if arguments.json {
        report::print_json(&json(arguments, &job, &outcome, compared.as_ref())?)?;
    } else {
        say(arguments, &job, engine, &outcome);
        if arguments.outputs.is_empty() {
            dropped(&job, &outcome);
        }
        if let Some((other, differences)) = &compared {
            report::print(&compare::text(&outcome.device, &other.device, differences))?;
        }
    }
    let differences = compared.iter().flat_map(|(_, differences)| differences);
    let mut code = ExitCode::SUCCESS;
    for difference in differences {
        if let Some(excess) = arguments.tolerance.and_then(|tolerance| difference.excess(tolerance)) {
            let _ = writeln!(std::io::stderr(), "error: {excess}");
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Results of more bytes are not fetched to be summarised.
const SUMMARISED: u64 = 16 << 20;

/// Says what becomes of results that no file was named for.
fn dropped(job: &Job, outcome: &Outcome) {
    for (name, array) in job.results().zip(&outcome.results) {
        report::done(&format!("{name} {} (-o {name}=FILE keeps it)", contents::summary(array)));
    }
    if outcome.results.is_empty() {
        let names: Vec<&str> = job.written().collect();
        if !names.is_empty() {
            report::done(&format!("dropped: {} (-o NAME=FILE keeps one)", names.join(", ")));
        }
    }
}

/// The kernel of a file with what it imports, or the shipped one of that name.
///
/// # Errors
/// As [`Kernel::linked_file`]; [`Error::InvalidInput`] for features that no condition names.
pub fn from_file(path: &Path, features: &[String]) -> Result<Kernel> {
    if path.exists() || path.components().count() > 1 || path.extension().is_some() {
        if features.is_empty() {
            return Kernel::from_file(path);
        }
        let linker = linker(features);
        let kernel = Kernel::linked_file(&linker, path)?;
        return known_features(linker.link_file(path).ok().as_ref(), features).map(|()| kernel);
    }
    known_features(None, features)?;
    let shipped = cantus::ops::kernels();
    let name = shown(path);
    if let Some(kernel) = shipped.iter().find(|kernel| kernel.name() == name) {
        return kernel.kernel().cloned();
    }
    let names: Vec<&str> = shipped.iter().map(|kernel| kernel.name()).collect();
    let hint = parse::closest(&name, &names);
    Err(Error::Unreadable {
        path: name,
        reason: format!("there is no such file, nor a shipped kernel of that name{hint}"),
    })
}

fn linker(features: &[String]) -> Linker {
    features.iter().fold(Linker::new(), |linker, feature| linker.feature(feature, true))
}

/// A feature that no condition names is a slip of the pen.
fn known_features(linked: Option<&Linked>, features: &[String]) -> Result<()> {
    let known: Vec<&str> = linked.map(|linked| linked.features().collect()).unwrap_or_default();
    let Some(unknown) = features.iter().find(|feature| !known.contains(&feature.as_str())) else { return Ok(()) };
    let there = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
    Err(Error::invalid(
        format!("--feature {unknown}"),
        format!("the kernel has no condition of that name{} ({there})", parse::closest(unknown, &known)),
    ))
}

/// The files that a kernel's file imports from.
pub fn imported(path: &Path, features: &[String]) -> Vec<PathBuf> {
    let needs = std::fs::read_to_string(path).is_ok_and(|text| Linker::is_needed(&text));
    let linked = needs.then(|| linker(features).link_file(path).ok()).flatten();
    linked.map(|linked| linked.files().to_vec()).unwrap_or_default()
}

/// The kernel of a file, of a shipped kernel's name, or of standard input (`-`), at an entry point if one is named.
///
/// # Errors
/// As [`from_file`] and [`Kernel::with_entry_point`].
pub fn read_kernel(path: &Path, entry: Option<&str>, features: &[String]) -> Result<Kernel> {
    let kernel = if path == Path::new("-") {
        from_text(&contents::stdin_text()?, features)?
    } else {
        from_file(path, features)?
    };
    match entry {
        Some(entry) => kernel.with_entry_point(entry),
        None => Ok(kernel),
    }
}

/// Text from elsewhere may import from the library.
fn from_text(text: &str, features: &[String]) -> Result<Kernel> {
    if features.is_empty() {
        return Kernel::from_wgsl(text);
    }
    let linker = linker(features);
    let kernel = Kernel::linked(&linker, "wgsl", text)?;
    known_features(linker.link("wgsl", text).ok().as_ref(), features).map(|()| kernel)
}

fn compare(
    global: &Global,
    arguments: &Arguments,
    job: &Job,
    outcome: &Outcome,
    other: &str,
) -> Result<(Outcome, Vec<Difference>)> {
    let mut config = global.config()?;
    let (backend, device) = match other.split_once(':') {
        Some((backend, index)) => {
            config.set("device", index)?;
            (backend, config.device)
        }
        None => (other, None),
    };
    let backend = canonical(backend);
    known_backend(&backend)?;
    (config.backend, config.device) = (Some(backend), device);
    // A substitute would compare something else than what was asked for.
    config.fallback = Some(Fallback::Never);
    let engine = Engine::builder().registry(Registry::with_defaults()).config(config).build()?;
    let second = job.execute(&engine, arguments.repeat, arguments.time)?;
    let differences = job
        .results()
        .zip(outcome.results.iter().zip(&second.results))
        .map(|(name, (ours, theirs))| Difference::between(name, ours, theirs))
        .collect();
    Ok((second, differences))
}

fn say(arguments: &Arguments, job: &Job, engine: &Engine, outcome: &Outcome) {
    let files: Vec<String> = arguments.outputs.iter().map(|file| file.path.display().to_string()).collect();
    let arrow = if files.is_empty() { String::new() } else { format!(" -> {}", files.join(", ")) };
    let (kernel, device) = (job.kernel_name(), report::device_text(engine));
    let times = if arguments.repeat > 1 { format!(", {} times", arguments.repeat) } else { String::new() };
    report::done(&format!("{kernel} on {device}{times}, in {}{arrow}", report::time_text(outcome.time)));
    if arguments.time {
        let [least, median, greatest] = outcome.spread().map(report::time_text);
        report::done(&format!("a run: {least} at least, {median} in the middle, {greatest} at most"));
    }
}

fn json(
    arguments: &Arguments,
    job: &Job,
    outcome: &Outcome,
    compared: Option<&(Outcome, Vec<Difference>)>,
) -> Result<Value> {
    let outputs = arguments
        .outputs
        .iter()
        .map(|file| {
            let array = job.result(&outcome.results, &file.name)?;
            Ok(json!({ "name": file.name, "dtype": array.dtype.name(), "shape": array.shape, "file": file.path }))
        })
        .collect::<Result<Vec<Value>>>()?;
    Ok(json!({
        "kernel": arguments.kernel,
        "entry": job.kernel_name(),
        "device": report::device_json(&outcome.device),
        "ms": report::milliseconds(outcome.time),
        "runs": arguments.repeat,
        "run_ms": arguments.time.then(|| outcome.spread().map(report::milliseconds)),
        "outputs": outputs,
        "compare": compared.map(|(other, differences)| json!({
            "device": report::device_json(&other.device),
            "ms": report::milliseconds(other.time),
            "outputs": differences.iter().map(Difference::json).collect::<Vec<Value>>(),
        })),
    }))
}

/// A path for messages.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
