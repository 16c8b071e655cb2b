//! The survey of an evaluation, or of a step of a plan: what replay looks it up by. One walk counts and hashes what is to be computed, and holds none of
//! it, so that who else holds something can be told from the number of references.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use super::deferred::Deferred;
use super::digest::Digest;
use super::node::{Node, Source, Typed};
use super::schedule::{Schedule, known_value};
use crate::engine::Tensor;
use cantus_base::listed::Listed;

/// The most words of an evaluation of which every operation keeps its result, and of one that keeps only what others hold.
const LONGEST: usize = 1 << 9;
const LONGEST_WHOLE: usize = 1 << 19;

/// An evaluation as replay tells it from others: everything that it depends on, except the contents of its tensors.
pub(super) struct Survey {
    digest: Digest,
    /// The tensors that it reads.
    tensors: Vec<Tensor>,
    /// The operations that have no result yet.
    operations: Vec<MetOperation>,
    /// Of a long evaluation, the nodes and operations whose values are kept, because others hold them.
    held: Vec<Held>,
    is_long: bool,
    is_sound: bool,
}

/// A value that others hold.
enum Held {
    Node(Arc<Typed>),
    Operation(Arc<Deferred>),
}

/// An operation without a result.
struct MetOperation {
    deferred: Weak<Deferred>,
    /// References to it, and the nodes of this evaluation that have them.
    references: usize,
    readers: usize,
    fact: Fact,
}

/// The facts of an operation that its evaluation shares with others.
#[derive(Clone, Copy)]
pub(super) struct Fact {
    /// Others hold it, or a node that reads it.
    pub(super) is_held: bool,
    /// An expression ended its kernel, and its own result was not written.
    pub(super) was_fused: bool,
}

/// The facts of the operations of an evaluation. They are taken before a plan is made, which holds operations itself.
pub(super) struct Facts(FxHashMap<usize, Fact>);

impl Facts {
    /// The facts of an evaluation that is not replayed.
    pub(super) fn of_evaluation(root: &Arc<Typed>) -> Self {
        Survey::of(root).facts()
    }

    /// Returns the facts of an operation. One that lost its result since gets another of its own.
    pub(super) fn of(&self, deferred: &Arc<Deferred>) -> Fact {
        self.0.get(&address(deferred)).copied().unwrap_or(Fact { is_held: true, was_fused: true })
    }
}

/// A node with more than one reference.
struct Shared {
    number: usize,
    /// References to it, and those of this evaluation.
    references: usize,
    holders: usize,
    /// The operation that it reads.
    reads: Option<usize>,
    /// The node itself, if it is an expression whose value is not known.
    inner: Option<Weak<Typed>>,
}

/// Numbers by address: few are looked through, many are in a map.
#[derive(Default)]
struct Numbers {
    few: Vec<(usize, usize)>,
    many: FxHashMap<usize, usize>,
}

impl Numbers {
    /// Addresses that are looked through.
    const FEW: usize = 32;

    fn of(&self, address: usize) -> Option<usize> {
        match self.many.is_empty() {
            true => self.few.iter().find(|(known, _)| *known == address).map(|(_, number)| *number),
            false => self.many.get(&address).copied(),
        }
    }

    fn add(&mut self, address: usize, number: usize) {
        if !self.many.is_empty() {
            self.many.insert(address, number);
            return;
        }
        self.few.push((address, number));
        if self.few.len() > Self::FEW {
            self.many.extend(self.few.drain(..));
        }
    }
}

fn address<T>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of) as usize
}

impl Survey {
    /// Surveys an evaluation.
    pub(super) fn of(root: &Arc<Typed>) -> Self {
        let mut walk = Walk::new(None);
        walk.node(root);
        walk.finished(Some(root))
    }

    /// Surveys the computation of operations by a step of a plan.
    pub(super) fn of_step(schedule: &Schedule, group: &[Arc<Deferred>]) -> Self {
        let mut walk = Walk::new(Some(schedule));
        // No expression begins so.
        (u8::MAX, group.len()).hash(&mut walk.digest);
        for one in group {
            walk.operation(one);
        }
        walk.finished(None)
    }

    /// Returns whether equal digests record equal commands.
    pub(super) fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Returns whether only what others hold keeps its value.
    pub(super) fn is_long(&self) -> bool {
        self.is_long
    }

    pub(super) fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Adds what the commands depend on beside the evaluation.
    pub(super) fn add(&mut self, word: u64) {
        self.digest.write_u64(word);
    }

    pub(super) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns what a plan asks of the operations.
    pub(super) fn facts(&self) -> Facts {
        Facts(self.operations.iter().map(|met| (met.deferred.as_ptr() as usize, met.fact)).collect())
    }

    /// Returns the values that an evaluation like this keeps, in their order; `None` for one that is gone.
    pub(super) fn values(&self) -> Vec<Option<Arc<Deferred>>> {
        if !self.is_long {
            return self.operations.iter().map(|met| met.deferred.upgrade()).listed();
        }
        let value = |held: &Held| match held {
            Held::Node(typed) => typed.value(),
            Held::Operation(deferred) => deferred.clone(),
        };
        self.held.iter().map(|held| Some(value(held))).listed()
    }

    /// Returns the operations that may be asked for again, with their numbers.
    pub(super) fn held(&self) -> impl Iterator<Item = (usize, Arc<Deferred>)> {
        let held = self.operations.iter().enumerate().filter(|(_, met)| met.fact.is_held);
        held.filter_map(|(number, met)| Some((number, met.deferred.upgrade()?)))
    }

    /// Returns the operation of a number, if it still exists.
    pub(super) fn operation(&self, number: usize) -> Option<Arc<Deferred>> {
        self.operations.get(number)?.deferred.upgrade()
    }
}

/// The state of a survey.
struct Walk<'a> {
    /// That of the plan of which a step is surveyed.
    schedule: Option<&'a Schedule>,
    digest: Digest,
    tensors: Vec<Tensor>,
    by_tensor: Numbers,
    /// Nodes so far.
    nodes: usize,
    /// Those with more than one reference: no other can be met twice.
    shared: Vec<Shared>,
    by_node: Numbers,
    operations: Vec<MetOperation>,
    by_operation: Numbers,
    is_sound: bool,
}

impl<'a> Walk<'a> {
    /// Has room for a usual expression, because growing step by step costs time in a small operation.
    fn new(schedule: Option<&'a Schedule>) -> Self {
        Self {
            schedule,
            digest: Digest::default(),
            tensors: Vec::with_capacity(4),
            by_tensor: Numbers { few: Vec::with_capacity(4), ..Numbers::default() },
            nodes: 0,
            shared: Vec::new(),
            by_node: Numbers::default(),
            operations: Vec::new(),
            by_operation: Numbers::default(),
            is_sound: true,
        }
    }

    /// Adds a node and the expressions below it. What these read is added by [`Self::finished`], operation by operation, so the depth of the recursion is
    /// that of one expression.
    fn node(&mut self, typed: &Arc<Typed>) {
        let references = Arc::strong_count(typed);
        if references > 1
            && let Some(known) = self.by_node.of(address(typed))
            && let Some(shared) = self.shared.get_mut(known)
        {
            shared.holders += 1;
            (u8::MAX, shared.number).hash(&mut self.digest);
            return;
        }
        let number = self.nodes;
        self.nodes += 1;
        // A value from before is read like a tensor.
        let value = known_value(typed).and_then(|value| value.live_result());
        let is_known = value.is_some();
        let mut reads = None;
        if let Some(value) = value {
            (typed.dtype as u8, &typed.shape, 8_u8).hash(&mut self.digest);
            self.tensor(value);
        } else {
            self.digest.node(typed);
            if let Node::Read(view) | Node::Gather { view, .. } = &typed.node {
                reads = self.source(&view.source);
            }
        }
        if references > 1 {
            let is_inner = !is_known && !matches!(typed.node, Node::Read(_) | Node::Constant(_));
            let inner = is_inner.then(|| Arc::downgrade(typed));
            self.by_node.add(address(typed), self.shared.len());
            self.shared.push(Shared { number, references, holders: 1, reads, inner });
        }
        if !is_known {
            typed.children().into_iter().for_each(|child| self.node(child));
        }
    }

    /// Adds what a view reads. Returns the number of the operation if it has no result yet.
    fn source(&mut self, source: &Source) -> Option<usize> {
        match source {
            Source::Indices => self.digest.write_u8(0),
            Source::Tensor(tensor) => self.tensor(tensor.clone()),
            Source::Recorded(recorded) => self.tensor(recorded.tensor()),
            Source::Deferred(deferred) => match deferred.live_result() {
                Some(tensor) => self.tensor(tensor),
                None => return Some(self.operation(deferred)),
            },
        }
        None
    }

    fn tensor(&mut self, tensor: Tensor) {
        let address = address(&tensor.inner);
        if let Some(known) = self.by_tensor.of(address) {
            (1_u8, known).hash(&mut self.digest);
            return;
        }
        (2_u8, tensor.dtype() as u8, tensor.shape()).hash(&mut self.digest);
        self.by_tensor.add(address, self.tensors.len());
        self.tensors.push(tensor);
    }

    fn operation(&mut self, deferred: &Arc<Deferred>) -> usize {
        let references = Arc::strong_count(deferred);
        let number = self.operations.len();
        if references > 1 {
            let known = self.by_operation.of(address(deferred));
            if let Some((known, met)) = known.and_then(|known| Some((known, self.operations.get_mut(known)?))) {
                met.readers += 1;
                (3_u8, known).hash(&mut self.digest);
                return known;
            }
            self.by_operation.add(address(deferred), number);
        }
        let fact = Fact { is_held: self.schedule.is_some(), was_fused: deferred.history.was_part() };
        // A step follows a schedule, and an evaluation makes one.
        let ends = self.schedule.map_or(fact.was_fused, |schedule| deferred.ends_with_reader(schedule));
        (4_u8, deferred.dtype as u8, &deferred.shape, ends).hash(&mut self.digest);
        let deferred = Arc::downgrade(deferred);
        self.operations.push(MetOperation { deferred, references, readers: 1, fact });
        number
    }

    /// Adds the operations, and finds what others hold. A step has no root; whatever it reads may have other readers.
    fn finished(mut self, root: Option<&Arc<Typed>>) -> Survey {
        let mut next = 0;
        while let Some(met) = self.operations.get(next) {
            next += 1;
            let operation = met.deferred.upgrade().and_then(|deferred| deferred.operation());
            let Some(operation) = operation else {
                self.is_sound = false;
                continue;
            };
            self.is_sound &= self.digest.operation(&*operation);
            let inputs = operation.inputs();
            self.digest.write_usize(inputs.len());
            inputs.into_iter().for_each(|input| self.node(input));
        }
        let is_long = self.digest.words() > LONGEST;
        self.is_sound &= self.digest.words() <= if root.is_some() { LONGEST_WHOLE } else { LONGEST };
        let held = match root {
            Some(root) => self.find_held(root, is_long),
            None => Vec::new(),
        };
        let Self { digest, tensors, operations, is_sound, .. } = self;
        Survey { digest, tensors, operations, held, is_long, is_sound }
    }

    /// Finds what others hold, which is a part of the digest. Returns it for a long evaluation.
    fn find_held(&mut self, root: &Typed, is_long: bool) -> Vec<Held> {
        let mut held = Vec::new();
        for shared in self.shared.iter().filter(|shared| shared.references > shared.holders) {
            if let Some(met) = shared.reads.and_then(|operation| self.operations.get_mut(operation)) {
                met.fact.is_held = true;
            }
            // The root itself is what is asked for.
            let inner = shared.inner.as_ref().filter(|_| is_long && shared.number > 0);
            if let Some(typed) = inner.and_then(Weak::upgrade) {
                self.digest.write_usize(shared.number);
                held.push(Held::Node(typed));
            }
        }
        for (number, met) in self.operations.iter_mut().enumerate() {
            met.fact.is_held |= met.references > met.readers;
            if met.fact.is_held {
                (u8::MAX, number).hash(&mut self.digest);
            }
            // The first one that is met is what the root reads, if it reads one.
            let is_asked_for = number == 0 && matches!(root.node, Node::Read(_));
            let kept = met.deferred.upgrade().filter(|_| is_long && (met.fact.is_held || is_asked_for));
            held.extend(kept.map(Held::Operation));
        }
        held
    }
}
