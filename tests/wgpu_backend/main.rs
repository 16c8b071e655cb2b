//! The wgpu backend through its traits, on every adapter of the machine.
//!
//! A harness of its own: each case runs on each device, with a deadline, and what could not run is listed with its reason.
//! `cargo test -p cantus-tests --test wgpu_backend [FILTER]`; the filter is part of a case's or a device's name.

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
use std::sync::mpsc;
use std::time::{Duration, Instant};

use support::Found;

/// A case: its name, and what it does with a device.
pub type Case = (&'static str, fn(&Found));

/// A wait that never gets its answer is found by this.
const DEADLINE: Duration = Duration::from_secs(120);

enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let (devices, reason) = support::devices();
    let cases: Vec<Case> = [basics::CASES, faults::CASES, folding::CASES].concat();
    if devices.is_empty() {
        println!("no adapter: {} cases did not run: {}", cases.len(), reason.unwrap_or_default());
        // Where adapters are expected, their absence is a failure.
        return ExitCode::from(u8::from(std::env::var_os("CANTUS_REQUIRE_ADAPTER").is_some()));
    }
    if let Some(reason) = reason {
        println!("note: {reason}");
    }
    let (mut passed, mut skipped, mut failed) = (0, Vec::new(), Vec::new());
    for device in &devices {
        for (name, case) in &cases {
            let title = format!("{name} on {}", device.info.name);
            if !filters.is_empty() && !filters.iter().any(|filter| title.contains(filter.as_str())) {
                continue;
            }
            let start = Instant::now();
            let outcome = run(device.clone(), *case);
            let time = start.elapsed().as_millis();
            match outcome {
                Outcome::Passed => {
                    passed += 1;
                    println!("ok      {title} ({time} ms)");
                }
                Outcome::Skipped(why) => {
                    println!("not run {title}: {why}");
                    skipped.push(title);
                }
                Outcome::Failed(why) => {
                    println!("FAILED  {title}: {why}");
                    failed.push(title);
                }
            }
        }
    }
    println!("{passed} passed, {} failed, {} not run", failed.len(), skipped.len());
    ExitCode::from(u8::from(!failed.is_empty()))
}

fn run(device: Found, case: fn(&Found)) -> Outcome {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&device)));
        let _ = sender.send(result);
    });
    match receiver.recv_timeout(DEADLINE) {
        Err(_) => Outcome::Failed(format!("no end within {} s", DEADLINE.as_secs())),
        Ok(result) => {
            let _ = thread.join();
            match result {
                Ok(()) => Outcome::Passed,
                Err(panic) => match panic.downcast::<support::NotRun>() {
                    Ok(why) => Outcome::Skipped(why.0),
                    Err(panic) => {
                        let text = panic.downcast_ref::<String>().cloned();
                        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                        Outcome::Failed(text.unwrap_or_default())
                    }
                },
            }
        }
    }
}
