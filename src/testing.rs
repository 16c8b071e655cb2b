//! Internals for this library's tests and tools, behind the internal feature `_test`. Not for apps; it changes without notice.

use crate::ahead::Compiled;
pub use crate::spmd::changed::{Choices, change};
use crate::spmd::{Bytecode, Launch, Stopped};

/// Runs work on one deep stack, on which all that wants one stays: a thread for each kernel takes longer than a small kernel itself.
///
/// # Errors
/// The text of a panic, and why there is no thread.
#[cfg(feature = "wgsl")]
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    cantus_base::deep_stack::run("cantus-deep", work).map_err(|failure| match failure {
        cantus_base::deep_stack::Failure::NoThread(error) => error.to_string(),
        cantus_base::deep_stack::Failure::Panic(text) => text,
    })
}

/// Returns the kernels that expressions were put together as so far, by text.
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

/// Evaluates each repeatable expression of the engine twice from now on, and uses the second result.
#[cfg(feature = "wgsl")]
pub fn evaluate_twice(engine: &crate::Engine) {
    crate::ops::evaluate_twice(engine);
}

/// Plans the engine's evaluations as for a discrete GPU from now on.
#[cfg(feature = "wgsl")]
pub fn plan_as_gpu(engine: &crate::Engine) {
    crate::ops::plan_as_gpu(engine);
}

/// Returns how many kernels the engine's first device has compiled before a dispatch needed them, and how many when one did.
#[cfg(feature = "wgsl")]
#[must_use]
pub fn compiled(engine: &crate::Engine) -> [usize; 2] {
    crate::engine::compiled(engine)
}

/// Returns the values of overrides as a compiled form takes them.
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
    // SAFETY: `compiled` was generated from the kernel of this bytecode, which has no data race (this function's contract).
    unsafe { crate::ahead::execute(compiled, bytecode, arguments, launch) }
}

/// Reads a file of the cache folder, by device and name, after it was written as it was read before.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn recall(
    folder: &std::path::Path,
    name: &str,
) -> std::collections::BTreeMap<String, std::collections::BTreeMap<String, String>> {
    use crate::engine::remembered;
    remembered::remember(folder, name, &remembered::recall(folder, name));
    remembered::recall(folder, name)
}

/// Returns the text of a file of the cache folder, whose checksum fits these lines.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn sealed(lines: &str) -> String {
    crate::engine::remembered::sealed(lines)
}

/// Returns the compiled code that is kept in a cache folder for a source; `code`, where that is given, is put there before.
#[cfg(all(any(feature = "opencl", feature = "cuda", feature = "hip"), not(target_arch = "wasm32")))]
#[must_use]
pub fn kept_code(folder: &std::path::Path, source: &str, code: Option<&[u8]>) -> Option<Vec<u8>> {
    crate::backend::kept_code(folder, source, code)
}

/// Returns a file of Vulkan's pipelines with these data, for a device of vendor 0x10005.
#[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
#[must_use]
pub fn pipelines(data: &[u8]) -> Vec<u8> {
    crate::backend::vulkan::cache_file::pack(data)
}

/// Returns the data of such a file, if all of it is right.
#[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
#[must_use]
pub fn pipelines_of(file: &[u8]) -> Option<&[u8]> {
    crate::backend::vulkan::cache_file::unpack(file)
}

/// Returns the form of a kernel for devices whose dimensions hold few workgroups, and for wgpu: naga takes both, and the language's
/// writer the first.
///
/// # Errors
/// As [`Kernel::translate`](crate::Kernel::translate), and what naga says of the modules.
#[cfg(all(feature = "wgpu", any(feature = "cuda", feature = "hip"), not(target_arch = "wasm32")))]
pub fn folded(kernel: &crate::Kernel, dialect: crate::translate::Dialect) -> crate::Result<()> {
    let check = |module: &naga::Module| {
        let all = naga::valid::Capabilities::all();
        let valid = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), all)
            .subgroup_stages(naga::valid::ShaderStages::all())
            .subgroup_operations(naga::valid::SubgroupOperationSet::all())
            .validate(module);
        valid.map(drop).map_err(|error| crate::Error::Unsupported {
            kernel: kernel.label().to_string(),
            device: "naga".to_owned(),
            construct: "what was rewritten".to_owned(),
            report: error.emit_to_string(""),
        })
    };
    let reflection = kernel.reflection()?;
    let mut module = kernel.resolved()?.module().clone();
    crate::kernel::amend::components::settle(&mut module);
    crate::kernel::amend::shifts::settle(&mut module);
    check(&module)?;
    let group = reflection.bindings.iter().map(|binding| binding.group + 1).max().unwrap_or(0);
    crate::kernel::fold::fold(kernel, group, 0)?;
    let options = crate::translate::Options::new().bound_loops(true);
    kernel.translate_folded(dialect, &options).map(drop)
}
