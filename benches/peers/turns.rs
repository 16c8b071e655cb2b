//! Turns of a side: a pause, a call that wakes what sleeps, and calls that are timed.

use std::time::{Duration, Instant};

/// Between what one side does and what another does: threads of the other side spin for a while.
const PAUSE: Duration = Duration::from_millis(250);

/// Waits for the other sides' threads to sleep.
pub fn pause() {
    std::thread::sleep(PAUSE);
}

/// The seconds that each call took: three at least, for so long.
pub fn timed(turn: Duration, work: impl Fn()) -> Vec<f64> {
    pause();
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
