//! The operators `+`, `-`, `*` and `/` between expressions, tensors and numbers, and `-x`.

use super::node::Expr;
use crate::engine::Tensor;
use crate::ops::elementwise::Binary;

macro_rules! operators {
    ($($operator:ident, $method:ident;)*) => {$(
        impl<T: Into<Expr>> std::ops::$operator<T> for &Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                self.binary(Binary::$operator, other)
            }
        }
        impl<T: Into<Expr>> std::ops::$operator<T> for Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                self.binary(Binary::$operator, other)
            }
        }
        impl<T: Into<Expr>> std::ops::$operator<T> for &Tensor {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                self.expr().binary(Binary::$operator, other)
            }
        }
        // A number beside a tensor or an expression takes its dtype.
        impl std::ops::$operator<f64> for &Tensor {
            type Output = Expr;
            fn $method(self, other: f64) -> Expr {
                std::ops::$operator::$method(self.expr(), other)
            }
        }
        impl std::ops::$operator<f64> for Expr {
            type Output = Expr;
            fn $method(self, other: f64) -> Expr {
                std::ops::$operator::$method(&self, other)
            }
        }
        impl std::ops::$operator<f64> for &Expr {
            type Output = Expr;
            fn $method(self, other: f64) -> Expr {
                self.binary(Binary::$operator, self.constant(other))
            }
        }
    )*};
}

operators! {
    Add, add;
    Sub, sub;
    Mul, mul;
    Div, div;
}

impl std::ops::Neg for &Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.negate()
    }
}

impl std::ops::Neg for &Tensor {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.negate()
    }
}

impl std::ops::Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.negate()
    }
}
