//! Failures, and their messages.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use cantus::Error;
use cantus::backend::{Backend, CancelFlag, Command, Contents, Dispatch, OpenOptions, Ran};
use pollster::block_on;

use crate::Case;
use crate::basics::own_device;
use crate::support::Found;
use kit::backend::{Open, assert_says, dispatch, uniform, whole};

pub const CASES: &[Case] = &[
    ("same_buffer_twice", same_buffer_twice),
    ("bad_bindings", bad_bindings),
    ("unsupported", unsupported),
    ("another_device", another_device),
    ("no_such_device", no_such_device),
    ("cancelled", cancelled),
    ("destroyed", destroyed),
    ("destroyed_app_device", destroyed_app_device),
    ("time_limit", time_limit),
    ("dropped_in_flight", dropped_in_flight),
    ("woken_tasks_hold_no_lock", woken_tasks_hold_no_lock),
    ("refused_whole", refused_whole),
];

const COPY: &str = "
    @group(0) @binding(0) var<storage> source: array<u32>;
    @group(0) @binding(1) var<storage, read_write> result: array<u32>;
    @compute @workgroup_size(1) fn copy() { result[0] = source[0]; }";

/// Batches that wgpu's own validation refuses: nothing of the batch ran, it comes back, and its sound commands run by
/// themselves.
fn refused_whole(found: &Found) {
    let device = found.open();
    let program = device.compile(COPY);
    drop(device.buffer("dirty", &[7_u32; 64]));
    // Memory of the one before, which has to be cleared.
    let (zeros, source) = (device.zeros(256), device.buffer("source", &[5_u32]));
    let targets =
        [device.buffer("first", &[1_u32]), device.buffer("second", &[1_u32]), device.buffer("third", &[1_u32])];
    let copy = |target| dispatch("copy", &program, vec![whole(&source), whole(target)], [1, 1, 1]);
    cantus::backend::wgpu::raw_buffer(&*targets[1]).expect("is a buffer of wgpu").destroy();
    let refusal = block_on(device.0.submit(targets.iter().map(copy).collect())).expect_err("one buffer is destroyed");
    assert!(refusal.to_string().contains("destroyed"), "{refusal}");
    let Ran::Nothing(batch) = refusal.ran else { panic!("what ran is not known: {:?}", refusal.ran) };
    assert_eq!(batch.len(), 3);
    assert_eq!((device.read::<u32>(&targets[0])[0], device.read::<u32>(&targets[2])[0]), (1, 1));
    assert_eq!(device.read::<u32>(&zeros), [0; 64]);
    let again: Vec<bool> = batch.into_iter().map(|command| block_on(device.0.submit(vec![command])).is_ok()).collect();
    assert_eq!(again, [true, false, true]);
    assert_eq!((device.read::<u32>(&targets[0])[0], device.read::<u32>(&targets[2])[0]), (5, 5));
}

fn same_buffer_twice(found: &Found) {
    let device = found.open();
    let program = device.compile(COPY);
    let buffer = device.buffer("field", &[1_u32; 256]);
    let twice = vec![whole(&buffer), whole(&buffer)];
    let parts = ["copy", "\"result\"", "\"source\"", "field", "bind a copy"];
    assert_says(device.0.check_bindings(&*program, "copy", &twice), &parts);
    let error = assert_says(device.submit(vec![dispatch("copy", &program, twice, [1, 1, 1])]), &parts);
    assert!(matches!(error, Error::Binding { .. }) && error.is_input());
    // Two written ranges: apart is fine, overlapping is not.
    let both = device.compile(
        "@group(0) @binding(0) var<storage, read_write> left: array<u32>;
         @group(0) @binding(1) var<storage, read_write> right: array<u32>;
         @compute @workgroup_size(1) fn both() { left[0] = 2u; right[0] = 3u; }",
    );
    let range = |offset, bytes| cantus::backend::Bound::Buffer { buffer: buffer.clone(), offset, bytes };
    let error = device.submit(vec![dispatch("both", &both, vec![range(0, 512), range(256, 256)], [1, 1, 1])]);
    assert_says(error, &["\"right\"", "\"left\"", "overlaps"]);
    device.run(&both, vec![range(0, 256), range(256, 256)], [1, 1, 1]).unwrap();
    let values: Vec<u32> = device.read(&buffer);
    assert_eq!((values[0], values[64], values[1]), (2, 3, 1));
    // Read twice is fine.
    let sum = device.compile(
        "@group(0) @binding(0) var<storage> a: array<u32>;
         @group(0) @binding(1) var<storage> b: array<u32>;
         @group(0) @binding(2) var<storage, read_write> c: array<u32>;
         @compute @workgroup_size(1) fn sum() { c[0] = a[0] + b[0]; }",
    );
    let result = device.zeros(4);
    device.run(&sum, vec![whole(&buffer), whole(&buffer), whole(&result)], [1, 1, 1]).unwrap();
    assert_eq!(device.read::<u32>(&result), [4]);
}

fn bad_bindings(found: &Found) {
    let device = found.open();
    let program = device.compile(COPY);
    let limits = device.0.info().capabilities.limits;
    let (a, b) = (device.zeros(1024), device.zeros(1024));
    let range = |offset, bytes| cantus::backend::Bound::Buffer { buffer: a.clone(), offset, bytes };
    let check = |bound| device.0.check_bindings(&*program, "copy", &[bound, whole(&b)]);
    assert_says(device.0.check_bindings(&*program, "copy", &[whole(&a)]), &["1 bindings were given", "has 2"]);
    assert_says(check(uniform(&[1_u32])), &["\"source\"", "storage binding"]);
    assert_says(check(range(0, 0)), &["\"source\"", "0 bytes", "takes 4"]);
    assert_says(check(range(0, 1028)), &["\"source\"", "do not lie within"]);
    assert_says(check(range(u64::MAX - 255, 512)), &["do not lie within"]);
    if limits.storage_alignment > 4 {
        assert_says(check(range(4, 512)), &["offset 4", "multiple"]);
    }
    assert_says(check(range(0, limits.storage_binding_bytes + 4)), &["binds", "at most", "tiles"]);
    let params = device.compile(
        "@group(0) @binding(0) var<uniform> params: vec4f;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size(1) fn main() { y[0] = params.x; }",
    );
    let bindings = [uniform(&[1.0_f32; 3]), whole(&b)];
    assert_says(device.0.check_bindings(&*params, "main", &bindings), &["\"params\"", "12 bytes", "vec4<f32>", "16"]);
}

fn unsupported(found: &Found) {
    let device = found.open();
    let limits = device.0.info().capabilities.limits;
    let features = device.0.info().capabilities.features;
    let wide = limits.workgroup_size[0] + 1;
    let error = device.try_compile(&format!("@compute @workgroup_size({wide}) fn wide() {{}}"));
    let error = assert_says(error, &["wide", &found.info.name, "workgroup size", "in x", "invocations"]);
    assert!(matches!(error, Error::Unsupported { .. }) && error.is_device_fault());
    let words = limits.workgroup_bytes / 4 + 4;
    let shared = format!(
        "var<workgroup> tile: array<u32, {words}>;
         @group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(1) fn shared_memory() {{ tile[y[0]] = 1u; y[0] = tile[y[1]]; }}"
    );
    assert_says(device.try_compile(&shared), &["shared_memory", "workgroup memory"]);
    let count = limits.storage_bindings + 1;
    if count < 200 {
        let variables =
            (0..count).map(|i| format!("@group({}) @binding({i}) var<storage, read_write> b{i}: u32;\n", i % 2));
        let stores = (0..count).map(|i| format!("b{i} = 1u;"));
        let text = format!(
            "{} @compute @workgroup_size(1) fn greedy() {{ {} }}",
            variables.collect::<String>(),
            stores.collect::<String>()
        );
        assert_says(device.try_compile(&text), &["greedy", &format!("{count} storage bindings")]);
    }
    let far =
        "@group(60) @binding(0) var<storage, read_write> y: u32; @compute @workgroup_size(1) fn far() { y = 1u; }";
    assert_says(device.try_compile(far), &["far", "bind groups"]);
    let double = "@group(0) @binding(0) var<storage, read_write> y: f64;
                  @compute @workgroup_size(1) fn double() { y = y * 2.0lf; }";
    if features.float64 {
        device.compile(double);
    } else {
        assert_says(device.try_compile(double), &["double", "float64", "lacks"]);
    }
    let matrices = include_str!("../../shaders/answers/cooperative_matrices.wgsl");
    if features.cooperative_matrix && found.info.capabilities.cooperative_matrix {
        device.compile(matrices);
    } else if !features.cooperative_matrix {
        let lack = "the device lacks wgpu's feature EXPERIMENTAL_COOPERATIVE_MATRIX";
        assert_says(device.try_compile(matrices), &["cooperative_matrices", lack]);
    }
}

fn another_device(found: &Found) {
    let (one, other) = (found.open(), found.open());
    let program = one.compile(COPY);
    let (a, b) = (one.zeros(4), other.zeros(4));
    assert_says(one.run(&program, vec![whole(&a), whole(&b)], [1, 1, 1]), &["another device"]);
    assert_says(other.run(&program, vec![whole(&a), whole(&b)], [1, 1, 1]), &["another device"]);
    assert_says(one.try_read::<u32>(&b), &["another device"]);
}

fn no_such_device(found: &Found) {
    let error = block_on(found.backend.open(999, &OpenOptions::default())).map(|_| ());
    assert_says(error, &["wgpu device 999", "number"]);
}

fn cancelled(found: &Found) {
    let device = found.open();
    let program = device.compile(COPY);
    let (a, b) = (device.buffer("a", &[7_u32]), device.zeros(4));
    let cancel = CancelFlag::new();
    let command = |cancel: &CancelFlag| {
        let mut dispatch = Dispatch::new(program.clone(), "copy", vec![whole(&a), whole(&b)], [1, 1, 1]);
        dispatch.cancel = vec![cancel.clone()];
        Command::Dispatch(dispatch)
    };
    cancel.cancel();
    let error = assert_says(device.submit(vec![command(&cancel)]), &["copy", "cancelled"]);
    assert!(matches!(error, Error::Cancelled { .. }));
    assert_eq!(device.read::<u32>(&b), [0]);
    cancel.reset();
    device.submit(vec![command(&cancel)]).unwrap();
    assert_eq!(device.read::<u32>(&b), [7]);
}

/// Every call on a lost device is an error, and none of them hangs.
fn all_lost(device: &Open, program: &Arc<dyn cantus::backend::Program>, found: &Found) {
    let says: [&str; 2] = [&found.info.name, "lost"];
    let lost = |error: Error| assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
    lost(assert_says(block_on(device.0.finish()), &says));
    lost(assert_says(block_on(device.0.allocate(4, Contents::Zeroed, "late")).map(|_| ()), &says));
    lost(assert_says(device.try_compile(COPY).map(|_| ()), &says));
    lost(assert_says(device.submit(vec![dispatch("late", program, Vec::new(), [1, 1, 1])]), &says));
}

fn destroyed(found: &Found) {
    let device = found.open();
    let program = device.compile(COPY);
    let buffer = device.buffer("a", &[7_u32]);
    assert_eq!(device.read::<u32>(&buffer), [7]);
    let (raw, _) = cantus::backend::wgpu::raw_device(&*device.0).unwrap();
    raw.destroy();
    let start = Instant::now();
    assert_says(device.try_read::<u32>(&buffer), &[&found.info.name, "lost"]);
    all_lost(&device, &program, found);
    assert_says(device.try_read::<u32>(&buffer), &["lost"]);
    assert_says(block_on(device.0.write(&buffer, 0, &[0; 4])), &["lost"]);
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// As above for an app's device, whose "lost" callback is not ours.
fn destroyed_app_device(found: &Found) {
    let (raw, queue) = own_device(found);
    let device = Open(cantus::backend::wgpu::from_device(raw.clone(), queue, &OpenOptions::default()));
    let program = device.compile(COPY);
    let (a, b) = (device.buffer("a", &[7_u32]), device.zeros(4));
    raw.destroy();
    let error = device.run(&program, vec![whole(&a), whole(&b)], [1, 1, 1]);
    assert_says(error, &["lost"]);
    assert_says(device.try_read::<u32>(&a), &["lost"]);
    all_lost(&device, &program, found);
}

const LONG: &str = "
    @group(0) @binding(0) var<uniform> rounds: u32;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64) fn long(@builtin(global_invocation_id) id: vec3u) {
        var x = id.x;
        // Many workgroups rather than many rounds: llvmpipe ends an invocation's loops after 65,535 rounds in all.
        for (var i = 0u; i < rounds; i++) { x = x * 1664525u + 1013904223u; }
        y[id.x % 256u] = x;
    }";

fn time_limit(found: &Found) {
    let limit = Duration::from_millis(200);
    let device = found.open_with(&OpenOptions::new().timeout(limit));
    let program = device.compile(LONG);
    let y = device.zeros(64 * 4 * 4);
    // Within the limit.
    device.run(&program, vec![uniform(&[1000_u32]), whole(&y)], [4, 1, 1]).unwrap();
    assert_eq!(device.read::<u32>(&y).len(), 256);
    // Far beyond it.
    // Software drivers may block in the submission, or in the next one: wherever the time goes, the limit is noticed.
    let result = device.run(&program, vec![uniform(&[60_000_u32]), whole(&y)], [1000, 1, 1]);
    let result = result.and_then(|()| device.try_read::<u32>(&y).map(|_| ()));
    let error = assert_says(result, &["200 ms", &found.info.name, "Builder::timeout"]);
    assert!(matches!(error, Error::Timeout { .. }));
    // From here on it is lost.
    let error = assert_says(device.try_read::<u32>(&y), &["lost", "time limit"]);
    assert!(matches!(error, Error::DeviceLost { .. }));
}

fn dropped_in_flight(found: &Found) {
    let device = found.open();
    let program = device.compile(LONG);
    let y = device.zeros(64 * 64 * 4);
    device.run(&program, vec![uniform(&[60_000_u32]), whole(&y)], [200, 1, 1]).unwrap();
    // A read that is begun and abandoned.
    let mut bytes = vec![0; 64 * 64 * 4];
    let mut context = Context::from_waker(Waker::noop());
    let mut reading = device.0.read(&y, 0, &mut bytes);
    let _ = reading.as_mut().poll(&mut context);
    drop(reading);
    drop((program, y, device));
}

/// Computes where it is woken, as an executor does that runs its tasks at once.
struct AtOnce(Open, Mutex<Sender<bool>>);

impl Wake for AtOnce {
    fn wake(self: Arc<Self>) {
        let done = self.0.submit(Vec::new()).is_ok();
        let _ = self.1.lock().unwrap().send(done);
    }
}

fn woken_tasks_hold_no_lock(found: &Found) {
    let device = found.open();
    let program = device.compile(LONG);
    let y = device.zeros(64 * 4 * 4);
    for _ in 0..3 {
        device.run(&program, vec![uniform(&[20_000_u32]), whole(&y)], [64, 1, 1]).unwrap();
        let (sender, woken) = channel();
        let waker = Waker::from(Arc::new(AtOnce(device.clone(), Mutex::new(sender))));
        let mut bytes = vec![0; 64 * 4 * 4];
        let mut reading = device.0.read(&y, 0, &mut bytes);
        if reading.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            assert_eq!(woken.recv_timeout(Duration::from_secs(20)), Ok(true), "it was woken under a lock");
            block_on(reading).unwrap();
        }
    }
}
