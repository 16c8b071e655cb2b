//! The OpenCL backend through an engine, on every device of the machine; and what it says where there is none, or an old one.
//!
//! Each scenario is a process of its own, since the library is loaded once in a process. `cargo test -p cantus-tests --test opencl_backend [FILTER]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod scenarios;

use std::path::Path;
use std::process::{Command, ExitCode};

use cantus::backend::{Backend, opencl::OpenClBackend};

/// A scenario: its name, variables of its process (`OLD` stands for the old driver's library), and what it does.
pub type Scenario = (&'static str, &'static [(&'static str, &'static str)], fn());

const SELECTED: &str = "CANTUS_OPENCL_SCENARIO";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let Ok(name) = std::env::var(SELECTED) {
        let (_, _, run) = scenarios::ALL.iter().find(|(known, ..)| *known == name).expect("is a scenario");
        run();
        return ExitCode::SUCCESS;
    }
    let probe = pollster::block_on(OpenClBackend::new().probe());
    let required = std::env::var_os("CANTUS_REQUIRE_OPENCL").is_some();
    let old = old_driver();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, variables, _) in scenarios::ALL {
        if !arguments.is_empty() && !arguments.iter().any(|filter| name.contains(filter.as_str())) {
            continue;
        }
        // Scenarios with variables bring their own library.
        if variables.is_empty() && probe.devices.is_empty() {
            println!("not run: {name}: {}", probe.reason.as_deref().unwrap_or("no device"));
            skipped += 1;
            continue;
        }
        let mut child = Command::new(std::env::current_exe().expect("knows itself"));
        let cache = tempfile::tempdir().expect("is made");
        child.env(SELECTED, name).env("XDG_CACHE_HOME", cache.path());
        let mut missing = None;
        for (variable, value) in *variables {
            match (*value, &old) {
                ("OLD", Ok(library)) => child.env(variable, library),
                ("OLD", Err(reason)) => {
                    missing = Some(reason.clone());
                    continue;
                }
                (value, _) => child.env(variable, value),
            };
        }
        if let Some(reason) = missing {
            println!("not run: {name}: {reason}");
            skipped += 1;
            continue;
        }
        let output = child.output().expect("starts");
        if output.status.success() {
            passed += 1;
        } else {
            failed += 1;
            println!("FAILED {name}: {}", output.status);
            println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ExitCode::from(u8::from(failed > 0 || (required && skipped > 0)))
}

/// The library of an old driver, built by the system's compiler.
fn old_driver() -> Result<String, String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/opencl_backend/old_driver.c");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcantus_old_opencl.so");
    let output = Command::new("gcc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).output();
    let output = output.map_err(|error| format!("gcc: {error}"))?;
    if output.status.success() {
        Ok(library.display().to_string())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
