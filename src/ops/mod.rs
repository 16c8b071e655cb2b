//! Operations on tensors. Each checks its inputs, names its kernels and runs them; none knows which device it runs on.

mod ahead;
mod coherence;
mod field;
#[cfg(feature = "wgsl")]
mod lazy;
mod shipped;
#[cfg(feature = "wgsl")]
pub(crate) mod tune;

pub use coherence::coherence_async;
pub use field::{
    FieldParams, Frequency, Tile, field_async, field_tiles_async, phi_pattern_async, phi_pattern_tiles_async,
};
#[cfg(feature = "wgsl")]
pub use lazy::{Binary, Lazy, Unary, Window, arange, eye, full, linspace, rand, randn, random_bits};
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub use lazy::{composed, forget_composed};
pub use shipped::{ShippedKernel, kernels};

#[cfg(not(target_arch = "wasm32"))]
pub use coherence::coherence;
#[cfg(not(target_arch = "wasm32"))]
pub use field::{field, field_tiles, phi_pattern, phi_pattern_tiles};
