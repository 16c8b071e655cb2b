//! The transform of rows, as an operation. One operation is a whole transform of rows: native on the CPU, else a kernel for each pass, each reading what
//! the one before stored. The inverse exchanges the two parts, transforms, and exchanges them again. `Halves` is the step between real rows and complex
//! ones of half the length.

use std::f64::consts::PI;
use std::hash::Hash;
use std::sync::Arc;

use super::butterfly::{ROOT, pass, passes, smooth};
use super::tile::Tile;
use crate::backend::BoxFuture;
use crate::backend::native::{FftShape, Function, NativeOperation};
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use crate::ops::elementwise::Binary;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::evaluate::compute;
use crate::ops::expr::node::{Expr, Source, Typed};
use crate::ops::expr::operation::{Call, Composed, Operation};
use crate::ops::expr::shape::product;
use crate::ops::tensor::places_along;
use crate::tensor::DType;
use cantus_base::listed::Listed;
use cantus_base::threads;

const REAL: &str = cantus_shaders::tensor::FFT_REAL;

/// Rows of complex numbers (…, length, 2), transformed. The inverse divides by the length.
pub(super) struct Transform {
    pub(super) input: Arc<Typed>,
    pub(super) inverse: bool,
}

/// The step between real and complex rows: see the frame.
pub(super) struct Halves {
    pub(super) input: Arc<Typed>,
    /// Half the length of the real row.
    pub(super) half: usize,
    pub(super) inverse: bool,
}

/// The axes of rows of complex numbers.
fn groups(rank: usize) -> [(&'static str, std::ops::Range<usize>); 3] {
    [("row", 0..rank - 2), ("place", rank - 2..rank - 1), ("part", rank - 1..rank)]
}

/// A complex number, as its parts.
type Parts = [f32; 2];

/// Complex numbers of a task, at least.
const TASK: usize = 1 << 14;

impl Halves {
    /// The same over the bytes of that many floats, for a device that computes in the host's memory.
    fn function(&self, floats: usize, results: usize) -> NativeOperation {
        let (half, inverse) = (self.half, self.inverse);
        let roots: Vec<Parts> = (0..=half).map(|k| root(k, half)).collect();
        // Numbers of a row before and after.
        let [length, count] = if inverse { [half + 1, half] } else { [half, half + 1] };
        let sizes = vec![4 * floats, 4 * results];
        NativeOperation::Function(Function::new([half, usize::from(inverse)], sizes, move |_, inputs, result, _| {
            let from = inputs.first().and_then(|bytes| bytemuck::try_cast_slice::<u8, Parts>(bytes).ok());
            // A buffer of floats lies as floats do.
            let (Some(from), Ok(to)) = (from, bytemuck::try_cast_slice_mut::<u8, Parts>(result)) else {
                return Err("floats are not aligned".to_owned());
            };
            let rows = (TASK / count).max(1);
            threads::each_chunk(to, rows * count, |task, to| {
                let from = from.chunks_exact(length).skip(task * rows);
                for (from, to) in from.zip(to.chunks_exact_mut(count)) {
                    halves_of_row(from, to, &roots, inverse);
                }
            });
            Ok(())
        }))
    }
}

/// e^(-pi i k / half) for k up to half, from angles of an eighth of the circle at most, so that its zeros are zeros.
fn root(k: usize, half: usize) -> Parts {
    let (near, sign) = if 2 * k > half { (half - k, -1.0) } else { (k, 1.0) };
    let angle = |parts: usize| PI * parts as f64 / (2 * half) as f64;
    let (sin, cos) = if 4 * near > half {
        let (cos, sin) = angle(half - 2 * near).sin_cos();
        (sin, cos)
    } else {
        angle(2 * near).sin_cos()
    };
    [(sign * cos) as f32, -sin as f32]
}

/// The step for a row: what the frame `fft_real` computes.
fn halves_of_row(from: &[Parts], to: &mut [Parts], roots: &[Parts], inverse: bool) {
    let half = roots.len() - 1;
    // Behind the last number comes the first again; what the inverse reads there has no imaginary part.
    let number = |k: usize| match from.get(k) {
        Some(&[real, _]) if inverse && (k == 0 || k == half) => [real, 0.0],
        Some(&number) => number,
        None => from.first().copied().unwrap_or_default(),
    };
    for ((k, to), [cos, sin]) in to.iter_mut().enumerate().zip(roots) {
        let ([a, b], [c, d]) = (number(k), number(half - k));
        let even = [0.5 * (a + c), 0.5 * (b - d)];
        let odd = [0.5 * (a - c), 0.5 * (b + d)];
        *to = if inverse {
            [even[0] - (odd[1] * cos - odd[0] * sin), even[1] + (odd[0] * cos + odd[1] * sin)]
        } else {
            [even[0] + (odd[0] * sin + odd[1] * cos), even[1] - (odd[0] * cos - odd[1] * sin)]
        };
    }
}

impl Operation for Halves {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        (self.half, self.inverse).hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let input = call.slim(&self.input).await?;
            let rank = input.shape.len();
            let rows = product(&input.shape[..rank - 2]);
            let count = call.of.shape[rank - 2];
            word(product(&call.of.shape))?;
            if call.engine.is_processors() {
                let numbers = call.compute(&input).await?;
                let function = self.function(input.count(), product(&call.of.shape));
                let like = (DType::F32, &*call.of.shape);
                if let Some(result) = call.engine.native_async(function, &[&numbers], like, "fft_real").await? {
                    return call.followed(result).await;
                }
            }
            let mut writer = Writer::new(&[word(rows)?, word(self.half)?, word(count)?, 0]);
            writer.function("element", &input, &input.shape, &groups(rank), None)?;
            let body = format!("\nconst INVERSE = {};\n\n{ROOT}{REAL}", self.inverse);
            let output = call.output(&writer, DType::F32, "fft_real").await?;
            let workgroups = [product(&[rows, count]).div_ceil(64), 1, 1];
            Composed {
                name: "fft_real",
                writer: &writer,
                output: "vec2f",
                body: &body,
                workgroups,
                flops: 0,
                rounds: 0,
            }
            .run(call.engine, &output)
            .await?;
            call.followed(output).await
        })
    }
}

impl Transform {
    /// Runs the device's native operation, if it has one.
    async fn native(&self, call: Call<'_>, input: &Arc<Typed>) -> Result<Option<Tensor>> {
        let rank = input.shape.len();
        let shape = FftShape {
            rows: product(&input.shape[..rank - 2]),
            length: input.shape[rank - 2],
            inverse: self.inverse,
            wide: false,
        };
        let operation = NativeOperation::Fft(shape);
        if !call.engine.has_native(&operation) {
            return Ok(None);
        }
        let numbers = call.compute(input).await?;
        call.engine.native_async(operation, &[&numbers], (DType::F32, &input.shape), "fft").await
    }
}

impl Operation for Transform {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.inverse.hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let input = call.slim(&self.input).await?;
            let rank = input.shape.len();
            if let Some(result) = self.native(call, &input).await? {
                return call.followed(result).await;
            }
            let result = match passes(input.shape[rank - 2]) {
                Some((radices, tiles)) => by_radices(call.engine, &input, (&radices, tiles), self.inverse).await?,
                None => by_chirp(call.engine, &input, self.inverse).await?,
            };
            call.followed(result).await
        })
    }
}

/// Passes, of which each reads what the one before stored. The last `tiles` are a workgroup's work for many numbers.
async fn by_radices(
    engine: &Engine,
    input: &Arc<Typed>,
    (radices, tiles): (&[usize], usize),
    inverse: bool,
) -> Result<Tensor> {
    let shape = &input.shape;
    let rank = shape.len();
    let (rows, length) = (product(&shape[..rank - 2]), shape[rank - 2]);
    word(product(shape))?;
    let mut from = input.clone();
    let (mut span, mut spare): (usize, Option<Tensor>) = (1, None);
    for (number, &radix) in radices.iter().enumerate() {
        let is_last = number + 1 == radices.len();
        // The inverse is the transform between two exchanges of the parts.
        let swaps = u32::from(inverse && number == 0) | u32::from(inverse && is_last) << 1;
        let factor = if inverse && is_last { (1.0 / length as f64) as f32 } else { 1.0 };
        let mut writer = Writer::new(&[word(rows)?, word(length)?, word(span)?, swaps, factor.to_bits(), 0, 0, 0]);
        writer.function("element", &from, shape, &groups(rank), None)?;
        let to = match spare.take() {
            Some(spare) => spare,
            None => engine.output_async(writer.tensors().first(), DType::F32, shape, "fft").await?,
        };
        let count = product(&[rows, length]);
        let (name, body, groups) = if number + tiles >= radices.len() {
            let tile = Tile::new(radix, length, count, span);
            ("fft_tile", tile.text(), tile.workgroups(count))
        } else {
            ("fft", pass(radix, number == 0), (count / radix).div_ceil(64))
        };
        let workgroups = [groups, 1, 1];
        let flops = product(&[count, 5 * radix.ilog2() as usize]);
        Composed { name, writer: &writer, output: "vec2f", body: &body, workgroups, flops, rounds: 0 }
            .run(engine, &to)
            .await?;
        let read = std::mem::replace(&mut from, Typed::read(&to));
        if number > 0 {
            spare = Expr { engine: engine.clone(), state: Ok(read) }.tensor();
        }
        span *= radix;
    }
    match (Expr { engine: engine.clone(), state: Ok(from.clone()) }).tensor().filter(|_| !radices.is_empty()) {
        Some(result) => Ok(result),
        // Of a single number.
        None => compute(engine, &from).await,
    }
}

/// The product of complex numbers (…, 2), which broadcast.
pub(super) fn complex_product(a: &Expr, b: &Expr) -> Expr {
    let half = |from: usize| {
        let result = b.shape().map(|shape| {
            let mut ranges: Vec<_> = shape.iter().map(|&side| 0..side).listed();
            ranges.pop();
            ranges.push(from..from + 1);
            b.slice(&ranges)
        });
        b.of(result)
    };
    let signs = places_along(&a.engine, &[2], 0).cast(DType::F32) * 2.0 - 1.0;
    a.binary(Binary::Mul, half(0))
        .binary(Binary::Add, a.flip(&[-1]).binary(Binary::Mul, half(1).binary(Binary::Mul, signs)))
}

/// Any length, as a convolution with a chirp, e^(pi i n² / N) (Bluestein, 1970): a transform, a product, an inverse of a smooth length.
async fn by_chirp(engine: &Engine, input: &Arc<Typed>, inverse: bool) -> Result<Tensor> {
    let rank = input.shape.len();
    let length = input.shape[rank - 2];
    let wide = smooth(2 * length - 1);
    let x = Expr { engine: engine.clone(), state: Ok(input.clone()) };
    let x = if inverse { x.flip(&[-1]) } else { x };
    // The angle's whole turns are left out before it is rounded.
    let angles = (0..length as u64).map(|n| PI * (n * n % (2 * length as u64)) as f64 / length as f64);
    let roots: Vec<[f32; 2]> = angles.map(|angle| [angle.cos() as f32, -angle.sin() as f32]).listed();
    let mut filter = vec![[0.0_f32; 2]; wide];
    for (n, &[real, imaginary]) in roots.iter().enumerate() {
        for place in [n, (wide - n) % wide] {
            if let Some(to) = filter.get_mut(place) {
                *to = [real, -imaginary];
            }
        }
    }
    let chirp = engine.tensor_from_async(roots.as_flattened(), &[length, 2]).await?.expr();
    let filter = engine.tensor_from_async(filter.as_flattened(), &[wide, 2]).await?.expr();
    let mut around = vec![(0, 0); rank];
    around[rank - 2].1 = wide - length;
    let transformed = |x: &Expr, inverse: bool| {
        x.derived(|typed| {
            let shape = typed.shape.clone();
            Ok(Typed::deferred(Transform { input: typed.clone(), inverse }, shape, DType::F32))
        })
    };
    let spectrum = transformed(&complex_product(&x, &chirp).pad(&around, 0.0), false);
    let both = complex_product(&spectrum, &transformed(&filter, false));
    let mut ranges: Vec<_> = input.shape.iter().map(|&side| 0..side).listed();
    ranges[rank - 2] = 0..length;
    let result = complex_product(&transformed(&both, true).slice(&ranges), &chirp);
    let result = if inverse { result.flip(&[-1]) * (1.0 / length as f64) } else { result };
    result.eval_async().await
}

impl Expr {
    /// The tensor that it is, if it is one.
    fn tensor(&self) -> Option<Tensor> {
        match &self.state.as_ref().ok()?.node {
            crate::ops::expr::node::Node::Read(view) => match &view.source {
                Source::Tensor(tensor) => Some(tensor.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}
