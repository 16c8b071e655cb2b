//! The basics of every device: memory, transfers, batches, times.

use std::sync::Arc;

use cantus::backend::{Buffer, Command, Contents, OpenOptions};
use pollster::block_on;

use crate::Case;
use crate::support::Found;
use kit::backend::{dispatch, uniform, whole};
use kit::harness::not_run;

pub const CASES: &[Case] = &[
    ("memory is zeroed, also when it was used before", zeroed),
    ("bytes come back from any place", bytes_anywhere),
    ("a write waits for the work before it", write_after_work),
    ("a large write goes through the ring", large_write),
    ("a chain of dependent dispatches", chain),
    ("dispatches and copies that overlap in part", mixed_hazards),
    ("more uniforms than the ring holds", many_uniforms),
    ("a uniform may be a tensor", uniform_tensor),
    ("more workgroups than one dimension holds", folded),
    ("a kernel without bindings", no_bindings),
    ("times by the device's clock", times),
    ("figures, pool and trim", figures),
    ("several threads at once", threads),
];

const STEP: &str = "
    @group(0) @binding(3) var<uniform> add: u32;
    @group(1) @binding(0) var<storage, read> x: array<u32>;
    @group(2) @binding(7) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = x[id.x] * 3u + add; }";

const IN_PLACE: &str = "
    @group(0) @binding(0) var<uniform> add: u32;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) { if id.x < arrayLength(&y) { y[id.x] = y[id.x] * 3u + add; } }";

fn zeroed(found: &Found) {
    let device = found.open();
    for bytes in [1_u64, 3, 4, 100, 4096, 70_001, 3 << 20] {
        let buffer = device.zeros(bytes);
        assert!(device.read::<u8>(&buffer).iter().all(|&byte| byte == 0), "{bytes} bytes, fresh");
        device.write(&buffer, 0, &vec![0xab_u8; usize::try_from(bytes).unwrap()]);
        drop(buffer);
        let again = device.zeros(bytes);
        assert!(device.read::<u8>(&again).iter().all(|&byte| byte == 0), "{bytes} bytes, used before");
    }
    assert!(device.0.memory().reuses >= 7);
}

fn bytes_anywhere(found: &Found) {
    let device = found.open();
    let mut expected: Vec<u8> = (0..10_007_u32).map(|i| (i * 31 % 251) as u8).collect();
    let buffer = device.buffer("bytes", &expected);
    for (start, length) in [(0, 1), (1, 2), (3, 5), (4096, 1), (9_999, 8), (17, 4_000)] {
        let patch: Vec<u8> = (0..length).map(|i| (i * 7 + start) as u8).collect();
        device.write(&buffer, start as u64, &patch);
        expected[start..start + length].copy_from_slice(&patch);
        let mut part = vec![0; length + 1];
        let from = start.saturating_sub(1);
        block_on(device.0.read(&buffer, from as u64, &mut part)).unwrap();
        assert_eq!(part, expected[from..from + length + 1]);
    }
    assert_eq!(device.read::<u8>(&buffer), expected);
}

fn write_after_work(found: &Found) {
    let device = found.open();
    let program = device.compile(STEP);
    let (x, y) = (device.buffer("x", &vec![1_u32; 1 << 16]), device.zeros(4 << 16));
    for round in 0..20_u32 {
        // The dispatch must read what stood there before the write that follows it.
        device.write(&x, 0, &vec![round; 1 << 16]);
        device.run(&program, vec![uniform(&[5_u32]), whole(&x), whole(&y)], [1 << 10, 1, 1]).unwrap();
        device.write(&x, 0, &vec![u32::MAX; 1 << 16]);
        assert!(device.read::<u32>(&y).iter().all(|&value| value == round * 3 + 5), "round {round}");
    }
}

fn large_write(found: &Found) {
    let device = found.open();
    let program = device.compile(STEP);
    let count = 12 << 20;
    let (x, y) = (device.zeros(count * 4), device.zeros(count * 4));
    for round in 1..4_u32 {
        // In use when it is written: what the host cannot write directly goes by the ring.
        let workgroups = [65_535, 1, 1];
        device.run(&program, vec![uniform(&[round]), whole(&x), whole(&y)], workgroups).unwrap();
        let values: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(round)).collect();
        device.write(&x, 0, &values);
        assert_eq!(device.read::<u32>(&x), values);
    }
}

fn chain(found: &Found) {
    let device = found.open();
    let program = device.compile(STEP);
    let (x, y) = (device.buffer("x", &[1_u32; 64]), device.buffer("y", &[0_u32; 64]));
    let mut batch = Vec::new();
    let mut expected = 1_u32;
    for index in 0..2000_u32 {
        let (from, to) = if index % 2 == 0 { (&x, &y) } else { (&y, &x) };
        batch.push(dispatch("step", &program, vec![uniform(&[index]), whole(from), whole(to)], [1, 1, 1]));
        expected = expected.wrapping_mul(3).wrapping_add(index);
    }
    device.submit(batch).unwrap();
    assert_eq!(device.read::<u32>(&x), [expected; 64]);
}

fn mixed_hazards(found: &Found) {
    let device = found.open();
    let program = device.compile(IN_PLACE);
    let buffers: Vec<Arc<dyn Buffer>> = (0..100_u32).map(|i| device.buffer("b", &[i; 64])).collect();
    let mut model: Vec<u32> = (0..100).collect();
    let mut state = 12_345_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    for _ in 0..20 {
        let mut batch = Vec::new();
        for _ in 0..200 {
            let (one, other) = (random(100) as usize, random(100) as usize);
            if one == other || random(2) == 0 {
                let add = random(1000);
                batch.push(dispatch("in place", &program, vec![uniform(&[add]), whole(&buffers[one])], [1, 1, 1]));
                model[one] = model[one].wrapping_mul(3).wrapping_add(add);
            } else {
                let (source, target) = (buffers[one].clone(), buffers[other].clone());
                batch.push(Command::Copy { source, source_offset: 0, target, target_offset: 0, bytes: 256 });
                model[other] = model[one];
            }
        }
        device.submit(batch).unwrap();
    }
    for (buffer, expected) in buffers.iter().zip(model) {
        assert_eq!(device.read::<u32>(buffer), [expected; 64]);
    }
}

fn many_uniforms(found: &Found) {
    const WIDE: &str = "
        @group(0) @binding(0) var<uniform> table: array<vec4u, 1024>;
        @group(0) @binding(1) var<storage, read_write> sum: array<u32>;
        @compute @workgroup_size(1) fn main() { sum[0] += table[1023].w; sum[1] += table[0].x; }";
    let device = found.open();
    let program = device.compile(WIDE);
    let sum = device.zeros(8);
    for _ in 0..3 {
        let batch = (0..2000_u32).map(|index| {
            let mut table = vec![0_u32; 4096];
            (table[0], table[4095]) = (index, 1);
            dispatch("wide", &program, vec![uniform(&table), whole(&sum)], [1, 1, 1])
        });
        device.submit(batch.collect()).unwrap();
    }
    assert_eq!(device.read::<u32>(&sum), [6000, 3 * 1999 * 1000]);
}

fn uniform_tensor(found: &Found) {
    let device = found.open();
    let program = device.compile(STEP);
    let (x, y) = (device.buffer("x", &[2_u32; 64]), device.zeros(256));
    for add in [7_u32, 8] {
        let tensor = device.buffer("add", &[add]);
        device.run(&program, vec![whole(&tensor), whole(&x), whole(&y)], [1, 1, 1]).unwrap();
        assert_eq!(device.read::<u32>(&y), [6 + add; 64]);
    }
}

fn folded(found: &Found) {
    const IDS: &str = "
        @group(0) @binding(0) var<storage, read_write> seen: array<atomic<u32>>;
        @group(0) @binding(1) var<uniform> width: u32;
        @compute @workgroup_size(1)
        fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) counts: vec3u) {
            if counts.x == width { atomicAdd(&seen[group.y * width + group.x], group.x + 1u); }
        }";
    let device = found.open();
    let program = device.compile(IDS);
    let limit = found.info.capabilities.limits.workgroups_per_dimension;
    if limit > 1 << 20 {
        not_run("one dimension holds more than a test should run");
    }
    for (width, height) in [(limit + 5, 1), (limit, 1), (3, limit + 1)] {
        let seen = device.zeros(u64::from(width) * u64::from(height) * 4);
        device.run(&program, vec![whole(&seen), uniform(&[width])], [width, height, 1]).unwrap();
        let values = device.read::<u32>(&seen);
        assert!(values.iter().enumerate().all(|(place, &value)| value == place as u32 % width + 1), "{width}");
    }
}

fn no_bindings(found: &Found) {
    let device = found.open();
    let program = device.compile("@compute @workgroup_size(1) fn main() {}");
    device.run(&program, Vec::new(), [3, 1, 1]).unwrap();
    block_on(device.0.finish()).unwrap();
}

fn times(found: &Found) {
    if !found.info.capabilities.timestamps {
        not_run("the device has no timestamps");
    }
    let device = found.open_with(&OpenOptions::new().profile(true));
    let program = device.compile(IN_PLACE);
    let (small, large) = (device.zeros(256), device.zeros(64 << 20));
    let batch = vec![
        dispatch("small", &program, vec![uniform(&[1_u32]), whole(&small)], [1, 1, 1]),
        dispatch("large", &program, vec![uniform(&[1_u32]), whole(&large)], [65_535, 1, 1]),
    ];
    // By a recording too: replays are timed like submissions.
    let recording = device.record(&batch);
    device.submit(batch).unwrap();
    device.replay(&recording).unwrap();
    block_on(device.0.finish()).unwrap();
    let times = device.0.take_times();
    let labels: Vec<&str> = times.iter().map(|time| &*time.label).collect();
    assert_eq!(labels, ["small", "large", "small", "large"]);
    // The quicker of two: a busy machine holds up one now and then.
    let least = |at: usize| times[at].time.min(times[at + 2].time);
    assert!(least(1) > least(0) && least(1).as_secs() < 60, "{times:?}");
    assert!(device.0.take_times().is_empty());
}

fn figures(found: &Found) {
    let device = found.open_with(&OpenOptions::new().memory_limit(1 << 20));
    let first = device.zeros(640 << 10);
    assert_eq!(device.0.memory().in_use, 640 << 10);
    let refused = block_on(device.0.allocate(640 << 10, Contents::Zeroed, "too much"));
    assert!(matches!(refused.err(), Some(cantus::Error::MemoryLimit { .. })));
    drop(first);
    assert_eq!((device.0.memory().in_use, device.0.memory().pooled), (0, 640 << 10));
    // Of another size: the pooled one makes room.
    let second = device.zeros(704 << 10);
    assert_eq!(device.0.memory().pooled, 0);
    drop(second);
    device.0.trim();
    let figures = device.0.memory();
    assert_eq!((figures.in_use, figures.pooled, figures.allocations, figures.reuses), (0, 0, 2, 0));
    assert!(device.read::<u8>(&device.zeros(100)).iter().all(|&byte| byte == 0));
}

fn threads(found: &Found) {
    let device = found.open();
    let program = device.compile(IN_PLACE);
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let (device, program) = (&device, &program);
            scope.spawn(move || {
                for round in 0..50_u32 {
                    let start = thread * 1000 + round;
                    let y = device.buffer("y", &vec![start; 1000 + round as usize]);
                    for _ in 0..3 {
                        device.run(program, vec![uniform(&[thread]), whole(&y)], [17, 1, 1]).unwrap();
                    }
                    let expected = ((start * 3 + thread) * 3 + thread) * 3 + thread;
                    assert!(device.read::<u32>(&y).iter().all(|&value| value == expected));
                }
            });
        }
    });
}
