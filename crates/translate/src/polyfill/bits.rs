//! Builtin functions on the bits of integers.

use naga::MathFunction;

use super::super::{Result, Writer};
use crate::reflection::Scalar;
use cantus_base::listed::Listed;

impl<'m> Writer<'m> {
    pub(super) fn bit_math(&mut self, function: MathFunction, kind: Scalar, x: &[String]) -> Result<String> {
        use MathFunction as F;
        if kind.bytes() != 4 && matches!(function, F::ExtractBits | F::InsertBits) {
            return self.unsupported("bit fields of 64-bit and 16-bit integers");
        }
        if kind.bytes() < 4 {
            return self.unsupported("bit counts of 16-bit integers");
        }
        let (ty, unsigned) = (kind.name(), kind.unsigned().name());
        let count = self.language.count_ones(kind);
        let size = kind.bytes() * 8;
        let (name, body) = match function {
            F::CountOneBits => ("ones", format!("return ({ty}){count}(({unsigned})a);")),
            F::CountTrailingZeros => {
                ("trailing_zeros", format!("return ({ty}){count}(({unsigned})(~a) & (({unsigned})a - 1u));"))
            }
            F::CountLeadingZeros => {
                let leading = self.leading_zeros(kind)?;
                ("leading_zeros", format!("return ({ty}){leading}(({unsigned})a);"))
            }
            F::ReverseBits => return self.reverse_bits(kind, x),
            F::FirstTrailingBit => (
                "first_trailing_bit",
                format!("return a == 0 ? ({ty})-1 : ({ty}){count}(({unsigned})(~a) & (({unsigned})a - 1u));"),
            ),
            F::FirstLeadingBit => {
                let leading = self.leading_zeros(kind)?;
                let bits = if kind.is_signed() { "(a < 0 ? ~a : a)" } else { "a" };
                let last = size - 1;
                ("first_leading_bit", format!("return ({ty})({last} - (i32){leading}(({unsigned}){bits}));"))
            }
            F::ExtractBits => {
                let body = format!(
                    "const u32 from = b < 32u ? b : 32u; const u32 room = 32u - from; const u32 n = c < room ? c : room; \
                     return n == 0u ? 0 : ({ty})(({ty})((u32)a << (room - n)) >> (32u - n));"
                );
                let parameters = [format!("{ty} a"), "u32 b".to_owned(), "u32 c".to_owned()];
                let parameters: Vec<&str> = parameters.iter().map(String::as_str).listed();
                let helper = self.scalar_helper("extract_bits", kind, ty, &parameters, &body)?;
                return Ok(format!("{helper}({})", x.join(", ")));
            }
            F::InsertBits => {
                let body = format!(
                    "const u32 from = c < 32u ? c : 32u; const u32 room = 32u - from; const u32 n = d < room ? d : room; \
                     if (n == 0u) {{ return a; }} const u32 field = (0xffffffffu >> (32u - n)) << from; \
                     return ({ty})(((u32)a & ~field) | (((u32)b << from) & field));"
                );
                let parameters = [format!("{ty} a"), format!("{ty} b"), "u32 c".to_owned(), "u32 d".to_owned()];
                let parameters: Vec<&str> = parameters.iter().map(String::as_str).listed();
                let helper = self.scalar_helper("insert_bits", kind, ty, &parameters, &body)?;
                return Ok(format!("{helper}({})", x.join(", ")));
            }
            _ => return self.unsupported(format!("the function {function:?} of integers")),
        };
        self.call_scalar(name, kind, ty, x, &body)
    }

    /// The function that counts leading zeros of an unsigned integer; all of them in 0.
    fn leading_zeros(&mut self, kind: Scalar) -> Result<String> {
        let unsigned = kind.unsigned();
        let body = self.language.leading_zeros(unsigned);
        self.scalar_helper("clz", unsigned, "u32", &[&format!("{} a", unsigned.name())], &body)
    }

    fn reverse_bits(&mut self, kind: Scalar, x: &[String]) -> Result<String> {
        let (ty, unsigned) = (kind.name(), kind.unsigned());
        let suffix = self.language.long_suffixes().1;
        let mut body = format!("{} x = ({})a; ", unsigned.name(), unsigned.name());
        let masks: &[(u32, &str)] = &[(1, "55"), (2, "33"), (4, "0f"), (8, "00ff"), (16, "0000ffff")];
        let digits = kind.bytes() as usize * 2;
        for (shift, pattern) in masks.iter().take(if kind.bytes() == 8 { 5 } else { 4 }) {
            let mask = pattern.repeat(digits / pattern.len());
            let suffix = if kind.bytes() == 8 { suffix } else { "u" };
            body += &format!("x = ((x >> {shift}) & 0x{mask}{suffix}) | ((x & 0x{mask}{suffix}) << {shift}); ");
        }
        let half = kind.bytes() * 4;
        body += &format!("return ({ty})((x >> {half}) | (x << {half}));");
        self.call_scalar("reverse_bits", kind, ty, x, &body)
    }
}
