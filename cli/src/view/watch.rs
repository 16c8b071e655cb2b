//! Watches a kernel file: reads it again whenever it is saved, on a thread of its own, and says what came of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime};

use cantus::Error;
use eframe::egui;

use super::source::{KernelFile, KernelSource};
use crate::parse::Size;

/// The interval between two looks at the file. A person does not notice it, and a look costs one system call.
const EVERY: Duration = Duration::from_millis(150);
/// Looks in a row without a file after which it has gone: an editor that replaces it is quicker.
const GONE: u32 = 10;

/// The result of a reading: where it failed, with the kernel's text.
pub type Reading = Result<Arc<KernelSource>, (Error, String)>;

/// The window's end. Dropping it ends the thread.
pub struct Watch {
    pub readings: Receiver<Reading>,
    sizes: Sender<Size>,
}

/// The state of a file when it was last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Watch {
    /// Reads the file now, and again after every change.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(file: KernelFile, size: Size, wake: egui::Context) -> std::io::Result<Self> {
        let (outbox, readings) = mpsc::channel();
        let (sizes, inbox) = mpsc::channel();
        std::thread::Builder::new().name("cantus-watch".to_owned()).spawn(move || {
            watch(&file, size, &inbox, |reading| {
                let heard = outbox.send(reading).is_ok();
                wake.request_repaint();
                heard
            })
        })?;
        Ok(Self { readings, sizes })
    }

    /// Pictures are to be of that size from now on.
    pub fn resize(&self, size: Size) {
        // The thread ends with this, never before.
        let _ = self.sizes.send(size);
    }
}

fn watch(file: &KernelFile, mut size: Size, inbox: &Receiver<Size>, tell: impl Fn(Reading) -> bool) {
    let mut seen = stamp(&file.path);
    let mut heard = tell(read(file, size));
    let mut missed = 0;
    while heard {
        match inbox.recv_timeout(EVERY) {
            Ok(wanted) => {
                size = inbox.try_iter().last().unwrap_or(wanted);
                heard = tell(read(file, size));
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = stamp(&file.path);
                if now.is_none() {
                    missed += 1;
                    if missed == GONE {
                        heard = tell(Err(gone(&file.path)));
                    }
                } else if now != seen || missed >= GONE {
                    (seen, missed) = (now, 0);
                    heard = tell(read(file, size));
                } else {
                    missed = 0;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn read(file: &KernelFile, size: Size) -> Reading {
    file.load(size).map(Arc::new).map_err(|error| (error, std::fs::read_to_string(&file.path).unwrap_or_default()))
}

/// The last picture stays.
fn gone(path: &Path) -> (Error, String) {
    let reason = "the file is gone (the picture stays; once the file is back, it is read again)".to_owned();
    (Error::Unreadable { path: path.display().to_string(), reason }, String::new())
}

fn stamp(path: &Path) -> Option<Stamp> {
    let known = std::fs::metadata(path).ok()?;
    Some(Stamp { modified: known.modified().ok(), bytes: known.len() })
}
