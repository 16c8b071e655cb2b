//! Device groups: the split's own cost, and several devices together.
//!
//! Ours is the field of 8192 x 8192 by a group of one device, in its 64 strips; the peer is the same field in one piece, read to host memory that is
//! there already. Rounds are interleaved, figures are medians. Then the same by the processor and each other device together, with the plan.
//!
//! `cargo bench -p cantus-benches --bench group [-- ROUNDS [SIDE]]`

#![allow(clippy::expect_used, reason = "a bench that cannot run stops")]

use std::time::{Duration, Instant};

use cantus::backend::Registry;
use cantus::engine::survey;
use cantus::group::Group;
use cantus::ops::field::{FieldParams, GroupField, field};
use cantus::{Config, Engine, Fallback};

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64) * 1e3
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(9);
    let side = numbers.get(1).copied().unwrap_or(8192);
    let params = FieldParams::new(side, side).time(1.0);
    let found = survey(&Registry::with_defaults(), &Config::default()).backends;
    let devices: Vec<_> = found.into_iter().flat_map(|backend| backend.devices).collect();
    let open = |backend: &str, index: usize| {
        Engine::builder().backend(backend).device(index).fallback(Fallback::Never).build().expect("opens")
    };
    let (mut whole, mut shared) = (vec![0.0_f32; side * side], vec![0.0_f32; side * side]);
    'devices: for device in &devices {
        let engine = open(&device.backend, device.index);
        let group = Group::new([engine.clone()]).expect("has a member");
        let (mut ours, mut theirs, mut strips) = (Vec::new(), Vec::new(), 0);
        for round in 0..=rounds {
            let first = timed(|| {
                let done = group.field_into(&params, &mut shared).expect("computes");
                strips = done.parts.iter().map(|part| part.strips).sum::<usize>();
            });
            let mut one = Ok(());
            let second = timed(|| one = field(&engine, &params).and_then(|field| field.read_into(&mut whole)));
            if let Err(error) = one {
                println!("{:8} not run: {error}", device.backend);
                continue 'devices;
            }
            assert!(shared.iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-5), "not the same work");
            if round > 0 {
                ours.push(first);
                theirs.push(second);
            }
        }
        let (ours, theirs) = (median(&mut ours), median(&mut theirs));
        let ratio = ours / theirs;
        println!(
            "{:8} {strips} strips {ours:8.1} ms   in one piece {theirs:8.1} ms   ratio {ratio:.3}",
            device.backend
        );
    }
    for device in devices.iter().filter(|device| device.backend != "cpu") {
        let group = Group::new([open("cpu", 0), open(&device.backend, device.index)]).expect("has members");
        let alone = Group::new([open("cpu", 0)]).expect("has a member");
        let (mut both, mut one, mut shown) = (Vec::new(), Vec::new(), String::new());
        for round in 0..=rounds {
            let together = timed(|| shown = group.field_into(&params, &mut shared).expect("computes").to_string());
            let single = timed(|| drop(alone.field_into(&params, &mut whole).expect("computes")));
            assert!(shared.iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-5), "not the same work");
            if round > 0 {
                both.push(together);
                one.push(single);
            }
        }
        println!(
            "cpu and {} together {:.1} ms, cpu alone {:.1} ms\n{shown}",
            device.backend,
            median(&mut both),
            median(&mut one)
        );
    }
}
