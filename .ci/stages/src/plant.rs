//! Plants the faults of a round in a copy of the tree, builds it, and runs the quick circle there.
//!
//! The copy is below the target folder and has a target folder of its own: programs with faults never take the place of the tree's own. Files that
//! stay the same from round to round keep their time, so a later round builds what its faults touch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::faults::{self, Fallen, Fault, Outcome};
use crate::run::{Place, Run};
use crate::table::{self, Circle};
use crate::turn::git;

/// Runs the rounds, or one of them, and says which fault was found by what.
pub fn faults(only: Option<usize>, turn: u64, run: &mut Run) {
    let result = faults::parse(faults::LIST).and_then(|faults| {
        let rounds: BTreeSet<usize> = faults.iter().map(|fault| fault.round).collect();
        let mut fallen = Vec::new();
        for round in rounds.into_iter().filter(|round| only.is_none_or(|only| only == *round)) {
            let planted: Vec<&Fault> = faults.iter().filter(|fault| fault.round == round).collect();
            fallen.push((round, self::round(round, &planted, turn, run)?));
        }
        if fallen.is_empty() {
            return Err(format!("no fault has round {}", only.unwrap_or_default()));
        }
        Ok((faults, fallen))
    });
    match result {
        Ok((faults, rounds)) => tell(&faults, &rounds, run),
        Err(error) => run.wrong(&error),
    }
}

/// Returns the tests that fail with the faults of a round.
///
/// Errors: the tree cannot be copied, or does not build.
fn round(round: usize, faults: &[&Fault], turn: u64, run: &mut Run) -> Result<Fallen, String> {
    let target = PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let folder = std::path::absolute(target.join("faults")).map_err(|error| error.to_string())?;
    let tree = folder.join("tree");
    println!("\n== round {round}: {} faults, in {}", faults.len(), tree.display());
    copy(&tree, faults)?;
    let mut fallen = Fallen::new();
    for stage in table::circle(Circle::Quick, false, turn) {
        let log = folder
            .join(format!("round-{round}"))
            .join(stage.name.replace(|letter: char| !letter.is_alphanumeric(), "_"));
        let place = Place { folder: &tree, target: &folder.join("built"), log: &log };
        let (passed, output) =
            run.stage_elsewhere(&stage, &place).map_err(|error| format!("{}: {error}", log.display()))?;
        if !passed && stage.needed {
            let reasons: Vec<&str> = output.lines().filter(|line| line.starts_with("error")).take(5).collect();
            return Err(format!(
                "the faults of round {round} do not build ({}): {}",
                log.display(),
                reasons.join(" / ")
            ));
        }
        fallen.extend(faults::fallen(&output).into_iter().map(|test| (stage.name.clone(), test)));
    }
    Ok(fallen)
}

/// Makes the copy what git knows and does not ignore, with these faults. Files that are so already are not written.
fn copy(tree: &Path, faults: &[&Fault]) -> Result<(), String> {
    let fault = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let listed = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = listed.ok_or("git does not list the files of the tree")?;
    // A file that was removed and not committed is listed as well.
    let files: BTreeSet<&str> = listed.split('\0').filter(|file| Path::new(file).is_file()).collect();
    for file in &files {
        let (from, to) = (Path::new(file), tree.join(file));
        let mut bytes = std::fs::read(from).map_err(|error| fault(from, error))?;
        if faults.iter().any(|fault| fault.file == *file) {
            let text = String::from_utf8(bytes).map_err(|_| format!("{file} is no text"))?;
            bytes = faults::planted(file, &text, faults)?.into_bytes();
        }
        if std::fs::read(&to).is_ok_and(|old| old == bytes) {
            continue;
        }
        let made = to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&to, bytes));
        let permissions = std::fs::metadata(from).map(|facts| facts.permissions());
        made.and_then(|()| std::fs::set_permissions(&to, permissions?)).map_err(|error| fault(&to, error))?;
    }
    if let Some(missing) = faults.iter().find(|fault| !files.contains(&*fault.file)) {
        return Err(format!("there is no file {}", missing.file));
    }
    remove_others(tree, tree, &files).map_err(|error| fault(tree, error))
}

/// Removes files that the tree no longer has.
fn remove_others(tree: &Path, folder: &Path, files: &BTreeSet<&str>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            remove_others(tree, &path, files)?;
        } else if path.strip_prefix(tree).ok().and_then(Path::to_str).is_none_or(|name| !files.contains(name)) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Prints the test that found each fault, and the other tests that failed.
fn tell(faults: &[Fault], rounds: &[(usize, Fallen)], run: &mut Run) {
    println!("\n| in | round | fault | found by |");
    let mut wrong = Vec::new();
    for fault in faults.iter().filter(|fault| rounds.iter().any(|(round, _)| *round == fault.round)) {
        let outcome = match faults::outcome(fault, rounds) {
            Outcome::Found => "found".to_owned(),
            Outcome::Missed => "MISSED".to_owned(),
            Outcome::Unclear(round) => format!("UNCLEAR: that test fails in round {round} too, without the fault"),
        };
        println!("{} {outcome}", faults::row(fault));
        if outcome != "found" {
            wrong.push(format!("{} ({}): {outcome}", fault.what, fault.area()));
        }
    }
    for (round, fallen) in rounds {
        let own = |stage: &str, test: &str| {
            faults.iter().any(|fault| fault.round == *round && fault.is_found_by(stage, test))
        };
        let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (stage, test) in fallen.iter().filter(|(stage, test)| !own(stage, test)) {
            others.entry(stage).or_default().push(test);
        }
        for (stage, tests) in others {
            println!("\nfell too in round {round}, {stage}: {}", tests.len());
            tests.iter().for_each(|test| println!("  {test}"));
        }
    }
    wrong.iter().for_each(|fault| run.wrong(fault));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_is_the_tree_with_its_faults() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        std::env::set_current_dir(std::fs::canonicalize(root).expect("the root")).expect("the root is a folder");
        let tree = std::env::temp_dir().join(format!("cantus-faults-{}", std::process::id()));
        let all = faults::parse(faults::LIST).expect("the list");
        let one = &all[0];
        std::fs::create_dir_all(tree.join("a/b")).expect("a folder");
        std::fs::write(tree.join("a/b/old.rs"), "").expect("a file");
        copy(&tree, &[one]).expect("a copy");
        let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
        let (own, copied) = (read(Path::new(&one.file)), read(&tree.join(&one.file)));
        assert_eq!(copied, faults::planted(&one.file, &own, &[one]).expect("the text is there"));
        assert!(own != copied && !tree.join("a/b/old.rs").exists());
        let time = |file: &str| std::fs::metadata(tree.join(file)).and_then(|facts| facts.modified()).expect("a time");
        let (before, other) = (time("Cargo.toml"), time(&one.file));
        copy(&tree, &[]).expect("a copy");
        assert_eq!((read(&tree.join(&one.file)), time("Cargo.toml")), (own, before));
        assert!(time(&one.file) >= other);
        let mode = |path: PathBuf| std::fs::metadata(path).expect("a file").permissions();
        assert_eq!(mode(tree.join("test")), mode("test".into()), "a script stays one");
        let _ = std::fs::remove_dir_all(tree);
    }
}
