//! One step of a perceptron of three layers (batch 1, 256 wide) on each device: recorded again each time, and replayed as a graph; and the time
//! from the start of a process to the result of its first matrix product.
//!
//! The two ways of a step are interleaved, and each figure is the median of the rounds. A step's time runs from the writing of its input to its
//! result on the host.
//!
//! `cargo bench -p cantus-benches --bench graph [-- ROUNDS]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::process::Command;
use std::time::{Duration, Instant};

use cantus::backend::Registry;
use cantus::engine::{GraphInputs, survey};
use cantus::ops::Unary;
use cantus::{Config, Engine, Fallback, Tensor};

const WIDE: usize = 256;

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64) * 1e6
}

fn open(backend: &str, index: usize) -> Engine {
    Engine::builder().backend(backend).device(index).fallback(Fallback::Never).build().expect("the device opens")
}

/// The first product of a process, and its end.
fn first(backend: &str, index: usize) {
    let engine = open(backend, index);
    let ones = vec![1.0_f32; 512 * 512];
    let a = engine.tensor_from(&ones, &[512, 512]).expect("a tensor");
    let product = a.matmul(&a).eval().expect("a product").to_vec::<f32>().expect("its elements");
    assert!(product.iter().all(|&x| x == 512.0), "the product is right");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [mode, backend, index] = &arguments[..]
        && mode == "first"
    {
        return first(backend, index.parse().expect("an index"));
    }
    let rounds: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(101);
    let found = survey(&Registry::with_defaults(), &Config::default()).backends;
    for info in found.iter().flat_map(|backend| &backend.devices) {
        let engine = open(&info.backend, info.index);
        let random = |shape: &[usize], seed| (cantus::ops::randn(&engine, shape, seed) * 0.05).eval().expect("numbers");
        let layers: Vec<(Tensor, Tensor)> =
            (0..3).map(|layer| (random(&[WIDE, WIDE], 2 * layer), random(&[WIDE], 2 * layer + 1))).collect();
        let x = random(&[1, WIDE], 9);
        let step = || {
            let mut y = x.clone();
            for (weight, bias) in &layers {
                y = y.fused_linear(weight, Some(&bias.expr()), Some(Unary::Relu)).eval()?;
            }
            Ok(y)
        };
        let graph = engine.capture(step).expect("a graph");
        let input = vec![0.5_f32; WIDE];
        let (mut eager, mut replayed) = (Vec::new(), Vec::new());
        let (mut eager_host, mut replayed_host) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let start = Instant::now();
            x.write(&input).expect("the input is written");
            let output = step().expect("a step");
            let host = start.elapsed();
            let expected = output.to_vec::<f32>().expect("its result");
            let time = start.elapsed();
            let start = Instant::now();
            graph.replay(&GraphInputs::new().set(&x, &input)).expect("a replay");
            let graph_host = start.elapsed();
            let got = graph.outputs().to_vec::<f32>().expect("its result");
            let graph_time = start.elapsed();
            assert_eq!(expected, got, "both give the same");
            if round > 0 {
                eager.push(time);
                replayed.push(graph_time);
                eager_host.push(host);
                replayed_host.push(graph_host);
            }
        }
        let (all, again) = (median(&mut eager), median(&mut replayed));
        let (host, host_again) = (median(&mut eager_host), median(&mut replayed_host));
        let mut starts: Vec<Duration> = (0..5)
            .map(|_| {
                let start = Instant::now();
                let program = std::env::current_exe().expect("this program");
                let status = Command::new(program).args(["first", &info.backend, &info.index.to_string()]).status();
                assert!(status.expect("a process").success(), "the first product is right");
                start.elapsed()
            })
            .collect();
        println!(
            "{:8} {:44} step {all:7.0} µs, replayed {again:7.0} µs, ratio {:.2}; on the host {host:6.0} and {host_again:6.0} µs, {:.2}; first product {:5.0} ms",
            info.backend,
            info.name,
            again / all,
            host_again / host,
            median(&mut starts) / 1e3
        );
    }
}
