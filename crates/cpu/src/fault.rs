//! How a program on the processor fails.

use crate::spmd::Stopped;

/// Why a program did not run to its end.
pub(super) enum Fault {
    Stopped(Stopped),
    /// The bound memory does not fit.
    Misfit(String),
    /// It stored out of range, and somebody wants to know: to what, at which place of how many, and how often.
    Beyond {
        of: String,
        place: u64,
        length: u64,
        stores: u64,
    },
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Self::Misfit(reason.to_owned())
    }
}
