//! Arguments of the program, which is built beside this one, for the same sanitizer (`./test --fuzz`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::mutate::{self, Rng};
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

const COMMANDS: [&str; 11] =
    ["devices", "field", "pattern", "coherence", "animate", "run", "compile", "kernels", "config", "--version", "help"];

const OPTIONS: [&str; 32] = [
    "--backend",
    "--device",
    "--no-fallback",
    "--width",
    "--height",
    "--range",
    "--frequency",
    "--time",
    "--speed",
    "--seamless",
    "--output",
    "--in",
    "--out",
    "--set",
    "--workgroups",
    "--invocations",
    "--json",
    "--entry",
    "--timeout",
    "--memory-limit",
    "--frames",
    "--fps",
    "--colormap",
    "--verbose",
    "--help",
    "--target",
    "--arch",
    "--uniforms-by-value",
    "--compare",
    "--tolerance",
    "--check",
    "-o",
];

/// A list of arguments that means something.
fn sound(rng: &mut Rng, kernel: &Path) -> Vec<String> {
    let size = format!("{}x{}", 1 + rng.below(40), 1 + rng.below(40));
    let number = rng.below(9).to_string();
    let kernel = kernel.display().to_string();
    let colors = *rng.pick(&["viridis", "magma", "inferno", "plasma", "cividis", "twilight", "turbo"]);
    let name = *rng.pick(&["field", "phi_pattern", "coherence_mean", "softmax", "nothing"]);
    let language = *rng.pick(&["cuda", "hip", "opencl", "c", "spirv", "glsl", "hlsl", "msl", "wgsl"]);
    let shape = format!("a=f32[{}]", 1 + rng.below(200));
    let workgroups = format!("{},{},1", 1 + rng.below(4), 1 + rng.below(2));
    let words: Vec<&str> = match rng.below(12) {
        0..=1 => vec!["field", &size, "-o", "a.npy"],
        2 => vec!["field", &size, "--colormap", colors, "--time", &number, "--frequency", "love", "-o", "a.png"],
        3 => vec!["pattern", &size, "--range", "-1,1", "--json", "-o", "b.npy"],
        4 => vec!["coherence", "a.npy", "--json"],
        5 => vec!["animate", &size, "--frames", "3", "--fps", "20", "--speed", &number, "-o", "a.gif"],
        6..=7 => {
            vec!["run", &kernel, "--out", &shape, "--set", "p.x=2.5", "--workgroups", &workgroups, "-o", "a=c.npy"]
        }
        8 => vec![
            "run",
            &kernel,
            "--in",
            "a=a.npy",
            "--set",
            "n=7",
            "--set",
            "p.x=1",
            "--invocations",
            &number,
            "--compare",
            "cpu",
        ],
        9 => vec!["compile", &kernel, "--target", language, "--entry", "main"],
        10 => vec!["kernels", name],
        _ => vec!["config", "show"],
    };
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if rng.one_in(3) {
        words.extend(["--backend".to_owned(), "cpu".to_owned()]);
    }
    words
}

/// Another word, one more, one less, or a word that is damaged.
fn change(rng: &mut Rng, arguments: &mut Vec<String>, kernel: &Path) {
    let place = rng.below(arguments.len());
    match rng.below(8) {
        0 => arguments[place] = value(rng),
        1 => arguments.insert(place, (*rng.pick(&OPTIONS)).to_owned()),
        2 => arguments.push(format!("{}={}", rng.pick(&OPTIONS), value(rng))),
        3 if arguments.len() > 1 => drop(arguments.remove(place)),
        4 => arguments[0] = (*rng.pick(&COMMANDS)).to_owned(),
        5 => arguments.push(kernel.display().to_string()),
        6 => {
            let mut bytes = arguments[place].clone().into_bytes();
            mutate::bytes(rng, &mut bytes, b"=,x:.-", 2);
            // The process takes no zero byte.
            bytes.retain(|byte| *byte != 0);
            arguments[place] = String::from_utf8_lossy(&bytes).into_owned();
        }
        _ => {
            arguments.push((*rng.pick(&OPTIONS)).to_owned());
            arguments.push(value(rng));
        }
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
    let mut runs = Runs::new(&program, folder.path());
    Box::new(move |rng| {
        // The kernel's file lies there as long as it is asked for.
        let _folder = &folder;
        let mut arguments = sound(rng, &kernel);
        // A third stays as it is.
        for _ in 0..rng.below(3) {
            change(rng, &mut arguments, &kernel);
        }
        let (code, signal) = runs.run(&arguments);
        // 101 is a panic; 14 is its own alarm, when sizes are large.
        assert!(code != Some(101) && signal.is_none_or(|signal| signal == ALARM), "{code:?} {signal:?}: {arguments:?}");
        match code {
            Some(0) => Outcome::Ran,
            Some(1) | None => Outcome::Passed,
            _ => Outcome::Refused,
        }
    })
}

const ALARM: i32 = 14;

/// The program, ready to run with many lists of arguments (cli/src/forks.rs).
struct Runs {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Runs {
    fn new(program: &Path, folder: &Path) -> Self {
        let mut child = Command::new(program)
            .current_dir(folder)
            .env("CANTUS_FORKS", "1")
            .envs(["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"].map(|name| (name, folder)))
            .env("CANTUS_BACKEND", "cpu")
            .env("CANTUS_MEMORY_LIMIT", "262144")
            .env("CANTUS_TIMEOUT_MS", "500")
            // Drivers take longer to look for than all the rest.
            .envs(
                ["VK_ICD_FILENAMES", "OCL_ICD_VENDORS", "__EGL_VENDOR_LIBRARY_DIRS", "CANTUS_HIP_LIBRARY"]
                    .map(|name| (name, "/nonexistent")),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// How it ended: a code, or a signal.
    fn run(&mut self, arguments: &[String]) -> (Option<i32>, Option<i32>) {
        let line = arguments.join("\x1f").replace('\n', " ") + "\n";
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let line = self.lines.next().expect("the program is one that forks: built with --cfg sanitized").unwrap();
        match line.split_once(' ') {
            Some(("code", code)) => (code.parse().ok(), None),
            Some((_, signal)) => (None, signal.parse().ok()),
            None => panic!("{line}"),
        }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
