//! The defects of naga that Cantus works around (`docs/naga.md`), held against naga itself. A failure here means that a workaround can go.

use cantus::Kernel;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{Module, TypeInner};

const ENTRY: &str = "@compute @workgroup_size(1) fn main() {}";

fn parsed(text: &str) -> Result<Module, String> {
    naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))
}

fn is_refused(text: &str) -> bool {
    let valid = |module: &Module| Validator::new(ValidationFlags::all(), Capabilities::all()).validate(module).is_ok();
    !parsed(text).is_ok_and(|module| valid(&module))
}

/// Naga refuses the text, and Cantus takes it.
fn worked_around(text: &str) {
    let text = if text.contains("@compute") { text.to_owned() } else { format!("{text}\n{ENTRY}") };
    assert!(is_refused(&text), "naga takes this now; the workaround can go:\n{text}");
    if let Err(error) = Kernel::from_wgsl(&text) {
        panic!("{error}\n{text}");
    }
}

/// Naga has no say in what wgpu draws with until a window opens.
#[test]
fn the_windows_shader_is_valid() {
    let text = include_str!("../../cli/src/view/picture.wgsl");
    let module = parsed(text).unwrap();
    let valid = Validator::new(ValidationFlags::all(), Capabilities::empty()).validate(&module);
    assert!(valid.is_ok(), "{valid:?}");
}

#[test]
fn subgroups_of_workgroups_of_two_dimensions() {
    worked_around(
        "enable subgroups;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(8, 8)
        fn main(@builtin(local_invocation_index) l: u32, @builtin(subgroup_invocation_id) s: u32) { y[l] = 1 + s; }",
    );
}

#[test]
fn align_of_a_member_does_not_align_the_structure_in_others() {
    let text = format!(
        "struct Inner {{ @align(64) v: u32 }}\nstruct Outer {{ a: u32, b: Inner }}\n\
         @group(0) @binding(0) var<storage> s: Outer;\n{ENTRY}"
    );
    let module = parsed(&text).unwrap();
    let outer = module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some("Outer")).unwrap().1;
    let TypeInner::Struct { members, .. } = &outer.inner else { panic!("not a structure") };
    assert_eq!(members[1].offset, 4, "naga knows of it now: amend/layout.rs can go");
}

#[test]
fn constants_of_atanh_lose_their_digits() {
    let module = parsed(&format!("const c = atanh(-0.99999994f);\n{ENTRY}")).unwrap();
    let (_, constant) = module.constants.iter().next().unwrap();
    let naga::Expression::Literal(naga::Literal::F32(value)) = module.global_expressions[constant.init] else {
        panic!("not a number")
    };
    assert!((value + 8.664_34).abs() > 0.1, "naga computes atanh well now: {value}");
}

#[test]
fn abstract_numbers_lose_their_sign_by_long_shifts() {
    let module = parsed(&format!("const c: i32 = (-9223372036854775807 - 1) >> 64u;\n{ENTRY}")).unwrap();
    let (_, constant) = module.constants.iter().next().unwrap();
    let value = &module.global_expressions[constant.init];
    assert!(
        matches!(value, naga::Expression::Literal(naga::Literal::I32(0))),
        "naga shifts abstract numbers well now: {value:?}"
    );
}

/// naga takes the parts of a vector for its components; at a choice between such vectors it panics.
#[test]
fn vectors_made_of_vectors() {
    let module = parsed(&format!("const c = vec3f(vec2f(), 3.0);\nconst y = c.y;\n{ENTRY}")).unwrap();
    let (_, constant) = module.constants.iter().find(|(_, constant)| constant.name.as_deref() == Some("y")).unwrap();
    let value = &module.global_expressions[constant.init];
    assert!(
        matches!(value, naga::Expression::Literal(naga::Literal::F32(3.0))),
        "naga finds components now: front/vectors.rs and amend/vectors.rs can go: {value:?}"
    );
    for expression in [
        "vec4f(vec3f(), 1.0).w",
        "vec4f(vec3f(f32()), 1.0).x",
        "(mat2x4f(vec4f(vec2f(1.0, 2.0), vec2f(3.0, 4.0)), vec4f(1.0)) * vec2f(1.0, 2.0)).x",
        "vec4f(1.0, vec2f(), 2.0).zw.x",
    ] {
        worked_around(&format!("const c = {expression};"));
    }
    let text = format!(
        "const c = select(vec4f(vec2f(), 1.0, 2.0), vec4f(9.0), vec4<bool>(true, false, true, false));\n{ENTRY}"
    );
    assert!(std::panic::catch_unwind(|| parsed(&text)).is_err(), "naga does not panic now");
    Kernel::from_wgsl(&text).unwrap();
}

/// SPIR-V's constant vectors have scalars alone.
#[test]
fn constant_vectors_are_written_with_their_components() {
    for vector in ["vec4f(vec3f(), 1.0)", "vec4f(vec2f(), 1.0, 2.0)", "vec4f(1.0, vec3f())", "vec4f(vec2f(o), vec2f())"]
    {
        let kernel = Kernel::from_wgsl(&format!(
            "override o = 2.0; @group(0) @binding(0) var<storage, read_write> y: array<vec4f>;
             @compute @workgroup_size(1) fn main() {{ y[0] = {vector}; }}"
        ));
        let words = kernel.unwrap().write(cantus::kernel::Language::Spirv).unwrap();
        // 44 is OpConstantComposite, 43 OpConstant, 46 OpConstantNull, 23 OpTypeVector.
        let found = instructions(&words);
        let vectors: Vec<u32> = found.iter().filter(|(op, _)| *op == 23).map(|(_, operands)| operands[0]).collect();
        let typed = |id: u32| found.iter().find(|(op, operands)| matches!(op, 43 | 44 | 46) && operands[1] == id);
        for (_, operands) in found.iter().filter(|(op, operands)| *op == 44 && vectors.contains(&operands[0])) {
            for part in &operands[2..] {
                assert!(!vectors.contains(&typed(*part).unwrap().1[0]), "{vector}");
            }
        }
    }
}

/// The instructions of SPIR-V: each one's number and its operands.
fn instructions(words: &[u8]) -> Vec<(u32, Vec<u32>)> {
    let words: Vec<u32> = words.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let (mut at, mut found) = (5, Vec::new());
    while at < words.len() {
        let length = (words[at] >> 16) as usize;
        found.push((words[at] & 0xffff, words[at + 1..at + length].to_vec()));
        at += length;
    }
    found
}

/// One row for each operation that a language leaves undefined, with what guards it in each (`docs/naga.md` has the table).
#[test]
fn every_language_guards_what_it_leaves_undefined() {
    use cantus::kernel::Language;
    // 169 is OpSelect, 199 OpBitwiseAnd, 12 OpExtInst: of GLSL.std.450, 38 is UMin and 43 FClamp.
    type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, fn(&(u32, Vec<u32>)) -> bool);
    let rows: [Row; 9] = [
        ("i[0] = i[1] / i[2];", "== 0", "naga_div", "naga_div", "/ i[2]", |(op, _)| *op == 169),
        ("i[0] = i[1] % i[2];", "== 0", "naga_mod", "naga_mod", " % ", |(op, _)| *op == 169),
        ("u[0] = u[1] / u[2];", "max(", "naga_div", "naga_div", "/ u[2]", |(op, _)| *op == 169),
        ("v = v % w;", "equal(", "naga_mod", "naga_mod", " % ", |(op, _)| *op == 169),
        ("i[0] = i32(f[0]);", "2147483500.0", "naga_f2i32", "naga_f2i32", " int(_", |(op, _)| *op == 12),
        ("u[0] = u32(f[0]);", "4294967000.0", "naga_f2u32", "naga_f2u32", " uint(_e", |(op, _)| *op == 12),
        ("f[u[0]] = 1.0;", "min(", "min(", "f.Store", "_cs[_e", |(op, args)| *op == 12 && args[3] == 38),
        ("i[0] = v[i[1]];", "min(", "min(", "min(", "[_e", |(op, args)| *op == 12 && args[3] == 38),
        ("u[0] = u[1] << u[2];", "& 31u", "& 31u", "& 31u", "<< _e", |(op, _)| *op == 199),
    ];
    for (statement, glsl, msl, hlsl, bare, spirv) in rows {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> i: array<i32>;
             @group(0) @binding(1) var<storage, read_write> u: array<u32>;
             @group(0) @binding(2) var<storage, read_write> f: array<f32>;
             var<private> v: vec3i; var<private> w: vec3i;
             @compute @workgroup_size(1) fn main() {{ {statement} i[3] = v.x; f[3] = 0.0; }}"
        );
        let kernel = Kernel::from_wgsl(&text).unwrap();
        for (language, guard) in [(Language::Glsl, glsl), (Language::Msl, msl), (Language::Hlsl, hlsl)] {
            let written = String::from_utf8(kernel.write(language).unwrap()).unwrap();
            assert!(written.contains(guard), "{statement} in {language:?} has no {guard}:\n{written}");
            assert!(language != Language::Glsl || !written.contains(bare), "{statement} has {bare}:\n{written}");
        }
        let words = kernel.write(Language::Spirv).unwrap();
        assert!(instructions(&words).iter().any(spirv), "{statement} in SPIR-V");
    }
}

#[test]
fn storage_textures_as_arguments() {
    worked_around(
        "@group(0) @binding(0) var made: texture_storage_2d<r32float, write>;
         fn inner(t: texture_storage_2d<r32float, write>, at: vec2u) { textureStore(t, at, vec4f(1.0)); }
         fn put(t: texture_storage_2d<r32float, write>, at: vec2u) { inner(t, at); }
         @compute @workgroup_size(1) fn main() { put(made, vec2u(1)); }",
    );
}

#[test]
fn assertions_that_begin_with_a_bracket() {
    worked_around("@fragment fn shade() { let x = dpdx(1) + fwidthFine(2 + 3); }");
    worked_around("const K = 5;\nconst_assert (K & 1) == 1;\nfn f() { const_assert (K + 1) * 2 == 12; }");
}

/// A file may have render stages beside a compute entry point, unless that calls their functions.
#[test]
fn render_stages_beside_a_kernel() {
    let text = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
         @group(0) @binding(1) var t: texture_2d<f32>;
         @group(0) @binding(2) var s: sampler;
         fn shaded(at: vec2f) -> vec4f { return textureSample(t, s, at); }
         @fragment fn shade(@location(0) at: vec2f) -> @location(0) vec4f { return shaded(at); }
         @compute @workgroup_size(1) fn main() { y[0] = 1.0; }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    assert_eq!(kernel.reflection().unwrap().bindings.len(), 1);
    let error = Kernel::from_wgsl(&text.replace("y[0] = 1.0", "y[0] = shaded(vec2f()).x")).unwrap_err().to_string();
    assert!(error.contains("neighbouring pixels"), "{error}");
}

#[test]
fn directives() {
    worked_around("enable subgroups;");
    worked_around("requires pointer_composite_access;\nrequires unrestricted_pointer_parameters;");
    worked_around("fn f() { @diagnostic(off, derivative_uniformity) { } }");
}

#[test]
fn names_of_a_continuing_block() {
    worked_around("fn f() { loop { var x = 1; continuing { var x = 2; break if x > 1; } } }");
}

#[test]
fn names_at_run_time() {
    worked_around("fn f(y: i32) -> i32 { let z = 0; return y / z; }");
    worked_around("fn f() -> i32 { var a = array<i32, 2>(); let k = 5; return a[k]; }");
}

#[test]
fn builtins_of_constants() {
    for expression in [
        "bitcast<u32>(1.0f)",
        "determinant(mat2x2(1.0, 2.0, 3.0, 4.0))",
        "extractBits(1u, 0u, 1u)",
        "faceForward(vec2(1.0), vec2(1.0), vec2(1.0))",
        "frexp(1.0).fract",
        "insertBits(1u, 1u, 0u, 1u)",
        "ldexp(1.0, 2)",
        "mix(1.0, 2.0, 0.5)",
        "modf(1.5).whole",
        "pack2x16float(vec2(1.0))",
        "pack2x16snorm(vec2(1.0))",
        "pack2x16unorm(vec2(1.0))",
        "pack4x8snorm(vec4(1.0))",
        "pack4x8unorm(vec4(1.0))",
        "pack4xI8(vec4(1))",
        "pack4xI8Clamp(vec4(1))",
        "pack4xU8(vec4(1u))",
        "pack4xU8Clamp(vec4(1u))",
        "quantizeToF16(1.0)",
        "reflect(vec2(1.0), vec2(1.0))",
        "refract(vec2(1.0), vec2(1.0), 1.0)",
        "smoothstep(0.0, 1.0, 0.5)",
        "transpose(mat2x2(1.0, 2.0, 3.0, 4.0))",
        "unpack2x16float(1u)",
        "unpack2x16snorm(1u)",
        "unpack2x16unorm(1u)",
        "unpack4x8snorm(1u)",
        "unpack4x8unorm(1u)",
        "unpack4xI8(1u)",
        "unpack4xU8(1u)",
    ] {
        worked_around(&format!("const c = {expression};"));
    }
}

#[test]
fn pointers_as_arguments() {
    worked_around(
        "@group(0) @binding(0) var<storage> s: array<u32>;\nfn f(p: ptr<storage, u32>) -> u32 { return *p; }\n@compute @workgroup_size(1) fn main() { _ = f(&s[0]); }",
    );
    worked_around(
        "var<workgroup> w: u32;\nfn f(p: ptr<workgroup, u32>) -> u32 { return *p; }\n@compute @workgroup_size(1) fn main() { _ = f(&w); }",
    );
}

#[test]
fn functions_that_end_in_a_loop() {
    worked_around("fn f() -> u32 { loop { return 1u; } }");
}

#[test]
fn two_minus_signs() {
    worked_around("fn f(two: i32, one: i32) -> i32 { return two--one; }");
}

/// Reports show the text as it was before it was rewritten for naga.
#[test]
fn reports_show_the_authors_text() {
    let text = "enable subgroups;\n@diagnostic(off, derivative_uniformity)\nfn f() -> u32 { let z = 0; let k = 4 / z; return unknown_name; }";
    let cantus::Error::InvalidWgsl { report, place, .. } = Kernel::from_wgsl(text).unwrap_err() else {
        panic!("another error")
    };
    let place = place.unwrap();
    assert_eq!((place.line, place.column), (3, 50), "{report}");
    assert!(report.contains("let k = 4 / z; return unknown_name;"), "{report}");
}

/// A text for a preprocessor is told from a mistake, linked or not.
#[test]
fn templates_and_preprocessors_are_named() {
    let [lines, placeholder] = ["WGSL has no lines that begin with `#`", "this is a template's placeholder"];
    for (text, note) in [
        ("#ifdef FAST\nconst k = 2.0;\n#endif", lines),
        ("#include \"common.wgsl\"", lines),
        ("#import bevy_pbr::mesh_view", lines),
        ("@compute @workgroup_size({{WG}}, 1, 1) fn f() {}", placeholder),
        ("@compute @workgroup_size(#{WG}) fn f() {}", placeholder),
        ("const k = ${K};", placeholder),
        ("{% if fast %} const k = 1; {% endif %}", placeholder),
    ] {
        let text = format!("{text}\n{ENTRY}");
        let error = Kernel::from_wgsl(&text).unwrap_err().to_string();
        assert!(error.contains(note), "{text}\n{error}");
        let error = Kernel::linked(&cantus::link::Linker::new(), "main.wgsl", &text).unwrap_err().to_string();
        assert!(error.contains(note), "linked: {text}\n{error}");
    }
    let error = Kernel::from_wgsl(&format!("const k = ;\n{ENTRY}")).unwrap_err().to_string();
    assert!(!error.contains("note:"), "{error}");
}

/// Not every `let` becomes a variable: what is assigned to is an error.
#[test]
fn invalid_texts_stay_invalid() {
    for text in [
        "fn f() { let z = 0; z = 1; let y = 3 / z; }",
        "fn f(y: i32) -> i32 { const z = 0; return y / z; }",
        "fn f() -> i32 { var a = array<i32, 2>(); return a[5]; }",
        "const c = frexp(true).fract;",
        "const c = ldexp(1.0, 2000);",
        "const c = extractBits(1u, 30u, 5u);",
        "const c = atanh(1.0);",
        "fn f() -> u32 { loop { break; } }",
        "fn f(n: u32) -> u32 { loop { if n > 3u { break; } return 1u; } }",
        "enable chromium_experimental_thing;",
        "requires texel_buffers;",
        "struct I { @align(3) v: u32 }\nstruct T { i: I }",
        // Operators that need brackets.
        "fn f(a: i32, b: i32) -> i32 { return a & b + 1; }",
        "fn f(a: i32, b: i32) -> i32 { return a & b | 4; }",
        "fn f(a: i32, b: i32) -> i32 { return a + b << 1u; }",
        "fn f(a: u32) -> u32 { return a << 1u << 2u; }",
        "fn f(a: bool, b: bool) -> bool { return a && b || a; }",
        "fn f(a: bool, b: bool) -> bool { return a & b && a; }",
        "fn f(a: i32) -> bool { return 1 < a == true; }",
        // Names in one scope.
        "fn f() { for (var i = 0; i < 3; i++) { let i = 2; } }",
        "fn f(a: i32) { let a = 2; }",
        "fn f() { let a = 1; let a = 2; }",
        "fn f() { var i = 0; loop { if i == 1 { continue; } let k = 1; if i > 3 { break; } continuing { i += k; } } }",
        "fn f() { const a = false && nothing > 1; }",
        // Attributes in wrong places.
        "@compute var<private> v: u32;",
        "@workgroup_size(1) fn f() {}",
        "@must_use fn f() {}",
        "@id(1) const a = 1;",
        "@size(16) var<private> v: u32;",
        "struct S { @group(0) v: u32 }",
        "struct S { @align(16) @align(16) v: u32 }",
        "@group(0) var<storage> v: array<u32>;",
        "fn f() { @align(4) let a = 1; }",
        "@compute @workgroup_size(1) fn f(@location(0) v: f32) {}",
        "struct S { @location(0) v: f32 }\n@compute @workgroup_size(1) fn f(s: S) {}",
        "@compute @workgroup_size(1) fn f() -> @location(0) f32 { return 1.0; }",
        // Entry points.
        "@compute @workgroup_size(1) fn f(@builtin(local_invocation_index) a: u32, @builtin(local_invocation_index) b: u32) {}",
        "struct S { @builtin(local_invocation_index) v: u32 }\nalias A = S;\n\
         @compute @workgroup_size(1) fn f(s: A, @builtin(local_invocation_index) b: u32) {}",
        "struct S { @builtin(sample_mask) a: u32, @builtin(sample_mask) b: u32 }\n@fragment fn f() -> S { return S(); }",
        "@compute @workgroup_size(8i, 8, 8u) fn f() {}",
        "const a = 8u; override b = 8i;\n@compute @workgroup_size(a, b) fn f() {}",
        "var<workgroup> unused: u32;\n@group(0) @binding(0) var<storage, read_write> n: atomic<u32>;\nfn g() { atomicAdd(&n, 1u); }\n\
         @vertex fn f() -> @builtin(position) vec4f { g(); return vec4f(); }",
        // Beyond what a function is defined for.
        "enable f16;\nconst c = mix(60000h, 60000h, -60000h);",
        "enable f16;\nconst c = refract(vec2h(300h), vec2h(300h), 1h);",
        "fn f(v: mat2x2f) -> mat2x2f { return -v; }",
        "fn f(v: f32) -> f32 { return clamp(v, 2.0, 1.0); }",
        "fn f(v: vec2i) -> vec2i { return clamp(v, vec2i(0, 3), vec2i(1, 2)); }",
        "fn f(v: f32) -> f32 { return smoothstep(1.0, 1.0, v); }",
        "fn f(v: f32) -> f32 { return ldexp(v, 129); }",
        "fn f(v: u32) -> u32 { return extractBits(v, 30u, 5u); }",
        "const c = inverseSqrt(-1.0);",
        "const c = true && inverseSqrt(-1.0) > 0;",
        "const c = select(0.0f, vec3f(), false);",
        "const c = select(vec2(0, 0), vec3(0.0, 0.0, 0.0), true);",
        "fn f(a: bool) -> u32 { return select(1u, vec2u(), a).x; }",
        "fn f(a: vec2f) -> u32 { return bitcast<u32>(a); }",
        "enable f16;\nfn f(a: f16) -> vec4f { return bitcast<vec4f>(a); }",
        "fn f(a: vec2f) -> vec2f { return extractBits(a, 1u, 2u); }",
        "enable subgroups;\nfn f(a: u32) -> u32 { return subgroupShuffle(a, 128u); }",
        "enable subgroups;\nfn f(a: u32) -> u32 { return subgroupShuffleXor(a, 200u); }",
        "const a = false; const b = i32(0); const c = a && b;",
        "fn f() -> bool { return true || vec2(true, false); }",
        "fn f(a: u32) -> bool { return false && (a + 1u); }",
        "const c = fma(3e38f, 2.0f, 0.0f);",
        "const c = normalize(vec2f());",
        "const c = cross(vec3f(3e38), vec3f(3e38));",
        "const c = faceForward(vec2f(1), vec2f(3e38), vec2f(-3e38));",
        "const c = bitcast<f32>(0x7f800000u);",
        "@group(0) @binding(0) var t: texture_2d<f32>;\n@group(0) @binding(1) var s: sampler;\nfn f() -> vec4f { return textureSampleLevel(t, s, vec2f(), 0.0, vec2i(8, 0)); }",
        "struct I { @align(64) v: u32 }\nstruct T { @size(8) i: I }\n@group(0) @binding(0) var<storage> s: T;",
    ] {
        let text = format!("{text}\n{ENTRY}");
        assert!(Kernel::from_wgsl(&text).is_err(), "this is no WGSL:\n{text}");
    }
}

/// Valid texts that resemble the invalid ones.
#[test]
fn valid_texts_stay_valid() {
    for text in [
        "fn f(a: i32, b: i32) -> i32 { return a & b & (a + 1); }",
        "fn f(a: i32, b: i32) -> i32 { return (a + b) << 1u; }",
        "fn f(a: u32) -> bool { return a + 1u < a << 2u && a == 3u && a * 2u > 1u; }",
        "fn f(a: bool, b: bool) -> bool { return (a && b) || a; }",
        "fn f() { let a = 1; { let a = 2; } for (var a = 0; a < 2; a++) { } for (var a = 0; a < 2; a++) { { let a = 1; } } }",
        "fn f(a: i32) { { let a = 2; } if a > 1 { let a = 3; } }",
        "fn f() { var i = 0; loop { let k = 1; if i == 1 { continue; } if i > 3 { break; } continuing { i += k; } } }",
        "fn f() { var i = 0; loop { loop { continue; continuing { break if true; } } let k = 1; if i > 3 { break; } continuing { i += k; } } }",
        "const a = clamp(3, 1, 5); const b = dot(vec2(1, 2), vec2(3, 4)); const_assert a + b == 14;",
        "const a = smoothstep(2.0, 1.0, 1.5); const b = ldexp(1.0f, 128 - 1); const c = extractBits(1u, 0u, 32u);",
        "const a = dot(vec2i(2147483647, 1), vec2i(2, 2)); const b = clamp(vec2u(9u), vec2u(1u), vec2u(4u));",
        "const a = select(1, 2.0, true); const b = select(vec2(1), vec2(2f), vec2(true, false)); const c = bitcast<vec2u>(vec2(1, 2));",
        "enable f16;\nfn f(a: vec2h, b: f32, c: bool) -> f32 { return bitcast<f32>(a) + f32(bitcast<vec2h>(b).x) + select(1, b, c); }",
        "enable subgroups;\nfn f(a: bool) -> vec4u { return select(vec4u(), subgroupBallot(a), a); }",
        "enable subgroups;\nfn f(a: u32) -> u32 { return subgroupShuffle(a, 127u) + subgroupBroadcast(a, 0) + extractBits(a, 1u, 2u); }",
        "fn f(a: u32, b: i64, c: bool) -> i64 { return select(b, i64(a), c) + select(i64(a), i64(1.5f), c); }",
        "fn f(a: u32, c: bool) -> u32 { let x = u64(a); return u32(x) + u32(select(u64(a), 7lu, c)); }",
        "fn f(a: vec2f, c: bool) -> vec2<f64> { return select(vec2<f64>(a), vec2<f64>(1.0lf, 2.0lf), c); }",
        "@compute @workgroup_size(8u, 8) fn f(@builtin(local_invocation_index) a: u32, @builtin(workgroup_id) b: vec3u) {}",
        "struct S { @builtin(sample_mask) a: u32 }\n@fragment fn f(s: S) -> @builtin(sample_mask) u32 { return s.a; }",
        "@group(0) @binding(0) var<storage, read_write> n: atomic<u32>;\nfn g() { atomicAdd(&n, 1u); }\n\
         @fragment fn e() { g(); }\n@vertex fn f() -> @builtin(position) vec4f { return vec4f(); }",
        "fn f() { var<function,> x: array<i32, 4,>; x[0] = 1; }",
        "enable f16;\nconst c = 0xEp-2h; const d = 0x3.2p+2h;\n@group(0) @binding(0) var<storage> h: array<f16>;",
        "const z = 0i; fn f() { let a = false && 1 / z == 0; const s = 31u; let b = true || i32(1 << s) < 0; }",
        "const z = 0.0f; const a = !(true || 1f / z == 0) && (true || sqrt(z - 1) > 2);",
        "var<workgroup> w: atomic<u32>; fn f(a: bool) -> bool { return a && atomicCompareExchangeWeak(&w, 0u, 1u).exchanged; }",
        "fn f(a: bool, x: f32) -> bool { return (a && modf(x).fract > 0.5) || frexp(x).exp == 1; }",
        "fn f(p: ptr<function, bool>, v: vec2<bool>) -> bool { return (*p && v.x) || (all(v) && any(v & v)); }",
        "@group(0) @binding(0) var t: texture_2d<f32>; fn f(a: bool) -> bool { return a && textureNumLevels(t) == 1u; }",
    ] {
        let text = format!("{text}\n{ENTRY}");
        if let Err(error) = Kernel::from_wgsl(&text) {
            panic!("{error}\n{text}");
        }
    }
}

/// Overrides for which a function has no value are an error where they are set, as constants are where they are written; an operand that is not
/// evaluated needs none.
#[test]
fn overrides_have_the_domains_of_constants() {
    const HEAD: &str = "override low = 1.0; override high = 2.0; override count = 8u; override on = true;\n\
        @group(0) @binding(0) var<storage, read_write> y: array<f32>;\n@compute @workgroup_size(1) fn main() { y[0] = ";
    for (body, name, good, bad) in [
        ("clamp(y[1], low, high)", "low", 1.5, 3.0),
        ("smoothstep(low, high, y[1])", "high", 3.0, 1.0),
        ("f32(extractBits(u32(y[1]), 28u, min(count, 5u)))", "count", 4.0, 5.0),
        ("inverseSqrt(low)", "low", 4.0, -1.0),
        ("f32(on && sqrt(low - 2.0) > 0.5)", "on", 0.0, 1.0),
    ] {
        let kernel = Kernel::from_wgsl(&format!("{HEAD}{body}; }}")).unwrap_or_else(|error| panic!("{error}\n{body}"));
        let with = |value: f64| kernel.with_override(name, value).and_then(|kernel| kernel.reflection().map(|_| ()));
        with(good).unwrap_or_else(|error| panic!("{name} = {good}: {error}\n{body}"));
        let error = with(bad).expect_err(body).to_string();
        assert!(error.contains("with its overrides"), "{error}");
        // What the entry point does not reach is not computed; naga computes roots there too.
        if body.contains("qrt") {
            continue;
        }
        let body = body.replace("y[1]", "1.0");
        let text = HEAD.replace("y[0] = ", "y[0] = 1.0; }\nfn unused() -> f32 { return ");
        let kernel = Kernel::from_wgsl(&format!("{text}{body}; }}")).expect("a kernel");
        let kernel = kernel.with_override(name, bad).expect("an override");
        kernel.reflection().unwrap_or_else(|error| panic!("{name} = {bad}: {error}\n{body}"));
    }
}

#[test]
fn extensions_that_are_lacking_are_named() {
    for (text, word) in [
        ("enable chromium_experimental_subgroup_matrix;", "chromium_experimental_subgroup_matrix"),
        ("requires texel_buffers;", "texel_buffers"),
    ] {
        let error = Kernel::from_wgsl(&format!("{text}\n{ENTRY}")).unwrap_err().to_string();
        assert!(error.contains(&format!("extension \"{word}\"")), "{error}");
    }
}

/// Text from outside is bounded: an answer, not an abort.
#[test]
fn hostile_texts_have_an_answer() {
    let deep = |open: &str, middle: &str, close: &str, n: usize| {
        format!("const c = {}{middle}{};\n{ENTRY}", open.repeat(n), close.repeat(n))
    };
    let texts = [
        deep("(", "1", ")", 5_000),
        deep("-", "1", "", 5_000),
        format!("const c = 1{};\n{ENTRY}", " + 1".repeat(5_000)),
        (0..3_000).fold(format!("const c0 = mix(1.0, 2.0, 0.5);\n{ENTRY}\n"), |text, k| {
            text + &format!("const c{} = c{k} + 1.0;\n", k + 1)
        }),
        format!("const c = mix(c, 1.0, 0.5);\n{ENTRY}"),
        format!("const a = frexp(b).fract; const b = frexp(a).fract;\n{ENTRY}"),
        format!("const c = frexp(array<array<f32, 60000>, 60000>()[0][0]).fract;\n{ENTRY}"),
        format!("{ENTRY} /*"),
        format!("{ENTRY} @"),
        "<".repeat(2_000) + ENTRY,
    ];
    for text in texts {
        let _ = Kernel::from_wgsl(&text);
    }
}

#[test]
fn written_wgsl_keeps_its_layout() {
    let kernel = Kernel::from_wgsl(
        "struct Inner { @align(64) v: u32, @size(12) w: u32 }\nstruct Outer { a: u32, b: Inner, c: array<Inner, 2>, @size(32) d: vec3f, e: u32 }\n\
         @group(0) @binding(0) var<storage, read_write> s: array<Outer>;\n\
         @compute @workgroup_size(1) fn main() { s[0].b.v = s[1].c[1].w + s[0].e; }",
    )
    .unwrap();
    let layout = &kernel.reflection().unwrap().bindings[0].layout;
    let written = String::from_utf8(kernel.write(cantus::kernel::Language::Wgsl).unwrap()).unwrap();
    let again = Kernel::from_wgsl(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    let again = &again.reflection().unwrap().bindings[0].layout;
    assert_eq!(format!("{layout:?}"), format!("{again:?}"), "{written}");
    let error = kernel.write(cantus::kernel::Language::Glsl).unwrap_err().to_string();
    assert!(error.contains("GLSL would lay out the binding \"s\" in another way"), "{error}");
}

/// naga's writer panics: a valid kernel must not be called invalid for that.
#[test]
fn msl_has_no_f64() {
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> y: array<f64>;
         @compute @workgroup_size(1) fn main() { y[0] = y[1] * 2.0lf; }",
    );
    let refusal = kernel.unwrap().write(cantus::kernel::Language::Msl).unwrap_err();
    assert!(matches!(&refusal, cantus::Error::Unsupported { construct, .. } if construct.contains("f64")), "{refusal}");
}

/// naga's writer panics.
#[test]
fn hlsl_converts_no_float_to_a_short_integer() {
    let kernel = Kernel::from_wgsl(
        "enable wgpu_int16;
         @group(0) @binding(0) var<storage, read_write> y: array<f32>;
         fn short(x: vec2f) -> f32 { return f32(vec2<i16>(x).y); }
         @compute @workgroup_size(1) fn main() { y[0] = short(vec2f(y[1], y[2])); }",
    );
    let refusal = kernel.unwrap().write(cantus::kernel::Language::Hlsl).unwrap_err();
    assert!(
        matches!(&refusal, cantus::Error::Unsupported { construct, .. } if construct.contains("16-bit")),
        "{refusal}"
    );
}

fn glsl(module: &Module) -> String {
    use naga::back::glsl;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(module).unwrap();
    let options = glsl::Options { version: glsl::Version::new_gles(310), ..glsl::Options::default() };
    let pipeline = glsl::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: "main".to_owned(),
        multiview: None,
    };
    let mut written = String::new();
    let policies = naga::proc::BoundsCheckPolicies::default();
    glsl::Writer::new(&mut written, module, &info, &options, &pipeline, policies).unwrap().write().unwrap();
    written
}

#[test]
fn glsl_takes_unsigned_numbers_for_signed_ones() {
    let text = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() { y[0] = abs(y[1]); }";
    let module = parsed(text).unwrap();
    let written = glsl(&module);
    assert!(
        written.contains("abs(int("),
        "naga's GLSL has abs of unsigned numbers now: amend/magnitude.rs can go\n{written}"
    );
    let ours = Kernel::from_wgsl(text).unwrap().write(cantus::kernel::Language::Glsl).unwrap();
    assert!(!String::from_utf8(ours).unwrap().contains("abs("));
}

/// SPIR-V leaves a shift by its width or more undefined; so does GLSL.
#[test]
fn long_shifts_are_written_as_they_are() {
    let text = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() { y[0] = y[1] << y[2]; let s = 37u; y[3] = y[4] >> s; y[5] = y[6] >> 5u; }";
    let module = parsed(&text.replace("let s", "var s")).unwrap();
    let written = glsl(&module);
    assert!(!written.contains("& 31u"), "naga masks shifts now: amend/shifts.rs can go\n{written}");
    let kernel = Kernel::from_wgsl(text).unwrap();
    let ours = String::from_utf8(kernel.write(cantus::kernel::Language::Glsl).unwrap()).unwrap();
    assert_eq!(ours.matches("& 31u").count(), 2, "{ours}");
    assert!(ours.contains(">> 5u"), "{ours}");
    // The operand of each shift, by the instruction that makes it: 199 is OpBitwiseAnd, 43 OpConstant.
    let words = kernel.write(cantus::kernel::Language::Spirv).unwrap();
    let (mut made, mut shifts) = (std::collections::HashMap::new(), Vec::new());
    for (op, operands) in instructions(&words) {
        match op {
            43 | 199 => drop(made.insert(operands[1], op)),
            194..=196 => shifts.push(made[&operands[3]]),
            _ => {}
        }
    }
    assert_eq!(shifts, [199, 199, 43]);
}
