//! The scan of a function before it is written: which expressions are used, and where control ends.

use naga::{Block, Expression, Function, Handle, LocalVariable, Statement};
use rustc_hash::FxHashSet;

use crate::flow::{blocks, breaks, continues, operands, statement_operands};
use cantus_base::listed::Listed;

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

/// Returns whether the end of a loop's body is ever reached.
pub(super) fn reaches_continuing(body: &Block, bounded: bool) -> bool {
    continues(body) || !ends(body, bounded)
}

/// Returns how often each expression is used in the written code.
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
    let mut open: Vec<_> = more.into_iter().listed();
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

/// Returns whether nothing after a statement is reached. `bounded`: loops end by themselves in the end.
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

/// Returns whether nothing after a block is reached.
pub(super) fn ends(block: &Block, bounded: bool) -> bool {
    block.iter().any(|statement| statement_ends(statement, bounded))
}

/// Returns whether a block has a `return` anywhere in it.
pub(super) fn has_return(block: &Block) -> bool {
    let mut found = false;
    each_statement(block, false, &mut |statement| found |= matches!(statement, Statement::Return { .. }));
    found
}

/// The functions that a function calls itself, each once, in the order of their first calls.
pub(super) fn called(function: &Function, bounded: bool) -> Vec<Handle<Function>> {
    let mut called = Vec::new();
    each_statement(&function.body, bounded, &mut |statement| {
        if let Statement::Call { function, .. } = statement
            && !called.contains(function)
        {
            called.push(*function);
        }
    });
    called
}
