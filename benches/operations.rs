//! Every operation of `cantus bench`: on the CPU backend and on CUDA beside PyTorch's, which writes into memory that it already has, on any other
//! one beside those of Burn (CubeCL) on wgpu's Vulkan.
//!
//! Sides take turns, and each turn repeats its operation for a while: of all turns the median and the least time count. Ours runs from recording
//! the operation to the end of its work, its memory from the pool. Both sides use all processors. On a device ours runs what is shipped, or what
//! `cantus tune` has measured; Burn tunes itself in calls that do not count.
//!
//! `cargo bench -p cantus-benches --bench operations [-- [--backend=NAME] FILTER[,FILTER…] [SIDE[,SIDE…] [TURNS]]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::Duration;

use cantus::{Config, Engine, Fallback};
use parse::Size;
use peers::process::Peer;
use peers::turns::{self, figures};

#[allow(dead_code, reason = "the program prints more than times")]
#[path = "../cli/src/bench_ops.rs"]
mod bench_ops;
#[cfg(feature = "zk")]
#[path = "../cli/src/bench_zk.rs"]
mod bench_zk;

/// The parts of the program that the table of operations needs.
mod parse {
    /// Columns and rows.
    #[derive(Clone, Copy)]
    pub struct Size {
        pub width: usize,
        pub height: usize,
    }
}

/// The time for which a side repeats its operation in a turn.
const TURN: Duration = Duration::from_millis(60);

fn main() {
    let (options, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let backend = options.iter().find_map(|option| option.strip_prefix("--backend=")).unwrap_or("cpu");
    let list = |at: usize| -> Vec<String> {
        let text = arguments.get(at).filter(|text| !text.is_empty());
        text.map_or(Vec::new(), |text| text.split(',').map(str::to_owned).collect())
    };
    let (filters, sides) = (list(0), list(1));
    let rounds = arguments.get(2).and_then(|text| text.parse().ok()).unwrap_or(5);
    let builder = Engine::builder().config(Config::default()).backend(backend).fallback(Fallback::Never);
    let engine = builder.build().expect("a device of the backend");
    let mut peer = match backend {
        "cpu" | "cuda" => Peer::python("operations_torch.py", backend),
        _ => Peer::burn(),
    };
    // Threads of a side that spin hold up the other one where both compute on the processor.
    let pause = if backend == "cuda" { turns::PAUSE / 50 } else { turns::PAUSE };
    println!("{}, {rounds} turns; medians, least times in brackets", engine.selected().device.name);
    println!(
        "{}",
        peer.as_ref().map_or("no peer: run benches/peers/setup.sh, for Burn with the word burn", |peer| &peer.version)
    );
    for op in bench_ops::ops() {
        let wanted = if filters.is_empty() { op.usual } else { filters.iter().any(|filter| filter == op.name) };
        if !wanted {
            continue;
        }
        let given: Vec<usize> = sides.iter().filter_map(|side| side.parse().ok()).collect();
        for side in if given.is_empty() { op.sides.to_vec() } else { given } {
            let work = op.prepare(&engine, Size { width: side, height: side }).expect("its inputs");
            let run = || {
                work().expect("the operation runs");
                engine.finish().expect("the work ends");
            };
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                ours.extend(turns::timed(TURN, pause, run));
                std::thread::sleep(pause);
                if let Some(peer) = &mut peer {
                    theirs.extend(peer.ask(&format!("{} {side} {}", op.name, TURN.as_secs_f64())));
                }
            }
            let ([ours, least], [theirs, their_least]) = (figures(ours), figures(theirs));
            println!(
                "{:15} {side:5} {ours:11.1} us ({least:11.1})   {theirs:11.1} us ({their_least:11.1})   ratio {:6.2} ({:.2})",
                op.name,
                ours / theirs,
                least / their_least
            );
        }
    }
}
