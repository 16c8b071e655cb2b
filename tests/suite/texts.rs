//! Texts of kernels that are refused, and the errors' words.

use cantus::{Error, Kernel};

const OUT: &str = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n";

/// The error's text, with its line.
fn refused(text: &str) -> (String, Option<u32>) {
    let error = Kernel::from_wgsl(text).expect_err(text);
    let line = match &error {
        Error::InvalidWgsl { place, .. } => place.map(|place| place.line),
        _ => None,
    };
    (error.to_string(), line)
}

macro_rules! says {
    ($text:expr, $line:expr, $($part:expr),+) => {
        let (message, line) = refused(&$text);
        assert_eq!(line, $line, "{message}");
        $(assert!(message.contains($part), "no {:?} in {message}", $part);)+
    };
}

#[test]
fn barriers_where_control_flow_varies() {
    let early = format!(
        "{OUT}var<workgroup> s: array<u32, 64>;\n@compute @workgroup_size(64)\n\
         fn main(@builtin(local_invocation_index) l: u32, @builtin(global_invocation_id) g: vec3u) {{\n\
         if g.x >= arrayLength(&y) {{ return; }}\ns[l] = y[g.x];\nworkgroupBarrier();\ny[g.x] = s[63 - l];\n}}"
    );
    says!(
        early,
        Some(7),
        "`workgroupBarrier`",
        "`g` varies because of `global_invocation_id` at line 4",
        "this condition varies"
    );
    let branch = format!(
        "{OUT}@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {{\nif l < 40 {{ storageBarrier(); }}\n}}"
    );
    says!(branch, Some(3), "`storageBarrier`", "`l` varies because of `local_invocation_index` at line 2");
    let subgroup = format!(
        "enable subgroups;\n{OUT}@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) l: u32) {{\n\
         if l < 3 {{ return; }}\ny[l] = subgroupAdd(1u); }}"
    );
    says!(subgroup, Some(5), "`subgroupAdd`", "subgroup");
    // Only that may be lowered.
    Kernel::from_wgsl(&format!("diagnostic(off, subgroup_uniformity);\n{subgroup}")).unwrap();
    refused(&format!("diagnostic(off, derivative_uniformity);\n{branch}"));
}

#[test]
fn large_variables_and_constants() {
    let main = "@compute @workgroup_size(1) fn main() { y[0] = 1; }";
    says!(format!("{OUT}var<private> a: array<u32, 100000000>;\n{main}"), Some(2), "`a`", "private", "262144 bytes");
    let local =
        format!("{OUT}@compute @workgroup_size(1) fn main() {{\nvar a: array<u32, 262144>; y[0] = a[y[1]];\n}}");
    says!(local, Some(3), "`a`", "262144 bytes");
    says!(format!("{OUT}var<workgroup> a: array<u32, 10000000>;\n{main}"), Some(2), "`a`", "workgroup");
    // What is rewritten for naga in front of it moves no place.
    let behind = format!("enable subgroups; {OUT}var<workgroup> a: array<u32, 10000000>;\n{main}");
    says!(behind, Some(2), ":2:1\n", "too large");
    let doubling: String = (1..24).map(|at| format!("const c{at} = array(c{0}, c{0});\n", at - 1)).collect();
    let doubling = format!("{OUT}const c0 = array(1u, 2u);\n{doubling}{main}");
    let (message, line) = refused(&doubling);
    assert!(message.contains("constants") && line.is_some(), "{message}");
    says!(
        format!("enable f16;\n{OUT}const h: f16 = f16(70000i);\nconst k: i32 = i32(h);\n{main}"),
        Some(3),
        "70000 is not a value of f16"
    );
}

#[test]
fn extensions_by_name() {
    says!(format!("requires buffer_view;\n{OUT}"), Some(1), "\"buffer_view\"", "linear_indexing");
    for name in [
        "readonly_and_readwrite_storage_textures",
        "texture_and_sampler_let",
        "texture_formats_tier1",
        "packed_4x8_integer_dot_product",
        "unrestricted_pointer_parameters",
        "pointer_composite_access",
        "uniform_buffer_standard_layout",
        "subgroup_id",
        "subgroup_uniformity",
        "linear_indexing",
        "immediate_address_space",
        "swizzle_assignment",
    ] {
        Kernel::from_wgsl(&format!("requires {name};\n{OUT}@compute @workgroup_size(1) fn main() {{ y[0] = 1; }}"))
            .unwrap();
    }
}

#[test]
fn functions_and_loops_that_do_not_end() {
    says!("fn f(x: u32) -> u32 {\nif x > 1 { return 1; }\n}", Some(1), "`f` may end without a value");
    says!("fn f() {\nloop { }\n}", Some(2), "nothing leaves this loop");
}

#[test]
fn messages_have_no_handles_and_no_long_lines() {
    let deep = format!("{OUT}@compute @workgroup_size(1) fn main() {{ y[0] = {}1u; }}", "(".repeat(200_000));
    let (message, _) = refused(&deep);
    assert!(message.len() < 3000, "{} bytes", message.len());
    let index = format!("{OUT}@compute @workgroup_size(1) fn main() {{\nvar a = array<u32, 2>(); y[0] = a[5];\n}}");
    let (message, line) = refused(&index);
    assert_eq!(line, Some(3), "{message}");
    // Before the marked place, which is the author's text.
    let said = message.split('┌').next().unwrap();
    assert!(!said.contains('[') && !message.contains("naga::"), "{message}");
}

/// Errors of naga without a place name the declaration that they are about.
#[test]
fn messages_have_a_place() {
    let main = |inputs: &str| {
        format!("{OUT}// of the kernel\n@compute @workgroup_size(64)\nfn main({inputs}) {{ y[0] = 1; }}")
    };
    let id = main("@builtin(global_invocation_id) id: u32");
    let (message, _) = refused(&id);
    assert!(!message.contains("Scalar"), "{message}");
    says!(id, Some(3), "main", "argument 1", "@builtin(global_invocation_id) is of the type vec3<u32>", "fn main(");
    let index = main("@builtin(workgroup_id) at: vec3u, @builtin(local_invocation_index) i: f32");
    says!(index, Some(3), "argument 2", "@builtin(local_invocation_index) is of the type u32");
    says!(main("@builtin(num_workgroups) n: atomic<u32>"), Some(3), "main", "no function takes");
    says!(main("").replace("64", "1048576"), Some(3), "main", "a side of @workgroup_size is below 1");
    says!(format!("{}\nstruct S {{ @align(n) a: u32 }}\noverride n = 4;", main("")), Some(5), "@align", "struct S");
}

/// Errors of naga name types and values in WGSL's words.
#[test]
fn messages_are_wgsls() {
    let body = |body: &str| format!("{OUT}@compute @workgroup_size(1) fn main() {{\n{body}\n}}");
    let cases = [
        (body("let a = 1.0f + y[0];"), 3, "`+` does not take f32 with u32 (convert one of them)"),
        (body("var v = vec3f(); let a = v * mat2x2f();"), 3, "`*` does not take vec3<f32> with mat2x2<f32>"),
        (body("let a = y[0] && true;"), 3, "`&&` does not take u32"),
        (body("var b = true; let a = -b;"), 3, "`-` does not take a value of this type"),
        (format!("fn f(a: u32) -> u32 {{ return a; }}\n{}", body("y[0] = f(1u, 2u);")), 4, "1 arguments and gets 2"),
        (
            format!("fn f(a: f32) {{ }}\n{}", body("f(y[0]);")),
            4,
            "argument 1 has another type than the function declares",
        ),
        (format!("fn f() -> f32 {{ return 1u; }}\n{}", body("")), 1, "another type than it declares"),
        (format!("@group(0) @binding(1) var<uniform> u: bool;\n{}", body("")), 1, "(use u32)"),
        (
            format!("@group(0) @binding(0) var<storage> x: array<u32>;\n{}", body("y[0] = x[0];")),
            2,
            "same @group and @binding",
        ),
    ];
    for (text, line, part) in cases {
        let (message, place) = refused(&text);
        let said = message.split('┌').next().unwrap();
        assert!(place == Some(line) && said.contains(part), "{message}");
        assert!(!["Scalar", "TypeFlags", "{", " is invalid: Call"].iter().any(|word| said.contains(word)), "{message}");
    }
}

/// A uniform variable with a layout of storage, and immediates, run as what devices have.
#[test]
fn spaces_that_devices_lack() {
    use cantus::Kernel;
    use cantus::kernel::AddressSpace;
    let text = format!(
        "struct U {{ a: array<f32, 4>, b: u32 }}\n@group(0) @binding(1) var<uniform> u: U;\nvar<immediate> k: u32;\n\
         {OUT}@compute @workgroup_size(1) fn main() {{ y[0] = u.b + k; }}"
    );
    let reflection = Kernel::from_wgsl(&text).unwrap().reflection().unwrap().clone();
    let space = |name: &str| reflection.binding(name).unwrap().1.space;
    assert_eq!(space("u"), AddressSpace::Storage);
    assert_eq!(space("k"), AddressSpace::Uniform);
}

#[test]
fn filters_and_returns_where_none_belongs() {
    let main = "@compute @workgroup_size(1) fn main() { y[0] = 1; }";
    let filter = "@diagnostic(off, derivative_uniformity)";
    says!(
        format!("{OUT}\n{filter} {filter} fn f() {{}}\n{main}"),
        Some(3),
        "a second filter of `derivative_uniformity`"
    );
    says!(format!("{OUT}\nfn f() {{ {filter}\n let a = 1; }}\n{main}"), Some(3), "statements with a block");
    says!(format!("{OUT}\n{filter} var<private> a: u32;\n{main}"), Some(3), "belongs to functions");
    says!(format!("diagnostic(warn, derivative_uniformity);\n{OUT}{main}"), Some(1), "not `warn`");
    let twice = "diagnostic(off, derivative_uniformity);\ndiagnostic(info, derivative_uniformity);\n";
    says!(format!("{twice}{OUT}{main}"), Some(2), "another severity");
    says!(
        format!("{OUT}fn f() -> u32 {{\nif y[0] == 0 {{ return; }} return 1; }}\n{main}"),
        Some(3),
        "without a value"
    );
    says!(format!("{OUT}@group(0) @binding(1) var<storage> a: atomic<u32>;\n{main}"), Some(2), "nothing may write");
    let functions = format!(
        "{filter} fn f() {{ {filter} if true {{}} else {filter} {{}} switch 0 {filter} {{ default {filter} {{}} }} }}"
    );
    Kernel::from_wgsl(&format!("diagnostic(off, derivative_uniformity);\n{OUT}{functions}\n{main}")).unwrap();
}

/// WGSL's rules of atomic numbers: naga takes the first of these texts, and writes plain stores and copies for them.
#[test]
fn atomic_numbers_are_used_by_their_functions_alone() {
    let text = |more: &str, statement: &str| {
        format!(
            "struct S {{ n: u32, a: atomic<u32> }} struct T {{ s: S, k: array<atomic<i32>, 4> }}\n\
             @group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>>;\n\
             @group(0) @binding(1) var<storage, read_write> t: T;\n\
             @group(0) @binding(2) var<storage, read_write> z: array<u32>;\n\
             var<workgroup> w: atomic<u32>; var<workgroup> v: array<atomic<u32>, 4>;\n\
             {more}\n@compute @workgroup_size(1) fn main() {{ z[1] = 0;\n{statement}\n}}"
        )
    };
    for statement in ["y[0] = 1;", "(v[1]) = 1;", "if z[0] == 1 { w = 1; }", "t.s.a = 2;", "let p = &y[0]; *p = 1;"] {
        says!(text("", statement), Some(8), "atomicStore");
    }
    let atomic_named = "var<workgroup> atomicStore: atomic<u32>;";
    says!(text(atomic_named, "atomicStore = 1;"), Some(8), "use atomicStore");
    for statement in [
        "let s = t.s;",
        "let k = t.k;",
        "let k = v;",
        "t.s = t.s;",
        "t.k = t.k;",
        "let p = &t; t = *p;",
        "var s = t.s;",
    ] {
        says!(text("", statement), Some(8), "copy its members");
    }
    for statement in [
        "z[0] = y[0];",
        "let q = y[0];",
        "y[0] += 1;",
        "y[0]++;",
        "_ = w;",
        "z[w] = 1;",
        "t.s = S();",
        "let a = atomic<u32>(1);",
        "atomicStore(&y[0], y[1]);",
        "z[0] = min(w, 1);",
    ] {
        refused(&text("", statement));
    }
    for statement in ["var a: atomic<u32>;", "var s: S;"] {
        let (message, _) = refused(&text("", statement));
        assert!(message.contains("no variable of a function keeps its type"), "{message}");
    }
    for pointer in ["ptr<function, atomic<u32>>", "ptr<function, S>", "ptr<private, array<atomic<i32>, 4>>"] {
        says!(text(&format!("fn f(p: {pointer}) {{}}"), ""), Some(6), "memory of one invocation");
    }
    for (function, part) in [
        ("fn f(a: atomic<u32>) {}", "no function takes (pass a pointer to it)"),
        ("fn f(s: S) {}", "no function takes (pass a pointer to it)"),
        ("fn f() -> S { return t.s; }", "copy its members"),
    ] {
        let (message, _) = refused(&text(function, ""));
        assert!(message.contains(part), "{message}");
    }
    for statement in [
        "atomicStore(&y[0], 1);",
        "atomicStore /* , */ (&w, atomicLoad(&v[1]));",
        "t.s.n = t.s.n + 1;",
        "let p = &t; atomicStore(&p.k[2], 4); atomicStore(&(*p).s.a, 1);",
        "atomicStore(&v[f(&y[1])], 2);",
    ] {
        let pointer =
            "fn f(p: ptr<storage, atomic<u32>, read_write>) -> u32 { atomicStore(p, 1); return atomicLoad(p); }";
        Kernel::from_wgsl(&text(pointer, statement)).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// naga's evaluator lacks these functions, which overrides may go through.
#[test]
fn overrides_go_through_every_function() {
    let text = "
        override a: f32 = 1.0;
        @id(7) override b: f32;
        override n: i32 = -8;
        override flag: bool = false;
        override shift = extractBits(n, 1u, 4u);
        var<private> m = mix(vec2f(a, b), vec2f(b, a), 0.25);
        var<private> t = transpose(mat2x3f(a, 2, 3, b, 5, 6));
        @group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn main() {
            y[0] = m.x; y[1] = m.y; y[2] = t[0].y; y[3] = f32(shift); y[4] = select(0.0, 1.0, flag);
        }";
    let engine = cantus::Engine::builder().backend("cpu").build().unwrap();
    let kernel = Kernel::from_wgsl(text).unwrap();
    let run = |set: &[(&str, f64)]| {
        let set = set.iter().try_fold(kernel.clone(), |kernel, &(name, value)| kernel.with_override(name, value));
        let y = engine.zeros::<f32>(&[5])?;
        engine.dispatch(&set?).bind("y", &y).workgroups(1).run()?;
        y.to_vec::<f32>()
    };
    assert_eq!(run(&[("7", 9.0)]).unwrap(), [3.0, 7.0, 9.0, -4.0, 0.0]);
    assert_eq!(run(&[("7", 3.0), ("a", -1.0), ("n", 6.0), ("flag", 1.0)]).unwrap(), [0.0, 2.0, 3.0, 3.0, 1.0]);
    let error = run(&[]).unwrap_err();
    assert!(matches!(error, Error::Override { .. }), "{error}");
}
