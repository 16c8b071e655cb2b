//! Short lists: made and put in order by little code, in planning, in writing text, in reflection.
//!
//! The standard library's `collect` and `sort` are made for long lists. `collect` asks for a length, reserves, and writes past bounds checks by an
//! iterator turned inside out: some 350 lines of LLVM IR for each closure, 700 where items may fail, 2,500 for a tree; `sort` is 2,300 for each
//! order. There are a thousand such places in this library, and few of them see more than a dozen items. What is here is a loop that pushes: a
//! third of that, a sixth where items may fail, a twentieth for an order. Where elements of tensors go by, the standard library's are right.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// An item that may be missing, and a list of such items.
pub trait Attempt: Sized {
    /// All of them, or what the first without a value was.
    type All;

    /// Asks for them one by one.
    fn all(next: &mut dyn FnMut() -> Option<Self>) -> Self::All;
}

impl<T, E> Attempt for Result<T, E> {
    type All = Result<Vec<T>, E>;

    fn all(next: &mut dyn FnMut() -> Option<Self>) -> Self::All {
        let mut all = Vec::new();
        while let Some(item) = next() {
            all.push(item?);
        }
        Ok(all)
    }
}

impl<T> Attempt for Option<T> {
    type All = Option<Vec<T>>;

    fn all(next: &mut dyn FnMut() -> Option<Self>) -> Self::All {
        let mut all = Vec::new();
        while let Some(item) = next() {
            all.push(item?);
        }
        Some(all)
    }
}

/// `collect` into vectors, for short ones.
pub trait Listed: Iterator + Sized {
    /// The items, in their order.
    fn listed(self) -> Vec<Self::Item> {
        let mut all = Vec::new();
        for item in self {
            all.push(item);
        }
        all
    }

    /// The values of the items, or the first failure.
    fn try_listed(mut self) -> <Self::Item as Attempt>::All
    where
        Self::Item: Attempt,
    {
        Attempt::all(&mut || self.next())
    }

    /// The pairs as a map. Of those with the same key the last one counts.
    fn mapped<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: Iterator<Item = (K, V)>,
    {
        let mut all = BTreeMap::new();
        for (key, value) in self {
            all.insert(key, value);
        }
        all
    }
}

impl<I: Iterator> Listed for I {}

/// `sort`, for short lists.
pub trait Ordered<T> {
    /// Sorts by an order; what is equal stays as it was.
    fn order_by(&mut self, order: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key; what is equal stays as it was.
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> Ordered<T> for [T] {
    fn order_by(&mut self, mut order: impl FnMut(&T, &T) -> Ordering) {
        for (a, b) in swaps(self.len(), &mut |a, b| order(&self[a], &self[b])) {
            self.swap(a, b);
        }
    }

    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// Returns the pairs of places to swap, one after the other, that put a list in order. The one sort of all lists.
fn swaps(length: usize, order: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<(usize, usize)> {
    let mut from: Vec<usize> = (0..length).collect();
    from.sort_by(|&a, &b| order(a, b));
    let mut swaps = Vec::new();
    // Along each cycle: what belongs in a place comes there, and what was there goes on.
    for start in 0..length {
        let mut place = start;
        while from[place] != start {
            let next = from[place];
            swaps.push((place, next));
            from[place] = place;
            place = next;
        }
        from[place] = place;
    }
    swaps
}

#[cfg(test)]
mod tests {
    use super::{Listed, Ordered};

    #[test]
    fn as_collect() {
        for count in [0, 1, 5, 100] {
            let numbers = 0..count;
            assert_eq!(numbers.clone().listed(), numbers.clone().collect::<Vec<i32>>());
            for bad in [0, 3, 1000] {
                let checked = |number| if number == bad { Err(number) } else { Ok(2 * number) };
                assert_eq!(
                    numbers.clone().map(checked).try_listed(),
                    numbers.clone().map(checked).collect::<Result<Vec<_>, _>>()
                );
                let some = |number| checked(number).ok();
                assert_eq!(
                    numbers.clone().map(some).try_listed(),
                    numbers.clone().map(some).collect::<Option<Vec<_>>>()
                );
            }
        }
    }

    /// Nothing is asked for behind a failure.
    #[test]
    fn the_first_failure_ends_it() {
        let mut asked = Vec::new();
        let result = (0..10)
            .map(|number| {
                asked.push(number);
                if number < 3 { Some(number) } else { None }
            })
            .try_listed();
        assert_eq!((result, asked), (None, vec![0, 1, 2, 3]));
    }

    #[test]
    fn orders_as_sort_does() {
        let mut state = 1_u32;
        for length in [0, 1, 2, 3, 10, 200] {
            for kinds in [1, 3, 1000] {
                let next = |place| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state / 7 % kinds, place)
                };
                let list = (0..length).map(next).collect::<Vec<_>>();
                let (mut ordered, mut sorted) = (list.clone(), list.clone());
                ordered.order_by_key(|(key, _)| *key);
                sorted.sort_by_key(|(key, _)| *key);
                assert_eq!(ordered, sorted);
                ordered.order_by(|a, b| b.cmp(a));
                sorted.sort_by(|a, b| b.cmp(a));
                assert_eq!(ordered, sorted);
            }
        }
    }

    #[test]
    fn the_last_of_a_key_counts() {
        let map = [(2, 'a'), (1, 'b'), (2, 'c')].into_iter().mapped();
        assert_eq!(map.into_iter().collect::<Vec<_>>(), [(1, 'b'), (2, 'c')]);
    }
}
