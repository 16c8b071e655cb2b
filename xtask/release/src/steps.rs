//! The steps of a release, in order: what each does, how, and what helps when it fails.

use std::path::Path;

use crate::Outcome;
use crate::manifests::{self, Project, read};

/// The work of a step.
pub enum Work {
    /// A function of this crate.
    Own(fn(&Path, &str) -> Outcome<String>),
    /// The function of this name in `xtask/release/step`.
    Script,
}

pub struct Step {
    pub name: &'static str,
    pub what: &'static str,
    pub work: Work,
    /// The remedy to print when the step fails.
    pub remedy: &'static str,
}

const fn script(name: &'static str, what: &'static str, remedy: &'static str) -> Step {
    Step { name, what, work: Work::Script, remedy }
}

pub const STEPS: [Step; 23] = [
    script(
        "tree",
        "nothing is uncommitted, and the tag does not exist",
        "commit or stash what git status shows; choose a version without a tag",
    ),
    Step {
        name: "number",
        what: "the version is a semantic one and not below the last, and the changelog has something to say",
        work: Work::Own(number),
        remedy: "MAJOR.MINOR.PATCH; write what users notice under ## [Unreleased] in CHANGELOG.md",
    },
    script(
        "locks",
        "the lock files of the four workspaces are complete",
        "run cargo metadata in the folder that is named, and commit its Cargo.lock",
    ),
    script(
        "licences",
        "licences of all dependencies, by cargo-deny",
        "cargo deny check licenses says which package; deny.toml has what is allowed",
    ),
    script(
        "semver",
        "the public items against the last tag, by cargo-semver-checks; before the first, that a planted break is found",
        "raise the version, or take the change back",
    ),
    script("tests", "./test", "mend what ./test lists as failed"),
    Step {
        name: "version",
        what: "the version in every manifest and lock file",
        work: Work::Own(version),
        remedy: "xtask/release/src/manifests.rs has the places",
    },
    Step {
        name: "changelog",
        what: "## [Unreleased] becomes the version with today's date",
        work: Work::Own(changelog),
        remedy: "CHANGELOG.md needs a line ## [Unreleased]",
    },
    script(
        "crates",
        "every crate, packed and compiled from its package",
        "cargo package --list -p NAME shows what a package has; mend include in its manifest",
    ),
    script(
        "linux",
        "the program for Linux on x86-64 with glibc 2.28, by zig",
        "the error is the compiler's; .venv/bin/pip install ziglang cargo-zigbuild installs the linker",
    ),
    script(
        "reproducible",
        "the same program built in another folder has the same bytes",
        "diffoscope on the two programs shows where a path or a time got in",
    ),
    script("musl", "a static program, which has the CPU alone", "rustup target add x86_64-unknown-linux-musl"),
    script("windows", "the program for Windows on x86-64, by mingw", ".ci/windows builds and runs it with more words"),
    script(
        "papers",
        "manual pages and completions, from the program itself",
        "cargo run --features shell -- man --help",
    ),
    script("archives", "the programs with papers and licences, packed", "tar and zip must be installed"),
    script(
        "wheel",
        "the wheel for Linux on x86-64 with glibc 2.28, tried in a fresh environment",
        "python/test.sh builds and tests one with more words",
    ),
    script("wheel-aarch64", "the wheel for Linux on AArch64", "rustup target add aarch64-unknown-linux-gnu"),
    script("npm", "the npm package's tarball, used by a fresh project", "web/build.sh builds what it holds"),
    script("site", "the site, for any static host", "docs/site/build.sh builds it alone"),
    script(
        "sboms",
        "what everything is made of, in CycloneDX",
        "xtask/release/sbom.py makes one from what cargo says; npm sbom comes with npm",
    ),
    Step {
        name: "notes",
        what: "the release notes, from the changelog",
        work: Work::Own(notes),
        remedy: "CHANGELOG.md needs the version's section",
    },
    script("elsewhere", "what cannot be made on Linux, and who makes it", "none of it fails"),
    script("checksums", "SHA-256 of every file", "sha256sum must be installed"),
];

/// The numbers of a version without a pre-release.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let parts: Vec<&str> = version.split('.').collect();
    let is_number =
        |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit()) && (part.len() == 1 || !part.starts_with('0'));
    if parts.len() != 3 || !parts.iter().all(is_number) {
        return None;
    }
    let numbers: Vec<u64> = parts.iter().filter_map(|part| part.parse().ok()).collect();
    numbers.try_into().ok()
}

fn number(root: &Path, version: &str) -> Outcome<String> {
    let wanted = numbers(version).ok_or_else(|| format!("{version} is no version"))?;
    let project = Project::read(root)?;
    if numbers(&project.version).is_some_and(|now| wanted < now) {
        return Err(format!("{version} is below {}, which Cargo.toml has", project.version));
    }
    let text = read(root, "CHANGELOG.md")?;
    let lines = section(&text, "Unreleased").or_else(|| section(&text, version)).unwrap_or_default();
    if !lines.lines().any(|line| line.starts_with("- ")) {
        return Err("the changelog lists nothing for this release".to_owned());
    }
    let open = project.not_filled_in();
    let open = if open.is_empty() {
        String::new()
    } else {
        format!("; {} in Cargo.toml are to be filled in before anything is published", open.join(", "))
    };
    Ok(format!("{} -> {version}{open}", project.version))
}

fn version(root: &Path, version: &str) -> Outcome<String> {
    let said = manifests::set_version(root, version)?;
    for folder in ["", "python", "web", "mobile"] {
        let status = std::process::Command::new("cargo")
            .current_dir(root.join(folder))
            .args(["update", "--quiet", "--workspace", "--offline"])
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("cargo update --workspace --offline failed in {}", root.join(folder).display()));
        }
    }
    Ok(said)
}

/// Is true for the heading of a version: `## [NAME] - DATE` after Keep a Changelog, or without brackets; what follows the name is free.
fn is_head(line: &str, name: &str) -> bool {
    let named = line.strip_prefix("## ").map(|rest| rest.strip_prefix('[').unwrap_or(rest));
    let behind = named.and_then(|named| named.strip_prefix(name));
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with([']', ' ', ':']))
}

/// The text below a version's heading, up to the next such heading.
fn section(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !is_head(line, name));
    lines.next()?;
    Some(lines.take_while(|line| !line.starts_with("## ")).collect::<Vec<_>>().join("\n").trim().to_owned())
}

/// The text with a version and its date in place of what is not released.
fn dated(text: &str, head: &str) -> Option<String> {
    let old = text.lines().find(|line| is_head(line, "Unreleased"))?;
    Some(text.replacen(&format!("\n{old}\n"), &format!("\n{head}\n"), 1))
}

fn changelog(root: &Path, version: &str) -> Outcome<String> {
    let text = read(root, "CHANGELOG.md")?;
    let date =
        std::process::Command::new("date").arg("+%Y-%m-%d").output().map_err(|error| format!("date: {error}"))?;
    let head = format!("## [{version}] - {}", String::from_utf8_lossy(&date.stdout).trim());
    if section(&text, version).is_some() && section(&text, "Unreleased").is_none() {
        return Ok(format!("it has {version} already"));
    }
    let fresh = dated(&text, &head).ok_or("there is no line ## [Unreleased]")?;
    std::fs::write(root.join("CHANGELOG.md"), fresh).map_err(|error| format!("CHANGELOG.md: {error}"))?;
    Ok(head)
}

fn notes(root: &Path, version: &str) -> Outcome<String> {
    let text = read(root, "CHANGELOG.md")?;
    let section = section(&text, version).or_else(|| section(&text, "Unreleased"));
    let section = section.ok_or_else(|| format!("CHANGELOG.md has no section {version}"))?;
    let text = format!(
        "# Cantus {version}\n\n{section}\n\n## Install\n\n```text\ncargo add cantus\ncargo install cantus-cli\npip install cantus-compute    # import cantus\nnpm install cantus\n```\n\nOr a program from the files below; `sha256sum --check --ignore-missing SHA256SUMS` compares those that you have.\n"
    );
    let file = root.join("dist/NOTES.md");
    std::fs::write(&file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(format!("{} lines", text.lines().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers() {
        assert_eq!(numbers("0.10.2"), Some([0, 10, 2]));
        for wrong in ["1", "1.2", "1.2.3.4", "1.02.3", "v1.2.3", "1.2.x", "1..3", "1.2.3-rc.1", ""] {
            assert_eq!(numbers(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_section_ends_at_the_next() {
        let text = "# Changelog\n\n## 0.2.0 (2026-01-01)\n\n- b\n  c\n\n## 0.1.0\n\n- a\n";
        assert_eq!(section(text, "0.2.0").as_deref(), Some("- b\n  c"));
        assert_eq!(section(text, "0.1.0").as_deref(), Some("- a"));
        assert_eq!(section(text, "0.2"), None);
    }

    #[test]
    fn a_heading_is_understood_and_dated() {
        for line in ["## Unreleased", "## [Unreleased]", "## [Unreleased]: 0.1.0"] {
            assert!(is_head(line, "Unreleased"), "{line}");
            let text = format!("# Changelog\n\n{line}\n\n- a\n");
            let fresh = dated(&text, "## [0.1.0] - 2026-01-01").unwrap_or_default();
            assert_eq!(fresh, "# Changelog\n\n## [0.1.0] - 2026-01-01\n\n- a\n", "{line}");
            assert_eq!(section(&fresh, "0.1.0").as_deref(), Some("- a"));
        }
        assert!(!is_head("## [0.1.0] - 2026-01-01", "0.1"));
    }

    #[test]
    fn the_projects_own_changelog_can_be_released() {
        let text = include_str!("../../../CHANGELOG.md");
        let version =
            include_str!("../../../Cargo.toml").split("version = \"").nth(1).and_then(|rest| rest.split('"').next());
        let found = section(text, "Unreleased").or_else(|| section(text, version?));
        assert!(found.is_some_and(|lines| lines.lines().any(|line| line.starts_with("- "))));
    }

    #[test]
    fn every_script_step_has_its_function() {
        let script = include_str!("../step");
        for step in STEPS.iter().filter(|step| matches!(step.work, Work::Script)) {
            assert!(script.contains(&format!("\n{}() {{\n", step.name.replace('-', "_"))), "{}", step.name);
        }
    }
}
