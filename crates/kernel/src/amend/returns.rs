//! Code that control never reaches, by WGSL's rules for the behavior of statements, and the ends of functions. naga keeps such code, and puts a
//! return without a value behind a loop that only a return leaves, which its validator refuses. Dead code is taken away; what ends a
//! function that has a result is never reached, so it returns zero.

use naga::{Block, Expression, Function, Handle, Module, Scalar, Span, Statement, Type, TypeInner, VectorSize};
use rustc_hash::FxHashSet;

use crate::behavior::Behavior;
use crate::flow::{blocks, result};

pub(super) fn settle(module: &mut Module) {
    let ballot = TypeInner::Vector { size: VectorSize::Quad, scalar: Scalar::U32 };
    let types = Types {
        ballot: module.types.insert(Type { name: None, inner: ballot }, Span::UNDEFINED),
        results: module
            .functions
            .iter()
            .map(|(_, function)| function.result.as_ref().map(|result| result.ty))
            .collect(),
    };
    for (_, function) in module.functions.iter_mut() {
        settle_function(function, &types);
    }
    for entry in &mut module.entry_points {
        settle_function(&mut entry.function, &types);
    }
}

/// The types of results.
struct Types {
    ballot: Handle<Type>,
    /// Result types of the functions, in order.
    results: Vec<Option<Handle<Type>>>,
}

/// Replaces the results of dead statements by zero: naga's validator wants a statement for every result.
fn forget_results(function: &mut Function, types: &Types) {
    let mut given = FxHashSet::default();
    results(&function.body, &mut given);
    for (handle, expression) in function.expressions.iter_mut() {
        let ty = match *expression {
            Expression::AtomicResult { ty, .. }
            | Expression::WorkGroupUniformLoadResult { ty }
            | Expression::SubgroupOperationResult { ty } => ty,
            Expression::SubgroupBallotResult => types.ballot,
            Expression::CallResult(callee) => match types.results.get(callee.index()) {
                Some(&Some(ty)) => ty,
                _ => continue,
            },
            _ => continue,
        };
        if !given.contains(&handle) {
            *expression = Expression::ZeroValue(ty);
        }
    }
}

fn results(block: &Block, given: &mut FxHashSet<Handle<Expression>>) {
    for statement in block {
        given.extend(result(statement));
        blocks(statement).into_iter().for_each(|block| results(block, given));
    }
}

fn settle_function(function: &mut Function, types: &Types) {
    let behavior = cut(&mut function.body);
    forget_results(function, types);
    naga::proc::ensure_block_returns(&mut function.body);
    let Some(result) = &function.result else { return };
    if behavior != Behavior::RETURN || !lacks_value(&function.body) {
        return;
    }
    let zero = function.expressions.append(Expression::ZeroValue(result.ty), Span::UNDEFINED);
    each_end(&mut function.body, &mut |end| {
        if let Statement::Return { value: value @ None } = end {
            *value = Some(zero);
        }
    });
}

/// Removes dead statements, and returns how control leaves the block. A return that naga added at the end does not count as the author's.
fn cut(block: &mut Block) -> Behavior {
    let mut all = Behavior::NEXT;
    let mut live = block.len();
    let spans: Vec<Span> = block.span_iter().map(|(_, span)| *span).collect();
    for (at, (statement, span)) in block.iter_mut().zip(spans).enumerate() {
        if matches!(statement, Statement::Return { value: None }) && !span.is_defined() {
            continue;
        }
        all = all.then(statement_behavior(statement));
        if !all.meets(Behavior::NEXT) {
            live = at + 1;
            break;
        }
    }
    block.cull(live..);
    all
}

fn statement_behavior(statement: &mut Statement) -> Behavior {
    match statement {
        Statement::Block(block) => cut(block),
        Statement::If { accept, reject, .. } => cut(accept).union(cut(reject)),
        Statement::Switch { cases, .. } => {
            let mut all = Behavior::NONE;
            for case in cases {
                let behavior = cut(&mut case.body);
                all = all.union(if case.fall_through { Behavior::NONE } else { behavior });
            }
            all.switched()
        }
        Statement::Loop { body, continuing, break_if } => {
            let left = if break_if.is_some() { Behavior::BREAK } else { Behavior::NONE };
            cut(body).looped(cut(continuing).union(left))
        }
        Statement::Break => Behavior::BREAK,
        Statement::Continue => Behavior::CONTINUE,
        Statement::Return { .. } => Behavior::RETURN,
        _ => Behavior::NEXT,
    }
}

fn lacks_value(block: &Block) -> bool {
    match block.last() {
        Some(Statement::Return { value }) => value.is_none(),
        Some(Statement::Block(inner)) => lacks_value(inner),
        Some(Statement::If { accept, reject, .. }) => lacks_value(accept) || lacks_value(reject),
        Some(Statement::Switch { cases, .. }) => cases.iter().any(|case| lacks_value(&case.body)),
        _ => false,
    }
}

/// The statements at the ends of a function's ways.
fn each_end(block: &mut Block, work: &mut impl FnMut(&mut Statement)) {
    match block.last_mut() {
        Some(Statement::Block(inner)) => each_end(inner, work),
        Some(Statement::If { accept, reject, .. }) => {
            each_end(accept, work);
            each_end(reject, work);
        }
        Some(Statement::Switch { cases, .. }) => {
            for case in cases {
                each_end(&mut case.body, work);
            }
        }
        Some(end) => work(end),
        None => {}
    }
}
