//! Lines to whoever runs the service. A thread of their own writes them to stderr: where nobody reads that, lines are lost and counted, and nothing
//! waits for them.

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

static LINES: OnceLock<Option<SyncSender<Line>>> = OnceLock::new();
static LOST: AtomicU64 = AtomicU64::new(0);

/// The most lines that wait.
const MOST: usize = 1024;

/// The longest time that the end of the process waits for them.
const FLUSH: Duration = Duration::from_millis(500);

enum Line {
    Text(String),
    /// Told when everything before it is written.
    Written(SyncSender<()>),
}

fn lines() -> Option<&'static SyncSender<Line>> {
    let begin = || {
        let (lines, given) = sync_channel(MOST);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write(&given)).ok().map(|_| lines)
    };
    LINES.get_or_init(begin).as_ref()
}

/// A line to whoever runs the service.
pub fn log(message: &str) {
    let line = Line::Text(format!("{message}\n"));
    if lines().is_none_or(|lines| lines.try_send(line).is_err()) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until the lines are written, but not long.
pub fn flush() {
    let (written, told) = sync_channel(1);
    if lines().is_some_and(|lines| lines.try_send(Line::Written(written)).is_ok()) {
        let _ = told.recv_timeout(FLUSH);
    }
}

fn write(given: &Receiver<Line>) {
    while let Ok(line) = given.recv() {
        match line {
            Line::Text(text) => {
                let lost = LOST.swap(0, Ordering::Relaxed);
                let lost = if lost == 0 { String::new() } else { format!("{lost} lines were lost\n") };
                let _ = std::io::stderr().write_all((lost + &text).as_bytes());
            }
            Line::Written(told) => drop(told.try_send(())),
        }
    }
}
