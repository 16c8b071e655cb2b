//! Summaries composed of reductions: deviations, norms, counts, and questions about all of them.

use crate::error::Error;
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::tensor::DType;

impl Expr {
    /// Returns the standard deviation over axes, the root of [`Expr::variance`].
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1.0_f32, 3.0, 1.0, 3.0])?;
    /// assert_eq!(x.std(&[], 0.0, false).eval()?.item::<f32>()?, 1.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn std(&self, axes: &[isize], correction: f64, keep: bool) -> Self {
        self.in_float(|x| Ok(x.variance(axes, correction, keep).sqrt()))
    }

    /// Returns the number of elements over axes that are not 0, as u32. NaN is not 0.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[0_i32, 2, 3, 0, 0, 6], &[2, 3])?;
    /// assert_eq!(x.count_nonzero(&[1], false).eval()?.to_vec::<u32>()?, [2, 1]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn count_nonzero(&self, axes: &[isize], keep: bool) -> Self {
        let is_truth = self.dtype().is_ok_and(|dtype| dtype == DType::Bool);
        let truths = if is_truth { self.clone() } else { self.not_equal(0.0) };
        truths.sum(axes, keep)
    }

    /// Returns whether any element over axes is not 0; false if there are no elements.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[0.0_f32, 2.0, 0.0, 0.0], &[2, 2])?;
    /// assert_eq!(x.any(&[1], false).eval()?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn any(&self, axes: &[isize], keep: bool) -> Self {
        self.count_nonzero(axes, keep).not_equal(0)
    }

    /// Returns whether all elements over axes are not 0; true if there are no elements.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 2.0, 0.0, 3.0], &[2, 2])?;
    /// assert_eq!(x.all(&[1], false).eval()?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn all(&self, axes: &[isize], keep: bool) -> Self {
        self.equal(0.0).sum(axes, keep).equal(0)
    }

    /// Returns the vector norm of order `p` over axes, (Σ |x|^p)^(1/p): the greatest magnitude for infinity, the least for negative infinity, and the
    /// number of elements that are not 0 for 0. Integers are converted to f32 first. The powers must be in the range of float32: for p = 2, magnitudes
    /// up to 1.8e19.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[3.0_f32, -4.0])?;
    /// assert_eq!(x.norm(2.0, &[], false).eval()?.item::<f32>()?, 5.0);
    /// assert_eq!(x.norm(1.0, &[], false).eval()?.item::<f32>()?, 7.0);
    /// assert_eq!(x.norm(f64::INFINITY, &[], false).eval()?.item::<f32>()?, 4.0);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn norm(&self, p: f64, axes: &[isize], keep: bool) -> Self {
        self.in_float(|x| {
            let magnitude = x.abs();
            Ok(match p {
                _ if p.is_nan() => {
                    return Err(Error::invalid("a norm of order NaN", "the order must be a number or infinity"));
                }
                0.0 => x.not_equal(0.0).cast(x.real_magnitude().dtype()?).sum(axes, keep),
                1.0 => magnitude.sum(axes, keep),
                2.0 => x.real_magnitude().square().sum(axes, keep).sqrt(),
                f64::INFINITY => magnitude.max(axes, keep),
                f64::NEG_INFINITY => magnitude.min(axes, keep),
                _ => magnitude.pow(p).sum(axes, keep).pow(p.recip()),
            })
        })
    }

    /// Returns the logarithm of the sum of e^x over axes, even if e^x is out of range; -∞ if there are no elements. Integers are converted to f32 first.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1000.0_f32, 1000.0])?;
    /// assert!((x.logsumexp(&[], false).eval()?.item::<f32>()? - 1000.0 - 2.0_f32.ln()).abs() < 1e-4);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn logsumexp(&self, axes: &[isize], keep: bool) -> Self {
        self.in_float(|x| {
            if x.reduced_count(axes)? == 0 {
                return Ok(x.sum(axes, keep).log());
            }
            // With an infinity or NaN, the shift would give NaN.
            let greatest = x.max(axes, true);
            let shift = greatest.is_finite().select(&greatest, greatest.constant(0.0));
            let sum = x.binary(Binary::Sub, &shift).exp().sum(axes, keep);
            Ok(sum.log() + shift.reshape(&x.reduced_shape(axes, keep)?))
        })
    }
}

tensor_methods! {
    fn std(axes: &[isize], correction: f64, keep: bool);
    fn count_nonzero(axes: &[isize], keep: bool);
    fn any(axes: &[isize], keep: bool);
    fn all(axes: &[isize], keep: bool);
    fn norm(p: f64, axes: &[isize], keep: bool);
    fn logsumexp(axes: &[isize], keep: bool);
}
