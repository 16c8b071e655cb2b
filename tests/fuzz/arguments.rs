//! Arguments of the program, which is built beside this one (`cargo build --bin cantus`).

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::mutate::Rng;
use crate::{Input, Outcome};

pub fn built() -> Option<PathBuf> {
    let named = std::env::var_os("CANTUS_PROGRAM").map(PathBuf::from);
    let own = std::env::current_exe().ok()?;
    let beside = own.ancestors().skip(1).map(|folder| folder.join("cantus")).find(|path| path.is_file());
    named.or(beside)
}

fn value(rng: &mut Rng) -> String {
    match rng.below(6) {
        0 => rng.number().to_string(),
        1 => format!("-{}", rng.number()),
        2 => (*rng.pick(&[
            "1e308",
            "nan",
            "inf",
            "0",
            "",
            "1x",
            "64x64",
            "0x0",
            "99999999999999999999",
            "é",
            "a=b",
            "=",
            ",",
        ]))
        .to_owned(),
        3 => format!("{}x{}", rng.number(), rng.number() % 64),
        4 => (*rng.pick(&["love", "cpu", "f32", "png", "json", "text", "wgsl", "cuda", "never"])).to_owned(),
        _ => (rng.below(64)).to_string(),
    }
}

pub fn program() -> Input {
    let program = built().expect("cargo build --bin cantus, or CANTUS_PROGRAM, comes first");
    let folder = tempfile::tempdir().unwrap();
    let kernel = folder.path().join("kernel.wgsl");
    std::fs::write(
        &kernel,
        "override n: u32 = 3; struct P { x: f32 } @group(0) @binding(1) var<uniform> p: P;
        @group(0) @binding(0) var<storage, read_write> a: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { a[id.x] = p.x + f32(n); }",
    )
    .unwrap();
    let commands = [
        "devices",
        "field",
        "pattern",
        "coherence",
        "animate",
        "run",
        "compile",
        "kernels",
        "config",
        "--version",
        "help",
    ];
    let options = [
        "--backend",
        "--size",
        "--width",
        "--height",
        "--frequency",
        "--time",
        "--out",
        "--in",
        "--set",
        "--workgroups",
        "--json",
        "--entry",
        "--timeout",
        "--memory-limit",
        "--frames",
        "--colormap",
        "--format",
        "--verbose",
        "--help",
        "--invocations",
        "--target",
        "--repeat",
        "--fps",
        "--dry-run",
    ];
    Box::new(move |rng| {
        let mut arguments = vec![(*rng.pick(&commands)).to_owned()];
        if rng.one_in(2) {
            arguments.extend(["--backend".to_owned(), "cpu".to_owned()]);
        }
        for _ in 0..rng.below(6) {
            match rng.below(6) {
                0 => arguments.push(kernel.display().to_string()),
                1 => arguments.push(value(rng)),
                2 => arguments.push(format!("{}={}", rng.pick(&options), value(rng))),
                _ => {
                    arguments.push((*rng.pick(&options)).to_owned());
                    if rng.one_in(2) {
                        arguments.push(value(rng));
                    }
                }
            }
        }
        let mut child = Command::new(&program)
            .args(&arguments)
            .current_dir(folder.path())
            .env("CANTUS_BACKEND", "cpu")
            .env("CANTUS_MEMORY_LIMIT", "268435456")
            .env("CANTUS_TIMEOUT", "2000")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Large sizes are work, not a hang: they are ended.
        let end = Instant::now() + Duration::from_secs(10);
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > end => {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    return Outcome::Passed;
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        // 101 is a panic, and no code is a signal.
        assert!(status.code().is_some_and(|code| code != 101), "{status}: {arguments:?}");
        match status.code() {
            Some(0) => Outcome::Ran,
            Some(1) => Outcome::Passed,
            _ => Outcome::Refused,
        }
    })
}
