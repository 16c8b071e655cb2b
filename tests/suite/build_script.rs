//! `cantus-build`: what it writes, what it leaves to the executor, and its errors.

use std::fs;

use cantus_build::{Error, Written};

const DOUBLE: &str = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= 2.0; }";

/// Writes the files, and what is made of them.
fn made(files: &[(&str, &str)], patterns: &[&str]) -> Result<(Written, String), Error> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    fs::create_dir_all(folder.path().join("shaders")).unwrap();
    fs::create_dir(&out).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    // SAFETY: nothing runs here.
    let written = unsafe { cantus_build::write(folder.path(), patterns, &out) }?;
    for file in fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "kernel") {
            cantus::Kernel::from_prepared(&fs::read(&file).unwrap()).unwrap();
        }
    }
    Ok((written, fs::read_to_string(out.join("kernels.rs")).unwrap()))
}

#[test]
fn each_file_and_entry_point_is_a_module() {
    let two = format!("{DOUBLE}\n@compute @workgroup_size(1) fn first() {{ x[0] = 1.0; }}");
    let files = [("shaders/box-blur.wgsl", DOUBLE), ("shaders/match.wgsl", DOUBLE), ("shaders/two.wgsl", &two)];
    let (written, text) = made(&files, &["shaders/*.wgsl", "shaders/two.wgsl"]).unwrap();
    assert_eq!((written.files.len(), written.left_to_the_executor.len()), (3, 0));
    for expected in ["pub mod box_blur {", "pub mod match_ {", "pub mod two {", "pub mod first {", "pub mod double {"] {
        assert_eq!(text.matches(expected).count(), 1, "{expected}");
    }
    assert!(text.contains("include_bytes!(\"two.first.kernel\")"));
    // It is Rust.
    let parsed: syn::File = syn::parse_str(&text).unwrap();
    assert_eq!(parsed.items.len(), 3);
}

#[test]
fn what_the_generator_refuses_runs_on_the_executor() {
    // More than 6,000 operations.
    let long: String = (0..4000).map(|i| format!("x[id.x] = sin(x[id.x] + {i}.5) * x[{i}u];\n")).collect();
    let long = DOUBLE.replace("x[id.x] *= 2.0;", &long);
    let (written, text) = made(&[("shaders/long.wgsl", &long)], &["shaders/*.wgsl"]).unwrap();
    let [left] = written.left_to_the_executor.as_slice() else { panic!("{written:?}") };
    assert!(left.starts_with("shaders/long.wgsl: double is left to the executor on the CPU: "), "{left}");
    assert!(text.contains("pub fn kernel()") && !text.contains("with_ahead"));
}

#[test]
fn errors_say_what_to_do() {
    let error = |files: &[(&str, &str)], pattern: &str| made(files, &[pattern]).unwrap_err().to_string();
    let none = error(&[], "shaders/*.wgsl");
    assert!(
        none.starts_with("no file matches shaders/*.wgsl in ") && none.contains("relative to the package"),
        "{none}"
    );
    assert!(error(&[], "shaders/***.wgsl").starts_with("the pattern shaders/***.wgsl is not valid: "));
    let same = error(&[("shaders/a-b.wgsl", DOUBLE), ("shaders/a_b.wgsl", DOUBLE)], "shaders/*.wgsl");
    assert!(same.contains("would both be the module a_b: rename one"), "{same}");
    let wrong = error(&[("shaders/wrong.wgsl", "@compute fn broken(")], "shaders/*.wgsl");
    assert!(wrong.contains("shaders/wrong.wgsl"), "{wrong}");
    // SAFETY: nothing runs here.
    let outside = unsafe { cantus_build::ahead("*.wgsl") };
    // Cargo sets the package's folder for tests as well, but no OUT_DIR.
    assert!(matches!(outside, Err(Error::NoCargo(_))), "{outside:?}");
}
