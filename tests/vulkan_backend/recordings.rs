//! Batches recorded once and replayed.

use std::sync::Arc;

use cantus::backend::cpu::CpuBackend;
use cantus::backend::{Backend, CancelFlag, Command, OpenOptions, Recording};
use cantus::{Error, Kernel};
use pollster::block_on;

use crate::Case;
use crate::support::Found;
use kit::backend::{Open, assert_says, dispatch, uniform, whole};

pub const CASES: &[Case] = &[
    ("a recording replayed 1000 times", thousand),
    ("a replay sees what was written before it", writes_between),
    ("replays and submissions keep their order", mixed),
    ("a recording keeps alive what it uses", kept_alive),
    ("a recording dropped in flight", dropped_in_flight),
    ("a recording of nothing", nothing),
    ("a recording is checked when it is made", checked),
    ("a recording of another device", foreign),
    ("a raised cancel flag stops a replay", cancelled),
];

const STEP: &str = "
    @group(0) @binding(0) var<uniform> add: u32;
    @group(0) @binding(1) var<storage, read> x: array<u32>;
    @group(0) @binding(2) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = y[id.x] * 5u + x[id.x] + add; }";

fn thousand(found: &Found) {
    run_thousand(&found.open());
    // The way of a device that has none of its own.
    run_thousand(&Open(block_on(CpuBackend::new().open(0, &OpenOptions::default())).expect("opens")));
}

fn run_thousand(device: &Open) {
    let program = device.compile(STEP);
    let x = device.buffer("x", &(0..128).collect::<Vec<u32>>());
    let (y, z) = (device.zeros(512), device.zeros(512));
    let batch = vec![
        dispatch("first", &program, vec![uniform(&[3_u32]), whole(&x), whole(&y)], [2, 1, 1]),
        Command::Copy { source: y.clone(), source_offset: 0, target: z.clone(), target_offset: 256, bytes: 256 },
        dispatch("second", &program, vec![uniform(&[4_u32]), whole(&z), whole(&y)], [2, 1, 1]),
    ];
    let recording = device.record(&batch);
    assert!(device.read::<u32>(&y).iter().all(|&value| value == 0), "recording runs nothing");
    let (mut model_y, mut model_z) = (vec![0_u32; 128], vec![0_u32; 128]);
    for _ in 0..1000 {
        device.replay(&recording).unwrap();
        for (i, y) in model_y.iter_mut().enumerate() {
            *y = y.wrapping_mul(5).wrapping_add(i as u32).wrapping_add(3);
        }
        model_z[64..].copy_from_slice(&model_y[..64]);
        for (y, z) in model_y.iter_mut().zip(&model_z) {
            *y = y.wrapping_mul(5).wrapping_add(*z).wrapping_add(4);
        }
    }
    assert_eq!(device.read::<u32>(&y), model_y);
    assert_eq!(device.read::<u32>(&z), model_z);
}

fn writes_between(found: &Found) {
    let device = found.open();
    let program = device.compile(STEP);
    let (x, y) = (device.zeros(256), device.zeros(256));
    let recording =
        device.record(&[dispatch("step", &program, vec![uniform(&[1_u32]), whole(&x), whole(&y)], [1, 1, 1])]);
    let mut expected = 0_u32;
    for round in 0..100_u32 {
        device.write(&x, 0, &[round * 7; 64]);
        device.replay(&recording).unwrap();
        // Not seen by the replay that is ahead of it.
        device.write(&x, 0, &[u32::MAX; 64]);
        expected = expected.wrapping_mul(5).wrapping_add(round * 7 + 1);
        if round % 10 == 0 {
            assert_eq!(device.read::<u32>(&y), [expected; 64]);
        }
    }
    assert_eq!(device.read::<u32>(&y), [expected; 64]);
}

fn mixed(found: &Found) {
    let device = found.open();
    let program = device.compile(STEP);
    let (x, y) = (device.buffer("x", &[2_u32; 64]), device.zeros(256));
    let step = |add: u32| dispatch("step", &program, vec![uniform(&[add]), whole(&x), whole(&y)], [1, 1, 1]);
    let recordings: Vec<Arc<dyn Recording>> = (0..3).map(|add| device.record(&[step(add)])).collect();
    let mut expected = 0_u32;
    for round in 0..300_u32 {
        let add = round % 7;
        match recordings.get(add as usize) {
            Some(recording) => device.replay(recording).unwrap(),
            None => device.submit(vec![step(add)]).unwrap(),
        }
        expected = expected.wrapping_mul(5).wrapping_add(2 + add);
    }
    assert_eq!(device.read::<u32>(&y), [expected; 64]);
}

fn kept_alive(found: &Found) {
    let device = found.open();
    let (x, y) = (device.buffer("x", &[2_u32; 64]), device.zeros(256));
    let recording = {
        let program = device.compile(STEP);
        device.record(&[dispatch("step", &program, vec![uniform(&[9_u32]), whole(&x), whole(&y)], [1, 1, 1])])
    };
    drop(x);
    device.0.trim();
    // What would take the memory of `x` if it were free.
    let others: Vec<_> = (0..20).map(|_| device.buffer("other", &[u32::MAX; 64])).collect();
    device.replay(&recording).unwrap();
    assert_eq!(device.read::<u32>(&y), [11; 64]);
    assert!(others.iter().all(|other| device.read::<u32>(other) == [u32::MAX; 64]));
}

fn dropped_in_flight(found: &Found) {
    let device = found.open();
    let program = device.compile(STEP);
    let (x, y) = (device.buffer("x", &vec![1_u32; 1 << 20]), device.zeros(4 << 20));
    let mut expected = 0_u32;
    for _ in 0..20 {
        let all = vec![uniform(&[1_u32]), whole(&x), whole(&y)];
        let recording = device.record(&[dispatch("step", &program, all, [1 << 14, 1, 1])]);
        device.replay(&recording).unwrap();
        device.replay(&recording).unwrap();
        drop(recording);
        expected = (expected.wrapping_mul(5).wrapping_add(2)).wrapping_mul(5).wrapping_add(2);
    }
    assert!(device.read::<u32>(&y).iter().all(|&value| value == expected));
}

fn nothing(found: &Found) {
    let device = found.open();
    let recording = device.record(&[]);
    device.replay(&recording).unwrap();
    block_on(device.0.finish()).unwrap();
}

fn checked(found: &Found) {
    let device = found.open();
    let program = device.compile(STEP);
    let (x, y) = (device.zeros(256), device.zeros(256));
    let same = vec![uniform(&[1_u32]), whole(&y), whole(&y)];
    let result = block_on(device.0.record(&[dispatch("both", &program, same, [1, 1, 1])]));
    assert_says(result.map(|_| ()), &["both", "bind a copy"]);
    let short = vec![uniform(&[1_u32]), whole(&x)];
    let result = block_on(device.0.record(&[dispatch("short", &program, short, [1, 1, 1])]));
    assert_says(result.map(|_| ()), &["2 bindings", "has 3"]);
}

fn foreign(found: &Found) {
    let (device, other) = (found.open(), found.open());
    let recording = other.record(&[]);
    assert_says(device.replay(&recording), &["another device"]);
    let cpu = Open(block_on(CpuBackend::new().open(0, &OpenOptions::default())).expect("opens"));
    assert_says(cpu.replay(&recording), &["another device"]);
    assert_says(device.replay(&cpu.record(&[])), &["another device"]);
}

fn cancelled(found: &Found) {
    let device = found.open();
    let kernel = Kernel::from_wgsl(STEP).unwrap();
    let program = block_on(device.0.compile(&kernel)).unwrap();
    let (x, y) = (device.zeros(256), device.zeros(256));
    let flag = CancelFlag::new();
    let mut command = dispatch("step", &program, vec![uniform(&[1_u32]), whole(&x), whole(&y)], [1, 1, 1]);
    if let Command::Dispatch(dispatch) = &mut command {
        dispatch.cancel = vec![flag.clone()];
    }
    let recording = device.record(&[command]);
    device.replay(&recording).unwrap();
    flag.cancel();
    assert!(matches!(device.replay(&recording), Err(Error::Cancelled { .. })));
    flag.reset();
    device.replay(&recording).unwrap();
    assert_eq!(device.read::<u32>(&y), [6; 64]);
}
