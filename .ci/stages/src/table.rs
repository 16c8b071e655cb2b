//! The stages: their commands, how long they may take, and which paths call for what.

use crate::arguments::Mode;
use crate::faults;

/// Something that runs, and its end.
pub struct Stage {
    pub name: String,
    /// Minutes after which it is killed, and has failed: some four times what it takes on two cores.
    pub minutes: u64,
    /// For bash, at the root of the project; the first command that fails ends it.
    pub command: String,
    /// True if nothing behind it makes sense without it.
    pub needed: bool,
    /// The minutes after which a part in rotation waits for its next turn: a run that is cut off says nothing at all.
    pub unless_after: Option<u64>,
    /// Packages and paths that the stage tests; CI leaves it out if the change touches none of them. Empty: it always runs. See `reach.rs`.
    pub on: &'static [&'static str],
    /// Which of several stages that take turns it is, and the folder whose change asks for it in any turn.
    pub turn: Option<Turn>,
}

/// One of several that take turns.
#[derive(Clone, Copy)]
pub struct Turn {
    pub number: u64,
    pub of: u64,
    pub folder: &'static str,
}

impl Stage {
    pub fn new(name: &str, minutes: u64, command: &str) -> Self {
        Self {
            name: name.to_owned(),
            minutes,
            command: command.to_owned(),
            needed: false,
            unless_after: None,
            on: &[],
            turn: None,
        }
    }

    fn on(self, on: &'static [&'static str]) -> Self {
        Self { on, ..self }
    }

    fn by_turns(self, number: u64, of: u64, folder: &'static str) -> Self {
        Self { turn: Some(Turn { number, of, folder }), ..self }
    }
}

/// A part of `--all`, which a change can call for.
pub struct Part {
    pub name: &'static str,
    /// Its minutes on two cores, built already.
    pub minutes: f64,
    /// The beginnings of paths whose change calls for it.
    pub paths: &'static [&'static str],
    pub stages: Vec<Stage>,
}

/// Cargo's arguments for all tests: one set of features and one profile, so that nothing is compiled twice. The oracles of proofs, 54
/// packages, are those of one program.
const WORKSPACE: &str = "--locked --workspace --exclude cantus-benches --exclude cantus-example-ahead --exclude cantus-example-typed --features $CANTUS_FEATURES";

fn tests(arguments: &str) -> String {
    format!("cargo test {WORKSPACE} --exclude cantus-zk-tests {arguments}")
}

/// The libraries without unit tests, and their folders: they are not compiled a second time.
const WITHOUT_UNIT_TESTS: [(&str, &str); 13] = [
    ("cantus-build", "crates/build"),
    ("cantus-cpu-kernels", "native-fastpaths/cpu"),
    ("cantus-cudarc", "crates/cudarc"),
    ("cantus-field", "crates/field"),
    ("cantus-graph", "crates/graph"),
    ("cantus-monitor", "crates/monitor"),
    ("cantus-publish", "crates/publish"),
    ("cantus-shaders", "shaders"),
    ("cantus-skips", "tests/skips"),
    ("cantus-translate", "crates/translate"),
    ("cantus-verify", "crates/verify"),
    ("cantus-wgpu", "crates/wgpu"),
    ("cantus-zk", "crates/zk"),
];

/// The library and what tests it from outside.
const LIBRARY: &[&str] = &["cantus-tests"];

/// The test programs of the quick circle, the minutes that each may take, their arguments, and the packages that they test.
const PROGRAMS: [(&str, u64, &str, &[&str]); 14] = [
    ("suite", 30, "", LIBRARY),
    ("tensor_ops", 45, "", LIBRARY),
    // Vulkan under its validation layers, where they are installed.
    ("conformance", 20, "", LIBRARY),
    ("random_kernels", 15, "", LIBRARY),
    ("opencl_backend", 10, "", LIBRARY),
    ("cuda_hip_backend", 20, "", LIBRARY),
    ("vulkan_backend", 10, "", LIBRARY),
    ("wgpu_backend", 10, "", LIBRARY),
    ("data", 5, "", &["cantus-data"]),
    ("linked", 5, "", &["cantus-kernel", "cantus-link"]),
    ("monitor", 5, "", &["cantus-monitor"]),
    ("circuits", 10, "", &["cantus-circuits"]),
    ("wgpu_cpu", 10, "", &["cantus-hal", "cantus-wgpu"]),
    ("cli", 20, "", &["cantus-cli"]),
];

/// How much `./test` runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Circle {
    /// Before a change is shown to others: everything on the processor, a third of the cases on other devices.
    Quick,
    /// Every case on one device beside the processor too, and what needs more to be built.
    Full,
    /// The stages of the whole circle, with the quick one's share of drivers: CI, where the next turn takes another share.
    Ci,
}

/// Returns the stages of `./test`.
pub fn circle(circle: Circle, window: bool, turn: u64) -> Vec<Stage> {
    let stage = Stage::new;
    let share = if circle == Circle::Full { "" } else { "CANTUS_TESTS=quick " };
    let beyond = if circle == Circle::Quick { "" } else { " --test=ahead" };
    let named: String = PROGRAMS.iter().map(|(name, ..)| format!(" --test={name}")).collect();
    let without: String = WITHOUT_UNIT_TESTS.iter().map(|(package, _)| format!(" --exclude {package}")).collect();
    let window = if window { " --test=view" } else { "" };
    let mut stages = vec![
        Stage { needed: true, ..stage("build", 40, &tests(&format!("--no-run --bins{named}{beyond}{window}"))) },
        stage("unit tests of the library", 10, &tests(&format!("--lib --no-fail-fast{without}"))),
        stage("unit tests of the programs, generated code is fresh", 15, &tests("--bins --no-fail-fast")),
    ];
    for (name, minutes, arguments, on) in PROGRAMS {
        let validated = if name == "conformance" { "CANTUS_VALIDATION=1 " } else { "" };
        let command = format!("{share}{validated}{}", tests(&format!("--test {name} {arguments}")));
        stages.push(stage(name, minutes, &command).on(on));
    }
    stages.push(stage("documentation's code", 10, &tests("--doc --no-fail-fast")));
    if circle != Circle::Quick {
        stages.extend(beyond_the_circle(turn, circle));
    }
    if !window.is_empty() {
        stages.push(stage("the window", 15, ".ci/view").on(&["cantus-cli"]));
    }
    stages
}

/// Returns what `./test --full` adds, and `./test` lists as not run.
pub fn beyond_the_circle(turn: u64, circle: Circle) -> Vec<Stage> {
    let stage = Stage::new;
    let backends = ["wgpu", "vulkan", "opencl", "cuda", "hip", "pjrt", "ascend", "field"];
    // In CI every second one, the others with the next turn.
    let (first, step) = if circle == Circle::Ci { (turn as usize % 2, 2) } else { (0, 1) };
    let backends: Vec<&str> = backends.into_iter().skip(first).step_by(step).collect();
    let mut stages = vec![
        stage("proofs beside other libraries", 20, &format!("cargo test {WORKSPACE} --test zk"))
            .on(&["cantus-zk-tests"]),
        stage("kernels compiled ahead", 20, &tests("--test ahead -- --random 60")).on(&["cantus-build", "tests/"]),
        stage(
            "a quarter of the kernels on Vulkan, as on a GPU with memory of its own",
            10,
            &discrete("--test conformance -- --device 'vulkan: '"),
        )
        .on(&["cantus-gpu"]),
    ];
    let (cuda, hip) = (["sm_75", "sm_90", "compute_90"], ["gfx90a", "gfx1030", "gfx1100", "gfx1201"]);
    for architecture in [cuda.get(turn as usize % 3), hip.get(turn as usize % 4)].into_iter().flatten() {
        let name = format!("every kernel compiles for {architecture}");
        stages.push(compiles(&name, &format!("--device {architecture}")).on(&["cantus-verify"]));
    }
    stages.extend([
        stage("types of the Python package", 10, ".ci/part types").on(&["python/"]),
        stage(
            "the library alone, without naga",
            10,
            "cargo clippy --locked --package cantus --no-default-features --features cpu --lib -- --deny warnings",
        )
        .on(&["cantus"]),
        stage(
            "each backend alone",
            12,
            &format!(
                "for backend in {}; do cargo clippy --locked --package cantus --no-default-features \
                 --features $backend --lib -- --deny warnings || exit 1; done",
                backends.join(" ")
            ),
        )
        .on(&["cantus"]),
    ]);
    stages
}

/// Where there is NVRTC; the tests find HIP's compiler by themselves.
fn compiles(name: &str, device: &str) -> Stage {
    let run = tests(&format!("--test conformance -- --compile {device}"));
    Stage::new(
        name,
        15,
        &format!(
            ". .ci/shell.sh; if [ -n \"${{CANTUS_NVRTC_LIBRARY:-}}\" ]; then {run}; else skip 'compilers' 'CANTUS_NVRTC_LIBRARY names no library (CI=true installs it)'; fi"
        ),
    )
}

/// The path of GPUs with memory of their own: staging everywhere, memory that is not coherent, small limits, ends that come late.
fn discrete(arguments: &str) -> String {
    format!("CANTUS_VALIDATION=1 CANTUS_VULKAN_DISCRETE=1 CANTUS_VULKAN_DELAY=200 {}", tests(arguments))
}

/// Returns a stage for code that accesses memory directly, under AddressSanitizer.
fn sanitized(name: &str, minutes: u64, arguments: &str) -> Stage {
    Stage::new(name, minutes, &format!(".ci/part sanitized {arguments}"))
}

/// The parts of `--all`.
pub fn parts() -> Vec<Part> {
    let stage = Stage::new;
    vec![
        Part {
            name: "all_drops",
            minutes: 3.0,
            paths: &["crates/device/", "crates/driver/", "crates/engine/", "crates/gpu/", "crates/graph-devices/"],
            stages: vec![stage(
                "every operation dropped at every wait",
                20,
                &format!("CANTUS_TESTS=all {}", tests("--test suite -- dropped::")),
            )],
        },
        Part {
            name: "all_random",
            minutes: 6.0,
            paths: &[
                "crates/cpu/",
                "crates/kernel/",
                "crates/spmd/",
                "crates/translate/",
                "tests/random_kernels/",
                "tests/kit/",
            ],
            stages: vec![stage("all random kernels", 60, &tests("--test random_kernels -- --all"))],
        },
        Part {
            name: "all_operations",
            minutes: 40.0,
            paths: &["crates/cpu/", "crates/engine/", "shaders/tensor/", "tests/tensor_ops/"],
            stages: vec![
                stage(
                    "all tensor operations, beside PyTorch",
                    120,
                    &format!(".ci/part torch env CANTUS_TESTS=all {}", tests("--test tensor_ops")),
                ),
                // What `rustfft` and `faer` compute on the processor.
                stage(
                    "transforms and factorisations by libraries",
                    60,
                    &format!(
                        "CANTUS_TESTS=all {}",
                        tests(
                            "--features cantus-tests/fft,cantus-tests/linalg --test tensor_ops -- fft:: linalg:: host:: native:: peers::"
                        )
                    ),
                ),
            ],
        },
        Part {
            name: "all_opencl",
            minutes: 4.0,
            paths: &["crates/translate/", "crates/gpu/src/opencl"],
            stages: vec![stage("all kernels on OpenCL", 30, &tests("--test conformance -- --device 'opencl: '"))],
        },
        Part {
            name: "all_ahead",
            minutes: 8.0,
            paths: &["crates/kernel/", "crates/spmd/", "native-fastpaths/cpu/", "crates/build/", "tests/ahead/"],
            stages: vec![
                stage("all random kernels compiled ahead", 45, &tests("--test ahead -- --random 500")),
                stage(
                    "an app whose kernel its build script compiles",
                    15,
                    "cargo run --locked --quiet -p cantus-example-ahead",
                ),
                stage("an app whose kernels have types", 15, "cargo run --locked --quiet -p cantus-example-typed"),
            ],
        },
        Part {
            name: "all_graphs",
            minutes: 3.0,
            paths: &["crates/device/src/expression.rs", "crates/graph/", "crates/engine/src/ops/", "tests/suite/graph"],
            stages: vec![stage(
                "operation graphs on XLA",
                20,
                &format!(".ci/part graphs {}", tests("--test suite -- graph::")),
            )],
        },
        Part {
            name: "all_texts",
            minutes: 4.0,
            paths: &["crates/kernel/", "crates/translate/", "shaders/"],
            stages: vec![stage(
                "every kernel in every language, through its checker",
                20,
                &tests("--test conformance -- --texts"),
            )],
        },
        Part {
            name: "baseline",
            minutes: 1.0,
            paths: &["crates/base/", "crates/cpu/", "crates/spmd/"],
            stages: vec![stage(
                "the CPU's baseline instruction set",
                10,
                &format!("CANTUS_INSTRUCTION_SET=baseline {}", tests("--test conformance -- --device 'cpu: '")),
            )],
        },
        Part {
            name: "swiftshader",
            minutes: 4.0,
            paths: &["crates/gpu/src/vulkan", "crates/gpu/src/wgpu", "crates/kernel/"],
            stages: vec![
                stage(
                    "Vulkan on SwiftShader",
                    20,
                    &format!(
                        ".ci/part swiftshader env CANTUS_VALIDATION=1 {}",
                        tests("--test conformance -- --device 'vulkan: '")
                    ),
                ),
                stage(
                    "the bits of reproducible mode on SwiftShader",
                    20,
                    &format!(
                        ".ci/part swiftshader env CANTUS_TESTS=all {}",
                        tests("--test suite -- operations_have_the_same_bits")
                    ),
                ),
            ],
        },
        Part {
            name: "all_discrete",
            minutes: 20.0,
            paths: &["crates/gpu/src/vulkan"],
            stages: vec![
                stage(
                    "all kernels on Vulkan, as on a GPU with memory of its own",
                    30,
                    &format!("CANTUS_TESTS=all {}", discrete("--test conformance -- --device 'vulkan: '")),
                ),
                stage(
                    "all tensor operations, as on a GPU with memory of its own",
                    90,
                    &format!("CANTUS_TESTS=all {}", discrete("--test tensor_ops")),
                ),
            ],
        },
        Part {
            name: "all_architectures",
            minutes: 10.0,
            paths: &["crates/translate/", "native-fastpaths/cuda/", "shaders/"],
            stages: vec![compiles("every kernel compiles for every architecture of CUDA and HIP", "")],
        },
        Part {
            name: "audits",
            minutes: 2.0,
            paths: &["Cargo", "deny.toml", "docs/guide/", "src/"],
            stages: vec![stage("the guide as a book, licences, public items", 15, ".ci/part audits")],
        },
        Part {
            name: "asan_ahead",
            minutes: 10.0,
            paths: &["crates/spmd/", "native-fastpaths/cpu/"],
            stages: vec![
                sanitized("kernels compiled ahead, under AddressSanitizer", 45, "ahead"),
                sanitized(
                    "overrides of kernels compiled ahead, under AddressSanitizer",
                    30,
                    "suite -- ahead_overrides",
                ),
            ],
        },
        Part {
            name: "asan_executor",
            minutes: 10.0,
            paths: &["crates/cpu/", "crates/spmd/"],
            stages: vec![
                sanitized("the executor, under AddressSanitizer", 45, "conformance -- --executor"),
                // The drivers that are looked for leave a few bytes behind when they are unloaded; the executor's stage looks for leaks.
                Stage::new(
                    "the CPU backend, under AddressSanitizer",
                    30,
                    "ASAN_OPTIONS=detect_leaks=0 .ci/part sanitized conformance -- --device cpu",
                ),
            ],
        },
        Part {
            name: "intel_opencl",
            minutes: 5.0,
            paths: &["crates/translate/", "crates/gpu/src/opencl"],
            stages: vec![stage("every case on Intel's OpenCL", 30, ".ci/part intel_opencl")],
        },
        Part {
            name: "neon",
            minutes: 20.0,
            paths: &["crates/algebra/", "crates/base/", "crates/cpu/", "crates/spmd/"],
            stages: vec![stage("the CPU's forms for NEON and every case, under QEMU", 60, ".ci/part neon")],
        },
        Part {
            name: "strangers",
            minutes: 35.0,
            paths: &["crates/hal/", "crates/spmd/", "crates/wgpu/"],
            stages: vec![stage(
                "scenes of Vello's and tests of CubeCL, lampshade and phyz-gpu, on the CPU as a wgpu device",
                120,
                ".ci/part strangers untouched vello sort physics cubecl",
            )],
        },
        // CI has a quick build's modules, which say nothing of a release's sizes.
        Part {
            name: "page_sizes",
            minutes: 13.0,
            paths: &["crates/", "src/", "web/"],
            stages: vec![stage(
                "sizes of the page's modules",
                60,
                "web/build.sh; cd web; . ./node.sh; node --test --test-name-pattern='sizes? of the compressed' tests/package.test.mjs tests/proofs.test.mjs",
            )],
        },
        Part {
            name: "python",
            minutes: 10.0,
            paths: &["crates/", "python/"],
            stages: vec![stage("the Python package", 45, "python/test.sh --quick")],
        },
    ]
}

/// The modes that are one thing alone.
pub fn alone(mode: &Mode, minutes: f64) -> Vec<Stage> {
    let beyond = |build: u64| minutes.ceil() as u64 + build;
    match mode {
        Mode::Sanitize => {
            parts().into_iter().filter(|part| part.name.starts_with("asan")).flat_map(|part| part.stages).collect()
        }
        Mode::Threads => vec![Stage::new(
            "eight threads on one engine, failures, cancelling and dropped futures, under ThreadSanitizer",
            60,
            ".ci/part threads",
        )],
        Mode::Fuzz => vec![Stage::new(
            &format!("hostile input for {minutes} minutes"),
            beyond(60),
            &format!(".ci/part fuzz {minutes}"),
        )],
        Mode::Coverage => {
            vec![Stage::new("lines that hostile input runs", beyond(60), &format!(".ci/part coverage {minutes}"))]
        }
        Mode::Soak => vec![Stage::new(
            &format!("mixed work for {minutes} minutes"),
            beyond(60),
            &format!("CANTUS_SOAK={minutes} {}", tests("--test suite -- stress:: --nocapture")),
        )],
        Mode::Style => style(),
        _ => parts().into_iter().filter(|part| part.name == "python").flat_map(|part| part.stages).collect(),
    }
}

/// Returns what needs no build: the form of the sources and the words. CI begins with it, and `./test --style` is it alone.
pub fn style() -> Vec<Stage> {
    let stage = Stage::new;
    vec![
        stage("rustfmt", 5, "cargo fmt --all --check"),
        stage("rustfmt, apps", 5, "cargo fmt --all --check --manifest-path mobile/Cargo.toml"),
        stage("rustfmt, Python", 5, "cargo fmt --all --check --manifest-path python/Cargo.toml"),
        stage("rustfmt, web", 5, "cargo fmt --manifest-path web/Cargo.toml -p cantus-web -p cantus-bindgen --check"),
        stage(
            "rustfmt, apps of other libraries",
            5,
            "cargo fmt --all --check --manifest-path examples/neighbours/Cargo.toml",
        ),
        stage(
            "rustfmt, programs of others on the CPU as a wgpu device",
            5,
            "cargo fmt --all --check --manifest-path crates/wgpu/strangers/Cargo.toml",
        ),
        stage("rustfmt, stages", 5, "cargo fmt --manifest-path .ci/stages/Cargo.toml --check"),
        stage("spelling", 5, ".ci/part spelling"),
        stage("words", 5, ".ci/words"),
        stage("workflows", 5, ".ci/part workflows"),
    ]
}

/// The page's packages and folders.
const PAGE: &[&str] = &["web/Cargo.toml", "web/", "docs/"];

/// Returns CI's stages around `./test`.
pub fn ci() -> Vec<Stage> {
    let stage = Stage::new;
    let documented = "cargo doc --locked --features shell,top,viewer --no-deps --quiet --package cantus --package cantus-build --package cantus-cli";
    let mut stages = style();
    stages.extend([
        stage(
            "tests, stages",
            5,
            "CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/stages cargo test --quiet --locked --manifest-path .ci/stages/Cargo.toml",
        )
        .on(&[".ci/stages/"]),
        stage(
            "clippy",
            30,
            "cargo clippy --locked --workspace --all-targets --features $CANTUS_FEATURES -- --deny warnings",
        ),
        stage("the README's tests", 180, "./test --turn --window"),
        stage("one wgpu and one naga beside an app's own", 10, ".ci/standalone --resolve"),
        stage("documentation", 10, &format!("RUSTDOCFLAGS='--deny warnings' {documented}")),
        stage("what is published, packed", 10, "cargo xtask packages"),
        // The page and the wheel are the library once more, each by its own compiler: they take turns.
        stage("the page and the npm package", 40, "web/build.sh --quick").on(PAGE).by_turns(0, 2, "web/"),
        // The program as ./test built it. A browser on a busy machine is held up now and then: what fails twice has failed.
        stage(
            "the page in Chromium",
            40,
            "export CANTUS=$(realpath \"${CARGO_TARGET_DIR:-target}\")/debug/cantus; web/test.sh || { echo 'once more'; web/test.sh; }",
        )
        .on(PAGE)
        .by_turns(0, 2, "web/"),
        // From the page as it is built.
        stage(
            "the site in Chromium",
            15,
            ". .ci/shell.sh; packages python3-venv; docs/site/build.sh --quick; cd web; . ./node.sh; cd ..; node --test --test-concurrency=1 docs/site/site.test.mjs",
        )
        .on(PAGE)
        .by_turns(0, 2, "web/"),
        stage("the Python package", 45, ". .ci/shell.sh; packages python3-venv; python/test.sh --quick")
            .on(&["python/Cargo.toml", "python/", "docs/guide/src/", "examples/python/"])
            .by_turns(1, 2, "python/"),
        stage("the service", 40, ". .ci/shell.sh; packages python3-venv curl openssl faketime procps; crates/serve/test.sh")
            .on(&["cantus-serve"]),
        Stage {
            unless_after: Some(55),
            ..stage(
                "iOS, Android, Windows, an app outside or one of another library, by turns",
                40,
                ".ci/part elsewhere",
            )
        },
    ]);
    stages
}

/// `--list`.
pub fn list() {
    println!("stages of ./test:");
    for stage in circle(Circle::Quick, true, 0) {
        println!("  {}", stage.name);
    }
    println!("\nwhat --full adds, beside a larger share of the devices:");
    for stage in beyond_the_circle(0, Circle::Full) {
        println!("  {}", stage.name);
    }
    println!("\nwhat --faults plants, and the test that must find it:");
    for fault in faults::parse(faults::LIST).unwrap_or_default() {
        println!("  {:<13} {} | {}", fault.area(), fault.what, fault.test);
    }
    println!("\nparts of --all, the minutes that each takes on two cores, and the paths whose change calls for it:");
    for part in parts() {
        println!("  {:<18} {:>4}  {}", part.name, part.minutes, part.paths.join(" "));
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{WITHOUT_UNIT_TESTS, circle};

    /// Returns whether a file below a folder has a unit test.
    fn tests(folder: &Path) -> bool {
        let entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.iter().any(|path| {
            if path.is_dir() {
                tests(path)
            } else {
                path.extension().is_some_and(|end| end == "rs")
                    && std::fs::read_to_string(path).unwrap().contains("#[test]")
            }
        })
    }

    #[test]
    fn libraries_that_are_left_out_have_no_unit_tests() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (package, folder) in WITHOUT_UNIT_TESTS {
            let manifest = std::fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
            assert!(manifest.contains(&format!("name = \"{package}\"")), "{folder} is not {package}");
            let code = [folder.to_owned(), format!("{folder}/src")].map(|folder| root.join(folder));
            let code = if code[1].is_dir() { &code[1] } else { &code[0] };
            assert!(!tests(code), "{folder} has a unit test: take it off the list");
        }
        // Another library's folder is not on the list by mistake.
        assert!(tests(&root.join("crates/kernel/src")));
        let stages = circle(super::Circle::Quick, false, 0);
        assert!(stages.iter().any(|stage| stage.command.ends_with("--exclude cantus-zk")));
    }
}
