//! Householder's factorisation, in blocks: the product of some reflections is 1 - V T Vᵀ.

use super::kernel::{MatrixKernel, lanes_for, unpacked};
use super::{BLOCK, by_host, magnitude, matrices, middle, part, parts, sides};
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::elementwise::Binary;
use crate::ops::expr::emit::word;
use crate::ops::expr::node::Expr;
use crate::ops::expr::shape::product;
use crate::ops::frame::Frame;
use crate::ops::host::Factorisation;
use crate::ops::tensor::eye;
use crate::tensor::DType;

const FRAME: Frame<1> = Frame::new(cantus_shaders::tensor::QR_PANEL, ["LANES"]);

/// The vectors of the reflections, what joins them, and R.
struct Reflections {
    v: Expr,
    t: Expr,
    r: Expr,
}

/// Applies the reflections to C, in the order in which they were made.
fn reflected(of: &Reflections, c: &Expr) -> Expr {
    c - of.v.matmul(of.t.transpose().matmul(of.v.transpose().matmul(c)))
}

/// Factors matrices with at least as many rows as columns.
fn factored(a: &Expr) -> Result<Reflections> {
    let shape = a.shape()?.to_vec();
    let ([m, n], batch) = (sides(&shape), &shape[..shape.len() - 2]);
    if n <= BLOCK {
        let kernel = MatrixKernel {
            name: "qr_panel",
            frame: lanes_for(&FRAME, m * n),
            words: vec![word(m)?, word(n)?],
            inputs: vec![("element", a.state.clone()?)],
            workgroups: [product(batch), 1, 1],
        };
        word(product(&[product(batch), m * n + n * n]))?;
        let packed = kernel.deferred(a, m * n + n * n);
        let both = unpacked(&packed, 0, [m, n]);
        return Ok(Reflections {
            v: (both.tril(-1) + eye(&a.engine, m, n, 0, DType::F32)).settled(),
            t: unpacked(&packed, m * n, [n, n]),
            r: part(&both, 0..n, 0..n).triu(0).settled(),
        });
    }
    let half = middle(n).min(n - 1);
    let left = factored(&part(a, 0..m, 0..half))?;
    let right = reflected(&left, &part(a, 0..m, half..n)).settled();
    let last = factored(&part(&right, half..m, 0..n - half))?;
    let zeros = |rows: usize, columns: usize| a.constant(0.0).broadcast_to(&[batch, &[rows, columns]].concat());
    let low = zeros(half, n - half).concat(&[last.v], -2).settled();
    // T of both: the block beside T1 and T2 is -T1 V1ᵀ V2 T2.
    let between = -left.t.matmul(left.v.transpose().matmul(&low).matmul(&last.t));
    let t = left.t.concat(&[between], -1).concat(&[zeros(n - half, half).concat(&[last.t], -1)], -2);
    let top = left.r.concat(&[part(&right, 0..half, 0..n - half)], -1);
    let r = top.concat(&[zeros(n - half, half).concat(&[last.r], -1)], -2);
    Ok(Reflections { v: left.v.concat(&[low], -1), t, r })
}

/// Q and R of matrices that are not empty.
pub(super) fn qr(a: &Expr) -> Result<(Expr, Expr)> {
    let shape = a.shape()?.to_vec();
    let [m, n] = sides(&shape);
    let (up, down) = magnitude(a);
    let a = a.binary(Binary::Mul, down).settled();
    let wide = m.min(n);
    let found = factored(&part(&a, 0..m, 0..wide))?;
    let mut r = found.r.clone();
    if n > m {
        r = r.concat(&[reflected(&found, &part(&a, 0..m, wide..n))], -1);
    }
    let top = part(&found.v, 0..wide, 0..wide).transpose();
    let q = eye(&a.engine, m, wide, 0, DType::F32) - found.v.matmul(found.t.matmul(top));
    Ok((q, r.binary(Binary::Mul, up)))
}

impl Expr {
    /// Returns the Q and R of A = Q R for float32 matrices (…, m, n). With k = min(m, n), Q is (…, m, k) and has orthonormal columns; R is (…, k, n)
    /// and upper triangular. Elements of R's diagonal may be negative.
    ///
    /// Q R differs from A by at most about n 1e-7 |A|, and Qᵀ Q from the identity by about n 1e-7.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (q, r) = engine.tensor_from(&[3.0_f32, 4.0], &[2, 1])?.qr();
    /// assert_eq!(r.eval()?.to_vec::<f32>()?, [-5.0]);
    /// assert!((q.eval()?.to_vec::<f32>()?[0] + 0.6).abs() < 1e-6);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn qr(&self) -> (Self, Self) {
        let result = by_host(self, Factorisation::Qr(false), "qr").and_then(|found| {
            if let Some(found) = found {
                return parts(found).map(|[q, r]| (q, r));
            }
            let shape = matrices(self, "qr")?;
            if shape.contains(&0) {
                let [m, n] = sides(&shape);
                // Without a column there is nothing to span.
                return Ok((part(self, 0..m, 0..m.min(n)), part(self, 0..m.min(n), 0..n)));
            }
            qr(&self.settled())
        });
        match result {
            Ok(both) => both,
            Err(error) => (self.failed(&error), self.failed(&error)),
        }
    }
}

impl Expr {
    /// Returns [`Expr::qr`] with all m columns of Q, (…, m, m), and m rows of R, (…, m, n). Computed on the host, for f32, f64, complex64 and
    /// complex128.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (q, r) = engine.tensor_from(&[3.0_f32, 4.0], &[2, 1])?.expr().qr_complete();
    /// assert_eq!((q.shape()?, r.shape()?), (&[2, 2][..], &[2, 1][..]));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn qr_complete(&self) -> (Self, Self) {
        let result = by_host(self, Factorisation::Qr(true), "qr").and_then(|found| match found {
            Some(found) => parts(found).map(|[q, r]| (q, r)),
            None => matrices(self, "qr").map(|_| (self.clone(), self.clone())),
        });
        match result {
            Ok(both) => both,
            Err(error) => (self.failed(&error), self.failed(&error)),
        }
    }
}

impl Tensor {
    /// See [`Expr::qr`].
    #[must_use]
    pub fn qr(&self) -> (Expr, Expr) {
        self.expr().qr()
    }
}
