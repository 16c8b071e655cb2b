//! The arithmetic of a field as WGSL, for one form of its limbs. Elements are `Fe`: packed words in memory and between functions; they are taken
//! apart inside a product alone.

use std::fmt::Write;

use crate::algebra::FieldKind;
use cantus_base::listed::Listed;

/// The algorithm by which kernels multiply elements of several words. Memory is the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimbForm {
    /// Limbs of 12 to 14 bits in u32. Products of 13 bits are added up without carries for a whole product of 256 or 384 bits; those of 14 bits
    /// carry on the way.
    Narrow {
        /// Bits of a limb.
        bits: u32,
    },
    /// Limbs of 32 bits, products in u64: for devices with 64-bit integers.
    Wide,
}

/// The arithmetic of the field: `Fe`, `fe_zero`, `fe_one`, `fe_add`, `fe_sub`, `fe_neg`, `fe_mul`, `fe_equal`, `fe_is_zero`.
pub(super) fn arithmetic(field: FieldKind, form: LimbForm) -> String {
    match field {
        FieldKind::BabyBear | FieldKind::KoalaBear => montgomery31(field, form),
        FieldKind::Mersenne31 => with_wide_product(cantus_shaders::zk::MERSENNE31, form),
        FieldKind::Goldilocks => with_wide_product(cantus_shaders::zk::GOLDILOCKS, form),
        _ => Limbs::new(field).write(form),
    }
}

/// `wide_product(a, b)`: the low and the high word of a product of two.
fn with_wide_product(text: &str, form: LimbForm) -> String {
    let product = match form {
        LimbForm::Wide => cantus_shaders::zk::WIDE_PRODUCT_U64,
        LimbForm::Narrow { .. } => cantus_shaders::zk::WIDE_PRODUCT_U32,
    };
    format!("{product}{text}")
}

fn montgomery31(field: FieldKind, form: LimbForm) -> String {
    let modulus = field.modulus()[0];
    let one = (1_u64 << 32) % u64::from(modulus);
    let constants = format!(
        "const MODULUS = {modulus}u;\nconst INVERSE = {}u;\nconst ONE = {one}u;\n",
        negative_inverse(modulus).wrapping_neg()
    );
    with_wide_product(&(constants + cantus_shaders::zk::MONTGOMERY31), form)
}

/// -1 / `low` modulo 2^32, by Newton's iteration.
fn negative_inverse(low: u32) -> u32 {
    let inverse = (0..5).fold(1_u32, |x, _| x.wrapping_mul(2_u32.wrapping_sub(low.wrapping_mul(x))));
    inverse.wrapping_neg()
}

/// Fields of several words in Montgomery's form.
struct Limbs {
    words: usize,
    modulus: &'static [u32],
}

/// Appends a line of WGSL.
macro_rules! line {
    ($text:ident, $($format:tt)*) => {{
        // Writing to a string does not fail.
        let _ = writeln!($text, $($format)*);
    }};
}

/// `item(0)` to `item(count - 1)`, separated.
fn list(count: usize, separator: &str, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).listed().join(separator)
}

impl Limbs {
    fn new(field: FieldKind) -> Self {
        Self { words: field.words(), modulus: field.modulus() }
    }

    /// 2^(32 words) modulo the modulus: 1 in Montgomery's form.
    fn one(&self) -> Vec<u32> {
        let mut value = vec![0_u32; self.words];
        value[0] = 1;
        for _ in 0..32 * self.words {
            let mut carry = 0;
            for word in &mut value {
                let next = *word >> 31;
                *word = *word << 1 | carry;
                carry = next;
            }
            let (mut reduced, mut borrow) = (value.clone(), 0_i64);
            for (word, &modulus) in reduced.iter_mut().zip(self.modulus) {
                let difference = i64::from(*word) - i64::from(modulus) + borrow;
                *word = difference as u32;
                borrow = difference >> 32;
            }
            if borrow == 0 || carry == 1 {
                value = reduced;
            }
        }
        value
    }

    fn write(&self, form: LimbForm) -> String {
        let n = self.words;
        let mut text = String::new();
        let literal = |words: &[u32]| list(n, ", ", |i| format!("{}u", words[i]));
        line!(text, "alias Fe = array<u32, {n}>;");
        line!(text, "fn fe_zero() -> Fe {{ return Fe({}); }}", list(n, ", ", |_| "0u".to_owned()));
        line!(text, "fn fe_one() -> Fe {{ return Fe({}); }}", literal(&self.one()));
        line!(text, "fn fe_is_zero(a: Fe) -> bool {{ return ({}) == 0u; }}", list(n, " | ", |i| format!("a[{i}]")));
        line!(
            text,
            "fn fe_equal(a: Fe, b: Fe) -> bool {{ return ({}) == 0u; }}",
            list(n, " | ", |i| format!("(a[{i}] ^ b[{i}])"))
        );
        // A value of up to twice the modulus, which is below 2^(32 n).
        line!(text, "fn fe_reduce(a: Fe) -> Fe {{");
        self.minus(&mut text, |i| format!("a[{i}]"), |i| format!("{}u", self.modulus[i]));
        line!(
            text,
            "    if borrow{n} == 1u {{ return a; }}\n    return Fe({});\n}}",
            list(n, ", ", |i| format!("d{i}"))
        );
        line!(text, "fn fe_add(a: Fe, b: Fe) -> Fe {{\n    let carry0 = 0u;");
        for i in 0..n {
            line!(text, "    let s{i} = a[{i}] + b[{i}]; let r{i} = s{i} + carry{i};");
            line!(text, "    let carry{} = u32(s{i} < a[{i}]) | u32(r{i} < s{i});", i + 1);
        }
        line!(text, "    return fe_reduce(Fe({}));\n}}", list(n, ", ", |i| format!("r{i}")));
        line!(text, "fn fe_sub(a: Fe, b: Fe) -> Fe {{");
        self.minus(&mut text, |i| format!("a[{i}]"), |i| format!("b[{i}]"));
        line!(text, "    let lift = 0u - borrow{n};\n    let carry0 = 0u;");
        for i in 0..n {
            line!(
                text,
                "    let m{i} = {}u & lift; let s{i} = d{i} + m{i}; let r{i} = s{i} + carry{i};",
                self.modulus[i]
            );
            line!(text, "    let carry{} = u32(s{i} < d{i}) | u32(r{i} < s{i});", i + 1);
        }
        line!(text, "    return Fe({});\n}}", list(n, ", ", |i| format!("r{i}")));
        line!(text, "fn fe_neg(a: Fe) -> Fe {{ return fe_sub(fe_zero(), a); }}");
        match form {
            LimbForm::Narrow { bits } => self.narrow(&mut text, bits),
            LimbForm::Wide => self.wide(&mut text),
        }
        text
    }

    /// `d0`, … and the last borrow of a difference.
    fn minus(&self, text: &mut String, a: impl Fn(usize) -> String, b: impl Fn(usize) -> String) {
        line!(text, "    let borrow0 = 0u;");
        for i in 0..self.words {
            let (a, b) = (a(i), b(i));
            line!(text, "    let e{i} = {a} - {b}; let d{i} = e{i} - borrow{i};");
            line!(text, "    let borrow{} = u32({a} < {b}) | u32(e{i} < borrow{i});", i + 1);
        }
    }

    /// Bits `from..from + bits` of a number given by its words, as an expression; `word(i)` exists below `words`.
    fn slice(from: i64, bits: u32, words: usize, word: impl Fn(usize) -> String) -> String {
        let mask = (1_u32 << bits) - 1;
        let part = |at: i64| usize::try_from(at).ok().filter(|&at| at < words);
        let (at, shift) = (from.div_euclid(32), from.rem_euclid(32) as u32);
        let low = part(at).map(|at| if shift == 0 { word(at) } else { format!("({} >> {shift}u)", word(at)) });
        let high =
            (shift + bits > 32).then(|| part(at + 1)).flatten().map(|at| format!("({} << {}u)", word(at), 32 - shift));
        match (low, high) {
            (Some(low), Some(high)) => format!("(({low} | {high}) & {mask}u)"),
            (Some(one), None) | (None, Some(one)) => format!("({one} & {mask}u)"),
            (None, None) => "0u".to_owned(),
        }
    }

    /// Products of narrow limbs. One factor is shifted up, so that the rounds divide by 2^(32 words) whatever the limbs' bits are.
    fn narrow(&self, text: &mut String, bits: u32) {
        let n = self.words;
        let limbs = (32 * n).div_ceil(bits as usize);
        let shift = limbs * bits as usize - 32 * n;
        let mask = (1_u32 << bits) - 1;
        let modulus: Vec<u32> = (0..limbs)
            .map(|limb| {
                (0..bits as usize).fold(0, |value, bit| {
                    let at = limb * bits as usize + bit;
                    let word = self.modulus.get(at / 32).copied().unwrap_or(0);
                    value | (word >> (at % 32) & 1) << bit
                })
            })
            .listed();
        let inverse = negative_inverse(self.modulus[0]) & mask;
        // Rounds before a sum of products could pass 2^32, with room for a carry.
        let safe = ((u64::from(u32::MAX) - (1 << 20)) / (2 * u64::from(mask) * u64::from(mask))) as usize;
        line!(text, "fn fe_mul(a: Fe, b: Fe) -> Fe {{");
        for limb in 0..limbs {
            let from = (limb * bits as usize) as i64;
            line!(text, "    let b{limb} = {};", Self::slice(from, bits, n, |i| format!("b[{i}]")));
        }
        // The first factor, shifted up, a word more.
        for word in 0..=n {
            let low = if word < n { format!("a[{word}] << {shift}u") } else { String::new() };
            let high =
                if word > 0 && shift > 0 { format!("a[{}] >> {}u", word - 1, 32 - shift) } else { String::new() };
            let value = match (low.is_empty(), high.is_empty()) {
                (false, false) => format!("({low}) | ({high})"),
                (false, true) => low,
                (true, false) => high,
                (true, true) => "0u".to_owned(),
            };
            line!(text, "    var x{word} = {value};");
        }
        line!(text, "    {}", list(limbs, " ", |i| format!("var t{i} = 0u;")));
        line!(text, "    for (var round = 0u; round < {limbs}u; round++) {{");
        line!(text, "        let f = x0 & {mask}u;");
        for word in 0..n {
            line!(text, "        x{word} = (x{word} >> {bits}u) | (x{} << {}u);", word + 1, 32 - bits);
        }
        line!(text, "        x{n} = x{n} >> {bits}u;");
        line!(text, "        let s = t0 + f * b0;");
        line!(text, "        let q = ((s & {mask}u) * {inverse}u) & {mask}u;");
        line!(text, "        t0 = t1 + f * b1 + q * {}u + ((s + q * {}u) >> {bits}u);", modulus[1], modulus[0]);
        for limb in 1..limbs - 1 {
            line!(text, "        t{limb} = t{} + f * b{} + q * {}u;", limb + 1, limb + 1, modulus[limb + 1]);
        }
        if safe < limbs {
            line!(text, "        t{} = 0u;", limbs - 1);
            line!(text, "        if round % {safe}u == {}u {{", safe - 1);
            Self::carry(text, limbs, bits, "            ");
            line!(text, "        }}");
        }
        line!(text, "    }}");
        Self::carry(text, limbs, bits, "    ");
        let packed = |word: usize| {
            let parts = (0..limbs).filter_map(|limb| {
                let at = (limb * bits as usize) as i64 - 32 * word as i64;
                if at <= -i64::from(bits) || at >= 32 {
                    None
                } else if at < 0 {
                    Some(format!("(t{limb} >> {}u)", -at))
                } else {
                    Some(format!("(t{limb} << {at}u)"))
                }
            });
            parts.listed().join(" | ")
        };
        line!(text, "    return fe_reduce(Fe({}));\n}}", list(n, ", ", packed));
    }

    /// Brings all but the last limb below 2^bits.
    fn carry(text: &mut String, limbs: usize, bits: u32, indent: &str) {
        let mask = (1_u32 << bits) - 1;
        for limb in 0..limbs - 1 {
            line!(text, "{indent}t{} += t{limb} >> {bits}u; t{limb} &= {mask}u;", limb + 1);
        }
    }

    /// Products of words in u64.
    fn wide(&self, text: &mut String) {
        const MASK: &str = "0xfffffffflu";
        let n = self.words;
        let inverse = negative_inverse(self.modulus[0]);
        line!(text, "fn fe_mul(a: Fe, b: Fe) -> Fe {{");
        line!(text, "    {}", list(n, " ", |i| format!("let b{i} = u64(b[{i}]);")));
        line!(text, "    {}", list(n, " ", |i| format!("var x{i} = a[{i}];")));
        line!(text, "    {}", list(n, " ", |i| format!("var t{i} = 0lu;")));
        line!(text, "    for (var round = 0u; round < {n}u; round++) {{");
        line!(text, "        let f = u64(x0);");
        line!(text, "        {}", list(n - 1, " ", |i| format!("x{i} = x{};", i + 1)));
        line!(text, "        let s0 = t0 + f * b0;");
        line!(text, "        let q = u64(u32(s0 & {MASK}) * {inverse}u);");
        line!(text, "        let r0 = (s0 & {MASK}) + q * {}lu;", self.modulus[0]);
        for i in 1..n {
            line!(text, "        let s{i} = t{i} + f * b{i} + (s{} >> 32u);", i - 1);
            line!(text, "        let r{i} = (s{i} & {MASK}) + q * {}lu + (r{} >> 32u);", self.modulus[i], i - 1);
            line!(text, "        t{} = r{i} & {MASK};", i - 1);
        }
        line!(text, "        t{} = (s{} >> 32u) + (r{} >> 32u);\n    }}", n - 1, n - 1, n - 1);
        line!(text, "    return fe_reduce(Fe({}));\n}}", list(n, ", ", |i| format!("u32(t{i})")));
    }
}
