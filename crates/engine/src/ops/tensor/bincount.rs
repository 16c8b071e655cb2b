//! Counts of values: bins of whole numbers, and histograms. A histogram guesses bins by division and corrects them by the edges, so it is exact for edges in
//! float32; where edges are too close for that (`are_apart`), bins are searched for. Workgroups count up to `MOST_BINS` bins in memory of their own and add
//! the counts up by atomics, whose order changes no count; of more bins each element adds to the result. The CPU has both natively.

use std::hash::Hash;
use std::sync::Arc;

use super::create::{linspace, spaced};
use super::unrolled::unrolled;
use crate::backend::BoxFuture;
use crate::backend::native::{CountShape, NativeOperation};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::digest::Digest;
use crate::ops::expr::emit::{Writer, word};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Typed, is_whole};
use crate::ops::expr::operation::{Call, Composed, Operation, looped};
use crate::tensor::DType;

const BINCOUNT: &str = cantus_shaders::tensor::BINCOUNT;
const BINCOUNT_OWN: &str = cantus_shaders::tensor::BINCOUNT_OWN;
/// Bins that a workgroup counts in its own memory: 16 KiB, which every device has.
const MOST_BINS: usize = 4096;
/// Counts of a bin, so that invocations which count in the same one do not wait for each other.
const MOST_COPIES: usize = 8;
/// Invocations of a workgroup, and elements that each reads at a time.
const LANES: usize = 256;
const EACH: usize = 8;
/// Workgroups, at most: each adds its counts to the result.
const MOST_WORKGROUPS: usize = 1024;

/// How workgroups count in their own memory.
struct Own {
    bins: usize,
    workgroups: usize,
    rounds: usize,
}

impl Own {
    /// Returns `None` for more bins than fit, and for more elements than the kernel can number.
    fn of(count: usize, bins: usize) -> Option<Self> {
        let workgroups = count.div_ceil(LANES * EACH).clamp(1, MOST_WORKGROUPS);
        let rounds = count.div_ceil(LANES * EACH * workgroups);
        (bins <= MOST_BINS && count <= 1 << 31).then_some(Self { bins, workgroups, rounds })
    }

    fn copies(&self) -> usize {
        (MOST_BINS / self.size()).min(MOST_COPIES)
    }

    /// Bins in the text: few sizes, so that few kernels are compiled.
    fn size(&self) -> usize {
        self.bins.next_power_of_two().clamp(64, MOST_BINS)
    }

    fn text(&self) -> String {
        let (bins, copies) = (self.size(), self.copies());
        let frame = unrolled(BINCOUNT_OWN, EACH);
        format!("\nconst BINS = {bins}u;\nconst COPIES = {copies}u;\nconst EACH = {EACH}u;\n\n{frame}")
    }

    /// The rounds of an invocation's loops.
    fn looped(&self) -> usize {
        looped(self.rounds, 0) + looped(self.bins.div_ceil(LANES), looped(self.copies(), 0))
    }
}

struct Bincount(Arc<Typed>);

impl Operation for Bincount {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.0]
    }

    fn parameters(&self, _digest: &mut Digest) -> bool {
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let input = call.slim(&self.0).await?;
            let count = input.count();
            let operation = NativeOperation::Count(CountShape::whole(count, call.of.shape[0]));
            if call.engine.has_native(&operation) {
                let numbers = call.compute(&input).await?;
                let like = (DType::U32, &*call.of.shape);
                if let Some(counts) = call.engine.native_async(operation, &[&numbers], like, "bincount").await? {
                    return call.followed(counts).await;
                }
            }
            let bins = call.of.shape[0];
            let (body, [workgroups, each], rounds) = match Own::of(count, bins) {
                Some(own) => (own.text(), [own.workgroups, own.rounds], own.looped()),
                None => (format!("\n{BINCOUNT}"), [count.div_ceil(LANES), 0], 0),
            };
            let mut writer = Writer::new(&[word(count)?, word(bins)?, word(workgroups)?, word(each)?]);
            writer.function("element", &input, &input.shape, &[("i", 0..input.shape.len())], None)?;
            let output = call.engine.zeros_of_async(DType::U32, &call.of.shape).await?;
            let (workgroups, output_type) = ([workgroups, 1, 1], "atomic<u32>");
            Composed {
                name: "bincount",
                writer: &writer,
                output: output_type,
                body: &body,
                workgroups,
                flops: 0,
                rounds,
            }
            .run(call.engine, &output)
            .await?;
            call.followed(output).await
        })
    }
}

/// A histogram, computed natively by a device.
struct Histogram {
    /// The numbers, f32.
    input: Arc<Typed>,
    edges: Arc<Typed>,
    last: f32,
    /// The same by other operations.
    otherwise: Arc<Typed>,
}

impl Histogram {
    fn operation(&self) -> NativeOperation {
        let bins = self.edges.count().saturating_sub(1);
        NativeOperation::Count(CountShape::by_edges(self.input.count(), bins, self.last))
    }
}

impl Operation for Histogram {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.input, &self.edges]
    }

    fn parameters(&self, digest: &mut Digest) -> bool {
        self.last.to_bits().hash(digest);
        true
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let operation = self.operation();
            if call.engine.has_native(&operation) {
                let numbers = call.compute(&self.input).await?;
                let edges = call.compute(&self.edges).await?;
                let like = (DType::U32, &*call.of.shape);
                if let Some(counts) =
                    call.engine.native_async(operation, &[&numbers, &edges], like, "histogram").await?
                {
                    return Ok(counts);
                }
            }
            call.compute(&self.otherwise).await
        })
    }
}

/// Returns whether edges in f32 are so far from each other that their rounding moves none by more than a thirty-second of a part.
fn are_apart(bins: usize, low: f64, high: f64) -> bool {
    let most = low.abs().max(high.abs());
    bins <= 1 << 16 && (high - low) / bins as f64 >= 16.0 * f64::from(f32::EPSILON) * most && most < 1e30
}

/// The bin of each element, by division. Where rounding leads to a neighbouring bin, the edges correct it. This needs no kernel of its own, which would
/// write the bins and read them again, and no edges in memory. Elements outside of the range and NaN get a number that is no bin's.
fn guessed(x: &Expr, bins: usize, low: f64, high: f64) -> Expr {
    let edge = |place: &Expr| spaced(place, [low, high], bins + 1, DType::F32);
    let guess = ((x - low) * (bins as f64 / (high - low))).clamp(0.0, (bins - 1) as f64).cast(DType::U32);
    let below = x.less(edge(&guess)).cast(DType::U32);
    let above = x.greater_equal(edge(&guess.binary(Binary::Add, 1))).cast(DType::U32);
    let part = guess.binary(Binary::Add, above).binary(Binary::Sub, below);
    let inside = x.greater_equal(low).logical_and(x.less_equal(high));
    inside.select(&part, part.constant(f64::from(u32::MAX)))
}

impl Expr {
    /// Returns how often each whole number from 0 to `bins` - 1 occurs among i32 or u32 elements, as u32. Other numbers are not counted.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[0_i32, 2, 2, 5, -1])?;
    /// assert_eq!(x.bincount(4).eval()?.to_vec::<u32>()?, [1, 0, 2, 0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn bincount(&self, bins: usize) -> Self {
        self.derived(|typed| {
            if !is_whole(typed.dtype) {
                return Err(Error::dtype(
                    format!("bincount of {}", typed.dtype),
                    "it needs i32, u32 or narrower integers (cast first, or take a histogram)",
                ));
            }
            if typed.shape.contains(&0) || bins == 0 {
                return Ok(Typed::filled(0.0, &[bins], DType::U32));
            }
            // As u32 a negative number is beyond every bin.
            Ok(Typed::deferred(Bincount(typed.cast(DType::U32)), vec![bins], DType::U32))
        })
    }

    /// Returns the number of elements in each of `bins` parts of `low..=high`, as u32. The edges are those of [`crate::ops::linspace`] in f32. An
    /// element on an edge belongs to the part above it; `high` belongs to the last part. NaN and elements outside are not counted. Integers are
    /// converted to f32 first.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[0.0_f32, 0.1, 0.5, 0.75, 1.0, 7.0])?;
    /// assert_eq!(x.histogram(2, 0.0, 1.0).eval()?.to_vec::<u32>()?, [2, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn histogram(&self, bins: usize, low: f64, high: f64) -> Self {
        let limits = || {
            if bins == 0 || !(low < high && (high - low).is_finite()) {
                return Err(Error::invalid(
                    format!("a histogram of {bins} parts of {low}..={high}"),
                    "it needs at least one bin, and a range that is not empty",
                ));
            }
            self.shape().map(|shape| shape.iter().product::<usize>())
        };
        let count = match limits() {
            Ok(count) => count,
            Err(error) => return self.failed(&error),
        };
        let x = self.cast(DType::F32).reshape(&[count]);
        let edges = linspace(&self.engine, low, high, bins.saturating_add(1), DType::F32);
        let part = match are_apart(bins, low, high) {
            true => guessed(&x, bins, low, high),
            false => edges.searchsorted(&x, true).binary(Binary::Sub, 1),
        };
        x.counted_by(&edges, &part, bins, high as f32)
    }

    /// Returns the number of elements between each two neighbours of `edges`, as u32. Edges increase in about equal steps, and `last` is the last one. An
    /// element on an edge belongs to the part above it; `last` belongs to the last part. NaN and elements outside are not counted. Numbers and edges are
    /// converted to f32 first.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[0.0_f32, 0.1, 0.5, 0.75, 1.0, 7.0])?;
    /// let edges = engine.tensor(&[0.0_f32, 0.5, 1.0])?;
    /// assert_eq!(x.expr().histogram_by(&edges, 1.0).eval()?.to_vec::<u32>()?, [2, 3]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn histogram_by(&self, edges: impl Into<Self>, last: f64) -> Self {
        let edges = edges.into().cast(DType::F32);
        let sizes = || {
            let (of, shape) = (self.shape()?, edges.shape()?);
            match *shape {
                [edges] if edges >= 2 => Ok((of.iter().product::<usize>(), edges - 1)),
                _ => Err(Error::shape(
                    format!("a histogram by edges of the shape {shape:?}"),
                    "they have one axis, and are two or more",
                )),
            }
        };
        let (count, bins) = match sizes() {
            Ok(sizes) => sizes,
            Err(error) => return self.failed(&error),
        };
        let x = self.cast(DType::F32).reshape(&[count]);
        let part = edges.searchsorted(&x, true).binary(Binary::Sub, 1);
        x.counted_by(&edges, &part, bins, last as f32)
    }

    /// The counts of elements, one axis of f32, by edges; `part` is the bin of each, that of `last` aside.
    fn counted_by(&self, edges: &Self, part: &Self, bins: usize, last: f32) -> Self {
        let counts = self.equal(f64::from(last)).select(part.constant((bins - 1) as f64), part).bincount(bins);
        self.derived(|input| {
            let otherwise = self.beside(&counts)?;
            if input.shape.contains(&0) {
                return Ok(otherwise);
            }
            let histogram = Histogram { input: input.clone(), edges: self.beside(edges)?, last, otherwise };
            match self.engine.has_native(&histogram.operation()) {
                true => Ok(Typed::deferred(histogram, vec![bins], DType::U32)),
                false => Ok(histogram.otherwise),
            }
        })
    }
}

tensor_methods! {
    fn bincount(bins: usize);
    fn histogram(bins: usize, low: f64, high: f64);
    fn histogram_by(edges: impl Into<Expr>, last: f64);
}
