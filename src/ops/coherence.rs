//! Neighbour correlation of a field, in three reductions whose partial sums the host adds in float64.

use crate::engine::{Engine, Extent, Tensor, Value};
use crate::error::{Error, Result};
use crate::shipped::{COHERENCE_DEVIATION, COHERENCE_MEAN, COHERENCE_NEIGHBOUR_SUM, ShippedKernel};
use crate::tensor::DType;

/// Values that a workgroup of the first two reductions takes per block: 32 rows of 256.
const BLOCK: u64 = 8192;
/// Rows that a workgroup of the third takes per block.
const ROWS: u64 = 32;
/// Columns that a workgroup of the third takes.
const LANES: u64 = 256;
/// Partial sums along one axis, at most: few enough to add on the host, many enough to fill a device.
const PARTIALS: u64 = 4096;

/// A checked field: two axes, float32, at least one value, and a number of values that 32 bits can count.
struct Sheet<'a> {
    engine: Engine,
    values: &'a Tensor,
    width: u32,
    height: u32,
    count: u32,
}

impl<'a> Sheet<'a> {
    fn checked(engine: &Engine, values: &'a Tensor) -> Result<Self> {
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

    /// The mean, and the largest magnitude.
    async fn mean(&self) -> Result<(f64, f64)> {
        let mut factor = 1.0_f32;
        loop {
            let partials = self.reduce_span(&COHERENCE_MEAN, 4, Centre { high: 0.0, factor, shift: 0.0 }).await?;
            let groups = || partials.as_chunks::<4>().0.iter();
            let fault = |reason: &str| Error::InvalidInput {
                what: format!("the tensor {}", self.values.label()),
                reason: reason.to_owned(),
            };
            if groups().any(|group| group[1] < 0.0) {
                return Err(fault("it holds NaN or infinity, for which coherence is not defined"));
            }
            let largest = groups().map(|group| f64::from(group[1])).fold(0.0, f64::max);
            let first = groups().next().map_or(0.0, |group| f64::from(group[2]));
            let sum: f64 = groups().map(|group| f64::from(group[0])).sum();
            if sum.is_finite() {
                return Ok((first + sum / f64::from(factor) / f64::from(self.count), largest));
            }
            if factor < 1.0 {
                return Err(fault("its values differ by more than float32 can hold (scale them down)"));
            }
            // Partial sums overflowed: no workgroup adds more than 2^32 values.
            factor = 2.0_f32.powi(-34);
        }
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
    let count = f64::from(sheet.count);
    let (mean, largest) = sheet.mean().await?;
    if largest == 0.0 {
        return Ok(1.0);
    }
    // A power of two that brings the values near 1, so that no square overflows or vanishes.
    let scale = (-largest.log2().ceil()).clamp(-126.0, 126.0).exp2();
    let partials = sheet.reduce_span(&COHERENCE_DEVIATION, 2, Centre::on(mean, scale)).await?;
    let (sum, squares) = partials
        .as_chunks::<2>()
        .0
        .iter()
        .fold((0.0, 0.0), |(sum, squares), part| (sum + f64::from(part[0]), squares + f64::from(part[1])));
    // The first mean was off by `sum / count`, in units of z.
    let variance = (squares - sum * sum / count) / count;
    let deviation = variance.max(0.0).sqrt() / scale;
    let mean = mean + sum / count / scale;
    if deviation == 0.0 {
        return Ok(1.0);
    }
    if !deviation.is_finite() {
        return Err(Error::InvalidInput {
            what: format!("the tensor {}", field.label()),
            reason: "its values differ by more than float32 can hold (scale them down)".to_owned(),
        });
    }
    let factor = 1.0 / deviation;
    if factor > f64::from(f32::MAX) {
        return Err(Error::InvalidInput {
            what: format!("the tensor {}", field.label()),
            reason: "its deviation is below float32's normal range (scale the values up)".to_owned(),
        });
    }
    let (columns, rows) = (u64::from(sheet.width) - 1, u64::from(sheet.height) - 1);
    if columns == 0 || rows == 0 {
        return Ok(0.0);
    }
    let blocks = rows.div_ceil(ROWS * PARTIALS);
    let groups = Extent::from([columns.div_ceil(LANES), rows.div_ceil(ROWS * blocks)]);
    let centre = Centre::on(mean, factor);
    let settings = [
        ("sheet.width", sheet.width.into()),
        ("sheet.height", sheet.height.into()),
        ("sheet.blocks", blocks.into()),
        ("sheet.high", centre.high.into()),
        ("sheet.factor", centre.factor.into()),
        ("sheet.shift", centre.shift.into()),
    ];
    let partials = sheet.reduce(&COHERENCE_NEIGHBOUR_SUM, (groups, 1), &settings).await?;
    let total: f64 = partials.iter().map(|&part| f64::from(part)).sum();
    Ok((total / count).min(1.0) as f32)
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
