//! Each kind of bad input has its message. No input makes the library panic.

use cantus::kernel::{Features, PREPARED_VERSION};
use cantus::ops::{
    self,
    field::{FieldParams, Frequency},
};
use cantus::{Config, DType, Engine, Error, Fallback, Kernel, Tensor};

const SCALE: &str = "
    struct Params { factor: f32, shift: vec3f, count: u32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage> x: array<f32>;
    @group(0) @binding(2) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn scale(@builtin(global_invocation_id) id: vec3u) {
        if id.x < params.count { y[id.x] = params.factor * x[id.x] + params.shift.y; }
    }";

fn engine() -> Engine {
    Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never).build().unwrap()
}

/// The message of a dispatch of SCALE that `change` spoils.
fn message(
    change: impl for<'a> Fn(cantus::engine::DispatchBuilder<'a>, &'a Tensors) -> cantus::engine::DispatchBuilder<'a>,
) -> String {
    let engine = engine();
    let kernel = Kernel::from_wgsl(SCALE).unwrap();
    let tensors = Tensors {
        x: engine.tensor(&[1.0_f32, 2.0]).unwrap(),
        y: engine.zeros::<f32>(&[2]).unwrap(),
        integers: engine.zeros::<u32>(&[2]).unwrap(),
        empty: engine.zeros::<f32>(&[0]).unwrap(),
    };
    let error = change(engine.dispatch(&kernel), &tensors).run().unwrap_err();
    assert!(error.is_input(), "{error}");
    assert_eq!(tensors.x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    error.to_string()
}

struct Tensors {
    x: Tensor,
    y: Tensor,
    integers: Tensor,
    empty: Tensor,
}

macro_rules! says {
    ($text:expr, $($part:expr),+) => {{
        let text = $text;
        $(assert!(text.contains($part), "no {:?} in: {text}", $part);)+
    }};
}

#[test]
fn a_correct_dispatch_of_the_same_kernel_runs() {
    let engine = engine();
    let kernel = Kernel::from_wgsl(SCALE).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32, 2.0]).unwrap(), engine.zeros::<f32>(&[2]).unwrap());
    let dispatch = engine.dispatch(&kernel).bind("x", &x).bind("y", &y);
    dispatch
        .set("params.factor", 3)
        .set("params.shift", [0.0_f32, 0.5, 0.0])
        .set("params.count", 2_usize as u64)
        .invocations(2)
        .run()
        .unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.5, 6.5]);
}

#[test]
fn bindings() {
    says!(message(|d, t| d.bind("x", &t.x).invocations(2)), "scale", "\"params\"", "nothing was set");
    says!(
        message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set("params.factor", 1).invocations(2)),
        "\"params.shift\" was not set"
    );
    says!(message(|d, t| d.bind("x", &t.x).bind("z", &t.y).invocations(2)), "\"z\"", "no such binding", "params, x, y");
    says!(
        message(|d, t| d.bind("y", &t.y).set_bytes("params", &[0; 32]).invocations(2)),
        "\"x\"",
        "nothing was bound",
        "array<f32>"
    );
    says!(
        message(|d, t| d.bind("x", &t.integers).bind("y", &t.y).set_bytes("params", &[0; 32]).invocations(2)),
        "array<f32>",
        "u32"
    );
    says!(
        message(|d, t| d.bind("x", &t.empty).bind("y", &t.y).set_bytes("params", &[0; 32]).invocations(2)),
        "at least 4 bytes",
        "has 0"
    );
    says!(
        message(|d, t| d.bind("x", &t.y).bind("y", &t.y).set_bytes("params", &[0; 32]).invocations(2)),
        "same tensor",
        "\"x\""
    );
    says!(
        message(|d, t| d
            .bind("x", &t.x)
            .bind("y", &t.y)
            .set_bytes("params", &[0; 32])
            .set("x", 1.0_f32)
            .invocations(2)),
        "\"x\"",
        "set or bound again"
    );
    says!(
        message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set_bytes("params", &[0; 5]).invocations(2)),
        "takes 32 bytes, 5 were given"
    );
}

#[test]
fn uniform_values() {
    says!(
        message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set("params.count", 1.5_f32).invocations(2)),
        "1.5 is not a value of u32"
    );
    says!(
        message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set("params.count", -1).invocations(2)),
        "-1 is not a value of u32"
    );
    says!(
        message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set("params.size", 1).invocations(2)),
        "no member \"size\"",
        "factor, shift, count"
    );
    says!(
        message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set("params.shift", 1).invocations(2)),
        "takes 3 values, 1 were given"
    );
    says!(
        message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set("params.factor.z", 1).invocations(2)),
        "f32 has no member \"z\""
    );
}

#[test]
fn sizes() {
    says!(message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set_bytes("params", &[0; 32])), "say how much to run");
    says!(message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set_bytes("params", &[0; 32]).invocations(0)), "empty");
    says!(
        message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set_bytes("params", &[0; 32]).workgroups([1_u32, 0, 1])),
        "empty"
    );
    says!(
        message(|d, t| d.bind("x", &t.x).bind("y", &t.y).set_bytes("params", &[0; 32]).invocations(1_u64 << 33)),
        "2^32"
    );
    let engine = engine();
    says!(
        engine.tensor_from(&[1.0_f32], &[2, 3]).unwrap_err().to_string(),
        "[2, 3]",
        "takes 6 f32 values, 1 were given"
    );
    says!(engine.zeros::<f32>(&[usize::MAX, 2]).unwrap_err().to_string(), "exceed");
    says!(engine.zeros::<f64>(&[1 << 40, 1 << 30]).unwrap_err().to_string(), "exceed");
    let x = engine.tensor(&[1.0_f32]).unwrap();
    says!(x.to_vec::<u32>().unwrap_err().to_string(), "f32, not u32");
    says!(x.write(&[1.0_f32, 2.0]).unwrap_err().to_string(), "1 elements, 2 were given");
}

#[test]
fn the_memory_limit() {
    let engine = Engine::builder().config(Config::default()).backend("cpu").memory_limit(1 << 20).build().unwrap();
    let first = engine.zeros::<u8_like>(&[1 << 18]);
    let kept = first.unwrap();
    let error = engine.zeros::<f32>(&[1 << 17]).unwrap_err();
    assert!(matches!(error, Error::MemoryLimit { limit: 1_048_576, in_use: 1_048_576, .. }), "{error}");
    says!(error.to_string(), "512.0 KiB", "1.0 MiB", "Builder::memory_limit");
    drop(kept);
    // What is kept for reuse is given up before the limit is reported.
    let figures = engine.memory();
    assert_eq!((figures.in_use, figures.pooled), (0, 1 << 20));
    engine.zeros::<f32>(&[1 << 17]).unwrap();
    let error = ops::field::field(&engine, &FieldParams::new(1024, 1024)).unwrap_err();
    says!(error.to_string(), "4.0 MiB", "1.0 MiB", "Builder::memory_limit", "field_tiles");
}

#[allow(non_camel_case_types, reason = "an f32 under another name keeps the line above in bytes")]
type u8_like = f32;

#[test]
fn reused_memory_shows_zeros() {
    let engine = engine();
    drop(engine.tensor(&vec![f32::MAX; 5000]).unwrap());
    let reused = engine.zeros::<f32>(&[5000]).unwrap();
    assert_eq!(engine.memory().reuses, 1);
    assert!(reused.to_vec::<f32>().unwrap().iter().all(|&value| value == 0.0));
}

#[test]
fn broken_kernels() {
    let error =
        Kernel::from_named_wgsl("broken.wgsl", "@compute @workgroup_size(1) fn f() { let x: u32 = 1.5; }").unwrap_err();
    says!(error.to_string(), "broken.wgsl", "1.5", "^");
    says!(Kernel::from_wgsl("fn f(").unwrap_err().to_string(), "wgsl:1:");
    says!(Kernel::from_wgsl("").unwrap().reflection().unwrap_err().to_string(), "no compute entry point");
    let two = Kernel::from_wgsl("@compute @workgroup_size(1) fn a() {} @compute @workgroup_size(1) fn b() {}").unwrap();
    says!(two.reflection().unwrap_err().to_string(), "a, b");
    says!(two.with_entry_point("c").unwrap_err().to_string(), "\"c\"", "a, b");
    assert_eq!(two.with_entry_point("b").unwrap().reflection().unwrap().entry_point, "b");
    let pictures = "@group(0) @binding(0) var t: texture_2d<f32>; @group(0) @binding(1) var s: sampler;
        @group(0) @binding(2) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn f() { y[0] = textureSample(t, s, vec2f()).x; }";
    says!(Kernel::from_wgsl(pictures).unwrap_err().to_string(), "wgsl:3", "textureSampleLevel");
    // A name that begins like those that are added: the bitcast stays, and naga would compute it wrong.
    let half = "enable f16; var<private> cantus_own: u32; @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn f() { y[0] = bitcast<u32>(-bitcast<vec2<f16>>(y[0])); }";
    says!(Kernel::from_named_wgsl("half.wgsl", half).unwrap_err().to_string(), "half.wgsl:2", "pack2x16float");
    let shared = "@group(0) @binding(0) var<storage> a: array<u32>; @group(0) @binding(0) var<storage, read_write> b: array<u32>;
        @compute @workgroup_size(1) fn f() { b[0] = a[0]; }";
    assert!(matches!(
        Kernel::from_wgsl(shared).and_then(|kernel| kernel.reflection().cloned()),
        Err(Error::InvalidWgsl { .. })
    ));
    says!(Kernel::from_file("no/such/kernel.wgsl").unwrap_err().to_string(), "cannot read", "no/such/kernel.wgsl");
    // Deep nesting must not overflow a stack.
    let deep =
        format!("@compute @workgroup_size(1) fn f() {{ var x = {}1{}; }}", "(".repeat(50_000), ")".repeat(50_000));
    assert!(matches!(Kernel::from_wgsl(&deep), Err(Error::InvalidWgsl { .. })));
}

#[test]
fn overrides() {
    let text = "override size: u32 = 64; override scale: f32; override flag: bool = true; @id(7) override seventh: i32 = -1;
        @group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(size) fn f(@builtin(local_invocation_index) i: u32) { y[i] = select(0.0, scale, flag) + f32(seventh); }";
    let kernel = Kernel::from_wgsl(text).unwrap();
    says!(kernel.reflection().unwrap_err().to_string(), "\"scale\"", "no default");
    says!(kernel.with_override("width", 1).unwrap_err().to_string(), "\"width\"", "size, scale, flag, 7");
    says!(kernel.with_override("size", -1).unwrap_err().to_string(), "-1 is not a value of u32");
    says!(kernel.with_override("size", 1.5).unwrap_err().to_string(), "1.5 is not a value of u32");
    says!(kernel.with_override("flag", 2).unwrap_err().to_string(), "2 is not a value of bool");
    says!(kernel.with_override("scale", f64::NAN).unwrap_err().to_string(), "\"scale\"", "it is a f32: give a number");
    says!(kernel.with_override("scale", 1e300).unwrap_err().to_string(), "1e300 is not a value of f32");
    let set =
        kernel.with_override("scale", 2.5).unwrap().with_override("size", 32).unwrap().with_override("7", 3).unwrap();
    assert_eq!(set.reflection().unwrap().workgroup_size, [32, 1, 1]);
    let engine = engine();
    let y = engine.zeros::<f32>(&[32]).unwrap();
    engine.dispatch(&set).bind("y", &y).workgroups(1).run().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [5.5; 32]);
    assert!(kernel.with_override("scale", 1).unwrap().with_override("size", 0).unwrap().reflection().is_err());
}

#[test]
fn prepared_kernels() {
    let kernel = Kernel::from_wgsl(SCALE).unwrap();
    let bytes = kernel.prepare().unwrap();
    let read = Kernel::from_prepared(&bytes).unwrap();
    assert_eq!(read.reflection().unwrap(), kernel.reflection().unwrap());
    assert_eq!(read.reflection().unwrap().features, Features::default());
    for cut in 0..bytes.len().min(400) {
        assert!(Kernel::from_prepared(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    let mut other = bytes.clone();
    other[8] = PREPARED_VERSION as u8 + 1;
    says!(Kernel::from_prepared(&other).unwrap_err().to_string(), "another version");
    says!(Kernel::from_prepared(b"something else").unwrap_err().to_string(), "do not start like one");
    // Damage anywhere is an error or a kernel that runs without harm; never a panic.
    let engine = engine();
    for place in 20..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x5a;
        says!(Kernel::from_prepared(&damaged).unwrap_err().to_string(), "damaged: its checksum");
        cantus::kernel::seal(&mut damaged);
        let Ok(kernel) = Kernel::from_prepared(&damaged) else { continue };
        let (x, y) = (engine.tensor(&[1.0_f32, 2.0]).unwrap(), engine.zeros::<f32>(&[2]).unwrap());
        let flag = cantus::backend::CancelFlag::new();
        let dispatch = engine
            .dispatch(&kernel)
            .bind("x", &x)
            .bind("y", &y)
            .set_bytes("params", &[0; 32])
            .cancel(&flag)
            .invocations(2);
        if dispatch.run().is_ok() {
            engine.flush();
            flag.cancel();
            let _ = y.to_bytes();
        }
    }
}

#[test]
fn the_field_family() {
    let engine = engine();
    for (width, height) in [(0, 5), (5, 0)] {
        let error = ops::field::field(&engine, &FieldParams::new(width, height)).unwrap_err();
        says!(error.to_string(), "must be at least 1");
        assert!(ops::field::phi_pattern(&engine, width, height).is_err());
    }
    says!(ops::field::field(&engine, &FieldParams::new(1 << 33, 1)).unwrap_err().to_string(), "largest side");
    says!(ops::field::field(&engine, &FieldParams::new(1 << 31, 1 << 31)).unwrap_err().to_string(), "field_tiles");
    for hertz in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let params = FieldParams::new(4, 4).frequency(Frequency::Hertz(hertz));
        says!(ops::field::field(&engine, &params).unwrap_err().to_string(), "positive finite");
    }
    says!(ops::field::field(&engine, &FieldParams::new(4, 4).time(f64::NAN)).unwrap_err().to_string(), "finite");
    says!("lov".parse::<Frequency>().unwrap_err().to_string(), "love (528)", "oneness (768)");
    says!("-3".parse::<Frequency>().unwrap_err().to_string(), "positive");
    assert_eq!("Truth".parse::<Frequency>().unwrap(), Frequency::Truth);
    assert_eq!("440".parse::<Frequency>().unwrap().hertz(), 440.0);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = vec![0.5_f32; 64 * 64];
        values[1234] = bad;
        let tensor = engine.tensor_from(&values, &[64, 64]).unwrap();
        says!(ops::coherence(&engine, &tensor).unwrap_err().to_string(), "NaN or infinity");
    }
    let line = engine.zeros::<f32>(&[4]).unwrap();
    says!(ops::coherence(&engine, &line).unwrap_err().to_string(), "two axes");
    let integers = engine.zeros::<u32>(&[4, 4]).unwrap();
    says!(ops::coherence(&engine, &integers).unwrap_err().to_string(), "f32");
    let empty = engine.zeros::<f32>(&[0, 4]).unwrap();
    says!(ops::coherence(&engine, &empty).unwrap_err().to_string(), "at least 1");
}

#[test]
fn configuration() {
    let mut config = Config::default();
    says!(config.set("backand", "cpu").unwrap_err().to_string(), "no such key", "backend, device");
    says!(config.set("memory_limit", "lots").unwrap_err().to_string(), "512MiB");
    says!(config.set("memory_limit", "0").unwrap_err().to_string(), "bytes");
    says!(config.set("timeout_ms", "-5").unwrap_err().to_string(), "milliseconds");
    says!(config.set("fallback", "maybe").unwrap_err().to_string(), "always or never");
    config.set("memory_limit", "1.5GiB").unwrap();
    assert_eq!(config.memory_limit, Some(3 << 29));
    let error = config.apply_environment(|name| (name == "CANTUS_DEVICE").then(|| "first".to_owned())).unwrap_err();
    says!(error.to_string(), "CANTUS_DEVICE", "\"first\"");
    config.apply_environment(|name| (name == "CANTUS_FALLBACK").then(|| "never".to_owned())).unwrap();
    assert_eq!(config.fallback, Some(Fallback::Never));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, config.to_toml()).unwrap();
    assert_eq!(Config::from_file(&file).unwrap(), config);
    std::fs::write(&file, "backend = 3").unwrap();
    says!(Config::from_file(&file).unwrap_err().to_string(), "config.toml", "backend");
    std::fs::write(&file, "colour = \"red\"").unwrap();
    says!(Config::from_file(&file).unwrap_err().to_string(), "colour");
}

#[test]
fn each_setting_is_read_written_laid_over_and_in_the_guide() {
    let guide = include_str!("../../docs/guide/src/config.md");
    let text = |key: &str, takes: &str| match key {
        "backend" => "cpu",
        "fallback" => "never",
        "trace" => "trace.json",
        _ if takes.contains("true") => "true",
        _ => "7",
    };
    let mut base = Config::default();
    for (key, takes) in cantus::config::KEYS {
        let variable = format!("`CANTUS_{}`", key.to_uppercase());
        assert!(guide.contains(&format!("`{key}`")) && guide.contains(&variable), "{key} is not in the guide");
        let mut config = Config::default();
        config.set(key, text(key, takes)).unwrap();
        assert_eq!(config.get(key).as_deref(), Some(text(key, takes)));
        assert_eq!(config.clone().over(Config::default()), config);
        assert_eq!(Config::default().over(config.clone()), config);
        base = config.over(base);
    }
    for (key, takes) in cantus::config::KEYS {
        assert_eq!(
            base.get(key).as_deref(),
            Some(text(key, takes)),
            "{key} is lost when settings are laid over others"
        );
    }
    // A device belongs to the backend that it was named with.
    let mut other = Config::default();
    other.set("backend", "wgpu").unwrap();
    assert_eq!(other.over(base).device, None);
}

#[test]
fn devices_that_are_not_there() {
    let error = Engine::builder().config(Config::default()).backend("abacus").build().unwrap_err();
    says!(error.to_string(), "abacus", "no such backend", "cpu");
    let error = Engine::builder().config(Config::default()).backend("cpu").device(3).build().unwrap_err();
    says!(error.to_string(), "device 3", "one device, number 0");
    says!("f33".parse::<DType>().unwrap_err().to_string(), "f32, f16");
}

/// Of 80 bytes: a matrix whose columns are padded to 16, a vector, two numbers, and padding to 16.
const VALUES: &str = "
    struct Params { turn: mat3x3f, sizes: vec4u, n: u32, small: i32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(1)
    fn values(@builtin(global_invocation_id) id: vec3u) {
        y[id.x] = params.turn[id.x % 3][id.x / 3] + f32(params.sizes[id.x % 4] + params.n) + f32(params.small);
    }";

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Whole {
    turn: [[f32; 4]; 3],
    sizes: [u32; 4],
    n: u32,
    small: i32,
    padding: [u32; 2],
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Short {
    turn: [[f32; 3]; 3],
    n: u32,
}

type Set<'s> = &'s dyn for<'a> Fn(cantus::engine::DispatchBuilder<'a>) -> cantus::engine::DispatchBuilder<'a>;

#[test]
fn values_of_uniforms() {
    let engine = engine();
    let kernel = Kernel::from_wgsl(VALUES).unwrap();
    let y = engine.zeros::<f32>(&[9]).unwrap();
    let turn = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]];
    let given = || engine.dispatch(&kernel).bind("y", &y).invocations(9);
    let all = |n: usize| given().set("params.turn", turn).set("params.sizes", vec![0_u16; 4]).set("params.n", n);
    all(10).set("params.small", -3_i8).run().unwrap();
    let expected: Vec<f32> = (0..9).map(|i: usize| turn[i % 3][i / 3] as f32 + 7.0).collect();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected, "columns are padded");
    let [a, b, c] = turn.map(|column| [column[0] as f32, column[1] as f32, column[2] as f32, 0.0]);
    let whole = Whole { turn: [a, b, c], sizes: [0; 4], n: 10, small: -3, padding: [0; 2] };
    y.write(&[0.0_f32; 9]).unwrap();
    given().set("params", &whole).run().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected, "a structure of Rust");

    let refused = |set: Set<'_>| -> String {
        let error = set(all(1).set("params.small", 0)).run().unwrap_err();
        assert!(error.is_input(), "{error}");
        error.to_string()
    };
    let short = Short { turn: [[0.0; 3]; 3], n: 1 };
    says!(refused(&|d| d.set("params", &short)), "Params has 80 bytes", "has 40", "vec3 to 16");
    says!(refused(&|d| d.set("params.turn", [[0.0_f32; 4]; 3])), "3 x 3", "3 x 4");
    says!(refused(&|d| d.set("params.turn", vec![0.0; 8])), "9 values", "8");
    #[expect(clippy::needless_borrows_for_generic_args, reason = "a reference means a structure of Rust")]
    let by_reference = refused(&|d| d.set("params.turn", &[0.0_f32; 9]));
    says!(by_reference, "mat3x3<f32>", "by value");
    says!(refused(&|d| d.set("params.sizes", [1_u8, 2])), "vec4<u32>", "4 values", "2");
    says!(refused(&|d| d.set("params.n", u64::from(u32::MAX) + 1)), "4294967296 is not a value of u32");
    says!(refused(&|d| d.set("params.n", -1)), "-1 is not a value of u32");
    says!(refused(&|d| d.set("params.n", 1.5)), "1.5 is not a value of u32");
    says!(refused(&|d| d.set("params.turn", [1e300; 9])), "is not a value of f32");
    says!(refused(&|d| d.set("params", [[1.0]])), "Params", "structure");
    says!(refused(&|d| d.invocations([-1, 4])), "empty");
}

#[test]
fn parts_of_tensors() {
    let engine = engine();
    let x = engine.tensor_from(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    says!(x.read_at(3, &mut [0.0_f32; 2]).unwrap_err().to_string(), "4 elements", "fewer than 2 from element 3");
    says!(x.write_at(usize::MAX, &[0.0_f32; 2]).unwrap_err().to_string(), "4 elements");
    says!(x.write_at(0, &[0_i32; 2]).unwrap_err().to_string(), "f32", "i32");
    says!(x.read_into(&mut [0.0_f32; 3]).unwrap_err().to_string(), "4 elements", "3");
    says!(x.item::<f32>().unwrap_err().to_string(), "4 elements");
    says!(x.to_device("abacus").unwrap_err().to_string(), "abacus");
    let mut wrong = ndarray::Array2::<f32>::zeros((4, 1));
    says!(x.read_into_array(&mut wrong).unwrap_err().to_string(), "[2, 2]", "[4, 1]");
    x.read_at::<f32>(4, &mut []).unwrap();
    x.write_at::<f32>(4, &[]).unwrap();
    // Halves at odd places, and one of an odd number.
    let half = |value: f32| half::f16::from_f32(value);
    let h = engine.tensor(&[half(0.0), half(1.0), half(2.0)]).unwrap();
    h.write_at(1, &[half(10.0)]).unwrap();
    h.write_at(2, &[half(20.0)]).unwrap();
    let mut last = [half(0.0)];
    h.read_at(2, &mut last).unwrap();
    assert_eq!((h.to_vec::<half::f16>().unwrap(), last), (vec![half(0.0), half(10.0), half(20.0)], [half(20.0)]));
}

#[test]
fn a_broken_configuration_breaks_no_app() {
    // Of a process of its own: variables belong to all threads.
    if std::env::var_os("CANTUS_TEST_BROKEN").is_some() {
        Engine::builder().without_cache().build().unwrap();
        Engine::new().unwrap();
        says!(Engine::from_env().unwrap_err().to_string(), "broken.toml");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.toml");
    std::fs::write(&file, "backend = [").unwrap();
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "misuse::a_broken_configuration_breaks_no_app"])
        .env("CANTUS_TEST_BROKEN", "1")
        .env("CANTUS_CONFIG", &file)
        .env("CANTUS_BACKEND", "nonsense")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"));
}
