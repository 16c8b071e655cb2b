//! Tensor operations on the CPU backend beside PyTorch's eager ones and NumPy, in a process that stays up.
//!
//! The rows are interleaved, and each figure is the median of the rounds. A time runs from recording the operation to the end of the work,
//! the result left where it was computed, its memory from the pool as theirs is from their allocator. Both use two threads. The control row
//! copies 64 MiB.
//!
//! `cargo bench -p cantus-benches --bench tensor [-- ROUNDS [FILTER]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::{Duration, Instant};

use cantus::ops::{Expr, Window};
use cantus::{Engine, Fallback, Tensor};
use peers::process::Peer;

const SIDE: usize = 4096;
/// Between what one side does and what the other does.
const PAUSE: Duration = Duration::from_millis(300);

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64) * 1e3
}

/// Numbers in [-4, 4).
fn random(engine: &Engine, shape: &[usize], seed: u64) -> Tensor {
    let uniform = cantus::ops::rand(engine, shape, seed);
    (uniform * 8.0 - 4.0).eval().expect("random numbers")
}

/// A row: its name, its work, the names of its peers with what is at most our share of their time.
struct Row<'a> {
    name: &'static str,
    expr: Box<dyn Fn() -> Expr + 'a>,
    goals: &'static [(&'static str, f64)],
    flops: f64,
}

struct Inputs {
    x: Tensor,
    y: Tensor,
    g: Tensor,
    b: Tensor,
    s: Tensor,
    image: Tensor,
    weight: Tensor,
    matrices: [[Tensor; 2]; 3],
}

impl Inputs {
    fn new(engine: &Engine) -> Self {
        let random = |shape: &[usize], seed| random(engine, shape, seed);
        Self {
            x: random(&[SIDE, SIDE], 1),
            y: random(&[SIDE, SIDE], 2),
            g: random(&[SIDE], 3),
            b: random(&[SIDE], 4),
            s: random(&[128, SIDE], 5),
            image: random(&[8, 64, 56, 56], 6),
            weight: random(&[64, 64, 3, 3], 7),
            matrices: [512, 1024, 2048].map(|n| [random(&[n, n], 8), random(&[n, n], 9)]),
        }
    }
}

fn row<'a>(name: &'static str, goals: &'static [(&'static str, f64)], expr: impl Fn() -> Expr + 'a) -> Row<'a> {
    Row { name, expr: Box::new(expr), goals, flops: 0.0 }
}

fn rows(inputs: &Inputs) -> Vec<Row<'_>> {
    const ALONE: f64 = 1.0 / 0.95;
    const CHAIN: f64 = 1.0 / 1.5;
    let Inputs { x, y, g, b, s, image, weight, matrices: [small, middle, large] } = inputs;
    let conv = row("conv2d", &[("conv2d", ALONE)], move || image.conv2d(weight, Window::default().padded(1), 1));
    vec![
        row("control: copy of 64 MiB", &[("copy", ALONE)], move || x * 1.0),
        product("matmul 512", &[("matmul_512", ALONE)], small),
        product("matmul 1024", &[("matmul_1024", ALONE)], middle),
        product("matmul 2048", &[("matmul_2048", ALONE)], large),
        Row { flops: 2.0 * 8.0 * 64.0 * 64.0 * 56.0 * 56.0 * 9.0, ..conv },
        row("silu", &[("silu", ALONE)], move || x.silu()),
        row("softmax", &[("softmax", ALONE)], move || x.softmax(-1)),
        row("sum", &[("sum", ALONE)], move || x.sum(&[], false)),
        row("broadcast add", &[("add_row", ALONE)], move || x + b),
        row("gelu", &[("gelu", ALONE), ("numpy_gelu", 1.0 / 20.0)], move || x.gelu()),
        row("rms_norm 128 x 4096", &[("rms_norm", ALONE), ("numpy_rms_norm", 0.5)], move || s.rms_norm(g, 1e-6)),
        row("silu(a) b", &[("silu_mul", CHAIN)], move || x.silu() * y),
        row("gelu(x w + b)", &[("gelu_affine", CHAIN)], move || (x * y + b).gelu()),
        row("(x - mean) / sqrt(var + eps) g + b", &[("normalise", CHAIN)], move || {
            let mean = x.mean(&[-1], true);
            let variance = x.variance(&[-1], 0.0, true);
            (x - mean) / (variance + 1e-5).sqrt() * g + b
        }),
    ]
}

fn product<'a>(name: &'static str, goals: &'static [(&'static str, f64)], [a, b]: &'a [Tensor; 2]) -> Row<'a> {
    let n = a.shape()[0] as f64;
    Row { flops: 2.0 * n * n * n, ..row(name, goals, move || a.matmul(b)) }
}

/// Prints the medians of a row's rounds.
fn measure(row: &Row<'_>, engine: &Engine, peer: &mut Option<Peer>, rounds: usize) {
    let (mut ours, mut theirs) = (Vec::new(), vec![Vec::new(); row.goals.len()]);
    for round in 0..=rounds {
        // The peer's threads spin for a while after their work: whoever runs next would share the processor with them. Of two
        // runs the second counts, on both sides: threads are awake then.
        std::thread::sleep(PAUSE);
        let run = || {
            let start = Instant::now();
            let result = (row.expr)().eval().expect("the operation runs");
            engine.finish().expect("the work ends");
            let time = start.elapsed();
            drop(result);
            time
        };
        run();
        let time = run();
        let others: Vec<Duration> = row
            .goals
            .iter()
            .filter_map(|(name, _)| {
                std::thread::sleep(PAUSE);
                let peer = peer.as_mut()?;
                peer.call(name, 0);
                Some(peer.call(name, 0).0)
            })
            .collect();
        if round > 0 {
            ours.push(time);
            others.into_iter().zip(&mut theirs).for_each(|(time, times)| times.push(time));
        }
    }
    let ours = median(&mut ours);
    print!("{:36} {ours:8.2} ms", row.name);
    if row.flops > 0.0 {
        print!(" {:6.1} GFLOP/s", row.flops / ours / 1e6);
    }
    for ((name, goal), times) in row.goals.iter().zip(&mut theirs) {
        let theirs = median(times);
        print!("   {name} {theirs:8.2} ms, ratio {:.2} (goal {goal:.2})", ours / theirs);
    }
    println!();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let rounds = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(9);
    let filter = arguments.get(1).cloned().unwrap_or_default();
    let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).build().expect("the processor");
    let mut peer = Peer::python("tensor_torch.py", "cpu");
    println!("{}, {rounds} rounds", engine.selected().device.name);
    println!("{}", peer.as_ref().map_or("no peer: run benches/peers/setup.sh", |peer| &peer.version));
    let inputs = Inputs::new(&engine);
    for row in rows(&inputs).iter().filter(|row| row.name.contains(&filter)) {
        measure(row, &engine, &mut peer, rounds);
    }
}
