//! The version and the project's addresses, in every manifest that cannot inherit them from the workspace's; the licences, in every package.

use std::path::Path;

use crate::{Outcome, packages};

/// The version and addresses in `[workspace.package]` of the root's Cargo.toml.
pub struct Project {
    pub version: String,
    pub repository: String,
    pub homepage: String,
    pub documentation: String,
}

impl Project {
    /// Reads the root's manifest.
    pub fn read(root: &Path) -> Outcome<Self> {
        let text = read(root, "Cargo.toml")?;
        let package = text.split_once("[workspace.package]").map(|(_, rest)| rest).unwrap_or_default();
        let of = |key: &str| {
            let start = format!("{key} = \"");
            let line = package.lines().take_while(|line| !line.starts_with('[')).find(|line| line.starts_with(&start));
            line.and_then(|line| line.split('"').nth(1))
                .map(str::to_owned)
                .ok_or_else(|| format!("Cargo.toml: [workspace.package] has no {key} (write one)"))
        };
        Ok(Self {
            version: of("version")?,
            repository: of("repository")?,
            homepage: of("homepage")?,
            documentation: of("documentation")?,
        })
    }

    /// The addresses that a person still has to fill in before the first publication.
    pub fn not_filled_in(&self) -> Vec<&'static str> {
        let addresses =
            [("repository", &self.repository), ("homepage", &self.homepage), ("documentation", &self.documentation)];
        addresses.into_iter().filter(|(_, value)| value.contains(".invalid")).map(|(name, _)| name).collect()
    }

    fn value(&self, what: What) -> &str {
        match what {
            What::Version => &self.version,
            What::Repository => &self.repository,
            What::Homepage => &self.homepage,
            What::Documentation => &self.documentation,
        }
    }
}

#[derive(Clone, Copy)]
enum What {
    Version,
    Repository,
    Homepage,
    Documentation,
}

/// The first `count` lines that begin with `start` after their indentation. The value follows, up to a quotation mark or the end of the line.
struct Place {
    file: &'static str,
    start: &'static str,
    what: What,
    count: usize,
}

const fn place(file: &'static str, start: &'static str, what: What, count: usize) -> Place {
    Place { file, start, what, count }
}

const PLACES: [Place; 16] = [
    place("python/Cargo.toml", "version = \"", What::Version, 1),
    place("web/Cargo.toml", "version = \"", What::Version, 1),
    place("web/bindgen/Cargo.toml", "version = \"", What::Version, 1),
    place("mobile/Cargo.toml", "version = \"", What::Version, 1),
    place("web/package.json", "\"version\": \"", What::Version, 1),
    place("web/package.json", "\"homepage\": \"", What::Homepage, 1),
    place("web/package.json", "\"url\": \"", What::Repository, 1),
    // The package's own, twice; those of what it depends on follow.
    place("web/package-lock.json", "\"version\": \"", What::Version, 2),
    place("python/pyproject.toml", "Homepage = \"", What::Homepage, 1),
    place("python/pyproject.toml", "Documentation = \"", What::Documentation, 1),
    place("python/pyproject.toml", "Repository = \"", What::Repository, 1),
    place("docs/guide/book.toml", "git-repository-url = \"", What::Repository, 1),
    place("CITATION.cff", "version: \"", What::Version, 1),
    place("CITATION.cff", "repository-code: \"", What::Repository, 1),
    place("CITATION.cff", "url: \"", What::Homepage, 1),
    place(".github/ISSUE_TEMPLATE/config.yml", "url: \"", What::Documentation, 1),
];

/// The files that differ, with what they should hold.
fn differing(root: &Path, project: &Project) -> Outcome<Vec<(String, String)>> {
    let mut files: Vec<String> = PLACES.iter().map(|place| place.file.to_owned()).collect();
    files.dedup();
    let mut found = Vec::new();
    for file in files {
        let text = read(root, &file)?;
        let mut fresh = text.clone();
        for place in PLACES.iter().filter(|place| place.file == file) {
            fresh = carried(&fresh, place, project.value(place.what))?;
        }
        if fresh != text {
            found.push((file, fresh));
        }
    }
    let members = packages::members(root)?;
    for package in &members {
        let path = package.folder.join("Cargo.toml");
        let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = read(&package.folder, "Cargo.toml")?;
        let fresh = dependencies(&text, &project.version);
        if fresh != text {
            found.push((file, fresh));
        }
    }
    let folders = members.into_iter().filter(packages::Package::is_published).map(|package| package.folder);
    for folder in folders.chain([root.join("python"), root.join("web")]).filter(|folder| folder != &root.join(".")) {
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let (path, text) = (folder.join(name), read(root, name)?);
            if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
                let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                found.push((file, text));
            }
        }
    }
    Ok(found)
}

/// The text with this value in its places.
fn carried(text: &str, place: &Place, value: &str) -> Outcome<String> {
    let mut left = place.count;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let Some(rest) = line.trim_start().strip_prefix(place.start).filter(|_| left > 0) else {
            lines.push(line.to_owned());
            continue;
        };
        left -= 1;
        let indent = line.len() - line.trim_start().len();
        let behind = rest.find(['"', '>']).and_then(|end| rest.get(end..)).unwrap_or_default();
        lines.push(format!("{}{}{value}{behind}", " ".repeat(indent), place.start));
    }
    if left > 0 {
        return Err(format!(
            "{}: no line begins with {} (add it, or mend xtask/release/src/manifests.rs)",
            place.file, place.start
        ));
    }
    Ok(lines.join("\n"))
}

/// The text in which what this workspace has, `{ path = …, version = … }`, is of this version.
fn dependencies(text: &str, version: &str) -> String {
    let line = |line: &str| {
        let (Some(_), Some((before, rest))) = (line.find("path = \""), line.split_once("version = \"")) else {
            return line.to_owned();
        };
        let behind = rest.find('"').and_then(|end| rest.get(end..)).unwrap_or_default();
        format!("{before}version = \"{version}{behind}")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Carries them.
pub fn write(root: &Path) -> Outcome<String> {
    let differing = differing(root, &Project::read(root)?)?;
    for (file, text) in &differing {
        std::fs::write(root.join(file), text).map_err(|error| format!("{file}: {error}"))?;
    }
    let names: Vec<&str> = differing.iter().map(|(file, _)| file.as_str()).collect();
    Ok(if names.is_empty() {
        "every manifest is as it was".to_owned()
    } else {
        format!("written: {}", names.join(", "))
    })
}

/// Errors: a manifest says something else.
pub fn check(root: &Path) -> Outcome<String> {
    let differing = differing(root, &Project::read(root)?)?;
    let names: Vec<&str> = differing.iter().map(|(file, _)| file.as_str()).collect();
    if names.is_empty() {
        return Ok("every package has the version, the addresses and the licences of the root".to_owned());
    }
    Err(format!("{}: not what the root says (run cargo xtask manifests and commit)", names.join(", ")))
}

/// Sets the version of the workspace, and carries it.
pub fn set_version(root: &Path, version: &str) -> Outcome<String> {
    let text = read(root, "Cargo.toml")?;
    let old = Project::read(root)?.version;
    let fresh = text.replacen(
        &format!("[workspace.package]\nversion = \"{old}\""),
        &format!("[workspace.package]\nversion = \"{version}\""),
        1,
    );
    if fresh == text && old != version {
        return Err("Cargo.toml: the version is not the first line of [workspace.package] (put it there)".to_owned());
    }
    std::fs::write(root.join("Cargo.toml"), fresh).map_err(|error| format!("Cargo.toml: {error}"))?;
    write(root)
}

pub fn read(root: &Path, file: &str) -> Outcome<String> {
    std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."))
    }

    #[test]
    fn every_manifest_says_the_same() {
        assert_eq!(check(root()).err(), None);
    }

    #[test]
    fn values_are_carried() {
        let place = place("a", "\"version\": \"", What::Version, 2);
        let text = "{\n  \"version\": \"1\",\n    \"version\": \"1\",\n  \"version\": \"7\"\n}";
        let fresh = "{\n  \"version\": \"2\",\n    \"version\": \"2\",\n  \"version\": \"7\"\n}";
        assert_eq!(carried(text, &place, "2").as_deref(), Ok(fresh));
        assert!(carried("{}", &place, "2").is_err(), "a place that is gone is no place that is fresh");
        let text = "a = { path = \"a\", version = \"0.1.0\", features = [\"b\"] }\nc = { version = \"3\" }\n";
        assert_eq!(dependencies(text, "0.2.0"), text.replace("0.1.0", "0.2.0"));
    }
}
