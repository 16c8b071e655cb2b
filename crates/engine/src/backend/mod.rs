//! The boundary to devices, the backends that are built in, and the list of those that an engine considers.

mod registry;

#[cfg(feature = "cpu")]
pub use cantus_cpu as cpu;
pub use cantus_device::*;
#[cfg(all(any(feature = "cuda", feature = "hip"), not(target_arch = "wasm32")))]
pub use cantus_gpu::Compiled;
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
pub use cantus_gpu::cuda;
#[cfg(all(feature = "hip", not(target_arch = "wasm32")))]
pub use cantus_gpu::hip;
#[cfg(all(
    feature = "_test",
    any(feature = "opencl", feature = "cuda", feature = "hip"),
    not(target_arch = "wasm32")
))]
#[doc(hidden)]
pub use cantus_gpu::kept_code;
#[cfg(all(feature = "opencl", not(target_arch = "wasm32")))]
pub use cantus_gpu::opencl;
#[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
pub use cantus_gpu::vulkan;
#[cfg(feature = "wgpu")]
pub use cantus_gpu::wgpu;
#[cfg(all(feature = "ascend", not(target_arch = "wasm32")))]
pub use cantus_graph_devices::ascend;
#[cfg(all(feature = "pjrt", not(target_arch = "wasm32")))]
pub use cantus_graph_devices::pjrt;
pub use registry::Registry;
