//! The access log: lines of JSON, written by a thread of their own. Where its file is slower than the service, lines are lost and counted; nobody
//! waits for them.

use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};

use crate::metrics::Metrics;

static LINES: OnceLock<SyncSender<String>> = OnceLock::new();

/// Opens the log; `-` is stdout.
///
/// # Errors
/// When the file cannot be written.
pub fn open(path: &Path) -> std::io::Result<()> {
    let mut out: Box<dyn std::io::Write + Send> = if path.as_os_str() == "-" {
        Box::new(std::io::stdout())
    } else {
        Box::new(std::fs::OpenOptions::new().create(true).append(true).open(path)?)
    };
    let (lines, given) = sync_channel::<String>(8192);
    let _ = LINES.set(lines);
    std::thread::Builder::new().name("access log".to_owned()).spawn(move || {
        while let Ok(first) = given.recv() {
            let mut text = first + "\n";
            for line in given.try_iter().take(1023) {
                text.push_str(&line);
                text.push('\n');
            }
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    })?;
    Ok(())
}

/// Writes a line.
pub fn write(metrics: &Metrics, _path: &Path, line: String) {
    if LINES.get().is_none_or(|lines| lines.try_send(line).is_err()) {
        metrics.log_lost.fetch_add(1, Ordering::Relaxed);
    }
}
