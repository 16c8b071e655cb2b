//! Turns of a side: a pause, a call that wakes what sleeps, and calls that are timed.

use std::process::Command;
use std::time::{Duration, Instant};

/// Between what one side does and what another does on the processor: threads of the other side spin for a while.
pub const PAUSE: Duration = Duration::from_millis(250);

/// The seconds that each call took, behind a pause: three at least, for that time.
pub fn timed(turn: Duration, pause: Duration, work: impl Fn()) -> Vec<f64> {
    std::thread::sleep(pause);
    work();
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || start.elapsed() < turn {
        let call = Instant::now();
        work();
        times.push(call.elapsed().as_secs_f64());
    }
    times
}

/// Median and least, in microseconds.
pub fn figures(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [times.get(times.len() / 2), times.first()].map(|time| time.copied().unwrap_or(f64::NAN) * 1e6)
}

/// The date, as files of measurements have it; empty where the system has no program for it.
pub fn today() -> String {
    let date = Command::new("date").arg("+%F").output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&date).trim().to_owned()
}
