//! Fourier transforms. Complex numbers are pairs of float32, real and imaginary part, along a last axis of two elements. `transform` computes; this file
//! checks, moves axes, and makes real transforms of complex ones. Float32 numbers come as pairs in a last axis, complex dtypes as they are. Only the
//! inverse divides by the length.

mod butterfly;
mod convolve;
mod rows;
mod tile;
mod transform;

pub use convolve::Overlap;

use crate::error::{Error, Result};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::expr::view::{axes_of, axis_of, permuted, reshaped, to_last, with_last};
use crate::tensor::{DType, Kind};
use cantus_base::listed::Listed;
use transform::{Halves, Transform};

/// Numbers along an axis, at most: angles are counted in eighths.
const LONGEST: usize = 1 << 29;

fn float(expr: &Expr, what: &str) -> Result<()> {
    match expr.dtype()? {
        DType::F32 => Ok(()),
        dtype => Err(Error::dtype(format!("{what} of {dtype}"), "it is for f32 (cast first)")),
    }
}

/// The number of axes of complex numbers, without that of their parts.
fn complex_axes(expr: &Expr, what: &str) -> Result<usize> {
    float(expr, what)?;
    match expr.shape()? {
        [axes @ .., 2] => Ok(axes.len()),
        shape => Err(Error::shape(
            format!("{what} of the shape {shape:?}"),
            "the last axis has two elements, the real and the imaginary part (real numbers: rfft)",
        )),
    }
}

fn length_checked(length: usize, what: &str) -> Result<()> {
    if (1..=LONGEST).contains(&length) {
        return Ok(());
    }
    Err(Error::shape(format!("{what} of {length} numbers"), format!("it takes 1 to {LONGEST} of them")))
}

/// Complex numbers with an axis moved behind the others, before their parts; or back.
fn moved(expr: &Expr, axis: usize, back: bool) -> Expr {
    expr.derived(|typed| {
        let last = typed.shape.len() - 2;
        let mut order: Vec<usize> = (0..typed.shape.len()).listed();
        if back {
            let from = order.remove(last);
            order.insert(axis, from);
        } else {
            let from = order.remove(axis);
            order.insert(last, from);
        }
        Ok(permuted(typed, &order))
    })
}

impl Expr {
    /// Returns the discrete Fourier transform of complex numbers (…, 2) along an axis, not counting the last: `X[k] = Σ x[n] e^(-2πi kn / N)`. The
    /// length may be any; one with prime factors above 13 takes three transforms of twice the length. Tensors of complex64 and complex128 are
    /// transformed without an axis of parts, complex128 on the host.
    ///
    /// The error of each result is at most about 1e-7 log₂ N times the norm of the row.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 0.0, 0.0, 1.0], &[2, 2])?; // 1, i
    /// assert_eq!(x.fft(0).eval()?.to_vec::<f32>()?, [1.0, 1.0, 1.0, -1.0]); // 1 + i, 1 - i
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn fft(&self, axis: isize) -> Self {
        self.transformed(axis, false)
    }

    /// Returns the inverse of [`Expr::fft`], which divides by the length.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 1.0, 1.0, -1.0], &[2, 2])?;
    /// assert_eq!(x.ifft(0).eval()?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn ifft(&self, axis: isize) -> Self {
        self.transformed(axis, true)
    }

    fn transformed(&self, axis: isize, inverse: bool) -> Self {
        let what = if inverse { "ifft" } else { "fft" };
        if self.dtype().is_ok_and(|dtype| dtype.kind() == Kind::Complex) {
            return self.of(self.of_complex(axis, inverse));
        }
        let result = complex_axes(self, what).and_then(|rank| {
            let axis = axis_of(axis, rank)?;
            let shape = self.shape()?;
            length_checked(shape[axis], what)?;
            if shape.contains(&0) {
                return Ok(self.clone());
            }
            let rows = moved(self, axis, false).derived(|typed| {
                let shape = typed.shape.clone();
                Ok(Typed::deferred(Transform { input: typed.clone(), inverse }, shape, DType::F32))
            });
            Ok(moved(&rows, axis, true))
        });
        self.of(result)
    }

    /// The transform of complex numbers along an axis. On the processor the operation asks for the native one.
    fn of_complex(&self, axis: isize, inverse: bool) -> Result<Self> {
        let rank = self.shape()?.len();
        let place = axis_of(axis, rank)?;
        length_checked(self.shape()?[place], if inverse { "ifft" } else { "fft" })?;
        if self.shape()?.contains(&0) {
            return Ok(self.clone());
        }
        if !self.engine.is_processors() {
            return self.complex_transformed(place, inverse);
        }
        Ok(self.derived(|typed| {
            let input = to_last(typed, place);
            let (shape, dtype) = (input.shape.clone(), input.dtype);
            Ok(with_last(&Typed::deferred(rows::Rows { input, inverse }, shape, dtype), place))
        }))
    }

    /// The transform of complex64, by the kernels for pairs, and of complex128, by the host.
    fn complex_transformed(&self, place: usize, inverse: bool) -> Result<Self> {
        if self.dtype()? == DType::Complex128 {
            return Ok(self.derived(|typed| {
                Ok(with_last(&crate::ops::host::transformed(&to_last(typed, place), inverse), place))
            }));
        }
        let pairs = self.real().stack(&[self.imag()], -1).transformed(place.cast_signed(), inverse).settled();
        let part = |from: usize| {
            let mut ranges: Vec<_> = self.shape().unwrap_or_default().iter().map(|&side| 0..side).listed();
            ranges.push(from..from + 1);
            pairs.slice(&ranges).squeeze(-1)
        };
        Ok(part(0).complex(part(1)))
    }

    /// Returns [`Expr::fft`] along several axes (all of them for `&[]`).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0], &[2, 2, 2])?;
    /// assert_eq!(x.fftn(&[]).eval()?.to_vec::<f32>()?, [10.0, 0.0, -2.0, 0.0, -4.0, 0.0, 0.0, 0.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "fft2")]
    pub fn fftn(&self, axes: &[isize]) -> Self {
        self.transformed_along(axes, false)
    }

    /// Returns [`Expr::ifft`] along several axes (all of them for `&[]`).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[10.0_f32, 0.0, -2.0, 0.0, -4.0, 0.0, 0.0, 0.0], &[2, 2, 2])?;
    /// assert_eq!(x.ifftn(&[]).eval()?.to_vec::<f32>()?, [1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "ifft2")]
    pub fn ifftn(&self, axes: &[isize]) -> Self {
        self.transformed_along(axes, true)
    }

    fn transformed_along(&self, axes: &[isize], inverse: bool) -> Self {
        let what = if inverse { "ifftn" } else { "fftn" };
        let rank = match self.dtype() {
            Ok(dtype) if dtype.kind() == Kind::Complex => self.shape().map(<[usize]>::len),
            _ => complex_axes(self, what),
        };
        match rank.and_then(|rank| axes_of(axes, rank)) {
            Ok(axes) => axes
                .into_iter()
                .rev()
                .fold(self.clone(), |result, axis| result.transformed(axis.cast_signed(), inverse)),
            Err(error) => self.failed(&error),
        }
    }

    /// Returns the transform of real float32 numbers along an axis: its first N / 2 + 1 numbers, as complex ones (…, 2). The others follow, because
    /// `X[N - k]` is the conjugate of `X[k]`. An even N takes a transform of half the length.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 2.0, 3.0, 4.0])?;
    /// assert_eq!(x.rfft(0).eval()?.to_vec::<f32>()?, [10.0, 0.0, -2.0, 2.0, -2.0, 0.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn rfft(&self, axis: isize) -> Self {
        let result = float(self, "rfft").and_then(|()| {
            let shape = self.shape()?;
            let axis = axis_of(axis, shape.len())?;
            let length = shape[axis];
            length_checked(length, "rfft")?;
            let half = length / 2;
            let rows = self.derived(|typed| Ok(to_last(typed, axis)));
            if length % 2 == 1 || shape.contains(&0) {
                let zeros = rows.constant(0.0).broadcast_to(rows.shape()?);
                let all = rows.stack(&[zeros], -1).transformed(-1, false);
                let mut ranges: Vec<_> = rows.shape()?.iter().map(|&side| 0..side).listed();
                if let Some(last) = ranges.last_mut() {
                    *last = 0..half + 1;
                }
                return Ok(moved(&all.slice(&ranges), axis, true));
            }
            // Two by two, as they lie.
            let pairs = rows.derived(|typed| {
                let mut shape = typed.shape.clone();
                shape.pop();
                shape.extend([half, 2]);
                Ok(reshaped(typed, &shape))
            });
            let spectrum = pairs.transformed(-1, false).derived(|typed| {
                let mut shape = typed.shape.clone();
                let rank = shape.len();
                shape[rank - 2] = half + 1;
                Ok(Typed::deferred(Halves { input: typed.clone(), half, inverse: false }, shape, DType::F32))
            });
            Ok(moved(&spectrum, axis, true))
        });
        self.of(result)
    }

    /// Returns the inverse of [`Expr::rfft`]: `length` real numbers from `length` / 2 + 1 complex ones along an axis. The imaginary parts of the
    /// first, and of the last if `length` is even, are ignored.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[10.0_f32, 0.0, -2.0, 2.0, -2.0, 0.0], &[3, 2])?;
    /// assert_eq!(x.irfft(4, 0).eval()?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn irfft(&self, length: usize, axis: isize) -> Self {
        let result = complex_axes(self, "irfft").and_then(|rank| {
            let axis = axis_of(axis, rank)?;
            let shape = self.shape()?;
            length_checked(length, "irfft")?;
            let half = length / 2;
            if shape[axis] != half + 1 {
                return Err(Error::shape(
                    format!("irfft of {shape:?} to {length} numbers"),
                    format!("axis {axis} must have {} complex numbers", half + 1),
                ));
            }
            let rows = moved(self, axis, false);
            let of = rows.shape()?.to_vec();
            let mut real = of[..of.len() - 2].to_vec();
            real.push(length);
            let back = |expr: Self| expr.derived(|typed| Ok(with_last(typed, axis)));
            if shape.contains(&0) {
                return Ok(back(self.constant(0.0).broadcast_to(&real)));
            }
            if length % 2 == 1 {
                // The other half, mirrored, and the real parts of what comes out.
                let within = |from: usize, to: usize| {
                    let mut ranges: Vec<_> = of.iter().map(|&side| 0..side).listed();
                    ranges[of.len() - 2] = from..to;
                    rows.slice(&ranges)
                };
                let part = |of: &Self, from: usize| {
                    let result = of.shape().map(|shape| {
                        let mut ranges: Vec<_> = shape.iter().map(|&side| 0..side).listed();
                        ranges.pop();
                        ranges.push(from..from + 1);
                        of.slice(&ranges)
                    });
                    of.of(result)
                };
                let first = within(0, 1);
                let first = part(&first, 0).concat(&[part(&first, 1) * 0.0], -1);
                let rest = within(1, half + 1);
                let turned = rest.flip(&[-2]);
                let mirrored = part(&turned, 0).concat(&[-part(&turned, 1)], -1);
                let all = first.concat(&[rest, mirrored], -2).transformed(-1, true);
                return Ok(back(part(&all, 0).squeeze(-1)));
            }
            let pairs = rows.derived(|typed| {
                let mut shape = typed.shape.clone();
                let rank = shape.len();
                shape[rank - 2] = half;
                Ok(Typed::deferred(Halves { input: typed.clone(), half, inverse: true }, shape, DType::F32))
            });
            Ok(back(pairs.transformed(-1, true).reshape(&real)))
        });
        self.of(result)
    }

    /// Returns the transform of real numbers along several axes (all of them for `&[]`): [`Expr::rfft`] along the last of them, then [`Expr::fft`]
    /// along the others.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.rfftn(&[]).eval()?.to_vec::<f32>()?, [10.0, 0.0, -2.0, 0.0, -4.0, 0.0, 0.0, 0.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "rfft2")]
    pub fn rfftn(&self, axes: &[isize]) -> Self {
        let result = self.shape().and_then(|shape| {
            let axes = axes_of(axes, shape.len())?;
            let Some((&last, others)) = axes.split_last() else {
                return Err(Error::shape("rfftn of a number", "it has no axis"));
            };
            let first = self.rfft(last.cast_signed());
            Ok(others.iter().rev().fold(first, |result, &axis| result.transformed(axis.cast_signed(), false)))
        });
        self.of(result)
    }

    /// Returns the inverse of [`Expr::rfftn`], with `length` real numbers along the last of the axes.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[10.0_f32, 0.0, -2.0, 0.0, -4.0, 0.0, 0.0, 0.0], &[2, 2, 2])?;
    /// assert_eq!(x.irfftn(2, &[]).eval()?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "irfft2")]
    pub fn irfftn(&self, length: usize, axes: &[isize]) -> Self {
        let result = complex_axes(self, "irfftn").and_then(|rank| {
            let axes = axes_of(axes, rank)?;
            let Some((&last, others)) = axes.split_last() else {
                return Err(Error::shape("irfftn of a number", "it has no axis"));
            };
            let all = others.iter().fold(self.clone(), |result, &axis| result.transformed(axis.cast_signed(), true));
            Ok(all.irfft(length, last.cast_signed()))
        });
        self.of(result)
    }
}

tensor_methods! {
    fn fft(axis: isize);
    fn ifft(axis: isize);
    fn fftn(axes: &[isize]);
    fn ifftn(axes: &[isize]);
    fn rfft(axis: isize);
    fn irfft(length: usize, axis: isize);
    fn rfftn(axes: &[isize]);
    fn irfftn(length: usize, axes: &[isize]);
}
