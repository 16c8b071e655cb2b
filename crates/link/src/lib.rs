//! WGSL in several files, linked to one text: imports, conditions and packages in [WESL](https://wesl-lang.dev)'s syntax.
//!
//! ```
//! use cantus_link::Linker;
//!
//! let noise = "
//!     fn hash(x: u32) -> u32 { return (x ^ (x >> 15u)) * 0x2c1b3c6du; }
//!     @if(signed) fn value(x: u32) -> f32 { return f32(bitcast<i32>(hash(x))) * 0x1p-31; }
//!     @else fn value(x: u32) -> f32 { return f32(hash(x)) * 0x1p-32; }
//! ";
//! let linker = Linker::new().module("package::noise", "noise.wgsl", noise).feature("signed", false);
//! let linked = linker.link("fill.wgsl", "
//!     import package::noise::value;
//!     @group(0) @binding(0) var<storage, read_write> y: array<f32>;
//!     @compute @workgroup_size(64) fn fill(@builtin(global_invocation_id) id: vec3u) { y[id.x] = value(id.x); }
//! ")?;
//! assert!(linked.text().contains("fn hash(x: u32)") && !linked.text().contains("import"));
//! # Ok::<(), cantus_link::Error>(())
//! ```
//!
//! - `import package::noise::{fbm, hash as noise_hash};` brings names of another file of the package, `import super::a::f;` of a file beside
//!   this one, `import other::a::f;` of another package, `import package::noise::*;` all of a file's. `package::noise::fbm(x)` needs no import.
//! - `@if(feature)`, `@elif(feature)` and `@else` precede imports, directives, declarations, members, parameters, cases and statements.
//! - The package `cantus` is the library ([`library`]): `import cantus::random::uniform;`.
//! - A package is a folder with a `wesl.toml` (feature `files`); other packages lie where its `[dependencies]` say, in `node_modules`, or where
//!   cargo has them. A kernel without a `wesl.toml` above it imports from its own folder.
//! - The linked text has the kernel's file whole, and of others what it reaches. An imported declaration keeps its name where no other word of
//!   the text is the same; else the name of its module comes before it.
//! - [`Origins`] is the way back: errors of the linked text name the author's file, line and column.
//!
//! It reads tokens, and checks no WGSL: that is the validator's business. `cantus` links by [`Linker`] with its feature `link`.

mod conditions;
mod error;
#[cfg(feature = "files")]
mod files;
mod lex;
mod library;
mod link;
mod module;
mod origins;
mod packages;

use std::collections::{BTreeMap, BTreeSet};
#[cfg(feature = "files")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

pub use error::Error;
pub use library::{Function, LibraryModule, library};
pub use origins::{Origin, Origins};

use link::Session;
use packages::{Package, Packages};

/// Links texts: has the features, and the places of modules.
#[derive(Debug, Default)]
pub struct Linker {
    features: BTreeMap<String, bool>,
    modules: BTreeMap<String, Origin>,
    #[cfg(feature = "files")]
    root: Option<PathBuf>,
    #[cfg(feature = "files")]
    packages: BTreeMap<String, PathBuf>,
    #[cfg(feature = "files")]
    cargo: files::Cargo,
}

impl Linker {
    /// Creates a linker without features, and without modules other than the library's and the files'.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns a feature on or off, for `@if(feature)`. Features are off by default.
    #[must_use]
    pub fn feature(mut self, name: &str, is_on: bool) -> Self {
        self.features.insert(name.to_owned(), is_on);
        self
    }

    /// Adds a module as text, under its path: `package::noise` belongs to the kernel's own package, `other::noise` to the package `other`. `file` is
    /// the name that errors show.
    #[must_use]
    pub fn module(mut self, path: &str, file: &str, text: &str) -> Self {
        self.modules.insert(path.to_owned(), Origin { file: file.into(), text: text.into() });
        self
    }

    /// Sets the folder of `package::`, instead of the one in a `wesl.toml`.
    #[cfg(feature = "files")]
    #[must_use]
    pub fn root(mut self, folder: impl AsRef<Path>) -> Self {
        self.root = Some(folder.as_ref().to_owned());
        self
    }

    /// Sets a package's folder, with or without a `wesl.toml`, instead of the one in the kernel's own.
    #[cfg(feature = "files")]
    #[must_use]
    pub fn package(mut self, name: &str, folder: impl AsRef<Path>) -> Self {
        self.packages.insert(name.to_owned(), folder.as_ref().to_owned());
        self
    }

    /// Returns whether a text has imports, paths or conditions. A text without them needs no linking.
    ///
    /// ```
    /// use cantus_link::Linker;
    /// assert!(Linker::is_needed("import package::a::f;"));
    /// assert!(!Linker::is_needed("// import nothing\nfn f() { important(); }"));
    /// assert!(Linker::is_needed("@ /* of a feature */ if(wide) const N = 4;"));
    /// assert!(!Linker::is_needed("@compute @workgroup_size(1) fn f() { if true {} }"));
    /// ```
    #[must_use]
    pub fn is_needed(text: &str) -> bool {
        // Most texts have attributes and none of these: they need no tokens.
        let may_be_condition = |at: usize| {
            let rest = text.get(at + 1..).unwrap_or_default().trim_start();
            rest.starts_with("if") || rest.starts_with("el") || rest.starts_with('/')
        };
        let has_condition = || text.match_indices('@').any(|(at, _)| may_be_condition(at));
        if !(text.contains("::") || text.contains("import") || has_condition()) {
            return false;
        }
        let Ok(tokens) = lex::tokens(text) else { return false };
        let word = |token: &lex::Token| text.get(token.start..token.end).unwrap_or_default();
        let mut before: Option<&lex::Token> = None;
        tokens.iter().any(|token| {
            let follows = before.replace(token);
            let is_first = |signs: &[u8]| follows.is_none_or(|before| signs.iter().any(|sign| before.is(*sign)));
            match token.kind {
                lex::Kind::Path => true,
                lex::Kind::Word if word(token) == "import" => is_first(b";)"),
                lex::Kind::Word if matches!(word(token), "if" | "elif" | "else") => {
                    follows.is_some_and(|before| before.is(b'@'))
                }
                _ => false,
            }
        })
    }

    /// Links a kernel's text. Its own package has the modules given as text, and the folder given as [`Linker::root`].
    ///
    /// # Errors
    /// [`Error::Text`], with file, line and column, for text that is not WESL, and for modules and names that do not exist.
    pub fn link(&self, file: &str, text: &str) -> Result<Linked, Error> {
        let origin = Origin { file: file.into(), text: text.into() };
        let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let stem = stem.split_once('.').map_or(stem, |(stem, _)| stem);
        #[cfg(feature = "files")]
        if let Some(root) = &self.root {
            let root = Package::Folder(files::Folder::plain(root));
            return self.session(root, origin, vec![stem.to_owned()], None);
        }
        self.session(Package::Given("package".to_owned()), origin, vec![stem.to_owned()], None)
    }

    /// Links a kernel's file.
    ///
    /// # Errors
    /// As [`Linker::link`]; [`Error::Unreadable`] and [`Error::Settings`] for files.
    #[cfg(feature = "files")]
    pub fn link_file(&self, path: impl AsRef<Path>) -> Result<Linked, Error> {
        let path = path.as_ref();
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Unreadable { path: shown.clone(), reason: error.to_string() })?;
        let (folder, mut module) = files::Folder::of_file(path)?;
        let folder = match &self.root {
            Some(root) => {
                let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
                if let Ok(inside) = whole(path).with_extension("").strip_prefix(whole(root)) {
                    module = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                }
                folder.with_root(root)
            }
            None => folder,
        };
        let origin = Origin { file: shown.into(), text: text.into() };
        self.session(Package::Folder(folder), origin, module, Some(path.to_owned()))
    }

    fn session(
        &self,
        root: Package,
        origin: Origin,
        path: Vec<String>,
        file: Option<PathBuf>,
    ) -> Result<Linked, Error> {
        let is_on = |name: &str| self.features.get(name).copied().unwrap_or(false);
        let mut packages = Packages::new(self, root);
        if let Some(file) = file {
            packages.note(file);
        }
        Session::new(packages, &is_on).link(origin, path)
    }
}

/// A kernel and its imports, as one text.
#[derive(Debug, Clone)]
pub struct Linked {
    text: Arc<str>,
    origins: Arc<Origins>,
    files: Vec<PathBuf>,
    features: BTreeSet<String>,
}

impl Linked {
    /// The kernel's own file, as errors show it.
    #[must_use]
    pub fn file(&self) -> &str {
        self.origins.files().first().map_or("wgsl", |origin| &origin.file)
    }

    /// Plain WGSL.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the origin of each part of the text.
    #[must_use]
    pub fn origins(&self) -> &Arc<Origins> {
        &self.origins
    }

    /// The files that were read, the kernel's own first.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The features that conditions asked for, on or off.
    pub fn features(&self) -> impl Iterator<Item = &str> {
        self.features.iter().map(String::as_str)
    }
}
