//! Checks the kernels and writes their types.

fn main() -> Result<(), cantus_build::Error> {
    cantus_build::kernels("shaders/*.wgsl")
}
