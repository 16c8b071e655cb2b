//! Elimination with pivots: factors, solutions, inverses and determinants. It halves the columns down to 32, which one workgroup eliminates (`kernel`);
//! between halves are matrix products, and these take most of the time. Row orders are tensors, applied by gathers, so nothing is read back. float64 and
//! complex matrices go to the host.

use super::kernel::{MatrixKernel, lanes_for, unpacked};
use super::triangular::{Triangle, aligned, solved};
use super::{
    BLOCK, by_host, is_for_host, matrices, middle, part, parts, shape_of_matrices, sides, square, square_floats,
    where_sound,
};
use crate::engine::Tensor;
use crate::error::{Error, Result};
use crate::ops::elementwise::Binary;
use crate::ops::expr::emit::word;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::expr::shape::{broadcast, product};
use crate::ops::expr::view::broadcast_to;
use crate::ops::frame::Frame;
use crate::ops::host::{Factorisation, factorised};
use crate::ops::tensor::eye;
use crate::tensor::DType;
use cantus_base::listed::Listed;

const FRAME: Frame<1> = Frame::new(cantus_shaders::tensor::LU_PANEL, ["LANES"]);

/// L and U in one, the row that came to each place, and the sign of that order.
struct Factors {
    packed: Expr,
    order: Expr,
    sign: Expr,
}

/// The rows in another order.
fn ordered(a: &Expr, order: &Expr) -> Expr {
    a.gathered(&order.expand(-1), -2)
}

/// The factors of matrices of any sides.
fn factored(a: &Expr) -> Result<Factors> {
    let shape = a.shape()?.to_vec();
    let ([m, n], batch) = (sides(&shape), &shape[..shape.len() - 2]);
    if n <= BLOCK {
        let kernel = MatrixKernel {
            name: "lu_panel",
            frame: lanes_for(&FRAME, m * n),
            words: vec![word(m)?, word(n)?],
            inputs: vec![("element", a.state.clone()?)],
            workgroups: [product(batch), 1, 1],
        };
        word(product(&[product(batch), m * n + m + 1]))?;
        let packed = kernel.deferred(a, m * n + m + 1);
        return Ok(Factors {
            order: unpacked(&packed, m * n, [m, 1]).squeeze(-1).cast(DType::U32),
            sign: unpacked(&packed, m * n + m, [1, 1]).squeeze(-1).squeeze(-1),
            packed: unpacked(&packed, 0, [m, n]),
        });
    }
    // Columns of the left half, and rows that it settles.
    let half = middle(m.min(n)).min(n - 1);
    let done = half.min(m);
    let left = factored(&part(a, 0..m, 0..half))?;
    let right = ordered(&part(a, 0..m, half..n), &left.order).settled();
    let top = solved(
        &part(&left.packed, 0..done, 0..done),
        &part(&right, 0..done, 0..n - half),
        Triangle { upper: false, unit: true },
    )?;
    let start = part(&left.packed, 0..done, 0..half);
    if done == m {
        return Ok(Factors { packed: start.concat(&[top], -1), ..left });
    }
    let side = part(&left.packed, done..m, 0..half);
    let rest = part(&right, done..m, 0..n - half) - side.matmul(&top);
    let last = factored(&rest.settled())?;
    let bottom = ordered(&side, &last.order).concat(&[last.packed], -1);
    let mut ranges: Vec<_> = batch.iter().map(|&side| 0..side).listed();
    ranges.push(0..done);
    let first = left.order.slice(&ranges);
    ranges.pop();
    ranges.push(done..m);
    let second = left.order.slice(&ranges).gathered(&last.order, -1);
    Ok(Factors {
        packed: start.concat(&[top], -1).concat(&[bottom], -2),
        order: first.concat(&[second], -1),
        sign: left.sign.binary(Binary::Mul, last.sign),
    })
}

/// Returns whether every pivot is neither 0 nor NaN, as u32.
fn regular(factors: &Factors) -> Expr {
    factors.packed.diagonal(0).abs().greater(0.0).all(&[-1], false)
}

/// X with A X = B, of matrices of the same batch; NaN where A is singular.
pub(super) fn solution(a: &Expr, b: &Expr) -> Result<Expr> {
    let factors = factored(&a.settled())?;
    let packed = factors.packed.settled();
    let right = ordered(b, &factors.order).settled();
    let middle = solved(&packed, &right, Triangle { upper: false, unit: true })?.settled();
    let x = solved(&packed, &middle, Triangle { upper: true, unit: false })?;
    Ok(where_sound(&x, &regular(&factors), 2))
}

/// A X = B for float64 and complex matrices.
fn solved_by_host(a: &Expr, b: &Expr) -> Result<Expr> {
    let shape = square(a, "solve")?;
    let right = b.shape()?.to_vec();
    let is_vector = right.len() == 1;
    let b = if is_vector { b.expand(-1) } else { b.clone() };
    let sides_of_b = shape_of_matrices(&b, "the right side of solve")?;
    let (rank, n) = (shape.len(), shape[shape.len() - 1]);
    if sides_of_b[sides_of_b.len() - 2] != n {
        return Err(Error::shape(
            format!("solve of {shape:?} with the right side {right:?}"),
            format!("the right side must have {n} rows"),
        ));
    }
    let (left, right) = a.promoted(&a.state.clone()?, &a.beside(&b)?, "solve")?;
    let batch = broadcast(&shape[..rank - 2], &sides_of_b[..sides_of_b.len() - 2])?;
    let full = |matrix: &[usize]| [&batch[..], &matrix[matrix.len() - 2..]].concat();
    let (left, right) = (broadcast_to(&left, &full(&shape)), broadcast_to(&right, &full(&sides_of_b)));
    let found = factorised(Factorisation::Solve, &left, Some(&right));
    let [x] = parts(found.into_iter().map(|part| a.derived(|_| Ok(part))).listed())?;
    Ok(if is_vector { x.squeeze(-1) } else { x })
}

/// The inverse of float64 and complex matrices.
fn inverted_by_host(a: &Expr) -> Result<Expr> {
    let found = by_host(a, Factorisation::Solve, "inverse")?.unwrap_or_default();
    parts(found).map(|[inverse]| inverse)
}

impl Expr {
    /// Returns X with A X = B for float32 matrices A (…, n, n) and B of the shape (n) or (…, n, columns); batches broadcast. It eliminates with row
    /// pivots. If a matrix is singular, so that elimination ends with a pivot of 0, X is NaN. If rounding hides that, X has large numbers.
    ///
    /// A X differs from B by at most about n 1e-7 |A| |X|, unless elements grow during elimination, which is rare.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = engine.tensor_from(&[0.0_f32, 2.0, 1.0, 1.0], &[2, 2])?;
    /// assert_eq!(a.solve(engine.tensor(&[4.0_f32, 3.0])?).eval()?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn solve(&self, b: impl Into<Self>) -> Self {
        let b = b.into();
        if self.dtype().is_ok_and(|dtype| is_for_host(self, dtype)) {
            return self.of(solved_by_host(self, &b));
        }
        let result = aligned(self, &b, "solve").and_then(|(a, b, is_vector)| {
            if product(a.shape()?) == 0 || product(b.shape()?) == 0 {
                return Ok(if is_vector { b.squeeze(-1) } else { b });
            }
            let x = solution(&a, &b.settled())?;
            Ok(if is_vector { x.squeeze(-1) } else { x })
        });
        self.of(result)
    }

    /// Returns the inverse of float32 matrices (…, n, n); NaN if a matrix is singular. If you only multiply by the inverse, [`Expr::solve`] is
    /// faster and more accurate.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = engine.tensor_from(&[2.0_f32, 0.0, 0.0, 4.0], &[2, 2])?;
    /// assert_eq!(a.inverse().eval()?.to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.25]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "inv")]
    pub fn inverse(&self) -> Self {
        if self.dtype().is_ok_and(|dtype| is_for_host(self, dtype)) {
            return self.of(inverted_by_host(self));
        }
        let result = square_floats(self, "inverse").and_then(|shape| {
            if shape.contains(&0) {
                return Ok(self.clone());
            }
            let n = shape[shape.len() - 1];
            let identity = eye(&self.engine, n, n, 0, DType::F32).broadcast_to(&shape);
            solution(self, &identity)
        });
        self.of(result)
    }

    /// Returns the determinants of float32 matrices (…, n, n): the product of the pivots of elimination, 0 if one is 0. Outside the range of
    /// float32 it is infinite or 0; [`Expr::slogdet`] has no such limit.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert!((a.det().eval()?.item::<f32>()? + 2.0).abs() < 1e-6);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn det(&self) -> Self {
        match by_host(self, Factorisation::Det, "det") {
            Ok(Some(found)) => return self.of(parts(found).map(|[det]| det)),
            Ok(None) => {}
            Err(error) => return self.failed(&error),
        }
        let result = square_floats(self, "det").and_then(|shape| {
            if shape.contains(&0) {
                return Ok(self.prod(&[-2, -1], false));
            }
            let factors = factored(&self.settled())?;
            Ok(factors.packed.diagonal(0).prod(&[-1], false).binary(Binary::Mul, factors.sign))
        });
        self.of(result)
    }

    /// Returns the signs of the determinants of float32 matrices (…, n, n), -1, 0 or 1, and the natural logarithms of their magnitudes; that of 0 is
    /// -infinity.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = cantus::ops::eye(&engine, 3, 3, 0, cantus::DType::F32) * -1e30;
    /// let (sign, logarithm) = a.slogdet();
    /// assert_eq!(sign.eval()?.item::<f32>()?, -1.0);
    /// assert!((logarithm.eval()?.item::<f32>()? - 90.0 * 10.0_f32.ln()).abs() < 1e-3);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn slogdet(&self) -> (Self, Self) {
        let result = by_host(self, Factorisation::SlogDet, "slogdet").and_then(|found| {
            if let Some(found) = found {
                return parts(found).map(|[sign, logarithm]| (sign, logarithm));
            }
            let shape = square_floats(self, "slogdet")?;
            let (pivots, sign) = if shape.contains(&0) {
                let ones = self.prod(&[-2, -1], false);
                (ones.expand(-1), ones)
            } else {
                let factors = factored(&self.settled())?;
                (factors.packed.diagonal(0), factors.sign)
            };
            let signs = pivots.sign().prod(&[-1], false).binary(Binary::Mul, sign).settled();
            let logarithms = pivots.abs().log().sum(&[-1], false);
            let nothing = signs.constant(f64::NEG_INFINITY);
            Ok((signs.clone(), signs.equal(0.0).select(nothing, logarithms)))
        });
        match result {
            Ok(both) => both,
            Err(error) => (self.failed(&error), self.failed(&error)),
        }
    }

    /// Returns the LU decomposition of float32 matrices (…, m, n) with row pivots: one matrix with L below the diagonal, whose own is 1, and U on and
    /// above it; and the original index of each row, as u32 (…, m), so that A in that order is L U.
    ///
    /// L U differs from these rows by at most about n 1e-7 |L| |U|.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let (factors, order) = engine.tensor_from(&[1.0_f32, 2.0, 4.0, 4.0], &[2, 2])?.lu();
    /// assert_eq!(factors.eval()?.to_vec::<f32>()?, [4.0, 4.0, 0.25, 1.0]);
    /// assert_eq!(order.eval()?.to_vec::<u32>()?, [1, 0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "lu_factor")]
    pub fn lu(&self) -> (Self, Self) {
        let result = matrices(self, "lu").and_then(|shape| {
            if shape.contains(&0) {
                let rows = crate::ops::tensor::places_along(&self.engine, &shape[..shape.len() - 1], shape.len() - 2);
                return Ok((self.clone(), rows));
            }
            let factors = factored(&self.settled())?;
            Ok((factors.packed, factors.order))
        });
        match result {
            Ok(both) => both,
            Err(error) => (self.failed(&error), self.failed(&error)),
        }
    }
}

tensor_methods! {
    fn solve(b: impl Into<Expr>);
    fn inverse();
    fn det();
}

impl Tensor {
    /// See [`Expr::slogdet`].
    #[must_use]
    pub fn slogdet(&self) -> (Expr, Expr) {
        self.expr().slogdet()
    }

    /// See [`Expr::lu`].
    #[must_use]
    pub fn lu(&self) -> (Expr, Expr) {
        self.expr().lu()
    }
}
