//! Cantus: a portable compute engine. One WGSL kernel on every device.

pub mod error;
pub mod kernel;
pub mod spmd;

pub use error::{Error, Result};
