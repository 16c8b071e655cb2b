//! Scenarios that work.

use cantus::backend::OpenOptions;
use cantus::engine::{EventKind, GraphInputs};
use cantus::ops::{self, field::FieldParams};
use cantus::{Engine, Fallback, Kernel, Tensor};

use kit::drops::drops;
use kit::turn::{everything, has_turn, turn};

use crate::Scenario;
use crate::double::Vendor;

pub const ALL: &[Scenario] = &[
    ("computes", &[], computes),
    ("shipped kernels agree with the CPU's", &[], shipped),
    ("reproducible operations have the CPU's bits", &[], reproducible),
    ("workgroup memory and barriers", &[], workgroups),
    ("a uniform bound to a tensor", &[], uniform_tensor),
    ("uniforms beyond the arguments", &[], large_uniform),
    ("more workgroups than a dimension holds", &[], folded),
    ("transfers of every size", &[], transfers),
    ("transfers keep their order", &[("CANTUS_DOUBLE_DELAY_US", "300")], order),
    ("kernels are timed", &[], times),
    ("two devices copy between them", &[], peers),
    ("without stream-ordered memory", &[("CANTUS_DOUBLE_POOLS", "0")], computes),
    ("code is kept on disk", &[], cache),
    ("memory is used again", &[], reuse),
    ("uniforms of graphs are changed in place", &[("CANTUS_DOUBLE_DELAY_US", "200")], changed_graphs),
    ("graphs are replayed by one call", &[("CANTUS_DOUBLE_DELAY_US", "200")], graphs),
    ("graphs where the driver refuses to capture", &[], refused_graphs),
    ("graphs of kernels that are timed", &[], timed_graphs),
    ("futures are dropped at every wait", &[("CANTUS_DOUBLE_DELAY_US", "200")], dropped),
    ("priorities and names", &[], names),
];

/// `./test --all` takes every place, `./test` one in sixteen of a quarter of the operations: each kernel is compiled by g++.
fn dropped(vendor: &Vendor) {
    let backends = || vendor.registry();
    let share = |number: u64| everything() || (number + turn()).is_multiple_of(16);
    let figures = drops(&backends, vendor.name, &has_turn, &share);
    // Of few operations some end at their first wait: of every turn's, three at least were dropped.
    assert!(figures.operations > 6 && figures.drops >= 3, "{figures:?}");
}

/// g++ takes seconds for the kernels of an operation: `./test` takes one in nine.
fn reproducible(vendor: &Vendor) {
    let share = |number: u64| everything() || (number + turn()).is_multiple_of(9);
    let reference = Engine::builder().backend("cpu").reproducible(true).build().unwrap();
    let engine = vendor.builder().fallback(Fallback::Never).reproducible(true).build().unwrap();
    let found = kit::reproducible::differences(&reference, &engine, share);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

pub const SAXPY: &str = "
    struct Params { a: f32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage> x: array<f32>;
    @group(0) @binding(2) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn saxpy(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += params.a * x[id.x]; }
    }";

/// Runs saxpy on the engine and returns what it must give, and the tensor.
pub fn saxpy(engine: &Engine, n: usize) -> cantus::Result<(Vec<f32>, Tensor)> {
    let (x, y): (Vec<f32>, Vec<f32>) = ((0..n).map(|i| i as f32).collect(), (0..n).map(|i| (i % 7) as f32).collect());
    let expected = x.iter().zip(&y).map(|(x, y)| y + 2.0 * x).collect();
    let (x, y) = (engine.tensor(&x)?, engine.tensor(&y)?);
    let kernel = Kernel::from_wgsl(SAXPY)?;
    engine.dispatch(&kernel).bind("x", &x).bind("y", &y).set("params.a", 2.0_f32).invocations(n as u64).run()?;
    Ok((expected, y))
}

fn computes(vendor: &Vendor) {
    let engine = vendor.engine();
    assert_eq!(engine.selected().device.backend, vendor.name);
    let (expected, y) = saxpy(&engine, 1000).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected);
    drop((engine, y));
    vendor.assert_clean();
}

fn shipped(vendor: &Vendor) {
    let engine = vendor.engine();
    let cpu = Engine::builder().backend("cpu").build().unwrap();
    let params = FieldParams::new(37, 21).time(0.5);
    let (here, there) = (ops::field::field(&engine, &params).unwrap(), ops::field::field(&cpu, &params).unwrap());
    let (a, b) = (here.to_vec::<f32>().unwrap(), there.to_vec::<f32>().unwrap());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5));
    let (a, b) = (ops::coherence(&engine, &here).unwrap(), ops::coherence(&cpu, &there).unwrap());
    assert!((a - b).abs() < 1e-5, "{a} and {b}");
    drop((engine, here));
    vendor.assert_clean();
}

fn workgroups(vendor: &Vendor) {
    let engine = vendor.engine();
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage> x: array<u32>;
         @group(0) @binding(1) var<storage, read_write> sums: array<u32>;
         var<workgroup> shared_sums: array<u32, 64>;
         @compute @workgroup_size(64)
         fn sum(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {
             if id.x < arrayLength(&x) { shared_sums[i] = x[id.x]; }
             for (var step = 32u; step > 0u; step /= 2u) {
                 workgroupBarrier();
                 if i < step { shared_sums[i] += shared_sums[i + step]; }
             }
             if i == 0u { sums[group.x] = shared_sums[0]; }
         }",
    )
    .unwrap();
    let values: Vec<u32> = (0..500).collect();
    let (x, sums) = (engine.tensor(&values).unwrap(), engine.zeros::<u32>(&[8]).unwrap());
    engine.dispatch(&kernel).bind("x", &x).bind("sums", &sums).workgroups(8).run().unwrap();
    let expected: Vec<u32> = values.chunks(64).map(|chunk| chunk.iter().sum()).collect();
    assert_eq!(sums.to_vec::<u32>().unwrap(), expected);
    drop((engine, x, sums));
    vendor.assert_clean();
}

fn uniform_tensor(vendor: &Vendor) {
    let engine = vendor.engine();
    let (a, x) = (engine.tensor(&[3.0_f32]).unwrap(), engine.tensor(&[1.0_f32, 2.0]).unwrap());
    let y = engine.zeros::<f32>(&[2]).unwrap();
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    engine.dispatch(&kernel).bind("params", &a).bind("x", &x).bind("y", &y).invocations(2).run().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.0, 6.0]);
    drop((engine, a, x, y));
    vendor.assert_clean();
}

fn large_uniform(vendor: &Vendor) {
    let engine = vendor.engine();
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<uniform> table: array<vec4u, 512>;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&y) { y[id.x] = table[id.x / 4u][id.x % 4u]; }
         }",
    )
    .unwrap();
    for factor in 1..4_u32 {
        let table: Vec<u32> = (0..2048).map(|i| i * factor).collect();
        let y = engine.zeros::<u32>(&[2048]).unwrap();
        engine
            .dispatch(&kernel)
            .set_bytes("table", bytemuck_bytes(&table).as_slice())
            .bind("y", &y)
            .invocations(2048)
            .run()
            .unwrap();
        assert_eq!(y.to_vec::<u32>().unwrap(), table);
    }
    drop(engine);
    vendor.assert_clean();
}

fn bytemuck_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn folded(vendor: &Vendor) {
    let engine = vendor.engine();
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
             y[id.y] = id.y + n.y;
         }",
    )
    .unwrap();
    let rows = 70_000_u32;
    let y = engine.zeros::<u32>(&[rows as usize]).unwrap();
    engine.dispatch(&kernel).bind("y", &y).workgroups([1, u64::from(rows), 1]).run().unwrap();
    let expected: Vec<u32> = (0..rows).map(|i| i + rows).collect();
    assert!(y.to_vec::<u32>().unwrap() == expected);
    drop((engine, y));
    vendor.assert_clean();
}

fn transfers(vendor: &Vendor) {
    let engine = vendor.engine();
    for bytes in [1_u32, 3, 4, 255, 4 << 20, (4 << 20) + 4, (21 << 20) + 12] {
        let values: Vec<u32> = (0..bytes.div_ceil(4)).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let tensor = engine.tensor(&values).unwrap();
        assert!(tensor.to_vec::<u32>().unwrap() == values, "{bytes} bytes");
    }
    let halves = [half::f16::ONE; 5];
    assert_eq!(engine.tensor(&halves).unwrap().to_vec::<half::f16>().unwrap(), halves);
    assert_eq!(engine.zeros::<u32>(&[1000]).unwrap().to_vec::<u32>().unwrap(), [0; 1000]);
    drop(engine);
    vendor.assert_clean();
}

fn order(vendor: &Vendor) {
    let engine = vendor.engine();
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32; 64]).unwrap(), engine.zeros::<f32>(&[64]).unwrap());
    let mut expected = 0.0;
    for step in 0..40 {
        let value = step as f32;
        x.write(&[value; 64]).unwrap();
        engine.dispatch(&kernel).bind("x", &x).bind("y", &y).set("params.a", 2.0_f32).invocations(64).run().unwrap();
        expected += 2.0 * value;
    }
    assert_eq!(y.to_vec::<f32>().unwrap(), [expected; 64]);
    drop((engine, x, y));
    vendor.assert_clean();
}

fn times(vendor: &Vendor) {
    let engine = vendor.builder().profile(true).build().unwrap();
    let (expected, y) = saxpy(&engine, 500).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected);
    engine.finish().unwrap();
    let rows = engine.metrics();
    let row = rows.iter().find(|row| row.operation == "saxpy").expect("saxpy is in the metrics");
    assert!(row.timed > 0 && !row.total.is_zero(), "{row:?}");
    drop((engine, y));
    vendor.assert_clean();
}

fn peers(vendor: &Vendor) {
    // Both devices in one engine: the second is opened when the first fails to compile.
    let engine = vendor.builder().build().unwrap();
    let x = engine.tensor(&(0..3000_u32).collect::<Vec<_>>()).unwrap();
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&y) { y[id.x] *= 3u; }
         }",
    )
    .unwrap();
    vendor.fail("module_load", 1, 200);
    std::thread::scope(|scope| {
        // The first device's two attempts fail; then the second's succeeds.
        let run = scope.spawn(|| engine.dispatch(&kernel).bind("y", &x).invocations(3000).run());
        while vendor.calls("context_retain") < 2 {
            std::thread::yield_now();
        }
        vendor.fail("module_load", 0, 0);
        run.join().unwrap().unwrap();
    });
    let on_second = x.device_name().contains("double 1");
    assert_eq!(x.to_vec::<u32>().unwrap(), (0..3000).map(|i| i * 3).collect::<Vec<u32>>());
    if on_second {
        assert!(vendor.calls("copy_peer") == 1, "the tensor went by way of the host");
        assert!(engine.events().iter().any(|event| event.kind == EventKind::Moved));
    }
    drop((engine, x));
    vendor.assert_clean();
}

fn cache(vendor: &Vendor) {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let engine = vendor.builder().fallback(Fallback::Never).cache_folder(folder.path()).build().unwrap();
        let (expected, y) = saxpy(&engine, 100).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), expected);
    };
    // The kernels with known answers are asked once in a process: here, where nobody counts.
    let elsewhere = tempfile::tempdir().unwrap();
    let engine = vendor.builder().fallback(Fallback::Never).cache_folder(elsewhere.path()).build().unwrap();
    saxpy(&engine, 100).unwrap().1.to_vec::<f32>().unwrap();
    drop(engine);
    let before = vendor.calls("compiler_compile");
    run();
    assert_eq!(vendor.calls("compiler_compile"), before + 1);
    run();
    assert_eq!(vendor.calls("compiler_compile"), before + 1, "the code was on disk");
    // Damage in the middle and at the end of each file.
    for cut in [false, true] {
        for file in files(folder.path()) {
            let mut bytes = std::fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            bytes.truncate(if cut { middle + 1 } else { bytes.len() });
            std::fs::write(&file, bytes).unwrap();
        }
        let before = vendor.calls("compiler_compile");
        run();
        assert_eq!(vendor.calls("compiler_compile"), before + 1, "damaged code was trusted");
    }
    vendor.assert_clean();
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn reuse(vendor: &Vendor) {
    let engine = vendor.engine();
    for round in 0..20_u32 {
        let tensor = engine.zeros::<u32>(&[1 << 16]).unwrap();
        assert!(tensor.to_vec::<u32>().unwrap().iter().all(|&word| word == 0), "round {round}: stale contents");
        tensor.write(&vec![round + 1; 1 << 16]).unwrap();
    }
    let figures = engine.memory();
    assert!(figures.reuses >= 19, "{figures:?}");
    engine.trim();
    assert_eq!(engine.memory().pooled, 0);
    drop(engine);
    vendor.assert_clean();
}

/// Captures saxpy with a copy and a uniform that does not fit the arguments, and replays it with new inputs.
fn replayed(vendor: &Vendor, engine: &Engine) {
    let x = engine.tensor(&[0.0_f32; 300]).unwrap();
    let y = engine.zeros::<f32>(&[300]).unwrap();
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let large = Kernel::from_wgsl(
        "@group(0) @binding(0) var<uniform> table: array<vec4f, 400>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&y) { y[id.x] += table[id.x].x; }
         }",
    )
    .unwrap();
    let table: Vec<f32> = (0..1600).map(|i| if i % 4 == 0 { (i / 4) as f32 } else { -1.0 }).collect();
    let graph = engine
        .capture(|| {
            let scratch = engine.zeros::<f32>(&[300])?;
            let run = |a: f32, x: &Tensor, y: &Tensor| {
                engine.dispatch(&kernel).bind("x", x).bind("y", y).set("params.a", a).invocations(300).run()
            };
            run(2.0, &x, &scratch)?;
            run(0.5, &scratch, &y)?;
            let table = bytemuck::cast_slice(&table);
            engine.dispatch(&large).set_bytes("table", table).bind("y", &y).invocations(300).run()?;
            Ok(y.clone())
        })
        .unwrap();
    let launches = vendor.calls("launch");
    let mut expected = vec![0.0_f32; 300];
    for step in 0..10 {
        let values: Vec<f32> = (0..300).map(|i| (i * step) as f32).collect();
        graph.replay(&GraphInputs::new().set(&x, &values)).unwrap();
        for (i, (sum, value)) in expected.iter_mut().zip(&values).enumerate() {
            *sum += value + i as f32;
        }
        assert_eq!(y.to_vec::<f32>().unwrap(), expected, "step {step}");
    }
    let started = vendor.calls("graph_launch");
    let launched = vendor.calls("launch") - launches;
    assert!((started, launched) == (10, 0) || (started, launched) == (0, 30), "{started} starts, {launched} launches");
}

fn graphs(vendor: &Vendor) {
    let engine = vendor.engine();
    replayed(vendor, &engine);
    assert_eq!(vendor.calls("graph_launch"), 10);
    drop(engine);
    vendor.assert_clean();
}

/// A uniform among the arguments and one in memory, in two launches each, changed while earlier replays are still under way.
fn changed_graphs(vendor: &Vendor) {
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let large = Kernel::from_wgsl(
        "struct Table { scale: f32, numbers: array<vec4f, 400> }
         @group(0) @binding(0) var<uniform> table: Table;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&y) { y[id.x] = y[id.x] * table.scale + table.numbers[id.x].x; }
         }",
    )
    .unwrap();
    for fails in [false, true] {
        let engine = vendor.engine();
        let x = engine.tensor(&[1.0_f32; 300]).unwrap();
        let y = engine.zeros::<f32>(&[300]).unwrap();
        let numbers = vec![0.0_f32; 1600];
        let step = || -> cantus::Result<()> {
            for a in [1.0_f32, 2.0] {
                engine.dispatch(&kernel).bind("x", &x).bind("y", &y).set("params.a", a).invocations(300).run()?;
                let table =
                    engine.dispatch(&large).set("table.scale", 1.0_f32).set("table.numbers", numbers.as_slice());
                table.bind("y", &y).invocations(300).run()?;
            }
            Ok(())
        };
        let graph = engine.capture(step).unwrap();
        let captures = vendor.calls("capture_begin");
        let changes = vendor.calls("set_parameters");
        if fails {
            vendor.fail("set_parameters", 1, 801);
        }
        let mut expected = 0.0_f32;
        let (mut scale, mut a) = (1.0, [1.0, 2.0]);
        for round in 0..6 {
            let mut inputs = GraphInputs::new();
            if round % 2 == 1 {
                (scale, a) = (0.5, [round as f32; 2]);
                inputs =
                    inputs.set_uniform(&kernel, "params.a", round as f32).set_uniform(&large, "table.scale", scale);
            }
            // Nothing is waited for: a replay that is under way keeps what it had.
            graph.replay(&inputs).unwrap();
            for a in a {
                expected = (expected + a) * scale;
            }
        }
        assert_eq!(y.to_vec::<f32>().unwrap(), vec![expected; 300], "{fails}");
        let made = vendor.calls("capture_begin") - captures;
        if vendor.name == "cuda" && !fails {
            assert_eq!((made, vendor.calls("set_parameters") - changes), (0, 6), "in place");
        } else {
            assert_eq!(made, 3, "recorded anew");
        }
        vendor.fail("set_parameters", 0, 0);
        let fault = |inputs: &GraphInputs<'_>| graph.replay(inputs).unwrap_err().to_string();
        assert!(fault(&GraphInputs::new().set_uniform(&kernel, "x", 1.0_f32)).contains("GraphInputs::set"));
        assert!(fault(&GraphInputs::new().set_uniform(&kernel, "params.b", 1.0_f32)).contains("no member"));
        assert!(fault(&GraphInputs::new().set_uniform(&kernel, "none", 1.0_f32)).contains("no such binding"));
        assert_eq!(y.to_vec::<f32>().unwrap(), vec![expected; 300], "what was refused ran nothing");
        drop((graph, engine, x, y));
        vendor.assert_clean();
    }
}

fn refused_graphs(vendor: &Vendor) {
    for role in ["capture_begin", "capture_end", "instantiate"] {
        vendor.fail(role, 1, 801);
        let engine = vendor.engine();
        replayed(vendor, &engine);
        vendor.fail(role, 0, 0);
        assert_eq!(vendor.calls("graph_launch"), 0, "{role}");
        drop(engine);
        vendor.assert_clean();
    }
    // A graph that does not start: the result is lost with the reason, and nothing stays behind.
    let engine = vendor.engine();
    let x = engine.tensor(&[1.0_f32; 64]).unwrap();
    let graph = engine.capture(|| (&x + 1.0).eval()).unwrap();
    vendor.fail("graph_launch", 1, 1);
    let result = graph.replay(&GraphInputs::new()).and_then(|()| graph.outputs().to_vec::<f32>());
    let error = result.unwrap_err().to_string();
    assert!(error.contains("raph"), "{error}");
    vendor.fail("graph_launch", 0, 0);
    drop((graph, engine, x));
    vendor.assert_clean();
}

fn timed_graphs(vendor: &Vendor) {
    let engine = vendor.builder().profile(true).build().unwrap();
    replayed(vendor, &engine);
    assert_eq!(vendor.calls("graph_launch"), 0, "each kernel has its time");
    drop(engine);
    vendor.assert_clean();
}

fn names(vendor: &Vendor) {
    let backend = vendor.backend();
    let probe = pollster::block_on(backend.probe());
    assert_eq!(probe.devices.len(), 2);
    let first = &probe.devices[0];
    assert_eq!(first.priority, if vendor.name == "hip" { 80 } else { 70 });
    assert_eq!(first.capabilities.limits.workgroup_invocations, 1024);
    assert_eq!(first.capabilities.subgroup_sizes, Some((32, 32)));
    assert_eq!(first.memory_bytes, Some(1 << 30));
    let second = &probe.devices[1].identity;
    assert!(first.identity.is_same(&first.identity) && !first.identity.is_same(second));
    assert_eq!(second.pci, cantus::backend::PciAddress::parse("0000:02:00.0"));
    let missing = pollster::block_on(backend.open(7, &OpenOptions::default())).err().expect("there is no device 7");
    assert!(missing.to_string().contains("device 7"), "{missing}");
    vendor.assert_clean();
}
