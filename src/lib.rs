//! Cantus: a portable compute engine. One WGSL kernel on every device.

pub mod backend;
pub mod error;
pub mod kernel;
pub mod spmd;

pub use error::{Error, Result};
pub use kernel::Kernel;
