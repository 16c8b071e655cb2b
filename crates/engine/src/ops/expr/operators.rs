//! The operators `+`, `-`, `*` and `/` between expressions, tensors and numbers, and `-x`.

use super::node::Expr;
use crate::engine::Tensor;
use crate::ops::elementwise::Binary;

/// An operand: an expression, a tensor, or a number, which takes the dtype of the other operand.
#[derive(Debug, Clone)]
pub struct Operand(Side);

#[derive(Debug, Clone)]
enum Side {
    Expr(Expr),
    Number(f64),
}

impl Operand {
    /// Returns the operand as an expression that fits beside another one.
    pub(in crate::ops) fn beside(self, other: &Expr) -> Expr {
        match self.0 {
            Side::Expr(expr) => expr,
            Side::Number(number) => other.constant(number),
        }
    }
}

macro_rules! operands {
    ($($expression:ty),*; $($number:ty),*) => {
        $(impl From<$expression> for Operand {
            fn from(expression: $expression) -> Self {
                Self(Side::Expr(expression.into()))
            }
        })*
        $(impl From<$number> for Operand {
            fn from(number: $number) -> Self {
                Self(Side::Number(f64::from(number)))
            }
        })*
    };
}
operands!(Expr, &Expr, Tensor, &Tensor; f32, f64, i32, u32);

macro_rules! operators {
    ($($operator:ident, $method:ident;)*) => {$(
        operators!(@left $operator, $method: Expr, &Expr, Tensor, &Tensor);
        // On the left only one type of floats and one of integers, so that a literal has a type: write f64::from(a) * x for others.
        operators!(@number $operator, $method, f64: Expr, &Expr, Tensor, &Tensor);
        operators!(@number $operator, $method, i32: Expr, &Expr, Tensor, &Tensor);
    )*};
    (@left $operator:ident, $method:ident: $($left:ty),*) => {$(
        impl<T: Into<Operand>> std::ops::$operator<T> for $left {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                Expr::from(self).binary(Binary::$operator, other)
            }
        }
    )*};
    (@number $operator:ident, $method:ident, $number:ty: $($right:ty),*) => {$(
        impl std::ops::$operator<$right> for $number {
            type Output = Expr;
            fn $method(self, other: $right) -> Expr {
                let other = Expr::from(other);
                // What commutes becomes one kernel either way round.
                match Binary::$operator {
                    op @ (Binary::Add | Binary::Mul) => other.binary(op, self),
                    op => other.constant(f64::from(self)).binary(op, other),
                }
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

macro_rules! negation {
    ($($of:ty),*) => {$(
        impl std::ops::Neg for $of {
            type Output = Expr;
            fn neg(self) -> Expr {
                self.negate()
            }
        }
    )*};
}
negation!(Expr, &Expr, Tensor, &Tensor);
