//! The table of outcomes at the end.

use std::collections::BTreeMap;
use std::time::Duration;

pub use kit::outcome::Outcome;
use libtest_mimic::{Completion, Failed};

/// As the harness has it.
pub fn completion(outcome: &Outcome) -> Result<Completion, Failed> {
    match outcome {
        Outcome::Passed => Ok(Completion::Completed),
        Outcome::Failed(message) => Err(message.into()),
        Outcome::Expected(reason) => Ok(Completion::ignored_with(format!("a known deviation: {reason}"))),
        Outcome::NotRun(reason) => Ok(Completion::ignored_with(reason)),
    }
}

/// The outcome on one device.
#[derive(Default)]
struct Row {
    passed: usize,
    failed: usize,
    expected: usize,
    not_run: usize,
    took: Duration,
}

#[derive(Default)]
pub struct Report {
    /// In the order in which the devices came.
    rows: Vec<(String, Row)>,
    /// Reason -> device and case.
    not_run: BTreeMap<String, Vec<String>>,
    expected: BTreeMap<String, Vec<String>>,
    failures: Vec<String>,
}

impl Report {
    /// Takes in one outcome.
    pub fn add(&mut self, device: &str, case: &str, outcome: Outcome, took: Duration) {
        let known = self.rows.iter().position(|(name, _)| name == device);
        let at = known.unwrap_or_else(|| {
            self.rows.push((device.to_owned(), Row::default()));
            self.rows.len() - 1
        });
        let row = &mut self.rows[at].1;
        row.took += took;
        match outcome {
            Outcome::Passed => row.passed += 1,
            Outcome::Failed(message) => {
                row.failed += 1;
                self.failures.push(format!("FAILED {case} on {device}: {message}"));
            }
            Outcome::Expected(reason) => {
                row.expected += 1;
                self.expected.entry(format!("{device}: {reason}")).or_default().push(case.to_owned());
            }
            Outcome::NotRun(reason) => {
                row.not_run += 1;
                self.not_run.entry(format!("{device}: {reason}")).or_default().push(case.to_owned());
            }
        }
    }

    /// Takes in all that happened on one device.
    pub fn device(&mut self, name: &str, outcomes: Vec<(String, Outcome)>, took: Duration) {
        let each = took / outcomes.len().max(1) as u32;
        outcomes.into_iter().for_each(|(case, outcome)| self.add(name, &case, outcome, each));
    }

    /// Prints the failures, the table and the closing line. False if anything failed, or if nothing ran at all.
    pub fn close(&self) -> bool {
        // Not as they come: that would be amid the harness's line of dots.
        self.failures.iter().for_each(|failure| println!("{failure}"));
        println!(
            "\n{:<60} {:>7} {:>7} {:>9} {:>8} {:>7}",
            "device", "passed", "failed", "deviating", "not run", "seconds"
        );
        for (name, row) in &self.rows {
            let Row { passed, failed, expected, not_run, took } = row;
            println!("{name:<60} {passed:>7} {failed:>7} {expected:>9} {not_run:>8} {:>7.1}", took.as_secs_f64());
        }
        for (reason, cases) in &self.not_run {
            kit::not_run(&format!("{} kernels", cases.len()), reason);
        }
        for (title, groups) in [("Known deviations", &self.expected), ("Not run", &self.not_run)] {
            if !groups.is_empty() {
                println!("\n{title}:");
            }
            for (reason, cases) in groups {
                println!("  {reason}\n    {}", cases.join(" "));
            }
        }
        let sum = |part: fn(&Row) -> usize| self.rows.iter().map(|(_, row)| part(row)).sum::<usize>();
        let (passed, failed) = (sum(|row| row.passed), sum(|row| row.failed));
        println!("\n{passed} passed, {failed} failed, {} skipped", sum(|row| row.expected + row.not_run));
        failed == 0 && passed > 0
    }
}
