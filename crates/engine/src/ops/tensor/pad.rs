//! Padding: of a number, or of what lies inside. Constants are assembled around the inside, in pieces that do not overlap; the other modes are gathers with
//! computed indices and fuse with their reader. Modes other than a constant need at least one element to repeat.

use super::assemble::assembled;
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Node, Typed};
use cantus_base::listed::Listed;

/// The elements that [`Expr::pad`] adds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Padding {
    /// A number.
    Constant(f64),
    /// The nearest element.
    Edge,
    /// The elements inside, mirrored at the last element, which is not repeated.
    Reflect,
    /// The elements from the other end, as if all began again.
    Wrap,
}

impl From<f64> for Padding {
    fn from(value: f64) -> Self {
        Self::Constant(value)
    }
}

impl Expr {
    /// Pads each axis with `before` and `after` elements, a pair per axis: a number, or the elements that [`Padding`] selects. As in NumPy,
    /// reflections and repetitions continue as far as needed.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::Padding;
    /// let x = engine.tensor(&[1_i32, 2, 3])?;
    /// assert_eq!(x.pad(&[(1, 2)], 7.0).eval()?.to_vec::<i32>()?, [7, 1, 2, 3, 7, 7]);
    /// assert_eq!(x.pad(&[(2, 1)], Padding::Edge).eval()?.to_vec::<i32>()?, [1, 1, 1, 2, 3, 3]);
    /// assert_eq!(x.pad(&[(2, 1)], Padding::Reflect).eval()?.to_vec::<i32>()?, [3, 2, 1, 2, 3, 2]);
    /// assert_eq!(x.pad(&[(2, 1)], Padding::Wrap).eval()?.to_vec::<i32>()?, [2, 3, 1, 2, 3, 1]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn pad(&self, widths: &[(usize, usize)], with: impl Into<Padding>) -> Self {
        let shape = match self.padded_shape(widths) {
            Ok(shape) => shape,
            Err(error) => return self.failed(&error),
        };
        let with = with.into();
        if let Padding::Constant(value) = with {
            return self.surrounded(widths, shape, value);
        }
        let mut result = self.clone();
        for (axis, (&(before, after), &side)) in widths.iter().zip(&shape).enumerate() {
            if (before, after) == (0, 0) {
                continue;
            }
            if before + after == side {
                return self.failed(&Error::shape(
                    format!("a padding of {widths:?}"),
                    format!("axis {axis} is empty: pad it with a number, because there is nothing to mirror or repeat"),
                ));
            }
            result = result.picked(axis, side, |place, length| {
                let place = place.cast(crate::DType::I32).binary(Binary::Sub, before as f64);
                let last = length as f64 - 1.0;
                match with {
                    Padding::Wrap => place.remainder(length as f64),
                    Padding::Reflect if length > 1 => {
                        let place = place.remainder(2.0 * last);
                        place.minimum(place.negate().binary(Binary::Add, 2.0 * last))
                    }
                    _ => place.clamp(0.0, last),
                }
            });
        }
        result
    }

    fn padded_shape(&self, widths: &[(usize, usize)]) -> Result<Vec<usize>> {
        let shape = self.shape()?;
        let what = || format!("a padding of {widths:?}");
        if widths.len() != shape.len() {
            return Err(Error::shape(what(), format!("it needs a pair for each of the {} axes", shape.len())));
        }
        let sides = shape.iter().zip(widths);
        let padded: Option<Vec<usize>> =
            sides.map(|(side, (before, after))| side.checked_add(*before)?.checked_add(*after)).try_listed();
        padded.ok_or_else(|| Error::limit(what(), "it is too large to count"))
    }

    /// Pads with a number.
    fn surrounded(&self, widths: &[(usize, usize)], shape: Vec<usize>, value: f64) -> Self {
        let constant = self.constant(value);
        self.derived(|typed| {
            let constant = constant.state.as_ref().map_err(Clone::clone)?;
            let rank = typed.shape.len();
            let mut parts = Vec::new();
            // The border in pieces that do not overlap: no element is written twice.
            let mut inner: Vec<(usize, usize)> = shape.iter().map(|&side| (0, side)).listed();
            for axis in 0..rank {
                let (before, after) = widths[axis];
                for (from, to) in [(0, before), (shape[axis] - after, shape[axis])] {
                    let mut piece = inner.clone();
                    piece[axis] = (from, to);
                    let sides = piece.iter().map(|(from, to)| to - from).listed();
                    let filled = Typed::new(Node::Cast(constant.clone()), sides, typed.dtype);
                    parts.push((filled, piece.iter().map(|(from, _)| *from).listed()));
                }
                inner[axis] = (before, shape[axis] - after);
            }
            parts.push((typed.clone(), widths.iter().map(|(before, _)| *before).listed()));
            Ok(assembled(parts, shape, typed.dtype))
        })
    }

    /// Pads the last axes with zeros so that a window moving by `stride` stops length / stride times, rounded up ("same" padding). If the
    /// number of zeros is odd, the extra one goes at the end. Each list has one number per axis. For a convolution with weights (…, h, w)
    /// `kernel` is `[h, w]`, and the window itself has no padding.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0], &[1, 1, 3])?;
    /// let w = engine.tensor_from(&[1.0_f32, 1.0], &[1, 1, 2])?;
    /// let y = x.pad_same(&[2], &[1], &[1]).conv1d(&w, 1, 0, 1, 1);
    /// assert_eq!(y.eval()?.to_vec::<f32>()?, [3.0, 5.0, 3.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn pad_same(&self, kernel: &[usize], stride: &[usize], dilation: &[usize]) -> Self {
        let result = self.shape().and_then(|shape| {
            let fault = |reason: &str| {
                Error::shape(
                    format!("padding of {shape:?} for a window of {kernel:?} by {stride:?}, dilated by {dilation:?}"),
                    reason,
                )
            };
            let axes = kernel.len();
            if stride.len() != axes || dilation.len() != axes || axes > shape.len() {
                return Err(fault("each list needs one number per padded axis"));
            }
            if [kernel, stride, dilation].iter().any(|list| list.contains(&0)) {
                return Err(fault("all numbers must be at least 1"));
            }
            let mut around = vec![(0, 0); shape.len()];
            for (axis, width) in around.iter_mut().skip(shape.len() - axes).enumerate() {
                let length = shape[shape.len() - axes + axis];
                let steps = length.div_ceil(stride[axis]).saturating_sub(1).saturating_mul(stride[axis]);
                let reach = dilation[axis].saturating_mul(kernel[axis] - 1).saturating_add(1);
                let zeros = steps.saturating_add(reach).saturating_sub(length);
                *width = (zeros / 2, zeros - zeros / 2);
            }
            Ok(if around.iter().all(|&width| width == (0, 0)) { self.clone() } else { self.pad(&around, 0.0) })
        });
        self.of(result)
    }
}

tensor_methods! {
    fn pad(widths: &[(usize, usize)], with: impl Into<Padding>);
    fn pad_same(kernel: &[usize], stride: &[usize], dilation: &[usize]);
}
