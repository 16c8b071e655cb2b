//! NVIDIA's libraries by name. They are loaded at run time, at their first use.

use crate::cuda_hip::{CollectiveLibrary, ProductLibrary, ProductNames, ProductNumbers};

pub(super) static NCCL: CollectiveLibrary = CollectiveLibrary {
    name: "NCCL",
    libraries: &["libnccl.so.2"],
    variable: "CANTUS_NCCL_LIBRARY",
    remedy: "install NCCL 2, or name its library in CANTUS_NCCL_LIBRARY",
};

// cublasLt.h and cublas_api.h of CUDA 12 and 13, which agree in all that is used.
pub(super) static CUBLASLT: ProductLibrary = ProductLibrary {
    name: "cuBLASLt",
    rank: 20,
    libraries: |version| match (cfg!(windows), version >= 13_000) {
        (true, true) => &["cublasLt64_13.dll", "cublasLt64_12.dll"],
        (true, false) => &["cublasLt64_12.dll"],
        (false, true) => &["libcublasLt.so.13", "libcublasLt.so.12"],
        (false, false) => &["libcublasLt.so.12"],
    },
    variable: "CANTUS_CUBLASLT_LIBRARY",
    remedy: "install cuBLAS of CUDA 12 or 13, or name its library in CANTUS_CUBLASLT_LIBRARY",
    functions: ProductNames {
        create: "cublasLtCreate",
        destroy: "cublasLtDestroy",
        product_create: "cublasLtMatmulDescCreate",
        product_destroy: "cublasLtMatmulDescDestroy",
        product_set: "cublasLtMatmulDescSetAttribute",
        layout_create: "cublasLtMatrixLayoutCreate",
        layout_destroy: "cublasLtMatrixLayoutDestroy",
        layout_set: "cublasLtMatrixLayoutSetAttribute",
        preference_create: "cublasLtMatmulPreferenceCreate",
        preference_destroy: "cublasLtMatmulPreferenceDestroy",
        preference_set: "cublasLtMatmulPreferenceSetAttribute",
        heuristic: "cublasLtMatmulAlgoGetHeuristic",
        matmul: "cublasLtMatmul",
    },
    made_for: Some("cublasLtGetCudartVersion"),
    numbers: ProductNumbers {
        // CUBLAS_COMPUTE_32F: the one that rounds to TF32 is CUBLAS_COMPUTE_32F_FAST_TF32.
        sums: 68,
        whole_sums: 72,
        as_it_is: 0,
        transposed: 1,
        transpose: [3, 4],
        epilogue: 7,
        bias: 8,
        batches: 5,
        batch_stride: 6,
        preferences: Some([3, 5]),
    },
};
