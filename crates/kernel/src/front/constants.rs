//! Bounds of constant expressions, before naga evaluates them: it copies what a name stands for at each use, and panics at some conversions.

use super::eval::Evaluator;
use super::eval::value::Ty;
use super::rewrite::numbered;
use super::tree::{DeclKind, ExprId, ExprKind, Place, Tree};

/// Values that all constant expressions of a text may have together.
const MOST_VALUES: u64 = 1 << 21;

/// The first place where there are too many.
pub(super) fn excess(tree: &Tree<'_>) -> Option<(Place, String)> {
    let mut weights = Weights { tree, known: vec![None; tree.exprs.len()] };
    let mut sum = 0_u64;
    numbered(tree).find_map(|id| {
        let used = match tree.expr(id).kind {
            ExprKind::Name { .. } => weights.of(id),
            ExprKind::Call { .. } => 1,
            _ => 0,
        };
        sum = sum.saturating_add(used);
        let text = || format!("the constants of this text have more than {MOST_VALUES} values together (use a buffer)");
        (sum > MOST_VALUES).then(|| (tree.expr(id).place, text()))
    })
}

struct Weights<'t> {
    tree: &'t Tree<'t>,
    known: Vec<Option<u64>>,
}

impl Weights<'_> {
    /// The number of scalars of a constant expression, roughly.
    fn of(&mut self, id: ExprId) -> u64 {
        if let Some(known) = self.known[id as usize] {
            return known;
        }
        // Set before the operands are walked, so that a cyclic declaration ends here; naga refuses it.
        self.known[id as usize] = Some(1);
        let weight = match self.tree.expr(id).kind {
            ExprKind::Name { name, local, .. } => {
                let decl = self.tree.named(name, local).map(|decl| *self.tree.decl(decl));
                match decl.filter(|decl| decl.kind == DeclKind::Const).and_then(|decl| decl.init) {
                    Some(init) => self.of(init),
                    None => 1,
                }
            }
            ExprKind::Call { arguments, .. } => {
                let tree = self.tree;
                tree.list(arguments).iter().fold(0_u64, |sum, &part| sum.saturating_add(self.of(part))).max(1)
            }
            ExprKind::Paren(inner) => self.of(inner),
            _ => 1,
        };
        self.known[id as usize] = Some(weight);
        weight
    }
}

/// Finds a number that is converted to `f16` and has no value there.
pub(super) fn beyond_half(tree: &Tree<'_>) -> Option<(Place, String)> {
    let has_halves = tree.enables.iter().flat_map(|(_, names)| names).any(|name| name.text(tree.text) == "f16");
    if !has_halves {
        return None;
    }
    let mut evaluator = Evaluator::new(tree);
    numbered(tree).find_map(|id| {
        let ExprKind::Call { callee, arguments, .. } = tree.expr(id).kind else { return None };
        if evaluator.vector_type(callee)?.0 != Ty::F16 {
            return None;
        }
        tree.list(arguments).iter().find_map(|&argument| {
            let number = crate::wgsl::shown(evaluator.beyond_half(argument)?);
            Some((tree.expr(argument).place, format!("{number} is not a value of f16 (at most 65504 in magnitude)")))
        })
    })
}
