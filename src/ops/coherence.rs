//! Neighbour correlation of a field, in three reductions whose partial sums the host adds in float64.

use crate::engine::{Engine, Extent, Tensor, Value};
use crate::error::{Error, Result};
use crate::shipped::{COHERENCE_DEVIATION, COHERENCE_MEAN, COHERENCE_NEIGHBOUR_SUM, ShippedKernel};
use crate::tensor::DType;

#[cfg(feature = "graph")]
mod by_rows;

/// Values that a workgroup of the first two reductions takes per block: 32 rows of 256.
const BLOCK: u64 = 8192;
/// Rows that a workgroup of the third takes per block.
const ROWS: u64 = 32;
/// Columns that a workgroup of the third takes.
const LANES: u64 = 256;
/// Partial sums along one axis, at most: few enough to add on the host, many enough to fill a device.
const PARTIALS: u64 = 4096;

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
            return Err(Error::InvalidInput {
                what: what(),
                reason: format!("its elements must be f32, they are {}", values.dtype()),
            });
        }
        let &[height, width] = values.shape() else {
            return Err(Error::InvalidSize {
                what: what(),
                reason: format!("it must have two axes (rows, columns), its shape is {:?}", values.shape()),
            });
        };
        if width == 0 || height == 0 {
            return Err(Error::InvalidSize {
                what: what(),
                reason: format!("both sides must be at least 1, its shape is {:?}", values.shape()),
            });
        }
        let sizes = (u32::try_from(width), u32::try_from(height), u32::try_from(values.len()));
        let (Ok(width), Ok(height), Ok(count)) = sizes else {
            return Err(Error::InvalidSize {
                what: what(),
                reason: format!("it has {} values, at most {} can be counted", values.len(), u32::MAX),
            });
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
        let partials = self.engine.output(Some(self.values), DType::F32, &shape, kernel.name()).await?;
        let dispatch = self.engine.dispatch(kernel.kernel()?).bind("values", self.values).bind("partials", &partials);
        let dispatch = settings.iter().fold(dispatch, |dispatch, (path, value)| dispatch.set(path, value.clone()));
        dispatch.workgroups(groups).run_async().await?;
        partials.to_vec_async::<f32>().await
    }

    /// One of the reductions over all values in a row: partial sums of `parts` floats.
    async fn reduce_span(&self, kernel: &'static ShippedKernel, parts: usize, centre: Centre) -> Result<Vec<f32>> {
        let count = u64::from(self.count);
        let blocks = count.div_ceil(BLOCK * PARTIALS);
        let groups = Extent::from(count.div_ceil(BLOCK * blocks));
        let settings = [
            ("span.count", self.count.into()),
            ("span.blocks", blocks.into()),
            ("span.high", centre.high.into()),
            ("span.factor", centre.factor.into()),
            ("span.shift", centre.shift.into()),
        ];
        self.reduce(kernel, (groups, parts), &settings).await
    }

    /// The mean, and the largest magnitude; `what` is for errors.
    async fn mean(&self, what: &str) -> Result<(f64, f64)> {
        let mut factor = 1.0_f32;
        loop {
            let Some((sum, largest, first)) = self.sums(factor).await? else {
                return Err(fault(what, "it holds NaN or infinity, for which coherence is not defined"));
            };
            if sum.is_finite() {
                return Ok((first + sum / f64::from(factor) / f64::from(self.count), largest));
            }
            if factor < 1.0 {
                return Err(fault(what, TOO_FAR));
            }
            // Partial sums overflowed: no workgroup adds more than 2^32 values.
            factor = 2.0_f32.powi(-34);
        }
    }

    /// The scaled sum of the distances from the first value, the largest magnitude, and the first value; `None` where one is not finite.
    async fn sums(&self, factor: f32) -> Result<Option<(f64, f64, f64)>> {
        #[cfg(feature = "graph")]
        if by_rows::serves(self.values) {
            return by_rows::sums(self.values, factor).await;
        }
        let partials = self.reduce_span(&COHERENCE_MEAN, 4, Centre { high: 0.0, factor, shift: 0.0 }).await?;
        let groups = || partials.as_chunks::<4>().0.iter();
        if groups().any(|group| group[1] < 0.0) {
            return Ok(None);
        }
        let largest = groups().map(|group| f64::from(group[1])).fold(0.0, f64::max);
        let first = groups().next().map_or(0.0, |group| f64::from(group[2]));
        Ok(Some((groups().map(|group| f64::from(group[0])).sum(), largest, first)))
    }

    /// The sum of the scaled distances from `centre`, and of their squares.
    async fn deviation(&self, centre: Centre) -> Result<(f64, f64)> {
        #[cfg(feature = "graph")]
        if by_rows::serves(self.values) {
            return by_rows::deviation(self.values, centre).await;
        }
        let partials = self.reduce_span(&COHERENCE_DEVIATION, 2, centre).await?;
        let parts = partials.as_chunks::<2>().0.iter();
        Ok(parts.fold((0.0, 0.0), |(sum, squares), part| (sum + f64::from(part[0]), squares + f64::from(part[1]))))
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
    Error::InvalidInput { what: what.to_owned(), reason: reason.to_owned() }
}

/// The coherence of a field that comes in sheets of whole rows, read three times.
pub(crate) struct Coherence {
    /// The field, for errors.
    what: String,
    count: f64,
    /// There is no second row or column.
    narrow: bool,
    reading: Reading,
}

/// What a reading sums.
enum Reading {
    Mean {
        sum: f64,
        largest: f64,
    },
    /// Of the values around `mean`, brought near 1 by `scale`.
    Deviation {
        mean: f64,
        scale: f64,
        sum: f64,
        squares: f64,
    },
    Neighbours {
        centre: Centre,
        sum: f64,
    },
    Done(f32),
}

impl Coherence {
    pub(crate) fn new(what: String, [height, width]: [u64; 2]) -> Self {
        let narrow = width < 2 || height < 2;
        let reading = Reading::Mean { sum: 0.0, largest: 0.0 };
        Self { what, count: width as f64 * height as f64, narrow, reading }
    }

    /// The result, after the last reading.
    pub(crate) fn value(&self) -> Option<f32> {
        if let Reading::Done(value) = self.reading { Some(value) } else { None }
    }

    /// Whether sheets need the row before their own: the first row of a sheet counts as such. The field's own first one has none.
    #[cfg(all(feature = "stream", not(target_arch = "wasm32")))]
    pub(crate) fn compares_rows(&self) -> bool {
        matches!(self.reading, Reading::Neighbours { .. })
    }

    /// Takes the next sheet of this reading.
    pub(crate) async fn add(&mut self, sheet: &Sheet<'_>) -> Result<()> {
        match &mut self.reading {
            Reading::Mean { sum, largest } => {
                let (mean, own) = sheet.mean(&self.what).await?;
                *sum += mean * f64::from(sheet.count);
                *largest = largest.max(own);
            }
            Reading::Deviation { mean, scale, sum, squares } => {
                let (own, own_squares) = sheet.deviation(Centre::on(*mean, *scale)).await?;
                *sum += own;
                *squares += own_squares;
            }
            Reading::Neighbours { centre, sum } => *sum += sheet.neighbours(*centre).await?,
            Reading::Done(_) => {}
        }
        Ok(())
    }

    /// All sheets were taken: on to the next reading, or to the end.
    pub(crate) fn end_of_reading(&mut self) -> Result<()> {
        self.reading = match self.reading {
            Reading::Mean { largest: 0.0, .. } => Reading::Done(1.0),
            Reading::Mean { sum, largest } => {
                // A power of two that brings the values near 1, so that no square overflows or vanishes.
                let scale = (-largest.log2().ceil()).clamp(-126.0, 126.0).exp2();
                Reading::Deviation { mean: sum / self.count, scale, sum: 0.0, squares: 0.0 }
            }
            Reading::Deviation { mean, scale, sum, squares } => {
                // The first mean was off by `sum / count`, in units of z.
                let variance = (squares - sum * sum / self.count) / self.count;
                let deviation = variance.max(0.0).sqrt() / scale;
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
                } else {
                    Reading::Neighbours { centre: Centre::on(mean + sum / self.count / scale, factor), sum: 0.0 }
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

/// How strongly the values of a field agree with their upper and left neighbours.
///
/// With m and s the mean and the population standard deviation of all values, z = (F - m)/s and λ = 1/φ: the sum over j ≥ 1 and
/// i ≥ 1 of λ |φ z(j,i) z(j-1,i) + φ z(j,i) z(j,i-1)|, divided by the number of values, and at most 1. A constant field has
/// coherence 1. Absolute error below 2e-5 on every device.
///
/// # Errors
/// [`Error::InvalidInput`] for another dtype than f32, and for values that are NaN, infinite, or too far apart for float32;
/// [`Error::InvalidSize`] unless the tensor has two axes and 1 to 2³²-1 values.
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
