//! Pooling to a given size.

use super::arrange::places_along;
use super::images::images;
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::emit::word;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::tensor::DType;

impl Expr {
    /// Returns the mean of each of `size` parts that cover images (N, C, H, W): part i of n goes from floor(i H / n) to ceil((i + 1) H / n).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 4.0], &[1, 1, 1, 3])?;
    /// assert_eq!(x.adaptive_avg_pool2d([1, 2]).eval()?.to_vec::<f32>()?, [1.5, 3.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn adaptive_avg_pool2d(&self, size: [usize; 2]) -> Self {
        self.parts_pooled(size, |x, parts| {
            let each = parts.inside.cast(DType::F32).binary(Binary::Mul, &x);
            each.sum(&[-1], false).binary(Binary::Div, parts.length.cast(DType::F32).squeeze(-1))
        })
    }

    /// Returns the greatest element of each of the parts of [`Expr::adaptive_avg_pool2d`]; NaN if a part has one.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 4.0], &[1, 1, 1, 3])?;
    /// assert_eq!(x.adaptive_max_pool2d([1, 2]).eval()?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn adaptive_max_pool2d(&self, size: [usize; 2]) -> Self {
        // A shorter part repeats its last element.
        self.parts_pooled(size, |x, _| x.max(&[-1], false))
    }

    fn parts_pooled(&self, size: [usize; 2], pool: impl Fn(Self, &Parts) -> Self) -> Self {
        let checked = || -> Result<()> {
            let typed = self.state.as_ref().map_err(Clone::clone)?;
            let [_, _, height, width] = images(typed, "adaptive pooling")?;
            if size.contains(&0) || height == 0 || width == 0 {
                return Err(Error::shape(
                    format!("adaptive pooling of {:?} to {size:?}", typed.shape),
                    "images and results must have at least one row and one column",
                ));
            }
            // The kernel counts places times parts.
            [(height, size[0]), (width, size[1])]
                .iter()
                .try_for_each(|(side, to)| word((to + 1).saturating_mul(*side)).map(drop))
        };
        if let Err(error) = checked() {
            return self.failed(&error);
        }
        self.in_float(|x| {
            let mut result = x.clone();
            for (axis, to) in [(3, size[1]), (2, size[0])] {
                let length = result.shape()?[axis];
                let parts = Parts::new(&result, length, to);
                // The axis of parts stays in place, and their elements go last.
                let taken = result.taken(&parts.index, axis.cast_signed());
                let order: &[isize] = if axis == 3 { &[0, 1, 2, 3, 4] } else { &[0, 1, 4, 2, 3] };
                let pooled = pool(taken.permute(order), &parts);
                result = if axis == 3 { pooled } else { pooled.permute(&[0, 1, 3, 2]) };
            }
            Ok(result)
        })
    }
}

/// The parts of an axis: (part, place in it).
struct Parts {
    /// Index of each element; a part that is too short repeats its last element.
    index: Expr,
    /// 1 for elements, 0 for repetitions.
    inside: Expr,
    /// Number of elements of each part, (part, 1).
    length: Expr,
}

impl Parts {
    fn new(of: &Expr, length: usize, count: usize) -> Self {
        // A part is longer by two at most than all are on average, when both its ends are cut.
        let longest = length.div_ceil(count) + usize::from(!length.is_multiple_of(count));
        let part = places_along(&of.engine, &[count, 1], 0);
        let place = places_along(&of.engine, &[1, longest], 1);
        let sides = |value: usize| value as f64;
        let start = part.binary(Binary::Mul, sides(length)).binary(Binary::Div, sides(count));
        let end = part.binary(Binary::Add, 1).binary(Binary::Mul, sides(length));
        let end = end.binary(Binary::Add, sides(count - 1)).binary(Binary::Div, sides(count));
        let at = start.binary(Binary::Add, place);
        let last = end.binary(Binary::Sub, 1);
        Self { inside: at.less(&end), index: at.minimum(&last), length: end.binary(Binary::Sub, &start) }
    }
}

tensor_methods! {
    fn adaptive_avg_pool2d(size: [usize; 2]);
    fn adaptive_max_pool2d(size: [usize; 2]);
}
