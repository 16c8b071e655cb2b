//! `cantus coherence`: the neighbour correlation of a field in a `.npy` file, as one number.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use cantus::tensor::npy;
use cantus::{DType, Error, Result, ops};
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
  cantus --backend cpu coherence field.npy --json";

/// Runs the subcommand.
///
/// # Errors
/// As the library's operation, and when the file is not a field.
pub fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode> {
    let (values, shape) = read_field(&arguments.input)?;
    let engine = global.engine()?;
    let start = Instant::now();
    let field = engine.tensor_from(&values, &shape)?;
    let coherence = ops::coherence(&engine, &field)?;
    let time = start.elapsed();
    if arguments.json {
        return report::print_json(&json!({
            "op": "coherence",
            "coherence": coherence,
            "width": shape[1],
            "height": shape[0],
            "input": arguments.input,
            "device": report::device_json(&engine.selected().device),
            "ran_on": report::ran_on(&engine),
            "ms": report::milliseconds(time),
        }));
    }
    report::print(&format!("{coherence}\n"))
}

fn read_field(path: &Path) -> Result<(Vec<f32>, [usize; 2])> {
    let array = npy::read(path)?;
    let invalid = |reason: String| Error::InvalidInput { what: path.display().to_string(), reason };
    let &[height, width] = array.shape.as_slice() else {
        let axes = array.shape.len();
        return Err(invalid(format!("its shape is {:?}, {axes} axes; a field has two, rows and columns", array.shape)));
    };
    let values = match array.dtype {
        DType::F32 => bytemuck::pod_collect_to_vec(&array.bytes),
        DType::F64 => bytemuck::pod_collect_to_vec::<u8, f64>(&array.bytes).iter().map(|&value| value as f32).collect(),
        DType::F16 => {
            bytemuck::pod_collect_to_vec::<u8, half::f16>(&array.bytes).iter().map(|value| value.to_f32()).collect()
        }
        other => {
            return Err(invalid(format!("its elements are {other}; a field is of floats (array.astype(\"float32\"))")));
        }
    };
    Ok((values, [height, width]))
}
