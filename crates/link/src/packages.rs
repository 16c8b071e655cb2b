//! Finds modules: among those given as text, in the library, and in folders. `link` resolves paths through it: modules given as text come before the
//! library, and folders last. Ids are small numbers, so two ways to the same package are one. Files that were read are noted, for build scripts to watch.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Error;
use crate::{Linker, Origin, library};

/// The name of the library's package.
pub(crate) const LIBRARY: &str = "cantus";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct PackageId(usize);

impl PackageId {
    /// The kernel's own package.
    pub(crate) const ROOT: Self = Self(0);
}

pub(crate) enum Package {
    /// Modules given as text, by the first word of their paths.
    Given(String),
    Library,
    #[cfg(feature = "files")]
    Folder(crate::files::Folder),
}

pub(crate) struct Packages<'l> {
    linker: &'l Linker,
    packages: Vec<Package>,
    /// Dependencies by package and by the name that they have there.
    dependencies: BTreeMap<(usize, String), Option<PackageId>>,
    files: Vec<PathBuf>,
}

impl<'l> Packages<'l> {
    pub(crate) fn new(linker: &'l Linker, root: Package) -> Self {
        Self { linker, packages: vec![root], dependencies: BTreeMap::new(), files: Vec::new() }
    }

    pub(crate) fn note(&mut self, file: PathBuf) {
        if !self.files.contains(&file) {
            self.files.push(file);
        }
    }

    pub(crate) fn take_files(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.files)
    }

    /// A module's text, where there is such a module.
    pub(crate) fn text(&mut self, package: PackageId, path: &[String]) -> Result<Option<Origin>, Error> {
        let first = match self.packages.get(package.0) {
            Some(Package::Given(name)) => Some(name.as_str()),
            _ if package == PackageId::ROOT => Some("package"),
            _ => None,
        };
        if let Some(first) = first {
            let key: Vec<&str> = std::iter::once(first).chain(path.iter().map(String::as_str)).collect();
            if let Some(origin) = self.linker.modules.get(&key.join("::")) {
                return Ok(Some(origin.clone()));
            }
        }
        match self.packages.get(package.0) {
            // The sources of the shipped kernels have `lib` for a folder.
            Some(Package::Library) => Ok(match path.strip_prefix(&["lib".to_owned()][..]).unwrap_or(path) {
                [name] => library()
                    .iter()
                    .find(|module| module.name == name)
                    .map(|module| Origin { file: format!("{LIBRARY}::{name}").into(), text: module.text.into() }),
                _ => None,
            }),
            #[cfg(feature = "files")]
            Some(Package::Folder(folder)) => match folder.read(path)? {
                Some((file, origin)) => {
                    self.note(file);
                    Ok(Some(origin))
                }
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Returns whether a path is a folder of modules.
    pub(crate) fn is_folder(&self, package: PackageId, path: &[String]) -> bool {
        match self.packages.get(package.0) {
            Some(Package::Library) => path.is_empty(),
            #[cfg(feature = "files")]
            Some(Package::Folder(folder)) => folder.has(path),
            _ => {
                let first = match self.packages.get(package.0) {
                    Some(Package::Given(name)) => name.as_str(),
                    _ => "package",
                };
                let key: Vec<&str> = std::iter::once(first).chain(path.iter().map(String::as_str)).collect();
                let prefix = format!("{}::", key.join("::"));
                self.linker.modules.keys().any(|known| known.starts_with(&prefix))
            }
        }
    }

    /// The package that a package knows by a name.
    pub(crate) fn dependency(&mut self, package: PackageId, name: &str) -> Result<Option<PackageId>, Error> {
        if let Some(known) = self.dependencies.get(&(package.0, name.to_owned())) {
            return Ok(*known);
        }
        let prefix = format!("{name}::");
        let is_given = self.linker.modules.keys().any(|known| known == name || known.starts_with(&prefix));
        let found = if name == LIBRARY {
            Some(Package::Library)
        } else if is_given {
            Some(Package::Given(name.to_owned()))
        } else {
            self.folder_of(package, name)?
        };
        let found = found.map(|found| self.numbered(found));
        self.dependencies.insert((package.0, name.to_owned()), found);
        Ok(found)
    }

    fn numbered(&mut self, found: Package) -> PackageId {
        let same = |known: &Package| match (known, &found) {
            (Package::Library, Package::Library) => true,
            (Package::Given(known), Package::Given(found)) => known == found,
            #[cfg(feature = "files")]
            (Package::Folder(known), Package::Folder(found)) => known.is_same(found),
            _ => false,
        };
        PackageId(self.packages.iter().position(same).unwrap_or_else(|| {
            self.packages.push(found);
            self.packages.len() - 1
        }))
    }

    #[cfg(feature = "files")]
    fn folder_of(&mut self, package: PackageId, name: &str) -> Result<Option<Package>, Error> {
        if let Some(folder) = self.linker.packages.get(name) {
            return crate::files::Folder::package(folder).map(|folder| Some(Package::Folder(folder)));
        }
        match self.packages.get(package.0) {
            Some(Package::Folder(folder)) => Ok(folder.dependency(name, &self.linker.cargo)?.map(Package::Folder)),
            _ => Ok(None),
        }
    }

    #[cfg(not(feature = "files"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature `files`")]
    fn folder_of(&mut self, _: PackageId, _: &str) -> Result<Option<Package>, Error> {
        Ok(None)
    }

    /// Describes where a package was looked for, for errors.
    pub(crate) fn where_looked(&self, package: PackageId, name: &str) -> String {
        match self.packages.get(package.0) {
            #[cfg(feature = "files")]
            Some(Package::Folder(folder)) => folder.where_looked(name),
            _ => format!("neither `{name}::…` nor a folder was given to the linker"),
        }
    }

    /// Describes where a module was looked for, for errors.
    pub(crate) fn looked_for(&self, package: PackageId, path: &[String]) -> String {
        match self.packages.get(package.0) {
            Some(Package::Library) => {
                let names: Vec<&str> = library().iter().map(|module| module.name).collect();
                format!("the library has {}", names.join(", "))
            }
            #[cfg(feature = "files")]
            Some(Package::Folder(folder)) => folder.looked_for(path),
            _ => {
                let mut known: Vec<&str> = self.linker.modules.keys().map(String::as_str).collect();
                known.truncate(12);
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                format!("`{}` is not among the modules that were given ({known})", path.join("::"))
            }
        }
    }
}
