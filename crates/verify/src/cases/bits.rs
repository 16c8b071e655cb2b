//! Bit counting, bit fields, packing and unpacking. The conformance suite and `cantus verify` run them on every device. Oracles are plain Rust, written
//! from WGSL's definitions and not from any implementation. Where the rounding of a packing is open, both neighbours pass.

use half::f16;

use crate::case::{Case, Values};
use crate::check::Near;
use crate::inputs::{EDGES, Random, floats, ints, pairs_u32, signed, words};

pub fn cases() -> Vec<Case> {
    let mut cases = counting();
    cases.extend(fields());
    cases.extend(integer_packing());
    cases.extend(float_packing());
    cases
}

/// Edge values, every power of two, and random words of all magnitudes.
fn patterns() -> Vec<u32> {
    let mut random = Random::new(11);
    let powers = (0..32).flat_map(|i| [1_u32 << i, (1_u32 << i).wrapping_sub(1), u32::MAX << i]);
    EDGES.into_iter().chain(powers).chain((0..64).map(|i| random.u32() >> (i % 32))).collect()
}

fn counting() -> Vec<Case> {
    type Oracle = fn(u32) -> u32;
    let table: [(&str, &str, Oracle); 6] = [
        ("count_one_bits", "countOneBits", u32::count_ones),
        ("count_leading_zeros", "countLeadingZeros", u32::leading_zeros),
        ("count_trailing_zeros", "countTrailingZeros", u32::trailing_zeros),
        ("reverse_bits", "reverseBits", u32::reverse_bits),
        ("first_trailing_bit", "firstTrailingBit", first_trailing),
        ("first_leading_bit", "firstLeadingBit", |x| if x == 0 { u32::MAX } else { 31 - x.leading_zeros() }),
    ];
    let a = patterns();
    let mut cases = Vec::new();
    for (name, builtin, oracle) in table {
        cases.push(Case::map1(format!("bits.{name}_u32"), &format!("{builtin}(a[i])"), &a, oracle));
        // Of a negative number, firstLeadingBit finds the highest bit that differs from the sign.
        let of_signed = |x: i32| {
            if builtin == "firstLeadingBit" && x < 0 { oracle(!x as u32) as i32 } else { oracle(x as u32) as i32 }
        };
        cases.push(Case::map1(format!("bits.{name}_i32"), &format!("{builtin}(a[i])"), &signed(&a), of_signed));
        let whole = &a[..a.len() / 4 * 4];
        cases.push(
            Case::each(format!("bits.{name}_vec4u"), &format!("{builtin}(a[i])"))
                .read("a: array<vec4u>", whole)
                .write("out: array<vec4u>", whole.iter().map(|&x| oracle(x)).collect::<Vec<u32>>())
                .invocations(whole.len() / 4),
        );
    }
    cases
}

fn first_trailing(x: u32) -> u32 {
    if x == 0 { u32::MAX } else { x.trailing_zeros() }
}

/// WGSL: offset and count are cut to what lies within 32 bits.
fn cut(offset: u32, count: u32) -> (u32, u32) {
    let offset = offset.min(32);
    (offset, count.min(32 - offset))
}

fn extract_u32(e: u32, offset: u32, count: u32) -> u32 {
    let (offset, count) = cut(offset, count);
    if count == 0 { 0 } else { e << (32 - offset - count) >> (32 - count) }
}

fn extract_i32(e: i32, offset: u32, count: u32) -> i32 {
    let (offset, count) = cut(offset, count);
    if count == 0 { 0 } else { e << (32 - offset - count) >> (32 - count) }
}

fn insert_u32(e: u32, bits: u32, offset: u32, count: u32) -> u32 {
    let (offset, count) = cut(offset, count);
    let mask = ((1_u64 << count) - 1) << offset;
    (u64::from(e) & !mask | u64::from(bits) << offset & mask) as u32
}

fn fields() -> Vec<Case> {
    let e = words(12, 400);
    let bits = words(13, 400);
    let mut random = Random::new(14);
    let corners =
        [(0, 0), (0, 32), (32, 0), (31, 1), (31, 5), (5, 0), (16, 16), (40, 3), (3, 40), (u32::MAX, u32::MAX)];
    let places: Vec<(u32, u32)> =
        corners.into_iter().chain((0..390).map(|_| (random.below(36), random.below(36)))).collect();
    let flat: Vec<u32> = places.iter().flat_map(|&(offset, count)| [offset, count]).collect();
    let at = |i: usize| places[i];
    let extracted = (0..400).map(|i| extract_u32(e[i], at(i).0, at(i).1));
    let extracted_signed = (0..400).map(|i| extract_i32(e[i] as i32, at(i).0, at(i).1));
    let inserted: Vec<u32> = (0..400).map(|i| insert_u32(e[i], bits[i], at(i).0, at(i).1)).collect();
    let constant = e.iter().map(|&e| extract_u32(e, 5, 11) ^ insert_u32(e, 0x3FF, 20, 8));
    vec![
        Case::each("bits.extract_u32", "extractBits(a[i], at[i].x, at[i].y)")
            .read("a", &e)
            .read("at: array<vec2u>", &flat)
            .write("out", extracted.collect::<Vec<u32>>())
            .invocations(400),
        Case::each("bits.extract_i32", "extractBits(a[i], at[i].x, at[i].y)")
            .read("a", signed(&e))
            .read("at: array<vec2u>", &flat)
            .write("out", extracted_signed.collect::<Vec<i32>>())
            .invocations(400),
        Case::each("bits.insert_u32", "insertBits(a[i], b[i], at[i].x, at[i].y)")
            .read("a", &e)
            .read("b", &bits)
            .read("at: array<vec2u>", &flat)
            .write("out", &inserted)
            .invocations(400),
        Case::each("bits.insert_i32", "insertBits(a[i], b[i], at[i].x, at[i].y)")
            .read("a", signed(&e))
            .read("b", signed(&bits))
            .read("at: array<vec2u>", &flat)
            .write("out", signed(&inserted))
            .invocations(400),
        Case::each("bits.constant_field", "extractBits(a[i], 5u, 11u) ^ insertBits(a[i], 0x3FFu, 20u, 8u)")
            .read("a", &e)
            .write("out", constant.collect::<Vec<u32>>())
            .invocations(400),
        Case::each("bits.extract_vec2i", "extractBits(a[i], 3u, 7u)")
            .read("a: array<vec2i>", signed(&e))
            .write("out: array<vec2i>", e.iter().map(|&e| extract_i32(e as i32, 3, 7)).collect::<Vec<i32>>())
            .invocations(200),
    ]
}

fn bytes(x: u32) -> [u8; 4] {
    x.to_le_bytes()
}

fn signed_bytes(x: u32) -> [i8; 4] {
    x.to_le_bytes().map(|b| b as i8)
}

fn integer_packing() -> Vec<Case> {
    let (a, b) = pairs_u32(15);
    let wide = ints(16, 512, -400, 400);
    let pack = |name: &str, builtin: &str, clamp: bool, is_signed: bool| {
        let vector = if is_signed { "vec4i" } else { "vec4u" };
        let expected = wide.chunks(4).map(|v| {
            u32::from_le_bytes([0, 1, 2, 3].map(|k| match (clamp, is_signed) {
                (false, _) => v[k] as u8,
                (true, true) => v[k].clamp(-128, 127) as u8,
                // As an unsigned number, a negative one is far above 255.
                (true, false) => (v[k] as u32).min(255) as u8,
            }))
        });
        let input: Values =
            if is_signed { (&wide).into() } else { wide.iter().map(|&x| x as u32).collect::<Vec<u32>>().into() };
        Case::each(format!("bits.{name}"), &format!("{builtin}(a[i])"))
            .read(&format!("a: array<{vector}>"), input)
            .write("out", expected.collect::<Vec<u32>>())
            .invocations(128)
    };
    vec![
        pack("pack4x_i8", "pack4xI8", false, true),
        pack("pack4x_u8", "pack4xU8", false, false),
        pack("pack4x_i8_clamp", "pack4xI8Clamp", true, true),
        pack("pack4x_u8_clamp", "pack4xU8Clamp", true, false),
        Case::each("bits.unpack4x_i8", "unpack4xI8(a[i])")
            .read("a", &a)
            .write("out: array<vec4i>", a.iter().flat_map(|&x| signed_bytes(x).map(i32::from)).collect::<Vec<i32>>())
            .invocations(a.len()),
        Case::each("bits.unpack4x_u8", "unpack4xU8(a[i])")
            .read("a", &a)
            .write("out: array<vec4u>", a.iter().flat_map(|&x| bytes(x).map(u32::from)).collect::<Vec<u32>>())
            .invocations(a.len()),
        Case::map2("bits.dot4_i8_packed", "dot4I8Packed(a[i], b[i])", (&a, &b), |a, b| {
            signed_bytes(a).into_iter().zip(signed_bytes(b)).map(|(a, b)| i32::from(a) * i32::from(b)).sum::<i32>()
        }),
        Case::map2("bits.dot4_u8_packed", "dot4U8Packed(a[i], b[i])", (&a, &b), |a, b| {
            bytes(a).into_iter().zip(bytes(b)).map(|(a, b)| u32::from(a) * u32::from(b)).sum::<u32>()
        }),
    ]
}

/// Packing rounds `scale * clamp(x) + 0.5` down; a device may compute that product in float32, so the quotient is
/// kept away from the ties.
fn float_packing() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, lanes, scale, is_signed) in [
        ("4x8snorm", 4, 127.0, true),
        ("4x8unorm", 4, 255.0, false),
        ("2x16snorm", 2, 32767.0, true),
        ("2x16unorm", 2, 65535.0, false),
    ] {
        let raw = floats(17, 512, -1.3, 1.3);
        let low = if is_signed { -1.0 } else { 0.0 };
        let a: Vec<f32> = raw
            .iter()
            .map(|&x| {
                let steps = f64::from(x.clamp(-1.25, 1.25)) * scale;
                ((steps.floor() + 0.25 * (steps - steps.floor())) / scale) as f32
            })
            .collect();
        let bits = 32 / lanes;
        let packed = a.chunks(lanes).map(|v| {
            (0..).zip(v).fold(0_u32, |word, (k, &x)| {
                let step = (f64::from(x).clamp(low, 1.0) * scale + 0.5).floor() as i64;
                word | ((step as u64 & ((1 << bits) - 1)) as u32) << (k * bits)
            })
        });
        cases.push(
            Case::each(format!("bits.pack{name}"), &format!("pack{name}(a[i])"))
                .read(&format!("a: array<vec{lanes}f>"), &a)
                .write("out", packed.collect::<Vec<u32>>())
                .invocations(512 / lanes),
        );
        let words = words(18, 256);
        let unpacked = words.iter().flat_map(|&w| {
            (0..lanes).map(move |k| {
                let field = w >> (k * bits);
                let step = match (bits, is_signed) {
                    (8, true) => f64::from(field as i8),
                    (8, false) => f64::from(field as u8),
                    (_, true) => f64::from(field as i16),
                    (_, false) => f64::from(field as u16),
                };
                (step / scale).max(-1.0)
            })
        });
        cases.push(
            Case::each(format!("bits.unpack{name}"), &format!("unpack{name}(a[i])"))
                .read("a", &words)
                .write_near(&format!("out: array<vec{lanes}f>"), Near::ulp(unpacked, 3.0))
                .invocations(256),
        );
    }
    // Values that float16 holds exactly: nothing is left to the rounding mode.
    let exact: Vec<f32> = words(19, 256).iter().map(|&w| finite_f16(w as u16).to_f32()).collect();
    let packed = exact
        .chunks(2)
        .map(|v| u32::from(f16::from_f32(v[0]).to_bits()) | u32::from(f16::from_f32(v[1]).to_bits()) << 16);
    cases.push(
        Case::each("bits.pack2x16float", "pack2x16float(a[i])")
            .read("a: array<vec2f>", &exact)
            .write("out", packed.collect::<Vec<u32>>())
            .invocations(128),
    );
    let halves: Vec<u32> = words(20, 256)
        .iter()
        .map(|&w| u32::from(finite_f16(w as u16).to_bits()) | u32::from(finite_f16((w >> 16) as u16).to_bits()) << 16)
        .collect();
    let unpacked =
        halves.iter().flat_map(|&w| [f16::from_bits(w as u16).to_f32(), f16::from_bits((w >> 16) as u16).to_f32()]);
    cases.push(
        Case::each("bits.unpack2x16float", "unpack2x16float(a[i])")
            .read("a", &halves)
            .write("out: array<vec2f>", unpacked.collect::<Vec<f32>>())
            .invocations(256),
    );
    // WGSL leaves the direction of rounding open: either neighbour will do, and the round trip is within one step.
    let any = floats(21, 512, -3000.0, 3000.0);
    cases.push(
        Case::each("bits.pack_unpack_2x16float", "unpack2x16float(pack2x16float(a[i]))")
            .read("a: array<vec2f>", &any)
            .write_near("out: array<vec2f>", Near::ulp16(any.iter().map(|&x| f64::from(x)), 1.0))
            .invocations(256),
    );
    cases
}

/// A normal, finite float16 from any bits.
fn finite_f16(bits: u16) -> f16 {
    // Clear the top exponent bit and set the lowest: exponents 1 to 15.
    f16::from_bits((bits | 0x0400) & 0xBFFF)
}
