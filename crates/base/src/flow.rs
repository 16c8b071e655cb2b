//! The parts of naga's functions: operands, and blocks within blocks.

use crate::listed::Listed;
use naga::{Block, Statement};
use naga::{Expression, Handle};

/// Expressions that an expression is computed from.
pub fn operands(expression: &Expression) -> Vec<Handle<Expression>> {
    match expression {
        Expression::Compose { components, .. } => components.clone(),
        Expression::Access { base, index } => vec![*base, *index],
        Expression::AccessIndex { base, .. } => vec![*base],
        Expression::Splat { value, .. } => vec![*value],
        Expression::Swizzle { vector, .. } => vec![*vector],
        Expression::Load { pointer } => vec![*pointer],
        Expression::Unary { expr, .. } | Expression::As { expr, .. } => vec![*expr],
        Expression::Binary { left, right, .. } => vec![*left, *right],
        Expression::Select { condition, accept, reject } => vec![*condition, *accept, *reject],
        Expression::Relational { argument, .. } => vec![*argument],
        Expression::Math { arg, arg1, arg2, arg3, .. } => {
            [Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten().listed()
        }
        Expression::ArrayLength(pointer) => vec![*pointer],
        Expression::Derivative { expr, .. } => vec![*expr],
        Expression::CooperativeLoad { data, .. } => vec![data.pointer, data.stride],
        Expression::CooperativeMultiplyAdd { a, b, c } => vec![*a, *b, *c],
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
        | Expression::SubgroupOperationResult { .. }
        // What follows is refused by everything that is made from a module.
        | Expression::ImageSample { .. }
        | Expression::ImageLoad { .. }
        | Expression::ImageQuery { .. }
        | Expression::RayQueryVertexPositions { .. }
        | Expression::RayQueryProceedResult
        | Expression::RayQueryGetIntersection { .. } => Vec::new(),
    }
}

/// Expressions that a statement itself needs, without those of the blocks in it.
pub fn statement_operands(statement: &Statement) -> Vec<Handle<Expression>> {
    use naga::GatherMode;
    match statement {
        Statement::If { condition, .. } => vec![*condition],
        Statement::Switch { selector, .. } => vec![*selector],
        Statement::Loop { break_if, .. } => break_if.iter().copied().listed(),
        Statement::Return { value } => value.iter().copied().listed(),
        Statement::Store { pointer, value } => vec![*pointer, *value],
        Statement::Atomic { pointer, fun, value, .. } => {
            let mut all = vec![*pointer, *value];
            if let naga::AtomicFunction::Exchange { compare: Some(compare) } = fun {
                all.push(*compare);
            }
            all
        }
        Statement::WorkGroupUniformLoad { pointer, .. } => vec![*pointer],
        Statement::Call { arguments, .. } => arguments.clone(),
        Statement::SubgroupBallot { predicate, .. } => predicate.iter().copied().listed(),
        Statement::SubgroupGather { mode, argument, .. } => {
            let mut all = vec![*argument];
            match mode {
                GatherMode::Broadcast(index)
                | GatherMode::Shuffle(index)
                | GatherMode::ShuffleDown(index)
                | GatherMode::ShuffleUp(index)
                | GatherMode::ShuffleXor(index)
                | GatherMode::QuadBroadcast(index) => all.push(*index),
                GatherMode::BroadcastFirst | GatherMode::QuadSwap(_) => {}
            }
            all
        }
        Statement::SubgroupCollectiveOperation { argument, .. } => vec![*argument],
        Statement::CooperativeStore { target, data } => vec![*target, data.pointer, data.stride],
        Statement::Emit(_)
        | Statement::Block(_)
        | Statement::Break
        | Statement::Continue
        | Statement::Kill
        | Statement::ControlBarrier(_)
        | Statement::MemoryBarrier(_)
        | Statement::ImageStore { .. }
        | Statement::ImageAtomic { .. }
        | Statement::RayQuery { .. }
        | Statement::RayPipelineFunction(_) => Vec::new(),
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
