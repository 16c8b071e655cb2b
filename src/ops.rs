//! Operations on tensors. Each checks its inputs, names its kernels and runs them; none knows which device it runs on.

#[cfg(feature = "field")]
pub mod field;

#[cfg(feature = "wgsl")]
#[doc(inline)]
pub use cantus_engine::ops::*;
#[cfg(all(feature = "field", not(target_arch = "wasm32")))]
pub use cantus_field::coherence;
#[cfg(feature = "field")]
pub use cantus_field::{ShippedKernel, coherence_async, kernels};
