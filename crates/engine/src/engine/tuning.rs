//! The options and the results of `Engine::tune`. The operations know which variants they have, and how these are measured.

use std::time::Duration;

/// Options of [`Engine::tune`](super::Engine::tune).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TuneOptions {
    /// Sets the time after which no measurement begins.
    pub(crate) limit: Duration,
    /// Measures usual sizes too, in addition to the jobs that the engine ran so far.
    pub(crate) usual: bool,
    /// Repeats earlier measurements.
    pub(crate) again: bool,
}

impl Default for TuneOptions {
    /// Measures the jobs that ran so far, for two seconds.
    fn default() -> Self {
        Self { limit: Duration::from_secs(2), usual: false, again: false }
    }
}

impl TuneOptions {
    /// Measures the jobs that ran so far, for two seconds.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time after which no measurement begins.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Measures usual sizes too, in addition to the jobs that the engine ran so far.
    #[must_use]
    pub fn usual(mut self, usual: bool) -> Self {
        self.usual = usual;
        self
    }

    /// Repeats earlier measurements.
    #[must_use]
    pub fn again(mut self, again: bool) -> Self {
        self.again = again;
        self
    }
}

/// An operation that was measured.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tuned {
    /// The device.
    pub device: String,
    /// The operation and its sizes, rounded to powers of two.
    pub operation: String,
    /// The variant that runs from now on.
    pub variant: String,
    /// Its least time.
    pub time: Duration,
    /// The variant that ran before anything was measured.
    pub shipped: String,
    /// Its least time.
    pub shipped_time: Duration,
    /// Variants that were measured, of how many.
    pub measured: (usize, usize),
}
