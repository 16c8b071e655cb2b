//! Common subexpressions: what is recorded again while it is still there is the same node. Weak, bounded, and of one thread. What reads no tensor is left
//! alone: it belongs to no engine.
//!
//! An entry is found by its digest: what a node is, with the addresses of what it reads. A node that lives holds what it reads, so these addresses are of
//! the same objects still, and equal digests are equal nodes.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::deferred::Deferred;
use super::digest::Digest;
use super::node::{Node, Source, Typed, View};
use super::shape::is_contiguous;

/// Sets of the table, and entries of a set. A new entry replaces the one that was not used for the longest time. What a loop records in each step is
/// therefore found again, whatever is recorded between, and the same loop makes the same nodes.
const SETS: usize = 1 << 10;
const WAYS: usize = 4;

thread_local! {
    static KNOWN: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default)]
enum Known {
    #[default]
    Nothing,
    Node(Weak<Typed>),
    Operation(Weak<Deferred>),
}

/// An entry of the table, with its digest. Entries with another one are not followed: most of what they refer to is in no cache.
#[derive(Default)]
struct Entry {
    digest: [u64; 2],
    known: Known,
}

fn address<T: ?Sized>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of).cast::<()>() as usize
}

/// The node, or one that was recorded before and is the same.
pub(super) fn shared(typed: Arc<Typed>) -> Arc<Typed> {
    if !typed.is_rooted && !matches!(typed.node, Node::Constant(_)) {
        return typed;
    }
    if let Node::Read(View { source: Source::Deferred(deferred), offset: 0, strides }) = &typed.node
        && Arc::strong_count(deferred) == 1
        && typed.shape == deferred.shape
        && is_contiguous(&typed.shape, strides)
    {
        let known = operation(deferred);
        return known.map_or(typed, |known| Typed::of(Source::Deferred(known.clone()), &known.shape, known.dtype));
    }
    let mut digest = Digest::default();
    digest.node(&typed);
    if let Node::Read(view) | Node::Gather { view, .. } = &typed.node {
        digest.write_usize(match &view.source {
            Source::Tensor(tensor) => address(&tensor.inner),
            Source::Recorded(recorded) => address(recorded),
            Source::Deferred(deferred) => address(deferred),
            Source::Indices => 0,
        });
    }
    typed.children().into_iter().for_each(|child| digest.write_usize(address(child)));
    let digest = digest.halves();
    let same = |known: &Known| match known {
        Known::Node(node) => node.upgrade(),
        _ => None,
    };
    let fresh = || {
        typed.listed.store(digest[0], Ordering::Relaxed);
        Known::Node(Arc::downgrade(&typed))
    };
    found(digest, same, fresh).unwrap_or(typed)
}

/// Removes a value that is dropped from the table. Its weak reference would keep the memory until another entry replaced it.
pub(super) fn forget<T>(of: &T, listed: u64) {
    let address = std::ptr::from_ref(of).addr();
    let is_it = |known: &Known| match known {
        Known::Nothing => false,
        Known::Node(node) => node.as_ptr().addr() == address,
        Known::Operation(operation) => operation.as_ptr().addr() == address,
    };
    let _ = KNOWN.try_with(|all| {
        let mut all = all.try_borrow_mut().ok()?;
        let set = all.chunks_exact_mut(WAYS).nth(set_of(listed))?;
        set.iter_mut()
            .filter(|entry| entry.digest[0] == listed && is_it(&entry.known))
            .for_each(|entry| *entry = Entry::default());
        Some(())
    });
}

fn set_of(half: u64) -> usize {
    (half >> 32) as usize % SETS
}

/// Returns the known value of a digest that is the same. Otherwise records `fresh`.
fn found<T>(digest: [u64; 2], same: impl Fn(&Known) -> Option<T>, fresh: impl FnOnce() -> Known) -> Option<T> {
    let found = KNOWN.try_with(|all| {
        let mut all = all.borrow_mut();
        if all.is_empty() {
            all.resize_with(SETS * WAYS, Entry::default);
        }
        let set = all.chunks_exact_mut(WAYS).nth(set_of(digest[0]))?;
        let mut alike = set.iter().enumerate().filter(|(_, entry)| entry.digest == digest);
        let known = alike.find_map(|(place, entry)| Some((place, same(&entry.known)?)));
        let place = known.as_ref().map_or(WAYS - 1, |(place, _)| *place);
        set.get_mut(..=place)?.rotate_right(1);
        if known.is_none() {
            *set.first_mut()? = Entry { digest, known: fresh() };
        }
        known.map(|(_, found)| found)
    });
    found.ok().flatten()
}

/// An operation that was recorded before over the same nodes. Otherwise records this one.
fn operation(deferred: &Arc<Deferred>) -> Option<Arc<Deferred>> {
    let operation = deferred.operation().filter(|operation| operation.expression().is_none())?;
    let mut digest = Digest::default();
    if !digest.operation(&*operation) {
        return None;
    }
    let inputs = operation.inputs();
    (deferred.dtype as u8, &deferred.shape).hash(&mut digest);
    inputs.iter().for_each(|input| digest.write_usize(address(input)));
    let digest = digest.halves();
    // An operation that released its inputs may have had others at the same addresses.
    let reads_them = |found: &Arc<Deferred>| {
        let own = found.inputs();
        own.len() == inputs.len() && own.iter().zip(&inputs).all(|(own, input)| Arc::ptr_eq(own, input))
    };
    let same = |known: &Known| match known {
        Known::Operation(found) => found.upgrade().filter(reads_them),
        _ => None,
    };
    let fresh = || {
        deferred.listed.store(digest[0], Ordering::Relaxed);
        Known::Operation(Arc::downgrade(deferred))
    };
    found(digest, same, fresh)
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, Known};
    use crate::engine::Engine;

    fn entries() -> usize {
        KNOWN.with_borrow(|all| all.iter().filter(|entry| !matches!(entry.known, Known::Nothing)).count())
    }

    #[test]
    fn what_is_dropped_leaves_the_table() {
        let engine = Engine::builder().backend("cpu").build().unwrap();
        let x = engine.tensor(&[1.0_f32, 2.0, 3.0]).unwrap();
        let before = entries();
        let recorded = || ((x.expr() * 2.0).exp() + x.expr().sum(&[], false)).cumsum(0);
        let (kept, again) = (recorded(), recorded());
        assert!(entries() > before + 4);
        drop(again);
        // What is recorded again is the same node as long as one handle lives.
        let with_one = entries();
        drop(recorded());
        assert_eq!(entries(), with_one);
        kept.eval().unwrap();
        drop(kept);
        assert_eq!(entries(), before);
    }
}
