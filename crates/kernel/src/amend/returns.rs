//! Functions that end in a loop which only `return` leaves. naga puts a return without a value behind the loop, which its validator refuses;
//! that place is never reached, so it returns zero.

use naga::{Block, Expression, Handle, Module, Span, Statement};

use crate::flow::breaks;

pub(super) fn settle(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        let Some(result) = &function.result else { continue };
        if needs(&function.body) {
            let zero = function.expressions.append(Expression::ZeroValue(result.ty), Span::UNDEFINED);
            settle_block(&mut function.body, zero);
        }
    }
}

/// A loop that only a return leaves is followed by a return without a value.
fn is_endless(block: &[Statement]) -> bool {
    match block {
        [.., Statement::Loop { body, continuing, break_if: None }, Statement::Return { value: None }] => {
            !breaks(body) && !breaks(continuing)
        }
        _ => false,
    }
}

fn needs(block: &Block) -> bool {
    is_endless(block)
        || match block.last() {
            Some(Statement::Block(inner)) => needs(inner),
            Some(Statement::If { accept, reject, .. }) => needs(accept) || needs(reject),
            Some(Statement::Switch { cases, .. }) => cases.iter().any(|case| needs(&case.body)),
            _ => false,
        }
}

fn settle_block(block: &mut Block, zero: Handle<Expression>) {
    let endless = is_endless(block);
    match block.last_mut() {
        Some(Statement::Return { value }) if endless => *value = Some(zero),
        Some(Statement::Block(inner)) => settle_block(inner, zero),
        Some(Statement::If { accept, reject, .. }) => {
            settle_block(accept, zero);
            settle_block(reject, zero);
        }
        Some(Statement::Switch { cases, .. }) => {
            for case in cases {
                settle_block(&mut case.body, zero);
            }
        }
        _ => {}
    }
}
