//! Outcomes, the lines printed as they come, and the table at the end.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use kit::case::Case;
use kit::check::judge;
use kit::deviations::{self, Known};
use kit::device::Target;

pub enum Outcome {
    Passed,
    Failed(String),
    /// Failed, as declared, for the given reason.
    Expected(String),
    NotRun(String),
}

impl Outcome {
    /// Runs `case` and judges what came back.
    pub fn of(target: &dyn Target, case: &Case) -> Self {
        if let Some(reason) = target.missing(&case.needs) {
            return Self::NotRun(reason);
        }
        let known = deviations::find(&target.name(), &case.name);
        if let Some(deviation) = known.filter(|d| d.known == Known::Crashes) {
            return Self::NotRun(deviation.reason.to_owned());
        }
        // A panic in one case must not hide the others.
        let judged = std::panic::catch_unwind(AssertUnwindSafe(|| run_and_judge(target, case)))
            .unwrap_or_else(|payload| Err(format!("panicked: {}", words(payload.as_ref()))));
        Self::against(judged, known)
    }

    /// An outcome known already, held against the declared deviations.
    pub fn of_shipped(target: &dyn Target, name: &str, judged: Result<(), String>) -> Self {
        Self::against(judged, deviations::find(&target.name(), name))
    }

    fn against(judged: Result<(), String>, known: Option<&deviations::Deviation>) -> Self {
        match (judged, known) {
            (Ok(()), None) => Self::Passed,
            (Ok(()), Some(_)) => Self::Failed("is declared a deviation, but passes: drop the entry".to_owned()),
            (Err(_), Some(deviation)) => Self::Expected(deviation.reason.to_owned()),
            (Err(message), None) => Self::Failed(message),
        }
    }
}

fn words(payload: &dyn std::any::Any) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

fn run_and_judge(target: &dyn Target, case: &Case) -> Result<(), String> {
    let bytes = target.run(case).map_err(|f| f.0)?;
    if bytes.len() != case.bindings.len() {
        return Err(format!("{} bindings came back of {}", bytes.len(), case.bindings.len()));
    }
    let finals: Vec<_> = case.bindings.iter().zip(&bytes).map(|(b, bytes)| b.initial.decode(bytes)).collect();
    (0..case.bindings.len()).try_for_each(|i| judge(&case.bindings[i], i, &finals, target.strict()))
}

#[derive(Default)]
pub struct Report {
    rows: Vec<String>,
    /// Reason -> device and case.
    not_run: BTreeMap<String, Vec<String>>,
    expected: BTreeMap<String, Vec<String>>,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Report {
    /// Takes in the outcomes of one device and prints its failures.
    pub fn device(&mut self, name: &str, outcomes: Vec<(String, Outcome)>, took: Duration) {
        let (mut passed, mut failed, mut expected, mut not_run) = (0, 0, 0, 0);
        for (case, outcome) in outcomes {
            match outcome {
                Outcome::Passed => passed += 1,
                Outcome::Failed(message) => {
                    failed += 1;
                    println!("FAILED {case} on {name}: {message}");
                }
                Outcome::Expected(reason) => {
                    expected += 1;
                    self.expected.entry(format!("{name}: {reason}")).or_default().push(case);
                }
                Outcome::NotRun(reason) => {
                    not_run += 1;
                    self.not_run.entry(format!("{name}: {reason}")).or_default().push(case);
                }
            }
        }
        self.rows
            .push(format!("{name:<60} {passed:>7} {failed:>7} {expected:>9} {not_run:>8} {:>7.1}", took.as_secs_f64()));
        self.passed += passed;
        self.failed += failed;
        self.skipped += expected + not_run;
    }

    /// Prints the table and the closing line. False if anything failed, or if nothing ran at all.
    pub fn close(&self) -> bool {
        println!(
            "\n{:<60} {:>7} {:>7} {:>9} {:>8} {:>7}",
            "device", "passed", "failed", "deviating", "not run", "seconds"
        );
        for row in &self.rows {
            println!("{row}");
        }
        for (title, groups) in [("Known deviations", &self.expected), ("Not run", &self.not_run)] {
            if !groups.is_empty() {
                println!("\n{title}:");
            }
            for (reason, cases) in groups {
                println!("  {reason}\n    {}", cases.join(" "));
            }
        }
        println!("\n{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        self.failed == 0 && self.passed > 0
    }
}
