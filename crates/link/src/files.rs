//! Packages in folders: `wesl.toml`, and where other packages lie. `packages` asks it for modules on disk. A package's `wesl.toml` says its root and
//! dependencies; without one the kernel's folder is the package. Cargo is asked at most once, and nothing is fetched for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Origin;
use crate::error::Error;

const SETTINGS: &str = "wesl.toml";
const EXTENSIONS: [&str; 2] = ["wesl", "wgsl"];

/// A package's folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// The folder of `package::`.
    root: PathBuf,
    /// The folder of its `wesl.toml`, if it has one.
    home: Option<PathBuf>,
    dependencies: BTreeMap<String, Dependency>,
}

#[derive(Debug, Clone)]
struct Dependency {
    package: String,
    path: Option<PathBuf>,
}

impl Folder {
    /// The package of a kernel's file, and the path of its module there: that of the next `wesl.toml` above it, else the file's folder.
    pub(crate) fn of_file(file: &Path) -> Result<(Self, Vec<String>), Error> {
        let stem = || vec![file.file_stem().unwrap_or_default().to_string_lossy().into_owned()];
        let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let folder = whole.parent().unwrap_or(Path::new("/"));
        for home in folder.ancestors() {
            if home.join(SETTINGS).is_file() {
                let package = Self::package(home)?;
                let path = whole.with_extension("");
                let inside = path.strip_prefix(&package.root).ok().map(|path| {
                    path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
                });
                return Ok((package, inside.unwrap_or_else(stem)));
            }
        }
        // As it was given, for errors that show what the author knows.
        let given = file.parent().unwrap_or(Path::new(""));
        Ok((Self { root: given.to_owned(), home: None, dependencies: BTreeMap::new() }, stem()))
    }

    /// A folder of modules without settings.
    pub(crate) fn plain(root: &Path) -> Self {
        Self { root: root.to_owned(), home: None, dependencies: BTreeMap::new() }
    }

    /// The same settings, with another folder as `package::`.
    pub(crate) fn with_root(self, root: &Path) -> Self {
        Self { root: root.to_owned(), ..self }
    }

    /// The package whose `wesl.toml` lies in a folder; without one, its modules are the folder's files.
    pub(crate) fn package(home: &Path) -> Result<Self, Error> {
        let file = home.join(SETTINGS);
        let fault = |reason: String| Error::Settings { path: file.display().to_string(), reason };
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && home.is_dir() => {
                return Ok(Self::plain(home));
            }
            Err(error) => {
                return Err(Error::Unreadable { path: file.display().to_string(), reason: error.to_string() });
            }
        };
        let settings: toml::Table = text.parse().map_err(|error: toml::de::Error| fault(error.to_string()))?;
        // Editions put it into `[package]`, or beside that.
        let package = settings.get("package").and_then(|package| package.get("root"));
        let root = match package.or_else(|| settings.get("root")) {
            None => "shaders",
            Some(toml::Value::String(root)) => root,
            Some(_) => return Err(fault("`package.root` is the path of a folder, as text".to_owned())),
        };
        let mut dependencies = BTreeMap::new();
        match settings.get("dependencies") {
            None => {}
            Some(toml::Value::Table(table)) => {
                for (name, entry) in table {
                    let text = |key: &str| entry.get(key).and_then(toml::Value::as_str).map(str::to_owned);
                    if !entry.is_table() {
                        return Err(fault(format!(
                            "`dependencies.{name}` is a table such as {{ path = \"../{name}\" }}"
                        )));
                    }
                    let dependency = Dependency {
                        package: text("package").unwrap_or_else(|| name.clone()),
                        path: text("path").map(|path| home.join(path)),
                    };
                    dependencies.insert(name.clone(), dependency);
                }
            }
            Some(_) => return Err(fault("`dependencies` is a table of packages".to_owned())),
        }
        Ok(Self { root: plain_join(home, root), home: Some(home.to_owned()), dependencies })
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        whole(&self.root) == whole(&other.root)
    }

    fn stem(&self, path: &[String]) -> PathBuf {
        path.iter().fold(self.root.clone(), |folder, part| folder.join(part))
    }

    /// The text of a module, and its file. The package itself is the module of `package.wesl` or `lib.wesl`.
    pub(crate) fn read(&self, path: &[String]) -> Result<Option<(PathBuf, Origin)>, Error> {
        let stems = if path.is_empty() {
            vec![self.root.join("package"), self.root.join("lib")]
        } else {
            vec![self.stem(path)]
        };
        for stem in stems {
            for extension in EXTENSIONS {
                let mut file = stem.clone().into_os_string();
                file.push(".");
                file.push(extension);
                let file = PathBuf::from(file);
                match std::fs::read_to_string(&file) {
                    Ok(text) => {
                        let shown = shown(&file);
                        return Ok(Some((file, Origin { file: shown.into(), text: text.into() })));
                    }
                    Err(error)
                        if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                    }
                    Err(error) => {
                        return Err(Error::Unreadable { path: shown(&file), reason: error.to_string() });
                    }
                }
            }
        }
        Ok(None)
    }

    pub(crate) fn has(&self, path: &[String]) -> bool {
        self.stem(path).is_dir()
    }

    pub(crate) fn looked_for(&self, path: &[String]) -> String {
        let stem = if path.is_empty() { self.root.join("package") } else { self.stem(path) };
        let stem = shown(&stem);
        format!("neither {stem}.wesl nor {stem}.wgsl is there")
    }

    pub(crate) fn where_looked(&self, name: &str) -> String {
        let settings = match &self.home {
            Some(home) => format!("{} names none", shown(&home.join(SETTINGS))),
            None => format!("no {SETTINGS} lies above the kernel's file"),
        };
        format!("{settings}, and neither node_modules nor cargo's packages have {name} with a {SETTINGS} of its own")
    }

    /// A package that this one knows by a name: as its settings say, else by that name from `node_modules` and cargo's packages.
    pub(crate) fn dependency(&self, name: &str, cargo: &Cargo) -> Result<Option<Self>, Error> {
        let stated = self.dependencies.get(name);
        if let Some(path) = stated.and_then(|stated| stated.path.as_ref()) {
            if !path.is_dir() {
                return Err(Error::Settings {
                    path: self.home.as_ref().map(|home| shown(&home.join(SETTINGS))).unwrap_or_default(),
                    reason: format!("`dependencies.{name}`: there is no folder {}", shown(path)),
                });
            }
            return Self::package(path).map(Some);
        }
        let package = stated.map_or(name, |stated| &stated.package);
        let from = self.home.as_ref().unwrap_or(&self.root);
        let from = std::path::absolute(from).unwrap_or_else(|_| from.clone());
        let dashed = package.replace('_', "-");
        for folder in from.ancestors() {
            for name in [package, &dashed] {
                let there = folder.join("node_modules").join(name);
                if there.join(SETTINGS).is_file() {
                    return Self::package(&there).map(Some);
                }
            }
        }
        match cargo.folder(&from, package) {
            Some(there) => Self::package(&there).map(Some),
            None => Ok(None),
        }
    }
}

/// `./shaders` below a folder, without the point.
fn plain_join(folder: &Path, path: &str) -> PathBuf {
    let parts = Path::new(path).components().filter(|part| *part != std::path::Component::CurDir);
    parts.fold(folder.to_owned(), |folder, part| folder.join(part))
}

/// A path for errors: from the current folder on where it lies below that.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_ref().and_then(|here| path.strip_prefix(here).ok());
    below.unwrap_or(path).display().to_string().replace('\\', "/")
}

/// The packages of cargo's that have a `wesl.toml`, asked for once.
#[derive(Debug, Default)]
pub(crate) struct Cargo(OnceLock<BTreeMap<String, PathBuf>>);

impl Cargo {
    fn folder(&self, from: &Path, name: &str) -> Option<PathBuf> {
        let known = self.0.get_or_init(|| packages(from).unwrap_or_default());
        known.get(name).or_else(|| known.get(&name.replace('_', "-"))).cloned()
    }
}

/// The packages that `cargo metadata` lists for the next `Cargo.toml`. Nothing is fetched for it.
fn packages(from: &Path) -> Option<BTreeMap<String, PathBuf>> {
    let home = from.ancestors().find(|folder| folder.join("Cargo.toml").is_file())?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--offline"]).current_dir(home);
    let listed = command.output().ok().filter(|output| output.status.success())?;
    of_metadata(&listed.stdout)
}

fn of_metadata(json: &[u8]) -> Option<BTreeMap<String, PathBuf>> {
    let listed: serde_json::Value = serde_json::from_slice(json).ok()?;
    let package = |package: &serde_json::Value| {
        let folder = Path::new(package.get("manifest_path")?.as_str()?).parent()?.to_owned();
        let name = package.get("name")?.as_str()?.to_owned();
        folder.join(SETTINGS).is_file().then_some((name, folder))
    };
    Some(listed.get("packages")?.as_array()?.iter().filter_map(package).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn metadata_of_cargo_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["noise-wgsl", "other"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("noise-wgsl/wesl.toml"), "").unwrap();
        let entry = |name: &str| {
            let manifest = folder.path().join(name).join("Cargo.toml");
            serde_json::json!({ "name": name, "version": "1.0.0", "manifest_path": manifest })
        };
        let json = serde_json::json!({ "packages": [entry("noise-wgsl"), entry("other")], "version": 1 });
        let found = super::of_metadata(json.to_string().as_bytes()).unwrap();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("noise-wgsl".to_owned(), folder.path().join("noise-wgsl"))]
        );
    }
}
