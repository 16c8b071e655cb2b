//! The translator's output: snapshots of a dozen kernels in each language, and its refusals.

mod out_of_range;
mod refusals;
mod shape;
mod snapshots;

use cantus::Kernel;
use cantus::translate::{Dialect, OpenClFeatures, Options, Translation};

const DIALECTS: [(Dialect, &str); 4] =
    [(Dialect::Cuda, "cuda"), (Dialect::Hip, "hip"), (Dialect::OpenCl, "opencl"), (Dialect::Host, "host")];

/// Everything that a device may have.
const OPTIONS: Options = Options::new().uniforms_by_value(true).opencl(OpenClFeatures::ALL);

fn translate(wgsl: &str, dialect: Dialect, options: &Options) -> cantus::Result<Translation> {
    Kernel::from_wgsl(wgsl)?.translate(dialect, options)
}
