//! The CUDA and HIP backends against a double of their libraries (double.cpp): the host code as on hardware, the kernels really run, on the
//! processor. Each scenario is a process of its own, since a library is loaded once in a process.
//!
//! `cargo test -p cantus-tests --test stream_backend [FILTER]`. Without g++ nothing runs, and it says so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod double;
mod faults;
mod scenarios;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use double::Vendor;

/// A scenario: its name, variables of its process, and what it does.
pub type Scenario = (&'static str, &'static [(&'static str, &'static str)], fn(&Vendor));

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stream_backend");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let scenarios: Vec<Scenario> = [scenarios::ALL, faults::ALL].concat();
    if let [vendor, name] = arguments.as_slice()
        && std::env::var_os("CANTUS_STREAM_SCENARIO").is_some()
    {
        let vendor = Vendor::named(vendor);
        let (_, _, run) = scenarios.iter().find(|(known, ..)| known == name).expect("is a scenario");
        run(&vendor);
        return ExitCode::SUCCESS;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (mut passed, mut failed) = (0, 0);
    for vendor in ["cuda", "hip"] {
        let library = match build(&folder, vendor) {
            Ok(library) => library,
            Err(reason) => {
                println!("{} scenarios of {vendor} did not run: {reason}", scenarios.len());
                if std::env::var_os("CANTUS_REQUIRE_CC").is_some() {
                    return ExitCode::FAILURE;
                }
                continue;
            }
        };
        for (name, variables, _) in &scenarios {
            let title = format!("{name} on {vendor}");
            if !arguments.is_empty() && !arguments.iter().any(|filter| title.contains(filter.as_str())) {
                continue;
            }
            let mut child = Command::new(std::env::current_exe().expect("knows itself"));
            child.args([vendor, name]).env("CANTUS_STREAM_SCENARIO", "1").env("CANTUS_DOUBLE_HEADERS", HERE);
            for variable in [
                "CANTUS_CUDA_LIBRARY",
                "CANTUS_HIP_LIBRARY",
                "CANTUS_NVRTC_LIBRARY",
                "CANTUS_HIPRTC_LIBRARY",
                "CANTUS_DOUBLE_LIBRARY",
            ] {
                child.env(variable, &library);
            }
            // Compiled code of one scenario is not the next one's.
            let cache = tempfile::tempdir().expect("is made");
            child.env("XDG_CACHE_HOME", cache.path());
            child.envs(variables.iter().copied());
            let output = child.output().expect("starts");
            if output.status.success() {
                passed += 1;
            } else {
                failed += 1;
                println!("FAILED {title}: {}", output.status);
                println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

/// Builds the double with the system's g++.
fn build(folder: &Path, vendor: &str) -> Result<PathBuf, String> {
    let library = folder.join(format!("libcantus_double_{vendor}.so"));
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-pthread"]).arg(format!("{HERE}/double.cpp"));
    if vendor == "hip" {
        command.arg("-DHIP");
    }
    let output = command.arg("-o").arg(&library).arg("-ldl").output().map_err(|error| format!("g++: {error}"))?;
    if output.status.success() { Ok(library) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
