//! The backends for devices behind a driver, each loaded at run time: wgpu, Vulkan, OpenCL, CUDA and HIP.

#[cfg(feature = "_device")]
mod checks;
#[cfg(all(feature = "_cuda_hip", not(target_arch = "wasm32")))]
mod cuda_hip;
#[cfg(all(any(feature = "vulkan", feature = "_native"), not(target_arch = "wasm32")))]
mod in_flight;
#[cfg(any(feature = "wgpu", all(feature = "vulkan", not(target_arch = "wasm32"))))]
mod matrices;
#[cfg(feature = "_gpu")]
mod nodes;

#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
pub mod cuda;
#[cfg(all(feature = "hip", not(target_arch = "wasm32")))]
pub mod hip;
#[cfg(all(feature = "opencl", not(target_arch = "wasm32")))]
pub mod opencl;
#[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
pub mod vulkan;
#[cfg(feature = "wgpu")]
pub mod wgpu;

#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_base::{deep_stack, error, fnv, tensor};
#[cfg(not(target_arch = "wasm32"))]
#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_base::{files, private_folder};
use cantus_device as backend;
#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_driver::health;
#[cfg(all(feature = "_cuda_hip", not(target_arch = "wasm32")))]
use cantus_driver::library;
#[cfg(all(feature = "_native", not(target_arch = "wasm32")))]
use cantus_driver::native_cache;
#[cfg(not(target_arch = "wasm32"))]
#[allow(unused_imports, reason = "which rooms are named depends on the features")]
use cantus_driver::wait;
use cantus_kernel as kernel;
#[cfg(feature = "_native")]
use cantus_translate as translate;

#[cfg(all(feature = "_test", feature = "_native", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub use cantus_driver::native_cache::kept as kept_code;
#[cfg(all(feature = "_cuda_hip", not(target_arch = "wasm32")))]
pub use cuda_hip::Compiled;
