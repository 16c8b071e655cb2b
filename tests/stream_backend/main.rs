//! The CUDA and HIP backends against a double of their libraries (double.cpp): the host code as on hardware, the kernels really run, on the
//! processor. Each scenario is a process of its own, since a library is loaded once in a process.
//!
//! `cargo test --workspace --test stream_backend [FILTER]`. Without g++ nothing runs, and it says so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod collectives;
mod double;
mod faults;
mod flight;
mod matrices;
mod products;
mod rocm;
mod scenarios;
mod sharing;
mod takeovers;

use std::path::PathBuf;
use std::process::ExitCode;

use double::Vendor;
use kit::harness;

/// A scenario: its name, variables of its process, and what it does.
pub type Scenario = (&'static str, &'static [(&'static str, &'static str)], fn(&Vendor));

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stream_backend");
const SELECTED: &str = "CANTUS_STREAM_SCENARIO";
const LIBRARIES: [&str; 9] = [
    "CANTUS_CUDA_LIBRARY",
    "CANTUS_HIP_LIBRARY",
    "CANTUS_NVRTC_LIBRARY",
    "CANTUS_HIPRTC_LIBRARY",
    "CANTUS_CUBLASLT_LIBRARY",
    "CANTUS_HIPBLASLT_LIBRARY",
    "CANTUS_NCCL_LIBRARY",
    "CANTUS_RCCL_LIBRARY",
    "CANTUS_DOUBLE_LIBRARY",
];

fn main() -> ExitCode {
    let scenarios: Vec<Scenario> = [
        collectives::ALL,
        scenarios::ALL,
        faults::ALL,
        flight::ALL,
        matrices::ALL,
        products::ALL,
        sharing::ALL,
        takeovers::ALL,
    ]
    .concat();
    if let Ok(major) = std::env::var(rocm::SELECTED) {
        rocm::run(&major);
        return ExitCode::SUCCESS;
    }
    if let Ok(selected) = std::env::var(SELECTED) {
        let (vendor, name) = selected.split_once(' ').expect("is a vendor and a scenario");
        let (_, _, run) = scenarios.iter().find(|(known, ..)| *known == name).expect("is a scenario");
        run(&Vendor::named(vendor));
        return ExitCode::SUCCESS;
    }
    let mut trials = Vec::new();
    let exports = sharing::vulkan().is_some();
    for vendor in ["cuda", "hip"] {
        let library = build(vendor);
        for &(name, variables, _) in &scenarios {
            let title = format!("{name} on {vendor}");
            trials.push(match &library {
                Err(reason) => harness::absent(title, reason.clone(), "CANTUS_REQUIRE_CC"),
                Ok(_) if name == sharing::WITH_WGPU && !exports => {
                    harness::absent(title, "there is no llvmpipe by Vulkan".to_owned(), "CANTUS_REQUIRE_ADAPTER")
                }
                Ok(library) => {
                    let library = library.clone();
                    harness::child(title, move |child| {
                        child.env(SELECTED, format!("{vendor} {name}")).env("CANTUS_DOUBLE_HEADERS", HERE);
                        child.envs(LIBRARIES.map(|variable| (variable, &library)));
                        child.envs(variables.iter().copied());
                    })
                }
            });
        }
    }
    trials.extend(rocm::trials());
    harness::together(trials)
}

/// Builds the double with the system's g++.
fn build(vendor: &str) -> Result<PathBuf, String> {
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libcantus_double_{vendor}.so"));
    let vendors: &[&str] = if vendor == "hip" { &["-DHIP"] } else { &[] };
    let arguments = [&["-std=c++17", "-O1", "-pthread"], vendors].concat();
    harness::build("g++", &arguments, format!("{HERE}/double.cpp").as_ref(), &library)?;
    Ok(library)
}
