//! Programs of `programs.py` in Rust: on Cantus, on ndarray and on Burn, in turn in one process, warm, medians, against ndarray in float64.

mod burns;
mod cantuses;
mod ndarrays;

use std::error::Error;
use std::time::Instant;

use burn_tensor::{DType, Device, Int, Tensor, TensorData};
use ndarray::{Array, ArrayD, Dim, Dimension, Ix};
use ndarrays::Real;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A program's result, in the library's own form, and how its numbers are read.
pub type Reader = Box<dyn FnOnce() -> Result<Vec<f64>, Box<dyn Error>>>;
/// A program with its inputs: it runs until the result is computed.
pub type Run = Box<dyn Fn() -> Result<Reader, Box<dyn Error>>>;

/// The inputs of a program.
pub struct Inputs {
    arrays: Vec<ArrayD<f32>>,
    pub engine: cantus::Engine,
    pub device: Device,
}

impl Inputs {
    /// For Cantus.
    pub fn tensor(&self, at: usize) -> cantus::Result<cantus::Tensor> {
        self.engine.tensor_from_array(&self.arrays[at])
    }

    /// For ndarray.
    pub fn array<F: Real, const D: usize>(&self, at: usize) -> Result<Array<F, Dim<[Ix; D]>>, ndarray::ShapeError>
    where
        Dim<[Ix; D]>: Dimension,
    {
        self.arrays[at].mapv(|x| F::of(f64::from(x))).into_dimensionality()
    }

    fn data(&self, at: usize) -> TensorData {
        let array = &self.arrays[at];
        TensorData::new(array.iter().copied().collect::<Vec<f32>>(), array.shape().to_vec())
    }

    /// For Burn.
    pub fn burn<const D: usize>(&self, at: usize) -> Tensor<D> {
        Tensor::from_data(self.data(at), &self.device)
    }

    /// Bytes for Burn.
    pub fn burn_bytes<const D: usize>(&self, at: usize) -> Tensor<D, Int> {
        Tensor::from_data(self.data(at).convert::<u8>(), (&self.device, DType::U8))
    }
}

/// Numbers from a seed (splitmix64).
pub struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// From `low` to `high`.
    fn between(&mut self, shape: &[usize], low: f64, high: f64) -> ArrayD<f32> {
        ArrayD::from_shape_simple_fn(shape, || (low + (high - low) * self.uniform()) as f32)
    }

    /// Around 0, so wide.
    fn around(&mut self, shape: &[usize], width: f64) -> ArrayD<f32> {
        ArrayD::from_shape_simple_fn(shape, || (width * self.normal()) as f32)
    }

    /// 1 with this probability, and else 0.
    fn ones(&mut self, shape: &[usize], share: f64) -> ArrayD<f32> {
        ArrayD::from_shape_simple_fn(shape, || f32::from(self.uniform() < share))
    }
}

fn line(shape: &[usize], low: f64, high: f64) -> ArrayD<f32> {
    let count = shape.iter().product::<usize>();
    let mut at = 0;
    ArrayD::from_shape_simple_fn(shape, || {
        at += 1;
        (low + (high - low) * (at - 1) as f64 / (count - 1) as f64) as f32
    })
}

fn clusters(r: &mut Random) -> Vec<ArrayD<f32>> {
    let centres = r.around(&[4, 8], 4.0);
    let mut points = r.around(&[40_000, 8], 1.0);
    for mut point in points.outer_iter_mut() {
        let centre = (4.0 * r.uniform()) as usize;
        point += &centres.index_axis(ndarray::Axis(0), centre);
    }
    vec![points, &centres + &r.around(&[4, 8], 1.0)]
}

/// Prepares a program's run from its inputs.
type Prepare = fn(&Inputs) -> Result<Run, Box<dyn Error>>;

struct Program {
    name: &'static str,
    /// How far a result may be from float64's, of its largest number; of `exact` ones, the share of numbers that differ.
    tolerance: f64,
    exact: bool,
    inputs: fn(&mut Random) -> Vec<ArrayD<f32>>,
    wide: Prepare,
    /// Cantus, ndarray, Burn.
    forms: [Prepare; 3],
}

const LIBRARIES: [&str; 3] = ["Cantus", "ndarray", "Burn"];

macro_rules! program {
    ($name:ident, $tolerance:expr, $inputs:expr) => {
        program!($name, $tolerance, $inputs, false, ndarrays::$name::<f64>)
    };
    ($name:ident, $tolerance:expr, $inputs:expr, $exact:expr, $wide:expr) => {
        Program {
            name: stringify!($name),
            tolerance: $tolerance,
            exact: $exact,
            inputs: $inputs,
            wide: $wide,
            forms: [cantuses::$name, ndarrays::$name::<f32>, burns::$name],
        }
    };
}

const PROGRAMS: [Program; 17] = [
    program!(life, 0.0, |r| vec![r.ones(&[512, 512], 0.3)], true, ndarrays::life::<f64>),
    program!(logistic_regression, 1e-4, |r| vec![r.around(&[2000, 64], 1.0), r.ones(&[2000], 0.5)]),
    program!(lstm, 1e-4, |r| {
        vec![r.around(&[60, 32, 128], 1.0), r.around(&[128, 512], 1.0 / 12.0), r.around(&[128, 512], 1.0 / 12.0)]
    }),
    program!(gru, 1e-4, |r| {
        vec![r.around(&[60, 32, 128], 1.0), r.around(&[128, 384], 1.0 / 12.0), r.around(&[128, 384], 1.0 / 12.0)]
    }),
    // In float32 both times: a point's count depends on the last digits.
    program!(
        mandelbrot,
        1e-3,
        |_| vec![line(&[1, 600], -2.0, 0.6), line(&[480, 1], -1.2, 1.2)],
        true,
        ndarrays::mandelbrot::<f32>
    ),
    program!(n_body, 1e-3, |r| vec![r.around(&[1000, 3], 1.0), r.between(&[1000], 0.0, 1.0)]),
    program!(attention, 1e-4, |r| (0..3).map(|_| r.around(&[8, 256, 64], 1.0)).collect()),
    program!(k_means_one_hot, 1e-3, clusters),
    program!(sobel_slices, 1e-4, |r| vec![r.between(&[1024, 1024], 0.0, 1.0)]),
    program!(black_scholes, 1e-4, |r| {
        vec![
            r.between(&[1_000_000], 50.0, 150.0),
            r.between(&[1_000_000], 50.0, 150.0),
            r.between(&[1_000_000], 0.1, 1.1),
        ]
    }),
    program!(kalman, 1e-3, |r| vec![r.around(&[200, 2, 1], 1.0)]),
    program!(heat, 1e-4, |r| vec![r.between(&[256, 256], 0.0, 1.0)]),
    program!(floyd_warshall, 1e-4, |r| vec![r.between(&[200, 200], 1.0, 100.0)]),
    program!(monte_carlo, 1e-3, |r| vec![r.between(&[2, 1_000_000], 0.0, 1.0)]),
    program!(transformer_cache, 1e-4, |r| {
        vec![
            r.around(&[32, 1, 256], 1.0),
            r.around(&[256, 768], 1.0 / 16.0),
            r.around(&[256, 256], 1.0 / 16.0),
            r.around(&[256, 1024], 1.0 / 16.0),
            r.around(&[1024, 256], 1.0 / 32.0),
        ]
    }),
    program!(nearest, 1e-3, |r| vec![r.around(&[2000, 16], 1.0), r.around(&[500, 16], 1.0)]),
    program!(symmetric_loop, 1e-4, |r| vec![r.around(&[64, 64], 1.0)]),
];

/// How far a result is off: the share of numbers that differ, or the greatest difference of the largest number.
fn off(program: &Program, got: &[f64], right: &[f64]) -> f64 {
    let pairs = || got.iter().zip(right);
    if got.len() != right.len() {
        return f64::NAN;
    }
    if program.exact {
        return pairs().filter(|(a, b)| a != b).count() as f64 / right.len() as f64;
    }
    let largest = right.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    // NaN is the greatest difference.
    pairs().map(|(a, b)| (a - b).abs()).fold(0.0, |most: f64, x| if x > most || x.is_nan() { x } else { most })
        / largest
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut only, mut turns, mut json, mut profile) = (Vec::new(), 15, None, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--turns" => turns = words.next().ok_or("--turns needs a number")?.parse::<usize>()?.max(1),
            "--json" => json = Some(words.next().ok_or("--json needs a file")?),
            "--profile" => profile = true,
            name if PROGRAMS.iter().any(|program| program.name == name) => only.push(name.to_owned()),
            _ => return Err(format!("{word} is neither --turns N, --json FILE, --profile nor a program").into()),
        }
    }
    println!(
        "{:<22}{:>10}{:>10}{:>10}   Cantus of ndarray, Burn",
        "milliseconds", LIBRARIES[0], LIBRARIES[1], LIBRARIES[2]
    );
    let (mut rows, mut logs, mut within) = (serde_json::Map::new(), [0.0; 2], [0; 2]);
    let mut wrong = Vec::new();
    for program in PROGRAMS.iter().filter(|program| only.is_empty() || only.iter().any(|name| name == program.name)) {
        let inputs = Inputs {
            arrays: (program.inputs)(&mut Random(7)),
            engine: cantus::Engine::builder().backend("cpu").build()?,
            device: Device::flex(),
        };
        let right = (program.wide)(&inputs)?()?()?;
        let mut runs = Vec::new();
        for (form, library) in program.forms.iter().zip(LIBRARIES) {
            let run = form(&inputs)?;
            let far = off(program, &run()?()?, &right);
            if far.is_nan() || far > program.tolerance {
                wrong.push(format!("{} on {library} is off by {far:.1e}", program.name));
            }
            drop(run()?);
            runs.push(run);
        }
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..turns {
            for (run, times) in runs.iter().zip(&mut times) {
                // The first run after another library's finds the caches full of that one's.
                drop(run()?);
                let begin = Instant::now();
                let result = run()?;
                times.push(1000.0 * begin.elapsed().as_secs_f64());
                drop(result);
            }
        }
        let [cantus, ndarray, burn] = times.each_mut().map(|times| median(times));
        for (at, ratio) in [cantus / ndarray, cantus / burn].into_iter().enumerate() {
            logs[at] += ratio.ln();
            within[at] += usize::from(ratio <= 1.0);
        }
        println!(
            "{:<22}{cantus:>10.2}{ndarray:>10.2}{burn:>10.2}   {:.2}, {:.2}",
            program.name,
            cantus / ndarray,
            cantus / burn
        );
        if profile && let [run, ..] = &runs[..] {
            let (result, times) = inputs.engine.profile(run);
            drop(result?);
            println!("{times}");
        }
        rows.insert(
            program.name.to_owned(),
            serde_json::json!({ "cantus": times[0], "ndarray": times[1], "burn": times[2] }),
        );
    }
    let count = rows.len();
    for (at, library) in LIBRARIES[1..].iter().enumerate() {
        let mean = (logs[at] / count as f64).exp();
        println!("of {library}'s time: geometric mean {mean:.2}, at most 1.0 in {} of {count}", within[at]);
    }
    if let Some(file) = json {
        std::fs::write(file, serde_json::to_string_pretty(&rows)?)?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}
