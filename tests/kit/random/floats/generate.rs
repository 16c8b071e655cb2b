//! Programs from random numbers.

use crate::inputs::Random;

use super::program::Function as F;
use super::program::*;
use super::{BOUND, INPUTS};

const UNARY: [Function; 11] =
    [F::Negate, F::Abs, F::Floor, F::Trunc, F::Round, F::Fract, F::Sign, F::Saturate, F::Sqrt, F::Exp, F::Sin];
const BINARY: [Function; 8] = [F::Add, F::Sub, F::Mul, F::Div, F::Min, F::Max, F::Step, F::Mul];
const TERNARY: [Function; 3] = [F::Clamp, F::Mix, F::Fma];

pub(super) struct Generator<'a> {
    pub(super) random: &'a mut Random,
    pub(super) halves: bool,
    pub(super) slots: usize,
    pub(super) names: usize,
    /// The places that can be read and written here.
    pub(super) places: Vec<Place>,
    pub(super) functions: Vec<Callee>,
    pub(super) loops: u32,
}

impl<'a> Generator<'a> {
    pub(super) fn new(random: &'a mut Random, halves: bool) -> Self {
        Self { random, halves, slots: 0, names: 0, places: Vec::new(), functions: Vec::new(), loops: 2 }
    }

    pub(super) fn program(mut self) -> Program {
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

    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.random.below(list.len() as u32) as usize]
    }

    pub(super) fn chance(&mut self, one_in: u32) -> bool {
        self.random.below(one_in) == 0
    }

    pub(super) fn pointed(&mut self) -> Ty {
        self.pick(&[Ty::Struct, FLOAT, Ty::Vector(Width::Single, 3), FLOAT, Ty::Vector(Width::Single, 4)])
    }

    /// A variable of its own memory, with its parts.
    pub(super) fn declare(&mut self, ty: Ty) -> Statement {
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
    pub(super) fn reveal(&mut self, place: &Place) {
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

    pub(super) fn statements(&mut self, count: u32, depth: u32) -> Vec<Statement> {
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

    pub(super) fn assignment(&mut self) -> Statement {
        let places: Vec<Place> = self.places.iter().filter(|place| place.ty != Ty::Struct).cloned().collect();
        let place = places[self.random.below(places.len() as u32) as usize].clone();
        let value = self.stored(place.ty, 2);
        let by_pointer = place.has_address && self.chance(3);
        Statement::Assign(place, value, by_pointer)
    }

    pub(super) fn call(&mut self) -> Statement {
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
    pub(super) fn stored(&mut self, ty: Ty, depth: u32) -> Expression {
        match ty {
            Ty::Matrix(columns, rows) => {
                let columns = (0..columns).map(|_| self.stored(Ty::Vector(Width::Single, rows), depth.min(1)));
                Expression::Compose(ty, columns.collect())
            }
            _ => bounded(self.expression(ty, depth)),
        }
    }

    pub(super) fn leaf(&mut self, ty: Ty) -> Expression {
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

    pub(super) fn boxed(&mut self, ty: Ty, depth: u32) -> Box<Expression> {
        Box::new(self.expression(ty, depth))
    }

    pub(super) fn expression(&mut self, ty: Ty, depth: u32) -> Expression {
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
pub(super) fn bounded(value: Expression) -> Expression {
    let Ty::Vector(width, size) = value.ty() else { return value };
    let bound = |value: f64| {
        let literal = Expression::Literal(value, width);
        if size == 1 { literal } else { Expression::Compose(Ty::Vector(width, size), vec![literal; size]) }
    };
    let most = if width == Width::Half { 8.0 } else { BOUND };
    Expression::Apply(F::Clamp, vec![value, bound(-most), bound(most)])
}
