//! Scopes of control flow, and the masks of divergent ones.
//!
//! A scope owns a mask when invocations may be inactive in it that are active around it. Lanes leave by being removed
//! from all masks between here and the construct they leave; where a mask runs empty, a jump skips to the end of the
//! scope that owns it. Where no mask lies in between, leaving is a plain jump.

use naga::Statement;

use super::super::bytecode::{FULL, Op};
use super::builder::{Class, Label, Operand, Register};
use super::{Fact, Lowering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    Function,
    Loop,
    Switch,
    Branch,
}

pub(crate) struct Scope {
    pub kind: ScopeKind,
    pub id: u32,
    pub mask: Option<Register>,
    /// The target when the mask becomes empty.
    pub end: Label,
    /// The target of `break` or `return`.
    pub exit: Label,
    /// The target of `continue`.
    pub next: Label,
    /// Lanes may leave at different times.
    pub divergent: bool,
    /// Lanes have been removed since the mask was last looked at.
    pub reduced: bool,
}

impl Lowering<'_, '_> {
    /// A number for the next construct, and whether it is known to be divergent.
    pub(super) fn construct(&mut self) -> (u32, bool) {
        let id = self.next_scope;
        self.next_scope += 1;
        (id, self.facts.hold(&Fact::Divergent(id)))
    }

    pub(super) fn push_branch(&mut self, mask: Option<Register>, end: Label) {
        self.scopes.push(Scope {
            kind: ScopeKind::Branch,
            id: u32::MAX,
            mask,
            end,
            exit: end,
            next: end,
            divergent: true,
            reduced: false,
        });
    }

    /// The mask of the active lanes.
    pub(super) fn mask(&self) -> u32 {
        self.scopes.iter().rev().find_map(|scope| scope.mask).unwrap_or(FULL)
    }

    pub(super) fn new_mask(&mut self) -> Register {
        self.builder.variable(Class::Mask, false)
    }

    /// Returns whether lanes may be inactive here that were active when scope `depth` began.
    pub(super) fn masked_since(&self, depth: usize) -> bool {
        self.scopes.iter().skip(depth).any(|scope| scope.mask.is_some())
    }

    /// The mask for storing into something that lanes observe which were active at `depth`.
    pub(super) fn store_mask(&self, depth: usize) -> u32 {
        if self.masked_since(depth) { self.mask() } else { FULL }
    }

    /// Ends the active lanes' stay in all scopes from `from` on.
    fn remove_lanes(&mut self, from: usize) {
        let current = self.mask();
        if current == FULL {
            return;
        }
        for index in (from..self.scopes.len()).rev() {
            if let Some(mask) = self.scopes[index].mask {
                self.scopes[index].reduced = true;
                if mask != current {
                    self.builder.mask(Op::MaskRemove, mask, current, None);
                }
            }
        }
        self.builder.mask(Op::MaskNone, current, FULL, None);
    }

    /// After a construct from which lanes may have left further out: skips ahead if none is left.
    pub(super) fn skip_if_empty(&mut self) {
        let Some(scope) = self.scopes.iter_mut().rev().find(|scope| scope.mask.is_some()) else { return };
        if let (true, Some(mask)) = (scope.reduced, scope.mask) {
            scope.reduced = false;
            let end = scope.end;
            self.builder.jump(Op::JumpNone, None, mask, end);
        }
    }

    fn innermost(&self, matches: impl Fn(ScopeKind) -> bool) -> Option<usize> {
        self.scopes.iter().rposition(|scope| matches(scope.kind))
    }

    pub(super) fn lower_break(&mut self) {
        if let Some(index) = self.innermost(|kind| matches!(kind, ScopeKind::Loop | ScopeKind::Switch)) {
            self.leave(index);
        }
    }

    pub(super) fn lower_return(&mut self) {
        if let Some(index) = self.innermost(|kind| kind == ScopeKind::Function) {
            self.leave(index);
        }
    }

    fn leave(&mut self, index: usize) {
        let scope = &self.scopes[index];
        if !self.masked_since(index + 1) {
            // All lanes that are still in the construct leave together.
            let exit = scope.exit;
            self.builder.jump(Op::Jump, None, FULL, exit);
            return;
        }
        self.diverge(index);
        self.remove_lanes(index);
    }

    /// `if condition { break; }` and the like where one mask says who is left: takes lanes from it without a mask of the branch's own. False if it is
    /// not so.
    pub(super) fn leave_where(&mut self, statement: &Statement, op: Op, condition: Operand) -> bool {
        let (kinds, behind): (&[ScopeKind], usize) = match statement {
            Statement::Break => (&[ScopeKind::Loop, ScopeKind::Switch], 0),
            Statement::Continue => (&[ScopeKind::Loop], 1),
            Statement::Return { value: None } => (&[ScopeKind::Function], 0),
            _ => return false,
        };
        let Some(index) = self.innermost(|kind| kinds.contains(&kind)) else { return false };
        self.diverge(index);
        let mut masked = self.scopes.iter_mut().skip(index + behind).filter(|scope| scope.mask.is_some());
        let (Some(scope), None, false) = (masked.next(), masked.next(), self.is_ahead) else { return false };
        scope.reduced = true;
        if let Some(mask) = scope.mask {
            self.builder.mask(op, mask, FULL, Some(condition));
        }
        self.skip_if_empty();
        true
    }

    /// Lanes leave the construct at different times.
    fn diverge(&mut self, index: usize) {
        let scope = &self.scopes[index];
        if scope.divergent {
            return;
        }
        self.found.insert(Fact::Divergent(scope.id));
        // This attempt is void; what follows in the construct is masked, as it will be in the next one.
        let mask = self.new_mask();
        let scope = &mut self.scopes[index];
        scope.divergent = true;
        scope.mask = Some(mask);
    }

    pub(super) fn lower_continue(&mut self) {
        let Some(index) = self.innermost(|kind| kind == ScopeKind::Loop) else { return };
        let scope = &self.scopes[index];
        if !self.masked_since(index + 1) {
            let next = scope.next;
            self.builder.jump(Op::Jump, None, FULL, next);
            return;
        }
        self.diverge(index);
        self.remove_lanes(index + 1);
    }
}
