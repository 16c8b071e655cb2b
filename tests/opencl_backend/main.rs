//! The OpenCL backend through an engine, on every device of the machine; and what it says where the library is missing or old.
//!
//! Each scenario is a process of its own, since the library is loaded once in a process.
//! `cargo test --workspace --test opencl_backend [FILTER]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod scenarios;

use std::path::Path;
use std::process::ExitCode;

use cantus::backend::{Backend, opencl::OpenClBackend};
use kit::harness::{self, Trial};

/// A scenario: its name, variables of its process (`OLD` stands for the old driver's library), and what it does.
pub type Scenario = (&'static str, &'static [(&'static str, &'static str)], fn());

const SELECTED: &str = "CANTUS_OPENCL_SCENARIO";

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(SELECTED) {
        let (_, _, run) = scenarios::ALL.iter().find(|(known, ..)| *known == name).expect("is a scenario");
        run();
        return ExitCode::SUCCESS;
    }
    let probe = pollster::block_on(OpenClBackend::new().probe());
    let missing = probe.devices.is_empty().then(|| probe.reason.unwrap_or_else(|| "no device".to_owned()));
    let old = old_driver();
    harness::together(scenarios::ALL.iter().map(|scenario| trial(scenario, &missing, &old)).collect())
}

fn trial(&(name, variables, _): &Scenario, missing: &Option<String>, old: &Result<String, String>) -> Trial {
    // Scenarios with variables bring their own library.
    let missing = missing.as_ref().filter(|_| variables.is_empty());
    let old_is_missing = old.as_ref().err().filter(|_| variables.iter().any(|(_, value)| *value == "OLD"));
    if let Some(reason) = missing.or(old_is_missing) {
        return harness::absent(name.to_owned(), reason.clone(), "CANTUS_REQUIRE_OPENCL");
    }
    let old = old.clone().unwrap_or_default();
    harness::child(name.to_owned(), move |child| {
        child.env(SELECTED, name);
        for &(variable, value) in variables {
            child.env(variable, if value == "OLD" { &old } else { value });
        }
    })
}

/// The library of an old driver, built by the system's compiler.
fn old_driver() -> Result<String, String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/opencl_backend/old_driver.c");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcantus_old_opencl.so");
    harness::build("gcc", &[], source.as_ref(), &library)?;
    Ok(library.display().to_string())
}
