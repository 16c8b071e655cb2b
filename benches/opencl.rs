//! Translated OpenCL C beside OpenCL C written by hand (`peers/field.cl`), on the same device: the field family at 4096 x 4096.
//!
//! Rounds are interleaved, the figure is the median. Ours goes through the engine and `ops`, the peer through opencl3 alone, with its
//! buffers made before. Not measured: compiling. The control row copies 64 MiB within the device.
//!
//! `cargo bench -p cantus-benches --bench opencl [-- ROUNDS]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]
#![allow(deprecated, reason = "OpenCL 1.2 has no other way to make a queue")]

use std::time::{Duration, Instant};

use cantus::ops::{self, field::FieldParams};
use cantus::{Engine, Fallback, Kernel};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices};
use opencl3::kernel::{ExecuteKernel, Kernel as ClKernel};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::program::Program;

const SIDE: usize = 4096;
const COUNT: usize = SIDE * SIDE;
const GROUPS: usize = COUNT / 8192;

/// The peer: one device, its kernels and buffers.
struct Hand {
    queue: CommandQueue,
    kernels: [ClKernel; 4],
    values: Buffer<f32>,
    partials: Buffer<f32>,
}

impl Hand {
    fn open() -> Self {
        let id = *get_all_devices(CL_DEVICE_TYPE_ALL).expect("lists devices").first().expect("has a device");
        let context = Context::from_device(&Device::new(id)).expect("opens");
        let queue = CommandQueue::create_default(&context, 0).expect("has a queue");
        let source = include_str!("peers/field.cl");
        let program = Program::create_and_build_from_source(&context, source, "-cl-std=CL1.2").expect("builds");
        let kernels = ["field", "mean", "deviation", "neighbours"]
            .map(|name| ClKernel::create(&program, name).expect("is a kernel"));
        let buffer = |count| {
            // SAFETY: no host pointer is given.
            unsafe { Buffer::create(&context, CL_MEM_READ_WRITE, count, std::ptr::null_mut()) }.expect("allocates")
        };
        Self { queue, kernels, values: buffer(COUNT), partials: buffer(GROUPS * 4) }
    }

    fn field(&self, number: f32, phase: f32) {
        let (width, height) = (SIDE as u32, SIDE as u32);
        let mut launch = ExecuteKernel::new(&self.kernels[0]);
        // SAFETY: the arguments are the kernel's, and the buffer holds the whole field.
        unsafe {
            launch.set_arg(&self.values).set_arg(&width).set_arg(&height).set_arg(&number).set_arg(&phase);
            launch.set_global_work_sizes(&[SIDE, SIDE]).set_local_work_sizes(&[256, 1]);
            launch.enqueue_nd_range(&self.queue).expect("runs");
        }
        self.queue.finish().expect("finishes");
    }

    fn read(&self, count: usize) -> Vec<f32> {
        let mut values = vec![0.0; count];
        // SAFETY: the read blocks until the values are there.
        unsafe { self.queue.enqueue_read_buffer(&self.partials, 1, 0, &mut values, &[]) }.expect("reads");
        values
    }

    fn coherence(&self) -> f64 {
        let (count, side) = (COUNT as u32, SIDE as u32);
        let spans = [GROUPS * 256];
        // SAFETY: the arguments are the kernels', and the buffers large enough.
        unsafe {
            let mut launch = ExecuteKernel::new(&self.kernels[1]);
            launch.set_arg(&self.values).set_arg(&self.partials).set_arg(&count);
            launch
                .set_global_work_sizes(&spans)
                .set_local_work_sizes(&[256])
                .enqueue_nd_range(&self.queue)
                .expect("runs");
        }
        let partials = self.read(GROUPS * 4);
        let sum: f64 = partials.chunks(4).map(|part| f64::from(part[0])).sum();
        let mean = f64::from(partials[2]) + sum / COUNT as f64;
        let centre = mean as f32;
        // SAFETY: the arguments are the kernel's, and the buffers large enough.
        unsafe {
            let mut launch = ExecuteKernel::new(&self.kernels[2]);
            launch.set_arg(&self.values).set_arg(&self.partials).set_arg(&count).set_arg(&centre).set_arg(&1.0_f32);
            launch
                .set_global_work_sizes(&spans)
                .set_local_work_sizes(&[256])
                .enqueue_nd_range(&self.queue)
                .expect("runs");
        }
        let squares: f64 = self.read(GROUPS * 2).chunks(2).map(|part| f64::from(part[1])).sum();
        let factor = (1.0 / (squares / COUNT as f64).sqrt()) as f32;
        let groups = [(SIDE - 1).div_ceil(256), (SIDE - 1).div_ceil(32)];
        // SAFETY: the arguments are the kernel's, and the buffers large enough.
        unsafe {
            let mut launch = ExecuteKernel::new(&self.kernels[3]);
            launch
                .set_arg(&self.values)
                .set_arg(&self.partials)
                .set_arg(&side)
                .set_arg(&side)
                .set_arg(&centre)
                .set_arg(&factor);
            launch.set_global_work_sizes(&[groups[0] * 256, groups[1]]).set_local_work_sizes(&[256, 1]);
            launch.enqueue_nd_range(&self.queue).expect("runs");
        }
        self.read(groups[0] * groups[1]).iter().map(|&part| f64::from(part)).sum::<f64>() / COUNT as f64
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64) * 1e3
}

const COPY: &str = "
    @group(0) @binding(0) var<storage> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(256)
    fn copy(@builtin(global_invocation_id) id: vec3u) { y[id.x] = x[id.x]; }";

fn main() {
    let rounds: usize = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(9);
    let engine = match Engine::builder().backend("opencl").fallback(Fallback::Never).build() {
        Ok(engine) => engine,
        Err(error) => return println!("not run: {error}"),
    };
    println!("{} ({}), {rounds} rounds", engine.selected().device.name, engine.selected().device.driver);
    let hand = Hand::open();
    let params = FieldParams::new(SIDE, SIDE).time(1.0);
    let number = (0.01 * 528.0 * 1.618_033_988_749_895) as f32;
    let phase = (2.178_457_567_937_599_5 % std::f64::consts::TAU) as f32;
    let mut times: [[Vec<Duration>; 2]; 3] = Default::default();
    let field = ops::field::field(&engine, &params).expect("computes");
    let copy = Kernel::from_wgsl(COPY).expect("is valid");
    let target = engine.zeros::<f32>(&[SIDE, SIDE]).expect("allocates");
    for round in 0..=rounds {
        let mut now = [[Duration::ZERO; 2]; 3];
        now[0][0] = timed(|| {
            let _field = ops::field::field(&engine, &params).expect("computes");
            engine.finish().expect("finishes");
        });
        now[0][1] = timed(|| hand.field(number, phase));
        let (mut ours, mut theirs) = (0.0, 0.0);
        now[1][0] = timed(|| ours = ops::coherence(&engine, &field).expect("computes"));
        now[1][1] = timed(|| theirs = hand.coherence().min(1.0) as f32);
        assert!((ours - theirs).abs() < 1e-3, "{ours} and {theirs}: not the same work");
        now[2][0] = timed(|| {
            engine.dispatch(&copy).bind("x", &field).bind("y", &target).invocations(COUNT as u64).run().expect("runs");
            engine.finish().expect("finishes");
        });
        now[2][1] = timed(|| {
            engine.dispatch(&copy).bind("x", &field).bind("y", &target).invocations(COUNT as u64).run().expect("runs");
            engine.finish().expect("finishes");
        });
        // The first round warms up.
        if round > 0 {
            for (kept, now) in times.iter_mut().flatten().zip(now.into_iter().flatten()) {
                kept.push(now);
            }
        }
    }
    for (name, [ours, theirs]) in ["field", "coherence", "control: copy against itself"].iter().zip(&mut times) {
        let (ours, theirs) = (median(ours), median(theirs));
        println!("{name:28} translated {ours:8.1} ms   by hand {theirs:8.1} ms   ratio {:.3}", ours / theirs);
    }
}
