//! Expressions over tensors, computed in as few kernels as can be.

mod assemble;
mod conv;
mod create;
mod deferred;
mod emit;
mod evaluate;
mod matmul;
mod methods;
mod node;
mod operators;
mod reduce;
mod rows;
mod scan;
mod shape;
mod view;

pub use conv::Window;
pub use create::{arange, eye, full, linspace, rand, randn, random_bits};
#[doc(hidden)]
pub use evaluate::{composed, forget_composed};
pub use node::{Binary, Expr, Unary};
pub use operators::Operand;
