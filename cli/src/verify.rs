//! `cantus verify`: is each driver right? The cases run in a child process, because a driver that fails may take its process along.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use cantus::backend::{DeviceInfo, Registry};
use cantus::engine::{BackendSurvey, survey};
use cantus::{Error, Result};
use cantus_verify::case::Case;
use cantus_verify::cases;
use cantus_verify::checks::{self, Check};
use cantus_verify::engine::EngineDevice;
use cantus_verify::outcome::Outcome;
use cantus_verify::record::{Absent, Device, HEADING, Record};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::global::Global;
use super::output::{OutputFile, extension, fault};
use super::progress::Progress;
use super::report;

/// Check every device, or the one that --backend and --device name, with a thousand kernels and operations whose answers are known
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Only cases whose name contains this, as in "atomics" or "shipped field"
    #[arg(value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Write the report to a file: .json to send in, .md to read
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the names of the cases and stop
    #[arg(long)]
    list: bool,
    /// In the child: the first case to run
    #[arg(long, hide = true, value_name = "N")]
    child: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  cantus verify                             every device, some minutes
  cantus verify --backend vulkan            one of them
  cantus verify -o report.json              to send in: see docs/hardware
  cantus verify atomics --backend wgpu -v   some, and why others did not run

Exit codes: 0 everything is right, 1 something is wrong.";

/// The silence after which a driver counts as hanging; it may compile for a while.
const PATIENCE: Duration = Duration::from_secs(150);
/// The number of deaths after which a device is given up.
const MOST_DEATHS: usize = 8;

/// A line of the child's output.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The device could not be opened.
    Closed(String),
    Begin(String),
    End(Outcome),
}

/// A case or a whole operation.
enum Item {
    Case(Case),
    Check(Check),
}

impl Item {
    fn name(&self) -> &str {
        match self {
            Self::Case(case) => &case.name,
            Self::Check(check) => &check.name,
        }
    }

    fn run(&self, device: &EngineDevice) -> Outcome {
        let outcome = match self {
            Self::Case(case) => Outcome::of(device, case),
            Self::Check(check) => {
                Outcome::of_check(device, check).unwrap_or_else(|| Outcome::NotRun("there is no engine".to_owned()))
            }
        };
        outcome.of_a_newer_driver()
    }
}

fn items(filter: &str) -> Vec<Item> {
    let cases = cases::all().into_iter().map(Item::Case);
    cases.chain(checks::all().into_iter().map(Item::Check)).filter(|item| item.name().contains(filter)).collect()
}

/// Runs the subcommand.
///
/// # Errors
/// When no device answers to the flags, no case to the filter, or the report cannot be written.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let items = items(&arguments.filter);
    if items.is_empty() {
        return Err(Error::invalid(
            format!("the filter \"{}\"", arguments.filter),
            "no case has this in its name (cantus verify --list prints the names)",
        ));
    }
    if arguments.list {
        let names: Vec<&str> = items.iter().map(Item::name).collect();
        return report::print(&format!("{}\n", names.join("\n")));
    }
    let config = global.usable_config()?;
    let survey = survey(&Registry::with_defaults(), &config);
    let chosen = |info: &DeviceInfo| {
        config.backend.as_ref().is_none_or(|backend| *backend == info.backend)
            && config.device.is_none_or(|device| device == info.index)
    };
    let devices: Vec<&DeviceInfo> =
        survey.backends.iter().flat_map(|backend| &backend.devices).filter(|info| chosen(info)).collect();
    if devices.is_empty() {
        return Err(survey.refusal.unwrap_or_else(|| Error::Config {
            place: "--backend and --device".to_owned(),
            reason: "no such device (cantus devices lists them)".to_owned(),
        }));
    }
    if let (Some(first), [info]) = (arguments.child, devices.as_slice()) {
        return child(info, items.get(first..).unwrap_or_default());
    }
    let bar = Progress::new((devices.len() * items.len()) as u64, "cases");
    let mut record = machine(&survey.backends, config.backend.is_none());
    // Written as it goes, a whole file each time: a run that is stopped leaves what it found.
    let kept = arguments.output.as_deref();
    let file = kept.filter(|path| *path != Path::new("-"));
    if let Some(path) = kept {
        named(path)?;
    }
    if let Some(path) = file {
        save(&record, path)?;
    }
    for info in &devices {
        let mut saved = Instant::now();
        let found = device(info, &items, &arguments.filter, &bar, &mut |so_far| {
            let Some(path) = file.filter(|_| saved.elapsed() >= SAVE_EVERY) else { return Ok(()) };
            saved = Instant::now();
            save(
                &Record {
                    devices: [record.devices.as_slice(), std::slice::from_ref(so_far)].concat(),
                    ..record.clone()
                },
                path,
            )
        })?;
        record.devices.push(found);
        if let Some(path) = file {
            save(&record, path)?;
        }
    }
    bar.clear();
    let json = serde_json::to_value(&record).unwrap_or_default();
    if let Some(path) = kept {
        if file.is_none() {
            save(&record, path)?;
        }
        report::done(&format!("wrote {}", path.display()));
    }
    if arguments.json {
        report::print_json(&json)?
    } else {
        report::print(&text(&record, global.verbose > 0))?
    };
    Ok(if record.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The interval at which a report is written while a device is at work.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// Returns the record of this machine before any device was asked; `all`: with the backends that are not available.
fn machine(backends: &[BackendSurvey], all: bool) -> Record {
    let absent = backends.iter().filter(|backend| all && !backend.available);
    Record {
        cantus: env!("CARGO_PKG_VERSION").to_owned(),
        date: today(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        processor: processor(backends),
        devices: Vec::new(),
        absent: absent
            .map(|backend| Absent { backend: backend.name.clone(), reason: backend.reason.clone().unwrap_or_default() })
            .collect(),
    }
}

/// Checks that a report can have this name.
fn named(path: &Path) -> Result<()> {
    if !matches!(extension(path).as_str(), "json" | "md") && path != Path::new("-") {
        return Err(Error::file(format!("the output {}", path.display()), "a report is a .json or .md file"));
    }
    Ok(())
}

/// Writes the report, whole or not at all.
fn save(record: &Record, path: &Path) -> Result<()> {
    let mut file = OutputFile::create(path)?;
    let json = serde_json::to_value(record).unwrap_or_default();
    let text = if extension(path) == "md" { record.to_markdown() } else { format!("{json:#}\n") };
    file.write_all(text.as_bytes()).map_err(|error| fault(path, &error))?;
    file.commit()
}

fn text(record: &Record, verbose: bool) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for device in &record.devices {
        for failure in &device.failures {
            let _ = writeln!(text, "FAILED {} on {}: {}", failure.case, device.name, failure.message);
        }
    }
    let groups = record.devices.iter().flat_map(|device| {
        let deviating = device.deviating.iter().map(move |group| (device, "known", group));
        deviating.chain(device.not_run.iter().map(move |group| (device, "not run", group)))
    });
    for (device, title, (reason, cases)) in groups.filter(|_| verbose) {
        let _ = writeln!(text, "{title} on {}: {reason}: {}", device.name, cases.join(" "));
    }
    let mut text = report::wrapped(&text, 2);
    if !text.is_empty() {
        text.push('\n');
    }
    let heading: Vec<String> = HEADING.iter().map(|cell| cell.to_uppercase()).collect();
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = record.devices.iter().map(Device::cells).collect();
    text.push_str(&report::fitted_table(&heading, &rows, 1));
    for absent in &record.absent {
        text.push_str(&report::wrapped(&format!("{} is not available: {}\n", absent.backend, absent.reason), 2));
    }
    text
}

/// Runs cases on a device and says, line by line, what became of them.
fn child(info: &DeviceInfo, items: &[Item]) -> Result<ExitCode> {
    // A panic is a failure of its case, with its message.
    std::panic::set_hook(Box::new(|_| {}));
    // Who asked may be gone (stopped, or killed): then nobody waits for the rest, and a driver that is slow would be kept busy by it.
    let say = |line: &Line| {
        let text = format!("{}\n", serde_json::to_string(line).unwrap_or_default());
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| Error::Io {
            action: "cannot write".to_owned(),
            path: "to stdout".to_owned(),
            reason: error.to_string(),
        })
    };
    let device = match EngineDevice::open(info.clone()) {
        Ok(device) => device,
        Err(error) => {
            say(&Line::Closed(error.to_string()))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    for item in items {
        say(&Line::Begin(item.name().to_owned()))?;
        say(&Line::End(item.run(&device)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs all cases on a device: by children, of which each goes on where the one before died.
fn device(
    info: &DeviceInfo,
    items: &[Item],
    filter: &str,
    bar: &Progress,
    keep: &mut dyn FnMut(&Device) -> Result<()>,
) -> Result<Device> {
    let started = Instant::now();
    let mut device = Device {
        backend: info.backend.clone(),
        name: info.name.clone(),
        kind: info.kind.name().to_owned(),
        driver: info.driver.clone(),
        ..Device::default()
    };
    let (mut next, mut deaths) = (0, 0);
    while next < items.len() {
        let mut refused = None;
        let end = drive(info, filter, next, |outcome| {
            if let Some(item) = items.get(next) {
                device.add(item.name(), outcome);
            }
            next += 1;
            bar.add(1);
            device.seconds = tenths(started);
            refused = refused.take().or(keep(&device).err());
        })?;
        if let Some(error) = refused {
            return Err(error);
        }
        let Some(item) = items.get(next) else { break };
        let rest = items.len() - next;
        let reason = match end {
            End::Closed(reason) => {
                device.add("opening the device", Outcome::Failed(reason.clone()));
                Some(reason)
            }
            End::Died(how) => {
                device.add(item.name(), Outcome::Failed(how));
                deaths += 1;
                (next, _) = (next + 1, bar.add(1));
                (deaths == MOST_DEATHS).then(|| format!("the driver crashed its process {deaths} times"))
            }
        };
        if let Some(reason) = reason {
            items.get(next..).unwrap_or_default().iter().for_each(|item| {
                device.add(item.name(), Outcome::NotRun(reason.clone()));
            });
            bar.add(rest as u64);
            break;
        }
    }
    device.seconds = tenths(started);
    Ok(device)
}

/// Seconds since then, to a tenth.
fn tenths(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 10.0).round() / 10.0
}

/// The way in which a child ended before its last case.
enum End {
    Closed(String),
    Died(String),
}

/// Runs a child from a case on, until it ends in one way or another.
fn drive(info: &DeviceInfo, filter: &str, first: usize, mut took: impl FnMut(Outcome)) -> Result<End> {
    let mut child = spawn(info, filter, first)?;
    let errors = child.stderr.take();
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        // A driver may say more than anybody wants to keep.
        let _ = errors.map(|errors| errors.take(1 << 20).read_to_end(&mut text));
        String::from_utf8_lossy(&text).trim().lines().last().unwrap_or_default().to_owned()
    });
    let lines = child.stdout.take().map(lines);
    let mut end = None;
    while let Some(lines) = &lines {
        match lines.recv_timeout(PATIENCE) {
            Ok(Line::Begin(_)) => {}
            Ok(Line::End(outcome)) => took(outcome),
            Ok(Line::Closed(reason)) => end = Some(End::Closed(reason)),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                end = Some(End::Died(format!("no answer within {} s", PATIENCE.as_secs())));
                break;
            }
        }
    }
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    let last = errors.join().unwrap_or_default();
    Ok(end.unwrap_or_else(|| End::Died(format!("the driver crashed its process: {status} {last}").trim().to_owned())))
}

fn spawn(info: &DeviceInfo, filter: &str, first: usize) -> Result<Child> {
    let fault = |error: std::io::Error| Error::Io {
        action: "cannot start".to_owned(),
        path: "a child of this program".to_owned(),
        reason: error.to_string(),
    };
    let program = std::env::current_exe().map_err(fault)?;
    let mut command = Command::new(program);
    command.args(["verify", "--backend", &info.backend, "--device", &info.index.to_string()]);
    command.args(["--child", &first.to_string(), "--", filter]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(fault)
}

/// The child's lines, as they come. Other lines (drivers write there too) are left out.
fn lines(stdout: ChildStdout) -> Receiver<Line> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
            let Ok(line) = serde_json::from_str(&line) else { continue };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn processor(backends: &[BackendSurvey]) -> String {
    let cpu = backends.iter().flat_map(|backend| &backend.devices).find(|info| info.backend == "cpu");
    cpu.map_or_else(|| "unknown".to_owned(), |info| info.name.clone())
}

/// Today's date by the Gregorian calendar, in UTC.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (mut days, mut year) = (seconds / 86_400, 1970);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_says_nothing_of_its_own_is_not_heard() {
        assert!(serde_json::from_str::<Line>("LLVM ERROR: out of memory").is_err());
        let line = serde_json::to_string(&Line::End(Outcome::Failed("a\nb".to_owned()))).expect("has a text");
        assert!(!line.contains('\n'));
    }
}
