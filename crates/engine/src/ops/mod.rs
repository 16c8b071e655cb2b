//! Operations on tensors. Each checks its inputs, names its kernels and runs them; none knows which device it runs on.

#[cfg(feature = "wgsl")]
mod elementwise;
#[cfg(feature = "wgsl")]
mod expr;
#[cfg(feature = "wgsl")]
mod fft;
#[cfg(feature = "wgsl")]
mod frame;
#[cfg(feature = "wgsl")]
mod host;
#[cfg(feature = "wgsl")]
mod linalg;
#[cfg(feature = "wgsl")]
mod tensor;
#[cfg(feature = "wgsl")]
mod tune;

#[cfg(feature = "wgsl")]
pub use elementwise::{Binary, Unary};
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub use expr::taken_over;
#[cfg(feature = "wgsl")]
pub use expr::{Expr, Operand};
#[cfg(all(feature = "_test", feature = "wgsl"))]
#[doc(hidden)]
pub use expr::{composed, evaluate_twice, forget_composed, plan_as_gpu};
#[cfg(feature = "wgsl")]
pub use fft::Overlap;
#[cfg(feature = "wgsl")]
pub use linalg::Csr;
#[cfg(feature = "wgsl")]
pub use tensor::{
    Attention, Interpolation, KeyValueCache, Padding, RopePairs, Unique, Window, arange, eye, full, linspace, meshgrid,
    rand, randn, random_bits,
};
