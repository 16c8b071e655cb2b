//! `cantus view` as its user meets it: on a screen without a GPU (Xvfb, llvmpipe), by keys, mouse and the window's frame.
//!
//! A harness of its own, because the cases share a screen. `cargo test --features viewer --test view [FILTER]`. What cannot run is listed
//! with its reason; where a screen is expected (`CANTUS_REQUIRE_DISPLAY`), that is a failure.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports, reason = "the cases need X11"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a case fails by panicking; the harness reports it"
)]

mod close;
mod desktop;
mod endurance;
mod kernels;
mod pictures;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Instant;

use desktop::Screen;

/// A case: its name, and what it does on a screen.
pub type Case = (&'static str, fn(&Screen));

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let screen = match Screen::start() {
        Ok(screen) => screen,
        Err(reason) => {
            cantus_skips::not_run("the window", &reason);
            return ExitCode::from(u8::from(std::env::var_os("CANTUS_REQUIRE_DISPLAY").is_some()));
        }
    };
    let cases: Vec<Case> = [pictures::CASES, kernels::CASES, endurance::CASES].concat();
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, case) in cases {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
            continue;
        }
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| case(&screen)));
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("{word:<7} {name} ({:.1} s)", start.elapsed().as_secs_f64());
        if outcome.is_ok() {
            passed += 1;
        } else {
            failed.push(name);
        }
    }
    println!("{passed} passed, {} failed {failed:?}", failed.len());
    ExitCode::from(u8::from(!failed.is_empty()))
}
