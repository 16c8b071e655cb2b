//! Shares of what is bounded: room in queues and on the disk, bytes of bodies, numbers of jobs. A key may hold as much of the whole as its share of
//! what it and the free rest are together: however many keys are greedy, a part stays free for the next one (dynamic thresholds, Choudhury and
//! Hahne 1998). And turns at what takes a while, which go by key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Semaphore;

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Short {
    /// The whole would be exceeded.
    Whole,
    /// The key's share would be.
    Own,
}

/// A bound on a shared resource.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// The whole.
    pub most: u64,
    /// A key's share, in percent.
    pub share: u32,
}

impl Bound {
    /// Refuses `more` for a key that holds `own` of the `held`, if that exceeds its share. A key that holds nothing may have all free room.
    ///
    /// # Errors
    /// What is too small.
    pub fn admits(self, held: u64, own: u64, more: u64) -> Result<(), Short> {
        let free = self.most.checked_sub(held.saturating_add(more)).ok_or(Short::Whole)?;
        let share = u128::from(self.share.min(100));
        let would = u128::from(own) + u128::from(more);
        if own > 0 && would * (100 - share) > u128::from(free) * share { Err(Short::Own) } else { Ok(()) }
    }
}

#[derive(Debug, Default)]
struct Held {
    whole: u64,
    owners: HashMap<Arc<str>, u64>,
}

/// The shares of each key in a resource.
#[derive(Debug)]
pub struct Shares {
    bound: Bound,
    held: Mutex<Held>,
}

impl Shares {
    /// Nobody holds anything.
    pub fn new(bound: Bound) -> Self {
        Self { bound, held: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The whole.
    pub fn most(&self) -> u64 {
        self.bound.most
    }

    /// Returns the sum of all shares.
    pub fn held(&self) -> u64 {
        self.lock().whole
    }

    /// Takes `more` for a key.
    ///
    /// # Errors
    /// What is too small; then nothing is taken.
    pub fn take(&self, owner: &Arc<str>, more: u64) -> Result<(), Short> {
        let mut held = self.lock();
        let own = held.owners.get(owner).copied().unwrap_or_default();
        self.bound.admits(held.whole, own, more)?;
        held.add(owner, more);
        Ok(())
    }

    /// Counts what a key holds already, whatever the bound.
    pub fn add(&self, owner: &Arc<str>, more: u64) {
        self.lock().add(owner, more);
    }

    /// Returns a part of a key's share.
    pub fn give(&self, owner: &Arc<str>, less: u64) {
        let mut held = self.lock();
        held.whole = held.whole.saturating_sub(less);
        if let Some(own) = held.owners.get_mut(owner) {
            *own = own.saturating_sub(less);
            if *own == 0 {
                held.owners.remove(owner);
            }
        }
    }
}

impl Held {
    fn add(&mut self, owner: &Arc<str>, more: u64) {
        self.whole = self.whole.saturating_add(more);
        let own = self.owners.entry(owner.clone()).or_default();
        *own = own.saturating_add(more);
    }
}

/// The share of one request; given back when it is dropped.
#[derive(Debug)]
pub struct Part {
    shares: Arc<Shares>,
    owner: Arc<str>,
    amount: u64,
}

impl Part {
    /// Nothing yet.
    pub fn new(shares: &Arc<Shares>, owner: &Arc<str>) -> Self {
        Self { shares: shares.clone(), owner: owner.clone(), amount: 0 }
    }

    /// Takes more.
    ///
    /// # Errors
    /// As [`Shares::take`].
    pub fn grow(&mut self, more: u64) -> Result<(), Short> {
        self.shares.take(&self.owner, more)?;
        self.amount += more;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.shares.give(&self.owner, self.amount);
    }
}

/// Turns at reading bodies: a limited number at once, and one per key. A body waits behind those of about its own length alone, so that a short one
/// waits shortly, whatever else is sent.
#[derive(Debug)]
pub struct Turns {
    short: Semaphore,
    long: Semaphore,
    keys: Mutex<HashMap<Class, Weak<Semaphore>>>,
}

/// A key, and whether its body is long.
type Class = (Arc<str>, bool);

/// The length from which a body is long.
const LONG: usize = 256 << 10;

impl Turns {
    /// Allows at most `most` at once of each.
    pub fn new(most: usize) -> Self {
        Self { short: Semaphore::new(most), long: Semaphore::new(most), keys: Mutex::default() }
    }

    /// Reads a body of a length in its turn.
    pub async fn take<T>(&self, owner: &Arc<str>, length: usize, work: impl Future<Output = T>) -> T {
        let long = length >= LONG;
        let own = {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            keys.retain(|_, turn| turn.strong_count() > 0);
            let owner = (owner.clone(), long);
            let kept = keys.get(&owner).and_then(Weak::upgrade);
            let own = kept.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
            keys.insert(owner, Arc::downgrade(&own));
            own
        };
        // The key's own turn comes first: what waits for it does not hold up others. No turn is ever closed.
        let (_own, _all) = (own.acquire().await, if long { &self.long } else { &self.short }.acquire().await);
        work.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stays_free_for_the_next_key() {
        let shares = Arc::new(Shares::new(Bound { most: 1000, share: 50 }));
        let names: Vec<Arc<str>> = (0..5).map(|number| format!("key {number}").into()).collect();
        for (number, name) in names.iter().enumerate() {
            let took = (0..1000).take_while(|_| shares.take(name, 1).is_ok()).count();
            // Half of what the keys before it left.
            assert_eq!(took, 1000 >> (number + 1), "{name}");
            assert_eq!(shares.take(name, 1), Err(Short::Own));
        }
        for (number, name) in names.iter().enumerate() {
            shares.give(name, 1000 >> (number + 1));
        }
        assert_eq!((shares.held(), shares.lock().owners.len()), (0, 0));
    }

    #[test]
    fn one_thing_may_be_as_large_as_the_whole() {
        let bound = Bound { most: 100, share: 50 };
        assert_eq!(bound.admits(0, 0, 100), Ok(()));
        assert_eq!(bound.admits(0, 0, 101), Err(Short::Whole));
        assert_eq!(bound.admits(40, 0, 61), Err(Short::Whole));
        assert_eq!(bound.admits(40, 40, 11), Err(Short::Own));
        // Where there are no keys the one caller may have everything.
        assert_eq!(Bound { most: 100, share: 100 }.admits(99, 99, 1), Ok(()));
        assert_eq!(bound.admits(u64::MAX, u64::MAX, u64::MAX), Err(Short::Whole));
    }

    #[test]
    fn a_part_is_given_back() {
        let (shares, owner) = (Arc::new(Shares::new(Bound { most: 10, share: 100 })), Arc::<str>::from("a"));
        let mut part = Part::new(&shares, &owner);
        assert_eq!((part.grow(7), part.grow(4), part.grow(3)), (Ok(()), Err(Short::Whole), Ok(())));
        drop(part);
        assert_eq!(shares.held(), 0);
    }

    #[test]
    fn a_short_body_waits_for_no_long_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let turns = Turns::new(2);
            let names: Vec<Arc<str>> = (0..3).map(|number| format!("key {number}").into()).collect();
            let endless = names.iter().map(|name| turns.take(name, LONG, std::future::pending::<()>()));
            let held = futures_util::future::join_all(endless);
            let short = async {
                for _ in 0..100 {
                    turns.take(&names[0], LONG - 1, async {}).await;
                }
            };
            tokio::select! {
                _ = held => unreachable!("they are endless"),
                () = short => {}
                () = tokio::time::sleep(std::time::Duration::from_secs(60)) => panic!("a short one waited"),
            }
        });
    }
}
