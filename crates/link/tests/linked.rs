//! Linked kernels, as the kernel's own front end takes them: names, conditions, packages, and errors in the author's files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops where it fails")]

use std::fs;
use std::path::Path;

use cantus_kernel::Kernel;
use cantus_link::{Linked, Linker, library};

const OUT: &str = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n";

fn entry(body: &str) -> String {
    format!("{OUT}@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{ {body} }}\n")
}

fn linker(modules: &[(&str, &str)]) -> Linker {
    modules.iter().fold(Linker::new(), |linker, (path, text)| {
        linker.module(path, &format!("{}.wgsl", path.rsplit("::").next().unwrap()), text)
    })
}

/// The linked text, which the front end takes.
fn linked(linker: &Linker, text: &str) -> String {
    let linked = linker.link("main.wgsl", text).unwrap();
    Kernel::from_linked(&linked).unwrap_or_else(|error| panic!("{error}\n{}", linked.text()));
    linked.text().to_string()
}

#[test]
fn imports_bring_what_is_reached_and_nothing_else() {
    let noise = "
        const SCALE = 0.5;
        fn hash(x: u32) -> u32 { return x * 0x2c1b3c6du; }
        fn value(x: u32) -> f32 { return f32(hash(x)) * SCALE; }
        fn unused() -> f32 { return 1.0; }";
    let linker = linker(&[
        ("package::noise", noise),
        ("package::a::b", "import super::c::one; fn two() -> f32 { return one() + super::c::one(); }"),
        ("package::a::c", "fn one() -> f32 { return 1.0; }"),
    ]);
    let text = format!(
        "import package::noise::{{value, hash as scramble}};\nimport package::a::b;\n{}",
        entry("y[id.x] = value(scramble(id.x)) + b::two() + package::noise::value(1u);")
    );
    let text = linked(&linker, &text);
    for kept in ["fn hash(", "fn value(", "const SCALE", "fn two(", "fn one("] {
        assert_eq!(text.matches(kept).count(), 1, "{kept}: {text}");
    }
    assert!(!text.contains("unused") && !text.contains("import") && !text.contains("::two"), "{text}");
    assert!(text.contains("value(hash(id.x)) + two() + value(1u)"), "{text}");
}

#[test]
fn names_that_meet_are_told_apart() {
    let linker = linker(&[
        ("package::a", "fn f() -> f32 { return 1.0; } fn min(x: f32) -> f32 { return x; } struct S { x: f32 }"),
        ("package::b", "import package::a; fn f() -> f32 { return 2.0 + a::f(); } fn g(f: f32) -> f32 { return f; }"),
    ]);
    // `f` is the kernel's own, `min` its builtin, and `x` a member.
    let text = format!(
        "import package::a::{{f as fa, min as least, S}};\nimport package::b::{{f as fb, g}};\nfn f(x: f32) -> f32 {{ return min(x, 2.0); }}\n{}",
        entry("let s = S(1.0); y[id.x] = f(s.x) + fa() + fb() + least(3.0) + g(1.0);")
    );
    let text = linked(&linker, &text);
    assert!(text.contains("f(s.x) + a_f() + b_f() + a_min(3.0) + g(1.0)"), "{text}");
    assert!(text.contains("fn b_f() -> f32 { return 2.0 + a_f(); }"), "{text}");
    // A parameter goes along with the declaration whose name it has.
    assert!(text.contains("fn g(b_f: f32) -> f32 { return b_f; }"), "{text}");
}

#[test]
fn names_of_wgsl_stay_wgsls() {
    let linker =
        linker(&[("package::a", "fn uniform(x: f32) -> f32 { return x; } fn storage() -> f32 { return 1.0; }")]);
    let text = format!(
        "import package::a::{{uniform, storage}};\n@group(0) @binding(1) var<uniform> u: f32;\n{}",
        entry("y[id.x] = uniform(u) + storage();")
    );
    let text = linked(&linker, &text);
    assert!(text.contains("a_uniform(u) + a_storage()"), "{text}");
}

#[test]
fn a_star_imports_all() {
    let linker = linker(&[("package::a", "fn one() -> f32 { return 1.0; } const TWO = 2.0; const unused = 3.0;")]);
    let text = linked(&linker, &format!("import package::a::*;\n{}", entry("y[id.x] = one() + TWO;")));
    assert!(text.contains("fn one()") && text.contains("TWO = 2.0") && !text.contains("unused"), "{text}");
}

#[test]
fn conditions_decide_declarations_members_parameters_and_statements() {
    let module = "
        @if(wide) import package::w::scale;
        @else import package::n::scale;
        struct P { @if(wide) a: vec2<f32>, @else a: f32, b: array<f32, 2>, @if(!wide) c: array<f32, 2>, d: u32 }
        fn f(@if(wide) p: vec2f, @if(!wide) p: f32) -> f32 {
            var sum = 0.0;
            @if(wide && !never) { sum += p.x; } @else { sum += p; }
            @if(wide) for (var i = 0; i < 2; i++) { sum += 1.0; }
            @elif(narrow) while sum < 9.0 { sum += 2.0; }
            @else if sum < 3.0 { sum += 3.0; } else if sum < 4.0 { sum = 4.0; } else { sum = 5.0; }
            switch i32(sum) { @if(narrow || wide) case 1 { sum = 6.0; } default { } }
            return sum * scale();
        }
        fn members() -> f32 { var p: P; return p.b[0]; }";
    let make = |wide: bool, narrow: bool| {
        linker(&[
            ("package::m", module),
            ("package::w", "fn scale() -> f32 { return 20.0; }"),
            ("package::n", "fn scale() -> f32 { return 10.0; }"),
        ])
        .feature("wide", wide)
        .feature("narrow", narrow)
    };
    let text = format!(
        "import package::m::{{f, members}};\n{}",
        entry("@if(wide) { y[0] = f(vec2f(1.0)); } @else { y[0] = f(1.0); } y[1] = members();")
    );
    let cases = [
        (true, false, ["vec2<f32>", "p.x", "for (", "20.0", "case 1"]),
        (false, true, ["a: f32", "c: array<f32", "while", "10.0", "case 1"]),
        (false, false, ["a: f32", "sum += p;", "else if sum", "10.0", "default"]),
    ];
    for (wide, narrow, expected) in cases {
        let text = linked(&make(wide, narrow), &text);
        for part in expected {
            assert!(text.contains(part), "{wide} {narrow} {part}: {text}");
        }
        let kept = ["for (", "while", "else if"].iter().filter(|part| text.contains(**part)).count();
        assert_eq!((kept, text.contains("case 1")), (1, wide || narrow), "{text}");
    }
    let features: Vec<String> =
        make(false, false).link("main.wgsl", &text).unwrap().features().map(str::to_owned).collect();
    assert_eq!(features, ["narrow", "never", "wide"]);
}

#[test]
fn directives_and_assertions_come_along() {
    let linker = linker(&[(
        "package::half",
        "enable f16;\nconst LANES = 64;\nconst_assert LANES == 64;\nfn half(x: f32) -> f16 { return f16(x); }",
    )]);
    let text = linked(&linker, &format!("import package::half::half;\n{}", entry("y[id.x] = f32(half(1.0));")));
    assert!(text.starts_with("enable f16;\n") && text.contains("const_assert LANES == 64;"), "{text}");
}

fn faulty() -> Linker {
    linker(&[
        (
            "package::noise",
            "// A comment, and é.\nfn value(x: u32) -> f32 {\n    return x;\n}\nfn other(a: f32) -> f32 { return a; }",
        ),
        ("package::broken", "fn f( {"),
    ])
}

#[test]
fn what_does_not_link_is_shown_where_it_is() {
    let linker = faulty();
    let cases = [
        ("import package::noise::valux;", "main.wgsl:1:24", "noise.wgsl declares no `valux` (did you mean `value`?)"),
        ("import package::nois::value;", "main.wgsl:1:23", "there is no module `package::nois`: "),
        ("import missing::a::b;", "main.wgsl:1:20", "there is no package `missing`: "),
        (
            "import cantus::rand::uniform;",
            "main.wgsl:1:22",
            "the library has convert, functions, math, random, safe, workgroup",
        ),
        ("import package::broken::f;", "broken.wgsl:1:5", "this bracket is never closed"),
        ("import super::super::f;", "main.wgsl:1:22", "`super` leads out of the package"),
        ("import package::noise; fn g() { noise::x(); }", "main.wgsl:1:33", "noise.wgsl declares no `x`"),
        ("import package::noise::other; fn other() {}", "main.wgsl:1:24", "`other` is imported and declared"),
        ("import package::noise::{other, value as other};", "main.wgsl:1:32", "`other` is imported twice"),
        ("@else fn f() {}", "main.wgsl:1:1", "`@else` has no `@if` before it"),
        ("@if(a & b) fn f() {}", "main.wgsl:1:9", "expected `&&`"),
        ("import a::b fn f() {}", "main.wgsl:1:13", "expected `;` after the import"),
        ("fn f() { a::b(); ", "main.wgsl:1:8", "this bracket is never closed"),
        ("fun f() { a::b(); }", "main.wgsl:1:1", "expected a declaration"),
    ];
    for (text, place, message) in cases {
        let error = linker.link("main.wgsl", text).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(message), "{place}, {message}: {error}");
    }
}

#[test]
fn what_is_not_valid_is_shown_in_the_authors_file() {
    let linker = faulty();
    let kernel = |import: &str, body: &str| format!("import package::noise::{import};\n{}", entry(body));
    let cases = [
        (kernel("value", "y[id.x] = value(id.x);"), "noise.wgsl:2:", None),
        (kernel("other", "y[id.x] = other(id.x);"), "main.wgsl:3:", Some(3)),
        (kernel("other", "y[id.x] = unknown(1.0);"), "main.wgsl:3:92", Some(3)),
    ];
    for (text, place, line) in cases {
        let error = Kernel::linked(&linker, "main.wgsl", &text).unwrap_err();
        assert!(error.to_string().contains(place), "{place}: {error}");
        // The place is of the kernel's own file, or none.
        assert_eq!(error.place().map(|place| place.line), line, "{error}");
    }
}

#[test]
fn texts_without_imports_are_left_alone() {
    for text in
        ["fn f() { let important = 1; }", "/* import a::b; */ fn f() {}", "@compute @workgroup_size(1) fn import_(){}"]
    {
        assert!(!Linker::is_needed(text), "{text}");
    }
    for text in
        ["import a::b;", "enable f16;\nimport a;", "@if(a) import b::c;", "fn f() { a::b(); }", "fn f() { @else {} }"]
    {
        assert!(Linker::is_needed(text), "{text}");
    }
}

/// No text makes the linker panic or run on.
#[test]
fn broken_texts_are_errors() {
    let whole = format!(
        "import package::a::{{b, c as d}};\n@if(x && (y || !z)) fn f(@if(x) a: vec2<f32>, b: u32) {{ @if(x) {{ f(); }} @else return; }}\nstruct S {{ @if(x) a: f32, }}\n{}",
        entry("y[0] = package::a::b();")
    );
    let linker = linker(&[("package::a", "fn b() -> f32 { return 1.0; } fn c() {}")]);
    for end in 0..whole.len() {
        let _ = linker.link("main.wgsl", &whole[..end]);
        let _ = linker.link("main.wgsl", &whole[end..]);
        let _ = linker.link("main.wgsl", &format!("{}{}", &whole[..end], &whole[end + 1..]));
    }
    let deep = format!("import {}a{};", "a::{".repeat(5000), "}".repeat(5000));
    assert!(linker.link("main.wgsl", &deep).is_err());
    assert!(linker.link("main.wgsl", &format!("@if({}a) fn f() {{}}", "(".repeat(100_000))).is_err());
    // Modules that import each other are no trouble.
    let both = self::linker(&[
        ("package::a", "import package::b::g; fn f() -> f32 { return 1.0; } fn h() -> f32 { return g(); }"),
        ("package::b", "import package::a::f; fn g() -> f32 { return f(); }"),
    ]);
    linked(&both, &format!("import package::a::h;\n{}", entry("y[0] = h();")));
}

fn put(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

fn names(linked: &Linked, folder: &Path) -> Vec<String> {
    linked
        .files()
        .iter()
        .map(|file| file.strip_prefix(folder).unwrap().display().to_string().replace('\\', "/"))
        .collect()
}

#[test]
fn packages_are_found_by_their_wesl_toml() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("app");
    let kernel = format!(
        "import package::near::near;\nimport mine::far;\nimport tools::deep::er::deepest;\nimport web_noise::value;\n{}",
        entry("y[0] = near() + far() + deepest() + value();")
    );
    put(
        &folder,
        &[
            (
                "wesl.toml",
                "[package]\nedition = \"unstable_2025\"\nroot = \"./wgsl\"\n[dependencies]\nmine = { path = \"../mine\" }\ntools = {}\nweb_noise = { package = \"web-noise\" }\n",
            ),
            ("wgsl/kernels/main.wgsl", &kernel.replace("package::near", "super::super::near")),
            ("wgsl/kernels/bad.wgsl", "import tols::a;"),
            ("wgsl/near.wesl", "import super::sub::two; fn near() -> f32 { return two(); }"),
            ("wgsl/sub.wgsl", "fn two() -> f32 { return 2.0; }"),
            ("node_modules/tools/wesl.toml", "edition = \"2026_pre\"\nroot = \"src\"\n"),
            ("node_modules/tools/src/deep/er.wgsl", "fn deepest() -> f32 { return 4.0; }"),
            ("node_modules/web-noise/wesl.toml", ""),
            ("node_modules/web-noise/shaders/package.wesl", "fn value() -> f32 { return 5.0; }"),
            ("../mine/wesl.toml", "[package]\nroot = \".\"\n"),
            ("../mine/lib.wgsl", "fn far() -> f32 { return package::parts::three(); }"),
            ("../mine/parts.wgsl", "fn three() -> f32 { return 3.0; }"),
        ],
    );
    let linked = Linker::new().link_file(folder.join("wgsl/kernels/main.wgsl")).unwrap();
    Kernel::from_linked(&linked).unwrap();
    let mut read = names(&linked, &folder.canonicalize().map(|_| folder.clone()).unwrap());
    assert_eq!(read.remove(0), "wgsl/kernels/main.wgsl");
    for text in ["return 2.0", "return 3.0", "return 4.0", "return 5.0"] {
        assert!(linked.text().contains(text), "{text}");
    }
    let error = Linker::new().link_file(folder.join("wgsl/kernels/bad.wgsl")).unwrap_err().to_string();
    assert!(error.contains("there is no package `tols`: ") && error.contains("wesl.toml names none"), "{error}");
    // Without settings, a kernel imports from its own folder.
    put(
        temporary.path(),
        &[
            ("plain/k.wgsl", &format!("import package::o::one;\n{}", entry("y[0] = one();"))),
            ("plain/o.wgsl", "fn one() -> f32 { return 1.0; }"),
        ],
    );
    Kernel::from_file(temporary.path().join("plain/k.wgsl")).unwrap();
    put(&folder, &[("wesl.toml", "[package]\nroot = 3\n")]);
    let error = Linker::new().link_file(folder.join("wgsl/kernels/main.wgsl")).unwrap_err().to_string();
    assert!(error.contains("`package.root` is the path of a folder"), "{error}");
}

#[test]
fn every_function_of_the_library_is_valid_alone() {
    for module in library() {
        assert!(!module.about().is_empty(), "{}", module.name);
        let functions = module.functions();
        assert!(!functions.is_empty(), "{}", module.name);
        for native in [false, true] {
            let linker = Linker::new().feature("native_math", native);
            let mut all = format!("import cantus::{};\n{}", module.name, entry("y[0] = 1.0;"));
            for function in &functions {
                let inside = function.signature.split_once('(').unwrap().1.split_once(')').unwrap().0;
                let types: Vec<String> = inside
                    .split(", ")
                    .filter_map(|parameter| Some(format!("{}()", parameter.split_once(": ")?.1)))
                    .collect();
                let call = format!("_ = {}({});", function.name, types.join(", "));
                let text = format!(
                    "import cantus::{}::{};\n{}fn alone() {{ {call} }}",
                    module.name,
                    function.name,
                    entry("y[0] = 1.0;")
                );
                linked(&linker, &text);
                all += &format!(
                    "fn all_{}() {{ {} }}\n",
                    function.name,
                    call.replace(&format!(" {}(", function.name), &format!(" {}::{}(", module.name, function.name))
                );
            }
            linked(&linker, &all);
        }
    }
}
