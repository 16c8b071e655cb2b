//! The wgpu backend through its traits, on every adapter of the machine.
//!
//! `cargo test --workspace --test wgpu_backend [FILTER]`; the filter is part of a case's or a device's name.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a case fails by panicking; the harness reports it"
)]

mod basics;
mod faults;
mod folding;
mod support;

use std::process::ExitCode;

use kit::harness;
use support::Found;

/// A case: its name, and what it does with a device.
pub type Case = (&'static str, fn(&Found));

fn main() -> ExitCode {
    let (devices, reason) = support::devices();
    let cases: Vec<Case> = [basics::CASES, faults::CASES, folding::CASES].concat();
    let trials = devices.iter().flat_map(|device| {
        cases.iter().map(move |&(name, case)| {
            let device = device.clone();
            harness::trial(format!("{name} on {}", device.info.name), move || case(&device))
        })
    });
    let mut trials: Vec<_> = trials.collect();
    if devices.is_empty() {
        trials.push(harness::no_device("wgpu", cases.len(), reason));
    } else if let Some(reason) = reason {
        println!("note: {reason}");
    }
    harness::one_by_one(trials)
}
