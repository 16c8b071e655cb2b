//! `cantus bench`: how long operations take on each device of this machine. A first impression; `benches/` holds the measurements with
//! peers.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use cantus::backend::{DeviceInfo, Registry};
use cantus::config::Fallback;
use cantus::engine::survey;
use cantus::error::without_remedies;
use cantus::{Engine, Error, Result};
use clap::Args;
use serde_json::{Value, json};

use super::bench_ops::{Op, Work, ops};
use super::global::Global;
use super::output::{OutputFile, fault};
use super::parse::{self, Size};
use super::progress::Progress;
use super::{output, report};

const FEWEST_ROUNDS: usize = 5;
const MOST_ROUNDS: usize = 200;
/// The time beyond `--limit` in which a case may still end; the first one has longer, since a bench without a row says nothing.
const GRACE: Duration = Duration::from_millis(300);
const FIRST_GRACE: Duration = Duration::from_secs(30);
/// The approximate time for which a case runs on a device.
const ROUND: Duration = Duration::from_secs(1);
/// With `--growth`, the longest run: an operation stops growing when one run takes longer on all devices.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time every operation on every device, or on the one that --backend and --device name
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Run only cases whose name contains this, such as "coherence", "field 512x512" or any elementwise function ("erf"); may be repeated
    /// [default: the usual ones]
    #[arg(long = "filter", value_name = "TEXT")]
    filters: Vec<String>,
    /// Columns and rows; may be repeated [default: three squares for each operation]
    #[arg(long = "size", value_name = "WIDTHxHEIGHT")]
    sizes: Vec<Size>,
    /// Measure every power of two from 2^8 to 2^30 elements that memory allows, to see whether time grows faster than size
    #[arg(long, conflicts_with = "sizes")]
    growth: bool,
    /// Stop after this time and print the finished rows: milliseconds, or with a unit as in 30s, 2m
    #[arg(long, value_name = "TIME", value_parser = parse::milliseconds, allow_negative_numbers = true)]
    limit: Option<u64>,
    /// Print the results as JSON, or write them to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Also write a page of plots: time by size, time per element, and bandwidth beside that of a copy
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  cantus bench --filter field
  cantus bench --html bench.html --json bench.json
  cantus --backend cpu bench --growth --filter cumsum --html growth.html
  cantus --backend cpu bench --size 1024x1024 --json
  cantus bench --limit 30s

A figure is the time from the call until the result is on the device (for
coherence, on the host). The devices take turns. Each runs once to warm up, then
at least five times, for about a second. Half of the runs took between LOW and
HIGH. Ctrl-C stops early and prints the finished rows.";

/// A device with the engine that holds it.
struct Contestant {
    device: DeviceInfo,
    engine: Engine,
}

/// An op of a size on one device.
struct Row<'a> {
    op: &'a Op,
    size: Size,
    device: DeviceInfo,
    /// In the order of time.
    times: Vec<Duration>,
}

impl Row<'_> {
    fn median(&self) -> Duration {
        self.quarter(2)
    }

    /// The time that this number of quarters of the runs took at most: 0 is the least, 4 the greatest.
    fn quarter(&self, quarters: usize) -> Duration {
        self.times.get(self.times.len().saturating_sub(1) * quarters / 4).copied().unwrap_or_default()
    }

    fn giga_per_second(&self, amount: Option<f64>) -> Option<f64> {
        amount.map(|amount| amount / self.median().as_secs_f64().max(1e-9) / 1e9)
    }

    fn gb_per_s(&self) -> Option<f64> {
        self.giga_per_second(self.op.bytes(self.size))
    }

    fn gflop_per_s(&self) -> Option<f64> {
        self.giga_per_second(self.op.flop_count(self.size))
    }
}

/// A case that could not be timed, and why.
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
    let ops = ops();
    let cases = cases(&ops, arguments)?;
    // What cannot be written is known before anything is timed.
    let page = arguments.html.as_deref().map(OutputFile::create).transpose()?;
    let print_json = arguments.json.as_deref() == Some(Path::new("-"));
    let file = arguments.json.as_deref().filter(|_| !print_json).map(OutputFile::create).transpose()?;
    let start = Instant::now();
    let mut failures = Vec::new();
    let (contestants, machine) = contestants(global, &mut failures)?;
    let all = cases.len();
    let limit = arguments.limit.map(Duration::from_millis);
    let expected = ROUND * u32::try_from(all * contestants.len()).unwrap_or(u32::MAX);
    output::stop_first();
    report::done(&expectation(all, contestants.len(), limit.map_or(expected, |limit| limit.min(expected))));
    let deadline = limit.and_then(|limit| start.checked_add(limit));
    let bar = Progress::new(all as u64, "cases");
    let (mut rows, mut done) = (Vec::new(), 0);
    let finish = |rows: &[Row<'_>], failures: &[Failure], done: usize| -> Result<ExitCode> {
        bar.clear();
        if done < all {
            report::done(&format!("stopped after {done} of {all} cases"));
        }
        if let Some(page) = page {
            super::bench_page::write(page, &machine, &points(rows))?;
        }
        if let Some(mut file) = file {
            let text = format!("{:#}\n", json(&machine, rows, failures));
            let path = file.shown().to_owned();
            file.write_all(text.as_bytes()).map_err(|error| fault(&path, &error))?;
            file.commit()?;
        }
        if print_json {
            report::print_json(&json(&machine, rows, failures))
        } else {
            report::print(&text(rows, failures))
        }
    };
    std::thread::scope(|scope| {
        let (send, timed) = channel();
        let contestants = &contestants;
        let case = move || {
            let is_over = || output::stopped() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            // The operation that has grown as far as it goes.
            let mut grown = None;
            for (place, (op, size)) in cases.into_iter().enumerate() {
                let ends = || place > 0 && is_over() || output::stopped();
                if ends() {
                    return;
                }
                let mut failures = Vec::new();
                let mut rows = Vec::new();
                if grown != Some(op.name) {
                    rows = time(op, size, contestants, &mut failures, [&ends, &is_over]);
                    if arguments.growth && rows.iter().all(|row| row.median() > PATIENCE) {
                        grown = Some(op.name);
                    }
                }
                // Nobody waits any more after the limit.
                if send.send((rows, failures)).is_err() {
                    return;
                }
            }
        };
        let worker = std::thread::Builder::new().name("cantus-bench".to_owned()).spawn_scoped(scope, case);
        worker.map_err(|error| Error::Io {
            action: "cannot start".to_owned(),
            path: "a thread".to_owned(),
            reason: error.to_string(),
        })?;
        loop {
            let next = match deadline {
                Some(deadline) => {
                    let grace = if done == 0 { FIRST_GRACE } else { GRACE };
                    timed.recv_timeout(deadline.saturating_duration_since(Instant::now()) + grace)
                }
                None => timed.recv().map_err(RecvTimeoutError::from),
            };
            match next {
                Ok((more, failed)) => {
                    rows.extend(more);
                    failures.extend(failed);
                    done += 1;
                    bar.add(1);
                }
                Err(RecvTimeoutError::Disconnected) => return finish(&rows, &failures, done),
                // What a driver compiles or runs cannot be ended: the program ends without it.
                Err(RecvTimeoutError::Timeout) => {
                    leave(finish(&rows, &failures, done));
                }
            }
        }
    })
}

/// Ends the program while another thread is inside of a driver: without the driver's own end, which would wait for it.
fn leave(outcome: Result<ExitCode>) -> ! {
    if let Err(error) = &outcome {
        let _ = writeln!(std::io::stderr(), "error: {error}");
    }
    let code = i32::from(outcome.is_err());
    #[cfg(unix)]
    // SAFETY: the call ends the process; what was written is flushed and renamed.
    unsafe {
        libc::_exit(code)
    }
    #[cfg(not(unix))]
    std::process::exit(code)
}

/// Returns the announcement of the cases and of their time.
fn expectation(cases: usize, devices: usize, time: Duration) -> String {
    let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let seconds = time.as_secs().max(1);
    let time = if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) };
    format!("{} on {}, about {time} (Ctrl-C ends early)", plural(cases, "case"), plural(devices, "device"))
}

fn cases<'a>(ops: &'a [Op], arguments: &Arguments) -> Result<Vec<(&'a Op, Size)>> {
    let sizes = |op: &Op| match arguments.sizes.as_slice() {
        [] if arguments.growth => {
            (8..=30).map(|power| Size { width: 1 << ((power + 1) / 2), height: 1 << (power / 2) }).collect()
        }
        [] => op.sides.map(|side| Size { width: side, height: side }).to_vec(),
        given => given.to_vec(),
    };
    let unfiltered = arguments.filters.iter().all(String::is_empty);
    let wanted = ops.iter().filter(|op| op.usual || !unfiltered);
    let all = wanted.flat_map(|op| sizes(op).into_iter().map(move |size| (op, size)));
    let named = |name: &str| unfiltered || arguments.filters.iter().any(|filter| name.contains(filter));
    let chosen: Vec<_> = all.filter(|(op, size)| named(&case_name(op, *size))).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = ops.iter().map(|op| op.name).collect();
        return Err(Error::invalid(
            format!("--filter \"{}\"", arguments.filters.join("\" --filter \"")),
            format!(
                "no case has this in its name (names are like \"field 512x512\"; the operations: {})",
                names.join(", ")
            ),
        ));
    }
    Ok(chosen)
}

fn case_name(op: &Op, size: Size) -> String {
    format!("{} {}x{}", op.name, size.width, size.height)
}

/// Every device, or those that the flags name; and the machine in words.
fn contestants(global: &Global, failures: &mut Vec<Failure>) -> Result<(Vec<Contestant>, Value)> {
    let config = global.usable_config()?;
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

/// Times one case on every device that can run it, the devices taking turns. No further device begins once `ends`; after a first round no
/// further one begins once `is_over`.
fn time<'a>(
    op: &'a Op,
    size: Size,
    contestants: &[Contestant],
    failures: &mut Vec<Failure>,
    [ends, is_over]: [&dyn Fn() -> bool; 2],
) -> Vec<Row<'a>> {
    let fail = |contestant: &Contestant, error: Error| Failure {
        what: case_name(op, size),
        device: contestant.device.clone(),
        error,
    };
    let mut running = Vec::new();
    for contestant in contestants.iter().take_while(|_| !ends()) {
        let work = op.prepare(&contestant.engine, size);
        match work.and_then(|work| once(&contestant.engine, &work).map(|_| work)) {
            Ok(work) => {
                running.push((
                    contestant,
                    work,
                    Row { op, size, device: contestant.device.clone(), times: Vec::new() },
                ));
            }
            Err(error) => failures.push(fail(contestant, error)),
        }
    }
    let budget = ROUND * u32::try_from(running.len()).unwrap_or(1);
    let start = Instant::now();
    for round in 0..MOST_ROUNDS {
        if round >= FEWEST_ROUNDS && start.elapsed() > budget || round > 0 && is_over() {
            break;
        }
        running.retain_mut(|(contestant, work, row)| match once(&contestant.engine, work) {
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
    let mut rows: Vec<Row> = running.into_iter().map(|(_, _, row)| row).filter(|row| !row.times.is_empty()).collect();
    rows.iter_mut().for_each(|row| row.times.sort_unstable());
    rows
}

fn once(engine: &Engine, work: &Work) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    engine.finish()?;
    Ok(start.elapsed())
}

/// Returns the points of the page's plots.
fn points(rows: &[Row<'_>]) -> Vec<super::bench_page::Point> {
    rows.iter()
        .map(|row| super::bench_page::Point {
            op: row.op.name,
            device: format!("{} {}: {}", row.device.backend, row.device.index, row.device.name),
            elements: row.size.width as f64 * row.size.height as f64,
            milliseconds: report::milliseconds(row.median()),
            spread: [1, 3].map(|quarters| report::milliseconds(row.quarter(quarters))),
            gb_per_s: row.gb_per_s(),
            gflop_per_s: row.gflop_per_s(),
        })
        .collect()
}

fn text(rows: &[Row<'_>], failures: &[Failure]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.op.name.to_owned(),
                format!("{}x{}", row.size.width, row.size.height),
                format!("{} {}", row.device.backend, row.device.index),
                report::time_text(row.median()),
                report::time_text(row.quarter(1)),
                report::time_text(row.quarter(3)),
                row.gb_per_s().map_or_else(String::new, |rate| format!("{rate:.1}")),
                row.gflop_per_s().map_or_else(String::new, |rate| format!("{rate:.1}")),
                row.times.len().to_string(),
            ]
        })
        .collect();
    let heading = ["OP", "SIZE", "DEVICE", "MEDIAN", "LOW", "HIGH", "GB/S", "GFLOP/S", "RUNS"];
    let mut text = report::fitted_table(&heading, &cells, 0);
    let mut devices: Vec<String> = Vec::new();
    for device in rows.iter().map(|row| format!("{} {}: {}", row.device.backend, row.device.index, row.device.name)) {
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    if !devices.is_empty() {
        text.push_str(&report::wrapped(&format!("\n{}\n", devices.join("\n")), 2));
    }
    for failure in failures {
        let Failure { what, device, error } = failure;
        let error = without_remedies(&error.to_string());
        let line = format!("\n{what} did not run on {} {}: {error}\n", device.backend, device.index);
        text.push_str(&report::wrapped(&line, 2));
    }
    text
}

fn json(machine: &Value, rows: &[Row<'_>], failures: &[Failure]) -> Value {
    let results: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "op": row.op.name,
                "shape": [row.size.height, row.size.width],
                "dtype": "f32",
                "backend": row.device.backend,
                "device": row.device.name,
                "index": row.device.index,
                "median_ms": report::milliseconds(row.median()),
                "min_ms": report::milliseconds(row.quarter(0)),
                "low_ms": report::milliseconds(row.quarter(1)),
                "high_ms": report::milliseconds(row.quarter(3)),
                "max_ms": report::milliseconds(row.quarter(4)),
                "gb_per_s": row.gb_per_s(),
                "gflop_per_s": row.gflop_per_s(),
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
