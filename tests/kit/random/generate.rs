//! Programs from a seed.

use super::program::{
    Array, Binary, Compare, Expression, Function, INPUTS, PARAMETERS, Phase, Pick, Place, Program, Statement, Type,
    Unary,
};
use crate::inputs::Random;

/// The program of a seed: always the same one.
pub fn program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let workgroup_size = [1, 7, 8, 32, 33, 64][random.below(6) as usize];
    let workgroups = 1 + random.below(3);
    let element = |k: u32| if k & 1 == 0 { Type::U32 } else { Type::I32 };
    let mut array = |number, private| Array {
        number,
        len: [4, 5, 8, 3][random.below(4) as usize],
        element: element(random.below(2)),
        private,
    };
    let private_arrays: Vec<Array> = (0..2).map(|i| array(i, true)).collect();
    let mut functions: Vec<Function> = Vec::new();
    let mut function_arrays: Vec<Vec<Array>> = (0..3).map(|i| (0..i % 2).map(|k| array(k, false)).collect()).collect();
    let arrays: Vec<Array> = (0..1).map(|i| array(i, false)).collect();
    for number in 0..random.below(4) as usize {
        let arrays = function_arrays.remove(0);
        let mut scope = Scope::new(&mut random, [private_arrays.as_slice(), &arrays].concat());
        scope.functions = number;
        scope.in_function = true;
        scope.variables = PARAMETERS.iter().copied().enumerate().map(|(i, ty)| (i, ty, true)).collect();
        scope.next = 2;
        scope.loops_left = 1;
        scope.budget = 8;
        scope.calls_left = 1;
        let mut body = scope.declarations(2);
        body.extend(scope.statements(5, 2));
        body.push(Statement::Return(Some(scope.expression(Type::U32, 2))));
        functions.push(Function { arrays, body });
    }
    let mut scope = Scope::new(&mut random, [private_arrays.as_slice(), &arrays].concat());
    scope.functions = functions.len();
    let mut variables = Vec::new();
    for ty in [Type::U32, Type::I32, Type::U32, Type::I32, Type::Bool, Type::U32] {
        let initial = scope.expression(ty, 1);
        variables.push((scope.declare(ty, true), ty, initial));
    }
    let mut phases = Vec::new();
    for _ in 0..2 + scope.random.below(3) {
        phases.push(scope.phase(2, workgroup_size));
    }
    phases.push(scope.alone(6));
    let mut outputs = scope.dump(Type::U32);
    outputs.push(scope.expression(Type::U32, 2));
    let mut signed_outputs = scope.dump(Type::I32);
    signed_outputs.push(scope.expression(Type::I32, 2));
    Program {
        seed,
        workgroup_size,
        workgroups,
        private_arrays,
        functions,
        arrays,
        variables,
        phases,
        outputs,
        signed_outputs,
    }
}

/// The read-only input and the parameters of a program.
pub fn inputs(seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut random = Random::new(seed ^ 0x5EED);
    let input = (0..INPUTS).map(|k| random.u32() >> (k % 32)).collect();
    (input, (0..4).map(|_| random.below(1000)).collect())
}

/// The names in scope at some place of a program.
struct Scope<'a> {
    random: &'a mut Random,
    /// Number, type, and whether it may be assigned.
    variables: Vec<(usize, Type, bool)>,
    arrays: Vec<Array>,
    next: usize,
    /// Functions that may be called.
    functions: usize,
    in_function: bool,
    loops_left: u32,
    /// Statements and calls that may still come: a driver inlines every call, and compiles for a long time.
    budget: u32,
    calls_left: u32,
    /// True where `break` and `continue` are allowed.
    can_break: bool,
    can_continue: bool,
}

impl<'a> Scope<'a> {
    fn new(random: &'a mut Random, arrays: Vec<Array>) -> Self {
        Self {
            random,
            variables: Vec::new(),
            arrays,
            next: 0,
            functions: 0,
            in_function: false,
            loops_left: 2,
            budget: 34,
            calls_left: 3,
            can_break: false,
            can_continue: false,
        }
    }

    fn declare(&mut self, ty: Type, mutable: bool) -> usize {
        let variable = self.next;
        self.next += 1;
        self.variables.push((variable, ty, mutable));
        variable
    }

    fn declarations(&mut self, n: u32) -> Vec<Statement> {
        (0..n)
            .map(|_| {
                let ty = self.value_type();
                let initial = self.expression(ty, 1);
                Statement::Declare { variable: self.declare(ty, true), ty, initial: Some(initial) }
            })
            .collect()
    }

    fn value_type(&mut self) -> Type {
        [Type::U32, Type::I32][self.random.below(2) as usize]
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.below(one_in) == 0
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.random.below(list.len() as u32) as usize]
    }

    /// Every variable and one element of every array, so that nothing computed goes unseen.
    fn dump(&mut self, ty: Type) -> Vec<Expression> {
        let variables = self.variables.iter().filter(|v| v.1 == ty).map(|v| Expression::Load(Place::Variable(v.0)));
        let elements = self.arrays.iter().filter(|a| a.element == ty).flat_map(|&a| {
            let sum = (0..a.len).map(|k| {
                // The index must not be a constant: shaders may refuse those out of range, and we mask anyway.
                let index = Expression::Binary(
                    Binary::Add,
                    Type::U32,
                    Box::new(Expression::LocalIndex),
                    Box::new(Expression::Literal(Type::U32, k)),
                );
                Expression::Load(Place::Element(a, Box::new(index)))
            });
            sum.reduce(|x, y| Expression::Binary(Binary::Xor, ty, Box::new(x), Box::new(y)))
        });
        variables.chain(elements).collect()
    }

    fn literal(&mut self, ty: Type) -> Expression {
        let bits = match self.random.below(4) {
            0 => self.random.below(8),
            1 => self.pick(&crate::inputs::EDGES),
            2 => self.random.below(256).wrapping_neg(),
            _ => self.random.u32() >> self.random.below(32),
        };
        Expression::Literal(ty, if ty == Type::Bool { bits & 1 } else { bits })
    }

    fn leaf(&mut self, ty: Type) -> Expression {
        let known: Vec<usize> = self.variables.iter().filter(|v| v.1 == ty).map(|v| v.0).collect();
        if !known.is_empty() && !self.chance(4) {
            return Expression::Load(Place::Variable(self.pick(&known)));
        }
        let source = match self.random.below(4) {
            0 => Expression::Parameter(self.random.below(4)),
            1 if !self.in_function => Expression::LocalIndex,
            2 if !self.in_function => Expression::GlobalIndex,
            _ => {
                let index =
                    if self.in_function { Expression::Load(Place::Variable(1)) } else { Expression::GlobalIndex };
                Expression::Input(Box::new(index))
            }
        };
        match ty {
            Type::U32 => source,
            Type::I32 => Expression::Convert(Type::I32, Box::new(source)),
            Type::Bool => {
                let half = Box::new(Expression::Literal(Type::U32, 500));
                Expression::Compare(Compare::Less, Type::U32, Box::new(source), half)
            }
        }
    }

    fn boxed(&mut self, ty: Type, depth: u32) -> Box<Expression> {
        Box::new(self.expression(ty, depth))
    }

    /// An expression that is not constant.
    fn expression(&mut self, ty: Type, depth: u32) -> Expression {
        if depth == 0 {
            return self.leaf(ty);
        }
        let d = depth - 1;
        if ty == Type::Bool {
            return match self.random.below(6) {
                0 => Expression::And(self.boxed(ty, d), self.boxed(ty, d)),
                1 => Expression::Or(self.boxed(ty, d), self.boxed(ty, d)),
                2 => Expression::Not(self.boxed(ty, d)),
                _ => {
                    let operands = self.value_type();
                    use Compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
                    let op = self.pick(&[Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual]);
                    let right = if self.chance(2) { self.literal(operands) } else { self.expression(operands, d) };
                    Expression::Compare(op, operands, self.boxed(operands, d), Box::new(right))
                }
            };
        }
        match self.random.below(16) {
            0 | 1 => self.leaf(ty),
            2 => Expression::Select(self.boxed(ty, d), self.boxed(ty, d), self.boxed(Type::Bool, d)),
            3 => {
                let from = self.pick(&[Type::U32, Type::I32, Type::Bool]);
                let value = self.boxed(from, d);
                Expression::Convert(ty, value)
            }
            4 => {
                use Unary::*;
                let mut list = vec![
                    Complement,
                    Abs,
                    CountOneBits,
                    CountLeadingZeros,
                    CountTrailingZeros,
                    ReverseBits,
                    FirstLeadingBit,
                    FirstTrailingBit,
                ];
                if ty == Type::I32 {
                    list.extend([Negate, Sign, Negate]);
                }
                Expression::Unary(self.pick(&list), ty, self.boxed(ty, d))
            }
            5 => {
                let arrays: Vec<Array> = self.arrays.iter().copied().filter(|a| a.element == ty).collect();
                if arrays.is_empty() {
                    return self.leaf(ty);
                }
                let array = self.pick(&arrays);
                Expression::Load(Place::Element(array, self.boxed(Type::U32, d)))
            }
            6 if self.chance(3) => {
                let (offset, count) = (self.boxed(Type::U32, 0), self.boxed(Type::U32, 0));
                Expression::ExtractBits(ty, self.boxed(ty, d), offset, count)
            }
            7 if self.chance(3) => {
                // With the bounds the wrong way round WGSL says nothing definite: the upper one is at least the lower.
                let low = self.leaf(ty);
                let high = Expression::Binary(Binary::Max, ty, Box::new(low.clone()), self.boxed(ty, 0));
                Expression::Clamp(ty, self.boxed(ty, d), Box::new(low), Box::new(high))
            }
            6 if self.in_function && ty == Type::I32 => Expression::Load(Place::Pointer),
            _ => {
                let op = self.operation();
                Expression::Binary(op, ty, self.boxed(ty, d), self.right(op, ty, d))
            }
        }
    }

    fn operation(&mut self) -> Binary {
        use Binary::*;
        self.pick(&[Add, Sub, Mul, Div, Rem, And, Or, Xor, Shl, Shr, Min, Max, Add, Sub, Mul, Xor])
    }

    /// A right operand: constants that WGSL would refuse (a zero divisor, a shift of 32) are changed.
    fn right(&mut self, op: Binary, ty: Type, depth: u32) -> Box<Expression> {
        let shift = matches!(op, Binary::Shl | Binary::Shr);
        let ty = if shift { Type::U32 } else { ty };
        if !self.chance(3) {
            return self.boxed(ty, depth);
        }
        let mut literal = self.literal(ty);
        if let Expression::Literal(_, bits) = &mut literal {
            match op {
                Binary::Shl | Binary::Shr => *bits &= 31,
                Binary::Div | Binary::Rem if *bits == 0 => *bits = 7,
                _ => {}
            }
        }
        Box::new(literal)
    }

    fn place(&mut self, ty: Type) -> Option<Place> {
        if self.in_function && ty == Type::I32 && self.chance(4) {
            return Some(Place::Pointer);
        }
        let arrays: Vec<Array> = self.arrays.iter().copied().filter(|a| a.element == ty).collect();
        if !arrays.is_empty() && self.chance(3) {
            let array = self.pick(&arrays);
            return Some(Place::Element(array, self.boxed(Type::U32, 1)));
        }
        let open: Vec<usize> = self.variables.iter().filter(|v| v.1 == ty && v.2).map(|v| v.0).collect();
        (!open.is_empty()).then(|| Place::Variable(self.pick(&open)))
    }

    /// About `n` statements, with blocks nested up to `depth` deep. What is declared inside goes out of scope.
    fn statements(&mut self, n: u32, depth: u32) -> Vec<Statement> {
        let visible = self.variables.len();
        let mut list = Vec::new();
        for _ in 0..n {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            let statement = self.statement(depth);
            list.push(statement);
        }
        self.variables.truncate(visible);
        list
    }

    /// A block that may end by leaving the loop, the switch or the function.
    fn branch(&mut self, n: u32, depth: u32) -> Vec<Statement> {
        let visible = self.variables.len();
        let mut list = self.statements(n, depth);
        match self.random.below(10) {
            0 if self.can_break => list.push(Statement::Break),
            1 if self.can_continue => list.push(Statement::Continue),
            2 if self.in_function => list.push(Statement::Return(Some(self.expression(Type::U32, 1)))),
            _ => {}
        }
        self.variables.truncate(visible);
        list
    }

    fn statement(&mut self, depth: u32) -> Statement {
        let kind = self.random.below(if depth == 0 { 7 } else { 14 });
        match kind {
            0 => {
                let ty = self.pick(&[Type::U32, Type::I32, Type::Bool]);
                let initial = if self.chance(5) { None } else { Some(self.expression(ty, 2)) };
                Statement::Declare { variable: self.declare(ty, true), ty, initial }
            }
            1 if self.functions > 0 && self.calls_left > 0 => self.call(),
            2 if self.chance(2) && !self.in_function => {
                Statement::Atomic(self.random.below(4), self.expression(Type::U32, 1))
            }
            7..=9 => {
                let condition = self.expression(Type::Bool, 2);
                let then = self.branch(2, depth - 1);
                let otherwise = if self.chance(2) { self.branch(2, depth - 1) } else { Vec::new() };
                Statement::If(condition, then, otherwise)
            }
            10 | 11 if self.loops_left > 0 => self.repetition(depth),
            12 => self.switch(depth),
            _ => self.assignment(),
        }
    }

    fn assignment(&mut self) -> Statement {
        let ty = self.pick(&[Type::U32, Type::I32, Type::U32, Type::I32, Type::Bool]);
        // There is always a u32 to assign to, if not a value of the other types.
        let (ty, place) = match self.place(ty) {
            Some(place) => (ty, place),
            None => match self.place(Type::U32) {
                Some(place) => (Type::U32, place),
                None => return Statement::Atomic(3, Expression::Parameter(0)),
            },
        };
        if ty != Type::Bool && self.chance(3) {
            let op = self.operation();
            if !matches!(op, Binary::Min | Binary::Max) {
                return Statement::Assign(place, Some((op, ty)), *self.right(op, ty, 1));
            }
        }
        let value = if self.chance(8) { self.literal(ty) } else { self.expression(ty, 3) };
        Statement::Assign(place, None, value)
    }

    fn call(&mut self) -> Statement {
        let pointed: Vec<usize> = self.variables.iter().filter(|v| v.1 == Type::I32 && v.2).map(|v| v.0).collect();
        // Not an element: its index would have to be evaluated before or after the call.
        let targets: Vec<usize> = self.variables.iter().filter(|v| v.1 == Type::U32 && v.2).map(|v| v.0).collect();
        if pointed.is_empty() || targets.is_empty() {
            return self.assignment();
        }
        self.calls_left -= 1;
        Statement::Call {
            target: Place::Variable(self.pick(&targets)),
            function: self.random.below(self.functions as u32) as usize,
            arguments: [self.expression(Type::I32, 1), self.expression(Type::U32, 1)],
            pointed: self.pick(&pointed),
        }
    }

    fn repetition(&mut self, depth: u32) -> Statement {
        self.loops_left -= 1;
        let before = (self.can_break, self.can_continue, self.variables.len());
        let statement = if self.chance(2) {
            let bound = self.expression(Type::U32, 1);
            let counter = self.declare(Type::U32, false);
            (self.can_break, self.can_continue) = (true, true);
            Statement::For { counter, bound, body: self.branch(3, depth - 1) }
        } else {
            let counter = self.declare(Type::U32, false);
            // `continuing` sees nothing of the body, and nothing may leave from it: only assignments.
            let continuing: Vec<Statement> = (0..self.random.below(3)).map(|_| self.assignment()).collect();
            let break_if = if self.chance(2) { Some(self.expression(Type::Bool, 1)) } else { None };
            (self.can_break, self.can_continue) = (true, true);
            let limit = 1 + self.random.below(6);
            Statement::Loop { counter, limit, body: self.branch(3, depth - 1), continuing, break_if }
        };
        (self.can_break, self.can_continue) = (before.0, before.1);
        // The counter of a `loop` stays visible behind it, as it is in the text.
        if let Statement::For { .. } = statement {
            self.variables.truncate(before.2);
        }
        self.loops_left += 1;
        statement
    }

    fn switch(&mut self, depth: u32) -> Statement {
        let ty = self.value_type();
        let n = 2 + self.random.below(3);
        let selector = {
            // A small range, so that clauses are hit.
            let value = self.boxed(ty, 1);
            Expression::Binary(Binary::And, ty, value, Box::new(Expression::Literal(ty, 7)))
        };
        let before = self.can_break;
        self.can_break = true;
        let mut free: Vec<u32> = (0..8).collect();
        let default_at = self.random.below(n);
        let mut clauses = Vec::new();
        for k in 0..n {
            let mut selectors = Vec::new();
            if k != default_at {
                for _ in 0..1 + self.random.below(2) {
                    let at = self.random.below(free.len() as u32) as usize;
                    selectors.push(free.remove(at));
                }
            }
            let body = self.branch(2, depth - 1);
            clauses.push((selectors, body));
        }
        self.can_break = before;
        Statement::Switch(ty, selector, clauses)
    }

    fn alone(&mut self, n: u32) -> Phase {
        Phase::Alone(self.statements(n, 3))
    }

    /// A condition or bound that is the same for the whole workgroup.
    fn uniform(&mut self) -> Expression {
        let parameter = Expression::Parameter(self.random.below(4));
        let op = self.pick(&[Binary::Add, Binary::Xor, Binary::Mul, Binary::Shr]);
        let literal = Expression::Literal(Type::U32, self.random.below(9));
        Expression::Binary(op, Type::U32, Box::new(parameter), Box::new(literal))
    }

    fn phase(&mut self, depth: u32, size: u32) -> Phase {
        let targets: Vec<usize> = self.variables.iter().filter(|v| v.1 == Type::U32 && v.2).map(|v| v.0).collect();
        let target = self.pick(&targets);
        match self.random.below(if depth == 0 { 6 } else { 8 }) {
            0 => {
                let pick = if self.chance(2) { Pick::Mirror } else { Pick::Rotate(self.random.below(size)) };
                Phase::Exchange { value: self.expression(Type::U32, 2), target, pick }
            }
            1 => Phase::Broadcast { leader: self.random.below(size), value: self.expression(Type::U32, 1), target },
            2 => Phase::Sum { value: self.expression(Type::U32, 1), target },
            6 => {
                let bound = self.uniform();
                let visible = self.variables.len();
                let counter = self.declare(Type::U32, false);
                let body = (0..2).map(|_| self.phase(depth - 1, size)).collect();
                self.variables.truncate(visible);
                Phase::Repeat { counter, bound, body }
            }
            7 => {
                let (bit, zero) =
                    (Box::new(Expression::Literal(Type::U32, 1)), Box::new(Expression::Literal(Type::U32, 0)));
                let low = Expression::Binary(Binary::And, Type::U32, Box::new(self.uniform()), bit);
                let condition = Expression::Compare(Compare::Equal, Type::U32, Box::new(low), zero);
                let then = (0..2).map(|_| self.phase(depth - 1, size)).collect();
                let otherwise = vec![self.phase(depth - 1, size)];
                Phase::Choose { condition, then, otherwise }
            }
            _ => self.alone(4),
        }
    }
}
