//! Links one shipped kernel with what it imports from `shaders/lib`, as an app's kernels are linked. Does not parse or check the result as
//! WGSL: that is naga's business.

use std::path::Path;

use cantus::link::Linker;

/// A result whose error may be: a missing file, an unknown import, an unknown feature.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The folder of what shaders import.
pub const LIBRARY: &str = "lib";

/// The features that a shader may ask for with `@if`; any other name in a shader or in a call is an error.
pub const FEATURES: &[&str] = &["native_math"];

/// Returns plain WGSL of the kernel `shaders_dir/<kernel>.wgsl` (`kernel` as in `field/phi_pattern`): the file whole, and what it reaches of
/// the files that it imports.
///
/// The same files and features give the same text.
///
/// # Errors
/// If a file is missing, an import names nothing, or a feature is unknown.
pub fn link(shaders_dir: &Path, kernel: &str, features: &[&str]) -> Result<String> {
    if let Some(unknown) = features.iter().find(|feature| !FEATURES.contains(feature)) {
        return Err(unknown_feature(unknown));
    }
    let mut linker = Linker::new();
    for feature in FEATURES {
        linker = linker.feature(feature, features.contains(feature));
    }
    // By their names below the folder, so that the text is the same wherever the folder is.
    for entry in std::fs::read_dir(shaders_dir.join(LIBRARY))? {
        let path = entry?.path();
        let module = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let file = format!("{LIBRARY}/{module}.wgsl");
        linker = linker.module(&format!("package::{LIBRARY}::{module}"), &file, &std::fs::read_to_string(&path)?);
    }
    let file = format!("{kernel}.wgsl");
    let text = std::fs::read_to_string(shaders_dir.join(&file)).map_err(|error| format!("{file}: {error}"))?;
    let linked = linker.link(&file, &text)?;
    match linked.features().find(|feature| !FEATURES.contains(feature)) {
        Some(unknown) => Err(unknown_feature(unknown)),
        None => Ok(format!("{}\n", linked.text().trim())),
    }
}

fn unknown_feature(name: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("no shader knows the feature `{name}`; there is: {}", FEATURES.join(", ")).into()
}
