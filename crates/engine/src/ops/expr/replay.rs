//! Replay: an expression that is evaluated again over other tensors is recorded from what its second evaluation did, without a plan, text or lookups by
//! name. `engine/trace.rs` takes and repeats the trace. This file decides what is the same evaluation.
//!
//! # What comes in
//! `evaluate` gets every evaluation of an expression. `operation` and `together` get each step of a plan, so parts of a long evaluation are replayed even
//! where the whole is not.
//!
//! # Stages
//! 1. **Key.** `Key::add` writes down everything that a plan depends on as `KeyWords`: dtypes, shapes, strides, constants, the functions, each operation's
//!    name and parameters (`Operation::parameters`). A tensor is a number, counted in the order of meeting, so `x + x` differs from `x + y` and new
//!    tensors of the same shapes match. Of more than `LONGEST` words, `Whole` keeps a `Digest` of 128 bits instead.
//! 2. **Look up** in the `Plans` of the device (`State::find`). The first time nothing is known: the key's hash is noted, and the evaluation is planned.
//!    The second time it is planned and traced. From the third time on there is a `Plan`.
//! 3. **Record again** (`Steps::replay`). Results are stored in the operations that the plan computed (`Deferred::keep`), so later expressions find them.
//!    If a step cannot be done, for example because a tensor is on another device, the evaluation is planned as usual.
//!
//! # What carries it
//! - `Key`: words, the tensors, and weak references to the operations. It holds no operation, because references are counted by the planner.
//! - `Whole`: the same for long evaluations. It also lists what others hold (`Held`), and only these values are kept. The others' memory may be reused.
//! - `Plan`: the `Steps`, the number of the result's tensor, and the numbers of the operations' results.
//!
//! # What holds
//! - Equal keys record the same commands. An operation whose `parameters` returns false (the default) is never replayed.
//! - The key has the version of the device's variants (`variants_version`), so tuning invalidates plans.
//! - Memory is bounded: `KEPT` plans and `MOST_WORDS` words for a device, and `SEEN` hashes. The plans, or the hashes, are all dropped when their bound
//!   is reached.
//! - Nothing is replayed in a capture, within another trace, or while a profile is taken (`Engine::may_trace`).
//!
//! # What is surprising
//! - A short key has every word and is compared whole. Two long evaluations are taken for the same if their digests are: the factors are random for each
//!   process, and a collision has a probability of some 10^-38.
//! - Constants are part of the key. A loop that changes a constant in each round is planned in each round.
//! - An operation that a traced evaluation fused is marked as fused by the replay too (`note_fused`).
//!
//! # An example
//! `(x * 2 + 1).sum(&[1], false)` in a loop over batches `x` of one shape. Rounds 1 and 2 are planned, and round 2 leaves steps: memory for the result,
//! one dispatch over tensors 0 (`x`) and 1 (the result). Round 3 allocates a result and records the dispatch with the buffers of its own `x`.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use rustc_hash::{FxHashMap, FxHashSet};

use super::deferred::Deferred;
use super::evaluate::{self, planned};
use super::node::{Node, Source, Typed, View};
use super::plan::known_value;
use crate::backend::BoxFuture;
use crate::engine::context::evaluation;
use crate::engine::trace::Steps;
use crate::engine::{Engine, Tensor};
use crate::error::{Error, Result};
use cantus_base::listed::Listed;

/// Expressions kept for a device, at most; and those that were seen once.
const KEPT: usize = 1024;
const SEEN: usize = 1 << 14;
/// Words of all keys that are kept.
const MOST_WORDS: usize = 1 << 21;
/// The most words of an expression of which every operation keeps its result, and of one that keeps only what others hold.
const LONGEST: usize = 1 << 9;
const LONGEST_WHOLE: usize = 1 << 19;

/// All that is hashed, in words: equal words are equal values.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(in crate::ops) struct KeyWords(Vec<u64>);

impl KeyWords {
    pub(in crate::ops) fn with_room() -> Self {
        Self(Vec::with_capacity(64))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Hasher for KeyWords {
    fn write(&mut self, bytes: &[u8]) {
        self.0.push(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0.push(u64::from_ne_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.0.push(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.0.push(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0.push(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.0.push(value as u64);
    }

    /// The words are what counts.
    fn finish(&self) -> u64 {
        0
    }
}

/// The properties of an expression that its plan depends on, without its tensors' contents.
#[derive(Default)]
struct Key {
    words: KeyWords,
    /// The tensors that it reads.
    tensors: Vec<Tensor>,
    /// Operations that have no result yet; who holds them matters to a plan.
    operations: Vec<Weak<Deferred>>,
    /// Addresses of the nodes so far, and the places of many.
    known: Vec<usize>,
    places: FxHashMap<usize, usize>,
}

/// Nodes that are looked through one by one.
const FEW: usize = 32;

impl Key {
    /// Reserves room for a usual expression, because growing step by step costs time in a small operation.
    fn with_room() -> Self {
        Self {
            words: KeyWords::with_room(),
            tensors: Vec::with_capacity(4),
            known: Vec::with_capacity(8),
            ..Self::default()
        }
    }

    /// Adds an expression. Returns false if it is too long or cannot be replayed.
    fn add(&mut self, typed: &Arc<Typed>) -> bool {
        if self.words.0.len() > LONGEST {
            return false;
        }
        if let Some(known) = self.place_of(address(typed)) {
            (u8::MAX, known).hash(&mut self.words);
            return true;
        }
        (typed.dtype as u8, &typed.shape).hash(&mut self.words);
        // A value from before is read like a tensor.
        if let Some(value) = known_value(typed).and_then(|value| value.live_result()) {
            self.words.write_u8(8);
            return self.tensor(&value);
        }
        match &typed.node {
            Node::Read(view) => {
                self.words.write_u8(0);
                self.view(view)
            }
            Node::Gather { view, stride, length, index } => {
                (1_u8, stride, length).hash(&mut self.words);
                self.view(view) && self.add(index)
            }
            Node::Constant(value) => {
                (2_u8, value.to_bits()).hash(&mut self.words);
                true
            }
            Node::Unary(op, a) => {
                (3_u8, *op as usize).hash(&mut self.words);
                self.add(a)
            }
            Node::Binary(op, a, b) => {
                (4_u8, *op as usize).hash(&mut self.words);
                self.add(a) && self.add(b)
            }
            Node::Select(a, b, c) => {
                self.words.write_u8(5);
                self.add(a) && self.add(b) && self.add(c)
            }
            Node::Cast(a) => {
                self.words.write_u8(6);
                self.add(a)
            }
            Node::Random { kind, seed, counter } => {
                (7_u8, *kind as u8, seed).hash(&mut self.words);
                self.add(counter)
            }
        }
    }

    /// Returns the place of a known node; `None` for a new one, which gets the next place.
    fn place_of(&mut self, address: usize) -> Option<usize> {
        let count = self.known.len();
        let known = match count <= FEW {
            true => self.known.iter().position(|&known| known == address),
            false => self.places.get(&address).copied(),
        };
        if known.is_none() {
            self.known.push(address);
            if count == FEW {
                self.places.extend(self.known.iter().enumerate().map(|(place, &address)| (address, place)));
            } else if count > FEW {
                self.places.insert(address, count);
            }
        }
        known
    }

    fn view(&mut self, view: &View) -> bool {
        (view.offset, &view.strides).hash(&mut self.words);
        match &view.source {
            Source::Indices => {
                self.words.write_u8(0);
                true
            }
            Source::Tensor(tensor) => self.tensor(tensor),
            Source::Recorded(recorded) => self.tensor(&recorded.tensor()),
            Source::Deferred(deferred) => match deferred.live_result() {
                Some(tensor) => self.tensor(&tensor),
                None => self.operation(deferred),
            },
        }
    }

    fn tensor(&mut self, tensor: &Tensor) -> bool {
        let known = self.tensors.iter().position(|known| Arc::ptr_eq(&known.inner, &tensor.inner));
        let number = known.unwrap_or_else(|| {
            self.tensors.push(tensor.clone());
            self.tensors.len() - 1
        });
        (1_u8, number, tensor.dtype() as u8, tensor.shape()).hash(&mut self.words);
        true
    }

    fn operation(&mut self, deferred: &Arc<Deferred>) -> bool {
        if let Some(known) = self.operations.iter().position(|known| known.as_ptr() == Arc::as_ptr(deferred)) {
            (2_u8, known).hash(&mut self.words);
            return true;
        }
        self.operations.push(Arc::downgrade(deferred));
        (3_u8, deferred.dtype as u8, &deferred.shape, deferred.ends_with_reader()).hash(&mut self.words);
        let (inputs, sound) = deferred.described(&mut self.words);
        sound && inputs.iter().all(|input| self.add(input))
    }
}

/// An address as a number, which futures may hold on any thread.
fn address<T>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of) as usize
}

/// A digest of 128 bits of any number of words. Each word is multiplied into both sums by factors that are random for the process, and the halves of the
/// products are folded. Different words have the same digest with a probability of some 10^-38.
pub(super) struct Digest {
    sums: [u64; 2],
    factors: [u64; 2],
    count: usize,
}

impl Default for Digest {
    fn default() -> Self {
        static FACTORS: LazyLock<[u64; 2]> =
            LazyLock::new(|| [(); 2].map(|()| RandomState::new().build_hasher().finish() | 1));
        Self { sums: *FACTORS, factors: *FACTORS, count: 0 }
    }
}

impl Digest {
    /// The digest of words.
    pub(super) fn of(words: &KeyWords) -> [u64; 2] {
        let mut digest = Self::default();
        digest.add(words);
        digest.sums
    }

    fn add(&mut self, words: &KeyWords) {
        for &word in &words.0 {
            for (sum, factor) in self.sums.iter_mut().zip(self.factors) {
                let product = u128::from(*sum ^ word) * u128::from(factor);
                *sum = (product as u64) ^ (product >> 64) as u64;
            }
        }
        self.count += words.0.len();
    }

    fn take(&mut self, words: &mut KeyWords) {
        self.add(words);
        words.clear();
    }

    /// A key that no expression and no operation has.
    fn key(&self) -> [u64; 4] {
        let [a, b] = self.sums;
        [u16::MAX.into(), self.count as u64, a, b]
    }
}

/// The key of a long evaluation. Only nodes and operations with other holders keep their values.
#[derive(Default)]
struct Whole {
    /// The words of the last node, and the digest of all before.
    words: KeyWords,
    digest: Digest,
    tensors: Vec<Tensor>,
    by_tensor: FxHashMap<usize, usize>,
    /// Nodes, and how often others of them hold each.
    nodes: Vec<(Arc<Typed>, usize)>,
    by_node: FxHashMap<usize, usize>,
    /// Operations that have no result yet, and how many nodes read each.
    operations: Vec<(Arc<Deferred>, usize)>,
    by_operation: FxHashMap<usize, usize>,
    /// Nodes and operations with other holders.
    held: Vec<Held>,
}

enum Held {
    Node(Arc<Typed>),
    Operation(Arc<Deferred>),
}

impl Held {
    fn value(&self) -> Arc<Deferred> {
        match self {
            Self::Node(typed) => typed.value(),
            Self::Operation(deferred) => deferred.clone(),
        }
    }
}

impl Whole {
    fn of(root: &Arc<Typed>) -> Option<Self> {
        let mut whole = Self::default();
        let mut next = vec![root.clone()];
        while let Some(typed) = next.pop() {
            if whole.digest.count > LONGEST_WHOLE || !whole.add(typed, &mut next) {
                return None;
            }
            whole.digest.take(&mut whole.words);
        }
        whole.find_held();
        Some(whole)
    }

    /// Adds a node; those that it reads come next, the first one first.
    fn add(&mut self, typed: Arc<Typed>, next: &mut Vec<Arc<Typed>>) -> bool {
        if let Some(&place) = self.by_node.get(&address(&typed)) {
            self.nodes[place].1 += 1;
            (u8::MAX, place).hash(&mut self.words);
            return true;
        }
        let words = &mut self.words;
        (typed.dtype as u8, &typed.shape).hash(words);
        let value = known_value(&typed).and_then(|value| value.live_result());
        let mut is_sound = true;
        if let Some(value) = value {
            words.write_u8(8);
            self.tensor(&value);
        } else {
            let from = next.len();
            match &typed.node {
                Node::Read(_) => words.write_u8(0),
                Node::Gather { stride, length, .. } => (1_u8, stride, length).hash(words),
                Node::Constant(value) => (2_u8, value.to_bits()).hash(words),
                Node::Unary(op, _) => (3_u8, *op as usize).hash(words),
                Node::Binary(op, ..) => (4_u8, *op as usize).hash(words),
                Node::Select(..) => words.write_u8(5),
                Node::Cast(_) => words.write_u8(6),
                Node::Random { kind, seed, .. } => (7_u8, *kind as u8, seed).hash(words),
            }
            if let Node::Read(view) | Node::Gather { view, .. } = &typed.node {
                is_sound = self.view(view, next);
            }
            next.extend(typed.children().into_iter().cloned());
            next[from..].reverse();
        }
        self.by_node.insert(address(&typed), self.nodes.len());
        self.nodes.push((typed, 1));
        is_sound
    }

    fn view(&mut self, view: &View, next: &mut Vec<Arc<Typed>>) -> bool {
        (view.offset, &view.strides).hash(&mut self.words);
        let deferred = match &view.source {
            Source::Indices => {
                self.words.write_u8(0);
                return true;
            }
            Source::Tensor(tensor) => {
                self.tensor(tensor);
                return true;
            }
            Source::Recorded(recorded) => {
                self.tensor(&recorded.tensor());
                return true;
            }
            Source::Deferred(deferred) => deferred,
        };
        if let Some(tensor) = deferred.live_result() {
            self.tensor(&tensor);
            return true;
        }
        if let Some(&place) = self.by_operation.get(&address(deferred)) {
            self.operations[place].1 += 1;
            (2_u8, place).hash(&mut self.words);
            return true;
        }
        self.by_operation.insert(address(deferred), self.operations.len());
        self.operations.push((deferred.clone(), 1));
        (3_u8, deferred.dtype as u8, &deferred.shape, deferred.ends_with_reader()).hash(&mut self.words);
        let (inputs, sound) = deferred.described(&mut self.words);
        self.words.write_usize(inputs.len());
        next.extend(inputs);
        sound
    }

    fn tensor(&mut self, tensor: &Tensor) {
        let number = *self.by_tensor.entry(address(&tensor.inner)).or_insert_with(|| {
            self.tensors.push(tensor.clone());
            self.tensors.len() - 1
        });
        (1_u8, number, tensor.dtype() as u8, tensor.shape()).hash(&mut self.words);
    }

    /// Finds what something outside this expression holds. Its value is computed too, because the holder may ask for it.
    fn find_held(&mut self) {
        let mut held: Vec<usize> = Vec::new();
        for (place, (deferred, readers)) in self.operations.iter().enumerate() {
            // This list holds it once more.
            if Arc::strong_count(deferred) > readers + 1 {
                held.push(place);
            }
        }
        for (place, (typed, holders)) in self.nodes.iter().enumerate() {
            if Arc::strong_count(typed) <= holders + 1 && place > 0 {
                continue;
            }
            let of = match &typed.node {
                Node::Read(View { source: Source::Deferred(deferred), .. }) => {
                    self.by_operation.get(&address(deferred)).copied()
                }
                Node::Read(_) | Node::Constant(_) => None,
                // The expression itself is what is asked for.
                _ if place == 0 => None,
                _ => {
                    (self.held.len(), place).hash(&mut self.words);
                    self.held.push(Held::Node(typed.clone()));
                    None
                }
            };
            held.extend(of.filter(|of| !held.contains(of)));
        }
        held.hash(&mut self.words);
        self.held.extend(held.into_iter().map(|place| Held::Operation(self.operations[place].0.clone())));
        // The plan counts references, so these are dropped before it.
        (self.nodes, self.operations) = Default::default();
    }

    /// Computes the expression, and the values that others hold.
    async fn evaluated(mut self, engine: &Engine, typed: &Arc<Typed>) -> Result<Tensor> {
        let slot = self.tensors.first().map_or_else(|| engine.shared().primary(), |tensor| tensor.place().slot);
        self.words.write_u64(engine.shared().variants_version(&slot));
        self.digest.take(&mut self.words);
        let key = self.digest.key();
        let plans = slot.beside::<Plans>();
        let (known, twice) = {
            let mut plans = plans.lock();
            (plans.find(&key), plans.twice)
        };
        match known {
            Known::No if !twice => return planned(engine, typed).await,
            Known::No | Known::Seen => {}
            Known::Plan(plan) => {
                if let Some(tensor) = self.done_again(engine, &plan).await {
                    if typed.depth > 0 {
                        typed.value().keep(&tensor);
                    }
                    return Ok(tensor);
                }
                return planned(engine, typed).await;
            }
        }
        let work = async {
            let tensor = planned(engine, typed).await?;
            let mut values = Vec::with_capacity(self.held.len());
            for held in &self.held {
                let value = held.value();
                if value.live_result().is_none() {
                    let read = Typed::of(Source::Deferred(value.clone()), &value.shape, value.dtype);
                    value.keep(&planned(engine, &read).await?);
                }
                values.push(value);
            }
            Ok((tensor, values))
        };
        let (result, traced) = engine.traced(&self.tensors, Box::pin(work)).await;
        let (tensor, values) = result?;
        if let Some(traced) = traced
            && let Some(result) = traced.number(&tensor)
        {
            let results = values.iter().enumerate();
            let results = results.map(|(place, value)| Some((place, traced.number(&value.result()?)?))).try_listed();
            if let Some(results) = results {
                let kept = results.iter().map(|&(_, number)| number).chain([result]).listed();
                if let Some(steps) = traced.steps(Some(&kept)) {
                    let plan = Arc::new(Plan { steps, result, results });
                    plans.lock().keep(&key, self.digest.count, &plan);
                    if twice && let Some(tensor) = self.done_again(engine, &plan).await {
                        return Ok(tensor);
                    }
                }
            }
        }
        Ok(tensor)
    }

    async fn done_again(&self, engine: &Engine, plan: &Plan) -> Option<Tensor> {
        let tensors = plan.steps.replay(engine, &self.tensors).await?;
        for (place, number) in &plan.results {
            self.held.get(*place)?.value().keep(tensors.get(*number)?.as_ref()?);
        }
        tensors.get(plan.result).cloned().flatten()
    }
}

/// An evaluation that can be done again.
struct Plan {
    steps: Steps,
    /// The tensor that it gives.
    result: usize,
    /// The operations that it computed, by their number in the key, with their results.
    results: Vec<(usize, usize)>,
}

/// The evaluations kept for a device.
#[derive(Default)]
struct Plans(Mutex<State>);

#[derive(Default)]
struct State {
    plans: FxHashMap<Box<[u64]>, Arc<Plan>>,
    /// The length of all keys together.
    words: usize,
    /// Tests want every plan to be used.
    twice: bool,
    /// Hashes of keys that came once: what never comes again is not worth a place.
    seen: FxHashSet<u64>,
}

impl Plans {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Known {
    No,
    Seen,
    Plan(Arc<Plan>),
}

impl State {
    fn find(&mut self, words: &[u64]) -> Known {
        if let Some(plan) = self.plans.get(words) {
            return Known::Plan(plan.clone());
        }
        let mut hasher = rustc_hash::FxHasher::default();
        words.hash(&mut hasher);
        if self.seen.len() >= SEEN {
            self.seen.clear();
        }
        if self.seen.insert(hasher.finish()) { Known::No } else { Known::Seen }
    }

    /// Keeps a plan. `count` is the number of words that the key stands for, which is about the size of the plan.
    fn keep(&mut self, words: &[u64], count: usize, plan: &Arc<Plan>) {
        if self.plans.len() >= KEPT || self.words + count > MOST_WORDS {
            self.plans.clear();
            self.words = 0;
        }
        self.words += count;
        self.plans.insert(words.into(), plan.clone());
    }
}

/// See [`crate::testing::evaluate_twice`].
#[cfg(feature = "_test")]
#[doc(hidden)]
pub fn evaluate_twice(engine: &Engine) {
    for slot in engine.shared().open_slots() {
        slot.beside::<Plans>().lock().twice = true;
    }
}

/// Computes an expression, by replay if it can be.
pub(super) async fn evaluate(engine: &Engine, typed: &Arc<Typed>) -> Result<Tensor> {
    // Futures that are passed on are held twice.
    let work = pin!(evaluated(engine, typed));
    evaluation(engine, work).await
}

async fn evaluated(engine: &Engine, typed: &Arc<Typed>) -> Result<Tensor> {
    if !engine.may_trace() || typed.shape.contains(&0) {
        return planned(engine, typed).await;
    }
    let mut key = Key::with_room();
    if key.add(typed) {
        return computed(engine, key, || planned(engine, typed)).await;
    }
    match Whole::of(typed) {
        Some(whole) => Box::pin(whole.evaluated(engine, typed)).await,
        None => planned(engine, typed).await,
    }
}

/// Computes an operation and keeps its result, by replay if it can be.
pub(super) async fn operation(engine: &Engine, deferred: &Arc<Deferred>) -> Result<Tensor> {
    let mut key = Key::with_room();
    // No expression begins so.
    key.words.write_u8(u8::MAX);
    if deferred.live_result().is_some()
        || !engine.may_trace()
        || !key.operation(deferred)
        || deferred.shape.contains(&0)
    {
        return Box::pin(deferred.compute(engine)).await;
    }
    computed(engine, key, || Box::pin(deferred.compute(engine))).await
}

/// Computes the values of a group.
pub(super) async fn together(engine: &Engine, group: &[Arc<Deferred>]) -> Result<Tensor> {
    let work = || -> BoxFuture<'_, Result<Tensor>> {
        Box::pin(async {
            let last = evaluate::together(engine, group).await?;
            // There are some.
            last.ok_or_else(|| Error::fault("a group of values", "it is empty"))
        })
    };
    let mut key = Key::with_room();
    // No expression begins so, and no operation.
    (u8::MAX, u8::MAX, group.len()).hash(&mut key.words);
    let is_known = engine.may_trace()
        && group.iter().all(|one| one.live_result().is_none() && key.operation(one) && !one.shape.contains(&0));
    if is_known { computed(engine, key, work).await } else { work().await }
}

/// Replays what was recorded for a key, or does the work. The work is a boxed future that is made only if it is needed: as a part of this future it
/// would be moved with everything that an evaluation may hold.
async fn computed<'a>(
    engine: &Engine,
    mut key: Key,
    work: impl FnOnce() -> BoxFuture<'a, Result<Tensor>>,
) -> Result<Tensor> {
    let slot = key.tensors.first().map_or_else(|| engine.shared().primary(), |tensor| tensor.place().slot);
    key.words.write_u64(engine.shared().variants_version(&slot));
    let plans = slot.beside::<Plans>();
    let (known, twice) = {
        let mut plans = plans.lock();
        (plans.find(&key.words.0), plans.twice)
    };
    match known {
        Known::No if !twice => return work().await,
        Known::No | Known::Seen => {}
        Known::Plan(plan) => {
            if let Some(tensor) = plan.run(engine, &key).await {
                return Ok(tensor);
            }
            return work().await;
        }
    }
    let (result, traced) = engine.traced(&key.tensors, work()).await;
    if let (Ok(result), Some(traced)) = (&result, traced) {
        let number = |tensor: &Tensor| traced.number(tensor);
        let results = key.operations.iter().enumerate();
        let results =
            results.filter_map(|(place, deferred)| Some((place, number(&deferred.upgrade()?.result()?)?))).listed();
        if let Some((result, steps)) = number(result).and_then(|number| Some((number, traced.steps(None)?))) {
            let plan = Arc::new(Plan { steps, result, results });
            plans.lock().keep(&key.words.0, key.words.0.len(), &plan);
            if twice && let Some(tensor) = plan.run(engine, &key).await {
                return Ok(tensor);
            }
        }
    }
    result
}

impl Plan {
    async fn run(&self, engine: &Engine, key: &Key) -> Option<Tensor> {
        let tensors = self.steps.replay(engine, &key.tensors).await?;
        for (place, deferred) in key.operations.iter().enumerate() {
            let Some(deferred) = deferred.upgrade() else { continue };
            match self.results.iter().find(|(known, _)| *known == place) {
                Some((_, number)) => deferred.keep(tensors.get(*number)?.as_ref()?),
                None if deferred.ends_with_reader() => deferred.note_fused(),
                None => {}
            }
        }
        tensors.get(self.result).cloned().flatten()
    }
}
