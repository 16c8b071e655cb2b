//! Counts the iterations of all loops of an invocation together, if the text shows the number.
//!
//! Some drivers silently end a loop after some 65,535 rounds, counted over all loops of an invocation. A loop is bounded here when it is
//! the usual counting one: one variable that begins at constants, is compared with a constant at the loop's start, and is changed by a
//! constant in its continuing block alone. Everything else counts as unbounded.

use naga::{BinaryOperator, Block, Expression, Function, Handle, Literal, LocalVariable, Module, Statement};

use crate::flow::blocks;

/// The rounds that are safe everywhere.
pub(super) const SMALL: u64 = 1 << 14;

/// The most rounds of an entry point's loops together; `None` where the text does not show a bound.
pub(super) fn of_entry_point(module: &Module, entry_point: usize) -> Option<u64> {
    // naga declares functions before their callers, so that one pass in order knows all callees.
    let mut known: Vec<Option<u64>> = Vec::new();
    for (_, function) in module.functions.iter() {
        let rounds = Counter { module, function, known: &known }.block(&function.body);
        known.push(rounds);
    }
    let function = &module.entry_points.get(entry_point)?.function;
    Counter { module, function, known: &known }.block(&function.body)
}

/// The rounds assumed for a loop whose text shows no bound, when operations are estimated.
const USUAL_ROUNDS: u64 = 256;

/// An estimate of the operations of one invocation of an entry point.
pub(super) fn operations(module: &Module, entry_point: usize) -> u64 {
    let mut known: Vec<u64> = Vec::new();
    for (_, function) in module.functions.iter() {
        let operations = Counter { module, function, known: &[] }.operations(&function.body, &known);
        known.push(operations);
    }
    let Some(entry) = module.entry_points.get(entry_point) else { return 0 };
    Counter { module, function: &entry.function, known: &[] }.operations(&entry.function.body, &known)
}

/// The statements of an entry point once every call is written out, as the compilers of drivers do.
pub(super) fn written_out(module: &Module, entry_point: usize) -> u64 {
    let mut known: Vec<u64> = Vec::new();
    for (_, function) in module.functions.iter() {
        let statements = statements(&function.body, &known);
        known.push(statements);
    }
    module.entry_points.get(entry_point).map_or(0, |entry| statements(&entry.function.body, &known))
}

/// The same for a block, where those of the functions before this one are known.
fn statements(block: &Block, known: &[u64]) -> u64 {
    let each = block.iter().map(|statement| match statement {
        Statement::Call { function, .. } => known.get(function.index()).copied().unwrap_or(0).saturating_add(1),
        other => blocks(other).into_iter().map(|block| statements(block, known)).fold(1, u64::saturating_add),
    });
    each.fold(0, u64::saturating_add)
}

struct Counter<'a> {
    module: &'a Module,
    function: &'a Function,
    /// The rounds of each function, in the order of the arena.
    known: &'a [Option<u64>],
}

impl Counter<'_> {
    fn block(&self, block: &Block) -> Option<u64> {
        block.iter().try_fold(0_u64, |sum, statement| Some(sum.saturating_add(self.statement(statement)?)))
    }

    fn statement(&self, statement: &Statement) -> Option<u64> {
        match statement {
            Statement::Block(block) => self.block(block),
            Statement::If { accept, reject, .. } => Some(self.block(accept)?.max(self.block(reject)?)),
            Statement::Switch { cases, .. } => {
                cases.iter().try_fold(0_u64, |sum, case| Some(sum.saturating_add(self.block(&case.body)?)))
            }
            Statement::Loop { body, continuing, .. } => {
                let inside = self.block(body)?.saturating_add(self.block(continuing)?);
                Some(self.bound(body, continuing)?.saturating_mul(inside.saturating_add(1)))
            }
            Statement::Call { function, .. } => *self.known.get(function.index())?,
            _ => Some(0),
        }
    }

    /// The operations of a block, where those of the functions before this one are known.
    fn operations(&self, block: &Block, known: &[u64]) -> u64 {
        let of = |block: &Block| self.operations(block, known);
        let each = block.iter().map(|statement| match statement {
            Statement::Emit(range) => range.clone().count() as u64,
            Statement::Block(block) => of(block),
            Statement::If { accept, reject, .. } => of(accept).max(of(reject)),
            Statement::Switch { cases, .. } => cases.iter().map(|case| of(&case.body)).max().unwrap_or(0),
            Statement::Loop { body, continuing, .. } => {
                let rounds = self.bound(body, continuing).unwrap_or(USUAL_ROUNDS);
                rounds.saturating_mul(of(body).saturating_add(of(continuing)))
            }
            Statement::Call { function, .. } => known.get(function.index()).copied().unwrap_or(0),
            _ => 1,
        });
        each.fold(0, u64::saturating_add)
    }

    /// Rounds of one counting loop.
    fn bound(&self, body: &Block, continuing: &Block) -> Option<u64> {
        let condition = body.iter().find_map(|statement| match statement {
            Statement::If { condition, accept, reject } if accept.is_empty() && leaves(reject) => Some(*condition),
            _ => None,
        })?;
        let Expression::Binary { op, left, right } = self.function.expressions[condition] else { return None };
        let variable = self.loaded(left)?;
        let limit = self.constant(right)?;
        // Anything but the guard before it would let rounds pass unguarded.
        let guard_first = body.iter().find(|statement| !matches!(statement, Statement::Emit(_)))?;
        if !matches!(guard_first, Statement::If { condition: first, .. } if *first == condition) {
            return None;
        }
        let (change, by) = self.change(variable, continuing)?;
        if self.stores(variable, body).touched() {
            return None;
        }
        let starts = self.starts(variable)?;
        let (least, most) = (*starts.iter().min()?, *starts.iter().max()?);
        let rounds = |from: i64, to: i64, step: i64| u64::try_from((to.saturating_sub(from)) / step + 1).unwrap_or(0);
        match (op, change) {
            (BinaryOperator::Less | BinaryOperator::LessEqual, BinaryOperator::Add) if by > 0 => {
                Some(rounds(least, limit.max(least), by))
            }
            (BinaryOperator::Greater | BinaryOperator::GreaterEqual, BinaryOperator::Subtract)
                if by > 0 && limit >= by =>
            {
                Some(rounds(limit.min(most), most, by))
            }
            (BinaryOperator::Greater, BinaryOperator::Subtract) if by == 1 && limit >= 0 => {
                Some(rounds(limit.min(most), most, 1))
            }
            // Halved until nothing is left, or doubled up to the limit: as often as a number has bits.
            (BinaryOperator::Greater, BinaryOperator::ShiftRight) if by >= 1 && limit >= 0 => Some(65),
            (BinaryOperator::Greater, BinaryOperator::Divide) if by >= 2 && limit >= 0 => Some(65),
            (
                BinaryOperator::Less | BinaryOperator::LessEqual,
                BinaryOperator::ShiftLeft | BinaryOperator::Multiply,
            ) if least >= 1 && (by >= 2 || change == BinaryOperator::ShiftLeft && by == 1) && limit < 1 << 30 => {
                Some(65)
            }
            _ => None,
        }
    }

    /// The variable that an expression loads.
    fn loaded(&self, of: Handle<Expression>) -> Option<Handle<LocalVariable>> {
        let Expression::Load { pointer } = self.function.expressions[of] else { return None };
        match self.function.expressions[pointer] {
            Expression::LocalVariable(variable) => Some(variable),
            _ => None,
        }
    }

    fn constant(&self, of: Handle<Expression>) -> Option<i64> {
        match self.function.expressions[of] {
            Expression::Literal(literal) => whole(literal),
            Expression::Constant(constant) => {
                match self.module.global_expressions[self.module.constants[constant].init] {
                    Expression::Literal(literal) => whole(literal),
                    Expression::ZeroValue(_) => Some(0),
                    _ => None,
                }
            }
            Expression::ZeroValue(_) => Some(0),
            _ => None,
        }
    }

    /// Returns how the continuing block changes a variable, if only one statement there stores to it.
    fn change(&self, variable: Handle<LocalVariable>, continuing: &Block) -> Option<(BinaryOperator, i64)> {
        let mut found = None;
        for statement in continuing {
            let Statement::Store { pointer, value } = statement else { continue };
            if !matches!(self.function.expressions[*pointer], Expression::LocalVariable(of) if of == variable) {
                continue;
            }
            let Expression::Binary { op, left, right } = self.function.expressions[*value] else { return None };
            if found.is_some() || self.loaded(left) != Some(variable) {
                return None;
            }
            found = Some((op, self.constant(right)?));
        }
        found
    }

    fn stores(&self, variable: Handle<LocalVariable>, block: &Block) -> Stores<'_> {
        let mut stores = Stores { counter: self, variable, starts: Vec::new(), changes: 0, reached: false };
        stores.block(block);
        stores
    }

    /// Every constant that a variable begins with; `None` when anything but one changing store, or a pointer, reaches it.
    fn starts(&self, variable: Handle<LocalVariable>) -> Option<Vec<i64>> {
        let mut stores = self.stores(variable, &self.function.body);
        if stores.reached || stores.changes != 1 {
            return None;
        }
        if let Some(init) = self.function.local_variables[variable].init {
            stores.starts.push(self.constant(init)?);
        }
        if stores.starts.is_empty() {
            stores.starts.push(0);
        }
        Some(stores.starts)
    }
}

struct Stores<'a> {
    counter: &'a Counter<'a>,
    variable: Handle<LocalVariable>,
    starts: Vec<i64>,
    changes: u32,
    reached: bool,
}

impl Stores<'_> {
    fn touched(&self) -> bool {
        self.reached || self.changes > 0 || !self.starts.is_empty()
    }

    fn is_it(&self, of: Handle<Expression>) -> bool {
        matches!(self.counter.function.expressions[of], Expression::LocalVariable(variable) if variable == self.variable)
    }

    fn block(&mut self, block: &Block) {
        for statement in block {
            match statement {
                Statement::Store { pointer, value } if self.is_it(*pointer) => match self.counter.constant(*value) {
                    Some(start) => self.starts.push(start),
                    None => self.changes += 1,
                },
                Statement::Call { arguments, .. } if arguments.iter().any(|argument| self.is_it(*argument)) => {
                    self.reached = true;
                }
                statement => blocks(statement).into_iter().for_each(|block| self.block(block)),
            }
        }
    }
}

/// Returns whether a block ends the loop that it lies in.
fn leaves(block: &Block) -> bool {
    matches!(block.last(), Some(Statement::Break | Statement::Return { .. }))
}

fn whole(literal: Literal) -> Option<i64> {
    match literal {
        Literal::I32(value) => Some(value.into()),
        Literal::U32(value) => Some(value.into()),
        Literal::I64(value) | Literal::AbstractInt(value) => Some(value),
        Literal::U64(value) => i64::try_from(value).ok(),
        _ => None,
    }
}
