//! The places where cases run. A target is one device behind one way to reach it.

use crate::case::{Case, Needs};

/// A way to run cases on one device.
pub trait Target: Send + Sync {
    /// One line that names the way and the device.
    fn name(&self) -> String;

    /// Why a case with these needs cannot run here, if it cannot.
    fn missing(&self, needs: &Needs) -> Option<String>;

    /// Runs a case and returns the final bytes of every binding, in order.
    ///
    /// # Errors
    /// A sentence that says what failed.
    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, Failure>;

    /// The engine, where there is one: it runs whole operations.
    fn engine(&self) -> Option<&cantus::Engine> {
        None
    }

    /// Returns whether float results must meet the CPU backend's shipped limits, and not only WGSL's own.
    fn strict(&self) -> bool {
        false
    }
}

/// A failure before there was a result to compare.
#[derive(Debug)]
pub struct Failure(pub String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            let inner_text = inner.to_string();
            if !text.contains(&inner_text) {
                text = format!("{text}: {inner_text}");
            }
            source = inner.source();
        }
        Self(text)
    }
}
