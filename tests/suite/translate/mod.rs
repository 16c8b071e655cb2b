//! What the translator writes: snapshots of a dozen kernels in each language, and its refusals.

mod refusals;
mod shape;
mod snapshots;

use cantus::Kernel;
use cantus::translate::{Dialect, OpenClFeatures, Options, Translation};

const DIALECTS: [(Dialect, &str); 4] =
    [(Dialect::Cuda, "cuda"), (Dialect::Hip, "hip"), (Dialect::OpenCl, "opencl"), (Dialect::Host, "host")];

/// Everything that a device may have.
const OPTIONS: Options = Options {
    bound_loops: false,
    uniforms_by_value: true,
    opencl: OpenClFeatures { fp16: true, fp64: true, int64_atomics: true, subgroups: true },
};

fn translate(wgsl: &str, dialect: Dialect, options: &Options) -> cantus::Result<Translation> {
    Kernel::from_wgsl(wgsl)?.translate(dialect, options)
}
