//! What this library's tests and tools look into, behind the internal feature `_test`. Not for apps; it changes without notice.

use crate::ahead::Compiled;
use crate::spmd::{Bytecode, Launch, Stopped};

/// The kernels that expressions were put together as so far, by text.
#[cfg(feature = "wgsl")]
#[must_use]
pub fn composed() -> Vec<crate::Kernel> {
    crate::ops::composed()
}

/// Forgets them.
#[cfg(feature = "wgsl")]
pub fn forget_composed() {
    crate::ops::forget_composed();
}

/// From now on each expression that can be evaluated again on an engine's devices is evaluated twice, and what the second time gives counts.
#[cfg(feature = "wgsl")]
pub fn evaluate_twice(engine: &crate::Engine) {
    crate::ops::evaluate_twice(engine);
}

/// As [`Kernel::ahead`](crate::Kernel::ahead), for a module that finds `math` and `rt` under `root`; `bare` leaves the static out.
///
/// # Errors
/// As [`Kernel::ahead`](crate::Kernel::ahead).
#[cfg(feature = "ahead")]
pub fn ahead_within(kernel: &crate::Kernel, source: &str, root: &str, bare: bool) -> crate::Result<String> {
    kernel.ahead_within(source, root, bare)
}

/// The values of overrides as a compiled form takes them.
///
/// # Errors
/// As [`Kernel::reflection`](crate::Kernel::reflection), and [`Error::Override`](crate::Error::Override) where one has no value.
pub fn ahead_arguments(kernel: &crate::Kernel, names: &[&str]) -> crate::Result<Vec<u32>> {
    kernel.ahead_arguments(names)
}

/// Runs a compiled kernel over memory, as [`execute`](crate::spmd::execute) runs bytecode.
///
/// # Errors
/// As [`execute`](crate::spmd::execute).
///
/// # Safety
/// As [`Kernel::with_ahead`](crate::Kernel::with_ahead), `bytecode` being the kernel's.
pub unsafe fn execute_ahead(
    compiled: &Compiled,
    bytecode: &Bytecode,
    arguments: &[u32],
    launch: &Launch<'_>,
) -> Result<(), Stopped> {
    // SAFETY: the caller's promise.
    unsafe { crate::ahead::execute(compiled, bytecode, arguments, launch) }
}
