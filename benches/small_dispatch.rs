//! The cost of one small dispatch through the engine: a chain of 1,000 on 256 floats, submitted at once, with the result read back.
//!
//! A row below it is the same chain recorded once on the `vulkan` backend and replayed, without being encoded again.
//!
//! The peer is bare wgpu written by hand ([`peers::bare`]); the rows are interleaved, and the figure is the median of the rounds.
//! A control row runs a kernel of about 100 ms, where no difference should show. What is not measured: compiling, and the making of
//! buffers. `cargo bench -p cantus-benches --bench small_dispatch [-- ROUNDS [ADAPTER]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use cantus::backend::vulkan::VulkanBackend;
use cantus::backend::wgpu::WgpuBackend;
use cantus::backend::{Backend, Bound, Buffer, Command, Contents, Device, Dispatch, OpenOptions, Recording};
use cantus::{Config, Engine, Fallback, Kernel, Tensor};
use peers::bare::{Bare, BareKernel, Resource};
use pollster::block_on;

const CHAIN: u32 = 1000;

const SMALL: &str = "
    @group(0) @binding(0) var<uniform> factor: f32;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn small(@builtin(global_invocation_id) id: vec3u) { y[id.x] = y[id.x] * factor + 1.0; }";

const LARGE: &str = "
    @group(0) @binding(0) var<uniform> factor: f32;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn large(@builtin(global_invocation_id) id: vec3u) {
        var value = y[id.x];
        for (var i = 0u; i < 3000u; i++) { value = value * factor + 1.0; }
        y[id.x] = value;
    }";

/// Ours: the same kernel and contents through an engine, everything said by name for each dispatch.
struct Ours {
    engine: Engine,
    kernel: Kernel,
    y: Tensor,
}

impl Ours {
    fn new(engine: &Engine, wgsl: &str, length: usize) -> Self {
        let kernel = Kernel::from_wgsl(wgsl).expect("is valid");
        let y = engine.zeros::<f32>(&[length]).expect("allocates");
        Self { engine: engine.clone(), kernel, y }
    }

    /// The time until everything is recorded and submitted, and until the result is read.
    fn run(&self, times: u32, workgroups: u32, vary: bool, into: &mut [u8]) -> (Duration, Duration) {
        let start = Instant::now();
        for index in 0..times {
            let factor = if vary { index as f32 / CHAIN as f32 } else { 0.5 };
            let dispatch = self.engine.dispatch(&self.kernel).set("factor", factor).bind("y", &self.y);
            dispatch.workgroups(workgroups).run().expect("is recorded");
        }
        self.engine.flush();
        let submitted = start.elapsed();
        into.copy_from_slice(&self.y.to_bytes().expect("reads"));
        (submitted, start.elapsed())
    }
}

/// The same chain recorded once on raw Vulkan.
struct Replayed {
    device: Arc<dyn Device>,
    y: Arc<dyn Buffer>,
    recording: Arc<dyn Recording>,
    batch: Vec<Command>,
}

impl Replayed {
    /// On the device of that name, if the `vulkan` backend has it.
    fn new(name: &str) -> Option<Self> {
        let backend = VulkanBackend::new();
        let probe = block_on(backend.probe());
        let info = probe.devices.iter().find(|info| name.starts_with(&info.name))?;
        let device = block_on(backend.open(info.index, &OpenOptions::default())).expect("opens");
        let kernel = Kernel::from_wgsl(SMALL).expect("is valid");
        let program = block_on(device.compile(&kernel)).expect("compiles");
        let y = block_on(device.allocate(1024, Contents::Zeroed, "y")).expect("allocates");
        let bindings = vec![
            Bound::Uniform(0.5_f32.to_ne_bytes().to_vec()),
            Bound::Buffer { buffer: y.clone(), offset: 0, bytes: 1024 },
        ];
        let dispatch = Dispatch::new(program, "small", bindings, [4, 1, 1]);
        let batch = vec![Command::Dispatch(dispatch); CHAIN as usize];
        let recording = block_on(device.record(&batch)).expect("records");
        Some(Self { device, y, recording, batch })
    }

    /// The time until the replay is submitted, and until the result is read.
    fn run(&self, into: &mut [u8]) -> (Duration, Duration) {
        let start = Instant::now();
        block_on(self.device.replay(&self.recording)).expect("is submitted");
        let submitted = start.elapsed();
        block_on(self.device.read(&self.y, 0, into)).expect("reads");
        (submitted, start.elapsed())
    }

    /// The same without the recording: encoded and submitted.
    fn run_encoded(&self, into: &mut [u8]) -> (Duration, Duration) {
        let start = Instant::now();
        block_on(self.device.submit(self.batch.clone())).expect("is submitted");
        let submitted = start.elapsed();
        block_on(self.device.read(&self.y, 0, into)).expect("reads");
        (submitted, start.elapsed())
    }
}

type Times = Vec<(Duration, Duration)>;

/// Median and least of the whole, and the least of the submission alone (which other processes disturb less), per dispatch.
fn figures(times: &Times, unit: u32) -> [f64; 3] {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(unit);
    let mut whole: Vec<Duration> = times.iter().map(|(_, whole)| *whole).collect();
    whole.sort();
    let submission = times.iter().map(|(submission, _)| *submission).min().unwrap_or_default();
    [each(whole[whole.len() / 2]), each(whole[0]), each(submission)]
}

fn row(name: &str, unit: u32, bare: &Times, ours: &Times) {
    println!("{name}");
    let names = ["median", "least", "submission alone, least"];
    for (name, (bare, ours)) in names.iter().zip(figures(bare, unit).into_iter().zip(figures(ours, unit))) {
        let (ratio, over) = (ours / bare, ours - bare);
        println!("  {name:24} bare {bare:10.2} us  ours {ours:10.2} us  ratio {ratio:.3}  over by {over:+.2} us");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let rounds: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(41);
    let filter = arguments.get(1).map_or("Vulkan", String::as_str);
    let probe = block_on(WgpuBackend::new().probe());
    let found = probe.devices.iter().find(|info| info.name.contains(filter));
    let (Some(info), Some(bare)) = (found, Bare::open(filter)) else {
        println!("not run: no adapter like \"{filter}\" ({})", probe.reason.unwrap_or_default());
        return;
    };
    let builder =
        Engine::builder().config(Config::default()).backend("wgpu").device(info.index).fallback(Fallback::Never);
    let engine = builder.build().expect("opens");
    println!("{} and {}, {rounds} rounds, per dispatch", bare.name, info.name);

    let factor = 0.5_f32.to_ne_bytes();
    let zeros = vec![0_u8; 1024];
    let resources = || [Resource::Uniform(&factor), Resource::Storage(&zeros)];
    let small_bare: BareKernel<'_> = bare.kernel(SMALL, "small", &resources(), 1);
    let small_ours = Ours::new(&engine, SMALL, 256);
    let (mut left, mut right) = (vec![0_u8; 1024], vec![0_u8; 1024]);
    let (mut bare_times, mut ours_times, mut varied_times) = (Vec::new(), Vec::new(), Vec::new());
    let replayed = Replayed::new(&bare.name);
    let (mut replayed_times, mut encoded_times) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let times = (small_bare.run_and_read([4, 1, 1], CHAIN, &mut left), small_ours.run(CHAIN, 4, false, &mut right));
        assert_eq!(left, right, "both compute the same");
        let mut other = vec![0_u8; 1024];
        let varied = small_ours.run(CHAIN, 4, true, &mut other);
        // Back to where the peer is.
        small_bare.run_and_read([4, 1, 1], 100, &mut left);
        small_ours.run(100, 4, false, &mut right);
        // The first round warms up.
        if round > 0 {
            bare_times.push(times.0);
            ours_times.push(times.1);
            varied_times.push(varied);
        }
        if let Some(replayed) = &replayed {
            let times = (replayed.run(&mut left), replayed.run_encoded(&mut right));
            // Its chain never starts over: after 1,000 steps y = y / 2 + 1 stays at 2.
            assert!(left.chunks_exact(4).all(|bytes| bytes == 2.0_f32.to_ne_bytes()) && left == right);
            if round > 0 {
                replayed_times.push(times.0);
                encoded_times.push(times.1);
            }
        }
    }
    row("chain of 1000, one uniform", CHAIN, &bare_times, &ours_times);
    row("chain of 1000, 1000 uniforms", CHAIN, &bare_times, &varied_times);

    if replayed.is_some() {
        row("chain of 1000 on the vulkan backend, encoded", CHAIN, &bare_times, &encoded_times);
        row("chain of 1000 on the vulkan backend, replayed", CHAIN, &bare_times, &replayed_times);
    } else {
        println!("not run: the vulkan backend has no device {}", bare.name);
    }

    let zeros = vec![0_u8; 1 << 20];
    let resources = [Resource::Uniform(&factor), Resource::Storage(&zeros)];
    let large_bare = bare.kernel(LARGE, "large", &resources, 1);
    let large_ours = Ours::new(&engine, LARGE, 1 << 18);
    let (mut left, mut right) = (vec![0_u8; 1 << 20], vec![0_u8; 1 << 20]);
    let (mut bare_times, mut ours_times) = (Vec::new(), Vec::new());
    for _ in 0..(rounds / 3).max(3) {
        bare_times.push(large_bare.run_and_read([4096, 1, 1], 1, &mut left));
        ours_times.push(large_ours.run(1, 4096, false, &mut right));
        assert_eq!(left, right, "both compute the same");
    }
    row("control: one large dispatch", 1, &bare_times, &ours_times);
}
