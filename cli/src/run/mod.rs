//! `cantus run`: any WGSL kernel over real files, on one device or on two to compare them.

mod compare;
mod job;
mod serve;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use cantus::backend::{DeviceInfo, Registry};
use cantus::config::Fallback;
use cantus::tensor::npy::{self, Array};
use cantus::{Engine, Kernel, Result};
use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use self::compare::{Difference, Tolerance};
pub use self::job::Job;
use super::global::Global;
use super::output::{self, OutputFile};
use super::parse::{self, Assignment, NamedFile, NamedTensor};
use super::report;

/// Run a WGSL kernel over .npy files, or as many as another program asks for
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("amount").required(true).args(["workgroups", "invocations", "serve"])))]
pub struct Arguments {
    /// The kernel
    #[arg(value_name = "KERNEL.wgsl", required_unless_present = "serve")]
    kernel: Option<PathBuf>,
    /// Answer requests on stdin until it ends: a line of JSON (wgsl, entry, set, workgroups, bindings) and the bindings' bytes each
    #[arg(long, conflicts_with_all = ["kernel", "outputs", "compare", "json", "entry", "inputs", "zeros", "set"])]
    serve: bool,
    #[command(flatten)]
    given: Given,
    /// Write a read_write binding to a file after the run; NAME=FILE.bin has its bytes alone
    #[arg(short, long = "output", value_name = "NAME=FILE.npy")]
    outputs: Vec<NamedFile>,
    /// Run on a second device too, and print the largest differences of what was written
    #[arg(long, value_name = "BACKEND[:N]")]
    compare: Option<String>,
    /// With --compare: fail when a difference is larger; absolute, or with a unit as in 1e-6rel, 4ulp
    #[arg(long, value_name = "T", requires = "compare", allow_hyphen_values = true)]
    tolerance: Option<Tolerance>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// What a kernel is given, and how much of it runs.
#[derive(Debug, Clone, Default, Args)]
pub struct Given {
    /// The entry point; needed when there are several
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Fill a binding from a file; its dtype must be the shader's (f16, f32, f64, i32, u32, i64, u64). NAME=FILE.bin is bytes in WGSL's layout
    #[arg(long = "in", value_name = "NAME=FILE.npy")]
    pub inputs: Vec<NamedFile>,
    /// Make a binding of zeros: y=f32[480,640], or y=f32[@x] with the shape of x
    #[arg(long = "out", value_name = "NAME=DTYPE[SHAPE]")]
    pub zeros: Vec<NamedTensor>,
    /// Set an override (SIZE=64), a uniform (n=7) or a member of one (params.a=2); lists for vectors (params.v=1,2,3)
    #[arg(long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub set: Vec<Assignment>,
    /// Run this many workgroups by x, y and z
    #[arg(long, value_name = "X,Y,Z", value_parser = parse::extent, allow_hyphen_values = true)]
    pub workgroups: Option<[u32; 3]>,
    /// Run at least this many invocations by x, y and z, rounded up to whole workgroups
    #[arg(long, value_name = "X,Y,Z", value_parser = parse::extent, allow_hyphen_values = true)]
    pub invocations: Option<[u32; 3]>,
}

const EXAMPLES: &str = "\
Examples:
  cantus run saxpy.wgsl --in x=x.npy --in y=y.npy --set params.a=2 --invocations 1024 -o y=out.npy
  cantus run blur.wgsl --in image=in.npy --out blurred=f32[@image] --set RADIUS=3 \\
      --invocations 640,480 -o blurred=out.npy
  cantus --backend cpu run kernel.wgsl --in x=x.npy --out y=f32[4096] --workgroups 64 --compare wgpu:1";

/// What one device made of it.
pub struct Outcome {
    device: DeviceInfo,
    /// The bindings that were asked for or are compared, in the order of [`Job::results`].
    results: Vec<Array>,
    time: Duration,
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
    let kernel = read_kernel(file, arguments.given.entry.as_deref())?;
    let mut job = Job::new(kernel, &arguments.given)?;
    job.read_back(&arguments.outputs, arguments.compare.is_some())?;
    let files = arguments.outputs.iter().map(|file| OutputFile::create(&file.path)).collect::<Result<Vec<_>>>()?;
    let engine = global.engine()?;
    let outcome = job.execute(&engine)?;
    for (file, named) in files.into_iter().zip(&arguments.outputs) {
        write(file, job::is_raw(&named.path), job.result(&outcome.results, &named.name)?)?;
    }
    let compared = match &arguments.compare {
        Some(other) => Some(compare(global, &job, &outcome, other)?),
        None => None,
    };
    if arguments.json {
        report::print_json(&json(arguments, &job, &outcome, compared.as_ref())?)?;
    } else {
        say(arguments, &job, &engine, &outcome);
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

/// The kernel of a file, at an entry point if one is named.
///
/// # Errors
/// As [`Kernel::from_file`] and [`Kernel::with_entry_point`].
pub fn read_kernel(path: &Path, entry: Option<&str>) -> Result<Kernel> {
    let kernel = Kernel::from_file(path)?;
    match entry {
        Some(entry) => kernel.with_entry_point(entry),
        None => Ok(kernel),
    }
}

fn write(mut file: OutputFile, raw: bool, array: &Array) -> Result<()> {
    let shown = file.shown().to_owned();
    let header = if raw { Ok(()) } else { npy::write_header(&mut file, array.dtype, &array.shape) };
    header.and_then(|()| file.write_all(&array.bytes)).map_err(|error| output::fault(&shown, &error))?;
    file.commit()
}

fn compare(global: &Global, job: &Job, outcome: &Outcome, other: &str) -> Result<(Outcome, Vec<Difference>)> {
    let mut config = global.config()?;
    let (backend, device) = match other.split_once(':') {
        Some((backend, index)) => {
            config.set("device", index)?;
            (backend, config.device)
        }
        None => (other, None),
    };
    config.backend = Some(backend.to_owned());
    config.device = device;
    // A substitute would compare something else than what was asked for.
    config.fallback = Some(Fallback::Never);
    let engine = Engine::builder().registry(Registry::with_defaults()).config(config).build()?;
    let second = job.execute(&engine)?;
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
    report::done(&format!("{kernel} on {device}, in {}{arrow}", report::time_text(outcome.time)));
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
