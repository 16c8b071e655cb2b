//! Every case, every shipped kernel and random programs through the compilers of CUDA and HIP, which need no GPU: each must compile without a warning for
//! each architecture. The shipped ones must not spill registers.
//!
//! Many kernels make one source, each in a namespace of its own: a compiler's start costs more than a kernel. When such a source fails, its
//! kernels are compiled alone, to say which.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use cantus::backend::{Compiled, cuda, hip};
use cantus::translate::{Dialect, Options};
use cantus::{Engine, Error};

use crate::clang;
use crate::report::{Outcome, Report};
use crate::texts::kernels;
use kit::case::Case;
use kit::deviations;

/// Kernels in one source.
const BATCH: usize = 40;

type Compile = fn(&str, &str, &str) -> cantus::Result<Compiled>;

struct Architecture {
    name: &'static str,
    dialect: Dialect,
    compile: Compile,
    /// Set where the compiler is expected to be there.
    required: &'static str,
}

const ARCHITECTURES: [Architecture; 10] = [
    Architecture { name: "sm_75", dialect: Dialect::Cuda, compile: cuda::compile, required: "CANTUS_REQUIRE_NVRTC" },
    Architecture { name: "sm_90", dialect: Dialect::Cuda, compile: cuda::compile, required: "CANTUS_REQUIRE_NVRTC" },
    Architecture {
        name: "compute_90",
        dialect: Dialect::Cuda,
        compile: cuda::compile,
        required: "CANTUS_REQUIRE_NVRTC",
    },
    // Native kernels alone: the translated ones say nothing new there.
    Architecture { name: "sm_100", dialect: Dialect::Cuda, compile: cuda::compile, required: "CANTUS_REQUIRE_NVRTC" },
    Architecture { name: "sm_120", dialect: Dialect::Cuda, compile: cuda::compile, required: "CANTUS_REQUIRE_NVRTC" },
    Architecture { name: "gfx90a", dialect: Dialect::Hip, compile: hip::compile, required: "CANTUS_REQUIRE_HIPRTC" },
    Architecture { name: "gfx1030", dialect: Dialect::Hip, compile: hip::compile, required: "CANTUS_REQUIRE_HIPRTC" },
    // Debian's hiprtc knows none of these.
    Architecture { name: "gfx1100", dialect: Dialect::Hip, compile: clang::compile, required: "CANTUS_REQUIRE_CLANG" },
    Architecture {
        name: "gfx1100-wave64",
        dialect: Dialect::Hip,
        compile: clang::compile,
        required: "CANTUS_REQUIRE_CLANG",
    },
    Architecture { name: "gfx1201", dialect: Dialect::Hip, compile: clang::compile, required: "CANTUS_REQUIRE_CLANG" },
];

struct Unit {
    name: String,
    source: String,
}

/// Compiles everything for every architecture; false when a compiler that should be there is not.
pub fn run(cases: &[Case], only: &str, report: &mut Report) -> bool {
    let mut there = true;
    for architecture in ARCHITECTURES.iter().filter(|known| known.name.contains(only)) {
        let title = format!("{} for {}", architecture.dialect.name(), architecture.name);
        let probe = (architecture.compile)("extern \"C\" __global__ void probe() {}", "probe", architecture.name);
        if let Err(error @ Error::Io { .. }) = probe {
            kit::not_run(&title, &error.to_string());
            there &= std::env::var_os(architecture.required).is_none();
            continue;
        }
        let started = Instant::now();
        let native_alone = ["sm_100", "sm_120"].contains(&architecture.name);
        let (units, mut outcomes) =
            if native_alone { Default::default() } else { units(cases, "", architecture.dialect) };
        if architecture.dialect == Dialect::Cuda {
            // Their macros would reach into each other's: each is compiled alone.
            let units = native(architecture.name);
            outcomes.extend(units.into_iter().map(|unit| (unit.name.clone(), judged(architecture, &unit))));
        }
        let batches: Vec<&[Unit]> = units.chunks(BATCH).collect();
        let next = std::sync::atomic::AtomicUsize::new(0);
        let judged = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while let Some(batch) = batches.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                        let outcomes = compile_batch(architecture, batch);
                        judged.lock().unwrap().extend(outcomes);
                    }
                });
            }
        });
        outcomes.extend(judged.into_inner().unwrap());
        outcomes.sort_by(|(a, _), (b, _)| a.cmp(b));
        report.device(&title, outcomes, started.elapsed());
    }
    there
}

/// The translations, and the outcome of each case that has none.
fn units(cases: &[Case], part: &str, dialect: Dialect) -> (Vec<Unit>, Vec<(String, Outcome)>) {
    let (mut units, mut outcomes) = (Vec::new(), Vec::new());
    for (name, kernel) in kernels(cases, part) {
        let options = Options::new().bound_loops(true).uniforms_by_value(true);
        match kernel.and_then(|kernel| kernel.translate(dialect, &options)) {
            // That a random program stores what it never reads is its own doing.
            Ok(translation) if dialect == Dialect::Cuda && name.starts_with("random ") => {
                let source = format!(
                    "#pragma nv_diagnostic push\n#pragma nv_diag_suppress 550\n{}\n#pragma nv_diagnostic pop\n",
                    translation.source
                );
                units.push(Unit { name, source });
            }
            Ok(translation) => units.push(Unit { name, source: translation.source }),
            Err(Error::Unsupported { construct, .. }) => {
                outcomes.push((name, Outcome::NotRun(format!("{} cannot express it: {construct}", dialect.name()))));
            }
            // What no device gets from naga is declared once for all.
            Err(error) => outcomes.push(match deviations::find("", &name) {
                Some(known) => (name, Outcome::Expected(known.reason.to_owned())),
                None => (name, Outcome::Failed(error.to_string())),
            }),
        }
    }
    (units, outcomes)
}

fn compile_batch(architecture: &Architecture, units: &[Unit]) -> Vec<(String, Outcome)> {
    let mut joined = String::new();
    for (number, unit) in units.iter().enumerate() {
        // With C's linkage, functions of one name would be one function.
        let source = unit.source.replace("extern \"C\" ", "");
        joined.push_str(&format!("namespace unit_{number} {{\n{source}\n}}\n"));
    }
    if compile(architecture, &joined, "a batch").is_ok() {
        return units.iter().map(|unit| (unit.name.clone(), Outcome::Passed)).collect();
    }
    units.iter().map(|unit| (unit.name.clone(), judged(architecture, unit))).collect()
}

fn judged(architecture: &Architecture, unit: &Unit) -> Outcome {
    match compile(architecture, &unit.source, &unit.name) {
        Ok(()) => Outcome::Passed,
        Err(log) => Outcome::Failed(log),
    }
}

/// The native kernels that take over, each with the functions of elements of a kernel that it takes over; before sm_90 those without clusters.
fn native(architecture: &str) -> Vec<Unit> {
    let engine = Engine::builder().backend("cpu").native(false).build().unwrap();
    // Shorter rows, and fewer bins, have kernels that no native kernel takes over.
    let x = engine.zeros::<f32>(&[2, 8192]).unwrap().expr();
    let gain = engine.zeros::<f32>(&[8192]).unwrap().expr();
    let rows = [
        (&x * 0.5).softmax(1),
        x.log_softmax(1),
        x.rms_norm(&gain, 1e-5),
        x.permute(&[1, 0]).permute(&[1, 0]).layer_norm(&gain, &gain, 1e-5),
        engine.zeros::<i32>(&[16]).unwrap().expr().bincount(8192),
        x.cumsum(1),
        engine.zeros::<i32>(&[8]).unwrap().expr().cummax(0),
    ];
    for rows in rows {
        rows.eval().unwrap();
    }
    let (mut units, mut names) = (Vec::new(), BTreeSet::new());
    // Composed where a native kernel serves it alone.
    let coherence = concat!(
        "@group(0) @binding(0) var<uniform> words: array<vec4u, 1>;\n@group(0) @binding(1) var<storage, read> x0: array<f32>;\n",
        "@group(0) @binding(2) var<storage, read_write> y: array<f32>;\nfn element(place: u32) -> f32 { return x0[place]; }\n",
        include_str!("../../shaders/tensor/coherence_whole.wgsl")
    );
    let coherence = cantus::Kernel::from_named_wgsl("coherence_whole", coherence).unwrap();
    for kernel in cantus::testing::composed().into_iter().chain([coherence]) {
        for (name, translation) in cuda::takeovers(&kernel).unwrap() {
            names.insert(name);
            units.push(Unit { name: format!("native {name} {}", units.len()), source: translation.source });
        }
    }
    assert_eq!(names.len(), 6, "{names:?}");
    if architecture == "sm_75" {
        units.retain(|unit| unit.name.contains("look-back"));
        assert!(!units.is_empty());
        return units;
    }
    // A product by cooperative matrices, of operands that lie as they are.
    let text = concat!(
        "enable f16;\nenable wgpu_cooperative_matrix;\n@group(0) @binding(0) var<uniform> words: array<vec4u, 1>;\n",
        "@group(0) @binding(1) var<storage, read> x0: array<f16>;\n@group(0) @binding(2) var<storage, read> x1: array<f16>;\n",
        "@group(0) @binding(3) var<storage, read_write> y: array<f32>;\n",
        "fn load_a(batch: u32, row: u32, k: u32) -> f32 { return f32(x0[row * words[0].z + k]); }\n",
        "fn load_b(batch: u32, k: u32, column: u32) -> f32 { return f32(x1[k * words[0].y + column]); }\n",
        "fn store(batch: u32, row: u32, column: u32, value: f32) { y[row * words[0].y + column] = value; }\n",
        include_str!("../../shaders/tensor/matmul_cooperative.wgsl")
    );
    let kernel = cantus::Kernel::from_named_wgsl("matmul_cooperative", text).unwrap();
    let translation =
        kernel.translate(Dialect::Cuda, &Options::new().bound_loops(true).uniforms_by_value(true)).unwrap();
    units.push(Unit { name: "native matmul_cooperative".to_owned(), source: translation.source });
    units
}

/// Compiles, and takes a warning for a failure.
fn compile(architecture: &Architecture, source: &str, name: &str) -> Result<(), String> {
    let compiled = (architecture.compile)(source, name, architecture.name).map_err(|error| error.to_string())?;
    if compiled.log.is_empty() { Ok(()) } else { Err(format!("a warning: {}", compiled.log)) }
}

/// Registers and spills of the shipped kernels, as `ptxas -v` reports them. A spill is a failure.
pub fn registers(report: &mut Report) -> bool {
    let Some(ptxas) = std::env::var_os("CANTUS_PTXAS").filter(|path| !path.is_empty()) else {
        println!("no ptxas (CANTUS_PTXAS names it): registers and spills were not looked at");
        return std::env::var_os("CANTUS_REQUIRE_NVRTC").is_none();
    };
    let started = Instant::now();
    let mut outcomes = Vec::new();
    for (virtual_architecture, architecture) in [("compute_75", "sm_75"), ("compute_90", "sm_90")] {
        let (units, _) = units(&[], "shipped.", Dialect::Cuda);
        for unit in units {
            outcomes.push(spills(&ptxas, &unit, virtual_architecture, architecture));
        }
    }
    for (virtual_architecture, architecture) in
        [("compute_75", "sm_75"), ("compute_90", "sm_90"), ("compute_100", "sm_100"), ("compute_120", "sm_120")]
    {
        for unit in native(architecture) {
            outcomes.push(spills(&ptxas, &unit, virtual_architecture, architecture));
        }
    }
    report.device("registers by ptxas", outcomes, started.elapsed().max(Duration::from_millis(1)));
    true
}

/// A kernel's registers, printed; a spill is a failure.
fn spills(ptxas: &std::ffi::OsStr, unit: &Unit, from: &str, to: &str) -> (String, Outcome) {
    let name = format!("{} {to}", unit.name);
    let outcome = match ptxas_says(ptxas, unit, from, to) {
        Ok(line) => {
            println!("{name}: {line}");
            let clean = line.contains(" 0 bytes spill stores, 0 bytes spill loads");
            if clean { Outcome::Passed } else { Outcome::Failed(line) }
        }
        Err(error) => Outcome::Failed(error),
    };
    (name, outcome)
}

fn ptxas_says(ptxas: &std::ffi::OsStr, unit: &Unit, from: &str, to: &str) -> Result<String, String> {
    let ptx = cuda::compile(&unit.source, &unit.name, from).map_err(|error| error.to_string())?.code;
    let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let text: Vec<u8> = ptx.into_iter().filter(|&byte| byte != 0).collect();
    file.write_all(&text).map_err(|error| error.to_string())?;
    let output = Command::new(ptxas)
        .args(["--verbose", "--warn-on-spills", "--gpu-name", to, "--output-file", "/dev/null"])
        .arg(file.path())
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() || text.contains("warning") {
        return Err(text);
    }
    let find =
        |word: &str| text.lines().find(|line| line.contains(word)).map(|line| line.replace("ptxas info    : ", ""));
    match (find("spill"), find("registers")) {
        (Some(spills), Some(registers)) => Ok(format!("{} {}", registers.trim(), spills.trim())),
        _ => Err(format!("ptxas says nothing of registers: {text}")),
    }
}
