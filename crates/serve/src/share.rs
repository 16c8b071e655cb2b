//! Shares of what is bounded: room in queues and on the disk, bytes of bodies, numbers of jobs. A key may hold as much of the whole as its share of
//! what it and the free rest are together: however many keys are greedy, a part stays free for the next one (dynamic thresholds, Choudhury and
//! Hahne 1998). And what keys have had of the time, by which the next turn goes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Seconds that keys have had of something that they take turns at. Who comes anew begins where the others are.
#[derive(Debug, Default)]
pub struct Spent {
    owners: HashMap<Arc<str>, f64>,
    /// The seconds that a key counts as having had while it is not known: those of the key whose turn it was last, or of keys that were forgotten.
    floor: f64,
}

/// The number of keys that are remembered.
const MANY: usize = 1024;

impl Spent {
    /// The seconds that a key has had, in the order of turns.
    pub fn of(&self, owner: &str) -> f64 {
        self.owners.get(owner).map_or(self.floor, |spent| spent.max(self.floor))
    }

    /// A key's turn has come.
    pub fn turn(&mut self, owner: &str) {
        self.floor = self.of(owner);
    }

    /// Adds seconds to those of a key. Of too many keys the half that had least is forgotten: they begin where the others of that half are at most.
    pub fn add(&mut self, owner: &Arc<str>, seconds: f64) {
        let spent = self.of(owner) + seconds;
        self.owners.insert(owner.clone(), spent);
        if self.owners.len() > MANY {
            let mut all: Vec<f64> = self.owners.values().copied().collect();
            let (_, median, _) = all.select_nth_unstable_by(MANY / 2, f64::total_cmp);
            let floor = self.floor.max(*median);
            self.floor = floor;
            self.owners.retain(|_, spent| *spent > floor);
        }
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
    fn a_key_that_comes_later_is_owed_nothing() {
        let (a, b) = (Arc::<str>::from("a"), Arc::<str>::from("b"));
        let mut spent = Spent::default();
        for _ in 0..10 {
            spent.turn(&a);
            spent.add(&a, 1.0);
        }
        // It is first, once: not for the ten seconds that it was not there.
        assert_eq!((spent.of(&a), spent.of(&b)), (10.0, 9.0));
        spent.turn(&b);
        spent.add(&b, 2.0);
        assert!(spent.of(&a) < spent.of(&b));
        for number in 0..5000 {
            let owner = Arc::<str>::from(number.to_string());
            spent.turn(&owner);
            spent.add(&owner, 1e-9);
        }
        assert!(spent.owners.len() <= MANY + 1 && spent.of(&b) == 11.0);
    }
}
