//! Links one shipped kernel with what it imports from `shaders/lib`, by WESL. Does not parse or check the result as
//! WGSL: that is naga's business.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use wesl::syntax::{GlobalDeclaration, ModulePath, PathOrigin};
use wesl::{Feature, ManglerKind, Wesl};

/// A result whose error may be: a missing file, a syntax error, an unknown import, a name declared twice.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The features that a shader may ask for with `@if`; any other name in a shader or in a call is an error.
pub const FEATURES: &[&str] = &["native_math"];

/// Plain WGSL of the kernel `shaders_dir/<kernel>.wgsl` (`kernel` as in `field/phi_pattern`): imports resolved, names
/// kept, everything that the entry points don't reach left out. The kernel file's leading comment stays on top.
///
/// The same files and features give the same text.
///
/// # Errors
/// If a file is missing or is not WESL, a feature is unknown, or two linked modules declare the same name (names are
/// not mangled, so that the result reads like the sources).
pub fn link(shaders_dir: &Path, kernel: &str, features: &[&str]) -> Result<String> {
    link_as(shaders_dir, kernel, features, false)
}

/// As [`link`], of a file without an entry point, all of whose own declarations stay.
///
/// # Errors
/// As [`link`].
pub fn link_library(shaders_dir: &Path, library: &str, features: &[&str]) -> Result<String> {
    link_as(shaders_dir, library, features, true)
}

fn link_as(shaders_dir: &Path, kernel: &str, features: &[&str], keep_root: bool) -> Result<String> {
    let mut wesl = Wesl::new(shaders_dir);
    wesl.set_mangler(ManglerKind::None).set_missing_feature_behavior(Feature::Error);
    if keep_root {
        let text = std::fs::read_to_string(shaders_dir.join(kernel).with_extension("wgsl"))?;
        let names = text.lines().filter_map(|line| line.strip_prefix("fn ")?.split('(').next());
        wesl.keep_declarations(names.map(str::to_owned).collect());
    }
    for feature in FEATURES {
        wesl.set_feature(feature, features.contains(feature));
    }
    if let Some(unknown) = features.iter().find(|feature| !FEATURES.contains(feature)) {
        return Err(format!("no shader knows the feature `{unknown}`; there is: {}", FEATURES.join(", ")).into());
    }
    let root = ModulePath::new(PathOrigin::Absolute, kernel.split('/').map(String::from).collect());
    let linked = wesl.compile(&root).map_err(|error| format!("{kernel}: {error}"))?;

    let mut names = HashSet::new();
    let declared = linked.syntax.global_declarations.iter().filter_map(|declaration| name_of(declaration));
    if let Some(twice) = declared.into_iter().find(|name| !names.insert(name.clone())) {
        return Err(format!("{kernel}: `{twice}` is declared by two of the linked modules; rename one").into());
    }

    let source = std::fs::read_to_string(shaders_dir.join(kernel).with_extension("wgsl"))?;
    let mut text = String::new();
    for line in source.lines().take_while(|line| line.starts_with("//")) {
        writeln!(text, "{line}")?;
    }
    write!(text, "\n{}\n", linked.syntax.to_string().trim())?;
    Ok(text)
}

fn name_of(declaration: &GlobalDeclaration) -> Option<String> {
    let ident = match declaration {
        GlobalDeclaration::Declaration(declaration) => &declaration.ident,
        GlobalDeclaration::TypeAlias(alias) => &alias.ident,
        GlobalDeclaration::Struct(structure) => &structure.ident,
        GlobalDeclaration::Function(function) => &function.ident,
        GlobalDeclaration::Void | GlobalDeclaration::ConstAssert(_) => return None,
    };
    Some(ident.name().clone())
}
