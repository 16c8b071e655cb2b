//! PTX of the shipped kernels, made when the library was built, for systems without NVRTC.
//!
//! Each file's first line names a hash of the source that it was compiled from: a kernel is found by its translation, and a stale file
//! by its hash alone. `cargo xtask ptx` writes them.

/// The files, one for each shipped kernel.
static FILES: &[&str] = &[
    cantus_cuda_kernels::ptx::COHERENCE_MOMENTS_PTX,
    cantus_cuda_kernels::ptx::COHERENCE_NEIGHBOUR_SUM_PTX,
    cantus_cuda_kernels::ptx::FIELD_PTX,
    cantus_cuda_kernels::ptx::PHI_PATTERN_PTX,
];

/// The PTX that was compiled from this source.
pub(super) fn find(source: &str) -> Option<&'static str> {
    let first = source_line(source);
    FILES.iter().copied().find(|file| file.lines().next() == Some(&first))
}

/// The first line of the PTX that is compiled from this source: a comment with its 64-bit FNV-1a hash.
#[must_use]
pub fn source_line(source: &str) -> String {
    format!("// source {:016x}", crate::fnv::fnv(source.as_bytes()))
}
