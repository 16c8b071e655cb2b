//! An error as the window shows it: what is wrong, and the lines of the kernel around the place. Reads no files.

use cantus::Error;
use cantus::error::SourcePlace;

/// Lines shown before and behind the place.
const AROUND: u32 = 2;

/// A failure to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The problem in one line.
    pub title: String,
    /// More, of any number of lines; may be empty.
    pub details: String,
    /// The place in the kernel, if there is one.
    pub excerpt: Option<Excerpt>,
}

/// Lines of a kernel, one of them marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The place.
    pub place: SourcePlace,
    /// Numbers from 1, and the text.
    pub lines: Vec<(u32, String)>,
    /// The label of the marked place; may be empty.
    pub label: String,
}

impl Excerpt {
    /// Columns of the place that lie on its first line, at least one: from, and how many.
    pub fn marked(&self) -> (usize, usize) {
        let from = self.place.column.saturating_sub(1) as usize;
        let line = self.lines.iter().find(|(number, _)| *number == self.place.line);
        let rest = line.map_or(0, |(_, text)| text.chars().count().saturating_sub(from));
        // In characters, of bytes: WGSL is ASCII except for comments and rare names, and the line's end bounds it.
        (from, (self.place.length as usize).min(rest).max(1))
    }
}

impl Problem {
    /// Describes an error; `text` is the kernel's, if the error concerns a kernel.
    pub fn new(error: &Error, text: &str) -> Self {
        match error {
            Error::InvalidWgsl { report, place, .. } => {
                let title = report.lines().next().unwrap_or_default();
                let title = title.strip_prefix("error: ").unwrap_or(title).trim().to_owned();
                let notes = report.lines().filter_map(|line| line.trim_start().strip_prefix("= "));
                let excerpt = place.and_then(|place| excerpt(text, place, label(report)));
                let details = if excerpt.is_some() {
                    notes.collect::<Vec<_>>().join("\n")
                } else {
                    report.lines().skip(1).collect::<Vec<_>>().join("\n").trim().to_owned()
                };
                Self { title, details, excerpt }
            }
            other => {
                let said = other.to_string();
                let (title, details) = said.split_once('\n').unwrap_or((&said, ""));
                Self { title: title.to_owned(), details: details.trim_end().to_owned(), excerpt: None }
            }
        }
    }

    /// Returns the place for the window's title: `line 3, column 14`.
    pub fn place(&self) -> Option<String> {
        self.excerpt.as_ref().map(|Excerpt { place, .. }| format!("line {}, column {}", place.line, place.column))
    }
}

/// Returns the text after the carets of a report.
fn label(report: &str) -> String {
    let mut behind = report.lines().filter_map(|line| line.rsplit_once('^')).map(|(_, label)| label.trim());
    behind.next_back().unwrap_or_default().to_owned()
}

fn excerpt(text: &str, place: SourcePlace, label: String) -> Option<Excerpt> {
    let wanted = place.line.saturating_sub(AROUND)..=place.line.saturating_add(AROUND);
    let numbered = (1..).zip(text.lines());
    let lines: Vec<(u32, String)> = numbered
        .filter(|(number, _)| wanted.contains(number))
        .map(|(number, line)| (number, line.replace('\t', " ")))
        .collect();
    lines.iter().any(|(number, _)| *number == place.line).then_some(Excerpt { place, lines, label })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_lines_and_its_mark() {
        let text = "// one\n@group(0) @binding(0) var<storage, read_write> v: array<f32>;\n\
                    @compute @workgroup_size(64)\nfn main() {\n    v[0] = nowhere;\n}\n// last\n// beyond\n";
        let error = cantus::Kernel::from_wgsl(text).unwrap_err();
        let problem = Problem::new(&error, text);
        assert_eq!(problem.place().as_deref(), Some("line 5, column 12"));
        let excerpt = problem.excerpt.unwrap();
        assert_eq!(excerpt.marked(), (11, 7));
        let numbers: Vec<u32> = excerpt.lines.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [3, 4, 5, 6, 7]);
        assert!(problem.title.contains("nowhere"), "{}", problem.title);
    }

    #[test]
    fn an_error_without_a_place_keeps_its_words() {
        let error = Error::invalid("a", "b\nc");
        let problem = Problem::new(&error, "");
        assert_eq!((problem.title.as_str(), problem.details.as_str()), ("a: b", "c"));
        assert!(problem.place().is_none());
    }
}
