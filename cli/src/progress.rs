//! A line on stderr that says how much is done, while that is a terminal. It counts what has finished, not what was only recorded.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cantus::{Engine, Result};

use crate::report;

/// Cells of the bar, where there is room.
const CELLS: usize = 40;
/// Between looks of the line.
const REFRESH: Duration = Duration::from_millis(100);

/// Work of a known amount. Clones count together.
#[derive(Debug, Clone)]
pub struct Progress(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    total: u64,
    unit: &'static str,
    /// Somebody looks.
    shown: bool,
    start: Instant,
    done: AtomicU64,
    drawn: Mutex<Option<Instant>>,
}

impl Progress {
    /// Creates a bar of that number of units.
    pub fn new(total: u64, unit: &'static str) -> Self {
        let shown = !report::is_quiet()
            && io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let (start, done, drawn) = (Instant::now(), AtomicU64::new(0), Mutex::new(None));
        Self(Arc::new(Shared { total, unit, shown, start, done, drawn }))
    }

    /// Adds to the finished work.
    pub fn add(&self, more: u64) {
        let done = self.0.done.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        self.draw(done);
    }

    /// Sets the finished work.
    pub fn set(&self, done: u64) {
        self.0.done.store(done, Ordering::Relaxed);
        self.draw(done);
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.0.shown {
            // Nobody to tell when stderr is gone.
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    fn draw(&self, done: u64) {
        let Shared { total, unit, shown, start, drawn, .. } = &*self.0;
        if !shown {
            return;
        }
        // Whoever finds another at it has been drawn by that one, nearly.
        let Ok(mut drawn) = drawn.try_lock() else { return };
        if drawn.is_some_and(|last| last.elapsed() < REFRESH) {
            return;
        }
        *drawn = Some(Instant::now());
        let columns = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0.into());
        let _ = write!(io::stderr(), "\r{}\x1b[K", line(done.min(*total), *total, unit, start.elapsed(), columns));
    }
}

/// The line: a bar, figures, and how long the rest takes if it goes on like this.
fn line(done: u64, total: u64, unit: &str, elapsed: Duration, columns: usize) -> String {
    let mut text = format!(" {done} of {total} {unit}");
    if done > 0 {
        let left = elapsed.as_secs_f64() * (total - done) as f64 / done as f64;
        let _ = match left {
            0.0..120.0 => write!(text, ", {left:.0} s left"),
            120.0..7200.0 => write!(text, ", {:.0} min left", left / 60.0),
            _ => write!(text, ", {:.1} h left", left / 3600.0),
        };
    }
    let cells = CELLS.min(columns.saturating_sub(text.chars().count() + 1));
    let full = (u128::from(done) * cells as u128 / u128::from(total.max(1))) as usize;
    "█".repeat(full) + &"░".repeat(cells - full) + &text
}

/// Work that an engine computes later than it is recorded: it is waited for now and then, so that what was computed is what counts. Where
/// nobody looks, nothing is waited for.
#[derive(Debug)]
pub struct Computed {
    progress: Progress,
    /// Recorded and not yet waited for.
    open: u64,
    /// The amount of work recorded before it is waited for.
    ahead: u64,
    since: Instant,
}

impl Computed {
    /// Creates the progress of that number of steps.
    pub fn new(total: u64, unit: &'static str) -> Self {
        Self { progress: Progress::new(total, unit), open: 0, ahead: 1, since: Instant::now() }
    }

    /// Notes that a step was recorded.
    ///
    /// # Errors
    /// What the engine says of the steps so far.
    pub fn recorded(&mut self, engine: &Engine) -> Result<()> {
        self.open += 1;
        if !self.progress.0.shown || self.open < self.ahead {
            return Ok(());
        }
        engine.finish()?;
        self.progress.add(std::mem::take(&mut self.open));
        self.ahead = paced(self.ahead, self.since.elapsed());
        self.since = Instant::now();
        Ok(())
    }
}

impl Drop for Computed {
    fn drop(&mut self) {
        self.progress.clear();
    }
}

/// Returns how much to record next, given the time that `ahead` steps took: about [`REFRESH`], which is often enough to look alive and rare
/// enough to cost nothing. At most twice as much.
fn paced(ahead: u64, took: Duration) -> u64 {
    let wanted = ahead as f64 * REFRESH.as_secs_f64() / took.as_secs_f64().max(1e-9);
    (wanted as u64).clamp(1, ahead.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_much_and_how_long() {
        let shown = line(1, 4, "rounds", Duration::from_secs(2), 80);
        assert_eq!(shown, "█".repeat(10) + &"░".repeat(30) + " 1 of 4 rounds, 6 s left");
        assert_eq!(line(0, 4, "rounds", Duration::ZERO, 80), "░".repeat(40) + " 0 of 4 rounds");
        assert!(line(1, 1000, "rows", Duration::from_secs(1), 80).ends_with(", 17 min left"));
        for columns in [10, 30, 80] {
            let shown = line(123_456, 1_000_000, "rows", Duration::from_secs(9), columns).chars().count();
            assert!(shown < columns.max(40), "{columns}: {shown}");
        }
        assert!(line(0, 0, "rows", Duration::ZERO, 80).contains("0 of 0"));
    }

    #[test]
    fn the_pace_of_waiting() {
        let milliseconds = Duration::from_millis;
        assert_eq!(paced(1, milliseconds(1)), 2, "no more than twice as much");
        assert_eq!(paced(64, milliseconds(100)), 64);
        assert_eq!(paced(64, milliseconds(800)), 8);
        assert_eq!(paced(1, milliseconds(9000)), 1);
    }
}
