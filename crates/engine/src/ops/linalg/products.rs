//! Products made of others: over chosen axes, of Kronecker, and powers.

use super::contract::{Label, Term, contract};
use super::square;
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::expr::view::axis_of;
use crate::ops::tensor::eye;
use cantus_base::listed::Listed;

impl Expr {
    /// Returns the sum of products over pairs of axes, one of this and one of `other`. The result has the remaining axes of this, then those of
    /// `other`, as NumPy's `tensordot`. Without pairs it is the product of each element with each.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let b = engine.tensor_from(&[1.0_f32, 10.0], &[2, 1])?;
    /// assert_eq!(a.tensordot(&b, &[(0, 0)]).eval()?.to_vec::<f32>()?, [31.0, 42.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn tensordot(&self, other: impl Into<Self>, axes: &[(isize, isize)]) -> Self {
        let other = other.into();
        let result = self.over_axes(&other, axes);
        self.of(result)
    }

    fn over_axes(&self, other: &Self, axes: &[(isize, isize)]) -> Result<Self> {
        let (a, b) = (self.shape()?, other.shape()?);
        // An endless supply of names, for any number of axes.
        let name = |place: usize| char::from_u32(0xf0000 + place as u32).unwrap_or('a');
        let left: Vec<Label> = (0..a.len()).map(name).listed();
        let mut right: Vec<Label> = (0..b.len()).map(|axis| name(a.len() + axis)).listed();
        let mut gone = Vec::new();
        for &(one, two) in axes {
            let (x, y) = (axis_of(one, a.len())?, axis_of(two, b.len())?);
            if a[x] != b[y] || gone.contains(&left[x]) || right[y] != name(a.len() + y) {
                return Err(Error::shape(
                    format!("tensordot of {a:?} and {b:?} over {axes:?}"),
                    "the axes of a pair must have equal lengths, and each axis may occur once",
                ));
            }
            gone.push(left[x]);
            right[y] = left[x];
        }
        let (left, right) = (Term { expr: self.clone(), labels: left }, Term { expr: other.clone(), labels: right });
        Ok(contract(left, right, |label| !gone.contains(&label))?.expr)
    }

    /// Returns the Kronecker product, as NumPy's `kron`: each element times all of `other`. The length of each axis is the product of both lengths.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[1_i32, 10])?;
    /// assert_eq!(x.kron(engine.tensor(&[1_i32, 2, 3])?).eval()?.to_vec::<i32>()?, [1, 2, 3, 10, 20, 30]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn kron(&self, other: impl Into<Self>) -> Self {
        let other = other.into();
        let result = self.shape().and_then(|a| {
            let b = other.shape()?;
            let rank = a.len().max(b.len());
            let side = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |at| shape[at]);
            let pairs: Vec<[usize; 2]> = (0..rank).map(|axis| [side(a, axis), side(b, axis)]).listed();
            let left: Vec<usize> = pairs.iter().flat_map(|&[x, _]| [x, 1]).listed();
            let right: Vec<usize> = pairs.iter().flat_map(|&[_, y]| [1, y]).listed();
            let full: Vec<usize> = pairs.iter().map(|&[x, y]| x.saturating_mul(y)).listed();
            Ok(self.reshape(&left).binary(Binary::Mul, other.reshape(&right)).reshape(&full))
        });
        self.of(result)
    }

    /// Raises square matrices (…, n, n) to an integer power, by squaring. The power 0 is the identity; negative powers are those of the inverse.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 1.0, 1.0, 0.0], &[2, 2])?;
    /// assert_eq!(x.matrix_power(10).eval()?.to_vec::<f32>()?, [89.0, 55.0, 55.0, 34.0]); // Fibonacci's numbers
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn matrix_power(&self, exponent: i32) -> Self {
        let result = square(self, "matrix_power").and_then(|shape| {
            let n = shape[shape.len() - 1];
            if exponent == 0 {
                return Ok(eye(&self.engine, n, n, 0, self.dtype()?).broadcast_to(&shape));
            }
            let mut base = if exponent < 0 { self.inverse() } else { self.settled() };
            let mut rest = exponent.unsigned_abs();
            let mut power: Option<Self> = None;
            loop {
                if rest & 1 == 1 {
                    power = Some(power.map_or_else(|| base.clone(), |power| power.matmul(&base).settled()));
                }
                rest >>= 1;
                if rest == 0 {
                    break;
                }
                base = base.matmul(&base).settled();
            }
            Ok(power.unwrap_or(base))
        });
        self.of(result)
    }
}

tensor_methods! {
    fn tensordot(other: impl Into<Expr>, axes: &[(isize, isize)]);
    fn kron(other: impl Into<Expr>);
    fn matrix_power(exponent: i32);
}
