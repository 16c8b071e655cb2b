//! Quantiles and the median: elements by their rank.

use crate::error::{Error, Result};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::expr::view::{axis_of, sliced};
use cantus_base::listed::Listed;

impl Expr {
    /// Returns the median along an axis, or of all elements; of an even number, the mean of the middle two. The same as [`Expr::quantile`] of 0.5.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[9.0_f32, 1.0, 2.0, 4.0])?;
    /// assert_eq!(x.median(Some(0), false).eval()?.item::<f32>()?, 3.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn median(&self, axis: Option<isize>, keep: bool) -> Self {
        self.quantile(0.5, axis, keep)
    }

    /// Returns the quantile `q`, from 0 to 1, along an axis or of all elements: the sorted element at index q (n - 1), interpolated linearly between
    /// neighbours. NaN if there is one. Integers are converted to f32 first. It sorts.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[9.0_f32, 1.0, 2.0, 5.0])?;
    /// assert_eq!(x.quantile(0.75, Some(0), false).eval()?.item::<f32>()?, 6.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn quantile(&self, q: f64, axis: Option<isize>, keep: bool) -> Self {
        self.in_float(|x| {
            if !(0.0..=1.0).contains(&q) {
                return Err(Error::invalid(format!("the quantile {q}"), "it must be a number from 0 to 1"));
            }
            let axes: Vec<isize> = axis.into_iter().listed();
            let (count, shape) = (x.reduced_count(&axes)?, x.reduced_shape(&axes, keep)?);
            let (x, axis) = match axis {
                Some(axis) => (x.clone(), axis),
                None => (x.reshape(&[count]), 0),
            };
            if count == 0 {
                return Err(Error::shape(format!("a quantile of {:?}", x.shape()?), "there is no element"));
            }
            let sorted = x.sort(axis, false);
            let at = |place: usize| sorted.at(axis, place);
            let place = q * (count - 1) as f64;
            let (below, rest) = (place.floor() as usize, place.fract());
            let (low, last) = (at(below)?, at(count - 1)?);
            let value = if rest == 0.0 {
                low
            } else {
                let high = at((below + 1).min(count - 1))?;
                &low + &((&high - &low) * rest)
            };
            Ok(last.is_nan().select(&last, &value).reshape(&shape))
        })
    }

    /// The part with one element along an axis.
    fn at(&self, axis: isize, place: usize) -> Result<Self> {
        let axis = axis_of(axis, self.shape()?.len())?;
        Ok(self.derived(|typed| {
            let mut ranges: Vec<_> = typed.shape.iter().map(|&side| 0..side).listed();
            ranges[axis] = place..place + 1;
            Ok(sliced(typed, &ranges, &vec![1; ranges.len()]))
        }))
    }
}

tensor_methods! {
    fn median(axis: Option<isize>, keep: bool);
    fn quantile(q: f64, axis: Option<isize>, keep: bool);
}
