//! Overrides of a kernel that is compiled ahead: what comes with the launch keeps the compiled form, what sizes a workgroup does not.

#[path = "ahead_rms_norm.rs"]
mod rms_norm;

use cantus::{Engine, Fallback, Kernel};

const ROWS: usize = 3;
const COLUMNS: usize = 200;

fn kernel() -> Kernel {
    let kernel = Kernel::from_wgsl(include_str!("../../benches/kernels/rms_norm.wgsl")).unwrap();
    // SAFETY: the generator wrote it.
    unsafe { kernel.with_ahead(&rms_norm::KERNEL) }.unwrap()
}

fn engine() -> Engine {
    Engine::builder().backend("cpu").fallback(Fallback::Never).build().unwrap()
}

fn inputs() -> (Vec<f32>, Vec<f32>) {
    let x = (0..ROWS * COLUMNS).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect();
    (x, (0..COLUMNS).map(|i| (i % 9) as f32 / 4.0 - 1.0).collect())
}

fn run(engine: &Engine, kernel: &Kernel) -> Vec<f32> {
    let (x, weight) = inputs();
    let y = engine.zeros::<f32>(&[ROWS, COLUMNS]).unwrap();
    engine
        .dispatch(kernel)
        .bind("x", &engine.tensor_from(&x, &[ROWS, COLUMNS]).unwrap())
        .bind("weight", &engine.tensor_from(&weight, &[COLUMNS]).unwrap())
        .bind("y", &y)
        .set("params.rows", ROWS as u32)
        .set("params.quads", COLUMNS as u32 / 4)
        .workgroups([ROWS as u32, 1, 1])
        .run()
        .unwrap();
    y.to_vec().unwrap()
}

fn oracle(epsilon: f64) -> Vec<f64> {
    let (x, weight) = inputs();
    let mut y = Vec::new();
    for row in x.chunks(COLUMNS) {
        let mean = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / COLUMNS as f64;
        y.extend(row.iter().zip(&weight).map(|(x, w)| f64::from(*x) / (mean + epsilon).sqrt() * f64::from(*w)));
    }
    y
}

#[test]
fn a_changed_value_keeps_the_compiled_form() {
    let engine = engine();
    for epsilon in [None, Some(0.5), Some(4.0)] {
        let kernel = match epsilon {
            Some(epsilon) => kernel().with_override("EPSILON", epsilon).unwrap(),
            None => kernel(),
        };
        let compiled = kernel.compiled_ahead().unwrap();
        assert!(std::ptr::eq(compiled, &raw const rms_norm::KERNEL));
        assert_eq!(compiled.arguments, ["EPSILON"]);
        let found = run(&engine, &kernel);
        for (found, expected) in found.iter().zip(oracle(epsilon.unwrap_or(1e-5))) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{epsilon:?}: {found} for {expected}");
        }
        let executor = run(&engine, &kernel.without_ahead());
        assert_eq!(found, executor, "the executor's bits");
    }
}

#[test]
fn the_size_of_the_workgroup_is_another_kernel() {
    let narrow = kernel().with_override("WIDTH", 32).unwrap();
    assert!(narrow.compiled_ahead().is_none());
    // SAFETY: the generator wrote it.
    unsafe { narrow.with_ahead(&rms_norm::KERNEL) }.unwrap_err();
    assert_eq!(narrow.reflection().unwrap().workgroup_size, [32, 1, 1]);
    let found = run(&engine(), &narrow);
    for (found, expected) in found.iter().zip(oracle(1e-5)) {
        assert!((f64::from(*found) - expected).abs() < 1e-5);
    }
}

#[test]
fn a_form_fits_a_kernel_whose_override_is_set_already() {
    let kernel = Kernel::from_wgsl(include_str!("../../benches/kernels/rms_norm.wgsl")).unwrap();
    let kernel = kernel.with_override("EPSILON", 2.0).unwrap();
    // SAFETY: the generator wrote it.
    let kernel = unsafe { kernel.with_ahead(&rms_norm::KERNEL) }.unwrap();
    assert!(kernel.compiled_ahead().is_some());
    let found = run(&engine(), &kernel);
    assert!(found.iter().zip(oracle(2.0)).all(|(found, expected)| (f64::from(*found) - expected).abs() < 1e-5));
}

#[test]
fn which_overrides_come_with_the_launch() {
    let arguments = |wgsl: &str| -> Vec<String> {
        let text = cantus_build::rust(&Kernel::from_wgsl(wgsl).unwrap(), "test").unwrap();
        let list = text.split_once("const ARGUMENTS: &[&str] = &[").and_then(|(_, rest)| rest.split_once(']'));
        let names = list.map_or("", |(list, _)| list).split(',').map(|name| name.trim().trim_matches('"').to_owned());
        names.filter(|name| !name.is_empty()).collect()
    };
    let kernel = |declarations: &str, value: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<f32>;\n{declarations}\n\
             @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{ out[id.x] = {value}; }}"
        )
    };
    let cases: &[(&str, &str, &[&str])] = &[
        ("override A: f32 = 1.0; override B: bool = false;", "select(A, 2.0, B)", &["A", "B"]),
        // By its number, which is what it is set by.
        ("@id(7) override A: i32 = 1;\n@id(3)\noverride B = 2.5;", "f32(A) + B", &["7", "3"]),
        // Without a value.
        ("override A: f32;", "A", &[]),
        // What one is made of comes with the launch by its result.
        ("override A: f32 = 1.0; override B: f32 = A * 2.0;", "B", &["B"]),
        ("override A: f32 = 1.0; override B: f32 = A * 2.0;", "A + B", &["A", "B"]),
        // Of a size, and of what a variable begins with.
        ("override N: u32 = 4u; override A: f32 = 1.0; var<workgroup> w: array<f32, N>;", "A + w[0]", &["A"]),
        ("override A: f32 = 4.0; override B: f32 = 1.0; var<private> p: f32 = A;", "B + p", &["B"]),
        // naga computes the sine of a constant by itself; the absolute value it cannot get wrong.
        ("override A: f32 = 1.0; override B: f32 = 1.0;", "sin(A) + abs(B)", &["B"]),
        ("override A: f32 = 1.0;", "sin(A + f32(id.x))", &["A"]),
        // Not used by this entry point.
        ("override A: f32 = 1.0; override B: f32 = 1.0;", "A", &["A"]),
    ];
    for (declarations, value, expected) in cases {
        let text = kernel(declarations, value);
        if declarations.contains("A: f32;") {
            // It can be generated, but not reflected: the value is asked for when it is dispatched.
            assert!(Kernel::from_wgsl(&text).unwrap().reflection().is_err());
            assert_eq!(arguments(&text), ["A"]);
            continue;
        }
        assert_eq!(arguments(&text), *expected, "{declarations} {value}");
    }
}
