//! Matrix products on the first adapter of wgpu beside Burn's (CubeCL) on the same one, in a process that stays up.
//!
//! Interleaved, and each figure is the median of the rounds. A time runs from recording the product to the end of the work. Both sides may
//! have measured their variants before: ours runs its shipped default, and after `cantus tune` what was measured; Burn tunes itself in the
//! first round, which does not count.
//!
//! `cargo bench -p cantus-benches --bench matmul [-- ROUNDS]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::{Duration, Instant};

use cantus::{Engine, Fallback};
use peers::process::Peer;

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64) * 1e3
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let rounds: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(7);
    let engine = Engine::builder().backend("wgpu").fallback(Fallback::Never).build().expect("an adapter");
    let mut peer = Peer::burn();
    println!("{}, {rounds} rounds", engine.selected().device.name);
    println!("{}", peer.as_ref().map_or("no peer: run benches/peers/setup.sh burn", |peer| &peer.version));
    for side in [256, 512, 1024] {
        let random = |seed| {
            let uniform = cantus::ops::rand(&engine, &[side, side], seed);
            (uniform * 8.0 - 4.0).eval().expect("random numbers")
        };
        let (a, b) = (random(1), random(2));
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let start = Instant::now();
            let product = a.matmul(&b).eval().expect("a product");
            engine.finish().expect("the work ends");
            let time = start.elapsed();
            drop(product);
            let other = peer.as_mut().map(|peer| peer.call(&format!("matmul_{side}"), 0).0);
            if round > 0 {
                ours.push(time);
                theirs.extend(other);
            }
        }
        let (ours, theirs) = (median(&mut ours), median(&mut theirs));
        let gflops = 2.0 * (side as f64).powi(3) / ours / 1e6;
        println!(
            "matmul {side}: {ours:.1} ms, {gflops:.2} GFLOP/s; Burn {theirs:.1} ms; Burn's time is {:.2} of ours",
            theirs / ours
        );
    }
}
