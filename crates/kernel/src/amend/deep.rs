//! Long chains of operators get names on the way: writers nest what has none, and the compilers that read it bound their nesting.

use naga::{Expression, Function, Module};

use crate::flow::operands;

/// Levels between two names.
const STEP: u32 = 64;

pub(super) fn settle(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        settle_function(function);
    }
    for entry in &mut module.entry_points {
        settle_function(&mut entry.function);
    }
}

fn settle_function(function: &mut Function) {
    if function.expressions.len() < STEP as usize {
        return;
    }
    let mut levels: Vec<u32> = Vec::with_capacity(function.expressions.len());
    for (handle, expression) in function.expressions.iter() {
        let mut below = 0;
        for operand in operands(expression) {
            below = below.max(levels.get(operand.index()).copied().unwrap_or(0));
        }
        // Those are no pointers, and always part of a statement.
        let is_value = matches!(
            expression,
            Expression::Unary { .. } | Expression::Binary { .. } | Expression::Math { .. } | Expression::Select { .. }
        );
        if is_value && below + 1 >= STEP {
            function.named_expressions.entry(handle).or_insert_with(|| format!("part_{}", handle.index()));
            levels.push(0);
        } else {
            levels.push(below + 1);
        }
    }
}
