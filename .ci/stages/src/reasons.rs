//! Why a stage failed: the lines of its output that say so, since the end of a long output is often all that is kept.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Reads what a stage prints, passes it on, and remembers what looks like a reason.
#[derive(Default)]
pub struct Reasons {
    /// The output of each stream so far, and a channel that closes with it.
    readers: Vec<(Arc<Mutex<Lines>>, Receiver<()>)>,
}

/// The most lines of each kind for a stage and a stream.
const LINES: usize = 20;
/// The most characters of a line.
const WIDTH: usize = 300;
/// The lines that are kept behind one that names a failure.
const FOLLOWING: usize = 4;

/// The output of a stream.
#[derive(Default)]
struct Lines {
    /// Those that name a failure, and the next.
    marked: Vec<String>,
    /// The last ones.
    last: VecDeque<String>,
    /// The lines that still belong to the last failure.
    following: usize,
}

impl Reasons {
    /// Begins to read the streams of a process that are piped.
    pub fn read(&mut self, child: &mut Child) {
        if let Some(stream) = child.stdout.take() {
            self.follow(stream, std::io::stdout());
        }
        if let Some(stream) = child.stderr.take() {
            self.follow(stream, std::io::stderr());
        }
    }

    fn follow(&mut self, stream: impl Read + Send + 'static, mut onto: impl Write + Send + 'static) {
        let (open, closed) = channel();
        let lines = Arc::new(Mutex::new(Lines::default()));
        self.readers.push((Arc::clone(&lines), closed));
        std::thread::spawn(move || {
            let _open: std::sync::mpsc::Sender<()> = open;
            let mut stream = BufReader::new(stream);
            let mut bytes = Vec::new();
            while stream.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
                let _ = onto.write_all(&bytes).and_then(|()| onto.flush());
                lines.lock().unwrap_or_else(PoisonError::into_inner).add(String::from_utf8_lossy(&bytes).trim_end());
                bytes.clear();
            }
        });
    }

    /// Returns the lines that say why, once the process has ended. A process that it left behind may hold the streams open: that one is
    /// not waited for.
    pub fn lines(self) -> Vec<String> {
        let end = Instant::now() + Duration::from_secs(2);
        let (mut marked, mut last) = (Vec::new(), Vec::new());
        for (lines, closed) in self.readers {
            let _ = closed.recv_timeout(end.saturating_duration_since(Instant::now()));
            let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            marked.extend(lines.marked.iter().cloned());
            last.extend(lines.last.iter().cloned());
        }
        if marked.is_empty() { last } else { marked }
    }
}

impl Lines {
    fn add(&mut self, line: &str) {
        let line: String = line.chars().take(WIDTH).collect();
        if line.is_empty() {
            return;
        }
        // The names that cargo, pytest, node's tests, the compiler and these stages themselves use.
        let marks = ["FAILED", "panicked at", "error:", "error[", "not ok ", "Error:", "\u{2716}", "failed: "];
        // What libraries of windows say where there is no session: it would fill the place of reasons.
        if line.contains("XDG_RUNTIME_DIR is invalid") {
            return;
        }
        let follows = self.following > 0;
        if marks.iter().any(|mark| line.contains(mark)) {
            self.following = FOLLOWING;
        } else {
            self.following = self.following.saturating_sub(1);
            if !follows {
                if self.last.len() == LINES {
                    self.last.pop_front();
                }
                self.last.push_back(line);
                return;
            }
        }
        if self.marked.len() < LINES {
            self.marked.push(line);
        }
    }
}
