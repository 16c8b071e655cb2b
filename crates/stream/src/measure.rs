//! Numbers of a whole stream: sums, extremes, moments, histograms. Devices sum parts of chunks; the host puts them together in
//! float64 and whole numbers.

use serde::{Deserialize, Serialize};

use super::Stream;
use super::feed::Chunk;
use super::run::{Done, State, packed, unpacked};
use super::source::Source;
use crate::engine::Tensor;
use crate::engine::blocking::block_on;
use crate::error::{Error, Result};
use crate::ops::Expr;
use crate::tensor::{DType, Kind};

/// Elements that a device adds up by itself: few enough for exact sums of halves of whole numbers.
const PART: usize = 4096;

/// A summary of all elements of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of elements.
    pub count: u64,
    /// Their sum: for integers exact, then rounded once; for floats, parts of 4,096 elements are summed in the elements' type (float16 and
    /// bfloat16 in float32), and these sums in float64.
    pub sum: f64,
    /// The mean; NaN if there are no elements.
    pub mean: f64,
    /// The mean of the squared distances from the mean; NaN if there are no elements. Those of a chunk are summed in float32 (in float64 for
    /// elements of 64 bits), and chunks are joined by the formula of Chan, Golub and LeVeque, 1983.
    pub variance: f64,
    /// The least element; NaN if one is NaN, infinity if there are none.
    pub min: f64,
    /// The greatest element; NaN if one is NaN, minus infinity if there are none.
    pub max: f64,
}

/// The measurements to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    sum: bool,
    moments: bool,
    min: bool,
    max: bool,
}

/// Sums of the elements by parts, in order: halves of whole numbers apart, the lower ones first.
fn parts(x: &Expr, dtype: DType) -> Result<Vec<Tensor>> {
    let count: usize = x.shape()?.iter().product();
    let flat = x.reshape(&[count]);
    let whole = count / PART * PART;
    let mut sums = Vec::new();
    for (range, shape) in [(0..whole, [whole / PART, PART]), (whole..count, [1, count - whole])] {
        if range.is_empty() {
            continue;
        }
        let part = flat.slice(&[range]).reshape(&shape);
        for half in halves(&part, dtype)? {
            sums.push(half.sum(&[1], false).eval()?);
        }
    }
    Ok(sums)
}

/// An element as what is added up: floats as they are, whole numbers of 32 and 64 bits as two halves, whose sums no part overflows.
fn halves(x: &Expr, dtype: DType) -> Result<Vec<Expr>> {
    Ok(match (dtype.kind(), dtype.bytes()) {
        (Kind::Complex, _) => {
            return Err(Error::dtype(
                format!("the sum of a stream of {dtype}"),
                "its elements are complex: fold it with Stream::fold, or stream the parts separately",
            ));
        }
        (Kind::Float, 2) => vec![x.cast(DType::F32)],
        (Kind::Float, _) => vec![x.clone()],
        (_, 4) => vec![x.bitwise_and(0xffff_u32 as f64), x.shift_right(16)],
        (_, 8) => vec![x.bitwise_and(f64::from(u32::MAX)), x.shift_right(32)],
        _ => vec![x.cast(DType::I32)],
    })
}

/// Sums of parts, put together: of whole numbers exactly, of floats in float64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Total {
    whole: i128,
    float: f64,
}

impl Total {
    /// Adds the sums of [`parts`].
    fn add(&mut self, sums: &[Tensor], dtype: DType) -> Result<()> {
        let halves = if dtype.kind() != Kind::Float && dtype.bytes() >= 4 { 2 } else { 1 };
        for (place, sum) in sums.iter().enumerate() {
            let weight = if place % halves == 1 { 1_i128 << (dtype.bytes() * 4) } else { 1 };
            match numbers(sum)? {
                Numbers::Float(values) => self.float += values.into_iter().sum::<f64>(),
                Numbers::Whole(values) => self.whole += weight * values.into_iter().map(i128::from).sum::<i128>(),
            }
        }
        Ok(())
    }

    fn value(self) -> f64 {
        self.whole as f64 + self.float
    }
}

/// A small tensor's elements.
enum Numbers {
    Float(Vec<f64>),
    Whole(Vec<i64>),
}

fn numbers(tensor: &Tensor) -> Result<Numbers> {
    Ok(match tensor.dtype() {
        DType::F32 => Numbers::Float(tensor.to_vec::<f32>()?.into_iter().map(f64::from).collect()),
        DType::F64 => Numbers::Float(tensor.to_vec()?),
        DType::I32 => Numbers::Whole(tensor.to_vec::<i32>()?.into_iter().map(i64::from).collect()),
        DType::U32 => Numbers::Whole(tensor.to_vec::<u32>()?.into_iter().map(i64::from).collect()),
        // Sums of halves, which are below 2^44.
        DType::U64 => Numbers::Whole(tensor.to_vec::<u64>()?.into_iter().map(u64::cast_signed).collect()),
        _ => Numbers::Whole(tensor.to_vec()?),
    })
}

/// The one element of a tensor.
fn item(tensor: &Tensor) -> Result<f64> {
    Ok(match (tensor.dtype(), tensor.dtype().kind()) {
        (DType::F64, _) => tensor.item()?,
        (DType::I64, _) => tensor.item::<i64>()? as f64,
        (DType::U64, _) => tensor.item::<u64>()? as f64,
        (DType::U32, _) => f64::from(tensor.item::<u32>()?),
        (_, Kind::Float) => f64::from(tensor.cast(DType::F32).eval()?.item::<f32>()?),
        _ => f64::from(tensor.cast(DType::I32).eval()?.item::<i32>()?),
    })
}

/// The measures of the chunks so far.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Measured {
    count: u64,
    total: Total,
    /// Squared distances from the mean, summed.
    squares: f64,
    mean: f64,
    min: f64,
    max: f64,
}

struct Measuring {
    wanted: Wanted,
    dtype: DType,
    row: u64,
    measured: Measured,
}

impl Measuring {
    /// Joins a chunk of `count` elements, whose squared distances from its own mean have that mean.
    fn join(&mut self, count: u64, mean: f64, variance: f64) {
        let (ours, theirs) = (self.measured.count as f64, count as f64);
        let (all, distance) = (ours + theirs, mean - self.measured.mean);
        self.measured.squares += variance * theirs + distance * distance * ours * (theirs / all);
        self.measured.mean += distance * (theirs / all);
    }
}

impl State for Measuring {
    fn take(&mut self, done: &Done) -> Result<()> {
        let count = done.rows as u64 * self.row;
        if count == 0 {
            return Ok(());
        }
        let mut outputs = done.outputs.as_slice();
        let mut next = || outputs.split_off_first().map_or(Ok(f64::NAN), item);
        if self.wanted.min {
            self.measured.min = lesser(self.measured.min, next()?);
        }
        if self.wanted.max {
            self.measured.max = -lesser(-self.measured.max, -next()?);
        }
        let variance = if self.wanted.moments { next()? } else { 0.0 };
        if self.wanted.sum {
            let mut own = Total::default();
            own.add(outputs, self.dtype)?;
            self.measured.total.whole += own.whole;
            self.measured.total.float += own.float;
            if self.wanted.moments {
                self.join(count, own.value() / count as f64, variance);
            }
        }
        self.measured.count += count;
        Ok(())
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        packed(&self.measured)
    }

    fn load(&mut self, saved: Option<&[u8]>) -> Result<()> {
        if let Some(saved) = saved {
            self.measured = unpacked(saved)?;
        }
        Ok(())
    }
}

/// The lesser of two; NaN where one is.
fn lesser(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b { a } else { b }
}

impl Stream {
    fn measure(self, wanted: Wanted) -> Result<Summary> {
        let source = self.only("a measure")?;
        let dtype = source.dtype();
        let row = source.row().iter().map(|&side| side as u64).product();
        if dtype.kind() == Kind::Complex {
            halves(&crate::ops::full(&self.engine, &[1], 0.0, DType::F32), dtype)?;
        }
        let measured = Measured {
            count: 0,
            total: Total::default(),
            squares: 0.0,
            mean: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        };
        let mut state = Measuring { wanted, dtype, row, measured };
        let work = move |chunk: &Chunk, _: Option<&Tensor>| {
            let x = chunk.tensor().expr();
            let mut outputs = Vec::new();
            if chunk.rows() == 0 {
                return Ok((outputs, None));
            }
            if wanted.min {
                outputs.push(x.min(&[], false).eval()?);
            }
            if wanted.max {
                outputs.push(x.max(&[], false).eval()?);
            }
            if wanted.moments {
                let x = x.cast(if dtype.bytes() == 8 { DType::F64 } else { DType::F32 });
                outputs.push(x.variance(&[], 0.0, false).eval()?);
            }
            if wanted.sum {
                outputs.extend(parts(&x, dtype)?);
            }
            Ok((outputs, None))
        };
        self.run(&format!("measuring {wanted:?}"), None, work, &mut state)?;
        let Measured { count, total, squares, min, max, .. } = state.measured;
        let sum = total.value();
        Ok(Summary { count, sum, mean: sum / count as f64, variance: squares / count as f64, min, max })
    }

    /// The only source.
    pub(super) fn only(&self, what: &str) -> Result<&dyn Source> {
        let reason = match (self.sources.as_slice(), self.cut.before + self.cut.after) {
            ([source], 0) => return Ok(&**source),
            ([_], _) => "its chunks overlap, so rows would count twice",
            _ => "it has several sources, but this needs one",
        };
        Err(Error::invalid(format!("{what} of a stream"), reason))
    }

    /// Returns the sum of all elements, as [`Summary::sum`].
    ///
    /// # Errors
    /// Those of the source and of the engine; [`Error::Dtype`] for complex elements, [`Error::InvalidInput`] for chunks that overlap, and several sources.
    pub fn sum(self) -> Result<f64> {
        Ok(self.measure(Wanted { sum: true, moments: false, min: false, max: false })?.sum)
    }

    /// Returns the mean of all elements; NaN if there are none.
    ///
    /// # Errors
    /// As [`Stream::sum`].
    pub fn mean(self) -> Result<f64> {
        Ok(self.measure(Wanted { sum: true, moments: false, min: false, max: false })?.mean)
    }

    /// Returns the least element; NaN if one is NaN, infinity if there are none.
    ///
    /// # Errors
    /// As [`Stream::sum`].
    pub fn min(self) -> Result<f64> {
        Ok(self.measure(Wanted { sum: false, moments: false, min: true, max: false })?.min)
    }

    /// Returns the greatest element; NaN if one is NaN, minus infinity if there are none.
    ///
    /// # Errors
    /// As [`Stream::sum`].
    pub fn max(self) -> Result<f64> {
        Ok(self.measure(Wanted { sum: false, moments: false, min: false, max: true })?.max)
    }

    /// Returns the number of elements, sum, mean, variance, least and greatest element, reading the data once.
    ///
    /// ```
    /// use cantus::{Engine, stream::{Items, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let items = Items::new((0..1000).map(|item| vec![item % 10; 100]), &[])?;
    /// let summary = Stream::new(&engine, items).summary()?;
    /// assert_eq!((summary.count, summary.sum, summary.mean), (100_000, 450_000.0, 4.5));
    /// assert_eq!((summary.min, summary.max), (0.0, 9.0));
    /// assert!((summary.variance - 8.25).abs() < 1e-6);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Stream::sum`].
    pub fn summary(self) -> Result<Summary> {
        self.measure(Wanted { sum: true, moments: true, min: true, max: true })
    }

    /// Returns the number of elements in each of `bins` parts of `low..=high`, as [`Expr::histogram`].
    ///
    /// ```
    /// use cantus::{Engine, stream::{Items, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let items = Items::new((0..1000).map(|item| vec![item as f32; 100]), &[])?;
    /// assert_eq!(Stream::new(&engine, items).histogram(4, 0.0, 1000.0)?, [25_000; 4]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Stream::sum`], and [`Error::InvalidInput`] for no parts or an empty range.
    pub fn histogram(self, bins: usize, low: f64, high: f64) -> Result<Vec<u64>> {
        self.only("a histogram")?;
        let mut state = Counts(vec![0; bins]);
        let work =
            |chunk: &Chunk, _: Option<&Tensor>| Ok((vec![chunk.tensor().histogram(bins, low, high).eval()?], None));
        self.run(&format!("a histogram of {bins} parts of {low}..={high}"), None, work, &mut state)?;
        Ok(state.0)
    }

    /// Folds the chunks into a tensor, one after the other: `work` computes each next tensor, of the same shape, from the one before, beginning with
    /// `initial`.
    ///
    /// ```
    /// use cantus::{Engine, stream::{Items, Stream}};
    ///
    /// # let engine = Engine::builder().backend("cpu").build()?;
    /// let items = Items::new((0..1000).map(|item| vec![item as f32, 1.0]), &[2])?;
    /// let columns = Stream::new(&engine, items)
    ///     .fold(engine.zeros::<f32>(&[2])?, |chunk, sums| (chunk.tensor().sum(&[0], false) + sums).eval())?;
    /// assert_eq!(columns.to_vec::<f32>()?, [499_500.0, 1000.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the sources, of the engine and of `work`; [`Error::Shape`] if `work` returns another shape.
    pub fn fold(self, initial: Tensor, mut work: impl FnMut(&Chunk, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
        self.is_named("a fold")?;
        let first = initial.clone();
        let work = |chunk: &Chunk, carry: Option<&Tensor>| {
            if chunk.rows() == 0 {
                return Ok((Vec::new(), None));
            }
            let next = work(chunk, carry.unwrap_or(&first))?;
            if next.shape() != first.shape() || next.dtype() != first.dtype() {
                return Err(Error::shape(
                    "a stream's fold",
                    format!("it made {}{:?} of {}{:?}", next.dtype(), next.shape(), first.dtype(), first.shape()),
                ));
            }
            Ok((vec![next.clone()], Some(next)))
        };
        let folded = self.run("a fold", Some(first.clone()), work, &mut Waiting)?;
        Ok(folded.unwrap_or(initial))
    }
}

/// Waits for each carried value, which stays on the device, so that they do not pile up.
struct Waiting;

impl State for Waiting {
    fn take(&mut self, done: &Done) -> Result<()> {
        done.outputs.iter().try_for_each(|output| block_on(output.wait_async()))
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn load(&mut self, _saved: Option<&[u8]>) -> Result<()> {
        Ok(())
    }
}

/// Counts of a histogram.
struct Counts(Vec<u64>);

impl State for Counts {
    fn take(&mut self, done: &Done) -> Result<()> {
        for output in &done.outputs {
            self.0.iter_mut().zip(output.to_vec::<u32>()?).for_each(|(count, more)| *count += u64::from(more));
        }
        Ok(())
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        packed(&self.0)
    }

    fn load(&mut self, saved: Option<&[u8]>) -> Result<()> {
        let Some(saved) = saved else { return Ok(()) };
        let counts: Vec<u64> = unpacked(saved)?;
        if counts.len() != self.0.len() {
            return Err(super::run::damaged("it is of another histogram"));
        }
        self.0 = counts;
        Ok(())
    }
}
