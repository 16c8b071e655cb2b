//! Compiles the benches' kernels ahead.

fn main() -> Result<(), cantus_build::Error> {
    // SAFETY: no invocation reads or writes what another one writes, atomics and memory behind barriers apart.
    unsafe { cantus_build::ahead("kernels/*.wgsl") }
}
