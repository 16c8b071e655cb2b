//! Neighbour correlation of a field, in two reductions whose partial results the host combines in float64; in one, where a native kernel
//! holds the whole field.

use std::ops::RangeInclusive;

use crate::engine::{Engine, Extent, Tensor, Value};
use crate::error::{DtypeError, Error, Result};
use crate::shipped::{COHERENCE_MOMENTS, COHERENCE_NEIGHBOUR_SUM, ShippedKernel};
use crate::tensor::DType;

#[cfg(feature = "graph")]
mod by_rows;
#[cfg(feature = "wgsl")]
mod whole;

/// Values that a workgroup of the first reduction takes per block: 32 rows of 256.
const BLOCK: u64 = 8192;
/// Rows that a workgroup of the second takes per block.
const ROWS: u64 = 32;
/// Columns that a workgroup of the second takes.
const LANES: u64 = 256;
/// Partial sums along one axis, at most: few enough to add on the host, many enough to fill a device.
const PARTIALS: u64 = 4096;
/// Largest magnitudes of values whose squared distances float32 holds, whatever else is among them.
const IN_RANGE: RangeInclusive<f64> = 1.0 / (1_u64 << 30) as f64..=(1_u64 << 40) as f64;

/// A checked field: two axes, float32, at least one value, and a number of values that 32 bits can count.
pub(crate) struct Sheet<'a> {
    engine: Engine,
    values: &'a Tensor,
    width: u32,
    height: u32,
    count: u32,
}

impl<'a> Sheet<'a> {
    pub(crate) fn checked(engine: &Engine, values: &'a Tensor) -> Result<Self> {
        let what = || format!("the coherence of the tensor {}", values.label());
        if values.dtype() != DType::F32 {
            let (found, wanted) = (values.dtype().name(), DType::F32.name());
            return Err(DtypeError::Mismatch { what: what(), found, wanted }.into());
        }
        let &[height, width] = values.shape() else {
            return Err(Error::shape(
                what(),
                format!("it must have two axes (rows, columns), its shape is {:?}", values.shape()),
            ));
        };
        if width == 0 || height == 0 {
            return Err(Error::shape(
                what(),
                format!("both sides must be at least 1, its shape is {:?}", values.shape()),
            ));
        }
        let sizes = (u32::try_from(width), u32::try_from(height), u32::try_from(values.len()));
        let (Ok(width), Ok(height), Ok(count)) = sizes else {
            return Err(Error::limit(what(), format!("it has {} values; the limit is {}", values.len(), u32::MAX)));
        };
        Ok(Self { engine: engine.clone(), values, width, height, count })
    }

    /// One reduction: `groups` partial sums of `parts` floats each.
    async fn reduce(
        &self,
        kernel: &'static ShippedKernel,
        (groups, parts): (Extent, usize),
        settings: &[(&str, Value)],
    ) -> Result<Vec<f32>> {
        let total: u64 = groups.sides().iter().product();
        let shape = [usize::try_from(total).unwrap_or(usize::MAX), parts];
        let partials = self.engine.output_async(Some(self.values), DType::F32, &shape, kernel.name()).await?;
        let dispatch = self.engine.dispatch(kernel.kernel()?).bind("values", self.values).bind("partials", &partials);
        let dispatch = settings.iter().fold(dispatch, |dispatch, (path, value)| dispatch.set(path, value.clone()));
        dispatch.workgroups(groups).run_async().await?;
        partials.to_vec_async::<f32>().await
    }

    /// The moments of all values, `whole` where there are no others; `what` is for errors.
    async fn moments(&self, what: &str, whole: bool) -> Result<Moments> {
        let not_finite = || fault(what, "it holds NaN or infinity, for which coherence is not defined");
        let moments = self.scaled_moments(1.0, whole).await?.ok_or_else(not_finite)?;
        if moments.largest == 0.0 || IN_RANGE.contains(&moments.largest) {
            return Ok(moments);
        }
        // Squares overflow or vanish: once more, with the values brought near 1 by a power of two.
        let factor = (-moments.largest.log2().ceil()).clamp(-126.0, 126.0).exp2();
        let moments = self.scaled_moments(factor as f32, whole).await?.ok_or_else(not_finite)?;
        if moments.mean.is_finite() && moments.squares.is_finite() { Ok(moments) } else { Err(fault(what, TOO_FAR)) }
    }

    /// The moments, of distances that are multiplied by `factor` on the device; `None` where a value is not finite.
    async fn scaled_moments(&self, factor: f32, whole: bool) -> Result<Option<Moments>> {
        #[cfg(feature = "graph")]
        if by_rows::serves(self.values) {
            return by_rows::moments(self.values, factor).await;
        }
        #[cfg(feature = "wgsl")]
        if whole && let Some(moments) = whole::moments(self, factor).await? {
            return Ok(moments);
        }
        #[cfg(not(feature = "wgsl"))]
        let _ = whole;
        let count = u64::from(self.count);
        let each = BLOCK * count.div_ceil(BLOCK * PARTIALS);
        let settings = [
            ("span.count", self.count.into()),
            ("span.blocks", (each / BLOCK).into()),
            ("span.high", 0.0_f32.into()),
            ("span.factor", factor.into()),
            ("span.shift", 0.0_f32.into()),
        ];
        let partials = self.reduce(&COHERENCE_MOMENTS, (Extent::from(count.div_ceil(each)), 4), &settings).await?;
        let (mut all, mut left) = (Moments::default(), count);
        for &[mean, squares, largest, first] in partials.as_chunks::<4>().0 {
            if largest < 0.0 {
                return Ok(None);
            }
            let factor = f64::from(factor);
            let count = each.min(left);
            left -= count;
            all = all.with(&Moments {
                count: count as f64,
                mean: f64::from(first) + f64::from(mean) / factor,
                squares: f64::from(squares) / factor / factor,
                largest: largest.into(),
                neighbours: None,
            });
        }
        Ok(Some(all))
    }

    /// The sum over all values but those of the first row and column.
    async fn neighbours(&self, centre: Centre) -> Result<f64> {
        let (columns, rows) = (u64::from(self.width) - 1, u64::from(self.height) - 1);
        if columns == 0 || rows == 0 {
            return Ok(0.0);
        }
        #[cfg(feature = "graph")]
        if by_rows::serves(self.values) {
            return by_rows::neighbours(self.values, centre).await;
        }
        let blocks = rows.div_ceil(ROWS * PARTIALS);
        let groups = Extent::from([columns.div_ceil(LANES), rows.div_ceil(ROWS * blocks)]);
        let settings = [
            ("sheet.width", self.width.into()),
            ("sheet.height", self.height.into()),
            ("sheet.blocks", blocks.into()),
            ("sheet.high", centre.high.into()),
            ("sheet.factor", centre.factor.into()),
            ("sheet.shift", centre.shift.into()),
        ];
        let partials = self.reduce(&COHERENCE_NEIGHBOUR_SUM, (groups, 1), &settings).await?;
        Ok(partials.iter().map(|&part| f64::from(part)).sum())
    }
}

const TOO_FAR: &str = "its values differ by more than float32 can hold (scale them down)";

fn fault(what: &str, reason: &str) -> Error {
    Error::invalid(what, reason)
}

/// Mean and sum of squared distances from it, of that many values, and their largest magnitude.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
    largest: f64,
    /// The sum of |d (d above + d to the left)|, d = value - mean, where it was found in the same reading.
    neighbours: Option<f64>,
}

impl Moments {
    /// Returns the moments of both together (Chan, Golub and `LeVeque`, 1979).
    fn with(&self, other: &Self) -> Self {
        let count = self.count + other.count;
        if count == 0.0 {
            return *self;
        }
        let (step, share) = (other.mean - self.mean, other.count / count);
        Self {
            count,
            mean: self.mean + step * share,
            squares: self.squares + other.squares + step * step * self.count * share,
            largest: self.largest.max(other.largest),
            neighbours: if self.count == 0.0 { other.neighbours } else { None },
        }
    }
}

/// The coherence of a field that comes in sheets of whole rows, read twice.
pub(crate) struct Coherence {
    /// The field, for errors.
    what: String,
    count: f64,
    /// There is no second row or column.
    narrow: bool,
    reading: Reading,
}

/// The sums of one reading.
enum Reading {
    Moments(Moments),
    Neighbours { centre: Centre, sum: f64 },
    Done(f32),
}

impl Coherence {
    /// Begins with a field of that height and width, which errors call `what`.
    pub(crate) fn new(what: String, [height, width]: [u64; 2]) -> Self {
        let narrow = width < 2 || height < 2;
        let reading = Reading::Moments(Moments::default());
        Self { what, count: width as f64 * height as f64, narrow, reading }
    }

    /// The result, after the last reading.
    pub(crate) fn value(&self) -> Option<f32> {
        if let Reading::Done(value) = self.reading { Some(value) } else { None }
    }

    /// Returns whether sheets need the row before their own: the first row of a sheet counts as such. The field's own first one has none.
    #[cfg(all(feature = "stream", not(target_arch = "wasm32")))]
    pub(crate) fn compares_rows(&self) -> bool {
        matches!(self.reading, Reading::Neighbours { .. })
    }

    /// Takes the next sheet of this reading.
    pub(crate) async fn add(&mut self, sheet: &Sheet<'_>) -> Result<()> {
        match &mut self.reading {
            Reading::Moments(moments) => {
                let whole = self.count == f64::from(sheet.count);
                *moments = moments.with(&sheet.moments(&self.what, whole).await?);
            }
            Reading::Neighbours { centre, sum } => *sum += sheet.neighbours(*centre).await?,
            Reading::Done(_) => {}
        }
        Ok(())
    }

    /// All sheets were taken: on to the next reading, or to the end.
    pub(crate) fn end_of_reading(&mut self) -> Result<()> {
        self.reading = match self.reading {
            Reading::Moments(Moments { mean, squares, neighbours, .. }) => {
                let deviation = (squares / self.count).sqrt();
                let factor = 1.0 / deviation;
                if deviation == 0.0 {
                    Reading::Done(1.0)
                } else if !deviation.is_finite() {
                    return Err(fault(&self.what, TOO_FAR));
                } else if factor > f64::from(f32::MAX) {
                    return Err(fault(
                        &self.what,
                        "its deviation is below float32's normal range (scale the values up)",
                    ));
                } else if self.narrow {
                    Reading::Done(0.0)
                } else if let Some(sum) = neighbours {
                    Reading::Done((sum / squares).min(1.0) as f32)
                } else {
                    Reading::Neighbours { centre: Centre::on(mean, factor), sum: 0.0 }
                }
            }
            Reading::Neighbours { sum, .. } => Reading::Done((sum / self.count).min(1.0) as f32),
            Reading::Done(value) => Reading::Done(value),
        };
        Ok(())
    }
}

/// z = (value - high) factor - shift.
#[derive(Clone, Copy)]
struct Centre {
    high: f32,
    factor: f32,
    shift: f32,
}

impl Centre {
    /// Centred on `mean`, scaled by `factor`: what f32 cannot hold of the mean goes into `shift`.
    fn on(mean: f64, factor: f64) -> Self {
        let high = mean as f32;
        Self { high, factor: factor as f32, shift: ((mean - f64::from(high)) * factor) as f32 }
    }
}

/// Measures how strongly the values of a field agree with their upper and left neighbours.
///
/// With m and s the mean and the population standard deviation of all values, z = (F - m)/s and λ = 1/φ: the sum over j ≥ 1 and
/// i ≥ 1 of λ |φ z(j,i) z(j-1,i) + φ z(j,i) z(j,i-1)|, divided by the number of values, and at most 1. A constant field has
/// coherence 1. Absolute error below 2e-5 on every device.
///
/// # Errors
/// [`Error::Dtype`] for another dtype than f32; [`Error::InvalidInput`] for values that are NaN, infinite, or too far apart for float32;
/// [`Error::Shape`] unless the tensor has two axes and 1 to 2³²-1 values.
pub async fn coherence_async(engine: &Engine, field: &Tensor) -> Result<f32> {
    let sheet = Sheet::checked(engine, field)?;
    let size = [sheet.height, sheet.width].map(u64::from);
    let mut coherence = Coherence::new(format!("the tensor {}", field.label()), size);
    loop {
        if let Some(value) = coherence.value() {
            return Ok(value);
        }
        coherence.add(&sheet).await?;
        coherence.end_of_reading()?;
    }
}

/// [`coherence_async`], blocking.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let constant = engine.tensor_from(&[2.0_f32; 64], &[8, 8])?;
/// assert_eq!(cantus::ops::coherence(&engine, &constant)?, 1.0);
/// # Ok::<_, cantus::Error>(())
/// ```
///
/// # Errors
/// As the asynchronous form.
#[cfg(not(target_arch = "wasm32"))]
pub fn coherence(engine: &Engine, field: &Tensor) -> Result<f32> {
    crate::engine::blocking::block_on(coherence_async(engine, field))
}
