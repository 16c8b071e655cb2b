//! Options of the device: the order of workgroups, checked stores, default limits, and a limit of time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cantus_wgpu::{Failure, Options, Order};
use wgpu::Features;

use super::Gpu;

/// A device with options.
fn with(choose: impl FnOnce(&mut Options)) -> Gpu {
    let mut options = Options::default();
    choose(&mut options);
    let instance = cantus_wgpu::instance_with(options);
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
    Gpu::open(&adapter, Features::empty(), true)
}

/// A device with options that says why it is lost, and whether wgpu says so too.
fn watched(choose: impl FnOnce(&mut Options)) -> (Gpu, Receiver<String>, Arc<AtomicBool>) {
    let (told, reasons) = channel();
    let told = Mutex::new(told);
    let gpu = with(|options| {
        options.on_failure = Some(Failure::new(move |reason| told.lock().unwrap().send(reason.to_owned()).unwrap()));
        choose(options);
    });
    let is_lost = Arc::new(AtomicBool::new(false));
    let lost = is_lost.clone();
    gpu.device.set_device_lost_callback(move |_, _| lost.store(true, Ordering::SeqCst));
    (gpu, reasons, is_lost)
}

/// Each workgroup notes its number where the counter stands: the order in which they ran.
const NOTES: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> counter: atomic<u32>;
    @compute @workgroup_size(SIZE) fn main(
        @builtin(workgroup_id) id: vec3u, @builtin(num_workgroups) all: vec3u, @builtin(local_invocation_index) place: u32,
    ) {
        if place == 0 { x[atomicAdd(&counter, 1u)] = (id.z * all.y + id.y) * all.x + id.x; }
    }";

/// A race: the last workgroup to store wins.
const RACE: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) { x[0] = id.x; }";

fn noted(order: Order, size: &str, workgroups: [u32; 3]) -> Vec<u32> {
    let gpu = with(|options| options.order = Some(order));
    let pipeline = gpu.pipeline(&NOTES.replace("SIZE", size), &[]);
    let (x, counter) = (gpu.buffer(&vec![0; workgroups.iter().product::<u32>() as usize]), gpu.buffer(&[0]));
    gpu.run(&pipeline, &[x.as_entire_binding(), counter.as_entire_binding()], workgroups);
    gpu.words(&x)
}

#[test]
fn workgroups_run_in_the_order_that_is_chosen() {
    // Lanes for one workgroup, for many, in rows and in a narrow grid.
    for (size, workgroups) in [("1", [60, 1, 1]), ("64", [5, 4, 3]), ("8, 2", [20, 3, 1]), ("1", [1, 60, 1])] {
        let forward: Vec<u32> = (0..60).collect();
        assert_eq!(noted(Order::Forward, size, workgroups), forward, "{size} {workgroups:?}");
        let reversed: Vec<u32> = (0..60).rev().collect();
        assert_eq!(noted(Order::Reversed, size, workgroups), reversed, "{size} {workgroups:?}");
        let first = noted(Order::Random(1), size, workgroups);
        assert_eq!(noted(Order::Random(1), size, workgroups), first, "{size} {workgroups:?}");
        assert!(first != forward && first != reversed && noted(Order::Random(2), size, workgroups) != first);
        let mut all = first;
        all.sort_unstable();
        assert_eq!(all, forward, "{size} {workgroups:?}");
    }
}

#[test]
fn a_race_gives_another_result_in_another_order() {
    let last = |order| {
        let gpu = with(|options| options.order = Some(order));
        let x = gpu.buffer(&[1000]);
        gpu.run(&gpu.pipeline(RACE, &[]), &[x.as_entire_binding()], [100, 1, 1]);
        gpu.words(&x)
    };
    assert_eq!((last(Order::Forward), last(Order::Reversed)), (vec![99], vec![0]));
    let seeds: std::collections::BTreeSet<_> = (0..20).map(|seed| last(Order::Random(seed))).collect();
    assert!(seeds.len() > 5, "{seeds:?}");
}

#[test]
fn a_store_out_of_range_is_an_error() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> into: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { into[id.x] = 1; }";
    let (gpu, reasons, is_lost) = watched(|options| options.check_stores = true);
    let x = gpu.buffer(&[0; 8]);
    let pipeline = gpu.pipeline(text, &[]);
    gpu.run(&pipeline, &[x.as_entire_binding()], [2, 1, 1]);
    assert_eq!(gpu.words(&x), [1; 8]);
    assert!(reasons.try_recv().is_err());
    // Four stores beyond the end: without the check they would go unseen.
    gpu.run(&pipeline, &[x.as_entire_binding()], [3, 1, 1]);
    let reason = reasons.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(["kernel", "4 stores", "\"into\"", "8 places"].iter().all(|part| reason.contains(part)), "{reason}");
    let place: u32 = reason.split("one is at ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((8..12).contains(&place), "{reason}");
    // wgpu hears of it when it asks for something.
    gpu.queue.submit([]);
    assert!(is_lost.load(Ordering::SeqCst));

    let gpu = Gpu::ours(Features::empty());
    let x = gpu.buffer(&[0; 8]);
    gpu.run(&gpu.pipeline(text, &[]), &[x.as_entire_binding()], [3, 1, 1]);
    assert_eq!(gpu.words(&x), [1; 8]);
}

#[test]
fn an_endless_loop_ends_at_the_limit() {
    let (gpu, reasons, is_lost) = watched(|options| options.time_limit = Some(Duration::from_millis(200)));
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn main() { loop { if x[0] == 1 { break; } } x[0] = 2; }";
    let x = gpu.buffer(&[0; 8]);
    gpu.run(&gpu.pipeline(text, &[]), &[x.as_entire_binding()], [2, 1, 1]);
    let reason = reasons.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(reason.contains("deadline"), "{reason}");
    // wgpu hears of it when it asks for something.
    gpu.queue.submit([]);
    assert!(is_lost.load(Ordering::SeqCst));
}

/// wgpu-core holds locks while it submits: nothing is computed there, and others go on meanwhile.
#[test]
fn submissions_compute_nothing() {
    let (gpu, reasons, _) = watched(|options| options.time_limit = Some(Duration::from_secs(3)));
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn main() { loop { if x[0] == 1 { break; } } x[0] = 2; }";
    let (pipeline, x) = (gpu.pipeline(text, &[]), gpu.buffer(&[0; 8]));
    gpu.run(&pipeline, &[x.as_entire_binding()], [2, 1, 1]);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| drop((gpu.buffer(&[1; 64]), gpu.pipeline(RACE, &[]), gpu.encoder().finish())));
        other.join().unwrap();
    });
    // All of this, before the loop has ended.
    assert!(reasons.try_recv().is_err());
    assert!(reasons.recv_timeout(Duration::from_secs(60)).unwrap().contains("deadline"));
}

#[test]
fn default_limits_are_all_there_is() {
    let mut options = Options::default();
    options.default_limits = true;
    let instance = cantus_wgpu::instance_with(options);
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
    assert_eq!(adapter.limits(), wgpu::Limits::default());
    let required_limits = wgpu::Limits { max_bind_groups: 5, ..wgpu::Limits::default() };
    let descriptor = wgpu::DeviceDescriptor { required_limits, ..wgpu::DeviceDescriptor::default() };
    assert!(pollster::block_on(adapter.request_device(&descriptor)).is_err());
    let gpu = Gpu::open(&adapter, Features::empty(), true);
    let x = gpu.buffer(&[3]);
    gpu.run(&gpu.pipeline(RACE, &[]), &[x.as_entire_binding()], [1, 1, 1]);
    assert_eq!(gpu.words(&x), [0]);
}
