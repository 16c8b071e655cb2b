//! Results: as JSON, `.npy`, safetensors, and bytes behind a line of JSON. Each form is a head, the elements, and an end. `run` makes it and `api/answer`
//! writes it. A form is a head, elements and an end, so any part of the elements can be written when it is read. NaN and infinities are strings in JSON;
//! field elements are limbs in files and digits in JSON.

use std::collections::BTreeMap;

use cantus::half::{bf16, f16};
use cantus::tensor::npy;
use cantus::{DType, Tensor};
use safetensors::tensor::{Dtype, TensorInfo};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::job::Shape;
use crate::problem::Problem;

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
}

impl Shape {
    /// Bytes of an element.
    pub fn each(&self) -> usize {
        self.hex.unwrap_or_else(|| self.dtype.parse().map_or(1, DType::bytes)).max(1)
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().fold(self.each() as u64, |product, &side| product.saturating_mul(side as u64))
    }

    /// Bytes of elements whose text has about that many bytes.
    pub fn within(&self, text: usize) -> usize {
        // Two digits a byte, or the longest number: two of float64.
        let longest = self.hex.map_or(56, |bytes| 2 * bytes + 5);
        (text / longest).max(1) * self.each()
    }

    /// Returns the header of a `.npy`.
    ///
    /// # Errors
    /// 500 for a shape that the format has no room for.
    pub fn npy(&self) -> Result<Vec<u8>, Problem> {
        let (dtype, shape) = file_dtype(self);
        let mut head = Vec::new();
        npy::write_header(&mut head, dtype, &shape).map_err(|_| Problem::internal())?;
        Ok(head)
    }

    /// Returns the header of safetensors, where the elements have the name `result`.
    ///
    /// # Errors
    /// 406 for a dtype that the format does not have.
    pub fn safetensors(&self) -> Result<Vec<u8>, Problem> {
        let (dtype, shape) = file_dtype(self);
        let dtype = match dtype {
            DType::Bool => Dtype::BOOL,
            DType::I8 => Dtype::I8,
            DType::U8 => Dtype::U8,
            DType::I16 => Dtype::I16,
            DType::U16 => Dtype::U16,
            DType::I32 => Dtype::I32,
            DType::U32 => Dtype::U32,
            DType::I64 => Dtype::I64,
            DType::U64 => Dtype::U64,
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
            DType::F32 => Dtype::F32,
            DType::F64 => Dtype::F64,
            other => {
                return Err(Problem::new(
                    axum::http::StatusCode::NOT_ACCEPTABLE,
                    "not-acceptable",
                    "the result cannot have this form",
                    format!("safetensors cannot hold {other}: accept application/x-npy"),
                ));
            }
        };
        let end = usize::try_from(self.bytes()).map_err(|_| Problem::internal())?;
        let tensors = BTreeMap::from([("result", TensorInfo { dtype, shape, data_offsets: (0, end) })]);
        let mut header = serde_json::to_vec(&tensors).map_err(|_| Problem::internal())?;
        // The elements begin at a multiple of eight.
        header.resize(header.len().next_multiple_of(8), b' ');
        let mut head = (header.len() as u64).to_le_bytes().to_vec();
        head.extend(header);
        Ok(head)
    }

    /// The line of JSON that is before the elements as they are.
    pub fn raw(&self) -> Vec<u8> {
        let (dtype, shape) = file_dtype(self);
        let line = serde_json::json!({"dtype": dtype.name(), "shape": shape, "bytes": self.bytes()});
        format!("{line}\n").into_bytes()
    }

    /// Elements as JSON, with commas between them.
    ///
    /// # Errors
    /// 500 for a dtype that has no name.
    pub fn json(&self, elements: &[u8]) -> Result<Vec<u8>, Problem> {
        let mut text = serde_json::to_vec(&Shown(self, elements)).map_err(|_| Problem::internal())?;
        // Without the brackets.
        text.pop();
        text.drain(..1);
        Ok(text)
    }
}

/// Elements as JSON shows them.
struct Shown<'a>(&'a Shape, &'a [u8]);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(shape, bytes) = *self;
        if let Some(each) = shape.hex.filter(|&each| each > 0) {
            let mut list = to.serialize_seq(Some(bytes.len() / each))?;
            for element in bytes.chunks_exact(each) {
                #[expect(clippy::disallowed_methods, reason = "the digits of one element")]
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
