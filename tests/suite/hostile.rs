//! Kernels, prepared bytes and settings as a stranger might send them: an error, in bounded time and memory.

use std::fmt::Write;
use std::time::{Duration, Instant};

use cantus::kernel::Layout;
use cantus::translate::{Dialect, Options};
use cantus::{Config, Engine, Error, Fallback, Kernel};

fn engine() -> Engine {
    Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never).build().unwrap()
}

/// The error of a text that is refused, within a time.
fn refused(text: &str) -> (String, cantus::error::SourcePlace) {
    let begin = Instant::now();
    let error = Kernel::from_wgsl(text).unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    match error {
        Error::InvalidWgsl { report, place: Some(place), .. } => (report, place),
        other => panic!("{other}"),
    }
}

fn kernel(body: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() {{\n{body}\n}}"
    )
}

#[test]
fn long_chains_name_their_place() {
    let (report, place) = refused(&kernel(&format!("a[0] = {};", vec!["a[1]"; 100_000].join(" + "))));
    assert!(report.contains("operators") && place.line == 3, "{place:?}");
    let (report, place) =
        refused(&kernel(&format!("if a[0] == 0u {{ }}{}", "\nelse if a[0] == 1u { a[0] = 2u; }".repeat(20_000))));
    assert!(report.contains("switch") && place.line > 100, "{place:?}");
    let mut functions = String::from("fn f0() -> u32 { return 1u; }\n");
    for level in 1..10_000 {
        let _ = writeln!(functions, "fn f{level}() -> u32 {{ return f{}(); }}", level - 1);
    }
    let (report, _) = refused(&format!("{functions}{}", kernel("a[0] = f9999();")));
    assert!(report.contains("chain"), "{report}");
    let mut types = String::from("struct s0 { a: u32, b: u32 }\n");
    for level in 1..26 {
        let _ = writeln!(types, "struct s{level} {{ a: s{}, b: s{} }}", level - 1, level - 1);
    }
    let read = kernel(&format!("a[0] = s{};", ".a".repeat(26)));
    let (report, _) = refused(&format!("{types}@group(0) @binding(1) var<storage> s: s25; {read}"));
    assert!(report.contains("members"), "{report}");
}

#[test]
fn deep_nesting_names_its_place() {
    const DEEP: usize = 50_000;
    let around = |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(DEEP), close.repeat(DEEP));
    for (open, close) in [("(", ")"), ("a[", "]"), ("u32(", ")"), ("~", ""), ("max(1u, ", ")")] {
        let (report, place) = refused(&kernel(&format!("a[0] = {};", around(open, "a[1]", close))));
        assert!(report.contains("operators") && place.line == 3, "{open}: {report} {place:?}");
    }
    for (open, close) in
        [("{", "}"), ("if a[0] == 0u {", "}"), ("loop { break; ", "}"), ("switch 1u { default: {", "}}")]
    {
        let (report, place) = refused(&kernel(&around(open, "", close)));
        assert!(report.contains("blocks") && place.line == 3, "{open}: {report} {place:?}");
    }
}

#[test]
fn what_is_within_the_bounds_runs() {
    let chain = kernel(&format!("a[0] = {};", vec!["a[1] * 3u"; 250].join(" + ")));
    let elses = kernel(&format!("if a[0] == 0u {{ }}{}", " else if a[0] == 1u { a[0] = 2u; }".repeat(120)));
    for text in [chain, elses] {
        let kernel = Kernel::from_wgsl(&text).unwrap_or_else(|error| panic!("{error}"));
        let engine = engine();
        let a = engine.tensor(&[1_u32, 2]).unwrap();
        engine.dispatch(&kernel).bind("a", &a).workgroups([1, 1, 1]).run().unwrap();
        assert!([[2, 2], [1500, 2]].contains(&[a.to_vec::<u32>().unwrap()[0], 2]));
    }
}

#[test]
fn bitcasts_to_half_are_refused_wherever_they_hide() {
    // naga refuses the first three for their `.x`, and takes the others for something else: the reason must be ours, not the quoted line.
    for cast in [
        "bitcast<pair>(a[0])",
        "bitcast\n<vec2\n<f16>>(a[0])",
        "bitcast<vec2<half>>(a[0])",
        "bitcast<quad>(vec2u(a[0]))",
        "bitcast\n<vec4\n<f16>>(vec2u(a[0]))",
        "bitcast<vec4<half>>(vec2u(a[0]))",
        "bitcast<vec2u>(quad(half(a[0])))",
    ] {
        let text = kernel(&format!("a[1] = u32({cast}.x);"));
        let aliases = "alias half = f16; alias pair = vec2<half>; alias quad = vec4<half>;";
        // A name like those that are added keeps the text from being rewritten.
        let (report, _) = refused(&format!("enable f16; var<private> cantus_own: u32; {aliases} {text}"));
        assert!(report.contains("a bitcast to or from f16"), "{report}");
    }
}

/// Found by fuzzing: naga panics while it applies the override.
#[test]
fn an_override_that_naga_fails_to_apply_is_an_error() {
    let text = format!("override n: u32 = 3; {}", kernel("a[0] = select(vec3u(vec2u(n), n), vec3u(n), n > 2u).x;"));
    let kernel = Kernel::from_wgsl(&text).unwrap();
    // A naga that can apply it gives what the text says.
    let refused = |error: &Error| error.to_string().contains("a defect");
    assert!(kernel.reflection().as_ref().err().is_none_or(&refused));
    assert!(kernel.program().as_ref().err().is_none_or(refused));
}

#[test]
fn large_constants_take_little_memory() {
    let begin = Instant::now();
    let _ = Kernel::from_wgsl(&kernel("const x = array<u32, 250000000>()[5]; a[0] = x;"));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn the_limits_that_the_cpu_tells_hold() {
    let engine = engine();
    let limits = engine.selected().device.capabilities.limits;
    let shapes = [
        format!("@workgroup_size({})", limits.workgroup_size[0] + 1),
        format!("@workgroup_size(1, 1, {})", limits.workgroup_size[2] + 1),
        "@workgroup_size(128, 64)".to_owned(),
    ];
    for shape in shapes {
        let text = kernel("a[0] = 1u;").replace("@workgroup_size(1)", &shape);
        let a = engine.tensor(&[0_u32]).unwrap();
        let refused = Kernel::from_wgsl(&text)
            .and_then(|kernel| engine.dispatch(&kernel).bind("a", &a).workgroups([1, 1, 1]).run());
        assert!(refused.is_err(), "{shape}");
    }
    let words = limits.workgroup_bytes / 4 + 1;
    let text = kernel("w[a[0]] = 1u; workgroupBarrier(); a[0] = w[a[1]];");
    let text = format!("var<workgroup> w: array<u32, {words}>; {text}");
    let a = engine.tensor(&[0_u32, 0]).unwrap();
    let refused =
        Kernel::from_wgsl(&text).and_then(|kernel| engine.dispatch(&kernel).bind("a", &a).workgroups([1, 1, 1]).run());
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
}

#[test]
fn a_workgroup_that_wraps_is_not_translated() {
    let text = kernel("a[0] = 1u;").replace("@workgroup_size(1)", "@workgroup_size(16384, 16384, 16)");
    let Ok(kernel) = Kernel::from_wgsl(&text) else { return };
    assert_eq!(kernel.reflection().unwrap().invocations(), 1 << 32);
    for dialect in [Dialect::Cuda, Dialect::Hip, Dialect::OpenCl, Dialect::Host] {
        let options = Options::new().bound_loops(true);
        let error = kernel.translate(dialect, &options).unwrap_err();
        assert!(error.to_string().contains("4294967296 invocations"), "{error}");
    }
    assert!(kernel.program().is_err());
}

#[test]
fn a_huge_uniform_is_refused_before_it_is_allocated() {
    let text = "struct P { x: u32, y: array<vec4u, 60000000> }
        @group(0) @binding(1) var<uniform> p: P;
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() { a[0] = p.x + p.y[5].x; }";
    let engine = engine();
    let a = engine.tensor(&[0_u32]).unwrap();
    let kernel = Kernel::from_wgsl(text).unwrap();
    let error = engine.dispatch(&kernel).bind("a", &a).set("p.x", 1_u32).workgroups([1, 1, 1]).run().unwrap_err();
    assert!(error.to_string().contains("bind a tensor"), "{error}");
}

#[test]
fn layouts_in_bytes_nest_to_a_depth() {
    // Arrays of arrays of …: the fifth kind of layout.
    assert!(postcard::from_bytes::<Layout>(&vec![4; 1 << 22]).is_err());
    // Structures of one member each.
    let mut bytes = Vec::new();
    for _ in 0..1 << 20 {
        bytes.extend([5, 0, 1, 0, 0]);
    }
    assert!(postcard::from_bytes::<Layout>(&bytes).is_err());
}

#[test]
fn prepared_kernels_that_make_no_sense_are_refused() {
    let good = Kernel::from_wgsl(&kernel("a[0] = a[1] + 1u;")).unwrap().prepare().unwrap();
    let mut seed = 1_u64;
    let mut accepted = 0;
    for _ in 0..5000 {
        let mut bad = good.clone();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = 20 + (seed >> 33) as usize % (bad.len() - 20);
        bad[place] ^= 1 << (seed >> 60 & 7);
        assert!(Kernel::from_prepared(&bad).is_err(), "the checksum finds one bit, at {place}");
        // And with a checksum that fits, as malice would write it.
        cantus::kernel::seal(&mut bad);
        if let Ok(kernel) = Kernel::from_prepared(&bad) {
            accepted += 1;
            let reflection = kernel.reflection().unwrap();
            let _ = (reflection.invocations(), reflection.bindings.iter().map(|b| b.layout.min_bytes()).max());
        }
    }
    assert!(accepted > 100, "{accepted}");
}
