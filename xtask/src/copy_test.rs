//! One constant changed in one shader of a copy, and everything generated again: the kernel changes on every backend, the
//! compiled form included.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use cantus::ahead::{Compiled, Entry};
use cantus::spmd::{Launch, Memory};
use cantus::{Config, Engine, Kernel};

const SIDE: usize = 64;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// sin(k r + PHI a), as the shader's comment says, with another k.
fn expected(k: f64) -> Vec<f64> {
    let phi = (1.0 + 5.0_f64.sqrt()) / 2.0;
    let place = |i: usize| (i as f64 - (SIDE - 1 - i) as f64) / (SIDE - 1) as f64;
    let value = |i: usize| {
        let (x, y) = (place(i % SIDE), place(i / SIDE));
        (k * x.hypot(y) + phi * y.atan2(x)).sin()
    };
    (0..SIDE * SIDE).map(value).collect()
}

fn near(values: &[f32], expected: &[f64], who: &str) {
    for (i, (value, expected)) in values.iter().zip(expected).enumerate() {
        assert!((f64::from(*value) - expected).abs() < 1e-4, "{who} [{i}]: {value}, expected {expected}");
    }
}

/// Compiles one generated file, and loads its entry for this machine.
fn compiled(root: &Path, copy: &Path, name: &str) -> (libloading::Library, Entry) {
    let version = cantus::spmd::instruction_set();
    let text = format!(
        "#![allow(warnings)]\nextern crate self as cantus_spmd;\npub mod ahead {{\n    #[path = {:?}]\n    pub mod math;\n    #[path = {:?}]\n    pub mod rt;\n    \
         pub struct Compiled {{ pub name: &'static str, pub fingerprint: u64, pub workgroup_size: [u32; 3], pub row: u32,\n    \
         pub bindings: &'static [(u32, u32, bool, u64)], pub arguments: &'static [&'static str], pub work: u32,\n    \
         pub baseline: rt::Entry,\n    \
         #[cfg(target_arch = \"x86_64\")] pub avx2: rt::Entry, #[cfg(target_arch = \"x86_64\")] pub avx512: rt::Entry }}\n}}\n\
         #[path = {:?}]\nmod kernel;\n\
         #[unsafe(no_mangle)]\npub extern \"C\" fn entry() -> ahead::rt::Entry {{ kernel::KERNEL.{version} }}\n",
        root.join("crates/spmd/src/math/mod.rs"),
        root.join("crates/spmd/src/ahead/rt/mod.rs"),
        copy.join("native-fastpaths/cpu/src").join(name).with_extension("rs"),
    );
    let source = copy.join("one.rs");
    fs::write(&source, text).unwrap();
    let target = copy.join(libloading::library_filename("one"));
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "--cap-lints", "allow", "-C", "opt-level=2", "-o"])
        .args([&target, &source])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: made above; it runs nothing when it is loaded, and the function is declared so.
    unsafe {
        let library = libloading::Library::new(&target).unwrap();
        let entry = library.get::<unsafe extern "C" fn() -> Entry>(b"entry").unwrap()();
        (library, entry)
    }
}

#[test]
fn one_constant_changes_every_backend() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    copy(&root.join("shaders"), &place.join("shaders"));
    let shader = place.join("shaders/field/phi_pattern.wgsl");
    let text = fs::read_to_string(&shader).unwrap();
    let changed = text.replace("vec2f(21.78125, 0.0033256793759939285)", "vec2f(11.5, 0.25)");
    assert_ne!(text, changed, "the constant is where it was");
    fs::write(&shader, changed).unwrap();
    super::ahead::write(place).unwrap();

    // Only this kernel changes.
    for file in fs::read_dir(place.join("native-fastpaths/cpu/src")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap();
        let same = fs::read(&file).unwrap() == fs::read(root.join("native-fastpaths/cpu/src").join(name)).unwrap();
        assert_eq!(same, name != "phi_pattern.rs", "{name:?}");
    }
    let kernel =
        Kernel::from_prepared(&fs::read(place.join("shaders/src/prepared/phi_pattern.kernel")).unwrap()).unwrap();
    let expected = expected(11.75);
    let groups = [1, SIDE as u32, 1];

    // On every device, the CPU's executor among them.
    let mut devices = 0;
    for backend in ["cpu", "wgpu"] {
        let Ok(engine) = Engine::builder().config(Config::default()).backend(backend).build() else { continue };
        let values = engine.zeros::<f32>(&[SIDE, SIDE]).unwrap();
        let side = SIDE as u32;
        let dispatch = engine.dispatch(&kernel).bind("values", &values).workgroups(groups);
        let sides = ["grid.width", "grid.height", "grid.tile_width", "grid.tile_height"];
        let dispatch = sides.into_iter().fold(dispatch, |dispatch, name| dispatch.set(name, side));
        dispatch.set("grid.first_column", 0_u32).set("grid.first_row", 0_u32).run().unwrap();
        near(&values.to_vec::<f32>().unwrap(), &expected, backend);
        devices += 1;
    }
    assert!(devices > 0, "the CPU is always there");

    // And compiled ahead.
    let (_library, entry) = compiled(root, place, "phi_pattern");
    let program = kernel.program().unwrap();
    let compiled = Compiled {
        name: "phi_pattern",
        fingerprint: 0,
        workgroup_size: program.workgroup_size(),
        row: 256,
        bindings: &[],
        arguments: &[],
        work: 1,
        baseline: entry,
        #[cfg(target_arch = "x86_64")]
        avx2: entry,
        #[cfg(target_arch = "x86_64")]
        avx512: entry,
    };
    let mut grid = [SIDE as u32, SIDE as u32, 0, 0, SIDE as u32, SIDE as u32];
    let mut values = vec![0.0_f32; SIDE * SIDE];
    let bytes = |words: *mut u8, count: usize| {
        // SAFETY: both arrays outlive the launch, and nothing else touches them.
        unsafe { Memory::from_raw(words, count) }
    };
    let memory = [bytes(grid.as_mut_ptr().cast(), 24), bytes(values.as_mut_ptr().cast(), SIDE * SIDE * 4)];
    let launch = Launch::new(groups, &memory).parallel(false);
    // SAFETY: the generator wrote it, for this program.
    unsafe { cantus::testing::execute_ahead(&compiled, program, &[], &launch) }.unwrap();
    near(&values, &expected, "compiled ahead");
}
