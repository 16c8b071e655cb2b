//! What is found out about a function before it is written: which expressions are used, and how control leaves a block.

use naga::{Block, Expression, Function, GatherMode, Handle, LocalVariable, Statement};
use rustc_hash::FxHashSet;

/// Expressions that an expression is computed from.
pub(super) fn operands(expression: &Expression) -> Vec<Handle<Expression>> {
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
            [Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten().collect()
        }
        Expression::ArrayLength(pointer) => vec![*pointer],
        Expression::Derivative { expr, .. } => vec![*expr],
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
        // What follows is refused when it is written.
        | Expression::ImageSample { .. }
        | Expression::ImageLoad { .. }
        | Expression::ImageQuery { .. }
        | Expression::RayQueryVertexPositions { .. }
        | Expression::RayQueryProceedResult
        | Expression::RayQueryGetIntersection { .. }
        | Expression::CooperativeLoad { .. }
        | Expression::CooperativeMultiplyAdd { .. } => Vec::new(),
    }
}

/// Expressions that a statement itself needs, without those of the blocks in it.
pub(super) fn statement_operands(statement: &Statement) -> Vec<Handle<Expression>> {
    match statement {
        Statement::If { condition, .. } => vec![*condition],
        Statement::Switch { selector, .. } => vec![*selector],
        Statement::Loop { break_if, .. } => break_if.iter().copied().collect(),
        Statement::Return { value } => value.iter().copied().collect(),
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
        Statement::SubgroupBallot { predicate, .. } => predicate.iter().copied().collect(),
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
        | Statement::RayPipelineFunction(_)
        | Statement::CooperativeStore { .. } => Vec::new(),
    }
}

/// The blocks in a statement.
pub(super) fn blocks(statement: &Statement) -> Vec<&Block> {
    match statement {
        Statement::Block(block) => vec![block],
        Statement::If { accept, reject, .. } => vec![accept, reject],
        Statement::Switch { cases, .. } => cases.iter().map(|case| &case.body).collect(),
        Statement::Loop { body, continuing, .. } => vec![body, continuing],
        _ => Vec::new(),
    }
}

/// Calls `visit` for each statement that can be reached, inner ones after the one around them.
pub(super) fn each_statement<'b>(block: &'b Block, bounded: bool, visit: &mut impl FnMut(&'b Statement)) {
    for statement in block {
        visit(statement);
        if let Statement::Loop { body, continuing, .. } = statement {
            each_statement(body, bounded, visit);
            if reaches_continuing(body, bounded) {
                each_statement(continuing, bounded, visit);
            }
        } else {
            for inner in blocks(statement) {
                each_statement(inner, bounded, visit);
            }
        }
        if statement_ends(statement, bounded) {
            break;
        }
    }
}

/// Whether the end of a loop's body is ever reached.
pub(super) fn reaches_continuing(body: &Block, bounded: bool) -> bool {
    continues(body) || !ends(body, bounded)
}

/// How often each expression is used by something that is written.
pub(super) fn uses(function: &Function, bounded: bool) -> Vec<u32> {
    let mut uses = vec![0_u32; function.expressions.len()];
    let mut open = Vec::new();
    each_statement(&function.body, bounded, &mut |statement| match statement {
        Statement::Loop { body, .. } if !reaches_continuing(body, bounded) => {}
        _ => open.extend(statement_operands(statement)),
    });
    while let Some(handle) = open.pop() {
        let Some(count) = uses.get_mut(handle.index()) else { continue };
        *count += 1;
        if *count == 1 {
            open.extend(operands(&function.expressions[handle]));
        }
    }
    uses
}

/// All expressions that statements of a block, and `more`, are computed from.
pub(super) fn closure(
    function: &Function,
    block: &Block,
    more: Option<Handle<Expression>>,
) -> FxHashSet<Handle<Expression>> {
    let mut open: Vec<_> = more.into_iter().collect();
    each_statement(block, false, &mut |statement| open.extend(statement_operands(statement)));
    let mut all = FxHashSet::default();
    while let Some(handle) = open.pop() {
        if all.insert(handle) {
            open.extend(operands(&function.expressions[handle]));
        }
    }
    all
}

/// Local variables that something reads, or that are handed to a function.
pub(super) fn read_variables(function: &Function, uses: &[u32], bounded: bool) -> FxHashSet<Handle<LocalVariable>> {
    let mut read = FxHashSet::default();
    let mut note = |pointer| {
        if let Some(variable) = root_variable(function, pointer) {
            read.insert(variable);
        }
    };
    for (handle, expression) in function.expressions.iter() {
        if let Expression::Load { pointer } = expression
            && uses.get(handle.index()).is_some_and(|uses| *uses > 0)
        {
            note(*pointer);
        }
    }
    each_statement(&function.body, bounded, &mut |statement| {
        if let Statement::Call { arguments, .. } = statement {
            arguments.iter().for_each(|argument| note(*argument));
        }
    });
    read
}

fn root_variable(function: &Function, mut pointer: Handle<Expression>) -> Option<Handle<LocalVariable>> {
    loop {
        match &function.expressions[pointer] {
            Expression::LocalVariable(variable) => return Some(*variable),
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => pointer = *base,
            _ => return None,
        }
    }
}

/// Whether a block has a `continue` of the loop that it is the body of.
pub(super) fn continues(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Continue => true,
        Statement::Loop { .. } => false,
        other => blocks(other).into_iter().any(continues),
    })
}

/// Whether a block has a `break` of the loop or switch that it is the body of.
fn breaks(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Break => true,
        Statement::Loop { .. } | Statement::Switch { .. } => false,
        other => blocks(other).into_iter().any(breaks),
    })
}

/// Whether nothing after a statement is reached. `bounded`: loops end by themselves in the end.
pub(super) fn statement_ends(statement: &Statement, bounded: bool) -> bool {
    match statement {
        Statement::Return { .. } | Statement::Kill | Statement::Break | Statement::Continue => true,
        Statement::Block(block) => ends(block, bounded),
        Statement::If { accept, reject, .. } => ends(accept, bounded) && ends(reject, bounded),
        Statement::Switch { cases, .. } => {
            cases.iter().all(|case| (case.fall_through || ends(&case.body, bounded)) && !breaks(&case.body))
        }
        Statement::Loop { body, break_if, .. } => {
            // A body that always leaves the function is no loop.
            (break_if.is_none() || (ends(body, bounded) && !continues(body)))
                && !breaks(body)
                && (!bounded || (ends(body, bounded) && !continues(body)))
        }
        _ => false,
    }
}

/// Whether nothing after a block is reached.
pub(super) fn ends(block: &Block, bounded: bool) -> bool {
    block.iter().any(|statement| statement_ends(statement, bounded))
}

/// Whether a block has a `return` anywhere in it.
pub(super) fn has_return(block: &Block) -> bool {
    let mut found = false;
    each_statement(block, false, &mut |statement| found |= matches!(statement, Statement::Return { .. }));
    found
}
