//! The lane that a subgroup operation reads: WGSL takes i32 as well as u32, naga u32 alone.

use cantus_base::listed::Listed;
use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{
    Arena, Block, Expression, Function, GatherMode, Handle, Literal, Module, Range, ScalarKind, Span, Statement,
};

/// Makes words of signed lanes.
pub(super) fn settle(module: &mut Module) {
    let functions: Vec<_> =
        module.functions.iter().map(|(handle, function)| (handle, signed(module, function))).listed();
    let entries: Vec<_> = module.entry_points.iter().map(|entry| signed(module, &entry.function)).listed();
    for (handle, signed) in functions.into_iter().filter(|(_, signed)| !signed.is_empty()) {
        rewrite(&mut module.functions[handle], &signed);
    }
    for (entry, signed) in module.entry_points.iter_mut().zip(entries).filter(|(_, signed)| !signed.is_empty()) {
        rewrite(&mut entry.function, &signed);
    }
}

/// A signed lane, and its value where that is known.
type Lane = (Handle<Expression>, Option<i32>);

fn lane(mode: &mut GatherMode) -> Option<&mut Handle<Expression>> {
    match mode {
        GatherMode::BroadcastFirst | GatherMode::QuadSwap(_) => None,
        GatherMode::Broadcast(lane)
        | GatherMode::Shuffle(lane)
        | GatherMode::ShuffleDown(lane)
        | GatherMode::ShuffleUp(lane)
        | GatherMode::ShuffleXor(lane)
        | GatherMode::QuadBroadcast(lane) => Some(lane),
    }
}

/// Lanes in the order of blocks.
fn lanes(block: &Block, found: &mut Vec<Handle<Expression>>) {
    for statement in block {
        if let Statement::SubgroupGather { mode, .. } = statement {
            found.extend(lane(&mut mode.clone()).map(|lane| *lane));
        }
        crate::flow::blocks(statement).into_iter().for_each(|inner| lanes(inner, found));
    }
}

fn signed(module: &Module, function: &Function) -> Vec<Lane> {
    let mut found = Vec::new();
    lanes(&function.body, &mut found);
    if found.is_empty() {
        return Vec::new();
    }
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    let mut types = Typifier::new();
    let mut is_signed = |lane: Handle<Expression>| {
        // What has no type is for the validator to refuse.
        types.grow(lane, &function.expressions, &context).is_ok()
            && types.get(lane, &module.types).scalar_kind() == Some(ScalarKind::Sint)
    };
    found.retain(|lane| is_signed(*lane));
    let literal = |expression: &Expression| match expression {
        Expression::Literal(Literal::I32(value)) => Some(*value),
        _ => None,
    };
    let value = |lane: Handle<Expression>| match &function.expressions[lane] {
        Expression::Constant(constant) => literal(&module.global_expressions[module.constants[*constant].init]),
        expression => literal(expression),
    };
    found.into_iter().map(|lane| (lane, value(lane))).listed()
}

fn rewrite(function: &mut Function, signed: &[Lane]) {
    block(&mut function.body, &mut function.expressions, signed);
}

fn block(body: &mut Block, expressions: &mut Arena<Expression>, signed: &[Lane]) {
    for (mut statement, span) in std::mem::take(body).span_into_iter() {
        match &mut statement {
            Statement::SubgroupGather { mode, .. } => {
                if let Some(lane) = lane(mode)
                    && let Some((_, value)) = signed.iter().find(|(other, _)| other == lane)
                {
                    match value {
                        Some(value) => {
                            let literal = Literal::U32(value.cast_unsigned());
                            *lane = expressions.append(Expression::Literal(literal), Span::UNDEFINED);
                        }
                        None => {
                            let word = Expression::As { expr: *lane, kind: ScalarKind::Uint, convert: None };
                            *lane = expressions.append(word, span);
                            body.push(Statement::Emit(Range::new_from_bounds(*lane, *lane)), span);
                        }
                    }
                }
            }
            other => {
                crate::flow::blocks_mut(other).into_iter().for_each(|inner| block(inner, expressions, signed));
            }
        }
        body.push(statement, span);
    }
}
