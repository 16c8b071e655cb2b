//! The backends for devices that run operation graphs and no kernels, each loaded at run time: PJRT and Ascend.
#![cfg(not(target_arch = "wasm32"))]

#[cfg(any(feature = "pjrt", feature = "ascend"))]
mod values;

#[cfg(feature = "ascend")]
pub mod ascend;
#[cfg(feature = "pjrt")]
pub mod pjrt;

#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_base::{error, files, fnv, private_folder, tensor};
use cantus_device as backend;
#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_driver::{health, library, native_cache, wait};
use cantus_graph as graph;
use cantus_kernel as kernel;
