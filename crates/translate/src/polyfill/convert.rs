//! Conversions, bitcasts and halves. Floats become integers by saturation at the largest float within the integer's range, as naga's
//! back ends do; NaN becomes 0.

use naga::ScalarKind;

use super::super::types::Ty;
use super::super::{Result, Writer};
use crate::reflection::Scalar;

impl<'m> Writer<'m> {
    pub(crate) fn cast(&mut self, from: Ty, target: ScalarKind, width: Option<u8>, value: &str) -> Result<String> {
        let kind = self.kind_of(from)?;
        let bytes = if kind == Scalar::Bool { 4 } else { kind.bytes() as u8 };
        let to = Scalar::of(naga::Scalar { kind: target, width: width.unwrap_or(bytes) });
        let to = self.known(to, "conversions to this type")?;
        let result = match from {
            Ty::Scalar(_) => Ty::Scalar(to),
            Ty::Vector(size, _) => Ty::Vector(size, to),
            Ty::Matrix(columns, rows, _) => Ty::Matrix(columns, rows, to),
            Ty::Array(_) | Ty::Struct(_) => return self.unsupported("conversions of this type"),
        };
        self.type_name(Ty::Scalar(to))?;
        if kind == to {
            return Ok(value.to_owned());
        }
        let name = if width.is_some() { format!("{}_from", to.name()) } else { format!("{}_bits_of", to.name()) };
        self.map(&name, result, &[(from, value)], &move |writer, kind, x| {
            if width.is_some() { writer.convert(kind, to, &x[0]) } else { writer.reinterpret(kind, to, &x[0]) }
        })
    }

    pub(crate) fn convert(&mut self, from: Scalar, to: Scalar, x: &str) -> Result<String> {
        let name = to.name();
        Ok(match (from, to) {
            (from, to) if from == to => x.to_owned(),
            (Scalar::Bool, Scalar::F16) => format!("((f16)({x} ? 0x3c00 : 0))"),
            (Scalar::Bool, _) => format!("(({name}){x})"),
            (Scalar::F16, Scalar::Bool) => format!("(({x} & 0x7fff) != 0)"),
            (Scalar::F32, Scalar::Bool) => format!("({x} != 0.0f)"),
            (Scalar::F64, Scalar::Bool) => format!("({x} != 0.0)"),
            (_, Scalar::Bool) => format!("({x} != 0)"),
            (Scalar::F16, Scalar::F32) => format!("{}({x})", self.widen_half()?),
            (Scalar::F16, Scalar::F64) => format!("((f64){}({x}))", self.widen_half()?),
            (Scalar::F32, Scalar::F16) => format!("{}({x})", self.round_to_half()?),
            (Scalar::F64, Scalar::F16) => format!("{}({x})", self.half_from_double()?),
            (Scalar::F16 | Scalar::F32 | Scalar::F64, to) if !to.is_float() => self.saturate_integer(from, to, x)?,
            (Scalar::I64 | Scalar::U64, Scalar::F16) => {
                // By way of a float the number would be rounded twice; it only matters where the result is infinite anyway.
                format!("{}((f32){x})", self.round_to_half()?)
            }
            (_, Scalar::F16) => format!("{}((f32){x})", self.round_to_half()?),
            _ => format!("(({name}){x})"),
        })
    }

    fn saturate_integer(&mut self, from: Scalar, to: Scalar, x: &str) -> Result<String> {
        let wide = if from == Scalar::F16 { Scalar::F32 } else { from };
        let (low, high) = match (from, to) {
            (_, Scalar::I16) => ("-32768.0", "32767.0"),
            (_, Scalar::U16) => ("0.0", "65535.0"),
            // The largest half is below every other limit.
            (Scalar::F16, to) if to.is_signed() => ("-65504.0", "65504.0"),
            (Scalar::F16, _) => ("0.0", "65504.0"),
            (Scalar::F32, Scalar::I32) => ("-2147483648.0", "2147483520.0"),
            (Scalar::F32, Scalar::U32) => ("0.0", "4294967040.0"),
            (Scalar::F32, Scalar::I64) => ("-9223372036854775808.0", "9223371487098961920.0"),
            (Scalar::F32, _) => ("0.0", "18446742974197923840.0"),
            (_, Scalar::I32) => ("-2147483648.0", "2147483647.0"),
            (_, Scalar::U32) => ("0.0", "4294967295.0"),
            (_, Scalar::I64) => ("-9223372036854775808.0", "9223372036854774784.0"),
            _ => ("0.0", "18446744073709549568.0"),
        };
        let suffix = if wide == Scalar::F64 { "" } else { "f" };
        let (ty, float) = (to.name(), wide.name());
        let widen = if from == Scalar::F16 { format!("{}(a)", self.widen_half()?) } else { "a".to_owned() };
        let zero = format!("0.0{suffix}");
        let body = format!(
            "{float} x = {widen}; x = x != x ? {zero} : x; x = x < {low}{suffix} ? {low}{suffix} : x; \
             return ({ty})(x > {high}{suffix} ? {high}{suffix} : x);"
        );
        let parameter = format!("{} a", from.name());
        let helper = self.scalar_helper(&format!("{ty}_from"), from, ty, &[&parameter], &body)?;
        Ok(format!("{helper}({x})"))
    }

    fn reinterpret(&mut self, from: Scalar, to: Scalar, x: &str) -> Result<String> {
        let same = |kind: Scalar| !matches!(kind, Scalar::F32 | Scalar::F64);
        if from == to {
            return Ok(x.to_owned());
        }
        // Halves are kept as their bits.
        if same(from) && same(to) {
            return Ok(format!("(({}){x})", to.name()));
        }
        let unsigned = from.unsigned();
        if same(from) {
            let cast = self.bit_cast(unsigned, to)?;
            return Ok(format!("{cast}(({}){x})", unsigned.name()));
        }
        let cast = self.bit_cast(from, unsigned)?;
        Ok(format!("(({}){cast}({x}))", to.name()))
    }

    /// The function that takes the bits of a float, or gives the float of bits.
    pub(crate) fn bit_cast(&mut self, from: Scalar, to: Scalar) -> Result<String> {
        let body = self.language.bit_cast(from, to);
        let parameter = format!("{} a", from.name());
        self.type_name(Ty::Scalar(to))?;
        self.scalar_helper(&format!("{}_bits_of", to.name()), from, to.name(), &[&parameter], &body)
    }

    /// The function from half to float.
    pub(crate) fn widen_half(&mut self) -> Result<String> {
        self.kinds.insert(Scalar::F16);
        let body = match self.language.half_to_float() {
            Some(body) => body.to_owned(),
            None => {
                let cast = self.bit_cast(Scalar::U32, Scalar::F32)?;
                format!(
                    "const u32 sign = (a & 0x8000u) << 16; const u32 size = a & 0x7fffu; \
                     const f32 small = (f32)size * 5.9604644775390625e-8f; \
                     return size < 0x400u ? (sign != 0u ? -small : small) : \
                     {cast}(sign | ((size << 13) + (size < 0x7c00u ? 0x38000000u : 0x70000000u)));"
                )
            }
        };
        self.scalar_helper("f32_from", Scalar::F16, "f32", &["f16 a"], &body)
    }

    /// The function from float to half, to the nearest, ties to even.
    pub(crate) fn round_to_half(&mut self) -> Result<String> {
        self.kinds.insert(Scalar::F16);
        let body = match self.language.float_to_half() {
            Some(body) => body.to_owned(),
            None => {
                let bits = self.bit_cast(Scalar::F32, Scalar::U32)?;
                let cast = self.bit_cast(Scalar::U32, Scalar::F32)?;
                format!(
                    "const u32 bits = {bits}(a); const u32 sign = (bits >> 16) & 0x8000u; const u32 size = bits & 0x7fffffffu; \
                     if (size > 0x7f800000u) {{ return (f16)(sign | 0x7e00u); }} \
                     if (size >= 0x47800000u) {{ return (f16)(sign | 0x7c00u); }} \
                     if (size < 0x38800000u) {{ return (f16)(sign | ({bits}({cast}(size) + 0.5f) - 0x3f000000u)); }} \
                     return (f16)(sign | ((size + 0xfffu + ((size >> 13) & 1u) - 0x38000000u) >> 13));"
                )
            }
        };
        self.scalar_helper("f16_from", Scalar::F32, "f16", &["f32 a"], &body)
    }

    /// Converts by way of a float that is rounded to odd, so that the second rounding decides.
    fn half_from_double(&mut self) -> Result<String> {
        let narrow = self.round_to_half()?;
        let bits = self.bit_cast(Scalar::F32, Scalar::U32)?;
        let cast = self.bit_cast(Scalar::U32, Scalar::F32)?;
        let body = format!(
            "const f32 near = (f32)a; u32 bits = {bits}(near); const f64 back = (f64)near; \
             if (back != a && a == a) {{ if ((back < 0.0 ? -back : back) > (a < 0.0 ? -a : a)) {{ bits -= 1u; }} bits |= 1u; }} \
             return {narrow}({cast}(bits));"
        );
        self.scalar_helper("f16_from", Scalar::F64, "f16", &["f64 a"], &body)
    }

    pub(crate) fn is_nan(&mut self, kind: Scalar, x: &str) -> Result<String> {
        self.bits_test("is_nan", ">", kind, x)
    }

    pub(crate) fn is_infinite(&mut self, kind: Scalar, x: &str) -> Result<String> {
        self.bits_test("is_inf", "==", kind, x)
    }

    /// Compares the bits without the sign with those of infinity: no compiler may assume the answer.
    fn bits_test(&mut self, name: &str, op: &str, kind: Scalar, x: &str) -> Result<String> {
        let unsigned_long = self.language.long_suffixes().1;
        let body = match kind {
            Scalar::F16 => format!("return (a & 0x7fffu) {op} 0x7c00u;"),
            Scalar::F32 => {
                let bits = self.bit_cast(Scalar::F32, Scalar::U32)?;
                format!("return ({bits}(a) & 0x7fffffffu) {op} 0x7f800000u;")
            }
            _ => {
                let bits = self.bit_cast(Scalar::F64, Scalar::U64)?;
                let mask = format!("0x7fffffffffffffff{unsigned_long}");
                format!("return ({bits}(a) & {mask}) {op} 0x7ff0000000000000{unsigned_long};")
            }
        };
        let helper = self.scalar_helper(name, kind, "bool", &[&format!("{} a", kind.name())], &body)?;
        Ok(format!("{helper}({x})"))
    }
}
