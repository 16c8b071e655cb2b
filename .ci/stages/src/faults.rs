//! Planted faults: changes of one line, each of which the quick circle must find. `.ci/faults` lists them; [`crate::plant`] plants them.
//!
//! A paragraph is a fault: what is wrong (`fault:`), the file, its text as it is (`from:`) and as it would be (`to:`), and the stage and the test
//! that must fail (`finds: STAGE | TEST`). Faults are planted many at once: in the first round the first one of each crate, in the second round
//! the second one. A fault that would hide another one says its own round (`round: N`).

use std::collections::HashMap;

/// The list.
pub const LIST: &str = include_str!("../../faults");

/// A fault, and what finds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub what: String,
    pub file: String,
    /// The text as it is, once in the file.
    pub from: String,
    /// The text as it would be; empty for a statement that is forgotten.
    pub to: String,
    /// The stage of the quick circle.
    pub stage: String,
    /// The test, without the line of an example or the device of a case.
    pub test: String,
    pub round: usize,
}

/// The tests that failed in a round, each with its stage.
pub type Fallen = Vec<(String, String)>;

/// The end of a fault.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// Its test failed.
    Found,
    /// Its test passed all the same.
    Missed,
    /// Its test fails in a round without it as well.
    Unclear(usize),
}

impl Fault {
    /// Returns the crate or folder that a fault is planted in.
    pub fn area(&self) -> &str {
        let rest = self.file.strip_prefix("crates/").unwrap_or(&self.file);
        rest.split('/').next().unwrap_or(rest)
    }

    /// Returns whether this test of that stage is the one that must fail: an example's name ends with its line, a case's with its device.
    pub fn is_found_by(&self, stage: &str, test: &str) -> bool {
        let rest = test.strip_prefix(self.test.as_str());
        self.stage == stage
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" on ") || rest.starts_with(" (line "))
    }
}

/// Reads a list of faults.
///
/// Errors: a paragraph without one of the lines, with another one, or with a round that is no number.
pub fn parse(text: &str) -> Result<Vec<Fault>, String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut faults: Vec<Fault> = Vec::new();
    for lines in lines.split(|line| line.trim().is_empty()).filter(|lines| !lines.is_empty()) {
        let mut fields = HashMap::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(|| format!("a line is `name: value`: {line}"))?;
            if fields.insert(name, value.trim().to_owned()).is_some() {
                return Err(format!("`{name}` is there twice: {line}"));
            }
        }
        let mut field =
            |name: &str| fields.remove(name).ok_or_else(|| format!("`{name}:` is missing: {}", lines.join(" / ")));
        let (what, file, from, to) = (field("fault")?, field("file")?, field("from")?, field("to")?);
        let finds = field("finds")?;
        let (stage, test) = finds.split_once(" | ").ok_or_else(|| format!("`finds` is STAGE | TEST: {finds}"))?;
        let round = field("round").ok();
        if let Some(name) = fields.keys().next() {
            return Err(format!("`{name}` is no line of a fault: {}", lines.join(" / ")));
        }
        let (stage, test) = (stage.to_owned(), test.to_owned());
        let mut fault = Fault { what, file, from, to, stage, test, round: 0 };
        fault.round = match round {
            Some(round) => round.parse().map_err(|_| format!("a round is a number, not {round}"))?,
            None => 1 + faults.iter().filter(|other| other.area() == fault.area()).count(),
        };
        faults.push(fault);
    }
    Ok(faults)
}

/// Returns the row of a fault in the table of `docs/internals/faults.md`.
pub fn row(fault: &Fault) -> String {
    let Fault { what, stage, test, round, .. } = fault;
    format!("| {} | {round} | {what} | {stage}: `{test}` |", fault.area())
}

/// Returns the contents of a file with the faults of a round.
///
/// Errors: the text that a fault replaces is not there once.
pub fn planted(file: &str, text: &str, faults: &[&Fault]) -> Result<String, String> {
    let mut text = text.to_owned();
    for fault in faults.iter().filter(|fault| fault.file == file) {
        let places = text.matches(&fault.from).count();
        if places != 1 {
            return Err(format!("{file} has this text {places} times, not once: {}", fault.from));
        }
        text = text.replacen(&fault.from, &fault.to, 1);
    }
    Ok(text)
}

/// Returns the tests that failed, by the output of test programs: the lists at their ends, and what a program said before it crashed.
pub fn fallen(output: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    };
    let mut is_list = false;
    for line in output.lines() {
        is_list = line == "failures:" || is_list && line.starts_with("    ");
        if is_list && line != "failures:" {
            add(line.trim());
        }
        if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            add(name);
        }
    }
    found
}

/// Returns the end of a fault, by what failed in each round that ran.
pub fn outcome(fault: &Fault, rounds: &[(usize, Fallen)]) -> Outcome {
    let fails = |fallen: &Fallen| fallen.iter().any(|(stage, test)| fault.is_found_by(stage, test));
    if !rounds.iter().any(|(round, fallen)| *round == fault.round && fails(fallen)) {
        return Outcome::Missed;
    }
    match rounds.iter().find(|(round, fallen)| *round != fault.round && fails(fallen)) {
        Some((round, _)) => Outcome::Unclear(*round),
        None => Outcome::Found,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::table::{self, Circle};

    const TWO: &str = "# a comment\nfault: a\nfile: crates/b/src/c.rs\nfrom: x: 1 < 2\nto:\nfinds: one, two | c::tests::d\n\n\
                       fault: e\nfile: crates/b/src/f.rs\nfrom: g\nto: h\nfinds: documentation | crates/b/src/f.rs - f::i\n";

    #[test]
    fn a_list_is_read() {
        let faults = parse(TWO).expect("two faults");
        let [first, second] = faults.as_slice() else { panic!("{faults:?}") };
        assert_eq!(
            (&*first.from, &*first.to, &*first.stage, &*first.test),
            ("x: 1 < 2", "", "one, two", "c::tests::d")
        );
        assert_eq!((first.area(), first.round, second.round), ("b", 1, 2));
        assert!(parse(&TWO.replace("to:\n", "")).is_err_and(|error| error.contains("`to:` is missing")));
        assert!(parse(&TWO.replace("to: h", "too: h")).is_err());
        assert!(parse(&TWO.replace("to: h", "to: h\nmore: h")).is_err_and(|error| error.contains("`more`")));
        assert!(parse(&TWO.replace(" | ", " ")).is_err_and(|error| error.contains("STAGE | TEST")));
        assert_eq!(parse(&TWO.replace("to: h", "to: h\nround: 3")).expect("two faults")[1].round, 3);
    }

    #[test]
    fn a_fault_is_planted_where_its_text_is_once() {
        let faults = parse(TWO).expect("two faults");
        let all: Vec<&Fault> = faults.iter().collect();
        assert_eq!(planted("crates/b/src/f.rs", "a g b", &all), Ok("a h b".to_owned()));
        assert_eq!(planted("crates/b/src/z.rs", "a g b", &all), Ok("a g b".to_owned()));
        assert!(planted("crates/b/src/f.rs", "a g g", &all).is_err_and(|error| error.contains("2 times")));
        assert!(planted("crates/b/src/f.rs", "a", &all).is_err());
    }

    #[test]
    fn failures_are_read() {
        let output = "     Running unittests src/lib.rs (target/debug/deps/a-0)\ntest a::tests::b ... ok\ntest a::tests::c ... FAILED\n\n\
                      failures:\n\n---- a::tests::c stdout ----\n    not a name\n\nfailures:\n    a::tests::c\n    case on cpu: x\n\n\
                      test result: FAILED. 1 passed; 2 failed\nfailures:\n    src/a.rs - a::d (line 7)\n";
        assert_eq!(fallen(output), ["a::tests::c", "case on cpu: x", "src/a.rs - a::d (line 7)"]);
        assert!(fallen("test a ... ok\n\ntest result: ok.\n    x\n").is_empty());
    }

    #[test]
    fn a_fault_is_found_missed_or_unclear() {
        let faults = parse(TWO).expect("two faults");
        let [first, second] = faults.as_slice() else { panic!("{faults:?}") };
        let fell = |stage: &str, test: &str| vec![(stage.to_owned(), test.to_owned())];
        let own = fell("one, two", "c::tests::d");
        assert_eq!(outcome(first, &[(1, own.clone()), (2, Vec::new())]), Outcome::Found);
        assert_eq!(outcome(first, &[(1, own.clone()), (2, own.clone())]), Outcome::Unclear(2));
        assert_eq!(outcome(first, &[(1, Vec::new()), (2, own)]), Outcome::Missed);
        assert_eq!(outcome(first, &[(1, fell("another", "c::tests::d"))]), Outcome::Missed);
        assert_eq!(outcome(first, &[(1, fell("one, two", "c::tests::d2"))]), Outcome::Missed);
        let example = fell("documentation", "crates/b/src/f.rs - f::i (line 12)");
        assert_eq!(outcome(second, &[(2, example)]), Outcome::Found);
    }

    /// A text that has changed since could not be planted, and a stage that is gone would find nothing.
    #[test]
    fn each_fault_of_the_list_can_be_planted_and_found() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let faults = parse(LIST).expect("the list");
        let stages = table::circle(Circle::Quick, false, 0);
        for fault in &faults {
            let text = std::fs::read_to_string(root.join(&fault.file)).expect(&fault.file);
            let changed = planted(&fault.file, &text, &[fault]).expect("the text is there once");
            assert_ne!(changed, text, "{}", fault.what);
            assert!(stages.iter().any(|stage| stage.name == fault.stage), "no stage of ./test is {}", fault.stage);
            let same = |other: &&Fault| other.stage == fault.stage && other.test == fault.test;
            let sharing = faults.iter().filter(same).count();
            assert_eq!(sharing, 1, "each fault has a test of its own: {}", fault.test);
        }
        let page = std::fs::read_to_string(root.join("docs/internals/faults.md")).expect("the page");
        let rows: Vec<String> = faults.iter().map(row).collect();
        let written: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
        assert_eq!(written, rows, "the rows should be:\n{}", rows.join("\n"));
        let crates = std::fs::read_dir(root.join("crates")).expect("the crates").flatten();
        // `cantus-wgpu` is `cantus-hal` by a function of two lines.
        let names = crates.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name != "wgpu");
        for area in names.chain(["cli".to_owned(), "shaders".to_owned()]) {
            let count = faults.iter().filter(|fault| fault.area() == area).count();
            assert!(count >= 2, "{area} has {count} faults, and two are asked for");
        }
    }
}
