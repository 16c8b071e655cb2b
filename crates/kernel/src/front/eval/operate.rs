//! Operators of constant expressions. `Evaluator` calls it with operands that have values. `None` is "no value here", which is an error of the text
//! (overflow, division by zero) or something unknown; the callers tell the two apart. Abstract numbers are i64 and f64 and must not wrap, concrete ones
//! wrap as at run time.

use super::super::tree::Operator;
use super::value::{Scalar, Ty, Value};
use cantus_base::listed::Listed;

pub(super) fn unary(operator: u8, value: &Value) -> Option<Value> {
    if matches!(value, Value::Matrix { .. }) {
        return None;
    }
    value.map(|scalar| {
        Some(match (operator, scalar) {
            (b'-', Scalar::Int(value)) => Scalar::Int(value.checked_neg()?),
            (b'-', Scalar::I32(value)) => Scalar::I32(value.wrapping_neg()),
            (b'-', Scalar::Float(value)) => Scalar::Float(-value),
            (b'-', Scalar::F32(value)) => Scalar::F32(-value),
            (b'-', Scalar::F16(value)) => Scalar::F16(-value),
            (b'!', Scalar::Bool(value)) => Scalar::Bool(!value),
            (b'~', Scalar::Int(value)) => Scalar::Int(!value),
            (b'~', Scalar::I32(value)) => Scalar::I32(!value),
            (b'~', Scalar::U32(value)) => Scalar::U32(!value),
            _ => return None,
        })
    })
}

pub(super) fn binary(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    if matches!(operator, Operator::ShiftLeft | Operator::ShiftRight) {
        return paired(left, right, |a, b| shift(operator, a, b));
    }
    let ty = left.ty()?.common(right.ty()?)?;
    let (left, right) = (left.coerced(ty)?, right.coerced(ty)?);
    match (&left, &right) {
        (Value::Matrix { rows, cells }, Value::Matrix { rows: other, cells: others }) => match operator {
            Operator::Multiply => {
                product(ty, (*rows, cells), (*other, others)).map(|cells| Value::Matrix { rows: *rows, cells })
            }
            Operator::Add | Operator::Subtract if rows == other && cells.len() == others.len() => {
                let cells = cells.iter().zip(others).map(|(&a, &b)| arithmetic(operator, a, b));
                Some(Value::Matrix { rows: *rows, cells: cells.try_listed()? })
            }
            _ => None,
        },
        (Value::Matrix { rows, cells }, Value::Vector(vector)) if operator == Operator::Multiply => {
            product(ty, (*rows, cells), (vector.len(), vector)).map(Value::Vector)
        }
        (Value::Vector(vector), Value::Matrix { rows, cells }) if operator == Operator::Multiply => {
            product(ty, (1, vector), (*rows, cells)).map(Value::Vector)
        }
        (Value::Matrix { .. }, Value::Scalar(scalar)) if operator == Operator::Multiply => {
            left.map(|cell| arithmetic(operator, cell, *scalar))
        }
        (Value::Scalar(scalar), Value::Matrix { .. }) if operator == Operator::Multiply => {
            right.map(|cell| arithmetic(operator, *scalar, cell))
        }
        (Value::Matrix { .. }, _) | (_, Value::Matrix { .. }) => None,
        _ => paired(&left, &right, |a, b| match operator {
            Operator::Equal
            | Operator::Differ
            | Operator::Less
            | Operator::LessEqual
            | Operator::Greater
            | Operator::GreaterEqual => compare(operator, a, b).map(Scalar::Bool),
            _ => arithmetic(operator, a, b),
        }),
    }
}

/// Scalars one by one; a scalar goes with each of a vector's.
pub(super) fn paired(left: &Value, right: &Value, with: impl Fn(Scalar, Scalar) -> Option<Scalar>) -> Option<Value> {
    Some(match (left, right) {
        (Value::Scalar(a), Value::Scalar(b)) => Value::Scalar(with(*a, *b)?),
        (Value::Scalar(a), Value::Vector(b)) => Value::Vector(b.iter().map(|&b| with(*a, b)).try_listed()?),
        (Value::Vector(a), Value::Scalar(b)) => Value::Vector(a.iter().map(|&a| with(a, *b)).try_listed()?),
        (Value::Vector(a), Value::Vector(b)) if a.len() == b.len() => {
            Value::Vector(a.iter().zip(b).map(|(&a, &b)| with(a, b)).try_listed()?)
        }
        _ => return None,
    })
}

/// Cells of a product: rows and cells of both.
fn product(ty: Ty, (rows, a): (usize, &[Scalar]), (inner, b): (usize, &[Scalar])) -> Option<Vec<Scalar>> {
    if inner == 0 || rows == 0 || a.len() != rows * inner {
        return None;
    }
    let mut cells = Vec::new();
    for column in b.chunks_exact(inner) {
        for row in 0..rows {
            let mut sum = 0.0;
            for (k, cell) in column.iter().enumerate() {
                sum += a.get(k * rows + row)?.as_float()? * cell.as_float()?;
            }
            cells.push(ty.float(sum)?);
        }
    }
    Some(cells)
}

pub(super) fn arithmetic(operator: Operator, a: Scalar, b: Scalar) -> Option<Scalar> {
    use Operator as O;
    let ty = a.ty();
    if let (Some(a), Some(b)) = (a.as_float(), b.as_float()) {
        return ty.float(match operator {
            O::Add => a + b,
            O::Subtract => a - b,
            O::Multiply => a * b,
            O::Divide => a / b,
            O::Remainder => a % b,
            _ => return None,
        });
    }
    Some(match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => Scalar::Bool(match operator {
            O::OrElse | O::Or => a || b,
            O::AndThen | O::And => a && b,
            _ => return None,
        }),
        (Scalar::Int(a), Scalar::Int(b)) => Scalar::Int(match operator {
            O::Add => a.checked_add(b)?,
            O::Subtract => a.checked_sub(b)?,
            O::Multiply => a.checked_mul(b)?,
            O::Divide => a.checked_div(b)?,
            O::Remainder => a.checked_rem(b)?,
            O::And => a & b,
            O::Or => a | b,
            O::Xor => a ^ b,
            _ => return None,
        }),
        (Scalar::I32(a), Scalar::I32(b)) => Scalar::I32(match operator {
            O::Add => a.wrapping_add(b),
            O::Subtract => a.wrapping_sub(b),
            O::Multiply => a.wrapping_mul(b),
            O::Divide => a.checked_div(b)?,
            O::Remainder => a.checked_rem(b)?,
            O::And => a & b,
            O::Or => a | b,
            O::Xor => a ^ b,
            _ => return None,
        }),
        (Scalar::U32(a), Scalar::U32(b)) => Scalar::U32(match operator {
            O::Add => a.wrapping_add(b),
            O::Subtract => a.wrapping_sub(b),
            O::Multiply => a.wrapping_mul(b),
            O::Divide => a.checked_div(b)?,
            O::Remainder => a.checked_rem(b)?,
            O::And => a & b,
            O::Or => a | b,
            O::Xor => a ^ b,
            _ => return None,
        }),
        _ => return None,
    })
}

fn compare(operator: Operator, a: Scalar, b: Scalar) -> Option<bool> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => match operator {
            Operator::Equal | Operator::Differ => a.cmp(&b),
            _ => return None,
        },
        _ => match (a.as_int(), b.as_int()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_float()?.partial_cmp(&b.as_float()?)?,
        },
    };
    Some(match operator {
        Operator::Equal => order == Equal,
        Operator::Differ => order != Equal,
        Operator::Less => order == Less,
        Operator::LessEqual => order != Greater,
        Operator::Greater => order == Greater,
        Operator::GreaterEqual => order != Less,
        _ => return None,
    })
}

/// Bits that a concrete type lacks are an error; an abstract integer has 64 and fills up with its sign.
fn shift(operator: Operator, value: Scalar, by: Scalar) -> Option<Scalar> {
    let by = match by {
        Scalar::U32(by) => by,
        Scalar::Int(by) => u32::try_from(by).ok()?,
        _ => return None,
    };
    Some(match (operator, value) {
        (Operator::ShiftRight, Scalar::Int(value)) => Scalar::Int(value >> by.min(63)),
        (Operator::ShiftRight, Scalar::I32(value)) => Scalar::I32(value.checked_shr(by)?),
        (Operator::ShiftRight, Scalar::U32(value)) => Scalar::U32(value.checked_shr(by)?),
        (Operator::ShiftLeft, Scalar::Int(0)) => Scalar::Int(0),
        (Operator::ShiftLeft, Scalar::Int(value)) => {
            let shifted = value.checked_shl(by)?;
            (shifted >> by == value).then_some(Scalar::Int(shifted))?
        }
        (Operator::ShiftLeft, Scalar::I32(value)) => {
            let shifted = value.checked_shl(by)?;
            (shifted >> by == value).then_some(Scalar::I32(shifted))?
        }
        (Operator::ShiftLeft, Scalar::U32(value)) => {
            let shifted = value.checked_shl(by)?;
            (shifted >> by == value).then_some(Scalar::U32(shifted))?
        }
        _ => return None,
    })
}
