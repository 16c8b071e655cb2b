//! Orders and searches of 64-bit numbers.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Values, recorded};
use crate::backend::native::Stop;
use crate::ops::expr::node::Typed;
use crate::ops::expr::shape::product;
use crate::tensor::DType;

/// Elements between two looks at whether to stop.
const LOOK: usize = 1 << 16;

/// Returns whether numbers of a dtype have an order, and 64 bits.
pub(in crate::ops) fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::I64 | DType::U64)
}

/// NaN counts as greater than all others, -0 as 0.
fn order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

/// The places of a row's elements in their order.
fn places<T: Copy>(row: &[T], descending: bool, order: impl Fn(T, T) -> Ordering) -> Vec<u64> {
    let mut places: Vec<u64> = (0..row.len() as u64).collect();
    let by = |&x: &u64, &y: &u64| order(row[x as usize], row[y as usize]);
    if descending {
        places.sort_by(|x, y| by(y, x))
    } else {
        places.sort_by(by)
    }
    places
}

fn rows<T: Copy>(values: &[T], length: usize, stop: &Stop<'_>, mut of: impl FnMut(usize, &[T]) -> Vec<u64>) -> Values {
    let mut found = Vec::with_capacity(values.len());
    for (row, values) in values.chunks_exact(length.max(1)).enumerate() {
        if row.is_multiple_of(LOOK.div_ceil(length.max(1))) && stop() {
            break;
        }
        found.extend(of(row, values));
    }
    Values::Unsigned(found)
}

/// The places of the elements of each row along the last axis in their order, as u32. Equal elements stay in theirs.
pub(in crate::ops) fn argsort(typed: &Arc<Typed>, descending: bool) -> Arc<Typed> {
    let (shape, length) = (typed.shape.clone(), typed.shape.last().copied().unwrap_or(1));
    recorded(
        ("sort", vec![descending.into()]),
        vec![typed.clone()],
        shape,
        DType::U32,
        move |inputs, stop| match inputs.first() {
            Some(Values::Reals(values)) => rows(values, length, stop, |_, row| places(row, descending, order)),
            Some(Values::Signed(values)) => {
                rows(values, length, stop, |_, row| places(row, descending, |x, y| x.cmp(&y)))
            }
            Some(Values::Unsigned(values)) => {
                rows(values, length, stop, |_, row| places(row, descending, |x, y| x.cmp(&y)))
            }
            _ => Values::Unsigned(Vec::new()),
        },
    )
}

/// Returns for each value the position at which inserting it keeps the row sorted.
fn found<T: Copy>(
    sorted: &[T],
    values: &[T],
    [length, count]: [usize; 2],
    right: bool,
    stop: &Stop<'_>,
    order: impl Fn(T, T) -> Ordering,
) -> Values {
    rows(values, count, stop, |row, values| {
        let sorted = &sorted[row * length..(row + 1) * length];
        let place = |&value: &T| {
            sorted.partition_point(|&element| match order(element, value) {
                Ordering::Less => true,
                Ordering::Equal => right,
                Ordering::Greater => false,
            }) as u64
        };
        values.iter().map(place).collect()
    })
}

/// Places in sorted rows along the last axis, the other axes being alike.
pub(in crate::ops) fn searchsorted(sorted: &Arc<Typed>, values: &Arc<Typed>, right: bool) -> Arc<Typed> {
    let sides = [sorted, values].map(|typed| typed.shape.last().copied().unwrap_or(1));
    debug_assert_eq!(product(&sorted.shape) / sides[0].max(1), product(&values.shape) / sides[1].max(1));
    let (inputs, shape) = (vec![sorted.clone(), values.clone()], values.shape.clone());
    recorded(("searchsorted", vec![right.into()]), inputs, shape, DType::U32, move |inputs, stop| match &inputs[..] {
        [Values::Reals(sorted), Values::Reals(values)] => found(sorted, values, sides, right, stop, order),
        [Values::Signed(sorted), Values::Signed(values)] => found(sorted, values, sides, right, stop, |x, y| x.cmp(&y)),
        [Values::Unsigned(sorted), Values::Unsigned(values)] => {
            found(sorted, values, sides, right, stop, |x, y| x.cmp(&y))
        }
        _ => Values::Unsigned(Vec::new()),
    })
}
