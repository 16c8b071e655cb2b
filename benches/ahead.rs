//! Kernels compiled ahead on the CPU backend, beside the executor, the same WGSL on a software adapter through bare wgpu and,
//! translated, on PoCL, and loops written by hand over rayon.
//!
//! The rows are interleaved, and each figure is the median of the rounds. A time runs from the dispatch to the end of the work, the
//! result left where it was computed. Not measured: compiling and the making of buffers. The control row copies 64 MiB: bound by
//! memory, so no difference should show between what is generated and what is written by hand.
//!
//! `cargo bench -p cantus-benches --bench ahead [-- ROUNDS [ADAPTER]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::{Duration, Instant};

use cantus::{Config, Engine, Fallback, Kernel, Tensor, ops};
use peers::bare::{Bare, Resource};
use rayon::prelude::*;

/// Written by the build script.
mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

const SIDE: usize = 4096;

/// A way to do the work, and the time of one run.
struct Way<'a> {
    name: &'static str,
    run: Box<dyn FnMut() -> Duration + 'a>,
}

impl<'a> Way<'a> {
    fn new(name: &'static str, run: impl FnMut() -> Duration + 'a) -> Self {
        Way { name, run: Box::new(run) }
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

/// Runs all ways in turn; the first is ours, and the others are what it is compared with. Gives our time in milliseconds.
fn row(name: &str, rounds: usize, mut ways: Vec<Way<'_>>) -> f64 {
    let mut times = vec![Vec::new(); ways.len()];
    for round in 0..=rounds {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            let time = (way.run)();
            if round > 0 {
                times.push(time);
            }
        }
    }
    let medians: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    let ours = medians.first().copied().unwrap_or(f64::NAN);
    print!("{name:34} ahead {ours:8.2} ms");
    for (way, theirs) in ways.iter().zip(&medians).skip(1) {
        print!("   {} {theirs:8.2} ms, ratio {:.2}", way.name, ours / theirs);
    }
    println!();
    ours
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A dispatch on our CPU backend: members of uniforms by path, tensors by name.
struct Ours<'a> {
    engine: &'a Engine,
    kernel: Kernel,
    tensors: Vec<(&'static str, Tensor)>,
    words: Vec<(&'static str, u32)>,
    floats: Vec<(&'static str, f32)>,
    pair: Option<(&'static str, [f32; 2])>,
    workgroups: [u32; 3],
}

impl Ours<'_> {
    fn run(&self, kernel: &Kernel) -> Duration {
        timed(|| {
            let mut dispatch = self.engine.dispatch(kernel);
            for (name, tensor) in &self.tensors {
                dispatch = dispatch.bind(name, tensor);
            }
            for (name, value) in &self.words {
                dispatch = dispatch.set(name, *value);
            }
            for (name, value) in &self.floats {
                dispatch = dispatch.set(name, *value);
            }
            if let Some((name, value)) = self.pair {
                dispatch = dispatch.set(name, value);
            }
            dispatch.workgroups(self.workgroups).run().expect("runs");
            self.engine.finish().expect("finishes");
        })
    }

    /// Ahead and executor, as ways.
    fn ways(&self) -> Vec<Way<'_>> {
        let plain = self.kernel.without_ahead();
        assert!(self.kernel.compiled_ahead().is_some(), "is compiled ahead");
        vec![Way::new("ahead", || self.run(&self.kernel)), Way::new("executor", move || self.run(&plain))]
    }
}

fn shipped(name: &str) -> Kernel {
    let shipped = ops::kernels().iter().find(|shipped| shipped.name() == name).expect("is shipped");
    shipped.kernel().expect("is prepared").clone()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let rounds: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(9);
    let filter = arguments.get(1).map_or("Vulkan", String::as_str);
    let builder = Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never);
    let engine = builder.build().expect("the CPU is always there");
    let bare = Bare::open(filter);
    let device = &engine.selected().device;
    println!("{}, {}; {rounds} rounds", device.name, device.driver);
    println!("peer: {}", bare.as_ref().map_or("no adapter", |bare| &bare.name));
    let opencl = Engine::builder().config(Config::default()).backend("opencl").fallback(Fallback::Never).build();
    match &opencl {
        Ok(opencl) => println!("peer: {} ({})", opencl.selected().device.name, opencl.selected().device.driver),
        Err(error) => println!("peer: no OpenCL ({error})"),
    }
    families(&engine, bare.as_ref(), opencl.as_ref().ok(), rounds);
    by_hand(&engine, rounds);
}

/// A shipped kernel at 4096 x 4096.
struct Case<'a> {
    name: &'static str,
    words: Vec<(&'static str, u32)>,
    floats: Vec<(&'static str, f32)>,
    pair: Option<(&'static str, [f32; 2])>,
    output: (&'static str, usize),
    reads: bool,
    workgroups: [u32; 3],
    uniforms: Vec<Vec<u8>>,
    values: &'a [f32],
}

fn cases(host: &[f32]) -> [Case<'_>; 4] {
    let side = SIDE as u32;
    let grid = [
        ("grid.width", side),
        ("grid.height", side),
        ("grid.first_column", 0),
        ("grid.first_row", 0),
        ("grid.tile_width", side),
        ("grid.tile_height", side),
    ];
    let grid_bytes = words(&[side, side, 0, 0, side, side]);
    let number = 5.28 * 1.618_033_988_749_895;
    let high = f32::from_bits((number as f32).to_bits() & !0xfff);
    let low = (number - f64::from(high)) as f32;
    let picture = SIDE * SIDE;
    let groups = (picture / 8192) as u32;
    let span = [("span.count", picture as u32), ("span.blocks", 1)];
    let sheet = [("sheet.width", side), ("sheet.height", side), ("sheet.blocks", 1)];
    let sheet_groups = [(side - 1).div_ceil(256), (side - 1).div_ceil(32), 1];
    let one = 1.0_f32.to_bits();
    [
        Case {
            name: "field",
            words: grid.to_vec(),
            floats: vec![("wave.phase", 0.0)],
            pair: Some(("wave.number", [high, low])),
            output: ("values", picture),
            reads: false,
            workgroups: [side / 256, side, 1],
            uniforms: vec![grid_bytes.clone(), words(&[high.to_bits(), low.to_bits(), 0, 0])],
            values: &[],
        },
        Case {
            name: "phi_pattern",
            words: grid.to_vec(),
            floats: Vec::new(),
            pair: None,
            output: ("values", picture),
            reads: false,
            workgroups: [side / 256, side, 1],
            uniforms: vec![grid_bytes],
            values: &[],
        },
        Case {
            name: "coherence_moments",
            words: span.to_vec(),
            floats: vec![("span.high", 0.0), ("span.factor", 1.0), ("span.shift", 0.0)],
            pair: None,
            output: ("partials", groups as usize * 4),
            reads: true,
            workgroups: [groups, 1, 1],
            uniforms: vec![words(&[picture as u32, 1, 0, one, 0, 0, 0, 0])],
            values: host,
        },
        Case {
            name: "coherence_neighbour_sum",
            words: sheet.to_vec(),
            floats: vec![("sheet.high", 0.0), ("sheet.factor", 1.0), ("sheet.shift", 0.0)],
            pair: None,
            output: ("partials", (sheet_groups[0] * sheet_groups[1]) as usize),
            reads: true,
            workgroups: sheet_groups,
            uniforms: vec![words(&[side, side, 1, 0, one, 0, 0, 0])],
            values: host,
        },
    ]
}

/// Every shipped kernel at 4096 x 4096.
fn families(engine: &Engine, bare: Option<&Bare>, opencl: Option<&Engine>, rounds: usize) {
    let values = ops::field::field(engine, &ops::field::FieldParams::new(SIDE, SIDE)).expect("computes");
    let host = values.to_vec::<f32>().expect("reads");
    for case in cases(&host) {
        let kernel = shipped(case.name);
        let output = engine.zeros::<f32>(&[case.output.1]).expect("allocates");
        let mut tensors = vec![(case.output.0, output)];
        if case.reads {
            tensors.push(("values", values.clone()));
        }
        let wgsl = kernel.wgsl().to_owned();
        let translated = opencl.map(|opencl| {
            let mut tensors = vec![(case.output.0, opencl.zeros::<f32>(&[case.output.1]).expect("allocates"))];
            if case.reads {
                tensors.push(("values", opencl.tensor_from(case.values, &[SIDE, SIDE]).expect("uploads")));
            }
            Ours {
                engine: opencl,
                kernel: kernel.without_ahead(),
                tensors,
                words: case.words.clone(),
                floats: case.floats.clone(),
                pair: case.pair,
                workgroups: case.workgroups,
            }
        });
        let peer = bare.map(|bare| {
            let mut resources: Vec<Resource<'_>> = case.uniforms.iter().map(|bytes| Resource::Uniform(bytes)).collect();
            if case.reads {
                resources.push(Resource::Storage(bytemuck::cast_slice(case.values)));
            }
            resources.push(Resource::Zeros(case.output.1 as u64 * 4));
            let result = resources.len() - 1;
            bare.kernel(&wgsl, case.name, &resources, result)
        });
        let ours = Ours {
            engine,
            kernel,
            tensors,
            words: case.words,
            floats: case.floats,
            pair: case.pair,
            workgroups: case.workgroups,
        };
        let mut ways = ours.ways();
        if let Some(peer) = &peer {
            ways.push(Way::new("llvmpipe", || peer.run(case.workgroups, 1)));
        }
        if let Some(translated) = &translated {
            ways.push(Way::new("PoCL", || translated.run(&translated.kernel)));
        }
        row(case.name, rounds, ways);
    }
}

/// Kernels beside loops written by hand.
fn by_hand(engine: &Engine, rounds: usize) {
    copy_and_saxpy(engine, rounds);
    matmul(engine, rounds);
    rms_norm(engine, rounds);
    mandelbrot(engine, rounds);
}

fn copy_and_saxpy(engine: &Engine, rounds: usize) {
    let count = 1 << 24;
    let (mut copied, mut summed) = (vec![0.0_f32; count], vec![0.0_f32; count]);
    let x: Vec<f32> = (0..count).map(|i| (i % 1000) as f32).collect();
    let (source, target) =
        (engine.tensor_from(&x, &[count]).expect("uploads"), engine.zeros::<f32>(&[count]).expect("allocates"));
    let workgroups = [(count / 256) as u32, 1, 1];
    let tensors = vec![("x", source), ("y", target)];

    let kernel = kernels::copy::kernel().expect("is fresh");
    let ours = Ours {
        engine,
        kernel,
        tensors: tensors.clone(),
        words: Vec::new(),
        floats: Vec::new(),
        pair: None,
        workgroups,
    };
    let mut ways = ours.ways();
    ways.push(Way::new("two plain threads", || {
        timed(|| {
            let (low, high) = copied.split_at_mut(count / 2);
            std::thread::scope(|scope| {
                scope.spawn(|| low.copy_from_slice(&x[..count / 2]));
                high.copy_from_slice(&x[count / 2..]);
            });
        })
    }));
    row("control: copy of 64 MiB", rounds, ways);

    let kernel = kernels::saxpy::kernel().expect("is fresh");
    let ours = Ours { engine, kernel, tensors, words: Vec::new(), floats: vec![("a", 0.5)], pair: None, workgroups };
    let mut ways = ours.ways();
    ways.push(Way::new("rayon by hand", || {
        timed(|| {
            summed.par_chunks_mut(1 << 16).zip(x.par_chunks(1 << 16)).for_each(|(y, x)| {
                for (y, x) in y.iter_mut().zip(x) {
                    *y += 0.5 * *x;
                }
            });
        })
    }));
    row("saxpy of 2^24", rounds, ways);
}

fn matmul(engine: &Engine, rounds: usize) {
    let side = 1024_usize;
    let matrix: Vec<f32> = (0..side * side).map(|i| ((i * 7) % 13) as f32 - 6.0).collect();
    let tensor = |values: &[f32]| engine.tensor_from(values, &[side, side]).expect("uploads");
    let result = engine.zeros::<f32>(&[side, side]).expect("allocates");
    let tiles = (side / 16) as u32;
    let ours = Ours {
        engine,
        kernel: kernels::matmul::kernel().expect("is fresh"),
        tensors: vec![("a", tensor(&matrix)), ("b", tensor(&matrix)), ("c", result.clone())],
        words: vec![("side", side as u32)],
        floats: Vec::new(),
        pair: None,
        workgroups: [tiles, tiles, 1],
    };
    let time = row("matmul of 1024, tiles of 16 x 16", rounds, ours.ways());
    println!("{:34} {:.1} GFLOP/s", "", 2.0 * (side as f64).powi(3) / time / 1e6);
    let found = result.to_vec::<f32>().expect("reads");
    for (row, column) in [(0, 0), (17, 5), (1023, 1000)] {
        let exact: f32 = (0..side).map(|k| matrix[row * side + k] * matrix[k * side + column]).sum();
        assert!((found[row * side + column] - exact).abs() < 0.5, "integers: exact");
    }
}

fn rms_norm(engine: &Engine, rounds: usize) {
    let tensor = |values: Vec<f32>, shape: &[usize]| engine.tensor_from(&values, shape).expect("uploads");
    let kernel = kernels::rms_norm::kernel().expect("is fresh");
    let ours = Ours {
        engine,
        kernel: kernel.with_override("EPSILON", 0.5).expect("is an override"),
        tensors: vec![
            ("x", tensor((0..SIDE * SIDE).map(|i| (i % 1000) as f32).collect(), &[SIDE, SIDE])),
            ("weight", tensor((0..SIDE).map(|i| (i % 10) as f32).collect(), &[SIDE])),
            ("y", engine.zeros::<f32>(&[SIDE, SIDE]).expect("allocates")),
        ],
        words: vec![("params.rows", SIDE as u32), ("params.quads", SIDE as u32 / 4)],
        floats: Vec::new(),
        pair: None,
        workgroups: [SIDE as u32, 1, 1],
    };
    row("rms_norm 4096 x 4096, override set", rounds, ours.ways());
}

fn mandelbrot(engine: &Engine, rounds: usize) {
    let mut steps = vec![0_u32; 1024 * 1024];
    let (width, limit) = (1024_usize, 256_u32);
    let result = engine.zeros::<u32>(&[width, width]).expect("allocates");
    let ours = Ours {
        engine,
        kernel: kernels::mandelbrot::kernel().expect("is fresh"),
        tensors: vec![("steps", result.clone())],
        words: vec![("picture.width", width as u32), ("picture.height", width as u32), ("picture.limit", limit)],
        floats: Vec::new(),
        pair: None,
        workgroups: [width as u32 / 16, width as u32 / 16, 1],
    };
    let mut ways = ours.ways();
    ways.push(Way::new("scalar rayon loop", || {
        timed(|| {
            steps.par_chunks_mut(width).enumerate().for_each(|(row, steps)| {
                let c_y = row as f32 * (3.0 / width as f32) - 1.5;
                for (column, steps) in steps.iter_mut().enumerate() {
                    *steps = escape(column as f32 * (3.0 / width as f32) - 2.0, c_y, limit);
                }
            });
        })
    }));
    row("mandelbrot 1024 x 1024 x 256", rounds, ways);
    assert_eq!(result.to_vec::<u32>().expect("reads"), steps, "the same steps");
}

fn escape(c_x: f32, c_y: f32, limit: u32) -> u32 {
    let (mut x, mut y, mut n) = (0.0_f32, 0.0_f32, 0);
    while n < limit && x * x + y * y <= 4.0 {
        (x, y) = (x * x - y * y + c_x, 2.0 * x * y + c_y);
        n += 1;
    }
    n
}
