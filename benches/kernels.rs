//! Fifteen kernels as people write them, on a plain processor: compiled ahead, on the executor, on a software adapter through bare wgpu,
//! translated on PoCL, and as C that clang compiled for this very processor (`-O3 -march=native -ffp-contract=fast`).
//!
//! The rows are interleaved, and each figure is the median of the rounds; every way's result is compared with plain Rust first. A time
//! runs from the dispatch to the end of the work. C runs on two threads, kernels without barriers alone. The first run of a kernel on the executor, from its text on, is the last column.
//!
//! `cargo bench -p cantus-benches --bench kernels [-- ROUNDS [NAME]]`

#![allow(clippy::expect_used, clippy::panic, reason = "a bench that cannot run stops")]

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use cantus::translate::{Argument, Dialect, Options};
use cantus::{Config, Engine, Fallback, Kernel, Tensor};
use peers::bare::{Bare, Resource};
use sha2::Digest as _;

mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// A storage buffer's first contents.
#[derive(Clone)]
enum Data {
    F32(Vec<f32>),
    U32(Vec<u32>),
}

impl Data {
    fn bytes(&self) -> &[u8] {
        match self {
            Data::F32(values) => bytemuck::cast_slice(values),
            Data::U32(values) => bytemuck::cast_slice(values),
        }
    }

    fn tensor(&self, engine: &Engine) -> Tensor {
        match self {
            Data::F32(values) => engine.tensor(values),
            Data::U32(values) => engine.tensor(values),
        }
        .expect("uploads")
    }
}

/// The expected result.
enum Expected {
    /// Bit for bit.
    Words(Vec<u32>),
    /// Within this of each value; a few that lie on an edge may differ (their share).
    Near(Vec<f64>, f64, f64),
}

struct Case {
    name: &'static str,
    kernel: Kernel,
    /// The uniform at binding 0, if there is one.
    uniform: Option<(&'static str, Vec<u32>)>,
    /// The rest, in order.
    buffers: Vec<(&'static str, Data)>,
    /// The buffer whose contents are compared.
    result: usize,
    workgroups: [u32; 3],
    expected: Expected,
}

/// Numbers without a pattern (SplitMix64), the same in each run.
struct Numbers(u64);

impl Numbers {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as u32
    }

    fn unit(&mut self) -> f32 {
        (self.word() >> 8) as f32 / (1 << 24) as f32
    }

    fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.word()).collect()
    }

    fn units(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.unit()).collect()
    }
}

/// A way to run a case, and the time of one run.
struct Way<'a> {
    name: &'static str,
    run: Box<dyn FnMut() -> Duration + 'a>,
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A case on an engine.
struct Ours<'a> {
    case: &'a Case,
    engine: &'a Engine,
    tensors: Vec<Tensor>,
}

impl<'a> Ours<'a> {
    fn new(case: &'a Case, engine: &'a Engine) -> Self {
        Ours { case, engine, tensors: case.buffers.iter().map(|(_, data)| data.tensor(engine)).collect() }
    }

    fn run(&self, kernel: &Kernel) -> Duration {
        timed(|| {
            let mut dispatch = self.engine.dispatch(kernel);
            if let Some((name, words)) = &self.case.uniform {
                dispatch = dispatch.set_bytes(name, bytemuck::cast_slice(words));
            }
            for ((name, _), tensor) in self.case.buffers.iter().zip(&self.tensors) {
                dispatch = dispatch.bind(name, tensor);
            }
            dispatch.workgroups(self.case.workgroups).run().expect("runs");
            self.engine.finish().expect("finishes");
        })
    }

    fn checked(&self, kernel: &Kernel, who: &str) {
        self.run(kernel);
        let result = &self.tensors[self.case.result];
        let bytes: Vec<u8> = match self.case.buffers[self.case.result].1 {
            Data::F32(_) => bytemuck::cast_slice(&result.to_vec::<f32>().expect("reads")).to_vec(),
            Data::U32(_) => bytemuck::cast_slice(&result.to_vec::<u32>().expect("reads")).to_vec(),
        };
        self.case.check(&bytes, who);
    }
}

impl Case {
    fn check(&self, bytes: &[u8], who: &str) {
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().expect("four"))).collect();
        match &self.expected {
            Expected::Words(expected) => {
                let wrong = words.iter().zip(expected).position(|(word, expected)| word != expected);
                assert!(wrong.is_none() && words.len() == expected.len(), "{} on {who}: wrong at {wrong:?}", self.name);
            }
            Expected::Near(expected, within, share) => {
                assert_eq!(words.len(), expected.len(), "{} on {who}", self.name);
                let far = |(word, expected): &(&u32, &f64)| {
                    let error = (f64::from(f32::from_bits(**word)) - **expected).abs();
                    error.is_nan() || error > *within
                };
                let wrong = words.iter().zip(expected).filter(far).count();
                assert!(wrong as f64 <= share * words.len() as f64, "{} on {who}: {wrong} are wrong", self.name);
            }
        }
    }

    fn bare<'a>(&self, bare: &'a Bare) -> peers::bare::BareKernel<'a> {
        let uniform = self.uniform.iter().map(|(_, words)| Resource::Uniform(bytemuck::cast_slice(words)));
        let storage = self.buffers.iter().map(|(_, data)| Resource::Storage(data.bytes()));
        let resources: Vec<Resource<'_>> = uniform.chain(storage).collect();
        let result = self.result + usize::from(self.uniform.is_some());
        bare.kernel(self.kernel.wgsl(), self.kernel.name(), &resources, result)
    }
}

/// A case as C that clang compiled.
struct InC {
    library: libloading::Library,
    memory: Vec<Vec<u128>>,
    sizes: Vec<u32>,
    workgroups: [u32; 3],
}

type Range = unsafe extern "C" fn(*const *mut u8, *const u32, *const u32, u32, u32);

impl InC {
    fn new(case: &Case, folder: &std::path::Path) -> Option<Self> {
        let translation = case.kernel.translate(Dialect::Host, &Options::new()).expect("translates");
        let mut arguments = "workgroup, workgroups".to_owned();
        for argument in &translation.arguments {
            let _ = match argument {
                Argument::Sizes { indices } => {
                    let sizes: Vec<String> = indices.iter().map(|index| format!("sizes[{index}]")).collect();
                    write!(arguments, ", (cantus_sizes){{ {} }}", sizes.join(", "))
                }
                Argument::Pointer { index } | Argument::Value { index, .. } => write!(arguments, ", buffers[{index}]"),
            };
        }
        let source = format!(
            "{}\nvoid range(void **buffers, const u32 *sizes, const u32 *workgroups, u32 from, u32 to) {{\n    \
             for (u32 at = from; at < to; at++) {{\n        \
             const u32 workgroup[3] = {{ at % workgroups[0], at / workgroups[0] % workgroups[1], at / workgroups[0] / workgroups[1] }};\n        \
             {}({arguments});\n    }}\n}}\n",
            translation.source, translation.entry
        );
        let (file, library) = (folder.join(format!("{}.c", case.name)), folder.join(format!("{}.so", case.name)));
        std::fs::write(&file, source).expect("writes");
        let flags = ["-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast", "-w", "-shared", "-fPIC", "-o"];
        let built = Command::new("clang").args(flags).args([&library, &file]).arg("-lm").output().ok()?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        // SAFETY: compiled just now, without initialisers.
        let library = unsafe { libloading::Library::new(library) }.expect("loads");
        let uniform = case.uniform.iter().map(|(_, words)| bytemuck::cast_slice(words));
        let contents: Vec<&[u8]> = uniform.chain(case.buffers.iter().map(|(_, data)| data.bytes())).collect();
        let aligned = |bytes: &&[u8]| {
            let mut words = vec![0_u128; bytes.len().div_ceil(16)];
            bytemuck::cast_slice_mut::<u128, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
            words
        };
        Some(Self {
            library,
            memory: contents.iter().map(aligned).collect(),
            sizes: contents.iter().map(|bytes| bytes.len() as u32).collect(),
            workgroups: case.workgroups,
        })
    }

    fn run(&mut self) -> Duration {
        let pointers: Vec<usize> = self.memory.iter_mut().map(|words| words.as_mut_ptr() as usize).collect();
        // SAFETY: the type is as it was written.
        let range = unsafe { *self.library.get::<Range>(b"range").expect("is there") };
        let count = self.workgroups.iter().product::<u32>();
        let part = |from, to| {
            // SAFETY: made for these buffers, which live; workgroups write places of their own, or atomically.
            unsafe { range(pointers.as_ptr().cast(), self.sizes.as_ptr(), self.workgroups.as_ptr(), from, to) }
        };
        timed(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| part(0, count / 2));
                part(count / 2, count);
            });
        })
    }

    fn result(&self, case: &Case) -> &[u8] {
        let at = case.result + usize::from(case.uniform.is_some());
        &bytemuck::cast_slice::<u128, u8>(&self.memory[at])[..self.sizes[at] as usize]
    }
}

/// Times a new kernel from its text to the end of its first run on a small input, on the executor.
fn first_run(case: &Case, engine: &Engine, number: usize) -> Duration {
    let text = format!("{}\n// {number}\n", case.kernel.wgsl());
    let tensors: Vec<Tensor> = case.buffers.iter().map(|(_, data)| data.tensor(engine)).collect();
    timed(|| {
        let kernel = Kernel::from_wgsl(&text).expect("parses");
        let mut dispatch = engine.dispatch(&kernel);
        if let Some((name, words)) = &case.uniform {
            dispatch = dispatch.set_bytes(name, bytemuck::cast_slice(words));
        }
        for ((name, _), tensor) in case.buffers.iter().zip(&tensors) {
            dispatch = dispatch.bind(name, tensor);
        }
        dispatch.workgroups([1, 1, 1]).run().expect("runs");
        engine.finish().expect("finishes");
    })
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64) * 1e3
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let rounds: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(9);
    let filter = arguments.get(1).map_or("", String::as_str);
    let open = |name| Engine::builder().config(Config::default()).backend(name).fallback(Fallback::Never).build();
    let engine = open("cpu").expect("the CPU is always there");
    let (bare, opencl) = (Bare::open("llvmpipe"), open("opencl").ok());
    let folder = tempfile::tempdir().expect("a folder");
    println!("{}; {rounds} rounds", engine.selected().device.name);
    println!("llvmpipe: {}", bare.as_ref().map_or("none", |bare| &bare.name));
    println!("OpenCL: {}", opencl.as_ref().map_or("none", |opencl| &opencl.selected().device.name));
    println!("| kernel | ahead | executor | llvmpipe | PoCL | clang | executor/llvmpipe | ahead/clang | first run |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut ratios = [(0.0, 0), (0.0, 0)];
    for make in CASES {
        let case = make();
        if case.name.contains(filter) {
            let against = measure(&case, &engine, bare.as_ref(), opencl.as_ref(), folder.path(), rounds);
            for (sum, ratio) in ratios.iter_mut().zip(against) {
                if let Some(ratio) = ratio {
                    *sum = (sum.0 + ratio.ln(), sum.1 + 1);
                }
            }
        }
    }
    for ((sum, count), what) in ratios.into_iter().zip(["executor over llvmpipe", "ahead over clang"]) {
        println!("{what}: {:.2}, geometric mean of {count}", (sum / f64::from(count)).exp());
    }
}

/// Prints a case's row. Returns the executor's time over llvmpipe's, and that of code compiled ahead over clang's.
fn measure(
    case: &Case,
    engine: &Engine,
    bare: Option<&Bare>,
    opencl: Option<&Engine>,
    folder: &std::path::Path,
    rounds: usize,
) -> [Option<f64>; 2] {
    let plain = case.kernel.without_ahead();
    assert!(case.kernel.compiled_ahead().is_some(), "{} is compiled ahead", case.name);
    let ours = Ours::new(case, engine);
    ours.checked(&case.kernel, "ahead");
    let executor = Ours::new(case, engine);
    executor.checked(&plain, "the executor");
    let peer = bare.map(|bare| case.bare(bare));
    if let Some(peer) = &peer {
        let mut bytes = case.buffers[case.result].1.bytes().to_vec();
        peer.run_and_read(case.workgroups, 1, &mut bytes);
        case.check(&bytes, "llvmpipe");
    }
    let translated = opencl.map(|opencl| Ours::new(case, opencl));
    if let Some(translated) = &translated {
        translated.checked(&plain, "PoCL");
    }
    // Invocations that wait for each other are fibers in C: a hundred times as slow, and nobody's way to write it.
    let barriers = case.kernel.wgsl().contains("workgroupBarrier");
    let mut in_c = if barriers { None } else { InC::new(case, folder) };
    if let Some(in_c) = &mut in_c {
        in_c.run();
        case.check(in_c.result(case), "clang");
    }
    let mut ways = vec![
        Way { name: "ahead", run: Box::new(|| ours.run(&case.kernel)) },
        Way { name: "executor", run: Box::new(|| executor.run(&plain)) },
    ];
    if let Some(peer) = &peer {
        ways.push(Way { name: "llvmpipe", run: Box::new(|| peer.run(case.workgroups, 1)) });
    }
    if let Some(translated) = &translated {
        ways.push(Way { name: "PoCL", run: Box::new(|| translated.run(&plain)) });
    }
    if let Some(in_c) = &mut in_c {
        ways.push(Way { name: "clang", run: Box::new(|| in_c.run()) });
    }
    let mut times = vec![Vec::new(); ways.len()];
    for round in 0..=rounds {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            let time = (way.run)();
            if round > 0 {
                times.push(time);
            }
        }
    }
    let medians: Vec<(&str, f64)> = ways.iter().zip(&mut times).map(|(way, times)| (way.name, median(times))).collect();
    drop(ways);
    let of = |name: &str| medians.iter().find(|(known, _)| *known == name).map(|(_, time)| *time);
    let shown = |name: &str| of(name).map_or("-".to_owned(), |time| format!("{time:.2} ms"));
    let ratio = |ours: &str, theirs: &str| Some(of(ours)? / of(theirs)?);
    let mut first: Vec<Duration> = (0..5).map(|number| first_run(case, engine, number)).collect();
    let against = [ratio("executor", "llvmpipe"), ratio("ahead", "clang")];
    let [llvmpipe, clang] = against.map(|ratio| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")));
    println!(
        "| {} | {} | {} | {} | {} | {} | {llvmpipe} | {clang} | {:.2} ms |",
        case.name,
        shown("ahead"),
        shown("executor"),
        shown("llvmpipe"),
        shown("PoCL"),
        shown("clang"),
        median(&mut first),
    );
    against
}

const CASES: [fn() -> Case; 15] = [
    nbody, matmul, stencil, jacobi, histogram, bitonic, radix, mandelbrot, march, sha256, bfs, scan, fft, kmeans,
    search,
];

fn nbody() -> Case {
    let count = 4096_usize;
    let mut numbers = Numbers(1);
    let bodies = numbers.units(count * 4);
    let at = |i: usize, axis: usize| f64::from(bodies[i * 4 + axis]);
    let mut expected = vec![0.0; count * 4];
    for i in 0..count {
        for j in 0..count {
            let way = [0, 1, 2].map(|axis| at(j, axis) - at(i, axis));
            let squared = way.iter().map(|x| x * x).sum::<f64>() + 0.01;
            for axis in 0..3 {
                expected[i * 4 + axis] += way[axis] * at(j, 3) / (squared * squared.sqrt());
            }
        }
    }
    Case {
        name: "nbody",
        kernel: kernels::nbody::kernel().expect("is fresh"),
        uniform: Some(("params", vec![count as u32, 0.01_f32.to_bits()])),
        buffers: vec![("bodies", Data::F32(bodies)), ("accelerations", Data::F32(vec![0.0; count * 4]))],
        result: 1,
        workgroups: [count as u32 / 64, 1, 1],
        expected: Expected::Near(expected, 0.1, 0.0),
    }
}

fn matmul() -> Case {
    let side = 512_usize;
    let a: Vec<f32> = (0..side * side).map(|i| (i * 7 % 13) as f32 - 6.0).collect();
    let mut expected = vec![0.0; side * side];
    for row in 0..side {
        for k in 0..side {
            for column in 0..side {
                expected[row * side + column] += f64::from(a[row * side + k]) * f64::from(a[k * side + column]);
            }
        }
    }
    Case {
        name: "matmul",
        kernel: kernels::matmul::kernel().expect("is fresh"),
        uniform: Some(("side", vec![side as u32])),
        buffers: vec![("a", Data::F32(a.clone())), ("b", Data::F32(a)), ("c", Data::F32(vec![0.0; side * side]))],
        result: 2,
        workgroups: [side as u32 / 16, side as u32 / 16, 1],
        expected: Expected::Near(expected, 0.5, 0.0),
    }
}

fn stencil() -> Case {
    let (width, height) = (2048_usize, 1024_usize);
    let image = Numbers(3).units(width * height);
    let at = |x: i64, y: i64| {
        f64::from(image[y.clamp(0, height as i64 - 1) as usize * width + x.clamp(0, width as i64 - 1) as usize])
    };
    let mut expected = Vec::new();
    for y in 0..height as i64 {
        for x in 0..width as i64 {
            let line = |y| at(x - 1, y) + 2.0 * at(x, y) + at(x + 1, y);
            expected.push((line(y - 1) + 2.0 * line(y) + line(y + 1)) / 16.0);
        }
    }
    Case {
        name: "stencil",
        kernel: kernels::stencil::kernel().expect("is fresh"),
        uniform: Some(("params", vec![width as u32, height as u32])),
        buffers: vec![("image", Data::F32(image)), ("filtered", Data::F32(vec![0.0; width * height]))],
        result: 1,
        workgroups: [width as u32 / 16, height as u32 / 16, 1],
        expected: Expected::Near(expected, 1e-5, 0.0),
    }
}

fn jacobi() -> Case {
    let (width, height) = (2048_usize, 1024_usize);
    let before = Numbers(4).units(width * height);
    let mut expected: Vec<f64> = before.iter().map(|value| f64::from(*value)).collect();
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let at = y * width + x;
            expected[at] =
                [at - 1, at + 1, at - width, at + width].iter().map(|at| f64::from(before[*at])).sum::<f64>() / 4.0;
        }
    }
    Case {
        name: "jacobi",
        kernel: kernels::jacobi::kernel().expect("is fresh"),
        uniform: Some(("params", vec![width as u32, height as u32])),
        buffers: vec![("before", Data::F32(before)), ("after", Data::F32(vec![0.0; width * height]))],
        result: 1,
        workgroups: [width as u32 / 16, height as u32 / 16, 1],
        expected: Expected::Near(expected, 1e-5, 0.0),
    }
}

fn histogram() -> Case {
    let count = 1_usize << 22;
    let values = Numbers(5).words(count);
    let mut expected = vec![0_u32; 256];
    for value in &values {
        expected[(value & 255) as usize] += 1;
    }
    Case {
        name: "histogram",
        kernel: kernels::histogram::kernel().expect("is fresh"),
        uniform: Some(("params", vec![count as u32])),
        buffers: vec![("values", Data::U32(values)), ("bins", Data::U32(vec![0; 256]))],
        result: 1,
        workgroups: [256, 1, 1],
        expected: Expected::Words(expected),
    }
}

fn bitonic() -> Case {
    let values = Numbers(6).words(1 << 20);
    let mut expected = values.clone();
    expected.chunks_mut(512).for_each(<[u32]>::sort_unstable);
    Case {
        name: "bitonic",
        kernel: kernels::bitonic::kernel().expect("is fresh"),
        uniform: None,
        buffers: vec![("values", Data::U32(values)), ("ordered", Data::U32(vec![0; 1 << 20]))],
        result: 1,
        workgroups: [(1 << 20) / 512, 1, 1],
        expected: Expected::Words(expected),
    }
}

fn radix() -> Case {
    let keys = Numbers(7).words(1 << 20);
    let mut expected = keys.clone();
    expected.chunks_mut(256).for_each(|run| run.sort_by_key(|key| key >> 8 & 15));
    Case {
        name: "radix",
        kernel: kernels::radix::kernel().expect("is fresh"),
        uniform: Some(("params", vec![8])),
        buffers: vec![
            ("keys", Data::U32(keys)),
            ("ordered", Data::U32(vec![0; 1 << 20])),
            ("digits", Data::U32(vec![0; (1 << 20) / 16])),
        ],
        result: 1,
        workgroups: [(1 << 20) / 256, 1, 1],
        expected: Expected::Words(expected),
    }
}

fn mandelbrot() -> Case {
    let (width, limit) = (1024_usize, 256_u32);
    let mut expected = Vec::new();
    for row in 0..width {
        for column in 0..width {
            let (c_x, c_y) = (column as f64 * 3.0 / width as f64 - 2.0, row as f64 * 3.0 / width as f64 - 1.5);
            let (mut x, mut y, mut n) = (0.0, 0.0, 0);
            while n < limit && x * x + y * y <= 4.0 {
                (x, y) = (x * x - y * y + c_x, 2.0 * x * y + c_y);
                n += 1;
            }
            // As the bits of a float, so that a place on an edge may differ.
            expected.push(f64::from(f32::from_bits(n)));
        }
    }
    Case {
        name: "mandelbrot",
        kernel: kernels::mandelbrot::kernel().expect("is fresh"),
        uniform: Some(("picture", vec![width as u32, width as u32, limit])),
        buffers: vec![("steps", Data::U32(vec![0; width * width]))],
        result: 0,
        workgroups: [width as u32 / 16, width as u32 / 16, 1],
        expected: Expected::Near(expected, 0.0, 0.01),
    }
}

fn march() -> Case {
    let (width, height) = (512_usize, 512_usize);
    type Vector = [f64; 3];
    let sum = |a: Vector, b: Vector, by: f64| [a[0] + by * b[0], a[1] + by * b[1], a[2] + by * b[2]];
    let length = |a: Vector| (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt();
    let unit = move |a: Vector| a.map(|x| x / length(a));
    let scene = move |at: Vector| {
        let cell =
            [at[0] - 4.0 * (at[0] / 4.0).round_ties_even(), at[1], at[2] - 4.0 * (at[2] / 4.0).round_ties_even()];
        let ball = length([cell[0], cell[1] - 0.2 * 0.5_f64.sin(), cell[2]]) - 1.0;
        let outside = [(cell[0] - 2.0).abs() - 0.4, cell[1].abs() - 0.4, cell[2].abs() - 0.4].map(|x| x.max(0.0));
        ball.min(length(outside) - 0.1).min(at[1] + 1.0)
    };
    let mut expected = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let pixel = [x, y].map(|at| (2.0 * (at as f64 + 0.5) - 512.0) / 512.0);
            let (origin, ray) = ([0.0, 1.5, -6.0], unit([pixel[0], -pixel[1] - 0.2, 1.5]));
            let (mut distance, mut hit) = (0.0, false);
            for _ in 0..96 {
                let near = scene(sum(origin, ray, distance));
                if near < 0.001 {
                    hit = true;
                    break;
                }
                distance += near;
                if distance > 40.0 {
                    break;
                }
            }
            let at = sum(origin, ray, distance);
            let slope = |axis: usize| {
                let mut way = [0.0; 3];
                way[axis] = 0.001;
                scene(sum(at, way, 1.0)) - scene(sum(at, way, -1.0))
            };
            let (normal, sun) = (unit([slope(0), slope(1), slope(2)]), unit([0.5, 1.0, -0.7]));
            let facing: f64 = normal.iter().zip(sun).map(|(a, b)| a * b).sum();
            expected.push(if hit { (0.2 + 0.8 * facing.max(0.0)) * (-0.05 * distance).exp() } else { 0.1 });
        }
    }
    Case {
        name: "march",
        kernel: kernels::march::kernel().expect("is fresh"),
        uniform: Some(("params", vec![width as u32, height as u32, 0.5_f32.to_bits()])),
        buffers: vec![("picture", Data::F32(vec![0.0; width * height]))],
        result: 0,
        workgroups: [width as u32 / 8, height as u32 / 8, 1],
        expected: Expected::Near(expected, 0.02, 0.03),
    }
}

fn sha256() -> Case {
    let count = 1_usize << 16;
    let messages = Numbers(10).words(count * 8);
    let digest = |message: &[u32]| {
        let bytes: Vec<u8> = message.iter().flat_map(|word| word.to_be_bytes()).collect();
        let digest = sha2::Sha256::digest(bytes);
        digest.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("four"))).collect::<Vec<_>>()
    };
    let expected = messages.chunks(8).flat_map(digest).collect();
    Case {
        name: "sha256",
        kernel: kernels::sha256::kernel().expect("is fresh"),
        uniform: Some(("params", vec![count as u32])),
        buffers: vec![("messages", Data::U32(messages)), ("digests", Data::U32(vec![0; count * 8]))],
        result: 1,
        workgroups: [count as u32 / 64, 1, 1],
        expected: Expected::Words(expected),
    }
}

fn bfs() -> Case {
    let (count, degree) = (1_usize << 18, 8_usize);
    let mut numbers = Numbers(11);
    let rows: Vec<u32> = (0..=count).map(|node| (node * degree) as u32).collect();
    let edges: Vec<u32> = (0..count * degree).map(|_| numbers.word() % count as u32).collect();
    // One node in four is of level 5, and none beyond it is known.
    let levels: Vec<u32> = (0..count).map(|_| [5, u32::MAX, u32::MAX, 3][(numbers.word() % 4) as usize]).collect();
    let mut expected = levels.clone();
    for node in (0..count).filter(|node| levels[*node] == 5) {
        for edge in &edges[node * degree..(node + 1) * degree] {
            expected[*edge as usize] = expected[*edge as usize].min(6);
        }
    }
    Case {
        name: "bfs",
        kernel: kernels::bfs::kernel().expect("is fresh"),
        uniform: Some(("params", vec![count as u32, 5])),
        buffers: vec![("rows", Data::U32(rows)), ("edges", Data::U32(edges)), ("levels", Data::U32(levels))],
        result: 2,
        workgroups: [count as u32 / 128, 1, 1],
        expected: Expected::Words(expected),
    }
}

fn scan() -> Case {
    let count = 1_usize << 22;
    let values = Numbers(12).words(count);
    let mut expected = values.clone();
    for run in expected.chunks_mut(1024) {
        let mut sum = 0_u32;
        for value in run {
            sum = sum.wrapping_add(*value);
            *value = sum;
        }
    }
    Case {
        name: "scan",
        kernel: kernels::scan::kernel().expect("is fresh"),
        uniform: None,
        buffers: vec![
            ("values", Data::U32(values)),
            ("running", Data::U32(vec![0; count])),
            ("totals", Data::U32(vec![0; count / 1024])),
        ],
        result: 1,
        workgroups: [count as u32 / 1024, 1, 1],
        expected: Expected::Words(expected),
    }
}

fn fft() -> Case {
    let (count, length) = (1024_usize, 1024_usize);
    let signal = Numbers(13).units(count * length * 2);
    let roots: Vec<(f64, f64)> = (0..length)
        .map(|k| (-std::f64::consts::TAU * k as f64 / length as f64).sin_cos())
        .map(|(sin, cos)| (cos, sin))
        .collect();
    // By halves, in place of the definition's square of the length.
    fn transform(values: &[(f64, f64)], roots: &[(f64, f64)]) -> Vec<(f64, f64)> {
        if values.len() == 1 {
            return values.to_vec();
        }
        let half = |from: usize| values.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
        let (even, odd) = (transform(&half(0), roots), transform(&half(1), roots));
        let mut result = vec![(0.0, 0.0); values.len()];
        for k in 0..even.len() {
            let root = roots[k * (roots.len() / values.len())];
            let turned = (odd[k].0 * root.0 - odd[k].1 * root.1, odd[k].0 * root.1 + odd[k].1 * root.0);
            result[k] = (even[k].0 + turned.0, even[k].1 + turned.1);
            result[k + even.len()] = (even[k].0 - turned.0, even[k].1 - turned.1);
        }
        result
    }
    let mut expected = Vec::new();
    for line in signal.chunks(length * 2) {
        let line: Vec<(f64, f64)> = line.chunks(2).map(|pair| (f64::from(pair[0]), f64::from(pair[1]))).collect();
        expected.extend(transform(&line, &roots).into_iter().flat_map(|(re, im)| [re, im]));
    }
    Case {
        name: "fft",
        kernel: kernels::fft::kernel().expect("is fresh"),
        uniform: None,
        buffers: vec![("signal", Data::F32(signal)), ("spectrum", Data::F32(vec![0.0; count * length * 2]))],
        result: 1,
        workgroups: [count as u32, 1, 1],
        expected: Expected::Near(expected, 1e-2, 0.0),
    }
}

fn kmeans() -> Case {
    let (count, centres) = (1_usize << 18, 32_usize);
    let mut numbers = Numbers(14);
    let (points, places) = (numbers.units(count * 4), numbers.units(centres * 4));
    let mut expected = Vec::new();
    for point in points.chunks(4) {
        let distance = |centre: &[f32]| {
            point.iter().zip(centre).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>()
        };
        let nearest =
            (0..centres).min_by(|a, b| distance(&places[a * 4..][..4]).total_cmp(&distance(&places[b * 4..][..4])));
        expected.push(f64::from(f32::from_bits(nearest.expect("there are centres") as u32)));
    }
    Case {
        name: "kmeans",
        kernel: kernels::kmeans::kernel().expect("is fresh"),
        uniform: Some(("params", vec![count as u32, centres as u32])),
        buffers: vec![
            ("points", Data::F32(points)),
            ("centres", Data::F32(places)),
            ("nearest", Data::U32(vec![0; count])),
        ],
        result: 2,
        workgroups: [count as u32 / 128, 1, 1],
        expected: Expected::Near(expected, 0.0, 1e-4),
    }
}

fn search() -> Case {
    let (length, word) = (1_usize << 22, b"abbabaab");
    let mut numbers = Numbers(15);
    let text: Vec<u8> = (0..length).map(|_| b'a' + (numbers.word() >> 16 & 1) as u8).collect();
    let mut expected: Vec<u32> = text.windows(word.len()).map(|place| u32::from(place == word)).collect();
    expected.resize(length, 0);
    let words = |bytes: &[u8]| bytes.chunks(4).map(|four| u32::from_le_bytes(four.try_into().expect("four"))).collect();
    Case {
        name: "search",
        kernel: kernels::search::kernel().expect("is fresh"),
        uniform: Some(("params", vec![length as u32, word.len() as u32])),
        buffers: vec![
            ("text", Data::U32(words(&text))),
            ("word", Data::U32(words(word))),
            ("found", Data::U32(vec![0; length])),
        ],
        result: 2,
        workgroups: [length as u32 / 256, 1, 1],
        expected: Expected::Words(expected),
    }
}
