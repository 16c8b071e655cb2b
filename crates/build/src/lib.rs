//! WGSL becomes Rust in an app's build script: kernels with types ([`kernels()`]), and code for the plain CPU beside every GPU ([`ahead()`]).
//!
//! # Kernels with types
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), cantus_build::Error> {
//!     cantus_build::kernels("shaders/*.wgsl")
//! }
//! ```
//!
//! Every file is linked with what it imports, checked and reflected. `shaders/blur.wgsl` with an entry point `blur` becomes a function and the
//! structure of its bindings:
//!
//! ```ignore
//! mod kernels {
//!     include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
//! }
//!
//! let image = TensorOf::new(&engine, &pixels)?;
//! let blurred = TensorOf::zeros(&engine, pixels.len())?;
//! kernels::blur(&engine, kernels::Blur { image: &image, radius: 3, out: &blurred }).invocations(pixels.len()).run()?;
//! ```
//!
//! - A binding that is missing, of another type, or gone from the WGSL is rustc's error. A mistake in the WGSL is one too, with its own file, line and
//!   column.
//! - Storage takes `cantus::typed::TensorOf<T>`: of numbers, `[f32; 2]` for `vec2f`, and the structures that are written beside it, `#[repr(C)]` in
//!   WGSL's layout. Uniforms are values. What has no such type (a structure that ends in an array of any length) takes a `Tensor` of its bytes.
//! - Overrides are `BlurOverrides`: `kernels::blur_with(&engine, &BlurOverrides { .. }.kernel()?, …)`.
//! - The app needs no WGSL front end (`cantus` without its feature `wgsl`), except for textures and other overrides.
//! - An entry point `main`, and what several files have, goes by its file's name.
//!
//! `examples/typed` is a whole app. The same reflection gives TypeScript and Python their types: `cantus compile KERNEL --types ts`.
//!
//! # Kernels compiled ahead
//!
//! The build script names the shaders:
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), cantus_build::Error> {
//!     // SAFETY: no invocation writes what another one reads or writes without an atomic or a barrier between.
//!     unsafe { cantus_build::ahead("shaders/*.wgsl") }
//! }
//! ```
//!
//! ```toml
//! [dependencies]
//! cantus = "0.1"
//!
//! [build-dependencies]
//! cantus-build = "0.1"
//! ```
//!
//! And the app has a module for each file, `shaders/blur.wgsl` being `blur`:
//!
//! ```ignore
//! mod kernels {
//!     include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
//! }
//!
//! let blur = kernels::blur::kernel()?;
//! engine.dispatch(&blur).bind("image", &image).workgroups([64, 64, 1]).run()?;
//! ```
//!
//! That kernel is as any other: GPUs take its WGSL, which is prepared, so that neither a file nor naga is needed at run time; the CPU
//! runs what rustc made of it, in forms for AVX2, AVX-512 and the target's own instruction set, chosen at run time. Nothing is left to
//! the first run. `examples/ahead` is a whole app.
//!
//! - A file with several entry points is a module of modules, named as they are.
//! - Overrides are arguments of the compiled form, as far as [`rust()`] can make them so; with another value of the rest the
//!   kernel runs on the executor.
//! - What the generator refuses runs on the executor as well, and cargo shows a warning that names the construct. WGSL that is not
//!   valid ends the build with naga's report.
//! - Both crates must be of one version.

mod declare;
mod generator;
mod kernels;
mod rust;

pub use declare::{python, typescript};
pub use generator::rust;
#[doc(hidden)]
pub use generator::rust_within;
pub use kernels::Kernels;

use std::path::{Path, PathBuf};
use std::{env, fmt, fs};

use cantus_kernel::Kernel;
use cantus_link::Linker;

/// The reason why shaders were not compiled. `Debug` prints the same text, because a build script's `main` prints that.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a pattern.
    #[error("the pattern {pattern} is not valid: {reason}")]
    Pattern {
        /// The pattern, as given.
        pattern: String,
        /// The reason why it is refused.
        reason: String,
    },
    /// No file matches the name.
    #[error("no file matches {pattern} in {folder} (patterns are relative to the package's folder)")]
    NoFile {
        /// The pattern, as given.
        pattern: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// Two modules would have one name.
    #[error("{first} and {second} would both be the module {name}: rename one")]
    SameName {
        /// The module.
        name: String,
        /// The file that has it.
        first: PathBuf,
        /// The file that would have it too.
        second: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// WGSL that is no kernel: naga's report, with the place.
    #[error("{0}")]
    Kernel(cantus_base::error::Error),
    /// Outside of a build script.
    #[error("{0} is not set: this runs in build.rs (elsewhere: cantus_build::write)")]
    NoCargo(&'static str),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes `OUT_DIR/kernels.rs` from the shaders that match a pattern (`*`, `**`, `?`, `[…]`; relative to the package), and tells Cargo when to
/// run the build script again.
///
/// # Errors
/// If no file matches, two files would be the same module, WGSL is invalid, or a file cannot be read or written.
///
/// # Safety
/// No kernel may have a data race. Under the executor a race gives some value; in code that rustc compiled it is undefined behaviour.
pub unsafe fn ahead(pattern: &str) -> Result<(), Error> {
    let variable = |name| env::var_os(name).map(PathBuf::from).ok_or(Error::NoCargo(name));
    let (root, out) = (variable("CARGO_MANIFEST_DIR")?, variable("OUT_DIR")?);
    // SAFETY: no kernel has a data race (this function's contract).
    let written = unsafe { write(&root, &[pattern], &out) }?;
    // A folder counts as changed when a file is added or removed.
    for path in written.files.iter().flat_map(|file| [Some(file.as_path()), file.parent()]).flatten() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    for left in &written.left_to_the_executor {
        println!("cargo::warning={left}");
    }
    Ok(())
}

/// Writes `OUT_DIR/kernels.rs`: a function and types for each kernel that matches a pattern (relative to the package). See [`Kernels`].
///
/// # Errors
/// As [`Kernels::build`].
pub fn kernels(pattern: &str) -> Result<(), Error> {
    Kernels::new(pattern).build()
}

/// The outcome of [`write()`] or [`Kernels::write`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Written {
    /// The shaders, in order.
    pub files: Vec<PathBuf>,
    /// A sentence for each kernel without a compiled form.
    pub left_to_the_executor: Vec<String>,
}

/// Writes `kernels.rs`, and the files that it includes, into `out`, from the shaders that match patterns relative to `root`: [`ahead`] for tools.
///
/// # Errors
/// As [`ahead`].
///
/// # Safety
/// As [`ahead`].
pub unsafe fn write(root: &Path, patterns: &[&str], out: &Path) -> Result<Written, Error> {
    let mut files = Vec::new();
    for pattern in patterns {
        files.extend(named(root, pattern)?);
    }
    files.sort();
    files.dedup();
    let mut left = Vec::new();
    let mut modules: Vec<(String, &Path)> = Vec::new();
    let mut text = "// @generated by cantus-build. Do not edit: change the WGSL.\n".to_owned();
    for file in &files {
        let name = identifier(&file.file_stem().unwrap_or_default().to_string_lossy());
        if let Some((_, first)) = modules.iter().find(|(known, _)| *known == name) {
            return Err(Error::SameName { name, first: (*first).to_owned(), second: file.clone() });
        }
        let shown = file.strip_prefix(root).unwrap_or(file).display().to_string().replace('\\', "/");
        let wgsl = fs::read_to_string(file).map_err(|source| Error::File { path: file.clone(), source })?;
        let whole = if Linker::is_needed(&wgsl) {
            Kernel::linked_file(&Linker::new(), file)
        } else {
            Kernel::from_named_wgsl(&shown, &wgsl)
        };
        let whole = whole.map_err(Error::Kernel)?;
        let entries = whole.entry_points().map_err(Error::Kernel)?;
        let mut parts = String::new();
        for entry in &entries {
            let kernel = whole.with_entry_point(entry).map_err(Error::Kernel)?;
            let stem = if entries.len() == 1 { name.clone() } else { format!("{name}.{entry}") };
            let part = module(&kernel, &shown, out, &format!("{stem}.kernel"), &mut left)?;
            if entries.len() == 1 {
                parts = part;
            } else {
                parts += &format!("/// The entry point `{entry}`.\npub mod {} {{\n{part}}}\n", identifier(entry));
            }
        }
        // Not every kernel is used in every build of an app.
        let allowed = "#[allow(dead_code, reason = \"generated\")]";
        text += &format!("\n/// `{shown}`, compiled ahead.\n{allowed}\npub mod {name} {{\n{parts}}}\n");
        modules.push((name, file));
    }
    save(&out.join("kernels.rs"), text.as_bytes())?;
    Ok(Written { files, left_to_the_executor: left })
}

/// One entry point: its compiled form, and the function that gives the kernel with it.
fn module(kernel: &Kernel, shown: &str, out: &Path, prepared: &str, left: &mut Vec<String>) -> Result<String, Error> {
    save(&out.join(prepared), &kernel.prepare().map_err(Error::Kernel)?)?;
    let bytes = format!("include_bytes!({prepared:?})");
    match rust(kernel, shown) {
        Ok(code) => Ok(format!(
            "mod compiled {{\n{code}}}\n\n\
             /// The kernel; the CPU runs the form that was compiled ahead.\n///\n\
             /// # Errors\n/// When cantus is of another version than cantus-build.\n\
             #[allow(unsafe_code, reason = \"generated\")]\n\
             pub fn kernel() -> ::cantus::Result<::cantus::Kernel> {{\n    \
             let kernel = ::cantus::Kernel::from_prepared({bytes})?;\n    \
             // SAFETY: both were written together, and the build script promised that there is no race.\n    \
             unsafe {{ kernel.with_ahead(&compiled::KERNEL) }}\n}}\n"
        )),
        Err(cantus_base::error::Error::Unsupported { construct, .. }) => {
            let name = kernel.name();
            left.push(format!("{shown}: {name} is left to the executor on the CPU: {construct}"));
            Ok(format!(
                "/// The kernel; the CPU runs it on the executor, as it could not be compiled ahead.\n///\n\
                 /// # Errors\n/// When cantus is of another version than cantus-build.\n\
                 pub fn kernel() -> ::cantus::Result<::cantus::Kernel> {{\n    \
                 ::cantus::Kernel::from_prepared({bytes})\n}}\n"
            ))
        }
        Err(error) => Err(Error::Kernel(error)),
    }
}

fn named(root: &Path, pattern: &str) -> Result<Vec<PathBuf>, Error> {
    let fault = |reason: String| Error::Pattern { pattern: pattern.to_owned(), reason };
    let folder = glob::Pattern::escape(&root.to_string_lossy());
    let paths = glob::glob(&format!("{folder}/{pattern}")).map_err(|error| fault(error.to_string()))?;
    let files: Vec<PathBuf> = paths
        .collect::<Result<_, _>>()
        .map_err(|error| Error::File { path: error.path().to_owned(), source: error.into() })?;
    if files.is_empty() {
        return Err(Error::NoFile { pattern: pattern.to_owned(), folder: root.to_owned() });
    }
    Ok(files)
}

/// A name that Rust takes: `box-blur.2` becomes `box_blur_2`, and `match` becomes `match_`.
fn identifier(name: &str) -> String {
    const KEYWORDS: &str = " abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if \
        impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try type typeof unsafe \
        unsized use virtual where while yield Self _ ";
    let plain = |letter: char| if letter.is_alphabetic() || letter.is_ascii_digit() { letter } else { '_' };
    let mut made: String = name.chars().map(plain).collect();
    if made.chars().next().is_none_or(|first| first.is_ascii_digit()) {
        made.insert(0, '_');
    }
    if KEYWORDS.contains(&format!(" {made} ")) {
        made.push('_');
    }
    made
}

/// Files that are as they should be are not touched, so that nothing is compiled again for them.
fn save(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).map_err(|source| Error::File { path: path.to_owned(), source })
}
