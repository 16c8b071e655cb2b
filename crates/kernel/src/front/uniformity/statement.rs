//! The walk over a function's statements, with the values of its variables (the specification's "Function-scope Variable Value Analysis"). `mod` runs it
//! for each function, callees first. Every value of a variable is a node of its own; at joins of control (ends of branches, loops, jumps) the values are
//! joined. What a loop writes has a node from its beginning, because the last round may have changed it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::tree::{DeclId, DeclKind, ExprId, List, Place, StmtId, StmtKind, Tree};
use super::builtin::{self, Space};
use super::expression::{Root, View};
use super::graph::{Graph, Mark, Node, RESULT, START, Source, VARIES};
use super::{Demand, Scope, Summary};
use crate::behavior::Behavior;

/// The nodes of a parameter.
pub(super) struct ParameterNodes {
    pub value: Node,
    /// The contents behind it when the function begins, if that is a caller's variable.
    pub contents: Option<Node>,
    /// The same when the function ends.
    pub left: Option<Node>,
}

/// A place to which `break` or `continue` jumps: a node for each variable that has several values there.
struct Target {
    nodes: FxHashMap<DeclId, Node>,
    /// Variables whose value is no other jump's.
    fresh: Vec<DeclId>,
}

pub(super) struct Walk<'a, 't> {
    pub(super) tree: &'a Tree<'t>,
    pub(super) scope: Scope,
    function: u32,
    pub(super) summaries: &'a [Option<Summary>],
    pub(super) graph: Graph,
    pub(super) demands: Vec<Demand>,
    pub(super) parameters: Vec<ParameterNodes>,
    /// Values of variables, parameters and names given by `let`.
    pub(super) values: FxHashMap<DeclId, Node>,
    /// Pointers that have a name.
    pub(super) pointers: FxHashMap<DeclId, View>,
    /// Variables that got another value, with the one before.
    changes: Vec<(DeclId, Node)>,
    breaks: Vec<Target>,
    continues: Vec<Target>,
}

impl<'a, 't> Walk<'a, 't> {
    pub(super) fn new(tree: &'a Tree<'t>, scope: Scope, function: u32, summaries: &'a [Option<Summary>]) -> Self {
        Self {
            tree,
            scope,
            function,
            summaries,
            graph: Graph::new(tree.text.len()),
            demands: Vec::new(),
            parameters: Vec::new(),
            values: FxHashMap::default(),
            pointers: FxHashMap::default(),
            changes: Vec::new(),
            breaks: Vec::new(),
            continues: Vec::new(),
        }
    }

    pub(super) fn run(&mut self) {
        let function = self.tree.functions[self.function as usize];
        for id in function.parameters.first..function.parameters.first + function.parameters.count {
            self.parameter(id, function.is_entry);
        }
        self.statement(START, function.body);
        if self.tree.stmt(function.body).behavior.meets(Behavior::NEXT) {
            self.leave_function();
        }
    }

    fn parameter(&mut self, id: DeclId, is_entry: bool) {
        let decl = *self.tree.decl(id);
        let value = self.graph.node(Mark::Plain, decl.name);
        let (mut contents, mut left) = (None, None);
        match builtin::pointed_space(self.tree, &decl) {
            None if !is_entry => _ = self.values.insert(id, value),
            None if builtin::is_uniform_input(self.tree, &decl, self.scope) => _ = self.values.insert(id, START),
            None => {
                let input = self.varying(Source::Input(id), decl.name);
                self.values.insert(id, input);
            }
            Some(Space::Function) => {
                let inside = self.graph.node(Mark::Plain, decl.name);
                contents = Some(inside);
                left = Some(self.graph.node(Mark::Plain, decl.name));
                self.values.insert(id, inside);
                self.pointers.insert(id, View { root: Root::Local(id), address: value, is_full: true });
            }
            Some(space) => {
                let root = if space == Space::Constant { Root::Constant } else { Root::Shared(id) };
                self.pointers.insert(id, View { root, address: value, is_full: true });
            }
        }
        self.parameters.push(ParameterNodes { value, contents, left });
    }

    /// A node for something that varies by itself.
    pub(super) fn varying(&mut self, source: Source, place: Place) -> Node {
        let node = self.graph.node(Mark::Source(source), place);
        self.graph.edge(node, VARIES);
        node
    }

    /// A node that is uniform where all of some others are.
    pub(super) fn joined(&mut self, mark: Mark, place: Place, parts: &[Node]) -> Node {
        let node = self.graph.node(mark, place);
        for &part in parts {
            self.graph.edge(node, part);
        }
        node
    }

    /// Control flow that depends on a value.
    pub(super) fn condition(&mut self, control: Node, value: Node, id: ExprId) -> Node {
        if value == control { control } else { self.joined(Mark::Condition, self.tree.expr(id).place, &[value]) }
    }

    /// Gives a variable another value.
    pub(super) fn set(&mut self, id: DeclId, value: Node) {
        if let Some(before) = self.values.insert(id, value) {
            self.changes.push((id, before));
        }
        self.freshen(id);
    }

    /// Marks a variable as changed: the next jump passes its value on again.
    fn freshen(&mut self, id: DeclId) {
        for target in self.breaks.last_mut().into_iter().chain(self.continues.last_mut()) {
            if target.nodes.contains_key(&id) {
                target.fresh.push(id);
            }
        }
    }

    /// Undoes the changes after the first `mark`. Returns the last values of those variables that were declared before `start`.
    fn take_back(&mut self, mark: usize, start: u32) -> Vec<(DeclId, Node)> {
        let mut seen = FxHashSet::default();
        let mut last = Vec::new();
        while self.changes.len() > mark {
            let Some((id, before)) = self.changes.pop() else { break };
            let Some(after) = self.values.insert(id, before) else { continue };
            if seen.insert(id) && self.tree.decl(id).keyword.start < start {
                last.push((id, after));
            }
            self.freshen(id);
        }
        last
    }

    fn target(&mut self, variables: &[DeclId], place: Place) -> Target {
        let nodes = variables.iter().map(|&id| (id, self.graph.node(Mark::Plain, place))).collect();
        Target { nodes, fresh: variables.to_vec() }
    }

    /// Adds the current state of the variables to a target of a jump.
    fn jump(&mut self, to: impl Fn(&mut Self) -> Option<&mut Target>) {
        let Some(fresh) = to(self).map(|target| std::mem::take(&mut target.fresh)) else { return };
        for id in fresh {
            let value = self.values.get(&id).copied();
            let node = to(self).and_then(|target| target.nodes.get(&id).copied());
            if let (Some(node), Some(value)) = (node, value) {
                self.graph.edge(node, value);
            }
        }
    }

    fn jump_to_end(&mut self) {
        self.jump(|walk| walk.breaks.last_mut());
    }

    fn jump_to_continuing(&mut self) {
        self.jump(|walk| walk.continues.last_mut());
    }

    /// The variables that exist already and may be written.
    fn written(&self, writes: List) -> Vec<DeclId> {
        let mut seen = FxHashSet::default();
        let mut variables = Vec::new();
        let range = writes.first as usize..(writes.first + writes.count) as usize;
        for &id in &self.tree.writes[range] {
            let id = match self.pointers.get(&id).map(|pointer| pointer.root) {
                Some(Root::Local(root)) => root,
                Some(_) => continue,
                None => id,
            };
            if self.values.contains_key(&id) && seen.insert(id) {
                variables.push(id);
            }
        }
        variables
    }

    /// Walks over a statement; gives control flow behind it.
    fn statement(&mut self, control: Node, id: StmtId) -> Node {
        let stmt = self.tree.stmt(id);
        match stmt.kind {
            StmtKind::Empty => {}
            StmtKind::Block(list) => {
                let mut control = control;
                for &id in self.tree.list(list) {
                    control = self.statement(control, id);
                    if !self.tree.stmt(id).behavior.meets(Behavior::NEXT) {
                        break;
                    }
                }
                return control;
            }
            StmtKind::If { condition, accept, reject } => return self.branch(control, id, condition, accept, reject),
            StmtKind::Switch { selector, cases, writes } => {
                let value = self.value(control, selector);
                let inside = self.condition(control, value, selector);
                let variables = self.written(writes);
                let target = self.target(&variables, stmt.place);
                self.breaks.push(target);
                let mut ends = Vec::new();
                for &case in self.tree.list(cases) {
                    let mark = self.changes.len();
                    ends.push(self.statement(inside, case));
                    if self.tree.stmt(case).behavior.meets(Behavior::NEXT) {
                        self.jump_to_end();
                    }
                    self.take_back(mark, stmt.place.start);
                }
                let target = self.breaks.pop();
                self.arrive(target, stmt.behavior);
                if stmt.behavior != Behavior::NEXT {
                    return self.joined(Mark::Plain, stmt.place, &ends);
                }
            }
            StmtKind::Loop { .. } => return self.repeated(control, id),
            StmtKind::Break => self.jump_to_end(),
            StmtKind::BreakIf(condition) => {
                let value = self.value(control, condition);
                self.jump_to_end();
                return self.condition(control, value, condition);
            }
            StmtKind::Continue => self.jump_to_continuing(),
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    let value = self.value(control, value);
                    self.graph.edge(RESULT, value);
                }
                self.leave_function();
            }
            StmtKind::Declare(decl) => self.declaration(control, decl),
            StmtKind::Assign { target, value, reads } => self.assignment(control, target, value, reads),
            StmtKind::Evaluate(value) => _ = self.value(control, value),
        }
        control
    }

    fn branch(&mut self, control: Node, id: StmtId, condition: ExprId, accept: StmtId, reject: Option<StmtId>) -> Node {
        let stmt = self.tree.stmt(id);
        let value = self.value(control, condition);
        let inside = self.condition(control, value, condition);
        let mut ends = vec![inside];
        // A variable's values behind the branches, and how many branches set it.
        let mut values: FxHashMap<DeclId, Vec<Node>> = FxHashMap::default();
        let mut open = usize::from(reject.is_none());
        for part in [Some(accept), reject].into_iter().flatten() {
            let mark = self.changes.len();
            ends.push(self.statement(inside, part));
            let changed = self.take_back(mark, stmt.place.start);
            if self.tree.stmt(part).behavior.meets(Behavior::NEXT) {
                open += 1;
                for (id, value) in changed {
                    values.entry(id).or_default().push(value);
                }
            }
        }
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_unstable_by_key(|(id, _)| *id);
        for (id, mut parts) in values {
            if parts.len() < open {
                parts.extend(self.values.get(&id));
            }
            let value = self.joined(Mark::Plain, stmt.place, &parts);
            self.set(id, value);
        }
        if stmt.behavior == Behavior::NEXT { control } else { self.joined(Mark::Plain, stmt.place, &ends) }
    }

    /// Behind a loop or switch the variables are what they were at its jumps.
    fn arrive(&mut self, target: Option<Target>, behavior: Behavior) {
        if let Some(target) = target.filter(|_| behavior.meets(Behavior::NEXT)) {
            let mut values: Vec<_> = target.nodes.into_iter().collect();
            values.sort_unstable();
            for (id, node) in values {
                self.set(id, node);
            }
        }
    }

    fn repeated(&mut self, control: Node, id: StmtId) -> Node {
        let stmt = self.tree.stmt(id);
        let StmtKind::Loop { first, condition, body, continuing, writes } = stmt.kind else { return control };
        let control = first.map_or(control, |first| self.statement(control, first));
        let inner = self.tree.stmt(body).behavior;
        let asked = if condition.is_some() { Behavior::NEXT.union(Behavior::BREAK) } else { Behavior::NEXT };
        let whole = asked.then(inner);
        let repeats = whole.meets(Behavior::NEXT.union(Behavior::CONTINUE));
        let variables = self.written(writes);
        let mark = self.changes.len();
        let begin = if repeats { self.joined(Mark::Plain, stmt.place, &[control]) } else { control };
        let mut entries = Vec::new();
        if repeats {
            for &id in &variables {
                let before = self.values.get(&id).copied().unwrap_or(control);
                let entry = self.joined(Mark::Plain, stmt.place, &[before]);
                self.set(id, entry);
                entries.push((id, entry));
            }
        }
        let (ends, rounds) = (self.target(&variables, stmt.place), self.target(&variables, stmt.place));
        self.breaks.push(ends);
        self.continues.push(rounds);
        let mut inside = begin;
        if let Some(condition) = condition {
            let value = self.value(begin, condition);
            inside = self.condition(begin, value, condition);
            self.jump_to_end();
        }
        inside = self.statement(inside, body);
        if inner.meets(Behavior::NEXT) {
            self.jump_to_continuing();
        }
        let rounds = self.continues.pop();
        if let Some(rounds) = rounds.filter(|_| repeats) {
            // A `continue` of an outer loop does not reach this continuing block.
            for &id in &variables {
                if let Some(&node) = rounds.nodes.get(&id) {
                    self.set(id, node);
                }
            }
            let end = continuing.map_or(inside, |continuing| self.statement(inside, continuing));
            self.graph.edge(begin, end);
            for (id, entry) in entries {
                if let Some(&value) = self.values.get(&id) {
                    self.graph.edge(entry, value);
                }
            }
        }
        let ends = self.breaks.pop();
        self.take_back(mark, stmt.place.start);
        self.arrive(ends, stmt.behavior);
        match (repeats, whole.meets(Behavior::RETURN)) {
            (_, false) => control,
            (false, true) => inside,
            (true, true) => begin,
        }
    }

    /// Records the contents that the pointer parameters leave behind.
    fn leave_function(&mut self) {
        let first = self.tree.functions[self.function as usize].parameters.first;
        for (at, nodes) in (first..).zip(&self.parameters) {
            if let (Some(left), Some(&value)) = (nodes.left, self.values.get(&at)) {
                self.graph.edge(left, value);
            }
        }
    }

    fn declaration(&mut self, control: Node, id: DeclId) {
        let decl = *self.tree.decl(id);
        if decl.kind == DeclKind::Const {
            return;
        }
        if let Some(init) = decl.init.filter(|&init| decl.kind == DeclKind::Let && self.is_pointer(init)) {
            if let Some(view) = self.view(control, init) {
                self.pointers.insert(id, view);
            }
            return;
        }
        let mut value = decl.init.map_or(control, |init| self.value(control, init));
        if value != control {
            value = self.joined(Mark::Set(id), decl.name, &[value]);
        }
        self.values.insert(id, value);
    }

    fn assignment(&mut self, control: Node, target: ExprId, value: Option<ExprId>, reads: bool) {
        let place = self.tree.expr(target).place;
        let Some(view) = self.view(control, target) else {
            for id in [Some(target), value].into_iter().flatten() {
                self.value(control, id);
            }
            return;
        };
        let old = if reads { Some(self.load(control, target, view)) } else { None };
        let new = value.map_or(control, |value| self.value(control, value));
        let Root::Local(id) = view.root else { return };
        let mut parts = vec![control, new, view.address];
        parts.extend(old);
        if !view.is_full {
            parts.extend(self.values.get(&id));
        }
        let value = self.joined(Mark::Set(id), place, &parts);
        self.set(id, value);
    }
}
