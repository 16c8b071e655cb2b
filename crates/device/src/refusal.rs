//! The outcome of a batch of which some commands did not run.

use std::sync::Arc;

use super::Command;
use crate::error::Error;

/// A batch that a device did not run, or not all of it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub struct Refusal {
    /// The first failure.
    pub error: Arc<Error>,
    /// The commands that ran.
    pub ran: Ran,
}

/// The part of a refused batch that ran.
#[derive(Debug, Clone)]
pub enum Ran {
    /// Nobody knows: everything that the batch writes is lost.
    Unknown,
    /// Nothing, and the commands come back: they may be submitted again, one by one, to find the one at fault.
    Nothing(Vec<Command>),
    /// All commands in their order but these, each with its place in the batch and what failed.
    AllBut(Vec<(usize, Error)>),
}

impl Refusal {
    /// Returns the outcome of a batch whose commands all ran except these, each with its place.
    ///
    /// # Errors
    /// When there are any.
    pub fn all_but(failed: Vec<(usize, Error)>) -> Result<(), Self> {
        match failed.first() {
            None => Ok(()),
            Some((_, error)) => Err(Self { error: Arc::new(error.clone()), ran: Ran::AllBut(failed) }),
        }
    }

    /// Creates the refusal of a batch of which nothing ran.
    #[must_use]
    pub fn whole(error: Error, batch: Vec<Command>) -> Self {
        Self { error: Arc::new(error), ran: Ran::Nothing(batch) }
    }
}

impl From<Error> for Refusal {
    /// Creates the refusal of a batch of which it is unknown what ran.
    fn from(error: Error) -> Self {
        Self { error: Arc::new(error), ran: Ran::Unknown }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Arc::unwrap_or_clone(refusal.error)
    }
}
