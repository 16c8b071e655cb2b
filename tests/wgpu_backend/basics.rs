//! The basics of every device: kernels, uniforms, copies, transfers, memory, times, threads.

use std::sync::Arc;

use cantus::backend::{Buffer, Command, Contents, DeviceKind, OpenOptions};
use pollster::block_on;

use crate::Case;
use crate::support::Found;
use kit::backend::{assert_says, dispatch, uniform, whole};
use kit::harness::not_run;

pub const CASES: &[Case] = &[
    ("description", description),
    ("saxpy", saxpy),
    ("several_groups", several_groups),
    ("tensor_as_uniform", tensor_as_uniform),
    ("many_uniforms", many_uniforms),
    ("oversized_uniform_batch", oversized_uniform_batch),
    ("many_uniform_bindings", many_uniform_bindings),
    ("overrides", overrides),
    ("workgroup_memory_is_zero", workgroup_memory_is_zero),
    ("copies", copies),
    ("unaligned_transfers", unaligned_transfers),
    ("large_transfer", large_transfer),
    ("pool_shows_zeros", pool_shows_zeros),
    ("write_after_reuse", write_after_reuse),
    ("memory_limit", memory_limit),
    ("timestamps", timestamps),
    ("two_threads", two_threads),
    ("raw_buffer", raw_buffer),
    ("from_device", from_device),
    ("prepared_kernel", prepared_kernel),
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

const ADD_ONE: &str = "
    @group(0) @binding(0) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64)
    fn add_one(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += 1u; }
    }";

/// Variables of many types, nearly 16 KiB of them, which a workgroup before left full of ones. `folded_barriers` has the folded form.
fn workgroup_memory_is_zero(found: &Found) {
    let device = found.open();
    let declared = "
        struct Inner { a: vec3f, b: array<atomic<u32>, 3>, c: mat2x3f }
        struct Place { @builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32 }
        var<workgroup> scalar: i32;
        var<workgroup> flag: bool;
        var<workgroup> count: atomic<i32>;
        var<workgroup> vectors: array<vec3u, 5>;
        var<workgroup> nested: array<array<array<u32, 3>, 7>, 5>;
        var<workgroup> inner: array<Inner, 4>;
        var<workgroup> counts: array<atomic<u32>, 33>;
        var<workgroup> large: array<u32, 3400>;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;";
    let full = device.compile(&format!(
        "{declared}
         @compute @workgroup_size(8, 3) fn full(place: Place) {{
             scalar = -1; flag = true;
             atomicStore(&count, -1);
             for (var i = place.lane; i < 3400u; i += 24u) {{ large[i] = ~0u; }}
             for (var i = place.lane; i < 105u; i += 24u) {{ nested[i / 21u][i / 3u % 7u][i % 3u] = ~0u; }}
             for (var i = place.lane; i < 33u; i += 24u) {{ atomicStore(&counts[i], ~0u); }}
             if place.lane < 5u {{ vectors[place.lane] = vec3u(~0u); }}
             if place.lane < 12u {{
                 inner[place.lane / 3u].a = vec3f(1.0);
                 inner[place.lane / 3u].c = mat2x3f(1.0, 1.0, 1.0, 1.0, 1.0, 1.0);
                 atomicStore(&inner[place.lane / 3u].b[place.lane % 3u], ~0u);
             }}
             workgroupBarrier();
             y[place.group.x] = large[place.group.x % 3400u] & counts_all();
         }}
         fn counts_all() -> u32 {{ return atomicLoad(&counts[7]); }}"
    ));
    let read = device.compile(&format!(
        "{declared}
         @compute @workgroup_size(8, 3) fn read(place: Place) {{
             var seen = u32(scalar) | u32(flag) | u32(atomicLoad(&count));
             for (var i = 0u; i < 3400u; i++) {{ seen |= large[i]; }}
             for (var i = 0u; i < 105u; i++) {{ seen |= nested[i / 21u][i / 3u % 7u][i % 3u]; }}
             for (var i = 0u; i < 33u; i++) {{ seen |= atomicLoad(&counts[i]); }}
             for (var i = 0u; i < 5u; i++) {{ seen |= vectors[i].x | vectors[i].y | vectors[i].z; }}
             for (var i = 0u; i < 12u; i++) {{
                 let c = inner[i / 3u].c[i % 2u];
                 seen |= bitcast<u32>(inner[i / 3u].a[i % 3u]) | bitcast<u32>(c.x + c.y + c.z) | atomicLoad(&inner[i / 3u].b[i % 3u]);
             }}
             y[place.group.x * 24u + place.lane] = seen + 1u;
         }}"
    ));
    let groups = 50_u32;
    let ones = device.zeros(u64::from(groups) * 4);
    device.run(&full, vec![whole(&ones)], [groups, 1, 1]).unwrap();
    assert!(device.read::<u32>(&ones).iter().all(|&value| value == u32::MAX));
    let y = device.zeros(u64::from(groups) * 96);
    device.run(&read, vec![whole(&y)], [groups, 1, 1]).unwrap();
    let found = device.read::<u32>(&y);
    assert!(found.iter().all(|&value| value == 1), "{found:?}");
}

fn description(found: &Found) {
    let info = &found.info;
    assert_eq!(info.backend, "wgpu");
    assert!(["(Vulkan)", "(Metal)", "(DX12)", "(GL)"].iter().any(|api| info.name.ends_with(api)), "{}", info.name);
    if info.name.contains("llvmpipe") {
        assert_eq!(info.kind, DeviceKind::Software);
        assert_eq!(info.priority, if found.is_gl() { 5 } else { 10 });
    }
    assert!(info.capabilities.limits.storage_bindings >= 4);
    let device = found.open();
    assert_eq!(device.0.info().name, info.name);
    assert_eq!(device.0.info().capabilities, info.capabilities);
}

fn saxpy(found: &Found) {
    let device = found.open();
    let program = device.compile(SAXPY);
    for count in [1_usize, 63, 64, 65, 1000, 100_000] {
        let x: Vec<f32> = (0..count).map(|i| i as f32).collect();
        let (x_buffer, y_buffer) = (device.buffer("x", &x), device.buffer("y", &vec![1.0_f32; count]));
        let groups = u32::try_from(count.div_ceil(64)).unwrap();
        device.run(&program, vec![uniform(&[2.0_f32]), whole(&x_buffer), whole(&y_buffer)], [groups, 1, 1]).unwrap();
        let y: Vec<f32> = device.read(&y_buffer);
        assert!(y.iter().zip(&x).all(|(y, x)| *y == 1.0 + 2.0 * x), "{count} elements");
    }
}

fn several_groups(found: &Found) {
    let device = found.open();
    // Groups 0, 1 and 3, with gaps in the bindings: what lies between stays empty.
    let program = device.compile(
        "@group(0) @binding(3) var<storage> a: array<u32>;
         @group(1) @binding(1) var<uniform> factor: u32;
         @group(3) @binding(7) var<storage, read_write> b: array<u32>;
         @group(3) @binding(2) var<storage> c: array<u32>;
         @compute @workgroup_size(4)
         fn combine(@builtin(global_invocation_id) id: vec3u) { b[id.x] = a[id.x] * factor + c[id.x]; }",
    );
    let (a, b, c) = (device.buffer("a", &[1_u32, 2, 3, 4]), device.zeros(16), device.buffer("c", &[5_u32, 6, 7, 8]));
    device.run(&program, vec![whole(&a), uniform(&[10_u32]), whole(&c), whole(&b)], [1, 1, 1]).unwrap();
    assert_eq!(device.read::<u32>(&b), [15, 26, 37, 48]);
}

fn tensor_as_uniform(found: &Found) {
    let device = found.open();
    let program = device.compile(SAXPY);
    let (a, x, y) = (device.buffer("a", &[3.0_f32]), device.buffer("x", &[1.0_f32, 2.0]), device.zeros(8));
    device.run(&program, vec![whole(&a), whole(&x), whole(&y)], [1, 1, 1]).unwrap();
    // And contents given with the dispatch, in the same program.
    device.run(&program, vec![uniform(&[1.0_f32]), whole(&x), whole(&y)], [1, 1, 1]).unwrap();
    assert_eq!(device.read::<f32>(&y), [4.0, 8.0]);
}

fn many_uniforms(found: &Found) {
    let device = found.open();
    // The order of dispatches shows in the result: y = y * 31 + value, mod 2^32.
    let program = device.compile(
        "@group(0) @binding(0) var<uniform> value: u32;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn step() { y[0] = y[0] * 31u + value; }",
    );
    let y = device.zeros(4);
    let values: Vec<u32> = (0..3000_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
    let batch = values.iter().map(|value| dispatch("step", &program, vec![uniform(&[*value]), whole(&y)], [1, 1, 1]));
    device.submit(batch.collect()).unwrap();
    let expected = values.iter().fold(0_u32, |y, value| y.wrapping_mul(31).wrapping_add(*value));
    assert_eq!(device.read::<u32>(&y), [expected]);
}

fn oversized_uniform_batch(found: &Found) {
    let device = found.open();
    // 1,200 dispatches of 16 KiB exceed one arena: the batch runs in parts, in order.
    let program = device.compile(
        "@group(0) @binding(0) var<uniform> values: array<vec4u, 1024>;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn step() { y[0] = y[0] * 31u + values[1023].w; }",
    );
    let y = device.zeros(4);
    let mut batch = Vec::new();
    let mut expected = 0_u32;
    for value in 0..1200_u32 {
        let mut contents = vec![0_u32; 4096];
        contents[4095] = value;
        batch.push(dispatch("step", &program, vec![uniform(&contents), whole(&y)], [1, 1, 1]));
        expected = expected.wrapping_mul(31).wrapping_add(value);
    }
    device.submit(batch).unwrap();
    assert_eq!(device.read::<u32>(&y), [expected]);
}

fn many_uniform_bindings(found: &Found) {
    let device = found.open();
    // Ten uniforms: more than WebGPU's eight dynamic offsets.
    let count = 10;
    if found.info.capabilities.limits.uniform_bindings < count {
        not_run("it has fewer uniform bindings");
    }
    let variables: String = (0..count).map(|i| format!("@group(0) @binding({i}) var<uniform> u{i}: u32;\n")).collect();
    let sum: Vec<String> = (0..count).map(|i| format!("u{i} * {}u", 10_u32.pow(i))).collect();
    let program = device.compile(&format!(
        "{variables} @group(1) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn main() {{ y[0] = y[0] + {}; }}",
        sum.join(" + ")
    ));
    let y = device.zeros(4);
    let bindings = |shift: u32| (0..count).map(|i| uniform(&[(i + shift) % 3])).chain([whole(&y)]).collect::<Vec<_>>();
    let batch = (0..2).map(|shift| dispatch("main", &program, bindings(shift), [1, 1, 1])).collect();
    device.submit(batch).unwrap();
    let expected = (0..2).flat_map(|shift| (0..count).map(move |i| (i + shift) % 3 * 10_u32.pow(i)));
    assert_eq!(device.read::<u32>(&y), [expected.fold(0, u32::wrapping_add)]);
}

fn overrides(found: &Found) {
    let device = found.open();
    let kernel = cantus::Kernel::from_wgsl(
        "override width: u32 = 4; override scale: f32;
         @group(0) @binding(0) var<storage, read_write> y: array<f32>;
         var<workgroup> tile: array<f32, width>;
         @compute @workgroup_size(width) fn main(@builtin(local_invocation_index) i: u32) {
             tile[i] = f32(i);
             workgroupBarrier();
             y[i] = scale * tile[width - 1u - i];
         }",
    )
    .unwrap();
    let kernel = kernel.with_override("scale", 0.5).unwrap().with_override("width", 8).unwrap();
    let program = block_on(device.0.compile(&kernel)).unwrap();
    let y = device.zeros(32);
    device.run(&program, vec![whole(&y)], [1, 1, 1]).unwrap();
    assert_eq!(device.read::<f32>(&y), [3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0]);
}

fn copies(found: &Found) {
    let device = found.open();
    let program = device.compile(ADD_ONE);
    let (a, b) = (device.buffer("a", &[1_u32, 2, 3, 4]), device.zeros(16));
    let copy = |source: &Arc<dyn Buffer>, from, target: &Arc<dyn Buffer>, to, bytes| Command::Copy {
        source: source.clone(),
        source_offset: from,
        target: target.clone(),
        target_offset: to,
        bytes,
    };
    // Dispatches and copies in their order.
    let batch = vec![
        dispatch("add_one", &program, vec![whole(&a)], [1, 1, 1]),
        copy(&a, 0, &b, 8, 8),
        dispatch("add_one", &program, vec![whole(&b)], [1, 1, 1]),
        copy(&b, 8, &a, 4, 4),
    ];
    device.submit(batch).unwrap();
    assert_eq!(device.read::<u32>(&b), [1, 1, 3, 4]);
    assert_eq!(device.read::<u32>(&a), [2, 3, 4, 5]);
    assert_says(device.submit(vec![copy(&a, 0, &a, 8, 8)]), &["copy from a to a", "the same buffer"]);
    assert_says(device.submit(vec![copy(&a, 2, &b, 0, 8)]), &["multiples of 4"]);
    assert_says(device.submit(vec![copy(&a, 8, &b, 0, 16)]), &["exceed a buffer"]);
    assert_says(device.submit(vec![copy(&a, u64::MAX - 3, &b, 0, 16)]), &["exceed a buffer"]);
}

fn unaligned_transfers(found: &Found) {
    let device = found.open();
    let original: Vec<u8> = (0..23).collect();
    let buffer = device.buffer("bytes", &original);
    let mut expected = original;
    for (offset, length) in [(1, 2), (3, 9), (4, 5), (0, 1), (22, 1), (20, 3), (7, 16)] {
        let data: Vec<u8> = (0..length).map(|i| 100 + offset + i).collect();
        block_on(device.0.write(&buffer, offset.into(), &data)).unwrap();
        expected[offset.into()..(offset + length).into()].copy_from_slice(&data);
        assert_eq!(device.read::<u8>(&buffer), expected, "after {length} bytes at {offset}");
        let mut part = vec![0; length.into()];
        block_on(device.0.read(&buffer, offset.into(), &mut part)).unwrap();
        assert_eq!(part, data);
    }
    assert_says(block_on(device.0.write(&buffer, 20, &[0; 4])), &["writing bytes", "23 bytes"]);
    assert_says(block_on(device.0.read(&buffer, u64::MAX, &mut [0; 4])), &["reading bytes", "23 bytes"]);
    // Nothing is nothing.
    block_on(device.0.write(&buffer, 23, &[])).unwrap();
    block_on(device.0.read(&buffer, 23, &mut [])).unwrap();
}

fn large_transfer(found: &Found) {
    let device = found.open();
    // More than two chunks, and no multiple of a chunk.
    let count = (150 << 20) / 4 + 7;
    if found.info.capabilities.limits.buffer_bytes < count * 4 {
        not_run("its buffers are smaller");
    }
    let values: Vec<u32> = (0..u32::try_from(count).unwrap()).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let buffer = device.buffer("large", &values);
    assert!(device.read::<u32>(&buffer) == values);
}

fn pool_shows_zeros(found: &Found) {
    let device = found.open();
    for bytes in [4_u64, 100, 1 << 20] {
        let buffer = device.buffer("first", &vec![0xffff_ffff_u32; usize::try_from(bytes / 4).unwrap()]);
        let before = device.0.memory();
        drop(buffer);
        assert!(device.0.memory().pooled > 0);
        let again = device.zeros(bytes);
        assert_eq!(device.0.memory().reuses, before.reuses + 1, "the pool was not used");
        assert!(device.read::<u32>(&again).iter().all(|word| *word == 0), "stale data in {bytes} bytes");
    }
    // A size that is no multiple of 4: the bytes behind its end are zeros too, even if it is to be overwritten.
    drop(device.buffer("bytes", &[0xff_u8; 64]));
    let odd = block_on(device.0.allocate(5, Contents::Overwritten, "odd")).unwrap();
    block_on(device.0.write(&odd, 0, &[1, 2, 3, 4, 5])).unwrap();
    let program = device.compile(
        "@group(0) @binding(0) var<storage> x: array<u32>;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i]; }",
    );
    let seen = device.zeros(8);
    device.run(&program, vec![whole(&odd), whole(&seen)], [1, 1, 1]).unwrap();
    assert_eq!(device.read::<u8>(&seen), [1, 2, 3, 4, 5, 0, 0, 0]);
    device.0.trim();
    assert_eq!(device.0.memory().pooled, 0);
}

fn write_after_reuse(found: &Found) {
    let device = found.open();
    let program = device.compile(ADD_ONE);
    drop(device.buffer("first", &[7_u32; 64]));
    let buffer = device.zeros(256);
    // The clear that is still due must not wipe out this write, nor miss the rest.
    block_on(device.0.write(&buffer, 8, bytemuck::bytes_of(&5_u32))).unwrap();
    device.run(&program, vec![whole(&buffer)], [1, 1, 1]).unwrap();
    let mut expected = [1_u32; 64];
    expected[2] = 6;
    assert_eq!(device.read::<u32>(&buffer), expected);
}

fn memory_limit(found: &Found) {
    let device = found.open_with(&OpenOptions::new().memory_limit(1 << 20));
    let half = device.zeros(512 << 10);
    let error = assert_says(
        block_on(device.0.allocate(600 << 10, Contents::Zeroed, "the big one")).map(|_| ()),
        &["the big one", "memory limit of 1.0 MiB", "Builder::memory_limit"],
    );
    assert!(matches!(error, cantus::Error::MemoryLimit { .. }));
    drop(half);
    // Pooled memory makes room.
    let big = device.zeros(900 << 10);
    let figures = device.0.memory();
    assert!(figures.in_use >= 900 << 10 && figures.peak <= 1 << 20, "{figures:?}");
    assert_eq!(device.read::<u8>(&big).len(), 900 << 10);
    let too_large = device.0.info().capabilities.limits.buffer_bytes + 1;
    let device = found.open();
    assert_says(
        block_on(device.0.allocate(too_large, Contents::Zeroed, "huge")).map(|_| ()),
        &["out of memory", "huge", "one buffer there holds at most"],
    );
    assert_says(block_on(device.0.allocate(u64::MAX, Contents::Zeroed, "huge")).map(|_| ()), &["out of memory"]);
    assert_says(block_on(device.0.allocate(0, Contents::Zeroed, "none")).map(|_| ()), &["none", "empty"]);
}

fn timestamps(found: &Found) {
    let device = found.open_with(&OpenOptions::new().profile(true));
    if !device.0.info().capabilities.timestamps {
        not_run("it has no timestamps");
    }
    let quick = device.compile(ADD_ONE);
    let slow = device.compile(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(64) fn slow(@builtin(global_invocation_id) id: vec3u) {
             var x = id.x;
             for (var i = 0u; i < 20000u; i++) { x = x * 1664525u + 1013904223u; }
             y[id.x] = x;
         }",
    );
    let y = device.zeros(64 * 64 * 4);
    let mut batch: Vec<Command> = (0..5).map(|_| dispatch("quick", &quick, vec![whole(&y)], [64, 1, 1])).collect();
    batch.push(dispatch("slow", &slow, vec![whole(&y)], [64, 1, 1]));
    let start = std::time::Instant::now();
    device.submit(batch).unwrap();
    block_on(device.0.finish()).unwrap();
    let wall = start.elapsed();
    let times = device.0.take_times();
    let labels: Vec<&str> = times.iter().map(|time| &*time.label).collect();
    assert_eq!(labels, ["quick", "quick", "quick", "quick", "quick", "slow"]);
    let slowest = times[5].time;
    assert!(slowest > std::time::Duration::from_millis(1) && slowest <= wall, "{slowest:?} of {wall:?}");
    assert!(times[..5].iter().all(|time| time.time < slowest), "{times:?}");
    assert!(device.0.take_times().is_empty());
    // More dispatches than one query set holds.
    let batch = (0..3000).map(|_| dispatch("quick", &quick, vec![whole(&y)], [1, 1, 1])).collect();
    device.submit(batch).unwrap();
    block_on(device.0.finish()).unwrap();
    assert_eq!(device.0.take_times().len(), 3000);
}

fn two_threads(found: &Found) {
    let device = found.open();
    let program = device.compile(SAXPY);
    std::thread::scope(|scope| {
        for thread in 0..3_u32 {
            let (device, program) = (&device, &program);
            scope.spawn(move || {
                for round in 0..40_u32 {
                    let count = 100 + 37 * (thread + round) as usize;
                    let (x, y) = (device.buffer("x", &vec![1.0_f32; count]), device.zeros(count as u64 * 4));
                    let factor = (thread * 1000 + round) as f32;
                    let groups = u32::try_from(count.div_ceil(64)).unwrap();
                    device.run(program, vec![uniform(&[factor]), whole(&x), whole(&y)], [groups, 1, 1]).unwrap();
                    assert!(device.read::<f32>(&y).iter().all(|value| *value == factor));
                    if round % 10 == 0 {
                        block_on(device.0.finish()).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(device.0.memory().in_use, 0);
}

fn raw_buffer(found: &Found) {
    let device = found.open();
    let buffer = device.zeros(1000);
    let raw = cantus::backend::wgpu::raw_buffer(&*buffer).expect("is a buffer of wgpu");
    assert!(raw.size() >= 1000 && raw.usage().contains(wgpu::BufferUsages::STORAGE));
    let (own_device, _) = cantus::backend::wgpu::raw_device(&*device.0).expect("is a device of wgpu");
    assert!(own_device.limits().max_buffer_size >= 1000);
}

/// An app's own device: its uncaptured errors stay with its own handler.
fn from_device(found: &Found) {
    let (device, queue) = own_device(found);
    let seen = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = seen.clone();
    device.on_uncaptured_error(Arc::new(move |_| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }));
    let shared = kit::backend::Open(cantus::backend::wgpu::from_device(device.clone(), queue, &OpenOptions::default()));
    assert_eq!(shared.0.info().name, found.info.name);
    let program = shared.compile(ADD_ONE);
    let y = shared.buffer("y", &[1_u32, 2, 3]);
    shared.run(&program, vec![whole(&y)], [1, 1, 1]).unwrap();
    assert_eq!(shared.read::<u32>(&y), [2, 3, 4]);
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 0);
    // An error of the app's own goes to the app.
    let _ = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 16,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::MAP_WRITE,
        mapped_at_creation: false,
    });
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(shared.read::<u32>(&y), [2, 3, 4]);
}

/// A device opened by the test itself, on the same adapter, with wgpu's default limits as far as the adapter has them.
pub fn own_device(found: &Found) -> (wgpu::Device, wgpu::Queue) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapters = block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let name = |adapter: &wgpu::Adapter| adapter.get_info().name;
    let gl = found.is_gl();
    let adapter = adapters
        .into_iter()
        .find(|adapter| {
            (adapter.get_info().backend == wgpu::Backend::Gl) == gl && found.info.name.starts_with(&name(adapter))
        })
        .expect("the adapter is still there");
    let limits = wgpu::Limits::downlevel_defaults().using_resolution(adapter.limits());
    let descriptor = wgpu::DeviceDescriptor { required_limits: limits, ..wgpu::DeviceDescriptor::default() };
    block_on(adapter.request_device(&descriptor)).expect("opens")
}

fn prepared_kernel(found: &Found) {
    let device = found.open();
    let kernel = cantus::Kernel::from_wgsl(ADD_ONE).unwrap();
    let prepared = cantus::Kernel::from_prepared(&kernel.prepare().unwrap()).unwrap();
    let program = block_on(device.0.compile(&prepared)).unwrap();
    let y = device.buffer("y", &[41_u32]);
    device.run(&program, vec![whole(&y)], [1, 1, 1]).unwrap();
    assert_eq!(device.read::<u32>(&y), [42]);
    // It is amended like any other.
    let text = "
        @group(0) @binding(0) var<storage> x: array<vec4u>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn last() { var i = 4u; y[0] = x[0][i]; }";
    let prepared = cantus::Kernel::from_wgsl(text).unwrap().prepare().unwrap();
    let program = block_on(device.0.compile(&cantus::Kernel::from_prepared(&prepared).unwrap())).unwrap();
    let x = device.buffer("x", &[1_u32, 2, 3, 4]);
    device.run(&program, vec![whole(&x), whole(&y)], [1, 1, 1]).unwrap();
    assert_eq!(device.read::<u32>(&y), [4]);
}
