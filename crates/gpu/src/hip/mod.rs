//! The HIP backend: AMD GPUs through the HIP runtime and hiprtc, both loaded at run time.
//!
//! Libraries of ROCm 5 to 7 by their sonames: the functions and the numbers of attributes that are used here are the same in all of them. What
//! differs is the structure of a device's properties, of which the architecture's name is looked for, and where the compiler is.
//!
//! The same code as the CUDA backend's drives it (see `stream`). It compiles and is exercised against a double of the library; it has not
//! been run on hardware by this project.

use std::sync::{Arc, OnceLock};

use super::cuda_hip::{
    Architecture, Attributes, CollectiveLibrary, Compiled, Compiler, CompilerNames, CurrentNames, Detail, Found,
};
use super::cuda_hip::{
    ExternalNames, FunctionNames, GraphNames, IdentityNames, Manner, Names, NumberNames, ProductLibrary, ProductNames,
    ProductNumbers, PropertiesNames, Vendor, probe,
};
use crate::backend::{Backend, BoxFuture, Device, OpenOptions, Probe, ready};
use crate::error::{Error, Result};
use crate::translate::Dialect;

const NAME: &str = "hip";
const PRIORITY: i32 = 80;

static VENDOR: Vendor = Vendor {
    name: NAME,
    priority: PRIORITY,
    priority_without_compiler: 45,
    dialect: Dialect::Hip,
    libraries: if cfg!(windows) {
        &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
    } else {
        &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"]
    },
    library_variable: "CANTUS_HIP_LIBRARY",
    library_remedy: "for an AMD GPU install ROCm's HIP runtime, or name its library in CANTUS_HIP_LIBRARY",
    compilers,
    compiler_variable: "CANTUS_HIPRTC_LIBRARY",
    compiler_remedy: "install hiprtc of ROCm 5 or later, or name its library in CANTUS_HIPRTC_LIBRARY",
    functions: FunctionNames {
        plain: Names {
            init: "hipInit",
            version: "hipDriverGetVersion",
            device_count: "hipGetDeviceCount",
            device_get: "hipDeviceGet",
            device_name: "hipDeviceGetName",
            device_memory: "hipDeviceTotalMem",
            device_attribute: "hipDeviceGetAttribute",
            context_retain: "hipDevicePrimaryCtxRetain",
            context_release: "hipDevicePrimaryCtxRelease",
            stream_create: "hipStreamCreateWithFlags",
            stream_destroy: "hipStreamDestroy",
            event_create: "hipEventCreateWithFlags",
            event_destroy: "hipEventDestroy",
            event_record: "hipEventRecord",
            event_query: "hipEventQuery",
            event_wait: "hipEventSynchronize",
            event_elapsed: "hipEventElapsedTime",
            stream_wait: "hipStreamWaitEvent",
            synchronize: "hipDeviceSynchronize",
            memory_allocate: "hipMalloc",
            memory_free: "hipFree",
            memory_allocate_in_stream: "hipMallocAsync",
            memory_free_in_stream: "hipFreeAsync",
            host_allocate: "hipHostMalloc",
            host_free: "hipHostFree",
            copy_in: "hipMemcpyHtoDAsync",
            copy_out: "hipMemcpyDtoHAsync",
            copy_within: "hipMemcpyDtoDAsync",
            fill: "hipMemsetD8Async",
            module_load: "hipModuleLoadData",
            module_unload: "hipModuleUnload",
            module_function: "hipModuleGetFunction",
            function_attribute: "hipFuncGetAttribute",
            launch: "hipModuleLaunchKernel",
        },
        current: CurrentNames::Number(NumberNames {
            get: "hipGetDevice",
            set: "hipSetDevice",
            copy_peer: "hipMemcpyPeerAsync",
        }),
        graphs: GraphNames {
            capture_begin: "hipStreamBeginCapture",
            capture_end: "hipStreamEndCapture",
            graph_destroy: "hipGraphDestroy",
            instantiate: "hipGraphInstantiateWithFlags",
            launch: "hipGraphLaunch",
            destroy: "hipGraphExecDestroy",
        },
        // Its nodes name functions of the program, and none of a module's.
        updates: None,
        clusters: None,
        identity: IdentityNames { uuid: "hipDeviceGetUuid", pci: "hipDeviceGetPCIBusId" },
        external: ExternalNames {
            import: "hipImportExternalMemory",
            map: "hipExternalMemoryGetMappedBuffer",
            destroy: "hipDestroyExternalMemory",
        },
        properties: &[
            PropertiesNames { get: "hipGetDevicePropertiesR0600" },
            PropertiesNames { get: "hipGetDeviceProperties" },
        ],
    },
    compiler_functions: CompilerNames {
        version: "hiprtcVersion",
        create: "hiprtcCreateProgram",
        compile: "hiprtcCompileProgram",
        destroy: "hiprtcDestroyProgram",
        log_size: "hiprtcGetProgramLogSize",
        log: "hiprtcGetProgramLog",
        code_size: "hiprtcGetCodeSize",
        code: "hiprtcGetCode",
    },
    // hipDeviceAttribute_t of the runtime's header.
    attributes: Attributes {
        threads_per_block: 56,
        block_x: 26,
        grid_x: 29,
        shared_bytes: 74,
        warp_size: 87,
        integrated: 16,
        compute_major: 23,
        compute_minor: 61,
        memory_pools: 88,
        shared_opt_in: 0,
        clusters: 0,
    },
    oldest_driver: (50_200_000, "ROCm 5.2"),
    // Without the option hiprtc compiles for the current device.
    architecture_option: |architecture: &Architecture| match &architecture.name {
        Some(name) => format!("--offload-arch={name}"),
        None => String::new(),
    },
    portable: None,
    options: &["-std=c++17", "-O3"],
    // Its matrix cores have other sizes; cooperative matrices run by shuffles.
    matrices: None,
    products: Some(&HIPBLASLT),
    collectives: Some(&RCCL),
    takeovers: &[],
    embedded: |_| None,
};

static RCCL: CollectiveLibrary = CollectiveLibrary {
    name: "RCCL",
    libraries: &["librccl.so.1"],
    variable: "CANTUS_RCCL_LIBRARY",
    remedy: "install RCCL, or name its library in CANTUS_RCCL_LIBRARY",
};

// The header of ROCm 6 and 7; that of ROCm 5 has other numbers.
static HIPBLASLT: ProductLibrary = ProductLibrary {
    name: "hipBLASLt",
    rank: 20,
    libraries: |version| match (cfg!(windows), version / 10_000_000) {
        (_, ..=5) => &[],
        (true, _) => &["libhipblaslt.dll", "hipblaslt.dll"],
        (false, 6) => &["libhipblaslt.so.0"],
        (false, _) => &["libhipblaslt.so.1", "libhipblaslt.so.0"],
    },
    variable: "CANTUS_HIPBLASLT_LIBRARY",
    remedy: "install hipBLASLt of ROCm 6 or 7, or name its library in CANTUS_HIPBLASLT_LIBRARY",
    functions: ProductNames {
        create: "hipblasLtCreate",
        destroy: "hipblasLtDestroy",
        product_create: "hipblasLtMatmulDescCreate",
        product_destroy: "hipblasLtMatmulDescDestroy",
        product_set: "hipblasLtMatmulDescSetAttribute",
        layout_create: "hipblasLtMatrixLayoutCreate",
        layout_destroy: "hipblasLtMatrixLayoutDestroy",
        layout_set: "hipblasLtMatrixLayoutSetAttribute",
        preference_create: "hipblasLtMatmulPreferenceCreate",
        preference_destroy: "hipblasLtMatmulPreferenceDestroy",
        preference_set: "hipblasLtMatmulPreferenceSetAttribute",
        heuristic: "hipblasLtMatmulAlgoGetHeuristic",
        matmul: "hipblasLtMatmul",
    },
    made_for: None,
    numbers: ProductNumbers {
        sums: 2,
        whole_sums: 9,
        as_it_is: 111,
        transposed: 112,
        transpose: [0, 1],
        epilogue: 2,
        bias: 3,
        batches: 0,
        batch_stride: 1,
        preferences: None,
    },
};

/// A runtime runs what the compiler of its own major version made; another one serves where that is missing. ROCm 5 and 6 have the compiler
/// in the runtime too, and before 5.3 there alone.
fn compilers(version: i32) -> &'static [&'static str] {
    match (cfg!(windows), version / 10_000_000) {
        (true, ..=6) => &["hiprtc0600.dll", "hiprtc.dll", "hiprtc0700.dll"],
        (true, _) => &["hiprtc0700.dll", "hiprtc.dll", "hiprtc0600.dll"],
        (false, ..=5) => &["libhiprtc.so.5", "libamdhip64.so.5", "libhiprtc.so"],
        (false, 6) => &["libhiprtc.so.6", "libamdhip64.so.6", "libhiprtc.so"],
        (false, _) => &[
            "libhiprtc.so.7",
            "libhiprtc.so",
            "libhiprtc.so.6",
            "libhiprtc.so.5",
            "libamdhip64.so.6",
            "libamdhip64.so.5",
        ],
    }
}

static MANNER: Manner = Manner {
    detail: |version| Detail {
        driver: format!("HIP runtime {}.{}.{}", version / 10_000_000, version / 100_000 % 100, version % 100_000),
    },
};

/// Finds AMD GPUs.
#[derive(Default)]
pub struct HipBackend {
    found: OnceLock<std::result::Result<Vec<Found>, String>>,
}

cantus_base::opaque_debug!(HipBackend);

impl HipBackend {
    /// The backend; nothing is loaded yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn found(&self) -> &std::result::Result<Vec<Found>, String> {
        self.found.get_or_init(|| probe(&VENDOR, &MANNER))
    }
}

impl Backend for HipBackend {
    fn name(&self) -> &str {
        NAME
    }

    fn priority(&self) -> i32 {
        PRIORITY
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        ready(super::cuda_hip::summary(self.found()))
    }

    fn open<'a>(&'a self, index: usize, options: &'a OpenOptions) -> BoxFuture<'a, Result<Arc<dyn Device>>> {
        ready(super::cuda_hip::open(NAME, self.found(), index, options))
    }
}

/// Compiles HIP C++ by hiprtc for an architecture such as `gfx90a`, without a device. `name` is for the compiler's messages.
///
/// # Errors
/// [`Error::Io`] when hiprtc cannot be loaded, and [`Error::Device`] with the compiler's log when it refuses.
pub fn compile(source: &str, name: &str, architecture: &str) -> Result<Compiled> {
    static COMPILER: OnceLock<std::result::Result<Compiler, String>> = OnceLock::new();
    let compiler = COMPILER.get_or_init(|| Compiler::new(&VENDOR, &VENDOR.compiler_functions, i32::MAX));
    let compiler = compiler.as_ref().map_err(|reason| Error::Io {
        action: "cannot load".to_owned(),
        path: "hiprtc".to_owned(),
        reason: reason.clone(),
    })?;
    compiler.compile_for(source, name, format!("--offload-arch={architecture}"), "hiprtc")
}
