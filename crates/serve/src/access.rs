//! The access log: lines of JSON, written by a thread of their own. Where its file is slower than the service or cannot be
//! written, lines are lost and counted; nobody waits for them.

use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

static LINES: OnceLock<SyncSender<String>> = OnceLock::new();
static LOST: AtomicU64 = AtomicU64::new(0);

/// Opens the log; `-` is stdout.
///
/// # Errors
/// When the file cannot be written.
pub fn open(path: &Path) -> std::io::Result<()> {
    let mut out: Box<dyn std::io::Write + Send> =
        if path.as_os_str() == "-" { Box::new(std::io::stdout()) } else { Box::new(crate::files::append(path)?) };
    let (lines, given) = sync_channel::<String>(8192);
    let _ = LINES.set(lines);
    std::thread::Builder::new().name("access log".to_owned()).spawn(move || {
        let mut told = false;
        while let Ok(first) = given.recv() {
            let mut count = 1;
            let mut text = first + "\n";
            for line in given.try_iter().take(1023) {
                count += 1;
                text.push_str(&line);
                text.push('\n');
            }
            let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            if let Err(error) = &written {
                LOST.fetch_add(count, Ordering::Relaxed);
                if !told {
                    crate::log(&format!("the access log cannot be written, and lines are lost: {error}"));
                }
            }
            told = written.is_err();
        }
    })?;
    Ok(())
}

/// Writes a line.
pub fn write(line: String) {
    if LINES.get().is_none_or(|lines| lines.try_send(line).is_err()) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// The number of lines that were lost.
pub fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}
