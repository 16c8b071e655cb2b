//! Shapes: broadcasting, axes, and how several strided views of one shape collapse to few axes. No tensors. Views, planning, text and chains all use it.
//! Strides are in elements, never negative, and 0 where an axis repeats. `collapse` joins axes for all views at once, so one view that does not allow it
//! keeps the axes apart for the others too.

use crate::error::{Error, Result, ShapeError};
use cantus_base::listed::Listed;

/// The shape that two shapes broadcast to, by NumPy's rule: aligned at the last axis, lengths equal or 1.
pub(in crate::ops) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let side = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |at| shape[at]);
    (0..rank)
        .map(|axis| match (side(a, axis), side(b, axis)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            (x, y) => {
                let (left, right) = (a.to_vec(), b.to_vec());
                Err(ShapeError::Broadcast { left, right, axis, lengths: [x, y] }.into())
            }
        })
        .try_listed()
}

/// The number of elements of a shape.
///
/// # Errors
/// [`Error::Limit`] where a machine word does not hold it, or the product of its sides that are not 0.
pub(in crate::ops) fn count(shape: &[usize]) -> Result<usize> {
    let filled = shape.iter().filter(|&&side| side != 0).try_fold(1_usize, |product, &side| product.checked_mul(side));
    match filled {
        Some(filled) => Ok(if shape.contains(&0) { 0 } else { filled }),
        None => Err(Error::limit(
            format!("the shape {shape:?}"),
            format!("it has more than {} elements: use smaller parts", usize::MAX),
        )),
    }
}

/// The product of sides; the greatest number where it is larger still, which no kernel takes.
pub(in crate::ops) fn product(sides: &[usize]) -> usize {
    if sides.contains(&0) { 0 } else { sides.iter().fold(1, |product: usize, &side| product.saturating_mul(side)) }
}

/// Distances between neighbours along each axis of a contiguous row-major array.
pub(in crate::ops) fn contiguous(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1_usize;
    for (stride, side) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul(*side);
    }
    strides
}

/// Returns whether strides are those of a contiguous row-major array.
pub(in crate::ops) fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut step = 1_usize;
    shape.len() == strides.len()
        && strides.iter().zip(shape).rev().all(|(stride, side)| {
            let is_next = *stride == step;
            step = step.saturating_mul(*side);
            is_next
        })
}

/// Strides of an array of shape `from`, strided by `strides`, seen with the shape `to` that it broadcasts to.
pub(in crate::ops) fn broadcast_strides(from: &[usize], strides: &[usize], to: &[usize]) -> Vec<usize> {
    let offset = to.len() - from.len();
    (0..to.len())
        .map(|axis| match axis.checked_sub(offset) {
            Some(at) if from[at] == to[axis] && from[at] != 1 => strides[at],
            _ => 0,
        })
        .listed()
}

/// The strides of a view in another shape of as many elements, or `None` where no strides say it.
pub(in crate::ops) fn reshaped_strides(from: &[usize], strides: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    if from.contains(&0) {
        return Some(vec![0; to.len()]);
    }
    // Runs of axes that are as one, from the last.
    let joined = collapse(from, &[strides.to_vec()]);
    let (lengths, steps) = (joined.shape, joined.strides.into_iter().next()?);
    let mut result = vec![0; to.len()];
    let mut run = lengths.len();
    let (mut left, mut step) = (1, 0_usize);
    for (axis, &side) in to.iter().enumerate().rev() {
        if side == 1 {
            continue;
        }
        if left == 1 {
            run = run.checked_sub(1)?;
            (left, step) = (lengths[run], steps[run]);
        }
        if left % side != 0 {
            return None;
        }
        result[axis] = step;
        left /= side;
        step = step.saturating_mul(side);
    }
    (left == 1).then_some(result)
}

/// A shape and the strides of several views of it, with axes of length 1 dropped and neighbouring axes joined wherever every view allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ops) struct Collapsed {
    pub(in crate::ops) shape: Vec<usize>,
    /// One list of strides for each view.
    pub(in crate::ops) strides: Vec<Vec<usize>>,
}

/// Collapses.
pub(in crate::ops) fn collapse(shape: &[usize], views: &[Vec<usize>]) -> Collapsed {
    let mut result = Collapsed { shape: Vec::new(), strides: vec![Vec::new(); views.len()] };
    for (axis, &side) in shape.iter().enumerate() {
        if side == 1 {
            continue;
        }
        let joins = !result.shape.is_empty()
            && views
                .iter()
                .zip(&result.strides)
                .all(|(view, kept)| kept.last().copied() == view[axis].checked_mul(side));
        if joins {
            if let Some(last) = result.shape.last_mut() {
                *last *= side;
            }
            for (view, kept) in views.iter().zip(&mut result.strides) {
                if let Some(last) = kept.last_mut() {
                    *last = view[axis];
                }
            }
        } else {
            result.shape.push(side);
            views.iter().zip(&mut result.strides).for_each(|(view, kept)| kept.push(view[axis]));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_is_numpys() {
        assert_eq!(broadcast(&[4, 1, 3], &[2, 1]).unwrap_or_default(), [4, 2, 3]);
        assert_eq!(broadcast(&[], &[5]).unwrap_or_default(), [5]);
        assert_eq!(broadcast(&[0, 3], &[1, 3]).unwrap_or_default(), [0, 3]);
        assert!(broadcast(&[2], &[3]).is_err());
    }

    #[test]
    fn elements_are_counted_or_refused() {
        assert_eq!(count(&[]).unwrap_or(9), 1);
        assert_eq!(count(&[3, 0, 4]).unwrap_or(9), 0);
        for shape in [&[1 << 32, 1 << 32][..], &[0, 1 << 40, 1 << 40], &[1 << 40, 1 << 40, 0], &[usize::MAX, 2]] {
            assert!(count(shape).is_err(), "{shape:?}");
        }
        assert_eq!(product(&[usize::MAX, 2]), usize::MAX);
        assert_eq!(product(&[usize::MAX, 2, 0]), 0);
        assert_eq!(contiguous(&[0, 1 << 40, 1 << 40]), [usize::MAX, 1 << 40, 1]);
    }

    #[test]
    fn a_bias_keeps_two_axes_and_a_batch_joins() {
        let shape = [2, 3, 4];
        let full = contiguous(&shape);
        let bias = broadcast_strides(&[4], &[1], &shape);
        let collapsed = collapse(&shape, &[full, bias]);
        assert_eq!(collapsed.shape, [6, 4]);
        assert_eq!(collapsed.strides, [vec![4, 1], vec![0, 1]]);
        assert_eq!(collapse(&shape, &[contiguous(&shape)]).shape, [24]);
    }

    #[test]
    fn a_reshape_is_a_view_where_strides_can_say_it() {
        assert_eq!(reshaped_strides(&[4, 6], &[6, 1], &[2, 2, 3, 2]), Some(vec![12, 6, 2, 1]));
        assert_eq!(reshaped_strides(&[6, 4], &[1, 6], &[24]), None);
        assert_eq!(reshaped_strides(&[6, 4], &[1, 6], &[2, 3, 1, 4]), Some(vec![3, 1, 0, 6]));
        assert_eq!(reshaped_strides(&[3, 4], &[0, 1], &[3, 2, 2]), Some(vec![0, 2, 1]));
        assert_eq!(reshaped_strides(&[3, 4], &[0, 1], &[12]), None);
        assert_eq!(reshaped_strides(&[1, 1], &[0, 0], &[1]), Some(vec![0]));
    }
}
