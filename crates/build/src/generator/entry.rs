//! Turns one entry point of a kernel into Rust. Overrides that may change at each launch become arguments of the function; all others are resolved
//! first. The executor's lowering then gives the steps that the rest of this folder writes.

use std::collections::BTreeMap;

use cantus_base::error::{Error, Result};
use cantus_base::listed::Listed;
use cantus_kernel::wgsl::on_deep_stack;
use cantus_kernel::{Kernel, Resolved};

use super::arguments;
use super::file::{self, Options};

/// Returns a kernel as Rust, to be compiled ahead for the CPU: a module with a static `KERNEL` for
/// [`Kernel::with_ahead`](cantus_kernel::Kernel::with_ahead). `source` is the origin of the WGSL, for the file's first line. Not formatted.
///
/// ```
/// let kernel = cantus::Kernel::from_wgsl("
///     @group(0) @binding(0) var<storage, read_write> y: array<f32>;
///     @compute @workgroup_size(64) fn twice(@builtin(global_invocation_id) id: vec3u) { y[id.x] *= 2.0; }
/// ")?;
/// let text = cantus_build::rust(&kernel, "twice.wgsl")?;
/// assert!(text.contains("pub static KERNEL: Compiled"), "{text}");
/// # Ok::<(), cantus::Error>(())
/// ```
///
/// # Errors
/// As [`Kernel::reflection`](cantus_kernel::Kernel::reflection), and [`Error::Unsupported`] naming the construct that is left to the executor.
pub fn rust(kernel: &Kernel, source: &str) -> Result<String> {
    rust_within(kernel, source, "cantus::ahead", false)
}

/// Returns a kernel as [`rust`] does, for a module that finds `math` and `rt` under `root`; `bare` omits the static.
///
/// # Errors
/// As [`rust`].
#[doc(hidden)]
pub fn rust_within(kernel: &Kernel, source: &str, root: &str, bare: bool) -> Result<String> {
    let whole = kernel.native()?;
    on_deep_stack(kernel.file(), || {
        let arguments = arguments::find(whole);
        let parsed = arguments.parsed.as_ref().unwrap_or(whole);
        let is_fixed = |name: &str| !arguments.names.iter().any(|known| known == name);
        let fixed = kernel.overrides().iter().filter(|(name, _)| is_fixed(name));
        let fixed: BTreeMap<String, f64> = fixed.map(|(name, value)| (name.clone(), *value)).mapped();
        let resolved = Resolved::new(parsed, kernel.wanted_entry_point(), &fixed)?;
        let (module, name) = (resolved.module(), resolved.name());
        let refuse = |construct: String, report: String| Error::Unsupported {
            kernel: name.to_owned(),
            device: "the generator of Rust".to_owned(),
            construct,
            report,
        };
        // Those that this entry point uses.
        let info = resolved.info().get_entry_point(resolved.entry_point());
        let is_used = |variable: &str| {
            let mut variables = module.global_variables.iter();
            variables.any(|(handle, known)| known.name.as_deref() == Some(variable) && !info[handle].is_empty())
        };
        let pairs = arguments.names.iter().zip(&arguments.variables);
        let (names, variables): (Vec<&str>, Vec<String>) =
            pairs.filter(|(_, name)| is_used(name)).map(|(name, variable)| (name.as_str(), variable.clone())).unzip();
        let flat = cantus_spmd::flat(module, resolved.info(), resolved.entry_point(), &variables);
        let flat = flat.map_err(|unsupported| {
            let report = unsupported.span.map(|span| parsed.report(span, &unsupported.construct));
            refuse(unsupported.construct.clone(), report.unwrap_or_default())
        })?;
        let options = Options { root: root.to_owned(), source: source.to_owned(), bare };
        file::rust(&flat, name, kernel.fingerprint_of(name, &names), &names, &options)
            .map_err(|refusal| refuse(refusal.0, String::new()))
    })
}
