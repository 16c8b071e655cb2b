//! Convolutions of long signals, through their transforms where that is quicker.

use super::butterfly::smooth;
use super::float;
use super::transform::complex_product;
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::expr::shape::broadcast;
use cantus_base::listed::Listed;

/// The length of the shorter signal from which transforms are faster.
const LONG: usize = 128;

/// The part of a convolution to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Overlap {
    /// All of it: wherever the two meet, n + m - 1 elements.
    #[default]
    Full,
    /// The middle, as long as the first signal.
    Same,
    /// The positions at which all of the shorter signal overlaps the longer one.
    Valid,
}

impl Expr {
    /// Returns the convolution of float32 signals along the last axis, `y[k] = Σ x[i] other[k - i]`. The other axes broadcast. Long signals are
    /// convolved by [`Expr::rfft`].
    ///
    /// The error of each element is at most about 1e-6 times the norms of both signals.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// use cantus::ops::Overlap;
    /// let (x, w) = (engine.tensor(&[1.0_f32, 2.0, 3.0])?, engine.tensor(&[1.0_f32, 10.0])?);
    /// assert_eq!(x.convolve(&w, Overlap::Full).eval()?.to_vec::<f32>()?, [1.0, 12.0, 23.0, 30.0]);
    /// assert_eq!(x.convolve(&w, Overlap::Valid).eval()?.to_vec::<f32>()?, [12.0, 23.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "fftconvolve")]
    pub fn convolve(&self, other: impl Into<Self>, overlap: Overlap) -> Self {
        let other = other.into();
        let result = self.convolved(&other, overlap);
        self.of(result)
    }

    fn convolved(&self, other: &Self, overlap: Overlap) -> Result<Self> {
        float(self, "a convolution")?;
        float(other, "a convolution")?;
        self.beside(other)?;
        let (a, b) = (self.shape()?, other.shape()?);
        let fault = |reason: &str| Error::shape(format!("the convolution of {a:?} and {b:?}"), reason);
        let ([of_a @ .., n], [of_b @ .., m]) = (a, b) else { return Err(fault("both need at least one axis")) };
        let (n, m) = (*n, *m);
        if n == 0 || m == 0 {
            return Err(fault("both need at least one element"));
        }
        let batch = broadcast(of_a, of_b)?;
        let full = n + m - 1;
        let (short, long) = (n.min(m), n.max(m));
        let range = match overlap {
            Overlap::Full => 0..full,
            Overlap::Same => (m - 1) / 2..(m - 1) / 2 + n,
            Overlap::Valid => short - 1..long,
        };
        let all = if short < LONG {
            // Windows of the longer one, with the shorter one turned over.
            let (wide, narrow) = if n >= m { (self, other) } else { (other, self) };
            let mut around = vec![(0, 0); wide.shape()?.len()];
            if let Some(last) = around.last_mut() {
                *last = (short - 1, short - 1);
            }
            let windows = wide.pad(&around, 0.0).unfold(-1, short, 1);
            windows.binary(Binary::Mul, narrow.flip(&[-1]).expand(-2)).sum(&[-1], false)
        } else {
            let length = smooth(full.div_ceil(2)) * 2;
            let spectrum = |of: &Self, side: usize| {
                let result = of.shape().map(|shape| {
                    let mut around = vec![(0, 0); shape.len()];
                    if let Some(last) = around.last_mut() {
                        *last = (0, length - side);
                    }
                    of.pad(&around, 0.0).rfft(-1)
                });
                of.of(result)
            };
            complex_product(&spectrum(self, n), &spectrum(other, m)).irfft(length, -1)
        };
        let mut ranges: Vec<_> = batch.iter().map(|&side| 0..side).listed();
        ranges.push(range);
        Ok(all.slice(&ranges))
    }
}

tensor_methods! {
    fn convolve(other: impl Into<Expr>, overlap: Overlap);
}
