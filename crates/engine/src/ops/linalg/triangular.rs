//! Triangular systems.

use super::kernel::{MatrixKernel, unpacked};
use super::{BLOCK, matrices, middle, part, sides, square_floats, where_sound};
use crate::error::{Error, Result};
use crate::ops::expr::emit::word;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::expr::shape::{broadcast, product};

const FRAME: &str = cantus_shaders::tensor::TRIANGULAR_BLOCK;

/// The part of a matrix that counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Triangle {
    /// The upper one instead of the lower one.
    pub(super) upper: bool,
    /// True if the diagonal counts as 1.
    pub(super) unit: bool,
}

/// X with T X = B, of matrices of the same batch: by halves, whose products are matrix products.
pub(super) fn solved(t: &Expr, b: &Expr, triangle: Triangle) -> Result<Expr> {
    let (shape, right) = (t.shape()?, b.shape()?);
    let ([n, _], [_, columns]) = (sides(shape), sides(right));
    if n > BLOCK {
        let half = middle(n);
        let (above, below) = (part(b, 0..half, 0..columns), part(b, half..n, 0..columns));
        let (first, last) = (part(t, 0..half, 0..half), part(t, half..n, half..n));
        if triangle.upper {
            let end = solved(&last, &below, triangle)?;
            let rest = above - part(t, 0..half, half..n).matmul(&end);
            return Ok(solved(&first, &rest, triangle)?.concat(&[end], -2));
        }
        let start = solved(&first, &above, triangle)?;
        let rest = below - part(t, half..n, 0..half).matmul(&start);
        return Ok(start.concat(&[solved(&last, &rest, triangle)?], -2));
    }
    if product(right) == 0 {
        return Ok(b.clone());
    }
    let batches = product(&shape[..shape.len() - 2]);
    let inputs = vec![("matrix", t.state.clone()?), ("right", t.beside(b)?)];
    let Triangle { upper, unit } = triangle;
    let kernel = MatrixKernel {
        name: "triangular_block",
        frame: format!("const UPPER = {upper};\nconst UNIT = {unit};\n\n{FRAME}"),
        words: vec![word(n)?, word(columns)?, word(batches)?],
        inputs,
        workgroups: [product(&[batches, columns]).div_ceil(64), 1, 1],
    };
    word(product(right))?;
    Ok(unpacked(&kernel.deferred(t, n * columns), 0, [n, columns]))
}

/// Aligns two sides of a system of equations: the matrices and right sides in one batch, and whether the right side was one column each.
pub(super) fn aligned(a: &Expr, b: &Expr, what: &str) -> Result<(Expr, Expr, bool)> {
    let shape = square_floats(a, what)?;
    let right = b.shape()?.to_vec();
    let is_vector = right.len() == 1;
    let b = if is_vector { b.expand(-1) } else { b.clone() };
    matrices(&b, &format!("the right side of {what}"))?;
    let sides_of_b = b.shape()?.to_vec();
    let (rank, n) = (shape.len(), shape[shape.len() - 1]);
    if sides_of_b[sides_of_b.len() - 2] != n {
        return Err(Error::shape(
            format!("{what} of {shape:?} with the right side {right:?}"),
            format!("the right side must have {n} rows"),
        ));
    }
    a.beside(&b)?;
    let batch = broadcast(&shape[..rank - 2], &sides_of_b[..sides_of_b.len() - 2])?;
    let full = |matrix: &[usize]| [&batch[..], &matrix[matrix.len() - 2..]].concat();
    Ok((a.broadcast_to(&full(&shape)), b.broadcast_to(&full(&sides_of_b)), is_vector))
}

impl Expr {
    /// Returns X with T X = B for triangular float32 matrices T (…, n, n), upper ones if `upper`, else lower ones, and B of the shape (n) or
    /// (…, n, columns); batches broadcast. The other triangle is not read. If an element of the diagonal is 0, X is NaN.
    ///
    /// T X differs from B by at most about n 1e-7 |T| |X|.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let t = engine.tensor_from(&[2.0_f32, 0.0, 1.0, 4.0], &[2, 2])?;
    /// let x = t.solve_triangular(engine.tensor(&[2.0_f32, 9.0])?, false).eval()?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn solve_triangular(&self, b: impl Into<Self>, upper: bool) -> Self {
        let result = aligned(self, &b.into(), "solve_triangular").and_then(|(t, b, is_vector)| {
            let t = t.settled();
            let x = solved(&t, &b.settled(), Triangle { upper, unit: false })?;
            let x = where_sound(&x, &t.diagonal(0).not_equal(0.0).all(&[-1], false), 2);
            Ok(if is_vector { x.squeeze(-1) } else { x })
        });
        self.of(result)
    }
}

tensor_methods! {
    fn solve_triangular(b: impl Into<Expr>, upper: bool);
}
