//! Errors about what a caller gave: narrow enums, one for each area, so that a program tells a wrong dtype, a wrong shape and a limit apart without
//! reading English. Cases that occur in many places carry their numbers; the last variant of an enum is a sentence.

use super::Bytes;

/// A wrong dtype.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DtypeError {
    /// The elements have another dtype than the one that was asked for.
    #[error("{what}: its elements are {found}, not {wanted}")]
    Mismatch {
        /// The tensor, or another thing that has elements.
        what: String,
        /// Its dtype.
        found: &'static str,
        /// The dtype that was asked for.
        wanted: &'static str,
    },
    /// Something is not for a dtype, or not for several together.
    #[error("{what}: {reason}")]
    Refused {
        /// The operation, with its dtypes.
        what: String,
        /// The dtypes that it takes, and what to do.
        reason: String,
    },
}

/// A wrong shape, axis, or number of elements.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// There is no such axis.
    #[error("axis {axis}: there are {rank} axes (0 to {}, or -1 to -{rank} from the end)", .rank.saturating_sub(1))]
    Axis {
        /// The axis, from the end where it is negative.
        axis: isize,
        /// The number of axes.
        rank: usize,
    },
    /// Two shapes do not broadcast.
    #[error("the shapes {left:?} and {right:?}: they do not broadcast: {} and {} at axis {axis} (lengths must be equal, or one of them 1)",
        .lengths[0], .lengths[1])]
    Broadcast {
        /// One shape.
        left: Vec<usize>,
        /// The other.
        right: Vec<usize>,
        /// The axis of the result at which they differ.
        axis: usize,
        /// Their lengths there.
        lengths: [usize; 2],
    },
    /// The contents have another size than their shape.
    #[error("the shape {shape:?}: it takes {expected} bytes of {dtype}, {given} were given")]
    Contents {
        /// The shape.
        shape: Vec<usize>,
        /// The dtype of its elements.
        dtype: &'static str,
        /// The bytes that it takes.
        expected: u64,
        /// The bytes that were given.
        given: u64,
    },
    /// A shape does not fit what is done with it.
    #[error("{what}: {reason}")]
    Unfit {
        /// The thing that has the shape.
        what: String,
        /// The mismatch, and what is expected.
        reason: String,
    },
}

/// More than something holds. What an engine allocates is [`Error::MemoryLimit`](super::Error::MemoryLimit) and
/// [`Error::OutOfMemory`](super::Error::OutOfMemory).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// Input takes more than the memory limit of the settings.
    #[error("{what}: it takes {}, above the memory limit of {}{}", Bytes(*.bytes), Bytes(*.limit), in_brackets(.remedy))]
    MemoryLimit {
        /// The input.
        what: String,
        /// The bytes that it takes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
        /// The remedy, or empty.
        remedy: String,
    },
    /// Input takes more memory than the system gives.
    #[error("{what}: it takes {}, and {}{}", Bytes(*.bytes), free_text(*.free), in_brackets(.remedy))]
    Memory {
        /// The input.
        what: String,
        /// The bytes that it takes.
        bytes: u64,
        /// The bytes that are free; `None` if the system refused them, which it may give another time.
        free: Option<u64>,
        /// The remedy, or empty.
        remedy: String,
    },
    /// A size is beyond what a device, a format or the library holds.
    #[error("{what}: {reason}")]
    Beyond {
        /// The thing that is too large.
        what: String,
        /// Its size, the limit, and what to do.
        reason: String,
    },
}

impl LimitError {
    /// Adds what to do, where it is about memory.
    #[must_use]
    pub fn with_remedy(mut self, text: &str) -> Self {
        if let Self::MemoryLimit { remedy, .. } | Self::Memory { remedy, .. } = &mut self {
            text.clone_into(remedy);
        }
        self
    }
}

/// An index that names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// An element of a tensor of indices is out of range.
    #[error(
        "an index of {operation}: index {index} is out of range on axis {axis}, whose indices are {least} to {most}"
    )]
    Element {
        /// The operation that reads the indices.
        operation: String,
        /// The index.
        index: i64,
        /// The axis that it is of.
        axis: usize,
        /// The least index of the axis.
        least: i64,
        /// The greatest index of the axis.
        most: i64,
    },
    /// A place or range is beyond the end.
    #[error("{what}: {reason}")]
    Beyond {
        /// The place or range.
        what: String,
        /// The places that there are.
        reason: String,
    },
}

/// A fault of a binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindingError {
    /// Nothing was bound to it.
    #[error("{0}")]
    Unbound(String),
    /// A member of a uniform was not set, or none.
    #[error("{0}")]
    Unset(String),
    /// The entry point has no such binding.
    #[error("{0}")]
    Unknown(String),
    /// The tensor or value that was bound does not fit.
    #[error("{0}")]
    Unfit(String),
}

impl From<String> for BindingError {
    fn from(reason: String) -> Self {
        Self::Unfit(reason)
    }
}

/// A fault of an override constant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// It has no value.
    #[error("{0}")]
    Unset(String),
    /// The kernel has no such override.
    #[error("{0}")]
    Unknown(String),
    /// It cannot take the value.
    #[error("{0}")]
    Value(String),
}

fn free_text(free: Option<u64>) -> String {
    free.map_or_else(
        || "the system has no memory for that".to_owned(),
        |free| format!("{} of memory are free", Bytes(free)),
    )
}

fn in_brackets(remedy: &str) -> String {
    if remedy.is_empty() { String::new() } else { format!(" ({remedy})") }
}
