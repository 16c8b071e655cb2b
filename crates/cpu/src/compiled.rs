//! Which form of a kernel runs in place of its bytecode: the one that came with it, or the library's own for the same text.

use crate::ahead::Compiled;
use crate::kernel::Kernel;

/// The form of a kernel that was compiled ahead and runs on the CPU: the one of [`Kernel::with_ahead`], else the library's own, which is
/// found by the fingerprint of text, entry point and overrides (with the feature `ahead-kernels`). `None` where the executor runs the
/// bytecode.
#[must_use]
pub fn compiled_ahead(kernel: &Kernel) -> Option<&'static Compiled> {
    if kernel.is_bytecode_only() {
        return None;
    }
    let program = kernel.program().ok()?;
    let compiled = kernel.compiled_ahead().or_else(|| own(kernel))?;
    compiled.fits(program.workgroup_size(), program.bindings()).then_some(compiled)
}

#[cfg(feature = "ahead-kernels")]
fn own(kernel: &Kernel) -> Option<&'static Compiled> {
    let fingerprint = kernel.fingerprint(&[]).ok()?;
    cantus_cpu_kernels::KERNELS.iter().find(|compiled| compiled.fingerprint == fingerprint).copied()
}

#[cfg(not(feature = "ahead-kernels"))]
fn own(_: &Kernel) -> Option<&'static Compiled> {
    None
}
