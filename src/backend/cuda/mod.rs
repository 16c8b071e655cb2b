//! The CUDA backend: NVIDIA GPUs through the driver and NVRTC, both loaded at run time. No toolkit is needed to build or to run.
//!
//! Kernels are translated to CUDA C++ and compiled for the device's own architecture; the code is kept on disk. Without NVRTC the shipped
//! kernels run from PTX that was made when the library was built.

mod compile;
mod ptx;

pub use compile::compile;
pub use ptx::source_line;

use std::sync::{Arc, OnceLock};

use super::stream::{Architecture, Attributes, CompilerNames, GraphNames, Names};
use super::stream::{Current, Detail, Found, Manner, Vendor, probe};
use super::{Backend, BoxFuture, Device, OpenOptions, Probe, ready};
use crate::error::Result;
use crate::translate::Dialect;

const NAME: &str = "cuda";
const PRIORITY: i32 = 70;

static VENDOR: Vendor = Vendor {
    name: NAME,
    priority: PRIORITY,
    dialect: Dialect::Cuda,
    libraries: if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] },
    library_variable: "CANTUS_CUDA_LIBRARY",
    compilers: if cfg!(windows) {
        &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]
    } else {
        &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    },
    compiler_variable: "CANTUS_NVRTC_LIBRARY",
    compiler_remedy: "install NVRTC of CUDA 12 or 13, or name its library in CANTUS_NVRTC_LIBRARY",
    functions: Names {
        init: "cuInit",
        version: "cuDriverGetVersion",
        device_count: "cuDeviceGetCount",
        device_get: "cuDeviceGet",
        device_name: "cuDeviceGetName",
        device_memory: "cuDeviceTotalMem_v2",
        device_attribute: "cuDeviceGetAttribute",
        context_retain: "cuDevicePrimaryCtxRetain",
        context_release: "cuDevicePrimaryCtxRelease_v2",
        context_set: "cuCtxSetCurrent",
        stream_create: "cuStreamCreate",
        stream_destroy: "cuStreamDestroy_v2",
        event_create: "cuEventCreate",
        event_destroy: "cuEventDestroy_v2",
        event_record: "cuEventRecord",
        event_query: "cuEventQuery",
        event_wait: "cuEventSynchronize",
        event_elapsed: "cuEventElapsedTime",
        memory_allocate: "cuMemAlloc_v2",
        memory_free: "cuMemFree_v2",
        memory_allocate_in_stream: "cuMemAllocAsync",
        memory_free_in_stream: "cuMemFreeAsync",
        host_allocate: "cuMemHostAlloc",
        host_free: "cuMemFreeHost",
        copy_in: "cuMemcpyHtoDAsync_v2",
        copy_out: "cuMemcpyDtoHAsync_v2",
        copy_within: "cuMemcpyDtoDAsync_v2",
        copy_peer: "cuMemcpyPeerAsync",
        fill: "cuMemsetD8Async",
        module_load: "cuModuleLoadData",
        module_unload: "cuModuleUnload",
        module_function: "cuModuleGetFunction",
        function_attribute: "cuFuncGetAttribute",
        launch: "cuLaunchKernel",
    },
    graph_functions: GraphNames {
        capture_begin: "cuStreamBeginCapture_v2",
        capture_end: "cuStreamEndCapture",
        graph_destroy: "cuGraphDestroy",
        instantiate: "cuGraphInstantiateWithFlags",
        launch: "cuGraphLaunch",
        destroy: "cuGraphExecDestroy",
    },
    compiler_functions: CompilerNames {
        version: "nvrtcVersion",
        create: "nvrtcCreateProgram",
        compile: "nvrtcCompileProgram",
        destroy: "nvrtcDestroyProgram",
        log_size: "nvrtcGetProgramLogSize",
        log: "nvrtcGetProgramLog",
        code_size: "nvrtcGetCUBINSize",
        code: "nvrtcGetCUBIN",
    },
    // CUdevice_attribute of the driver's header.
    attributes: Attributes {
        threads_per_block: 1,
        block_x: 2,
        grid_x: 5,
        shared_bytes: 8,
        warp_size: 10,
        integrated: 18,
        compute_major: 75,
        compute_minor: 76,
        memory_pools: 115,
    },
    // Stream-ordered memory came with 11.2; NVRTC 12's code wants 12.0.
    oldest_driver: (12_000, "12.0 (the NVIDIA driver 525 or later)"),
    architecture_option,
    options: &["--std=c++17"],
    embedded: ptx::find,
};

fn architecture_option(architecture: &Architecture) -> String {
    let (major, minor) = architecture.compute;
    format!("--gpu-architecture=sm_{major}{minor}")
}

static MANNER: Manner = Manner {
    current: Current::Context,
    detail: |version, _| Detail {
        architecture: None,
        driver: format!("CUDA driver {}.{}", version / 1000, version % 1000 / 10),
    },
};

/// Finds NVIDIA GPUs.
#[derive(Default)]
pub struct CudaBackend {
    found: OnceLock<std::result::Result<Vec<Found>, String>>,
}

opaque_debug!(CudaBackend);

impl CudaBackend {
    /// The backend; nothing is loaded yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn found(&self) -> &std::result::Result<Vec<Found>, String> {
        self.found.get_or_init(|| probe(&VENDOR, &MANNER))
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        PRIORITY
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        ready(super::stream::summary(self.found()))
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        ready(super::stream::open(NAME, self.found(), index, options))
    }
}
