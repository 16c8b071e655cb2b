//! Edits of a text, and the way back: naga sees the edited text, reports show the author's. `Source` is what the rest of the crate holds of a text: every
//! span of naga's passes through `span` before it is shown. A text may come from several files (`File::origin`), and then a report shows the file. Edits
//! must not overlap; the longer or earlier one wins.

use naga::{Span, WithSpan};

use super::{Fault, diagnostics, report};
use crate::error::{Error, SourcePlace};
use cantus_base::listed::{Listed, Ordered};

/// Bytes that are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub start: u32,
    pub end: u32,
    pub text: String,
}

/// The position of an edit in the edited text.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u32,
    end: u32,
    old_start: u32,
    old_end: u32,
}

/// The name of a text, and if it was linked, the file that each part comes from.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) name: String,
    #[cfg(feature = "link")]
    pub(crate) origins: Option<std::sync::Arc<cantus_link::Origins>>,
}

impl File {
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            #[cfg(feature = "link")]
            origins: None,
        }
    }

    /// Bytes of the text in the file that they come from: its name, its text, and the bytes there.
    #[cfg(feature = "link")]
    fn origin(&self, span: Span) -> Option<(&cantus_link::Origin, std::ops::Range<usize>)> {
        self.origins.as_ref()?.of(span.to_range()?)
    }

    #[cfg(feature = "link")]
    fn is_linked(&self) -> bool {
        self.origins.is_some()
    }

    #[cfg(not(feature = "link"))]
    #[expect(clippy::unused_self, reason = "as with the feature `link`")]
    fn is_linked(&self) -> bool {
        false
    }
}

impl std::ops::Deref for File {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

/// A text as its author wrote it, and as naga gets it.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) file: File,
    pub(crate) text: String,
    edited: Option<(String, Vec<Piece>)>,
}

impl Source {
    pub(crate) fn plain(file: &File, text: &str) -> Self {
        Self { file: file.clone(), text: text.to_owned(), edited: None }
    }

    /// Applies edits; `None` without any. Of two that overlap, the one that begins first is kept, or the longer one if both begin together.
    pub(super) fn rewritten(file: &File, text: &str, mut edits: Vec<Edit>) -> Option<Self> {
        edits.order_by_key(|edit| (edit.start, std::cmp::Reverse(edit.end)));
        let mut edited = String::with_capacity(text.len() + 64);
        let mut pieces: Vec<Piece> = Vec::with_capacity(edits.len());
        let mut done = 0;
        for edit in edits {
            if edit.start < done || (edit.start == done && pieces.last().is_some_and(|last| last.old_end > edit.start))
            {
                continue;
            }
            edited.push_str(text.get(done as usize..edit.start as usize)?);
            let start = u32::try_from(edited.len()).ok()?;
            edited.push_str(&edit.text);
            let end = u32::try_from(edited.len()).ok()?;
            pieces.push(Piece { start, end, old_start: edit.start, old_end: edit.end });
            done = edit.end;
        }
        if pieces.is_empty() {
            return None;
        }
        edited.push_str(text.get(done as usize..)?);
        Some(Self { file: file.clone(), text: text.to_owned(), edited: Some((edited, pieces)) })
    }

    /// Returns the text for naga.
    pub(crate) fn for_naga(&self) -> &str {
        self.edited.as_ref().map_or(&self.text, |(edited, _)| edited)
    }

    /// A place of the edited text in the author's.
    pub(crate) fn span(&self, span: Span) -> Span {
        let (Some((_, pieces)), Some(range)) = (&self.edited, span.to_range()) else { return span };
        let back = |at: usize, ends: bool| {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let before = pieces.partition_point(|piece| piece.start < at || (piece.start == at && !ends));
            match before.checked_sub(1).and_then(|last| pieces.get(last)) {
                None => at,
                Some(piece) if at < piece.end || (ends && at == piece.end) => {
                    if ends {
                        piece.old_end
                    } else {
                        piece.old_start
                    }
                }
                Some(piece) => piece.old_end + (at - piece.end),
            }
        };
        let (start, end) = (back(range.start, false), back(range.end, true));
        Span::new(start, end.max(start))
    }

    /// The place of a span, where it has one in the kernel's own file.
    pub(crate) fn place(&self, span: Span) -> Option<SourcePlace> {
        self.authors_place(self.span(span))
    }

    /// Returns the place of a span of the author's text.
    fn authors_place(&self, span: Span) -> Option<SourcePlace> {
        #[cfg(feature = "link")]
        if self.file.is_linked() {
            let (origin, range) = self.file.origin(span)?;
            return if *origin.file == *self.file.name { SourcePlace::of(&origin.text, range) } else { None };
        }
        SourcePlace::of(&self.text, span.to_range()?)
    }

    /// The author's text from a span of it on.
    fn rest(&self, span: Span) -> Option<&str> {
        #[cfg(feature = "link")]
        if self.file.is_linked() {
            let (origin, range) = self.file.origin(span)?;
            return origin.text.get(range.start..);
        }
        self.text.get(span.to_range()?.start..)
    }

    /// Returns the line of the text before a span, if the span is on a later one.
    fn line_before(&self, span: Span) -> Option<u32> {
        let start = span.to_range()?.start;
        let before = self.text.get(..start)?.trim_end().len();
        let of = |start: usize| {
            Some(self.authors_place(Span::new(u32::try_from(start).ok()?, u32::try_from(start).ok()?))?.line)
        };
        let (line, own) = (of(before.checked_sub(1)?)?, of(start)?);
        (line < own).then_some(line)
    }

    /// A message with places of the author's text marked, in naga's form. Those of a linked text are shown in their files.
    fn emit(&self, message: String, labels: Vec<(Span, String)>) -> String {
        #[cfg(feature = "link")]
        if self.file.is_linked() {
            let mut files: Vec<(&cantus_link::Origin, Vec<(Span, String)>)> = Vec::new();
            for (span, label) in &labels {
                let Some((origin, range)) = self.file.origin(*span) else { continue };
                let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
                let label = (Span::new(number(range.start), number(range.end)), label.clone());
                match files.iter_mut().find(|(known, _)| *known == origin) {
                    Some((_, labels)) => labels.push(label),
                    None => files.push((origin, vec![label])),
                }
            }
            let mut files = files.into_iter();
            if let Some((origin, labels)) = files.next() {
                let mut report = report::emit(&origin.file, &origin.text, message, labels);
                for (origin, labels) in files {
                    let further = report::emit(&origin.file, &origin.text, "in another file".to_owned(), labels);
                    report.push_str(&further.replacen("error", "note", 1));
                }
                return report;
            }
        }
        report::emit(&self.file, &self.text, message, labels)
    }

    /// A place of the edited text marked in the author's, in naga's form.
    pub(crate) fn report(&self, message: String, span: Span, label: String) -> String {
        self.emit(message, vec![(self.span(span), label)])
    }

    /// Returns the report of a fault that our own reader found, with each place marked.
    pub(crate) fn fault(&self, fault: Fault) -> (String, Option<SourcePlace>) {
        let place = fault.labels.first().and_then(|(span, _)| self.authors_place(*span));
        (self.emit(fault.message, fault.labels), place)
    }

    /// An error of naga's parser.
    pub(crate) fn parse_error(&self, error: &naga::front::wgsl::ParseError) -> Error {
        let place = error.labels().next().and_then(|(span, _)| self.place(span));
        let is_plain = self.edited.is_none() && !self.file.is_linked();
        let message = diagnostics::of_operands(error.message());
        let mut report = if is_plain && message.is_none() && !report::has_long_lines(&self.text) {
            error.emit_to_string_with_path(&self.text, &self.file)
        } else {
            let message = std::iter::once(message.as_deref().unwrap_or_else(|| error.message()))
                .chain(error.notes())
                .listed()
                .join("\n");
            let labels = error.labels().map(|(span, label)| (self.span(span), label.to_owned()));
            self.emit(message, labels.collect())
        };
        let rest = error.labels().next().and_then(|(span, _)| self.rest(self.span(span)));
        report.push_str(rest.and_then(diagnostics::of_template).unwrap_or_default());
        report
            .push_str(&rest.and_then(|rest| diagnostics::of_other_language(error.message(), rest)).unwrap_or_default());
        if error.message().starts_with("expected `;`")
            && let Some(line) = error.labels().next().and_then(|(span, _)| self.line_before(self.span(span)))
        {
            report.push_str(&format!("note: the `;` belongs at the end of line {line}\n"));
        }
        Error::InvalidWgsl { kernel: self.file.name.clone(), report, place }
    }

    /// An error of naga's validator. Its place is the narrowest that it marks; the others enclose it.
    pub(crate) fn invalid<E: std::error::Error>(&self, error: &WithSpan<E>) -> Error {
        let place = error.spans().filter_map(|(span, _)| self.place(*span)).min_by_key(|place| place.length);
        let mut message = report::without_handles(&error.as_inner().to_string());
        let mut cause = error.as_inner().source();
        while let Some(inner) = cause {
            message = format!("{message}: {}", diagnostics::of_cause(inner));
            cause = inner.source();
        }
        let label =
            |label: &str| if label.starts_with("naga::") { "here".to_owned() } else { report::without_handles(label) };
        let labels = error.spans().map(|(span, text)| (self.span(*span), label(text)));
        let report = self.emit(message, labels.collect());
        Error::InvalidWgsl { kernel: self.file.name.clone(), report, place }
    }
}
