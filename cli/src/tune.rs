//! `cantus tune`: measures which variants of kernels are quickest here, and remembers them for every program that uses Cantus.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use cantus::Result;
use cantus::engine::{TuneOptions, Tuned};
use clap::Args;
use serde_json::{Value, json};

use super::global::Global;
use super::report;

/// Measure which kernel variants are fastest on the device, and remember them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Start no measurement after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Repeat earlier measurements
    #[arg(long)]
    again: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cantus tune                        the best device, for a minute
  cantus --backend vulkan tune --again --seconds 300

Runs matrix products and reductions of usual sizes in each of their variants,
and stores the fastest in the user's cache folder, by device and driver. If it
is interrupted, finished measurements are kept. A device that was not measured
uses the default for its kind.";

/// Runs the subcommand.
///
/// # Errors
/// When no such device opens. A variant that fails is passed over.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let engine = global.engine()?;
    let limit = Duration::from_secs(u64::from(arguments.seconds));
    let options = TuneOptions::new().limit(limit).usual(true).again(arguments.again);
    let mut stderr = std::io::stderr();
    let live = stderr.is_terminal();
    let results = pollster::block_on(engine.tune_async(&options, |tuned| {
        if live {
            let _ = writeln!(stderr, "{}: {}", tuned.operation, tuned.variant);
        }
    }));
    if arguments.json {
        return report::print_json(&Value::Array(results.iter().map(json).collect()));
    }
    if !results.is_empty() {
        let rows: Vec<Vec<String>> = results.iter().map(row).collect();
        report::print(&report::table(&["OPERATION", "VARIANT", "TIME", "SHIPPED", "TIME", "MEASURED"], &rows))?;
    }
    let device = report::device_text(&engine);
    let text = match results.len() {
        0 => format!("everything is measured on {device} (--again measures anew)"),
        count => format!("{count} operations measured on {device}"),
    };
    Ok(report::done(&text))
}

fn row(tuned: &Tuned) -> Vec<String> {
    let (measured, of) = tuned.measured;
    vec![
        tuned.operation.clone(),
        tuned.variant.clone(),
        report::time_text(tuned.time),
        tuned.shipped.clone(),
        report::time_text(tuned.shipped_time),
        format!("{measured} of {of}"),
    ]
}

fn json(tuned: &Tuned) -> Value {
    json!({
        "device": tuned.device,
        "operation": tuned.operation,
        "variant": tuned.variant,
        "ms": report::milliseconds(tuned.time),
        "shipped": tuned.shipped,
        "shipped_ms": report::milliseconds(tuned.shipped_time),
        "variants_measured": tuned.measured.0,
        "variants": tuned.measured.1,
    })
}
