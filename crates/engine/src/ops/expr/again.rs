//! Expressions that are evaluated again and again over other tensors: what the evaluation recorded is kept by the expression's structure, so that the
//! next one is recorded without being planned.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustc_hash::{FxHashMap, FxHashSet};

use super::deferred::Deferred;
use super::evaluate::planned;
use super::node::{Node, Source, Typed, View};
use super::plan::known_value;
use crate::engine::again::Steps;
use crate::engine::context::evaluation;
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use cantus_base::listed::Listed;

/// Expressions kept for a device, at most; and those that were seen once.
const KEPT: usize = 1024;
const SEEN: usize = 1 << 14;
/// Larger expressions take longer to run than to plan.
const LONGEST: usize = 1 << 12;

/// All that is hashed, in words: equal words are equal values.
#[derive(Default)]
pub(in crate::ops) struct Words(Vec<u64>);

impl Hasher for Words {
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

/// What the plan of an expression depends on, but for its tensors' contents.
#[derive(Default)]
struct Key {
    words: Words,
    /// Those that it reads.
    tensors: Vec<Tensor>,
    /// Operations that have no result yet; who holds them matters to a plan.
    operations: Vec<Weak<Deferred>>,
    /// Addresses of the nodes so far.
    known: Vec<usize>,
}

impl Key {
    /// With room for a usual expression: memory that grows by and by counts where an operation is small.
    fn with_room() -> Self {
        let words = Words(Vec::with_capacity(64));
        Self { words, tensors: Vec::with_capacity(4), known: Vec::with_capacity(8), operations: Vec::new() }
    }

    /// Adds an expression; says whether that is possible.
    fn add(&mut self, typed: &Arc<Typed>) -> bool {
        if self.words.0.len() > LONGEST {
            return false;
        }
        if let Some(known) = self.known.iter().position(|&known| known == Arc::as_ptr(typed) as usize) {
            (u8::MAX, known).hash(&mut self.words);
            return true;
        }
        self.known.push(Arc::as_ptr(typed) as usize);
        (typed.dtype as u8, &typed.shape).hash(&mut self.words);
        // What was computed before is read.
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
        deferred.parameters(&mut self.words) && deferred.inputs().into_iter().all(|input| self.add(&input))
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

    fn keep(&mut self, words: &[u64], plan: &Arc<Plan>) {
        if self.plans.len() >= KEPT {
            self.plans.clear();
        }
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

/// Computes an expression: by what it recorded before, where there is that.
pub(super) async fn evaluate(engine: &Engine, typed: &Arc<Typed>) -> Result<Tensor> {
    evaluation(engine, evaluated(engine, typed)).await
}

async fn evaluated(engine: &Engine, typed: &Arc<Typed>) -> Result<Tensor> {
    let mut key = Key::with_room();
    if !engine.may_trace() || !key.add(typed) || typed.shape.contains(&0) {
        return planned(engine, typed).await;
    }
    computed(engine, key, planned(engine, typed)).await
}

/// Computes an operation, of which it keeps the result: by what it recorded before, where there is that.
pub(super) async fn operation(engine: &Engine, deferred: &Arc<Deferred>) -> Result<Tensor> {
    let mut key = Key::with_room();
    // No expression begins so.
    key.words.write_u8(u8::MAX);
    if deferred.live_result().is_some()
        || !engine.may_trace()
        || !key.operation(deferred)
        || deferred.shape.contains(&0)
    {
        return deferred.compute(engine).await;
    }
    computed(engine, key, deferred.compute(engine)).await
}

/// Does again what was recorded for a key, or the work.
async fn computed(engine: &Engine, mut key: Key, work: impl Future<Output = Result<Tensor>>) -> Result<Tensor> {
    let slot = key.tensors.first().map_or_else(|| engine.shared().primary(), |tensor| tensor.place().slot);
    key.words.write_u64(engine.shared().variants_version(&slot));
    let plans = slot.beside::<Plans>();
    let (known, twice) = {
        let mut plans = plans.lock();
        (plans.find(&key.words.0), plans.twice)
    };
    match known {
        Known::No if !twice => return work.await,
        Known::No | Known::Seen => {}
        Known::Plan(plan) => {
            if let Some(tensor) = plan.run(engine, &key).await {
                return Ok(tensor);
            }
            return work.await;
        }
    }
    let (result, steps) = engine.traced(&key.tensors, work).await;
    if let (Ok(result), Some((steps, tensors))) = (&result, steps) {
        let number = |tensor: &Tensor| tensors.iter().position(|known| Arc::ptr_eq(&known.inner, &tensor.inner));
        let results = key.operations.iter().enumerate();
        let results =
            results.filter_map(|(place, deferred)| Some((place, number(&deferred.upgrade()?.result()?)?))).listed();
        if let Some(result) = number(result) {
            let plan = Arc::new(Plan { steps, result, results });
            plans.lock().keep(&key.words.0, &plan);
            if twice && let Some(tensor) = plan.run(engine, &key).await {
                return Ok(tensor);
            }
        }
    }
    result
}

impl Plan {
    async fn run(&self, engine: &Engine, key: &Key) -> Option<Tensor> {
        let tensors = self.steps.again(engine, &key.tensors).await?;
        for (place, deferred) in key.operations.iter().enumerate() {
            let Some(deferred) = deferred.upgrade() else { continue };
            match self.results.iter().find(|(known, _)| *known == place) {
                Some((_, number)) => deferred.keep(tensors.get(*number)?),
                None if deferred.ends_with_reader() => deferred.note_fused(),
                None => {}
            }
        }
        tensors.get(self.result).cloned()
    }
}
