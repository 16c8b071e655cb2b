//! The engine of Cantus: it ranks devices, places tensors, runs kernels and operations, falls back, and records what it did. Apps use the crate
//! `cantus`.

pub mod backend;
pub mod engine;
#[cfg(all(feature = "wgsl", not(target_arch = "wasm32")))]
pub mod group;
pub mod ops;
mod shipped;
#[cfg(all(feature = "stream", not(target_arch = "wasm32")))]
pub mod stream;

use cantus_base::config::{self, Config};
use cantus_base::error::{self, Error};
#[cfg(all(feature = "monitor", not(target_arch = "wasm32")))]
use cantus_base::private_folder;
use cantus_base::tensor::{self, DType};
#[cfg(all(feature = "linalg", not(target_arch = "wasm32")))]
use cantus_base::threads;
#[cfg(not(target_arch = "wasm32"))]
use cantus_base::{files, fnv, folders};
#[cfg(feature = "graph")]
use cantus_graph as graph;
use cantus_kernel::{self as kernel};

pub use engine::{Engine, Tensor};
