//! `cantus animate`: the field over time, as a GIF or an animated PNG.

use std::f64::consts::TAU;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use cantus::Result;
use cantus::ops::{self, field::FieldParams};
use clap::Args;
use serde_json::json;

use super::animation::{self, Format, Plan};
use super::colormap::Shade;
use super::field::WaveArguments;
use super::global::Global;
use super::grid::GridArguments;
use super::progress::Progress;
use super::{parse, report};

/// PHI^PHI: the field's phase advances by this many radians a second.
pub const PHASE_SPEED: f64 = 2.178_457_567_937_599_5;

/// Animate the field over time, as a GIF or an animated PNG
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    grid: GridArguments,
    #[command(flatten)]
    wave: WaveArguments,
    /// Number of frames
    #[arg(long, value_name = "N", default_value = "72", value_parser = clap::value_parser!(u32).range(1..=1_000_000),
        allow_negative_numbers = true)]
    frames: u32,
    /// Frames per second; at most 50 in a GIF. A GIF's frames last whole hundredths of a second, so two delays alternate if the exact one is
    /// between them
    #[arg(long, value_name = "F", default_value = "25", value_parser = frames_per_second, allow_negative_numbers = true)]
    fps: f64,
    /// Time of the first frame, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse::finite, allow_negative_numbers = true)]
    time: f64,
    /// Seconds of the field per second of the animation
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse::finite, allow_negative_numbers = true)]
    speed: f64,
    /// Spread one period of the field (2.884 seconds) over the frames, so that the animation loops without a jump
    #[arg(long, conflicts_with = "speed")]
    seamless: bool,
    /// Output file: .gif, or .png (an animated PNG)
    #[arg(short, long, value_name = "FILE", default_value = "field.gif")]
    output: PathBuf,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cantus animate 256x256 --frames 72 --fps 25 --seamless -o field.gif
  cantus animate 640x480 --frequency unity --fps 60 --frames 173 -o field.png";

fn frames_per_second(text: &str) -> Result<f64, String> {
    parse::positive(text)
        .ok()
        .filter(|fps| (0.01..=1000.0).contains(fps))
        .ok_or_else(|| "it takes a number from 0.01 to 1000".to_owned())
}

/// Runs the subcommand.
///
/// # Errors
/// As the library's operation and the output file.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let size = arguments.grid.size();
    let coloring = arguments.grid.coloring();
    let (frames, fps) = (arguments.frames, arguments.fps);
    let format = Format::of(&arguments.output)?;
    let step = if arguments.seamless { TAU / PHASE_SPEED / f64::from(frames) } else { arguments.speed / fps };
    let plan = Plan { width: size.width, height: size.height, frames, fps, map: coloring.map };
    plan.check(format)?;
    let engine = global.engine()?;
    let start = Instant::now();
    let shade = Shade::new(coloring.range.0, coloring.range.1);
    let bar = Progress::new(u64::from(frames), "frames");
    let base = FieldParams::new(size.width, size.height).frequency(arguments.wave.frequency);
    animation::write(&arguments.output, format, plan, |frame, indices| {
        let params = base.time(arguments.time + f64::from(frame) * step);
        shade.indices(&ops::field::field(&engine, &params)?.to_vec::<f32>()?, indices);
        bar.add(1);
        Ok(())
    })?;
    bar.clear();
    let time = start.elapsed();
    if arguments.json {
        return report::print_json(&json!({
            "op": "animate",
            "width": size.width,
            "height": size.height,
            "frequency": arguments.wave.frequency.to_string(),
            "frames": frames,
            "fps": fps,
            "time": arguments.time,
            "time_step": step,
            "output": arguments.output,
            "device": report::device_json(&engine.selected().device),
            "ran_on": report::ran_on(&engine),
            "ms": report::milliseconds(time),
        }));
    }
    let delays = match animation::uneven_gif_delays(fps) {
        Some((short, long)) if format == Format::Gif => {
            format!(" (frames stay {short} or {long} hundredths of a second: a GIF has whole ones)")
        }
        _ => String::new(),
    };
    Ok(report::done(&format!(
        "animate {} x {}, {frames} frames on {}, in {} -> {}{delays}",
        size.width,
        size.height,
        report::device_text(&engine),
        report::time_text(time),
        arguments.output.display(),
    )))
}
