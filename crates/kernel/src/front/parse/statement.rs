//! Statements, with how control may leave them. The parser calls it for bodies of functions. Beside the tree it finds the behaviour of each statement (does
//! control reach its end, break, continue, return) and which variables it writes, in the same pass; `uniformity` and the checks for missing returns read
//! both.

use super::super::tree::{ExprId, ExprKind, List, Place, Stmt, StmtId, StmtKind};
use super::Parser;
use crate::behavior::Behavior;

impl Parser<'_> {
    fn new_stmt(&mut self, kind: StmtKind, start: u32, behavior: Behavior) -> Option<StmtId> {
        let id = u32::try_from(self.tree.stmts.len()).ok()?;
        self.tree.stmts.push(Stmt { kind, place: Place { start, end: self.end() }, behavior });
        Some(id)
    }

    fn behavior(&self, id: Option<StmtId>) -> Behavior {
        id.map_or(Behavior::NEXT, |id| self.tree.stmt(id).behavior)
    }

    /// A block with a scope of its own.
    pub(super) fn block(&mut self) -> Option<StmtId> {
        let outer = std::mem::replace(&mut self.scope, u32::try_from(self.tree.decls.len()).ok()?);
        let block = self.open_block();
        self.scope = outer;
        block
    }

    /// A block whose declarations are of the scope around it, until its end.
    pub(super) fn open_block(&mut self) -> Option<StmtId> {
        let attributes = self.attributes()?;
        let mark = self.opened.len();
        let start = self.token().start;
        let items = self.within(&attributes, |parser| {
            parser.expect(b'{')?;
            let mut items = Vec::new();
            while !parser.accept(b'}') {
                items.push(parser.deeper(Self::statement)?);
            }
            Some(items)
        })?;
        self.close(mark);
        self.sequence(&items, start)
    }

    fn sequence(&mut self, items: &[StmtId], start: u32) -> Option<StmtId> {
        let behavior = items.iter().fold(Behavior::NEXT, |all, &id| all.then(self.tree.stmt(id).behavior));
        let list = self.new_list(items)?;
        self.new_stmt(StmtKind::Block(list), start, behavior)
    }

    fn statement(&mut self) -> Option<StmtId> {
        let attributes = self.attributes()?;
        if !self.is_sign(b'{') && !matches!(self.word(), "if" | "switch" | "loop" | "while" | "for") {
            self.without_filters(&attributes);
        }
        self.placed(&attributes, "statement");
        self.within(&attributes, Self::plain_statement)
    }

    fn plain_statement(&mut self) -> Option<StmtId> {
        let start = self.token().start;
        if self.is_sign(b'{') {
            return self.block();
        }
        let (kind, behavior) = match self.word() {
            "if" => return self.branch(),
            "switch" => return self.switch(),
            "loop" => return self.loop_statement(),
            "while" | "for" => return self.while_or_for(),
            "break" => {
                self.at += 1;
                if self.accept_word("if") {
                    (StmtKind::BreakIf(self.expression()?), Behavior::BREAK.union(Behavior::NEXT))
                } else {
                    (StmtKind::Break, Behavior::BREAK)
                }
            }
            "continue" => {
                let place = self.place();
                if let Some(first) = self.loops.last_mut() {
                    first.get_or_insert(place);
                }
                self.at += 1;
                (StmtKind::Continue, Behavior::CONTINUE)
            }
            "return" => {
                self.at += 1;
                let value = if self.is_sign(b';') { None } else { Some(self.expression()?) };
                (StmtKind::Return(value), Behavior::RETURN)
            }
            "discard" => {
                self.at += 1;
                (StmtKind::Empty, Behavior::NEXT)
            }
            "const_assert" => {
                self.at += 1;
                let asserted = self.expression()?;
                self.tree.asserted.push(asserted);
                (StmtKind::Empty, Behavior::NEXT)
            }
            _ if self.is_sign(b';') => (StmtKind::Empty, Behavior::NEXT),
            _ => (self.simple()?, Behavior::NEXT),
        };
        self.expect(b';')?;
        self.new_stmt(kind, start, behavior)
    }

    /// `else if` is an `if` within the `else`.
    fn branch(&mut self) -> Option<StmtId> {
        let mut links = Vec::new();
        let mut reject = loop {
            let start = self.token().start;
            self.at += 1;
            let condition = self.expression()?;
            links.push((start, condition, self.block()?));
            if !self.accept_word("else") {
                break None;
            }
            if self.word() != "if" {
                break Some(self.block()?);
            }
        };
        for (start, condition, accept) in links.into_iter().rev() {
            let behavior = self.behavior(Some(accept)).union(self.behavior(reject));
            reject = Some(self.new_stmt(StmtKind::If { condition, accept, reject }, start, behavior)?);
        }
        reject
    }

    fn switch(&mut self) -> Option<StmtId> {
        let start = self.token().start;
        self.at += 1;
        let selector = self.expression()?;
        let attributes = self.attributes()?;
        self.expect(b'{')?;
        let mut cases = Vec::new();
        let writes = self.tree.writes.len();
        self.within(&attributes, |parser| {
            while !parser.accept(b'}') {
                if parser.accept_word("case") {
                    while !parser.is_sign(b':') && !parser.is_sign(b'{') && !parser.is_sign(b'@') {
                        if !parser.accept_word("default") {
                            parser.expression()?;
                        }
                        if !parser.accept(b',') {
                            break;
                        }
                    }
                } else if !parser.accept_word("default") {
                    return None;
                }
                parser.accept(b':');
                cases.push(parser.block()?);
            }
            Some(())
        })?;
        let all = cases.iter().fold(Behavior::NONE, |all, &id| all.union(self.tree.stmt(id).behavior));
        let (cases, writes) = (self.new_list(&cases)?, self.written(writes)?);
        self.new_stmt(StmtKind::Switch { selector, cases, writes }, start, all.switched())
    }

    /// Returns the writes recorded since there were `mark` of them.
    fn written(&self, mark: usize) -> Option<List> {
        let first = u32::try_from(mark).ok()?;
        Some(List { first, count: u32::try_from(self.tree.writes.len()).ok()? - first })
    }

    fn loop_statement(&mut self) -> Option<StmtId> {
        let start = self.token().start;
        self.at += 1;
        let attributes = self.attributes()?;
        let inside = self.token().start;
        self.expect(b'{')?;
        let (scope, writes) = (self.opened.len(), self.tree.writes.len());
        let own = u32::try_from(self.tree.decls.len()).ok()?;
        let outer = std::mem::replace(&mut self.scope, own);
        self.loops.push(None);
        let (mut items, mut continuing) = (Vec::new(), None);
        self.within(&attributes, |parser| {
            while !parser.accept(b'}') {
                if parser.accept_word("continuing") {
                    let first = parser.tree.exprs.len();
                    let declared = own..u32::try_from(parser.tree.decls.len()).ok()?;
                    continuing = Some(parser.block()?);
                    parser.not_past(declared, first);
                } else {
                    items.push(parser.deeper(Self::statement)?);
                }
            }
            Some(())
        })?;
        self.close(scope);
        (self.scope, _) = (outer, self.loops.pop());
        let body = self.sequence(&items, inside)?;
        let behavior = self.behavior(Some(body)).looped(self.behavior(continuing));
        let writes = self.written(writes)?;
        self.new_stmt(StmtKind::Loop { first: None, condition: None, body, continuing, writes }, start, behavior)
    }

    /// `while` and `for`.
    fn while_or_for(&mut self) -> Option<StmtId> {
        let start = self.token().start;
        let is_for = self.word() == "for";
        self.at += 1;
        let scope = self.opened.len();
        let outer = std::mem::replace(&mut self.scope, u32::try_from(self.tree.decls.len()).ok()?);
        let (mut first, mut condition, mut continuing) = (None, None, None);
        let writes;
        if is_for {
            self.expect(b'(')?;
            if !self.is_sign(b';') {
                first = Some(self.simple_alone()?);
            }
            self.expect(b';')?;
            writes = self.tree.writes.len();
            if !self.is_sign(b';') {
                condition = Some(self.expression()?);
            }
            self.expect(b';')?;
            if !self.is_sign(b')') {
                continuing = Some(self.simple_alone()?);
            }
            self.expect(b')')?;
        } else {
            writes = self.tree.writes.len();
            condition = Some(self.expression()?);
        }
        self.loops.push(None);
        let body = self.open_block()?;
        self.close(scope);
        (self.scope, _) = (outer, self.loops.pop());
        let asked = if condition.is_some() { Behavior::NEXT.union(Behavior::BREAK) } else { Behavior::NEXT };
        let behavior = asked.then(self.behavior(Some(body))).looped(self.behavior(continuing));
        let writes = self.written(writes)?;
        self.new_stmt(StmtKind::Loop { first, condition, body, continuing, writes }, start, behavior)
    }

    fn simple_alone(&mut self) -> Option<StmtId> {
        let start = self.token().start;
        let kind = self.simple()?;
        self.new_stmt(kind, start, Behavior::NEXT)
    }

    /// A declaration, an assignment or a call.
    fn simple(&mut self) -> Option<StmtKind> {
        if matches!(self.word(), "let" | "var" | "const") {
            let decl = self.variable()?;
            return self.declare(decl).map(StmtKind::Declare);
        }
        if self.word() == "_" {
            self.at += 1;
            self.expect(b'=')?;
            return self.expression().map(StmtKind::Evaluate);
        }
        let target = self.unary()?;
        let signs = self.glued();
        let length = match signs {
            [b'=', _, _] => 1,
            [b'+', b'+', _] | [b'-', b'-', _] | [b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', _] => 2,
            [b'<', b'<', b'='] | [b'>', b'>', b'='] => 3,
            _ => return Some(StmtKind::Evaluate(target)),
        };
        self.at += length;
        self.write(target);
        let value = if signs[0] != signs[1] || length != 2 { Some(self.expression()?) } else { None };
        Some(StmtKind::Assign { target, value, reads: length > 1 })
    }

    /// Notes that the variable of a reference may change.
    pub(super) fn write(&mut self, target: ExprId) {
        let Some(id) = self.tree.root(target) else { return };
        if let Some(decl) = self.tree.decls.get_mut(id as usize) {
            decl.is_written = true;
            self.tree.writes.push(id);
        }
    }

    /// Notes that a function may write to what a local name points to.
    pub(super) fn hand_over(&mut self, arguments: List) {
        for at in arguments.first..arguments.first + arguments.count {
            let mut id = self.tree.lists[at as usize];
            while let ExprKind::Paren(inner) = self.tree.expr(id).kind {
                id = inner;
            }
            if let ExprKind::Name { local: Some(decl), .. } = self.tree.expr(id).kind {
                self.tree.writes.push(decl);
            }
        }
    }
}
