//! `cantus circuits`: quantum circuits from OpenQASM files.

use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cantus::tensor::npy;
use cantus::{DType, Engine, Error, Result};
use cantus_circuits::{Circuit, Compiled, Noise, Precision, Shots, Stream, run_noisy};
use clap::{Args, Subcommand};
use serde_json::json;

use super::global::Global;
use super::output::{OutputFile, fault};
use super::progress::Progress;
use super::{report, room};

/// Run and draw quantum circuits from OpenQASM files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cantus circuits run ghz.qasm --shots 1000 --seed 7
  cantus circuits run ansatz.qasm --set theta=0.3 --amplitudes state.npy
  cantus circuits run qft34.qasm --stream state.npy
  cantus circuits run bell.qasm --depolarising 0.001,0.01 --json
  cantus circuits draw ghz.qasm
  cantus circuits draw ghz.qasm -o ghz.svg
  cantus circuits bench qft20.qasm

Files are OpenQASM 2 or 3. Qubit 0 is the last letter of an outcome and the lowest
bit of an amplitude's number, as in Qiskit.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a circuit, and count its outcomes
    Run(RunArguments),
    /// Draw a circuit as text, or as an SVG picture
    Draw(DrawArguments),
    /// Measure how long a circuit's amplitudes take
    Bench(BenchArguments),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("written"))]
struct RunArguments {
    /// The OpenQASM file
    file: PathBuf,
    /// Runs, each of which measures what the circuit measures
    #[arg(long, value_name = "COUNT", default_value_t = 1024)]
    shots: usize,
    /// Seed: the same one gives the same outcomes
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Value of an input of the circuit
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, f64)>,
    /// Depolarising probabilities after each gate of one qubit, and of two
    #[arg(long, value_name = "ONE,TWO", value_delimiter = ',', num_args = 1..=2)]
    depolarising: Vec<f64>,
    /// Probability that a qubit falls from 1 to 0 after a gate
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.0)]
    damping: f64,
    /// Probabilities that a measured 0 reads 1, and that a 1 reads 0
    #[arg(long, value_name = "ZERO,ONE", value_delimiter = ',', num_args = 1..=2)]
    readout: Vec<f64>,
    /// Also write the amplitudes, before measurements at the end, to an .npy file of complex64
    #[arg(long, value_name = "FILE", group = "written")]
    amplitudes: Option<PathBuf>,
    /// Compute in that .npy file, for a state that is larger than memory: all amplitudes are read from it and written to it several times
    #[arg(long, value_name = "FILE", group = "written", conflicts_with_all = ["depolarising", "damping", "readout"])]
    stream: Option<PathBuf>,
    /// Write amplitudes in complex128 (the CPU has them)
    #[arg(long, requires = "written")]
    double: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DrawArguments {
    /// The OpenQASM file
    file: PathBuf,
    /// Output file for an SVG picture; without it, text is printed
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct BenchArguments {
    /// The OpenQASM files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Runs of each, of which the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// Value of an input of the circuits
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, f64)>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn setting(text: &str) -> std::result::Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("a name, =, and a number are expected")?;
    let value: f64 = value.parse().map_err(|_| format!("{value} is no number"))?;
    if value.is_finite() { Ok((name.to_owned(), value)) } else { Err(format!("{value} is not finite")) }
}

/// Runs the subcommand.
///
/// # Errors
/// What the files, the values and the device say.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Command::Run(arguments) => count(global, arguments),
        Command::Draw(arguments) => draw(arguments),
        Command::Bench(arguments) => bench(global, arguments),
    }
}

fn read(path: &Path) -> Result<Circuit> {
    let bytes = room::read(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| Error::file(path.display().to_string(), format!("it is no text: {error}")))?;
    Circuit::from_named_qasm(&path.display().to_string(), &text)
}

/// The values of a circuit's inputs, in its order.
fn values(circuit: &Circuit, set: &[(String, f64)]) -> Result<Vec<f64>> {
    let fault = |name: &str, reason: String| Error::invalid(format!("--set {name}"), reason);
    let names = circuit.parameters();
    if let Some((name, _)) = set.iter().find(|(name, _)| !names.contains(name)) {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(fault(name, format!("the circuit has no such input (it has {known})")));
    }
    let value = |name: &String| {
        let last = set.iter().rev().find(|(known, _)| known == name);
        last.map(|(_, value)| *value)
            .ok_or_else(|| fault(name, "the input has no value (give --set NAME=VALUE)".to_owned()))
    };
    names.iter().map(value).collect()
}

fn count(global: &Global, arguments: &RunArguments) -> Result<ExitCode> {
    let circuit = read(&arguments.file)?;
    let values = values(&circuit, &arguments.set)?;
    let pair = |given: &[f64]| (given.first().copied().unwrap_or(0.0), given.last().copied().unwrap_or(0.0));
    let ((one, two), (zero_wrong, one_wrong)) = (pair(&arguments.depolarising), pair(&arguments.readout));
    let noise =
        Noise::new().depolarising(one, two)?.amplitude_damping(arguments.damping)?.readout(zero_wrong, one_wrong)?;
    let engine = global.engine()?;
    let precision = if arguments.double { Precision::Double } else { Precision::Single };
    let start = Instant::now();
    let shots = match &arguments.stream {
        Some(path) => streamed(&engine, &circuit, &values, precision, arguments, path)?,
        None => run_noisy(&engine, &circuit, &values, &noise, arguments.shots, arguments.seed)?,
    };
    let time = start.elapsed();
    if let Some(path) = &arguments.amplitudes {
        let state = Compiled::new(&engine, &circuit, precision)?.state(&values)?;
        let mut file = begun(path, circuit.qubits(), precision)?;
        for strip in state.strips() {
            file.write_all(&strip.to_bytes()?).map_err(|error| fault(path, &error))?;
        }
        file.commit()?;
    }
    let counts = shots.counts();
    if arguments.json {
        let counts: serde_json::Map<_, _> = counts.into_iter().map(|(bits, count)| (bits, json!(count))).collect();
        return report::print_json(&json!({
            "qubits": circuit.qubits(),
            "gates": circuit.gates(),
            "shots": shots.len(),
            "seed": arguments.seed,
            "counts": counts,
            "milliseconds": report::milliseconds(time),
        }));
    }
    report::print(&table(&counts))?;
    let text = format!(
        "{} shots of {} qubits and {} gates in {} on {}",
        shots.len(),
        circuit.qubits(),
        circuit.gates(),
        report::time_text(time),
        report::device_text(&engine)
    );
    Ok(report::done(&text))
}

/// A file of amplitudes with its header.
fn begun(path: &Path, qubits: usize, precision: Precision) -> Result<OutputFile> {
    let dtype = match precision {
        Precision::Single => DType::Complex64,
        Precision::Double => DType::Complex128,
    };
    let mut file = OutputFile::create(path)?;
    file.expect((dtype.bytes() as u128).checked_shl(qubits as u32).filter(|_| qubits < 120).unwrap_or(u128::MAX))?;
    npy::write_header(&mut file, dtype, &[1 << qubits.min(62)]).map_err(|error| fault(path, &error))?;
    Ok(file)
}

/// Computes the final state in a file, and draws the outcomes from it.
fn streamed(
    engine: &Engine,
    circuit: &Circuit,
    values: &[f64],
    precision: Precision,
    arguments: &RunArguments,
    path: &Path,
) -> Result<Shots> {
    let mut file = begun(path, circuit.qubits(), precision)?;
    let mut amplitudes = file.anywhere()?;
    let header = amplitudes.stream_position().map_err(|error| fault(path, &error))?;
    let mut bar: Option<Progress> = None;
    let progress = |done: u64, all: u64| {
        bar.get_or_insert_with(|| Progress::new(all, "windows")).set(done);
        Ok(())
    };
    let stream = Stream::new(amplitudes, &path.display().to_string()).behind(header);
    let state = stream.run(engine, circuit, values, precision, progress);
    bar.inspect(Progress::clear);
    let shots = state?.measured(circuit, arguments.shots, arguments.seed)?;
    file.commit()?;
    Ok(shots)
}

/// Outcomes with their counts and bars, the most frequent ones if there are many.
fn table(counts: &[(String, u64)]) -> String {
    const MOST: usize = 64;
    const BAR: f64 = 32.0;
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let mut shown: Vec<&(String, u64)> = counts.iter().collect();
    if shown.len() > MOST {
        shown.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        shown.truncate(MOST);
    }
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|(bits, count)| {
            let bar = "█".repeat((*count as f64 / most as f64 * BAR).round() as usize);
            vec![if bits.is_empty() { "-".to_owned() } else { bits.clone() }, count.to_string(), bar]
        })
        .collect();
    let mut text = report::table(&["outcome", "count", ""], &rows);
    if counts.len() > MOST {
        let rest: u64 =
            counts.iter().map(|(_, count)| count).sum::<u64>() - shown.iter().map(|(_, count)| count).sum::<u64>();
        text += &format!("{} more outcomes, {rest} shots together (--json prints all)\n", counts.len() - MOST);
    }
    text
}

fn draw(arguments: &DrawArguments) -> Result<ExitCode> {
    let circuit = read(&arguments.file)?;
    let Some(path) = &arguments.output else { return report::print(&circuit.draw()) };
    let mut file = OutputFile::create(path)?;
    file.write_all(circuit.draw_svg().as_bytes()).map_err(|error| fault(path, &error))?;
    file.commit()?;
    Ok(report::done(&format!("{} gates on {} qubits", circuit.gates(), circuit.qubits())))
}

/// The median of times.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn bench(global: &Global, arguments: &BenchArguments) -> Result<ExitCode> {
    let engine = global.engine()?;
    let (mut rows, mut objects) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        let circuit = read(path)?;
        let values = values(&circuit, &arguments.set)?;
        let start = Instant::now();
        let compiled = Compiled::new(&engine, &circuit, Precision::Single)?;
        let planned = start.elapsed();
        let once = || -> Result<Duration> {
            let start = Instant::now();
            let state = compiled.state(&values)?;
            engine.finish()?;
            let time = start.elapsed();
            drop(state);
            Ok(time)
        };
        once()?;
        let time = median((0..arguments.runs).map(|_| once()).collect::<Result<_>>()?);
        let figures = compiled.figures();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        objects.push(json!({
            "circuit": name,
            "qubits": circuit.qubits(),
            "gates": figures.gates,
            "passes": figures.passes,
            "sweeps": figures.sweeps,
            "state_bytes": figures.state_bytes,
            "planning_milliseconds": report::milliseconds(planned),
            "milliseconds": report::milliseconds(time),
        }));
        rows.push(vec![
            name,
            circuit.qubits().to_string(),
            figures.gates.to_string(),
            figures.passes.to_string(),
            figures.sweeps.to_string(),
            report::time_text(planned),
            report::time_text(time),
        ]);
    }
    if arguments.json {
        return report::print_json(&json!(objects));
    }
    report::print(&report::table(&["circuit", "qubits", "gates", "passes", "sweeps", "planning", "time"], &rows))?;
    Ok(report::done(&format!("medians of {} on {}", arguments.runs, report::device_text(&engine))))
}
