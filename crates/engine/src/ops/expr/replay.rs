//! Replay: an expression that is evaluated again over other tensors is recorded from what its second evaluation did, without a plan, text or lookups by
//! name. `engine/trace.rs` takes and repeats the trace. This file decides what is the same evaluation.
//!
//! # What comes in
//! `evaluate` gets every evaluation of an expression. `step` gets each group of a plan, so parts of a long evaluation are replayed even where the whole is
//! not.
//!
//! # Stages
//! 1. **Digest.** `survey` hashes everything that a plan depends on: dtypes, shapes, strides, constants, the functions, each operation's name and
//!    parameters (`Operation::parameters`), what others hold, and for a step how the schedule computes what it reads. A tensor is a number, counted in the
//!    order of meeting, so `x + x` differs from `x + y` and new tensors of the same shapes match.
//! 2. **Look up** in the `Plans` of the device (`State::find`). The first time nothing is known: the digest is noted, and the evaluation is planned.
//!    The second time it is planned and traced. From the third time on there is a `Plan`.
//! 3. **Record again** (`Steps::replay`). Results are stored in the operations that the plan computed (`Deferred::keep`), so later expressions find them.
//!    If a step cannot be done, for example because a tensor is on another device, the evaluation is planned as usual.
//!
//! # What carries it
//! - `Survey`: the digest, the tensors, and weak references to the operations. Of a long evaluation it lists what others hold, and only these values are
//!   kept. The others' memory may be reused.
//! - `Plan`: the `Steps`, the number of the result's tensor, and the numbers of the values' tensors.
//!
//! # What holds
//! - Equal digests record the same commands. An operation whose `parameters` returns false (the default) is never replayed.
//! - The digest has the version of the device's variants (`variants_version`), so tuning invalidates plans.
//! - Memory is bounded: `KEPT` plans and `MOST_WORDS` words for a device, and `SEEN` digests. The plans, or the digests, are all dropped when their bound
//!   is reached.
//! - Nothing is replayed in a capture, within another trace, or while a profile is taken (`Engine::may_trace`).
//!
//! # What is surprising
//! - Two evaluations are taken for the same if their digests are: the factors are random for each process, and a collision has a probability of some
//!   10^-38.
//! - Constants are part of the digest. A loop that changes a constant in each round is planned in each round.
//! - An operation that a traced evaluation fused and that may be asked for again is noted as fused by the replay too (`note_fused`).
//!
//! # An example
//! `(x * 2 + 1).sum(&[1], false)` in a loop over batches `x` of one shape. Rounds 1 and 2 are planned, and round 2 leaves steps: memory for the result,
//! one dispatch over tensors 0 (`x`) and 1 (the result). Round 3 allocates a result and records the dispatch with the buffers of its own `x`.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use super::deferred::Deferred;
use super::digest::Digest;
use super::evaluate::{self, planned};
use super::node::{Source, Typed};
use super::schedule::Schedule;
use super::survey::{Facts, Survey};
use crate::backend::BoxFuture;
use crate::engine::context::evaluation;
use crate::engine::trace::{Steps, Traced};
use crate::engine::{Engine, Tensor};
use crate::error::Result;
use cantus_base::listed::Listed;

/// Expressions kept for a device, at most; and those that were seen once.
const KEPT: usize = 1024;
const SEEN: usize = 1 << 14;
/// Words of all that is kept.
const MOST_WORDS: usize = 1 << 21;

/// An evaluation that can be done again.
struct Plan {
    steps: Steps,
    /// The tensor that it gives.
    result: usize,
    /// The numbers of the values that it keeps, with those of their tensors.
    results: Vec<(usize, usize)>,
    /// Operations that may be asked for again, and whose own results were not written.
    fused: Vec<usize>,
}

/// The evaluations kept for a device.
#[derive(Default)]
struct Plans(Mutex<State>);

#[derive(Default)]
struct State {
    plans: FxHashMap<[u64; 2], Arc<Plan>>,
    /// The words of all digests together.
    words: usize,
    /// Tests want every plan to be used.
    twice: bool,
    /// Digests that came once: what never comes again is not worth a place.
    seen: FxHashSet<[u64; 2]>,
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
    fn find(&mut self, digest: &Digest) -> Known {
        if let Some(plan) = self.plans.get(&digest.halves()) {
            return Known::Plan(plan.clone());
        }
        if self.seen.len() >= SEEN {
            self.seen.clear();
        }
        if self.seen.insert(digest.halves()) { Known::No } else { Known::Seen }
    }

    fn keep(&mut self, digest: &Digest, plan: &Arc<Plan>) {
        if self.plans.len() >= KEPT || self.words + digest.words() > MOST_WORDS {
            self.plans.clear();
            self.words = 0;
        }
        self.words += digest.words();
        self.plans.insert(digest.halves(), plan.clone());
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
    let survey = Survey::of(typed);
    if !survey.is_sound() || !engine.may_trace() || typed.shape.contains(&0) {
        let facts = survey.facts();
        drop(survey);
        return planned(engine, typed, facts, true).await;
    }
    let is_long = survey.is_long();
    let (tensor, is_replayed) = replayed(engine, survey, |survey| planned(engine, typed, survey.facts(), true)).await?;
    // No operation keeps what it would be computed again from.
    if is_replayed && is_long && typed.depth > 0 {
        typed.value().keep(&tensor);
    }
    Ok(tensor)
}

/// Computes a group of a plan and keeps the results, by replay if it can be. Returns the last result.
pub(super) async fn step(engine: &Engine, schedule: &Schedule, group: &[Arc<Deferred>]) -> Result<Tensor> {
    let work = || -> BoxFuture<'_, Result<Tensor>> {
        match group {
            [one] => one.compute(engine, schedule),
            several => Box::pin(evaluate::together(engine, schedule, several)),
        }
    };
    if !engine.may_trace() || group.iter().any(|one| one.live_result().is_some() || one.shape.contains(&0)) {
        return work().await;
    }
    let survey = Survey::of_step(schedule, group);
    if !survey.is_sound() {
        return work().await;
    }
    Ok(replayed(engine, survey, |_| work()).await?.0)
}

/// Replays what was recorded for an evaluation like this, or does the work. Returns whether it was replayed. The work is a boxed future that is made only if
/// it is needed: as a part of this future it would be moved with everything that an evaluation may hold.
async fn replayed<'a>(
    engine: &Engine,
    mut survey: Survey,
    work: impl FnOnce(&Survey) -> BoxFuture<'a, Result<Tensor>>,
) -> Result<(Tensor, bool)> {
    let slot = survey.tensors().first().map_or_else(|| engine.shared().primary(), |tensor| tensor.place().slot);
    survey.add(engine.shared().variants_version(&slot));
    let plans = slot.beside::<Plans>();
    let (known, twice) = {
        let mut plans = plans.lock();
        (plans.find(survey.digest()), plans.twice)
    };
    match known {
        Known::No if !twice => return Ok((work(&survey).await?, false)),
        Known::No | Known::Seen => {}
        Known::Plan(plan) => {
            return match plan.run(engine, &survey).await {
                Some(tensor) => Ok((tensor, true)),
                None => Ok((work(&survey).await?, false)),
            };
        }
    }
    let work = work(&survey);
    let (result, traced) = engine.traced(survey.tensors(), Box::pin(complete(engine, &survey, work))).await;
    let (tensor, values) = result?;
    if let Some(plan) = traced.and_then(|traced| Plan::of(traced, &survey, &tensor, &values)) {
        let plan = Arc::new(plan);
        plans.lock().keep(survey.digest(), &plan);
        if twice && let Some(tensor) = plan.run(engine, &survey).await {
            return Ok((tensor, true));
        }
    }
    Ok((tensor, false))
}

/// Does the work, and computes what others hold of a long evaluation. Returns the values that it keeps.
async fn complete(
    engine: &Engine,
    survey: &Survey,
    work: BoxFuture<'_, Result<Tensor>>,
) -> Result<(Tensor, Vec<Option<Arc<Deferred>>>)> {
    let tensor = work.await?;
    let values = survey.values();
    if survey.is_long() {
        for value in values.iter().flatten().filter(|value| value.live_result().is_none()) {
            let read = Typed::of(Source::Deferred(value.clone()), &value.shape, value.dtype);
            value.keep(&planned(engine, &read, Facts::of_evaluation(&read), false).await?);
        }
    }
    Ok((tensor, values))
}

impl Plan {
    /// The plan of what was traced. `None` if it does not give what it must.
    fn of(traced: Traced, survey: &Survey, tensor: &Tensor, values: &[Option<Arc<Deferred>>]) -> Option<Self> {
        let result = traced.number(tensor)?;
        let number = |value: &Option<Arc<Deferred>>| traced.number(&value.as_ref()?.result()?);
        let results = values.iter().map(number).enumerate();
        let results = results.filter_map(|(place, number)| Some((place, number?))).listed();
        if !survey.is_long() {
            let ended = |(number, one): (usize, Arc<Deferred>)| {
                let was_fused = one.result().is_none() && one.history.was_part();
                was_fused.then_some(number)
            };
            let fused = survey.held().filter_map(ended).listed();
            return Some(Self { steps: traced.steps(None)?, result, results, fused });
        }
        // Only these stay.
        let kept = results.iter().map(|&(_, number)| number).chain([result]).listed();
        let is_whole = results.len() == values.len();
        let steps = is_whole.then(|| traced.steps(Some(&kept))).flatten()?;
        Some(Self { steps, result, results, fused: Vec::new() })
    }

    async fn run(&self, engine: &Engine, survey: &Survey) -> Option<Tensor> {
        let tensors = self.steps.replay(engine, survey.tensors()).await?;
        let values = survey.values();
        for &(place, number) in &self.results {
            if let Some(value) = values.get(place)? {
                value.keep(tensors.get(number)?.as_ref()?);
            }
        }
        let fused = self.fused.iter().filter_map(|&number| survey.operation(number));
        fused.for_each(|operation| operation.note_fused(engine));
        tensors.get(self.result).cloned().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::ops::Expr;

    fn digest(expr: &Expr) -> [u64; 2] {
        Survey::of(expr.state.as_ref().unwrap()).digest().halves()
    }

    #[test]
    fn tensors_are_told_apart_by_where_they_are_read() {
        let engine = Engine::builder().backend("cpu").build().unwrap();
        let tensor = |from: f32| engine.tensor(&[from, from + 1.0, from + 2.0]).unwrap();
        let (x, y, a, b) = (tensor(1.0), tensor(2.0), tensor(3.0), tensor(4.0));
        assert_eq!(digest(&(&x + &y)), digest(&(&a + &b)));
        assert_eq!(digest(&(&x + &x)), digest(&(&a + &a)));
        assert_ne!(digest(&(&x + &x)), digest(&(&x + &y)));
        assert_ne!(digest(&((&x + &y) * &x)), digest(&((&x + &y) * &y)));
        assert_ne!(digest(&(&x + &y)), digest(&(&x - &y)));
        assert_ne!(digest(&(&x * 2.0)), digest(&(&x * 3.0)));
        assert_ne!(digest(&(&x * 2.0)), digest(&(engine.zeros::<f32>(&[4]).unwrap() * 2.0)));
        // From the third time on it is replayed.
        for [x, y] in [[&x, &y], [&a, &b], [&y, &a], [&x, &x], [&a, &a], [&b, &b], [&x, &y]] {
            let (left, right) = (x.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap());
            let sums: Vec<f32> = left.iter().zip(right).map(|(left, right)| left + right).collect();
            assert_eq!((x + y).eval().unwrap().to_vec::<f32>().unwrap(), sums);
        }
    }

    #[test]
    fn what_others_hold_is_told_apart() {
        let engine = Engine::builder().backend("cpu").build().unwrap();
        let square = engine.zeros::<f32>(&[4, 4]).unwrap();
        let product = square.matmul(&square);
        let held = digest(&(&product + 1.0));
        assert_eq!(held, digest(&(&product + 1.0)));
        let alone = product + 1.0;
        assert_ne!(held, digest(&alone));
    }
}
