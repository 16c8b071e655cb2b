//! The operations as methods of tensors: each records an expression, which `eval` computes.

use std::ops::Range;

use super::conv::Window;
use super::node::{Binary, Expr, Unary};
use super::operators::Operand;
use crate::engine::Tensor;
use crate::tensor::DType;

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $method:ident = $op:ident;)*) => {
        impl Expr {
            $($(#[$doc])* #[must_use] pub fn $method(&self, other: impl Into<Operand>) -> Self { self.binary(Binary::$op, other) })*
        }
        /// Elementwise operations with another tensor, expression or number; shapes broadcast.
        impl Tensor {
            $($(#[$doc])* #[must_use] pub fn $method(&self, other: impl Into<Operand>) -> Expr { self.expr().binary(Binary::$op, other) })*
        }
    };
}

binary_methods! {
    /// a^b
    pow = Pow;
    /// The lesser; NaN if either is.
    minimum = Min;
    /// The greater; NaN if either is.
    maximum = Max;
    /// 1 where they are equal, as u32.
    equal = Eq;
    /// 1 where they are not equal, as u32.
    not_equal = Ne;
    /// 1 where this is less, as u32.
    less = Lt;
    /// 1 where this is less or equal, as u32.
    less_equal = Le;
    /// 1 where this is greater, as u32.
    greater = Gt;
    /// 1 where this is greater or equal, as u32.
    greater_equal = Ge;
}

macro_rules! tensor_methods {
    ($(fn $method:ident($($name:ident: $kind:ty),*);)*) => {
        /// The operations of [`Expr`] on a tensor. They record; [`Expr::eval`] computes.
        impl Tensor {
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

tensor_methods! {
    fn negate();
    fn abs();
    fn sqrt();
    fn exp();
    fn log();
    fn sin();
    fn cos();
    fn tanh();
    fn relu();
    fn sigmoid();
    fn silu();
    fn gelu();
    fn gelu_tanh();
    fn erf();
    fn unary(op: Unary);
    fn binary(op: Binary, other: impl Into<Operand>);
    fn select(a: impl Into<Expr>, b: impl Into<Expr>);
    fn cast(dtype: DType);
    fn clamp(low: f64, high: f64);
    fn broadcast_to(shape: &[usize]);
    fn reshape(shape: &[usize]);
    fn permute(axes: &[isize]);
    fn transpose();
    fn slice(ranges: &[Range<usize>]);
    fn slice_steps(ranges: &[Range<usize>], steps: &[usize]);
    fn expand(axis: isize);
    fn squeeze(axis: isize);
    fn concat(others: &[Expr], axis: isize);
    fn pad(widths: &[(usize, usize)], value: f64);
    fn take(index: impl Into<Expr>, axis: isize);
    fn gather(index: impl Into<Expr>, axis: isize);
    fn sum(axes: &[isize], keep: bool);
    fn prod(axes: &[isize], keep: bool);
    fn max(axes: &[isize], keep: bool);
    fn min(axes: &[isize], keep: bool);
    fn argmax(axis: Option<isize>, keep: bool);
    fn argmin(axis: Option<isize>, keep: bool);
    fn mean(axes: &[isize], keep: bool);
    fn variance(axes: &[isize], correction: f64, keep: bool);
    fn cumsum(axis: isize);
    fn cumsum_exclusive(axis: isize);
    fn softmax(axis: isize);
    fn log_softmax(axis: isize);
    fn rms_norm(gain: impl Into<Expr>, eps: f32);
    fn layer_norm(gain: impl Into<Expr>, bias: impl Into<Expr>, eps: f32);
    fn matmul(other: impl Into<Expr>);
    fn fused_linear(weight: impl Into<Expr>, bias: Option<&Expr>, activation: Option<Unary>);
    fn conv2d(weight: impl Into<Expr>, window: Window, groups: usize);
    fn max_pool2d(kernel: [usize; 2], window: Window);
    fn avg_pool2d(kernel: [usize; 2], window: Window, count_padding: bool);
}

impl Tensor {
    /// The tensor as the beginning of an expression.
    #[must_use]
    pub fn expr(&self) -> Expr {
        Expr::from(self)
    }
}
