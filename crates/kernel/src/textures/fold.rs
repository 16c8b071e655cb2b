//! Arithmetic on literals: what the library asks of formats and shapes.

use naga::{BinaryOperator, Literal, UnaryOperator};

pub(super) fn binary(op: BinaryOperator, left: Literal, right: Literal) -> Option<Literal> {
    use BinaryOperator as Op;
    Some(match (left, right) {
        (Literal::U32(a), Literal::U32(b)) => match op {
            Op::Add => Literal::U32(a.wrapping_add(b)),
            Op::Subtract => Literal::U32(a.wrapping_sub(b)),
            Op::Multiply => Literal::U32(a.wrapping_mul(b)),
            Op::And => Literal::U32(a & b),
            Op::InclusiveOr => Literal::U32(a | b),
            Op::ExclusiveOr => Literal::U32(a ^ b),
            Op::ShiftLeft => Literal::U32(a.checked_shl(b)?),
            Op::ShiftRight => Literal::U32(a.checked_shr(b)?),
            Op::Equal => Literal::Bool(a == b),
            Op::NotEqual => Literal::Bool(a != b),
            Op::Less => Literal::Bool(a < b),
            Op::LessEqual => Literal::Bool(a <= b),
            Op::Greater => Literal::Bool(a > b),
            Op::GreaterEqual => Literal::Bool(a >= b),
            _ => return None,
        },
        (Literal::I32(a), Literal::I32(b)) => match op {
            Op::Equal => Literal::Bool(a == b),
            Op::NotEqual => Literal::Bool(a != b),
            _ => return None,
        },
        (Literal::Bool(a), Literal::Bool(b)) => match op {
            Op::And | Op::LogicalAnd => Literal::Bool(a && b),
            Op::InclusiveOr | Op::LogicalOr => Literal::Bool(a || b),
            Op::Equal => Literal::Bool(a == b),
            Op::NotEqual => Literal::Bool(a != b),
            _ => return None,
        },
        _ => return None,
    })
}

pub(super) fn unary(op: UnaryOperator, operand: Literal) -> Option<Literal> {
    Some(match (op, operand) {
        (UnaryOperator::LogicalNot, Literal::Bool(value)) => Literal::Bool(!value),
        (UnaryOperator::BitwiseNot, Literal::U32(value)) => Literal::U32(!value),
        _ => return None,
    })
}
