//! Types of constant expressions, and their constructors. `Evaluator` calls it for constructors and for the types in declarations. `inferred` is for those
//! without template arguments, whose scalar type the values decide; abstract values stay abstract until something concrete is asked for.

use super::value::{Scalar, Ty, Value};
use cantus_base::listed::Listed;

/// A type with constructors.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Scalar(Ty),
    Vector(usize, Ty),
    /// Columns, rows.
    Matrix(usize, usize, Ty),
    Array(Box<Type>, Option<u32>),
}

/// A type whose scalar comes from the arguments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
    Vector(usize),
    Matrix(usize, usize),
    Array,
}

/// Longer arrays are not evaluated.
const MOST_ELEMENTS: u32 = 1 << 16;

impl Shape {
    pub(super) fn inferred(word: &str) -> Option<Self> {
        let side = |text: &str| text.parse().ok().filter(|side| (2..=4).contains(side));
        if word == "array" {
            return Some(Self::Array);
        }
        if let Some(size) = word.strip_prefix("vec") {
            return side(size).map(Self::Vector);
        }
        let (columns, rows) = word.strip_prefix("mat")?.split_once('x')?;
        Some(Self::Matrix(side(columns)?, side(rows)?))
    }
}

/// A predeclared type without template arguments.
pub(super) fn plain(word: &str) -> Option<Type> {
    Some(Type::Scalar(match word {
        "bool" => Ty::Bool,
        "i32" => Ty::I32,
        "u32" => Ty::U32,
        "f32" => Ty::F32,
        "f16" => Ty::F16,
        _ => {
            let scalar = match word.chars().last()? {
                'i' => Ty::I32,
                'u' => Ty::U32,
                'f' => Ty::F32,
                'h' => Ty::F16,
                _ => return None,
            };
            return match Shape::inferred(word.get(..word.len() - 1)?)? {
                Shape::Vector(size) => Some(Type::Vector(size, scalar)),
                Shape::Matrix(columns, rows) => Some(Type::Matrix(columns, rows, scalar)),
                Shape::Array => None,
            };
        }
    }))
}

impl Type {
    pub(super) fn scalar(&self) -> Option<Ty> {
        match self {
            Self::Scalar(ty) | Self::Vector(_, ty) | Self::Matrix(_, _, ty) => Some(*ty),
            Self::Array(..) => None,
        }
    }

    /// True for a value of this type.
    pub(super) fn describes(&self, value: &Value) -> bool {
        value.ty() == self.scalar()
            && match (self, value) {
                (Self::Scalar(_), Value::Scalar(_)) => true,
                (Self::Vector(size, _), Value::Vector(cells)) => *size == cells.len(),
                (Self::Matrix(columns, rows, _), Value::Matrix { rows: found, cells }) => {
                    rows == found && columns * rows == cells.len()
                }
                _ => false,
            }
    }

    fn zero(&self) -> Option<Value> {
        Some(match self {
            Self::Scalar(ty) => Value::Scalar(ty.zero()),
            Self::Vector(size, ty) => Value::Vector(vec![ty.zero(); *size]),
            Self::Matrix(columns, rows, ty) => Value::Matrix { rows: *rows, cells: vec![ty.zero(); columns * rows] },
            Self::Array(element, count) => {
                let count = count.filter(|count| *count <= MOST_ELEMENTS)?;
                let element = element.zero()?;
                (element.size().checked_mul(count as usize)? <= MOST_ELEMENTS as usize).then_some(())?;
                Value::Array(vec![element; count as usize])
            }
        })
    }
}

/// The type that all of the values become.
pub(super) fn common(values: &[Value]) -> Option<Ty> {
    let mut types = values.iter().map(Value::ty);
    let first = types.next()??;
    types.try_fold(first, |all, ty| all.common(ty?))
}

/// `vec3(…)`, `array(…)`.
pub(super) fn inferred(shape: Shape, values: Vec<Value>) -> Option<Value> {
    match shape {
        Shape::Array => {
            let nested = values.iter().any(|value| matches!(value, Value::Array(_) | Value::Pair(..)));
            if nested {
                return Some(Value::Array(values));
            }
            let ty = common(&values)?;
            let items = values.iter().map(|value| value.coerced(ty)).try_listed()?;
            Some(Value::Array(items))
        }
        // Zeros of an abstract type.
        Shape::Vector(size) if values.is_empty() => Some(Value::Vector(vec![Scalar::Int(0); size])),
        Shape::Vector(size) => constructed(&Type::Vector(size, common(&values)?), values),
        Shape::Matrix(columns, rows) => {
            let ty = common(&values)?;
            let ty = if ty == Ty::Int { Ty::Float } else { ty };
            constructed(&Type::Matrix(columns, rows, ty), values)
        }
    }
}

/// A constructor, or a conversion.
pub(super) fn constructed(ty: &Type, values: Vec<Value>) -> Option<Value> {
    if values.is_empty() {
        return ty.zero();
    }
    match ty {
        Type::Scalar(scalar) => match values.as_slice() {
            [Value::Scalar(value)] => value.converted(*scalar).map(Value::Scalar),
            _ => None,
        },
        Type::Vector(size, scalar) => {
            let cells = match values.as_slice() {
                // One scalar for all, or a vector of another type.
                [Value::Scalar(value)] => vec![value.coerced(*scalar)?; *size],
                [Value::Vector(cells)] => cells.iter().map(|cell| cell.converted(*scalar)).try_listed()?,
                _ => flattened(&values, *scalar)?,
            };
            (cells.len() == *size).then_some(Value::Vector(cells))
        }
        Type::Matrix(columns, rows, scalar) => {
            let cells = match values.as_slice() {
                [Value::Matrix { rows: found, cells }] if rows == found => {
                    cells.iter().map(|cell| cell.converted(*scalar)).try_listed()?
                }
                [Value::Matrix { .. }] => return None,
                _ => flattened(&values, *scalar)?,
            };
            (cells.len() == columns * rows).then_some(Value::Matrix { rows: *rows, cells })
        }
        Type::Array(element, count) => {
            count.is_none_or(|count| count as usize == values.len()).then_some(())?;
            let items = values.into_iter().map(|value| {
                if let Type::Array(..) = **element {
                    return Some(value);
                }
                let value = value.coerced(element.scalar()?)?;
                element.describes(&value).then_some(value)
            });
            Some(Value::Array(items.try_listed()?))
        }
    }
}

/// The scalars of scalars and vectors, in order.
fn flattened(values: &[Value], ty: Ty) -> Option<Vec<Scalar>> {
    let mut cells = Vec::new();
    for value in values {
        if matches!(value, Value::Matrix { .. }) {
            return None;
        }
        for cell in value.cells()? {
            cells.push(cell.coerced(ty)?);
        }
    }
    Some(cells)
}
