//! Normalisation by the root of the mean square.

use super::rows::Rows;
use crate::ops::elementwise::Binary;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::frame::Frame;

const RMS_NORM: Frame<1> = Frame::new(cantus_shaders::tensor::RMS_NORM, ["LANES"]);
const RMS_NORM_HELD: Frame<1> = Frame::new(cantus_shaders::tensor::RMS_NORM_HELD, ["LANES"]);

impl Expr {
    /// Returns x / sqrt(mean of x² + `eps`) along the last axis, times `gain` (Zhang and Sennrich, 2019). A usual `eps` is 1e-6.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[3.0_f32, 3.0, -3.0, 3.0])?;
    /// let y = x.rms_norm(engine.tensor(&[1.0_f32, 2.0, 1.0, 1.0])?, 0.0).eval()?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, -1.0, 1.0]);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn rms_norm(&self, gain: impl Into<Self>, eps: f32) -> Self {
        let frame = |lanes: Option<&str>| RMS_NORM.filled([lanes]);
        let held = |lanes: Option<&str>| RMS_NORM_HELD.filled([lanes]);
        self.rows(&Rows { name: "rms_norm", frame, held, is_logarithm: false, eps }, -1)
            .binary(Binary::Mul, gain.into())
    }
}

tensor_methods! {
    fn rms_norm(gain: impl Into<Expr>, eps: f32);
}
