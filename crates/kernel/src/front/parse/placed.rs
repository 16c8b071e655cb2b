//! Checks that naga lacks and that need the grammar and scopes alone: operators without brackets, attributes in wrong places, and `continue` past
//! a declaration.

use std::ops::Range;

use super::super::tree::{DeclId, ExprId, ExprKind, Operator, Place};
use super::{Attributes, Parser};

/// Attributes of WGSL by what they may belong to; others are naga's to judge.
const PLACES: [(&str, &[&str]); 15] = [
    ("align", &["member"]),
    ("binding", &["var"]),
    ("blend_src", IN_AND_OUT),
    ("builtin", IN_AND_OUT),
    ("compute", &["fn"]),
    ("fragment", &["fn"]),
    ("group", &["var"]),
    ("id", &["override"]),
    ("interpolate", IN_AND_OUT),
    ("invariant", IN_AND_OUT),
    ("location", IN_AND_OUT),
    ("must_use", &["fn"]),
    ("size", &["member"]),
    ("vertex", &["fn"]),
    ("workgroup_size", &["fn"]),
];
const IN_AND_OUT: &[&str] = &["member", "parameter", "result"];

impl Attributes<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|(_, known)| *known == name)
    }
}

impl Parser<'_> {
    /// Notes the first attribute that does not belong to `what`, or is there twice.
    pub(super) fn placed(&mut self, attributes: &Attributes<'_>, what: &str) {
        for (at, &(place, name)) in attributes.names.iter().enumerate() {
            let known = PLACES.iter().find(|(known, _)| *known == name);
            if let Some((_, places)) = known
                && !places.contains(&what)
            {
                let list = places.join(", ");
                self.misplaced(place, || format!("`@{name}` does not belong here (it goes with: {list})"));
            }
            // Where a filter may be is asked elsewhere.
            if name != "diagnostic" && attributes.names.iter().take(at).any(|(_, earlier)| *earlier == name) {
                self.misplaced(place, || format!("a second `@{name}` here"));
            }
        }
        let (group, binding) = (attributes.has("group"), attributes.has("binding"));
        if group != binding
            && let Some(&(place, _)) = attributes.names.first()
        {
            self.misplaced(place, || "`@group` and `@binding` go together".to_owned());
        }
    }

    /// Attributes of a function that need others, or a result.
    pub(super) fn fitting(&mut self, name: Place, attributes: &Attributes<'_>, has_result: bool) {
        let stages = ["compute", "vertex", "fragment"].into_iter().filter(|stage| attributes.has(stage)).count();
        if stages > 1 {
            self.misplaced(name, || "an entry point is of one stage".to_owned());
        }
        if attributes.has("workgroup_size") && !attributes.has("compute") {
            self.misplaced(name, || "`@workgroup_size` is for functions with `@compute`".to_owned());
        }
        if attributes.has("must_use") && !has_result {
            self.misplaced(name, || "`@must_use` is for functions that return a value".to_owned());
        }
    }

    /// Notes an operator whose operand is another operator's result and needs brackets (the grammar of expressions).
    pub(super) fn without_brackets(&mut self, operator: Operator, left: ExprId, right: ExprId) {
        for (operand, is_left) in [(left, true), (right, false)] {
            let expr = self.tree.expr(operand);
            let ExprKind::Binary(inner, ..) = expr.kind else { continue };
            // A chain of one operator is read from the left.
            let same = is_left && inner == operator;
            let fits = match operator.class() {
                Class::Arithmetic => true,
                Class::Shift => false,
                Class::Relation => matches!(inner.class(), Class::Arithmetic | Class::Shift),
                Class::Bits => same,
                Class::Logic => same || matches!(inner.class(), Class::Arithmetic | Class::Shift | Class::Relation),
            };
            if !fits {
                let (outer, inner) = (operator.sign(), inner.sign());
                self.misplaced(expr.place, || format!("`{inner}` within `{outer}` needs brackets in WGSL"));
            }
        }
    }

    /// Notes a `continue` of the innermost loop that jumps past one of the declarations in its body that the continuing block uses. The block's
    /// expressions begin with `first`.
    pub(super) fn not_past(&mut self, declared: Range<DeclId>, first: usize) {
        let Some(Some(place)) = self.loops.last().copied() else { return };
        let found = self.tree.exprs.get(first..).unwrap_or_default().iter().find_map(|expr| match expr.kind {
            ExprKind::Name { name, local: Some(decl), .. }
                if declared.contains(&decl) && self.tree.decl(decl).name.start > place.start =>
            {
                Some(name.text(self.tree.text))
            }
            _ => None,
        });
        if let Some(name) = found {
            self.misplaced(place, || {
                format!("this `continue` jumps past the declaration of `{name}`, which the continuing block uses")
            });
        }
    }
}

/// Operators that the grammar treats alike.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Logic,
    Bits,
    Relation,
    Shift,
    Arithmetic,
}

impl Operator {
    fn class(self) -> Class {
        match self {
            Self::OrElse | Self::AndThen => Class::Logic,
            Self::Or | Self::Xor | Self::And => Class::Bits,
            Self::Equal | Self::Differ | Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual => {
                Class::Relation
            }
            Self::ShiftLeft | Self::ShiftRight => Class::Shift,
            Self::Add | Self::Subtract | Self::Multiply | Self::Divide | Self::Remainder => Class::Arithmetic,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::OrElse => "||",
            Self::AndThen => "&&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::And => "&",
            Self::Equal => "==",
            Self::Differ => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}
