//! Kernels with types: what `cantus-build` writes compiles as it should, and what doesn't fit doesn't, with rustc's own messages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cantus_build::Kernels;

const SHARED: &str = "struct Particle { position: vec3f, mass: f32, velocity: vec3f }
struct Params { shift: vec3f, turn: mat3x3f, count: u32, weights: array<vec4f, 2> }
";

const MOVE: &str = "import package::shared::{Particle, Params};
override STEP: f32 = 0.5;
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> particles: array<Particle>;
@group(0) @binding(2) var<storage> scale: array<f32>;
@group(0) @binding(3) var<storage, read_write> total: atomic<u32>;
@compute @workgroup_size(64) fn shift(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= params.count { return; }
    particles[id.x].position += params.turn * params.shift * scale[id.x] * STEP * params.weights[1].w;
    atomicAdd(&total, 1u);
}
";

const USE: &str = "
fn run(engine: &cantus::Engine, particles: &TensorOf<kernels::Particle>, scale: &TensorOf<f32>, total: &TensorOf<u32>) -> cantus::Result<()> {
    let rows = [[1.0, 0.0, 0.0].into(), [0.0, 1.0, 0.0].into(), [0.0, 0.0, 1.0].into()];
    let params = kernels::Params { shift: [1.0, 2.0, 3.0].into(), turn: rows, count: 4.into(), weights: [[1.0; 4]; 2] };
    let slow = kernels::ShiftOverrides { STEP: 0.25, ..Default::default() }.kernel()?;
    kernels::shift_with(engine, &slow, kernels::Shift { params, particles, scale, total }).invocations(4).run()?;
    kernels::shift(engine, kernels::Shift { params, particles, scale, total }).invocations(4).run()
}
pub fn main() -> cantus::Result<()> {
    let engine = cantus::Engine::builder().backend(\"cpu\").build()?;
    let still = kernels::Particle { position: [0.0; 3].into(), mass: 1.0, velocity: [0.0; 3].into() };
    let particles = TensorOf::new(&engine, &[still; 4])?;
    run(&engine, &particles, &TensorOf::new(&engine, &[1.0, 2.0, 3.0, 4.0])?, &TensorOf::zeros(&engine, 1)?)?;
    let _: Vec<kernels::Particle> = particles.items()?;
    Ok(())
}
";

struct App {
    folder: tempfile::TempDir,
}

impl App {
    fn new(files: &[(&str, &str)]) -> Self {
        let app = Self { folder: tempfile::tempdir().unwrap() };
        for (name, text) in files {
            let file = app.folder.path().join("shaders").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        app
    }

    /// The text that the build script writes.
    fn kernels(&self) -> String {
        let out = self.folder.path().join("out");
        fs::create_dir_all(&out).unwrap();
        Kernels::new("shaders/*.wgsl").write(self.folder.path(), &out).unwrap();
        fs::read_to_string(out.join("kernels.rs")).unwrap()
    }

    /// Compiles the app as a program and runs it.
    fn run(&self, source: &str) {
        let said = self.compiled(source, &["--crate-type", "bin", "--emit", "link"]);
        assert_eq!(said, "");
        let ended = Command::new(self.folder.path().join("app")).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    /// rustc's messages about the app; none where it compiles. The library is the one that this test is linked with.
    fn check(&self, source: &str) -> String {
        self.compiled(source, &["--crate-type", "lib", "--emit", "metadata"])
    }

    fn compiled(&self, source: &str, what: &[&str]) -> String {
        self.kernels();
        let file = self.folder.path().join("app.rs");
        let text = format!(
            "#![deny(warnings)]\nuse cantus::typed::TensorOf;\nmod kernels {{ include!(\"out/kernels.rs\"); }}\n{source}"
        );
        fs::write(&file, text).unwrap();
        let library = library();
        let checked = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition", "2024"])
            .args(what)
            .arg("--extern")
            .arg(format!("cantus={}", library.display()))
            .arg("-L")
            .arg(format!("dependency={}", library.parent().unwrap().display()))
            .arg("--out-dir")
            .arg(self.folder.path())
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert_eq!(checked.status.success(), said.is_empty(), "{said}");
        said
    }
}

/// The newest build of the library beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let is_library = |file: &Path| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libcantus-") && name.ends_with(".rlib")
    };
    let files = fs::read_dir(test.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| is_library(file)).max_by_key(|file| fs::metadata(file).unwrap().modified().unwrap()).unwrap()
}

#[test]
fn what_fits_compiles() {
    let app = App::new(&[("shared.wgsl", SHARED), ("shift.wgsl", MOVE)]);
    assert_eq!(app.check(USE), "");
    let written = app.kernels();
    // WGSL's offsets, worked out by hand: 3 columns of 16 bytes from 16 on, then a number, then vectors from 80 on.
    for expected in [
        "offset_of!(Params, turn) == 16)",
        "offset_of!(Params, count) == 64)",
        "offset_of!(Params, weights) == 80)",
        "size_of::<Params>() == 112)",
        "size_of::<Particle>() == 32)",
        "pub velocity: ::cantus::typed::Padded<[f32; 3], 4>,",
    ] {
        assert!(written.contains(expected), "{expected}: {written}");
    }
    assert!(syn::parse_file(&written).is_ok());
}

/// The app with changes of the files and of its source.
fn changed(changes: &[(&str, &str)]) -> String {
    let mut texts = [SHARED, MOVE, USE].map(str::to_owned);
    for (old, new) in changes {
        let text = texts.iter_mut().find(|text| text.contains(old)).unwrap_or_else(|| panic!("{old}"));
        *text = text.replace(old, new);
    }
    let [shared, shift, source] = texts;
    App::new(&[("shared.wgsl", &shared), ("shift.wgsl", &shift)]).check(&source)
}

/// The guide's table of first mistakes, each made here: its second column is a part of what rustc says.
#[test]
fn the_first_mistakes_have_the_guides_messages() {
    let unmatched = Kernels::new("shader/*.wgsl").write(Path::new("/app"), Path::new("/app")).unwrap_err();
    let said = [
        changed(&[(
            "params, particles, scale, total }).invocations(4).run()\n",
            "params, particles, total }).invocations(4).run()\n",
        )]),
        changed(&[("total: &TensorOf<u32>)", "total: &TensorOf<f32>)")]),
        changed(&[("total: &TensorOf<u32>)", "total: &cantus::Tensor)")]),
        changed(&[("scale, total }).invocations(4).run()\n", "scale: scale.clone(), total }).invocations(4).run()\n")]),
        changed(&[("STEP: 0.25", "STEP: 1")]),
        changed(&[("count: 4.into()", "count: 4")]),
        changed(&[("STEP: 0.25", "STEPS: 0.25")]),
        changed(&[(".invocations(4).run()?", ".invocations(4)")]),
        changed(&[("mass: f32,", "mass: f32, age: u32,")]),
        changed(&[("scale: array<f32>", "scale: array<i32>")]),
        changed(&[("package::shared::", "package::share::")]),
        unmatched.to_string(),
    ];
    let guide = include_str!("../../docs/guide/src/kernels.md");
    let (_, table) = guide.split_once("### The first mistakes").unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2);
    let expected: Vec<&str> = rows.map(|row| row.split('|').nth(2).unwrap().trim().trim_matches('`').trim()).collect();
    assert_eq!(expected.len(), said.len());
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn what_does_not_fit_does_not_compile() {
    let cases: [(&[(&str, &str)], &str); 7] = [
        // In Rust.
        (&[("[[1.0; 4]; 2]", "[[1.0; 4]; 3]")], "expected an array with a size of 2, found one with a size of 3"),
        (&[("kernels::shift(", "kernels::shift_by(")], "cannot find function `shift_by` in module `kernels`"),
        // In WGSL alone.
        (&[("mass: f32,", "mass: u32,")], "expected `u32`, found floating-point number"),
        (&[("mass: f32", "weight: f32")], "struct `Particle` has no field named `mass`"),
        (
            &[("total: atomic<u32>", "total: atomic<i32>"), ("1u", "1i")],
            "expected `&TensorOf<i32>`, found `&TensorOf<u32>`",
        ),
        (
            &[("@group(0) @binding(2) var<storage> scale: array<f32>;\n", ""), (" * scale[id.x]", "")],
            "struct `Shift<'_>` has no field named `scale`",
        ),
        // WGSL that is wrong: at its own place, once for all that import it.
        (&[("mass: f32", "mass: f23")], "shaders/shared.wgsl:1:"),
    ];
    for (changes, expected) in cases {
        let said = changed(changes);
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(said.matches("identifier: `f23`").count() < 2, "{said}");
    }
}

#[test]
fn names_are_told_apart() {
    let main = "@group(0) @binding(0) var<storage, read_write> y: array<P>; struct P { a: u32 } @compute @workgroup_size(1) fn main() { y[0].a = 1u; }";
    let other = main.replace("a: u32", "a: u32, b: u32");
    let two = format!("{main} @compute @workgroup_size(1) fn p() {{ y[1].a = 2u; }}");
    let app = App::new(&[("one.wgsl", main), ("other-one.wgsl", &other), ("two.wgsl", &two)]);
    let source = "
        pub fn all(engine: &cantus::Engine, a: &TensorOf<kernels::P>, b: &TensorOf<kernels::other_one_P>) -> cantus::Result<()> {
            kernels::one(engine, kernels::One { y: a }).workgroups(1).run()?;
            kernels::other_one(engine, kernels::OtherOne { y: b }).workgroups(1).run()?;
            kernels::two_main(engine, kernels::TwoMain { y: a }).workgroups(1).run()?;
            kernels::p(engine, kernels::PBindings { y: a }).workgroups(1).run()
        }";
    assert_eq!(app.check(source), "");
}

/// Structures of random members, through a kernel and back on every device: an app that is compiled, linked and run.
#[test]
fn random_structures_go_in_and_out() {
    const TYPES: [&str; 16] = [
        "f32",
        "i32",
        "u32",
        "vec2f",
        "vec3f",
        "vec4f",
        "vec2i",
        "vec3i",
        "vec3u",
        "vec4u",
        "mat2x2f",
        "mat3x3f",
        "mat4x3f",
        "array<f32, 3>",
        "array<vec3f, 2>",
        "Inner",
    ];
    let mut random = kit::inputs::Random::new(57);
    let mut files: Vec<(String, String)> = Vec::new();
    let mut calls = String::new();
    // All of one type, as the members of `scalar()` are, and mixtures.
    for number in 0..12 {
        let alone = ["f32", "vec3f", "i32", "vec2f", "u32", "mat3x3f"].get(number).copied();
        let count = 1 + random.below(4) as usize;
        let types = (0..count).map(|_| alone.unwrap_or_else(|| TYPES[random.below(TYPES.len() as u32) as usize]));
        let members: Vec<String> = types.enumerate().map(|(place, ty)| format!("m{place}: {ty}")).collect();
        let text = format!(
            "struct Inner {{ a: vec3f, b: f32 }}\nstruct S{number} {{ {} }}\n\
             @group(0) @binding(0) var<storage> x: array<S{number}>;\n\
             @group(0) @binding(1) var<storage, read_write> y: array<S{number}>;\n\
             @compute @workgroup_size(4) fn copy{number}(@builtin(global_invocation_id) id: vec3u) {{ y[id.x] = x[id.x]; }}",
            members.join(", ")
        );
        files.push((format!("copy{number}.wgsl"), text));
        calls.push_str(&format!("    check!(S{number}, copy{number}, Copy{number});\n"));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let source = format!(
        "fn main() {{
            let mut ran = 0;
            for backend in [\"cpu\", \"wgpu\", \"vulkan\", \"opencl\", \"cuda\"] {{
                let Ok(engine) = cantus::Engine::builder().backend(backend).build() else {{ continue }};
                round(&engine, backend).unwrap_or_else(|error| panic!(\"{{backend}}: {{error}}\"));
                ran += 1;
            }}
            assert!(ran > 0);
        }}
        fn round(engine: &cantus::Engine, backend: &str) -> cantus::Result<()> {{
            macro_rules! check {{
                ($item:ident, $kernel:ident, $bindings:ident) => {{{{
                    // Numbers that are ordinary as floats and as integers.
                    let words: Vec<u32> = (0..size_of::<kernels::$item>() as u32).map(|k| 0x3f80_0000 + k).collect();
                    let items: Vec<kernels::$item> = cantus::typed::bytemuck::pod_collect_to_vec(&words);
                    let x = TensorOf::new(engine, &items)?;
                    let y = TensorOf::<kernels::$item>::zeros(engine, 4)?;
                    assert_eq!((x.len(), x.count()), (4, 4));
                    kernels::$kernel(engine, kernels::$bindings {{ x: &x, y: &y }}).invocations(4).run()?;
                    assert_eq!(format!(\"{{:?}}\", y.items()?), format!(\"{{items:?}}\"), \"{{backend}}: {{}}\", stringify!($item));
                }}}};
            }}
            {calls}
            Ok(())
        }}"
    );
    let app = App::new(&files);
    let written = app.kernels();
    assert!(!written.contains(".bind(\"x\""), "{written}");
    app.run(&source);
}

#[test]
fn fifty_kernels_share_what_they_import() {
    let files: Vec<(String, String)> =
        (0..50).map(|i| (format!("k{i}.wgsl"), MOVE.replace("fn shift", &format!("fn k{i}")))).collect();
    let mut all: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    all.push(("shared.wgsl", SHARED));
    let app = App::new(&all);
    let written = app.kernels();
    assert_eq!((written.matches("pub struct Particle {").count(), written.matches("pub fn k49<'a>(").count()), (1, 1));
}
