//! Misuse, limits, and devices at their end.

use std::time::Duration;

use cantus::Error;
use cantus::backend::{Backend, Command, Contents, OpenOptions};
use pollster::block_on;

use crate::Case;
use crate::support::Found;
use kit::backend::{assert_says, uniform, whole};

pub const CASES: &[Case] = &[
    ("a device that there is not", no_such_device),
    ("what belongs to another device is refused", foreign),
    ("ranges outside of a buffer are refused", ranges),
    ("bindings that do not fit are refused", bindings),
    ("a buffer larger than the device's memory", too_large),
    ("a kernel that the device cannot run", cannot_run),
    ("the time limit ends in an error, and the device counts as lost", time_limit),
    ("a device dropped with work in flight", dropped_in_flight),
    ("a read that is abandoned", abandoned_read),
];

const LONG: &str = "
    @group(0) @binding(0) var<uniform> rounds: u32;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        var value = id.x;
        for (var i = 0u; i < rounds; i++) { value = value * 1664525u + 1013904223u; }
        y[id.x % arrayLength(&y)] = value;
    }";

fn no_such_device(found: &Found) {
    let result = block_on(found.backend.open(99, &OpenOptions::default())).map(|_| ());
    let error = assert_says(result, &["vulkan device 99", "number"]);
    assert!(matches!(error, Error::NoDevice { .. }));
}

fn foreign(found: &Found) {
    let (device, other) = (found.open(), found.open());
    let (program, theirs) = (device.compile(LONG), other.compile(LONG));
    let (y, their_y) = (device.zeros(256), other.zeros(256));
    assert_says(device.run(&theirs, vec![uniform(&[1_u32]), whole(&y)], [1, 1, 1]), &["another device"]);
    assert_says(device.run(&program, vec![uniform(&[1_u32]), whole(&their_y)], [1, 1, 1]), &["another device"]);
    assert_says(block_on(device.0.write(&their_y, 0, &[1])), &["another device"]);
    assert_says(device.try_read::<u8>(&their_y), &["another device"]);
    let copy = Command::Copy { source: their_y, source_offset: 0, target: y, target_offset: 0, bytes: 4 };
    assert_says(device.submit(vec![copy]), &["another device"]);
}

fn ranges(found: &Found) {
    let device = found.open();
    let (x, y) = (device.zeros(10), device.zeros(256));
    assert_says(block_on(device.0.write(&x, 8, &[1, 2, 3])), &["writing zeros", "within its 10 bytes"]);
    assert_says(block_on(device.0.write(&x, u64::MAX, &[1])), &["writing zeros"]);
    assert_says(block_on(device.0.read(&x, 11, &mut [0])), &["reading zeros"]);
    let copy = |source_offset, target_offset, bytes| {
        let (source, target) = (x.clone(), y.clone());
        device.submit(vec![Command::Copy { source, source_offset, target, target_offset, bytes }])
    };
    copy(0, 0, 12).unwrap();
    copy(0, 4, 0).unwrap();
    assert_says(copy(0, 2, 4), &["multiples of 4"]);
    assert_says(copy(4, 0, 12), &["exceed a buffer"]);
    assert_says(copy(0, u64::MAX - 3, 8), &["exceed a buffer"]);
    let (source, target) = (y.clone(), y.clone());
    let own = Command::Copy { source, source_offset: 0, target, target_offset: 128, bytes: 4 };
    assert_says(device.submit(vec![own]), &["the same buffer"]);
}

fn bindings(found: &Found) {
    let device = found.open();
    let program = device.compile(LONG);
    let y = device.zeros(256);
    let run = |bindings| device.run(&program, bindings, [1, 1, 1]);
    assert_says(run(vec![uniform(&[1_u32])]), &["1 bindings", "has 2"]);
    assert_says(run(vec![uniform(&[1_u32, 2]), whole(&y)]), &["rounds", "8 bytes"]);
    assert_says(run(vec![uniform(&[1_u32]), uniform(&[1_u32])]), &["\"y\"", "storage"]);
    let part = |offset, bytes| cantus::backend::Bound::Buffer { buffer: y.clone(), offset, bytes };
    assert_says(run(vec![uniform(&[1_u32]), part(0, 2)]), &["\"y\"", "at least"]);
    assert_says(run(vec![uniform(&[1_u32]), part(2, 4)]), &["\"y\"", "multiple of"]);
    assert_says(run(vec![uniform(&[1_u32]), part(0, 260)]), &["\"y\"", "do not lie within"]);
    let large = found.info.capabilities.limits.storage_binding_bytes + 4;
    if large < 256 << 20 {
        let y = device.zeros(large);
        assert_says(run(vec![uniform(&[1_u32]), whole(&y)]), &["\"y\"", "smaller tiles"]);
    }
    let many = device.0.check_workgroups(&*program, "many", [u32::MAX, 1, 1]);
    assert_says(many, &["many", "global_invocation_id"]);
}

fn too_large(found: &Found) {
    let device = found.open();
    let largest = found.info.capabilities.limits.buffer_bytes;
    let result = block_on(device.0.allocate(largest + 1, Contents::Overwritten, "giant")).map(|_| ());
    assert!(matches!(assert_says(result, &["giant", "one buffer"]), Error::OutOfMemory { .. }));
    let result = block_on(device.0.allocate(0, Contents::Zeroed, "empty")).map(|_| ());
    assert_says(result, &["empty"]);
    // Nothing of it is counted, and the device goes on.
    assert_eq!(device.0.memory().in_use, 0);
    assert_eq!(device.read::<u8>(&device.zeros(4)), [0; 4]);
}

fn cannot_run(found: &Found) {
    let device = found.open();
    let most = found.info.capabilities.limits.workgroup_invocations;
    let kernel = format!("override n: u32 = {}; @compute @workgroup_size(n) fn main() {{}}", most * 2);
    let error = assert_says(device.try_compile(&kernel).map(|_| ()), &["invocations", &most.to_string()]);
    assert!(matches!(error, Error::Unsupported { .. }) && error.is_device_fault());
    let bytes = found.info.capabilities.limits.workgroup_bytes;
    let kernel = format!(
        "var<workgroup> w: array<u32, {}>; @compute @workgroup_size(1) fn main() {{ w[0] = 1; }}",
        bytes / 4 + 64
    );
    assert_says(device.try_compile(&kernel).map(|_| ()), &["workgroup memory"]);
}

fn time_limit(found: &Found) {
    let limit = Duration::from_millis(200);
    let device = found.open_with(&OpenOptions::new().timeout(limit));
    let program = device.compile(LONG);
    let y = device.zeros(64 * 4 * 4);
    // Within the limit.
    device.run(&program, vec![uniform(&[1000_u32]), whole(&y)], [4, 1, 1]).unwrap();
    assert_eq!(device.read::<u32>(&y).len(), 256);
    // Far beyond it. Software drivers may block in the submission: wherever the time goes, the limit is noticed.
    let result = device.run(&program, vec![uniform(&[60_000_u32]), whole(&y)], [1000, 1, 1]);
    let result = result.and_then(|()| device.try_read::<u32>(&y).map(|_| ()));
    let error = assert_says(result, &["200 ms", &found.info.name, "Builder::timeout"]);
    assert!(matches!(error, Error::Timeout { .. }));
    // From here on it is lost.
    let error = assert_says(device.try_read::<u32>(&y), &["lost", "time limit"]);
    assert!(matches!(error, Error::DeviceLost { .. }));
    assert!(device.try_compile(LONG).is_err());
}

fn dropped_in_flight(found: &Found) {
    let device = found.open();
    let program = device.compile(LONG);
    let y = device.zeros(64 * 64 * 4);
    device.run(&program, vec![uniform(&[60_000_u32]), whole(&y)], [200, 1, 1]).unwrap();
    drop((program, y, device));
}

fn abandoned_read(found: &Found) {
    let device = found.open();
    let program = device.compile(LONG);
    let y = device.zeros(64 * 64 * 4);
    device.run(&program, vec![uniform(&[60_000_u32]), whole(&y)], [200, 1, 1]).unwrap();
    let mut bytes = vec![0; 64 * 64 * 4];
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut reading = device.0.read(&y, 0, &mut bytes);
    let _ = reading.as_mut().poll(&mut context);
    drop(reading);
    device.write(&y, 0, &[3_u32; 64]);
    assert_eq!(device.read::<u32>(&y)[..64], [3; 64]);
}
