//! Writes what is generated and committed, and checks that it is fresh.

mod ahead;
mod bundle;
#[cfg(test)]
mod copy_test;
mod hardware;
mod link;
mod operations;
mod prepare;
mod ptx;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask prepare          link shaders/ and write the prepared kernels
cargo xtask prepare --check  fail if what is committed is not what the shaders give now
cargo xtask ptx              compile the shipped kernels to PTX with NVRTC 12 (CANTUS_NVRTC_LIBRARY names its library)
cargo xtask ptx --check      fail if what is committed was made from other source
cargo xtask ptx --recompile  as --check, and compile again to compare
cargo xtask ahead [ROOT]     as prepare, and write the kernels as Rust, compiled ahead (ROOT: another checkout)
cargo xtask ahead --check    fail if what is committed is not what the shaders give now
cargo xtask operations       run every operation, and write docs/operations.md; --check compares
cargo xtask hardware         write docs/hardware/README.md from the reports there; --check compares
cargo xtask bundle [FILE...] build target/bundle: release programs and run.sh, for a machine without Rust (FILE: a Debian package, a wheel)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let outcome = match words.as_slice() {
        ["prepare"] => prepare::write(root),
        ["prepare", "--check"] => prepare::check(root),
        ["ptx"] => ptx::write(root),
        ["ptx", "--check"] => ptx::check(root, false),
        ["ptx", "--recompile"] => ptx::check(root, true),
        ["ahead"] => ahead::write(root),
        ["ahead", "--check"] => ahead::check(root),
        ["operations"] => operations::write(root),
        ["operations", "--check"] => operations::check(root),
        ["hardware"] => hardware::write(root),
        ["hardware", "--check"] => hardware::check(root),
        ["bundle", packages @ ..] => bundle::write(root, packages),
        ["ahead", other] => ahead::write(Path::new(other)),
        _ => Err(format!("usage:\n{USAGE}").into()),
    };
    match outcome {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "this is where a program speaks of failure")]
            {
                eprintln!("xtask: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use std::path::Path;

    use super::{ahead, hardware, prepare, ptx};

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn prepared_kernels_are_fresh() {
        prepare::check(root()).unwrap();
    }

    #[test]
    fn kernels_compiled_ahead_are_fresh() {
        ahead::check(root()).unwrap();
    }

    #[test]
    fn the_page_of_devices_is_fresh() {
        hardware::check(root()).unwrap();
    }

    #[test]
    fn embedded_ptx_is_fresh() {
        ptx::check(root(), false).unwrap();
    }
}
