//! Softmax and its logarithm.

use super::rows::{Rows, enabled};
use crate::ops::expr::methods::tensor_methods;
use crate::ops::expr::node::Expr;

const SOFTMAX: &str = include_str!("../../../shaders/tensor/softmax.wgsl");

impl Expr {
    /// e^x over the sum of e^x along an axis.
    #[must_use]
    pub fn softmax(&self, axis: isize) -> Self {
        self.rows(&Rows { name: "softmax", frame: SOFTMAX.to_owned(), eps: 0.0 }, axis)
    }

    /// The logarithm of [`Expr::softmax`], without the loss of taking it afterwards.
    #[must_use]
    pub fn log_softmax(&self, axis: isize) -> Self {
        self.rows(&Rows { name: "softmax", frame: enabled(SOFTMAX, "LOGARITHM"), eps: 0.0 }, axis)
    }
}

tensor_methods! {
    fn softmax(axis: isize);
    fn log_softmax(axis: isize);
}
