//! Components of vectors in buffers by an index. wgpu leaves the bounds of buffers to the driver, which keeps an access within the buffer, not
//! within the vector: llvmpipe folds an index that it knows into no component at all. The last component takes what is beyond it.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{
    AddressSpace, Arena, Block, Expression, Function, Handle, Literal, MathFunction, Module, Range, ScalarKind, Span,
    Statement, TypeInner, VectorSize,
};

use super::remap;

/// An access to a component by an index that is no constant.
struct Found {
    size: VectorSize,
    signed: bool,
}

/// Bounds each of them.
pub(crate) fn settle(module: &mut Module) {
    let functions: Vec<_> =
        module.functions.iter().map(|(handle, function)| (handle, rewritten(module, function))).collect();
    let entries: Vec<_> = module.entry_points.iter().map(|entry| rewritten(module, &entry.function)).collect();
    for (handle, function) in functions {
        if let Some(function) = function {
            module.functions[handle] = function;
        }
    }
    for (entry, function) in module.entry_points.iter_mut().zip(entries) {
        if let Some(function) = function {
            entry.function = function;
        }
    }
}

fn found(module: &Module, function: &Function) -> Vec<Option<Found>> {
    let is_access = |expression: &Expression| matches!(expression, Expression::Access { .. });
    if !function.expressions.iter().any(|(_, expression)| is_access(expression)) {
        return Vec::new();
    }
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    let mut types = Typifier::new();
    let all: Vec<Option<Found>> = function
        .expressions
        .iter()
        .map(|(handle, expression)| {
            // What has no type is for the validator to refuse.
            types.grow(handle, &function.expressions, &context).ok()?;
            let Expression::Access { base, index } = expression else { return None };
            let (space, size) = match *types.get(*base, &module.types) {
                TypeInner::Pointer { base, space } => match module.types[base].inner {
                    TypeInner::Vector { size, .. } => (space, size),
                    _ => return None,
                },
                TypeInner::ValuePointer { size: Some(size), space, .. } => (space, size),
                _ => return None,
            };
            let in_buffer = matches!(space, AddressSpace::Storage { .. } | AddressSpace::Uniform);
            let signed = types.get(*index, &module.types).scalar_kind() == Some(ScalarKind::Sint);
            in_buffer.then_some(Found { size, signed })
        })
        .collect();
    if all.iter().all(Option::is_none) { Vec::new() } else { all }
}

/// The function with its accesses bounded; nothing where it has none, or what no compute kernel here has.
fn rewritten(module: &Module, function: &Function) -> Option<Function> {
    let found = found(module, function);
    if found.is_empty() {
        return None;
    }
    let mut new = function.clone();
    let mut expressions = Arena::new();
    // Numbers stand before everything else: no statement computes them.
    let sizes = [VectorSize::Bi, VectorSize::Tri, VectorSize::Quad];
    let last =
        sizes.map(|size| expressions.append(Expression::Literal(Literal::U32(size as u32 - 1)), Span::UNDEFINED));
    // Each expression, and the first of those that stand for it.
    let mut map: Vec<Handle<Expression>> = Vec::with_capacity(function.expressions.len());
    let mut first: Vec<(Handle<Expression>, Handle<Expression>)> = Vec::new();
    for ((handle, expression), found) in function.expressions.iter().zip(found) {
        let span = function.expressions.get_span(handle);
        let mut expression = expression.clone();
        if !remap::operands(&mut expression, &mut |operand| *operand = map[operand.index()]) {
            return None;
        }
        let mut begins = None;
        if let (Some(Found { size, signed }), Expression::Access { index, .. }) = (found, &mut expression) {
            if signed {
                let word = Expression::As { expr: *index, kind: ScalarKind::Uint, convert: None };
                *index = expressions.append(word, span);
                begins = Some(*index);
            }
            let limit = last[size as usize - VectorSize::Bi as usize];
            let bounded =
                Expression::Math { fun: MathFunction::Min, arg: *index, arg1: Some(limit), arg2: None, arg3: None };
            *index = expressions.append(bounded, span);
            begins = begins.or(Some(*index));
        }
        let own = expressions.append(expression, span);
        first.extend(begins.map(|begins| (own, begins)));
        map.push(own);
    }
    let complete = remap::block(&mut new.body, &mut |handle| *handle = map[handle.index()]);
    if !complete {
        return None;
    }
    begin(&mut new.body, &first);
    for (_, variable) in new.local_variables.iter_mut() {
        variable.init = variable.init.map(|init| map[init.index()]);
    }
    new.named_expressions =
        function.named_expressions.iter().map(|(at, name)| (map[at.index()], name.clone())).collect();
    new.expressions = expressions;
    Some(new)
}

/// What is emitted begins with the bound of its first access.
fn begin(block: &mut Block, first: &[(Handle<Expression>, Handle<Expression>)]) {
    for statement in block.iter_mut() {
        match statement {
            Statement::Emit(range) => {
                if let Some((start, end)) = range.first_and_last()
                    && let Some((_, begins)) = first.iter().find(|(own, _)| *own == start)
                {
                    *range = Range::new_from_bounds(*begins, end);
                }
            }
            Statement::Block(inner) => begin(inner, first),
            Statement::If { accept, reject, .. } => {
                begin(accept, first);
                begin(reject, first);
            }
            Statement::Switch { cases, .. } => cases.iter_mut().for_each(|case| begin(&mut case.body, first)),
            Statement::Loop { body, continuing, .. } => {
                begin(body, first);
                begin(continuing, first);
            }
            _ => {}
        }
    }
}
