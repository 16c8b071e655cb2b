//! The README's table of targets says how each was last verified: the conformance suite's own words.

use cantus::backend::Registry;
use cantus_verify::record::Record;
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
        let words = row.words.strip_prefix("experimental, ").unwrap_or(row.words);
        let fits = match row.how {
            How::Hardware => {
                words.starts_with("run on hardware: ") && !(row.devices.is_empty() && row.reported.is_empty())
            }
            How::Software => words.starts_with("run on a software device: ") && !row.devices.is_empty(),
            How::Double => words.contains("not run on hardware") && row.devices.is_empty(),
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

/// The reports under docs/hardware.
fn reports() -> Vec<Record> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/hardware");
    let files =
        std::fs::read_dir(folder).expect("the folder of the reports").map(|entry| entry.expect("an entry").path());
    let reports = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    reports
        .map(|path| {
            serde_json::from_slice(&std::fs::read(&path).expect("a report")).expect("a report of cantus verify")
        })
        .collect()
}

#[test]
fn the_table_and_the_reports_agree() {
    let reports = reports();
    let devices: Vec<_> = reports.iter().flat_map(|report| &report.devices).collect();
    for row in TABLE {
        for parts in row.devices.iter().chain(row.reported) {
            let reported = devices.iter().any(|device| {
                let name = format!("{}: {}", device.backend, device.name).to_lowercase();
                device.passed > 0 && device.failures.is_empty() && parts.iter().all(|part| name.contains(part))
            });
            assert!(reported, "{}: docs/hardware has no report without failures of {parts:?}", row.target);
        }
    }
    for device in devices.iter().filter(|device| ["integrated gpu", "discrete gpu"].contains(&device.kind.as_str())) {
        let row =
            TABLE.iter().find(|row| row.target == format!("`{}`", device.backend)).expect("a row for the backend");
        assert_eq!(row.how, How::Hardware, "{} ran on {}: the README's table may say so", row.target, device.name);
    }
}
