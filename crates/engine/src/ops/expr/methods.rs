//! The methods of expressions, once more on tensors.

use super::node::Expr;
use super::operators::Operand;
use crate::engine::Tensor;
use crate::tensor::DType;

/// Methods of [`Tensor`] that record what the methods of [`Expr`] of the same name do.
macro_rules! tensor_methods {
    ($(fn $method:ident($($name:ident: $kind:ty),*);)*) => {
        impl crate::engine::Tensor {
            $(
                #[doc = concat!("See [`Expr::", stringify!($method), "`].")]
                #[must_use]
                pub fn $method(&self, $($name: $kind),*) -> Expr {
                    self.expr().$method($($name),*)
                }
            )*
        }
    };
}
pub(in crate::ops) use tensor_methods;

tensor_methods! {
    fn select(a: impl Into<Expr>, b: impl Into<Expr>);
    fn lerp(end: impl Into<Operand>, weight: impl Into<Operand>);
    fn cast(dtype: DType);
    fn clamp(low: f64, high: f64);
}

impl Tensor {
    /// See [`Expr::where`].
    #[must_use]
    pub fn r#where(&self, condition: impl Into<Expr>, other: impl Into<Operand>) -> Expr {
        self.expr().r#where(condition, other)
    }

    /// Returns an expression that reads the tensor.
    ///
    /// ```
    /// # let engine = cantus::Engine::builder().backend("cpu").build()?;
    /// let x = engine.tensor(&[2.0_f32])?;
    /// let (mut power, one) = (x.expr(), x.expr());
    /// for _ in 0..9 {
    ///     power = power * &one;
    /// }
    /// assert_eq!(power.eval()?.item::<f32>()?, 1024.0); // one kernel
    /// # Ok::<_, cantus::Error>(())
    /// ```
    #[must_use]
    pub fn expr(&self) -> Expr {
        Expr::from(self)
    }
}
