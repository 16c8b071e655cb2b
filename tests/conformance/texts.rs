//! Every case, every shipped kernel and random programs in the languages that naga writes, through the checkers available for them on
//! this machine. A checker that is missing is said, and is a failure where `CANTUS_REQUIRE_CHECKERS` is set. MSL is read as C++ with a header
//! of ours (`metal/metal_stdlib`), which knows no address spaces.
//!
//! C, CUDA and HIP have compilers of their own: the target "host C" and `--compile`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use cantus::kernel::Language;
use cantus::{Error, Kernel, ops};
use kit::case::Case;
use kit::{deviations, turn};

use crate::report::{Outcome, Report};

/// Random programs, from the first seed on.
const RANDOM: u64 = 60;

struct Checker {
    language: Language,
    title: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// The file's name ends in this.
    extension: &'static str,
    package: &'static str,
}

const CHECKERS: [Checker; 4] = [
    Checker {
        language: Language::Spirv,
        title: "SPIR-V by spirv-val",
        program: "spirv-val",
        arguments: &["--target-env", "vulkan1.1"],
        extension: "spv",
        package: "spirv-tools",
    },
    Checker {
        language: Language::Glsl,
        title: "GLSL by glslangValidator",
        program: "glslangValidator",
        arguments: &["-S", "comp"],
        extension: "comp",
        package: "glslang-tools",
    },
    Checker {
        language: Language::Msl,
        title: "MSL by clang",
        program: "clang",
        arguments: &[
            "-x",
            "c++",
            "-std=c++17",
            // It has halves.
            "--target=aarch64-linux-gnu",
            "-fsyntax-only",
            "-Werror",
            "-Wno-unknown-attributes",
            "-Wno-user-defined-literals",
            "-Wno-tautological-compare",
            "-Wno-bitwise-op-parentheses",
            // Swizzles are properties, and numbers without a suffix `float`.
            "-fdeclspec",
            "-Xclang",
            "-cl-single-precision-constant",
            "-nostdinc",
            "-nostdinc++",
            concat!("-I", env!("CARGO_MANIFEST_DIR"), "/conformance/metal"),
        ],
        extension: "metal",
        package: "clang",
    },
    Checker {
        language: Language::Hlsl,
        title: "HLSL by Slang",
        program: "python3",
        arguments: &[concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/hlsl.py")],
        extension: "hlsl",
        package: "",
    },
];

/// Checks everything in every language, or with `by_turns` a share of it; false when a checker that should be there is not.
pub fn run<'a>(
    cases: impl IntoIterator<Item = &'a Case>,
    only: &str,
    part: &str,
    by_turns: bool,
    report: &mut Report,
) -> bool {
    let mut there = true;
    let folder = tempfile::tempdir().unwrap();
    let mut kernels = kernels(cases, part);
    if by_turns {
        let mut number = 0;
        kernels.retain(|_| {
            number += 1;
            turn::has_turn(number)
        });
    }
    for checker in CHECKERS.iter().filter(|checker| checker.title.contains(only)) {
        let mut version = Command::new(checker.program);
        version.args(checker.arguments).arg("--version").stdin(Stdio::null());
        if !version.output().is_ok_and(|output| output.status.success()) {
            let remedy = if checker.package.is_empty() {
                "CANTUS_SLANG_LIBRARY names no library".to_owned()
            } else {
                format!("there is no {} (Debian: {})", checker.program, checker.package)
            };
            kit::not_run(checker.title, &remedy);
            there &= checker.package.is_empty() || std::env::var_os("CANTUS_REQUIRE_CHECKERS").is_none();
            continue;
        }
        let started = Instant::now();
        let next = AtomicUsize::new(0);
        let outcomes = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for worker in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                let file = folder.path().join(format!("{worker}.{}", checker.extension));
                let (next, outcomes, kernels) = (&next, &outcomes, &kernels);
                scope.spawn(move || {
                    while let Some((name, kernel)) = kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = checker.judge(name, kernel, &file);
                        outcomes.lock().unwrap().push((name.clone(), outcome));
                    }
                });
            }
        });
        let mut outcomes = outcomes.into_inner().unwrap();
        outcomes.sort_by(|(a, _), (b, _)| a.cmp(b));
        report.device(checker.title, outcomes, started.elapsed());
    }
    there
}

/// Everything that is checked, by name.
pub fn kernels<'a>(cases: impl IntoIterator<Item = &'a Case>, part: &str) -> Vec<(String, cantus::Result<Kernel>)> {
    let mut kernels: Vec<_> = cases.into_iter().map(|case| (case.name.clone(), kernel(case))).collect();
    let shipped =
        ops::kernels().iter().map(|shipped| (format!("shipped.{}", shipped.name()), shipped.kernel().cloned()));
    let random = (0..RANDOM).flat_map(|seed| {
        let of_integers = kit::random::case(&kit::random::generate::program(seed));
        [of_integers, kit::random::floats::case(seed)].map(|case| (format!("random {}", case.name), kernel(&case)))
    });
    kernels.extend(shipped.chain(random).filter(|(name, _)| name.contains(part)));
    kernels
}

fn kernel(case: &Case) -> cantus::Result<Kernel> {
    let mut kernel = Kernel::from_named_wgsl(&case.name, &case.wgsl)?.with_entry_point("main")?;
    for &(name, value) in &case.overrides {
        kernel = kernel.with_override(name, value)?;
    }
    Ok(kernel)
}

impl Checker {
    fn judge(&self, name: &str, kernel: &cantus::Result<Kernel>, file: &Path) -> Outcome {
        let written = kernel.as_ref().map_err(Clone::clone).and_then(|kernel| kernel.write(self.language));
        let text = match written {
            Ok(text) if self.language == Language::Msl => one_space(text),
            Ok(text) => text,
            Err(Error::Unsupported { construct, .. }) => return Outcome::NotRun(first_line(&construct)),
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        let checked = self.check(&text, file);
        match (checked, deviations::find(self.title, name)) {
            // Debian 12's knows no cooperative matrices.
            (Err(message), None) if message.contains("Invalid capability operand: 6022") => {
                Outcome::NotRun("this checker does not know cooperative matrices".to_owned())
            }
            (Ok(()), None) => Outcome::Passed,
            (Ok(()), Some(_)) => Outcome::Failed("is declared a deviation, but passes: drop the entry".to_owned()),
            (Err(_), Some(known)) => Outcome::Expected(known.reason.to_owned()),
            (Err(message), None) => Outcome::Failed(message),
        }
    }

    fn check(&self, text: &[u8], file: &Path) -> Result<(), String> {
        std::fs::write(file, text).map_err(|error| error.to_string())?;
        let output =
            Command::new(self.program).args(self.arguments).arg(file).output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).replace(&file.display().to_string(), "text");
        Err(said.lines().take(6).collect::<Vec<_>>().join("\n"))
    }
}

/// MSL whose functions that are overloaded by the address space alone differ without it.
fn one_space(text: Vec<u8>) -> Vec<u8> {
    String::from_utf8_lossy(&text).replace("threadgroup A *atomic_ptr", "volatile A *atomic_ptr").into_bytes()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
