//! `cantus pattern`: the golden-ratio spiral to a picture or to `.npy`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use cantus::{Result, ops};
use clap::Args;
use serde_json::json;

use super::global::Global;
use super::grid::{GridArguments, GridProgress};
use super::picture::GridFile;
use super::report;

/// Compute the golden-ratio spiral, as a picture or as numbers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    grid: GridArguments,
    /// Output file: .png (a picture) or .npy (float32, rows by columns)
    #[arg(short, long, value_name = "FILE", default_value = "pattern.png")]
    output: PathBuf,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cantus pattern 800x800 --colormap magma -o spiral.png
  cantus pattern --width 256 --height 256 -o spiral.npy";

/// Runs the subcommand.
///
/// # Errors
/// As the library's operation and the output file.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let size = arguments.grid.size();
    let file = GridFile::create(&arguments.output, size.width, size.height, arguments.grid.coloring())?;
    let engine = global.engine()?;
    let start = Instant::now();
    let progress = GridProgress::new(size);
    file.write(|values| {
        ops::field::phi_pattern_tiles(&engine, size.width, size.height, None, |tile| {
            values(tile.values)?;
            progress.advance(tile.values.len());
            Ok(())
        })
    })?;
    let time = start.elapsed();
    if arguments.json {
        return report::print_json(&json!({
            "op": "phi_pattern",
            "width": size.width,
            "height": size.height,
            "output": arguments.output,
            "device": report::device_json(&engine.selected().device),
            "ran_on": report::ran_on(&engine),
            "ms": report::milliseconds(time),
        }));
    }
    Ok(report::done(&format!(
        "pattern {} x {} on {}, in {} -> {}",
        size.width,
        size.height,
        report::device_text(&engine),
        report::time_text(time),
        arguments.output.display(),
    )))
}
