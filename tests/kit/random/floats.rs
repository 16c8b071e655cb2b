//! Random programs of floats: structures, matrices, vectors, pointers to parts of variables, and f16. What they compute is known as intervals,
//! by WGSL's accuracy of each operation, so that a device may fuse, round and flush as it likes and no further.
//!
//! Conditions depend on the invocation's number alone. Where a comparison of floats is open, both outcomes count.

use std::fmt::Write as _;

use crate::case::Case;
use crate::check::{Near, ulp16, ulp32};
use crate::inputs::Random;

/// Invocations of the one workgroup, and elements of the input.
const LANES: u32 = 32;
const INPUTS: u32 = 64;
/// What is stored stays within this bound.
const BOUND: f64 = 64.0;

/// The program of a seed as a case; every fourth uses f16.
pub fn case(seed: u64) -> Case {
    let (program, input, expected) = run(seed);
    let near = Near::each("interval", expected.iter().map(|found| (found.middle(), found.radius())));
    let case = Case::new(format!("floats {seed}"), program.wgsl()).read("input", input).write_near("out", near);
    if program.halves { case.needs(|needs| needs.f16 = true) } else { case }
}

/// The share of the results of a seed's program that is known to three digits: a case of wide intervals would show little.
pub fn share_known(seed: u64) -> f64 {
    let (_, _, expected) = run(seed);
    let known = expected.iter().filter(|found| found.radius() <= 1e-3 * found.middle().abs().max(1.0)).count();
    known as f64 / expected.len().max(1) as f64
}

/// The program, its input, and what it may put out.
fn run(seed: u64) -> (Program, Vec<f32>, Vec<Interval>) {
    let mut random = Random::new(seed ^ 0xF10A7);
    let input: Vec<f32> = (0..INPUTS).map(|_| ((random.unit() * 16.0 - 8.0) * 64.0).round() as f32 / 64.0).collect();
    let program = Generator::new(&mut random, seed.is_multiple_of(4)).program();
    let mut expected = Vec::new();
    for lane in 0..LANES {
        let mut machine = Machine { memory: vec![Interval::exact(0.0); program.slots], lane, input: &input };
        machine.block(&program.main, &[], &program);
        expected.extend(program.outputs.iter().flat_map(|output| machine.value(output, &[])));
    }
    (program, input, expected)
}

/// The numbers that a value may be. Not finite: any number at all.
#[derive(Clone, Copy, Debug)]
struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    fn exact(value: f64) -> Self {
        Self { low: value, high: value }
    }

    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let start = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };
        values.into_iter().fold(start, |all, value| Self { low: all.low.min(value), high: all.high.max(value) })
    }

    fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    fn radius(self) -> f64 {
        (self.high - self.low) / 2.0 * (1.0 + 1e-12)
    }

    fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { low: rising(self.low), high: rising(self.high) }
    }

    /// Off by this many ULP; what is subnormal may be flushed.
    fn rounded(self, width: Width, count: f64) -> Self {
        let (ulp, least): (fn(f64) -> f64, f64) = match width {
            Width::Single => (ulp32, f64::from(f32::MIN_POSITIVE)),
            Width::Half => (ulp16, 6.103_515_625e-5),
        };
        let flushed = |value: f64| if value.abs() < least { least } else { 0.0 };
        Self {
            low: self.low - count * ulp(self.low) - flushed(self.low),
            high: self.high + count * ulp(self.high) + flushed(self.high),
        }
    }

    fn widened(self, by: f64) -> Self {
        Self { low: self.low - by, high: self.high + by }
    }
}

impl std::ops::Add for Interval {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { low: self.low + other.low, high: self.high + other.high }
    }
}

impl std::ops::Neg for Interval {
    type Output = Self;
    fn neg(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }
}

impl std::ops::Mul for Interval {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::of([self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Single,
    Half,
}

/// A vector of one component is a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    Vector(Width, usize),
    /// Columns and rows, of f32.
    Matrix(usize, usize),
    /// The structure `S`.
    Struct,
}

const FLOAT: Ty = Ty::Vector(Width::Single, 1);

impl Ty {
    fn slots(self) -> usize {
        match self {
            Self::Vector(_, size) => size,
            Self::Matrix(columns, rows) => columns * rows,
            Self::Struct => MEMBERS.iter().map(|(_, ty, count)| ty.slots() * count).sum(),
        }
    }

    fn name(self) -> String {
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
const MEMBERS: [(&str, Ty, usize); 5] = [
    ("a", FLOAT, 1),
    ("v", Ty::Vector(Width::Single, 3), 1),
    ("m", Ty::Matrix(2, 3), 1),
    ("c", FLOAT, 4),
    ("n.x", Ty::Vector(Width::Single, 2), 1),
];
const STRUCTS: &str =
    "struct N { x: vec2f, k: u32 }\nstruct S { a: f32, v: vec3f, m: mat2x3f, c: array<f32, 4>, n: N }\n";

/// Where a place begins.
#[derive(Clone, Copy, Debug)]
enum Base {
    Memory(usize),
    /// What a parameter points to, and an offset.
    Parameter(usize, usize),
}

/// A variable, or a part of one.
#[derive(Clone, Debug)]
struct Place {
    text: String,
    ty: Ty,
    base: Base,
    /// An index `(lid + by) & mask`, and the slots of an element.
    index: Option<(u32, u32, usize)>,
    /// Its address can be taken: it is no component of a vector.
    has_address: bool,
}

#[derive(Clone, Copy, Debug)]
enum Function {
    Negate,
    Abs,
    Floor,
    Trunc,
    Round,
    Fract,
    Sign,
    Saturate,
    /// Of the absolute value.
    Sqrt,
    /// Of the value within -4 and 4.
    Exp,
    Sin,
    Add,
    Sub,
    Mul,
    /// By the divisor's absolute value and one.
    Div,
    Min,
    Max,
    Step,
    Clamp,
    Mix,
    Fma,
}

use Function as F;

const UNARY: [Function; 11] =
    [F::Negate, F::Abs, F::Floor, F::Trunc, F::Round, F::Fract, F::Sign, F::Saturate, F::Sqrt, F::Exp, F::Sin];
const BINARY: [Function; 8] = [F::Add, F::Sub, F::Mul, F::Div, F::Min, F::Max, F::Step, F::Mul];
const TERNARY: [Function; 3] = [F::Clamp, F::Mix, F::Fma];

#[derive(Clone, Debug)]
enum Expression {
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
enum Statement {
    Declare(Place, Expression),
    /// `let p = &place; *p = value;` where the flag is set.
    Assign(Place, Expression, bool),
    /// Whether bits of the invocation's number are clear.
    If(u32, Vec<Statement>, Vec<Statement>),
    Repeat(u32, Vec<Statement>),
    /// The result, the function's number and what its parameters point to.
    Call(Place, usize, Vec<Place>),
}

struct Callee {
    parameters: Vec<Ty>,
    body: Vec<Statement>,
    result: Expression,
}

struct Program {
    halves: bool,
    slots: usize,
    functions: Vec<Callee>,
    main: Vec<Statement>,
    outputs: Vec<Expression>,
}

struct Generator<'a> {
    random: &'a mut Random,
    halves: bool,
    slots: usize,
    names: usize,
    /// What can be read and written here.
    places: Vec<Place>,
    functions: Vec<Callee>,
    loops: u32,
}

impl<'a> Generator<'a> {
    fn new(random: &'a mut Random, halves: bool) -> Self {
        Self { random, halves, slots: 0, names: 0, places: Vec::new(), functions: Vec::new(), loops: 2 }
    }

    fn program(mut self) -> Program {
        for _ in 0..1 + self.random.below(3) {
            let parameters: Vec<Ty> = (0..1 + self.random.below(2)).map(|_| self.pointed()).collect();
            for (number, &ty) in parameters.iter().enumerate() {
                let place = Place {
                    text: format!("(*p{number})"),
                    ty,
                    base: Base::Parameter(number, 0),
                    index: None,
                    has_address: true,
                };
                self.reveal(&place);
            }
            let body = self.statements(3, 1);
            let result = bounded(self.expression(FLOAT, 2));
            self.places.clear();
            self.functions.push(Callee { parameters, body, result });
        }
        let mut main = Vec::new();
        let types = [Ty::Struct, FLOAT, Ty::Vector(Width::Single, 2), Ty::Vector(Width::Single, 4), Ty::Matrix(3, 3)];
        for ty in types.into_iter().chain(self.halves.then_some(Ty::Vector(Width::Half, 2))) {
            main.push(self.declare(ty));
        }
        main.extend(self.statements(8, 2));
        let whole: Vec<Place> = self.places.iter().filter(|place| place.ty != Ty::Struct).cloned().collect();
        let mut outputs = Vec::new();
        for place in whole.iter().filter(|place| place.index.is_none()) {
            // A part of something else is there as well.
            if place.text.contains(['[', '.']) && !place.text.starts_with('s') {
                continue;
            }
            let load = Expression::Load(place.clone());
            match place.ty {
                Ty::Vector(_, 1) => outputs.push(load),
                Ty::Vector(_, size) => {
                    outputs.extend((0..size).map(|at| Expression::Swizzle(Box::new(load.clone()), vec![at])));
                }
                Ty::Matrix(columns, rows) => outputs.extend((0..columns * rows).map(|at| {
                    let column = Expression::Column(Box::new(load.clone()), at / rows);
                    Expression::Swizzle(Box::new(column), vec![at % rows])
                })),
                Ty::Struct => {}
            }
        }
        let outputs = outputs.into_iter().map(|output| match output.ty() {
            Ty::Vector(Width::Half, _) => Expression::Convert(Width::Single, Box::new(output)),
            _ => output,
        });
        Program { halves: self.halves, slots: self.slots, functions: self.functions, main, outputs: outputs.collect() }
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.random.below(list.len() as u32) as usize]
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.below(one_in) == 0
    }

    fn pointed(&mut self) -> Ty {
        self.pick(&[Ty::Struct, FLOAT, Ty::Vector(Width::Single, 3), FLOAT, Ty::Vector(Width::Single, 4)])
    }

    /// A variable of its own memory, with its parts.
    fn declare(&mut self, ty: Ty) -> Statement {
        let initial = match ty {
            Ty::Struct => Expression::Compose(ty, Vec::new()),
            _ => self.stored(ty, 1),
        };
        let text = if ty == Ty::Struct { format!("s{}", self.names) } else { format!("v{}", self.names) };
        let place = Place { text, ty, base: Base::Memory(self.slots), index: None, has_address: true };
        self.names += 1;
        self.slots += ty.slots();
        self.reveal(&place);
        Statement::Declare(place, initial)
    }

    /// The place and its parts can be named from here on.
    fn reveal(&mut self, place: &Place) {
        self.places.push(place.clone());
        let part = |text: String, ty, offset, index, has_address| Place {
            text: format!("{}{text}", place.text),
            ty,
            base: match place.base {
                Base::Memory(first) => Base::Memory(first + offset),
                Base::Parameter(number, first) => Base::Parameter(number, first + offset),
            },
            index,
            has_address,
        };
        match place.ty {
            Ty::Vector(_, 1) => {}
            Ty::Vector(width, size) => {
                let ty = Ty::Vector(width, 1);
                self.places.push(part(".y".to_owned(), ty, 1, None, false));
                // Of as many components as a mask covers.
                let mask = if size == 3 { 1 } else { size as u32 - 1 };
                self.places.push(part(format!("[lid & {mask}u]"), ty, 0, Some((0, mask, 1)), false));
            }
            Ty::Matrix(columns, rows) => {
                let column = part("[1]".to_owned(), Ty::Vector(Width::Single, rows), rows, None, true);
                let mask = if columns == 3 { 1 } else { columns as u32 - 1 };
                let any = part(
                    format!("[(lid + 1u) & {mask}u]"),
                    Ty::Vector(Width::Single, rows),
                    0,
                    Some((1, mask, rows)),
                    true,
                );
                self.places.extend([column, any]);
            }
            Ty::Struct => {
                let mut offset = 0;
                for (name, ty, count) in MEMBERS {
                    if count == 1 {
                        let member = part(format!(".{name}"), ty, offset, None, true);
                        self.places.push(member);
                    } else {
                        let mask = count as u32 - 1;
                        for by in 0..2 {
                            let index = Some((by, mask, ty.slots()));
                            self.places.push(part(
                                format!(".{name}[(lid + {by}u) & {mask}u]"),
                                ty,
                                offset,
                                index,
                                true,
                            ));
                        }
                        let last = offset + (count - 1) * ty.slots();
                        self.places.push(part(format!(".{name}[{mask}]"), ty, last, None, true));
                    }
                    offset += ty.slots() * count;
                }
            }
        }
    }

    fn statements(&mut self, count: u32, depth: u32) -> Vec<Statement> {
        let visible = self.places.len();
        let mut list = Vec::new();
        for _ in 0..count {
            let statement = match self.random.below(if depth == 0 { 5 } else { 9 }) {
                0 => {
                    let ty = self.pick(&[FLOAT, Ty::Vector(Width::Single, 3), Ty::Vector(Width::Single, 2)]);
                    self.declare(ty)
                }
                5 => Statement::If(
                    1 << self.random.below(5),
                    self.statements(2, depth - 1),
                    self.statements(1, depth - 1),
                ),
                6 if self.loops > 0 => {
                    self.loops -= 1;
                    Statement::Repeat(2 + self.random.below(2), self.statements(2, depth - 1))
                }
                7 | 8 if !self.functions.is_empty() && depth == 2 => self.call(),
                _ => self.assignment(),
            };
            list.push(statement);
        }
        if depth < 2 {
            self.places.truncate(visible);
        }
        list
    }

    fn assignment(&mut self) -> Statement {
        let places: Vec<Place> = self.places.iter().filter(|place| place.ty != Ty::Struct).cloned().collect();
        let place = places[self.random.below(places.len() as u32) as usize].clone();
        let value = self.stored(place.ty, 2);
        let by_pointer = place.has_address && self.chance(3);
        Statement::Assign(place, value, by_pointer)
    }

    fn call(&mut self) -> Statement {
        let number = self.random.below(self.functions.len() as u32) as usize;
        let parameters = self.functions[number].parameters.clone();
        let mut pointed: Vec<Place> = Vec::new();
        for ty in parameters {
            let root = |place: &Place| place.text.split(['.', '[']).next().unwrap_or_default().to_owned();
            // Two pointers into one variable would alias.
            let fitting: Vec<Place> =
                self.places.iter().filter(|place| place.ty == ty && place.has_address).cloned().collect();
            let apart: Vec<Place> =
                fitting.into_iter().filter(|place| pointed.iter().all(|other| root(other) != root(place))).collect();
            if apart.is_empty() {
                return self.assignment();
            }
            pointed.push(apart[self.random.below(apart.len() as u32) as usize].clone());
        }
        let slot = self.slots;
        self.slots += 1;
        let text = format!("r{}", self.names);
        self.names += 1;
        let result = Place { text, ty: FLOAT, base: Base::Memory(slot), index: None, has_address: true };
        self.reveal(&result);
        Statement::Call(result, number, pointed)
    }

    /// A value to keep: bounded.
    fn stored(&mut self, ty: Ty, depth: u32) -> Expression {
        match ty {
            Ty::Matrix(columns, rows) => {
                let columns = (0..columns).map(|_| self.stored(Ty::Vector(Width::Single, rows), depth.min(1)));
                Expression::Compose(ty, columns.collect())
            }
            _ => bounded(self.expression(ty, depth)),
        }
    }

    fn leaf(&mut self, ty: Ty) -> Expression {
        let known: Vec<Place> = self.places.iter().filter(|place| place.ty == ty).cloned().collect();
        if !known.is_empty() && !self.chance(4) {
            return Expression::Load(known[self.random.below(known.len() as u32) as usize].clone());
        }
        match ty {
            Ty::Vector(Width::Single, 1) => {
                if self.chance(3) {
                    Expression::Literal(f64::from(self.random.below(65)) / 8.0 - 4.0, Width::Single)
                } else {
                    Expression::Input(1 + 2 * self.random.below(4), self.random.below(INPUTS))
                }
            }
            Ty::Vector(Width::Half, 1) => {
                let value = self.leaf(FLOAT);
                Expression::Convert(Width::Half, Box::new(bounded(value)))
            }
            Ty::Vector(width, size) => {
                let parts = (0..size).map(|_| self.leaf(Ty::Vector(width, 1)));
                Expression::Compose(ty, parts.collect())
            }
            Ty::Matrix(columns, rows) => {
                let parts = (0..columns).map(|_| self.leaf(Ty::Vector(Width::Single, rows)));
                Expression::Compose(ty, parts.collect())
            }
            Ty::Struct => Expression::Compose(ty, Vec::new()),
        }
    }

    fn boxed(&mut self, ty: Ty, depth: u32) -> Box<Expression> {
        Box::new(self.expression(ty, depth))
    }

    fn expression(&mut self, ty: Ty, depth: u32) -> Expression {
        let Ty::Vector(width, size) = ty else { return self.leaf(ty) };
        if depth == 0 {
            return self.leaf(ty);
        }
        let d = depth - 1;
        match self.random.below(14) {
            0 => self.leaf(ty),
            1 | 2 => {
                let function = self.pick(&UNARY);
                Expression::Apply(function, vec![self.expression(ty, d)])
            }
            3 => {
                let function = self.pick(&TERNARY);
                Expression::Apply(function, (0..3).map(|_| self.expression(ty, d)).collect())
            }
            4 if size > 1 && width == Width::Single => {
                // From another size, in any order.
                let from = 2 + self.random.below(3) as usize;
                let order = (0..size).map(|_| self.random.below(from as u32) as usize).collect();
                Expression::Swizzle(self.boxed(Ty::Vector(width, from), d), order)
            }
            5 if size > 1 => {
                Expression::Compose(ty, (0..size).map(|_| self.expression(Ty::Vector(width, 1), d)).collect())
            }
            6 if width == Width::Single && size > 1 => {
                let other = 2 + self.random.below(2) as usize;
                let (matrix, vector) = (self.leaf(Ty::Matrix(other, size)), self.boxed(Ty::Vector(width, other), d));
                match self.random.below(3) {
                    0 => Expression::Product(Box::new(matrix), vector),
                    1 => {
                        let turned = Expression::Transpose(Box::new(self.leaf(Ty::Matrix(size, other))));
                        Expression::Product(Box::new(turned), vector)
                    }
                    _ => Expression::Product(vector, Box::new(self.leaf(Ty::Matrix(size, other)))),
                }
            }
            7 if width == Width::Single && size == 3 => Expression::Cross(self.boxed(ty, d), self.boxed(ty, d)),
            7 if width == Width::Single && size == 1 => {
                let from = Ty::Vector(width, 2 + self.random.below(3) as usize);
                if self.chance(2) {
                    Expression::Dot(self.boxed(from, d), self.boxed(from, d))
                } else {
                    Expression::Length(self.boxed(from, d))
                }
            }
            8 if size == 1 => Expression::Select(Box::new([0; 4].map(|_| self.expression(ty, d)))),
            9 if self.halves && size <= 2 => {
                let value = match width {
                    Width::Single => self.expression(Ty::Vector(Width::Half, size), d),
                    Width::Half => bounded(self.expression(Ty::Vector(Width::Single, size), d)),
                };
                Expression::Convert(width, Box::new(value))
            }
            10 if width == Width::Single && size == 3 => {
                let matrix = self.leaf(Ty::Matrix(2, 3));
                Expression::Column(Box::new(matrix), self.random.below(2) as usize)
            }
            _ => {
                let function = self.pick(&BINARY);
                Expression::Apply(function, vec![self.expression(ty, d), self.expression(ty, d)])
            }
        }
    }
}

/// Within the bound; of f16 within a smaller one, so that sums and products of two stay finite.
fn bounded(value: Expression) -> Expression {
    let Ty::Vector(width, size) = value.ty() else { return value };
    let bound = |value: f64| {
        let literal = Expression::Literal(value, width);
        if size == 1 { literal } else { Expression::Compose(Ty::Vector(width, size), vec![literal; size]) }
    };
    let most = if width == Width::Half { 8.0 } else { BOUND };
    Expression::Apply(F::Clamp, vec![value, bound(-most), bound(most)])
}

impl Expression {
    fn ty(&self) -> Ty {
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

    fn width(&self) -> Width {
        if let Ty::Vector(width, _) = self.ty() { width } else { Width::Single }
    }

    fn text(&self) -> String {
        let list = |parts: &[Self]| parts.iter().map(Self::text).collect::<Vec<_>>().join(", ");
        match self {
            Self::Input(by, from) => format!("input[(lid * {by}u + {from}u) & {}u]", INPUTS - 1),
            Self::Literal(value, Width::Single) => format!("f32({value:?})"),
            Self::Literal(value, Width::Half) => format!("f16({value:?})"),
            Self::Load(place) => place.text.clone(),
            Self::Apply(function, arguments) => function.text(&self.ty().name(), arguments),
            Self::Compose(ty, parts) => format!("{}({})", ty.name(), list(parts)),
            Self::Swizzle(base, order) => {
                let letters: String = order.iter().map(|&at| ['x', 'y', 'z', 'w'][at]).collect();
                format!("{}.{letters}", base.text())
            }
            Self::Column(matrix, column) => format!("{}[{column}]", matrix.text()),
            Self::Product(left, right) => format!("({} * {})", left.text(), right.text()),
            Self::Transpose(matrix) => format!("transpose({})", matrix.text()),
            Self::Dot(a, b) => format!("dot({}, {})", a.text(), b.text()),
            Self::Length(a) => format!("length({})", a.text()),
            Self::Cross(a, b) => format!("cross({}, {})", a.text(), b.text()),
            Self::Select(parts) => {
                let [a, b, c, d] = &**parts;
                format!("select({}, {}, {} < {})", a.text(), b.text(), c.text(), d.text())
            }
            Self::Convert(_, value) => format!("{}({})", self.ty().name(), value.text()),
        }
    }
}

impl Function {
    fn text(self, ty: &str, arguments: &[Expression]) -> String {
        let texts: Vec<String> = arguments.iter().map(Expression::text).collect();
        let first = &texts[0];
        let second = texts.get(1).cloned().unwrap_or_default();
        let call = |name: &str| format!("{name}({})", texts.join(", "));
        match self {
            Self::Negate => format!("(-({first}))"),
            Self::Abs => call("abs"),
            Self::Floor => call("floor"),
            Self::Trunc => call("trunc"),
            Self::Round => call("round"),
            Self::Fract => call("fract"),
            Self::Sign => call("sign"),
            Self::Saturate => call("saturate"),
            Self::Sqrt => format!("sqrt(abs({first}))"),
            Self::Exp => format!("exp(clamp({first}, {ty}(-4.0), {ty}(4.0)))"),
            Self::Sin => format!("sin(clamp({first}, {ty}(-3.0), {ty}(3.0)))"),
            Self::Add => format!("({first} + {second})"),
            Self::Sub => format!("({first} - {second})"),
            Self::Mul => format!("({first} * {second})"),
            Self::Div => format!("({first} / (abs({second}) + {ty}(1.0)))"),
            Self::Min => call("min"),
            Self::Max => call("max"),
            Self::Step => call("step"),
            // With the bounds the wrong way round, WGSL says nothing definite.
            Self::Clamp => format!("clamp({first}, {second}, max({second}, {}))", texts[2]),
            Self::Mix => call("mix"),
            Self::Fma => call("fma"),
        }
    }

    /// One component.
    fn apply(self, width: Width, x: &[Interval]) -> Interval {
        let a = x[0];
        let b = x.get(1).copied().unwrap_or(a);
        let c = x.get(2).copied().unwrap_or(b);
        let one = Interval::exact(1.0);
        let round = |value: Interval| value.rounded(width, 1.0);
        let within = |value: Interval, most: f64| value.map(|value| value.clamp(-most, most));
        let abs = |value: Interval| {
            let least = if value.low <= 0.0 && value.high >= 0.0 { 0.0 } else { value.low.abs().min(value.high.abs()) };
            Interval { low: least, high: value.low.abs().max(value.high.abs()) }
        };
        match self {
            Self::Negate => -a,
            Self::Abs => abs(a),
            Self::Floor => a.map(f64::floor),
            Self::Trunc => a.map(f64::trunc),
            Self::Round => a.map(f64::round_ties_even),
            Self::Fract if a.low.floor() == a.high.floor() => {
                // Of a tiny negative number it may be rounded up to 1.
                round(a.map(|value| value - value.floor()))
            }
            Self::Fract => Interval { low: 0.0, high: 1.0 },
            Self::Sign => a.map(|value| if value == 0.0 { 0.0 } else { value.signum() }),
            Self::Saturate => a.map(|value| value.clamp(0.0, 1.0)),
            // 1 / inverseSqrt(x), whose parts are off by 2 and 2.5 ULP.
            Self::Sqrt => abs(a).map(f64::sqrt).rounded(width, 5.0),
            Self::Exp => {
                let exponent = within(a, 4.0);
                let least = if width == Width::Half { 1.0 } else { 3.0 };
                exponent.map(f64::exp).rounded(width, least + 2.0 * exponent.low.abs().max(exponent.high.abs()))
            }
            Self::Sin => {
                let angle = within(a, 3.0);
                let mut ends = vec![angle.low.sin(), angle.high.sin()];
                let quarter = std::f64::consts::FRAC_PI_2;
                ends.extend(
                    [-quarter, quarter].iter().filter(|&&top| angle.low < top && top < angle.high).map(|top| top.sin()),
                );
                let error = if width == Width::Half { 2.0_f64.powi(-7) } else { 2.0_f64.powi(-11) };
                Interval::of(ends).widened(error)
            }
            Self::Add => round(a + b),
            Self::Sub => round(a + -b),
            Self::Mul => round(a * b),
            Self::Div => {
                let divisor = round(abs(b) + one);
                (a * Interval { low: 1.0 / divisor.high, high: 1.0 / divisor.low }).rounded(width, 2.5)
            }
            Self::Min => Interval { low: a.low.min(b.low), high: a.high.min(b.high) },
            Self::Max => Interval { low: a.low.max(b.low), high: a.high.max(b.high) },
            Self::Step => {
                Interval { low: if a.high <= b.low { 1.0 } else { 0.0 }, high: if a.low <= b.high { 1.0 } else { 0.0 } }
            }
            Self::Clamp => {
                let top = Self::Max.apply(width, &[b, c]);
                Self::Min.apply(width, &[Self::Max.apply(width, &[a, b]), top])
            }
            // a + (b - a) * c, or a * (1 - c) + b * c.
            Self::Mix => {
                let by_difference = round(a + round(round(b + -a) * c));
                let by_parts = round(round(a * round(one + -c)) + round(b * c));
                Interval::of([by_difference.low, by_parts.low, by_difference.high, by_parts.high])
            }
            Self::Fma => round(round(a * b) + c),
        }
    }
}

struct Machine<'a> {
    memory: Vec<Interval>,
    lane: u32,
    input: &'a [f32],
}

impl Machine<'_> {
    fn first(&self, place: &Place, pointers: &[usize]) -> usize {
        let base = match place.base {
            Base::Memory(first) => first,
            Base::Parameter(number, offset) => pointers[number] + offset,
        };
        base + place.index.map_or(0, |(by, mask, stride)| ((self.lane + by) & mask) as usize * stride)
    }

    fn store(&mut self, place: &Place, pointers: &[usize], values: &[Interval]) {
        let first = self.first(place, pointers);
        self.memory[first..first + values.len()].copy_from_slice(values);
    }

    fn block(&mut self, statements: &[Statement], pointers: &[usize], program: &Program) {
        for statement in statements {
            match statement {
                Statement::Declare(place, value) | Statement::Assign(place, value, _) => {
                    let values = self.value(value, pointers);
                    self.store(place, pointers, &values);
                }
                Statement::If(bits, then, otherwise) => {
                    let chosen = if self.lane & bits == 0 { then } else { otherwise };
                    self.block(chosen, pointers, program);
                }
                Statement::Repeat(count, body) => (0..*count).for_each(|_| self.block(body, pointers, program)),
                Statement::Call(result, number, pointed) => {
                    let callee = &program.functions[*number];
                    let inner: Vec<usize> = pointed.iter().map(|place| self.first(place, pointers)).collect();
                    self.block(&callee.body, &inner, program);
                    let values = self.value(&callee.result, &inner);
                    self.store(result, pointers, &values);
                }
            }
        }
    }

    fn value(&self, expression: &Expression, pointers: &[usize]) -> Vec<Interval> {
        let of = |expression: &Expression| self.value(expression, pointers);
        let width = expression.width();
        let sum = |terms: &mut dyn Iterator<Item = Interval>| {
            let first = terms.next().unwrap_or(Interval::exact(0.0));
            // In any order, so that each partial sum may be rounded at the size of the largest.
            let terms: Vec<Interval> = std::iter::once(first).chain(terms).collect();
            let most: f64 = terms.iter().map(|term| term.low.abs().max(term.high.abs())).sum();
            let exact = terms.iter().fold(Interval::exact(0.0), |sum, term| sum + *term);
            exact.widened(terms.len() as f64 * ulp32(most))
        };
        let dot = |a: &[Interval], b: &[Interval]| {
            sum(&mut a.iter().zip(b).map(|(a, b)| (*a * *b).rounded(Width::Single, 1.0)))
        };
        match expression {
            Expression::Input(by, from) => {
                let at = (self.lane * by + from) % INPUTS;
                vec![Interval::exact(self.input[at as usize].into())]
            }
            Expression::Literal(value, _) => vec![Interval::exact(*value)],
            Expression::Load(place) => {
                let first = self.first(place, pointers);
                self.memory[first..first + place.ty.slots()].to_vec()
            }
            Expression::Apply(function, arguments) => {
                let arguments: Vec<Vec<Interval>> = arguments.iter().map(of).collect();
                let component = |at: usize| {
                    let component: Vec<Interval> = arguments.iter().map(|argument| argument[at]).collect();
                    function.apply(width, &component)
                };
                (0..arguments[0].len()).map(component).collect()
            }
            Expression::Compose(ty, parts) if parts.is_empty() => vec![Interval::exact(0.0); ty.slots()],
            Expression::Compose(_, parts) => parts.iter().flat_map(of).collect(),
            Expression::Swizzle(base, order) => {
                let base = of(base);
                order.iter().map(|&at| base[at]).collect()
            }
            Expression::Column(matrix, column) => {
                let rows = expression.ty().slots();
                of(matrix)[column * rows..][..rows].to_vec()
            }
            Expression::Product(left, right) => match (left.ty(), right.ty()) {
                (Ty::Matrix(_, rows), _) => {
                    let (matrix, vector) = (of(left), of(right));
                    let row = |row: usize| matrix.iter().skip(row).step_by(rows).copied().collect::<Vec<_>>();
                    (0..rows).map(|at| dot(&row(at), &vector)).collect()
                }
                _ => {
                    let (vector, matrix) = (of(left), of(right));
                    matrix.chunks(vector.len()).map(|column| dot(&vector, column)).collect()
                }
            },
            Expression::Transpose(matrix) => {
                let (cells, rows) = (of(matrix), if let Ty::Matrix(_, rows) = matrix.ty() { rows } else { 1 });
                (0..rows).flat_map(|row| cells.iter().skip(row).step_by(rows).copied().collect::<Vec<_>>()).collect()
            }
            Expression::Dot(a, b) => vec![dot(&of(a), &of(b))],
            Expression::Length(a) => {
                let a = of(a);
                let squares = dot(&a, &a);
                let squares = Interval { low: squares.low.max(0.0), high: squares.high };
                vec![squares.map(f64::sqrt).rounded(Width::Single, 5.0)]
            }
            Expression::Cross(a, b) => {
                let (a, b) = (of(a), of(b));
                let minor = |i: usize, j: usize| dot(&[a[i], -a[j]], &[b[j], b[i]]);
                vec![minor(1, 2), minor(2, 0), minor(0, 1)]
            }
            Expression::Select(parts) => {
                let [a, b, c, d] = parts.each_ref().map(|part| of(part)[0]);
                let (never, always) = (c.low >= d.high, c.high < d.low);
                vec![match (never, always) {
                    (true, _) => a,
                    (_, true) => b,
                    _ => Interval::of([a.low, a.high, b.low, b.high]),
                }]
            }
            Expression::Convert(Width::Single, value) => of(value),
            Expression::Convert(Width::Half, value) => {
                of(value).into_iter().map(|value| value.rounded(Width::Half, 1.0)).collect()
            }
        }
    }
}

impl Program {
    fn wgsl(&self) -> String {
        let mut text = String::new();
        if self.halves {
            text.push_str("enable f16;\n");
        }
        text.push_str(STRUCTS);
        for (number, function) in self.functions.iter().enumerate() {
            let parameters = function.parameters.iter().enumerate();
            let parameters: Vec<String> =
                parameters.map(|(at, ty)| format!("p{at}: ptr<function, {}>", ty.name())).collect();
            let _ = writeln!(text, "fn f{number}(lid: u32, {}) -> f32 {{", parameters.join(", "));
            write_block(&mut text, &function.body, 1);
            let _ = writeln!(text, "    return {};\n}}", function.result.text());
        }
        let _ =
            writeln!(text, "@compute @workgroup_size({LANES})\nfn main(@builtin(local_invocation_index) lid: u32) {{");
        write_block(&mut text, &self.main, 1);
        for (at, output) in self.outputs.iter().enumerate() {
            let _ = writeln!(text, "    out[lid * {}u + {at}u] = {};", self.outputs.len(), output.text());
        }
        text.push_str("}\n");
        text
    }
}

fn write_block(text: &mut String, statements: &[Statement], depth: usize) {
    let indent = "    ".repeat(depth);
    for statement in statements {
        let _ = match statement {
            Statement::Declare(place, value) => {
                writeln!(text, "{indent}var {}: {} = {};", place.text, place.ty.name(), value.text())
            }
            Statement::Assign(place, value, false) => writeln!(text, "{indent}{} = {};", place.text, value.text()),
            Statement::Assign(place, value, true) => {
                writeln!(text, "{indent}{{ let p = &{}; *p = {}; }}", place.text, value.text())
            }
            Statement::If(bits, then, otherwise) => {
                let _ = writeln!(text, "{indent}if (lid & {bits}u) == 0u {{");
                write_block(text, then, depth + 1);
                let _ = writeln!(text, "{indent}}} else {{");
                write_block(text, otherwise, depth + 1);
                writeln!(text, "{indent}}}")
            }
            Statement::Repeat(count, body) => {
                let _ = writeln!(text, "{indent}for (var i = 0; i < {count}; i++) {{");
                write_block(text, body, depth + 1);
                writeln!(text, "{indent}}}")
            }
            Statement::Call(result, number, pointed) => {
                let pointers: Vec<String> = pointed.iter().map(|place| format!("&{}", place.text)).collect();
                writeln!(text, "{indent}var {} = f{number}(lid, {});", result.text, pointers.join(", "))
            }
        };
    }
}
