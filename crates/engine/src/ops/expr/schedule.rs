//! Schedules: what a plan decided of operations and values that it gives no result of their own, and the lowering that follows it.
//!
//! A schedule belongs to one evaluation and does not change. It goes with every call (`operation::Call`), and an operation that evaluates something of its
//! own under way does so under a schedule of its own. Its keys are operations, because lowering makes new nodes. It holds none of them: who else holds an
//! operation was counted before (`survey`), and what nothing needs any more is dropped while the evaluation goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use super::deferred::Deferred;
use super::node::{Node, Source, Typed, View};
use cantus_base::listed::Listed;

/// The history of a node or an operation: whether an evaluation computed it as a part of another kernel and wrote no result. Whoever asks again gets one
/// written, where that pays. A plan reads it once.
#[derive(Default)]
pub(super) struct History(AtomicBool);

impl History {
    pub(super) fn was_part(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn restore(&self, was_part: bool) {
        self.0.store(was_part, Ordering::Relaxed);
    }

    pub(super) fn note_part(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The way in which something without a result is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Left {
    /// A value, by each of its readers.
    ToReaders,
    /// An operation, whose kernel an expression may end: its only reader.
    ToEnd,
}

/// The decisions of a plan.
#[derive(Default)]
pub(in crate::ops) struct Schedule {
    /// By address. Nothing else comes to lie there as long as there is a weak reference.
    left: FxHashMap<usize, (Weak<Deferred>, Left)>,
}

impl Schedule {
    pub(super) fn of<'a>(left: impl Iterator<Item = (&'a Arc<Deferred>, Left)>) -> Self {
        let entry = |(deferred, left): (&Arc<Deferred>, Left)| {
            (Arc::as_ptr(deferred) as usize, (Arc::downgrade(deferred), left))
        };
        Self { left: left.map(entry).collect() }
    }

    /// Returns how an operation is computed, if it gets no result of its own.
    pub(super) fn left(&self, deferred: &Deferred) -> Option<Left> {
        self.left.get(&std::ptr::from_ref(deferred).addr()).map(|(_, left)| *left)
    }

    /// Replaces expressions by their values where these are computed, and pushes views into the values that their readers compute.
    pub(in crate::ops) fn lowered(&self, typed: &Arc<Typed>) -> Arc<Typed> {
        self.lower(typed, None)
    }

    /// Lowers everything below an expression whose own value is being computed.
    pub(super) fn lowered_below(&self, typed: &Arc<Typed>) -> Arc<Typed> {
        self.lower(typed, Some(typed))
    }

    fn lower(&self, typed: &Arc<Typed>, but: Option<&Arc<Typed>>) -> Arc<Typed> {
        let is_itself = |node: &Arc<Typed>| but.is_some_and(|but| Arc::ptr_eq(but, node));
        let mut changes = false;
        typed.walk(&mut |node| {
            changes |= !is_itself(node) && (known_value(node).is_some() || self.inlined(node).is_some());
        });
        if !changes {
            return typed.clone();
        }
        let mut known = FxHashMap::default();
        if is_itself(typed) {
            let children: Vec<Arc<Typed>> =
                typed.children().into_iter().map(|child| self.lower_in(child, &mut known)).listed();
            return typed.over(&children, typed.shape.clone());
        }
        self.lower_in(typed, &mut known)
    }

    /// Expressions whose values are computed at once, so that what they share stays shared.
    pub(super) fn lowered_together(&self, all: &[Arc<Typed>]) -> Vec<Arc<Typed>> {
        let mut known = FxHashMap::default();
        let mut lowered = Vec::with_capacity(all.len());
        for typed in all {
            let result = self.lower_children(typed, &mut known);
            known.insert(Arc::as_ptr(typed), result.clone());
            lowered.push(result);
        }
        lowered
    }

    /// Lowers an expression. `known` has the nodes that were lowered before, those of inlined values too.
    fn lower_in(&self, typed: &Arc<Typed>, known: &mut FxHashMap<*const Typed, Arc<Typed>>) -> Arc<Typed> {
        if let Some(known) = known.get(&Arc::as_ptr(typed)) {
            return known.clone();
        }
        let result = if let Some(value) = known_value(typed) {
            Typed::of(Source::Deferred(value), &typed.shape, typed.dtype)
        } else if let Some((value, view)) = self.inlined(typed) {
            super::view::pushed(&self.lower_in(&value, known), typed, view).unwrap_or_else(|| typed.clone())
        } else if typed.depth == 0 {
            typed.clone()
        } else {
            self.lower_children(typed, known)
        };
        known.insert(Arc::as_ptr(typed), result.clone());
        result
    }

    fn lower_children(&self, typed: &Arc<Typed>, known: &mut FxHashMap<*const Typed, Arc<Typed>>) -> Arc<Typed> {
        let children: Vec<Arc<Typed>> = typed.children().into_iter().map(|child| self.lower_in(child, known)).listed();
        let same = typed.children().into_iter().zip(&children).all(|(before, after)| Arc::ptr_eq(before, after));
        if same { typed.clone() } else { typed.over(&children, typed.shape.clone()) }
    }

    /// Returns the expression and the view behind a read of a value that its readers compute.
    fn inlined<'a>(&self, node: &'a Typed) -> Option<(Arc<Typed>, &'a View)> {
        let Node::Read(view) = &node.node else { return None };
        let Source::Deferred(deferred) = &view.source else { return None };
        if self.left(deferred) != Some(Left::ToReaders) || deferred.live_result().is_some() {
            return None;
        }
        Some((deferred.inputs().into_iter().next()?, view))
    }
}

/// The value of an expression, computed before.
pub(super) fn known_value(node: &Typed) -> Option<Arc<Deferred>> {
    if node.depth == 0 {
        return None;
    }
    node.own_value().filter(|own| own.live_result().is_some())
}

#[cfg(test)]
mod tests {
    use super::super::plan::plan;
    use super::super::survey::Facts;
    use super::*;
    use crate::engine::Engine;
    use crate::ops::Expr;
    use crate::ops::tune::Machine;

    fn planned(expr: &Expr) -> (usize, Schedule) {
        let typed = expr.state.as_ref().unwrap();
        let (groups, schedule) = plan(typed, &Facts::of_evaluation(typed), Machine::Cpu, false);
        (groups.len(), schedule)
    }

    fn read(expr: &Expr) -> Arc<Deferred> {
        match &expr.state.as_ref().unwrap().node {
            Node::Read(View { source: Source::Deferred(deferred), .. }) => deferred.clone(),
            _ => panic!("it reads no operation"),
        }
    }

    #[test]
    fn plans_of_two_readers_do_not_change_each_other() {
        let engine = Engine::builder().backend("cpu").build().unwrap();
        let x = engine.tensor(&[1.0_f32, 2.0, 3.0]).unwrap();
        let sum = x.sum(&[], false);
        let deferred = read(&sum);
        let (one, two) = (&sum * 2.0, (&sum * 3.0) / sum.exp().sum(&[], false));
        let (before, schedule) = planned(&one);
        assert_eq!((before, schedule.left(&deferred)), (0, Some(Left::ToEnd)));
        // The other one reads it in two kernels.
        let (before, other) = planned(&two);
        assert_eq!((before, other.left(&deferred)), (1, None));
        assert_eq!(schedule.left(&deferred), Some(Left::ToEnd));
        assert_eq!(
            (one.eval().unwrap().item::<f32>().unwrap(), sum.eval().unwrap().item::<f32>().unwrap()),
            (12.0, 6.0)
        );
    }

    #[test]
    fn what_others_hold_gets_a_result() {
        let engine = Engine::builder().backend("cpu").build().unwrap();
        let square = engine.zeros::<f32>(&[4, 4]).unwrap();
        let product = square.matmul(&square);
        let deferred = Arc::downgrade(&read(&product));
        let left = |schedule: &Schedule| schedule.left(&deferred.upgrade().unwrap());
        let (before, schedule) = planned(&(&product + 1.0));
        assert_eq!((before, left(&schedule)), (1, None));
        let alone = product + 1.0;
        let (before, schedule) = planned(&alone);
        assert_eq!((before, left(&schedule)), (0, Some(Left::ToEnd)));
    }
}
