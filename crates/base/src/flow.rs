//! The parts of naga's functions: operands, results, and blocks within blocks. What reads or rewrites functions asks here, so that a new kind of
//! expression or statement is met in one place.

use naga::{Block, Expression, GatherMode, Handle, ImageQuery, Range, SampleLevel, Statement};

use crate::listed::Listed;

/// Returns the expressions that an expression is computed from.
pub fn operands(expression: &Expression) -> Vec<Handle<Expression>> {
    let mut all = Vec::new();
    change_operands(&mut expression.clone(), &mut |operand| all.push(*operand));
    all
}

/// Returns the expressions that a statement itself needs, without those of the blocks in it.
pub fn statement_operands(statement: &Statement) -> Vec<Handle<Expression>> {
    match statement {
        // Without a copy of their blocks.
        Statement::If { condition: operand, .. } | Statement::Switch { selector: operand, .. } => vec![*operand],
        Statement::Loop { break_if, .. } => break_if.iter().copied().listed(),
        Statement::Block(_) => Vec::new(),
        other => {
            let mut all = Vec::new();
            change_statement_operands(&mut other.clone(), &mut |operand| all.push(*operand));
            all
        }
    }
}

/// Changes the operands of an expression; false for one that no compute kernel here has.
pub fn change_operands(expression: &mut Expression, change: &mut impl FnMut(&mut Handle<Expression>)) -> bool {
    match expression {
        Expression::Literal(_)
        | Expression::Constant(_)
        | Expression::Override(_)
        | Expression::ZeroValue(_)
        | Expression::FunctionArgument(_)
        | Expression::GlobalVariable(_)
        | Expression::LocalVariable(_)
        | Expression::CallResult(_)
        | Expression::AtomicResult { .. }
        | Expression::WorkGroupUniformLoadResult { .. }
        | Expression::SubgroupBallotResult
        | Expression::SubgroupOperationResult { .. } => {}
        Expression::Compose { components, .. } => components.iter_mut().for_each(change),
        Expression::Access { base: a, index: b } | Expression::Binary { left: a, right: b, .. } => {
            change(a);
            change(b);
        }
        Expression::AccessIndex { base: a, .. }
        | Expression::Splat { value: a, .. }
        | Expression::Swizzle { vector: a, .. }
        | Expression::Load { pointer: a }
        | Expression::Unary { expr: a, .. }
        | Expression::Derivative { expr: a, .. }
        | Expression::Relational { argument: a, .. }
        | Expression::As { expr: a, .. }
        | Expression::ArrayLength(a) => change(a),
        Expression::Select { condition, accept, reject } => {
            change(condition);
            change(accept);
            change(reject);
        }
        Expression::CooperativeLoad { data, .. } => {
            change(&mut data.pointer);
            change(&mut data.stride);
        }
        Expression::CooperativeMultiplyAdd { a, b, c } => {
            change(a);
            change(b);
            change(c);
        }
        Expression::Math { arg, arg1, arg2, arg3, .. } => {
            change(arg);
            [arg1, arg2, arg3].into_iter().flatten().for_each(change);
        }
        Expression::ImageSample { image, sampler, coordinate, array_index, offset, level, depth_ref, .. } => {
            [image, sampler, coordinate].into_iter().for_each(&mut *change);
            [array_index, offset, depth_ref].into_iter().flatten().for_each(&mut *change);
            match level {
                SampleLevel::Auto | SampleLevel::Zero => {}
                SampleLevel::Exact(level) | SampleLevel::Bias(level) => change(level),
                SampleLevel::Gradient { x, y } => {
                    change(x);
                    change(y);
                }
            }
        }
        Expression::ImageLoad { image, coordinate, array_index, sample, level } => {
            change(image);
            change(coordinate);
            [array_index, sample, level].into_iter().flatten().for_each(change);
        }
        Expression::ImageQuery { image, query } => {
            change(image);
            if let ImageQuery::Size { level: Some(level) } = query {
                change(level);
            }
        }
        Expression::RayQueryVertexPositions { .. }
        | Expression::RayQueryProceedResult
        | Expression::RayQueryGetIntersection { .. } => return false,
    }
    true
}

/// Replaces each handle that `change` is given by [`change_operands`] or [`change_handles`] with what `new` returns for it, up to the first error. The
/// result is theirs.
///
/// # Errors
/// The first of `new`.
pub fn replaced<E>(
    change: impl FnOnce(&mut dyn FnMut(&mut Handle<Expression>)) -> bool,
    mut new: impl FnMut(Handle<Expression>) -> Result<Handle<Expression>, E>,
) -> Result<bool, E> {
    let mut fault = None;
    let known = change(&mut |handle| {
        if fault.is_none() {
            match new(*handle) {
                Ok(new) => *handle = new,
                Err(error) => fault = Some(error),
            }
        }
    });
    fault.map_or(Ok(known), Err)
}

/// Changes the operands of a statement itself; false for one that no compute kernel here has.
fn change_statement_operands(statement: &mut Statement, change: &mut impl FnMut(&mut Handle<Expression>)) -> bool {
    match statement {
        Statement::Emit(_)
        | Statement::Block(_)
        | Statement::Break
        | Statement::Continue
        | Statement::Kill
        | Statement::ControlBarrier(_)
        | Statement::MemoryBarrier(_) => {}
        Statement::If { condition: operand, .. }
        | Statement::Switch { selector: operand, .. }
        | Statement::WorkGroupUniformLoad { pointer: operand, .. }
        | Statement::SubgroupCollectiveOperation { argument: operand, .. } => change(operand),
        Statement::Loop { break_if: operand, .. }
        | Statement::Return { value: operand }
        | Statement::SubgroupBallot { predicate: operand, .. } => operand.iter_mut().for_each(change),
        Statement::Call { arguments, .. } => arguments.iter_mut().for_each(change),
        Statement::Store { pointer, value } => {
            change(pointer);
            change(value);
        }
        Statement::Atomic { pointer, fun, value, .. } => {
            change(pointer);
            change(value);
            if let naga::AtomicFunction::Exchange { compare: Some(compare) } = fun {
                change(compare);
            }
        }
        Statement::SubgroupGather { mode, argument, .. } => {
            match mode {
                GatherMode::BroadcastFirst | GatherMode::QuadSwap(_) => {}
                GatherMode::Broadcast(at)
                | GatherMode::Shuffle(at)
                | GatherMode::ShuffleDown(at)
                | GatherMode::ShuffleUp(at)
                | GatherMode::ShuffleXor(at)
                | GatherMode::QuadBroadcast(at) => change(at),
            }
            change(argument);
        }
        Statement::CooperativeStore { target, data } => {
            change(target);
            change(&mut data.pointer);
            change(&mut data.stride);
        }
        Statement::ImageStore { image, coordinate, array_index, value } => {
            [image, coordinate, value].into_iter().for_each(&mut *change);
            array_index.iter_mut().for_each(change);
        }
        Statement::ImageAtomic { .. } | Statement::RayQuery { .. } | Statement::RayPipelineFunction(_) => return false,
    }
    true
}

/// Returns the expression that is a statement's result, if there is one.
pub fn result(statement: &Statement) -> Option<Handle<Expression>> {
    match statement {
        Statement::Atomic { result, .. } | Statement::Call { result, .. } => *result,
        Statement::WorkGroupUniformLoad { result, .. }
        | Statement::SubgroupBallot { result, .. }
        | Statement::SubgroupGather { result, .. }
        | Statement::SubgroupCollectiveOperation { result, .. } => Some(*result),
        _ => None,
    }
}

/// The same, to be changed.
fn result_mut(statement: &mut Statement) -> Option<&mut Handle<Expression>> {
    match statement {
        Statement::Atomic { result, .. } | Statement::Call { result, .. } => result.as_mut(),
        Statement::WorkGroupUniformLoad { result, .. }
        | Statement::SubgroupBallot { result, .. }
        | Statement::SubgroupGather { result, .. }
        | Statement::SubgroupCollectiveOperation { result, .. } => Some(result),
        _ => None,
    }
}

/// Changes every handle in a statement and in the blocks in it; false where there is a statement that no compute kernel here has.
pub fn change_handles(statement: &mut Statement, change: &mut impl FnMut(&mut Handle<Expression>)) -> bool {
    if let Statement::Emit(range) = statement
        && let Some((mut first, mut last)) = range.first_and_last()
    {
        change(&mut first);
        change(&mut last);
        *range = Range::new_from_bounds(first, last);
    }
    let known = change_statement_operands(statement, change);
    result_mut(statement).into_iter().for_each(&mut *change);
    known && blocks_mut(statement).into_iter().all(|block| change_block(block, change))
}

/// Changes every handle in a block, as [`change_handles`].
pub fn change_block(block: &mut Block, change: &mut impl FnMut(&mut Handle<Expression>)) -> bool {
    block.iter_mut().all(|statement| change_handles(statement, change))
}

/// Returns the blocks in a statement, to be changed.
pub fn blocks_mut(statement: &mut Statement) -> Vec<&mut Block> {
    match statement {
        Statement::Block(block) => vec![block],
        Statement::If { accept, reject, .. } => vec![accept, reject],
        Statement::Switch { cases, .. } => cases.iter_mut().map(|case| &mut case.body).listed(),
        Statement::Loop { body, continuing, .. } => vec![body, continuing],
        _ => Vec::new(),
    }
}

/// Returns the blocks in a statement.
pub fn blocks(statement: &Statement) -> Vec<&Block> {
    match statement {
        Statement::Block(block) => vec![block],
        Statement::If { accept, reject, .. } => vec![accept, reject],
        Statement::Switch { cases, .. } => cases.iter().map(|case| &case.body).listed(),
        Statement::Loop { body, continuing, .. } => vec![body, continuing],
        _ => Vec::new(),
    }
}

/// Returns whether a block has a `continue` of the loop that it is the body of.
pub fn continues(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Continue => true,
        Statement::Loop { .. } => false,
        other => blocks(other).into_iter().any(continues),
    })
}

/// Returns whether a block has a `break` of the loop or switch that it is the body of.
pub fn breaks(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Break => true,
        Statement::Loop { .. } | Statement::Switch { .. } => false,
        other => blocks(other).into_iter().any(breaks),
    })
}
