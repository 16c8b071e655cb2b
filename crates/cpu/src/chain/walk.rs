//! Views in the order of their elements.

use crate::backend::native::CopyShape;

/// Axes of a view that is walked, at most.
pub(super) const MOST_AXES: usize = 8;

/// The axes of a view in the order of its elements: sides and steps. Contiguous axes are joined.
pub(super) struct Walk {
    pub(super) axes: Vec<(usize, usize)>,
}

impl Walk {
    pub(super) fn new(view: &CopyShape) -> Self {
        let mut axes: Vec<(usize, usize)> = Vec::with_capacity(view.sides.len());
        for (&side, &stride) in view.sides.iter().zip(&view.strides).rev().filter(|(side, _)| **side > 1) {
            match axes.last_mut() {
                Some((inner, step)) if stride == *step * *inner => *inner *= side,
                _ => axes.push((side, stride)),
            }
        }
        // The innermost comes first.
        Self { axes }
    }

    /// Calls `each` with where runs along the innermost axis begin, how many elements of it are taken, and how many were before: `count` elements in
    /// all, from the element `first` on.
    pub(super) fn runs(&self, first: usize, count: usize, mut each: impl FnMut(usize, usize, usize)) {
        let Some((&(side, step), outer)) = self.axes.split_first() else { return };
        let (mut row, mut column) = (first / side, first % side);
        let (mut at, mut places) = (0, [0; MOST_AXES]);
        for (place, &(side, step)) in places.iter_mut().zip(outer) {
            *place = row % side;
            at += *place * step;
            row /= side;
        }
        let mut done = 0;
        while done < count {
            let taken = (side - column).min(count - done);
            each(at + column * step, taken, done);
            (done, column) = (done + taken, 0);
            for (place, &(side, step)) in places.iter_mut().zip(outer) {
                *place += 1;
                at += step;
                if *place < side {
                    break;
                }
                at -= side * step;
                *place = 0;
            }
        }
    }
}
