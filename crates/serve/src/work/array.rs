//! Arrays that come in. `body` reads arrays and `work` checks them before a device is involved. A number of JSON has no type, so what the dtype cannot hold
//! exactly enough is refused with its place (a JSON pointer), never wrapped or made infinite.

use cantus::DType;
use cantus::half::{bf16, f16};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Problem;

macro_rules! names {
    ($($name:ident = $dtype:ident),*) => {
        /// A dtype's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
        #[serde(rename_all = "lowercase")]
        pub enum DTypeName {
            $($name,)*
        }

        impl DTypeName {
            /// The library's dtype.
            pub fn dtype(self) -> DType {
                match self {
                    $(Self::$name => DType::$dtype,)*
                }
            }

            /// The name of the library's dtype.
            pub fn of(dtype: DType) -> Option<Self> {
                [$(Self::$name),*].into_iter().find(|name| name.dtype() == dtype)
            }
        }
    };
}
names! {
    Bool = Bool, I8 = I8, U8 = U8, I16 = I16, U16 = U16, I32 = I32, U32 = U32, I64 = I64, U64 = U64, F16 = F16, Bf16 = BF16, F32 = F32,
    F64 = F64, Complex64 = Complex64, Complex128 = Complex128
}

/// A tensor in JSON.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// The dtype of the elements.
    pub dtype: DTypeName,
    /// Lengths of the axes; without it one axis of all elements.
    #[serde(default)]
    #[schema(max_items = 16)]
    pub shape: Option<Vec<u32>>,
    /// The elements, row-major.
    #[serde(deserialize_with = "super::listed")]
    pub data: Vec<Number>,
    /// The elements once they are checked, or as they came.
    #[serde(skip)]
    #[schema(ignore)]
    held: Option<Vec<u8>>,
}

/// An element of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole number of at least 0.
    Natural(u64),
    /// A whole number.
    Integer(i64),
    /// Any number; also "NaN", "Infinity" and "-Infinity".
    Float(f64),
    /// False or true.
    Boolean(bool),
    /// A complex number: its real and its imaginary part.
    Complex(f64, f64),
}

crate::work::described!(Number, "A number; \"NaN\", \"Infinity\" or \"-Infinity\"; of bool false or true; of complex numbers the real and the imaginary part.", {
    "anyOf": [
        { "type": "number" },
        { "type": "string", "enum": ["NaN", "Infinity", "-Infinity"] },
        { "type": "boolean" },
        { "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 },
    ]
});

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Number;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "a number, false, true, \"NaN\", \"Infinity\", \"-Infinity\", or the two parts of a complex number",
                )
            }
            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number::Natural(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number::Integer(value))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number::Float(value))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Number, E> {
                Ok(Number::Boolean(value))
            }
            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Number, E> {
                match value {
                    "NaN" => Ok(Number::Float(f64::NAN)),
                    "Infinity" => Ok(Number::Float(f64::INFINITY)),
                    "-Infinity" => Ok(Number::Float(f64::NEG_INFINITY)),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut parts: A) -> Result<Number, A::Error> {
                let mut part = || parts.next_element::<f64>();
                match (part()?, part()?, part()?) {
                    (Some(real), Some(imaginary), None) => Ok(Number::Complex(real, imaginary)),
                    _ => Err(serde::de::Error::invalid_length(0, &self)),
                }
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl Array {
    /// An array that came as bytes.
    ///
    /// # Errors
    /// 422 for a dtype that has no name here, or bytes that are not what the shape takes.
    pub fn of_bytes(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Self, Problem> {
        let dtype =
            DTypeName::of(dtype).ok_or_else(|| Problem::invalid(format!("arrays of {dtype} are not supported")))?;
        let array = Self {
            dtype,
            shape: Some(shape.iter().map(|&side| u32::try_from(side).unwrap_or(u32::MAX)).collect()),
            data: Vec::new(),
            held: Some(bytes),
        };
        match array.length() {
            Some(expected) if array.held.as_ref().is_some_and(|held| held.len() == expected) => Ok(array),
            _ => Err(Problem::invalid(format!("the bytes are not those of {shape:?} elements of {}", dtype.dtype()))),
        }
    }

    /// Lengths of the axes.
    pub fn sides(&self) -> Vec<usize> {
        match &self.shape {
            Some(shape) => shape.iter().map(|&side| side as usize).collect(),
            None => vec![self.data.len()],
        }
    }

    /// Bytes of the elements.
    pub fn length(&self) -> Option<usize> {
        let sides = self.sides();
        sides.iter().try_fold(self.dtype.dtype().bytes(), |product, &side| product.checked_mul(side))
    }

    /// Checks shape and elements, and turns the elements into bytes.
    ///
    /// # Errors
    /// 422 with the place below `pointer`.
    pub fn check(&mut self, pointer: &str) -> Result<(), Problem> {
        if self.held.is_some() {
            return Ok(());
        }
        let dtype = self.dtype.dtype();
        let (sides, count) = (self.sides(), self.data.len());
        if sides.len() > 16 {
            return Err(Problem::invalid("an array has at most 16 axes").at(format!("{pointer}/shape")));
        }
        if sides.iter().try_fold(1_usize, |product, &side| product.checked_mul(side)) != Some(count) {
            return Err(Problem::invalid(format!("{count} elements do not have the shape {sides:?}"))
                .at(format!("{pointer}/shape")));
        }
        let mut bytes = super::room(count.saturating_mul(dtype.bytes()))?;
        for (place, number) in self.data.iter().enumerate() {
            put(&mut bytes, dtype, *number).ok_or_else(|| {
                Problem::invalid(format!("this is not a {dtype}")).at(format!("{pointer}/data/{place}"))
            })?;
        }
        self.data = Vec::new();
        self.shape = Some(sides.iter().map(|&side| u32::try_from(side).unwrap_or(u32::MAX)).collect());
        self.held = Some(bytes);
        Ok(())
    }

    /// The elements' bytes, without a copy.
    ///
    /// # Errors
    /// As [`Array::bytes`].
    #[cfg(feature = "zk")]
    pub fn into_bytes(self) -> Result<Vec<u8>, Problem> {
        self.held.ok_or_else(Problem::internal)
    }

    /// The elements' bytes.
    ///
    /// # Errors
    /// 500 before they were checked.
    pub fn bytes(&self) -> Result<&[u8], Problem> {
        self.held.as_deref().ok_or_else(Problem::internal)
    }
}

impl Number {
    /// The whole number that it is. One with a point or an exponent was read as a float64: beyond 2^53 that may be another number than was written.
    pub fn whole(self) -> Option<i128> {
        match self {
            Self::Natural(value) => Some(i128::from(value)),
            Self::Integer(value) => Some(i128::from(value)),
            // 2^53 is what 2^53 + 1 is read as, too.
            Self::Float(value) if value.fract() == 0.0 && value.abs() < EXACT as f64 => Some(value as i128),
            _ => None,
        }
    }

    /// The real number that it is, rounded to a float64.
    pub fn real(self) -> Option<f64> {
        match self {
            Self::Natural(value) => Some(value as f64),
            Self::Integer(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Boolean(_) | Self::Complex(..) => None,
        }
    }
}

/// Up to here every whole number is a float64.
pub const EXACT: i128 = 1 << 53;

fn put(bytes: &mut Vec<u8>, dtype: DType, number: Number) -> Option<()> {
    let whole = number.whole();
    let real = number.real();
    // JSON's text has no type: what is beyond the dtype's largest number is refused, not made infinite.
    let finite = |narrow: f64, wide: f64| (narrow.is_finite() || !wide.is_finite()).then_some(());
    match dtype {
        DType::Bool => match number {
            Number::Boolean(value) => bytes.push(u8::from(value)),
            _ => return None,
        },
        DType::I8 => bytes.extend(i8::try_from(whole?).ok()?.to_ne_bytes()),
        DType::U8 => bytes.extend(u8::try_from(whole?).ok()?.to_ne_bytes()),
        DType::I16 => bytes.extend(i16::try_from(whole?).ok()?.to_ne_bytes()),
        DType::U16 => bytes.extend(u16::try_from(whole?).ok()?.to_ne_bytes()),
        DType::I32 => bytes.extend(i32::try_from(whole?).ok()?.to_ne_bytes()),
        DType::U32 => bytes.extend(u32::try_from(whole?).ok()?.to_ne_bytes()),
        DType::I64 => bytes.extend(i64::try_from(whole?).ok()?.to_ne_bytes()),
        DType::U64 => bytes.extend(u64::try_from(whole?).ok()?.to_ne_bytes()),
        DType::F16 => {
            let value = f16::from_f64(real?);
            finite(value.to_f64(), real?)?;
            bytes.extend(value.to_ne_bytes());
        }
        DType::BF16 => {
            let value = bf16::from_f64(real?);
            finite(value.to_f64(), real?)?;
            bytes.extend(value.to_ne_bytes());
        }
        DType::F32 => {
            let value = real? as f32;
            finite(f64::from(value), real?)?;
            bytes.extend(value.to_ne_bytes());
        }
        DType::F64 => bytes.extend(real?.to_ne_bytes()),
        DType::Complex64 | DType::Complex128 => {
            let (re, im) = match number {
                Number::Complex(re, im) => (re, im),
                _ => (real?, 0.0),
            };
            let part = if dtype == DType::Complex64 { DType::F32 } else { DType::F64 };
            put(bytes, part, Number::Float(re))?;
            put(bytes, part, Number::Float(im))?;
        }
    }
    Some(())
}
