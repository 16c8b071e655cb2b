//! Many submissions, threads, and objects that are dropped early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wgpu::Features;

use super::{Gpu, both};

const STEP: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = x[id.x] * 3 + id.x; }";

fn stepped(count: u32) -> Vec<u32> {
    (0..256_u32).map(|id| (0..count).fold(0, |x: u32, _| x.wrapping_mul(3).wrapping_add(id))).collect()
}

#[test]
fn many_submissions_run_in_order() {
    both("many submissions", Features::empty(), &stepped(500), |gpu| {
        let (pipeline, x) = (gpu.pipeline(STEP, &[]), gpu.buffer(&[0; 256]));
        (0..500).for_each(|_| gpu.run(&pipeline, &[x.as_entire_binding()], [4, 1, 1]));
        gpu.words(&x)
    });
}

/// Everything is dropped or destroyed as soon as it was used: what runs still has it.
#[test]
fn objects_may_go_early() {
    both("objects that go early", Features::empty(), &stepped(1), |gpu| {
        let kept = gpu.buffer(&[0; 256]);
        for round in 0..50 {
            let x = gpu.buffer(&[0; 256]);
            let mut encoder = gpu.encoder();
            {
                let pipeline = gpu.pipeline(STEP, &[]);
                let group = gpu.group(&pipeline, &[x.as_entire_binding()]);
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                pass.set_pipeline(&pipeline);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(4, 1, 1);
            }
            encoder.copy_buffer_to_buffer(&x, 0, &kept, 0, 1024);
            let commands = encoder.finish();
            if round % 3 == 0 {
                drop(x);
                gpu.queue.submit([commands]);
            } else {
                gpu.queue.submit([commands]);
                x.destroy();
            }
            // An encoder that is never finished.
            drop(gpu.encoder());
        }
        gpu.words(&kept)
    });
}

#[test]
fn work_that_is_done_is_reported() {
    let gpu = Gpu::ours(Features::empty());
    let (pipeline, x) = (gpu.pipeline(STEP, &[]), gpu.buffer(&[0; 256]));
    let done = Arc::new(AtomicU32::new(0));
    for _ in 0..10 {
        gpu.run(&pipeline, &[x.as_entire_binding()], [4, 1, 1]);
        let counted = done.clone();
        gpu.queue.on_submitted_work_done(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
    }
    // By asking again and again, without waiting.
    let start = std::time::Instant::now();
    while done.load(Ordering::SeqCst) < 10 && start.elapsed().as_secs() < 60 {
        gpu.device.poll(wgpu::PollType::Poll).unwrap();
        std::thread::yield_now();
    }
    assert_eq!(done.load(Ordering::SeqCst), 10);
    assert_eq!(gpu.words(&x), stepped(10));
}

/// The queue and the device go while work is under way, and the mapping outlives both.
#[test]
fn a_device_may_go_while_work_runs() {
    for _ in 0..10 {
        let gpu = Gpu::ours(Features::empty());
        let (pipeline, x) = (gpu.pipeline(STEP, &[]), gpu.buffer(&[0; 256]));
        (0..20).for_each(|_| gpu.run(&pipeline, &[x.as_entire_binding()], [4, 1, 1]));
        let Gpu { device, queue, .. } = gpu;
        drop(queue);
        device.destroy();
        drop((device, pipeline, x));
    }
}

#[test]
fn threads_share_a_device() {
    let gpu = Gpu::ours(Features::empty());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (pipeline, x) = (gpu.pipeline(STEP, &[]), gpu.buffer(&[0; 256]));
                (0..50).for_each(|_| gpu.run(&pipeline, &[x.as_entire_binding()], [4, 1, 1]));
                assert_eq!(gpu.words(&x), stepped(50));
            });
        }
    });
}

/// Devices of one process share nothing.
#[test]
fn devices_stand_side_by_side() {
    let all: Vec<Gpu> = (0..4).map(|_| Gpu::ours(Features::empty())).collect();
    let made: Vec<_> = all.iter().map(|gpu| (gpu.pipeline(STEP, &[]), gpu.buffer(&[0; 256]))).collect();
    for round in 0..20 {
        for (gpu, (pipeline, x)) in all.iter().zip(&made).skip(round % 2) {
            gpu.run(pipeline, &[x.as_entire_binding()], [4, 1, 1]);
        }
    }
    for (place, (gpu, (_, x))) in all.iter().zip(&made).enumerate() {
        assert_eq!(gpu.words(x), stepped(if place == 0 { 10 } else { 20 }));
    }
}
