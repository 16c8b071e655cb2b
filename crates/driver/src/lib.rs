//! Parts that backends behind a driver share: vendors' libraries, waiting for queues, a device's health, compiled code on disk.

pub mod health;
#[cfg(all(feature = "library", not(target_arch = "wasm32")))]
pub mod library;
#[cfg(not(target_arch = "wasm32"))]
pub mod native_cache;
#[cfg(not(target_arch = "wasm32"))]
pub mod wait;

use cantus_base::error;
#[cfg(not(target_arch = "wasm32"))]
use cantus_base::{files, fnv, private_folder};
#[cfg(not(target_arch = "wasm32"))]
use cantus_device as backend;
