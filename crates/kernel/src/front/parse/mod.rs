//! Reads a text into a [`Tree`]. Lenient: what is wrong in a text is naga's to say, so it accepts a little more than WGSL. Where it cannot
//! follow, it gives up. Recursion is bounded.

mod placed;
mod statement;

use std::collections::HashMap;

use super::lex::{Kind, Token, tokens};
use super::tree::{
    Decl, DeclId, DeclKind, Expr, ExprId, ExprKind, Filters, Function, List, Member, Operator, Place, Severity,
    Structure, Tree,
};

const NO_LOCATION: &str = "a compute entry point has no inputs by @location: bind a buffer or a uniform";

/// Nested parentheses, blocks and operands, together.
const DEEPEST: u32 = 1024;

/// A text's tree, or `None` where it cannot be followed.
pub(super) fn parse(text: &str) -> Option<Tree<'_>> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        tree: Tree { text, ..Tree::default() },
        scopes: HashMap::new(),
        opened: Vec::new(),
        scope: 0,
        loops: Vec::new(),
        filters: Filters::default(),
    };
    parser.module()?;
    Some(parser.tree)
}

struct Parser<'t> {
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    tree: Tree<'t>,
    /// Declarations of the function, the innermost last.
    scopes: HashMap<&'t str, Vec<DeclId>>,
    /// Names in the order of their declaration.
    opened: Vec<&'t str>,
    /// Declarations from this on are of the innermost scope.
    scope: DeclId,
    /// The first `continue` of each loop around.
    loops: Vec<Option<Place>>,
    /// The diagnostic filters that hold here.
    filters: Filters,
}

/// The attributes of a declaration, as far as they matter.
#[derive(Default)]
struct Attributes<'t> {
    /// All of their names.
    names: Vec<(Place, &'t str)>,
    align: Option<ExprId>,
    size: Option<ExprId>,
    builtin: Option<Place>,
    is_entry: bool,
    workgroup_size: Option<List>,
    /// The diagnostic filters that hold in what they belong to, and where the first of them is.
    filters: Option<Filters>,
    filtered: Option<Place>,
}

impl<'t> Parser<'t> {
    fn token(&self) -> Token {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn place(&self) -> Place {
        let token = self.token();
        Place { start: token.start, end: token.end }
    }

    fn next(&mut self) -> Token {
        let token = self.token();
        self.at += 1;
        token
    }

    /// Returns where the previous token ends.
    fn end(&self) -> u32 {
        self.tokens.get(self.at.wrapping_sub(1)).map_or(0, |token| token.end)
    }

    fn word(&self) -> &'t str {
        if self.token().kind == Kind::Word { self.place().text(self.tree.text) } else { "" }
    }

    fn is_sign(&self, sign: u8) -> bool {
        self.token().kind == Kind::Sign(sign)
    }

    fn accept(&mut self, sign: u8) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: u8) -> Option<()> {
        self.accept(sign).then_some(())
    }

    fn name(&mut self) -> Option<Place> {
        let token = self.next();
        (token.kind == Kind::Word).then_some(Place { start: token.start, end: token.end })
    }

    /// The signs from here on that touch each other, at most three; 0 behind them.
    fn glued(&self) -> [u8; 3] {
        let mut signs = [0; 3];
        let mut end = self.token().start;
        for (sign, token) in signs.iter_mut().zip(self.tokens.iter().skip(self.at)) {
            match token.kind {
                Kind::Sign(found) if token.start == end => *sign = found,
                _ => break,
            }
            end = token.end;
        }
        signs
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let result = if self.depth < DEEPEST { read(self) } else { None };
        self.depth -= 1;
        result
    }

    fn module(&mut self) -> Option<()> {
        let mut directives: Vec<(&'t str, &'t str)> = Vec::new();
        while self.token().kind != Kind::End {
            let start = self.token().start;
            if !self.tree.ends.is_empty() && matches!(self.word(), "enable" | "requires" | "diagnostic") {
                let (place, word) = (self.place(), self.word());
                self.misplaced(place, || format!("`{word}` comes before all declarations"));
            }
            match self.word() {
                "enable" => {
                    self.at += 1;
                    let names = self.names()?;
                    let place = Place { start, end: self.end() };
                    self.tree.enables.push((place, names));
                }
                "requires" => {
                    self.at += 1;
                    let names = self.names()?;
                    let place = Place { start, end: self.end() };
                    self.tree.requires.push((place, names));
                }
                "diagnostic" => {
                    self.at += 1;
                    let arguments = self.arguments()?;
                    self.expect(b';')?;
                    let place = Place { start, end: self.end() };
                    let before = self.filter(arguments, place);
                    if let Some((severity, rule)) = before
                        && directives.iter().any(|&(other, known)| known == rule && other != severity)
                    {
                        self.misplaced(place, || format!("another directive gives `{rule}` another severity"));
                    }
                    directives.extend(before);
                    self.filters = self.filtered(self.filters, arguments);
                    self.tree.diagnostics.push(place);
                }
                _ => {
                    self.declaration()?;
                    self.tree.ends.push(self.end());
                }
            }
        }
        Some(())
    }

    /// `a, b;`
    fn names(&mut self) -> Option<Vec<Place>> {
        let mut names = vec![self.name()?];
        while self.accept(b',') {
            if !self.is_sign(b';') {
                names.push(self.name()?);
            }
        }
        self.expect(b';')?;
        Some(names)
    }

    fn declaration(&mut self) -> Option<()> {
        if self.accept(b';') {
            return Some(());
        }
        let attributes = self.attributes()?;
        let keyword = self.place();
        if self.word() != "fn" {
            self.without_filters(&attributes);
        }
        let word = self.word();
        self.placed(&attributes, word);
        match self.word() {
            "struct" => {
                self.at += 1;
                let name = self.name()?;
                let structure = self.structure(name)?;
                let kind = DeclKind::Struct(u32::try_from(self.tree.structs.len()).ok()?);
                self.tree.structs.push(structure);
                self.declare_in_module(Decl::new(kind, name, keyword))
            }
            "alias" => {
                self.at += 1;
                let name = self.name()?;
                self.expect(b'=')?;
                let ty = Some(self.expression()?);
                self.expect(b';')?;
                self.declare_in_module(Decl { ty, ..Decl::new(DeclKind::Alias, name, keyword) })
            }
            "const_assert" => self.assertion(),
            "fn" => self.function(keyword, &attributes),
            "const" | "override" | "var" => {
                let decl = self.variable()?;
                self.expect(b';')?;
                self.declare_in_module(decl)
            }
            _ => None,
        }
    }

    fn assertion(&mut self) -> Option<()> {
        self.at += 1;
        let asserted = self.expression()?;
        self.tree.asserted.push(asserted);
        self.expect(b';')
    }

    fn declare_in_module(&mut self, decl: Decl) -> Option<()> {
        let id = self.new_decl(decl)?;
        self.tree.module.insert(decl.name.text(self.tree.text), id);
        Some(())
    }

    fn new_decl(&mut self, decl: Decl) -> Option<DeclId> {
        let id = u32::try_from(self.tree.decls.len()).ok()?;
        self.tree.decls.push(decl);
        Some(id)
    }

    fn declare(&mut self, decl: Decl) -> Option<DeclId> {
        let id = self.new_decl(decl)?;
        let name = decl.name.text(self.tree.text);
        // Those of inner scopes are forgotten.
        if self.scopes.get(name).and_then(|ids| ids.last()).is_some_and(|&last| last >= self.scope) {
            self.misplaced(decl.name, || format!("`{name}` is declared a second time in this scope"));
        }
        self.scopes.entry(name).or_default().push(id);
        self.opened.push(name);
        Some(id)
    }

    /// Forgets what was declared since `mark` names were.
    fn close(&mut self, mark: usize) {
        for name in self.opened.drain(mark..) {
            if let Some(ids) = self.scopes.get_mut(name) {
                ids.pop();
            }
        }
    }

    fn attributes(&mut self) -> Option<Attributes<'t>> {
        let mut found = Attributes::default();
        let mut rules: Vec<&str> = Vec::new();
        while self.is_sign(b'@') {
            let start = self.next().start;
            let place = self.name()?;
            let name = place.text(self.tree.text);
            found.names.push((place, name));
            let arguments = if self.is_sign(b'(') { Some(self.arguments()?) } else { None };
            let first = arguments.and_then(|list| self.tree.list(list).first().copied());
            match name {
                "align" => found.align = first,
                "size" => found.size = first,
                "builtin" => found.builtin = first.map(|id| self.tree.expr(id).place),
                "workgroup_size" => found.workgroup_size = arguments,
                "compute" | "fragment" | "vertex" => found.is_entry = true,
                "diagnostic" => {
                    let place = Place { start, end: self.end() };
                    self.tree.diagnostics.push(place);
                    found.filtered.get_or_insert(place);
                    if let Some((_, rule)) = arguments.and_then(|list| self.filter(list, place)) {
                        if rules.contains(&rule) {
                            self.misplaced(place, || format!("a second filter of `{rule}` here"));
                        }
                        rules.push(rule);
                    }
                    let before = found.filters.unwrap_or(self.filters);
                    found.filters = arguments.map(|list| self.filtered(before, list));
                }
                _ => {}
            }
        }
        Some(found)
    }

    /// The severity and the rule of a filter.
    fn filter(&mut self, arguments: List, place: Place) -> Option<(&'t str, &'t str)> {
        let text = |at: usize| {
            self.tree.list(arguments).get(at).map_or("", |&id| self.tree.expr(id).place.text(self.tree.text))
        };
        let (severity, rule) = (text(0), text(1));
        if !matches!(severity, "error" | "warning" | "info" | "off") {
            self.misplaced(place, || format!("a severity is error, warning, info or off, not `{severity}`"));
        }
        (!rule.is_empty()).then_some((severity, rule))
    }

    fn misplaced(&mut self, place: Place, reason: impl FnOnce() -> String) {
        self.tree.misplaced.get_or_insert_with(|| (place, reason()));
    }

    /// Refuses filters on anything that is not a function or a block and contains none.
    fn without_filters(&mut self, attributes: &Attributes<'_>) {
        if let Some(place) = attributes.filtered {
            self.misplaced(place, || "`@diagnostic` belongs to functions, and to statements with a block".to_owned());
        }
    }

    /// Filters with one more: a severity and the rule's name.
    fn filtered(&self, mut filters: Filters, arguments: List) -> Filters {
        let text = |place: usize| {
            self.tree.list(arguments).get(place).map(|&id| self.tree.expr(id).place.text(self.tree.text))
        };
        let severity = match text(0) {
            Some("error") => Severity::Error,
            Some("warning") => Severity::Warning,
            Some("info") => Severity::Info,
            Some("off") => Severity::Off,
            _ => return filters,
        };
        match text(1) {
            Some("derivative_uniformity") => filters.derivative = severity,
            Some("subgroup_uniformity") => filters.subgroup = severity,
            _ => {}
        }
        filters
    }

    /// Reads what attributes belong to, with their filters.
    fn within<T>(&mut self, attributes: &Attributes<'_>, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.filters;
        self.filters = attributes.filters.unwrap_or(before);
        let result = read(self);
        self.filters = before;
        result
    }

    fn structure(&mut self, name: Place) -> Option<Structure> {
        self.expect(b'{')?;
        let mut structure = Structure { name: name.text(self.tree.text).to_owned(), members: Vec::new() };
        while !self.is_sign(b'}') {
            let attributes = self.attributes()?;
            self.without_filters(&attributes);
            self.placed(&attributes, "member");
            let is_located = attributes.has("location");
            let Attributes { align, size, builtin, .. } = attributes;
            let name = self.name()?;
            self.expect(b':')?;
            let ty = self.expression()?;
            structure.members.push(Member { name, ty, align, size, builtin, is_located });
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b'}')?;
        Some(structure)
    }

    /// `const`, `let`, `override` or `var`, without the semicolon.
    fn variable(&mut self) -> Option<Decl> {
        let keyword = self.place();
        let kind = match self.word() {
            "const" => DeclKind::Const,
            "let" => DeclKind::Let,
            "override" => DeclKind::Override,
            "var" => DeclKind::Var,
            _ => return None,
        };
        self.at += 1;
        let mut templates = List::EMPTY;
        if kind == DeclKind::Var && self.token().kind == Kind::Open {
            templates = self.templates()?;
        }
        let name = self.name()?;
        let ty = if self.accept(b':') { Some(self.expression()?) } else { None };
        let init = if self.accept(b'=') { Some(self.expression()?) } else { None };
        Some(Decl { ty, init, templates, ..Decl::new(kind, name, keyword) })
    }

    fn function(&mut self, keyword: Place, attributes: &Attributes<'_>) -> Option<()> {
        self.at += 1;
        let name = self.name()?;
        self.expect(b'(')?;
        let mark = self.opened.len();
        let first_parameter = u32::try_from(self.tree.decls.len()).ok()?;
        self.scope = first_parameter;
        while !self.is_sign(b')') {
            let start = self.token().start;
            let own = self.attributes()?;
            self.without_filters(&own);
            self.placed(&own, "parameter");
            if attributes.has("compute") && own.has("location") {
                self.misplaced(Place { start, end: self.end() }, || NO_LOCATION.to_owned());
            }
            let builtin = own.builtin;
            let name = self.name()?;
            self.expect(b':')?;
            let ty = Some(self.expression()?);
            let goes_on = self.accept(b',');
            let whole = Place { start, end: self.end() };
            self.declare(Decl { ty, builtin, ..Decl::new(DeclKind::Parameter, name, whole) })?;
            if !goes_on {
                break;
            }
        }
        self.expect(b')')?;
        let count = u32::try_from(self.tree.decls.len()).ok()? - first_parameter;
        let mut ty = None;
        if self.glued()[..2] == *b"->" {
            self.at += 2;
            let start = self.token().start;
            let own = self.attributes()?;
            self.without_filters(&own);
            self.placed(&own, "result");
            ty = Some(self.expression()?);
            if attributes.has("compute") {
                let place = Place { start, end: self.end() };
                self.misplaced(place, || "a compute entry point returns nothing: store it in a buffer".to_owned());
            }
        }
        self.fitting(name, attributes, ty.is_some());
        let first_expr = u32::try_from(self.tree.exprs.len()).ok()?;
        let first_stmt = u32::try_from(self.tree.stmts.len()).ok()?;
        // Parameters and the body's own declarations are of one scope.
        let body = self.within(attributes, Self::open_block)?;
        self.close(mark);
        let function = Function {
            name,
            parameters: List { first: first_parameter, count },
            is_entry: attributes.is_entry,
            is_compute: attributes.has("compute"),
            is_vertex: attributes.has("vertex"),
            workgroup_size: attributes.workgroup_size.unwrap_or(List::EMPTY),
            has_result: ty.is_some(),
            body,
            first_stmt,
            exprs: (first_expr, u32::try_from(self.tree.exprs.len()).ok()?),
        };
        let kind = DeclKind::Function(u32::try_from(self.tree.functions.len()).ok()?);
        self.tree.functions.push(function);
        self.declare_in_module(Decl { ty, ..Decl::new(kind, name, keyword) })
    }

    fn add(&mut self, kind: ExprKind, start: u32) -> Option<ExprId> {
        let below = |id: ExprId| self.tree.expr(id).depth;
        let all = |list| self.tree.list(list).iter().map(|&id| below(id)).max().unwrap_or(0);
        let depth = match kind {
            ExprKind::Literal => 0,
            ExprKind::Name { templates, .. } => all(templates),
            ExprKind::Call { callee, arguments, .. } => below(callee).max(all(arguments)),
            ExprKind::Unary(_, inner) | ExprKind::Paren(inner) | ExprKind::Member(inner, _) => below(inner),
            ExprKind::Binary(_, left, right) | ExprKind::Index(left, right) => below(left).max(below(right)),
        };
        let id = u32::try_from(self.tree.exprs.len()).ok()?;
        self.tree.exprs.push(Expr { kind, place: Place { start, end: self.end() }, depth: depth + 1 });
        Some(id)
    }

    fn new_list(&mut self, items: &[ExprId]) -> Option<List> {
        let list = List { first: u32::try_from(self.tree.lists.len()).ok()?, count: u32::try_from(items.len()).ok()? };
        self.tree.lists.extend_from_slice(items);
        Some(list)
    }

    fn arguments(&mut self) -> Option<List> {
        self.expect(b'(')?;
        let mut items = Vec::new();
        while !self.is_sign(b')') {
            items.push(self.expression()?);
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b')')?;
        self.new_list(&items)
    }

    fn templates(&mut self) -> Option<List> {
        self.at += 1;
        let mut items = Vec::new();
        while self.token().kind != Kind::Close {
            items.push(self.expression()?);
            let comma = self.place();
            if !self.accept(b',') {
                break;
            }
            if self.token().kind == Kind::Close {
                self.tree.trailing.push(comma);
            }
        }
        (self.next().kind == Kind::Close).then_some(())?;
        self.new_list(&items)
    }

    fn expression(&mut self) -> Option<ExprId> {
        self.deeper(|parser| parser.binary(0))
    }

    /// Operators that bind more tightly than `least`.
    fn binary(&mut self, least: u32) -> Option<ExprId> {
        let start = self.token().start;
        let mut left = self.unary()?;
        while let Some((operator, length, strength)) = self.operator()
            && strength > least
        {
            if self.glued()[..2] == *b"--" {
                self.tree.double_minus.push(self.token().start + 1);
            }
            self.at += length;
            let right = self.deeper(|parser| parser.binary(strength))?;
            self.without_brackets(operator, left, right);
            left = self.add(ExprKind::Binary(operator, left, right), start)?;
        }
        Some(left)
    }

    /// The operator here: its tokens, and how tightly it binds.
    fn operator(&self) -> Option<(Operator, usize, u32)> {
        use Operator as O;
        Some(match self.glued() {
            [b'|', b'|', _] => (O::OrElse, 2, 1),
            [b'&', b'&', _] => (O::AndThen, 2, 2),
            [b'<', b'<', b'='] | [b'>', b'>', b'='] | [b'+', b'+', _] => return None,
            [b'=', b'=', _] => (O::Equal, 2, 6),
            [b'!', b'=', _] => (O::Differ, 2, 6),
            [b'<', b'=', _] => (O::LessEqual, 2, 7),
            [b'>', b'=', _] => (O::GreaterEqual, 2, 7),
            [b'<', b'<', _] => (O::ShiftLeft, 2, 8),
            [b'>', b'>', _] => (O::ShiftRight, 2, 8),
            [_, b'=', _] => return None,
            [b'|', ..] => (O::Or, 1, 3),
            [b'^', ..] => (O::Xor, 1, 4),
            [b'&', ..] => (O::And, 1, 5),
            [b'<', ..] => (O::Less, 1, 7),
            [b'>', ..] => (O::Greater, 1, 7),
            [b'+', ..] => (O::Add, 1, 9),
            [b'-', ..] => (O::Subtract, 1, 9),
            [b'*', ..] => (O::Multiply, 1, 10),
            [b'/', ..] => (O::Divide, 1, 10),
            [b'%', ..] => (O::Remainder, 1, 10),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Option<ExprId> {
        let start = self.token().start;
        if let Kind::Sign(sign @ (b'-' | b'!' | b'~' | b'*' | b'&')) = self.token().kind {
            if self.glued()[..2] == *b"--" {
                self.tree.double_minus.push(start + 1);
            }
            self.at += 1;
            let inner = self.deeper(Self::unary)?;
            if sign == b'&' {
                self.write(inner);
            }
            return self.add(ExprKind::Unary(sign, inner), start);
        }
        let mut expr = self.primary()?;
        loop {
            if self.accept(b'[') {
                let index = self.expression()?;
                self.expect(b']')?;
                expr = self.add(ExprKind::Index(expr, index), start)?;
            } else if self.accept(b'.') {
                let name = self.name()?;
                expr = self.add(ExprKind::Member(expr, name), start)?;
            } else {
                return Some(expr);
            }
        }
    }

    fn primary(&mut self) -> Option<ExprId> {
        let token = self.token();
        match token.kind {
            Kind::Number => {
                self.at += 1;
                self.add(ExprKind::Literal, token.start)
            }
            Kind::Sign(b'(') => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(b')')?;
                self.add(ExprKind::Paren(inner), token.start)
            }
            Kind::Word => {
                let word = self.word();
                let name = self.name()?;
                if matches!(word, "true" | "false") {
                    return self.add(ExprKind::Literal, token.start);
                }
                let templates = if self.token().kind == Kind::Open { self.templates()? } else { self.new_list(&[])? };
                let local = self.scopes.get(word).and_then(|ids| ids.last()).copied();
                let expr = self.add(ExprKind::Name { name, templates, local }, token.start)?;
                if !self.is_sign(b'(') {
                    return Some(expr);
                }
                let arguments = self.arguments()?;
                self.hand_over(arguments);
                self.add(ExprKind::Call { callee: expr, arguments, filters: self.filters }, token.start)
            }
            _ => None,
        }
    }
}
