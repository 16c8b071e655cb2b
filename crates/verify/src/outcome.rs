//! The outcome of a case.

use std::panic::AssertUnwindSafe;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::check::judge;
use crate::checks::{Check, UNSUPPORTED};
use crate::deviations::{self, Known};
use crate::device::Target;

/// The outcome of a case on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
        match Self::against_known(&target.name(), &case.name, || run_and_judge(target, case)) {
            // Each device lists the products that it has; those of 16 x 16 halves, or of 8 x 8, are among them, or it has none.
            Self::Failed(message) if case.needs.cooperative_matrix && message.contains(UNLISTED) => {
                Self::NotRun("the device lists no such cooperative matrices".to_owned())
            }
            other => other,
        }
    }

    /// Runs a whole operation, where there is an engine.
    pub fn of_check(target: &dyn Target, check: &Check) -> Option<Self> {
        let engine = target.engine()?;
        let outcome = Self::against_known(&target.name(), &check.name, || check.run(engine));
        // Who takes operations and no kernels has some operations only; everybody else has all of them.
        let has_some = engine.selected().device.capabilities.operation_graphs;
        Some(match outcome {
            Self::Failed(message) if has_some && message.starts_with(UNSUPPORTED) => {
                Self::NotRun("the device has no such operation".to_owned())
            }
            other => other,
        })
    }

    /// A user's driver may be newer than the list of what is known to go wrong: what passes has passed.
    #[must_use]
    pub fn of_a_newer_driver(self) -> Self {
        match self {
            Self::Failed(message) if message == NO_DEVIATION => Self::Passed,
            other => other,
        }
    }

    fn against_known(device: &str, name: &str, run: impl FnOnce() -> Result<(), String>) -> Self {
        let known = deviations::find(device, name);
        if let Some(deviation) = known.filter(|deviation| deviation.known == Known::Crashes) {
            return Self::NotRun(deviation.reason.to_owned());
        }
        // A panic in one case must not hide the others.
        let judged = std::panic::catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|payload| Err(format!("panicked: {}", words(payload.as_ref()))));
        match (judged, known) {
            (Ok(()), None) => Self::Passed,
            (Ok(()), Some(_)) => Self::Failed(NO_DEVIATION.to_owned()),
            (Err(_), Some(deviation)) => Self::Expected(deviation.reason.to_owned()),
            (Err(message), None) => Self::Failed(message),
        }
    }
}

/// The text of the refusal of a kernel whose matrices the device does not list.
const UNLISTED: &str = "cooperative matrices that the device does not list";

const NO_DEVIATION: &str = "is declared a deviation, but passes: drop the entry";

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
