//! Operations on tensors. Each checks its inputs, names its kernels and runs them; none knows which device it runs on.

#[cfg(feature = "graph")]
pub mod field;

#[doc(inline)]
pub use cantus_engine::ops::*;
