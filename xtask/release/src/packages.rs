//! Packs everything that is published, without compiling, and checks manifests, licences, contents and sizes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::manifests::{self, read};

/// The keys that each manifest needs, for registries and readers.
const KEYS: [&str; 10] = [
    "description",
    "version",
    "edition",
    "rust-version",
    "license",
    "repository",
    "homepage",
    "documentation",
    "keywords",
    "categories",
];

/// The paths that a crate's package may hold, by their starts and ends.
const STARTS: [&str; 5] = ["src/", "templates/", "examples/", "Cargo.", "LICENSE-"];
const ENDS: [&str; 9] =
    [".wgsl", ".cu", ".h", ".ptx", "README.md", "CHANGELOG.md", ".cargo_vcs_info.json", "lib.rs", "build.rs"];

/// The registry takes 10 MB; this is where someone should look.
const MOST: u64 = 1_000_000;

/// A package of the workspace.
pub struct Package {
    name: String,
    pub folder: PathBuf,
    text: String,
}

impl Package {
    /// The lines of `[package]`.
    fn head(&self) -> impl Iterator<Item = &str> {
        self.text.lines().skip_while(|line| *line != "[package]").skip(1).take_while(|line| !line.starts_with('['))
    }

    pub fn is_published(&self) -> bool {
        !self.head().any(|line| line == "publish = false" || line == "publish.workspace = true")
    }
}

/// The members of the workspace that the root's manifest lists.
pub fn members(root: &Path) -> Outcome<Vec<Package>> {
    let text = read(root, "Cargo.toml")?;
    let line = text.lines().find(|line| line.starts_with("members = [")).unwrap_or_default();
    let mut folders = Vec::new();
    for name in line.split('"').skip(1).step_by(2) {
        match name.strip_suffix("/*") {
            Some(parent) => {
                let entries = std::fs::read_dir(root.join(parent)).map_err(|error| format!("{parent}: {error}"))?;
                folders.extend(
                    entries.flatten().map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file()),
                );
            }
            None => folders.push(root.join(name)),
        }
    }
    folders.sort();
    let package = |folder: PathBuf| {
        let text = read(&folder, "Cargo.toml")?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).unwrap_or_default();
        Ok(Package { name: name.to_owned(), folder, text: text.clone() })
    };
    folders.into_iter().map(package).collect()
}

/// Checks all of it, and gives a table of sizes.
pub fn check(root: &Path) -> Outcome<String> {
    manifests::check(root)?;
    let members = members(root)?;
    let mut wrong = Vec::new();
    let published: Vec<&Package> = members.iter().filter(|package| package.is_published()).collect();
    for package in &published {
        for key in KEYS {
            let said = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', '.']));
            if !package.head().any(said) {
                wrong.push(format!("{}: its manifest has no {key}", package.name));
            }
        }
    }
    let mut rows = crates(root, &members, &mut wrong)?;
    rows.extend(npm(root, &mut wrong)?);
    if wrong.is_empty() { Ok(rows.join("\n")) } else { Err(wrong.join("\n")) }
}

/// Packs the crates; a row for each.
fn crates(root: &Path, members: &[Package], wrong: &mut Vec<String>) -> Outcome<Vec<String>> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("packages");
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["package", "--quiet", "--workspace", "--locked", "--no-verify", "--allow-dirty"]);
    command.arg("--target-dir").arg(&target);
    for package in members.iter().filter(|package| !package.is_published()) {
        command.args(["--exclude", &package.name]);
    }
    let packed = command.output().map_err(|error| format!("cargo package: {error}"))?;
    if !packed.status.success() {
        return Err(format!("cargo package failed:\n{}", String::from_utf8_lossy(&packed.stderr)));
    }
    let version = manifests::Project::read(root)?.version;
    let mut rows = Vec::new();
    for package in members.iter().filter(|package| package.is_published()) {
        let file = target.join("package").join(format!("{}-{version}.crate", package.name));
        let bytes = std::fs::metadata(&file).map_err(|error| format!("{}: {error}", file.display()))?.len();
        if bytes > MOST {
            wrong.push(format!(
                "{}: {bytes} bytes packed, more than {MOST} (see what cargo package --list names)",
                package.name
            ));
        }
        let listed = Command::new("tar").arg("tzf").arg(&file).output().map_err(|error| format!("tar: {error}"))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let inside: Vec<&str> = listed.lines().filter_map(|line| Some(line.split_once('/')?.1)).collect();
        for path in &inside {
            if !STARTS.iter().any(|start| path.starts_with(start)) && !ENDS.iter().any(|end| path.ends_with(end)) {
                wrong.push(format!("{}: its package holds {path} (mend `include`)", package.name));
            }
        }
        for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
            if !inside.contains(&file) {
                wrong.push(format!("{}: its package lacks {file} (mend `include`)", package.name));
            }
        }
        rows.push(format!("{bytes:>9} bytes, {:>3} files  {} {version}", inside.len(), package.name));
    }
    Ok(rows)
}

/// Lists the npm package, where the page has been built.
fn npm(root: &Path, wrong: &mut Vec<String>) -> Outcome<Vec<String>> {
    let web = root.join("web");
    if !web.join("npm").is_dir() || !web.join("pkg").is_dir() {
        return Ok(vec!["        -                  npm: not packed, as nothing is built (web/build.sh)".to_owned()]);
    }
    let packed = Command::new("npm").current_dir(&web).args(["pack", "--dry-run", "--json"]).output();
    let packed = packed.map_err(|error| format!("npm pack: {error} (install npm)"))?;
    if !packed.status.success() {
        return Err(format!("npm pack failed:\n{}", String::from_utf8_lossy(&packed.stderr)));
    }
    let text = String::from_utf8_lossy(&packed.stdout).into_owned();
    for file in [
        "npm/index.js",
        "npm/index.d.ts",
        "pkg/field/cantus_bg.wasm",
        "pkg/playground/cantus_bg.wasm",
        "LICENSE-MIT",
        "README.md",
    ] {
        if !text.contains(&format!("\"path\": \"{file}\"")) {
            wrong.push(format!("npm: the package lacks {file} (mend `files` in web/package.json)"));
        }
    }
    for foreign in ["pkg/threads", "node_modules", "/tests/"] {
        if text.contains(foreign) {
            wrong.push(format!("npm: the package holds {foreign} (mend `files` in web/package.json)"));
        }
    }
    let number = |key: &str| {
        let rest = text.split_once(&format!("\"{key}\": "))?.1;
        rest.split([',', '\n']).next()?.parse::<u64>().ok()
    };
    let (bytes, files) = (number("size").unwrap_or(0), number("entryCount").unwrap_or(0));
    Ok(vec![format!("{bytes:>9} bytes, {files:>3} files  npm: cantus")])
}
