//! Normalisation by mean and deviation.

use super::rows::Rows;
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::frame::Frame;

const LAYER_NORM: Frame<1> = Frame::new(cantus_shaders::tensor::LAYER_NORM, ["LANES"]);
const LAYER_NORM_HELD: Frame<1> = Frame::new(cantus_shaders::tensor::LAYER_NORM_HELD, ["LANES"]);

impl Expr {
    /// Returns (x - mean) / sqrt(variance + eps) along the last axis, times `gain`, plus `bias` (Ba, Kiros and Hinton, 2016).
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor_from(&[1.0_f32, 3.0, 10.0, 30.0], &[2, 2])?;
    /// let y = x.layer_norm(engine.tensor(&[2.0_f32, 2.0])?, engine.tensor(&[1.0_f32, 1.0])?, 0.0).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 3.0, -1.0, 3.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn layer_norm(&self, gain: impl Into<Self>, bias: impl Into<Self>, eps: f32) -> Self {
        self.normalised(eps).binary(Binary::Mul, gain.into()).binary(Binary::Add, bias.into())
    }

    /// (x - mean) / sqrt(variance + eps) along the last axis.
    pub(super) fn normalised(&self, eps: f32) -> Self {
        let frame = |lanes: Option<&str>| LAYER_NORM.filled([lanes]);
        let held = |lanes: Option<&str>| LAYER_NORM_HELD.filled([lanes]);
        self.rows(&Rows { name: "layer_norm", frame, held, is_logarithm: false, eps }, -1)
    }
}

tensor_methods! {
    fn layer_norm(gain: impl Into<Expr>, bias: impl Into<Expr>, eps: f32);
}
