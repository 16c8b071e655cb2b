//! Cantus: a portable compute engine. One WGSL kernel on every device.

pub mod backend;
pub mod config;
pub mod engine;
pub mod error;
pub mod kernel;
pub mod spmd;
pub mod tensor;

pub use config::{Config, Fallback};
pub use engine::Engine;
pub use error::{Error, Result};
pub use kernel::Kernel;
pub use tensor::{DType, Element, Tensor};
