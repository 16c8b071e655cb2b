//! The one public error type. Each variant says what failed and what to do about it. Every crate returns it, and nothing outside tests panics. Variants, and
//! the narrow enums in them (`kinds`), tell causes apart for callers: `is_device_fault` decides whether the engine tries the next device, `is_input` what the
//! program exits with. Reasons are sentences for people; no code compares them (`tests/suite/errors.rs`).

mod kinds;

pub use kinds::{BindingError, DtypeError, IndexError, LimitError, OverrideError, ShapeError};

use crate::listed::Listed;
use std::sync::Arc;

/// `std::result::Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of Cantus.
///
/// The text of every variant is one sentence a user can act on; reports with source spans follow on lines of their own.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The WGSL text does not parse or validate, or it is valid and refused, for example because it exceeds a bound. `report` says which, with the place marked.
    #[error("the kernel {kernel} does not compile\n{report}")]
    InvalidWgsl {
        /// File name, or `wgsl` for text without one.
        kernel: String,
        /// The report with the source span.
        report: String,
        /// The place at fault, where one is known.
        place: Option<SourcePlace>,
    },
    /// The entry point is not in the kernel, or none was chosen among several.
    #[error("{}", entry_point_text(.wanted, .available))]
    EntryPoint {
        /// The name asked for; `None` when several exist and none was chosen.
        wanted: Option<String>,
        /// The compute entry points that exist.
        available: Vec<String>,
    },
    /// An override constant that does not exist, or a value that it cannot take.
    #[error("the override \"{name}\" cannot be set: {fault}")]
    Override {
        /// The override's name.
        name: String,
        /// Why, and which overrides exist.
        #[source]
        fault: OverrideError,
    },
    /// The kernel uses something that this device or executor does not have.
    #[error("the kernel {kernel} cannot run on {device}: {construct}{}", on_new_line(.report))]
    Unsupported {
        /// The kernel's name.
        kernel: String,
        /// The device's name.
        device: String,
        /// The unsupported construct, and what to do.
        construct: String,
        /// The source with the place marked, or empty.
        report: String,
    },
    /// A binding was left out, is unknown, or does not fit what was bound to it.
    #[error("the kernel {kernel}, binding \"{binding}\": {fault}")]
    Binding {
        /// The kernel's name.
        kernel: String,
        /// The binding's name.
        binding: String,
        /// The mismatch, and what is expected.
        #[source]
        fault: BindingError,
    },
    /// A dtype is wrong.
    #[error("{0}")]
    Dtype(#[from] DtypeError),
    /// A shape, an axis or a number of elements is wrong.
    #[error("{0}")]
    Shape(#[from] ShapeError),
    /// Something is larger than what holds it.
    #[error("{0}")]
    Limit(#[from] LimitError),
    /// An index, a place or a range names nothing.
    #[error("{0}")]
    Index(#[from] IndexError),
    /// An argument is not acceptable: its value, whatever its dtype and shape.
    #[error("{what}: {reason}")]
    InvalidInput {
        /// The argument.
        what: String,
        /// Why, and what is expected.
        reason: String,
    },
    /// A file is damaged, is of another format than its name says, or cannot hold what is written to it.
    #[error("{file}: {reason}")]
    InvalidFile {
        /// The file, or what was read from it.
        file: String,
        /// Why, and what is expected.
        reason: String,
    },
    /// Something is in a state, or on a device, in which this cannot be done with it.
    #[error("{what}: {reason}")]
    InvalidState {
        /// The thing.
        what: String,
        /// Its state, and what to do.
        reason: String,
    },
    /// The library contradicts itself: a defect, to be reported.
    #[error("{what}: {reason} (this is a fault of the library)")]
    Fault {
        /// The place.
        what: String,
        /// The contradiction.
        reason: String,
    },
    /// The engine's own memory limit would be exceeded.
    #[error("{what} needs {}, but {} of the memory limit of {} are in use (raise it with Builder::memory_limit, or drop tensors)",
        Bytes(*.requested), Bytes(*.in_use), Bytes(*.limit))]
    MemoryLimit {
        /// The allocation's purpose.
        what: String,
        /// Bytes asked for.
        requested: u64,
        /// Bytes in use.
        in_use: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The device or the system has no memory left.
    #[error("{device} is out of memory: {what} needs {} (drop tensors, or use smaller tiles)", Bytes(*.bytes))]
    OutOfMemory {
        /// The device.
        device: String,
        /// The allocation's purpose.
        what: String,
        /// Bytes asked for.
        bytes: u64,
    },
    /// No device could be opened; each candidate's reason is listed.
    #[error("no device for {wanted}{}", reasons_text(.reasons))]
    NoDevice {
        /// The request.
        wanted: String,
        /// Candidate and reason.
        reasons: Vec<(String, String)>,
    },
    /// The device reported an error while it compiled, submitted or transferred.
    #[error("{device} failed at {action}: {message}")]
    Device {
        /// The device.
        device: String,
        /// The action that failed, with the kernel's or tensor's name.
        action: String,
        /// The device's own words.
        message: String,
    },
    /// The device is gone; what lived there is lost.
    #[error("{device} was lost: {reason} (create a new Engine; the tensors on the device are lost)")]
    DeviceLost {
        /// The device.
        device: String,
        /// The driver's reason.
        reason: String,
    },
    /// A tensor's contents were lost by an earlier failure.
    #[error("the tensor {tensor} was lost: {cause}")]
    TensorLost {
        /// The tensor's label.
        tensor: String,
        /// The cause of the loss.
        #[source]
        cause: Arc<Error>,
    },
    /// The time limit passed.
    #[error("{what} did not finish within {milliseconds} ms on {device} (raise it with Builder::timeout)")]
    Timeout {
        /// The kernel or transfer.
        what: String,
        /// The device.
        device: String,
        /// The limit.
        milliseconds: u64,
    },
    /// Workgroups made no progress within the limit on that: the kernel may have no end.
    #[error(
        "{what} made no progress for {milliseconds} ms on {device} (if it has an end, raise the limit with Builder::stall_limit)"
    )]
    Stalled {
        /// The kernel.
        what: String,
        /// The device.
        device: String,
        /// The limit.
        milliseconds: u64,
    },
    /// A kernel stored beyond the end of an array, and the engine looks for that ([`Config::check_stores`](crate::Config::check_stores)). Elsewhere such
    /// stores do nothing.
    #[error(
        "the kernel {kernel} stores out of range, {stores} times in this dispatch; the first time to place {place} of {of}, which has {length} (compare the index with its length before the store)"
    )]
    StoreOutOfRange {
        /// The kernel.
        kernel: String,
        /// The binding, or another array.
        of: String,
        /// The place, counted in what the store writes: elements, or numbers of elements that are vectors.
        place: u64,
        /// The places that there are.
        length: u64,
        /// The stores of invocations out of range.
        stores: u64,
    },
    /// The caller cancelled the work.
    #[error("{what} was cancelled")]
    Cancelled {
        /// The kernel.
        what: String,
    },
    /// Tensors of two engines met in one operation.
    #[error("the tensor {tensor} belongs to another engine (read it with to_vec and make a tensor of it here)")]
    AnotherEngine {
        /// The tensor's label.
        tensor: String,
    },
    /// A configuration file, variable or flag cannot be understood.
    #[error("configuration, {place}: {reason}")]
    Config {
        /// File, variable or flag.
        place: String,
        /// Why, and what is expected.
        reason: String,
    },
    /// A file that was named as input could not be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// A file could not be written, or a library not be loaded.
    #[error("{action} {path}: {reason}")]
    Io {
        /// The action that failed, e.g. `cannot write`.
        action: String,
        /// The file.
        path: String,
        /// The system's reason.
        reason: String,
    },
}

/// A place in WGSL text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePlace {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Offset in bytes.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}

impl SourcePlace {
    /// Returns the place of a range of bytes in a text; `None` if the range is not inside it.
    #[must_use]
    pub fn of(text: &str, range: std::ops::Range<usize>) -> Option<Self> {
        text.get(range.clone())?;
        let before = text.get(..range.start)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Some(Self {
            line: number(before.matches('\n').count() + 1),
            column: number(before.get(line_start..)?.chars().count() + 1),
            offset: number(range.start),
            length: number(range.len()),
        })
    }
}

/// Constructors for errors that are a thing and a sentence about it.
macro_rules! of_sentences {
    ($($(#[$doc:meta])* $name:ident = |$what:ident, $reason:ident| $error:expr;)*) => {
        impl Error {
            $(
                $(#[$doc])*
                #[cold]
                #[must_use]
                pub fn $name(what: impl Into<String>, reason: impl Into<String>) -> Self {
                    let ($what, $reason) = (what.into(), reason.into());
                    $error
                }
            )*
        }
    };
}

of_sentences! {
    /// Returns [`DtypeError::Refused`].
    dtype = |what, reason| DtypeError::Refused { what, reason }.into();
    /// Returns [`ShapeError::Unfit`].
    shape = |what, reason| ShapeError::Unfit { what, reason }.into();
    /// Returns [`LimitError::Beyond`].
    limit = |what, reason| LimitError::Beyond { what, reason }.into();
    /// Returns [`IndexError::Beyond`].
    index = |what, reason| IndexError::Beyond { what, reason }.into();
    /// Returns [`Error::InvalidInput`].
    invalid = |what, reason| Self::InvalidInput { what, reason };
    /// Returns [`Error::InvalidFile`].
    file = |file, reason| Self::InvalidFile { file, reason };
    /// Returns [`Error::InvalidState`].
    state = |what, reason| Self::InvalidState { what, reason };
    /// Returns [`Error::Fault`].
    fault = |what, reason| Self::Fault { what, reason };
}

impl Error {
    /// Returns the place of the error in the kernel's text, if known.
    #[must_use]
    pub fn place(&self) -> Option<SourcePlace> {
        match self {
            Self::InvalidWgsl { place, .. } => *place,
            Self::TensorLost { cause, .. } => cause.place(),
            _ => None,
        }
    }

    /// Returns whether the caller's input is at fault (the program exits with 2), false for a failure at run time (1).
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::InvalidWgsl { .. }
            | Self::EntryPoint { .. }
            | Self::Override { .. }
            | Self::Binding { .. }
            | Self::Dtype(_)
            | Self::Shape(_)
            | Self::Limit(_)
            | Self::Index(_)
            | Self::InvalidInput { .. }
            | Self::InvalidFile { .. }
            | Self::InvalidState { .. }
            | Self::AnotherEngine { .. }
            | Self::Config { .. }
            | Self::StoreOutOfRange { .. }
            | Self::Unreadable { .. } => true,
            Self::TensorLost { cause, .. } => cause.is_input(),
            Self::Unsupported { .. }
            | Self::Fault { .. }
            | Self::MemoryLimit { .. }
            | Self::OutOfMemory { .. }
            | Self::NoDevice { .. }
            | Self::Device { .. }
            | Self::DeviceLost { .. }
            | Self::Timeout { .. }
            | Self::Stalled { .. }
            | Self::Cancelled { .. }
            | Self::Io { .. } => false,
        }
    }

    /// Returns [`Error::Unreadable`] for the system's error, in plain words.
    ///
    /// ```
    /// let error = std::fs::read("none.toml").unwrap_err();
    /// let error = cantus::Error::unreadable(std::path::Path::new("none.toml"), &error);
    /// assert_eq!(error.to_string(), "cannot read none.toml: there is no such file");
    /// ```
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn unreadable(path: &std::path::Path, error: &std::io::Error) -> Self {
        let reason = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            std::io::ErrorKind::PermissionDenied => "no permission".to_owned(),
            std::io::ErrorKind::IsADirectory => "it is a folder: name a file in it".to_owned(),
            std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            _ => error.to_string(),
        };
        Self::Unreadable { path: path.display().to_string(), reason }
    }

    /// Returns whether the same kernel may run on another device, which decides whether the engine falls back. Exceeding the memory limit does not
    /// count, because it was set on purpose.
    #[must_use]
    pub fn is_device_fault(&self) -> bool {
        matches!(
            self,
            Self::Unsupported { .. }
                | Self::OutOfMemory { .. }
                | Self::Device { .. }
                | Self::DeviceLost { .. }
                | Self::Timeout { .. }
        )
    }
}

/// Returns an error's text without the remedies for Rust code in brackets on its first line: for front ends that suggest their own flags or
/// keywords.
///
/// ```
/// let error = cantus::Error::Timeout { what: "sum".to_owned(), device: "GPU".to_owned(), milliseconds: 5 };
/// assert_eq!(error.to_string(), "sum did not finish within 5 ms on GPU (raise it with Builder::timeout)");
/// assert_eq!(cantus::error::without_remedies(&error.to_string()), "sum did not finish within 5 ms on GPU");
/// ```
#[must_use]
pub fn without_remedies(text: &str) -> String {
    const NAMES: [&str; 6] = ["Builder::", "Kernel::", "ops::", "a new Engine", "drop tensors", "to_vec"];
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    let mut said = String::with_capacity(text.len());
    let mut left = first;
    while let Some(open) = left.find(" (") {
        let (before, bracket) = left.split_at(open);
        said.push_str(before);
        let end = bracket.find(')').map_or(bracket.len(), |close| close + 1);
        let (bracket, after) = bracket.split_at(end);
        if !NAMES.iter().any(|name| bracket.contains(name)) {
            said.push_str(bracket);
        }
        left = after;
    }
    said + left + rest
}

fn entry_point_text(wanted: &Option<String>, available: &[String]) -> String {
    let list = if available.is_empty() { "none".to_owned() } else { available.join(", ") };
    match wanted {
        Some(name) => format!("there is no compute entry point \"{name}\" (the kernel has: {list})"),
        None if available.is_empty() => {
            "the kernel has no compute entry point (write one: @compute @workgroup_size(64) fn main() {})".to_owned()
        }
        None => {
            format!("the kernel has several compute entry points: choose one of {list} (Kernel::with_entry_point)")
        }
    }
}

fn on_new_line(report: &str) -> String {
    if report.is_empty() { String::new() } else { format!("\n{report}") }
}

fn reasons_text(reasons: &[(String, String)]) -> String {
    if reasons.is_empty() {
        return " (see: cantus devices)".to_owned();
    }
    let list: Vec<String> = reasons.iter().map(|(name, reason)| format!("{name}: {reason}")).listed();
    format!(": {}", list.join("; "))
}

/// A byte count that prints in binary units: `64.0 GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} bytes", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = UNITS[0];
        for next in &UNITS[1..] {
            if value < 1024.0 {
                break;
            }
            value /= 1024.0;
            unit = next;
        }
        write!(f, "{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::SourcePlace;

    #[test]
    fn a_place_counts_lines_and_characters() {
        let text = "fn a() {}\n/* ü */ x = 1;";
        let start = text.find('x').unwrap_or_default();
        let place = SourcePlace { line: 2, column: 9, offset: 19, length: 1 };
        assert_eq!(SourcePlace::of(text, start..start + 1), Some(place));
        assert_eq!(SourcePlace::of(text, 0..2).map(|place| (place.line, place.column)), Some((1, 1)));
        assert_eq!(SourcePlace::of(text, start..99), None, "a range behind the end");
    }
}
