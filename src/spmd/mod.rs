//! The CPU executor of WGSL: naga IR, lowered once to flat bytecode, run in lock-step over lanes.
//! Knows nothing of `Engine`, `Tensor` or `Kernel`.

#[doc(hidden)]
pub mod math;
