//! The field family at 4096 x 4096 on the CPU backend, beside the same kernels on a software adapter through bare wgpu, and NumPy.
//!
//! The rows are interleaved, and the figure is the median of the rounds. Each time runs from the first call to the end of the work, the
//! result left where it was computed (for coherence: on the host). Not measured: compiling, and the making of the peer's buffers. The
//! control row copies 64 MiB: bound by memory, so no difference should show between ours and a plain loop.
//!
//! `cargo bench -p cantus-benches --bench field [-- ROUNDS [ADAPTER]]`. NumPy takes part when `benches/peers/setup.sh` has been run.

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::{Duration, Instant};

use cantus::ops::{self, field::FieldParams};
use cantus::{Config, Engine, Fallback, Kernel, Tensor};
use peers::bare::{Bare, BareKernel, Resource};
use peers::process::Peer;

const SIDE: usize = 4096;

/// Returns the contents of a peer's uniform, in WGSL's layout.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn grid() -> Vec<u8> {
    let side = SIDE as u32;
    words(&[side, side, 0, 0, side, side])
}

fn wave() -> Vec<u8> {
    let number = 5.28 * 1.618_033_988_749_895;
    let high = f32::from_bits((number as f32).to_bits() & !0xfff);
    words(&[high.to_bits(), ((number - f64::from(high)) as f32).to_bits(), 0, 0])
}

/// The two reductions of coherence on the peer, with the centres that ours finds.
struct BareCoherence<'a> {
    passes: [(BareKernel<'a>, [u32; 3], Vec<u8>); 2],
}

impl<'a> BareCoherence<'a> {
    fn new(bare: &'a Bare, values: &[f32]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
        let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / count;
        let (high, factor) = (mean as f32, (1.0 / variance.sqrt()) as f32);
        let span = words(&[values.len() as u32, 1, 0, 1.0_f32.to_bits(), 0]);
        let sheet = words(&[SIDE as u32, SIDE as u32, 1, high.to_bits(), factor.to_bits(), 0]);
        let groups = [values.len() as u32 / 8192, 1, 1];
        let sheet_groups = [(SIDE as u32 - 1).div_ceil(256), (SIDE as u32 - 1).div_ceil(32), 1];
        let pass = |wgsl: &str, entry: &str, uniform: &[u8], groups: [u32; 3], parts: u32| {
            let bytes = u64::from(groups[0] * groups[1] * parts) * 4;
            let resources =
                [Resource::Uniform(uniform), Resource::Storage(bytemuck::cast_slice(values)), Resource::Zeros(bytes)];
            (bare.kernel(wgsl, entry, &resources, 2), groups, vec![0; bytes as usize])
        };
        let text = |name: &str| kernel(name).wgsl().to_owned();
        Self {
            passes: [
                pass(&text("coherence_moments"), "coherence_moments", &span, groups, 4),
                pass(&text("coherence_neighbour_sum"), "coherence_neighbour_sum", &sheet, sheet_groups, 1),
            ],
        }
    }

    fn run(&mut self) -> (Duration, f64) {
        let start = Instant::now();
        let mut sum = 0.0;
        for (kernel, groups, into) in &mut self.passes {
            kernel.run_and_read(*groups, 1, into);
            sum = bytemuck::cast_slice::<u8, f32>(into).iter().map(|&part| f64::from(part)).sum();
        }
        (start.elapsed(), (sum / (SIDE * SIDE) as f64).min(1.0))
    }
}

fn kernel(name: &str) -> &'static Kernel {
    let shipped = ops::kernels().iter().find(|shipped| shipped.name() == name).expect("is shipped");
    shipped.kernel().expect("is prepared")
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let value = work();
    (start.elapsed(), value)
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64) * 1e3
}

fn row(name: &str, ours: &mut [Duration], peers: &mut [(&str, Vec<Duration>)]) {
    let ours = median(ours);
    print!("{name:28} ours {ours:8.1} ms");
    for (peer, times) in peers.iter_mut().filter(|(_, times)| !times.is_empty()) {
        let theirs = median(times);
        print!("   {peer} {theirs:8.1} ms, ratio {:.2}", ours / theirs);
    }
    println!();
}

const COPY: &str = "
    @group(0) @binding(0) var<storage> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(256)
    fn copy(@builtin(global_invocation_id) id: vec3u) { y[id.x] = x[id.x]; }";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let rounds: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(9);
    let filter = arguments.get(1).map_or("Vulkan", String::as_str);
    let builder = Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never);
    let engine = builder.build().expect("the CPU is always there");
    let bare = Bare::open(filter);
    let mut python = Peer::python("field_numpy.py", "cpu");
    let device = &engine.selected().device;
    println!("{}, {}; {rounds} rounds", device.name, device.driver);
    println!(
        "peers: {}; {}",
        bare.as_ref().map_or("no adapter", |bare| &bare.name),
        python.as_ref().map_or("no NumPy", |python| &python.version)
    );

    let values = field(&engine, bare.as_ref(), python.as_mut(), rounds);
    let tensor = engine.tensor_from(&values, &[SIDE, SIDE]).expect("uploads");
    coherence((&engine, &tensor), bare.as_ref().map(|bare| BareCoherence::new(bare, &values)), python.as_mut(), rounds);
    copy((&engine, &tensor), &values, rounds);
}

/// Measures the field. Returns its values.
fn field(engine: &Engine, bare: Option<&Bare>, mut python: Option<&mut Peer>, rounds: usize) -> Vec<f32> {
    let params = FieldParams::new(SIDE, SIDE);
    let field = || -> Tensor {
        let field = ops::field::field(engine, &params).expect("computes");
        engine.finish().expect("finishes");
        field
    };
    let values = field().to_vec::<f32>().expect("reads");
    let bare_field = bare.map(|bare| {
        let bytes = values.len() as u64 * 4;
        let (grid, wave) = (grid(), wave());
        let resources = [Resource::Uniform(&grid), Resource::Uniform(&wave), Resource::Zeros(bytes)];
        bare.kernel(kernel("field").wgsl(), "field", &resources, 2)
    });
    let (mut ours, mut on_adapter, mut in_numpy) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let times = (timed(field).0, bare_field.as_ref().map(|peer| peer.run([SIDE as u32 / 256, SIDE as u32, 1], 1)));
        let numpy = python.as_mut().map(|python| python.call("field", SIDE).0);
        if round > 0 {
            ours.push(times.0);
            on_adapter.extend(times.1);
            in_numpy.extend(numpy);
        }
    }
    row("field 4096 x 4096", &mut ours, &mut [("bare wgpu", on_adapter), ("NumPy", in_numpy)]);
    values
}

fn coherence(
    (engine, tensor): (&Engine, &Tensor),
    mut bare: Option<BareCoherence<'_>>,
    mut python: Option<&mut Peer>,
    rounds: usize,
) {
    let (mut ours, mut on_adapter, mut in_numpy) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let (time, value) = timed(|| ops::coherence(engine, tensor).expect("computes"));
        let bare = bare.as_mut().map(BareCoherence::run);
        let numpy = python.as_mut().map(|python| python.call("coherence", SIDE));
        for other in bare.iter().chain(&numpy).map(|(_, other)| *other) {
            assert!((other - f64::from(value)).abs() < 1e-4, "the peers agree: {value}, {other}");
        }
        if round > 0 {
            ours.push(time);
            on_adapter.extend(bare.map(|(time, _)| time));
            in_numpy.extend(numpy.map(|(time, _)| time));
        }
    }
    row("coherence 4096 x 4096", &mut ours, &mut [("bare wgpu", on_adapter), ("NumPy", in_numpy)]);
}

/// The control: copies the values by a kernel, and by two threads.
fn copy((engine, tensor): (&Engine, &Tensor), values: &[f32], rounds: usize) {
    let copy = Kernel::from_wgsl(COPY).expect("is valid");
    let target = engine.zeros::<f32>(&[SIDE * SIDE]).expect("allocates");
    let mut host = vec![0.0_f32; SIDE * SIDE];
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (time, ()) = timed(|| {
            let dispatch = engine.dispatch(&copy).bind("x", tensor).bind("y", &target);
            dispatch.invocations(SIDE * SIDE).run().expect("runs");
            engine.finish().expect("finishes");
        });
        ours.push(time);
        let (time, ()) = timed(|| {
            let (low, high) = host.split_at_mut(SIDE * SIDE / 2);
            std::thread::scope(|scope| {
                scope.spawn(|| low.copy_from_slice(&values[..SIDE * SIDE / 2]));
                high.copy_from_slice(&values[SIDE * SIDE / 2..]);
            });
        });
        plain.push(time);
        assert_eq!(host, values);
    }
    row("control: copy of 64 MiB", &mut ours, &mut [("two plain threads", plain)]);
}
