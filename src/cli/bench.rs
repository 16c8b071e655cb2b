//! `cantus bench`: how long the field family takes on each device of this machine. A first impression; `benches/` holds the
//! measurements with peers.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use cantus::backend::{DeviceInfo, Registry};
use cantus::config::Fallback;
use cantus::engine::survey;
use cantus::ops::{self, FieldParams};
use cantus::{Engine, Error, Result, Tensor};
use clap::Args;
use serde_json::{Value, json};

use super::global::Global;
use super::parse::Size;
use super::report;

const FEWEST_ROUNDS: usize = 5;
const MOST_ROUNDS: usize = 200;

/// Time the field family on every device, or on the one of --backend and --device
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Only what has this in its name, as in "coherence" or "field 512x512"
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Columns and rows; several may be given [default: 512x512, 2048x2048, 4096x4096]
    #[arg(long = "size", value_name = "WIDTHxHEIGHT")]
    sizes: Vec<Size>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cantus bench --filter field
  cantus --backend cpu bench --size 1024x1024 --json

Each figure is the time from the call until the result is there on the device; of coherence, on the host. The devices take
turns; one run of each goes uncounted, then at least five, for about a second.";

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Field,
    PhiPattern,
    Coherence,
}

impl Op {
    const ALL: [Self; 3] = [Self::Field, Self::PhiPattern, Self::Coherence];

    fn name(self) -> &'static str {
        match self {
            Self::Field => "field",
            Self::PhiPattern => "phi_pattern",
            Self::Coherence => "coherence",
        }
    }
}

/// A device with the engine that holds it.
struct Contestant {
    device: DeviceInfo,
    engine: Engine,
}

/// An op of a size on one device.
struct Row {
    op: Op,
    size: Size,
    device: DeviceInfo,
    /// In the order of time.
    times: Vec<Duration>,
}

impl Row {
    fn median(&self) -> Duration {
        self.times.get(self.times.len() / 2).copied().unwrap_or_default()
    }

    fn least(&self) -> Duration {
        self.times.first().copied().unwrap_or_default()
    }
}

/// What could not be timed, and why.
struct Failure {
    what: String,
    device: DeviceInfo,
    error: Error,
}

/// Runs the subcommand.
///
/// # Errors
/// When there is no device at all, or the filter leaves nothing.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let cases = cases(arguments)?;
    let mut failures = Vec::new();
    let (contestants, machine) = contestants(global, &mut failures)?;
    let mut rows = Vec::new();
    let bar = report::progress(cases.len() as u64, "cases");
    for (op, size) in cases {
        rows.extend(time(op, size, &contestants, &mut failures));
        bar.inc(1);
    }
    bar.finish_and_clear();
    if arguments.json {
        report::print_json(&json(&machine, &rows, &failures))
    } else {
        report::print(&text(&rows, &failures))
    }
}

fn cases(arguments: &Arguments) -> Result<Vec<(Op, Size)>> {
    let square = |side| Size { width: side, height: side };
    let given = !arguments.sizes.is_empty();
    let sizes = if given { arguments.sizes.clone() } else { vec![square(512), square(2048), square(4096)] };
    let all = Op::ALL.into_iter().flat_map(|op| sizes.iter().map(move |&size| (op, size)));
    let chosen: Vec<(Op, Size)> = all.filter(|&(op, size)| case_name(op, size).contains(&arguments.filter)).collect();
    if chosen.is_empty() {
        return Err(Error::InvalidInput {
            what: format!("--filter \"{}\"", arguments.filter),
            reason: "nothing has this in its name (the names are like \"field 512x512\", \"phi_pattern 512x512\", \"coherence 512x512\")".to_owned(),
        });
    }
    Ok(chosen)
}

fn case_name(op: Op, size: Size) -> String {
    format!("{} {}x{}", op.name(), size.width, size.height)
}

/// Every device, or those that the flags name; and the machine in words.
fn contestants(global: &Global, failures: &mut Vec<Failure>) -> Result<(Vec<Contestant>, Value)> {
    let config = global.config()?;
    let survey = survey(&Registry::with_defaults(), &config);
    let devices = survey.backends.iter().flat_map(|backend| &backend.devices);
    let mut contestants = Vec::new();
    for device in devices.clone() {
        let wanted = config.backend.as_ref().is_none_or(|backend| *backend == device.backend)
            && config.device.is_none_or(|index| index == device.index);
        if !wanted {
            continue;
        }
        let mut config = config.clone();
        config.backend = Some(device.backend.clone());
        config.device = Some(device.index);
        config.fallback = Some(Fallback::Never);
        config.placement = Some(false);
        match Engine::builder().registry(Registry::with_defaults()).config(config).build() {
            Ok(engine) => contestants.push(Contestant { device: device.clone(), engine }),
            Err(error) => failures.push(Failure { what: "everything".to_owned(), device: device.clone(), error }),
        }
    }
    if contestants.is_empty() {
        let refusal = survey.refusal.or_else(|| failures.pop().map(|failure| failure.error));
        return Err(refusal.unwrap_or_else(|| Error::NoDevice { wanted: "the bench".to_owned(), reasons: Vec::new() }));
    }
    let machine = json!({
        "processor": devices.clone().find(|device| device.backend == "cpu").map(|device| device.name.as_str()),
        "threads": std::thread::available_parallelism().map(usize::from).ok(),
        "os": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "cantus": env!("CARGO_PKG_VERSION"),
    });
    Ok((contestants, machine))
}

/// Times one case on every device that can run it, the devices taking turns.
fn time(op: Op, size: Size, contestants: &[Contestant], failures: &mut Vec<Failure>) -> Vec<Row> {
    let fail = |contestant: &Contestant, error: Error| Failure {
        what: case_name(op, size),
        device: contestant.device.clone(),
        error,
    };
    let mut running = Vec::new();
    for contestant in contestants {
        match input(op, size, &contestant.engine)
            .and_then(|input| once(op, size, &contestant.engine, input.as_ref()).map(|_| input))
        {
            Ok(input) => {
                running.push((
                    contestant,
                    input,
                    Row { op, size, device: contestant.device.clone(), times: Vec::new() },
                ));
            }
            Err(error) => failures.push(fail(contestant, error)),
        }
    }
    let budget = Duration::from_secs(1) * u32::try_from(running.len()).unwrap_or(1);
    let start = Instant::now();
    for round in 0..MOST_ROUNDS {
        if round >= FEWEST_ROUNDS && start.elapsed() > budget {
            break;
        }
        running.retain_mut(|(contestant, input, row)| match once(op, size, &contestant.engine, input.as_ref()) {
            Ok(time) => {
                row.times.push(time);
                true
            }
            Err(error) => {
                failures.push(fail(contestant, error));
                false
            }
        });
    }
    let mut rows: Vec<Row> = running.into_iter().map(|(_, _, row)| row).collect();
    rows.iter_mut().for_each(|row| row.times.sort_unstable());
    rows
}

fn input(op: Op, size: Size, engine: &Engine) -> Result<Option<Tensor>> {
    match op {
        Op::Coherence => ops::field(engine, &FieldParams::new(size.width, size.height)).map(Some),
        Op::Field | Op::PhiPattern => Ok(None),
    }
}

fn once(op: Op, size: Size, engine: &Engine, input: Option<&Tensor>) -> Result<Duration> {
    let start = Instant::now();
    match (op, input) {
        (Op::Coherence, Some(field)) => {
            ops::coherence(engine, field)?;
        }
        (Op::PhiPattern, _) => {
            let _pattern = ops::phi_pattern(engine, size.width, size.height)?;
            engine.finish()?;
        }
        _ => {
            let _field = ops::field(engine, &FieldParams::new(size.width, size.height))?;
            engine.finish()?;
        }
    }
    Ok(start.elapsed())
}

fn text(rows: &[Row], failures: &[Failure]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.op.name().to_owned(),
                format!("{}x{}", row.size.width, row.size.height),
                format!("{} {}", row.device.backend, row.device.index),
                report::time_text(row.median()),
                report::time_text(row.least()),
                row.times.len().to_string(),
                row.device.name.clone(),
            ]
        })
        .collect();
    let mut text = report::table(&["OP", "SIZE", "DEVICE", "MEDIAN", "LEAST", "RUNS", "NAME"], &cells);
    for failure in failures {
        let Failure { what, device, error } = failure;
        text.push_str(&format!("\n{what} did not run on {} {}: {error}\n", device.backend, device.index));
    }
    text
}

fn json(machine: &Value, rows: &[Row], failures: &[Failure]) -> Value {
    let results: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "op": row.op.name(),
                "shape": [row.size.height, row.size.width],
                "dtype": "f32",
                "backend": row.device.backend,
                "device": row.device.name,
                "index": row.device.index,
                "median_ms": report::milliseconds(row.median()),
                "min_ms": report::milliseconds(row.least()),
                "runs": row.times.len(),
            })
        })
        .collect();
    let failures: Vec<Value> = failures
        .iter()
        .map(|failure| {
            json!({
                "what": failure.what,
                "backend": failure.device.backend,
                "device": failure.device.name,
                "reason": failure.error.to_string(),
            })
        })
        .collect();
    json!({ "machine": machine, "results": results, "failures": failures })
}
