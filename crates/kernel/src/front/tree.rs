//! The tree of a text: declarations, statements and expressions, flat, with their places in bytes. No node owns another, so a tree is
//! dropped without recursion.

use std::collections::HashMap;

use crate::behavior::Behavior;

/// A range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub start: u32,
    pub end: u32,
}

impl Place {
    pub(super) fn text(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The number of an expression. Operands have smaller numbers than what they are operands of.
pub(super) type ExprId = u32;
/// The number of a declaration.
pub(super) type DeclId = u32;

/// Some numbers, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct List {
    pub first: u32,
    pub count: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Expr {
    pub kind: ExprKind,
    pub place: Place,
    /// Levels below it, so that a walk can refuse before it goes too deep.
    pub depth: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ExprKind {
    Literal,
    /// A name or a type; `local` where a declaration within the function is meant.
    Name {
        name: Place,
        templates: List,
        local: Option<DeclId>,
    },
    /// `callee` is a name.
    Call {
        callee: ExprId,
        arguments: List,
        filters: Filters,
    },
    Unary(u8, ExprId),
    Binary(Operator, ExprId, ExprId),
    Index(ExprId, ExprId),
    Member(ExprId, Place),
    Paren(ExprId),
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    OrElse,
    AndThen,
    Or,
    Xor,
    And,
    Equal,
    Differ,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The kind of declaration behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclKind {
    Const,
    Override,
    Let,
    Var,
    Parameter,
    Alias,
    /// Its number in [`Tree::structs`].
    Struct(u32),
    /// Its number in [`Tree::functions`].
    Function(u32),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Decl {
    pub kind: DeclKind,
    pub name: Place,
    /// The word that begins it; all of a parameter, with its attributes and the comma behind it.
    pub keyword: Place,
    /// The type as written; what an alias stands for.
    pub ty: Option<ExprId>,
    pub init: Option<ExprId>,
    /// A variable's address space and access mode.
    pub templates: List,
    /// The builtin value that an attribute names.
    pub builtin: Option<Place>,
    /// It is assigned to, or its address is taken.
    pub is_written: bool,
}

impl List {
    pub(super) const EMPTY: Self = Self { first: 0, count: 0 };
}

impl Decl {
    pub(super) fn new(kind: DeclKind, name: Place, keyword: Place) -> Self {
        Self { kind, name, keyword, ty: None, init: None, templates: List::EMPTY, builtin: None, is_written: false }
    }
}

/// A function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    pub name: Place,
    /// Its parameters, one after the other in [`Tree::decls`].
    pub parameters: List,
    pub is_entry: bool,
    pub is_compute: bool,
    pub is_vertex: bool,
    /// The arguments of `@workgroup_size`.
    pub workgroup_size: List,
    pub has_result: bool,
    pub body: StmtId,
    /// The first of its statements; they are numbered from here to `body`.
    pub first_stmt: StmtId,
    /// The calls in it, in [`Tree::exprs`], lie from `exprs.0` to `exprs.1`.
    pub exprs: (ExprId, ExprId),
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Error,
    Warning,
    Info,
    Off,
}

/// The severities that diagnostic filters give to the filterable rules at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filters {
    pub derivative: Severity,
    pub subgroup: Severity,
}

impl Default for Filters {
    fn default() -> Self {
        Self { derivative: Severity::Error, subgroup: Severity::Error }
    }
}

/// The number of a statement. The parts of a statement have smaller numbers.
pub(super) type StmtId = u32;

#[derive(Debug, Clone, Copy)]
pub(super) struct Stmt {
    pub kind: StmtKind,
    pub place: Place,
    pub behavior: Behavior,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum StmtKind {
    /// A statement without effect on values or control: `;`, `const_assert`, `discard`.
    Empty,
    /// Statements in [`Tree::lists`].
    Block(List),
    If {
        condition: ExprId,
        accept: StmtId,
        reject: Option<StmtId>,
    },
    /// `cases` are the bodies, `writes` is what may be written in them, in [`Tree::writes`].
    Switch {
        selector: ExprId,
        cases: List,
        writes: List,
    },
    /// `loop`, `while` and `for`. `condition` is asked before the body, and `first` comes before the loop.
    Loop {
        first: Option<StmtId>,
        condition: Option<ExprId>,
        body: StmtId,
        continuing: Option<StmtId>,
        writes: List,
    },
    Break,
    BreakIf(ExprId),
    Continue,
    Return(Option<ExprId>),
    /// `const`, `let` and `var`.
    Declare(DeclId),
    /// `value` is missing in `x++` and `x--`; `reads` where the old value is used.
    Assign {
        target: ExprId,
        value: Option<ExprId>,
        reads: bool,
    },
    /// A call, and `_ = expression`.
    Evaluate(ExprId),
}

/// A member of a structure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub name: Place,
    pub ty: ExprId,
    pub align: Option<ExprId>,
    pub size: Option<ExprId>,
    /// The builtin value that an attribute names.
    pub builtin: Option<Place>,
    /// It has an attribute `@location`.
    pub is_located: bool,
}

#[derive(Debug, Default)]
pub(super) struct Structure {
    pub name: String,
    pub members: Vec<Member>,
}

/// A module's text, read.
#[derive(Debug, Default)]
pub(super) struct Tree<'t> {
    pub text: &'t str,
    pub exprs: Vec<Expr>,
    /// Expressions and statements that belong together.
    pub lists: Vec<u32>,
    pub stmts: Vec<Stmt>,
    pub decls: Vec<Decl>,
    pub structs: Vec<Structure>,
    pub functions: Vec<Function>,
    /// Local variables and pointers, one for each place that may write to what they stand for.
    pub writes: Vec<DeclId>,
    /// The ends of the module's declarations.
    pub ends: Vec<u32>,
    /// Declarations of the module's scope by name.
    pub module: HashMap<&'t str, DeclId>,
    /// `enable` directives: all of it, and the names.
    pub enables: Vec<(Place, Vec<Place>)>,
    /// `requires` directives, likewise.
    pub requires: Vec<(Place, Vec<Place>)>,
    /// `@diagnostic(…)` and `diagnostic(…);`.
    pub diagnostics: Vec<Place>,
    /// The conditions of `const_assert`.
    pub asserted: Vec<ExprId>,
    /// The first attribute, name, operator or statement that may not be there, and why.
    pub misplaced: Option<(Place, String)>,
    /// Commas behind the last of a list's template arguments.
    pub trailing: Vec<Place>,
    /// Places of the second sign of `--` that means two of them.
    pub double_minus: Vec<u32>,
}

impl<'t> Tree<'t> {
    pub(super) fn expr(&self, id: ExprId) -> Expr {
        self.exprs[id as usize]
    }

    pub(super) fn stmt(&self, id: StmtId) -> Stmt {
        self.stmts[id as usize]
    }

    pub(super) fn list(&self, list: List) -> &[u32] {
        &self.lists[list.first as usize..(list.first + list.count) as usize]
    }

    pub(super) fn decl(&self, id: DeclId) -> &Decl {
        &self.decls[id as usize]
    }

    /// Resolves a name: its own declaration before the module's.
    pub(super) fn named(&self, name: Place, local: Option<DeclId>) -> Option<DeclId> {
        local.or_else(|| self.module.get(name.text(self.text)).copied())
    }

    /// The variable that a reference is into.
    pub(super) fn root(&self, mut id: ExprId) -> Option<DeclId> {
        loop {
            match self.expr(id).kind {
                ExprKind::Paren(inner)
                | ExprKind::Unary(b'*' | b'&', inner)
                | ExprKind::Index(inner, _)
                | ExprKind::Member(inner, _) => id = inner,
                ExprKind::Name { name, local, .. } => return self.named(name, local),
                _ => return None,
            }
        }
    }

    /// Returns for each expression whether naga may take it for a constant: WGSL's constant expressions, and names bound to such with `let`.
    pub(super) fn constants(&self) -> Vec<bool> {
        const NEVER: [&str; 9] =
            ["subgroup", "quad", "atomic", "texture", "workgroup", "storage", "arrayLength", "dpd", "fwidth"];
        let mut known = Vec::with_capacity(self.exprs.len());
        for expr in &self.exprs {
            let of = |id: ExprId| known[id as usize];
            let all = |list: List| self.list(list).iter().all(|&id| of(id));
            let value = match expr.kind {
                ExprKind::Literal => true,
                ExprKind::Name { name, templates, local } => {
                    let here = match self.named(name, local).map(|id| self.decl(id)) {
                        Some(decl) => match decl.kind {
                            DeclKind::Const | DeclKind::Alias | DeclKind::Struct(_) => true,
                            DeclKind::Let => decl.init.is_some_and(of),
                            _ => false,
                        },
                        None => {
                            let name = name.text(self.text);
                            !NEVER.iter().any(|start| name.starts_with(start))
                        }
                    };
                    here && all(templates)
                }
                ExprKind::Call { callee, arguments, .. } => of(callee) && all(arguments),
                ExprKind::Unary(b'&' | b'*', _) => false,
                ExprKind::Unary(_, inner) | ExprKind::Paren(inner) | ExprKind::Member(inner, _) => of(inner),
                ExprKind::Binary(_, left, right) | ExprKind::Index(left, right) => of(left) && of(right),
            };
            known.push(value);
        }
        known
    }
}
