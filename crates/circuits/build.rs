//! Compiles the kernels ahead.

fn main() -> Result<(), cantus_build::Error> {
    // SAFETY: each invocation writes amplitudes of its own, which no other one reads; sums meet at barriers.
    unsafe { cantus_build::ahead("shaders/*.wgsl") }
}
