//! Common subexpressions: what is recorded again while it is still there is the same node. Weak, bounded, and of one thread. What reads no tensor is left
//! alone: it belongs to no engine.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use rustc_hash::FxHasher;

use super::deferred::Deferred;
use super::node::{Node, Source, Typed, View};
use super::replay::{Digest, KeyWords};
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
    /// An operation; with the entry's hash, the digest of everything that it depends on.
    Operation(Weak<Deferred>, u64),
}

/// An entry of the table, with its hash. Entries with another hash are not followed: most of what they refer to is in no cache.
#[derive(Default)]
struct Entry {
    hash: u64,
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
    let mut hasher = FxHasher::default();
    match &typed.node {
        Node::Read(View { source: Source::Deferred(deferred), offset: 0, strides })
            if Arc::strong_count(deferred) == 1
                && typed.shape == deferred.shape
                && is_contiguous(&typed.shape, strides) =>
        {
            return operation(&typed, deferred).unwrap_or(typed);
        }
        Node::Read(view) => view_of(view, &mut hasher),
        Node::Constant(value) => value.to_bits().hash(&mut hasher),
        Node::Unary(op, a) => (1, *op as usize, address(a)).hash(&mut hasher),
        Node::Binary(op, a, b) => (2, *op as usize, address(a), address(b)).hash(&mut hasher),
        Node::Select(a, b, c) => (3, address(a), address(b), address(c)).hash(&mut hasher),
        Node::Cast(a) => (4, address(a)).hash(&mut hasher),
        Node::Gather { view, stride, length, index } => {
            (5, stride, length, address(index)).hash(&mut hasher);
            view_of(view, &mut hasher);
        }
        Node::Random { kind, seed, counter } => (6, *kind as u8, seed, address(counter)).hash(&mut hasher),
    }
    (typed.dtype as u8, &typed.shape).hash(&mut hasher);
    let same = |known: &Known| match known {
        Known::Node(node) if node.strong_count() > 0 => node.upgrade().filter(|node| is_same(node, &typed)),
        _ => None,
    };
    let hash = hasher.finish();
    let fresh = || {
        typed.listed.store(hash, Ordering::Relaxed);
        Known::Node(Arc::downgrade(&typed))
    };
    found(hash, same, fresh).unwrap_or(typed)
}

/// Removes a value that is dropped from the table. Its weak reference would keep the memory until another entry replaced it.
pub(super) fn forget<T>(of: &T, hash: u64) {
    let address = std::ptr::from_ref(of).addr();
    let is_it = |known: &Known| match known {
        Known::Nothing => false,
        Known::Node(node) => node.as_ptr().addr() == address,
        Known::Operation(operation, _) => operation.as_ptr().addr() == address,
    };
    let _ = KNOWN.try_with(|all| {
        let mut all = all.try_borrow_mut().ok()?;
        let set = all.chunks_exact_mut(WAYS).nth((hash >> 32) as usize % SETS)?;
        set.iter_mut()
            .filter(|entry| entry.hash == hash && is_it(&entry.known))
            .for_each(|entry| *entry = Entry::default());
        Some(())
    });
}

/// Returns the known value of a hash that is the same. Otherwise records `fresh`.
fn found<T>(hash: u64, same: impl Fn(&Known) -> Option<T>, fresh: impl FnOnce() -> Known) -> Option<T> {
    let found = KNOWN.try_with(|all| {
        let mut all = all.borrow_mut();
        if all.is_empty() {
            all.resize_with(SETS * WAYS, Entry::default);
        }
        // The upper bits are better distributed.
        let set = all.chunks_exact_mut(WAYS).nth((hash >> 32) as usize % SETS)?;
        let mut alike = set.iter().enumerate().filter(|(_, entry)| entry.hash == hash);
        let known = alike.find_map(|(place, entry)| Some((place, same(&entry.known)?)));
        let place = known.as_ref().map_or(WAYS - 1, |(place, _)| *place);
        set.get_mut(..=place)?.rotate_right(1);
        if known.is_none() {
            *set.first_mut()? = Entry { hash, known: fresh() };
        }
        known.map(|(_, found)| found)
    });
    found.ok().flatten()
}

/// The result of an operation, read as it is, that was recorded before over the same nodes.
fn operation(typed: &Typed, deferred: &Arc<Deferred>) -> Option<Arc<Typed>> {
    thread_local! {
        /// Memory for an operation's words, reused because every recorded operation needs it.
        static ROOM: RefCell<KeyWords> = RefCell::new(KeyWords::with_room());
    }
    if deferred.is_value() {
        return None;
    }
    let mut words = ROOM.try_with(RefCell::take).unwrap_or_default();
    words.clear();
    let found = known_operation(deferred, &mut words);
    let _ = ROOM.try_with(|room| room.replace(words));
    Some(Typed::of(Source::Deferred(found?), &typed.shape, typed.dtype))
}

fn known_operation(deferred: &Arc<Deferred>, words: &mut KeyWords) -> Option<Arc<Deferred>> {
    let (inputs, true) = deferred.described(words) else { return None };
    (deferred.dtype as u8, &deferred.shape).hash(words);
    inputs.iter().for_each(|input| words.write_usize(address(input)));
    let [hash, digest] = Digest::of(words);
    // An operation that released its inputs may have had others at the same addresses.
    let reads_them = |found: &Arc<Deferred>| {
        let own = found.inputs();
        own.len() == inputs.len() && own.iter().zip(&inputs).all(|(own, input)| Arc::ptr_eq(own, input))
    };
    let same = |known: &Known| match known {
        Known::Operation(found, own) if *own == digest => found.upgrade().filter(reads_them),
        _ => None,
    };
    let fresh = || {
        deferred.listed.store(hash, Ordering::Relaxed);
        Known::Operation(Arc::downgrade(deferred), digest)
    };
    found(hash, same, fresh)
}

fn view_of(view: &View, hasher: &mut FxHasher) {
    let source = match &view.source {
        Source::Tensor(tensor) => address(&tensor.inner),
        Source::Recorded(recorded) => address(recorded),
        Source::Deferred(deferred) => address(deferred),
        Source::Indices => 0,
    };
    (source, view.offset, &view.strides).hash(hasher);
}

fn is_same_view(a: &View, b: &View) -> bool {
    let source = match (&a.source, &b.source) {
        (Source::Recorded(a), Source::Recorded(b)) => Arc::ptr_eq(a, b),
        (Source::Deferred(a), Source::Deferred(b)) => Arc::ptr_eq(a, b),
        (Source::Tensor(a), Source::Tensor(b)) => Arc::ptr_eq(&a.inner, &b.inner),
        (Source::Indices, Source::Indices) => true,
        _ => false,
    };
    source && a.offset == b.offset && a.strides == b.strides
}

/// Returns whether two nodes are the same, over the same nodes.
fn is_same(a: &Typed, b: &Typed) -> bool {
    let same = |all: &[(&Arc<Typed>, &Arc<Typed>)]| all.iter().all(|(a, b)| Arc::ptr_eq(a, b));
    let node = match (&a.node, &b.node) {
        (Node::Read(a), Node::Read(b)) => is_same_view(a, b),
        (Node::Constant(a), Node::Constant(b)) => a.to_bits() == b.to_bits(),
        (Node::Unary(op, a), Node::Unary(other, b)) => op == other && same(&[(a, b)]),
        (Node::Binary(op, a, b), Node::Binary(other, c, d)) => op == other && same(&[(a, c), (b, d)]),
        (Node::Select(a, b, c), Node::Select(d, e, f)) => same(&[(a, d), (b, e), (c, f)]),
        (Node::Cast(a), Node::Cast(b)) => same(&[(a, b)]),
        (
            Node::Gather { view, stride, length, index },
            Node::Gather { view: other, stride: step, length: count, index: places },
        ) => stride == step && length == count && same(&[(index, places)]) && is_same_view(view, other),
        (Node::Random { kind, seed, counter }, Node::Random { kind: other, seed: another, counter: places }) => {
            kind == other && seed == another && same(&[(counter, places)])
        }
        _ => false,
    };
    node && a.dtype == b.dtype && a.shape == b.shape
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
