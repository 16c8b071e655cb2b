//! Which form of a kernel runs in place of its bytecode.

use crate::ahead::Compiled;
use crate::kernel::Kernel;

/// The form of a kernel that was compiled ahead and runs on the CPU: the one of [`Kernel::with_ahead`], if it takes the kernel's bindings. `None`
/// where the executor runs the bytecode.
#[must_use]
pub fn compiled_ahead(kernel: &Kernel) -> Option<&'static Compiled> {
    let compiled = kernel.compiled_ahead()?;
    let program = kernel.program().ok()?;
    compiled.fits(program.workgroup_size(), program.bindings()).then_some(compiled)
}
