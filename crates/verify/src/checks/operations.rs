//! Operations on tensors that exercise what drivers get wrong: sums over many workgroups, barriers, shuffled places, long loops, products. `checks::all`
//! has them; `cantus verify` and the tests of backends run them on each device. Each compares with float64 on the host within a stated bound. They are few
//! and aimed: the suite of operations is `tests/tensor_ops`.

use cantus::Engine;
use cantus::ops::{self, Attention, Expr, Window};

use super::{Check, words};
use crate::inputs::{Random, floats};

/// A matrix of numbers in [-1, 1), its rows and columns.
struct Matrix {
    values: Vec<f32>,
    shape: [usize; 2],
}

impl Matrix {
    fn new(seed: u64, rows: usize, columns: usize) -> Self {
        Self { values: floats(seed, rows * columns, -1.0, 1.0), shape: [rows, columns] }
    }

    fn expr(&self, engine: &Engine) -> Result<Expr, String> {
        Ok(engine.tensor_from(&self.values, &self.shape).map_err(words)?.expr())
    }

    fn rows(&self) -> impl Iterator<Item = Vec<f64>> + '_ {
        self.values.chunks(self.shape[1]).map(|row| row.iter().map(|&x| f64::from(x)).collect())
    }
}

/// Every element within `allowed` of what is expected, of the expected one's own magnitude or of 1, whichever is greater.
fn near(what: &Expr, expected: &[f64], allowed: f64) -> Result<(), String> {
    let values = what.eval().and_then(|tensor| tensor.to_vec::<f32>()).map_err(words)?;
    if values.len() != expected.len() {
        return Err(format!("{} values, {} expected", values.len(), expected.len()));
    }
    for (place, (&got, &want)) in values.iter().zip(expected).enumerate() {
        // Not `>`: a NaN must fail.
        if !((f64::from(got) - want).abs() <= allowed * want.abs().max(1.0)) {
            return Err(format!("element {place}: {got}, expected {want}"));
        }
    }
    Ok(())
}

fn equal(what: &Expr, expected: &[u32]) -> Result<(), String> {
    let values = what.eval().and_then(|tensor| tensor.to_vec::<u32>()).map_err(words)?;
    if values.len() != expected.len() {
        return Err(format!("{} values, {} expected", values.len(), expected.len()));
    }
    match values.iter().zip(expected).position(|(got, want)| got != want) {
        None => Ok(()),
        Some(place) => Err(format!("element {place}: {}, expected {}", values[place], expected[place])),
    }
}

fn product(a: &Matrix, b: &Matrix) -> Vec<f64> {
    let [_, columns] = b.shape;
    let mut out = Vec::with_capacity(a.shape[0] * columns);
    for row in a.rows() {
        let mut sums = vec![0.0; columns];
        for (factor, other) in row.iter().zip(b.rows()) {
            sums.iter_mut().zip(other).for_each(|(sum, x)| *sum += factor * x);
        }
        out.extend(sums);
    }
    out
}

/// A function of each row.
type OfRow = fn(&[f64]) -> Vec<f64>;

fn softmax(row: &[f64]) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|x| (x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|x| x / sum).collect()
}

fn rms_norm(row: &[f64]) -> Vec<f64> {
    let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    row.iter().map(|x| x / (mean + 1e-5).sqrt()).collect()
}

fn standardised(row: &[f64]) -> Vec<f64> {
    let count = row.len() as f64;
    let mean = row.iter().sum::<f64>() / count;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    row.iter().map(|x| (x - mean) / (variance + 1e-5).sqrt()).collect()
}

fn sum(row: &[f64]) -> Vec<f64> {
    vec![row.iter().sum()]
}

fn cumsum(row: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    row.iter()
        .map(|x| {
            sum += x;
            sum
        })
        .collect()
}

fn ones(engine: &Engine, count: usize) -> Result<Expr, String> {
    Ok(engine.tensor(&vec![1.0_f32; count]).map_err(words)?.expr())
}

fn zeros(engine: &Engine, count: usize) -> Result<Expr, String> {
    Ok(engine.tensor(&vec![0.0_f32; count]).map_err(words)?.expr())
}

fn columns(x: &Expr) -> Result<usize, String> {
    x.shape().map_err(words)?.last().copied().ok_or_else(|| "a matrix has columns".to_owned())
}

type Lazy = fn(&Engine, &Expr) -> Result<Expr, String>;

/// Operations along rows, each with its float64.
const ROWS: [(&str, Lazy, OfRow); 6] = [
    ("softmax", |_, x| Ok(x.softmax(-1)), softmax),
    ("log_softmax", |_, x| Ok(x.log_softmax(-1)), |row| softmax(row).into_iter().map(f64::ln).collect()),
    ("rms_norm", |engine, x| Ok(x.rms_norm(ones(engine, columns(x)?)?, 1e-5)), rms_norm),
    (
        "layer_norm",
        |engine, x| Ok(x.layer_norm(ones(engine, columns(x)?)?, zeros(engine, columns(x)?)?, 1e-5)),
        standardised,
    ),
    ("sum", |_, x| Ok(x.sum(&[1], false)), sum),
    ("cumsum", |_, x| Ok(x.cumsum(1)), cumsum),
];

/// All of them.
pub fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, lazy, of_row) in ROWS {
        for (rows, columns) in [(1, 1), (3, 7), (257, 63), (5, 4096), (2, 100_003)] {
            checks.push(Check::new(format!("operation {name} of rows, {rows} x {columns}"), move |engine| {
                let x = Matrix::new((rows + columns) as u64, rows, columns);
                let expected: Vec<f64> = x.rows().flat_map(|row| of_row(&row)).collect();
                near(&lazy(engine, &x.expr(engine)?)?, &expected, 2e-5)
            }));
        }
    }
    for (m, k, n) in [(1, 1, 1), (17, 33, 65), (128, 256, 128), (300, 7, 301), (1, 1000, 64)] {
        checks.push(Check::new(format!("operation matmul {m} x {k} by {k} x {n}"), move |engine| {
            let (a, b) = (Matrix::new(1, m, k), Matrix::new(2, k, n));
            near(&a.expr(engine)?.matmul(b.expr(engine)?), &product(&a, &b), 2e-5)
        }));
    }
    checks.push(Check::new("operation transpose 1000 x 333", |engine| {
        let x = Matrix::new(3, 1000, 333);
        let expected: Vec<f64> =
            (0..333).flat_map(|column| x.values.iter().skip(column).step_by(333).map(|&v| f64::from(v))).collect();
        near(&x.expr(engine)?.transpose(), &expected, 0.0)
    }));
    checks.push(Check::new("operation sort of 100,000", |engine| {
        let mut random = Random::new(4);
        let values: Vec<u32> = (0..100_000).map(|_| random.u32() >> random.below(30)).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        equal(&engine.tensor(&values).map_err(words)?.expr().sort(0, false), &expected)
    }));
    for length in [64, 65, 1000] {
        checks.push(Check::new(format!("operation sum of bytes, 257 rows of {length}"), move |engine| {
            let mut random = Random::new(6);
            let values: Vec<u8> = (0..257 * length).map(|_| random.below(256) as u8).collect();
            let expected: Vec<u32> =
                values.chunks(length).map(|row| row.iter().map(|&value| u32::from(value)).sum()).collect();
            let x = engine.tensor_from(&values, &[257, length]).map_err(words)?;
            equal(&x.sum(&[1], false), &expected)
        }));
    }
    checks.push(Check::new("operation histogram of 65,536 values in 1,000 bins", |engine| {
        let mut random = Random::new(5);
        let values: Vec<u32> = (0..65_536).map(|_| random.below(1000)).collect();
        let mut expected = vec![0; 1000];
        values.iter().for_each(|&value| expected[value as usize] += 1);
        equal(&engine.tensor(&values).map_err(words)?.expr().bincount(1000), &expected)
    }));
    checks.push(Check::new("operation random_bits: Philox 4x32-10", |engine| {
        // The generator's first published vector: key and counter of zeros.
        let first = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
        equal(&ops::random_bits(engine, &[4], 0), &first)
    }));
    checks.push(Check::new("operation conv2d 2 x 3 x 17 x 19 by 4 x 3 x 3 x 3", conv2d));
    checks.push(Check::new("operation attention, causal, 4 heads of 100 x 32", attention));
    for length in [8_usize, 1000, 4096] {
        checks.push(Check::new(format!("operation rfft of {length}"), move |engine| rfft(engine, length)));
    }
    checks
}

fn conv2d(engine: &Engine) -> Result<(), String> {
    let (x, w) = (floats(6, 2 * 3 * 17 * 19, -1.0, 1.0), floats(7, 4 * 3 * 9, -1.0, 1.0));
    let at = |n: usize, c: usize, y: usize, x_: usize| {
        if (1..=17).contains(&y) && (1..=19).contains(&x_) {
            f64::from(x[((n * 3 + c) * 17 + y - 1) * 19 + x_ - 1])
        } else {
            0.0
        }
    };
    let mut expected = Vec::new();
    for (n, o, row, column) in places([2, 4, 17, 19]) {
        let mut sum = 0.0;
        for (c, i, j, _) in places([3, 3, 3, 1]) {
            sum += at(n, c, row + i, column + j) * f64::from(w[(o * 3 + c) * 9 + i * 3 + j]);
        }
        expected.push(sum);
    }
    let images = engine.tensor_from(&x, &[2, 3, 17, 19]).map_err(words)?.expr();
    let weights = engine.tensor_from(&w, &[4, 3, 3, 3]).map_err(words)?.expr();
    near(&images.conv2d(weights, Window::strided(1).padded(1), 1), &expected, 2e-5)
}

/// All places of four axes, in their order.
fn places([a, b, c, d]: [usize; 4]) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    (0..a * b * c * d).map(move |place| (place / (b * c * d), place / (c * d) % b, place / d % c, place % d))
}

fn attention(engine: &Engine) -> Result<(), String> {
    let (heads, length, width) = (4, 100, 32);
    let part = |seed| floats(seed, heads * length * width, -1.0, 1.0);
    let (q, k, v) = (part(8), part(9), part(10));
    let at = |values: &[f32], head: usize, row: usize| -> Vec<f64> {
        values[(head * length + row) * width..][..width].iter().map(|&x| f64::from(x)).collect()
    };
    let mut expected = Vec::new();
    for head in 0..heads {
        for row in 0..length {
            let query = at(&q, head, row);
            let scores: Vec<f64> = (0..=row)
                .map(|key| {
                    let key = at(&k, head, key);
                    query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>() / (width as f64).sqrt()
                })
                .collect();
            let mut sums = vec![0.0; width];
            for (key, weight) in softmax(&scores).into_iter().enumerate() {
                sums.iter_mut().zip(at(&v, head, key)).for_each(|(sum, x)| *sum += weight * x);
            }
            expected.extend(sums);
        }
    }
    let lazy =
        |values: &[f32]| Ok::<Expr, String>(engine.tensor_from(values, &[heads, length, width]).map_err(words)?.expr());
    let (q, k, v) = (lazy(&q)?, lazy(&k)?, lazy(&v)?);
    near(&q.scaled_dot_product_attention(k, v, &Attention::new().causal()), &expected, 2e-5)
}

fn rfft(engine: &Engine, length: usize) -> Result<(), String> {
    let values = floats(11, length, -1.0, 1.0);
    let mut expected = Vec::new();
    for frequency in 0..=length / 2 {
        let (mut real, mut imaginary) = (0.0, 0.0);
        for (place, &value) in values.iter().enumerate() {
            let angle = -std::f64::consts::TAU * (frequency * place % length) as f64 / length as f64;
            real += f64::from(value) * angle.cos();
            imaginary += f64::from(value) * angle.sin();
        }
        expected.extend([real, imaginary]);
    }
    near(&engine.tensor(&values).map_err(words)?.expr().rfft(0), &expected, 1e-6 * length as f64)
}
