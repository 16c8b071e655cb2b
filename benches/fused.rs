//! The field and three chains of elementwise operations, on the CPU backend beside what compiles such chains in Python: torch.compile, JAX, numba.
//!
//! Sides take turns, each library in a process of its own, and medians count. Ours runs from recording the operations to the end of the work, the result in
//! memory from the pool; the peers are warm, and numba writes into memory that it has. Before that the results' norms are compared.
//!
//! `cargo bench -p cantus-benches --bench fused [-- FILTER[,FILTER…] [TURNS]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::Duration;

use cantus::ops::field::FieldParams;
use cantus::ops::{self, Expr};
use cantus::{Config, Engine, Fallback, Tensor};
use peers::process::Peer;
use peers::turns::{self, figures};

/// The time for which a side repeats its operation in a turn.
const TURN: Duration = Duration::from_millis(100);
const LIBRARIES: [&str; 3] = ["torch", "jax", "numba"];

fn work(engine: &Engine, name: &str, side: usize) -> Box<dyn Fn() -> Tensor> {
    if name == "field" {
        let (engine, params) = (engine.clone(), FieldParams::new(side, side));
        return Box::new(move || ops::field::field(&engine, &params).expect("the field"));
    }
    let values = |of: fn(f64) -> f64, step: f64| {
        let values: Vec<f32> = (0..side * side).map(|at| of(at as f64 * step) as f32).collect();
        engine.tensor_from(&values, &[side, side]).expect("an input")
    };
    let (x, y) = (values(|at| at.sin() * 2.0, 0.37), values(f64::cos, 0.73));
    let chain: fn(Expr, Expr) -> Expr = match name {
        "gate" => |x, y| x.silu() * &y + y.tanh() * 0.5_f32,
        "falloff" => |x, y| {
            let apart = &x - &y;
            (-(&apart * &apart)).exp() * (&x + &y) / (&x * &x + 1.0_f32)
        },
        _ => |x, y| {
            let t = (&x * &y * 0.5_f32 + &x).maximum(-1.0_f32);
            let t = (&t * &t + &y).minimum(2.0_f32);
            (t.abs().sqrt() - &x) * 0.25_f32 + 1.0_f32
        },
    };
    Box::new(move || chain(Expr::from(&x), Expr::from(&y)).eval().expect("the chain"))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let filters: Vec<&str> = arguments.first().map_or(Vec::new(), |text| text.split(',').collect());
    let rounds = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let builder = Engine::builder().config(Config::default()).backend("cpu").fallback(Fallback::Never);
    let engine = builder.build().expect("the processor");
    let mut peers = LIBRARIES.map(|_| Peer::python("fused.py", "cpu").expect("a peer: run benches/peers/setup.sh"));
    println!("{}; {rounds} turns; medians in microseconds", engine.selected().device.name);
    println!("{:8} {:>5} {:>11} {}", "", "", "ours", LIBRARIES.map(|name| format!("{name:>19}")).concat());
    for name in ["field", "gate", "falloff", "ten"] {
        if !filters.iter().all(|filter| filter.is_empty()) && !filters.contains(&name) {
            continue;
        }
        for side in [256, 1024, 4096] {
            let work = work(&engine, name, side);
            let result = work().to_vec::<f32>().expect("the result");
            let norm: f64 = result.iter().map(|&value| f64::from(value).powi(2)).sum();
            drop(result);
            for (peer, library) in peers.iter_mut().zip(LIBRARIES) {
                let theirs = *peer.ask(&format!("{library}:{name} {side} -1")).first().expect("an answer");
                assert!((theirs / norm - 1.0).abs() < 1e-4, "{name} of {side}: {norm}, {library} has {theirs}");
            }
            let run = || {
                let _result = work();
                engine.finish().expect("the work ends");
            };
            let (mut ours, mut theirs) = (Vec::new(), LIBRARIES.map(|_| Vec::new()));
            for _ in 0..rounds {
                ours.extend(turns::timed(TURN, turns::PAUSE, run));
                for ((peer, library), times) in peers.iter_mut().zip(LIBRARIES).zip(&mut theirs) {
                    std::thread::sleep(turns::PAUSE);
                    times.extend(peer.ask(&format!("{library}:{name} {side} {}", TURN.as_secs_f64())));
                }
            }
            let [ours, _] = figures(ours);
            let theirs = theirs.map(|times| {
                let [theirs, _] = figures(times);
                format!("{theirs:12.1} ({:4.2})", ours / theirs)
            });
            println!("{name:8} {side:5} {ours:11.1} {}", theirs.concat());
        }
    }
}
