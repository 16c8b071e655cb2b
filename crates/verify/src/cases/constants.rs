//! Builtins in constant expressions, most of which naga 30 cannot evaluate. Written from the specification's text; the numbers are its
//! definitions, by hand.

use crate::case::Case;

pub fn cases() -> Vec<Case> {
    [constant_numbers(), constant_words(), constant_shapes(), vectors_of_vectors()].into_iter().flatten().collect()
}

/// Constant expressions with a float as their value, written by a constant of the module.
fn constant_numbers() -> Vec<Case> {
    let table: [(&str, &str, f32); 62] = [
        ("frexp_fract", "frexp(6.0).fract", 0.75),
        ("frexp_fract_of_f32", "frexp(-20.0f).fract", -0.625),
        ("frexp_exp", "f32(frexp(6.0).exp)", 3.0),
        ("frexp_exp_small", "f32(frexp(0.125f).exp)", -2.0),
        ("frexp_zero", "frexp(0.0).fract + f32(frexp(0.0).exp)", 0.0),
        ("frexp_vector", "frexp(vec2(6.0, 20.0)).fract.y", 0.625),
        ("frexp_vector_exp", "f32(frexp(vec3(6.0, 20.0, 0.5)).exp.z)", 0.0),
        ("modf_fract", "modf(3.75).fract", 0.75),
        ("modf_whole", "modf(-3.75).whole", -3.0),
        ("modf_vector", "modf(vec2f(1.5, -2.25)).fract.y", -0.25),
        ("ldexp", "ldexp(1.5, 4)", 24.0),
        ("ldexp_down", "ldexp(-3.0f, -2i)", -0.75),
        ("ldexp_vector", "ldexp(vec2(1.0, 3.0), vec2(3, 1)).y", 6.0),
        ("mix_scalar", "mix(2.0, 10.0, 0.25)", 4.0),
        ("mix_vector", "mix(vec2(0.0, 8.0), vec2(4.0, 16.0), 0.5).y", 12.0),
        ("mix_by_parts", "mix(vec2f(0.0, 8.0), vec2f(4.0, 16.0), vec2f(1.0, 0.25)).y", 10.0),
        ("smoothstep_middle", "smoothstep(0.0, 2.0, 1.0)", 0.5),
        ("smoothstep_quarter", "smoothstep(0.0, 4.0, 1.0)", 0.15625),
        ("smoothstep_below", "smoothstep(1.0, 2.0, -5.0)", 0.0),
        ("smoothstep_above", "smoothstep(vec2(1.0), vec2(2.0), vec2(3.0)).x", 1.0),
        ("select_true", "select(1.0, 2.0, true)", 2.0),
        ("select_false", "select(1f, 2f, 1 > 2)", 1.0),
        ("select_mixed", "select(1, 2.5, true)", 2.5),
        ("select_by_parts", "select(vec2(1.0, 2.0), vec2(3.0, 4.0), vec2(false, true)).y", 4.0),
        ("transpose", "transpose(mat2x3(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))[2].y", 6.0),
        ("transpose_f32", "transpose(mat3x2f(1, 2, 3, 4, 5, 6))[1].z", 6.0),
        ("transpose_twice", "transpose(transpose(mat2x2(1.0, 2.0, 3.0, 4.0)))[1].x", 3.0),
        ("determinant_2", "determinant(mat2x2(3.0, 2.0, 5.0, 7.0))", 11.0),
        ("determinant_3", "determinant(mat3x3f(2, 0, 1, 3, 1, 0, 0, 4, 1))", 14.0),
        ("determinant_4", "determinant(mat4x4(2.0, 0, 0, 0, 0, 3.0, 0, 0, 0, 0, 4.0, 0, 1, 1, 1, 5.0))", 120.0),
        ("determinant_of_a_product", "determinant(mat2x2(1.0, 2.0, 3.0, 4.0) * mat2x2(2.0, 0.0, 0.0, 2.0))", -8.0),
        ("reflect", "reflect(vec2(1.0, -1.0), vec2(0.0, 1.0)).y", 1.0),
        ("reflect_3", "reflect(vec3f(1.0, 2.0, 3.0), vec3f(1.0, 0.0, 0.0)).x", -1.0),
        ("refract_straight", "refract(vec2(0.0, -1.0), vec2(0.0, 1.0), 0.5).y", -1.0),
        ("refract_total", "refract(vec2(1.0, 0.0), vec2(0.0, 1.0), 2.0).x", 0.0),
        ("face_forward_keeps", "faceForward(vec2(1.0, 2.0), vec2(0.0, -1.0), vec2(0.0, 1.0)).y", 2.0),
        ("face_forward_turns", "faceForward(vec2(1.0, 2.0), vec2(0.0, 1.0), vec2(0.0, 1.0)).y", -2.0),
        ("quantize", "quantizeToF16(1.0009765625)", 1.000_976_6),
        ("quantize_rounds", "quantizeToF16(2049.0)", 2048.0),
        ("bitcast", "bitcast<f32>(0x40490fdbu)", std::f32::consts::PI),
        ("bitcast_signed", "bitcast<f32>(-1082130432)", -1.0),
        ("bitcast_vector", "bitcast<vec2f>(vec2u(0x3f800000u, 0x40000000u)).y", 2.0),
        ("unpack_unorm", "unpack4x8unorm(0xff000000u).w", 1.0),
        ("unpack_snorm", "unpack4x8snorm(0x00000081u).x", -1.0),
        ("unpack_16_unorm", "unpack2x16unorm(0xffff0000u).y", 1.0),
        ("unpack_16_snorm", "unpack2x16snorm(0x7fffu).x", 1.0),
        ("unpack_16_float", "unpack2x16float(0xc0003c00u).y", -2.0),
        ("atanh_near_one", "atanh(-0.99999994f)", -8.664_34),
        ("atanh_half", "atanh(0.5)", 0.549_306_15),
        ("abstract_beyond_f32", "mix(1e300, 1e301, 0.0) / 1e300", 1.0),
        ("abstract_frexp_beyond_f32", "f32(frexp(1e300).exp)", 997.0),
        ("within_arithmetic", "1.0 + 2.0 * mix(1.0, 3.0, 0.5)", 5.0),
        ("nested", "mix(frexp(6.0).fract, smoothstep(0.0, 2.0, 1.0), 1.0)", 0.5),
        ("in_an_array", "array(modf(1.5).fract, frexp(6.0).fract, 2.0)[1]", 0.75),
        ("negative_in_a_difference", "1.0 - mix(-1.0, -3.0, 0.5)", 3.0),
        ("hexadecimal", "mix(0x1p-2, 0x1.8p+1f, 1.0)", 3.0),
        ("from_a_member_of_a_vector", "mix(vec3(1.0, 2.0, 3.0), vec3(5.0), 0.5).zyx.x", 4.0),
        ("by_an_index", "reflect(vec3(1.0, 2.0, 3.0), vec3(0.0, 0.0, 1.0))[2]", -3.0),
        ("abs_of_an_abstract", "mix(abs(-4.0), 0.0, 0.0)", 4.0),
        ("sqrt_in_it", "mix(sqrt(16.0), 0.0, 0.5)", 2.0),
        ("clamped", "mix(clamp(9.0, 0.0, 1.0), 3.0, 0.5)", 2.0),
        ("of_an_alias", "mix(V(1.0, 2.0), V(3.0, 6.0), 0.5).y", 4.0),
    ];
    let made = table.iter().map(|&(name, expression, value)| {
        let body = format!(
            "alias V = vec2<f32>;\nconst c = {expression};\n\
             @compute @workgroup_size(1) fn main() {{ const d = {expression}; out[0] = c; out[1] = d; out[2] = 77; }}"
        );
        Case::new(format!("front.const_{name}"), body).write("out", [value, value, 77.0])
    });
    made.collect()
}

/// The same with whole numbers.
fn constant_words() -> Vec<Case> {
    let table: [(&str, &str, u32); 30] = [
        ("bitcast_f32", "bitcast<u32>(1.0f)", 0x3f80_0000),
        ("bitcast_abstract_float", "bitcast<u32>(1.0)", 0x3f80_0000),
        ("bitcast_i32", "bitcast<u32>(-1i)", u32::MAX),
        ("bitcast_abstract", "bitcast<u32>(-2)", u32::MAX - 1),
        ("bitcast_vector", "bitcast<vec3u>(vec3f(1.0, 2.0, -0.0)).z", 0x8000_0000),
        ("extract", "extractBits(0xabcd1234u, 8u, 8u)", 0x12),
        ("extract_all", "extractBits(0xabcd1234u, 0u, 32u)", 0xabcd_1234),
        ("extract_none", "extractBits(0xabcd1234u, 5u, 0u)", 0),
        ("extract_signed", "u32(extractBits(0xf0i, 4u, 4u))", u32::MAX),
        ("extract_vector", "extractBits(vec2u(0xff00u, 0x00ffu), 8u, 4u).x", 15),
        ("insert", "insertBits(0u, 0xffu, 4u, 4u)", 0xf0),
        ("insert_all", "insertBits(7u, 9u, 0u, 32u)", 9),
        ("insert_none", "insertBits(7u, 9u, 3u, 0u)", 7),
        ("insert_keeps", "insertBits(0xffffffffu, 0u, 8u, 16u)", 0xff00_00ff),
        ("pack_snorm", "pack4x8snorm(vec4(1.0, -1.0, 0.0, 0.5))", 0x4000_817f),
        ("pack_unorm", "pack4x8unorm(vec4(1.0, 0.0, 0.5, 2.0))", 0xff80_00ff),
        ("pack_16_snorm", "pack2x16snorm(vec2(1.0, -1.0))", 0x8001_7fff),
        ("pack_16_unorm", "pack2x16unorm(vec2(1.0, 0.0))", 0x0000_ffff),
        ("pack_16_float", "pack2x16float(vec2(1.0, -2.0))", 0xc000_3c00),
        ("pack_i8", "pack4xI8(vec4(1, -1, 2, -2))", 0xfe02_ff01),
        ("pack_u8", "pack4xU8(vec4u(1, 2, 3, 260))", 0x0403_0201),
        ("pack_i8_clamp", "pack4xI8Clamp(vec4(200, -200, 0, 1))", 0x0100_807f),
        ("pack_u8_clamp", "pack4xU8Clamp(vec4u(1, 300, 3, 4))", 0x0403_ff01),
        ("unpack_u8", "unpack4xU8(0x04030201u).z", 3),
        ("unpack_i8", "u32(unpack4xI8(0x000000ffu).x + 2)", 1),
        ("select", "select(1u, 2u, all(vec2(true, false)))", 1),
        ("select_any", "select(1u, 2u, any(vec2(true, false)))", 2),
        ("frexp_exp", "u32(frexp(1024.0).exp)", 11),
        ("frexp_of_a_name", "u32(frexp(half_way * 4.0).exp)", 2),
        ("as_a_length", "u32(array<u32, u32(mix(2.0, 4.0, 0.5))>(1, 2, 3)[2])", 3),
    ];
    let made = table.iter().map(|&(name, expression, value)| {
        let body = format!(
            "const half_way = mix(0.0, 1.0, 0.5);\nconst c = {expression};\n\
             @compute @workgroup_size(1) fn main() {{ const d = {expression}; out[0] = c; out[1] = d; out[2] = 77; }}"
        );
        Case::new(format!("front.const_word_{name}"), body).write("out", [value, value, 77])
    });
    let shifts: [(&str, &str, i32); 4] = [
        ("least_by_64", "i32((-9223372036854775807 - 1) >> 64u)", -1),
        ("minus_one_by_100", "i32(-1 >> 100u)", -1),
        ("one_by_64", "i32(1 >> 64u)", 0),
        ("zero_up_by_64", "i32(0 << 64u)", 0),
    ];
    let shifts = shifts.map(|(name, expression, value)| {
        let body =
            format!("const c = {expression};\n@compute @workgroup_size(1) fn main() {{ out[0] = c; out[1] = 77; }}");
        Case::new(format!("front.const_shift_{name}"), body).write("out", [value, 77])
    });
    made.chain(shifts).collect()
}

/// Constants that are no plain numbers: results with members, tables, matrices.
fn constant_shapes() -> Vec<Case> {
    let table: [(&str, &str, &str, &[f32]); 8] = [
        ("result_of_frexp", "const r = frexp(20.0f);", "out[0] = r.fract; out[1] = f32(r.exp);", &[0.625, 5.0]),
        (
            "result_of_modf",
            "const r = modf(vec2(1.25, -3.5));",
            "out[0] = r.fract.x; out[1] = r.whole.y;",
            &[0.25, -3.0],
        ),
        ("result_in_a_function", "", "const r = frexp(6.0); out[0] = r.fract; out[1] = f32(r.exp);", &[0.75, 3.0]),
        (
            "table",
            "const t = array(frexp(1.0).fract, mix(1.0, 3.0, 0.5), ldexp(1.0, 3), modf(2.5).whole);",
            "for (var k = 0u; k < 4u; k++) { out[k] = t[k]; }",
            &[0.5, 2.0, 8.0, 2.0],
        ),
        (
            "matrix",
            "const m = transpose(mat2x2(1.0, 2.0, 3.0, 4.0));",
            "let v = m * vec2f(1.0, 10.0); out[0] = v.x; out[1] = v.y;",
            &[21.0, 43.0],
        ),
        (
            "vectors_of_a_table",
            "const t = array(mix(vec2f(0.0), vec2f(2.0, 4.0), 0.5), reflect(vec2f(1.0, -1.0), vec2f(0.0, 1.0)));",
            "for (var k = 0u; k < 2u; k++) { out[2u * k] = t[k].x; out[2u * k + 1u] = t[k].y; }",
            &[1.0, 2.0, 1.0, 1.0],
        ),
        (
            "initialises_a_variable",
            "var<private> p: vec2f = mix(vec2f(1.0), vec2f(3.0), 0.5);",
            "p.y += 1.0; out[0] = p.x; out[1] = p.y;",
            &[2.0, 3.0],
        ),
        (
            "exponents_as_integers",
            "",
            "let r = frexp(vec2f(6.0, 0.25)); let e: vec2<i32> = r.exp; out[0] = f32(e.x); out[1] = f32(e.y + r.exp.x);",
            &[3.0, 2.0],
        ),
    ];
    let made = table.iter().map(|(name, module, body, values)| {
        let text = format!("{module}\n@compute @workgroup_size(1) fn main() {{ {body} }}");
        Case::new(format!("front.{name}"), text).write("out", values.to_vec())
    });
    made.collect()
}

/// Vectors made of vectors, each by a constant of the module, at once, and with an override in it.
fn vectors_of_vectors() -> Vec<Case> {
    let table: [(&str, &str, f32); 16] = [
        ("component", "vec3f(vec2f(), 3.0).y", 0.0),
        ("last", "vec3f(vec2f(), 3.0).z", 3.0),
        ("colour", "vec4f(vec3f(), 1.0).g", 0.0),
        ("between", "vec4f(1.0, vec2f(), 2.0).z", 0.0),
        ("index", "vec4f(vec2f(), 1.0, 2.0)[2]", 1.0),
        ("swizzle", "vec4f(vec2f(), 1.0, 2.0).yz.y", 1.0),
        ("nested", "vec4f(vec3f(vec2f(4.0, 5.0), 6.0), 7.0).y", 5.0),
        ("repeated", "vec4f(vec2f(1.0), vec2f()).xz.y", 0.0),
        ("zero_repeated", "vec4f(vec3f(f32()), 1.0).w", 1.0),
        ("abstract", "vec3(vec2(), 3.5).z", 3.5),
        ("whole", "f32(vec4i(vec3i(), 7).w)", 7.0),
        ("truth", "select(1.0, 2.0, vec3<bool>(vec2<bool>(), true).z)", 2.0),
        (
            "choice",
            "select(vec4f(1.0, 2.0, 3.0, 4.0), vec4f(vec2f(5.0, 6.0), vec2f(7.0, 8.0)), vec4<bool>(vec2<bool>(true), vec2<bool>())).y",
            6.0,
        ),
        ("product", "(mat2x4f(vec4f(vec2f(1.0, 2.0), vec2f(3.0, 4.0)), vec4f(1.0)) * vec2f(1.0, 2.0)).y", 4.0),
        ("of_a_structure", "vec3f(S(vec2f(1.0, 2.0)).v, 9.0).y", 2.0),
        ("of_an_alias", "V(vec2f(1.0, 2.0), 9.0).y", 2.0),
    ];
    let made = table.iter().flat_map(|&(name, expression, value)| {
        let of = |kind: &str, declared: &str, local: &str, expression: &str| {
            let body = format!(
                "struct S {{ v: vec2f }}\nalias V = vec3f;\n{declared}\n\
                 @compute @workgroup_size(1) fn main() {{ {local} out[0] = c; out[1] = {expression}; out[2] = 77; }}"
            );
            Case::new(format!("front.vectors_{kind}_{name}"), body).write("out", [value, value, 77.0])
        };
        let constant = of("constant", &format!("const c = {expression};"), "", expression);
        // A number that is known with the pipeline alone.
        let open = format!("f32({expression}) + o");
        let open = open.replacen("vec2f()", "vec2f(o)", 1).replacen("vec3f()", "vec3f(o)", 1);
        let late = of("override", "override o = 0.0;", &format!("let c = {open};"), &open);
        [constant, late]
    });
    made.collect()
}
