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
    goals: &'a [(&'static str, f64)],
    flops: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let rounds = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(9);
    let filter = arguments.get(1).cloned().unwrap_or_default();
    let engine = Engine::builder().backend("cpu").fallback(Fallback::Never).build().expect("the processor");
    let mut peer = Peer::python("tensor_torch.py", "cpu");
    println!("{}, {rounds} rounds", engine.selected().device.name);
    println!("{}", peer.as_ref().map_or("no peer: run benches/peers/setup.sh", |peer| &peer.version));

    let square = |seed| random(&engine, &[SIDE, SIDE], seed);
    let (x, y) = (square(1), square(2));
    let (g, b) = (random(&engine, &[SIDE], 3), random(&engine, &[SIDE], 4));
    let s = random(&engine, &[128, SIDE], 5);
    let (image, weight) = (random(&engine, &[8, 64, 56, 56], 6), random(&engine, &[64, 64, 3, 3], 7));
    let matrices: Vec<(Tensor, Tensor)> =
        [512, 1024, 2048].map(|n| (random(&engine, &[n, n], 8), random(&engine, &[n, n], 9))).into();
    let alone = 1.0 / 0.95;
    let matmul = |at: usize, name: &'static str, goals| {
        let (a, b) = &matrices[at];
        let n = a.shape()[0] as f64;
        Row { name, expr: Box::new(move || a.matmul(b)), goals, flops: 2.0 * n * n * n }
    };
    let row = |name, expr: Box<dyn Fn() -> Expr>, goals| Row { name, expr, goals, flops: 0.0 };
    let (x, y, g, b, s, image, weight) = (&x, &y, &g, &b, &s, &image, &weight);
    let chain = [("silu_mul", 1.0 / 1.5), ("gelu_affine", 1.0 / 1.5), ("normalise", 1.0 / 1.5)];
    let goals: Vec<Vec<(&'static str, f64)>> = [
        ["copy", "matmul_512", "matmul_1024", "matmul_2048", "conv2d", "silu", "softmax", "sum", "add_row"]
            .map(|name| vec![(name, alone)])
            .to_vec(),
        vec![vec![("gelu", alone), ("numpy_gelu", 1.0 / 20.0)], vec![("rms_norm", alone), ("numpy_rms_norm", 0.5)]],
        chain.map(|goal| vec![goal]).to_vec(),
    ]
    .concat();
    let goals: &'static [Vec<(&'static str, f64)>] = goals.leak();
    let clone = |tensor: &Tensor| tensor.clone();
    let (x1, x2, x3, x4, x5, x6, x7, x8, x9) =
        (clone(x), clone(x), clone(x), clone(x), clone(x), clone(x), clone(x), clone(x), clone(x));
    let (y1, y2, g1, g2, b1, b2, b3, s1) =
        (clone(y), clone(y), clone(g), clone(g), clone(b), clone(b), clone(b), clone(s));
    let (i1, w1) = (clone(image), clone(weight));
    let mut conv = row("conv2d", Box::new(move || i1.conv2d(&w1, Window::default().padded(1), 1)), &goals[4]);
    conv.flops = 2.0 * 8.0 * 64.0 * 64.0 * 56.0 * 56.0 * 9.0;
    let rows = vec![
        row("control: copy of 64 MiB", Box::new(move || &x1 * 1.0), &goals[0]),
        matmul(0, "matmul 512", &goals[1]),
        matmul(1, "matmul 1024", &goals[2]),
        matmul(2, "matmul 2048", &goals[3]),
        conv,
        row("silu", Box::new(move || x2.silu()), &goals[5]),
        row("softmax", Box::new(move || x3.softmax(-1)), &goals[6]),
        row("sum", Box::new(move || x4.sum(&[], false)), &goals[7]),
        row("broadcast add", Box::new(move || &x5 + &b1), &goals[8]),
        row("gelu", Box::new(move || x6.gelu()), &goals[9]),
        row("rms_norm 128 x 4096", Box::new(move || s1.rms_norm(&g1, 1e-6)), &goals[10]),
        row("silu(a) b", Box::new(move || x7.silu() * &y1), &goals[11]),
        row("gelu(x w + b)", Box::new(move || (&x8 * &y2 + &b2).gelu()), &goals[12]),
        row(
            "(x - mean) / sqrt(var + eps) g + b",
            Box::new(move || {
                let mean = x9.mean(&[-1], true);
                let variance = x9.variance(&[-1], 0.0, true);
                (&x9 - mean) / (variance + 1e-5).sqrt() * &g2 + &b3
            }),
            &goals[13],
        ),
    ];
    for row in rows.iter().filter(|row| row.name.contains(&filter)) {
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
}
