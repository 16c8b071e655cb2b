//! `cantus coherence`: the neighbour correlation of a field in a `.npy` file, as one number. The file may be larger than memory.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use cantus::stream::{self, Npy, Source as _};
use cantus::{Error, Result};
use clap::Args;
use serde_json::json;

use super::global::Global;
use super::report;

/// Print the coherence of a field: its correlation with its neighbours, from 0 to 1
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The field: rows by columns of float32 (float16 and float64 are converted), every value finite
    #[arg(value_name = "FIELD.npy")]
    input: PathBuf,
    /// Print the number with what it was computed from as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cantus field 512x512 -o field.npy && cantus coherence field.npy
  cantus --backend cpu coherence field.npy --json
  cantus --memory-limit 1GiB coherence huge.npy    read twice, chunk by chunk";

/// From this many values on a bar is worth a line.
const LONG: u64 = 1 << 26;

/// Runs the subcommand.
///
/// # Errors
/// As the library's operation, and when the file is not a field.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let field = Npy::open(&arguments.input)?;
    let invalid = |reason: String| Error::InvalidInput { what: arguments.input.display().to_string(), reason };
    let (Some(height), &[width]) = (field.rows(), field.row()) else {
        let shape: Vec<u64> = field.rows().into_iter().chain(field.row().iter().map(|&n| n as u64)).collect();
        return Err(invalid(format!("its shape is {shape:?}; a field has two axes, rows and columns")));
    };
    let values = height.saturating_mul(width as u64);
    let engine = global.engine()?;
    let start = Instant::now();
    let bar = (values >= LONG).then(|| report::progress(3 * height, "rows"));
    let coherence = stream::coherence(&engine, field, None, |progress| {
        if let Some(bar) = &bar {
            bar.set_position(progress.rows);
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let coherence = coherence?;
    let time = start.elapsed();
    if arguments.json {
        return report::print_json(&json!({
            "op": "coherence",
            "coherence": coherence,
            "width": width,
            "height": height,
            "input": arguments.input,
            "device": report::device_json(&engine.selected().device),
            "ran_on": report::ran_on(&engine),
            "ms": report::milliseconds(time),
        }));
    }
    report::print(&format!("{coherence}\n"))
}
