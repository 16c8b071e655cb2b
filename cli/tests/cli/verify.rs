//! `cantus verify`: its report, and a driver that takes its process along.

use std::time::Duration;

use crate::{Place, words};

#[test]
fn a_part_of_the_cases_on_the_processor() {
    let place = Place::new();
    for file in ["report.json", "report.md"] {
        let done = place.run(&format!("verify atomics -o {file}"));
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert!(done.stdout.starts_with("BACKEND"), "{}", done.stdout);
    }
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(place.path("report.json")).unwrap()).unwrap();
    let device = &report["devices"][0];
    assert_eq!(device["backend"], "cpu");
    assert!(device["passed"].as_u64() > Some(10) && device["failures"].as_array().unwrap().is_empty(), "{report}");
    assert!(std::fs::read_to_string(place.path("report.md")).unwrap().starts_with("# Cantus "));
}

#[test]
fn a_run_that_is_stopped_leaves_its_report() {
    let place = Place::new();
    // Killed in the middle; a busy machine gets more time to begin.
    let found = [9, 60].into_iter().find_map(|seconds| {
        let mut command = place.command();
        command.args(["verify", "--backend", "cpu", "-o", "report.json"]).timeout(Duration::from_secs(seconds));
        let _ = command.output();
        let text = std::fs::read_to_string(place.path("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).expect("whole files only");
        report["devices"][0]["passed"].as_u64().filter(|passed| *passed > 0)
    });
    assert!(found.is_some(), "no case is in the report");
}

/// A run that is killed left its child behind, which went on with a thousand cases.
#[test]
fn a_child_ends_with_whoever_asked_it() {
    use std::io::{BufRead as _, BufReader};
    let place = Place::new();
    let command = place.command();
    let mut child = std::process::Command::new(command.get_program())
        .args(["verify", "--backend", "cpu", "--device", "0", "--child", "0", "--", ""])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("begin"));
    drop(lines);
    // All cases pass where somebody listens, with exit code 0.
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn misuse_says_what_to_do() {
    let place = Place::new();
    for (arguments, code, words) in [
        ("verify nosuchcase", 2, "cantus verify --list"),
        ("verify --backend nosuch", 2, "no backend of this program"),
        ("verify -o report.txt", 2, ".json or .md"),
        ("verify --backend cpu --device 7", 1, "no device for the backend cpu, device 7"),
    ] {
        let done = place.run_plain(arguments);
        assert_eq!(done.code, Some(code), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{arguments:?}: {}", done.stderr);
    }
    assert!(place.run_plain("verify --list shipped").stdout.lines().count() > 50);
}

#[test]
fn a_device_of_operations_is_asked_operations() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["verify", "--backend", "pjrt", "--json", "m"]).env("CANTUS_PJRT_PLUGIN", "simulate");
    let output = command.output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let device = &report["devices"][0];
    assert_eq!(output.status.code(), Some(0), "{}", device["failures"]);
    assert!(device["passed"].as_u64() > Some(20), "{device}");
    assert!(device["not_run"]["the device takes operations, and no kernels"].is_array(), "{device}");
}

/// A library that ends the process where a case begins: a driver's bug, as its users see it.
const BOMB: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t write(int file, const void *text, size_t bytes) {
    ssize_t (*next)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    ssize_t written = next(file, text, bytes);
    if (file == 1 && memmem(text, bytes, "\"begin\":\"atomics.max", 20)) abort();
    return written;
}
"#;

/// A library that ends the process where a result is written, by what is defined as FAULT.
const FAULTY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t write(int file, const void *text, size_t bytes) {
    ssize_t (*next)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (memmem(text, bytes, "0,1,2", 5) && (!getenv("WITHIN_ONLY") || getenv("CANTUS_WITHIN"))) { FAULT; }
    return next(file, text, bytes);
}
"#;

#[test]
#[cfg(target_os = "linux")]
fn a_driver_that_ends_the_program_is_told_of() {
    let place = Place::new();
    let kernel = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = id.x; }";
    place.write("kernel.wgsl", kernel);
    let faults =
        [("*(volatile int *)16 = 1", 11, "SIGSEGV"), ("abort()", 6, "SIGABRT"), ("raise(SIGBUS)", 7, "SIGBUS")];
    for (fault, signal, name) in faults {
        let options = ["-D".to_owned(), format!("FAULT={fault}"), "-ldl".to_owned()];
        let options = options.each_ref().map(String::as_str);
        let Some(library) = place.library(&format!("{name}.so"), "cc", "faulty.c", FAULTY, &options) else { return };
        let mut command = place.command();
        command.args(words("--backend cpu run kernel.wgsl --out y=u32[1,3] --invocations 3 -o y=y.csv"));
        let output = command.env("LD_PRELOAD", library).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(signal), "{output:?}");
        let told = said.contains(&format!("error: the program was ended by {name} while it computed on cpu: "));
        assert!(told && said.contains("--backend cpu"), "{said}");
        assert!(!place.path("y.csv").exists());
    }
}

/// A driver that is named has a process of its own, and what ends that process is an error, or the CPU's work.
#[test]
#[cfg(target_os = "linux")]
fn a_named_driver_that_ends_its_process_is_an_error() {
    let place = Place::new();
    let kernel = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = id.x; }";
    place.write("kernel.wgsl", kernel);
    let devices: serde_json::Value = serde_json::from_str(&place.succeed("devices --json")).unwrap();
    let backends = devices["backends"].as_array().unwrap();
    let is_there = |name: &&str| backends.iter().any(|known| known["name"] == *name && known["available"] == true);
    let Some(driver) = ["vulkan", "opencl", "wgpu", "cuda"].iter().find(|name| is_there(name)) else {
        return cantus_skips::not_run("a named driver that ends its process", "there is no driver");
    };
    let options = ["-D", "FAULT=*(volatile int *)16 = 1", "-ldl"];
    let Some(library) = place.library("named.so", "cc", "named.c", FAULTY, &options) else { return };
    for (fallback, code) in [("never", 1), ("always", 0)] {
        let mut command = place.command();
        command.args(words("run kernel.wgsl --out y=u32[1,3] --invocations 3 -o y=y.csv --backend")).arg(driver);
        command.env("CANTUS_FALLBACK", fallback).env("WITHIN_ONLY", "1").env("LD_PRELOAD", &library);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(
            said.contains(&format!("error: the program was ended by SIGSEGV while it computed on {driver}: ")),
            "{said}"
        );
        assert_eq!(said.contains("the CPU runs the kernel"), fallback == "always", "{said}");
        assert_eq!(place.path("y.csv").exists(), fallback == "always");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_driver_that_takes_its_process_along_fails_its_case_alone() {
    let place = Place::new();
    let Some(library) = place.library("bomb.so", "cc", "bomb.c", BOMB, &["-ldl"]) else { return };
    let mut command = place.command();
    let output =
        command.args(["verify", "atomics", "--backend", "cpu", "--json"]).env("LD_PRELOAD", library).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let device = &report["devices"][0];
    let failures = device["failures"].as_array().unwrap();
    assert!(!failures.is_empty() && failures.len() < 8, "{report}");
    for failure in failures {
        assert!(failure["case"].as_str().unwrap().starts_with("atomics.max"), "{failure}");
        assert!(failure["message"].as_str().unwrap().contains("crashed its process"), "{failure}");
    }
    assert!(device["passed"].as_u64() > Some(10), "{report}");
}
