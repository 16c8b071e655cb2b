//! The evaluator: expressions over tensors, recorded first and then computed in few kernels.
//!
//! # What comes in
//! An `Expr` holds an engine and a `Typed` node, or the first mistake made while recording. A `Typed` is a `Node` with a shape and a dtype. Nodes are
//! immutable and shared by `Arc`, so an expression is a graph without cycles. There are three kinds:
//! - **Reads** of memory (`Node::Read`, `Node::Gather`). A `View` has an offset, strides and a `Source`: a tensor, a tensor as it was when it was
//!   recorded (`Recorded`), the result of an operation (`Deferred`), or indices, which have no memory.
//! - **Functions of elements** (`Unary`, `Binary`, `Select`, `Cast`, `Constant`, `Random`), each in its own shape. Inputs broadcast.
//! - **Operations** that need a kernel of their own: reductions, products, sorts. Each implements `Operation` and is held by a `Deferred`, which an
//!   expression reads like memory.
//!
//! A view of memory changes strides. A view of a computed expression reads that expression's value (`Typed::value`), a `Deferred` that all views share.
//!
//! # Stages
//! 1. **Record** (`node`, `view`, `operators`). `common` returns the existing node if the same one was recorded before and still lives. A node deeper
//!    than `DEEPEST` becomes a value, which bounds the size of a kernel. `Backlog` measures what is recorded and not computed. Beyond a bound the
//!    expression is evaluated while it is being recorded (`submitted`), except in captures, memory scopes and evaluations, and on the web.
//! 2. **Replay** (`survey`, `replay`). `Expr::eval` looks the expression's `Digest` up, in which tensors are numbers and constants are values. If it came
//!    twice before, its commands are recorded again over the new tensors, and the stages below do not run. The survey also finds what others hold.
//! 3. **Plan** (`plan`). Lists the operations and values to compute before the expression, in order. Functions of elements are computed where they are
//!    read, in the reader's kernel. A value gets a kernel and memory of its own if several kernels read it and computing it each time would cost more.
//!    How the rest is computed is the `Schedule`.
//! 4. **Compute** each of them (`Deferred::compute`, `evaluate::together` for a group) and then the expression (`evaluate::computed`).
//!    `Schedule::lowered` first replaces known values by reads of them, and pushes views into values that their readers compute.
//! 5. **Run.** `evaluate::computed` takes the first form that applies: the tensor itself; the epilogue of an operation's kernel (`fused`); a native
//!    operation (`native`, and `chain` on the CPU); a kernel that `emit` writes (`elementwise`).
//! 6. **Dispatch** (`operation::Composed`). Kernels are kept by their text (`evaluate::kernel`). The engine records the dispatch, and nothing waits.
//!
//! # What carries it
//! - `Deferred`: an operation, and its result once there is one. `Deferred::keep` stores the result and releases what is needed no more: a value's inputs
//!   at once, an operation's after `MOST_HELD` operations in a row. A loop of any length therefore takes constant memory. In a capture or a memory scope
//!   nothing is released.
//! - `Own` (in `Typed`): the node's value. The node holds it weakly until it is computed and strongly afterwards.
//! - `Writer`: a kernel's functions, the words of its uniform, and the tensors to bind.
//! - `Schedule`: what a plan decided of operations and values that get no result. It does not change, and each evaluation has its own.
//! - `Call` and `Epilogue`: one run of an operation, under a schedule, and the expression that follows it in the same kernel.
//!
//! # What holds
//! - A kernel reads at most `MOST_TENSORS` distinct tensors. The planner keeps a value where there would be more, `narrowed` enforces it, and `fused`
//!   declines.
//! - A kernel reads computed values only. `emit` reports a read without a tensor as a fault of the library.
//! - A kernel's text contains no sizes. Constants are in the uniform too, except some of f64. One kernel therefore serves all sizes.
//! - An expression sees its tensors as they were when they were recorded: whatever overwrites a tensor first copies it (`Tensor::preserve`),
//!   and their `Recorded` then holds the copy. Kernels of operations write fresh memory (`DispatchBuilder::fresh`) and skip the check.
//! - A lost result is computed again while its inputs are held (`Deferred::live_result`). Otherwise reading it is an error.
//!
//! # What is surprising
//! - `Arc::strong_count` decides what is written. An expensive operation (`DEAR`) that somebody else holds keeps its own result, because a fused one
//!   would have to be computed again for that holder. The survey counts before a plan holds anything (`Facts`), and what it finds is in the digest.
//! - A node that an earlier evaluation computed as a part of a kernel counts as read once more, and an operation that was fused once gets its own
//!   result the next time (`History`).
//! - Values computed in a capture are known inside it only, because each replay computes them anew.
//!
//! # An example
//! `(x * 2 + 1).sum(&[1], false)` with `x` of float32 and shape `[3, 1000]`, evaluated for the first time.
//! - Recording makes `Read(x)`, `Constant(2)`, `Mul`, `Constant(1)`, `Add`, and a `Reduce` in a `Deferred`. The root is a `Read` of it.
//! - The plan computes nothing before the root: `Add` has one reader, so it stays a part of the reduction, and the reduction's only reader is the root, so
//!   the schedule leaves its end to it (`Left::ToEnd`).
//! - `computed` finds the reduction in `fusable`. The root does nothing but read it, so `Deferred::compute` runs it without an epilogue.
//! - The CPU has a native form: `chain` lists the steps load, 2, multiply, 1, add, and `NativeOperation::Reduce` sums along the rows.
//! - A GPU gets a kernel: `emit` writes `element(row, place)` (its page shows the text), and the frame `shaders/tensor/reduce_rows.wgsl` calls it. The
//!   uniform begins with 3 rows, 1,000 elements in a row, and how rows are cut into parts.

pub(super) mod chain;
mod common;
pub(super) mod deferred;
#[cfg(feature = "graph")]
mod described;
pub(super) mod digest;
pub(super) mod emit;
pub(super) mod evaluate;
mod library;
pub(super) mod methods;
pub(super) mod node;
pub(super) mod number;
pub(super) mod operation;
mod operators;
pub(super) mod plan;
pub(super) mod replay;
mod roll;
pub(super) mod schedule;
pub(super) mod shape;
mod survey;
pub(super) mod view;

#[cfg(feature = "_test")]
pub use evaluate::{composed, forget_composed, plan_as_gpu};
pub use node::Expr;
pub use operation::taken_over;
pub use operators::Operand;
#[cfg(feature = "_test")]
pub use replay::evaluate_twice;
