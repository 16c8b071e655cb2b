//! The exponential of matrices.

use std::sync::Arc;

use super::lu::solution;
use super::square_floats;
use crate::backend::BoxFuture;
use crate::engine::Tensor;
use crate::error::Result;
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::{Expr, Typed};
use crate::ops::expr::operation::{Call, Operation};
use crate::ops::tensor::eye;
use crate::tensor::DType;

/// Padé's approximant of degree 7, whose error for matrices up to this norm is less than a rounding of float32 (Higham, "The scaling and squaring
/// method for the matrix exponential revisited", 2005).
const WIDEST: f64 = 3.925_724_783_138_66;
const COEFFICIENTS: [f64; 8] = [17_297_280.0, 8_648_640.0, 1_995_840.0, 277_200.0, 25_200.0, 1_512.0, 56.0, 1.0];
/// e^(2^9) is far out of range, and so is anything squared more often, except matrices whose exponential is small beside their norm.
const SQUARINGS: i32 = 24;

struct Exponential(Arc<Typed>);

impl Operation for Exponential {
    fn inputs(&self) -> Vec<&Arc<Typed>> {
        vec![&self.0]
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Tensor>> {
        Box::pin(async move {
            let a = Expr { engine: call.engine.clone(), state: Ok(self.0.clone()) }.settled();
            let norms = a.abs().sum(&[-2], false).max(&[-1], true).settled();
            let greatest = norms.max(&[], false).eval_async().await?.to_vec_async::<f32>().await?;
            let greatest = f64::from(greatest.first().copied().unwrap_or(0.0));
            // The same number of squarings for all matrices; NaN stays NaN.
            let times = (greatest / WIDEST).log2().ceil();
            let times = if times.is_finite() { (times as i32).clamp(0, SQUARINGS) } else { 0 };
            let a = (a * 2.0_f64.powi(-times)).settled();
            let n = self.0.shape[self.0.shape.len() - 1];
            let identity = eye(&a.engine, n, n, 0, DType::F32);
            let a2 = a.matmul(&a).settled();
            let a4 = a2.matmul(&a2).settled();
            let a6 = a4.matmul(&a2).settled();
            let series = |from: usize| {
                let [c0, c2, c4, c6] = [0, 2, 4, 6].map(|place| COEFFICIENTS[from + place]);
                (&a6 * c6) + (&a4 * c4) + (&a2 * c2) + &identity * c0
            };
            let odd = a.matmul(series(1)).settled();
            let even = series(0).settled();
            let mut power = solution(&(&even - &odd), &even.binary(Binary::Add, &odd).settled())?;
            for _ in 0..times {
                let settled = power.settled();
                power = settled.matmul(&settled);
            }
            let result = power.eval_async().await?;
            call.followed(result).await
        })
    }
}

impl Expr {
    /// Returns the exponential of square float32 matrices (…, n, n), 1 + A + A² / 2 + …, by scaling, Padé's approximant of degree 7 and squaring.
    ///
    /// The greatest norm of the matrices is read from the device, so this waits for all earlier work. The error is about n 1e-6 times the exponential
    /// of |A|.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[0.0_f32, 3.0, 0.0, 0.0], &[2, 2])?.expm().eval()?.to_vec::<f32>()?;
    /// assert!([1.0, 3.0, 0.0, 1.0].iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-5));
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    #[doc(alias = "matrix_exp")]
    pub fn expm(&self) -> Self {
        let result = square_floats(self, "expm").map(|shape| {
            if shape.contains(&0) {
                return self.clone();
            }
            self.derived(|typed| Ok(Typed::deferred(Exponential(typed.clone()), shape.clone(), DType::F32)))
        });
        self.of(result)
    }
}

tensor_methods! {
    fn expm();
}
