//! Memory and objects that work in flight may still touch. What is put into a queue is numbered in its order, and what a number may
//! touch is kept until it has passed. Knows no API.

use cantus_base::listed::Listed;
#[cfg(feature = "_native")]
use std::collections::VecDeque;
#[cfg(feature = "_native")]
use std::sync::Arc;

/// The numbers of a queue, and what they may still touch.
///
/// What has passed is handed out, not dropped: the owner uses it again, or drops it once its locks are released.
#[derive(Debug)]
pub(super) struct InFlight<T> {
    /// The number of what is put in next.
    next: u64,
    /// Every number up to this one has passed.
    passed: u64,
    /// Kept objects by number, in a list: few are in flight, and a tree would be compiled for each backend.
    kept: Vec<(u64, Vec<T>)>,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self { next: 1, passed: 0, kept: Vec::new() }
    }
}

impl<T> InFlight<T> {
    /// The number of what is put in next; the first is 1.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The number of what was put in last; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.next - 1
    }

    /// Notes that [`InFlight::next`] was put in, and returns it. What the queue refused has no number: nobody waits for it.
    pub(super) fn submitted(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Keeps something until that number has passed. A number that has passed already keeps it until the next look.
    pub(super) fn keep(&mut self, number: u64, what: T) {
        match self.kept.binary_search_by_key(&number, |(kept, _)| *kept) {
            Ok(at) => self.kept[at].1.push(what),
            Err(at) => self.kept.insert(at, (number, vec![what])),
        }
    }

    /// The lowest number that anything is kept for.
    #[cfg(feature = "opencl")]
    pub(super) fn oldest(&self) -> Option<u64> {
        self.kept.first().map(|(number, _)| *number)
    }

    /// Has that number passed, as far as is known?
    pub(super) fn has_passed(&self, number: u64) -> bool {
        number <= self.passed
    }

    /// Notes that every number up to this one has passed, and hands out what they touched.
    pub(super) fn pass(&mut self, number: u64) -> impl Iterator<Item = T> + use<T> {
        // A queue in disorder (a driver that was lost) passes nothing that was not put in.
        self.passed = self.passed.max(number.min(self.last()));
        let later = self.kept.partition_point(|(number, _)| *number <= self.passed);
        self.kept.drain(..later).listed().into_iter().flat_map(|(_, what)| what)
    }
}

/// The numbers of a queue that has events, one for each number.
#[cfg(feature = "_native")]
#[derive(Debug)]
pub(super) struct Marks<E> {
    list: VecDeque<(u64, Arc<E>)>,
}

#[cfg(feature = "_native")]
impl<E> Default for Marks<E> {
    fn default() -> Self {
        Self { list: VecDeque::new() }
    }
}

#[cfg(feature = "_native")]
impl<E> Marks<E> {
    /// Notes the event behind a number, which is higher than those before.
    pub(super) fn push(&mut self, number: u64, event: E) {
        self.list.push_back((number, Arc::new(event)));
    }

    /// The event behind that number, or the first one after it; `None` when it has passed.
    pub(super) fn find(&self, number: u64) -> Option<Arc<E>> {
        let place = self.list.partition_point(|(other, _)| *other < number);
        self.list.get(place).map(|(_, event)| event.clone())
    }

    /// The highest number that `passed` says has passed, if any has since the last look. Events up to it are released.
    pub(super) fn look<F>(&mut self, mut passed: impl FnMut(&E) -> Result<bool, F>) -> Result<Option<u64>, F> {
        let mut highest = None;
        while let Some((number, event)) = self.list.front() {
            if !passed(event)? {
                break;
            }
            highest = Some(*number);
            self.list.pop_front();
        }
        Ok(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_goes_with_its_number() {
        let mut flight = InFlight::default();
        assert_eq!((flight.last(), flight.next()), (0, 1));
        flight.keep(flight.next(), "first");
        assert_eq!(flight.pass(1).count(), 0, "the first was not put in yet");
        assert_eq!(flight.submitted(), 1);
        flight.keep(flight.next(), "second");
        flight.keep(1, "also first");
        assert_eq!(flight.submitted(), 2);
        assert!(!flight.has_passed(1));
        assert_eq!(flight.pass(1).collect::<Vec<_>>(), ["first", "also first"]);
        assert!(flight.has_passed(1) && !flight.has_passed(2));
        assert_eq!(flight.pass(u64::MAX).collect::<Vec<_>>(), ["second"]);
        // What comes late goes with the next look.
        flight.keep(1, "late");
        assert_eq!(flight.pass(1).collect::<Vec<_>>(), ["late"]);
    }

    #[cfg(feature = "_native")]
    #[test]
    fn events_pass_in_order() {
        let mut marks: Marks<bool> = Marks::default();
        marks.push(2, true);
        marks.push(3, false);
        marks.push(5, true);
        assert_eq!(marks.find(1).as_deref(), Some(&true));
        assert_eq!(marks.find(3).as_deref(), Some(&false));
        assert_eq!(marks.look(|passed| Ok::<_, ()>(*passed)), Ok(Some(2)));
        assert_eq!(marks.look(|passed| Ok::<_, ()>(*passed)), Ok(None));
        assert_eq!(marks.look(|_| Err::<bool, _>("lost")), Err("lost"));
        assert_eq!(marks.look(|_| Ok::<_, ()>(true)), Ok(Some(5)));
        assert!(marks.find(5).is_none());
    }
}
