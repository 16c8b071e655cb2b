//! `cargo xtask`: releases and manifests here, without building the library; whatever writes generated code in the package `xtask`.

mod manifests;
mod packages;
mod run;
mod steps;

use std::path::Path;
use std::process::{Command, ExitCode};

/// A result whose error says the cause and the remedy.
type Outcome<T> = Result<T, String>;

const USAGE: &str = "\
cargo xtask release VERSION    make dist/: everything that a user installs; --help says more
cargo xtask manifests          carry the version and the addresses of Cargo.toml to every other manifest; --check compares
cargo xtask packages           pack every crate and the npm package without compiling, and check what is in them";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let outcome = match words.as_slice() {
        ["release", rest @ ..] => run::release(root, rest),
        ["manifests"] => manifests::write(root),
        ["manifests", "--check"] => manifests::check(root),
        ["packages"] => packages::check(root),
        others => {
            if others.is_empty() || others == ["--help"] {
                println!("{USAGE}");
            }
            return generate(root, others);
        }
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

/// The other commands: they run kernels, so that they take a build of the library.
fn generate(root: &Path, arguments: &[&str]) -> ExitCode {
    let manifest = root.join("Cargo.toml");
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--package", "xtask", "--manifest-path"])
        .arg(manifest)
        .arg("--")
        .args(arguments)
        .status();
    if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
