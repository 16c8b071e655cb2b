//! The field family of Cantus: shipped kernels that compute a damped spiral wave and the golden-ratio spiral ([`field`]), and the coherence of a
//! field. Apps use the crate `cantus`, which has them in `ops`.
//!
//! It uses what any crate can that has kernels of its own: kernels are dispatched by an engine, groups and streams get a function to call.

mod coherence;
pub mod field;
mod shipped;
#[cfg(all(feature = "stream", not(target_arch = "wasm32")))]
pub mod streamed;

use cantus_base::{error, tensor};
#[cfg(feature = "graph")]
use cantus_engine::backend;
use cantus_engine::engine;

#[cfg(not(target_arch = "wasm32"))]
pub use coherence::coherence;
pub use coherence::coherence_async;
pub use shipped::{ShippedKernel, kernels};
