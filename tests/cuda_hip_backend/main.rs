//! The CUDA and HIP backends against a double of their libraries (double.cpp): the host code as on hardware, the kernels really run, on the
//! processor. Each scenario is a process of its own, since a library is loaded once in a process.
//!
//! `cargo test --workspace --test cuda_hip_backend [FILTER]`. Without g++ nothing runs, and it says so. In the quick circle a scenario runs on one of
//! both vendors, and on the other with the next turn.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod collectives;
mod cudarc;
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
use std::process::{Command, ExitCode};

use double::Vendor;
use kit::{harness, turn};

/// A scenario: its name, variables of its process, and what it does.
pub type Scenario = (&'static str, &'static [(&'static str, &'static str)], fn(&Vendor));

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cuda_hip_backend");
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
        cudarc::ALL,
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
    // The compiler takes seconds for each double.
    let headers = headers();
    let (libraries, rocm) = std::thread::scope(|scope| {
        let building = ["cuda", "hip"].map(|vendor| (vendor, scope.spawn(move || build(vendor))));
        let rocm = rocm::trials(&headers);
        (building.map(|(vendor, library)| (vendor, library.join().expect("says what is wrong"))), rocm)
    });
    let mut trials = Vec::new();
    let exports = sharing::vulkan().is_some();
    if turn::quick() {
        kit::not_run("half of the scenarios on each of CUDA and HIP", "the next turn, or ./test --full, runs them");
    }
    for (place, (vendor, library)) in libraries.into_iter().enumerate() {
        for (number, &(name, variables, _)) in scenarios.iter().enumerate() {
            let for_cuda = cudarc::ALL.iter().any(|(own, ..)| *own == name);
            if for_cuda && vendor != "cuda" {
                continue;
            }
            if turn::quick() && !for_cuda && (number as u64 + turn::turn()) % 2 != place as u64 {
                continue;
            }
            let title = format!("{name} on {vendor}");
            trials.push(match &library {
                Err(reason) => harness::absent(title, reason.clone(), "CANTUS_REQUIRE_CC"),
                Ok(_) if name == sharing::WITH_WGPU && !exports => {
                    harness::absent(title, "there is no llvmpipe by Vulkan".to_owned(), "CANTUS_REQUIRE_ADAPTER")
                }
                Ok(library) => {
                    let (library, headers) = (library.clone(), headers.clone());
                    harness::child(title, move |child| {
                        child.env(SELECTED, format!("{vendor} {name}")).env("CANTUS_DOUBLE_HEADERS", headers);
                        child.envs(LIBRARIES.map(|variable| (variable, &library)));
                        child.env("LD_LIBRARY_PATH", cudarc::loader(&library));
                        child.envs(variables.iter().copied());
                    })
                }
            });
        }
    }
    trials.extend(rocm);
    harness::together(trials)
}

/// A folder with the header of kernels, compiled ahead: g++ takes most of a kernel's time for it. By the flags of double.cpp; by others, and
/// where this fails, the header itself is read.
fn headers() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("headers");
    let (header, compiled) = (folder.join("device.hpp"), folder.join("device.hpp.gch"));
    let made = std::fs::create_dir_all(&compiled).and_then(|()| std::fs::copy(format!("{HERE}/device.hpp"), &header));
    if made.is_err() {
        return HERE.into();
    }
    for vendor in ["CUDA", "HIP"] {
        let mut command = Command::new("g++");
        command.args("-std=c++17 -O1 -w -fno-strict-aliasing -ffp-contract=off -fPIC -x c++-header".split(' '));
        command.arg(format!("-DCANTUS_DOUBLE_{vendor}")).arg("-o").arg(compiled.join(vendor)).arg(&header);
        let _ = command.output();
    }
    folder
}

/// Builds the double with the system's g++.
fn build(vendor: &str) -> Result<PathBuf, String> {
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libcantus_double_{vendor}.so"));
    let vendors: &[&str] = if vendor == "hip" { &["-DHIP"] } else { &[] };
    let arguments = [&["-std=c++17", "-O1", "-pthread"], vendors].concat();
    harness::build("g++", &arguments, format!("{HERE}/double.cpp").as_ref(), &library)?;
    Ok(library)
}
