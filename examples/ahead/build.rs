//! Compiles the kernels ahead.

fn main() -> Result<(), cantus_build::Error> {
    // SAFETY: each invocation of `heat` writes a place of its own, in a buffer that none reads.
    unsafe { cantus_build::ahead("shaders/*.wgsl") }
}
