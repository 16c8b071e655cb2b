//! Turns at parsing bodies, which takes a while and many times a body's memory: a few at once, of each key one, and next the key that has had the least
//! time. A body waits for those of about its own length alone, so that a short one waits shortly, whatever else is sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use crate::share::Spent;

/// The classes of lengths: each begins at four times the one before.
const CLASSES: usize = 5;

/// The length at which the second class begins.
const SHORT: usize = 64 << 10;

/// The turns of all keys.
#[derive(Debug)]
pub struct Turns {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    spent: Spent,
    classes: [Class; CLASSES],
}

#[derive(Debug, Default)]
struct Class {
    /// The keys whose turn it is.
    running: Vec<Arc<str>>,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    owner: Arc<str>,
    ready: oneshot::Sender<Turn>,
}

/// A turn, until it is dropped. Its time counts to its key.
#[derive(Debug)]
pub struct Turn {
    turns: Arc<Turns>,
    class: usize,
    owner: Arc<str>,
    since: Instant,
}

impl Turn {
    /// Seconds since it began.
    pub fn seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let seconds = self.seconds();
        {
            let mut held = self.turns.lock();
            held.spent.add(&self.owner, seconds);
            if let Some(class) = held.classes.get_mut(self.class) {
                class.running.retain(|owner| *owner != self.owner);
            }
        }
        self.turns.next(self.class);
    }
}

impl Turns {
    /// Allows at most `most` at once of each class, and half as many of those whose bodies take the most memory.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a key's turn at a body of a length. `None` if it gets no turn, which never happens.
    pub async fn take(self: &Arc<Self>, owner: &Arc<str>, length: usize) -> Option<Turn> {
        let class = ((length / (SHORT / 4)).max(1).ilog2() as usize / 2).min(CLASSES - 1);
        let (ready, turn) = oneshot::channel();
        if let Some(class) = self.lock().classes.get_mut(class) {
            class.waiting.push_back(Waiter { owner: owner.clone(), ready });
        }
        self.next(class);
        turn.await.ok()
    }

    /// Gives the turns of a class that are free.
    fn next(self: &Arc<Self>, which: usize) {
        let most = if which + 2 < CLASSES { self.most } else { self.most.div_ceil(2) };
        loop {
            let (turn, ready) = {
                let Held { spent, classes } = &mut *self.lock();
                let Some(class) = classes.get_mut(which).filter(|class| class.running.len() < most) else { return };
                // Those whose client has gone away meanwhile.
                class.waiting.retain(|waiter| !waiter.ready.is_closed());
                let others =
                    class.waiting.iter().enumerate().filter(|(_, waiter)| !class.running.contains(&waiter.owner));
                let first = others.min_by(|(_, a), (_, b)| spent.of(&a.owner).total_cmp(&spent.of(&b.owner)));
                let first = first.map(|(place, _)| place).and_then(|place| class.waiting.remove(place));
                let Some(Waiter { owner, ready }) = first else { return };
                spent.turn(&owner);
                class.running.push(owner.clone());
                (Turn { turns: self.clone(), class: which, owner, since: Instant::now() }, ready)
            };
            // One that nobody takes is given back at once, without the lock.
            drop(ready.send(turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(60), test).await.expect("one waits for ever");
        });
    }

    fn names(count: usize) -> Vec<Arc<str>> {
        (0..count).map(|number| format!("key {number}").into()).collect()
    }

    /// Returns whether a turn comes at once.
    async fn is_free(turns: &Arc<Turns>, owner: &Arc<str>, length: usize) -> bool {
        tokio::time::timeout(Duration::from_millis(20), turns.take(owner, length)).await.is_ok()
    }

    #[test]
    fn a_short_body_waits_for_no_long_one() {
        run(async {
            let (turns, names) = (Turns::new(2), names(3));
            for length in [SHORT, 4 * SHORT] {
                let held = [turns.take(&names[0], length).await, turns.take(&names[1], length).await];
                assert!(!is_free(&turns, &names[2], length).await && is_free(&turns, &names[2], length - 1).await);
                // One that went away while it waited has left its place, and a key has one turn.
                drop(held);
                let held = turns.take(&names[2], length).await;
                assert!(is_free(&turns, &names[0], length).await && !is_free(&turns, &names[2], length).await);
                drop(held);
            }
            assert!(turns.lock().classes.iter().all(|class| class.running.is_empty()));
        });
    }

    #[test]
    fn the_key_that_has_had_the_least_comes_next() {
        run(async {
            let (turns, names) = (Turns::new(1), names(3));
            // The first has had much already.
            let long = turns.take(&names[0], SHORT).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            let order = Mutex::new(Vec::new());
            let wait = async |owner: &Arc<str>| {
                let turn = turns.take(owner, SHORT).await;
                order.lock().unwrap().push(owner.clone());
                tokio::time::sleep(Duration::from_millis(2)).await;
                drop(turn);
            };
            let release = async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                drop(long);
            };
            // It has asked for more before anybody else, twice.
            tokio::join!(wait(&names[0]), wait(&names[0]), wait(&names[1]), wait(&names[2]), wait(&names[2]), release);
            let order = order.into_inner().unwrap();
            let expected = [1, 2, 2, 0, 0].map(|number: usize| names[number].clone());
            assert_eq!(order, expected);
        });
    }
}
