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
    ("scans by look-back", &[], scans),
    ("a scan by look-back in a graph", &[], scan_in_a_graph),
    ("a scan by look-back that fails", &[], scan_fails),
    ("scans without clusters", &[("CANTUS_DOUBLE_CLUSTERS", "0")], scans_without_clusters),
    ("coherence by clusters", &[], coherence),
    ("coherence by a cluster that fails", &[], coherence_fails),
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
    // The driver has given its known answers before, and the translated kernel is in the cache on disk.
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
    // Another kernel is no worse for one that did not compile; after a launch that failed none is tried.
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
    let field = native.tensor_from(&floats(4, 60 * 50, -1.0, 1.0), &[60, 50]).unwrap();
    let found = f64::from(ops::coherence(&native, &field).unwrap());
    assert!((found - coherence_of(&field.to_vec::<f32>().unwrap(), 50)).abs() < 2e-5, "{found}");
    drop(field);
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
    for (number, bins) in [5000_u32, 9000, 40_000, 200_000].into_iter().enumerate() {
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
    include_str!("../../shaders/lib/lanes.wgsl"),
    "\n",
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

/// Each element and those before it in its row, or those before it alone.
fn running<T: Copy>(values: &[T], length: usize, start: T, exclusive: bool, combine: fn(T, T) -> T) -> Vec<T> {
    let row = |row: &[T]| {
        let mut total = start;
        let mut next = |value: &T| {
            let before = total;
            total = combine(total, *value);
            if exclusive { before } else { total }
        };
        row.iter().map(&mut next).collect::<Vec<T>>()
    };
    values.chunks(length).flat_map(row).collect()
}

/// Sums of float32, right to 1e-6 of what was summed; a difference of sums is not.
fn sums_are_right(found: &[f32], values: &[f32], length: usize, exclusive: bool, what: &str) {
    let wide: Vec<f64> = values.iter().copied().map(f64::from).collect();
    let sums = running(&wide, length, 0.0, exclusive, |a, b| a + b);
    let summed = running(&wide, length, 0.0, exclusive, |a, b| a + b.abs());
    assert_eq!(found.len(), sums.len(), "{what}");
    for (place, ((found, sum), summed)) in found.iter().zip(&sums).zip(&summed).enumerate() {
        assert!((f64::from(*found) - sum).abs() <= 1e-6 * summed, "{what}: element {place} is {found}, not {sum}");
    }
}

/// A row's tile has 3,840 elements, a workgroup's block 1,024.
fn scans(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    let seed = 20_261_125;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut shapes =
        vec![[1, 1], [1, 1024], [1, 1025], [1, 3839], [1, 3840], [1, 3841], [2, 7680], [3, 7681], [20, 1100]];
    // More tiles than a warp looks at.
    shapes.push([1, 150_000]);
    shapes.extend((0..4).map(|_| [1 + random.below(4) as usize, 1 + random.below(30_000) as usize]));
    for (number, &[rows, length]) in shapes.iter().enumerate() {
        let what = format!("{rows} rows of {length}");
        let values = floats(seed + number as u64, rows * length, -4.0, 4.0);
        let whole: Vec<i32> = values.iter().map(|value| (value * 4e8) as i32).collect();
        let bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
        let exclusive = number % 2 == 1;
        let sums = |x: Expr| if exclusive { x.cumsum_exclusive(1) } else { x.cumsum(1) };
        let takes = has_clusters(vendor) && length > 1024;
        for (engine, times) in [(&native, u64::from(takes)), (&plain, 0)] {
            let x = engine.tensor_from(&values, &[rows, length]).unwrap();
            let before = launches(engine);
            let found = sums(x.expr()).eval().unwrap().to_vec::<f32>().unwrap();
            sums_are_right(&found, &values, length, exclusive, &what);
            assert_eq!(launches(engine) - before, times, "{what}");
            let x = engine.tensor_from(&whole, &[rows, length]).unwrap();
            let found = sums(x.expr()).eval().unwrap().to_vec::<i32>().unwrap();
            assert_eq!(found, running(&whole, length, 0, exclusive, i32::wrapping_add), "{what}");
            let x = engine.tensor_from(&bits, &[rows, length]).unwrap();
            let found = sums(x.expr()).eval().unwrap().to_vec::<u32>().unwrap();
            assert_eq!(found, running(&bits, length, 0, exclusive, u32::wrapping_add), "{what}");
        }
    }
    // Along the other axis, fused, and combined in another way.
    let values = floats(seed, 9000 * 3, -4.0, 4.0);
    let x = native.tensor_from(&values, &[9000, 3]).unwrap();
    let found = (x.expr() * 0.5).cummax(0).permute(&[1, 0]).eval().unwrap().to_vec::<f32>().unwrap();
    let columns: Vec<f32> = (0..3).flat_map(|column| values.iter().skip(column).step_by(3).map(|x| x * 0.5)).collect();
    assert_eq!(found, running(&columns, 9000, f32::NEG_INFINITY, false, f32::max), "cummax of columns");
    let empty = native.tensor_from(&[0.0_f32; 0], &[2, 0]).unwrap().cumsum(1).eval().unwrap();
    assert_eq!(empty.to_vec::<f32>().unwrap(), [0.0_f32; 0]);
    drop((empty, x));
    assert_eq!(launches(&plain), 0);
    assert!(native.takeovers().iter().all(|(_, figures)| figures.refusal.is_none()), "{:?}", native.takeovers());
    // One launch in place of four, and what is waited for is cleared before it.
    let x = native.tensor(&values).unwrap();
    let counted = |role: &str, engine: &Engine, x: &cantus::Tensor| {
        let before = vendor.calls(role);
        x.cumsum(0).eval().unwrap();
        engine.finish().unwrap();
        vendor.calls(role) - before
    };
    let plain_x = plain.tensor(&values).unwrap();
    let taken = has_clusters(vendor);
    assert_eq!(counted("launch", &native, &x), if taken { 1 } else { 4 });
    assert_eq!(counted("launch", &plain, &plain_x), 4);
    assert_eq!(counted("fill", &native, &x) - counted("fill", &plain, &plain_x), i64::from(taken));
    drop((native, plain, x, plain_x));
    vendor.assert_clean();
}

/// A replay that found the states of the one before would wait for nothing, or for ever.
fn scan_in_a_graph(vendor: &Vendor) {
    let engine = vendor.engine();
    let length = 40_000;
    let x = engine.zeros::<f32>(&[2, length]).unwrap();
    let graph = engine.capture(|| x.cumsum(1).eval()).unwrap();
    for seed in 0..3 {
        let values = floats(seed, 2 * length, -4.0, 4.0);
        graph.replay(&GraphInputs::new().set(&x, &values)).unwrap();
        sums_are_right(&graph.outputs().to_vec::<f32>().unwrap(), &values, length, false, &format!("replay {seed}"));
    }
    assert_eq!(launches(&engine), u64::from(has_clusters(vendor)));
    assert_eq!(vendor.calls("graph_launch"), 3);
    drop((engine, x, graph));
    vendor.assert_clean();
}

fn scan_fails(vendor: &Vendor) {
    if !has_clusters(vendor) {
        return;
    }
    let values = floats(7, 20_000, -4.0, 4.0);
    for (role, code) in [("compiler_create", 6), ("fill", 701)] {
        let engine = vendor.engine();
        let x = engine.tensor(&values).unwrap();
        let sums = |what: &str| {
            sums_are_right(&x.cumsum(0).eval().unwrap().to_vec::<f32>().unwrap(), &values, 20_000, false, what);
        };
        // The translated kernel is there before.
        engine.tensor(&values[..100]).unwrap().cumsum(0).eval().unwrap();
        engine.finish().unwrap();
        vendor.fail(role, 1, code);
        // In two passes, whose other kernels do not compile now, or in the place of one launch.
        match role {
            "fill" => sums(role),
            _ => assert!(x.cumsum(0).eval().is_err()),
        }
        vendor.fail(role, 0, 0);
        sums(role);
        let takeovers = engine.takeovers();
        assert!(
            matches!(takeovers.as_slice(), [(_, one)] if one.refusal.is_some() && one.launches == 0),
            "{takeovers:?}"
        );
        drop((engine, x));
    }
    vendor.assert_clean();
}

fn scans_without_clusters(vendor: &Vendor) {
    let engine = vendor.engine();
    let values = floats(8, 10_000, -4.0, 4.0);
    let found = engine.tensor(&values).unwrap().cumsum(0).eval().unwrap().to_vec::<f32>().unwrap();
    sums_are_right(&found, &values, 10_000, false, "without clusters");
    assert_eq!(launches(&engine), u64::from(has_clusters(vendor)));
    drop(engine);
    vendor.assert_clean();
}

/// The definition, in float64.
fn coherence_of(values: &[f32], width: usize) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().copied().map(f64::from).sum::<f64>() / count;
    let z: Vec<f64> = values.iter().map(|value| f64::from(*value) - mean).collect();
    let squares: f64 = z.iter().map(|z| z * z).sum();
    if squares == 0.0 {
        return 1.0;
    }
    let neighbours =
        (width..z.len()).filter(|at| at % width != 0).map(|at| (z[at] * (z[at - width] + z[at - 1])).abs());
    (neighbours.sum::<f64>() / squares).min(1.0)
}

fn coherence(vendor: &Vendor) {
    let (native, plain) = (vendor.engine(), portable(vendor));
    let seed = 20_261_126;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut ran = 0;
    let mut check = |values: &[f32], width: usize, times: u64, what: &str| {
        let exact = coherence_of(values, width);
        for engine in [&native, &plain] {
            let field = engine.tensor_from(values, &[values.len() / width, width]).unwrap();
            let found = f64::from(ops::coherence(engine, &field).unwrap());
            assert!((found - exact).abs() < 2e-5, "{what}: {found}, not {exact}");
        }
        ran += if has_clusters(vendor) { times } else { 0 };
        assert_eq!(launches(&native), ran, "{what}: {:?}", native.takeovers());
    };
    // One block, several; rows longer than a slice; the largest field that is taken, and one that is not.
    let mut shapes = vec![[2, 2], [1, 9], [9, 1], [33, 257], [3, 30_001], [300, 301], [512, 896], [512, 897]];
    shapes.extend((0..3).map(|_| [1 + random.below(300) as usize, 1 + random.below(300) as usize]));
    for (number, [height, width]) in shapes.into_iter().enumerate() {
        let values: Vec<f32> =
            floats(seed + number as u64, height * width, -1.0, 1.0).iter().map(|x| x * x * x).collect();
        let waves: Vec<f32> = values.iter().enumerate().map(|(at, x)| x + (at as f32 / 50.0).sin()).collect();
        let times = u64::from(height * width <= 512 * 896);
        check(&values, width, times, &format!("{height} x {width}"));
        check(&waves, width, times, &format!("{height} x {width}, waves"));
    }
    let values = floats(seed, 200 * 150, -1.0, 1.0);
    for offset in [1e4, -3e5] {
        check(&values.iter().map(|x| x + offset).collect::<Vec<_>>(), 150, 1, &format!("far from zero: {offset}"));
    }
    // Once more, scaled.
    for scale in [1e-25, 1e37] {
        check(&values.iter().map(|x| x * scale).collect::<Vec<_>>(), 150, 2, &format!("scaled by {scale}"));
    }
    check(&[0.1; 300], 20, 1, "a constant");
    let mut odd = values.clone();
    odd[0] = 1e6;
    check(&odd, 150, 1, "an outlier");
    for place in [0, 4321, 29_999] {
        odd[place] = f32::NAN;
        for engine in [&native, &plain] {
            let field = engine.tensor_from(&odd, &[200, 150]).unwrap();
            assert!(ops::coherence(engine, &field).unwrap_err().to_string().contains("NaN"));
        }
        odd[place] = 0.0;
    }
    assert_eq!(launches(&plain), 0);
    assert!(native.takeovers().iter().all(|(_, figures)| figures.refusal.is_none()), "{:?}", native.takeovers());
    drop((native, plain));
    vendor.assert_clean();
}

fn coherence_fails(vendor: &Vendor) {
    let engine = vendor.engine();
    let values = floats(3, 90 * 80, -1.0, 1.0);
    let field = engine.tensor_from(&values, &[90, 80]).unwrap();
    vendor.fail("launch_cluster", 1, 701);
    for _ in 0..2 {
        let found = f64::from(ops::coherence(&engine, &field).unwrap());
        assert!((found - coherence_of(&values, 80)).abs() < 2e-5, "{found}");
    }
    vendor.fail("launch_cluster", 0, 0);
    assert_eq!(vendor.calls("launch_cluster"), i64::from(has_clusters(vendor)));
    assert_eq!(engine.takeovers().iter().any(|(_, figures)| figures.refusal.is_some()), has_clusters(vendor));
    drop((engine, field));
    vendor.assert_clean();
}
