//! Elements of each dtype as WGSL: how they are loaded, computed with, converted and stored. `emit` writes by it, operations' frames take its names, and
//! `elementwise` has the functions themselves. Three types belong to a dtype: the one of the tensor, the one that the binding stores, and the one that a
//! kernel computes in. They coincide for 32-bit numbers only.

use crate::ops::frame::Frame;
use crate::tensor::{DType, Kind};

/// The WGSL type in which elements of a dtype are computed.
pub(in crate::ops) fn scalar(dtype: DType) -> &'static str {
    match dtype.computed() {
        DType::I32 => "i32",
        DType::U32 => "u32",
        DType::F64 => "f64",
        DType::I64 => "i64",
        DType::U64 => "u64",
        DType::Complex64 => "vec2f",
        DType::Complex128 => "vec2<f64>",
        _ => "f32",
    }
}

/// The WGSL type that elements of a dtype are stored as: what is narrower than a word shares one, so that no device needs to have it.
pub(in crate::ops) fn stored(dtype: DType) -> &'static str {
    if dtype.is_packed() { "u32" } else { scalar(dtype) }
}

/// The prefix of the names of the library's functions for such elements.
pub(in crate::ops) fn family(dtype: DType) -> &'static str {
    match dtype.computed() {
        DType::I32 => "int",
        DType::U32 => "uint",
        DType::F64 => "double",
        DType::I64 => "long",
        DType::U64 => "ulong",
        DType::Complex64 => "complex",
        DType::Complex128 => "double_complex",
        _ => "float",
    }
}

/// The element at a place of an array of [`stored`] elements.
pub(in crate::ops) fn loaded(dtype: DType, array: &str, place: &str) -> String {
    // Not by a varying index into a vector, for which some devices go through memory.
    let word = match dtype.bytes() {
        1 => format!("{array}[{place} >> 2u] >> (8u * ({place} & 3u))"),
        2 => format!("{array}[{place} >> 1u] >> (16u * ({place} & 1u))"),
        _ => return format!("{array}[{place}]"),
    };
    match dtype {
        DType::F16 => format!("unpack2x16float({word}).x"),
        DType::BF16 => format!("bitcast<f32>(({word}) << 16u)"),
        DType::Bool => format!("min(({word}) & 255u, 1u)"),
        DType::I8 | DType::I16 => {
            wrapped(dtype, &format!("bitcast<i32>({word})")).unwrap_or_else(|| format!("bitcast<i32>({word})"))
        }
        _ => wrapped(dtype, &word).unwrap_or(word),
    }
}

/// A computed integer as its dtype holds it, where that is narrower than a word.
pub(in crate::ops) fn wrapped(dtype: DType, value: &str) -> Option<String> {
    Some(match dtype {
        DType::U8 => format!("({value}) & 255u"),
        DType::U16 => format!("({value}) & 65535u"),
        DType::I8 => format!("(({value}) << 24u) >> 24u"),
        DType::I16 => format!("(({value}) << 16u) >> 16u"),
        _ => return None,
    })
}

/// The bits of a computed value in the low end of a word, the others 0.
fn bits(dtype: DType) -> &'static str {
    match dtype {
        DType::BF16 => "bfloat_bits(value)",
        DType::I8 => "bitcast<u32>(value) & 255u",
        DType::I16 => "bitcast<u32>(value) & 65535u",
        DType::U8 => "value & 255u",
        DType::U16 => "value & 65535u",
        _ => "value",
    }
}

const HALVES: &str = cantus_shaders::tensor::ELEMENTWISE_HALVES;
const PACKED: Frame<1> = Frame::new(cantus_shaders::tensor::ELEMENTWISE_PACKED, ["// REST"]);

/// The kernel around `element(i)` for a dtype of which a word holds several.
pub(in crate::ops) fn packed_frame(dtype: DType) -> String {
    if dtype == DType::F16 {
        return HALVES.to_owned();
    }
    let (each, width) = (4 / dtype.bytes(), 8 * dtype.bytes());
    let rest: String = (1..each)
        .map(|k| format!("    if i + {k}u < words[0].x {{ word |= bits(element(i + {k}u)) << {}u; }}\n", k * width))
        .collect();
    format!(
        "\nconst EACH = {each}u;\n\nfn bits(value: {}) -> u32 {{\n    return {};\n}}\n\n{}",
        scalar(dtype),
        bits(dtype),
        PACKED.filled([Some(rest.trim_start())])
    )
}

/// A value of one dtype as another: floats to integers towards zero, saturating, NaN to 0; integers wrap; what is not 0 is true; of a complex
/// number the real part.
pub(in crate::ops) fn converted(x: &str, from: DType, to: DType) -> String {
    use Kind::{Bool, Complex, Float, Signed, Unsigned};
    if from == to {
        return x.to_owned();
    }
    let (source, target) = (from.computed(), to.computed());
    let (same, ty) = (source == target, scalar(to));
    match (from.kind(), to.kind()) {
        (Complex, Complex) => format!("{ty}({x})"),
        // By ==: some drivers take `NaN != 0` for false.
        (Complex, Bool) => format!("select(1u, 0u, all({x} == {}()))", scalar(from)),
        (Complex, _) => {
            let part = if from == DType::Complex64 { DType::F32 } else { DType::F64 };
            converted(&format!("{x}.x"), part, to)
        }
        (_, Complex) => {
            let part = if to == DType::Complex64 { DType::F32 } else { DType::F64 };
            format!("{ty}({}, {}(0))", converted(x, from, part), scalar(part))
        }
        (_, Bool) => format!("select(1u, 0u, {x} == {}(0))", scalar(from)),
        (Float, Signed | Unsigned) => {
            let whole = format!("{}_to_{}({x})", family(from), family(to));
            match to.limits() {
                Some((low, high)) if to.is_packed() && to.kind() == Signed => format!("clamp({whole}, {low}, {high})"),
                Some((_, high)) if to.is_packed() => format!("min({whole}, {high}u)"),
                _ => whole,
            }
        }
        (Float, Float) => {
            let wide = if same { x.to_owned() } else { format!("{ty}({x})") };
            match to {
                DType::F16 => format!("unpack2x16float(pack2x16float(vec2f({wide}, 0.0))).x"),
                DType::BF16 => format!("bitcast<f32>(bfloat_bits({wide}) << 16u)"),
                _ => wide,
            }
        }
        (_, Float) => {
            let wide = format!("{}({x})", scalar(target));
            if to.is_packed() { converted(&wide, target, to) } else { wide }
        }
        // Between integers, in two steps where both sign and width change: a number widens by its own sign.
        _ => {
            let widens = source.bytes() < target.bytes();
            let wide = match (from.kind(), widens) {
                _ if same => x.to_owned(),
                (Signed, true) if target != DType::I64 => format!("{ty}(i64({x}))"),
                (Unsigned | Bool, true) if target != DType::U64 => format!("{ty}(u64({x}))"),
                _ => format!("{ty}({x})"),
            };
            wrapped(to, &wide).unwrap_or(wide)
        }
    }
}
