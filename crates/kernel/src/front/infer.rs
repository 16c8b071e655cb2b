//! Types of expressions, as far as the text gives them without a type checker. Rewritings of what naga gets wrong for some types need them before naga runs.
//! Scalars and vectors; structures and arrays on the way to them. `None` means "not known here".

use super::eval::value::Ty;
use super::tree::{DeclId, DeclKind, ExprId, ExprKind, List, Operator, Tree};

/// Deeper expressions are not looked at.
const DEEPEST: u32 = 200;

/// A type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inferred {
    /// A scalar, or a vector of this many.
    Vector(Ty, usize),
    /// Columns of this many rows.
    Matrix(Ty, usize),
    /// An array of that element.
    Array(ExprId),
    /// Its number in [`Tree::structs`].
    Struct(u32),
    /// The result of `frexp` of this.
    Frexp(Ty, usize),
}

use Inferred::{Array, Frexp, Matrix, Struct, Vector};

/// Finds the types of one tree.
pub(super) struct Inference<'t> {
    tree: &'t Tree<'t>,
    depth: u32,
}

impl<'t> Inference<'t> {
    pub(super) fn new(tree: &'t Tree<'t>) -> Self {
        Self { tree, depth: 0 }
    }

    fn deeper<T>(&mut self, find: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let found = if self.depth < DEEPEST { find(self) } else { None };
        self.depth -= 1;
        found
    }

    /// Scalar type and number of components.
    pub(super) fn vector(&mut self, id: ExprId) -> Option<(Ty, usize)> {
        match self.of(id)? {
            Vector(ty, size) => Some((ty, size)),
            _ => None,
        }
    }

    pub(super) fn is_matrix(&mut self, id: ExprId) -> bool {
        matches!(self.of(id), Some(Matrix(..)))
    }

    fn of(&mut self, id: ExprId) -> Option<Inferred> {
        self.deeper(|inference| inference.value(id))
    }

    fn value(&mut self, id: ExprId) -> Option<Inferred> {
        let expr = self.tree.expr(id);
        match expr.kind {
            ExprKind::Literal => literal(expr.place.text(self.tree.text)).map(|ty| Vector(ty, 1)),
            // A pointer counts as what it points to.
            ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => self.of(inner),
            ExprKind::Name { name, local, .. } => {
                let decl = self.tree.named(name, local)?;
                self.decl(decl)
            }
            ExprKind::Index(base, _) => match self.of(base)? {
                Vector(ty, _) => Some(Vector(ty, 1)),
                Matrix(ty, rows) => Some(Vector(ty, rows)),
                Array(element) => self.named(element),
                Struct(_) | Frexp(..) => None,
            },
            ExprKind::Member(base, name) => self.member(base, name.text(self.tree.text)),
            ExprKind::Call { callee, arguments, .. } => self.call(callee, arguments),
            ExprKind::Binary(operator, left, right) => {
                use Operator as O;
                let (left, right) = (self.of(left)?, self.of(right)?);
                match (operator, left, right) {
                    (O::ShiftLeft | O::ShiftRight, ..) => Some(left),
                    (_, Vector(a, n), Vector(b, m)) => {
                        let is_truth = matches!(
                            operator,
                            O::OrElse
                                | O::AndThen
                                | O::Equal
                                | O::Differ
                                | O::Less
                                | O::LessEqual
                                | O::Greater
                                | O::GreaterEqual
                        );
                        Some(Vector(if is_truth { Ty::Bool } else { a.common(b)? }, n.max(m)))
                    }
                    (_, Matrix(..), Vector(_, 1)) => Some(left),
                    (_, Vector(_, 1), Matrix(..)) => Some(right),
                    (O::Multiply, Matrix(ty, rows), Vector(..)) => Some(Vector(ty, rows)),
                    (O::Add | O::Subtract, Matrix(..), Matrix(..)) => Some(left),
                    _ => None,
                }
            }
        }
    }

    fn decl(&mut self, id: DeclId) -> Option<Inferred> {
        let decl = *self.tree.decl(id);
        match (decl.kind, decl.ty, decl.init) {
            (DeclKind::Alias | DeclKind::Struct(_) | DeclKind::Function(_), ..) => None,
            (_, Some(ty), _) => self.named(ty),
            (DeclKind::Const, None, Some(init)) => self.of(init),
            (_, None, Some(init)) => Some(match self.of(init)? {
                Vector(ty, size) => Vector(ty.concrete(), size),
                Frexp(ty, size) => Frexp(ty.concrete(), size),
                other => other,
            }),
            (_, None, None) => None,
        }
    }

    fn member(&mut self, base: ExprId, name: &str) -> Option<Inferred> {
        match self.of(base)? {
            // Builtin functions give structures as well, whose types are not told here.
            Vector(ty, _) if name.len() <= 4 && name.chars().all(|part| "xyzwrgba".contains(part)) => {
                Some(Vector(ty, name.len()))
            }
            Frexp(ty, size) => match (name, ty) {
                ("exp", Ty::Float) => Some(Vector(Ty::Int, size)),
                ("exp", _) => Some(Vector(Ty::I32, size)),
                _ => Some(Vector(ty, size)),
            },
            Struct(number) => {
                let members = &self.tree.structs.get(number as usize)?.members;
                let found = members.iter().find(|member| member.name.text(self.tree.text) == name)?.ty;
                self.named(found)
            }
            Vector(..) | Matrix(..) | Array(_) => None,
        }
    }

    fn call(&mut self, callee: ExprId, arguments: List) -> Option<Inferred> {
        let ExprKind::Name { name, templates, local } = self.tree.expr(callee).kind else { return None };
        if let Some(decl) = self.tree.named(name, local) {
            let decl = *self.tree.decl(decl);
            return match decl.kind {
                DeclKind::Function(_) => self.named(decl.ty?),
                _ => self.named(callee),
            };
        }
        let word = name.text(self.tree.text);
        let tree = self.tree;
        if word == "bitcast" {
            return self.named(*tree.list(templates).first()?);
        }
        if let Some(known) = self.named(callee) {
            return Some(known);
        }
        // Types that are not told here: numbers of 64, 16 and 8 bits, vectors of these, matrices and arrays.
        let is_type = matches!(word, "i64" | "u64" | "f64" | "i16" | "u16" | "i8" | "u8") || word.starts_with("mat");
        if is_type || templates.count > 0 {
            return None;
        }
        let arguments = tree.list(arguments);
        let [first, rest @ ..] = arguments else { return None };
        if let Some(size) = word.strip_prefix("vec").and_then(|size| size.parse::<usize>().ok()) {
            let mut ty = self.vector(*first)?.0;
            for other in rest {
                ty = ty.common(self.vector(*other)?.0)?;
            }
            return Some(Vector(ty, size));
        }
        match word {
            "unpack4xI8" => Some(Vector(Ty::I32, 4)),
            "unpack4xU8" => Some(Vector(Ty::U32, 4)),
            "arrayLength" | "dot4U8Packed" => Some(Vector(Ty::U32, 1)),
            "subgroupBallot" => Some(Vector(Ty::U32, 4)),
            "dot4I8Packed" => Some(Vector(Ty::I32, 1)),
            "all" | "any" | "isNan" | "isInf" => Some(Vector(Ty::Bool, 1)),
            _ if word.starts_with("unpack2") => Some(Vector(Ty::F32, 2)),
            _ if word.starts_with("unpack4") => Some(Vector(Ty::F32, 4)),
            _ if word.starts_with("pack") => Some(Vector(Ty::U32, 1)),
            "array" | "transpose" => None,
            "determinant" => match self.of(*first)? {
                Matrix(ty, _) => Some(Vector(ty, 1)),
                _ => None,
            },
            _ => {
                // Nearly all others have their first operand's type, or what it has in common with the second.
                let (mut ty, size) = self.vector(*first)?;
                if let ([second, ..], Ty::Int | Ty::Float) = (rest, ty) {
                    ty = ty.common(self.vector(*second)?.0).unwrap_or(ty);
                }
                match word {
                    "frexp" => Some(Frexp(ty, size)),
                    "dot" | "length" | "distance" => Some(Vector(ty, 1)),
                    _ => Some(Vector(ty, size)),
                }
            }
        }
    }

    /// The type that is written there; a pointer's is what it points to.
    fn named(&mut self, id: ExprId) -> Option<Inferred> {
        self.deeper(|inference| {
            let tree = inference.tree;
            let ExprKind::Name { name, templates, local } = tree.expr(id).kind else { return None };
            if let Some(decl) = tree.named(name, local) {
                let decl = *tree.decl(decl);
                return match decl.kind {
                    DeclKind::Alias => inference.named(decl.ty?),
                    DeclKind::Struct(number) => Some(Struct(number)),
                    _ => None,
                };
            }
            match (name.text(tree.text), tree.list(templates)) {
                ("ptr", [_, ty, ..]) | ("atomic", [ty]) => inference.named(*ty),
                ("array", [ty, ..]) => Some(Array(*ty)),
                (word, [ty]) => match inference.named(*ty)? {
                    Vector(ty, 1) => sized(word, ty),
                    _ => None,
                },
                (word, []) => plain(word),
                _ => None,
            }
        })
    }
}

fn sized(word: &str, ty: Ty) -> Option<Inferred> {
    let number = |text: &str| text.parse::<usize>().ok();
    if let Some(size) = word.strip_prefix("vec") {
        return Some(Vector(ty, number(size)?));
    }
    let (_, rows) = word.strip_prefix("mat")?.split_once('x')?;
    Some(Matrix(ty, number(rows)?))
}

fn plain(word: &str) -> Option<Inferred> {
    let scalar = match word {
        "bool" => Ty::Bool,
        "i32" => Ty::I32,
        "u32" => Ty::U32,
        "f32" => Ty::F32,
        "f16" => Ty::F16,
        _ => {
            let ty = match word.chars().last()? {
                'i' => Ty::I32,
                'u' => Ty::U32,
                'f' => Ty::F32,
                'h' => Ty::F16,
                _ => return None,
            };
            return sized(word.get(..word.len() - 1)?, ty);
        }
    };
    Some(Vector(scalar, 1))
}

fn literal(text: &str) -> Option<Ty> {
    let hex = text.starts_with("0x") || text.starts_with("0X");
    let is_float = text.contains('.') || (!hex && text.contains(['e', 'E'])) || (hex && text.contains(['p', 'P']));
    // Numbers of 64 bits have no type here.
    if ["lf", "li", "lu"].iter().any(|suffix| text.ends_with(suffix)) {
        return None;
    }
    Some(match text.chars().last()? {
        _ if matches!(text, "true" | "false") => Ty::Bool,
        'u' => Ty::U32,
        'i' => Ty::I32,
        'h' => Ty::F16,
        'f' if !hex || is_float => Ty::F32,
        _ if is_float => Ty::Float,
        _ => Ty::Int,
    })
}
