//! `cantus top`: what devices and engines do, in a terminal, as a table or as JSON. Looking is `cantus-monitor`'s.

mod draw;
mod screen;
mod table;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use cantus::{Error, Result};
use cantus_monitor::{Monitor, Sample, Sources};
use clap::Args;

use super::global::Global;
use super::{parse, report};

/// The least time between two samples of rates; counters of the system move in steps.
const SHORTEST_MS: u64 = 200;

/// Watch the devices of this machine, and the engines that publish (CANTUS_PUBLISH=1)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Print a table once and end, as without a terminal
    #[arg(long)]
    once: bool,
    /// Print JSON: one object with --once, otherwise one per line
    #[arg(long)]
    json: bool,
    /// Time between updates: milliseconds, or with a unit as in 500ms, 2s; at least 200ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::milliseconds)]
    interval: u64,
}

const EXAMPLES: &str = "\
Examples:
  cantus top
  cantus top --once -v             a table, and why figures are missing
  cantus top --json --interval 5s  one line of JSON every five seconds
  CANTUS_PUBLISH=1 cantus bench    an engine to watch

Keys: q ends, up and down select a device, s sorts the engines, p pauses, ?
explains.";

/// Runs the subcommand.
///
/// # Errors
/// [`cantus::Error::Io`] of the output.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let interval = Duration::from_millis(arguments.interval.max(SHORTEST_MS));
    let monitor = Monitor::new(Sources::default());
    if arguments.json && !arguments.once {
        return lines(monitor, interval);
    }
    if !arguments.once && std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        return screen::run(monitor, interval);
    }
    let sample = second(monitor, interval.min(Duration::from_secs(1)));
    if arguments.json {
        return report::print_json(&json(&sample));
    }
    report::print(&table::text(&sample, global.verbose > 0))
}

/// Rates take two looks.
fn second(mut monitor: Monitor, interval: Duration) -> Sample {
    monitor.sample();
    std::thread::sleep(interval);
    monitor.sample()
}

fn lines(mut monitor: Monitor, interval: Duration) -> Result<ExitCode> {
    monitor.sample();
    loop {
        std::thread::sleep(interval);
        let line = format!("{}\n", json(&monitor.sample()));
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => {}
            // Whoever reads has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            Err(error) => {
                return Err(Error::Io {
                    action: "cannot write".to_owned(),
                    path: "to stdout".to_owned(),
                    reason: error.to_string(),
                });
            }
        }
    }
}

fn json(sample: &Sample) -> serde_json::Value {
    serde_json::to_value(sample).unwrap_or_default()
}
