//! Memory that work in flight may still touch, on devices that begin late: whoever releases it, it stays until the work has ended. The
//! validation layers report memory that is freed under the device.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use cantus::Error;
use cantus::backend::{Bound, Buffer, OpenOptions, Program, detached};
use pollster::block_on;

use crate::Case;
use crate::support::{Found, Mode, discrete};
use kit::backend::{Open, assert_says, dispatch, uniform, whole};
use kit::harness::not_run;

pub const CASES: &[Case] = &[
    ("reads that are dropped at their first wait", dropped_reads),
    ("a read that fails beside others", failed_read),
    ("memory given back under a write", trimmed_write),
    ("what a batch uses is dropped behind it", dropped_behind),
    ("a recording dropped while it runs", dropped_recording),
    ("more descriptor sets than are kept, under way", many_sets),
    ("a submission that the driver refuses", refused),
    ("a refused transfer is made up for", refused_transfer),
    ("memory of another type where the best is used up", another_type),
    ("a device that ends after its time limit", late),
    ("a device that never ends", never),
    ("two threads, one writing and one computing", two_threads),
];

const TRIPLE: &str = "
    @group(0) @binding(0) var<uniform> add: u32;
    @group(0) @binding(1) var<storage, read> x: array<u32>;
    @group(0) @binding(2) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] = x[id.x] * 3u + add; }
    }";

/// So late that a hasty caller goes wrong.
const LATE: Duration = Duration::from_millis(60);

/// The device, whose work begins late. Without timeline semaphores nothing is held back.
fn slow(found: &Found, delay: Duration, options: &OpenOptions) -> Open {
    if found.mode == Mode::Fences {
        not_run("work is held back by timeline semaphores");
    }
    let mut emulation = discrete(delay);
    emulation.discrete = found.mode == Mode::Discrete;
    found.open_under(emulation, options)
}

fn triple(device: &Open, program: &Arc<dyn Program>, x: &Arc<dyn Buffer>, y: &Arc<dyn Buffer>) {
    device.run(program, vec![uniform(&[5_u32]), whole(x), whole(y)], [16, 1, 1]).unwrap();
}

fn poll_once<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send + '_>>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn dropped_reads(found: &Found) {
    let device = slow(found, LATE, &OpenOptions::default());
    let program = device.compile(TRIPLE);
    let (x, y) = (device.buffer("x", &[7_u32; 1024]), device.zeros(4096));
    for round in 0..4 {
        triple(&device, &program, &x, &y);
        // Several at once, as of many tensors, each dropped while it waits.
        let mut into = vec![vec![0_u8; 4096]; 3];
        let mut reads: Vec<_> = into.iter_mut().map(|into| device.0.read(&y, 0, into)).collect();
        let ready: Vec<bool> = reads.iter_mut().map(poll_once).collect();
        assert!(round > 0 || ready.iter().all(|ready| !ready), "the device was not slow");
        drop(reads);
        drop(into);
    }
    assert_eq!(device.read::<u32>(&y), [26; 1024]);
}

fn failed_read(found: &Found) {
    let device = slow(found, LATE, &OpenOptions::default());
    let program = device.compile(TRIPLE);
    let (x, y) = (device.buffer("x", &[7_u32; 1024]), device.zeros(4096));
    triple(&device, &program, &x, &y);
    let (mut good, mut bad) = (vec![0_u8; 4096], vec![0_u8; 5000]);
    let mut waiting = device.0.read(&y, 0, &mut good);
    assert!(!poll_once(&mut waiting), "the device was not slow");
    assert_says(block_on(device.0.read(&y, 0, &mut bad)), &["reading zeros"]);
    drop(waiting);
    drop((good, bad));
    device.0.trim();
    assert_eq!(device.read::<u32>(&y), [26; 1024]);
}

fn trimmed_write(found: &Found) {
    let device = slow(found, LATE, &OpenOptions::default());
    let program = device.compile(TRIPLE);
    let (x, y) = (device.zeros(4096), device.zeros(4096));
    triple(&device, &program, &x, &y);
    // In use, so it goes through the ring, ahead of the next submission.
    device.write(&x, 0, &[2_u32; 1024]);
    device.0.trim();
    triple(&device, &program, &x, &y);
    device.0.trim();
    device.write(&x, 0, &[9_u32; 1024]);
    device.0.trim();
    assert_eq!(device.read::<u32>(&y), [11; 1024]);
    assert_eq!(device.read::<u32>(&x), [9; 1024]);
}

fn dropped_behind(found: &Found) {
    let device = slow(found, LATE, &OpenOptions::default());
    let y = device.zeros(4096);
    for round in 0..3_u32 {
        let program = device.compile(&TRIPLE.replace("* 3u", &format!("* {}u", round + 2)));
        let x = device.buffer("x", &[10_u32; 1024]);
        let commands = vec![dispatch("behind", &program, vec![uniform(&[1_u32]), whole(&x), whole(&y)], [16, 1, 1])];
        device.submit(commands).unwrap();
        drop((program, x));
        device.0.trim();
    }
    assert_eq!(device.read::<u32>(&y), [41; 1024]);
}

fn dropped_recording(found: &Found) {
    let device = slow(found, LATE, &OpenOptions::default());
    let y = device.zeros(4096);
    {
        let program = device.compile(TRIPLE);
        let x = device.buffer("x", &[3_u32; 1024]);
        let batch = [dispatch("recorded", &program, vec![uniform(&[1_u32]), whole(&x), whole(&y)], [16, 1, 1])];
        let recording = device.record(&batch);
        device.replay(&recording).unwrap();
    }
    device.0.trim();
    assert_eq!(device.read::<u32>(&y), [10; 1024]);
}

/// Each dispatch binds a range of its own. The sets of the first are released before the device has begun.
fn many_sets(found: &Found) {
    const PART: u64 = 256;
    let device = slow(found, LATE, &OpenOptions::default());
    let program = device.compile(TRIPLE);
    let parts = 6000;
    let (x, y) = (device.buffer("x", &[7_u32; 64]), device.zeros(parts * PART));
    let part = |place| Bound::Buffer { buffer: y.clone(), offset: place * PART, bytes: PART };
    for first in (0..parts).step_by(1000) {
        let places = first..first + 1000;
        let one = |place| dispatch("part", &program, vec![uniform(&[5_u32]), whole(&x), part(place)], [1, 1, 1]);
        device.submit(places.map(one).collect()).unwrap();
    }
    assert!(device.read::<u32>(&y).iter().all(|word| *word == 26));
}

fn refused(found: &Found) {
    let mut emulation = discrete(Duration::ZERO);
    (emulation.discrete, emulation.delay) = (found.mode == Mode::Discrete, None);
    let device = found.open_under(emulation.clone(), &OpenOptions::default());
    let program = device.compile(TRIPLE);
    let (x, y) = (device.buffer("x", &[7_u32; 1024]), device.zeros(4096));
    triple(&device, &program, &x, &y);
    block_on(device.0.finish()).unwrap();
    emulation.refusals.store(1, Ordering::SeqCst);
    let refused = device.run(&program, vec![uniform(&[1_u32]), whole(&x), whole(&y)], [16, 1, 1]);
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    // It has no number that anybody could wait for: what was there is read.
    assert_eq!(device.read::<u32>(&y), [26; 1024]);
    block_on(device.0.finish()).unwrap();
    device.run(&program, vec![uniform(&[1_u32]), whole(&x), whole(&y)], [16, 1, 1]).unwrap();
    assert_eq!(device.read::<u32>(&y), [22; 1024]);
}

fn refused_transfer(found: &Found) {
    let mut emulation = discrete(Duration::ZERO);
    (emulation.discrete, emulation.delay) = (found.mode == Mode::Discrete, None);
    let device = found.open_under(emulation.clone(), &OpenOptions::default());
    let x = device.buffer("x", &[7_u32; 1024]);
    device.write(&x, 4, &[8_u32; 3]);
    emulation.refusals.store(1, Ordering::SeqCst);
    // Where the host reaches the memory, nothing is submitted.
    let first = device.try_read::<u32>(&x);
    assert_eq!(first.is_err(), found.mode == Mode::Discrete, "{first:?}");
    emulation.refusals.store(0, Ordering::SeqCst);
    assert_eq!(device.read::<u32>(&x)[..6], [7, 8, 8, 8, 7, 7]);
}

fn another_type(found: &Found) {
    if found.mode != Mode::Discrete {
        // The device has one type.
        return;
    }
    let emulation = discrete(Duration::ZERO);
    let device = found.open_under(emulation.clone(), &OpenOptions::default());
    let program = device.compile(TRIPLE);
    let x = device.buffer("x", &[7_u32; 1024]);
    emulation.full.store(true, Ordering::SeqCst);
    // Larger than what is left in blocks that are there.
    let (y, large) = (device.zeros(4096), device.zeros(100 << 20));
    triple(&device, &program, &x, &y);
    assert_eq!(device.read::<u32>(&y), [26; 1024]);
    assert!(device.read::<u32>(&large).iter().all(|word| *word == 0));
    drop((y, large));
    device.0.trim();
    emulation.full.store(false, Ordering::SeqCst);
    assert_eq!(device.read::<u32>(&x), [7; 1024]);
}

/// Runs into the time limit, and drops everything; how long that took.
fn give_up(device: Open) -> Duration {
    let program = device.compile(TRIPLE);
    let (x, y) = (device.zeros(4096), device.zeros(4096));
    let result = device.run(&program, vec![uniform(&[5_u32]), whole(&x), whole(&y)], [16, 1, 1]);
    let result = result.and_then(|()| device.try_read::<u32>(&y));
    let error = assert_says(result, &["Builder::timeout"]);
    assert!(matches!(error, Error::Timeout { .. }));
    let start = Instant::now();
    device.0.trim();
    drop((program, x, y, device));
    start.elapsed()
}

fn late(found: &Found) {
    let before = detached().devices;
    let limit = OpenOptions::new().timeout(Duration::from_millis(100));
    let took = give_up(slow(found, Duration::from_millis(1500), &limit));
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(detached().devices, before + 1);
    assert!(detached().bytes >= 8192);
    // It is given back when it has ended after all.
    let start = Instant::now();
    while detached().devices > before {
        assert!(start.elapsed() < Duration::from_secs(20), "it is still held");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn never(found: &Found) {
    let before = detached().devices;
    let limit = OpenOptions::new().timeout(Duration::from_millis(100));
    let took = give_up(slow(found, Duration::from_secs(3600), &limit));
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(detached().devices, before + 1);
}

fn two_threads(found: &Found) {
    let device = found.open();
    let program = device.compile(TRIPLE);
    let (x, y) = (device.zeros(4096), device.zeros(4096));
    std::thread::scope(|scope| {
        scope.spawn(|| (0..200_u32).for_each(|round| device.write(&x, 0, &[round; 1024])));
        for _ in 0..100 {
            triple(&device, &program, &x, &y);
            // One write or another, whole or in part; never anything else.
            let values = device.read::<u32>(&y);
            assert!(values.iter().all(|value| *value >= 5 && (value - 5) % 3 == 0 && value / 3 < 203), "{values:?}");
        }
    });
}
