//! The handles within expressions and statements, each given to a function that changes it.

use naga::{Block, Expression, Handle, ImageQuery, Range, SampleLevel, Statement};

/// Changes the operands of an expression; false for one that no compute kernel here has.
pub(crate) fn operands(expression: &mut Expression, change: &mut impl FnMut(&mut Handle<Expression>)) -> bool {
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

/// Changes the handles in a block and all blocks in it; false where it has a statement that no compute kernel here has.
pub(super) fn block(block: &mut Block, change: &mut impl FnMut(&mut Handle<Expression>)) -> bool {
    block.iter_mut().all(|statement| one(statement, change))
}

/// Changes the handles in a statement; false for one that no compute kernel here has.
pub(crate) fn one(statement: &mut Statement, change: &mut impl FnMut(&mut Handle<Expression>)) -> bool {
    match statement {
        Statement::Emit(range) => {
            if let Some((mut first, mut last)) = range.first_and_last() {
                change(&mut first);
                change(&mut last);
                *range = Range::new_from_bounds(first, last);
            }
        }
        Statement::Block(inner) => return block(inner, change),
        Statement::If { condition, accept, reject } => {
            change(condition);
            return block(accept, change) && block(reject, change);
        }
        Statement::Switch { selector, cases } => {
            change(selector);
            return cases.iter_mut().all(|case| block(&mut case.body, change));
        }
        Statement::Loop { body, continuing, break_if } => {
            break_if.iter_mut().for_each(&mut *change);
            return block(body, change) && block(continuing, change);
        }
        Statement::Break
        | Statement::Continue
        | Statement::Kill
        | Statement::ControlBarrier(_)
        | Statement::MemoryBarrier(_) => {}
        Statement::Return { value } => value.iter_mut().for_each(change),
        Statement::Store { pointer, value } => {
            change(pointer);
            change(value);
        }
        Statement::Atomic { pointer, fun, value, result } => {
            change(pointer);
            change(value);
            if let naga::AtomicFunction::Exchange { compare: Some(compare) } = fun {
                change(compare);
            }
            result.iter_mut().for_each(change);
        }
        Statement::WorkGroupUniformLoad { pointer, result } => {
            change(pointer);
            change(result);
        }
        Statement::Call { arguments, result, .. } => {
            arguments.iter_mut().for_each(&mut *change);
            result.iter_mut().for_each(change);
        }
        Statement::SubgroupBallot { result, predicate } => {
            change(result);
            predicate.iter_mut().for_each(change);
        }
        Statement::SubgroupGather { mode, argument, result } => {
            use naga::GatherMode as Mode;
            match mode {
                Mode::BroadcastFirst | Mode::QuadSwap(_) => {}
                Mode::Broadcast(at)
                | Mode::Shuffle(at)
                | Mode::ShuffleDown(at)
                | Mode::ShuffleUp(at)
                | Mode::ShuffleXor(at)
                | Mode::QuadBroadcast(at) => change(at),
            }
            change(argument);
            change(result);
        }
        Statement::SubgroupCollectiveOperation { argument, result, .. } => {
            change(argument);
            change(result);
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
