//! Builtin functions that pack small numbers into words, and back.

use naga::MathFunction;

use super::super::bytecode::{Compare, Convert, Float, Float2, Int2, Op};
use super::builder::Operand;
use super::{Lowering, Result};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl Lowering<'_, '_> {
    /// `None` for functions that are none of these.
    pub(super) fn packing(
        &mut self,
        function: MathFunction,
        x: &[Operand],
        y: &[Operand],
    ) -> Result<Option<Vec<Operand>>> {
        use MathFunction as F;
        let word = self.known(x.first().copied(), "a value without scalars")?;
        let packed = match function {
            F::Pack4x8snorm => self.pack_normal(x, 8, -1.0, 127.0),
            F::Pack4x8unorm => self.pack_normal(x, 8, 0.0, 255.0),
            F::Pack2x16snorm => self.pack_normal(x, 16, -1.0, 32767.0),
            F::Pack2x16unorm => self.pack_normal(x, 16, 0.0, 65535.0),
            F::Pack2x16float => {
                let halves: Vec<Operand> = x.iter().map(|x| self.builder.convert(Convert::F32ToHalfBits, *x)).listed();
                self.pack_bits(&halves, 16)
            }
            F::Pack4xI8 | F::Pack4xU8 => self.pack_bits(x, 8),
            F::Pack4xI8Clamp => {
                let clamped: Vec<Operand> = x
                    .iter()
                    .map(|x| {
                        let x = self.builder.int2(Int2::MaxSigned, *x, Operand::word(-128_i32 as u32));
                        self.builder.int2(Int2::MinSigned, x, Operand::word(127))
                    })
                    .listed();
                self.pack_bits(&clamped, 8)
            }
            F::Pack4xU8Clamp => {
                let clamped: Vec<Operand> =
                    x.iter().map(|x| self.builder.int2(Int2::MinUnsigned, *x, Operand::word(255))).listed();
                self.pack_bits(&clamped, 8)
            }
            F::Unpack4x8snorm => return Ok(Some(self.unpack_normal(word, 8, true, 127.0))),
            F::Unpack4x8unorm => return Ok(Some(self.unpack_normal(word, 8, false, 255.0))),
            F::Unpack2x16snorm => return Ok(Some(self.unpack_normal(word, 16, true, 32767.0))),
            F::Unpack2x16unorm => return Ok(Some(self.unpack_normal(word, 16, false, 65535.0))),
            F::Unpack2x16float => {
                let halves = self.unpack_bits(word, 16, false);
                let floats = halves.into_iter().map(|half| self.builder.convert(Convert::HalfBitsToF32, half));
                return Ok(Some(floats.listed()));
            }
            F::Unpack4xI8 => return Ok(Some(self.unpack_bits(word, 8, true))),
            F::Unpack4xU8 => return Ok(Some(self.unpack_bits(word, 8, false))),
            F::Dot4I8Packed | F::Dot4U8Packed => {
                let signed = function == F::Dot4I8Packed;
                let other = self.known(y.first().copied(), "a dot product")?;
                let (a, b) = (self.unpack_bits(word, 8, signed), self.unpack_bits(other, 8, signed));
                self.dot(Scalar::U32, &a, &b)
            }
            _ => return Ok(None),
        };
        Ok(Some(vec![packed]))
    }

    /// Numbers in `low ..1` as integers of `bits` bits: `floor(0.5 + scale * x)`.
    fn pack_normal(&mut self, x: &[Operand], bits: u32, low: f32, scale: f32) -> Operand {
        let integers: Vec<Operand> = x
            .iter()
            .map(|x| {
                let x = self.builder.float2(Float2::Max, *x, Operand::float(low));
                let x = self.builder.float2(Float2::Min, x, Operand::float(1.0));
                let x = self.builder.float2(Float2::Mul, x, Operand::float(scale));
                let x = self.builder.float2(Float2::Add, x, Operand::float(0.5));
                let x = self.builder.float(Float::Floor, x);
                self.builder.convert(Convert::F32ToI32, x)
            })
            .listed();
        self.pack_bits(&integers, bits)
    }

    fn pack_bits(&mut self, x: &[Operand], bits: u32) -> Operand {
        let mask = Operand::word((1 << bits) - 1);
        let mut packed = Operand::word(0);
        for (place, x) in x.iter().enumerate() {
            let field = self.builder.and(*x, mask);
            let field = self.builder.int2(Int2::ShiftLeft, field, Operand::word(place as u32 * bits));
            packed = if place == 0 { field } else { self.builder.or(packed, field) };
        }
        packed
    }

    fn unpack_bits(&mut self, word: Operand, bits: u32, signed: bool) -> Vec<Operand> {
        (0..32 / bits)
            .map(|place| {
                let up = self.builder.int2(Int2::ShiftLeft, word, Operand::word(32 - bits * (place + 1)));
                let down = if signed { Int2::ShiftRightSigned } else { Int2::ShiftRightUnsigned };
                self.builder.int2(down, up, Operand::word(32 - bits))
            })
            .listed()
    }

    fn unpack_normal(&mut self, word: Operand, bits: u32, signed: bool, scale: f32) -> Vec<Operand> {
        let integers = self.unpack_bits(word, bits, signed);
        integers
            .into_iter()
            .map(|integer| {
                let convert = if signed { Convert::I32ToF32 } else { Convert::U32ToF32 };
                let x = self.builder.convert(convert, integer);
                let x = self.builder.float2(Float2::Div, x, Operand::float(scale));
                if !signed {
                    return x;
                }
                // The most negative integer lies below -1.
                let below = self.builder.binary(Op::FloatCompare(Compare::Less), x, Operand::float(-1.0));
                self.builder.select(below, Operand::float(-1.0), x)
            })
            .listed()
    }
}
