//! Singular values and vectors.

use super::jacobi::OneSide;
use super::qr::qr;
use super::{by_host, magnitude, matrices, part, parts, sides, where_sound};
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::elementwise::Binary;
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::host::Factorisation;
use crate::ops::tensor::eye;
use crate::tensor::DType;

/// The greatest cosine of two rows in the last sweep: what is left after it is about its square.
const CONVERGED: f64 = 3e-4;
/// Singular values below this part of the greatest count as 0: their vectors only complete the basis.
const NOTHING: f64 = 1e-15;

/// U, the singular values, and V transposed, of matrices that are not empty.
fn svd(a: &Expr) -> Result<(Expr, Expr, Expr)> {
    let shape = a.shape()?.to_vec();
    let ([m, n], batch) = (sides(&shape), &shape[..shape.len() - 2]);
    if m < n {
        let (v, values, u) = svd(&a.transpose().settled())?;
        return Ok((u.transpose(), values, v.transpose()));
    }
    let (up, down) = magnitude(a);
    let scaled = a.binary(Binary::Mul, down).settled();
    // The longest columns first: without that order, columns of very different lengths take many more sweeps.
    let by_length = scaled.norm(2.0, &[-2], false).argsort(-1, true).settled();
    let (q, r) = qr(&scaled.gathered(&by_length.expand(-2), -1).settled())?;
    // The rows of R, those of the rotations, and room for a cosine; their number even by a row of zeros.
    let even = n.next_multiple_of(2);
    let identity = eye(&a.engine, n, even, 0, DType::F32).broadcast_to(&[batch, &[n, even]].concat());
    let room = a.constant(0.0).broadcast_to(&[batch, &[n, 1]].concat());
    let rows = r.concat(&[identity, room], -1);
    let length = n + even + 1;
    let rows =
        if even > n { rows.concat(&[a.constant(0.0).broadcast_to(&[batch, &[1, length]].concat())], -2) } else { rows };
    let turned = rows.derived(|typed| {
        let shape = typed.shape.clone();
        Ok(Typed::deferred(OneSide { rows: typed.clone(), columns: n }, shape, DType::F32))
    });
    let turned = part(&turned, 0..n, 0..length);
    let right = part(&turned, 0..n, 0..n);
    let left = part(&turned, 0..n, n..n + n);
    let sound = part(&turned, 0..n, length - 1..length).max(&[-2, -1], false).less_equal(CONVERGED);
    let values = right.norm(2.0, &[-1], false).settled();
    let order = values.argsort(-1, true).settled();
    let values = values.gathered(&order, -1).settled();
    let right = right.gathered(&order.expand(-1), -2);
    let left = left.gathered(&order.expand(-1), -2);
    // Rows of length 1. Rows of zeros stay 0, and a factorisation completes them at right angles to the others.
    let limit = values.max(&[-1], true) * NOTHING;
    let counts = values.greater(&limit).settled();
    let inverse = counts.select(1.0_f64 / &values, values.constant(0.0));
    let unit = right.binary(Binary::Mul, inverse.expand(-1)).settled();
    let (v, signs) = qr(&unit.transpose().settled())?;
    let signs = signs.diagonal(0);
    let signs = signs.less(0.0).select(signs.constant(-1.0), signs.constant(1.0));
    let v = v.transpose().binary(Binary::Mul, signs.expand(-1)).settled();
    let v = v.gathered(&by_length.argsort(-1, false).expand(-2), -1);
    let u = q.matmul(left.transpose().settled());
    let values = values.binary(Binary::Mul, up.squeeze(-1));
    Ok((where_sound(&u, &sound, 2), where_sound(&values, &sound, 1), where_sound(&v, &sound, 2)))
}

impl Expr {
    /// Returns the singular values of float32 matrices (…, m, n), descending, with their vectors: A = U diag(values) Vᵀ. With k = min(m, n), U is (…,
    /// m, k), the values (…, k), and Vᵀ, the third, (…, k, n). The one-sided Jacobi method after [`Expr::qr`] suits some hundreds of rows or columns at
    /// most: the work grows with k³ log k, in k log k dispatches. If an element is NaN, all results of its matrix are NaN.
    ///
    /// The errors of the values and of the product are at most about k 1e-7 |A|; Uᵀ U and Vᵀ V differ from the identity by about k 1e-7.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (u, values, vt) = engine.tensor_from(&[0.0_f32, 2.0, 3.0, 0.0], &[2, 2])?.svd();
    /// let values_read = values.eval()?.to_vec::<f32>()?;
    /// assert!((values_read[0] - 3.0).abs() < 1e-6 && (values_read[1] - 2.0).abs() < 1e-6);
    /// let again = (u * values).matmul(vt).eval()?.to_vec::<f32>()?;
    /// assert!((again[1] - 2.0).abs() < 1e-6 && again[0].abs() < 1e-6);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn svd(&self) -> (Self, Self, Self) {
        let result = by_host(self, Factorisation::Svd(false), "svd").and_then(|found| {
            if let Some(found) = found {
                return parts(found).map(|[u, values, v]| (u, values, v));
            }
            let shape = matrices(self, "svd")?;
            if shape.contains(&0) {
                let [m, n] = sides(&shape);
                let k = m.min(n);
                return Ok((part(self, 0..m, 0..k), part(self, 0..k, 0..k).diagonal(0), part(self, 0..k, 0..n)));
            }
            svd(&self.settled())
        });
        match result {
            Ok(all) => all,
            Err(error) => (self.failed(&error), self.failed(&error), self.failed(&error)),
        }
    }
}

impl Expr {
    /// Returns [`Expr::svd`] with all vectors: U is (…, m, m), and the third (…, n, n). Computed on the host, for f32, f64, complex64 and complex128.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (u, values, v) = engine.tensor_from(&[3.0_f32, 4.0], &[2, 1])?.expr().svd_full();
    /// assert_eq!((u.shape()?, values.shape()?, v.shape()?), (&[2, 2][..], &[1][..], &[1, 1][..]));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn svd_full(&self) -> (Self, Self, Self) {
        let result = by_host(self, Factorisation::Svd(true), "svd").and_then(|found| match found {
            Some(found) => parts(found).map(|[u, values, v]| (u, values, v)),
            None => matrices(self, "svd").map(|_| (self.clone(), self.clone(), self.clone())),
        });
        match result {
            Ok(all) => all,
            Err(error) => (self.failed(&error), self.failed(&error), self.failed(&error)),
        }
    }
}

impl Tensor {
    /// See [`Expr::svd`].
    #[must_use]
    pub fn svd(&self) -> (Expr, Expr, Expr) {
        self.expr().svd()
    }
}
