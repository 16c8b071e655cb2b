//! The results of a machine's devices: the report that `cantus verify` writes, and that `docs/hardware` keeps. `cantus verify -o` writes a `Record`,
//! and `cargo xtask hardware` makes the pages of `docs/hardware` of them. A device is right if something ran and nothing failed; cases that did not run are
//! listed with their reasons and never count as passed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// The outcomes of all cases on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The version of Cantus.
    pub cantus: String,
    /// Day of the run: `2026-11-22`.
    pub date: String,
    /// The operating system and the processor's architecture: `linux x86_64`.
    pub system: String,
    /// The processor's name, where the system tells.
    pub processor: String,
    pub devices: Vec<Device>,
    /// Backends without a device.
    pub absent: Vec<Absent>,
}

/// A backend without a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    pub backend: String,
    pub reason: String,
}

/// The outcomes of all cases on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub backend: String,
    pub name: String,
    /// `discrete`, `software`, …
    pub kind: String,
    pub driver: String,
    pub passed: usize,
    pub failures: Vec<Failure>,
    /// The known deviations, by reason.
    pub deviating: BTreeMap<String, Vec<String>>,
    /// The cases that did not run, by reason.
    pub not_run: BTreeMap<String, Vec<String>>,
    pub seconds: f64,
}

/// A case that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub case: String,
    pub message: String,
}

impl Device {
    /// Takes in what became of a case.
    pub fn add(&mut self, case: &str, outcome: Outcome) {
        let case = case.to_owned();
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed(message) => self.failures.push(Failure { case, message }),
            Outcome::Expected(reason) => self.deviating.entry(reason).or_default().push(case),
            Outcome::NotRun(reason) => self.not_run.entry(reason).or_default().push(case),
        }
    }

    fn counts(&self) -> [usize; 4] {
        let sum = |groups: &BTreeMap<String, Vec<String>>| groups.values().map(Vec::len).sum();
        [self.passed, self.failures.len(), sum(&self.deviating), sum(&self.not_run)]
    }

    /// Its cells in a table: backend, device, passed, failed, deviating, not run.
    #[must_use]
    pub fn cells(&self) -> Vec<String> {
        let counts = self.counts().map(|count| count.to_string());
        [self.backend.clone(), self.name.clone()].into_iter().chain(counts).collect()
    }
}

/// The heading of [`Device::cells`].
pub const HEADING: [&str; 6] = ["backend", "device", "passed", "failed", "deviating", "not run"];

impl Record {
    /// Returns whether something ran, and nothing failed.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.devices.iter().any(|device| device.passed > 0) && self.devices.iter().all(|d| d.failures.is_empty())
    }

    /// Returns the record as a page in Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text =
            format!("# Cantus {} on {}, {}\n\nProcessor: {}\n\n", self.cantus, self.system, self.date, self.processor);
        row(
            &mut text,
            HEADING.iter().map(|cell| (*cell).to_owned()).chain(["driver".to_owned(), "seconds".to_owned()]),
        );
        row(&mut text, std::iter::repeat_n("---".to_owned(), HEADING.len() + 2));
        for device in &self.devices {
            let more = [device.driver.clone(), format!("{:.0}", device.seconds)];
            row(&mut text, device.cells().into_iter().chain(more));
        }
        for device in &self.devices {
            let name = format!("{}: {}", device.backend, device.name);
            if !device.failures.is_empty() {
                let _ = writeln!(text, "\n## Failed on {name}\n");
            }
            for failure in &device.failures {
                let _ = writeln!(text, "- `{}`: {}", failure.case, failure.message.replace('\n', "\n  "));
            }
            for (title, groups) in [("Known deviations of", &device.deviating), ("Not run on", &device.not_run)] {
                if !groups.is_empty() {
                    let _ = writeln!(text, "\n## {title} {name}\n");
                }
                for (reason, cases) in groups {
                    let _ = writeln!(text, "- {reason}: {}", cases.join(", "));
                }
            }
        }
        if !self.absent.is_empty() {
            text.push_str("\n## Without a device\n\n");
        }
        for absent in &self.absent {
            let _ = writeln!(text, "- {}: {}", absent.backend, absent.reason);
        }
        text
    }
}

/// A row of a Markdown table.
fn row(text: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(|cell| cell.replace(['\n', '|'], " ")).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

const PAGE: &str = "\
# Devices that were checked

`cantus verify` runs about a thousand kernels and operations of known answers on every device of a machine, and lists the wrong answers.
Each file in this folder is such a report. Please send one if your device is missing, or if its driver does better or worse:

1. Run `cantus verify -o VENDOR-DEVICE-SYSTEM.json` and put the file into this folder.
2. Run `cargo xtask hardware`, which writes this page, and open a pull request.

*Deviating* cases fail for a known reason outside Cantus. Cases *not run* need a feature that the device lacks.

";

/// The page that `docs/hardware` opens with: a row for each device of each report, which has a file name.
#[must_use]
pub fn page(reports: &[(String, Record)]) -> String {
    let mut text = PAGE.to_owned();
    let more = ["kind", "driver", "system", "Cantus", "report"].map(str::to_owned);
    row(&mut text, HEADING.iter().map(|cell| (*cell).to_owned()).chain(more));
    row(&mut text, std::iter::repeat_n("---".to_owned(), HEADING.len() + 5));
    for (file, record) in reports {
        for device in &record.devices {
            let more = [
                device.kind.clone(),
                device.driver.clone(),
                record.system.clone(),
                format!("{}, {}", record.cantus, record.date),
                format!("[{file}]({file})"),
            ];
            row(&mut text, device.cells().into_iter().chain(more));
        }
    }
    text
}
