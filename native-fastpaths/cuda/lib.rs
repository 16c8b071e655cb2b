//! Native CUDA kernels, and the PTX of shipped kernels for systems without NVRTC (`cargo xtask ptx` writes it).

/// Constants with the contents of files.
macro_rules! files {
    ($($name:ident = $file:literal;)*) => {
        $(#[doc = concat!("The contents of `", $file, "`.")] pub const $name: &str = include_str!($file);)*
    };
}

files! {
    BINCOUNT_CU = "bincount.cu";
    CLUSTER_H = "cluster.h";
    COHERENCE_WHOLE_CU = "coherence_whole.cu";
    LAYER_NORM_CU = "layer_norm.cu";
    LOOK_BACK_H = "look_back.h";
    RMS_NORM_CU = "rms_norm.cu";
    SCAN_CU = "scan.cu";
    SOFTMAX_CU = "softmax.cu";
}

/// PTX of the shipped kernels.
pub mod ptx {
    files! {
        COHERENCE_MOMENTS_PTX = "ptx/coherence_moments.ptx";
        COHERENCE_NEIGHBOUR_SUM_PTX = "ptx/coherence_neighbour_sum.ptx";
        FIELD_PTX = "ptx/field.ptx";
        PHI_PATTERN_PTX = "ptx/phi_pattern.ptx";
    }
}
