//! Builtin functions that pack small numbers into words, and back.

use naga::MathFunction;

use super::super::types::{COMPONENTS, Ty};
use super::super::{Result, Writer};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl<'m> Writer<'m> {
    /// `None` for functions that are none of these.
    pub(super) fn packing(&mut self, function: MathFunction, values: &[String]) -> Result<Option<String>> {
        use MathFunction as F;
        let helper = match function {
            F::Pack4x8snorm => self.pack_normal("pack4x8snorm", 8, "-1.0f", "127.0f")?,
            F::Pack4x8unorm => self.pack_normal("pack4x8unorm", 8, "0.0f", "255.0f")?,
            F::Pack2x16snorm => self.pack_normal("pack2x16snorm", 16, "-1.0f", "32767.0f")?,
            F::Pack2x16unorm => self.pack_normal("pack2x16unorm", 16, "0.0f", "65535.0f")?,
            F::Pack2x16float => {
                let narrow = self.round_to_half()?;
                self.pack("pack2x16float", 16, Scalar::F32, &|x| format!("{narrow}({x})"))?
            }
            F::Pack4xI8 => self.pack("pack4xI8", 8, Scalar::I32, &str::to_owned)?,
            F::Pack4xU8 => self.pack("pack4xU8", 8, Scalar::U32, &str::to_owned)?,
            F::Pack4xI8Clamp => {
                self.pack("pack4xI8Clamp", 8, Scalar::I32, &|x| format!("({x} < -128 ? -128 : {x} > 127 ? 127 : {x})"))?
            }
            F::Pack4xU8Clamp => {
                self.pack("pack4xU8Clamp", 8, Scalar::U32, &|x| format!("({x} > 255u ? 255u : {x})"))?
            }
            F::Unpack4x8snorm => self.unpack_normal("unpack4x8snorm", 8, true, "127.0f")?,
            F::Unpack4x8unorm => self.unpack_normal("unpack4x8unorm", 8, false, "255.0f")?,
            F::Unpack2x16snorm => self.unpack_normal("unpack2x16snorm", 16, true, "32767.0f")?,
            F::Unpack2x16unorm => self.unpack_normal("unpack2x16unorm", 16, false, "65535.0f")?,
            F::Unpack2x16float => {
                let wide = self.widen_half()?;
                self.unpack("unpack2x16float", 16, Scalar::F32, &|x| format!("{wide}((f16){x})"), false)?
            }
            F::Unpack4xI8 => self.unpack("unpack4xI8", 8, Scalar::I32, &str::to_owned, true)?,
            F::Unpack4xU8 => self.unpack("unpack4xU8", 8, Scalar::U32, &str::to_owned, false)?,
            F::Dot4I8Packed | F::Dot4U8Packed => {
                let signed = function == F::Dot4I8Packed;
                let (name, ty) = if signed { ("cantus_dot4I8Packed", "i32") } else { ("cantus_dot4U8Packed", "u32") };
                self.helper(name, |_| {
                    let parts: Vec<String> = (0..4)
                        .map(|place| format!("{} * {}", field("a", 8, place, signed), field("b", 8, place, signed)))
                        .listed();
                    Ok(format!("{ty} {name}(u32 a, u32 b) {{ return {}; }}", parts.join(" + ")))
                })?;
                name.to_owned()
            }
            _ => return Ok(None),
        };
        Ok(Some(format!("{helper}({})", values.join(", "))))
    }

    fn pack(&mut self, name: &str, bits: u32, kind: Scalar, part: &dyn Fn(&str) -> String) -> Result<String> {
        let count = 32 / bits;
        let vector = self.type_name(Ty::Vector(count, kind))?;
        let helper = format!("cantus_{name}");
        let mask = (1_u32 << bits) - 1;
        self.helper(&helper, |_| {
            let parts: Vec<String> = COMPONENTS[..count as usize]
                .iter()
                .enumerate()
                .map(|(place, component)| {
                    let value = part(&format!("v.{component}"));
                    format!("(((u32){value} & {mask}u) << {})", place as u32 * bits)
                })
                .listed();
            Ok(format!("u32 {helper}({vector} v) {{ return {}; }}", parts.join(" | ")))
        })?;
        Ok(helper)
    }

    /// Numbers in `low ..1` as integers: `floor(0.5 + scale * x)`.
    fn pack_normal(&mut self, name: &str, bits: u32, low: &str, scale: &str) -> Result<String> {
        let max = self.float_call("fmax", Scalar::F32, &["a".to_owned(), low.to_owned()])?;
        let min = self.float_call("fmin", Scalar::F32, &[max, "1.0f".to_owned()])?;
        let floor = self.float_call("floor", Scalar::F32, &[format!("{min} * {scale} + 0.5f")])?;
        let whole = self.convert(Scalar::F32, Scalar::I32, &floor)?;
        let part =
            self.scalar_helper(&format!("part_{name}"), Scalar::F32, "i32", &["f32 a"], &format!("return {whole};"))?;
        self.pack(name, bits, Scalar::F32, &|x| format!("{part}({x})"))
    }

    fn unpack(
        &mut self,
        name: &str,
        bits: u32,
        kind: Scalar,
        part: &dyn Fn(&str) -> String,
        signed: bool,
    ) -> Result<String> {
        let count = 32 / bits;
        let vector = self.type_name(Ty::Vector(count, kind))?;
        let make = self.constructor(count, kind, &vec![1; count as usize])?;
        let helper = format!("cantus_{name}");
        self.helper(&helper, |_| {
            let parts: Vec<String> = (0..count).map(|place| part(&field("a", bits, place, signed))).listed();
            Ok(format!("{vector} {helper}(u32 a) {{ return {make}({}); }}", parts.join(", ")))
        })?;
        Ok(helper)
    }

    fn unpack_normal(&mut self, name: &str, bits: u32, signed: bool, scale: &str) -> Result<String> {
        let max = if signed {
            // The least integer lies below -1.
            self.float_call("fmax", Scalar::F32, &["-1.0f".to_owned(), format!("a / {scale}")])?
        } else {
            format!("a / {scale}")
        };
        let part =
            self.scalar_helper(&format!("part_{name}"), Scalar::F32, "f32", &["f32 a"], &format!("return {max};"))?;
        self.unpack(name, bits, Scalar::F32, &|x| format!("{part}((f32){x})"), signed)
    }
}

/// A field of a word, with its sign if it has one.
fn field(word: &str, bits: u32, place: u32, signed: bool) -> String {
    let up = 32 - bits * (place + 1);
    let down = 32 - bits;
    if signed { format!("((i32)({word} << {up}) >> {down})") } else { format!("(({word} << {up}) >> {down})") }
}
