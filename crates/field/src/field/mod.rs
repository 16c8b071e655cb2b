//! The field family's pictures: a damped spiral wave, and the golden-ratio spiral. The formulas are in the functions' documentation, and the shader states
//! them again. Large frequencies and times are reduced in float64 on the host, so float32 arguments stay exact. Grids larger than memory are computed by
//! tiles, one ahead of the sink.

mod frequency;
#[cfg(all(feature = "group", not(target_arch = "wasm32")))]
mod group;

use std::f64::consts::TAU;
use std::ops::Range;

#[cfg(feature = "graph")]
use crate::backend::expression::{self, Expression};
#[cfg(feature = "graph")]
use crate::backend::native::NativeOperation;
use crate::engine::{Engine, Tensor};
use crate::error::{Bytes, Error, LimitError, Result};
use crate::shipped::{FIELD, PHI_PATTERN, ShippedKernel};
use crate::tensor::DType;

pub use self::frequency::Frequency;
#[cfg(all(feature = "group", not(target_arch = "wasm32")))]
pub use self::group::GroupField;

/// φ, the golden ratio.
const PHI: f64 = 1.618_033_988_749_895;
/// φ^φ
const PHI_PHI: f64 = 2.178_457_567_937_599_5;

/// The parameters of [`field`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldParams {
    width: usize,
    height: usize,
    frequency: Frequency,
    time: f64,
}

impl FieldParams {
    /// Creates parameters for `width` columns and `height` rows, with the frequency Love and time 0.
    #[must_use]
    pub fn new(width: usize, height: usize) -> Self {
        Self { width, height, frequency: Frequency::Love, time: 0.0 }
    }

    /// Sets the frequency.
    #[must_use]
    pub fn frequency(mut self, frequency: Frequency) -> Self {
        self.frequency = frequency;
        self
    }

    /// Sets the time; any finite number. It enters as φ^φ t, reduced modulo 2π in float64, so that large times stay exact.
    #[must_use]
    pub fn time(mut self, time: f64) -> Self {
        self.time = time;
        self
    }
}

/// A rectangle of a larger grid, on the host.
#[derive(Debug)]
#[non_exhaustive]
pub struct Tile<'a> {
    /// The first row in the grid.
    pub first_row: usize,
    /// The number of rows.
    pub rows: usize,
    /// The first column in the grid.
    pub first_column: usize,
    /// The number of columns.
    pub columns: usize,
    /// The values, row-major.
    pub values: &'a [f32],
}

/// A part of a checked grid: sides are at least 1 and fit 32 bits.
#[derive(Debug, Clone, Copy)]
struct Part {
    width: u32,
    height: u32,
    first_row: u32,
    rows: u32,
    first_column: u32,
    columns: u32,
}

impl Part {
    fn whole(width: usize, height: usize) -> Result<Self> {
        let side = |name: &str, side: usize| match u32::try_from(side) {
            Ok(0) => Err(Error::shape(format!("the {name}"), "it is 0; it must be at least 1")),
            Ok(side) => Ok(side),
            Err(_) => {
                Err(Error::limit(format!("the {name}"), format!("{side} exceeds the largest side, {}", u32::MAX)))
            }
        };
        let (width, height) = (side("width", width)?, side("height", height)?);
        Ok(Self { width, height, first_row: 0, rows: height, first_column: 0, columns: width })
    }

    fn len(self) -> u64 {
        u64::from(self.rows) * u64::from(self.columns)
    }

    /// The part of a whole grid that ranges name.
    fn part(self, rows: Range<usize>, columns: Range<usize>) -> Result<Self> {
        // First and count, of at least one and within the side.
        let checked = |name: &str, range: Range<usize>, side: u32| {
            let found = (u32::try_from(range.start), u32::try_from(range.end));
            match found {
                (Ok(start), Ok(end)) if start < end && end <= side => Ok((start, end - start)),
                _ => Err(Error::shape(format!("the range {range:?} of {name}"), format!("it must overlap 0..{side}"))),
            }
        };
        let (first_row, rows) = checked("rows", rows, self.height)?;
        let (first_column, columns) = checked("columns", columns, self.width)?;
        Ok(Self { first_row, rows, first_column, columns, ..self })
    }
}

/// One of the family's kernels with its own parameters.
enum Wave {
    /// Wave number in two parts, of which the first has 12 significant bits (its products in the shader are exact), and phase.
    Field {
        number: [f32; 2],
        phase: f32,
    },
    Phi,
}

impl Wave {
    fn field(params: &FieldParams) -> Result<Self> {
        let hertz = params.frequency.checked()?;
        if !params.time.is_finite() {
            return Err(Error::invalid(format!("the time {}", params.time), "it must be finite"));
        }
        let turns = (PHI_PHI * params.time / TAU).round();
        let phase = PHI_PHI * params.time - turns * TAU;
        // 0.01 f r with r = φ √(x² + y²), of which the shader has the root.
        let number = 0.01 * hertz * PHI;
        let high = f32::from_bits((number as f32).to_bits() & !0xfff);
        Ok(Self::Field { number: [high, (number - f64::from(high)) as f32], phase: phase as f32 })
    }

    fn kernel(&self) -> &'static ShippedKernel {
        match self {
            Self::Field { .. } => &FIELD,
            Self::Phi => &PHI_PATTERN,
        }
    }

    /// The part as plain data: the kernel's own text, with an id for each element.
    #[cfg(feature = "graph")]
    fn described(&self, part: Part) -> Expression {
        let text = match self {
            Self::Field { .. } => cantus_shaders::prepared::FIELD,
            Self::Phi => cantus_shaders::prepared::PHI_PATTERN,
        };
        let mut uniforms = vec![
            ("grid.width", f64::from(part.width)),
            ("grid.height", f64::from(part.height)),
            ("grid.first_row", f64::from(part.first_row)),
            ("grid.first_column", f64::from(part.first_column)),
            ("grid.tile_width", f64::from(part.columns)),
            ("grid.tile_height", f64::from(part.rows)),
        ];
        if let Self::Field { number: [high, low], phase } = self {
            let wave = [("wave.number.0", *high), ("wave.number.1", *low), ("wave.phase", *phase)];
            uniforms.extend(wave.map(|(path, number)| (path, f64::from(number))));
        }
        let uniforms = uniforms.into_iter().map(|(path, number)| (path, number.to_bits())).collect();
        let kernel = expression::Part::Kernel { text: text.into(), uniforms };
        let mut expression = Expression::default();
        expression.push(kernel, Vec::new(), &[part.rows as usize, part.columns as usize], DType::F32);
        expression
    }

    async fn compute(&self, engine: &Engine, part: Part) -> Result<Tensor> {
        let shape = [part.rows as usize, part.columns as usize];
        #[cfg(feature = "graph")]
        if engine.takes_graphs() {
            let operation = NativeOperation::Expression(self.described(part).into());
            let name = self.kernel().name();
            if let Some(output) = engine.native_async(operation, &[], (DType::F32, &shape), name).await? {
                return Ok(output);
            }
        }
        let kernel = self.kernel().kernel()?;
        let output = engine.output_async(None, DType::F32, &shape, self.kernel().name()).await?;
        let dispatch = engine.dispatch(kernel).bind("values", &output);
        let dispatch = dispatch
            .set("grid.width", part.width)
            .set("grid.height", part.height)
            .set("grid.first_row", part.first_row)
            .set("grid.first_column", part.first_column)
            .set("grid.tile_width", part.columns)
            .set("grid.tile_height", part.rows);
        let dispatch = match self {
            Self::Field { number, phase } => dispatch.set("wave.number", *number).set("wave.phase", *phase),
            Self::Phi => dispatch,
        };
        dispatch.invocations([part.columns, part.rows]).run_async().await?;
        Ok(output)
    }

    async fn whole(&self, engine: &Engine, width: usize, height: usize, tiled: &str) -> Result<Tensor> {
        let part = Part::whole(width, height)?;
        fits(engine, part, tiled)?;
        self.compute(engine, part).await
    }

    async fn tiles(
        &self,
        engine: &Engine,
        (width, height): (usize, usize),
        tile_rows: Option<usize>,
        mut sink: impl FnMut(Tile<'_>) -> Result<()>,
    ) -> Result<()> {
        let grid = Part::whole(width, height)?;
        let budget = tile_elements(engine);
        let columns = u64::from(grid.columns).min(budget);
        let most_rows = (budget / columns).clamp(1, u64::from(grid.rows));
        let rows = match tile_rows {
            Some(0) => {
                return Err(Error::shape("the tile height", "it is 0; it must be at least 1"));
            }
            Some(rows) => (rows as u64).min(most_rows),
            None => most_rows,
        };
        let (rows, columns) = (u32::try_from(rows).unwrap_or(u32::MAX), u32::try_from(columns).unwrap_or(u32::MAX));
        let firsts = (0..grid.height).step_by(rows as usize);
        let parts = firsts.flat_map(|first_row| {
            (0..grid.width).step_by(columns as usize).map(move |first_column| Part {
                first_row,
                rows: rows.min(grid.height - first_row),
                first_column,
                columns: columns.min(grid.width - first_column),
                ..grid
            })
        });
        // The device computes a tile while the sink takes the one before.
        let mut before: Option<(Part, Vec<f32>)> = None;
        for part in parts.map(Some).chain([None]) {
            let next = match part {
                Some(part) => Some((part, self.compute(engine, part).await?)),
                None => None,
            };
            engine.flush();
            if let Some((part, values)) = before.take() {
                sink(Tile {
                    first_row: part.first_row as usize,
                    rows: part.rows as usize,
                    first_column: part.first_column as usize,
                    columns: part.columns as usize,
                    values: &values,
                })?;
            }
            if let Some((part, tensor)) = next {
                before = Some((part, tensor.to_vec_async::<f32>().await?));
            }
        }
        Ok(())
    }
}

/// Refuses early, with the remedy, what the memory limit or the device's largest binding cannot hold.
fn fits(engine: &Engine, part: Part, tiled: &str) -> Result<()> {
    let bytes = part.len().saturating_mul(4);
    let what = format!("a grid of {} x {}", part.width, part.height);
    if let Some(limit) = engine.memory().limit.filter(|&limit| bytes > limit) {
        let remedy = format!("raise it with Builder::memory_limit, or use ops::{tiled}");
        return Err(LimitError::MemoryLimit { what, bytes, limit, remedy }.into());
    }
    let device = &engine.selected().device;
    let binding = device.capabilities.limits.storage_binding_bytes;
    if bytes > binding {
        let held = format!("one binding of {} holds {}", device.name, Bytes(binding));
        return Err(Error::limit(what, format!("the result would take {}; {held} (use ops::{tiled})", Bytes(bytes))));
    }
    Ok(())
}

/// Elements in a tile: 16 Mi, or less where a binding or the memory limit is small.
fn tile_elements(engine: &Engine) -> u64 {
    const PREFERRED: u64 = 1 << 24;
    let binding = engine.selected().device.capabilities.limits.storage_binding_bytes / 4;
    // Half of what is free: the tile before may still be in the pool.
    let memory = engine.memory();
    let free = memory.limit.map_or(u64::MAX, |limit| limit.saturating_sub(memory.in_use) / 4 / 2);
    PREFERRED.min(binding).min(free).max(1)
}

/// Creates a damped spiral wave on the square [-1, 1]².
///
/// Element (j, i) is `sin(0.01 f r + φ θ + φ^φ t) exp(-r/φ)` at x = -1 + 2i/(width-1), y = -1 + 2j/(height-1), with
/// r = φ √(x² + y²) and θ = atan2(y, x); a side of length 1 sits at -1. Absolute error below 1e-5 on every device while the sine's
/// argument is below 64.
///
/// Returns a `[height, width]` float32 tensor on the engine's device.
///
/// # Errors
/// [`Error::Shape`] if a side is zero, [`Error::Limit`] if the result does not fit (see [`field_tiles_async`]); [`Error::InvalidInput`] for a
/// frequency that is not positive and finite or a time that is not finite.
pub async fn field_async(engine: &Engine, params: &FieldParams) -> Result<Tensor> {
    Wave::field(params)?.whole(engine, params.width, params.height, "field_tiles").await
}

/// Returns the rows and columns of [`field_async`] that the ranges name: a `[rows, columns]` tensor. The grid may be larger than any memory.
///
/// # Errors
/// As [`field_async`], and [`Error::Shape`] for ranges that are empty or reach beyond the grid.
pub async fn field_part_async(
    engine: &Engine,
    params: &FieldParams,
    rows: Range<usize>,
    columns: Range<usize>,
) -> Result<Tensor> {
    let part = Part::whole(params.width, params.height)?.part(rows, columns)?;
    fits(engine, part, "field_part with smaller ranges")?;
    Wave::field(params)?.compute(engine, part).await
}

/// Returns [`field_async`] as plain data without arguments, for devices that take no kernels.
///
/// # Errors
/// As [`field_async`].
#[cfg(feature = "graph")]
#[doc(hidden)]
pub fn field_described(params: &FieldParams) -> Result<Expression> {
    Ok(Wave::field(params)?.described(Part::whole(params.width, params.height)?))
}

/// Returns [`phi_pattern_async`] as plain data without arguments.
///
/// # Errors
/// As [`phi_pattern_async`].
#[cfg(feature = "graph")]
#[doc(hidden)]
pub fn phi_pattern_described(width: usize, height: usize) -> Result<Expression> {
    Ok(Wave::Phi.described(Part::whole(width, height)?))
}

/// Computes [`field_async`] in tiles, row of tiles by row of tiles, and passes each to `sink` on the host. Memory stays bounded for any grid.
///
/// `tile_rows` is the height of a tile; by default a tile has 16 Mi elements. A row is split only if it alone is longer.
///
/// # Errors
/// As [`field_async`], and the first error of `sink`, which ends the work.
pub async fn field_tiles_async(
    engine: &Engine,
    params: &FieldParams,
    tile_rows: Option<usize>,
    sink: impl FnMut(Tile<'_>) -> Result<()>,
) -> Result<()> {
    Wave::field(params)?.tiles(engine, (params.width, params.height), tile_rows, sink).await
}

/// Creates the golden-ratio spiral on the square [-1, 1]².
///
/// Element (j, i) is `sin(10 φ^φ ρ + φ θ)` at x = -1 + 2i/(width-1), y = -1 + 2j/(height-1), with ρ = √(x² + y²) and
/// θ = atan2(y, x). Absolute error below 1e-5 on every device.
///
/// Returns a `[height, width]` float32 tensor on the engine's device.
///
/// # Errors
/// [`Error::Shape`] if a side is zero, [`Error::Limit`] if the result does not fit (see [`phi_pattern_tiles_async`]).
pub async fn phi_pattern_async(engine: &Engine, width: usize, height: usize) -> Result<Tensor> {
    Wave::Phi.whole(engine, width, height, "phi_pattern_tiles").await
}

/// Computes [`phi_pattern_async`] in tiles, as [`field_tiles_async`].
///
/// # Errors
/// As [`phi_pattern_async`], and the first error of `sink`.
pub async fn phi_pattern_tiles_async(
    engine: &Engine,
    width: usize,
    height: usize,
    tile_rows: Option<usize>,
    sink: impl FnMut(Tile<'_>) -> Result<()>,
) -> Result<()> {
    Wave::Phi.tiles(engine, (width, height), tile_rows, sink).await
}

#[cfg(not(target_arch = "wasm32"))]
mod blocking {
    use super::{Engine, FieldParams, Range, Result, Tensor, Tile};

    /// [`super::field_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::field::{FieldParams, field};
    ///
    /// let spiral = field(&engine, &FieldParams::new(65, 33))?;
    /// assert_eq!(spiral.shape(), [33, 65]);
    /// assert_eq!(spiral.to_array::<f32>()?[[16, 32]], 0.0); // the middle at time 0
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn field(engine: &Engine, params: &FieldParams) -> Result<Tensor> {
        crate::engine::blocking::block_on(super::field_async(engine, params))
    }

    /// [`super::field_part_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::field::{FieldParams, field, field_part};
    ///
    /// let params = FieldParams::new(65, 33);
    /// let part = field_part(&engine, &params, 16..18, 30..33)?;
    /// assert_eq!(part.shape(), [2, 3]);
    /// assert_eq!(part.to_array::<f32>()?[[0, 2]], field(&engine, &params)?.to_array::<f32>()?[[16, 32]]);
    /// assert!(field_part(&engine, &params, 16..18, 30..66).is_err());
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn field_part(
        engine: &Engine,
        params: &FieldParams,
        rows: Range<usize>,
        columns: Range<usize>,
    ) -> Result<Tensor> {
        crate::engine::blocking::block_on(super::field_part_async(engine, params, rows, columns))
    }

    /// [`super::field_tiles_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::field::{FieldParams, field_tiles};
    ///
    /// let mut values = 0;
    /// field_tiles(&engine, &FieldParams::new(40, 100), Some(30), |tile| {
    ///     assert!(tile.rows <= 30 && tile.values.len() == tile.rows * tile.columns);
    ///     values += tile.values.len();
    ///     Ok(())
    /// })?;
    /// assert_eq!(values, 4000);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn field_tiles(
        engine: &Engine,
        params: &FieldParams,
        tile_rows: Option<usize>,
        sink: impl FnMut(Tile<'_>) -> Result<()>,
    ) -> Result<()> {
        crate::engine::blocking::block_on(super::field_tiles_async(engine, params, tile_rows, sink))
    }

    /// [`super::phi_pattern_async`], blocking.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let pattern = cantus::ops::field::phi_pattern(&engine, 64, 32)?;
    /// assert_eq!(pattern.shape(), [32, 64]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn phi_pattern(engine: &Engine, width: usize, height: usize) -> Result<Tensor> {
        crate::engine::blocking::block_on(super::phi_pattern_async(engine, width, height))
    }

    /// [`super::phi_pattern_tiles_async`], blocking.
    ///
    /// # Errors
    /// As the asynchronous form.
    pub fn phi_pattern_tiles(
        engine: &Engine,
        width: usize,
        height: usize,
        tile_rows: Option<usize>,
        sink: impl FnMut(Tile<'_>) -> Result<()>,
    ) -> Result<()> {
        crate::engine::blocking::block_on(super::phi_pattern_tiles_async(engine, width, height, tile_rows, sink))
    }
}
#[cfg(not(target_arch = "wasm32"))]
pub use blocking::{field, field_part, field_tiles, phi_pattern, phi_pattern_tiles};
