//! Expressions over tensors, computed in as few kernels as can be: what is recorded, how it becomes WGSL, when it is computed.

pub(super) mod again;
pub(super) mod chain;
mod common;
pub(super) mod deferred;
#[cfg(feature = "graph")]
mod described;
pub(super) mod emit;
pub(super) mod evaluate;
mod library;
pub(super) mod methods;
pub(super) mod node;
pub(super) mod number;
pub(super) mod operation;
mod operators;
pub(super) mod plan;
mod roll;
pub(super) mod shape;
pub(super) mod view;

#[cfg(feature = "_test")]
pub use again::evaluate_twice;
#[cfg(feature = "_test")]
pub use evaluate::{composed, forget_composed};
pub use node::Expr;
pub use operation::taken_over;
pub use operators::Operand;
