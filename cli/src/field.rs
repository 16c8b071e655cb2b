//! `cantus field`: one field to a picture or to `.npy`, in tiles, so that its size is not bound by memory.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use cantus::Result;
use cantus::ops::{
    self,
    field::{FieldParams, Frequency, GroupField},
};
use clap::Args;
use serde_json::json;

use super::global::Global;
use super::grid::{GridArguments, GridProgress};
use super::picture::GridFile;
use super::{parse, report};

/// Compute the field, a damped spiral wave, as a picture or as numbers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    grid: GridArguments,
    #[command(flatten)]
    wave: WaveArguments,
    /// Time in seconds; any finite number
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse::finite, allow_negative_numbers = true)]
    time: f64,
    /// Output file: .png (a picture) or .npy (float32, rows by columns)
    #[arg(short, long, value_name = "FILE", default_value = "field.png")]
    output: PathBuf,
    /// Split the rows over these devices by their speed; the field is assembled in memory. A device is a backend, or a backend and an index,
    /// as in cuda:1
    #[arg(long, value_name = "DEVICE,…", value_delimiter = ',')]
    devices: Vec<String>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cantus field 1024x1024 --colormap twilight -o field.png
  cantus field 640x480 --frequency unity --time 1.5 -o field.npy
  cantus field 65536x65536 -o poster.png      computed and written in tiles
  cantus field 8192x8192 --devices cuda:0,cpu -o field.npy   with shares printed

A seam runs from the middle to the left edge, where the angle jumps. A picture
that is not square is stretched. The guide's chapter on the field has the
formula.";

/// The wave to compute.
#[derive(Debug, Args)]
pub struct WaveArguments {
    /// love, unity, cascade, truth, vision, oneness, or a positive number of Hz
    #[arg(long, value_name = "NAME|HZ", default_value = "love", allow_negative_numbers = true)]
    pub frequency: Frequency,
}

/// Runs the subcommand.
///
/// # Errors
/// As the library's operations and the output file.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let size = arguments.grid.size();
    let params = FieldParams::new(size.width, size.height).frequency(arguments.wave.frequency).time(arguments.time);
    let file = GridFile::create(&arguments.output, size.width, size.height, arguments.grid.coloring())?;
    if !arguments.devices.is_empty() {
        return together(global, arguments, &params, file);
    }
    let engine = global.engine()?;
    let start = Instant::now();
    let progress = GridProgress::new(size);
    file.write(|values| {
        ops::field::field_tiles(&engine, &params, None, |tile| {
            values(tile.values)?;
            progress.advance(tile.values.len());
            Ok(())
        })
    })?;
    let time = start.elapsed();
    if arguments.json {
        return report::print_json(&json!({
            "op": "field",
            "width": size.width,
            "height": size.height,
            "frequency": arguments.wave.frequency.to_string(),
            "time": arguments.time,
            "output": arguments.output,
            "device": report::device_json(&engine.selected().device),
            "ran_on": report::ran_on(&engine),
            "ms": report::milliseconds(time),
        }));
    }
    Ok(report::done(&format!(
        "field {} x {} on {}, in {} -> {}",
        size.width,
        size.height,
        report::device_text(&engine),
        report::time_text(time),
        arguments.output.display(),
    )))
}

/// Computes the field on several devices.
fn together(global: &Global, arguments: &Arguments, params: &FieldParams, file: GridFile) -> Result<ExitCode> {
    let group = global.group(&arguments.devices)?;
    let size = arguments.grid.size();
    let start = Instant::now();
    let done = group.field(params)?;
    let time = start.elapsed();
    file.write(|values| values(&done.values))?;
    if arguments.json {
        let parts = done.parts.iter().zip(&done.plan.shares).map(|(part, share)| {
            json!({
                "device": part.device,
                "planned_rows": [share.rows.start, share.rows.end],
                "rows": part.rows,
                "strips": part.strips,
                "strips_of_others": part.taken_over,
                "ms": report::milliseconds(part.time),
                "failure": part.failure.as_ref().map(ToString::to_string),
            })
        });
        return report::print_json(&json!({
            "op": "field",
            "width": size.width,
            "height": size.height,
            "frequency": arguments.wave.frequency.to_string(),
            "time": arguments.time,
            "output": arguments.output,
            "strip_rows": done.plan.strip_rows,
            "devices": parts.collect::<Vec<_>>(),
            "ms": report::milliseconds(time),
        }));
    }
    Ok(report::done(&format!(
        "field {} x {} on {} devices, in {} -> {}\n{done}",
        size.width,
        size.height,
        done.parts.len(),
        report::time_text(time),
        arguments.output.display(),
    )))
}
