//! Reports that mark places of a text, in naga's form. Long lines are cut around the places: a text may be one line. Our own messages and naga's go through
//! it. A line of a generated text may have megabytes: only some bytes around each place are kept, and the places move with them. Handles of naga (`[12]`)
//! say nothing to an author and are taken out.

use std::ops::Range;

use naga::{Span, WithSpan};

use crate::error::SourcePlace;

/// Longer lines are cut.
const LONG: usize = 300;
/// Bytes before a place that are kept of a long line.
const BEFORE: usize = 80;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Message(String);

pub(super) fn has_long_lines(text: &str) -> bool {
    text.split('\n').any(|line| line.len() > LONG)
}

/// A message with places and their labels.
pub(super) fn emit(file: &str, text: &str, message: String, labels: Vec<(Span, String)>) -> String {
    // A module may come without its text.
    let is_there = |range: &Range<usize>| text.get(range.clone()).is_some();
    let labels = labels.into_iter().filter_map(|(span, label)| Some((span.to_range().filter(is_there)?, label)));
    let labels: Vec<(Range<usize>, String)> = labels.collect();
    let places: Vec<Range<usize>> = labels.iter().map(|(range, _)| range.clone()).collect();
    let cut = has_long_lines(text).then(|| Cut::new(text, &places));
    let shown = cut.as_ref().map_or(text, |cut| &cut.text);
    let mut error = WithSpan::new(Message(message));
    let mut columns = Vec::new();
    for (range, label) in labels {
        let moved = match &cut {
            Some(cut) => cut.place(&range),
            None => Some(range.clone()),
        };
        let Some(moved) = moved else { continue };
        columns.extend(SourcePlace::of(shown, moved.clone()).zip(SourcePlace::of(text, range)));
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        error = error.with_span(Span::new(number(moved.start), number(moved.end)), label);
    }
    let mut report = error.emit_to_string_with_path(shown, file);
    if cut.is_some() {
        // Columns are the author's.
        let head = |place: SourcePlace| format!("{file}:{}:{}\n", place.line, place.column);
        let found = columns.into_iter().find(|(shown, _)| report.contains(&head(*shown)));
        if let Some((shown, own)) = found {
            report = report.replacen(&head(shown), &head(own), 1);
        }
    }
    report
}

/// A text with shorter lines.
struct Cut {
    text: String,
    /// The old range and the new position of the parts that were kept.
    kept: Vec<(Range<usize>, usize)>,
}

impl Cut {
    fn new(text: &str, places: &[Range<usize>]) -> Self {
        let mut cut = Self { text: String::new(), kept: Vec::new() };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            let place = places.iter().find(|place| place.start < end && place.end >= start);
            let from = place.map_or(start, |place| place.start.max(start).saturating_sub(BEFORE).max(start));
            if line.len() <= LONG {
                cut.keep(text, start..end);
            } else {
                let from = border(text, from);
                let to = border(text, (from + LONG).min(end));
                cut.text.push_str(if from > start { "… " } else { "" });
                cut.keep(text, from..to);
                cut.text.push_str(if to < end { " …\n" } else { "" });
            }
            start = end;
        }
        cut
    }

    fn keep(&mut self, text: &str, range: Range<usize>) {
        self.kept.push((range.clone(), self.text.len()));
        self.text.push_str(text.get(range).unwrap_or_default());
    }

    /// A place of the whole text in this one, as far as it is kept.
    fn place(&self, place: &Range<usize>) -> Option<Range<usize>> {
        let at = self.kept.partition_point(|(range, _)| range.end <= place.start);
        let (range, now) = self.kept.get(at)?;
        let start = place.start.max(range.start);
        let end = place.end.min(range.end).max(start);
        (place.end >= range.start).then(|| now + (start - range.start)..now + (end - range.start))
    }
}

fn border(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A message of naga's without the numbers that it gives to what is in a module, and without empty names.
pub(super) fn without_handles(message: &str) -> String {
    let mut clean = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        let digits = from[1..].bytes().take_while(u8::is_ascii_digit).count();
        let is_handle = digits > 0 && from[1 + digits..].starts_with(']');
        clean.push_str(before);
        if is_handle {
            rest = &from[digits + 2..];
            // One space is enough.
            if clean.ends_with(' ') {
                rest = rest.strip_prefix(' ').unwrap_or(rest);
            }
        } else {
            clean.push('[');
            rest = &from[1..];
        }
    }
    clean.push_str(rest);
    let clean = clean
        .replace(" \'\'", "")
        .replace("Some()", "another type")
        .replace(" at Compute is", " is")
        .replace(" like must", " must");
    clean.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{emit, without_handles};

    #[test]
    fn handles_are_left_out() {
        let cases = [
            ("Accessing index 2 is out of [3] bounds", "Accessing index 2 is out of bounds"),
            ("Type [2] \'\' is invalid", "Type is invalid"),
            ("Function [0] \'f\' is invalid", "Function \'f\' is invalid"),
            ("Entry point main at Compute is invalid", "Entry point main is invalid"),
            ("an array[n] stays", "an array[n] stays"),
        ];
        for (message, clean) in cases {
            assert_eq!(without_handles(message), clean);
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let text = format!("a\n{}é here {}\nb", "é ".repeat(2000), "x ".repeat(2000));
        let at = text.find("here").unwrap() as u32;
        let report = emit("file", &text, "no".to_owned(), vec![(naga::Span::new(at, at + 4), "there".to_owned())]);
        assert!(report.len() < 2000, "{report}");
        assert!(report.contains("file:2:4003\n") && report.contains("there") && report.contains("here"), "{report}");
    }
}
