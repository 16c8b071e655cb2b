//! Reproducible mode: the same bits on every device of the machine, in every cut of the work, and what it refuses.

use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;

use cantus::backend::Registry;
use cantus::engine::survey;
use cantus::translate::{Argument, Dialect, Options};
use cantus::{Config, Engine, Error, Fallback, Kernel};
use kit::reproducible::{BUILTINS, OPERATIONS, builtins, differences, given};
use kit::turn::has_turn;

fn engine(backend: &str, index: usize) -> cantus::Result<Engine> {
    let builder = Engine::builder().backend(backend).device(index).fallback(Fallback::Never).without_cache();
    builder.reproducible(true).build()
}

#[test]
fn operations_have_the_same_bits_on_every_device() {
    assert!(OPERATIONS.len() >= 30);
    let reference = engine("cpu", 0).unwrap();
    let survey = survey(&Registry::with_defaults(), &Config::default());
    let mut faults = Vec::new();
    let devices = survey.backends.iter().flat_map(|backend| &backend.devices);
    for (place, device) in (0..).zip(devices.filter(|device| device.backend != "cpu")) {
        let name = format!("{}: {}", device.backend, device.name);
        let found =
            differences(&reference, &engine(&device.backend, device.index).unwrap(), |number| has_turn(number + place));
        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Sums and products are rounded as IEEE 754 says, one by one; what is small is zero.
#[test]
fn arithmetic_is_rounded_step_by_step() {
    let engine = engine("cpu", 0).unwrap();
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size(1) fn main() {
             y[0] = x[0] * x[1] + x[2]; y[1] = fma(x[0], x[1], x[2]); y[2] = x[3] / x[4]; y[3] = sqrt(x[5]); y[4] = x[6] * x[7]; y[5] = -x[8];
             y[6] = x[9] - x[9]; y[7] = max(x[10], x[3]);
         }",
    );
    let kernel = kernel.unwrap();
    let nan = f32::from_bits(0xffc0_0001);
    let tiny = f32::MIN_POSITIVE;
    let x = [1.000_000_4_f32, 1.000_000_4, -1.0, 1.0, 3.0, 2.0, tiny, 1.0, 0.0, f32::INFINITY, nan];
    let (input, output) = (engine.tensor(&x).unwrap(), engine.zeros::<f32>(&[8]).unwrap());
    engine.dispatch(&kernel).bind("x", &input).bind("y", &output).workgroups(1).run().unwrap();
    let bits: Vec<u32> = output.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect();
    let product = (x[0] * x[1]) - 1.0;
    assert_ne!(product, x[0].mul_add(x[1], -1.0));
    let expected = [
        product,
        product,
        1.0 / 3.0,
        2.0_f32.sqrt(),
        0.0,
        0.0,
        f32::from_bits(0x7fc0_0000),
        f32::from_bits(0x7fc0_0000),
    ];
    assert_eq!(bits, expected.map(f32::to_bits));
}

/// Each builtin that a function of the library takes the place of, at arguments near and far.
#[test]
fn builtins_are_right_by_the_library() {
    type Builtin = (&'static str, fn(f64) -> f64);
    let builtins: [Builtin; 17] = [
        ("sin(v)", f64::sin),
        ("cos(v)", f64::cos),
        ("tan(v)", f64::tan),
        ("sinh(v * 1e-5)", |v| (v * 1e-5).sinh()),
        ("cosh(v * 1e-5)", |v| (v * 1e-5).cosh()),
        ("tanh(v)", f64::tanh),
        ("asin(v * 1e-6)", |v| (v * 1e-6).asin()),
        ("acos(v * 1e-6)", |v| (v * 1e-6).acos()),
        ("atan(v)", f64::atan),
        ("atan2(v, -2.0)", |v| v.atan2(-2.0)),
        ("asinh(v)", f64::asinh),
        ("acosh(v + 2.0)", |v| (v + 2.0).acosh()),
        ("atanh(v * 1e-6)", |v| (v * 1e-6).atanh()),
        ("exp(v * 1e-4)", |v| (v * 1e-4).exp()),
        ("exp2(v * 1e-4)", |v| (v * 1e-4).exp2()),
        ("log(v)", f64::ln),
        ("pow(v, 0.5)", |v| v.powf(0.5)),
    ];
    let lines: String =
        builtins.iter().enumerate().map(|(i, (call, _))| format!("y[i * 17u + {i}u] = {call};")).collect();
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {{
             let i = id.x; let v = x[i]; {lines}
         }}"
    );
    let kernel = Kernel::from_wgsl(&text).unwrap().reproducible().unwrap();
    let values = [0.25_f32, 3.0, 700.5, 9_999.0, 12_345.678, 654_321.0];
    let engine = engine("cpu", 0).unwrap();
    let x = engine.tensor(&values).unwrap();
    let y = engine.zeros::<f32>(&[values.len(), 17]).unwrap();
    engine.dispatch(&kernel).bind("x", &x).bind("y", &y).workgroups([values.len(), 1, 1]).run().unwrap();
    for (got, value) in y.to_vec::<f32>().unwrap().chunks(17).zip(values) {
        for ((call, wanted), got) in builtins.iter().zip(got) {
            let wanted = wanted(f64::from(value));
            assert!(
                (f64::from(*got) - wanted).abs() <= 2e-5 * wanted.abs().max(1.0),
                "{call} at {value}: {got}, not {wanted}"
            );
        }
    }
}

#[test]
fn what_no_rewriting_makes_the_same_is_refused() {
    let head = "enable f16; @group(0) @binding(0) var<storage, read_write> y: array<f32>; @group(0) @binding(1) var<storage> h: array<f16>;";
    let half = format!("{head} @compute @workgroup_size(1) fn main() {{ y[0] = f32(h[0] + h[1]); }}");
    let subgroup = "enable subgroups; @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) { y[i] = subgroupAdd(i); }";
    let matrices = "enable wgpu_cooperative_matrix; @group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(32) fn main() { coopStoreT(coopLoadT<coop_mat8x8<f32, C>>(&y[0], 8u), &y[0], 8u); }";
    let all = [(half.as_str(), "f16"), (subgroup, "subgroup operations"), (matrices, "cooperative matrices")];
    for (wgsl, word) in all {
        let refusal = Kernel::from_wgsl(wgsl).unwrap().reproducible().unwrap_err();
        assert!(
            matches!(&refusal, Error::Unsupported { construct, report, .. } if construct.contains(word) && report.contains("main")),
            "{refusal}"
        );
    }
}

/// Kernels that do not compute with floats have no further binding, and an override still counts.
#[test]
fn kernels_of_integers_stay_as_they_are() {
    let kernel = Kernel::from_wgsl(
        "override by: u32 = 3;
         @group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn main() { y[0] = y[0] * by + 1u; }",
    );
    let kernel = kernel.unwrap().with_override("by", 5).unwrap().reproducible().unwrap();
    assert_eq!(kernel.reflection().unwrap().bindings.len(), 1);
    let engine = engine("cpu", 0).unwrap();
    let y = engine.tensor(&[7_u32]).unwrap();
    engine.dispatch(&kernel).bind("y", &y).workgroups(1).run().unwrap();
    assert_eq!(y.to_vec::<u32>().unwrap(), [36]);
}

/// Whole operations, through kernels that such a compiler made.
#[test]
fn operations_have_the_same_bits_as_c() {
    if Command::new("gcc").arg("--version").output().is_err() {
        assert!(std::env::var_os("CANTUS_REQUIRE_CC").is_none(), "there is no gcc");
        kit::not_run("the bits of C", "there is no gcc");
        return;
    }
    let mut registry = Registry::empty();
    registry.register(Arc::new(kit::host_device::HostBackend));
    let builder = Engine::builder().registry(registry).fallback(Fallback::Never).without_cache();
    let engine_of_c = builder.reproducible(true).build().unwrap();
    let faults = differences(&engine("cpu", 0).unwrap(), &engine_of_c, has_turn);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A compiler that may do almost anything with floats (fuse, reorder, take reciprocals, flush) gives the same bits.
#[test]
fn a_compiler_that_bends_the_rules_gives_the_same_bits() {
    let engine = engine("cpu", 0).unwrap();
    let kernel = Kernel::from_wgsl(BUILTINS).unwrap().reproducible().unwrap();
    let translation = kernel.translate(Dialect::Host, &Options::new().bound_loops(true)).unwrap();
    let bindings = &translation.reflection.bindings;
    let mut list = vec!["workgroup".to_owned(), "workgroups".to_owned()];
    let size = |index: usize| format!("sizeof {}", bindings[index].name);
    for argument in &translation.arguments {
        list.push(match argument {
            Argument::Pointer { index } => format!("(void *){}", bindings[*index].name),
            Argument::Value { index, .. } => format!("*{}", bindings[*index].name),
            Argument::Sizes { indices } => {
                let sizes: Vec<String> = indices.iter().map(|index| size(*index)).collect();
                format!("(cantus_sizes){{ {} }}", sizes.join(", "))
            }
        });
    }
    let tensors = given(&engine).unwrap();
    let mut source = format!("{}\n#include <stdio.h>\n", translation.source);
    for (name, tensor) in ["x", "y", "pairs"].into_iter().zip(&tensors) {
        let words: Vec<String> = tensor
            .to_bytes()
            .unwrap()
            .chunks(4)
            .map(|b| format!("0x{:x}u", u32::from_le_bytes(b.try_into().unwrap())))
            .collect();
        let _ = writeln!(source, "static u32 {name}[] __attribute__((aligned(16))) = {{ {} }};", words.join(", "));
    }
    let _ = write!(
        source,
        "u32 cantus_zero[4] __attribute__((aligned(16)));
        int main(void) {{
            const u32 workgroups[3] = {{ 4, 1, 1 }};
            for (u32 i = 0; i < 4; i++) {{
                const u32 workgroup[3] = {{ i, 0, 0 }};
                {}({});
            }}
            for (u32 i = 0; i < sizeof y / 4; i++) printf(\"%x\\n\", y[i]);
            for (u32 i = 0; i < sizeof pairs / 4; i++) printf(\"%x\\n\", pairs[i]);
        }}",
        translation.entry,
        list.join(", ")
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernel.c"), source).unwrap();
    let flags =
        ["-std=gnu11", "-O3", "-march=native", "-ffast-math", "-fno-finite-math-only", "-ffp-contract=fast", "-w"];
    let built =
        Command::new("gcc").args(flags).args(["kernel.c", "-o", "kernel", "-lm"]).current_dir(folder.path()).output();
    let Ok(built) = built.map_err(|error| assert!(std::env::var_os("CANTUS_REQUIRE_CC").is_none(), "{error}")) else {
        kit::not_run("the bits of C", "there is no gcc");
        return;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let output = Command::new(folder.path().join("kernel")).output().unwrap();
    let found: Vec<u32> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| u32::from_str_radix(line, 16).unwrap()).collect();
    let expected = builtins(&engine).unwrap();
    let wrong: Vec<_> =
        (0..).zip(expected.iter().zip(&found)).filter(|(_, (a, b))| a != b).take(5).collect::<Vec<(usize, _)>>();
    assert!(expected.len() == found.len() && wrong.is_empty(), "{} {} {wrong:x?}", expected.len(), found.len());
}
