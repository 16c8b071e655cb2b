//! Loops in which one variable takes the value that another one had: what a compiler's vectoriser must carry from round to round.

use crate::flow::blocks;
use naga::{Block, Expression, Function, Handle, LocalVariable, Module, Statement};

/// Returns whether a loop of the module stores one local variable, as it is, into another, and writes both.
pub(super) fn has_recurrence(module: &Module) -> bool {
    let functions = module.functions.iter().map(|(_, function)| function);
    functions.chain(module.entry_points.iter().map(|entry| &entry.function)).any(|function| {
        let mut loops = Vec::new();
        find_loops(&function.body, &mut loops);
        loops.iter().any(|blocks| carries(function, blocks))
    })
}

/// Loops, the inner ones too: each body with what continues it.
fn find_loops<'a>(block: &'a Block, loops: &mut Vec<[&'a Block; 2]>) {
    for statement in block {
        if let Statement::Loop { body, continuing, .. } = statement {
            loops.push([body, continuing]);
        }
        blocks(statement).into_iter().for_each(|inner| find_loops(inner, loops));
    }
}

fn carries(function: &Function, blocks: &[&Block; 2]) -> bool {
    let mut stores = Vec::new();
    blocks.iter().for_each(|block| find_stores(function, block, &mut stores));
    let is_written = |variable| stores.iter().any(|(target, _)| *target == variable);
    stores.iter().any(|(target, source)| source.is_some_and(|source| source != *target && is_written(source)))
}

/// Each local variable that is written, and the one whose value it takes.
fn find_stores(
    function: &Function,
    block: &Block,
    stores: &mut Vec<(Handle<LocalVariable>, Option<Handle<LocalVariable>>)>,
) {
    for statement in block {
        if let Statement::Store { pointer, value } = statement
            && let Some(target) = variable(function, *pointer)
        {
            let source = match function.expressions[*value] {
                Expression::Load { pointer } => variable(function, pointer),
                _ => None,
            };
            stores.push((target, source));
        }
        blocks(statement).into_iter().for_each(|block| find_stores(function, block, stores));
    }
}

/// The local variable that a pointer is to, or to a part of.
fn variable(function: &Function, pointer: Handle<Expression>) -> Option<Handle<LocalVariable>> {
    match function.expressions[pointer] {
        Expression::LocalVariable(variable) => Some(variable),
        Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => variable(function, base),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    fn found(body: &str) -> bool {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
             @compute @workgroup_size(1) fn main() {{ var a = 0u; var b = 1u; var v = vec2u(1u, 2u); {body} y[0] = a + b + v.x; }}"
        );
        super::has_recurrence(&naga::front::wgsl::parse_str(&text).unwrap())
    }

    #[test]
    fn what_goes_from_variable_to_variable_in_a_loop_is_found() {
        assert!(found("for (var k = 0u; k < 9u; k++) { let t = a; a = b; b = t + b; }"));
        assert!(found("loop { if a > 9u { break; } if b > 3u { a = b; } b += 2u; }"));
        assert!(found("for (var k = 0u; k < 9u; k++) { for (var j = 0u; j < 2u; j++) { v.x = b; b += j; } }"));
        assert!(!found("let t = a; a = b; b = t + b;"));
        assert!(!found("for (var k = 0u; k < 9u; k++) { a += k; b = a * 3u; }"));
        assert!(!found("for (var k = 0u; k < 9u; k++) { a = b; }"));
    }
}
