//! The Vulkan backend through its traits, on every device of the machine: with timeline semaphores, with fences, and as a device
//! with memory of its own that ends late; with the validation layers where they are installed: what they say is a failure.
//!
//! `cargo test --workspace --test vulkan_backend [FILTER]`; the filter is part of a case's or a device's name.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a case fails by panicking; the harness reports it"
)]

mod basics;
mod caches;
mod faults;
mod flight;
mod recordings;
mod support;

use std::process::ExitCode;

use kit::harness;
use support::Found;

/// A case: its name, and what it does with a device.
pub type Case = (&'static str, fn(&Found));

fn main() -> ExitCode {
    if let Some(code) = caches::as_child() {
        return code;
    }
    let (devices, reason) = support::devices();
    let cases: Vec<Case> = [basics::CASES, recordings::CASES, caches::CASES, faults::CASES, flight::CASES].concat();
    let trials = devices.iter().flat_map(|device| {
        let mode = format!("{:?}", device.mode).to_lowercase();
        let cases = cases.clone();
        cases.into_iter().map(move |(name, case)| {
            let title = format!("{name} on {} ({mode})", device.info.name);
            let device = device.clone();
            harness::trial(title, move || case(&device))
        })
    });
    let mut trials: Vec<_> = trials.collect();
    if devices.is_empty() {
        trials.push(harness::no_device("Vulkan", cases.len(), reason));
    } else if let Some(reason) = reason {
        println!("note: {reason}");
    }
    let code = harness::one_by_one(trials);
    if !devices.iter().any(|device| device.backend.is_validated()) {
        kit::not_run("the validation layers", "VK_LAYER_KHRONOS_validation is not installed");
        return code;
    }
    let messages = cantus::backend::vulkan::take_validation_messages();
    println!("the validation layers were on, and said {} things", messages.len());
    messages.iter().for_each(|message| println!("FAILED  validation: {message}"));
    if messages.is_empty() { code } else { ExitCode::FAILURE }
}
