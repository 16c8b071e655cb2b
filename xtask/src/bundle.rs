//! Builds `target/bundle`: release programs that need no source tree and no Rust, and `run.sh`, which checks and measures a machine's devices
//! with them and writes one report.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::prepare::Outcome;

const RUN: &str = include_str!("run.sh");
/// The most bytes of the whole folder.
const MOST_BYTES: u64 = 60 << 20;
/// Processors of the last ten years.
const PROCESSOR: &str = "-C target-cpu=x86-64-v3";

/// Programs: how cargo is asked for each, and its name in the folder.
const PROGRAMS: [(&[&str], &str); 6] = [
    (&["build", "--package", "cantus-cli", "--bin", "cantus"], "cantus"),
    (&["test", "--no-run", "--package", "cantus-tests", "--test", "tensor_ops"], "tensor_ops"),
    (&["build", "--package", "cantus-benches", "--bench", "small_dispatch"], "small_dispatch"),
    (&["build", "--package", "cantus-benches", "--bench", "operations"], "operations"),
    (&["build", "--package", "cantus-benches", "--bench", "backends"], "backends"),
    (&["build", "--package", "cantus-benches", "--bench", "textures"], "textures"),
];

/// Files that go along as they are: where they are in the project, and the folder that takes them.
const FILES: [(&str, &str); 7] = [
    // What operations are timed beside, where the machine has PyTorch; and its recorded times, where it has none.
    ("benches/peers/operations_torch.py", "peers"),
    ("benches/peers/turns.py", "peers"),
    ("benches/measured/operations-h100.json", "peers"),
    ("benches/programs/run.py", "programs"),
    ("benches/programs/peer.py", "programs"),
    ("benches/programs/programs.py", "programs"),
    ("benches/shapes.py", "programs"),
];

/// Writes the folder; `packages` are Debian packages to take along, such as a Vulkan loader, and the Python package as a wheel.
pub fn write(root: &Path, packages: &[&str]) -> Outcome<String> {
    let folder = root.join("target/bundle");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(folder.join("debs"))?;
    for (arguments, name) in PROGRAMS {
        let path = folder.join(name);
        std::fs::copy(built(root, arguments)?, &path)?;
        // A third of their bytes; run.sh unpacks them.
        if !Command::new("gzip").args(["--best", "--force"]).arg(&path).status()?.success() {
            return Err(format!("{}: gzip failed", path.display()).into());
        }
    }
    for (path, to) in FILES {
        copied(&root.join(path), &folder.join(to))?;
    }
    let script = folder.join("run.sh");
    std::fs::write(&script, RUN)?;
    executable(&script)?;
    for package in packages {
        let package = Path::new(package);
        let is_wheel = package.extension().is_some_and(|extension| extension == "whl");
        copied(package, &folder.join(if is_wheel { "wheels" } else { "debs" }))?;
    }
    let bytes = size(&folder)?;
    let [mib, most] = [bytes, MOST_BYTES].map(|bytes| bytes.div_ceil(1 << 20));
    if bytes > MOST_BYTES {
        return Err(format!("target/bundle has {mib} MiB, more than {most}").into());
    }
    Ok(format!("target/bundle: {mib} MiB; run.sh in it checks and measures a machine"))
}

/// Copies a file into a folder, which is made if it is not there.
fn copied(file: &Path, folder: &Path) -> Outcome<()> {
    let name = file.file_name().ok_or_else(|| format!("{}: not a file", file.display()))?;
    std::fs::create_dir_all(folder)?;
    std::fs::copy(file, folder.join(name))?;
    Ok(())
}

/// Builds a program, and says where it is.
fn built(root: &Path, arguments: &[&str]) -> Outcome<PathBuf> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.args(arguments).args(["--locked", "--release", "--message-format", "json-render-diagnostics"]);
    command.current_dir(root).stderr(std::process::Stdio::inherit());
    command.env("RUSTFLAGS", PROCESSOR).env("CARGO_TARGET_DIR", root.join("target/bundled"));
    command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols").env("CARGO_PROFILE_BENCH_STRIP", "symbols");
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("cargo {} failed", arguments.join(" ")).into());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    };
    messages
        .lines()
        .rev()
        .find_map(executable)
        .ok_or_else(|| format!("cargo {} built no program", arguments.join(" ")).into())
}

fn executable(path: &Path) -> Outcome<()> {
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

fn size(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use super::*;

    /// A program that behaves badly: one part hangs, one crashes, one fails.
    const PROGRAM: &str = r#"#!/bin/bash
case "$*" in
    "devices -v") printf '* cuda 0  "card"\n  opencl 0  one\n  cpu 0  another\n' ;;
    "devices --json") echo '{ "backends": [] }' ;;
    "verify --backend cuda "*) sleep 100 ;;
    "verify --backend opencl "*) kill -SEGV $$ ;;
    "verify --backend cpu "*) echo '{ "devices": [] }' >"$5"; echo 'a "quoted" line' ;;
    "bench --backend cuda "*) exit 1 ;;
    *) exit 0 ;;
esac
"#;

    /// A bundle's folder around `program`. A process of its own writes the scripts: a file that this process has open for writing is open as
    /// well in whatever another test starts at that moment, and until that program runs Linux refuses to execute the file ("text file busy").
    fn bundle(program: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("run.sh", RUN), ("cantus", program)] {
            let path = folder.path().join(name);
            let mut shell =
                Command::new("sh").args(["-c", r#"printf %s "$2" >"$1""#, "sh"]).arg(&path).arg(text).spawn().unwrap();
            assert!(shell.wait().unwrap().success());
            executable(&path).unwrap();
        }
        folder
    }

    #[test]
    fn a_part_that_hangs_or_crashes_is_a_line_of_the_report() {
        let folder = bundle(PROGRAM);
        let mut command = Command::new(folder.path().join("run.sh"));
        let output = command.env("CANTUS_BUNDLE_SECONDS", "10").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        let report = std::fs::read(folder.path().join("report/report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let state = |part: &str| report["parts"][part]["state"].as_str().unwrap_or("missing").to_owned();
        assert_eq!(state("devices"), "right");
        assert_eq!(state("verify-cuda"), "stopped after 1 s");
        assert_eq!(state("verify-opencl"), "ended with 139");
        assert_eq!(state("verify-cpu"), "right");
        assert_eq!(state("bench-cuda"), "wrong");
        assert_eq!(state("verify-vulkan"), "not run: no device");
        assert_eq!(state("programs-cuda"), "not run: the bundle has no programs in Python");
        assert!(report["verify-cpu"]["devices"].is_array() && report["devices"]["backends"].is_array());
        let page = std::fs::read_to_string(folder.path().join("report/report.md")).unwrap();
        assert!(page.contains("| verify-cuda | stopped after 1 s |") && page.contains("a \"quoted\" line"), "{page}");
    }

    /// A part that was stopped runs again; one that ended does not.
    #[test]
    fn another_call_goes_on() {
        let folder = bundle(
            r#"#!/bin/bash
here=$(dirname "$0")
echo "$*" >>"$here/calls"
case "$*" in
    "devices -v") printf '* vulkan 0  card  discrete gpu\n  wgpu 0  imitation  software gpu\n  cpu 0  another\n' ;;
    "verify --backend vulkan "*) [ -e "$here/again" ] || { : >"$here/again"; sleep 100; } ;;
esac
"#,
        );
        let state = || {
            let mut command = Command::new(folder.path().join("run.sh"));
            let output = command.env("CANTUS_BUNDLE_SECONDS", "10").output().unwrap();
            let report = std::fs::read(folder.path().join("report/report.json")).unwrap();
            let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
            (output.status.code(), report["parts"]["verify-vulkan"]["state"].as_str().unwrap().to_owned())
        };
        let cache = folder.path().join("report/parts/cache");
        assert_eq!((state(), cache.exists()), ((Some(1), "stopped after 1 s".to_owned()), true));
        assert_eq!((state(), cache.exists()), ((Some(0), "right".to_owned()), false));
        let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
        let count = |call: &str| calls.lines().filter(|line| line.starts_with(call)).count();
        assert_eq!((count("verify --backend vulkan"), count("verify --backend cpu"), count("devices -v")), (2, 1, 1));
        // A software device beside a GPU takes none of its minutes.
        assert_eq!(count("verify --backend wgpu"), 0);
    }

    #[test]
    fn a_machine_where_all_is_right() {
        let folder = bundle("#!/bin/sh\nexit 0\n");
        let output = Command::new(folder.path().join("run.sh")).arg(folder.path().join("there")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(folder.path().join("there/report.md").exists());
    }
}
