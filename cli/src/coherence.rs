//! `cantus coherence`: the neighbour correlation of a field in a `.npy` file, as one number. The file may be larger than memory.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use cantus::stream::{self, Npy, Source as _};
use cantus::{Error, Result};
use clap::Args;
use serde_json::json;

use super::global::Global;
use super::progress::Progress;
use super::report;

/// Print the coherence of a field: how strongly values agree in magnitude with their neighbours, from 0 to 1
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The field, or - for standard input: rows by columns of float32 (float16 and float64 are converted), every value finite
    #[arg(value_name = "FIELD.npy")]
    input: PathBuf,
    /// Print the number and its inputs as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cantus field 512x512 -o field.npy && cantus coherence field.npy
  cantus --backend cpu coherence field.npy --json
  cantus field 64x64 -o - | cantus coherence -
  cantus --memory-limit 1GiB coherence huge.npy    read chunk by chunk

Let z be the values minus their mean, divided by their standard deviation. The
coherence is the mean of |z (z above + z to the left)|, and at most 1. It is
high if large values are close together; only neighbours of opposite signs
cancel. A constant and a smooth wave have 1, normal noise has about 0.9, and
columns that alternate between -1 and 1 have 0.";

/// The least number of values for which a progress bar is worth a line.
const LONG: u64 = 1 << 26;

const STDIN: &str = "standard input";

/// Copies standard input to a file, because it is read several times.
fn spooled(path: &Path) -> Result<Option<tempfile::NamedTempFile>> {
    if path != Path::new("-") {
        return Ok(None);
    }
    let unreadable = |error: std::io::Error| Error::unreadable(Path::new(STDIN), &error);
    let mut spool = tempfile::NamedTempFile::new().map_err(unreadable)?;
    std::io::copy(&mut std::io::stdin().lock(), &mut spool).map_err(unreadable)?;
    Ok(Some(spool))
}

/// Runs the subcommand.
///
/// # Errors
/// As the library's operation, and when the file is not a field.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let spool = spooled(&arguments.input)?;
    let path = spool.as_ref().map_or(arguments.input.as_path(), tempfile::NamedTempFile::path);
    // Whoever piped a field in knows no file.
    let named = |error: Error| match error {
        Error::InvalidFile { file, reason } if spool.is_some() => {
            Error::file(file.replace(&path.display().to_string(), STDIN), reason)
        }
        other => other,
    };
    let field = Npy::open(path).map_err(named)?;
    let name = if spool.is_some() { STDIN.to_owned() } else { arguments.input.display().to_string() };
    let invalid = |reason: String| Error::invalid(name.clone(), reason);
    let (Some(height), &[width]) = (field.rows(), field.row()) else {
        let shape: Vec<u64> = field.rows().into_iter().chain(field.row().iter().map(|&n| n as u64)).collect();
        return Err(invalid(format!("its shape is {shape:?}; a field needs two axes, rows and columns")));
    };
    let values = height.saturating_mul(width as u64);
    let engine = global.engine()?;
    let start = Instant::now();
    let bar = (values >= LONG).then(|| Progress::new(3 * height, "rows"));
    let coherence = stream::coherence(&engine, field, None, |progress| {
        if let Some(bar) = &bar {
            bar.set(progress.rows);
        }
    });
    if let Some(bar) = bar {
        bar.clear();
    }
    let coherence = coherence.map_err(named)?;
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
