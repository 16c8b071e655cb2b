//! Tells whether a change touches a stage: its paths lie in the folders that the stage's packages are built from.
//!
//! A stage names packages, manifests and beginnings of paths. A package or manifest stands for its own folder and for those of all that it is
//! built on, with every feature, as `cargo tree` says: the table cannot fall behind the manifests.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::turn::git;

/// Paths that touch every stage: how everything is built and run.
const ALWAYS: &[&str] = &["Cargo.", ".cargo/", ".ci/", "clippy.toml", "rustfmt.toml"];

/// The paths that a change touches.
pub struct Change {
    /// `None` where there is no history, and everything counts as touched.
    paths: Option<Vec<String>>,
    /// The folders of what has been asked for.
    folders: RefCell<HashMap<String, Option<Vec<String>>>>,
}

impl Change {
    /// Everything counts as touched.
    pub fn everything() -> Self {
        Self { paths: None, folders: RefCell::default() }
    }

    /// Reads the paths that have changed since CANTUS_BASE, or in the last four hours.
    pub fn read() -> Self {
        let base =
            std::env::var("CANTUS_BASE").ok().or_else(|| git(&["rev-list", "-1", "--before=4 hours ago", "HEAD"]));
        let changed = base
            .filter(|base| !base.trim().is_empty())
            .and_then(|base| git(&["diff", "--name-only", base.trim(), "HEAD"]));
        let paths = changed.map(|text| text.lines().map(str::to_owned).collect());
        Self { paths, folders: RefCell::default() }
    }

    /// Returns whether something of this has changed, or nothing is named.
    pub fn touches(&self, on: &[&str]) -> bool {
        let Some(paths) = &self.paths else { return true };
        on.is_empty()
            || paths.iter().any(|path| begins(path, ALWAYS))
            || on.iter().any(|name| match self.folders(name) {
                Some(folders) => paths.iter().any(|path| begins(path, &folders)),
                None => true,
            })
    }

    fn folders(&self, name: &str) -> Option<Vec<String>> {
        self.folders.borrow_mut().entry(name.to_owned()).or_insert_with(|| folders(name)).clone()
    }
}

fn begins(path: &str, starts: &[impl AsRef<str>]) -> bool {
    starts.iter().any(|start| path.starts_with(start.as_ref()))
}

/// The beginnings of paths that a name stands for; `None` if cargo cannot say it.
fn folders(name: &str) -> Option<Vec<String>> {
    let is_manifest = name.ends_with("/Cargo.toml");
    if !is_manifest && (name.contains('/') || !name.starts_with("cantus")) {
        return Some(vec![name.to_owned()]);
    }
    let mut command = Command::new("cargo");
    command.args(["tree", "--locked", "--all-features", "--target", "all", "--prefix", "none"]);
    command.args(["--edges", "normal,build", "--format", "{p}"]);
    match is_manifest {
        true => command.args(["--manifest-path", name]),
        false => command.args(["--package", name]),
    };
    let output = command.output().ok().filter(|output| output.status.success())?;
    let root = std::env::current_dir().ok()?;
    Some(local(&String::from_utf8_lossy(&output.stdout), &root))
}

/// The folders below the root in lines of `cargo tree`: `cantus-base v0.1.0 (/root/crates/base)`. The root's own package is `src`.
fn local(lines: &str, root: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in lines.lines() {
        let path = line.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(path, _)| Path::new(path));
        let Some(inner) = path.and_then(|path| path.strip_prefix(root).ok()) else { continue };
        let folder = if inner.as_os_str().is_empty() { "src/".to_owned() } else { format!("{}/", inner.display()) };
        if !found.contains(&folder) {
            found.push(folder);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    fn change(paths: &[&str]) -> Change {
        Change { paths: Some(paths.iter().map(|&path| path.to_owned()).collect()), folders: RefCell::default() }
    }

    fn at_the_root() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        std::env::set_current_dir(std::fs::canonicalize(root).expect("the root")).expect("the root is a folder");
    }

    #[test]
    fn folders_are_those_of_the_tree() {
        let lines = "cantus v0.1.0 (/a/b)\ncantus-base v0.1.0 (/a/b/crates/base)\nserde v1.0.0\nx v1 (/c/x) (*)\ncantus-base v0.1.0 (/a/b/crates/base) (*)";
        assert_eq!(local(lines, Path::new("/a/b")), ["src/", "crates/base/"]);
    }

    #[test]
    fn a_leaf_touches_its_own_stages_alone() {
        at_the_root();
        let leaf = change(&["crates/data/src/lib.rs"]);
        assert!(leaf.touches(&["cantus-data"]) && leaf.touches(&["cantus-cli"]) && leaf.touches(&[]));
        assert!(!leaf.touches(&["cantus-tests"]) && !leaf.touches(&["web/Cargo.toml"]));
        let core = change(&["crates/base/src/lib.rs"]);
        let all = ["cantus-data", "cantus-cli", "cantus-tests", "cantus-serve", "web/Cargo.toml", "python/Cargo.toml"];
        assert!(all.iter().all(|name| core.touches(&[name])), "{all:?}");
        assert!(!change(&["README.md"]).touches(&["cantus-tests"]));
        assert!(change(&["Cargo.lock"]).touches(&["cantus-tests"]) && Change::everything().touches(&["cantus-tests"]));
    }

    /// A name that cargo does not know would count as touched for ever.
    #[test]
    fn every_name_in_the_table_is_known() {
        at_the_root();
        let stages = table::ci().into_iter().chain(table::circle(table::Circle::Full, true, 0));
        let names: Vec<&str> = stages.flat_map(|stage| stage.on).copied().collect();
        assert!(names.len() > 10);
        for name in names.iter().chain(table::parts().iter().flat_map(|part| part.paths)) {
            assert!(!name.ends_with('/') || Path::new(name).is_dir(), "there is no folder {name}");
            assert!(folders(name).is_some_and(|folders| !folders.is_empty()), "cargo does not know {name}");
        }
    }
}
