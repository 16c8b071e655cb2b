//! The scenarios.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cantus::backend::opencl::OpenClBackend;
use cantus::backend::{Backend, Bound, Buffer, Command, Contents, Device, Dispatch, OpenOptions};
use cantus::{Engine, Error, Fallback, Kernel};
use pollster::block_on;

use crate::Scenario;

pub const ALL: &[Scenario] = &[
    ("computes", &[], computes),
    ("a uniform bound to a tensor", &[], uniform_tensor),
    ("uniforms beyond the arguments", &[], large_uniform),
    ("transfers of every size", &[], transfers),
    ("transfers keep their order", &[], order),
    ("kernels are timed", &[], times),
    ("parts of a buffer", &[], parts),
    ("two threads on one device", &[], threads),
    ("a kernel that the language cannot express", &[], not_expressible),
    ("code is kept on disk", &[], cache),
    ("an unwritable cache folder", &[], unwritable),
    ("two processes fill the cache at once", &[], two_processes),
    ("memory that is not there", &[], out_of_memory),
    ("a foreign buffer", &[], foreign),
    ("a cancelled dispatch", &[], cancelled),
    ("no platform", &[("OCL_ICD_VENDORS", "/nonexistent"), ("OCL_ICD_FILENAMES", "")], no_platform),
    ("a library that is another one", &[("OPENCL_DYLIB_PATH", "libm.so.6")], another),
    ("a driver that is too old", &[("OPENCL_DYLIB_PATH", "OLD")], too_old),
];

const SAXPY: &str = "
    struct Params { a: f32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage> x: array<f32>;
    @group(0) @binding(2) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn saxpy(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += params.a * x[id.x]; }
    }";

fn engine() -> Engine {
    Engine::builder().backend("opencl").fallback(Fallback::Never).build().unwrap()
}

fn engine_with_cache(folder: &Path) -> Engine {
    Engine::builder().backend("opencl").fallback(Fallback::Never).cache_folder(folder).build().unwrap()
}

/// Runs saxpy over `n` elements and checks the result.
fn saxpy(engine: &Engine, n: usize) {
    let (x, y): (Vec<f32>, Vec<f32>) = ((0..n).map(|i| i as f32).collect(), (0..n).map(|i| (i % 7) as f32).collect());
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| y + 2.0 * x).collect();
    let (x, y) = (engine.tensor(&x).unwrap(), engine.tensor(&y).unwrap());
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    engine.dispatch(&kernel).bind("x", &x).bind("y", &y).set("params.a", 2.0_f32).invocations(n as u64).run().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected);
}

fn computes() {
    let engine = engine();
    assert_eq!(engine.selected().device.backend, "opencl");
    for n in [1, 63, 64, 1000, 100_000] {
        saxpy(&engine, n);
    }
}

fn uniform_tensor() {
    let engine = engine();
    let (a, x) = (engine.tensor(&[3.0_f32]).unwrap(), engine.tensor(&[1.0_f32, 2.0]).unwrap());
    let y = engine.zeros::<f32>(&[2]).unwrap();
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    engine.dispatch(&kernel).bind("params", &a).bind("x", &x).bind("y", &y).invocations(2).run().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.0, 6.0]);
}

fn large_uniform() {
    let engine = engine();
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
        let bytes: Vec<u8> = table.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let y = engine.zeros::<u32>(&[2048]).unwrap();
        engine.dispatch(&kernel).set_bytes("table", &bytes).bind("y", &y).invocations(2048).run().unwrap();
        assert_eq!(y.to_vec::<u32>().unwrap(), table);
    }
}

fn transfers() {
    let engine = engine();
    for words in [1_u32, 3, 255, 4 << 20, (4 << 20) + 1, (21 << 20) + 3] {
        let values: Vec<u32> = (0..words).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let tensor = engine.tensor(&values).unwrap();
        assert!(tensor.to_vec::<u32>().unwrap() == values, "{words} words");
    }
    let halves = [half::f16::ONE; 5];
    assert_eq!(engine.tensor(&halves).unwrap().to_vec::<half::f16>().unwrap(), halves);
    assert_eq!(engine.zeros::<u32>(&[1000]).unwrap().to_vec::<u32>().unwrap(), [0; 1000]);
}

fn order() {
    let engine = engine();
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32; 64]).unwrap(), engine.zeros::<f32>(&[64]).unwrap());
    let mut expected = 0.0;
    for step in 0..200 {
        let value = step as f32;
        x.write(&[value; 64]).unwrap();
        engine.dispatch(&kernel).bind("x", &x).bind("y", &y).set("params.a", 2.0_f32).invocations(64).run().unwrap();
        expected += 2.0 * value;
    }
    assert_eq!(y.to_vec::<f32>().unwrap(), [expected; 64]);
}

fn times() {
    let engine = Engine::builder().backend("opencl").profile(true).build().unwrap();
    saxpy(&engine, 100_000);
    engine.finish().unwrap();
    let rows = engine.metrics();
    let row = rows.iter().find(|row| row.operation == "saxpy").expect("saxpy is in the metrics");
    assert!(row.timed > 0 && !row.total.is_zero(), "{row:?}");
}

/// The first device, opened.
fn device() -> Arc<dyn Device> {
    block_on(OpenClBackend::new().open(0, &OpenOptions::default())).unwrap()
}

fn parts() {
    let device = device();
    let alignment = u64::from(device.info().capabilities.limits.storage_alignment);
    let kernel = Kernel::from_wgsl(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn main() { for (var i = 0u; i < arrayLength(&y); i++) { y[i] = i + 1u; } }",
    )
    .unwrap();
    let program = block_on(device.compile(&kernel)).unwrap();
    let buffer = block_on(device.allocate(4 * alignment, Contents::Zeroed, "whole")).unwrap();
    let dispatch = |offset: u64, bytes: u64| {
        let part = Bound::Buffer { buffer: buffer.clone(), offset, bytes };
        Dispatch::new(program.clone(), "part", vec![part], [1; 3])
    };
    block_on(device.submit(vec![Command::Dispatch(dispatch(alignment, 8))])).unwrap();
    let mut bytes = vec![0; 4 * alignment as usize];
    block_on(device.read(&buffer, 0, &mut bytes)).unwrap();
    let mut expected = vec![0; bytes.len()];
    expected[alignment as usize] = 1;
    expected[alignment as usize + 4] = 2;
    assert!(bytes == expected);
    for (offset, bytes) in [(4, 8), (4 * alignment, 8), (0, 5 * alignment)] {
        let error = block_on(device.submit(vec![Command::Dispatch(dispatch(offset, bytes))])).expect_err("is refused");
        assert!(matches!(&*error.error, Error::Binding { .. }), "{error:?}");
    }
}

fn threads() {
    let engine = engine();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|round| saxpy(&engine, 500 + round)));
        }
    });
}

fn not_expressible() {
    let engine = engine();
    if engine.selected().device.capabilities.features.subgroups {
        kit::not_run("what OpenCL cannot express", "the device has subgroups");
        return;
    }
    let kernel = Kernel::from_named_wgsl(
        "sums.wgsl",
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
             y[i] = subgroupAdd(1u);
         }",
    )
    .unwrap();
    let y = engine.zeros::<u32>(&[32]).unwrap();
    let error = engine.dispatch(&kernel).bind("y", &y).workgroups(1).run().expect_err("is refused");
    let text = error.to_string();
    let placed = text.contains("sums.wgsl:3") && text.contains("subgroup");
    assert!(matches!(error, Error::Unsupported { .. }) && placed, "{text}");
    // Another device takes it over where that is allowed.
    let engine = Engine::builder().backend("cpu").build().unwrap();
    let y = engine.zeros::<u32>(&[32]).unwrap();
    engine.dispatch(&kernel).bind("y", &y).workgroups(1).run().unwrap();
    assert_eq!(y.to_vec::<u32>().unwrap(), [32; 32]);
}

fn files(folder: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let time = path.metadata().unwrap().modified().unwrap();
            found.push((path, time));
        }
    }
    found.sort();
    found
}

fn cache() {
    // The kernels with known answers are asked once in a process: here, where nobody counts.
    saxpy(&engine_with_cache(tempfile::tempdir().unwrap().path()), 100);
    let folder = tempfile::tempdir().unwrap();
    saxpy(&engine_with_cache(folder.path()), 100);
    let first = files(folder.path());
    assert_eq!(first.len(), 1, "{first:?}");
    saxpy(&engine_with_cache(folder.path()), 100);
    assert_eq!(files(folder.path()), first, "the code was compiled again");
    let whole = std::fs::read(&first[0].0).unwrap();
    for cut in [false, true] {
        let mut bytes = whole.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        bytes.truncate(if cut { middle } else { bytes.len() });
        std::fs::write(&first[0].0, &bytes).unwrap();
        saxpy(&engine_with_cache(folder.path()), 100);
        let now = std::fs::read(&first[0].0).unwrap();
        assert!(now != bytes && now.len() > middle, "damaged code was trusted");
    }
}

fn unwritable() {
    // A file where the folder should be: even root cannot write there.
    let file = tempfile::NamedTempFile::new().unwrap();
    saxpy(&engine_with_cache(file.path()), 100);
}

fn two_processes() {
    let folder = std::env::var_os("CANTUS_TEST_FOLDER").map(PathBuf::from);
    if let Some(folder) = folder {
        return saxpy(&engine_with_cache(&folder), 100);
    }
    let run = |count: usize| {
        let folder = tempfile::tempdir().unwrap();
        let start = || {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.env("CANTUS_TEST_FOLDER", folder.path()).spawn().unwrap()
        };
        let children: Vec<_> = (0..count).map(|_| start()).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        folder
    };
    let (alone, folder) = (run(1), run(4));
    let count = files(alone.path()).len();
    assert!(count > 0);
    assert_eq!(files(folder.path()).len(), count, "whole files, and nothing half done");
    saxpy(&engine_with_cache(folder.path()), 100);
}

fn out_of_memory() {
    let device = device();
    let largest = device.info().capabilities.limits.buffer_bytes;
    let error = block_on(device.allocate(largest + 4096, Contents::Overwritten, "too much")).expect_err("is refused");
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error:?}");
    let limited = Engine::builder().backend("opencl").memory_limit(1 << 20).build().unwrap();
    let error = limited.zeros::<u32>(&[1 << 20]).expect_err("is beyond the limit");
    assert!(matches!(error, Error::MemoryLimit { .. }), "{error:?}");
}

fn foreign() {
    let (one, two) = (device(), device());
    let buffer = block_on(one.allocate(64, Contents::Zeroed, "of one")).unwrap();
    let error = block_on(two.write(&buffer, 0, &[1, 2, 3, 4])).expect_err("is refused");
    assert!(error.to_string().contains("another device"), "{error}");
    let error = block_on(one.write(&buffer, 62, &[0; 4])).expect_err("is refused");
    assert!(error.to_string().contains("do not lie within"), "{error}");
    let other = block_on(one.allocate(64, Contents::Zeroed, "another")).unwrap();
    let copy = |source: &Arc<dyn Buffer>, source_offset, target: &Arc<dyn Buffer>, bytes| {
        let (source, target) = (source.clone(), target.clone());
        let copied =
            block_on(one.submit(vec![Command::Copy { source, source_offset, target, target_offset: 0, bytes }]));
        copied.err().map_or_else(String::new, |error| error.to_string())
    };
    assert_eq!(copy(&buffer, 32, &other, 32), "");
    assert!(copy(&buffer, 32, &buffer, 32).contains("the same buffer"));
    assert!(copy(&buffer, 32, &other, 36).contains("exceed a buffer"));
    assert!(copy(&buffer, 2, &other, 4).contains("multiples of 4"));
}

fn cancelled() {
    let engine = engine();
    let kernel = Kernel::from_wgsl(SAXPY).unwrap();
    let (x, y) = (engine.tensor(&[1.0_f32; 4]).unwrap(), engine.tensor(&[1.0_f32; 4]).unwrap());
    let flag = cantus::backend::CancelFlag::new();
    flag.cancel();
    let dispatch = engine.dispatch(&kernel).bind("x", &x).bind("y", &y).set("params.a", 1.0_f32).invocations(4);
    let outcome = dispatch.cancel(&flag).run().and_then(|()| y.to_vec::<f32>());
    assert!(outcome.expect_err("was cancelled").to_string().contains("cancelled"));
}

fn reason() -> String {
    let probe = block_on(OpenClBackend::new().probe());
    assert!(probe.devices.is_empty());
    // The engine goes on without.
    Engine::builder().build().unwrap();
    probe.reason.expect("says why")
}

fn no_platform() {
    let reason = reason();
    assert!(reason.contains("no OpenCL platform"), "{reason}");
}

fn another() {
    let reason = reason();
    assert!(reason.contains("not installed"), "{reason}");
}

fn too_old() {
    let reason = reason();
    assert!(reason.contains("Old card is too old") && reason.contains("OpenCL 1.1"), "{reason}");
}
