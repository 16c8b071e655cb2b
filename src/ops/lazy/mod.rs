//! Expressions over tensors, computed in as few kernels as can be.

mod emit;
mod evaluate;
mod graph;
mod shape;

pub use graph::{Binary, Lazy, Unary};
