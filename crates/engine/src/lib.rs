//! The engine of Cantus: it ranks devices, places tensors, runs kernels and operations, falls back, and records what it did. Apps use the crate
//! `cantus`.

pub mod backend;
pub mod engine;
pub mod ops;

use cantus_base::config::{self, Config};
use cantus_base::error::{self, Error};
use cantus_base::tensor::{self, DType};
#[cfg(all(feature = "linalg", not(target_arch = "wasm32")))]
use cantus_base::threads;
#[cfg(not(target_arch = "wasm32"))]
use cantus_base::{files, fnv, folders};
use cantus_kernel::{self as kernel};

pub use engine::{Engine, Tensor};
