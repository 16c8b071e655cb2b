//! HIP by a standalone clang, for architectures that hiprtc's library does not know: gfx11 and gfx12.
//!
//! Debian's device library has no file that names these architectures to it; the one constant of that file is written here.

use std::path::Path;
use std::process::Command;

use cantus::backend::Compiled;
use cantus::{Error, Result};

const COMPILER: &str = "clang++-19";
/// Of Debian's `rocm-device-libs`.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";
/// Of Debian's `libamdhip64-dev`.
const HEADER: &str = "/usr/include/hip/hip_runtime.h";

/// Compiles HIP C++ to the assembly of an architecture: `gfx1100`, or `gfx1100-wave64` with waves of 64.
///
/// # Errors
/// [`Error::Io`] if the compiler, its headers or its library are missing; [`Error::Device`] with the compiler's words if it refuses the source.
pub fn compile(source: &str, name: &str, architecture: &str) -> Result<Compiled> {
    let (chip, wide) = match architecture.split_once('-') {
        Some((chip, "wave64")) => (chip, true),
        _ => (architecture, false),
    };
    let missing =
        |path: &str, reason: String| Error::Io { action: "cannot find".to_owned(), path: path.into(), reason };
    for path in [HEADER, LIBRARY] {
        if !Path::new(path).exists() {
            let reason = "Debian: apt-get install clang-19 libamdhip64-dev rocm-device-libs".to_owned();
            return Err(missing(path, reason));
        }
    }
    let folder = tempfile::tempdir().map_err(|error| missing("a temporary folder", error.to_string()))?;
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        std::fs::write(&path, text).map(|()| path).map_err(|error| missing(file, error.to_string()))
    };
    let about = format!(
        "extern \"C\" {{ __attribute__((device, address_space(4), visibility(\"hidden\"))) const unsigned __oclc_ISA_version = {}; }}\n",
        version(chip)
    );
    let about = write("architecture.h", &about)?;
    let input = write("kernels.hip", source)?;
    let mut command = Command::new(COMPILER);
    command.args(["-x", "hip", "--cuda-device-only", "-S", "-O3", "-std=c++17", "--rocm-path=/usr", "-nogpulib"]);
    command.args(["-mcode-object-version=4", "-include", HEADER, "-include"]).arg(about);
    command.arg(format!("--offload-arch={chip}"));
    if wide {
        command.arg("-mwavefrontsize64");
    }
    let width = if wide { "oclc_wavefrontsize64_on" } else { "oclc_wavefrontsize64_off" };
    let settings =
        ["correctly_rounded_sqrt_on", "daz_opt_off", "finite_only_off", "unsafe_math_off", "abi_version_400"];
    let settings = settings.map(|setting| format!("oclc_{setting}"));
    for file in ["ocml", "ockl", width].into_iter().chain(settings.iter().map(String::as_str)) {
        command.args(["-Xclang", "-mlink-builtin-bitcode", "-Xclang"]).arg(format!("{LIBRARY}/{file}.bc"));
    }
    let output = folder.path().join("kernels.s");
    let outcome = command
        .arg(input)
        .arg("-o")
        .arg(&output)
        .output()
        .map_err(|error| missing(COMPILER, format!("{error} (Debian: apt-get install clang-19)")))?;
    let log = String::from_utf8_lossy(&outcome.stderr).into_owned();
    if !outcome.status.success() {
        return Err(Error::Device {
            device: architecture.to_owned(),
            action: format!("compiling {name}"),
            message: log,
        });
    }
    let code = std::fs::read(&output).map_err(|error| missing("kernels.s", error.to_string()))?;
    Ok(Compiled { code, log })
}

/// The device library's number of a chip: 11003 for gfx1103, 9010 for gfx90a.
fn version(chip: &str) -> u32 {
    let digits = chip.trim_start_matches("gfx");
    let (major, rest) = digits.split_at(digits.len() - 2);
    let part = |text: &str| u32::from_str_radix(text, 16).unwrap_or(0);
    major.parse::<u32>().unwrap_or(0) * 1000 + part(&rest[..1]) * 100 + part(&rest[1..])
}
