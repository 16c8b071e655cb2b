//! Native kernels in place of translated ones: the same numbers, and the translated kernel wherever one fails.

use cantus::engine::GraphInputs;
use cantus::ops::{self, Expr};
use cantus::{DType, Engine, Fallback, Kernel};

use kit::inputs::{Random, floats};

use crate::Scenario;
use crate::double::Vendor;

pub const ALL: &[Scenario] = &[
    ("rows by clusters agree with the translated kernels", &[], rows),
    ("a takeover whose first launch fails", &[], launch_fails),
    ("a takeover that does not compile", &[], compile_fails),
    ("clusters that do not fit", &[("CANTUS_DOUBLE_CLUSTER", "0")], too_large),
    ("large clusters that do not fit", &[("CANTUS_DOUBLE_CLUSTER", "4")], smaller),
    ("a device without clusters", &[("CANTUS_DOUBLE_CLUSTERS", "0")], without),
    ("takeovers in a graph", &[], graph),
    ("counts by clusters are those of the translated kernel", &[], counts),
    ("a graph whose takeover is refused", &[], refused_graph),
    ("other uniforms of takeovers in a graph", &[], other_uniforms),
    ("an app's own softmax", &[], of_an_app),
];

type Rows = fn(&Engine, &Expr) -> Expr;

const ROWS: [(&str, Rows); 3] = [
    ("softmax", |_, x| x.softmax(1)),
    ("log_softmax", |_, x| x.log_softmax(1)),
    ("rms_norm", |engine, x| x.rms_norm(row(engine, x, 1.5), 1e-5)),
];

/// As long as a row of `x`, of one number.
fn row(engine: &Engine, x: &Expr, value: f64) -> Expr {
    ops::full(engine, &x.shape().unwrap()[1..], value, DType::F32)
}

/// The result on an engine of numbers that a seed makes.
fn of(engine: &Engine, [rows, length]: [usize; 2], seed: u64, compute: Rows) -> Vec<f32> {
    let x = engine.tensor_from(&floats(seed, rows * length, -4.0, 4.0), &[rows, length]).unwrap();
    compute(engine, &x.expr()).eval().unwrap().to_vec::<f32>().unwrap()
}

/// Within 1e-5 of the number, and 1e-6 of the greatest.
fn close(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len());
    let greatest = b.iter().fold(0.0_f32, |most, b| most.max(b.abs()));
    for (place, (a, b)) in a.iter().zip(b).enumerate() {
        let near = (a - b).abs() <= 1e-5 * b.abs() + 1e-6 * greatest;
        assert!(near, "{what}: element {place} is {a}, by the translated kernel {b}");
    }
}

fn portable(vendor: &Vendor) -> Engine {
    vendor.builder().fallback(Fallback::Never).native(false).build().unwrap()
}

fn launches(engine: &Engine) -> u64 {
    engine.takeovers().iter().map(|(_, figures)| figures.launches).sum()
}

/// HIP has no clusters: nothing may take over there.
fn has_clusters(vendor: &Vendor) -> bool {
    vendor.name == "cuda"
}

fn rows(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    let seed = 20_261_122;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    // One block, two, four and sixteen of them, and what fits nowhere.
    let mut shapes = vec![[3, 8192], [1, 58_001], [2, 90_000], [1, 700_001], [1, 930_000]];
    shapes.extend((0..3).map(|_| [1 + random.below(3) as usize, 8192 + random.below(60_000) as usize]));
    for (number, &shape) in shapes.iter().enumerate() {
        let (name, compute) = ROWS[number % ROWS.len()];
        let before = launches(&native);
        close(&of(&native, shape, seed, compute), &of(&plain, shape, seed, compute), &format!("{name} {shape:?}"));
        let took = launches(&native) - before;
        assert_eq!(
            took,
            u64::from(has_clusters(vendor) && shape[1] < 900_000),
            "{name} {shape:?}: {:?}",
            native.takeovers()
        );
    }
    // What is fused into the kernel before and after.
    let fused: Rows = |_, x| (x * 0.5 + 1.0).softmax(1) * 3.0;
    close(&of(&native, [2, 9000], 7, fused), &of(&plain, [2, 9000], 7, fused), "a fused softmax");
    let layers: Rows = |engine, x| {
        let x = x.permute(&[1, 0]);
        x.layer_norm(row(engine, &x, 2.0), row(engine, &x, 0.5), 1e-5)
    };
    close(&of(&native, [9001, 2], 7, layers), &of(&plain, [9001, 2], 7, layers), "layer_norm of a transpose");
    assert_eq!(launches(&plain), 0);
    assert!(native.takeovers().iter().all(|(_, figures)| figures.refusal.is_none()), "{:?}", native.takeovers());
    assert_eq!(vendor.calls("launch_cluster") > 0, has_clusters(vendor));
    drop((native, plain));
    vendor.assert_clean();
}

/// Runs twice; the first refusal is the last.
fn fails(vendor: &Vendor, role: &str, nth: i64, code: i32) {
    if !has_clusters(vendor) {
        return;
    }
    let (native, plain) = (vendor.engine(), portable(vendor));
    let expected = of(&plain, [2, 9000], 3, ROWS[0].1);
    // The translated kernel is there before.
    assert_eq!(of(&native, [2, 100], 3, ROWS[0].1).len(), 200);
    vendor.fail(role, nth, code);
    for _ in 0..2 {
        close(&of(&native, [2, 9000], 3, ROWS[0].1), &expected, role);
    }
    vendor.fail(role, 0, 0);
    let takeovers = native.takeovers();
    assert!(matches!(takeovers.as_slice(), [(_, one)] if one.refusal.is_some() && one.launches == 0), "{takeovers:?}");
    // It is not tried again.
    close(&of(&native, [2, 9000], 3, ROWS[0].1), &expected, role);
    assert_eq!(launches(&native), 0);
    // Another kernel is none the worse for one that did not compile; after a launch that failed none is tried.
    let doubled: Rows = |_, x| x.softmax(1) * 2.0;
    close(&of(&native, [2, 9000], 3, doubled), &of(&plain, [2, 9000], 3, doubled), role);
    assert_eq!(launches(&native), u64::from(role == "compiler_create"));
    drop((native, plain));
    vendor.assert_clean();
}

fn launch_fails(vendor: &Vendor) {
    fails(vendor, "launch_cluster", 1, 701);
    assert_eq!(vendor.calls("launch_cluster"), i64::from(has_clusters(vendor)));
}

fn compile_fails(vendor: &Vendor) {
    fails(vendor, "compiler_create", 1, 6);
    assert_eq!(vendor.calls("launch_cluster"), i64::from(has_clusters(vendor)));
}

fn too_large(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    close(&of(&native, [2, 9000], 3, ROWS[0].1), &of(&plain, [2, 9000], 3, ROWS[0].1), "softmax");
    assert_eq!(vendor.calls("launch_cluster"), 0);
    drop((native, plain));
    vendor.assert_clean();
}

fn smaller(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    for shape in [[1, 200_000], [1, 700_001]] {
        close(&of(&native, shape, 3, ROWS[0].1), &of(&plain, shape, 3, ROWS[0].1), "softmax");
    }
    // Four blocks hold the shorter row, sixteen would be needed for the longer one.
    assert_eq!(vendor.calls("launch_cluster"), i64::from(has_clusters(vendor)), "{:?}", native.takeovers());
    drop((native, plain));
    vendor.assert_clean();
}

fn without(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    close(&of(&native, [2, 9000], 3, ROWS[0].1), &of(&plain, [2, 9000], 3, ROWS[0].1), "softmax");
    assert_eq!((vendor.calls("launch_cluster"), native.takeovers().len()), (0, 0));
    drop((native, plain));
    vendor.assert_clean();
}

fn counts(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    let seed = 20_261_124;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    // In one block, and in clusters of two and of eight.
    for (number, bins) in [7_u32, 300, 40_000, 200_000].into_iter().enumerate() {
        let count = (4 * bins).max(1 << 16) as usize + random.below(1000) as usize;
        // Some are in no bin.
        let values: Vec<i32> = (0..count).map(|_| random.below(bins + bins / 8 + 2) as i32 - 1).collect();
        let counted = |engine: &Engine| {
            let x = engine.tensor(&values).unwrap();
            let x = if number == 1 { x.expr() * 2 } else { x.expr() };
            x.bincount(bins as usize).eval().unwrap().to_vec::<u32>().unwrap()
        };
        let mut exact = vec![0_u32; bins as usize];
        for value in &values {
            let value = if number == 1 { 2 * value } else { *value };
            if let Some(bin) = usize::try_from(value).ok().and_then(|value| exact.get_mut(value)) {
                *bin += 1;
            }
        }
        let before = launches(&native);
        assert_eq!(counted(&native), exact, "{bins} bins, by clusters");
        assert_eq!(launches(&native) - before, u64::from(has_clusters(vendor)), "{bins}: {:?}", native.takeovers());
        assert_eq!(counted(&plain), exact, "{bins} bins");
    }
    drop((native, plain));
    vendor.assert_clean();
}

fn replayed(engine: &Engine) -> Vec<f32> {
    let x = engine.tensor_from(&floats(5, 2 * 9000, -4.0, 4.0), &[2, 9000]).unwrap();
    let graph = engine.capture(|| x.expr().softmax(1).eval()).unwrap();
    graph.replay(&GraphInputs::new()).unwrap();
    graph.replay(&GraphInputs::new()).unwrap();
    graph.outputs().to_vec::<f32>().unwrap()
}

fn graph(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    close(&replayed(&native), &replayed(&plain), "a graph of a softmax");
    assert_eq!(launches(&native) > 0, has_clusters(vendor));
    drop((native, plain));
    vendor.assert_clean();
}

fn refused_graph(vendor: &Vendor) {
    if !has_clusters(vendor) {
        return;
    }
    let (native, plain) = (vendor.engine(), portable(vendor));
    let expected = replayed(&plain);
    vendor.fail("launch_cluster", 1, 701);
    close(&replayed(&native), &expected, "a graph of a softmax");
    vendor.fail("launch_cluster", 0, 0);
    assert!(native.takeovers().iter().any(|(_, figures)| figures.refusal.is_some()));
    drop((native, plain));
    vendor.assert_clean();
}

/// rms_norm of rows, of an app that calls the library's own frame.
const RMS_NORM: &str = concat!(
    "@group(0) @binding(0) var<uniform> words: array<vec4u, 1>;
     @group(0) @binding(1) var<storage, read> x0: array<f32>;
     @group(0) @binding(2) var<storage, read_write> y: array<f32>;
     fn element(row: u32, place: u32) -> f32 { return x0[row * words[0].y + place]; }
     fn store(row: u32, place: u32, value: f32) { y[row * words[0].y + place] = value; }\n",
    include_str!("../../shaders/tensor/rms_norm.wgsl")
);

/// In place while the launch stays the same; recorded anew where it does not.
fn other_uniforms(vendor: &Vendor) {
    let kernel = Kernel::from_wgsl(RMS_NORM).unwrap();
    let engine = vendor.engine();
    let x = engine.tensor_from(&floats(5, 2 * 9000, -4.0, 4.0), &[2, 9000]).unwrap();
    let y = engine.zeros::<f32>(&[2, 9000]).unwrap();
    let words = |length: u32, eps: f32| [[2_u32, length, eps.to_bits(), 0]];
    let dispatch =
        || engine.dispatch(&kernel).bind("x0", &x).bind("y", &y).set("words", words(9000, 1.0)).workgroups(2);
    let graph = engine.capture(|| dispatch().run()).unwrap();
    let values = x.to_vec::<f32>().unwrap();
    let check = |length: usize, eps: f32| {
        let got = y.to_vec::<f32>().unwrap();
        for row in 0..2 {
            let row = row * length..(row + 1) * length;
            let squares: f64 = values[row.clone()].iter().map(|x| f64::from(*x).powi(2)).sum();
            let factor = 1.0 / (squares / length as f64 + f64::from(eps)).sqrt();
            let exact: Vec<f32> = values[row.clone()].iter().map(|x| (f64::from(*x) * factor) as f32).collect();
            close(&got[row], &exact, &format!("rms_norm of {length}, eps {eps}"));
        }
    };
    let replay = |length: u32, eps: f32| {
        graph.replay(&GraphInputs::new().set_uniform(&kernel, "words", words(length, eps))).unwrap();
        check(length as usize, eps);
    };
    graph.replay(&GraphInputs::new()).unwrap();
    check(9000, 1.0);
    replay(9000, 7.0);
    replay(9000, 0.25);
    let in_place = if has_clusters(vendor) { 2 } else { 0 };
    assert_eq!(vendor.calls("set_parameters"), in_place);
    // Other slices: the launch asks for other memory.
    replay(8500, 2.0);
    assert_eq!(vendor.calls("set_parameters"), in_place);
    replay(8500, 3.0);
    assert_eq!(vendor.calls("set_parameters"), in_place + i64::from(has_clusters(vendor)));
    assert_eq!(launches(&engine) > 0, has_clusters(vendor));
    drop((engine, x, y, graph));
    vendor.assert_clean();
}

/// It has the name, the uniform and the workgroups, and computes something else.
fn of_an_app(vendor: &Vendor) {
    let engine = vendor.engine();
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<uniform> words: array<vec4u, 1>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         fn element(row: u32, place: u32) -> f32 { return f32(row + place); }
         fn store(row: u32, place: u32, value: f32) { y[row * words[0].y + place] = value; }
         @compute @workgroup_size(256)
         fn softmax(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
             for (var place = lane; place < words[0].y; place += 256u) { store(group.x, place, element(group.x, place)); }
         }",
    )
    .unwrap();
    let y = engine.zeros::<f32>(&[2, 9000]).unwrap();
    let words: [u32; 4] = [2, 9000, 0, 0];
    engine.dispatch(&kernel).bind("y", &y).set_bytes("words", bytemuck::bytes_of(&words)).workgroups(2).run().unwrap();
    let got = y.to_vec::<f32>().unwrap();
    assert_eq!((got[1], got[9000], got[17_999]), (1.0, 1.0, 9000.0));
    assert!(engine.takeovers().is_empty());
    drop((engine, y));
    vendor.assert_clean();
}
