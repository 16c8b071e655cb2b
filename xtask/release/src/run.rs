//! Runs the steps of a release, from one that is named where an earlier run failed, and lists what came of it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::Outcome;
use crate::manifests::Project;
use crate::steps::{STEPS, Step, Work};

const USAGE: &str = "\
Usage: cargo xtask release VERSION [--dry-run] [--from STEP] [--only STEP] [--without STEP]...

Makes dist/: everything that a user installs. It sets the version and dates the changelog, and commits, tags and publishes nothing: that is
for a person, and RELEASING.md has the words. --from goes on after a failure that is mended, --only does one step, --without leaves one out and
says so at the end.

Steps:";

/// The parsed command line.
struct Arguments {
    version: String,
    dry: bool,
    from: usize,
    to: usize,
    without: Vec<String>,
}

impl Arguments {
    /// Every step, from the first on.
    fn is_whole(&self) -> bool {
        self.from == 0 && self.to == STEPS.len()
    }
}

fn parse(words: &[&str]) -> Outcome<Arguments> {
    let mut found = Arguments { version: String::new(), dry: false, from: 0, to: STEPS.len(), without: Vec::new() };
    let place = |name: Option<&&str>| {
        let name = name.ok_or("a step's name is missing; --help lists them")?;
        let place = STEPS.iter().position(|step| step.name == *name);
        place.ok_or_else(|| format!("there is no step {name}; --help lists them"))
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--dry-run" => found.dry = true,
            "--from" => found.from = place(words.next())?,
            "--only" => {
                found.from = place(words.next())?;
                found.to = found.from + 1;
            }
            "--without" => {
                let place = place(words.next())?;
                found.without.extend(STEPS.get(place).map(|step| step.name.to_owned()));
            }
            option if option.starts_with('-') => return Err(format!("unknown option {option}; --help lists them")),
            version if found.version.is_empty() => version.clone_into(&mut found.version),
            other => return Err(format!("{other}: the version is {} already", found.version)),
        }
    }
    if found.version.is_empty() {
        return Err("a release wants a version: cargo xtask release 0.1.0".to_owned());
    }
    Ok(found)
}

/// Runs `cargo xtask release`.
pub fn release(root: &Path, words: &[&str]) -> Outcome<String> {
    if words.is_empty() || words.contains(&"--help") {
        let mut text = USAGE.to_owned();
        for step in &STEPS {
            let _ = write!(text, "\n  {:<14} {}", step.name, step.what);
        }
        return Ok(text);
    }
    let arguments = parse(words)?;
    if arguments.dry {
        return Ok(dry(root, &arguments));
    }
    let dist = root.join("dist");
    std::fs::create_dir_all(&dist).map_err(|error| format!("{}: {error}", dist.display()))?;
    // A release that begins has nothing of another; its first step alone is no release.
    let skips = dist.join(".not-made");
    if arguments.is_whole() {
        std::fs::remove_dir_all(&dist)
            .and_then(|()| std::fs::create_dir_all(&dist))
            .map_err(|error| format!("{}: {error}", dist.display()))?;
    }
    if !skips.exists() {
        std::fs::write(&skips, "").map_err(|error| format!("{}: {error}", skips.display()))?;
    }
    let mut took = Vec::new();
    for step in STEPS.iter().take(arguments.to).skip(arguments.from) {
        if arguments.without.iter().any(|name| name == step.name) {
            not_made(&skips, step.name, "left out by --without");
            continue;
        }
        println!("\n== {}: {}", step.name, step.what);
        let began = Instant::now();
        let done = run(root, &arguments.version, step, &skips);
        took.push((step.name, began.elapsed().as_secs()));
        match done {
            Ok(said) => println!(
                "== {}: {} s{}",
                step.name,
                began.elapsed().as_secs(),
                if said.is_empty() { said } else { format!(", {said}") }
            ),
            Err(error) => {
                return Err(format!(
                    "the step {} failed: {error}\n  what helps: {}\n  then: cargo xtask release {} --from {}",
                    step.name, step.remedy, arguments.version, step.name
                ));
            }
        }
    }
    Ok(table(root, &skips, &took))
}

fn run(root: &Path, version: &str, step: &Step, skips: &Path) -> Outcome<String> {
    match step.work {
        Work::Own(work) => work(root, version),
        Work::Script => {
            // What an earlier try said is said again, or no longer true.
            let kept = std::fs::read_to_string(skips).unwrap_or_default();
            let mark = format!("{}\u{1f}", step.name);
            let kept: String =
                kept.lines().filter(|line| !line.starts_with(&mark)).map(|line| format!("{line}\n")).collect();
            let _ = std::fs::write(skips, kept);
            let fresh = skips.with_extension("step");
            let _ = std::fs::write(&fresh, "");
            let status = Command::new("bash")
                .arg("xtask/release/step")
                .arg(step.name)
                .current_dir(root)
                .env("VERSION", version)
                .env("CANTUS_SKIPS", &fresh)
                .status()
                .map_err(|error| format!("bash: {error}"))?;
            for line in std::fs::read_to_string(&fresh).unwrap_or_default().lines() {
                let (what, why) = line.split_once('\t').unwrap_or((line, ""));
                not_made(skips, &format!("{mark}{what}"), why);
            }
            let _ = std::fs::remove_file(&fresh);
            if status.success() { Ok(String::new()) } else { Err(status.to_string()) }
        }
    }
}

/// Remembers that something was not made.
fn not_made(skips: &Path, what: &str, why: &str) {
    let text = std::fs::read_to_string(skips).unwrap_or_default();
    let _ = std::fs::write(skips, format!("{text}{what}\t{why}\n"));
}

/// Describes the steps without running them.
fn dry(root: &Path, arguments: &Arguments) -> String {
    let mut text = format!("a release of {} would do this, and stop at the first failure:", arguments.version);
    for step in STEPS.iter().take(arguments.to).skip(arguments.from) {
        let without = arguments.without.iter().any(|name| name == step.name);
        let how = match step.work {
            Work::Own(_) => "here".to_owned(),
            Work::Script => format!("xtask/release/step {}", step.name),
        };
        let _ = write!(text, "\n  {:<14} {} ({how}){}", step.name, step.what, if without { ": left out" } else { "" });
    }
    let open = Project::read(root).map(|project| project.not_filled_in()).unwrap_or_default();
    if !open.is_empty() {
        let _ = write!(text, "\nto be filled in before anything is published: {} in Cargo.toml", open.join(", "));
    }
    text.push_str("\nIt changes Cargo.toml and what follows it, the lock files and CHANGELOG.md, and writes dist/. It commits, tags and publishes nothing.");
    text
}

/// The files of `dist/` with their bytes, the steps with their seconds, what was not made.
fn table(root: &Path, skips: &Path, took: &[(&str, u64)]) -> String {
    let mut text = String::from("\nsteps:");
    for (name, seconds) in took {
        let _ = write!(text, "\n{seconds:6} s  {name}");
    }
    let mut files = Vec::new();
    walk(&root.join("dist"), &mut files);
    files.sort();
    text.push_str("\n\ndist/:");
    for (path, bytes) in files {
        let name = path
            .strip_prefix(root.join("dist"))
            .map(|path| path.display().to_string())
            .unwrap_or(path.display().to_string());
        let _ = write!(text, "\n{bytes:>10}  {name}");
    }
    let lines = std::fs::read_to_string(skips).unwrap_or_default();
    if !lines.is_empty() {
        text.push_str("\n\nnot made:");
    }
    for line in lines.lines() {
        let (what, why) = line.split_once('\t').unwrap_or((line, ""));
        let what = what.split_once('\u{1f}').map_or(what, |(_, what)| what);
        let _ = write!(text, "\n  {what}: {why}");
    }
    let open = Project::read(root).map(|project| project.not_filled_in()).unwrap_or_default();
    if !open.is_empty() {
        let _ = write!(text, "\n\nto be filled in before anything is published: {} in Cargo.toml", open.join(", "));
    }
    text
}

/// The files below a folder that are for others.
fn walk(folder: &Path, files: &mut Vec<(std::path::PathBuf, u64)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        match entry.metadata() {
            Ok(about) if about.is_dir() => walk(&path, files),
            Ok(about) => files.push((path, about.len())),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_alone_keeps_what_there_is() {
        let whole = |words: &[&str]| parse(words).map(|found| found.is_whole());
        assert_eq!(whole(&["0.1.0"]), Ok(true));
        assert_eq!(whole(&["0.1.0", "--only", "tree"]), Ok(false));
        assert_eq!(whole(&["0.1.0", "--from", "crates"]), Ok(false));
    }

    #[test]
    fn options_are_read() {
        let all = parse(&["0.1.0"]).map(|found| (found.from, found.to, found.dry));
        assert_eq!(all, Ok((0, STEPS.len(), false)));
        let some = parse(&["0.1.0", "--from", "crates", "--without", "musl", "--dry-run"]);
        let some = some.map(|found| (STEPS.get(found.from).map(|step| step.name), found.without, found.dry));
        assert_eq!(some, Ok((Some("crates"), vec!["musl".to_owned()], true)));
        for wrong in [
            &["0.1.0", "--from"][..],
            &["--from", "crate", "0.1.0"],
            &["0.1.0", "0.2.0"],
            &["--fast", "0.1.0"],
            &["--dry-run"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
