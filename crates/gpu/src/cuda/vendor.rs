//! CUDA by name: its libraries, functions and attributes. `cuda_hip` has the code; here are the names that it looks up, and `hip/mod.rs` has the other
//! set. A function that older drivers lack belongs into an optional group (graphs, clusters, external memory), or the whole driver counts as missing.

use crate::cuda_hip::{
    Architecture, Attributes, ClusterNames, CompilerNames, ContextNames, CurrentNames, Detail, ExternalNames,
    FunctionNames, GraphNames, IdentityNames, Manner, Names, PortableNames, UpdateNames, Vendor,
};
use crate::translate::Dialect;

/// The backend's name.
pub(super) const NAME: &str = "cuda";
pub(super) const PRIORITY: i32 = 70;

const COMPILER: CompilerNames = CompilerNames {
    version: "nvrtcVersion",
    create: "nvrtcCreateProgram",
    compile: "nvrtcCompileProgram",
    destroy: "nvrtcDestroyProgram",
    log_size: "nvrtcGetProgramLogSize",
    log: "nvrtcGetProgramLog",
    code_size: "nvrtcGetCUBINSize",
    code: "nvrtcGetCUBIN",
};

/// PTX in place of machine code.
pub(super) const PTX: CompilerNames = CompilerNames { code_size: "nvrtcGetPTXSize", code: "nvrtcGetPTX", ..COMPILER };

pub(super) static VENDOR: Vendor = Vendor {
    name: NAME,
    priority: PRIORITY,
    priority_without_compiler: 45,
    dialect: Dialect::Cuda,
    libraries: if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] },
    library_variable: "CANTUS_CUDA_LIBRARY",
    library_remedy: "for an NVIDIA GPU install its driver, or name its library in CANTUS_CUDA_LIBRARY",
    compilers,
    compiler_variable: "CANTUS_NVRTC_LIBRARY",
    compiler_remedy: "install NVRTC of CUDA 12 or 13, or name its library in CANTUS_NVRTC_LIBRARY",
    functions: FunctionNames {
        plain: Names {
            init: "cuInit",
            version: "cuDriverGetVersion",
            device_count: "cuDeviceGetCount",
            device_get: "cuDeviceGet",
            device_name: "cuDeviceGetName",
            device_memory: "cuDeviceTotalMem_v2",
            device_attribute: "cuDeviceGetAttribute",
            context_retain: "cuDevicePrimaryCtxRetain",
            context_release: "cuDevicePrimaryCtxRelease_v2",
            stream_create: "cuStreamCreate",
            stream_destroy: "cuStreamDestroy_v2",
            event_create: "cuEventCreate",
            event_destroy: "cuEventDestroy_v2",
            event_record: "cuEventRecord",
            event_query: "cuEventQuery",
            event_wait: "cuEventSynchronize",
            event_elapsed: "cuEventElapsedTime",
            stream_wait: "cuStreamWaitEvent",
            synchronize: "cuCtxSynchronize",
            memory_allocate: "cuMemAlloc_v2",
            memory_free: "cuMemFree_v2",
            memory_allocate_in_stream: "cuMemAllocAsync",
            memory_free_in_stream: "cuMemFreeAsync",
            host_allocate: "cuMemHostAlloc",
            host_free: "cuMemFreeHost",
            copy_in: "cuMemcpyHtoDAsync_v2",
            copy_out: "cuMemcpyDtoHAsync_v2",
            copy_within: "cuMemcpyDtoDAsync_v2",
            fill: "cuMemsetD8Async",
            module_load: "cuModuleLoadData",
            module_unload: "cuModuleUnload",
            module_function: "cuModuleGetFunction",
            function_attribute: "cuFuncGetAttribute",
            launch: "cuLaunchKernel",
        },
        current: CurrentNames::Context(ContextNames {
            get: "cuCtxGetCurrent",
            set: "cuCtxSetCurrent",
            copy_peer: "cuMemcpyPeerAsync",
        }),
        graphs: GraphNames {
            capture_begin: "cuStreamBeginCapture_v2",
            capture_end: "cuStreamEndCapture",
            graph_destroy: "cuGraphDestroy",
            instantiate: "cuGraphInstantiateWithFlags",
            launch: "cuGraphLaunch",
            destroy: "cuGraphExecDestroy",
        },
        updates: Some(UpdateNames {
            capture_info: "cuStreamGetCaptureInfo_v2",
            set_parameters: "cuGraphExecKernelNodeSetParams_v2",
        }),
        clusters: Some(ClusterNames {
            set_attribute: "cuFuncSetAttribute",
            launch: "cuLaunchKernelEx",
            active_clusters: "cuOccupancyMaxActiveClusters",
        }),
        identity: IdentityNames { uuid: "cuDeviceGetUuid", pci: "cuDeviceGetPCIBusId" },
        external: ExternalNames {
            import: "cuImportExternalMemory",
            map: "cuExternalMemoryGetMappedBuffer",
            destroy: "cuDestroyExternalMemory",
        },
        properties: &[],
    },
    compiler_functions: COMPILER,
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
        shared_opt_in: 97,
        clusters: 120,
    },
    // Stream-ordered memory came with 11.2; NVRTC 12's code wants 12.0.
    oldest_driver: (12_000, "12.0 (the NVIDIA driver 525 or later)"),
    architecture_option,
    portable: Some(PortableNames {
        functions: PTX,
        count: "nvrtcGetNumSupportedArchs",
        list: "nvrtcGetSupportedArchs",
        option: |number| format!("--gpu-architecture=compute_{number}"),
    }),
    options: &["--std=c++17"],
    matrices: Some((8, 0)),
    products: if cfg!(feature = "cuda-libraries") { Some(&super::libraries::CUBLASLT) } else { None },
    collectives: if cfg!(feature = "cuda-libraries") { Some(&super::libraries::NCCL) } else { None },
    takeovers: &super::takeovers::TAKEOVERS,
    embedded: super::ptx::find,
};

/// A driver runs what compilers of its own major version and of earlier ones made.
fn compilers(version: i32) -> &'static [&'static str] {
    match (cfg!(windows), version >= 13_000) {
        (true, true) => &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"],
        (true, false) => &["nvrtc64_120_0.dll", "nvrtc64_130_0.dll"],
        (false, true) => &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
        (false, false) => &["libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"],
    }
}

fn architecture_option(architecture: &Architecture) -> String {
    let (major, minor) = architecture.compute;
    format!("--gpu-architecture=sm_{major}{minor}")
}

pub(super) static MANNER: Manner =
    Manner { detail: |version| Detail { driver: format!("CUDA driver {}.{}", version / 1000, version % 1000 / 10) } };
