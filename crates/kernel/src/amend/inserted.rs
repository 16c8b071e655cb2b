//! A function written anew with expressions before others of its own: what the passes share that compute an operand otherwise.

use naga::{Arena, Block, Expression, Function, Handle, Range, Span, Statement};

use crate::flow;
use cantus_base::listed::Listed;

/// The expressions that one pass inserts before those of a function.
pub(super) trait Insert {
    /// Numbers that come before everything else: no statement computes them.
    fn numbers(&mut self, expressions: &mut Arena<Expression>);

    /// Changes the expression that was `own` at `old`, whose operands are the new ones already. The first of what it appends, all of which is
    /// computed before the expression.
    fn before(
        &mut self,
        old: Handle<Expression>,
        own: &Expression,
        expression: &mut Expression,
        new: &mut Arena<Expression>,
        span: Span,
    ) -> Option<Handle<Expression>>;
}

/// Rewrites all functions for which `pass` has something to insert.
pub(super) fn settle<I: Insert>(module: &mut naga::Module, pass: impl Fn(&naga::Module, &Function) -> Option<I>) {
    let of = |function: &Function| pass(module, function).and_then(|insert| rewritten(function, insert));
    let functions: Vec<_> = module.functions.iter().map(|(handle, function)| (handle, of(function))).listed();
    let entries: Vec<_> = module.entry_points.iter().map(|entry| of(&entry.function)).listed();
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

/// Nothing where the function has what no compute kernel here has.
pub(super) fn rewritten(function: &Function, mut insert: impl Insert) -> Option<Function> {
    let mut new = function.clone();
    let mut expressions = Arena::new();
    insert.numbers(&mut expressions);
    // Each expression, and the first of those that stand for it.
    let mut map: Vec<Handle<Expression>> = Vec::with_capacity(function.expressions.len());
    let mut first: Vec<(Handle<Expression>, Handle<Expression>)> = Vec::new();
    for (handle, own) in function.expressions.iter() {
        let span = function.expressions.get_span(handle);
        let mut expression = own.clone();
        if !flow::change_operands(&mut expression, &mut |operand| *operand = map[operand.index()]) {
            return None;
        }
        let begins = insert.before(handle, own, &mut expression, &mut expressions, span);
        let new = expressions.append(expression, span);
        first.extend(begins.map(|begins| (new, begins)));
        map.push(new);
    }
    if !flow::change_block(&mut new.body, &mut |handle| *handle = map[handle.index()]) {
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

/// Extends each emitted range to begin with what was inserted before its first expression.
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
            other => flow::blocks_mut(other).into_iter().for_each(|inner| begin(inner, first)),
        }
    }
}
