//! The engine's errors as the bindings' own type: one case for each kind, with its parts, and the sentence for a person in `text`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cantus::error::LimitError;

/// An error. `text` says it in one sentence, with what to do; reports of kernels follow on lines of their own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, uniffi::Error)]
pub enum CantusError {
    /// The WGSL text does not parse or validate; `report` shows the place.
    #[error("{text}")]
    InvalidWgsl {
        /// For a person.
        text: String,
        /// The report with the source span.
        report: String,
    },
    /// The entry point is not in the kernel, or none was chosen among several.
    #[error("{text}")]
    EntryPoint {
        /// For a person.
        text: String,
        /// The compute entry points that exist.
        available: Vec<String>,
    },
    /// An override constant that does not exist, or a value that it cannot take.
    #[error("{text}")]
    Override {
        /// For a person.
        text: String,
        /// The override's name.
        name: String,
    },
    /// A binding was left out, is unknown, or does not fit what was bound to it.
    #[error("{text}")]
    Binding {
        /// For a person.
        text: String,
        /// The kernel's name.
        kernel: String,
        /// The binding's name.
        binding: String,
    },
    /// A dtype is wrong.
    #[error("{text}")]
    Dtype {
        /// For a person.
        text: String,
    },
    /// A shape, an axis or a number of elements is wrong.
    #[error("{text}")]
    Shape {
        /// For a person.
        text: String,
    },
    /// Something is larger than what holds it.
    #[error("{text}")]
    Limit {
        /// For a person.
        text: String,
    },
    /// An index, a place or a range names nothing.
    #[error("{text}")]
    Index {
        /// For a person.
        text: String,
    },
    /// An argument, setting, file or state is not acceptable.
    #[error("{text}")]
    InvalidInput {
        /// For a person.
        text: String,
    },
    /// The kernel uses something that no device at hand has.
    #[error("{text}")]
    Unsupported {
        /// For a person.
        text: String,
        /// The unsupported construct.
        construct: String,
    },
    /// The engine's own memory limit, or the device's memory, is used up.
    #[error("{text}")]
    OutOfMemory {
        /// For a person.
        text: String,
        /// Bytes asked for.
        bytes: u64,
    },
    /// No device could be opened.
    #[error("{text}")]
    NoDevice {
        /// For a person, with each candidate's reason.
        text: String,
    },
    /// A device reported an error, or is gone.
    #[error("{text}")]
    Device {
        /// For a person.
        text: String,
        /// The device.
        device: String,
        /// It is gone: make a new engine.
        lost: bool,
    },
    /// A tensor's contents were lost by an earlier failure.
    #[error("{text}")]
    TensorLost {
        /// For a person, with the cause.
        text: String,
    },
    /// The time limit passed.
    #[error("{text}")]
    Timeout {
        /// For a person.
        text: String,
        /// The limit.
        milliseconds: u64,
    },
    /// The caller cancelled the work.
    #[error("{text}")]
    Cancelled {
        /// For a person.
        text: String,
    },
    /// Anything else.
    #[error("{text}")]
    Other {
        /// For a person.
        text: String,
    },
}

/// `std::result::Result` with [`CantusError`].
pub type Result<T> = std::result::Result<T, CantusError>;

/// Runs what calls the library: a panic is an error with its text, in every language.
pub(crate) fn unwound<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(CantusError::Other { text: format!("a fault in Cantus, please report it: {text}") })
    })
}

impl CantusError {
    /// Creates the error of an argument that the bindings themselves refuse.
    pub(crate) fn input(text: impl Into<String>) -> Self {
        Self::InvalidInput { text: text.into() }
    }

    /// Creates the error of a size that the bindings themselves refuse.
    pub(crate) fn shape(text: impl Into<String>) -> Self {
        Self::Shape { text: text.into() }
    }
}

impl From<cantus::Error> for CantusError {
    fn from(error: cantus::Error) -> Self {
        use cantus::Error as E;
        let text = cantus::error::without_remedies(&error.to_string());
        match error {
            E::InvalidWgsl { report, .. } => Self::InvalidWgsl { text, report },
            E::EntryPoint { available, .. } => Self::EntryPoint { text, available },
            E::Override { name, .. } => Self::Override { text, name },
            E::Binding { kernel, binding, .. } => Self::Binding { text, kernel, binding },
            E::Dtype(_) => Self::Dtype { text },
            E::Shape(_) => Self::Shape { text },
            E::Limit(LimitError::Memory { bytes, .. } | LimitError::MemoryLimit { bytes, .. }) => {
                Self::OutOfMemory { text, bytes }
            }
            E::Limit(_) => Self::Limit { text },
            E::Index(_) | E::StoreOutOfRange { .. } => Self::Index { text },
            E::InvalidInput { .. } | E::InvalidFile { .. } | E::InvalidState { .. } => Self::InvalidInput { text },
            E::AnotherEngine { .. } | E::Config { .. } | E::Unreadable { .. } => Self::InvalidInput { text },
            E::Unsupported { construct, .. } => Self::Unsupported { text, construct },
            E::MemoryLimit { requested: bytes, .. } | E::OutOfMemory { bytes, .. } => Self::OutOfMemory { text, bytes },
            E::NoDevice { .. } => Self::NoDevice { text },
            E::Device { device, .. } => Self::Device { text, device, lost: false },
            E::DeviceLost { device, .. } => Self::Device { text, device, lost: true },
            E::TensorLost { .. } => Self::TensorLost { text },
            E::Timeout { milliseconds, .. } | E::Stalled { milliseconds, .. } => Self::Timeout { text, milliseconds },
            E::Cancelled { .. } => Self::Cancelled { text },
            _ => Self::Other { text },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let unwinds = || -> Result<()> { std::panic::panic_any("three of two") };
        let text = "a fault in Cantus, please report it: three of two".to_owned();
        assert_eq!(unwound(unwinds), Err(CantusError::Other { text }));
    }
}
