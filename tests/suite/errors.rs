//! Errors as values: a caller tells a wrong dtype, a wrong shape, a limit and an index apart without reading English, and no code of the project compares the
//! text of an error.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use cantus::error::{BindingError, DtypeError, IndexError, LimitError, OverrideError, ShapeError};
use cantus::{DType, Engine, Error, Kernel};
use kit::engine::by_turns;

/// The error of something that must fail.
fn failed<T>(outcome: cantus::Result<T>) -> Error {
    match outcome {
        Ok(_) => panic!("it went well"),
        Err(error) => error,
    }
}

#[test]
fn a_caller_tells_causes_apart() {
    for engine in by_turns() {
        let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0], &[3]).unwrap();
        let dtype = failed(x.to_vec::<u32>());
        assert!(matches!(dtype, Error::Dtype(DtypeError::Mismatch { found: "f32", wanted: "u32", .. })), "{dtype:?}");
        let refused = failed(x.expr().one_hot(4, DType::F32).eval());
        assert!(matches!(refused, Error::Dtype(DtypeError::Refused { .. })), "{refused:?}");
        let two = engine.tensor_from(&[1.0_f32, 2.0], &[2]).unwrap();
        let shape = failed((&x + &two).eval());
        let Error::Shape(ShapeError::Broadcast { left, right, axis: 0, lengths: [3, 2] }) = &shape else {
            panic!("{shape:?}")
        };
        assert_eq!((left.as_slice(), right.as_slice()), (&[3][..], &[2][..]));
        let axis = failed(x.sum(&[-2], false).eval());
        assert!(matches!(axis, Error::Shape(ShapeError::Axis { axis: -2, rank: 1 })), "{axis:?}");
        let contents = failed(engine.tensor_from_bytes(DType::F32, &[usize::MAX], &[]));
        assert!(matches!(contents, Error::Limit(LimitError::Beyond { .. })), "{contents:?}");
        // All of them are the input's fault, and each is the source of its error.
        for error in [dtype, refused, shape, axis, contents] {
            assert!(error.is_input());
            let source = error.source().unwrap();
            assert_eq!(source.to_string(), error.to_string());
            let is_kind = source.is::<DtypeError>() || source.is::<ShapeError>() || source.is::<LimitError>();
            assert!(is_kind, "{error:?}");
        }
        element(engine);
        bindings(engine);
    }
}

/// An index that only the device sees.
fn element(engine: &Engine) {
    let table = engine.tensor_from(&[1.0_f32; 4], &[4]).unwrap();
    let places = engine.tensor(&[0_u32, 7]).unwrap();
    let error = match table.expr().take(&places, 0).eval().and_then(|taken| taken.to_vec::<f32>()) {
        Err(Error::TensorLost { cause, .. }) => (*cause).clone(),
        other => failed(other),
    };
    assert!(
        matches!(error, Error::Index(IndexError::Element { index: 7, axis: 0, least: 0, most: 3, .. })),
        "{error:?}"
    );
}

fn bindings(engine: &Engine) {
    let kernel = Kernel::from_wgsl(
        "override factor: f32;
        @group(0) @binding(0) var<uniform> shift: f32;
        @group(0) @binding(1) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1) fn scale() { x[0] = factor * x[0] + shift; }",
    )
    .unwrap();
    let unset = failed(kernel.reflection());
    assert!(matches!(unset, Error::Override { fault: OverrideError::Unset(_), .. }), "{unset:?}");
    let unknown = failed(kernel.with_override("divisor", 1));
    assert!(matches!(unknown, Error::Override { fault: OverrideError::Unknown(_), .. }), "{unknown:?}");
    let wrong = failed(kernel.with_override("factor", f64::NAN));
    assert!(matches!(wrong, Error::Override { fault: OverrideError::Value(_), .. }), "{wrong:?}");
    let kernel = kernel.with_override("factor", 2).unwrap();
    let x = engine.tensor(&[1.0_f32]).unwrap();
    let of = |error: Error| match error {
        Error::Binding { fault, .. } => fault,
        other => panic!("{other:?}"),
    };
    let unbound = of(failed(engine.dispatch(&kernel).set("shift", 1.0_f32).workgroups(1).run()));
    assert!(matches!(unbound, BindingError::Unbound(_)), "{unbound:?}");
    let unset = of(failed(engine.dispatch(&kernel).bind("x", &x).workgroups(1).run()));
    assert!(matches!(unset, BindingError::Unset(_)), "{unset:?}");
    let unknown = of(failed(engine.dispatch(&kernel).bind("z", &x).workgroups(1).run()));
    assert!(matches!(unknown, BindingError::Unknown(_)), "{unknown:?}");
    let integers = engine.tensor(&[1_u32]).unwrap();
    let unfit = engine.dispatch(&kernel).bind("x", &integers).set("shift", 1.0_f32).workgroups(1).run();
    assert!(matches!(of(failed(unfit)), BindingError::Unfit(_)));
}

/// Folders of code whose errors are the project's.
const CODE: &[&str] = &["src", "cli/src", "crates", "mobile/src", "python/src", "web/src"];

/// Files that read the text of other projects' errors, which have nothing else.
const FOREIGN: &[(&str, &str)] = &[
    ("crates/gpu/src/wgpu/queue.rs", "wgpu names an object in its message"),
    ("crates/kernel/src/front/diagnostics.rs", "naga's messages, to add a hint"),
    ("crates/kernel/src/front/report.rs", "naga's reports, to shorten lines"),
    ("crates/kernel/src/wgsl.rs", "naga's reports, to place them"),
    ("crates/serve/src/store/open.rs", "redb says the version of a file in words"),
    ("crates/serve/src/work/mod.rs", "serde's errors of a value are text"),
    ("cli/src/log.rs", "leaves out a warning that the error repeats"),
    ("cli/src/view/app.rs", "leaves out a device's name that an event repeats"),
];

/// The names of variables that hold the text of an error, as this project names them.
const TEXTS: &[&str] = &["reason", "message", "error", "cause", "fault", "report", "to_string()"];

/// The methods that look into a text.
const LOOKS: &[&str] = &["contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix", "find", "matches"];

/// Lines that compare the text of an error, of one file without its tests.
fn comparisons(text: &str) -> Vec<String> {
    let tests = ["\n#[cfg(test)]\n", "\n#[cfg(all(test"].into_iter().filter_map(|tests| text.find(tests)).min();
    let code = &text[..tests.unwrap_or(text.len())];
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let compares = |line: &&str| {
        LOOKS.iter().any(|look| {
            line.match_indices(&format!(".{look}(")).any(|(at, _)| {
                let receiver = &line[..at];
                TEXTS.iter().any(|name| {
                    receiver
                        .strip_suffix(name)
                        .is_some_and(|rest| !rest.ends_with(|before: char| before.is_alphanumeric() || before == '_'))
                })
            })
        })
    };
    lines.filter(compares).map(|line| line.trim().to_owned()).collect()
}

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["tests", "examples", "benches", "target", "verify"].contains(&name) {
            files(&path, all);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            all.push(path);
        }
    }
}

#[test]
fn no_code_compares_the_text_of_an_error() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = Vec::new();
    CODE.iter().for_each(|folder| files(&root.join(folder), &mut all));
    assert!(all.len() > 500, "{} files", all.len());
    let mut wrong = Vec::new();
    let mut unused: Vec<&str> = FOREIGN.iter().map(|(file, _)| *file).collect();
    for path in all {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
        let found = comparisons(&std::fs::read_to_string(&path).unwrap());
        match FOREIGN.iter().find(|(file, _)| *file == name) {
            Some(_) => unused.retain(|file| found.is_empty() || *file != name),
            None => wrong.extend(found.into_iter().map(|line| format!("{name}: {line}"))),
        }
    }
    assert!(wrong.is_empty(), "match a variant instead:\n{}", wrong.join("\n"));
    assert!(unused.is_empty(), "these read no text any more: {unused:?}");
}

#[test]
fn a_comparison_is_found_in_each_form() {
    let found = |line: &str| comparisons(line).len() == 1;
    assert!(found("Error::Shape { reason, .. } if reason.contains(\"memory limit\") => {"));
    assert!(found("if error.to_string().starts_with(\"no\") {"));
    assert!(found("let message = self.message.strip_prefix(\"a\");"));
    for other in ["// reason.contains(\"x\")", "text.contains(\"x\")", "for_reason.contains(\"x\")", "errors.find(x)"] {
        assert!(!found(other), "{other}");
    }
    let test = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { reason.contains(\"x\") } }";
    assert!(comparisons(test).is_empty());
}
