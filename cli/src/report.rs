//! The program's output: data on stdout, one line about what was done on stderr, tables, JSON.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cantus::backend::DeviceInfo;
use cantus::{Engine, Error, Result};
use serde_json::{Value, json};

/// Errors and warnings are all that goes to stderr.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Keeps what was done and how far it is to itself.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Returns whether [`be_quiet`] was called.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes text to stdout. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// [`Error::Io`] when stdout fails otherwise.
pub fn print(text: &str) -> Result<ExitCode> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Io {
            action: "cannot write".to_owned(),
            path: "to stdout".to_owned(),
            reason: error.to_string(),
        }),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes JSON to stdout, indented.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &Value) -> Result<ExitCode> {
    print(&format!("{value:#}\n"))
}

/// Says in one line on stderr what was done, unless `--quiet`.
pub fn done(text: &str) -> ExitCode {
    if is_quiet() {
        return ExitCode::SUCCESS;
    }
    // Nobody to tell when stderr is gone.
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::SUCCESS
}

/// The names of the devices that kernels ran on: the engine's, or those that it fell back to.
pub fn ran_on(engine: &Engine) -> Vec<String> {
    let mut ran: Vec<String> = engine.metrics().into_iter().filter(|row| row.count > 0).map(|row| row.device).collect();
    ran.sort_unstable();
    ran.dedup();
    ran
}

/// Describes the devices on which kernels ran.
pub fn device_text(engine: &Engine) -> String {
    let device = &engine.selected().device;
    match ran_on(engine).as_slice() {
        [] => format!("{}: {}", device.backend, device.name),
        [one] if *one == device.name => format!("{}: {}", device.backend, device.name),
        others => others.join(", "),
    }
}

/// The engine's device for a script.
pub fn device_json(device: &DeviceInfo) -> Value {
    json!({ "backend": device.backend, "index": device.index, "name": device.name })
}

/// Milliseconds for a script, to the microsecond.
pub fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// A time for a person: `6.1 ms`, `2.35 s`.
pub fn time_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0..1e-3 => format!("{:.0} µs", seconds * 1e6),
        1e-3..0.1 => format!("{:.1} ms", seconds * 1e3),
        0.1..1.0 => format!("{:.0} ms", seconds * 1e3),
        1.0..120.0 => format!("{seconds:.2} s"),
        _ => format!("{:.1} min", seconds / 60.0),
    }
}

/// Columns of the terminal that stdout is; without one those of `COLUMNS`, and without that none: lines are as long as they are.
pub fn columns() -> Option<usize> {
    let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into());
    terminal.or_else(|| std::env::var("COLUMNS").ok()?.parse().ok())
}

/// A text's lines within the terminal, broken between words; what goes on is set in by `indent`.
pub fn wrapped(text: &str, indent: usize) -> String {
    columns().map_or_else(|| text.to_owned(), |most| wrapped_at(text, indent, most))
}

fn wrapped_at(text: &str, indent: usize, most: usize) -> String {
    let mut wrapped = String::new();
    for line in text.split_inclusive('\n') {
        let (mut start, mut used) = (0, 0);
        for word in line.split_inclusive(' ') {
            let length = word.trim_end().chars().count();
            if used > start && used + length > most {
                wrapped.truncate(wrapped.trim_end().len());
                wrapped.push('\n');
                wrapped.extend(std::iter::repeat_n(' ', indent));
                (start, used) = (indent, indent);
            }
            wrapped.push_str(word);
            used += word.chars().count();
        }
    }
    wrapped
}

/// A text of at most that many characters.
pub fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The least that is left of a column which gives way.
const NARROWEST: usize = 8;

/// As [`table`], within the terminal: the cells of the column `wide` are cut where the table would not fit.
pub fn fitted_table(heading: &[&str], rows: &[Vec<String>], wide: usize) -> String {
    let Some(most) = columns() else { return table(heading, rows) };
    let widths = widths(heading, rows);
    let over = (widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2)).saturating_sub(most);
    let width = widths.get(wide).map_or(0, |width| width.saturating_sub(over)).max(NARROWEST);
    let cut = |row: &Vec<String>| {
        let mut row = row.clone();
        if let Some(cell) = row.get_mut(wide) {
            *cell = short(cell, width);
        }
        row
    };
    table(heading, &rows.iter().map(cut).collect::<Vec<_>>())
}

fn widths(heading: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<usize> = heading.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

/// A table with a heading, columns as wide as they need. Cells must not span lines.
pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let widths = widths(heading, rows);
    let mut text = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (cell, &width) in cells.zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(&mut heading.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_set_in() {
        let text = "cpu 0: a word after a word\nshort\n";
        assert_eq!(wrapped_at(text, 2, 14), "cpu 0: a word\n  after a word\nshort\n");
        // A word that is longer than the line stays whole.
        assert_eq!(wrapped_at("a incomprehensibilities b", 2, 8), "a\n  incomprehensibilities\n  b");
    }
}
