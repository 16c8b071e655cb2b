//! The parts of programs.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Single,
    Half,
}

/// A vector of one component is a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    Vector(Width, usize),
    /// Columns and rows, of f32.
    Matrix(usize, usize),
    /// The structure `S`.
    Struct,
}

pub(super) const FLOAT: Ty = Ty::Vector(Width::Single, 1);

impl Ty {
    pub(super) fn slots(self) -> usize {
        match self {
            Self::Vector(_, size) => size,
            Self::Matrix(columns, rows) => columns * rows,
            Self::Struct => MEMBERS.iter().map(|(_, ty, count)| ty.slots() * count).sum(),
        }
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Vector(Width::Single, 1) => "f32".to_owned(),
            Self::Vector(Width::Half, 1) => "f16".to_owned(),
            Self::Vector(Width::Single, size) => format!("vec{size}f"),
            Self::Vector(Width::Half, size) => format!("vec{size}h"),
            Self::Matrix(columns, rows) => format!("mat{columns}x{rows}f"),
            Self::Struct => "S".to_owned(),
        }
    }
}

/// The members of `S`, in order; a count above one is an array, and `n.` a structure within.
pub(super) const MEMBERS: [(&str, Ty, usize); 5] = [
    ("a", FLOAT, 1),
    ("v", Ty::Vector(Width::Single, 3), 1),
    ("m", Ty::Matrix(2, 3), 1),
    ("c", FLOAT, 4),
    ("n.x", Ty::Vector(Width::Single, 2), 1),
];
pub(super) const STRUCTS: &str =
    "struct N { x: vec2f, k: u32 }\nstruct S { a: f32, v: vec3f, m: mat2x3f, c: array<f32, 4>, n: N }\n";

/// The start of a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Base {
    Memory(usize),
    /// The target of a parameter, and an offset.
    Parameter(usize, usize),
}

/// A variable, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) text: String,
    pub(super) ty: Ty,
    pub(super) base: Base,
    /// An index `(lid + by) & mask`, and the slots of an element.
    pub(super) index: Option<(u32, u32, usize)>,
    /// Its address can be taken: it is no component of a vector.
    pub(super) has_address: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Function {
    Negate,
    Abs,
    Floor,
    Trunc,
    Round,
    Fract,
    Sign,
    Saturate,
    /// The root of the absolute value.
    Sqrt,
    /// The exponential of the value limited to -4 to 4.
    Exp,
    Sin,
    Add,
    Sub,
    Mul,
    /// The quotient by the divisor's absolute value plus one.
    Div,
    Min,
    Max,
    Step,
    Clamp,
    Mix,
    Fma,
}

#[derive(Clone, Debug)]
pub(super) enum Expression {
    Input(u32, u32),
    Literal(f64, Width),
    Load(Place),
    /// Component by component.
    Apply(Function, Vec<Expression>),
    /// A vector, or a matrix by columns, of parts.
    Compose(Ty, Vec<Expression>),
    Swizzle(Box<Expression>, Vec<usize>),
    Column(Box<Expression>, usize),
    /// A matrix with a vector, on either side.
    Product(Box<Expression>, Box<Expression>),
    Transpose(Box<Expression>),
    Dot(Box<Expression>, Box<Expression>),
    Length(Box<Expression>),
    Cross(Box<Expression>, Box<Expression>),
    /// `select(a, b, c < d)`, of scalars.
    Select(Box<[Expression; 4]>),
    Convert(Width, Box<Expression>),
}

#[derive(Clone, Debug)]
pub(super) enum Statement {
    Declare(Place, Expression),
    /// `let p = &place; *p = value;` where the flag is set.
    Assign(Place, Expression, bool),
    /// The first statements run if bits of the invocation's number are clear, otherwise the second.
    If(u32, Vec<Statement>, Vec<Statement>),
    Repeat(u32, Vec<Statement>),
    /// The result, the function's number and what its parameters point to.
    Call(Place, usize, Vec<Place>),
}

pub(super) struct Callee {
    pub(super) parameters: Vec<Ty>,
    pub(super) body: Vec<Statement>,
    pub(super) result: Expression,
}

pub(super) struct Program {
    pub(super) halves: bool,
    pub(super) slots: usize,
    pub(super) functions: Vec<Callee>,
    pub(super) main: Vec<Statement>,
    pub(super) outputs: Vec<Expression>,
}

impl Expression {
    pub(super) fn ty(&self) -> Ty {
        match self {
            Self::Input(..) | Self::Dot(..) | Self::Length(_) => FLOAT,
            Self::Literal(_, width) => Ty::Vector(*width, 1),
            Self::Load(place) => place.ty,
            Self::Apply(_, arguments) => arguments[0].ty(),
            Self::Compose(ty, _) => *ty,
            Self::Swizzle(base, order) => match base.ty() {
                Ty::Vector(width, _) => Ty::Vector(width, order.len()),
                other => other,
            },
            Self::Column(matrix, _) => match matrix.ty() {
                Ty::Matrix(_, rows) => Ty::Vector(Width::Single, rows),
                other => other,
            },
            Self::Product(left, right) => match (left.ty(), right.ty()) {
                (Ty::Matrix(_, rows), _) => Ty::Vector(Width::Single, rows),
                (_, Ty::Matrix(columns, _)) => Ty::Vector(Width::Single, columns),
                (other, _) => other,
            },
            Self::Transpose(matrix) => match matrix.ty() {
                Ty::Matrix(columns, rows) => Ty::Matrix(rows, columns),
                other => other,
            },
            Self::Cross(a, _) => a.ty(),
            Self::Select(parts) => parts[0].ty(),
            Self::Convert(width, value) => match value.ty() {
                Ty::Vector(_, size) => Ty::Vector(*width, size),
                other => other,
            },
        }
    }

    pub(super) fn width(&self) -> Width {
        if let Ty::Vector(width, _) = self.ty() { width } else { Width::Single }
    }
}
