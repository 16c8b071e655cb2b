//! Expressions that come from nothing: ranges and constants.

use std::sync::Arc;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::node::{Expr, Node, Source, Typed, View, is_float};
use crate::ops::expr::shape;
use crate::tensor::{DType, Kind};

/// The row-major place of each element, as u32.
pub(super) fn places(shape: &[usize]) -> Result<Arc<Typed>> {
    match shape::count(shape).map(u32::try_from)? {
        Ok(_) => Ok(Typed::of(Source::Indices, shape, DType::U32)),
        Err(_) => Err(Error::limit(
            format!("the shape {shape:?}"),
            "it has more elements than 32 bits count: use smaller parts",
        )),
    }
}

/// Returns a tensor with the same value everywhere.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let x = cantus::ops::full(&engine, &[2, 2], 1.5, cantus::DType::F32).eval()?;
/// assert_eq!(x.to_vec::<f32>()?, [1.5; 4]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[must_use]
pub fn full(engine: &Engine, shape: &[usize], value: f64, dtype: DType) -> Expr {
    Expr::made(engine, || {
        places(shape)?;
        Ok(Typed::new(Node::Constant(0.0), Vec::new(), dtype))
    })
    .constant(value)
    .derived(|typed| Ok(Typed::new(Node::Cast(typed.clone()), shape.to_vec(), dtype)))
}

/// Returns `start`, `start + step`, … below `stop` (above it for a negative step). Floats are computed as start + i step.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let x = cantus::ops::arange(&engine, 3.0, 0.0, -1.0, cantus::DType::I32).eval()?;
/// assert_eq!(x.to_vec::<i32>()?, [3, 2, 1]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[must_use]
pub fn arange(engine: &Engine, start: f64, stop: f64, step: f64, dtype: DType) -> Expr {
    let count = ((stop - start) / step).ceil();
    let checked = Expr::made(engine, || {
        if !count.is_finite() || step == 0.0 || count > f64::from(u32::MAX) {
            return Err(Error::limit(
                format!("arange from {start} to {stop} by {step}"),
                "its length must fit into 32 bits, and the step must not be 0",
            ));
        }
        if dtype == DType::Bool {
            return Err(Error::dtype("arange of bool", "it needs numbers (cast the result)"));
        }
        places(&[count.max(0.0) as usize])
    });
    checked.ramp(start, step, dtype)
}

/// Returns `count` evenly spaced numbers from `start` to `stop`, including both.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let x = cantus::ops::linspace(&engine, 0.0, 1.0, 5, cantus::DType::F32).eval()?;
/// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[must_use]
pub fn linspace(engine: &Engine, start: f64, stop: f64, count: usize, dtype: DType) -> Expr {
    let checked = Expr::made(engine, || {
        if dtype.kind() != Kind::Float {
            return Err(Error::dtype(format!("linspace of {dtype}"), "it needs floats (use arange)"));
        }
        places(&[count])
    });
    spaced(&checked, [start, stop], count, dtype.computed()).cast(dtype)
}

/// The numbers at places of [`linspace`].
pub(super) fn spaced(places: &Expr, [start, stop]: [f64; 2], count: usize, dtype: DType) -> Expr {
    let step = if count > 1 { (stop - start) / (count - 1) as f64 } else { 0.0 };
    let ramp = places.ramp(start, step, dtype);
    // The last one exactly.
    let last = places.binary(Binary::Eq, places.constant(count.saturating_sub(1) as f64));
    if count > 1 { last.select(ramp.constant(stop), &ramp) } else { ramp }
}

/// Returns 1 on the diagonal that begins `offset` columns to the right (below the main one if negative), and 0 elsewhere.
///
/// ```
/// # let engine = cantus::Engine::builder().backend("cpu").build()?;
/// let x = cantus::ops::eye(&engine, 2, 3, 1, cantus::DType::U32).eval()?;
/// assert_eq!(x.to_vec::<u32>()?, [0, 1, 0, 0, 0, 1]);
/// # Ok::<_, cantus::Error>(())
/// ```
#[must_use]
pub fn eye(engine: &Engine, rows: usize, columns: usize, offset: isize, dtype: DType) -> Expr {
    let along = |axis: usize| {
        Expr::made(engine, || {
            places(&[rows, columns])?;
            let strides = if axis == 0 { vec![1, 0] } else { vec![0, 1] };
            let view = View { source: Source::Indices, offset: 0, strides };
            Ok(Typed::new(Node::Read(view), vec![rows, columns], DType::U32))
        })
        .cast(DType::I32)
    };
    let row = along(0);
    let row = &row + row.constant(offset as f64);
    row.binary(Binary::Eq, along(1)).cast(dtype)
}

impl Expr {
    /// start + i step, of places.
    fn ramp(&self, start: f64, step: f64, dtype: DType) -> Self {
        let place = self.cast(if is_float(dtype) { DType::F32 } else { dtype });
        (&(&place * place.constant(step)) + place.constant(start)).cast(dtype)
    }
}
