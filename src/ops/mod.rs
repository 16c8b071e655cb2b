//! Operations on tensors. Each checks its inputs, names its kernels and runs them; none knows which device it runs on.

mod ahead;
mod coherence;
#[cfg(feature = "wgsl")]
mod expr;
mod field;
mod shipped;
#[cfg(feature = "wgsl")]
pub(crate) mod tune;

pub use coherence::coherence_async;
#[cfg(feature = "wgsl")]
pub use expr::{Binary, Expr, Operand, Unary, Window, arange, eye, full, linspace, rand, randn, random_bits};
#[cfg(feature = "wgsl")]
#[doc(hidden)]
pub use expr::{composed, forget_composed};
pub use field::{
    FieldParams, Frequency, Tile, field_async, field_tiles_async, phi_pattern_async, phi_pattern_tiles_async,
};
pub use shipped::{ShippedKernel, kernels};

#[cfg(not(target_arch = "wasm32"))]
pub use coherence::coherence;
#[cfg(not(target_arch = "wasm32"))]
pub use field::{field, field_tiles, phi_pattern, phi_pattern_tiles};
