//! Whole operations on an engine, against float64 written from their definitions.

mod operations;
mod shipped;

use cantus::Engine;

type Run = Box<dyn Fn(&Engine) -> Result<(), String> + Send + Sync>;

/// An operation with its inputs and what must come out.
pub struct Check {
    pub name: String,
    run: Run,
}

impl Check {
    fn new(name: impl Into<String>, run: impl Fn(&Engine) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }

    /// Runs it, and compares.
    ///
    /// # Errors
    /// The first element that is wrong, or what the engine said.
    pub fn run(&self, engine: &Engine) -> Result<(), String> {
        (self.run)(engine)
    }
}

/// The shipped kernels.
pub fn shipped() -> Vec<Check> {
    shipped::checks()
}

/// The shipped kernels and the operations on tensors.
pub fn all() -> Vec<Check> {
    let mut checks = shipped();
    checks.extend(operations::checks());
    checks
}

/// The start of an operation's message if the device lacks the operation.
pub(crate) const UNSUPPORTED: &str = "not on this device: ";

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn words(error: cantus::Error) -> String {
    match error {
        cantus::Error::Unsupported { .. } => format!("{UNSUPPORTED}{error}"),
        other => other.to_string(),
    }
}
