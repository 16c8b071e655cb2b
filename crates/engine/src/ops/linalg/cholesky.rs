//! Cholesky's factorisation.

use super::kernel::{MatrixKernel, unpacked};
use super::triangular::{Triangle, solved};
use super::{BLOCK, by_host, middle, part, parts, sides, square_floats, where_sound};
use crate::error::Result;
use crate::ops::elementwise::Binary;
use crate::ops::expr::emit::word;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::expr::shape::product;
use crate::ops::host::Factorisation;

const FRAME: &str = cantus_shaders::tensor::CHOLESKY_BLOCK;

/// The factors, and for each matrix whether it is positive definite, as u32.
fn factored(a: &Expr) -> Result<(Expr, Expr)> {
    let shape = a.shape()?;
    let [n, _] = sides(shape);
    if n > BLOCK {
        let half = middle(n);
        let (first, first_sound) = factored(&part(a, 0..half, 0..half))?;
        let below = part(a, half..n, 0..half);
        let side = solved(&first, &below.transpose().settled(), Triangle::default())?.transpose().settled();
        let rest = part(a, half..n, half..n) - side.matmul(side.transpose());
        let (last, last_sound) = factored(&rest.settled())?;
        let zeros = [&shape[..shape.len() - 2], &[half, n - half]].concat();
        let top = first.concat(&[a.constant(0.0).broadcast_to(&zeros)], -1);
        let factor = top.concat(&[side.concat(&[last], -1)], -2);
        return Ok((factor, first_sound.binary(Binary::BitwiseAnd, last_sound)));
    }
    let kernel = MatrixKernel {
        name: "cholesky_block",
        frame: FRAME.to_owned(),
        words: vec![word(n)?],
        inputs: vec![("element", a.state.clone()?)],
        workgroups: [product(&shape[..shape.len() - 2]), 1, 1],
    };
    let packed = kernel.deferred(a, n * n + 1);
    let sound = unpacked(&packed, n * n, [1, 1]).not_equal(0.0).squeeze(-1).squeeze(-1);
    Ok((unpacked(&packed, 0, [n, n]), sound))
}

impl Expr {
    /// Returns the lower triangular L with A = L Lᵀ for symmetric positive definite float32 matrices (…, n, n), of which it reads the lower triangle.
    /// If a matrix is not positive definite, its L is NaN.
    ///
    /// L Lᵀ differs from A by at most about n 1e-7 |A|.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let a = engine.tensor_from(&[4.0_f32, 2.0, 2.0, 10.0], &[2, 2])?;
    /// assert_eq!(a.cholesky().eval()?.to_vec::<f32>()?, [2.0, 0.0, 1.0, 3.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn cholesky(&self) -> Self {
        let result = by_host(self, Factorisation::Cholesky, "cholesky").and_then(|found| {
            if let Some(found) = found {
                return parts(found).map(|[factor]| factor);
            }
            let shape = square_floats(self, "cholesky")?;
            if shape.contains(&0) {
                return Ok(self.clone());
            }
            let (factor, sound) = factored(&self.settled())?;
            Ok(where_sound(&factor, &sound, 2))
        });
        self.of(result)
    }
}

tensor_methods! {
    fn cholesky();
}
