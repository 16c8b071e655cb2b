//! The program with doubles of vendors' libraries: what `devices` says of each, work that runs on it, and libraries that are not as they should be.

use std::path::{Path, PathBuf};

use crate::{Done, Place, words};

/// The variables that name a double, and the double.
struct Double {
    variables: &'static [&'static str],
    library: PathBuf,
}

const PJRT: &[&str] = &["CANTUS_PJRT_PLUGIN"];
const ASCEND: &[&str] = &["CANTUS_ASCEND_LIBRARY"];
const STREAM: &[&[&str]] = &[
    &["CANTUS_CUDA_LIBRARY", "CANTUS_NVRTC_LIBRARY", "CANTUS_CUBLASLT_LIBRARY", "CANTUS_NCCL_LIBRARY"],
    &["CANTUS_HIP_LIBRARY", "CANTUS_HIPRTC_LIBRARY", "CANTUS_HIPBLASLT_LIBRARY", "CANTUS_RCCL_LIBRARY"],
];
/// The folder of the files that kernels are compiled with.
const STREAM_SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cuda_hip_backend");

/// A plugin of Tenstorrent's name before the simulator: the version that it says, the place of a function that it lacks (-1 for none), and the
/// bytes that its table is short of.
fn pjrt(place: &Place, major: i32, missing: i32, shorter: usize) -> Option<Double> {
    // The library of a package that the tests depend on lies beside them.
    let behind = std::env::current_exe().unwrap().with_file_name("libcantus_test_plugin.so");
    assert!(behind.is_file(), "{}", behind.display());
    let options = [
        format!("-DBEHIND=\"{}\"", behind.display()),
        format!("-DMAJOR={major}"),
        format!("-DMISSING={missing}"),
        format!("-DSHORTER={shorter}"),
        "-ldl".to_owned(),
    ];
    let source = include_str!("../../../tests/suite/pjrt/double.c");
    let library = place.library("pjrt_plugin_tt.so", "cc", "double.c", source, &options.each_ref().map(|s| &**s))?;
    Some(Double { variables: PJRT, library })
}

fn ascend(place: &Place, options: &[&str]) -> Option<Double> {
    let source = include_str!("../../../tests/suite/ascend/double.cpp");
    let options = [&["-std=c++17", "-O1"], options].concat();
    Some(Double { variables: ASCEND, library: place.library("libascend.so", "c++", "double.cpp", source, &options)? })
}

fn stream(place: &Place, hip: bool) -> Option<Double> {
    let source = std::fs::read_to_string(Path::new(STREAM_SOURCES).join("double.cpp")).unwrap();
    let beside = format!("-I{STREAM_SOURCES}");
    let vendor: &[&str] = if hip { &["-DHIP"] } else { &[] };
    let options = [&["-std=c++17", "-O1", "-pthread", &beside], vendor, &["-ldl"]].concat();
    let library = place.library("libstream.so", "g++", "double.cpp", &source, &options)?;
    Some(Double { variables: STREAM[usize::from(hip)], library })
}

impl Place {
    /// Runs the program where the double is.
    fn with(&self, double: &Double, arguments: &str) -> Done {
        let mut command = self.command();
        command.envs(double.variables.iter().map(|variable| (variable, &double.library)));
        command.env("CANTUS_DOUBLE_LIBRARY", &double.library).env("CANTUS_DOUBLE_HEADERS", STREAM_SOURCES);
        crate::run(command.args(words(arguments)))
    }

    fn json_with(&self, double: &Double, arguments: &str) -> serde_json::Value {
        let done = self.with(double, arguments);
        assert_eq!(done.code, Some(0), "cantus {arguments}\n{}", done.stderr);
        serde_json::from_str(&done.stdout)
            .unwrap_or_else(|error| panic!("cantus {arguments}: {error}\n{}", done.stdout))
    }
}

/// The expected output of `devices` for a double's first device.
struct Expected<'a> {
    backend: &'a str,
    name: &'a str,
    driver: &'a str,
    priority: i64,
    memory: Option<u64>,
    /// Capabilities, and whether it has them.
    capabilities: &'a [(&'a str, bool)],
}

fn is_listed(place: &Place, double: &Double, expected: &Expected<'_>) {
    let Expected { backend, name, driver, priority, memory, capabilities } = *expected;
    let asked = place.json_with(double, &format!("devices --json --backend {backend}"));
    assert_eq!((&asked["selected"]["backend"], &asked["selected"]["device"]), (&backend.into(), &0.into()));
    let found = asked["backends"].as_array().unwrap().iter().find(|found| found["name"] == backend).unwrap();
    assert_eq!((&found["available"], &found["reason"]), (&true.into(), &serde_json::Value::Null), "{found}");
    let device = &found["devices"][0];
    assert_eq!((&device["name"], &device["priority"]), (&name.into(), &priority.into()), "{device}");
    assert!(device["driver"].as_str().unwrap().contains(driver), "{device}");
    assert_eq!(device["memory_bytes"].as_u64(), memory, "{device}");
    let is_experimental = ["hip", "ascend", "pjrt"].contains(&backend);
    assert_eq!(device["experimental"], is_experimental, "{device}");
    for (capability, have) in capabilities {
        assert_eq!(device["capabilities"][capability], *have, "{capability} of {device}");
    }
    // Where nobody asks for one it is chosen, unless there is a better one.
    let json = place.json_with(double, "devices --json");
    let mut others = json["backends"].as_array().unwrap().iter().filter(|other| other["name"] != backend);
    if others.all(|other| other["priority"].as_i64().unwrap() < priority || other["available"] == false) {
        assert_eq!(json["selected"]["backend"], backend, "{}", json["selected"]);
    }
    let text = place.with(double, &format!("devices -v --backend {backend}")).stdout;
    let has = text.split(&format!("\n{backend} 0: ")).nth(1).and_then(|details| details.split("  has ").nth(1));
    let has = has.and_then(|has| has.lines().next()).unwrap_or_else(|| panic!("{text}"));
    let row =
        text.lines().find(|line| line.starts_with(&format!("* {backend} 0 "))).unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains(name) && row.contains(&format!(" {priority} ")), "{row}");
    for (capability, have) in capabilities {
        let is_said = has.split_whitespace().any(|word| word.split('(').next() == Some(capability));
        assert_eq!(is_said, *have, "{capability} in {has}");
    }
    assert!(text.contains(&format!("* chosen: {backend} 0, ")), "{text}");
    assert_eq!(text.contains(&format!("{backend} is experimental: ")), is_experimental, "{text}");
    assert!(text.contains(&format!("{backend} 0: {name}\n  driver      ")) && text.contains(driver), "{text}");
}

/// The field runs there, is right, and the program says where it ran, by the name of the open device.
fn draws(place: &Place, double: &Double, backend: &str, name: &str) {
    place.succeed("field 40x24 --time 0.5 -o cpu.npy");
    let arguments = "field 40x24 --time 0.5 -o there.npy";
    let report = place.json_with(double, &format!("{arguments} --json --backend {backend}"));
    assert_eq!((&report["device"]["backend"], &report["device"]["name"]), (&backend.into(), &name.into()));
    assert_eq!(report["ran_on"], serde_json::json!([name]), "{report}");
    let ((shape, there), (_, here)) = (place.read_f32("there.npy"), place.read_f32("cpu.npy"));
    assert_eq!((shape, there.len()), (vec![24, 40], here.len()));
    for (a, b) in there.iter().zip(&here) {
        assert!((a - b).abs() < 1e-4, "{a} is not {b}");
    }
    let said = place.with(double, &format!("{arguments} --backend {backend}")).stderr;
    assert!(said.starts_with(&format!("field 40 x 24 on {backend}: {name}, ")), "{said}");
}

/// Coherence and the operations of the bench run there.
fn computes(place: &Place, double: &Double, backend: &str) {
    let coherence = |text: &str| text.trim().parse::<f64>().unwrap();
    let there = place.with(double, &format!("coherence cpu.npy --backend {backend}"));
    let here = place.succeed("coherence cpu.npy");
    assert!((coherence(&there.stdout) - coherence(&here)).abs() < 1e-4, "{} {here}", there.stdout);
    for operation in ["matmul", "softmax", "gelu"] {
        let bench = format!("bench --filter {operation} --size 24x24 --limit 200ms --json --backend {backend}");
        let report = place.json_with(double, &bench);
        let rows = report["results"].as_array().unwrap();
        assert!(!rows.is_empty() && report["failures"] == serde_json::json!([]), "{report}");
        for row in rows {
            assert_eq!(row["backend"], backend, "{row}");
            assert!(row["median_ms"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
}

const DOUBLE: &str = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] *= 2.0; }";

/// A device of operations takes no kernel. Naming it is an error; with fallback another device runs it, and the program says so.
fn falls_back(place: &Place, double: &Double, backend: &str) {
    place.write("double.wgsl", DOUBLE);
    let run = format!("run double.wgsl --in y=iota --invocations 64 -o y=y.npy --backend {backend}");
    std::fs::create_dir_all(place.path("config/cantus")).unwrap();
    place.write("config/cantus/config.toml", "fallback = \"always\"\n");
    let done = place.with(double, &run);
    std::fs::remove_dir_all(place.path("config")).unwrap();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("WGSL kernels: "), "{}", done.stderr);
    assert!(!done.stderr.contains(&format!("main on {backend}: ")), "{}", done.stderr);
    assert_eq!(place.read_f32("y.npy").1, (0..64).map(|i| 2.0 * i as f32).collect::<Vec<_>>());
    std::fs::remove_file(place.path("y.npy")).unwrap();
    let before = place.files();
    let done = place.with(double, &run);
    assert!(done.stderr.contains("hint: another device runs it if no backend is named"), "{}", done.stderr);
    assert!(done.code == Some(1) && done.stderr.contains("error: the kernel main cannot run on "), "{}", done.stderr);
    assert_eq!(place.files(), before);
}

/// `devices` gives the reason and ends well, text and JSON; work that asks for the backend ends with it.
fn is_refused(place: &Place, double: &Double, backend: &str, says: &[&str]) {
    let done = place.with(double, "devices");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let line = format!("{backend} is not available: ");
    let line = done.stdout.lines().find(|said| said.starts_with(&line)).unwrap_or_else(|| panic!("{}", done.stdout));
    let json = place.json_with(double, "devices --json");
    let found = json["backends"].as_array().unwrap().iter().find(|found| found["name"] == backend).unwrap();
    assert_eq!((&found["available"], &found["devices"]), (&false.into(), &serde_json::json!([])), "{found}");
    assert_ne!(json["selected"]["backend"], backend);
    let arguments = format!("field 8x8 -o refused.npy --backend {backend}");
    let work = place.with(double, &arguments);
    assert_eq!(work.code, Some(1), "{}", work.stderr);
    assert!(work.stderr.starts_with(&format!("error: no device for the backend {backend}: ")), "{}", work.stderr);
    for said in says {
        assert!(work.stderr.contains(said), "no \"{said}\" in {}", work.stderr);
        assert!(line.contains(said), "no \"{said}\" in {line}");
        assert!(found["reason"].as_str().unwrap().contains(said), "no \"{said}\" in {found}");
    }
    assert!(!place.path("refused.npy").exists());
}

#[test]
fn a_pjrt_plugin() {
    let place = Place::new();
    let Some(double) = pjrt(&place, 0, -1, 0) else { return };
    let name = "Tenstorrent (PJRT)";
    let file = double.library.to_str().unwrap();
    let capabilities = [("operation_graphs", true), ("float64", true), ("int64", true), ("f16", false)];
    let expected =
        Expected { backend: "pjrt", name, driver: file, priority: 85, memory: None, capabilities: &capabilities };
    is_listed(&place, &double, &expected);
    // The plugin's own name for what it opened.
    draws(&place, &double, "pjrt", "Simulated tiles of 32 x 32 (PJRT)");
    computes(&place, &double, "pjrt");
    falls_back(&place, &double, "pjrt");
}

#[test]
fn pjrt_plugins_that_are_refused() {
    let place = Place::new();
    /// PJRT_LoadedExecutable_Execute.
    const EXECUTE: i32 = 55;
    for (major, missing, shorter, says) in
        [(1, -1, 0, "it is of PJRT 1."), (0, EXECUTE, 0, "it lacks the function Execute"), (0, -1, 64, "is too old")]
    {
        let Some(double) = pjrt(&place, major, missing, shorter) else { return };
        is_refused(&place, &double, "pjrt", &["pjrt_plugin_tt.so: ", says]);
    }
    let Some(library) = place.library("none.so", "cc", "none.c", "int nothing;", &[]) else { return };
    let none = Double { variables: PJRT, library };
    is_refused(&place, &none, "pjrt", &["none.so: ", "it is no PJRT plugin: GetPjrtApi is missing"]);
    place.write("text.so", "no library");
    let text = Double { variables: PJRT, library: place.path("text.so") };
    is_refused(&place, &text, "pjrt", &["text.so: "]);
}

#[test]
fn an_ascend_library() {
    let place = Place::new();
    let Some(double) = ascend(&place, &[]) else { return };
    let name = "Ascend910B4 double";
    let capabilities = [("operation_graphs", true), ("f16", false), ("subgroups", false)];
    let driver = "AscendCL 1.15.0";
    let expected =
        Expected { backend: "ascend", name, driver, priority: 75, memory: Some(1 << 35), capabilities: &capabilities };
    is_listed(&place, &double, &expected);
    draws(&place, &double, "ascend", name);
    computes(&place, &double, "ascend");
    falls_back(&place, &double, "ascend");
}

#[test]
fn ascend_libraries_that_are_refused() {
    let place = Place::new();
    let Some(double) = ascend(&place, &["-DMAJOR=2"]) else { return };
    is_refused(&place, &double, "ascend", &["it is of AscendCL 2.15, Cantus speaks AscendCL 1"]);
    let Some(library) = place.library("none.so", "cc", "none.c", "int nothing;", &[]) else { return };
    is_refused(&place, &Double { variables: ASCEND, library }, "ascend", &["it lacks the function aclInit"]);
    let missing = Double { variables: ASCEND, library: place.path("missing.so") };
    is_refused(&place, &missing, "ascend", &["missing.so cannot be loaded", "CANTUS_ASCEND_LIBRARY"]);
}

#[test]
fn libraries_of_cuda_and_hip() {
    let of =
        [(false, "cuda", "CUDA double 0", "CUDA driver 13.0", 70), (true, "hip", "HIP double 0", "HIP runtime 6.", 80)];
    for (hip, backend, name, driver, priority) in of {
        let place = Place::new();
        let Some(double) = stream(&place, hip) else { return };
        let capabilities = [("operation_graphs", false), ("f16", true), ("int64", true), ("subgroups", true)];
        let memory = Some(1 << 30);
        is_listed(&place, &double, &Expected { backend, name, driver, priority, memory, capabilities: &capabilities });
        draws(&place, &double, backend, name);
        let Some(library) = place.library("none.so", "cc", "none.c", "int nothing;", &[]) else { return };
        let none = Double { variables: double.variables, library };
        is_refused(&place, &none, backend, &["the driver is too old: it has no "]);
        let missing = Double { variables: double.variables, library: place.path("missing.so") };
        is_refused(&place, &missing, backend, &[double.variables[0], "missing.so cannot be loaded"]);
    }
}
