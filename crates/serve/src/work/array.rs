//! Arrays in and out: JSON, `.npy`, safetensors, and bytes behind a line of JSON.

use cantus::half::{bf16, f16};
use cantus::tensor::npy;
use cantus::{DType, Tensor};
use serde::ser::{SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::job::Shape;
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
        let mut bytes = Vec::with_capacity(count * dtype.bytes());
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

/// The result of a computation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The shape of the bytes.
    pub shape: Shape,
    /// Elements in the machine's byte order, row-major; of a field 32-bit limbs, the least significant first.
    pub bytes: Vec<u8>,
}

/// The dtype that a result has in a file.
fn file_dtype(shape: &Shape) -> (DType, Vec<usize>) {
    match shape.hex {
        None => (shape.dtype.parse().unwrap_or(DType::U8), shape.shape.clone()),
        // Limbs of 32 bits along one more axis, where an element has several.
        Some(4) => (DType::U32, shape.shape.clone()),
        Some(bytes) if is_field(shape) => (DType::U32, shape.shape.iter().copied().chain([bytes / 4]).collect()),
        Some(bytes) => (DType::U8, shape.shape.iter().copied().chain([bytes]).collect()),
    }
}

fn is_field(shape: &Shape) -> bool {
    !shape.dtype.ends_with("-g1") && !shape.dtype.ends_with("-g2") && shape.dtype != "digest"
}

impl Output {
    /// A tensor's elements.
    ///
    /// # Errors
    /// As reading it.
    pub fn of(tensor: &Tensor) -> cantus::Result<Self> {
        let mut bytes = tensor.to_bytes()?;
        bytes.truncate(usize::try_from(tensor.byte_len()).unwrap_or(usize::MAX));
        let shape = Shape { dtype: tensor.dtype().name().to_owned(), shape: tensor.shape().to_vec(), hex: None };
        Ok(Self { shape, bytes })
    }

    /// Returns it as `.npy`.
    ///
    /// # Errors
    /// 500 for a shape that the format has no room for.
    pub fn npy(&self) -> Result<Vec<u8>, Problem> {
        let (dtype, shape) = file_dtype(&self.shape);
        let mut file = Vec::with_capacity(self.bytes.len() + 128);
        npy::write_header(&mut file, dtype, &shape).map_err(|_| Problem::internal())?;
        file.extend_from_slice(&self.bytes);
        Ok(file)
    }

    /// Returns it as safetensors, under the name `result`.
    ///
    /// # Errors
    /// 406 for a dtype that the format does not have.
    pub fn safetensors(&self) -> Result<Vec<u8>, Problem> {
        use safetensors::tensor::{Dtype, TensorView};
        let (dtype, shape) = file_dtype(&self.shape);
        // The format's names are the library's in capitals.
        let dtype: Dtype = serde_json::from_value(dtype.name().to_uppercase().into()).map_err(|_| {
            Problem::new(
                axum::http::StatusCode::NOT_ACCEPTABLE,
                "not-acceptable",
                "the result cannot have this form",
                format!("safetensors cannot hold {dtype}: accept application/x-npy"),
            )
        })?;
        let view = TensorView::new(dtype, shape, &self.bytes).map_err(|_| Problem::internal())?;
        safetensors::serialize([("result", view)], None).map_err(|_| Problem::internal())
    }

    /// A line of JSON that describes the bytes, and the bytes.
    pub fn raw(&self) -> Vec<u8> {
        let (dtype, shape) = file_dtype(&self.shape);
        let mut out = serde_json::json!({"dtype": dtype.name(), "shape": shape, "bytes": self.bytes.len()})
            .to_string()
            .into_bytes();
        out.push(b'\n');
        out.extend_from_slice(&self.bytes);
        out
    }
}

/// Elements as JSON shows them.
pub struct Shown<'a>(pub &'a Output);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Output { shape, bytes } = self.0;
        if let Some(each) = shape.hex.filter(|&each| each > 0) {
            let mut list = to.serialize_seq(Some(bytes.len() / each))?;
            for element in bytes.chunks_exact(each) {
                let mut text = String::with_capacity(2 + 2 * each);
                text.push_str("0x");
                let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(u32::from(digit), 16));
                let push = |text: &mut String, byte: &u8| text.extend(digits(byte).into_iter().flatten());
                // Limbs begin with the least significant byte; points are big-endian as they are.
                if is_field(shape) {
                    element.iter().rev().for_each(|byte| push(&mut text, byte));
                } else {
                    element.iter().for_each(|byte| push(&mut text, byte));
                }
                list.serialize_element(&text)?;
            }
            return list.end();
        }
        let dtype: DType = shape.dtype.parse().map_err(serde::ser::Error::custom)?;
        let mut list = to.serialize_seq(Some(bytes.len() / dtype.bytes()))?;
        for element in bytes.chunks_exact(dtype.bytes()) {
            match dtype {
                DType::Bool => list.serialize_element(&(element.first() != Some(&0)))?,
                DType::I8 => list.serialize_element(&of::<i8>(element))?,
                DType::U8 => list.serialize_element(&of::<u8>(element))?,
                DType::I16 => list.serialize_element(&of::<i16>(element))?,
                DType::U16 => list.serialize_element(&of::<u16>(element))?,
                DType::I32 => list.serialize_element(&of::<i32>(element))?,
                DType::U32 => list.serialize_element(&of::<u32>(element))?,
                DType::I64 => list.serialize_element(&of::<i64>(element))?,
                DType::U64 => list.serialize_element(&of::<u64>(element))?,
                DType::F16 => list.serialize_element(&Float(f16::from_bits(of::<u16>(element)).to_f32()))?,
                DType::BF16 => list.serialize_element(&Float(bf16::from_bits(of::<u16>(element)).to_f32()))?,
                DType::F32 => list.serialize_element(&Float(of::<f32>(element)))?,
                DType::F64 => list.serialize_element(&Double(of::<f64>(element)))?,
                DType::Complex64 => list.serialize_element(&of::<[f32; 2]>(element).map(Float))?,
                DType::Complex128 => list.serialize_element(&of::<[f64; 2]>(element).map(Double))?,
            }
        }
        list.end()
    }
}

fn of<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> T {
    bytemuck::pod_read_unaligned(bytes)
}

/// Numbers, and names for NaN and infinities.
struct Float(f32);
struct Double(f64);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { to.serialize_f32(self.0) } else { Double(f64::from(self.0)).serialize(to) }
    }
}

impl Serialize for Double {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            value if value.is_finite() => to.serialize_f64(value),
            value if value.is_nan() => to.serialize_str("NaN"),
            value if value > 0.0 => to.serialize_str("Infinity"),
            _ => to.serialize_str("-Infinity"),
        }
    }
}
