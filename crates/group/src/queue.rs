//! Strips in queues, one for each member. Who has done its own takes what others would be late with. No device code. `Group::generate` and its kin run one
//! thread for each member over it. A strip is held by one member at a time. Speeds are measured while running, so the first strips decide little and the
//! last ones go to whoever is sooner.

use cantus_base::listed::Listed;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which a waiting member looks for others that hang.
const LOOK: Duration = Duration::from_millis(20);

/// Some rows, and where their result goes.
pub(super) struct Strip<'a, T> {
    pub(super) rows: Range<usize>,
    pub(super) into: &'a mut [T],
    /// The member that it was planned for.
    pub(super) owner: usize,
    /// The member that failed at it last.
    pub(super) failed: Option<usize>,
}

/// The progress of a member.
struct Pace {
    began: Instant,
    last: Instant,
    rows: usize,
    lost: bool,
}

impl Pace {
    /// Seconds for a row, once measured.
    fn row_time(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.last.duration_since(self.began).as_secs_f64() / self.rows as f64)
    }
}

struct State<'a, T> {
    queues: Vec<VecDeque<Strip<'a, T>>>,
    paces: Vec<Pace>,
    /// Strips that members hold.
    held: usize,
    stopped: bool,
}

impl<'a, T> State<'a, T> {
    fn left(&self, member: usize) -> usize {
        self.queues.get(member).map_or(0, |queue| queue.iter().map(|strip| strip.rows.len()).sum())
    }

    /// Returns whether `member` would have the last strip of `other` done before `other` has.
    fn pays(&self, member: usize, other: usize) -> bool {
        let (Some(mine), Some(theirs)) = (self.paces.get(member), self.paces.get(other)) else { return false };
        let strip = self.queues.get(other).and_then(|queue| queue.back()).map_or(0, |strip| strip.rows.len());
        let (true, Some(my_time), Some(their_time)) = (!theirs.lost, mine.row_time(), theirs.row_time()) else {
            return true;
        };
        // Its next strip is under way already. One that hangs is as slow as it was silent.
        let theirs_ends = (their_time * (self.left(other) + strip) as f64).max(theirs.last.elapsed().as_secs_f64());
        my_time * strip as f64 <= theirs_ends
    }

    fn next(&mut self, member: usize) -> Option<Strip<'a, T>> {
        if let Some(strip) = self.queues.get_mut(member)?.pop_front() {
            return Some(strip);
        }
        let others = (0..self.queues.len()).filter(|&other| self.left(other) > 0 && self.pays(member, other));
        let other = others.max_by_key(|&other| self.left(other))?;
        self.queues.get_mut(other)?.pop_back()
    }
}

/// The strips that nobody has done yet.
pub(super) struct Queue<'a, T> {
    state: Mutex<State<'a, T>>,
    changed: Condvar,
}

impl<'a, T> Queue<'a, T> {
    pub(super) fn new(strips: Vec<Strip<'a, T>>, members: usize) -> Self {
        let mut queues: Vec<VecDeque<_>> = (0..members).map(|_| VecDeque::new()).listed();
        for strip in strips {
            if let Some(queue) = queues.get_mut(strip.owner) {
                queue.push_back(strip);
            }
        }
        let now = Instant::now();
        let paces = (0..members).map(|_| Pace { began: now, last: now, rows: 0, lost: false }).listed();
        let state = State { queues, paces, held: 0, stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<'a, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next strip of a member. Without one it waits, if it is to, while others may still fail at theirs.
    pub(super) fn take(&self, member: usize, wait: bool) -> Option<Strip<'a, T>> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(strip) = state.next(member) {
                state.held += 1;
                return Some(strip);
            }
            let over = state.held == 0 && state.queues.iter().all(VecDeque::is_empty);
            if over || !wait {
                return None;
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn done(&self, member: usize, rows: usize) {
        let mut state = self.state();
        state.held -= 1;
        if let Some(pace) = state.paces.get_mut(member) {
            pace.rows += rows;
            pace.last = Instant::now();
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The member takes no more; its strips are for the others.
    pub(super) fn lose(&self, member: usize, strips: impl DoubleEndedIterator<Item = Strip<'a, T>>) {
        let mut state = self.state();
        for mut strip in strips.rev() {
            strip.failed = Some(member);
            state.held -= 1;
            if let Some(queue) = state.queues.get_mut(member) {
                queue.push_front(strip);
            }
        }
        for strip in state.queues.get_mut(member).into_iter().flatten() {
            strip.failed.get_or_insert(member);
        }
        if let Some(pace) = state.paces.get_mut(member) {
            pace.lost = true;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the run: nobody takes more.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }

    /// Rows that nobody did.
    pub(super) fn left(&self) -> usize {
        let state = self.state();
        (0..state.queues.len()).map(|member| state.left(member)).sum()
    }

    /// Rows a second of each member, where measured.
    pub(super) fn speeds(&self) -> Vec<Option<f64>> {
        let speed = |pace: &Pace| pace.row_time().filter(|time| *time > 0.0).map(f64::recip);
        self.state().paces.iter().map(speed).listed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue in which `owner` has two strips of ten rows, and each member's pace is known: seconds that ten rows took.
    fn queue(into: &mut [u8; 20], owner: usize, seconds: [f64; 2]) -> Queue<'_, u8> {
        let (first, second) = into.split_at_mut(10);
        let strips = [(0..10, first), (10..20, second)].map(|(rows, into)| Strip { rows, into, owner, failed: None });
        let queue = Queue::new(strips.into(), 2);
        let now = Instant::now();
        for (pace, seconds) in queue.state().paces.iter_mut().zip(seconds) {
            let began = now.checked_sub(Duration::from_secs_f64(seconds)).expect("the clock has run for so long");
            *pace = Pace { began, last: now, rows: 10, lost: false };
        }
        queue
    }

    #[test]
    fn who_is_sooner_takes_what_is_left() {
        let mut into = [0; 20];
        let from_slow = queue(&mut into, 1, [0.001, 1.0]).take(0, false).map(|strip| strip.rows);
        assert_eq!(from_slow, Some(10..20));
        assert!(queue(&mut into, 0, [0.001, 1.0]).take(1, false).is_none());
    }
}
