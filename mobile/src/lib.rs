//! Cantus for apps: the engine's API as Kotlin, Swift and C see it. Nothing is computed here.
//!
//! The Kotlin and Swift bindings are generated from this crate by UniFFI; the C header from [`c`] by cbindgen. What may wait is `async`
//! and runs on threads of its own, so that an app's main thread may await it.

pub mod c;
mod device;
mod engine;
mod error;
mod field;
mod kernel;
mod options;
mod tensor;
mod texture;

pub use device::{DeviceInfo, DeviceKind, Selection, Survey, SurveyedBackend, devices};
pub use engine::{Amount, Cancel, Dispatch, Engine, Event, EventKind, Memory, Metric, Uniform};
pub use error::{CantusError, Result};
pub use field::{FieldParams, Frequency, Grid};
pub use kernel::{BindingInfo, Kernel, KernelInfo};
pub use options::{EngineOptions, Fallback};
pub use tensor::{DType, Tensor};
pub use texture::{AddressMode, FilterMode, ImageSize, Sampler, Texture};

uniffi::setup_scaffolding!("cantus");

/// Runs what may wait off the caller's thread: on the CPU backend a submission computes, and opening a device takes a while.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> cantus::Result<T> + Send + 'static) -> Result<T> {
    blocking::unblock(|| error::unwound(|| Ok(work()?))).await
}

/// The version of the library.
#[uniffi::export]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
