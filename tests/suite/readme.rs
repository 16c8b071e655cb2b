//! The README's table of targets says how each was last verified: the conformance suite's own words.

use cantus::backend::Registry;
use kit::verified::{How, TABLE};

const README: &str = include_str!("../../README.md");

/// The table under "## Devices": its rows, cells trimmed.
fn rows() -> Vec<Vec<String>> {
    let section = README.split("\n## Devices\n").nth(1).expect("the README has a section Devices");
    let lines = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    lines.skip(2).map(cells).collect()
}

#[test]
fn the_table_says_what_the_suite_verified() {
    let rows = rows();
    let said: Vec<(&str, &str)> =
        rows.iter().map(|row| (row[0].as_str(), row.last().expect("has cells").as_str())).collect();
    let known: Vec<(&str, &str)> = TABLE.iter().map(|row| (row.target, row.words)).collect();
    assert_eq!(said, known, "README.md and tests/kit/verified.rs disagree");
}

#[test]
fn the_words_fit_the_kind_of_verification() {
    for row in TABLE {
        let fits = match row.how {
            How::Hardware => row.words.starts_with("run on hardware: ") && !row.devices.is_empty(),
            How::Software => row.words.starts_with("run on a software device: ") && !row.devices.is_empty(),
            How::Double => row.words.contains("not run on hardware") && row.devices.is_empty(),
        };
        assert!(fits, "{}: {}", row.target, row.words);
    }
}

#[test]
fn every_backend_is_in_the_table() {
    for backend in Registry::with_defaults().backends() {
        let name = format!("`{}`", backend.name());
        assert!(TABLE.iter().any(|row| row.target == name), "{name} is missing");
    }
}
