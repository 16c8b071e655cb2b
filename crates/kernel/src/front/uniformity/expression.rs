//! Expressions and calls: which node says whether a value is uniform. `statement` calls `value` for each expression; a result is a node. First operands are
//! followed by a loop, because a sum may have thousands of terms. A load from memory that others may write varies, whatever its index; a load of a variable
//! has the node of its last value.

use super::super::tree::{DeclId, DeclKind, ExprId, ExprKind, Filters, List, Operator, Place, Severity};
use super::builtin::{self, Builtin, Space};
use super::graph::{Mark, Node, Source};
use super::statement::Walk;
use super::{Demand, Rule, Scope, function_called};

/// The variable or parameter behind a reference or a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// A variable of the function, or what a pointer parameter points to in a caller.
    Local(DeclId),
    /// Memory that other invocations may write, or of which each has its own.
    Shared(DeclId),
    /// Memory that nobody writes.
    Constant,
}

/// A memory view.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub root: Root,
    /// Varies if the references of the invocations lead to different places.
    pub address: Node,
    /// The whole variable is meant.
    pub is_full: bool,
}

/// An argument of a call.
#[derive(Clone, Copy)]
struct Argument {
    value: Node,
    /// The variable of the function that it points to, its value before the call, and whether it is all of it.
    pointee: Option<(DeclId, Node, bool)>,
}

impl Walk<'_, '_> {
    /// A value that depends on both: uniform only where both are, and never more uniform than the control flow it is computed under.
    fn join(&mut self, control: Node, place: Place, left: Node, right: Node) -> Node {
        if left == right || right == control {
            left
        } else if left == control {
            right
        } else {
            self.joined(Mark::Plain, place, &[left, right])
        }
    }

    /// Returns whether an expression is a pointer.
    pub(super) fn is_pointer(&self, mut id: ExprId) -> bool {
        loop {
            match self.tree.expr(id).kind {
                ExprKind::Paren(inner) => id = inner,
                ExprKind::Unary(b'&', _) => return true,
                ExprKind::Name { name, local, .. } => {
                    let decl = self.tree.named(name, local);
                    return decl.is_some_and(|decl| self.pointers.contains_key(&decl));
                }
                _ => return false,
            }
        }
    }

    /// Returns the target of a reference or a pointer; `None` where an expression is neither.
    pub(super) fn view(&mut self, control: Node, id: ExprId) -> Option<View> {
        let decl = self.tree.root(id)?;
        let mut view = match (self.pointers.get(&decl).copied(), self.tree.decl(decl)) {
            (Some(mut pointer), found) => {
                if pointer.address != control {
                    pointer.address = self.joined(Mark::Plain, found.name, &[control, pointer.address]);
                }
                pointer
            }
            (None, found) if found.kind == DeclKind::Var => {
                let root = if self.values.contains_key(&decl) {
                    Root::Local(decl)
                } else if builtin::variable_space(self.tree, found) == Space::Shared {
                    Root::Shared(decl)
                } else {
                    Root::Constant
                };
                View { root, address: control, is_full: true }
            }
            _ => return None,
        };
        let mut steps = Vec::new();
        let mut at = id;
        loop {
            match self.tree.expr(at).kind {
                ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => at = inner,
                ExprKind::Member(inner, _) => {
                    view.is_full = false;
                    at = inner;
                }
                ExprKind::Index(inner, index) => {
                    view.is_full = false;
                    steps.push(index);
                    at = inner;
                }
                _ => break,
            }
        }
        for &index in steps.iter().rev() {
            let value = self.value(control, index);
            view.address = self.join(control, self.tree.expr(index).place, view.address, value);
        }
        Some(view)
    }

    /// The value in memory.
    pub(super) fn load(&mut self, control: Node, id: ExprId, view: View) -> Node {
        let place = self.tree.expr(id).place;
        match view.root {
            Root::Constant => view.address,
            Root::Shared(decl) => self.varying(Source::Memory(decl), place),
            Root::Local(decl) => {
                let value = self.values.get(&decl).copied().unwrap_or(control);
                if value == control && view.address == control {
                    return control;
                }
                self.joined(Mark::Read(decl), place, &[control, value, view.address])
            }
        }
    }

    /// The value of an expression. First operands are followed without recursion: sums may have thousands of terms.
    pub(super) fn value(&mut self, control: Node, id: ExprId) -> Node {
        let mut above = Vec::new();
        let mut at = id;
        let mut value = loop {
            let expr = self.tree.expr(at);
            if let Some(view) = self.view(control, at) {
                break if self.is_pointer(at) { view.address } else { self.load(control, at, view) };
            }
            match expr.kind {
                ExprKind::Literal => break control,
                ExprKind::Name { name, local, .. } => {
                    let decl = self.tree.named(name, local);
                    break match decl.and_then(|decl| Some((decl, *self.values.get(&decl)?))) {
                        Some((decl, value)) if value != control => {
                            self.joined(Mark::Read(decl), expr.place, &[control, value])
                        }
                        _ => control,
                    };
                }
                ExprKind::Call { callee, arguments, filters } => {
                    break self.call(control, at, callee, arguments, filters);
                }
                ExprKind::Unary(_, inner)
                | ExprKind::Paren(inner)
                | ExprKind::Member(inner, _)
                | ExprKind::Binary(_, inner, _)
                | ExprKind::Index(inner, _) => {
                    above.push(at);
                    at = inner;
                }
            }
        };
        for &up in above.iter().rev() {
            let expr = self.tree.expr(up);
            match expr.kind {
                ExprKind::Binary(Operator::AndThen | Operator::OrElse, left, right) => {
                    let inside = self.condition(control, value, left);
                    value = self.value(inside, right);
                }
                ExprKind::Binary(_, _, right) | ExprKind::Index(_, right) => {
                    let other = self.value(control, right);
                    value = self.join(control, expr.place, value, other);
                }
                _ => {}
            }
        }
        value
    }

    fn call(&mut self, control: Node, id: ExprId, callee: ExprId, arguments: List, filters: Filters) -> Node {
        let place = self.tree.expr(id).place;
        let tree = self.tree;
        let mut values = Vec::with_capacity(arguments.count as usize);
        for &argument in tree.list(arguments) {
            let view = if self.is_pointer(argument) { self.view(control, argument) } else { None };
            values.push(match view {
                Some(View { root, address, is_full }) => {
                    let pointee = match root {
                        Root::Local(decl) => self.values.get(&decl).map(|&value| (decl, value, is_full)),
                        _ => None,
                    };
                    Argument { value: address, pointee }
                }
                None => Argument { value: self.value(control, argument), pointee: None },
            });
        }
        if let Some(function) = function_called(tree, callee) {
            return self.function_call(control, place, function, &values);
        }
        let mut result = control;
        for argument in &values {
            result = self.join(control, place, result, argument.value);
        }
        let ExprKind::Name { name, local, .. } = tree.expr(callee).kind else { return result };
        if tree.named(name, local).is_some() {
            return result;
        }
        let mut ask = |node: Node, rule: Rule, severity: Severity, is_value: bool| {
            if severity != Severity::Off {
                self.demands.push(Demand { node, severity, rule, builtin: name, place, is_value });
            }
        };
        let in_workgroup = self.scope == Scope::Workgroup;
        match Builtin::of(name.text(tree.text)) {
            Builtin::Plain => result,
            Builtin::Barrier => {
                if in_workgroup {
                    ask(control, Rule::Barrier, Severity::Error, false);
                }
                control
            }
            Builtin::SubgroupBarrier => {
                if !in_workgroup {
                    ask(control, Rule::Subgroup, Severity::Error, false);
                }
                control
            }
            Builtin::UniformLoad => {
                if in_workgroup {
                    ask(control, Rule::Barrier, Severity::Error, false);
                    ask(result, Rule::Barrier, Severity::Error, true);
                }
                result
            }
            Builtin::Derivative => {
                if in_workgroup {
                    ask(control, Rule::Derivative, filters.derivative, false);
                }
                self.varying(Source::Builtin, place)
            }
            Builtin::Subgroup { is_shared, parameter } => {
                if !in_workgroup {
                    ask(control, Rule::Subgroup, filters.subgroup, false);
                    if let Some(argument) = parameter.and_then(|at| values.get(at)) {
                        ask(argument.value, Rule::Subgroup, filters.subgroup, true);
                    }
                }
                if is_shared && !in_workgroup { control } else { self.varying(Source::Builtin, place) }
            }
            Builtin::Atomic => self.varying(Source::Builtin, place),
            Builtin::TextureLoad => match tree.list(arguments).first() {
                Some(&texture) if builtin::is_written_texture(tree, texture) => self.varying(Source::Builtin, place),
                _ => result,
            },
        }
    }

    fn function_call(&mut self, control: Node, place: Place, function: u32, arguments: &[Argument]) -> Node {
        let summaries = self.summaries;
        // One that calls itself has none; naga refuses it.
        let Some(Some(summary)) = summaries.get(function as usize) else { return control };
        let result = self.joined(Mark::Plain, place, &[control]);
        let mut ask = |demand: Option<Demand>, node: Node, is_value: bool| {
            self.demands.extend(demand.map(|demand| Demand { node, place, is_value, ..demand }));
        };
        ask(summary.call, control, false);
        for (parameter, argument) in summary.parameters.iter().zip(arguments) {
            ask(parameter.value, argument.value, true);
            if let Some((_, before, _)) = argument.pointee {
                ask(parameter.contents, before, true);
            }
        }
        if summary.varies.is_some() {
            let source = self.varying(Source::Result(function), place);
            self.graph.edge(result, source);
        }
        for (parameter, argument) in summary.parameters.iter().zip(arguments) {
            if parameter.is_returned {
                self.graph.edge(result, argument.value);
            }
            if let Some((_, before, _)) = argument.pointee.filter(|_| parameter.contents_returned) {
                self.graph.edge(result, before);
            }
        }
        for (at, (parameter, argument)) in (0_u32..).zip(summary.parameters.iter().zip(arguments)) {
            let (Some(left), Some((decl, before, is_full))) = (&parameter.pointee, argument.pointee) else { continue };
            let is_kept = left.varies.is_none() && !left.control && left.values.is_empty() && left.contents == [at];
            if is_kept {
                continue;
            }
            let after = self.joined(Mark::Set(decl), place, &[argument.value]);
            if left.control {
                self.graph.edge(after, control);
            }
            if left.varies.is_some() {
                let source = self.varying(Source::Pointee(function, at), place);
                self.graph.edge(after, source);
            }
            for argument in left.values.iter().filter_map(|&other| arguments.get(other as usize)) {
                self.graph.edge(after, argument.value);
            }
            let contents = left.contents.iter().filter_map(|&other| arguments.get(other as usize)?.pointee);
            for (_, value, _) in contents {
                self.graph.edge(after, value);
            }
            if !is_full {
                self.graph.edge(after, before);
            }
            self.set(decl, after);
        }
        result
    }
}
