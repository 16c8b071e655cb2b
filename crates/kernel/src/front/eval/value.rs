//! Values of constant expressions, the abstract ones among them, and their conversions. Values of `f16` are kept as f32 and rounded after each operation.
//! `text` gives WGSL for exactly this value and type, which is what a rewriting puts into the text: a negative number is in brackets, and what has no
//! constructor (the result of `frexp`) has no text.

use cantus_base::listed::Listed;

/// A scalar type.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::front) enum Ty {
    Bool,
    /// AbstractInt
    Int,
    /// AbstractFloat
    Float,
    I32,
    U32,
    F32,
    F16,
}

/// A scalar. Values of `f16` are kept as the `f32` of the same value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::front) enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    I32(i32),
    U32(u32),
    F32(f32),
    F16(f32),
}

/// A value. Matrices are kept column by column.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::front) enum Value {
    Scalar(Scalar),
    Vector(Vec<Scalar>),
    Matrix {
        rows: usize,
        cells: Vec<Scalar>,
    },
    Array(Vec<Value>),
    /// The result of `frexp` or `modf`: fraction, and exponent or whole part.
    Pair(&'static str, Box<[Value; 2]>),
}

/// The `f16` nearest to a number, as an `f32`; `None` beyond its range.
pub(super) fn to_half(value: f64) -> Option<f32> {
    let half = half::f16::from_f64(value);
    half.is_finite().then(|| half.to_f32())
}

impl Ty {
    /// Returns its name in WGSL, or what it is.
    pub(in crate::front) fn word(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int | Self::Float => "numbers",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::F32 => "f32",
            Self::F16 => "f16",
        }
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::Float | Self::F32 | Self::F16)
    }

    pub(super) fn is_int(self) -> bool {
        matches!(self, Self::Int | Self::I32 | Self::U32)
    }

    /// The scalar of that type with a float's value, rounded; `None` beyond its range.
    pub(super) fn float(self, value: f64) -> Option<Scalar> {
        Some(match self {
            Self::Float if value.is_finite() => Scalar::Float(value),
            Self::F32 if (value as f32).is_finite() => Scalar::F32(value as f32),
            Self::F16 => Scalar::F16(to_half(value)?),
            _ => return None,
        })
    }

    /// The scalar of that type with a whole value; `None` beyond its range.
    pub(super) fn int(self, value: i64) -> Option<Scalar> {
        Some(match self {
            Self::Int => Scalar::Int(value),
            Self::I32 => Scalar::I32(i32::try_from(value).ok()?),
            Self::U32 => Scalar::U32(u32::try_from(value).ok()?),
            _ => return None,
        })
    }

    pub(super) fn zero(self) -> Scalar {
        match self {
            Self::Bool => Scalar::Bool(false),
            Self::Int => Scalar::Int(0),
            Self::Float => Scalar::Float(0.0),
            Self::I32 => Scalar::I32(0),
            Self::U32 => Scalar::U32(0),
            Self::F32 => Scalar::F32(0.0),
            Self::F16 => Scalar::F16(0.0),
        }
    }

    /// Returns the type to which values of both convert; `None` if there is no such type.
    pub(in crate::front) fn common(self, other: Self) -> Option<Self> {
        use Ty::{F16, F32, Float, I32, Int, U32};
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Int, b @ (I32 | U32 | F32 | F16 | Float)) | (b @ (I32 | U32 | F32 | F16 | Float), Int) => Some(b),
            (Float, b @ (F32 | F16)) | (b @ (F32 | F16), Float) => Some(b),
            _ => None,
        }
    }

    /// The concrete type that an abstract one becomes by itself.
    pub(in crate::front) fn concrete(self) -> Self {
        match self {
            Self::Int => Self::I32,
            Self::Float => Self::F32,
            other => other,
        }
    }
}

impl Scalar {
    pub(super) fn ty(self) -> Ty {
        match self {
            Self::Bool(_) => Ty::Bool,
            Self::Int(_) => Ty::Int,
            Self::Float(_) => Ty::Float,
            Self::I32(_) => Ty::I32,
            Self::U32(_) => Ty::U32,
            Self::F32(_) => Ty::F32,
            Self::F16(_) => Ty::F16,
        }
    }

    /// The value of a float.
    pub(super) fn as_float(self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(value),
            Self::F32(value) | Self::F16(value) => Some(value.into()),
            _ => None,
        }
    }

    /// The value of a whole number.
    pub(super) fn as_int(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            Self::I32(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            _ => None,
        }
    }

    pub(super) fn as_bool(self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(value) } else { None }
    }

    /// Converts an abstract value to `ty`, as WGSL does implicitly.
    pub(super) fn coerced(self, ty: Ty) -> Option<Self> {
        match self {
            same if same.ty() == ty => Some(same),
            Self::Int(value) if ty.is_float() => ty.float(value as f64),
            Self::Int(value) => ty.int(value),
            Self::Float(value) => ty.float(value),
            _ => None,
        }
    }

    /// Converts the value as `T(value)` does.
    pub(super) fn converted(self, ty: Ty) -> Option<Self> {
        let truncated = |least: f64, most: f64| self.as_float().map(|value| value.trunc().clamp(least, most));
        // The largest floats below 2^31 and 2^32 are what a float is clamped to.
        let single = matches!(self, Self::F32(_));
        Some(match (self, ty) {
            (same, ty) if same.ty() == ty => same,
            (Self::Int(_) | Self::Float(_), Ty::Float) => return self.coerced(ty),
            (Self::Int(value), Ty::I32 | Ty::U32) => return ty.int(value),
            (_, Ty::Int | Ty::Float) => return None,
            (Self::Bool(value), ty) if ty.is_float() => return ty.float(u8::from(value).into()),
            (Self::Bool(value), ty) => return ty.int(value.into()),
            (value, Ty::Bool) => {
                Self::Bool(value.as_int().map_or_else(|| value.as_float() != Some(0.0), |whole| whole != 0))
            }
            (Self::U32(value), Ty::I32) => Self::I32(value as i32),
            (Self::I32(value), Ty::U32) => Self::U32(value as u32),
            (_, Ty::I32) => {
                Self::I32(truncated(i32::MIN.into(), if single { 2_147_483_520.0 } else { i32::MAX.into() })? as i32)
            }
            (_, Ty::U32) => Self::U32(truncated(0.0, if single { 4_294_967_040.0 } else { u32::MAX.into() })? as u32),
            (value, ty) => {
                let number = value.as_float().or_else(|| value.as_int().map(|whole| whole as f64))?;
                return ty.float(number);
            }
        })
    }

    /// A WGSL expression with exactly this value and type.
    fn text(self) -> String {
        // A sign before a literal is an operator of its own.
        let signed = |text: String| if text.starts_with('-') { format!("({text})") } else { text };
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(i64::MIN) => "(-9223372036854775807 - 1)".to_owned(),
            Self::Int(value) => signed(value.to_string()),
            Self::Float(value) => signed(format!("{value:e}")),
            Self::I32(i32::MIN) => "i32(-2147483648)".to_owned(),
            Self::I32(value) => signed(format!("{value}i")),
            Self::U32(value) => format!("{value}u"),
            Self::F32(value) => signed(format!("{value:e}f")),
            Self::F16(value) => signed(format!("{value:e}h")),
        }
    }
}

impl Value {
    /// Its scalars: of a scalar, a vector or a matrix.
    pub(super) fn cells(&self) -> Option<&[Scalar]> {
        match self {
            Self::Scalar(scalar) => Some(std::slice::from_ref(scalar)),
            Self::Vector(cells) | Self::Matrix { cells, .. } => Some(cells),
            _ => None,
        }
    }

    pub(super) fn ty(&self) -> Option<Ty> {
        self.cells()?.first().map(|scalar| scalar.ty())
    }

    pub(super) fn scalar(&self) -> Option<Scalar> {
        if let Self::Scalar(scalar) = self { Some(*scalar) } else { None }
    }

    /// The number of scalars in it, for bounds on work.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::Vector(cells) | Self::Matrix { cells, .. } => cells.len(),
            Self::Array(items) => items.iter().map(Self::size).sum::<usize>() + 1,
            Self::Pair(_, members) => members.iter().map(Self::size).sum(),
        }
    }

    /// The same shape, with each scalar changed.
    pub(super) fn map(&self, change: impl Fn(Scalar) -> Option<Scalar>) -> Option<Self> {
        let all = |cells: &[Scalar]| cells.iter().map(|&cell| change(cell)).try_listed();
        Some(match self {
            Self::Scalar(scalar) => Self::Scalar(change(*scalar)?),
            Self::Vector(cells) => Self::Vector(all(cells)?),
            Self::Matrix { rows, cells } => Self::Matrix { rows: *rows, cells: all(cells)? },
            _ => return None,
        })
    }

    /// As [`Scalar::coerced`], of every scalar.
    pub(super) fn coerced(&self, ty: Ty) -> Option<Self> {
        match self {
            Self::Array(items) => Some(Self::Array(items.iter().map(|item| item.coerced(ty)).try_listed()?)),
            other => other.map(|scalar| scalar.coerced(ty)),
        }
    }

    /// A WGSL expression with exactly this value and type; `None` for values whose type has no constructor.
    pub(in crate::front) fn text(&self) -> Option<String> {
        let join = |cells: &[Scalar]| cells.iter().map(|cell| cell.text()).listed().join(", ");
        let named = |cells: &[Scalar]| match cells.first().map(|cell| cell.ty()) {
            Some(Ty::Bool) => "<bool>",
            Some(Ty::I32) => "<i32>",
            Some(Ty::U32) => "<u32>",
            Some(Ty::F32) => "<f32>",
            Some(Ty::F16) => "<f16>",
            _ => "",
        };
        Some(match self {
            Self::Scalar(scalar) => scalar.text(),
            Self::Vector(cells) => format!("vec{}{}({})", cells.len(), named(cells), join(cells)),
            Self::Matrix { rows, cells } => {
                format!("mat{}x{rows}{}({})", cells.len() / (*rows).max(1), named(cells), join(cells))
            }
            Self::Array(_) | Self::Pair(..) => return None,
        })
    }
}
