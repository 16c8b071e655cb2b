//! Softmax and its logarithm.

use super::rows::Rows;
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;
use crate::ops::frame::Frame;

const SOFTMAX: Frame<2> = Frame::new(cantus_shaders::tensor::SOFTMAX, ["LANES", "LOGARITHM"]);
const SOFTMAX_HELD: Frame<2> = Frame::new(cantus_shaders::tensor::SOFTMAX_HELD, ["LANES", "LOGARITHM"]);

impl Expr {
    /// Returns e^x divided by the sum of e^x along an axis.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[0.0_f32, 3.0_f32.ln()])?;
    /// let y = x.softmax(0).eval()?.to_vec::<f32>()?;
    /// assert!((y[0] - 0.25).abs() < 1e-6 && (y[1] - 0.75).abs() < 1e-6);
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn softmax(&self, axis: isize) -> Self {
        let frame = |lanes: Option<&str>| SOFTMAX.filled([lanes, None]);
        let held = |lanes: Option<&str>| SOFTMAX_HELD.filled([lanes, None]);
        self.rows(&Rows { name: "softmax", frame, held, is_logarithm: false, eps: 0.0 }, axis)
    }

    /// Returns the logarithm of [`Expr::softmax`], more accurately than by taking it afterwards.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[0.0_f32, 200.0])?;
    /// assert_eq!(x.log_softmax(0).eval()?.to_vec::<f32>()?, [-200.0, 0.0]); // where softmax has rounded to 0
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn log_softmax(&self, axis: isize) -> Self {
        let frame = |lanes: Option<&str>| SOFTMAX.filled([lanes, Some("true")]);
        let held = |lanes: Option<&str>| SOFTMAX_HELD.filled([lanes, Some("true")]);
        self.rows(&Rows { name: "softmax", frame, held, is_logarithm: true, eps: 0.0 }, axis)
    }
}

tensor_methods! {
    fn softmax(axis: isize);
    fn log_softmax(axis: isize);
}
