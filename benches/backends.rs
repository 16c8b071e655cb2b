//! Times of a backend as apps meet them, through the engine: dispatches, replays, transfers, and the time to a first result. By it `vulkan` answers for its code
//! beside `wgpu` on the same device; on a software device, where kernels cost the processor too, the small rows show the work around them.
//!
//! Backends take turns, and each figure is the median of the rounds, in microseconds, of:
//!
//! - `dispatch`: a chain of 1,000 dispatches on 256 floats until its result is read, and `recording` until it is submitted, per dispatch
//! - `call`: one such dispatch and its result; `replay`: the chain as a graph, per dispatch
//! - `upload` and `download`: 16 MiB
//! - `text`: from the text of a kernel that nobody has seen to its first result
//! - `start` and `start again`: a process from its start to the result of a matrix product, with an empty cache folder and with the one it left
//!
//! `cargo bench -p cantus-benches --bench backends [-- [--json=FILE] [BACKEND[,BACKEND…] [ROUNDS]]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cantus::engine::{Graph, GraphInputs};
use cantus::{Config, Engine, Fallback, Kernel, Result, Tensor};
use peers::turns::figures;
use serde_json::json;

const CHAIN: usize = 1000;
const FLOATS: usize = 4 << 20;

/// A step whose constant makes each text a new one. The chain stays at `constant * 2`.
fn step(constant: f32) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64)
        fn step(@builtin(global_invocation_id) id: vec3u) {{ y[id.x] = y[id.x] * 0.5 + {constant:?}; }}"
    )
}

fn open(backend: &str, cache: Option<&Path>) -> Result<Engine> {
    let builder = Engine::builder().config(Config::default()).backend(backend).fallback(Fallback::Never);
    match cache {
        Some(folder) => builder.cache_folder(folder).build(),
        None => builder.build(),
    }
}

/// The first product of a process.
fn first(backend: &str, cache: &Path) {
    let engine = open(backend, Some(cache)).expect("the device opens");
    let ones = vec![1.0_f32; 256 * 256];
    let a = engine.tensor_from(&ones, &[256, 256]).expect("a tensor");
    let product = a.matmul(&a).eval().expect("a product").to_vec::<f32>().expect("its elements");
    assert!(product.iter().all(|&x| x == 256.0), "the product is right");
}

/// A process of its own, from start to end.
fn started(backend: &str, cache: &Path) -> Duration {
    let start = Instant::now();
    let program = std::env::current_exe().expect("this program");
    let status = Command::new(program).args(["first", backend]).arg(cache).status().expect("a process");
    assert!(status.success(), "the first product is right");
    start.elapsed()
}

/// A backend with what its rows need, and its times by row.
struct Side {
    name: String,
    engine: Engine,
    kernel: Kernel,
    y: Tensor,
    graph: Graph<()>,
    whole: Tensor,
    floats: Vec<f32>,
    times: Vec<Vec<f64>>,
}

const ROWS: [&str; 9] =
    ["dispatch", "recording", "call", "replay", "upload", "download", "text", "start", "start again"];

impl Side {
    fn new(name: &str) -> Option<Self> {
        let engine = open(name, None).ok()?;
        let kernel = Kernel::from_wgsl(&step(1.0)).expect("is valid");
        let y = engine.zeros::<f32>(&[256]).expect("allocates");
        let chain = || (0..CHAIN).try_for_each(|_| dispatched(&engine, &kernel, &y));
        let graph = engine.capture(chain).expect("a graph");
        let floats: Vec<f32> = (0..FLOATS).map(|i| i as f32).collect();
        let whole = engine.tensor(&floats).expect("allocates");
        let times = vec![Vec::new(); ROWS.len()];
        Some(Self { name: name.to_owned(), engine, kernel, y, graph, whole, floats, times })
    }

    /// Every row once.
    fn round(&mut self, number: usize) -> [Duration; ROWS.len()] {
        let Self { engine, kernel, y, graph, whole, floats, .. } = self;
        let settled = |y: &Tensor| y.to_vec::<f32>().expect("reads").iter().all(|&x| x == 2.0);
        let start = Instant::now();
        (0..CHAIN).try_for_each(|_| dispatched(engine, kernel, y)).expect("is recorded");
        engine.flush();
        let recording = start.elapsed();
        assert!(settled(y), "the chain settles");
        let dispatch = start.elapsed();

        let start = Instant::now();
        dispatched(engine, kernel, y).expect("is recorded");
        assert!(settled(y), "the chain has settled");
        let call = start.elapsed();

        let start = Instant::now();
        graph.replay(&GraphInputs::new()).expect("is replayed");
        assert!(settled(y), "the chain has settled");
        let replay = start.elapsed();

        let start = Instant::now();
        whole.write(floats).expect("is written");
        engine.finish().expect("ends");
        let upload = start.elapsed();
        let start = Instant::now();
        let read = whole.to_vec::<f32>().expect("reads");
        let download = start.elapsed();
        assert!(read == *floats, "what is read is what was written");

        let constant = 3.0 + number as f32 / 1024.0;
        let start = Instant::now();
        let fresh = Kernel::from_wgsl(&step(constant)).expect("is valid");
        dispatched(engine, &fresh, y).expect("is recorded");
        let got = y.to_vec::<f32>().expect("reads");
        let text = start.elapsed();
        assert!(got.iter().all(|&x| x == 1.0 + constant), "the kernel is right");
        // Back to where the chain settles.
        (0..64).try_for_each(|_| dispatched(engine, kernel, y)).expect("is recorded");

        let cache = tempfile::tempdir().expect("a folder");
        let first = started(&self.name, cache.path());
        let again = started(&self.name, cache.path());
        [
            dispatch / CHAIN as u32,
            recording / CHAIN as u32,
            call,
            replay / CHAIN as u32,
            upload,
            download,
            text,
            first,
            again,
        ]
    }
}

fn dispatched(engine: &Engine, kernel: &Kernel, y: &Tensor) -> Result<()> {
    engine.dispatch(kernel).bind("y", y).workgroups(4).run()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [mode, backend, cache] = &arguments[..]
        && mode == "first"
    {
        return first(backend, Path::new(cache));
    }
    let (options, arguments): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.starts_with("--"));
    let names = arguments.first().filter(|text| !text.is_empty()).map_or("vulkan,wgpu,cuda,opencl,cpu", String::as_str);
    let rounds: usize = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(11);
    let mut sides: Vec<Side> = names.split(',').filter_map(Side::new).collect();
    for round in 0..=rounds {
        for side in &mut sides {
            let times = side.round(round);
            // The first round warms up.
            if round > 0 {
                side.times.iter_mut().zip(times).for_each(|(all, time)| all.push(time.as_secs_f64()));
            }
        }
    }
    let device = |side: &Side| format!("{}: {}", side.name, side.engine.selected().device.name);
    let devices: Vec<String> = sides.iter().map(device).collect();
    println!("{}; {rounds} rounds, medians in us", devices.join("; "));
    let heading: String = sides.iter().map(|side| format!(" {:>12}", side.name)).collect();
    println!("{:14}{heading}", "");
    let mut rows = Vec::new();
    for (number, row) in ROWS.iter().enumerate() {
        let us: Vec<f64> = sides
            .iter()
            .map(|side| {
                figures(side.times.get(number).cloned().unwrap_or_default()).first().copied().unwrap_or(f64::NAN)
            })
            .collect();
        println!("{row:14}{}", us.iter().map(|us| format!(" {us:12.2}")).collect::<String>());
        rows.push(json!({ "op": row, "us": us }));
    }
    let Some(path) = options.iter().find_map(|option| option.strip_prefix("--json=")) else { return };
    let columns: Vec<&str> = sides.iter().map(|side| &*side.name).collect();
    let both = ["vulkan", "wgpu"].iter().all(|name| columns.contains(name));
    let file = json!({
        "title": "What apps feel of a backend",
        "columns": columns,
        "compared": if both { vec![["vulkan", "wgpu"]] } else { Vec::new() },
        "machine": devices.join("; "),
        "date": peers::turns::today(),
        "command": std::env::args().collect::<Vec<_>>().join(" "),
        "notes": "README.md",
        "shown": ROWS,
        "rows": rows,
    });
    std::fs::write(path, format!("{file:#}\n")).expect("is written");
}
