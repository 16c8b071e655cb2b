//! Errors while modules are linked.

use std::ops::Range;

use crate::Origin;

/// The reason why a kernel's modules were not linked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text is not WESL, or names something that is not there.
    #[error("{}", report(.message, .file, .text, .place))]
    Text {
        /// The fault, and the remedy.
        message: String,
        /// The author's file.
        file: String,
        /// The author's text.
        text: String,
        /// The bytes at fault.
        place: Range<usize>,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The path.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// A file of settings is not understood.
    #[error("{path}: {reason}")]
    Settings {
        /// The path.
        path: String,
        /// The fault of it.
        reason: String,
    },
}

impl Error {
    pub(crate) fn at(origin: &Origin, place: Range<usize>, message: String) -> Self {
        Self::Text { message, file: origin.file.to_string(), text: origin.text.to_string(), place }
    }

    /// Line and column of the error, from 1; the column counts characters.
    #[must_use]
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        match self {
            Self::Text { text, place, .. } => Some(line_and_column(text, place.start)),
            Self::Unreadable { .. } | Self::Settings { .. } => None,
        }
    }
}

pub(crate) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before.get(line_start..).unwrap_or_default().chars().count() + 1)
}

/// The message with its line, in the form of naga's reports.
fn report(message: &str, file: &str, text: &str, place: &Range<usize>) -> String {
    let (line, column) = line_and_column(text, place.start);
    let shown = text.lines().nth(line - 1).unwrap_or_default();
    let rest = shown.chars().count().saturating_sub(column - 1);
    let marked = text.get(place.clone()).unwrap_or_default().chars().count().clamp(1, rest.max(1));
    let margin = " ".repeat(line.to_string().len());
    let blank = " ".repeat(column - 1);
    let marks = "^".repeat(marked);
    format!(
        "error: {message}\n{margin} ┌─ {file}:{line}:{column}\n{margin} │\n{line} │ {shown}\n{margin} │ {blank}{marks}\n"
    )
}
