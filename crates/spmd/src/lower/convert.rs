//! Conversions and bitcasts. `expression` and `math` call it. Floats to integers saturate and NaN gives 0, as naga's writers have it. Bools are masks or
//! words; 16-bit numbers are kept in words of 32 bits, so a bitcast of them packs first.

use naga::{Expression, Handle, ScalarKind};

use super::super::bytecode::{Convert, Float2, Int2, IntCompare, Op};
use super::builder::Operand;
use super::{Lowering, Result};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl Lowering<'_, '_> {
    pub(super) fn cast(
        &mut self,
        operand: Handle<Expression>,
        target: ScalarKind,
        width: Option<u8>,
    ) -> Result<Vec<Operand>> {
        let from = self.kind(operand)?;
        let scalars = self.scalars(operand)?;
        let bytes = match from {
            Scalar::I16 | Scalar::U16 | Scalar::F16 => 2,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
            Scalar::Bool | Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
        };
        let to = Scalar::of(naga::Scalar { kind: target, width: width.unwrap_or(bytes) });
        let to = self.known(to, "conversions to this type")?;
        Ok(scalars
            .iter()
            .map(
                |scalar| {
                    if width.is_some() { self.convert(from, to, *scalar) } else { self.bitcast(from, to, *scalar) }
                },
            )
            .listed())
    }

    fn bitcast(&mut self, from: Scalar, to: Scalar, value: Operand) -> Operand {
        // Only the 16-bit kinds are kept in registers in another form.
        let bits = match from {
            Scalar::F16 => self.builder.convert(Convert::F32ToHalfBits, value),
            _ => value,
        };
        match to {
            Scalar::F16 => self.builder.convert(Convert::HalfBitsToF32, bits),
            Scalar::I16 | Scalar::U16 => self.narrow(to, bits),
            _ => bits,
        }
    }

    pub(super) fn convert(&mut self, from: Scalar, to: Scalar, value: Operand) -> Operand {
        use Scalar::{Bool, F16, F32, F64, I16, I32, I64, U16, U32, U64};
        if from == to {
            return value;
        }
        // The 16-bit kinds compute as 32-bit ones.
        let (wide_from, wide_to) = (widened(from), widened(to));
        let simple = |convert| Some(convert);
        let convert = match (wide_from, wide_to) {
            (Bool, Bool) => None,
            (Bool, _) => return self.truth_as(wide_to, value),
            (I32 | U32, Bool) => {
                return self.builder.binary(Op::IntCompare(IntCompare::NotEqual), value, Operand::word(0));
            }
            (F32, Bool) => {
                return self.compare(F32, super::super::bytecode::Compare::NotEqual, value, Operand::float(0.0));
            }
            (I64 | U64, Bool) => simple(Convert::WideIsNonZero),
            (F64, Bool) => simple(Convert::DoubleIsNonZero),
            (I32, I64 | U64) => simple(Convert::I32ToI64),
            (U32, I64 | U64) => simple(Convert::U32ToU64),
            (I64 | U64, I32 | U32) => simple(Convert::I64ToI32),
            (I32, F32) => simple(Convert::I32ToF32),
            (U32, F32) => simple(Convert::U32ToF32),
            (I64, F32) => simple(Convert::I64ToF32),
            (U64, F32) => simple(Convert::U64ToF32),
            (I32, F64) => simple(Convert::I32ToF64),
            (U32, F64) => simple(Convert::U32ToF64),
            (I64, F64) => simple(Convert::I64ToF64),
            (U64, F64) => simple(Convert::U64ToF64),
            (F32, I32) if to == I16 => {
                let value = self.clamp_float(value, -32768.0, 32767.0);
                return self.builder.convert(Convert::F32ToI32, value);
            }
            (F32, U32) if to == U16 => {
                let value = self.clamp_float(value, 0.0, 65535.0);
                return self.builder.convert(Convert::F32ToU32, value);
            }
            (F32, I32) if from == F16 => return self.half_to_int(value, Convert::F32ToI32),
            (F32, U32) if from == F16 => return self.half_to_int(value, Convert::F32ToU32),
            (F32, I64) if from == F16 => return self.half_to_int(value, Convert::F32ToI64),
            (F32, U64) if from == F16 => return self.half_to_int(value, Convert::F32ToU64),
            (F32, I32) => simple(Convert::F32ToI32),
            (F32, U32) => simple(Convert::F32ToU32),
            (F32, I64) => simple(Convert::F32ToI64),
            (F32, U64) => simple(Convert::F32ToU64),
            // Saturates twice: at 32 bits, then at 16.
            (F64, I32) if to == I16 => {
                let value = self.builder.convert(Convert::F64ToI32, value);
                let value = self.builder.int2(Int2::MaxSigned, value, Operand::word(i32::from(i16::MIN) as u32));
                return self.builder.int2(Int2::MinSigned, value, Operand::word(i16::MAX as u32));
            }
            (F64, U32) if to == U16 => {
                let value = self.builder.convert(Convert::F64ToU32, value);
                return self.builder.int2(Int2::MinUnsigned, value, Operand::word(u32::from(u16::MAX)));
            }
            (F64, I32) => simple(Convert::F64ToI32),
            (F64, U32) => simple(Convert::F64ToU32),
            (F64, I64) => simple(Convert::F64ToI64),
            (F64, U64) => simple(Convert::F64ToU64),
            (F32, F64) => simple(Convert::F32ToF64),
            (F64, F32) if to == F16 => return self.builder.convert(Convert::F64ToHalf, value),
            (F64, F32) => simple(Convert::F64ToF32),
            _ => None,
        };
        let value = match convert {
            Some(convert) => self.builder.convert(convert, value),
            None => value,
        };
        match to {
            F16 | I16 | U16 => self.narrow(to, value),
            _ => value,
        }
    }

    /// 1 for true, 0 for false.
    fn truth_as(&mut self, to: Scalar, value: Operand) -> Operand {
        let one = match to {
            Scalar::F64 => Operand::wide(1_f64.to_bits()),
            Scalar::I64 | Scalar::U64 => Operand::wide(1),
            Scalar::F32 => Operand::float(1.0),
            _ => Operand::word(1),
        };
        self.builder.select(value, one, Operand::Constant { bits: 0, wide: to.is_wide() })
    }

    /// naga's back ends clamp at the largest value of the source type, so that an infinite half gives 65504.
    fn half_to_int(&mut self, value: Operand, convert: Convert) -> Operand {
        let value = self.clamp_float(value, -65504.0, 65504.0);
        self.builder.convert(convert, value)
    }

    fn clamp_float(&mut self, value: Operand, low: f32, high: f32) -> Operand {
        // NaN passes: the conversion turns it into 0. `max(low, NaN)` takes its second operand.
        let value = self.builder.float2(Float2::Max, Operand::float(low), value);
        self.builder.float2(Float2::Min, Operand::float(high), value)
    }
}

fn widened(kind: Scalar) -> Scalar {
    match kind {
        Scalar::I16 => Scalar::I32,
        Scalar::U16 => Scalar::U32,
        Scalar::F16 => Scalar::F32,
        other => other,
    }
}
