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
        "struct I { @align(64) v: u32 }\nstruct T { @size(8) i: I }\n@group(0) @binding(0) var<storage> s: T;",
    ] {
        let text = format!("{text}\n{ENTRY}");
        assert!(Kernel::from_wgsl(&text).is_err(), "this is no WGSL:\n{text}");
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
    let words: Vec<u32> = words.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let (mut at, mut made, mut shifts) = (5, std::collections::HashMap::new(), Vec::new());
    while at < words.len() {
        let (length, op) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        match op {
            43 | 199 => drop(made.insert(words[at + 2], op)),
            194..=196 => shifts.push(made[&words[at + 4]]),
            _ => {}
        }
        at += length;
    }
    assert_eq!(shifts, [199, 199, 43]);
}
