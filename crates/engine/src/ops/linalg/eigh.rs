//! Eigenvalues and eigenvectors of symmetric matrices.

use super::jacobi::BothSides;
use super::{by_host, magnitude, part, parts, sides, square_floats, where_sound};
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::elementwise::Binary;
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::host::Factorisation;
use crate::ops::tensor::eye;
use crate::tensor::DType;
use cantus_base::listed::Listed;

/// The method has converged if every element off the diagonal is below this part of the greatest element. Usually it is a hundredth of that.
const CONVERGED: f64 = 1e-4;

/// Eigenvalues, ascending, and vectors of matrices that are not empty.
fn eigh(a: &Expr) -> Result<(Expr, Expr)> {
    let shape = a.shape()?.to_vec();
    let [n, _] = sides(&shape);
    let (up, down) = magnitude(&a.tril(0));
    // The lower triangle, mirrored to the upper one.
    let lower = (a.binary(Binary::Mul, &down)).tril(0).settled();
    let symmetric = &lower + lower.tril(-1).transpose();
    // A row of zeros makes their number even. Rotating it changes nothing.
    let even = n.next_multiple_of(2);
    let mut around = vec![(0, 0); shape.len()];
    for width in around.iter_mut().rev().take(2) {
        width.1 = even - n;
    }
    let padded = if even > n { symmetric.pad(&around, 0.0) } else { symmetric };
    let identity = eye(&a.engine, even, even, 0, DType::F32).broadcast_to(padded.shape()?);
    let both = padded.stack(&[identity], -3);
    let turned = both.derived(|typed| {
        let shape = typed.shape.clone();
        Ok(Typed::deferred(BothSides(typed.clone()), shape, DType::F32))
    });
    let rank = shape.len();
    let mut ranges: Vec<_> = shape[..rank - 2].iter().map(|&side| 0..side).listed();
    ranges.push(0..1);
    let turned_matrix = part(&turned.slice(&ranges).squeeze(-3), 0..n, 0..n);
    ranges[rank - 2] = 1..2;
    let vectors = part(&turned.slice(&ranges).squeeze(-3), 0..n, 0..n);
    let off = turned_matrix.tril(-1).abs().max(&[-2, -1], false);
    let values = turned_matrix.diagonal(0);
    let sound = off.less_equal(lower.abs().max(&[-2, -1], false) * CONVERGED);
    let order = values.argsort(-1, false).settled();
    let values = values.gathered(&order, -1).binary(Binary::Mul, up.squeeze(-1));
    // Rotations keep right angles better than lengths.
    let vectors = vectors.gathered(&order.expand(-2), -1).settled();
    let vectors = vectors.binary(Binary::Div, vectors.norm(2.0, &[-2], true));
    Ok((where_sound(&values, &sound, 1), where_sound(&vectors, &sound, 2)))
}

impl Expr {
    /// Returns the eigenvalues of symmetric float32 matrices (…, n, n), ascending, and the eigenvectors as columns: A V = V diag(values). It reads the
    /// lower triangle of each matrix. Jacobi's method suits some hundreds of rows at most: the work grows with n³ log n, in n log n dispatches. If an
    /// element is NaN, all results of its matrix are NaN.
    ///
    /// The errors of the eigenvalues and of A V = V diag(values) are at most about n 1e-7 |A|; Vᵀ V differs from the identity by about n 1e-7.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (values, vectors) = engine.tensor_from(&[2.0_f32, 1.0, 1.0, 2.0], &[2, 2])?.eigh();
    /// let values = values.eval()?.to_vec::<f32>()?;
    /// assert!((values[0] - 1.0).abs() < 1e-6 && (values[1] - 3.0).abs() < 1e-6);
    /// assert!((vectors.eval()?.to_vec::<f32>()?[1].abs() - 0.5_f32.sqrt()).abs() < 1e-6);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn eigh(&self) -> (Self, Self) {
        let result = by_host(self, Factorisation::Eigh, "eigh").and_then(|found| {
            if let Some(found) = found {
                return parts(found).map(|[values, vectors]| (values, vectors));
            }
            let shape = square_floats(self, "eigh")?;
            if shape.contains(&0) {
                return Ok((self.diagonal(0), self.clone()));
            }
            eigh(&self.settled())
        });
        match result {
            Ok(both) => both,
            Err(error) => (self.failed(&error), self.failed(&error)),
        }
    }
}

impl Tensor {
    /// See [`Expr::eigh`].
    #[must_use]
    pub fn eigh(&self) -> (Expr, Expr) {
        self.expr().eigh()
    }
}
